"""Conditions for removing the finalizers of HudiTable and HudiWriter.

A HudiWriter may be removed when none of its incarnations can hold the lock and all its pods are
proven dead; a HudiTable when that holds for all its writers and agents. Neither waits for a
rollback (F14): settle records stay in etcd, and settling resumes with the next HudiTable of that
path, so that a namespace can be deleted although no agent can run in it any more.
"""

from __future__ import annotations

import itertools

from hudi_contract import keys, naming
from hudi_contract.keys import Kind, reporting_attempt
from hudi_contract.naming import EVIDENCE_FINALIZER, SETTLE_FINALIZER, TABLE_KIND, WRITER_KIND
from hudi_contract.records import Stored
from hudi_contract.requests import SavepointDone, named, request_id
from hudi_contract.settle import Phase
from hudi_contract.table_keys import Admit
from hudi_contract.words import FencingMode, GateState, RequestKind, Result, Role
from hudi_operator.api.spec import ObjectRef
from hudi_operator.model import doubts
from hudi_operator.model.facts import PodFacts
from hudi_operator.plan.agent import agent_pods
from hudi_operator.plan.core import trial
from hudi_operator.plan.core.actions import (
    Action,
    DeleteAdmit,
    DeleteDone,
    DeleteReport,
    PatchFinalizers,
    PutAssignment,
    PutRequest,
    Unbind,
)
from hudi_operator.plan.core.partial_plan import PartialPlan, together
from hudi_operator.plan.core.view import View, WriterView
from hudi_operator.plan.fencing import evidence, held_config_maps
from hudi_operator.plan.gate import gate, releasing
from hudi_operator.plan.requests import catalogs, restores
from hudi_operator.plan.writers.runs import Progress

KEPT = 100
"""Records of one kind that outlive their HudiTable, the newest ones."""
DELETED_AT_ONCE = 500


def add_finalizer(kind: str, ref: ObjectRef) -> PatchFinalizers:
    """Add our finalizer to an object."""
    return PatchFinalizers(kind, ref.namespace, ref.name, add=SETTLE_FINALIZER)


def drop_finalizer(kind: str, ref: ObjectRef) -> PatchFinalizers:
    """Remove our finalizer from an object."""
    return PatchFinalizers(kind, ref.namespace, ref.name, remove=SETTLE_FINALIZER)


def has_finalizer(ref: ObjectRef) -> bool:
    """True when the object carries our finalizer."""
    return SETTLE_FINALIZER in ref.finalizers


def writer_waits_for(view: View, writer: WriterView, progress: Progress) -> str:
    """Why a deleted HudiWriter must stay; empty when its finalizer may be removed.

    Uses live facts only (I11).
    """
    if writer.spec is None and not writer.attempts:
        return ""
    if progress.entries and not progress.entries[-1].class_:
        return f"attempt {progress.entries[-1].number} is being stopped"
    for attempt in writer.attempts:
        if attempt.admitted:
            return f"attempt {attempt.number} may still register"
        if not attempt.ended:
            return f"attempt {attempt.number} has just ended"
    left = [i for i in writer.unfinished if i.named or i.phase is not None]
    if left:
        phase = left[0].phase.name if left[0].phase is not None else "registered"
        return f"{left[0].attempt or left[0].inc} is not unlocked ({phase})"
    for pod in view.observed.pods:
        if _of_writer(pod, writer) and _unproven(view, pod):
            return f"pod {pod.name} is not proven dead"
    return ""


def _of_writer(pod: PodFacts, writer: WriterView) -> bool:
    mine = pod.labels.get(naming.LABEL_WRITER) == naming.label_value(writer.name)
    return mine and _hosts_writer(pod)


def _hosts_writer(pod: PodFacts) -> bool:
    return pod.labels.get(naming.LABEL_ROLE) in (naming.ROLE_DRIVER, naming.ROLE_EXECUTOR)


def _unproven(view: View, pod: PodFacts) -> bool:
    """Evidence is dropped only after a proof; mode LeaseOnly does not wait for one."""
    return EVIDENCE_FINALIZER in pod.finalizers and (
        view.mode != FencingMode.LEASE_ONLY or not evidence.dead(view, pod)
    )


