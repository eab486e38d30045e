"""Selection of the writers that may start an attempt now, and the reasons why others wait.

Order: writers that were overtaken too often, then priority, then waiting time, then age and name. A
writer's next attempt starts only when none of the older ones can get the lock, and none holds it
longer than a driver needs to start. The driver waits for the rest before it reads its progress
(F5).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from operator import itemgetter
from typing import TypeVar

from hudi_contract.words import Concurrency, WriterState
from hudi_operator.api import options
from hudi_operator.api.spec import WriterSpec
from hudi_operator.model import conditions, doubts
from hudi_operator.model.status import AttemptEntry
from hudi_operator.plan.core import launch
from hudi_operator.plan.core.checks import Chain
from hudi_operator.plan.core.view import Attempt, Incarnation, View, WriterView
from hudi_operator.plan.fencing.settling import awaiting_proof, lock_is_free_within
from hudi_operator.plan.gate import gate
from hudi_operator.plan.gate.stalled import Stall, table_stall
from hudi_operator.plan.requests import restores
from hudi_operator.plan.writers import event_log, overlaps, replacing, runs, schedules, source_tables
from hudi_operator.plan.writers.block import Block
from hudi_operator.plan.writers.runs import Progress

LOG = logging.getLogger(__name__)
PLANNING_FAILED = "PlanningFailed"
T = TypeVar("T")
_Order = tuple[bool, int, int, str, str]
START_SECONDS = 30.0
"""A successor starts this long before the lock of its predecessor is free: its pod, its JVM and its
Spark session come up meanwhile.
"""


class Kind(StrEnum):
    """The kinds of decisions about a writer. Some values are those of its state."""

    ACTIVE = "Active"
    """One of its attempts is admitted."""
    START = "Start"
    """Its next attempt starts now."""
    WAIT = "Wait"
    """It is due to start, and something blocks it."""
    FINISHED = "Finished"
    """Its run is over."""
    SCHEDULED = WriterState.SCHEDULED.value
    """Its schedule starts the first run."""
    SUSPENDED = WriterState.SUSPENDED.value
    DELETING = WriterState.DELETING.value
    STALLED = WriterState.STALLED.value
    """A person must change something."""


@dataclass(frozen=True)
class Decision:
    """The decision about one writer. ``number`` is the attempt to start now; 0: none.

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
    """START: whether the attempt begins a run, or continues the run whose last attempt failed or
    was stopped.
    """


@dataclass(frozen=True)
class _Queued:
    """A writer that is due to start.

    ``resting``: the result of its last run when only the schedule starts the next one; else empty.
    """

    writer: WriterView
    new_run: bool
    tick_ms: int = 0
    resting: str = ""


def decide(
    view: View, progress: Mapping[str, Progress], *, planned: Callable[[WriterView, Decision], str] = lambda *_: ""
) -> dict[str, Decision]:
    """One decision per writer, by name.

    At most one attempt per writer and ``maxWriters`` in all are active (I9 within SingleWriter).
    ``planned`` plans a start, and says why it cannot: that writer takes no place. A defect that
    concerns one writer stops this one alone (F515).
    """
    stall = table_stall(view)
    decisions: dict[str, Decision] = {}
    running = [w.name for w in view.writers if w.active is not None]
    starts, declared = overlaps.Starts(view), overlaps.Declarations(view)
    queue: list[tuple[_Order, _Queued]] = []
    for writer in view.writers:
        found = _contained(writer, partial(_own_state, view, writer, progress[writer.name]))
        if isinstance(found, Decision):
            decisions[writer.name] = found
            continue
        order = _contained(writer, partial(_order, view, writer, starts))
        if isinstance(order, Decision):
            decisions[writer.name] = order
        else:
            queue.append((order, found))
    position = 0
    ahead: list[WriterView] = []
    for _, queued in sorted(queue, key=itemgetter(0)):
        writer = queued.writer
        turn = _Turn(view, stall, writer, running)
        blocked = _contained(writer, partial(_blocked, turn, declared, ahead))
        if isinstance(blocked, Decision):
            decisions[writer.name] = blocked
        elif blocked is not None:
            position += 1
            decisions[writer.name] = _wait(queued, blocked, position)
        elif problem := planned(writer, start := _start(view, queued)):
            decisions[writer.name] = Decision(Kind.STALLED, PLANNING_FAILED, problem)
        else:
            decisions[writer.name] = start
            running.append(writer.name)
    return decisions


