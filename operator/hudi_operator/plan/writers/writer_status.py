"""Status of a HudiWriter: why it runs, waits or has ended, in one place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hudi_contract import keys, naming
from hudi_contract.records import read
from hudi_contract.reports import AttemptReport, ConflictReport, TerminationMessage
from hudi_contract.words import WriterState
from hudi_operator.model import classify, conditions
from hudi_operator.model.conditions import Condition, condition
from hudi_operator.model.facts import Refusal
from hudi_operator.model.status import AttemptEntry, ConflictEntry, Counts
from hudi_operator.model.status_bounds import count32, count64
from hudi_operator.plan.core import launch
from hudi_operator.plan.core.actions import EVENT_LIMIT, EmitEvent, UpdateStatus
from hudi_operator.plan.core.view import Attempt, View, WriterView
from hudi_operator.plan.gate.gate import timeline_report
from hudi_operator.plan.writers import (
    admission,
    attempts,
    committed_condition,
    deadlines,
    ending_for_change,
    executors_missing,
    next_step,
    schedules,
    source_tables,
)
from hudi_operator.plan.writers.admission import Decision, Kind
from hudi_operator.plan.writers.attempts import KEPT_ATTEMPTS
from hudi_operator.plan.writers.runs import Progress, run_of
from hudi_operator.plan.writers.starting_status import only_starts

JsonDict = dict[str, Any]

KEPT_CONFLICTS = 10
AS_ASKED = frozenset({WriterState.RUNNING, WriterState.SCHEDULED, WriterState.SUCCEEDED, WriterState.SUSPENDED})
"""States in which a writer matches its spec: it is Ready, and current for `kubectl wait` and GitOps
tools (kstatus).
"""

_OF_THE_SPEC = ("executedNonce", "mode", "schedule", "lastScheduleTime")
"""Kept as they are while the spec cannot be read."""
_OF_THE_SCHEDULE = ("schedule", "lastScheduleTime")
"""Kept as they are while the schedule cannot be read."""


_STARTS_NOTHING = frozenset({Kind.STALLED, Kind.WAIT, Kind.SUSPENDED})
"""A run that is over stays so until an attempt of the next one starts."""


def writer_status(view: View, writer: WriterView, progress: Progress, decision: Decision) -> JsonDict:
    """The status to store. Equal facts give an equal status; absent fields are omitted."""
    spec, old = writer.spec, writer.status
    generation = int(writer.obj["metadata"].get("generation") or 0)
    entries = list(progress.entries)
    status: JsonDict = {"observedGeneration": generation}
    if spec is not None:
        # The nonce at the first look is the baseline and is not executed.
        status["executedNonce"] = old.get("executedNonce", spec.restart_nonce)
        if decision.kind is Kind.START:
            run = run_of(entries[-1]) if entries else 0
            run += decision.new_run
            entries.append(attempts.new_entry(view, spec, decision.number, run=run, entries=entries))
            status["executedNonce"] = spec.restart_nonce
        status["mode"] = spec.mode
        status.update(schedules.status_of(spec, old, started_ms=decision.tick_ms, now_ms=view.now_ms))
    kept_fields = _OF_THE_SPEC if spec is None else _OF_THE_SCHEDULE if schedules.problem(spec) else ()
    status.update({name: old[name] for name in kept_fields if name in old})
    status["attempt"] = max([int(old.get("attempt") or 0), *(e.number for e in entries)])
    entries = [_counted(view, writer, e) for e in entries]
    # Every attempt that may count towards retryPolicy.limit.
    kept = max(KEPT_ATTEMPTS, len(entries) if spec is None else spec.retry.most_attempts + 1)
    status["attempts"] = [entry.to_json() for entry in entries[-kept:]]
    if spec is None and not entries and old.get("attempts"):
        status["attempts"] = old["attempts"]
    earlier = _summed(Counts.known(old.get("earlierAttempts")), entries[:-kept])
    if earlier.records or earlier.conflicts:
        status["earlierAttempts"] = earlier.to_json()
    status.update(_results(view, writer, old))
    # Known values never shrink.
    total = _summed(earlier, entries[-kept:])
    status["records"] = max(int(old.get("records") or 0), total.records)
    status["conflicts"] = max(int(old.get("conflicts") or 0), total.conflicts)
    if bad := max(int(old.get("badRecords") or 0), _bad_records(view, writer)):
        status["badRecords"] = bad
    if decision.retry_ms:
        status["nextRetryTime"] = conditions.rfc3339(decision.retry_ms)
    if decision.position:
        since = (old.get("queue") or {}).get("since") or conditions.rfc3339(view.now_ms)
        status["queue"] = {
            "position": decision.position,
            "since": since,
            **({"blockedBy": decision.blocked_by[:512]} if decision.blocked_by else {}),
        }
    status["plan"] = next_step.of(view, writer, progress, decision).to_json()
    state = _state(view, writer, progress, decision)
    status["state"] = state.value
    wanted = _conditions(view, writer, progress, decision, state)
    if decision.kind in _STARTS_NOTHING:
        wanted = _with_the_end_of_the_run(wanted, old)
    wanted.append(
        committed_condition.committed(
            writer.last, next(reversed(entries), None), _report_of(view, writer, entries), old
        )
    )
    status["conditions"] = conditions.merge(
        old.get("conditions") or [], wanted, generation=generation, now_ms=view.now_ms
    )
    return status


def undecided(view: View, writer: WriterView, message: str) -> JsonDict:
    """The status of a writer for which nothing can be planned: the known facts, and the reason."""
    old, generation = writer.status, int(writer.obj["metadata"].get("generation") or 0)
    state = WriterState(old["state"]) if writer.active is not None and "state" in old else WriterState.STALLED
    wanted = [
        condition("Ready", False, state, message),
        condition("Reconciling", False, "Current", ""),
        condition("Stalled", True, admission.PLANNING_FAILED, message),
    ]
    known = old.get("conditions") or []
    told = conditions.merge(known, wanted, generation=generation, now_ms=view.now_ms)
    kept = [c for c in known if c.get("type") not in {each.type for each in wanted}]
    plan = next_step.undecided(message).to_json()
    return {**old, "observedGeneration": generation, "plan": plan, "state": state.value, "conditions": [*kept, *told]}


def _with_the_end_of_the_run(wanted: list[Condition], old: JsonDict) -> list[Condition]:
    """The conditions of a writer that starts nothing now, which say whether its run is over.

    As they were: a finished run stays so. It does not go on by itself when a spec is repaired, and
    is not gone on with by a restart that has to wait.
    """
    ended = conditions.is_true(old, "Finished")
    kept = {c["type"]: c for c in old.get("conditions") or [] if ended and c.get("type") in ("Finished", "Succeeded")}
    return [
        Condition(c.type, *(str(kept[c.type].get(name) or "") for name in ("status", "reason", "message")))
        if c.type in kept
        else c
        for c in wanted
    ]


def _report_of(view: View, writer: WriterView, entries: list[AttemptEntry]) -> AttemptReport:
    """The newest attempt's report; empty for an attempt that is about to start."""
    mine = writer.last is not None and entries and writer.last.number == entries[-1].number
    return _last_report(view, writer.last).report if writer.last is not None and mine else AttemptReport()


