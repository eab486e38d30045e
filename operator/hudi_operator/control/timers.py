"""Named timers on this process's monotonic clock.

They are intentionally lost at a failover: the delay then starts again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hudi_operator.control.queue import Key


class Timers:
    """Timers by table."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started: dict[Key, dict[str, float]] = {}

    def start(self, key: Key, name: str) -> None:
        """Start a timer if it is not running."""
        self._started.setdefault(key, {}).setdefault(name, self._clock())

    def stop(self, key: Key, name: str) -> None:
        """Stop and remove a timer."""
        self._started.get(key, {}).pop(name, None)

    def ages(self, key: Key) -> dict[str, float]:
        """Seconds since each timer of a table was started."""
        now = self._clock()
        return {name: now - started for name, started in self._started.get(key, {}).items()}

    def forget(self, key: Key) -> None:
        """Remove all timers of a deleted table."""
        self._started.pop(key, None)
