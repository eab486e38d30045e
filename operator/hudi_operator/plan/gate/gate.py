"""The gate: it controls who may acquire the table's lock (F8, F20).

It also has the mode and durations under which that happens.

A gate is created closed, opened when the agent has seen that the table exists and matches, and
frozen when etcd itself cannot be trusted. Mode, durations and versions change only while it is
closed and no writer is registered.
"""

from __future__ import annotations

from typing import Any

from hudi_contract import keys
from hudi_contract.outcomes import ErrorCode
from hudi_contract.records import read
from hudi_contract.reports import ReportedError, TimelineReport
from hudi_contract.shape import json_name
from hudi_contract.table_keys import Admit, Clock, Durations, Gate
from hudi_contract.words import AgentError, Concurrency, FencingMode, GateState, Role
from hudi_operator.api.spec import TableSpec
from hudi_operator.model import doubts
from hudi_operator.plan.core import trial
from hudi_operator.plan.core.actions import Action, PutGate, StopTimer
from hudi_operator.plan.core.checks import Chain
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View
from hudi_operator.plan.gate.trust import UNFREEZE_ANNOTATION, freeze_reason, gate_word
from hudi_operator.plan.requests import bootstrap, metadata_table, restores, savepoints

RELEASED = "no HudiTable"
"""Reason of a gate that its last HudiTable has released: the next one takes it over."""
REASON_LIMIT = 64
UNREACHED_TIMER, TURN_TIMER = "unreached", "turn/"
"""Timers of :mod:`hudi_operator.plan.gate.turns`; the second has a gate's revision in its name."""
OTHER_AUTHORITY = frozenset({AgentError.OTHER_LOCK_AUTHORITY, ErrorCode.OTHER_AUTHORITY})


PARAMETERS = (
    "mode",
    "protocol_version",
    "table_version",
    "hudi_version",
    "path",
    "concurrency",
    "insert_conflicts",
    "lock",
)
"""Fields of a gate that change only while it is closed and no writer is registered."""


def parameters(table: TableSpec) -> Gate:
    """Gate with the parameters from the spec; all other fields are empty."""
    return Gate(
        mode=FencingMode(table.fencing.mode),
        protocol_version=keys.PROTOCOL_VERSION,
        table_version=keys.TABLE_VERSION,
        hudi_version=table.hudi_version,
        path=table.canonical_path,
        concurrency=table.concurrency_mode,
        insert_conflicts=table.insert_conflicts,
        lock=Durations.from_json(table.durations),
    )


def is_mine(view: View) -> bool:
    """True when the gate names this HudiTable."""
    return bool(view.gate.table_uid) and view.gate.table_uid == view.table.ref.uid


def tries(view: View) -> bool:
    """True while this HudiTable has to show that it reaches its path, and has not.

    It does not take the gate then. In an etcd that is not trusted no gate is made at all.
    """
    if view.etcd.gate is None and freeze_reason(view):
        return False
    return trial.needed(view) and not trial.reached(view)


def owned_by_other(view: View) -> bool:
    """True when the gate names another HudiTable.

    The other HudiTable owns the path, and this one is a duplicate.
    """
    gate = view.gate
    return bool(gate.table_uid) and gate.table_uid != view.table.ref.uid and gate.table != view.table.ref.key


def reached(view: View) -> bool:
    """True when this HudiTable's own credentials are known to have read or created the table.

    Its agent says so, which has no other credentials. Until then the gate is not kept against other
    HudiTables of the path (F191).
    """
    return is_mine(view) and (view.gate.was_open or view.gate.reached or timeline_report(view).exists)


def is_open(view: View) -> bool:
    """True when writers may acquire under the parameters of the spec."""
    return (
        is_mine(view)
        and view.gate.state is GateState.OPEN
        and not _changed(view)
        and not metadata_table.unfinished(view)
    )


def adopted(view: View) -> bool:
    """True when the gate was open for this HudiTable before.

    Pending instants from before that time have been handled.
    """
    return is_mine(view) and view.gate.was_open


def closed_for_savepoint(view: View) -> str:
    """Name of the savepoint for which the gate is, or must be, closed; empty when there is none.

    Adoption comes first.
    """
    return next(iter(savepoints.unfinished(view)), "") if adopted(view) else ""


