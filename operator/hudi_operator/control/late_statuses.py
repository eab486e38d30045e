"""Statuses of HudiWriters that wait for the next one.

A status that only tells how a driver starts (`plan/writers/starting_status.py`) is written together
with the one that says that the driver is registered, after :data:`LATE_SECONDS` at the latest.
Until then this process treats it as written: each live look has it in place of the status that was
read, as long as nobody has changed the object. Another operator finds the object as it would if
this one had ended before that write, and notes the same again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from hudi_contract import naming
from hudi_operator.control.queue import Key
from hudi_operator.plan.core import actions as act

JsonDict = dict[str, Any]
LATE_SECONDS = 20.0
"""Longest time that a status waits: in a cluster whose nodes have the image a driver is registered
some ten seconds after its pod was made.
"""


@dataclass(frozen=True)
class _Late:
    action: act.UpdateStatus
    since: float


class LateStatuses:
    """By HudiTable and HudiWriter; belongs to one event loop. A failover forgets them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: monotonic, in seconds."""
        self._clock = clock
        self._known: dict[Key, dict[str, _Late]] = {}

    def may_wait(self, key: Key, action: act.UpdateStatus) -> bool:
        """Whether this status is left for later; it is noted then.

        A status that may not wait contains what was noted before, and replaces it.
        """
        if action.kind != naming.WRITER_KIND:
            return False
        known, now = self._known.get(key, {}).get(action.name), self._clock()
        same = known is not None and known.action.resource_version == action.resource_version
        since = known.since if known is not None and same else now
        if action.waits and now - since < LATE_SECONDS:
            self._known.setdefault(key, {})[action.name] = _Late(action, since)
            return True
        return False

    def written(self, key: Key, action: act.UpdateStatus) -> None:
        """A status was written, so that none waits. One whose write failed is kept until then."""
        if action.kind == naming.WRITER_KIND:
            self._drop(key, action.name)

    def known(self, key: Key, writers: Iterable[JsonDict]) -> Iterator[JsonDict]:
        """The HudiWriters of a live look, with the statuses that wait.

        One that is gone has none. One that somebody has changed since keeps what cannot be found
        out again when the pod is gone: the pod's uid (F23, F625).
        """
        left = dict(self._known.get(key, {}))
        for obj in writers:
            late = left.pop(str(obj["metadata"]["name"]), None)
            if late is None:
                yield obj
            elif str(obj["metadata"].get("resourceVersion", "")) == late.action.resource_version:
                yield {**obj, "status": late.action.status}
            else:
                yield self._noted_anew(key, obj, late)
        for name in left:
            self._drop(key, name)

    def _noted_anew(self, key: Key, obj: JsonDict, late: _Late) -> JsonDict:
        changed = _with_pod(obj, late.action.status)
        if changed is obj:
            self._drop(key, late.action.name)
            return obj
        version = str(obj["metadata"]["resourceVersion"])
        action = replace(late.action, resource_version=version, status=changed["status"])
        self._known[key][action.name] = _Late(action, late.since)
        return changed

    def due(self, key: Key) -> list[act.UpdateStatus]:
        """The statuses that must not wait any longer."""
        now = self._clock()
        return [late.action for late in self._known.get(key, {}).values() if now - late.since >= LATE_SECONDS]

    def is_due(self, key: Key, action: act.UpdateStatus) -> bool:
        """Whether this is one of them: each look has it already, and it is not written."""
        return any(action is one for one in self.due(key))

    def left(self, key: Key) -> float | None:
        """Seconds until the first one is due; None: none waits."""
        waits = [late.since + LATE_SECONDS - self._clock() for late in self._known.get(key, {}).values()]
        return max(0.0, min(waits)) if waits else None

    def _drop(self, key: Key, name: str) -> None:
        known = self._known.get(key, {})
        known.pop(name, None)
        if not known:
            self._known.pop(key, None)


def _with_pod(obj: JsonDict, noted: JsonDict) -> JsonDict:
    """The HudiWriter with the pod's uid of its last attempt; itself when it needs none."""
    status = obj.get("status") or {}
    attempts, told = status.get("attempts") or [], noted.get("attempts") or []
    if not attempts or not told or attempts[-1].get("podUID") or not told[-1].get("podUID"):
        return obj
    if any(attempts[-1].get(name) != told[-1].get(name) for name in ("number", "startTime")):
        return obj
    last = {**attempts[-1], "podUID": told[-1]["podUID"]}
    return {**obj, "status": {**status, "attempts": [*attempts[:-1], last]}}
