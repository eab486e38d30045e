"""Who may start an attempt now, and what everybody else waits for.

Order: who was overtaken too often, then priority, then who has waited longer, then age and name. A writer's next attempt starts only when none
of the older ones can hold or get the lock (F5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hudi_contract.words import Concurrency
from hudi_operator.api import kafka, options
from hudi_operator.model import conditions
from hudi_operator.plan.core.view import View, WriterView
from hudi_operator.plan.fencing.settling import awaiting_proof
from hudi_operator.plan.gate import gate
from hudi_operator.plan.gate.stalled import Stall, table_stall
from hudi_operator.plan.requests import restores
from hudi_operator.plan.writers import attempts, overlaps, schedules, source_tables
from hudi_operator.plan.writers.attempts import Progress
from hudi_operator.plan.writers.overlaps import Block


class Kind(StrEnum):
    """What happens with a writer; the words are those of its status."""

    ACTIVE = "Active"
    """An attempt is admitted."""
    START = "Start"
    """An attempt starts now."""
    WAIT = "Wait"
    """It queues, or backs off."""
    FINISHED = "Finished"
    SCHEDULED = "Scheduled"
    """It waits for the first tick of its schedule."""
    SUSPENDED = "Suspended"
    DELETING = "Deleting"
    STALLED = "Stalled"


@dataclass(frozen=True)
class Decision:
    """What happens with one writer. ``number`` is the attempt to start now; 0: none.

    ``position`` and ``blocked_by`` are set while it queues.
    ``tick_ms`` is the tick of its schedule that the attempt to start is for; 0: none.
    """

    kind: Kind
    reason: str
    message: str = ""
    number: int = 0
    position: int = 0
    blocked_by: str = ""
    retry_ms: int = 0
    tick_ms: int = 0
    new_run: bool = False
    """Start: whether the attempt begins a run, or goes on with the one whose last attempt failed or was stopped."""


@dataclass(frozen=True)
class _Queued:
    """A writer that wants to start. ``resting`` is how its last run ended while the next one is due by the clock only; else empty."""

    writer: WriterView
    new_run: bool
    tick_ms: int = 0
    resting: str = ""


def decide(view: View, progress: Mapping[str, Progress]) -> dict[str, Decision]:
    """One decision per writer, by name. At most one attempt per writer and ``maxWriters`` in all are active (I9 within SingleWriter)."""
    stall = table_stall(view)
    decisions: dict[str, Decision] = {}
    running = [w.name for w in view.writers if w.active is not None]
    queue: list[_Queued] = []
    for writer in view.writers:
        found = _alone(view, writer, progress[writer.name])
        if isinstance(found, _Queued):
            queue.append(found)
        else:
            decisions[writer.name] = found
    position = 0
    ahead: list[WriterView] = []
    for queued in sorted(queue, key=lambda q: _order(view, q.writer)):
        writer = queued.writer
        blocked = _table_blocks(view, stall) or _own_past(view, writer) or _source_blocks(view, writer) or _capacity(view, running)
        if blocked is None:
            blocked = overlaps.block(view, writer, running=running, ahead=ahead)
            if blocked is not None:
                ahead.append(writer)
        if blocked is None:
            number = _next_number(writer)
            decisions[writer.name] = Decision(Kind.START, "Admitted", f"attempt {number} starts", number=number, tick_ms=queued.tick_ms, new_run=queued.new_run)
            running.append(writer.name)
            continue
        position += 1
        kind, reason, message = Kind.WAIT, blocked[0], blocked[1]
        if queued.resting:
            # The last run stays finished until the next one really starts: its tick may yet become too old.
            kind, reason, message = Kind.FINISHED, queued.resting, f"the run of {conditions.rfc3339(queued.tick_ms)} waits: {blocked[1]}"
        decisions[writer.name] = Decision(kind, reason, message, position=position, blocked_by=blocked[2])
    return decisions


def _order(view: View, writer: WriterView) -> tuple[bool, int, int, str, str]:
    """As in the queue for the lock (F24): who was overtaken too often comes before all others, the longest waiting of them first."""
    spec, since = writer.spec, overlaps.waiting_since_ms(view, writer)
    last = overlaps.overtaken(view, writer, since_ms=since) < overlaps.MAX_OVERTAKES
    return (last, -(spec.priority if spec is not None and last else 0), since, spec.ref.created_at if spec is not None else "", writer.name)


def _next_number(writer: WriterView) -> int:
    return max(int(writer.status.get("attempt") or 0), writer.last.number if writer.last is not None else 0) + 1


def _alone(view: View, writer: WriterView, progress: Progress) -> Decision | _Queued:
    """What the writer's own state decides, or that it queues for a place."""
    spec = writer.spec
    if spec is None:
        return Decision(Kind.STALLED, "InvalidSpec", writer.error)
    if spec.ref.deleting:
        return Decision(Kind.DELETING, "Deleted", "stopping and settling before the object goes")
    if writer.active is not None:
        return Decision(Kind.ACTIVE, "Admitted", f"attempt {writer.active.number} is admitted")
    over = attempts.verdict(spec, writer.status, progress.entries)
    restart = attempts.restart_wanted(spec, writer.status)
    problem = schedules.problem(spec) or kafka.problem(spec.kafka)
    if problem:
        return Decision(Kind.STALLED, "InvalidSpec", problem)
    going_on = not over and bool(progress.entries)
    tick = 0 if going_on else schedules.due_ms(spec, writer.status, view.now_ms)
    suspended = spec.suspend or view.table.suspend
    if over and not restart and (suspended or not tick):
        return Decision(Kind.FINISHED, over)
    if suspended:
        which = "spec.suspend is set" if spec.suspend else "the table is suspended"
        return Decision(Kind.SUSPENDED, "Suspended", which)
    if spec.schedule is not None and not (going_on or restart or tick):
        return Decision(Kind.SCHEDULED, "AwaitingSchedule", f"the first run starts at {conditions.rfc3339(schedules.next_ms(spec, view.now_ms))}")
    problem = options.writer_problem(spec, view.config.option_patterns)
    if problem:
        return Decision(Kind.STALLED, "OptionNotAllowed", problem)
    problem = source_tables.problem(view, spec)
    if problem:
        return Decision(Kind.STALLED, "SourceNotAllowed", problem)
    problem = overlaps.problem(view, spec)
    if problem:
        return Decision(Kind.STALLED, "InvalidSpec", problem)
    retry = 0 if restart or tick else attempts.next_retry_ms(spec, writer.status, progress.entries)
    if retry > view.now_ms:
        ended = (progress.entries[-1] if progress.entries else {}).get("class", "")
        return Decision(Kind.WAIT, "BackOff", f"next attempt after {conditions.rfc3339(retry)} ({ended})", retry_ms=retry)
    return _Queued(writer, not going_on, tick, over if tick and not restart else "")


