"""Conditions for dropping the evidence (our finalizer) of a driver or executor.

It also decides which pods are left over.

Evidence is dropped only when it is no longer needed: its proof is in a settle record (F14), or the
pod has provably ended and no key names an incarnation of its attempt. Agent pods are evidence for
several tables: see :mod:`hudi_operator.plan.agent.agent_pods`.
"""

from __future__ import annotations

import math

from hudi_contract import keys, naming
from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_contract.naming import EVIDENCE_FINALIZER
from hudi_contract.settle import Phase
from hudi_contract.table_keys import Admit
from hudi_contract.words import FencingMode, Role
from hudi_operator.model import conditions, containers
from hudi_operator.model.facts import PodFacts
from hudi_operator.model.proof import Subject, prove, ran_out, silent, ways_out
from hudi_operator.plan.core.actions import Action, DeleteAdmit, DeleteObject, DeleteReport
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import Attempt, Incarnation, View
from hudi_operator.plan.fencing import revocation
from hudi_operator.plan.fencing.settling import PROOF_EXPECTED_SECONDS, kill


def plan_evidence(view: View) -> PartialPlan:
    """Drop evidence that is not needed, and delete pods and keys that are left over."""
    actions: list[Action] = []
    for pod in view.observed.pods:
        role = pod.labels.get(naming.LABEL_ROLE)
        if role in (naming.ROLE_DRIVER, naming.ROLE_EXECUTOR):
            actions.extend(_plan_pod(view, pod, executor=role == naming.ROLE_EXECUTOR))
    old, requeue = _old_pods(view)
    actions.extend(old)
    actions.extend(_old_reports(view))
    actions.extend(_orphan_admits(view))
    return PartialPlan(tuple(actions), requeue=requeue)


def _plan_pod(view: View, pod: PodFacts, *, executor: bool) -> list[Action]:
    driver = pod.labels.get(naming.LABEL_DRIVER, "")
    attempt_id = naming.attempt_id(pod.namespace, driver)
    incs = [i for i in view.incs if i.attempt == attempt_id and not i.settled]
    if any(pod.uid in i.settling.proven for i in view.incs):
        return _drop(view, pod)
    if (
        any(i.record is not None and (i.phase or Phase.Fenced) < Phase.Draining for i in incs)
        and view.mode != FencingMode.LEASE_ONLY
    ):
        return []  # settling writes the proof first (F14)
    if any(i.record is None for i in incs):
        if executor:
            return _of_living(view, pod)
        # A driver whose HudiWriter was deleted with cascade=orphan is stopped with the table.
        orphan = view.stopping and _attempt(view, attempt_id) is None and not pod.deleting
        return [kill(pod)] if orphan else []
    if any(not i.attempt for i in view.incs if not i.settled):
        return []  # an incarnation without a known pod may belong to this pod
    return _of_ended(view, pod, _attempt(view, attempt_id), attempt_id, executor=executor, incs=incs)


def _of_living(view: View, pod: PodFacts) -> list[Action]:
    """Actions for an executor that ended while its driver lives.

    An executor whose status will not change before it is deleted is treated alike.

    Its object is deleted together with the evidence: a pod that is seen without evidence is
    unproven (F26). So the evidence stays while anything else keeps the object (F611).
    """
    if not dead(view, pod):
        return [kill(pod)] if (containers.held(pod) or silent(pod)) and not pod.deleting else []
    if not pod.deleting:
        return [kill(pod)]
    return _drop(view, pod) if pod.goes_with(EVIDENCE_FINALIZER) else []


def _of_ended(
    view: View, pod: PodFacts, attempt: Attempt | None, attempt_id: str, *, executor: bool, incs: list[Incarnation]
) -> list[Action]:
    """A pod of an attempt that no key names, or whose incarnations are all proven dead.

    The latter is a late executor (F14).
    """
    if not incs and (attempt_id in view.etcd.admits or (attempt is not None and not attempt.ended)):
        return []  # it may still register
    if not dead(view, pod):
        # A pod whose containers have all ended is left to the kubelet, and its log is
        # kept for people.
        return [] if pod.deleting or ran_out(pod) or containers.winding_down(pod) else [kill(pod)]
    # Its node or a person may say that a pod is dead whose own status says that it runs.
    leaves = pod.deleting or (not executor and containers.ended(pod))
    return _drop(view, pod) if leaves else [kill(pod)]


def dead(view: View, pod: PodFacts) -> bool:
    """Whether the pod itself, its node, or a person proves its death (F613).

    For pods that no settle record names.
    """
    return prove(_subject(view, pod), pod, view.nodes, view.table.fencing) is not None


