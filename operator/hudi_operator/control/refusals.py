"""Objects of attempts that the API server has refused, and when each is tried again.

This is intentionally lost at a failover: each attempt is then tried once more immediately.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hudi_contract.backoff import exponential
from hudi_operator.control.queue import Key
from hudi_operator.model.facts import Refusal
from hudi_operator.model.ports import Refused

FIRST_SECONDS = 5.0
LONGEST_SECONDS = 120.0
"""Maximum time until an attempt is tried again: no event says when a quota has room."""


@dataclass(frozen=True)
class _Known:
    said: Refusal
    digest: str
    times: int
    due: float


class Refusals:
    """Refusals by table and attempt."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: monotonic, in seconds."""
        self._clock = clock
        self._known: dict[Key, dict[str, _Known]] = {}

    def keep(self, key: Key, begun: Mapping[str, str]) -> None:
        """Forget attempts of a table that are not begun any more.

        ``begun``: by attempt, a digest of what is to be made.
        """
        known = {attempt: one for attempt, one in self._known.get(key, {}).items() if attempt in begun}
        if known:
            self._known[key] = known
        else:
            self._known.pop(key, None)

    def wait(self, key: Key, attempt: str, digest: str) -> bool:
        """Whether an attempt is not tried yet; one that is to be made differently is, at once."""
        known = self._known.get(key, {}).get(attempt)
        return known is not None and known.digest == digest and self._clock() < known.due

    def refused(self, key: Key, attempt: str, digest: str, error: Refused) -> float:
        """Note a refusal; returns the seconds until the next try."""
        known = self._known.get(key, {}).get(attempt)
        times = known.times + 1 if known is not None and known.digest == digest else 1
        delay = exponential(times, first=FIRST_SECONDS, longest=LONGEST_SECONDS)
        said = Refusal(error.reason, str(error))
        self._known.setdefault(key, {})[attempt] = _Known(said, digest, times, self._clock() + delay)
        return delay

    def passed(self, key: Key, attempt: str) -> None:
        """Nothing of an attempt was refused."""
        self._known.get(key, {}).pop(attempt, None)

    def facts(self, key: Key) -> dict[str, Refusal]:
        """The last refusal of each attempt of a table."""
        now = self._clock()
        return {
            attempt: replace(known.said, seconds=max(0.0, known.due - now))
            for attempt, known in self._known.get(key, {}).items()
        }
