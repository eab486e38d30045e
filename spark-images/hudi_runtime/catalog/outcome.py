"""Outcomes of a try that did not do what was wanted."""

from __future__ import annotations

TABLE_TAKEN = "TableTaken"
DATABASE_MISSING = "DatabaseMissing"
NOT_HELD = "NotHeld"
ACCESS_DENIED = "AccessDenied"
CONNECTION_FAILED = "ConnectionFailed"
TIMEOUT = "Timeout"
SYNC_FAILED = "SyncFailed"
"""Reasons, as the condition shows them."""


class NotSynced(Exception):
    """The catalog was not changed, or not completely. `reason` is one word."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Busy(NotSynced):
    """Not tried: an earlier try of this process is still within its time limit."""


def said(text: str) -> str:
    """Result of a call of the Java module.

    Raises NotSynced with the problem that the result names.
    """
    reason, _, message = text.partition("\n")
    if reason:
        raise (Busy if reason == "busy" else NotSynced)(reason, message)
    return message