def _subject(view: View, pod: PodFacts) -> Subject:
    executor = pod.labels.get(naming.LABEL_ROLE) == naming.ROLE_EXECUTOR
    return Subject(uid=pod.uid, name=pod.name, node=pod.node, hosted=not executor and _has_registered(view, pod))


def _has_registered(view: View, pod: PodFacts) -> bool:
    attempt_id = naming.attempt_id(pod.namespace, pod.name)
    attempt = _attempt(view, attempt_id)
    told = attempt is not None and bool(attempt.entry.incarnation)
    return told or any(i.attempt == attempt_id and not i.settled for i in view.incs)


def unproven(view: View) -> list[str]:
    """Steps for pods that should have ended long ago, and that no settle record names.

    One sentence for each, for people.
    """
    unsettled = [inc for inc in view.incs if not inc.settled]
    told = {uid for inc in unsettled for uid in (inc.pod_uid, *inc.settling.pods, *inc.settling.proofs)}
    told |= {uid for inc in view.incs for uid in inc.settling.proven}
    found = []
    for pod in view.observed.pods:
        over = conditions.from_rfc3339(pod.deleted_at)
        if not _concerns(view, pod) or not pod.deleting or over is None or EVIDENCE_FINALIZER not in pod.finalizers:
            continue
        overdue = view.earliest_ms - over > 1000 * PROOF_EXPECTED_SECONDS
        if overdue and pod.uid not in told and not dead(view, pod):
            found.append(ways_out(_subject(view, pod), pod, view.nodes, view.table.fencing))
    return found


def _concerns(view: View, pod: PodFacts) -> bool:
    """Whether this table waits for the proof of a pod's death.

    Of agents for its own one; while it is deleted for all, because it may be the last HudiTable.
    """
    role = pod.labels.get(naming.LABEL_ROLE)
    if role == naming.ROLE_AGENT:
        mine = pod.labels.get(naming.LABEL_AGENT) == view.agent or view.table.ref.deleting
        return mine and pod.namespace == view.table.ref.namespace
    return role in (naming.ROLE_DRIVER, naming.ROLE_EXECUTOR)


def _attempt(view: View, attempt_id: str) -> Attempt | None:
    return next((a for w in view.writers for a in w.attempts if a.id == attempt_id), None)


def _drop(view: View, pod: PodFacts) -> list[Action]:
    return [*revocation.released(view, pod)]


def _old_pods(view: View) -> tuple[list[Action], float]:
    """Objects of attempts that are kept no longer, and the seconds until the next ones are."""
    actions: list[Action] = []
    requeue = LONGEST_PAUSE_SECONDS
    for writer in view.writers:
        if writer.spec is None:
            continue  # how long they are kept is not known
        ended = [attempt for attempt in writer.attempts if attempt.ended]
        for newer, attempt in enumerate(reversed(ended)):
            pod = attempt.pod
            needed = pod is not None and EVIDENCE_FINALIZER in pod.finalizers
            if pod is None or pod.deleting or needed or any(not inc.settled for inc in attempt.incs):
                continue
            left = _kept_seconds(view, attempt)
            if newer >= attempt.writer.pod_history.limit or left <= 0:
                actions.append(DeleteObject("Pod", pod.namespace, pod.name, pod.uid))
                actions.append(DeleteObject("ConfigMap", pod.namespace, pod.name))
            else:
                requeue = min(requeue, max(1.0, left))
    return actions, requeue


def _kept_seconds(view: View, attempt: Attempt) -> float:
    """Seconds for which the objects of an ended attempt are still kept."""
    ttl, end = attempt.writer.pod_history.ttl_seconds, conditions.from_rfc3339(attempt.entry.end_time)
    return math.inf if ttl is None or end is None else ttl - (view.now_ms - end) / 1000


def _orphan_admits(view: View) -> list[Action]:
    """Admissions of attempts that no writer's status names.

    The status is written before the admission, so the writer is gone.
    """
    known = {a.id for w in view.writers for a in w.attempts}
    if any(w.spec is None for w in view.writers):
        return []
    orphans = [a for a, stored in view.etcd.admits.items() if stored.read(Admit).role != Role.AGENT and a not in known]
    return [DeleteAdmit(view.table.table_id, attempt) for attempt in orphans]


def _old_reports(view: View) -> list[Action]:
    """Reports of attempts that neither a writer's status nor an incarnation names any more."""
    known = {a.id for w in view.writers for a in w.attempts} | {i.attempt for i in view.incs if not i.settled}
    unreadable = any(w.spec is None for w in view.writers)
    stale = [k for k in view.etcd.reports if (attempt := keys.reporting_attempt(k)) and attempt not in known]
    return [] if unreadable else [DeleteReport(view.table.table_id, kind) for kind in stale]
