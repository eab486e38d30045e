"""Statuses that only tell how a driver starts.

From the creation of its pod until it is registered, the status of a HudiWriter gets the pod's uid,
the time at which the driver ran, and messages about what the pod waits for. Nobody has to be told
at once: such a status may wait for the one that says that the driver is registered
(`control/late_statuses.py`). What must be in status before something is made or ended is never
among them.
"""

from __future__ import annotations

from typing import Any

from hudi_contract.words import WriterState
from hudi_operator.plan.writers.next_step import Verdict

JsonDict = dict[str, Any]
_MESSAGES = frozenset({"Ready", "Admitted", "Running"})
"""Conditions whose message tells what a pod waits for."""


def only_starts(old: JsonDict, new: JsonDict, *, ready_deadline: bool) -> bool:
    """Whether the second status of a HudiWriter only tells more of a driver that starts.

    ``ready_deadline``: the writer has one. It counts from ``runningTime``, which then must outlive
    an operator.
    """
    changed = {name for name in {*old, *new} if old.get(name) != new.get(name)}
    if new.get("state") != WriterState.STARTING or not changed <= {"attempts", "conditions", "plan"}:
        return False
    if not _goes_on(old.get("plan") or {}, new.get("plan") or {}):
        return False
    told = {"podUID"} if ready_deadline else {"podUID", "runningTime"}
    return _adds(old.get("attempts") or [], new.get("attempts") or [], told) and _only_messages(
        old.get("conditions") or [], new.get("conditions") or []
    )


def _goes_on(old: JsonDict, new: JsonDict) -> bool:
    """Whether the plan is the same, or what was to start has started."""
    return old == new or (old.get("verdict") == Verdict.STARTS and new.get("verdict") == Verdict.GOES_ON)


def _adds(old: list[JsonDict], new: list[JsonDict], fields: set[str]) -> bool:
    """Whether the last attempt has more of these fields, and nothing else is another one."""
    if not old or len(old) != len(new) or old[:-1] != new[:-1]:
        return False
    before, after = old[-1], new[-1]
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return changed <= fields and not changed & before.keys()


def _only_messages(old: list[JsonDict], new: list[JsonDict]) -> bool:
    if [one["type"] for one in old] != [one["type"] for one in new]:
        return False
    return all(
        before == after or (before["type"] in _MESSAGES and _but_message(before) == _but_message(after))
        for before, after in zip(old, new, strict=True)
    )


def _but_message(condition: JsonDict) -> JsonDict:
    return {name: value for name, value in condition.items() if name != "message"}
