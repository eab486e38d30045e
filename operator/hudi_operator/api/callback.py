"""``spec.commitCallback``: a receiver that is told of each commit."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_contract.assignment import CallbackOrder
from hudi_operator.api.fields import flag, number, text

WHERE = "spec.commitCallback"
SECRET_DIR = "/etc/hudi/callback"  # noqa: S105 - a folder
SECRET_KEYS = ("bearerToken", "headers", "ca.crt")
"""What a pod is shown of the Secret. Not ``token``: a Secret with the token of a service account is not one of a callback."""


@dataclass(frozen=True)
class Callback:
    """Where commits are posted to. ``secret``: name of the Secret with headers, token and CA; empty when there is none."""

    url: str = text(required=True, at_least=10, at_most=1024)
    secret: str = text(at="secretRef.name", unset="", required=True, at_least=1, at_most=253)
    timeout_seconds: int = number(10, at_least=1, at_most=60)
    table_services: bool = flag(False)
    """Whether compaction, log compaction and clustering are told, too."""

    def order(self) -> CallbackOrder:
        """What the agent must know."""
        return CallbackOrder(url=self.url, timeout_seconds=self.timeout_seconds, secret=bool(self.secret), table_services=self.table_services)