def plan_writer(view: View, writer: WriterView, progress: Progress) -> PartialPlan:
    """Drop the finalizer of a deleted HudiWriter when nothing requires it any more."""
    spec = writer.spec
    ref = spec.ref if spec is not None else ObjectRef.from_object(writer.obj)
    if not ref.deleting or not has_finalizer(ref):
        return PartialPlan()
    waiting = writer_waits_for(view, writer, progress)
    if waiting:
        return PartialPlan.of(summary=f"deletion of {ref.name} waits: {waiting}", requeue=2)
    return PartialPlan.of(drop_finalizer(WRITER_KIND, ref), summary=f"{ref.name} may be deleted")


def plan_table(view: View) -> PartialPlan:
    """One step of the deletion of a HudiTable.

    Stop, drop the entries in a catalog when that is wanted, settle, release gate and agent, drop
    the finalizer.
    """
    ref = view.table.ref
    if not has_finalizer(ref):
        return PartialPlan()
    if unknown := ("the gate" if doubts.gate_unreadable(view.etcd) else doubts.undecided(view.etcd)):
        return PartialPlan.of(summary=f"deletion waits: {unknown} cannot be read", requeue=2.0)
    if not trial.over(view):
        return trial.end(view)
    if gate.owned_by_other(view) or (view.etcd.gate is None and not view.incs):
        # It may have had an agent all the same, for a trial or before it gave way.
        if pods := agent_pods.left_over(view):
            return PartialPlan.of(summary=f"deletion waits for {', '.join(pods[:3])}", requeue=2.0)
        leave = (*_unbind(view), *held_config_maps.last(view.observed), drop_finalizer(TABLE_KIND, ref))
        return PartialPlan.of(*leave, summary="nothing to settle, the table may be deleted")
    restore = restores.begun(view)
    if restore is not None and not view.observed.namespace_terminating and gate.is_mine(view):
        # A table in the middle of a restore is unusable: its agent finishes the restore first.
        return PartialPlan.of(summary=f"deletion waits for restore {restore.nonce}, which has begun", requeue=2.0)
    closing = view.gate.state is GateState.OPEN
    if not closing and catalogs.dropping(view):
        return catalogs.await_drop(view)
    release = releasing.plan_release(view)
    if release.actions:
        return release if closing else together([release, catalogs.drop_told(view)])
    leaving = _leave_agents(view)
    waiting = _unsettled_before_unlock(view)
    if not releasing.released(view) or waiting or view.etcd.lock is not None:
        who = ", ".join(waiting[:3]) or "the gate"
        return PartialPlan(leaving.actions, (f"deletion waits for {who}",), 2.0)
    # Nothing else would drop the evidence of these pods afterwards.
    pods = agent_pods.left_over(view) + [
        p.name for p in view.observed.pods if _hosts_writer(p) and EVIDENCE_FINALIZER in p.finalizers
    ]
    if pods:
        return PartialPlan(leaving.actions, (f"deletion waits for {', '.join(pods[:3])}",), 2.0)
    done = _of_nobody(view)
    if len(done) > DELETED_AT_ONCE:
        return PartialPlan(
            (*leaving.actions, *done[:DELETED_AT_ONCE]), (f"{len(done)} records of its agent are deleted first",), 0.5
        )
    unbound = (*leaving.actions, *_forgotten(view), *done, *_unbind(view))
    leave = (*unbound, *held_config_maps.last(view.observed), drop_finalizer(TABLE_KIND, ref))
    return PartialPlan(leave, ("nobody can hold the lock, the table may be deleted",))


def plan_giving_way(view: View) -> PartialPlan:
    """The gate goes to another HudiTable of the path; this one stays, without a gate.

    It is released when no agent of this HudiTable is left that could act behind it: none is
    admitted or registered, and each that died is settled.
    """
    if unknown := ("the gate" if doubts.gate_unreadable(view.etcd) else doubts.undecided(view.etcd)):
        return PartialPlan.of(summary=f"the gate is not released: {unknown} cannot be read", requeue=2.0)
    leaving, waiting = _leave_agents(view), _unsettled_before_unlock(view)
    if leaving.actions or waiting or view.etcd.lock is not None:
        who = ", ".join(waiting[:3]) or "its agent"
        return PartialPlan(
            leaving.actions, (f"releasing the gate for another HudiTable of the same path: waiting for {who}",), 2.0
        )
    return releasing.plan_release(view)