def _blocked(turn: _Turn, declared: overlaps.Declarations, ahead: list[WriterView]) -> Block | None:
    """Why a writer does not start now.

    ``ahead``: those that keep others out of their partitions.
    """
    blocked = MAY_START(turn)
    if blocked is None:
        blocked = declared.block(turn.writer, running=turn.running, ahead=ahead)
        if blocked is not None:
            ahead.append(turn.writer)
    return blocked


def _contained(writer: WriterView, ask: Callable[[], T]) -> T | Decision:
    try:
        return ask()
    except Exception as error:
        LOG.exception("whether HudiWriter %s may start cannot be decided", writer.name)
        told = f"whether {writer.name} may start cannot be decided: {type(error).__name__}: {error}"
        return Decision(Kind.STALLED, PLANNING_FAILED, told[:500])


def _start(view: View, queued: _Queued) -> Decision:
    number = _next_number(view, queued.writer)
    return Decision(
        Kind.START,
        "Admitted",
        f"attempt {number} starts",
        number=number,
        tick_ms=queued.tick_ms,
        new_run=queued.new_run,
    )


def _wait(queued: _Queued, blocked: Block, position: int) -> Decision:
    if queued.resting:
        # The last run stays finished until the next one actually starts: the tick may still become
        # too old.
        message = f"the run of {conditions.rfc3339(queued.tick_ms)} waits: {blocked.message}"
        return Decision(Kind.FINISHED, queued.resting, message, position=position, blocked_by=blocked.blocked_by)
    return Decision(Kind.WAIT, blocked.reason, blocked.message, position=position, blocked_by=blocked.blocked_by)


def _order(view: View, writer: WriterView, starts: overlaps.Starts) -> _Order:
    """As in the queue for the lock (F24).

    Writers that were overtaken too often come before all others, the longest waiting first.
    """
    spec, since = writer.spec, overlaps.waiting_since_ms(view, writer)
    last = starts.overtaken(writer, since_ms=since) < overlaps.MAX_OVERTAKES
    return (
        last,
        -(spec.priority if spec is not None and last else 0),
        since,
        spec.ref.created_at if spec is not None else "",
        writer.name,
    )


def _next_number(view: View, writer: WriterView) -> int:
    """Above each number that was ever given: those that status names, and those that etcd names.

    An API server that was set back has forgotten attempts whose processes may live (F612).
    """
    told = max(int(writer.status.get("attempt") or 0), writer.last.number if writer.last is not None else 0)
    return max(told, *(view.numbers_in_etcd(writer.spec) if writer.spec is not None else ()), 0) + 1


# ---- the writer's own state: is it due to start?


@dataclass(frozen=True)
class _Candidate:
    """One writer with a readable spec, before it queues."""

    view: View
    writer: WriterView
    spec: WriterSpec
    entries: tuple[AttemptEntry, ...]

    @cached_property
    def over(self) -> str:
        """The result of its run; empty while the run is in progress, or before the first one."""
        return runs.verdict(self.spec, self.writer.status, self.entries)

    @cached_property
    def restart(self) -> bool:
        """True when a person requests another run."""
        return runs.restart_wanted(self.spec, self.writer.status)

    @cached_property
    def going_on(self) -> bool:
        """True when the next attempt belongs to the run of the last one."""
        return not self.over and bool(self.entries)

    @cached_property
    def tick_ms(self) -> int:
        """The tick of its schedule that is due; 0: none."""
        return 0 if self.going_on else schedules.due_ms(self.spec, self.writer.status, self.view.now_ms)

    @cached_property
    def suspended(self) -> bool:
        """True when the writer or the whole table is suspended."""
        return self.spec.suspend or self.view.table.suspend


def _being_deleted(c: _Candidate) -> Decision | None:
    return (
        Decision(Kind.DELETING, "Deleted", "its attempts are stopped and settled before the HudiWriter is removed")
        if c.spec.ref.deleting
        else None
    )