def next_tick_ms(status: JsonDict) -> int:
    """Start of the next run by the schedule, Unix milliseconds; 0: never."""
    return conditions.from_rfc3339(str(status.get("nextScheduleTime") or "")) or 0


def _counted(view: View, writer: WriterView, entry: AttemptEntry) -> AttemptEntry:
    """The entry of an attempt with its own counts.

    They stay when its pod and its report are gone.
    """
    said = next((_last_report(view, a) for a in writer.attempts if a.number == entry.number), _Said())
    return entry.but(
        records=count64(max(said.report.records, entry.records)),
        conflicts=count32(max(said.conflicts, entry.conflicts)),
    )


def _summed(counts: Counts, entries: list[AttemptEntry]) -> Counts:
    """The counts, with those of these attempts added."""
    return Counts(
        records=count64(counts.records + sum(entry.records for entry in entries)),
        conflicts=count32(counts.conflicts + sum(entry.conflicts for entry in entries)),
    )


def _results(view: View, writer: WriterView, old: JsonDict) -> JsonDict:
    """lastCommit and the last conflicts, from the newest attempt's report."""
    result: JsonDict = {k: old[k] for k in ("lastCommit", "recentConflicts") if k in old}
    report = _last_report(view, writer.last).report if writer.last is not None else AttemptReport()
    if report.last_instant:
        completion = report.last_completion_time
        result["lastCommit"] = {
            "instant": report.last_instant,
            **({"completionTime": completion} if completion else {}),
        }
        at = conditions.hudi_time(completion or report.last_instant)
        if at:
            result["lastCommit"]["time"] = at
    if report.conflicts:
        result["recentConflicts"] = [_conflict(c).to_json() for c in report.conflicts[-KEPT_CONFLICTS:]]
    return result


