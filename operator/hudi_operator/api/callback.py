"""``spec.commitCallback``: a receiver that is notified of each commit."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_contract.assignment import CallbackOrder
from hudi_operator.api import http_address
from hudi_operator.api.fields import NAME, flag, number, text

WHERE = "spec.commitCallback"

_URL = (
    "^https?://([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?"
    "(/[A-Za-z0-9._~!$&()*+,;=:@%/-]*)?([?][A-Za-z0-9._~!$&()*+,;=:@%/?-]*)?$"
)


@dataclass(frozen=True)
class Callback:
    """The receiver to which commits are posted.

    ``secret``: name of the Secret with headers, token and CA; empty when there is none.
    """

    url: str = text(required=True, at_least=10, at_most=1024, matches=_URL)
    secret: str = text(at="secretRef.name", unset="", required=True, at_least=1, at_most=253, matches=NAME)
    timeout_seconds: int = number(10, at_least=1, at_most=60)
    table_services: bool = flag(False)
    """Whether compaction, log compaction and clustering are delivered, too."""

    def order(self) -> CallbackOrder:
        """The callback in the agent's assignment."""
        return CallbackOrder(
            url=self.url,
            timeout_seconds=self.timeout_seconds,
            secret=bool(self.secret),
            table_services=self.table_services,
        )


def problem(wanted: Callback | None) -> str:
    """Why nothing is sent to this receiver (field and rule); empty when it is, or there is none.

    The CRD refuses the same. The agent checks the addresses of the name at each request.
    """
    if wanted is None:
        return ""
    found = http_address.problem(wanted.url)
    return f"{WHERE}.url: {found}" if found else ""