def closed_for_restore(view: View) -> str:
    """Nonce of the restore for which the gate is, or must be, closed; empty when there is none."""
    restore = restores.unfinished(view, adopted=adopted(view))
    # A savepoint that is requested at the same time is taken first; a restore that has begun makes
    # everything else wait.
    return (
        restore.nonce
        if restore is not None and (restores.begun(view) is not None or not closed_for_savepoint(view))
        else ""
    )


def ready_to_restore(view: View) -> bool:
    """True when the gate names the restore for which it is closed, and no old attempt is left.

    An old attempt is one that started while it was open.
    """
    nonce = closed_for_restore(view)
    return bool(nonce) and drained(view) and view.gate.restoring == nonce


def closed_for_metadata(view: View) -> str:
    """The change of the metadata table for which the gate is, or must be, closed.

    Empty when there is none, or a restore precedes it.
    """
    return metadata_table.unfinished(view) if is_mine(view) and not closed_for_restore(view) else ""


def bootstrapping(view: View) -> str:
    """Why writers wait for the table's first commit, which only the agent makes (R14).

    Empty when they do not wait.
    """
    return bootstrap.blocks(view, adopted=adopted(view))


def alone(view: View) -> bool:
    """True when the gate is closed and was never open for this HudiTable.

    Its agent must also have reported the table without error.
    """
    closed = is_mine(view) and view.gate.state is GateState.CLOSED and not adopted(view) and not _changed(view)
    return closed and not writers_left(view) and timeline_report(view).exists and not report_error(view)[0]


def drained(view: View) -> bool:
    """True when the gate is closed with the parameters of the spec, and no old attempt is left.

    An old attempt is one that started while it was open.
    """
    return is_mine(view) and view.gate.state is GateState.CLOSED and not _changed(view) and not writers_left(view)


def changing(view: View) -> bool:
    """True when the gate in force differs from the spec."""
    return is_mine(view) and bool(_changed(view))


def _changed(view: View) -> list[str]:
    if view.unreadable:
        return []  # the wanted parameters are unknown, so those in force stay
    wanted = parameters(view.table)
    return [json_name(one) for one in PARAMETERS if getattr(view.gate, one) != getattr(wanted, one)]


def awaited_change(view: View) -> str:
    """The change that needs a closed gate without writers, in words; empty when there is none."""
    if not is_mine(view) or view.gate.state is GateState.FROZEN:
        return ""
    if _changed(view):
        return f"a change of {', '.join(_changed(view))}"
    if closed_for_restore(view) or restores.recorded(view):
        return f"restore {closed_for_restore(view)}".strip()
    if closed_for_savepoint(view):
        return f"savepoint {closed_for_savepoint(view)}"
    return f"the metadata table ({closed_for_metadata(view)})" if closed_for_metadata(view) else ""


def awaits_lock(view: View) -> str:
    """Owner of the lock that must be free before the fencing mode changes (F436); empty: none."""
    if view.etcd.lock is None or view.gate.mode == parameters(view.table).mode or writers_left(view):
        return ""
    return next((i.label for i in view.incs if i.lock is not None), "somebody unknown")


def ends_runs(view: View) -> str:
    """The change for which the gate is closed; empty when there is none.

    Runs end at their next commit boundary for it (F44).
    """
    return awaited_change(view) if view.gate.state is GateState.CLOSED else ""


def closed_for_ms(view: View) -> int:
    """Wall-clock time at which the gate was closed for the awaited change.

    0: it is not, or the operator that closed it recorded no time.
    """
    return view.gate.closed_for_ms if view.gate.state is GateState.CLOSED else 0


def too_new(view: View) -> str:
    """Why this operator must not touch the table: the gate has a newer protocol version.

    Empty when it may.

    A downgrade by one version goes through the closed gate like any other change: a version can
    read everything that the next one writes.
    """
    version = view.gate.protocol_version
    if version is None or version <= keys.PROTOCOL_VERSION + 1:
        return ""
    return (
        f"the gate has protocol version {version}, this operator has {keys.PROTOCOL_VERSION}: downgrade one "
        "version at a time"
    )


