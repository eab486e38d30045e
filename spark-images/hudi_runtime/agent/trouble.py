"""What an agent says of a failure at one table, and when it tries again."""

from __future__ import annotations

import sys
import time

from hudi_contract.backoff import LONGEST_PAUSE_SECONDS, exponential
from hudi_contract.outcomes import ErrorCode, FailureClass
from hudi_contract.words import AgentError
from hudi_runtime.process.errors import classify, environment_secrets, first_line, java_causes

RETRY_SECONDS = 3.0


def told(error: Exception) -> tuple[str, str]:
    """Code and message of a failure, for a report: without secrets, not yet of its length."""
    failure = classify(error, secrets=environment_secrets())
    if f"[{ErrorCode.OTHER_AUTHORITY}]" in failure.message:
        return AgentError.OTHER_LOCK_AUTHORITY, failure.message
    stored = failure.kind is FailureClass.INFRASTRUCTURE and any(
        _storage_type(cause.type) for cause in java_causes(error)
    )
    return FailureClass.STORAGE_UNREACHABLE if stored else failure.kind, failure.message


class Trouble:
    """The back-off of a table that cannot be served.

    The reason, logged once, and the time of the next try.
    """

    def __init__(self, table: str) -> None:
        self._table = table
        self._until = 0.0
        self._failures = 0
        self._reason = ""

    @property
    def rests(self) -> bool:
        """Whether the next try is not yet due."""
        return time.monotonic() < self._until

    def rest(self, seconds: float) -> None:
        """Set the time until the next try."""
        self._until = time.monotonic() + seconds

    def met(self, reason: str) -> None:
        """Record a failure; the pause grows with each consecutive failure."""
        self._failures += 1
        self.rest(exponential(self._failures, first=RETRY_SECONDS, longest=LONGEST_PAUSE_SECONDS))
        if reason != self._reason:
            print(
                f"table {self._table}: {first_line(reason, secrets=environment_secrets())}", file=sys.stderr, flush=True
            )
        self._reason = reason

    def over(self) -> None:
        """Reset after a success."""
        self._failures, self._reason = 0, ""


def _storage_type(name: str) -> bool:
    return name.startswith(
        ("java.io.IOException", "java.nio.file.", "java.net.", "org.apache.hadoop.", "com.amazonaws.")
    )
