"""Suspects, which must be fenced (F15).

They are among all incarnations named by a registration, the lock, an instant or a ticket.

A suspicion is cheap and may be wrong: fencing a healthy writer costs its attempt, never data. Every
later step is decided on proof alone.
"""

from __future__ import annotations

from functools import partial

from hudi_contract import naming, records
from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_contract.settle import FENCE_ALONE, Reason, SettleRecord
from hudi_contract.shape import JsonDict
from hudi_contract.table_keys import Registration
from hudi_contract.words import GateState
from hudi_operator.model import clocks, containers, doubts
from hudi_operator.plan.core.actions import Action, Fence, StartTimer, StopTimer, UpdateSettle
from hudi_operator.plan.core.partial_plan import PartialPlan, guarded, together
from hudi_operator.plan.core.view import Incarnation, View

LOCK_SHOWN_SECONDS = 5.0
"""A lock held longer than this is shown in status."""
UNASSIGNED_SECONDS = 30.0
"""Time that an agent has to leave a table that it no longer serves."""
REPLACED_SECONDS = 900.0
"""Seconds in which an agent may end its work at a table that has another agent now. Then it is
fenced, and with it its other tables change to a new process.
"""


def plan_suspects(view: View, *, changing: bool, asked: bool) -> PartialPlan:
    """Fence every suspect, and maintain the timers that identify one.

    ``changing``: the gate is closed for a change for which runs must end (F44). ``asked``:
    something is requested from the agent, which may take hours under the lock (F21).
    """
    steps = [_lock_timer(view)]
    steps.extend(
        guarded(f"fencing {inc.label}", partial(_plan_one, view, inc, changing=changing, asked=asked))
        for inc in view.incs
        if inc.named
    )
    steps.append(_forget_timers(view))
    return together(steps)


def _lock_timer(view: View) -> PartialPlan:
    """``hold/<token>`` runs while this owner holds the lock; another token starts another timer."""
    current = f"hold/{view.etcd.lock.create_revision}" if view.etcd.lock is not None else ""
    actions: list[Action] = [
        StopTimer(name) for name in view.observed.timers if name.startswith("hold/") and name != current
    ]
    if current and view.timer(current) is None:
        actions.append(StartTimer(current))
    return PartialPlan(tuple(actions), requeue=LOCK_SHOWN_SECONDS if current else LONGEST_PAUSE_SECONDS)


def _forget_timers(view: View) -> PartialPlan:
    """Stop timers of incarnations, attempts and HudiTables that nothing names any more."""
    known = {i.inc for i in view.incs} | {a.id for w in view.writers for a in w.attempts if not a.ended}
    known |= {view.table.ref.uid} if view.table.ref.deleting else set()
    kinds = ("alive/", "gone/", "proof/", "drain/", "drop/", "executors/", "leave/", "stop/", "change/")
    stale = [n for n in view.observed.timers if n.startswith(kinds) and n.partition("/")[2] not in known]
    return PartialPlan(tuple(StopTimer(n) for n in stale))


def _plan_one(view: View, inc: Incarnation, *, changing: bool, asked: bool) -> PartialPlan:
    if inc.record is not None:
        return PartialPlan()
    if inc.fenced:
        # A fence without its record: both are put in one transaction, so only a person can have
        # deleted one. The record is recreated (I6).
        return PartialPlan.of(
            UpdateSettle(view.table.table_id, inc.inc, _record(view, inc, FENCE_ALONE), 0),
            summary=f"{inc.label} has no settle record",
            requeue=1,
        )
    timers, requeue = _timers(view, inc)
    reason = _reason(view, inc, changing=changing, asked=asked)
    if not reason:
        return PartialPlan(tuple(timers), requeue=requeue)
    fence = Fence(
        table_id=view.table.table_id,
        inc=inc.inc,
        attempt=inc.attempt,
        settle=_record(view, inc, reason),
        # F29: an incarnation that renewed its lease meanwhile is not fenced for a lost one.
        if_not_alive=reason == Reason.LEASE_GONE,
        lease=inc.alive.lease if inc.alive is not None else 0,
    )
    return PartialPlan((*timers, fence), (f"fencing {inc.label}: {reason}",), requeue=1)


def _record(view: View, inc: Incarnation, reason: str) -> JsonDict:
    record = SettleRecord.of(
        inc=inc.inc,
        attempt=inc.attempt,
        role=inc.role,
        namespace=inc.namespace,
        pod=inc.pod,
        pod_uid=inc.pod_uid,
        boot_id=inc.boot_id,
        node=inc.node,
        app_id=inc.app_id,
        reason=reason,
        now_ms=view.now_ms,
    )
    return record.to_json()