def next_gate(view: View, state: GateState, *, base: Gate | None = None, **changes: Any) -> Gate:
    """A gate: parameters from ``base`` (None: from the spec), identity of this HudiTable."""
    source = parameters(view.table) if base is None else base
    known = state is GateState.OPEN or adopted(view)
    made = Gate(
        state=state,
        authority=view.gate.authority or view.observed.fresh_uuid,
        cluster_id=view.etcd.cluster_id,
        table=view.table.ref.key,
        table_uid=view.table.ref.uid,
        # For a new gate nothing was forgotten; the table's marker shows whether there was another
        # one.
        accepted_floor=view.gate.accepted_floor if view.etcd.gate is not None else view.etcd.forgotten,
        non_blocking_until=_non_blocking_until(view, source.concurrency),
        adopted=known,
        restore_baseline=restores.baseline(view, adopted=adopted(view)) if known else "",
        reached=not known and ((is_mine(view) and view.gate.reached) or trial.reached(view)),
        gave_way=() if known else view.gate.gave_way,
        **{name: getattr(source, name) for name in PARAMETERS},
    )
    return made.but(**changes)


def frozen_gate(view: View, reason: str) -> Gate:
    """The gate in force, frozen.

    It keeps the cluster of etcd that it was made in: an etcd that is not trusted does not replace
    that.
    """
    return next_gate(view, GateState.FROZEN, base=view.gate, cluster_id=view.gate.cluster_id, reason=reason)


def _non_blocking_until(view: View, mode: str) -> str:
    """Time up to which the table was non-blocking; after a change of mode it is the clock.

    When the mode changes, no writer in the old mode is left, so the clock is past all of their
    commits.
    """
    if mode == Concurrency.NON_BLOCKING or view.gate.concurrency != Concurrency.NON_BLOCKING:
        return view.gate.non_blocking_until
    return read(view.etcd.clock, Clock).value


def put(view: View, value: Gate, summary: str) -> PartialPlan:
    """Put the gate, if it and those that it depends on are still as they were read."""
    mod = view.etcd.gate.mod_revision if view.etcd.gate is not None else 0
    changes_mode = view.etcd.gate is not None and value.mode != view.gate.mode
    action = PutGate(view.table.table_id, value.to_json(), mod, view.observed.overlapping_gates, unlocked=changes_mode)
    return PartialPlan.of(action, summary=summary, requeue=0.5)


def present_attempts(view: View) -> list[str]:
    """Attempts that started under the gate in force: they may finish (F20)."""
    registered = {i.attempt for i in view.incs if i.registration is not None and i.record is None and not i.is_agent}
    admitted = {a for a, stored in view.etcd.admits.items() if stored.read(Admit).role != Role.AGENT}
    return sorted((registered | admitted) - {""})


def writers_left(view: View) -> bool:
    """True while any attempt that started under the gate in force may still write."""
    unsettled = any(not i.is_agent and not i.unlocked and not i.settled for i in view.incs)
    return unsettled or bool(present_attempts(view)) or any(w.active is not None for w in view.writers)


def timeline_report(view: View) -> TimelineReport:
    """The agent's last timeline report.

    An empty one when no currently registered agent has written one.

    An agent that cannot reach the storage reports its error before it registers, without a name.
    During a trial: what the agent has said there.
    """
    if trial.needed(view):
        return trial.report(view)
    report = read(view.etcd.reports.get(keys.TIMELINE), TimelineReport)
    if report.error is not None and not report.agent_inc:
        return report
    inc = next((i for i in view.incs if i.inc == report.agent_inc), None)
    return report if inc is not None and inc.registration is not None and inc.record is None else TimelineReport()


def report_error(view: View) -> tuple[str, str]:
    """Code and message of the error in the agent's last report; empty when it has none."""
    error = timeline_report(view).error or ReportedError()
    code = error.code
    if code and code not in OTHER_AUTHORITY and not (code.isalnum() and len(code) <= REASON_LIMIT):
        code = "AgentError"  # a condition's reason must be one CamelCase word
    return code, error.message


