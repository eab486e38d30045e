"""Deadlines of an attempt: until its driver runs, until it is registered, until it commits.

One of them applies at a time, by what the attempt has reached. All are counted from times in the
attempt's status, so that they outlive an operator, and compared with the earlier one of its clock
and the API server's. If the operator's clock is behind, status also has the time of the other clock
to count from (``countedFrom``). So a clock that steps forward stops nobody (F547, F593). After half
of the time the writer's condition ``Late`` says what is awaited; after all of it the attempt is
stopped like a suspended writer, and the class of its end is that of the deadline.

Time in which an attempt waits for others does not count (:mod:`held_up`), nor does time in which
etcd cannot be read, and nobody is stopped meanwhile. Status says since when it waits; when that is
over, the beginning of the deadline is moved by as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hudi_contract import naming
from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_contract.keys import attempt_report
from hudi_contract.records import read
from hudi_contract.reports import AttemptReport
from hudi_contract.words import Stage
from hudi_operator.api.spec import WriterSpec
from hudi_operator.model import classify, conditions, containers
from hudi_operator.model.conditions import Condition
from hudi_operator.model.facts import Observed
from hudi_operator.model.status import AttemptEntry, attempt_entries
from hudi_operator.plan.core.actions import UpdateStatus
from hudi_operator.plan.core.view import Attempt, View, WriterView
from hudi_operator.plan.gate.gate import timeline_report
from hudi_operator.plan.writers import ending_for_change, held_up
from hudi_operator.plan.writers.held_up import Wait

JsonDict = dict[str, Any]

CONDITION = "Late"


@dataclass(frozen=True)
class Deadline:
    """The deadline that applies to an attempt now.

    ``class_``: of the attempt that exceeds it; ``awaited``: what it waits for, in words.
    """

    class_: str
    seconds: int
    since_ms: int
    """Time from which it is counted; past waits are left out."""
    awaited: str
    wait: Wait | None = None
    """The wait of the attempt for something other than its own work; None: it does not wait."""
    waits_since_ms: int | None = None
    """Time from which the clock is stopped; None: it runs."""

    def _spent_ms(self, now_ms: int) -> int:
        return (now_ms if self.waits_since_ms is None else self.waits_since_ms) - self.since_ms

    def over(self, now_ms: int) -> bool:
        """True when the attempt must be stopped."""
        return self.wait is None and self._spent_ms(now_ms) > 1000 * self.seconds

    def late(self, now_ms: int) -> bool:
        """True when more than half of the time is over."""
        return self._spent_ms(now_ms) > 500 * self.seconds

    def next_ms(self, now_ms: int) -> float:
        """Milliseconds until the attempt is late, or must be stopped, or its wait is noted."""
        if self.wait is not None:
            told = self.wait.told and self.waits_since_ms is not None
            return 1000 * (LONGEST_PAUSE_SECONDS if told else held_up.NOTED_SECONDS)
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


def is_pending(observed: Observed, obj: JsonDict, writer: WriterSpec) -> bool:
    """True when the deadline of an attempt that is registered, or runs, expires without any event.

    ``obj``: the HudiWriter. It has none while it waits for input, and when it has no deadline now.
    """
    last = max(attempt_entries(obj.get("status") or {}), key=lambda entry: entry.number, default=None)
    if last is None or last.class_:
        return False
    if not last.ready_time:
        return writer.ready_deadline_seconds is not None
    if writer.commit_deadline_seconds is None:
        return False
    reports = observed.etcd.reports if observed.etcd is not None else {}
    report = read(reports.get(attempt_report(naming.attempt_id(writer.ref.namespace, last.pod))), AttemptReport)
    return not (last.waiting_since and report.stage == Stage.WAITING)


def current(view: View, writer: WriterSpec, attempt: Attempt, entry: AttemptEntry) -> Deadline | None:
    """The deadline of an attempt that has not ended; None: it has none now.

    ``entry``: its status as of this look.
    """
    if all(each is None for each in _seconds(writer)):
        return None
    wait = held_up.what(view, attempt)
    if attempt.incs or entry.incarnation:
        return _commit(view, writer, attempt, entry, wait)
    jvm = containers.host(attempt.pod) if attempt.pod is not None else None
    if jvm is not None and jvm.started:
        return _ready(writer, entry, wait)
    return _start(view, writer, attempt, entry, wait)


def _seconds(writer: WriterSpec) -> tuple[int | None, ...]:
    return writer.start_deadline_seconds, writer.ready_deadline_seconds, writer.commit_deadline_seconds


def _start(view: View, writer: WriterSpec, attempt: Attempt, entry: AttemptEntry, wait: Wait | None) -> Deadline | None:
    """Until its driver runs.

    The time that its pod spent behind a scheduling gate, in a queue of the cluster, does not count
    as its own.
    """
    if writer.start_deadline_seconds is None or (attempt.pod is not None and attempt.pod.gates):
        return None
    pod, refused = attempt.pod, view.observed.refusals.get(attempt.id)
    why = f"{refused.reason}: {refused.message}" if refused is not None else ""
    if pod is not None:
        why = why or pod.waiting or pod.unschedulable or f"its pod is {pod.phase}"
    return _of(
        entry,
        wait,
        classify.START_DEADLINE_EXCEEDED,
        writer.start_deadline_seconds,
        entry.ungated_time if entry.gated else entry.start_time,
        f"no driver ran within {writer.start_deadline_seconds} s: {why or 'it has no pod'}",
    )


def _ready(writer: WriterSpec, entry: AttemptEntry, wait: Wait | None) -> Deadline | None:
    return _of(
        entry,
        wait,
        classify.READY_DEADLINE_EXCEEDED,
        writer.ready_deadline_seconds,
        entry.running_time,
        f"its driver was not registered within {writer.ready_deadline_seconds} s after it ran: see its log",
    )


def _commit(
    view: View, writer: WriterSpec, attempt: Attempt, entry: AttemptEntry, wait: Wait | None
) -> Deadline | None:
    """None for an incarnation that is fenced, or has written all: its end is awaited already.

    A stream that finds new input after a pause has the whole time for it. No program has this
    deadline: it reports its commits at its end only (F546).
    """
    if not any(not i.fenced and i.record is None for i in attempt.incs):
        return None
    report = read(view.etcd.reports.get(attempt_report(attempt.id)), AttemptReport)
    if report.stage == Stage.FINISHED:
        return None
    # A report may be lost, and the agent lists only some commits: both only delay the deadline.
    listed = (c.completion_time for c in timeline_report(view).commits if c.attempt == attempt.id)
    last = max(map(conditions.hudi_time, (report.last_completion_time, *listed)))
    resumed = conditions.rfc3339(min(report.resumed_ms, view.earliest_ms)) if report.resumed_ms else ""
    began = max((entry.ready_time, "it was ready"), (last, "the last one"), (resumed, "there was new input"))
    return _of(
        entry,
        wait,
        classify.COMMIT_DEADLINE_EXCEEDED,
        writer.commit_deadline_seconds,
        began[0],
        f"no commit within {writer.commit_deadline_seconds} s since {began[1]}: "
        f"{f'its stage is {report.stage}' if report.stage else 'it has reported no stage'}",
    )


def _of(
    entry: AttemptEntry, wait: Wait | None, class_: str, seconds: int | None, since: str, awaited: str
) -> Deadline | None:
    began = conditions.from_rfc3339(since)
    if seconds is None or began is None:
        return None
    began = max(began, conditions.from_rfc3339(entry.counted_from) or 0)
    noted = conditions.from_rfc3339(entry.waiting_since)
    return Deadline(class_, seconds, began, awaited, wait, None if noted is None else max(noted, began))


def counted(view: View, writer: WriterSpec, attempt: Attempt, entry: AttemptEntry) -> AttemptEntry:
    """The entry of an attempt that has not ended, with the time that it has waited until this look.

    Measured by the clock that also gives status the times from which deadlines count.
    """
    due, now = current(view, writer, attempt, entry), view.latest_ms
    if due is None:
        return entry.but(waiting_since="") if entry.waiting_since else entry
    if due.wait is None or due.wait.counts:
        if due.waits_since_ms is None:
            return entry
        moved = due.since_ms + max(0, now - due.waits_since_ms)
        return entry.but(waiting_since="", counted_from=conditions.rfc3339(moved))
    if due.waits_since_ms is None and due.wait.is_noted(now):
        return entry.but(waiting_since=conditions.rfc3339(max(due.wait.began_ms(now), due.since_ms)))
    return entry


def stopped(view: View, writer: WriterSpec, attempt: Attempt, entry: AttemptEntry) -> AttemptEntry:
    """The entry of an attempt that runs, with the deadline for which it must be stopped, if any.

    An attempt that is asked to end for another reason gets none: status has that reason.
    """
    due = current(view, writer, attempt, entry)
    if entry.stopped_for or due is None or not due.over(view.earliest_ms) or _ends_anyway(view, attempt, writer):
        return entry
    return entry.but(stopped_for=due.class_, message=due.message)


def _ends_anyway(view: View, attempt: Attempt, writer: WriterSpec) -> bool:
    asked = view.stopping or writer.suspend or writer.ref.deleting or ending_for_change.asks(view, attempt)
    return asked or (attempt.pod is not None and attempt.pod.deleting)


def late(view: View, writer: WriterView, entry: AttemptEntry | None) -> Condition:
    """``Late`` as the facts have it now. ``entry``: the status of the last attempt."""
    class_, message = _late(view, writer, entry)
    if not class_ and message:
        return conditions.condition(CONDITION, False, "Waiting", message)
    if class_ == classify.START_DEADLINE_EXCEEDED:
        return conditions.condition(CONDITION, True, "NotStarted", message)
    if class_ == classify.READY_DEADLINE_EXCEEDED:
        return conditions.condition(CONDITION, True, "NotReady", message)
    if class_ == classify.COMMIT_DEADLINE_EXCEEDED:
        return conditions.condition(CONDITION, True, "NoCommit", message)
    return conditions.condition(CONDITION, False, "InTime")


def _late(view: View, writer: WriterView, entry: AttemptEntry | None) -> tuple[str, str]:
    """Class of the deadline and what is awaited; no class: nothing is late."""
    active = writer.active
    if entry is None or active is None or entry.class_ or entry.number != active.number:
        return "", ""
    if entry.stopped_for:
        return entry.stopped_for, f"it is being stopped: {entry.message}"
    due = current(view, active.writer, active, entry)
    if due is None or _ends_anyway(view, active, active.writer):
        return "", ""
    waits = ""
    if due.wait is not None and due.waits_since_ms is not None:
        waits = f"it waits for {due.wait.what}; that time does not count"
    if not due.late(view.earliest_ms):
        return "", waits
    return due.class_, f"more than half of the time is over: {due.message}" + (f". Now {waits}" if waits else "")


def without_etcd(observed: Observed, reason: str) -> tuple[UpdateStatus, ...]:
    """Attempts wait, too, while etcd cannot be read, for the ``reason`` that the table's Ready has.

    Noted when two looks in a row have found it so.
    """
    ready = conditions.find((observed.table or {}).get("status") or {}, "Ready")
    if ready.get("status") != "False" or ready.get("reason") != reason:
        return ()
    noted = (_waits_from_now(each.obj, each.spec, observed.latest_ms) for each in observed.objects.writer_specs)
    return tuple(update for update in noted if update is not None)


def _waits_from_now(obj: JsonDict, writer: WriterSpec | None, now_ms: int) -> UpdateStatus | None:
    status = obj.get("status") or {}
    last = max(attempt_entries(status), key=lambda entry: entry.number, default=None)
    if last is None or last.class_ or last.waiting_since or writer is None or not any(_seconds(writer)):
        return None
    noted = last.but(waiting_since=conditions.rfc3339(now_ms))
    entries = [(noted if each == last else each).to_json() for each in attempt_entries(status)]
    return UpdateStatus.of(naming.WRITER_KIND, obj, {**status, "attempts": entries})