def _timers(view: View, inc: Incarnation) -> tuple[list[Action], float]:
    actions: list[Action] = []
    requeue = LONGEST_PAUSE_SECONDS
    wanted = {
        f"alive/{inc.inc}": inc.alive is None,
        f"gone/{inc.inc}": bool(inc.pod_uid) and inc.pod_uid not in view.pods_by_uid,
        f"leave/{inc.inc}": _unassigned(view, inc) or _replaced(view, inc),
    }
    for name, runs in wanted.items():
        if runs:
            requeue = 1.0
        if runs and view.timer(name) is None:
            actions.append(StartTimer(name))
        elif not runs and view.timer(name) is not None:
            actions.append(StopTimer(name))
    return actions, requeue


def _unassigned(view: View, inc: Incarnation) -> bool:
    assigned = view.etcd.assignment is not None or view.etcd.elsewhere
    return inc.is_agent and not assigned and view.table.ref.deleting


def _replaced(view: View, inc: Incarnation) -> bool:
    """Whether this is an agent, and the table is assigned to another one.

    An agent leaves a table when its running work has ended, and stays while an instant is its own
    that it has begun and not ended: only the next agent may end that, when this one is proven dead
    (I12).
    """
    prefix = naming.attempt_id(view.table.ref.namespace, view.agent) + "-"
    return inc.is_agent and bool(inc.attempt) and not view.table.ref.deleting and not inc.attempt.startswith(prefix)


def _reason(view: View, inc: Incarnation, *, changing: bool, asked: bool) -> str:
    """Why this incarnation is a suspect; empty when it is not.

    Certain reasons come before guesses.
    """
    lock, suspect_after = view.table.lock, float(view.table.lock.suspect_seconds)
    pod = view.pods_by_uid.get(inc.pod_uid)
    held = view.elapsed(f"hold/{inc.lock.create_revision}", lock.max_hold_seconds) if inc.lock is not None else False
    checks = (
        (Reason.POD_TERMINATED, pod is not None and containers.ended(pod)),
        (Reason.CLOCK_SKEW, _skewed(view, inc)),
        (Reason.HELD_TOO_LONG, held and not _may_hold(view, inc, asked=asked)),
        (Reason.LEASE_GONE, inc.alive is None and view.elapsed(f"alive/{inc.inc}", suspect_after)),
        (Reason.POD_GONE, pod is None and view.elapsed(f"gone/{inc.inc}", suspect_after)),
        (_stop_reason(view, inc, changing=changing), _stop_is_over(view, inc)),
        (Reason.DELETED, _unassigned(view, inc) and view.elapsed(f"leave/{inc.inc}", UNASSIGNED_SECONDS)),
        (Reason.REASSIGNED, _replaced(view, inc) and view.elapsed(f"leave/{inc.inc}", REPLACED_SECONDS)),
    )
    return next((reason for reason, holds in checks if holds), "")


def _may_hold(view: View, inc: Incarnation, *, asked: bool) -> bool:
    """F21: an agent may hold the lock for hours under the closed gate.

    It creates the table or its index then. Only agents do that, and only on request: one that hangs
    does not delay a change of the gate forever (F457).
    """
    asks = asked and view.gate.state is GateState.CLOSED
    return inc.is_agent and (asks or bool(doubts.gate_unreadable(view.etcd)))


def _skewed(view: View, inc: Incarnation) -> bool:
    """F19: the registration's wall clock was ahead by more than the allowed skew.

    It was ahead not only of the operator's clock (F47).
    """
    said = records.read(inc.registration, Registration).wall_clock_ms
    return clocks.ahead(
        said,
        now_ms=view.now_ms,
        api_now_ms=view.observed.api_now_ms,
        skew_seconds=view.table.lock.max_clock_skew_seconds,
    )


def _stop_is_over(view: View, inc: Incarnation) -> bool:
    """The writer is deleted, suspended, blocks a change or is overdue; its grace period is over.

    :mod:`attempts` starts the timer.
    """
    for writer in view.writers:
        for attempt in writer.attempts:
            if inc.attempt and attempt.id == inc.attempt:
                return view.elapsed(f"stop/{attempt.id}", attempt.writer.stop_grace_seconds)
    return False


def _stop_reason(view: View, inc: Incarnation, *, changing: bool) -> str:
    deleting, suspended = view.table.ref.deleting or view.observed.namespace_terminating, view.table.suspend
    overdue = False
    for writer in view.writers:
        for attempt in writer.attempts:
            if attempt.id == inc.attempt:
                deleting = deleting or attempt.writer.ref.deleting
                suspended = suspended or attempt.writer.suspend
                overdue = bool(attempt.entry.stopped_for)
    if deleting:
        return Reason.DELETED
    if overdue and not suspended:
        return Reason.OVERDUE
    return Reason.ENDED_FOR_CHANGE if changing and not suspended else Reason.SUSPENDED