def _has_an_active_attempt(c: _Candidate) -> Decision | None:
    active = c.writer.active
    if active is None:
        return None
    before = next(((a, i) for a, i in _in_the_way(c.writer) if a.number != active.number), None)
    waits = "" if before is None else f"; it waits for the lock of attempt {before[0].number} ({_phase(before[1])})"
    return Decision(Kind.ACTIVE, "Admitted", f"attempt {active.number} is admitted{waits}")


def _schedule_or_source_is_wrong(c: _Candidate) -> Decision | None:
    return _stalled("InvalidSpec", schedules.problem(c.spec) or launch.source_problem(c.spec))


def _run_is_over(c: _Candidate) -> Decision | None:
    again = c.restart or (c.tick_ms and not c.suspended)
    return Decision(Kind.FINISHED, c.over) if c.over and not again else None


def _is_suspended(c: _Candidate) -> Decision | None:
    which = "spec.suspend is set" if c.spec.suspend else "the table is suspended"
    return Decision(Kind.SUSPENDED, WriterState.SUSPENDED, which) if c.suspended else None


def _first_tick_is_to_come(c: _Candidate) -> Decision | None:
    if c.spec.schedule is None or c.going_on or c.restart or c.tick_ms:
        return None
    return Decision(
        Kind.SCHEDULED,
        "AwaitingSchedule",
        f"the first run starts at {conditions.rfc3339(schedules.next_ms(c.spec, c.view.now_ms))}",
    )


def _defaults_are_wrong(c: _Candidate) -> Decision | None:
    return _stalled(launch.INVALID_DEFAULTS, c.spec.defaults_problem)


def _option_is_not_allowed(c: _Candidate) -> Decision | None:
    return _stalled("OptionNotAllowed", options.writer_problem(c.spec, c.view.config.option_patterns))


def _event_log_is_not_allowed(c: _Candidate) -> Decision | None:
    return _stalled("PathNotAllowed", event_log.problem(c.view, c.spec))


def _source_is_not_allowed(c: _Candidate) -> Decision | None:
    return _stalled("SourceNotAllowed", source_tables.problem(c.view, c.spec))


def _reference_is_not_allowed(c: _Candidate) -> Decision | None:
    return _stalled(launch.REFERENCE_NOT_ALLOWED, launch.writer_problem(c.view, c.spec))


def _image_is_not_allowed(c: _Candidate) -> Decision | None:
    return _stalled(launch.IMAGE_NOT_ALLOWED, launch.writer_image_problem(c.view, c.spec))


def _account_is_not_possible(c: _Candidate) -> Decision | None:
    return _stalled(launch.FENCING_MODE_NOT_POSSIBLE, launch.writer_account_problem(c.view, c.spec))


def _partitions_are_wrong(c: _Candidate) -> Decision | None:
    return _stalled("InvalidSpec", overlaps.problem(c.view, c.spec) or replacing.problem(c.view, c.spec))


def _rights_are_missing(c: _Candidate) -> Decision | None:
    missing = launch.rights_problem(c.view)
    return Decision(Kind.WAIT, "AwaitingRights", missing) if missing else None


def _backs_off(c: _Candidate) -> Decision | None:
    retry = 0 if c.restart or c.tick_ms else runs.next_retry_ms(c.spec, c.writer.status, c.entries)
    if retry <= c.view.now_ms:
        return None
    failed = c.entries[-1].class_ if c.entries else ""
    return Decision(Kind.WAIT, "BackOff", f"next attempt after {conditions.rfc3339(retry)} ({failed})", retry_ms=retry)


def _stalled(reason: str, problem: str) -> Decision | None:
    return Decision(Kind.STALLED, reason, problem) if problem else None


REFUSED: Chain[_Candidate, Decision] = Chain(
    _option_is_not_allowed,
    _event_log_is_not_allowed,
    _source_is_not_allowed,
    _image_is_not_allowed,
    _account_is_not_possible,
    _reference_is_not_allowed,
    _partitions_are_wrong,
)
"""Why no attempt of such a writer may start, until a person changes something."""
NEEDS_A_PERSON: Chain[_Candidate, Decision] = Chain(_schedule_or_source_is_wrong, REFUSED)
"""All checks of `OWN_STATE` that stall a writer for what it asks; the defaults of its namespace are
another object, as its HudiTable is.
"""
OWN_STATE: Chain[_Candidate, Decision] = Chain(
    _being_deleted,
    _has_an_active_attempt,
    _schedule_or_source_is_wrong,
    _run_is_over,
    _is_suspended,
    _first_tick_is_to_come,
    _defaults_are_wrong,
    REFUSED,
    _rights_are_missing,
    _backs_off,
)
"""Checks of the writer's own state. It queues for a place when none of them applies."""


