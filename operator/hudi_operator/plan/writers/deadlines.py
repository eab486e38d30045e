"""Deadlines of an attempt: until its driver runs, until it is registered, until it commits.

One of them applies at a time, by what the attempt has reached. All are counted from times in the
attempt's status, so that they outlive an operator, and by the earlier one of its clock and the API
server's: a clock that steps forward stops nobody (F547). After half of the time the writer's
condition ``Late`` says what is awaited; after all of it the attempt is stopped like a suspended
writer, and the class of its end is that of the deadline.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_contract.keys import attempt_report
from hudi_contract.records import read
from hudi_contract.reports import AttemptReport
from hudi_operator.api.spec import WriterSpec
from hudi_operator.model import classify, conditions, containers
from hudi_operator.model.conditions import Condition
from hudi_operator.model.status import AttemptEntry
from hudi_operator.plan.core.view import Attempt, View, WriterView
from hudi_operator.plan.gate.gate import timeline_report

CONDITION = "Late"


@dataclass(frozen=True)
class Deadline:
    """The deadline that applies to an attempt now.

    ``class_``: of the attempt that exceeds it; ``awaited``: what it waits for, in words.
    """

    class_: str
    seconds: int
    since_ms: int
    awaited: str

    def over(self, now_ms: int) -> bool:
        """True when the attempt must be stopped."""
        return now_ms - self.since_ms > 1000 * self.seconds

    def late(self, now_ms: int) -> bool:
        """True when more than half of the time is over."""
        return now_ms - self.since_ms > 500 * self.seconds

    def next_ms(self, now_ms: int) -> int:
        """Milliseconds until the attempt is late, or must be stopped."""
        half, whole = (self.since_ms + part * self.seconds - now_ms for part in (500, 1000))
        return max(0, half if half >= 0 else whole)

    @property
    def never_ran(self) -> bool:
        """True when its driver did not run."""
        return self.class_ == classify.START_DEADLINE_EXCEEDED

    @property
    def message(self) -> str:
        """One line."""
        return self.awaited.splitlines()[0][: classify.MESSAGE_LIMIT]


def clock_ms(view: View) -> int:
    """The time by which deadlines are over, in Unix milliseconds."""
    return view.now_ms if view.observed.api_now_ms is None else min(view.now_ms, view.observed.api_now_ms)


def current(view: View, writer: WriterSpec, attempt: Attempt, entry: AttemptEntry) -> Deadline | None:
    """The deadline of an attempt that has not ended; None: it has none now.

    ``entry``: its status as of this look.
    """
    if attempt.incs or entry.incarnation:
        return _commit(view, writer, attempt, entry)
    jvm = containers.host(attempt.pod) if attempt.pod is not None else None
    if jvm is not None and jvm.started:
        return _ready(writer, entry)
    return _start(view, writer, attempt, entry)


def _start(view: View, writer: WriterSpec, attempt: Attempt, entry: AttemptEntry) -> Deadline | None:
    """Until its driver runs.

    The time that its pod spent behind a scheduling gate, in a queue of the cluster, is none of its
    own.
    """
    if writer.start_deadline_seconds is None or (attempt.pod is not None and attempt.pod.gates):
        return None
    pod, refused = attempt.pod, view.observed.refusals.get(attempt.id)
    why = f"{refused.reason}: {refused.message}" if refused is not None else ""
    if pod is not None:
        why = why or pod.waiting or pod.unschedulable or f"its pod is {pod.phase}"
    return _of(
        classify.START_DEADLINE_EXCEEDED,
        writer.start_deadline_seconds,
        entry.ungated_time if entry.gated else entry.start_time,
        f"no driver ran within {writer.start_deadline_seconds} s: {why or 'it has no pod'}",
    )


def _ready(writer: WriterSpec, entry: AttemptEntry) -> Deadline | None:
    return _of(
        classify.READY_DEADLINE_EXCEEDED,
        writer.ready_deadline_seconds,
        entry.running_time,
        f"its driver was not registered within {writer.ready_deadline_seconds} s after it ran: see its log",
    )


def _commit(view: View, writer: WriterSpec, attempt: Attempt, entry: AttemptEntry) -> Deadline | None:
    """None for an incarnation that is fenced: its end is awaited already.

    A program that writes by itself reports its commits at its end only, so nobody knows when it has
    committed last (F546).
    """
    if writer.streaming_seconds is not None or writer.application is not None:
        return None
    if not any(not i.fenced and i.record is None for i in attempt.incs):
        return None
    report = read(view.etcd.reports.get(attempt_report(attempt.id)), AttemptReport)
    # A report may be lost. What the agent lists is not all of its commits: it only makes it later.
    listed = (c.completion_time for c in timeline_report(view).commits if c.attempt == attempt.id)
    last = max(map(conditions.hudi_time, (report.last_completion_time, *listed)))
    stage = f"its stage is {report.stage}" if report.stage else "it has reported no stage"
    return _of(
        classify.COMMIT_DEADLINE_EXCEEDED,
        writer.commit_deadline_seconds,
        max(entry.ready_time, last),
        f"no commit within {writer.commit_deadline_seconds} s since {'the last one' if last else 'it was ready'}: "
        f"{stage}",
    )


def _of(class_: str, seconds: int | None, since: str, awaited: str) -> Deadline | None:
    began = conditions.from_rfc3339(since)
    return Deadline(class_, seconds, began, awaited) if seconds is not None and began is not None else None


def late(view: View, writer: WriterView, entry: AttemptEntry | None) -> Condition:
    """``Late`` as the facts have it now. ``entry``: the status of the last attempt."""
    class_, message = _late(view, writer, entry)
    if class_ == classify.START_DEADLINE_EXCEEDED:
        return conditions.condition(CONDITION, True, "NotStarted", message)
    if class_ == classify.READY_DEADLINE_EXCEEDED:
        return conditions.condition(CONDITION, True, "NotReady", message)
    if class_ == classify.COMMIT_DEADLINE_EXCEEDED:
        return conditions.condition(CONDITION, True, "NoCommit", message)
    return conditions.condition(CONDITION, False, "InTime")


def _late(view: View, writer: WriterView, entry: AttemptEntry | None) -> tuple[str, str]:
    """Class of the deadline and what is awaited; both empty: nothing is late."""
    if entry is None or writer.active is None or entry.class_ or entry.number != writer.active.number:
        return "", ""
    if entry.stopped_for:
        return entry.stopped_for, f"it is being stopped: {entry.message}"
    due = current(view, writer.active.writer, writer.active, entry)
    if due is None or not due.late(clock_ms(view)):
        return "", ""
    return due.class_, f"more than half of the time is over: {due.message}"