def plan_gate(view: View) -> PartialPlan:
    """One step of the gate towards the state required by the spec and the facts.

    Not called for a duplicate or a deleted table.
    """
    return STEPS(view) or PartialPlan()


# ---- the steps of plan_gate, in the order of STEPS


def _unreadable_stays(view: View) -> PartialPlan | None:
    if doubts.gate_unreadable(view.etcd):
        return PartialPlan.of(summary="the gate cannot be read: it stays as it is", requeue=5)
    return None


def _create(view: View) -> PartialPlan | None:
    if view.etcd.gate is not None:
        return None
    frozen = freeze_reason(view)
    return (
        PartialPlan.of(summary=f"no gate is created: {frozen}")
        if frozen
        else put(view, next_gate(view, GateState.CLOSED), "creating the gate, closed")
    )


def _freeze(view: View) -> PartialPlan | None:
    """A gate without a HudiTable is frozen for its next one, too (F605)."""
    frozen = freeze_reason(view)
    if not frozen or (view.gate.state is GateState.FROZEN and is_mine(view)):
        return None
    return put(view, frozen_gate(view, frozen), f"freezing: {frozen}")


def _take_over(view: View) -> PartialPlan | None:
    """The gate was released by its last HudiTable, or left by a deleted one of the same name.

    Settling resumes here. What was frozen stays so: a person has to lift it, and not whoever makes
    the HudiTable anew (F605).
    """
    if is_mine(view):
        return None
    if view.gate.state is GateState.FROZEN and view.gate.reason != RELEASED:
        return put(view, frozen_gate(view, view.gate.reason), "taking over the gate, which stays frozen")
    base = view.gate if writers_left(view) or view.etcd.lock is not None else None
    taken = put(
        view,
        next_gate(view, GateState.CLOSED, base=base, admitted=tuple(present_attempts(view))),
        "taking over the gate, closed",
    )
    old: list[Action] = [StopTimer(t) for t in view.observed.timers if t.startswith((UNREACHED_TIMER, TURN_TIMER))]
    return PartialPlan((*old, *taken.actions), taken.summary, taken.requeue)


def _unfreeze(view: View) -> PartialPlan | None:
    """A frozen gate stays frozen until a person lifts it."""
    if view.gate.state is not GateState.FROZEN:
        return None
    meta = (view.observed.table or {}).get("metadata") or {}
    word = (meta.get("annotations") or {}).get(UNFREEZE_ANNOTATION)
    if word != gate_word(view):
        return PartialPlan.of(summary=f"frozen: {view.gate.reason or 'by a person'}")
    value = next_gate(
        view,
        GateState.CLOSED,
        base=view.gate,
        admitted=tuple(present_attempts(view)),
        accepted_floor=max(view.observed.revision_floor, view.etcd.forgotten, view.gate.accepted_floor),
    )
    if freeze_reason(view) and view.table.restore is not None:
        # Etcd may have forgotten that it was carried out: it would undo what followed (F621).
        value = value.but(restore_baseline=view.table.restore.nonce)
    return put(view, value, "unfrozen by a person, gate closed")


def _undecided_stays(view: View) -> PartialPlan | None:
    if unknown := doubts.undecided(view.etcd):
        return PartialPlan.of(summary=f"the gate stays {view.gate.state}: {unknown} cannot be read", requeue=5)
    return None


def _change_parameters(view: View) -> PartialPlan | None:
    """F8: close, wait until no attempt that started under the old parameters is left, change."""
    if not _changed(view):
        return None
    close = _close(view)
    if close is not None:
        return close
    if writers_left(view):
        return PartialPlan.of(
            summary="gate closed: waiting for running writers before mode or durations change", requeue=5
        )
    if owner := awaits_lock(view):
        return PartialPlan.of(
            summary=f"gate closed: waiting until {owner} releases the lock before the mode changes", requeue=0.5
        )
    return put(view, next_gate(view, GateState.CLOSED), "changing mode or durations of the closed gate")


