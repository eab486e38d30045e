"""Timeline facts for status: bounded, and never an input of a destructive decision."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import Table
from hudi_runtime.table.storage import Missing

MAX_LISTED = 20
MAX_COMMITS = 10


def foreign(timeline: tl.Timeline, recorded: Collection[str], again: Callable[[], tl.Timeline]) -> tuple[tl.Instant, ...]:
    """Pending instants without a record (I7: reported, never touched).

    `recorded` must have been read from etcd *after* the listing: a record is written before its file, and deleted only once the instant is
    completed or gone. So an instant without one is foreign, or no longer pending, which the second listing `again` tells apart.
    """
    suspects = [instant.requested for instant in timeline.pending if instant.requested not in recorded]
    if not suspects:
        return ()
    second = again()
    return tuple(instant for instant in second.pending if instant.requested in suspects)


def written_by_others(timeline: tl.Timeline, clock: str) -> tuple[tl.Instant, ...]:
    """Completed instants, savepoints too, that no session of this lock has published.

    `clock` must have been read from etcd *after* the listing: whoever publishes moves it to the completion time first (I10). One that a later
    publication of ours has overtaken is not told apart any more, so this must be asked while the table is idle.
    """
    return tuple(i for i in (*timeline.completed, *timeline.savepoints) if not i.pending and i.completion > clock)


def commits(table: Table, timeline: tl.Timeline) -> list[dict[str, Any]]:
    """The writes that completed last, oldest first, each with what it says of itself (`status.timeline.commits`)."""
    newest = [instant for instant in timeline.completed if instant.action in tl.WRITE_ACTIONS][-MAX_COMMITS:]
    found = []
    try:
        for instant, info in table.commits(tuple(newest)):
            said = {"instant": instant.requested, "action": instant.action, "completionTime": instant.completion, "records": info.records}
            names = {key: info.extra[f"hudioperator.{key}"] for key in ("writer", "attempt") if info.extra.get(f"hudioperator.{key}")}
            found.append({**said, **names})
    except Missing:
        pass  # archived since the listing: the next one tells
    return found


def report(
    timeline: tl.Timeline,
    *,
    inc: str,
    foreigners: tuple[tl.Instant, ...],
    commits_since: Mapping[str, int],
    newest: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """`report/timeline` of contracts, section 1, without its time. `commits_since` the last run, by table service; `newest` :func:`commits`."""
    last = timeline.last_completed
    pending = timeline.pending
    return {
        "agentInc": inc,
        "exists": True,
        "lastInstant": last.requested if last else "",
        "lastCompletionTime": last.completion if last else "",
        "lowestPendingRequestedTime": timeline.lowest_pending,
        "pending": [{"instant": i.requested, "action": i.action, "state": i.state.value} for i in pending[:MAX_LISTED]],
        "pendingCount": len(pending),
        "activeLength": len(timeline.instants),
        "foreign": [
            {"instant": i.requested, "action": i.action, **({"completionTime": i.completion} if i.completion else {})} for i in foreigners[:MAX_LISTED]
        ],
        "commitsSince": dict(commits_since),
        "commits": [dict(commit) for commit in newest],
    }


def error_report(*, inc: str, exists: bool, code: str, message: str) -> dict[str, Any]:
    """The report when the table could not be looked at, or is not the one of the spec."""
    return {
        "agentInc": inc,
        "exists": exists,
        "error": {"code": code, "message": message},
        "lastInstant": "",
        "lastCompletionTime": "",
        "lowestPendingRequestedTime": "",
        "pending": [],
        "pendingCount": 0,
        "activeLength": 0,
        "foreign": [],
    }
