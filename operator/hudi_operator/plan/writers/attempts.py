"""The life of attempts: status first, then ConfigMap, admission, pod.

The pod's own facts determine its end (I6).

An attempt's number is in the writer's status before any of its objects exists, and all its names
follow from the number: a repeated step finds the objects of an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable

from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_contract.keys import attempt_report
from hudi_contract.outcomes import FailureClass
from hudi_contract.records import read
from hudi_contract.reports import AttemptReport, TerminationMessage
from hudi_contract.words import Role
from hudi_operator.api.spec import WriterSpec
from hudi_operator.manifests import configmaps, pods
from hudi_operator.model import classify, conditions, containers
from hudi_operator.model.facts import PodFacts
from hudi_operator.model.status import AttemptEntry
from hudi_operator.plan.agent.agents import ensure_namespace
from hudi_operator.plan.core import launch, spark_keys
from hudi_operator.plan.core.actions import (
    Action,
    Apply,
    CreatePod,
    DeleteAdmit,
    DeletePod,
    PutAdmit,
    StartTimer,
)
from hudi_operator.plan.core.view import Attempt, View, WriterView
from hudi_operator.plan.fencing import revocation
from hudi_operator.plan.writers import deadlines, ending_for_change, held_up, out_of_memory, source_tables
from hudi_operator.plan.writers.runs import Progress, run_of

KEPT_ATTEMPTS = 10
KEPT_INSTANTS = 20


def stopping(view: View, writer: WriterSpec) -> bool:
    """True when a running attempt of this writer must be stopped."""
    return view.stopping or writer.suspend or writer.ref.deleting


def new_entry(
    view: View, writer: WriterSpec, number: int, *, run: int, entries: Iterable[AttemptEntry]
) -> AttemptEntry:
    """Status entry of an attempt that is about to start, for run ``run``, after ``entries``."""
    made = AttemptEntry(
        number=number,
        run=run,
        generation=writer.ref.generation,
        executors=writer.executors.instances,
        pod=writer.driver_pod(number),
        start_time=conditions.rfc3339(view.now_ms),
        counted_from=_counted_from(view),
    )
    of_drivers, of_executors = out_of_memory.before(made, entries)
    return made.but(drivers_lacked=of_drivers, executors_lacked=of_executors)


def start_actions(
    view: View, wanted: WriterSpec, entry: AttemptEntry, entries: Iterable[AttemptEntry]
) -> tuple[Action, ...]:
    """Create the objects of an attempt whose entry is in status, among ``entries``.

    No actions while its source is missing, the table is unreadable, or the specs name something
    that may not be used.
    Admission precedes the pod (F23).
    """
    writer = None if view.unreadable else source_tables.resolved(view, wanted)
    if writer is None or launch.may_not_start(view, writer):
        return ()
    writer = out_of_memory.grown(writer, entry, entries)
    table, number = view.table.as_run_by(writer), entry.number
    return (
        *ensure_namespace(view, table, writer.attempt_id(number)),
        Apply(
            configmaps.attempt_config(table, writer, number, view.config, run=run_of(entry)), writer.attempt_id(number)
        ),
        PutAdmit(table.table_id, writer.attempt_id(number), Role.WRITER),
        CreatePod(pods.driver_pod(table, writer, number, view.config)),
    )


def follow(view: View, writer: WriterView) -> Progress:
    """Follow a writer's attempts, from the current facts."""
    entries = [_refreshed(view, a, writer.spec) for a in writer.attempts]
    active = writer.active
    if active is None:
        late = tuple(DeleteAdmit(view.table.table_id, a.id) for a in writer.attempts if a.admitted)
        return Progress(tuple(entries), before=late)
    spec = active.writer
    entries[-1] = deadlines.counted(view, spec, active, entries[-1])
    if _has_ended(view, active):
        return _end(view, spec, active, entries)
    if active.pod is None:
        return _without_pod(view, spec, active, entries, startable=writer.spec is not None)
    entries[-1] = deadlines.stopped(view, spec, active, entries[-1])
    if active.admitted and not active.incs and _is_lost(view, active.pod):
        # The next look sees whether it has registered before that.
        withdrawn = DeleteAdmit(view.table.table_id, active.id)
        return Progress(tuple(entries), before=(withdrawn,), summary=(f"{writer.name} is lost",), requeue=0.5)
    if stopping(view, spec) or ending_for_change.asks(view, active) or active.entry.stopped_for:
        return _stop(view, spec, active, entries)
    if entries[-1].stopped_for:  # the reason is in status before the pod is deleted for it (F578)
        return Progress(tuple(entries), summary=(f"{writer.name} has exceeded a deadline",), requeue=0.5)
    after = (*spark_keys.create(active.pod), *_credentials(view, active, active.pod))
    again, due = LONGEST_PAUSE_SECONDS, deadlines.current(view, spec, active, entries[-1])
    if due is not None:
        again = min(again, due.next_ms(view.earliest_ms) / 1000 + 1)
    return Progress(tuple(entries), before=ending_for_change.timers(view, active), after=after, requeue=again)