def _bad_records(view: View, writer: WriterView) -> int:
    """How many records the writer's commits have left out, as its attempts know."""
    return count64(max((_last_report(view, attempt).report.bad_records for attempt in writer.attempts), default=0))


def _conflict(told: ConflictReport) -> ConflictEntry:
    return ConflictEntry(
        instant=told.instant,
        retried_as=told.retried_as,
        with_=told.with_[:317],
        yielded=told.yielded,
        file_groups=tuple(group[:512] for group in told.file_groups[:5]),
        time=conditions.rfc3339(told.at_ms) if told.at_ms is not None else "",
    )


@dataclass(frozen=True)
class _Said:
    """An attempt's own report.

    ``conflicts``: their number; report and termination message count them.
    """

    report: AttemptReport = field(default_factory=AttemptReport)
    conflicts: int = 0


def _last_report(view: View, attempt: Attempt) -> _Said:
    """The runtime's report in etcd, overlaid by its termination message."""
    stored = view.etcd.reports.get(keys.attempt_report(attempt.id))
    told = read(stored, AttemptReport)
    main = classify.main_container(attempt.pod) if attempt.pod is not None else None
    final = (
        classify.termination_report(main.message) if main is not None and main.terminated else None
    ) or TerminationMessage()
    told = told.but(
        records=final.records or told.records,
        commits=final.commits or told.commits,
        last_instant=final.last_instant or told.last_instant,
        last_completion_time=final.last_completion_time or told.last_completion_time,
        bad_records=max(final.bad_records, told.bad_records),
    )
    # A report lists the last ten (F647).
    conflicts = max(len(told.conflicts), told.conflict_count, final.conflicts)
    return _Said(_with_untold(view, attempt, told), conflicts)


def _with_untold(view: View, attempt: Attempt, report: AttemptReport) -> AttemptReport:
    """The report with commits that the agent saw on the timeline and the attempt could not report.

    It was killed after its completed file.
    """
    commits = [
        c
        for c in timeline_report(view).commits
        if c.attempt == attempt.id and c.completion_time > report.last_completion_time
    ]
    if not commits:
        return report
    newest = max(commits, key=lambda c: c.completion_time)
    records = report.records + sum(c.records for c in commits)
    return report.but(records=records, last_instant=newest.instant, last_completion_time=newest.completion_time)


def _state(view: View, writer: WriterView, progress: Progress, decision: Decision) -> WriterState:
    """The state for display."""
    if decision.kind is Kind.FINISHED:
        return WriterState.SUCCEEDED if decision.reason == WriterState.SUCCEEDED else WriterState.FAILED
    if decision.kind is Kind.START:
        return WriterState.STARTING
    if decision.kind in (Kind.SCHEDULED, Kind.SUSPENDED, Kind.STALLED, Kind.DELETING):
        return WriterState(decision.kind.value)
    if decision.kind is Kind.WAIT:
        return WriterState.RETRYING if decision.reason == "BackOff" else WriterState.WAITING
    if progress.ended is not None:
        return WriterState.RETRYING
    if writer.spec is not None and attempts.stopping(view, writer.spec):
        return WriterState.STOPPING
    if writer.active is not None and ending_for_change.asks(view, writer.active):
        return WriterState.STOPPING
    if progress.entries and progress.entries[-1].stopped_for:
        return WriterState.STOPPING
    return WriterState.RUNNING if _running(writer) else WriterState.STARTING


def _running(writer: WriterView) -> bool:
    active = writer.active
    return active is not None and any(i.registration is not None and i.record is None for i in active.incs)


