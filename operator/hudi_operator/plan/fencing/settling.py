"""Settling a fenced incarnation, phase by phase.

Every phase starts from the current state of etcd and Kubernetes (I6).

Fenced → Terminating → Draining → Unlocked → RollingBack → (agent) Swept → Settled. The lock is
deleted only after proof of death of every pod that may run the incarnation's code, and a drain on
this process's monotonic clock (I1); proofs are written before a finalizer is dropped (F14). Mode
LeaseOnly skips proof and drain, as other lock providers do; that is unsafe.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from hudi_contract import keys
from hudi_contract.naming import EVIDENCE_FINALIZER, LABEL_ROLE, LABEL_TABLE, ROLE_AGENT
from hudi_contract.settle import NamedPod, Phase, Reason, SettleRecord
from hudi_contract.table_keys import InstantRecord
from hudi_contract.words import FencingMode
from hudi_operator.model.facts import PodFacts
from hudi_operator.model.proof import Proof, Subject, prove, ran_out, ways_out
from hudi_operator.plan.core.actions import (
    Action,
    DeletePod,
    FinishSettle,
    StartTimer,
    StopTimer,
    Unlock,
    UpdateSettle,
)
from hudi_operator.plan.core.partial_plan import PartialPlan, guarded, together
from hudi_operator.plan.core.view import Incarnation, View
from hudi_operator.plan.fencing import revocation, sightings

JsonDict = dict[str, Any]

KILL_GRACE_SECONDS = 5
"""Grace period of a fenced pod, which can do nothing useful any more. Never 0: a forced deletion
proves nothing.
"""
HAND_OVER_SECONDS = 120
"""Grace period of an agent's pod that serves several tables: its work for the other tables can
finish (F48).
"""
LOCKED_HAND_OVER_SECONDS = 30
"""The same while the fenced incarnation holds the lock and writers wait for it."""
_OF_ONE_TABLE = (Reason.DELETED, Reason.HELD_TOO_LONG, Reason.REASSIGNED)
"""Reasons for fencing an agent whose process is healthy. A lost lease or a wrong clock is a fault
of the process or its host.
"""
PROOF_EXPECTED_SECONDS = 60.0
"""A working kubelet has ended a pod within this time; after it, the condition asks a
person to act.
"""
UNKNOWN_POD = "unknown"
FEW_PODS = 100
"""Pods of which a settle record always has space, with names as long as they may be."""


def plan_settling(view: View) -> PartialPlan:
    """One step for every incarnation that is being settled."""
    return together(
        guarded(f"settling {i.label}", partial(_plan_one, view, i))
        for i in view.incs
        if i.record is not None and not i.settled
    )


def _plan_one(view: View, inc: Incarnation) -> PartialPlan:
    if inc.record is not None and inc.record.unreadable:
        # Its pods and proofs are unknown, so everything that belongs to it stays unchanged (F46).
        return PartialPlan.of(summary=f"{inc.label}: its settle record cannot be read, it stays fenced", requeue=5)
    planners = {
        Phase.Fenced: _fenced,
        Phase.Terminating: _terminating,
        Phase.Draining: _draining,
        Phase.Unlocked: _unlocked,
        Phase.RollingBack: _rolling_back,
        Phase.Swept: _finish,
        Phase.Settled: _finish,
    }
    return planners[inc.phase or Phase.Fenced](view, inc)


def _update(view: View, inc: Incarnation, record: SettleRecord) -> UpdateSettle:
    mod = inc.record.mod_revision if inc.record is not None else 0
    return UpdateSettle(view.table.table_id, inc.inc, record.to_json(), mod)


def _move(view: View, inc: Incarnation, phase: Phase, summary: str) -> PartialPlan:
    return PartialPlan.of(
        _update(view, inc, inc.settling.moved(phase, now_ms=view.now_ms)),
        summary=f"{inc.label}: {summary}",
        requeue=0.5,
    )


# ---- Fenced, Terminating


def _fenced(view: View, inc: Incarnation) -> PartialPlan:
    if view.mode == FencingMode.LEASE_ONLY:
        kills = tuple(
            kill(p) for p in _live_pods(view, inc) if not p.deleting and p.phase in ("Pending", "Running", "Unknown")
        )
        moved = _unlocked_or_unlock(view, inc, "LeaseOnly: neither proof nor drain (unsafe)")
        return PartialPlan(kills + moved.actions, moved.summary, moved.requeue)
    return _move(view, inc, Phase.Terminating, "terminating its pods")


def _live_pods(view: View, inc: Incarnation) -> tuple[PodFacts, ...]:
    """The pod of the JVM, then its executors, from the live list."""
    own = view.pods_by_uid.get(inc.pod_uid)
    executors = view.executors(inc.pod) if inc.pod else ()
    return ((own,) if own is not None else ()) + executors


def kill(pod: PodFacts, grace: int = KILL_GRACE_SECONDS) -> DeletePod:
    """Delete a pod that cannot do anything useful any more."""
    return DeletePod(pod.namespace, pod.name, pod.uid, grace)


def _grace(inc: Incarnation, pod: PodFacts | None) -> int:
    """Grace period, in seconds, of a pod of a fenced incarnation.

    The proof requires its end, however long that takes.

    Only an agent that is alive and was fenced for a problem of this table has work to hand over.
    """
    if pod is None or pod.labels.get(LABEL_ROLE) != ROLE_AGENT or LABEL_TABLE in pod.labels:
        return KILL_GRACE_SECONDS
    if inc.settling.reason not in _OF_ONE_TABLE:
        return KILL_GRACE_SECONDS
    return LOCKED_HAND_OVER_SECONDS if inc.lock is not None or inc.lock_unknown else HAND_OVER_SECONDS


def _subjects(view: View, inc: Incarnation, record: SettleRecord) -> dict[str, Subject]:
    """Every pod that needs a proof.

    The JVM's pod, and every executor that was ever listed (even when its object vanished).
    """
    own = inc.pod_uid or UNKNOWN_POD
    known = record.pods
    subjects: dict[str, Subject] = {
        own: Subject(
            # An attestation for an unknown pod names the incarnation.
            uid=inc.pod_uid or inc.inc,
            name=inc.pod,
            node=inc.node,
            seen=sightings.seen(view, inc),
            hosted=True,
            evidence=own not in known or known[own].evidence,
        )
    }
    for uid, pod in known.items():
        if uid != own:
            # An executor registers no boot id: the kubelet may have started it after the reboot
            # that ended its driver (F43).
            subjects[uid] = Subject(uid=uid, name=pod.name, node=pod.node, evidence=pod.evidence)
    return subjects


def _with_listed(view: View, inc: Incarnation, record: SettleRecord) -> SettleRecord:
    """The record with every live pod added.

    A pod without our finalizer is marked, unless we dropped the finalizer after its proof.
    """
    live = [p for p in _live_pods(view, inc) if p.uid not in record.proven]
    return record.with_pods(
        {p.uid: NamedPod(name=p.name, node=p.node, evidence=EVIDENCE_FINALIZER in p.finalizers) for p in live}
    )


def proofs_missing(view: View, inc: Incarnation) -> list[tuple[Subject, PodFacts | None]]:
    """Pods of an incarnation whose death is not recorded, with their live objects (None: gone)."""
    if inc.record is None or inc.phase is None or inc.phase > Phase.Terminating:
        return []
    record = _with_listed(view, inc, inc.settling)
    done = record.proven
    return [(s, view.pods_by_uid.get(uid)) for uid, s in _subjects(view, inc, record).items() if uid not in done]


def _terminating(view: View, inc: Incarnation) -> PartialPlan:
    if view.mode == FencingMode.LEASE_ONLY:
        return _fenced(view, inc)
    before, own = inc.settling, inc.pod_uid or UNKNOWN_POD
    record = _with_proofs(view, inc, _with_listed(view, inc, before))
    if too_long := _too_long(record):
        # Nothing of it is recorded, so nothing is concluded; the pods are ended all the same, and
        # proofs need less space than pods (F616).
        return PartialPlan(
            (*_kills(view, inc, before), *_proof_timer(view, inc, waiting=True)), (f"{inc.label}: {too_long}",), 2.0
        )
    # Executors are listed once more after the driver's proof is recorded: from then on nothing can
    # start another one.
    if own in before.proven and record == before and not proofs_missing(view, inc):
        return _move(view, inc, Phase.Draining, "all its pods are proven dead, draining")
    actions: list[Action] = [] if record == before else [_update(view, inc, record)]
    # F14: a finalizer is dropped as soon as the proof is written; an agent's pod may be evidence
    # for other tables too (agent_pods).
    done = record.proven
    live = _live_pods(view, inc)
    shared = {own} if inc.is_agent else set()
    actions.extend(a for p in live if p.uid in done - shared for a in revocation.released(view, p))
    actions.extend(_kills(view, inc, record))
    actions.extend(_proof_timer(view, inc, waiting=bool(proofs_missing(view, inc))))
    if any(s.uid not in done for s, _ in proofs_missing(view, inc)):
        actions.extend(revocation.steps(view, inc))
    waiting = [s.name or s.uid for s, _ in proofs_missing(view, inc) if s.uid not in done]
    summary = (
        f"{inc.label}: waiting for proof of death of {', '.join(waiting)}"
        if waiting
        else f"{inc.label}: proofs recorded"
    )
    return PartialPlan(tuple(actions), (summary,), 2.0 if waiting else 0.5)


def _kills(view: View, inc: Incarnation, record: SettleRecord) -> tuple[DeletePod, ...]:
    live = [p for p in _live_pods(view, inc) if p.uid not in record.proven]
    return tuple(kill(p, _grace(inc, p)) for p in live if not p.deleting and not ran_out(p))


def _with_proofs(view: View, inc: Incarnation, record: SettleRecord) -> SettleRecord:
    proofs: dict[str, Proof] = {}
    for uid, subject in _subjects(view, inc, record).items():
        found = _prove(view, inc, subject, view.pods_by_uid.get(uid)) if uid not in record.proven else None
        if found is not None:
            proofs[uid] = found
    return record.with_proofs({uid: p.record(view.now_ms) for uid, p in proofs.items()})


def _too_long(record: SettleRecord) -> str:
    """Why a record cannot be written, for people; empty when it can."""
    if len(record.pods) + len(record.proofs) < FEW_PODS:
        return ""
    size, most = len(json.dumps(record.to_json(), separators=(",", ":"))), keys.Kind.SETTLE.max_value_bytes
    if size <= most:
        return ""
    return (
        f"it has {len(record.pods)} pods that are not proven dead, and its settle record would have {size} bytes (at "
        f"most {most}): nothing is recorded until some of them are"
    )


def _prove(view: View, inc: Incarnation, subject: Subject, pod: PodFacts | None) -> Proof | None:
    """Proof of death of one pod, or that the store accepts nothing of it; None: not proven."""
    return prove(subject, pod, view.nodes, view.table.fencing) or revocation.proof(view, inc, subject, pod)


def _proof_timer(view: View, inc: Incarnation, *, waiting: bool) -> list[Action]:
    name = f"proof/{inc.inc}"
    if waiting and view.timer(name) is None:
        return [StartTimer(name)]
    return []


def awaiting_proof(view: View, inc: Incarnation) -> str:
    """Message for a person when a proof is overdue; empty while a kubelet may still deliver it."""
    if view.mode == FencingMode.LEASE_ONLY or inc.phase not in (Phase.Fenced, Phase.Terminating):
        return ""
    if too_long := _too_long(_with_proofs(view, inc, _with_listed(view, inc, inc.settling))):
        return f"{inc.label}: {too_long}"
    overdue = view.elapsed(f"proof/{inc.inc}", PROOF_EXPECTED_SECONDS + _grace(inc, view.pods_by_uid.get(inc.pod_uid)))
    for subject, pod in proofs_missing(view, inc):
        node = view.nodes.get(subject.node)
        stuck = pod is None or not subject.evidence or (bool(subject.node) and (node is None or not node.ready))
        if _prove(view, inc, subject, pod) is None and (stuck or overdue):
            waits = revocation.waits_for(view, inc)
            told = ways_out(subject, pod, view.nodes, view.table.fencing)
            return f"{inc.label}: {f'{waits}; ' if waits else ''}{told}"
    return ""


# ---- Draining, Unlocked


def lock_is_free_within(view: View, inc: Incarnation, seconds: float) -> bool:
    """True when the rest of an incarnation's drain is at most this long.

    Its death is proven then, and only this operator's own timer is waited for before its lock is
    deleted.
    """
    if view.mode == FencingMode.LEASE_ONLY or inc.phase is not Phase.Draining or inc.lock_unknown:
        return False
    age = view.timer(f"drain/{inc.inc}")
    return age is not None and revocation.drain_seconds(view, inc.settling) - age <= seconds


def _draining(view: View, inc: Incarnation) -> PartialPlan:
    """Wait D from the start of this process's own timer: after a failover it starts again (F7)."""
    name, seconds = f"drain/{inc.inc}", revocation.drain_seconds(view, inc.settling)
    age = view.timer(name)
    if age is None:
        return PartialPlan.of(StartTimer(name), summary=f"{inc.label}: draining", requeue=min(1.0, seconds))
    if age < seconds:
        return PartialPlan.of(summary=f"{inc.label}: draining", requeue=min(1.0, seconds - age))
    return _unlocked_or_unlock(view, inc, "drained")


