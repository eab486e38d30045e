"""``spec.commitCallback``: a receiver that is told of each commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_contract.assignment import CallbackOrder
from hudi_operator.api.fields import get

WHERE = "spec.commitCallback"
SECRET_DIR = "/etc/hudi/callback"  # noqa: S105 - a folder
SECRET_KEYS = ("bearerToken", "headers", "ca.crt")
"""What a pod is shown of the Secret. Not ``token``: a Secret with the token of a service account is not one of a callback."""


@dataclass(frozen=True)
class Callback:
    """Where commits are posted to. ``secret``: name of the Secret with headers, token and CA; empty when there is none."""

    url: str
    secret: str = ""
    timeout_seconds: int = 10
    table_services: bool = False
    """Whether compaction, log compaction and clustering are told, too."""

    def order(self) -> CallbackOrder:
        """What the agent must know."""
        return CallbackOrder(url=self.url, timeout_seconds=self.timeout_seconds, secret=bool(self.secret), table_services=self.table_services)


def from_spec(spec: Mapping[str, Any]) -> Callback | None:
    """Read ``spec.commitCallback``; None when it is not there. Raises SpecError."""
    raw = spec.get("commitCallback")
    if raw is None:
        return None
    default = Callback("")
    return Callback(
        url=get(raw, "url", str, "", WHERE),
        secret=get(get(raw, "secretRef", dict, {}, WHERE), "name", str, "", f"{WHERE}.secretRef"),
        timeout_seconds=get(raw, "timeoutSeconds", int, default.timeout_seconds, WHERE),
        table_services=get(raw, "tableServices", bool, default.table_services, WHERE),
    )