def _conditions(
    view: View, writer: WriterView, progress: Progress, decision: Decision, state: WriterState
) -> list[Condition]:
    over = decision.reason if decision.kind is Kind.FINISHED else ""
    admitted = decision.kind in (Kind.ACTIVE, Kind.START)
    last = progress.entries[-1] if progress.entries else None
    failure = (
        f"attempt {last.number}: {last.class_}: {last.message}"
        if over == WriterState.FAILED and last is not None
        else ""
    )
    active = admitted or state is WriterState.STOPPING
    stalled = decision.kind is Kind.STALLED or over == WriterState.FAILED
    reason = decision.reason or "Unknown"
    busy = not over and decision.kind in (Kind.WAIT, Kind.DELETING) and not stalled
    refused = _refusal(view, writer)
    waiting = no_start = f"{refused.reason}: {refused.message}" if refused is not None else _not_started(view, writer)
    if writer.active is not None and writer.active.pod is not None:
        waiting = waiting or writer.active.pod.waiting or writer.active.pod.unschedulable
    ready, running = state in AS_ASKED, state is WriterState.RUNNING
    return [
        condition("Ready", ready, state, "" if ready else failure or no_start or decision.message or waiting),
        condition("Admitted", admitted, reason if not over else "Finished", decision.message or over),
        condition("Running", running, state, "" if running else waiting),
        condition(
            "StartRefused",
            refused is not None,
            refused.reason if refused is not None else "NotRefused",
            refused.message if refused is not None else "",
        ),
        executors_missing.condition(view, writer),
        deadlines.late(view, writer, last),
        condition("Finished", bool(over), over or "NotFinished", failure),
        condition("Succeeded", over == WriterState.SUCCEEDED, over or "NotFinished", failure),
        condition(
            "Suspended",
            decision.kind is Kind.SUSPENDED,
            "Suspended" if decision.kind is Kind.SUSPENDED else "NotSuspended",
            "",
        ),
        # kstatus: while an attempt runs the object is current, not in progress.
        condition(
            "Reconciling",
            busy,
            reason if busy else ("Running" if active else "Current"),
            decision.message if busy else "",
        ),
        condition(
            "Stalled",
            stalled,
            (reason if decision.kind is Kind.STALLED else WriterState.FAILED) if stalled else "NotStalled",
            (failure or decision.message) if stalled else "",
        ),
    ]


def _refusal(view: View, writer: WriterView) -> Refusal | None:
    """Refusal of the API server to make an object for the active attempt; None: none."""
    return view.observed.refusals.get(writer.active.id) if writer.active is not None else None


def _not_started(view: View, writer: WriterView) -> str:
    """Why the operator makes no pod for the active attempt; empty: it does, or there is one.

    A rule or a spec may have changed since the attempt was admitted (F292).
    """
    active = writer.active
    if active is None or writer.spec is None or active.pod is not None or active.pod_uid or active.incs:
        return ""
    if attempts.stopping(view, writer.spec):
        return ""
    return view.unreadable or launch.may_not_start(view, writer.spec) or source_tables.problem(view, writer.spec)


def update(writer: WriterView, status: JsonDict) -> UpdateStatus | None:
    """The write of a status; None when nothing has changed."""
    found = UpdateStatus.of(naming.WRITER_KIND, writer.obj, status)
    if found is None or writer.spec is None:
        return found
    ready_deadline = writer.spec.ready_deadline_seconds is not None
    return replace(found, waits=only_starts(writer.status, found.status, ready_deadline=ready_deadline))


def events(
    view: View, writer: WriterView, progress: Progress, decision: Decision, status: JsonDict
) -> tuple[EmitEvent, ...]:
    """Events of this look: ended attempts, and why a writer is stuck. Status says what starts."""
    meta = writer.obj["metadata"]

    def event(kind: str, reason: str, message: str, attempt: int = 0) -> EmitEvent:
        return EmitEvent(
            naming.WRITER_KIND,
            meta.get("namespace", ""),
            meta["name"],
            meta.get("uid", ""),
            kind,
            reason,
            message[:EVENT_LIMIT],
            attempt,
        )

    found: list[EmitEvent] = []
    if progress.ended is not None:
        kind = progress.ended.class_
        good = kind in (classify.SUCCEEDED, *classify.STOPPED)
        text = f"attempt {progress.ended.number} ended: {kind}: {progress.ended.message}".strip(": ")
        found.append(event("Normal" if good else "Warning", f"Attempt{kind}", text, progress.ended.number))
    refused = _refusal(view, writer)
    if refused is not None and not conditions.is_true(writer.status, "StartRefused") and writer.active is not None:
        found.append(event("Warning", "StartRefused", f"{refused.reason}: {refused.message}", writer.active.number))
    missing = executors_missing.newly_refused(writer.status, status)
    if missing and writer.active is not None:
        found.append(event("Warning", executors_missing.CONDITION, missing, writer.active.number))
    if decision.kind is Kind.STALLED and not conditions.is_true(writer.status, "Stalled"):
        found.append(event("Warning", decision.reason, decision.message))
    if decision.kind is Kind.FINISHED and not conditions.is_true(writer.status, "Finished"):
        attempts = "1 attempt" if status["attempt"] == 1 else f"{status['attempt']} attempts"
        found.append(
            event(
                "Normal" if decision.reason == WriterState.SUCCEEDED else "Warning",
                decision.reason,
                f"finished after {attempts}",
            )
        )
    return tuple(found)