def _table_blocks(view: View, stall: Stall | None) -> Block | None:
    name = view.table.ref.name
    if stall is not None:
        return "TableStalled", f"HudiTable {name} is stalled: {stall.reason}: {stall.message}", f"table {name}"
    if view.table.ref.deleting or view.observed.namespace_terminating:
        return "TableDeleted", f"HudiTable {name} is being deleted", f"table {name}"
    if gate.is_open(view):
        return None
    code, message = gate.report_error(view)
    if code:
        return code, f"HudiTable {name} is not ready: {message or code}", f"table {name}"
    if gate.bootstrapping(view):
        return "TableBootstrap", f"HudiTable {name} is not bootstrapped yet: {gate.bootstrapping(view)}", f"table {name}"
    if gate.closed_for_restore(view):
        return "TableRestore", f"HudiTable {name}: {restores.blocks(view, adopted=gate.adopted(view))}", f"table {name}"
    if gate.closed_for_savepoint(view):
        return "TableSavepoint", f"HudiTable {name} waits for savepoint {gate.closed_for_savepoint(view)}", f"table {name}"
    if gate.closed_for_metadata(view):
        return "TableMetadata", f"HudiTable {name} waits for its metadata table: {gate.closed_for_metadata(view)}", f"table {name}"
    if gate.changing(view):
        return "TableChanging", f"HudiTable {name} changes its mode or durations when running writers have ended", f"table {name}"
    return "TableNotReady", f"HudiTable {name} is not ready yet: its gate is {view.gate.state or 'not made'}", f"table {name}"


def _own_past(view: View, writer: WriterView) -> Block | None:
    """F5: the next attempt starts when the old one is fenced and does not own the lock, else after Unlocked."""
    for attempt in writer.attempts:
        if attempt.admitted:
            return "PreviousAttempt", f"attempt {attempt.number} may still register", attempt.id
        for inc in attempt.incs:
            if not inc.settled and not inc.out_of_the_way:
                proof = awaiting_proof(view, inc)
                phase = inc.phase.name if inc.phase is not None else "not fenced yet"
                return "PreviousAttempt", proof or f"attempt {attempt.number} may still hold the lock ({phase})", attempt.id
    return None


def _source_blocks(view: View, writer: WriterView) -> Block | None:
    return source_tables.waits_for(view, writer.spec) if writer.spec is not None else None


def _capacity(view: View, running: list[str]) -> Block | None:
    if view.table.concurrency_mode == Concurrency.SINGLE_WRITER:
        # Without conflict detection nobody starts beside an incarnation that may still publish (I9).
        others = [i for i in view.incs if not i.is_agent and not i.settled and not i.out_of_the_way]
        if not running and others:
            who = others[0].attempt or others[0].inc
            return "SingleWriter", f"{who} may still write", who
    if len(running) < view.table.max_writers:
        return None
    names = ", ".join(sorted(running)[:5])
    return "MaxWriters", f"{len(running)} of {view.table.max_writers} writers run: {names}", names
