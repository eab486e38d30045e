"""A HudiTable's status that only counts its writers waits a moment for the next one.

Writers of a table start and end one after the other, each in a separate look. No decision is made
from how many of them run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from hudi_contract import naming
from hudi_operator.control.queue import Key
from hudi_operator.plan.core import actions as act

JsonDict = dict[str, Any]
COUNTS_SECONDS = 2.0
"""Shortest time between two statuses of a HudiTable of which the second one only counts."""
_COUNTS = frozenset({"writers", "writersSummary"})
_MOST = 10_000
"""HudiTables that are remembered; then all are forgotten."""


class Counts:
    """Times at which statuses of HudiTables were last written; belongs to one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: monotonic, in seconds."""
        self._clock = clock
        self._written: dict[Key, float] = {}

    def may_wait(self, key: Key, action: act.UpdateStatus, seen: JsonDict) -> bool:
        """Whether this status of the object is left for a later look; it is noted when not."""
        if action.kind != naming.TABLE_KIND:
            return False
        now, old = self._clock(), seen.get("status") or {}
        changed = {name for name in {*old, *action.status} if old.get(name) != action.status.get(name)}
        if changed <= _COUNTS and now - self._written.get(key, float("-inf")) < COUNTS_SECONDS:
            return True
        if len(self._written) >= _MOST:
            self._written.clear()
        self._written[key] = now
        return False


def left(plan: act.Plan, done: Iterable[act.Action]) -> bool:
    """Whether a status of the HudiTable was planned and not written."""
    written = [action for action in done if isinstance(action, act.UpdateStatus)]
    return any(
        isinstance(action, act.UpdateStatus) and action.kind == naming.TABLE_KIND and action not in written
        for action in plan.actions
    )
