"""Timeline facts for status: bounded, and never an input of a destructive decision."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from hudi_contract import metadata
from hudi_contract.reports import ReportedCommit, ReportedError, ReportedInstant, TimelineReport
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import Table
from hudi_runtime.table.storage import Missing

MAX_LISTED = 20
MAX_COMMITS = 10


def foreign(
    timeline: tl.Timeline, recorded: Collection[str], again: Callable[[], tl.Timeline]
) -> tuple[tl.Instant, ...]:
    """Pending instants without a record (I7: reported, never touched).

    `recorded` must have been read from etcd *after* the listing: a record is written before its
    file, and deleted only once the instant is completed or gone. So an instant without a record is
    foreign or no longer pending; the second listing `again` distinguishes the two.
    """
    suspects = [instant.requested for instant in timeline.pending if instant.requested not in recorded]
    if not suspects:
        return ()
    second = again()
    return tuple(instant for instant in second.pending if instant.requested in suspects)


def written_by_others(timeline: tl.Timeline, clock: str) -> tuple[tl.Instant, ...]:
    """Completed instants, savepoints too, that no session of this lock has published.

    `clock` must have been read from etcd *after* the listing: each publication first moves the
    clock to its completion time (I10). An instant older than a later publication of ours cannot be
    distinguished any more, so call this while the table is idle.
    """
    return tuple(i for i in (*timeline.completed, *timeline.savepoints) if not i.pending and i.completion > clock)


def commits(table: Table, timeline: tl.Timeline) -> tuple[ReportedCommit, ...]:
    """The writes that completed last, oldest first (`status.timeline.commits`).

    Each comes with its own metadata.
    """
    newest = [instant for instant in timeline.completed if instant.action in tl.WRITE_ACTIONS][-MAX_COMMITS:]
    found = []
    try:
        for instant, info in table.commits(tuple(newest)):
            said = ReportedCommit(
                instant=instant.requested,
                action=instant.action,
                completion_time=instant.completion,
                records=info.records,
            )
            found.append(
                said.but(writer=info.extra.get(metadata.WRITER) or "", attempt=info.extra.get(metadata.ATTEMPT) or "")
            )
    except Missing:
        pass  # archived since the listing: the next listing shows it
    return tuple(found)


def report(
    timeline: tl.Timeline,
    *,
    inc: str,
    foreigners: tuple[tl.Instant, ...],
    commits_since: Mapping[str, int],
    newest: tuple[ReportedCommit, ...] = (),
) -> TimelineReport:
    """`report/timeline` without its time.

    `commits_since` the last run, by table service; `newest` :func:`commits`.
    """
    last = timeline.last_completed
    pending = timeline.pending
    return TimelineReport(
        agent_inc=inc,
        exists=True,
        last_instant=last.requested if last else "",
        last_completion_time=last.completion if last else "",
        lowest_pending_requested_time=timeline.lowest_pending,
        pending=tuple(
            ReportedInstant(instant=i.requested, action=i.action, state=i.state.value) for i in pending[:MAX_LISTED]
        ),
        pending_count=len(pending),
        active_length=len(timeline.instants),
        foreign=tuple(
            ReportedInstant(instant=i.requested, action=i.action, completion_time=i.completion)
            for i in foreigners[:MAX_LISTED]
        ),
        commits_since=dict(commits_since),
        commits=newest,
    )


def error_report(*, inc: str, exists: bool, code: str, message: str) -> TimelineReport:
    """The report when the table could not be read, or does not match the spec."""
    return TimelineReport(agent_inc=inc, exists=exists, error=ReportedError(code=code, message=message))