def _credentials(view: View, attempt: Attempt, pod: PodFacts) -> tuple[Action, ...]:
    """The attempt's own storage credentials, while none of its incarnations was fenced."""
    if not attempt.admitted or any(i.fenced or i.record is not None for i in attempt.incs):
        return ()
    return revocation.give(view, attempt.id, pod)


# ---- the status entry of an attempt


def _advanced(report: AttemptReport | TerminationMessage, writer: WriterSpec | None) -> bool:
    """True when a streaming attempt made progress: it committed, or caught up with its source.

    Its failure then counts as the first one.
    """
    return writer is not None and writer.streaming_seconds is not None and bool(report.commits or report.caught_up)


def _refreshed(view: View, attempt: Attempt, writer: WriterSpec | None) -> AttemptEntry:
    """The entry with its pod uid, incarnation and instants as known now.

    A recorded pod uid never changes (F23).
    """
    entry = attempt.entry
    report = read(view.etcd.reports.get(attempt_report(attempt.id)), AttemptReport)
    registered = attempt.incs[-1].inc if attempt.incs else ""
    pod = attempt.pod
    ungated = entry.gated and pod is not None and not pod.gates
    jvm = containers.host(pod) if pod is not None else None
    running, now = jvm is not None and jvm.started, conditions.rfc3339(view.now_ms)
    lacked, since = out_of_memory.noted(view, entry, pod, report)
    told = entry.but(
        pod_uid=entry.pod_uid or (pod.uid if pod is not None else ""),
        gated=entry.gated or (pod is not None and bool(pod.gates)),
        ungated_time=entry.ungated_time or (now if ungated else ""),
        running_time=entry.running_time or (now if running and not entry.class_ else ""),
        ready_time=entry.ready_time or (now if registered and not entry.class_ else ""),
        out_of_memory=lacked,
        out_of_memory_time=since,
        incarnation=registered or entry.incarnation or report.inc,
        advanced=entry.advanced or _advanced(report, writer),
        instants=_instants(*entry.instants, *(t for i in attempt.incs for t in i.instants), report.last_instant),
    )
    got_on = _times(told) != _times(entry)
    return told.but(counted_from=_counted_from(view) or entry.counted_from) if got_on else told


def _times(entry: AttemptEntry) -> tuple[str, ...]:
    """From which its deadlines count."""
    return entry.ungated_time, entry.running_time, entry.ready_time


def _counted_from(view: View) -> str:
    """Start of a deadline that begins now, if the operator's clock is behind."""
    behind = view.latest_ms - view.now_ms > 1000 * held_up.NOTED_SECONDS
    return conditions.rfc3339(view.latest_ms) if behind else ""


def _instants(*instants: str) -> tuple[str, ...]:
    """The last ones of these instants, each once, without texts that are no times of Hudi's."""
    return tuple(sorted(one for one in {*instants} if conditions.is_hudi_time(one))[-KEPT_INSTANTS:])


# ---- the end of an attempt


def _has_ended(view: View, attempt: Attempt) -> bool:
    pod = attempt.pod
    if pod is None:
        # The object is gone: the attempt is over when none of its incarnations can acquire. The
        # process may live on; settling waits for proof.
        return bool(attempt.pod_uid or attempt.incs) and _all_fenced(attempt)
    if containers.ended(pod) or (pod.deleting and not pod.node):
        return True
    if not attempt.incs:
        return not attempt.admitted and _is_lost(view, pod)
    # The outcome is unknown: its node is lost, or its death was proven without one. Fenced is
    # enough for a successor (F5).
    node = view.nodes.get(pod.node)
    untold = node is None or not node.ready or any(pod.uid in i.settling.proven for i in attempt.incs)
    return _all_fenced(attempt) and bool(pod.node) and untold


def _is_lost(view: View, pod: PodFacts) -> bool:
    """True when nobody will tell of its end: its node does not answer, and its time to end is over.

    Nothing is said of its processes. They write nothing to the table where no key names one, and no
    admission lets one register (F613).
    """
    node, over = view.nodes.get(pod.node), conditions.from_rfc3339(pod.deleted_at)
    silent = view.nodes.gone(pod.node) or (node is not None and not node.ready)
    return pod.deleting and silent and over is not None and view.earliest_ms > over


def _all_fenced(attempt: Attempt) -> bool:
    return not attempt.admitted and all(i.fenced or i.record is not None for i in attempt.incs)