def _forgotten(view: View) -> tuple[Action, ...]:
    """What is nobody's once the agent has left: requests to it, and reports (F619).

    The next HudiTable of the path would find orders that its spec does not give, and the last error
    of this one. What settling still needs stays; the gate and the clock are the path's.
    """
    needed = {inc.attempt for inc in view.incs if not inc.settled}
    requests = [PutRequest(view.table.table_id, id, None) for id in view.etcd.requests]
    reports = [
        DeleteReport(view.table.table_id, kind)
        for kind in view.etcd.reports
        if (reporting_attempt(kind) or "-") not in needed
    ]
    return (*requests, *reports)


def _of_nobody(view: View) -> tuple[Action, ...]:
    """Records of the agent's work that the next HudiTable of the path does not need (F648).

    It needs one of each name of its own, which say how far the path's services, events and metadata
    table are. Of the others it needs the restores, whose nonces must not be executed again, the
    savepoints that the table has, and what incarnations gave up until it is swept: those that the
    spec or a record of settling names, and the newest `KEPT` of each kind.
    """
    spec = view.table
    incs = {keys.abandoned(inc.inc) for inc in view.incs}
    wanted = {request_id(RequestKind.SAVEPOINT, each.name) for each in spec.savepoint_list} | incs
    if spec.restore is not None:
        wanted.add(request_id(RequestKind.RESTORE, spec.restore.nonce))
    kept = {name for name in view.etcd.done if name in wanted or name in Kind.DONE.names}
    newest = sorted(view.etcd.done.items(), key=lambda item: -item[1].mod_revision)
    kept.update(itertools.islice((name for name, _ in newest if named(RequestKind.RESTORE, name)), KEPT))
    kept.update(itertools.islice((name for name, _ in newest if keys.abandoned_by(name)), KEPT))
    taken = (name for name, one in newest if _taken(name, one))
    kept.update(itertools.islice(taken, KEPT))
    return tuple(
        DeleteDone(spec.table_id, name, one.mod_revision) for name, one in view.etcd.done.items() if name not in kept
    )


def _taken(name: str, one: Stored) -> bool:
    """Whether it is the record of a savepoint that the table has, or may have."""
    record = one.read(SavepointDone)
    return bool(named(RequestKind.SAVEPOINT, name)) and record.result not in (Result.FAILED, Result.DELETED)


def _unbind(view: View) -> tuple[Action, ...]:
    """The last HudiTable of an account takes the account's rights along.

    Before the finalizer goes, so that an operator that ends in between does it again. If two are
    deleted at once, each still counts for the other one: the look after the deletion does it then.
    """
    if view.observed.namespace_terminating:
        return ()
    return (Unbind(view.config.driver_role, going=view.table.ref.uid),)


def _leave_agents(view: View) -> PartialPlan:
    """Withdraw the agent's assignment, once no writer is left that it might have to settle.

    Also at an agent that had the table before its spec was changed (F585).
    """
    if gate.writers_left(view):
        return PartialPlan()
    actions: list[Action] = [
        DeleteAdmit(view.table.table_id, attempt)
        for attempt, stored in view.etcd.admits.items()
        if stored.read(Admit).role == Role.AGENT
    ]
    if view.etcd.assignment is not None:
        actions.append(PutAssignment(view.agent, view.table.table_id, None))
    actions.extend(PutAssignment(name, view.table.table_id, None) for name in view.etcd.elsewhere)
    return PartialPlan(tuple(actions))


def _unsettled_before_unlock(view: View) -> tuple[str, ...]:
    """Incarnations that may still hold or get the lock.

    Registered, or settling before phase Unlocked.
    """
    waiting = [
        i for i in view.incs if not i.unlocked and not i.settled and (i.record is not None or i.registration or i.lock)
    ]
    return tuple(
        f"{i.attempt or i.inc} ({(i.phase.name if isinstance(i.phase, Phase) else 'registered')})" for i in waiting
    )