def _hold_for_restore(view: View) -> PartialPlan | None:
    """Closed until the agent has finished the restore.

    The gate names the restore when no writer is left.
    """
    if not (closed_for_restore(view) or restores.recorded(view)):
        return None
    nonce, close = closed_for_restore(view), _close(view)
    if close is not None:
        return close
    if nonce and view.gate.restoring != nonce and not writers_left(view):
        return put(
            view,
            next_gate(view, GateState.CLOSED, restoring=nonce),
            f"the gate is closed for restore {nonce}, no writer is left",
        )
    return PartialPlan()


def _hold_for_the_agent(view: View) -> PartialPlan | None:
    """Closed while the agent takes a savepoint or changes the metadata table.

    Both concern all writers.
    """
    if closed_for_savepoint(view) or closed_for_metadata(view):
        return _close(view) or PartialPlan()
    return None


def _close(view: View) -> PartialPlan | None:
    """Close the gate, and record the change in it, so that running attempts end (F44).

    None: it is already closed for it, or no attempt is left.
    """
    change = awaited_change(view)
    if view.gate.state is GateState.CLOSED and (view.gate.closed_for == change or not writers_left(view)):
        return None
    # A further change does not extend the deadline.
    since = closed_for_ms(view) or view.now_ms
    value = next_gate(
        view,
        GateState.CLOSED,
        base=view.gate,
        admitted=tuple(present_attempts(view)),
        closed_for=change,
        closed_for_ms=since,
    )
    return put(view, value, f"closing the gate for {change}")


def _freeze_for_another_authority(view: View) -> PartialPlan | None:
    if report_error(view)[0] in OTHER_AUTHORITY and view.gate.state is GateState.OPEN:
        reason = f"the table's marker names another lock authority: {report_error(view)[1]}"
        return put(view, frozen_gate(view, reason), f"freezing: {reason}")
    return None


def _open_stays(view: View) -> PartialPlan | None:
    return PartialPlan() if view.gate.state is GateState.OPEN else None


def _note_reached(view: View) -> PartialPlan | None:
    """Record that the agent has reached the table; not needed for a gate that opens at once."""
    told = timeline_report(view).exists and (report_error(view)[0] or bootstrapping(view))
    if not told or adopted(view) or view.gate.reached:
        return None
    return put(view, next_gate(view, GateState.CLOSED, base=view.gate, reached=True), "the agent has reached the table")


def _end_of_a_restore(view: View) -> PartialPlan | None:
    """The gate's revision moves: an agent that read it as closed for a restore begins none (F8)."""
    if view.gate.restoring:
        return put(view, next_gate(view, GateState.CLOSED), "the gate is not closed for a restore any more")
    return None


def _closed_while_paths_overlap(view: View) -> PartialPlan | None:
    if view.observed.overlapping:
        return PartialPlan.of(summary=f"gate closed: the path overlaps with {', '.join(view.observed.overlapping)}")
    return None


def _closed_until_the_agent_reports(view: View) -> PartialPlan | None:
    if not timeline_report(view).exists or report_error(view)[0]:
        # The report comes as an event.
        return PartialPlan.of(summary="gate closed: waiting until the agent reports that the table exists and matches")
    return None


def _closed_until_the_trial_has_ended(view: View) -> PartialPlan | None:
    """Its keys are looked for until the gate was open."""
    return None if trial.over(view) else PartialPlan.of(summary="gate closed: the trial is being ended", requeue=0.5)


def _closed_until_bootstrapped(view: View) -> PartialPlan | None:
    if bootstrapping(view):
        # R14
        return PartialPlan.of(summary="gate closed: the table is bootstrapped before writers are admitted")
    return None


def _open(view: View) -> PartialPlan:
    return put(view, next_gate(view, GateState.OPEN), "opening the gate")


STEPS: Chain[View, PartialPlan] = Chain(
    _unreadable_stays,
    _create,
    _freeze,
    _take_over,
    _unfreeze,
    _undecided_stays,
    _change_parameters,
    _hold_for_restore,
    _hold_for_the_agent,
    _freeze_for_another_authority,
    _open_stays,
    _end_of_a_restore,
    _note_reached,
    _closed_while_paths_overlap,
    _closed_until_the_agent_reports,
    _closed_until_bootstrapped,
    _closed_until_the_trial_has_ended,
    _open,
)
"""The steps of the gate; the first one that applies is taken. The gate opens when
none before applies.
"""
