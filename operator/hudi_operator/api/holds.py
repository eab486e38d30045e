"""`spec.holds`: commits whose files stay for a reader that takes long, until a time."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_contract.requests import HoldRequest, request_id
from hudi_contract.words import RequestKind
from hudi_operator.api.fields import number, text

DAY = 86_400


@dataclass(frozen=True)
class Hold:
    """One hold. Its time begins when the operator first sees it."""

    name: str = text(required=True, at_least=1, at_most=63, matches="^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")
    instant: str = text(at_most=17, matches="^[0-9]{14}([0-9]{3})?$")
    """Requested time of the commit; empty: the last one when the agent sees the hold."""
    duration_seconds: int = number(DAY, at_least=60, at_most=7 * DAY)
    reader: str = text(at_most=128, pattern=r"^[^\x00-\x1f]*$")
    """For people: who reads."""

    def request(self, table_uid: str, *, since_ms: int) -> HoldRequest:
        """The request to the agent. ``since_ms``: when the hold was first seen."""
        return HoldRequest(
            id=request_id(RequestKind.HOLD, self.name),
            name=self.name,
            table_uid=table_uid,
            instant=self.instant,
            since_ms=since_ms,
            until_ms=since_ms + self.duration_seconds * 1000,
        )