def _end(view: View, writer: WriterSpec, attempt: Attempt, entries: list[AttemptEntry]) -> Progress:
    node = view.nodes.get(attempt.pod.node) if attempt.pod is not None else None
    reason = next((i.settling.reason for i in attempt.incs if i.record is not None), "")
    outcome = classify.classify(
        attempt.pod,
        node=node,
        stopping=stopping(view, writer),
        changing=ending_for_change.asked(view, attempt),
        fenced_reason=reason,
        lost=entries[-1].out_of_memory,
    )
    last = entries[-1]
    kind, message = str(outcome.kind), outcome.message or last.message
    due = deadlines.current(view, writer, attempt, last)
    if last.stopped_for and outcome.kind not in (classify.SUCCEEDED, *classify.STOPPED):
        # It was stopped in the middle of its work, whatever its own message says (F550).
        kind, message = last.stopped_for, last.message
    elif (
        outcome.retried and attempt.pod is not None and due is not None and due.never_ran and due.over(view.earliest_ms)
    ):
        kind, message = due.class_, due.message
    entry = last.but(
        class_=kind,
        end_time=conditions.rfc3339(view.now_ms),
        exit_code=outcome.exit_code if outcome.exit_code is not None else last.exit_code,
        message=message,
        out_of_memory=outcome.out_of_memory or last.out_of_memory,
        advanced=last.advanced or _advanced(outcome.report, writer),
        instants=_instants(*last.instants, outcome.report.last_instant),
    )
    # No further incarnation of it may register; from then on its incarnations are final
    # (protocol.md: writer/* is read once more).
    before = (DeleteAdmit(view.table.table_id, attempt.id),) if attempt.admitted else ()
    summary = f"attempt {attempt.number} of {writer.ref.name} ended: {kind}"
    return Progress((*entries[:-1], entry), before=before, ended=entry, summary=(summary,), requeue=0.5)


# ---- an attempt without a pod


def _without_pod(
    view: View, writer: WriterSpec, attempt: Attempt, entries: list[AttemptEntry], *, startable: bool
) -> Progress:
    if attempt.pod_uid or attempt.incs:
        # The pod existed and its object is gone: it is never recreated under this number. No new
        # registration; suspects take over.
        before = (DeleteAdmit(view.table.table_id, attempt.id),) if attempt.admitted else ()
        return Progress(
            tuple(entries),
            before=before,
            summary=(f"the pod of attempt {attempt.number} of {writer.ref.name} is gone",),
            requeue=1,
        )
    due = deadlines.current(view, writer, attempt, entries[-1])
    overdue = due is not None and due.over(view.earliest_ms)
    if not startable or stopping(view, writer) or ending_for_change.asks(view, attempt) or overdue:
        if attempt.admitted:
            return Progress(tuple(entries), before=(DeleteAdmit(view.table.table_id, attempt.id),), requeue=0.5)
        kind, message = str(FailureClass.ENDED_FOR_CHANGE), "stopped before it had a pod"
        if stopping(view, writer):
            kind = classify.CANCELLED
        elif due is not None and overdue:
            kind, message = due.class_, due.message
        elif not startable:
            # It would keep its place until somebody repairs the spec; the next one follows then.
            kind, message = classify.CANCELLED, "the spec cannot be read, and it had no pod"
        entry = entries[-1].but(class_=kind, end_time=conditions.rfc3339(view.now_ms), message=message)
        return Progress((*entries[:-1], entry), ended=entry, requeue=0.5)
    summary = f"starting attempt {attempt.number} of {writer.ref.name}"
    again = launch.next_look(view, attempt.id)
    # Its pod is made as the spec is now.
    entries = [*entries[:-1], entries[-1].but(executors=writer.executors.instances)]
    return Progress(
        tuple(entries), after=start_actions(view, writer, attempt.entry, entries), summary=(summary,), requeue=again
    )


# ---- stopping


def _stop(view: View, writer: WriterSpec, attempt: Attempt, entries: list[AttemptEntry]) -> Progress:
    """Stop it once, with the writer's grace period.

    When that is over, :mod:`suspects` fences an incarnation that is still registered.
    """
    actions: list[Action] = []
    if view.timer(f"stop/{attempt.id}") is None:
        actions.append(StartTimer(f"stop/{attempt.id}"))
    if attempt.admitted and not attempt.incs:
        actions.append(DeleteAdmit(view.table.table_id, attempt.id))
    if attempt.pod is not None and not attempt.pod.deleting:
        actions.append(
            DeletePod(attempt.pod.namespace, attempt.pod.name, attempt.pod.uid, max(1, writer.stop_grace_seconds))
        )
    return Progress(tuple(entries), before=tuple(actions), summary=(f"stopping {writer.ref.name}",), requeue=2)