def stalls_next(view: View, writer: WriterView, progress: Progress) -> Decision | None:
    """The decision that will stall the writer when its next attempt is due.

    It is asked for while the writer runs, rests or waits. None: no reason is known now.
    """
    if writer.spec is None:
        return Decision(Kind.STALLED, "InvalidSpec", writer.error)
    return NEEDS_A_PERSON(_Candidate(view, writer, writer.spec, progress.entries))


def _own_state(view: View, writer: WriterView, progress: Progress) -> Decision | _Queued:
    """The decision from the writer's own state, or its place in the queue."""
    if writer.spec is None:
        return Decision(Kind.STALLED, "InvalidSpec", writer.error)
    candidate = _Candidate(view, writer, writer.spec, progress.entries)
    found = OWN_STATE(candidate)
    if found is not None:
        return found
    resting = candidate.over if candidate.tick_ms and not candidate.restart else ""
    return _Queued(writer, not candidate.going_on, candidate.tick_ms, resting)


# ---- the writer's turn: may it start now?


@dataclass(frozen=True)
class _Turn:
    """A writer that is due to start, after all writers before it in the queue have been decided.

    ``running``: names of writers that run or start.
    """

    view: View
    stall: Stall | None
    writer: WriterView
    running: Sequence[str]

    def table_blocks(self, reason: str, message: str) -> Block:
        """The writer waits for the table itself."""
        name = self.view.table.ref.name
        return Block(reason, f"HudiTable {name} {message}", f"table {name}")


def _table_is_stalled(t: _Turn) -> Block | None:
    return (
        t.table_blocks("TableStalled", f"is stalled: {t.stall.reason}: {t.stall.message}")
        if t.stall is not None
        else None
    )


def _table_is_deleted(t: _Turn) -> Block | None:
    gone = t.view.table.ref.deleting or t.view.observed.namespace_terminating
    return t.table_blocks("TableDeleted", "is being deleted") if gone else None


def _agent_reports_an_error(t: _Turn) -> Block | None:
    code, message = gate.report_error(t.view)
    return t.table_blocks(code, f"is not ready: {message or code}") if code else None


def _bootstrap_comes_first(t: _Turn) -> Block | None:
    why = gate.bootstrapping(t.view)
    return t.table_blocks("TableBootstrap", f"is not bootstrapped yet: {why}") if why else None


def _restore_comes_first(t: _Turn) -> Block | None:
    if not gate.closed_for_restore(t.view):
        return None
    name = t.view.table.ref.name
    return Block(
        "TableRestore", f"HudiTable {name}: {restores.blocks(t.view, adopted=gate.adopted(t.view))}", f"table {name}"
    )


def _savepoint_comes_first(t: _Turn) -> Block | None:
    savepoint = gate.closed_for_savepoint(t.view)
    return t.table_blocks("TableSavepoint", f"waits for savepoint {savepoint}") if savepoint else None


def _metadata_table_comes_first(t: _Turn) -> Block | None:
    change = gate.closed_for_metadata(t.view)
    return t.table_blocks("TableMetadata", f"waits for its metadata table: {change}") if change else None


def _table_changes(t: _Turn) -> Block | None:
    return (
        t.table_blocks("TableChanging", "changes its mode or durations when running writers have ended")
        if gate.changing(t.view)
        else None
    )


def _gate_is_not_open(t: _Turn) -> Block:
    return t.table_blocks("TableNotReady", f"is not ready yet: its gate is {t.view.gate.state or 'not made'}")


WHY_NOT_OPEN: Chain[_Turn, Block] = Chain(
    _agent_reports_an_error,
    _bootstrap_comes_first,
    _restore_comes_first,
    _savepoint_comes_first,
    _metadata_table_comes_first,
    _table_changes,
    _gate_is_not_open,
)
"""Why writers of a table with a gate that is not open wait. The last check always applies."""


