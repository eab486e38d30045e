"""Scheduled runs: the due tick of a writer's schedule, and the next one.

A tick is executed when its attempt is in status, in the same write as ``lastScheduleTime``: an
operator that dies in between runs it once. After several missed ticks only the newest runs, once;
ticks from before the schedule was set never run.
"""

from __future__ import annotations

from typing import Any

from hudi_operator.api.spec import WriterSpec
from hudi_operator.model import conditions

JsonDict = dict[str, Any]


def problem(writer: WriterSpec) -> str:
    """Why the schedule cannot be used; empty when it can, or when there is none."""
    return "" if writer.schedule is None else writer.schedule.ticks.problem("spec.schedule")


def due_ms(writer: WriterSpec, status: JsonDict, now_ms: int) -> int:
    """The newest due tick that was not run, Unix milliseconds; 0 when there is none."""
    if writer.schedule is None or problem(writer):
        return 0
    tick = int(writer.schedule.ticks.previous(now_ms).timestamp() * 1000)
    if tick <= max(_since_ms(writer, status, now_ms), _time_ms(status, "lastScheduleTime")):
        return 0
    deadline = writer.schedule.starting_deadline_seconds
    return tick if deadline is None or now_ms - tick <= deadline * 1000 else 0


def status_of(writer: WriterSpec, old: JsonDict, *, started_ms: int, now_ms: int) -> JsonDict:
    """The fields of status: ``started_ms`` is the tick that starts a run now (0: none does)."""
    if writer.schedule is None or problem(writer):
        return {}
    found: JsonDict = {"schedule": {**_spelled(writer), "since": conditions.rfc3339(_since_ms(writer, old, now_ms))}}
    if started_ms:
        found["lastScheduleTime"] = conditions.rfc3339(started_ms)
    elif "lastScheduleTime" in old:
        found["lastScheduleTime"] = old["lastScheduleTime"]
    if not writer.suspend:
        found["nextScheduleTime"] = conditions.rfc3339(next_ms(writer, now_ms))
    return found


def next_ms(writer: WriterSpec, now_ms: int) -> int:
    """The first tick after now, Unix milliseconds; 0 without a usable schedule."""
    if writer.schedule is None or problem(writer):
        return 0
    return int(writer.schedule.ticks.next(now_ms).timestamp() * 1000)


def _spelled(writer: WriterSpec) -> dict[str, str]:
    return (
        {"cron": writer.schedule.ticks.cron, "timeZone": writer.schedule.ticks.time_zone}
        if writer.schedule is not None
        else {}
    )


def _since_ms(writer: WriterSpec, status: JsonDict, now_ms: int) -> int:
    """Time at which this schedule was first seen: earlier ticks do not count."""
    seen = status.get("schedule") or {}
    if {name: seen.get(name) for name in ("cron", "timeZone")} != _spelled(writer):
        return now_ms
    return conditions.from_rfc3339(str(seen.get("since") or "")) or now_ms


def _time_ms(status: JsonDict, name: str) -> int:
    return conditions.from_rfc3339(str(status.get(name) or "")) or 0