def _unlocked_or_unlock(view: View, inc: Incarnation, why: str) -> PartialPlan:
    """I1: a lock is deleted only here.

    The phase moves when a later read shows that this incarnation does not hold the lock.
    """
    if inc.lock_unknown:
        return PartialPlan.of(summary=f"{inc.label}: {why}, but the owner of the lock cannot be read", requeue=5)
    if inc.lock is not None:
        unlock = Unlock(view.table.table_id, inc.inc, inc.lock.create_revision)
        return PartialPlan.of(unlock, summary=f"{inc.label}: {why}, deleting its lock", requeue=0.5)
    moved = _move(view, inc, Phase.Unlocked, f"{why}, holds no lock")
    return PartialPlan(
        (*moved.actions, StopTimer(f"drain/{inc.inc}"), StopTimer(f"proof/{inc.inc}")), moved.summary, moved.requeue
    )


def _unlocked(view: View, inc: Incarnation) -> PartialPlan:
    if inc.lock is not None:
        # This cannot happen while acquire compares fence = 0 (I2). If it does, the lock is still
        # not deleted without proof and drain.
        return _move(view, inc, Phase.Terminating, "holds the lock again although it is fenced: settling starts over")
    if not inc.instants and not inc.claimed and keys.abandoned(inc.inc) not in view.etcd.done:
        return _finish(view, inc)  # it left nothing to roll back (a record precedes every file, F12)
    abandoned = any(view.etcd.instants[t].read(InstantRecord).abandoned for t in inc.instants)
    record = inc.settling.moved(Phase.RollingBack, now_ms=view.now_ms).but(abandoned=abandoned)
    return PartialPlan.of(
        _update(view, inc, record), summary=f"{inc.label}: handing {_count(inc)} to the agent", requeue=1
    )