def _gate_is_closed(t: _Turn) -> Block | None:
    """Block while the gate is closed, also in the look that closes it.

    Otherwise an attempt would be asked to end before it has begun.

    While a record cannot be read an open gate stays open, whatever it seems to await (F582).
    """
    if gate.is_open(t.view) and (doubts.undecided(t.view.etcd) or not gate.awaited_change(t.view)):
        return None
    return WHY_NOT_OPEN(t)


def _in_the_way(writer: WriterView) -> list[tuple[Attempt, Incarnation]]:
    """Incarnations of a writer's attempts that can get the lock, or hold it."""
    return [(a, i) for a in writer.attempts for i in a.incs if not i.settled and not i.out_of_the_way]


def _forgotten(t: _Turn) -> list[Incarnation]:
    """The same of attempts of a writer that only etcd knows (F612)."""
    named = t.view.numbers_in_etcd(t.writer.spec).values() if t.writer.spec is not None else ()
    forgotten = {*named} - {attempt.id for attempt in t.writer.attempts}
    if not forgotten:
        return []
    return [i for i in t.view.incs if i.attempt in forgotten and not i.settled and not i.out_of_the_way]


def _phase(inc: Incarnation) -> str:
    return inc.phase.name if inc.phase is not None else "not fenced yet"


def _previous_attempt_may_hold_the_lock(t: _Turn) -> Block | None:
    """F5: the next attempt starts when the old one is fenced and does not own the lock.

    Otherwise it starts while the lock of the old one is drained, and its driver waits for the rest.
    It is not started before the proof of death, which may never come: it would keep its place and
    its pods. A program waits here for all of it, because no commit compares its progress.
    """
    program = t.writer.spec is not None and t.writer.spec.application is not None
    for attempt in t.writer.attempts:
        if attempt.admitted:
            return Block("PreviousAttempt", f"attempt {attempt.number} may still register", attempt.id)
    forgotten = next(iter(_forgotten(t)), None)
    if forgotten is not None:
        told = f"{forgotten.attempt}, which is in no status, may still hold the lock ({_phase(forgotten)})"
        return Block("PreviousAttempt", awaiting_proof(t.view, forgotten) or told, forgotten.attempt)
    for attempt, inc in _in_the_way(t.writer):
        if program or not lock_is_free_within(t.view, inc, START_SECONDS):
            proof = awaiting_proof(t.view, inc)
            return Block(
                "PreviousAttempt",
                proof or f"attempt {attempt.number} may still hold the lock ({_phase(inc)})",
                attempt.id,
            )
    return None


def _source_is_not_there(t: _Turn) -> Block | None:
    return source_tables.waits_for(t.view, t.writer.spec) if t.writer.spec is not None else None


def _single_writer_is_taken(t: _Turn) -> Block | None:
    """Without conflict detection no attempt starts beside another one (I9).

    The other one is an incarnation that may still publish.
    """
    if t.view.table.concurrency_mode != Concurrency.SINGLE_WRITER:
        return None
    own = [inc.inc for _, inc in _in_the_way(t.writer)]  # its next attempt waits for them itself
    others = [i for i in t.view.incs if not i.is_agent and not i.settled and not i.out_of_the_way and i.inc not in own]
    if not t.running and others:
        who = others[0].attempt or others[0].inc
        return Block("SingleWriter", f"{who} may still write", who)
    return None


def _places_are_taken(t: _Turn) -> Block | None:
    if len(t.running) < t.view.table.max_writers:
        return None
    names = ", ".join(sorted(t.running)[:5])
    return Block("MaxWriters", f"{len(t.running)} of {t.view.table.max_writers} writers run: {names}", names)


MAY_START: Chain[_Turn, Block] = Chain(
    _table_is_stalled,
    _table_is_deleted,
    _gate_is_closed,
    _previous_attempt_may_hold_the_lock,
    _source_is_not_there,
    _single_writer_is_taken,
    _places_are_taken,
)
"""Reasons that block a writer. ``overlaps`` checks the partitions of other writers last, because
such a block makes writers behind it wait, too.
"""