def _count(inc: Incarnation) -> str:
    number = len(inc.instants) + len(inc.claimed)
    return f"{number} instant{'s' if number != 1 else ''}"


# ---- RollingBack (agent), Swept, Settled


def _rolling_back(view: View, inc: Incarnation) -> PartialPlan:
    if inc.lock is not None:
        return _unlocked(view, inc)
    count, error = inc.settling.failures
    failed = f" ({count} failures: {error})" if count else ""
    return PartialPlan.of(summary=f"{inc.label}: waiting for the agent to roll back {_count(inc)}{failed}", requeue=5)


def _finish(view: View, inc: Incarnation) -> PartialPlan:
    """Forget the incarnation.

    I4, I7: an instant is forgotten only when the agent has recorded its outcome.
    """
    assert inc.record is not None  # noqa: S101 - callers hold a record
    if inc.lock is not None:
        return _unlocked(view, inc)
    if unknown := sorted(t for t, stored in view.etcd.instants.items() if stored.unreadable):
        return PartialPlan.of(
            summary=f"{inc.label}: instant {unknown[0]} may belong to it, its record cannot be read", requeue=5
        )
    if inc.settling.without_outcome(inc.instants):
        return _move(view, inc, Phase.RollingBack, "an instant has no recorded outcome yet: the agent rolls back again")
    value = inc.settling.moved(Phase.Settled, now_ms=view.now_ms).to_json()
    instants = tuple((t, view.etcd.instants[t].mod_revision) for t in inc.instants)
    finish = FinishSettle(view.table.table_id, inc.inc, value, inc.record.mod_revision, instants)
    return PartialPlan.of(finish, summary=f"{inc.label}: settled", requeue=1)
