"""Agent pods of a namespace.

Superseded and unused ones are ended, and evidence is dropped when no table needs it any more.

An agent serves several tables, so its pod is evidence for all of them: each table's settle record
needs the proof. Any HudiTable of the namespace may do this; all of them come to the same decision
from the same facts.
"""

from __future__ import annotations

from collections.abc import Iterable

from hudi_contract import naming
from hudi_contract.naming import EVIDENCE_FINALIZER
from hudi_contract.settle import Phase, SettleRecord
from hudi_contract.table_keys import Registration
from hudi_operator.model import containers, doubts
from hudi_operator.model.facts import EtcdFacts, PodFacts
from hudi_operator.model.proof import Subject, prove, silent
from hudi_operator.plan.agent import agents
from hudi_operator.plan.core.actions import Action, DeleteAdmit, DeleteObject, DeletePod, DropEvidence
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View
from hudi_operator.plan.requests import catalogs, restores

STOP_GRACE_SECONDS = 30
KEPT_AGENT_PODS = 3
"""Number of ended pods of one agent that are kept, for their logs and for the back-off."""


def unproven_uids(etcd: EtcdFacts) -> frozenset[str]:
    """Uids of pods whose death must still be proven for one table.

    Their incarnation is registered, or it is being settled and has not reached phase Draining.
    """
    found = {s.read(Registration).pod_uid for inc, s in etcd.writers.items() if inc not in etcd.settles}
    for stored in etcd.settles.values():
        record = stored.read(SettleRecord)
        if record.phase < Phase.Draining:
            found |= {record.pod_uid, *record.pods} - record.proven
    return frozenset(found - {""})


def needed_uids(etcd: EtcdFacts, pods: Iterable[PodFacts]) -> frozenset[str]:
    """Uids of pods whose evidence one table needs.

    Their death must still be proven, or they are one of these ``pods`` and admitted: a registration
    that is on its way would be of a pod without any object (F615).
    """
    admitted = {pod.uid for pod in pods if _attempt(pod) in etcd.admits}
    return unproven_uids(etcd) | admitted


def _attempt(pod: PodFacts) -> str:
    return naming.attempt_id(pod.namespace, pod.name)


def leaving(pod: PodFacts) -> bool:
    """True when the JVM of an agent pod has ended, or the pod is being deleted.

    The needs of other tables are read only for such pods.
    """
    return pod.deleting or containers.ended(pod)


def _pods(view: View) -> list[PodFacts]:
    return [
        p
        for p in view.observed.pods
        if p.labels.get(naming.LABEL_ROLE) == naming.ROLE_AGENT and p.namespace == view.table.ref.namespace
    ]


def _in_use(view: View, pod: PodFacts) -> bool:
    """True when this pod's agent serves a HudiTable, or when that is unknown."""
    name = pod.labels.get(naming.LABEL_AGENT, "")
    if view.observed.namespace_terminating:
        return False
    needed = not view.table.ref.deleting or restores.begun(view) is not None or catalogs.dropping(view)
    mine = name == view.agent and needed
    return view.observed.agents_in_use is None or name in view.observed.agents_in_use or mine


def left_over(view: View) -> list[str]:
    """Agent pods that still carry evidence and would be left without a HudiTable to handle them."""
    known = view.observed.agents_in_use is not None and view.observed.evidence_needed is not None
    return [p.name for p in _pods(view) if known and not _in_use(view, p) and EVIDENCE_FINALIZER in p.finalizers]


def plan_agent_pods(view: View) -> PartialPlan:
    """One step for the agent pods of the namespace.

    Nothing while it is unknown which other tables need them.
    """
    if view.observed.agents_in_use is None or view.observed.evidence_needed is None:
        return PartialPlan()
    actions: list[Action] = []
    for pod in _pods(view):
        if _proven(view, pod):
            actions.extend(_of_ended(view, pod))
        elif not pod.deleting and _to_be_ended(view, pod):
            actions.append(DeletePod(pod.namespace, pod.name, pod.uid, STOP_GRACE_SECONDS))
    return PartialPlan(tuple(actions))


def _to_be_ended(view: View, pod: PodFacts) -> bool:
    if pod.phase in containers.TERMINAL:
        return silent(pod)
    return not _in_use(view, pod) or _superseded(view, pod) or containers.held(pod)


def _proven(view: View, pod: PodFacts) -> bool:
    recorded = any(pod.uid in i.settling.proven for i in view.incs)
    hosted = any(i.pod_uid == pod.uid for i in view.incs)
    subject = Subject(uid=pod.uid, name=pod.name, node=pod.node, hosted=hosted)
    return recorded or prove(subject, pod, view.nodes, view.table.fencing) is not None


def _of_ended(view: View, pod: PodFacts) -> list[Action]:
    if EVIDENCE_FINALIZER in pod.finalizers:
        if leaving(pod) and _attempt(pod) in view.etcd.admits:
            # The next look sees whether it has registered before that.
            return [DeleteAdmit(view.table.table_id, _attempt(pod))]
        needed = (
            doubts.unplaced(view.etcd)
            or pod.uid in unproven_uids(view.etcd)
            or pod.uid in (view.observed.evidence_needed or frozenset())
        )
        if needed:
            return []
        if not leaving(pod):
            # Its node or a person says that it is dead. Other tables are asked for it next (F290).
            return [DeletePod(pod.namespace, pod.name, pod.uid, STOP_GRACE_SECONDS)]
        # Each generation of a table's own agent has a ConfigMap. It is deleted first: nothing
        # refers to it once the pod is gone. If the agent has executors, the ConfigMap is deleted
        # with the pod's object (F200).
        config_map = [DeleteObject("ConfigMap", pod.namespace, pod.name)] if naming.LABEL_TABLE in pod.labels else []
        return [*config_map, DropEvidence(pod.namespace, pod.name, pod.uid)]
    if pod.deleting:
        return []
    same = [p for p in _pods(view) if p.labels.get(naming.LABEL_AGENT) == pod.labels.get(naming.LABEL_AGENT)]
    newer = sum(1 for p in same if agents.generation_of(p) > agents.generation_of(pod))
    # The newest is kept: the next generation's number follows from its number.
    return (
        [DeleteObject("Pod", pod.namespace, pod.name, pod.uid)]
        if newer >= KEPT_AGENT_PODS or not _in_use(view, pod)
        else []
    )


def _superseded(view: View, pod: PodFacts) -> bool:
    """True when a newer generation already serves."""
    current = agents.current_pod(view)
    mine = pod.labels.get(naming.LABEL_AGENT) == view.agent
    return (
        mine
        and current is not None
        and agents.serving(view)
        and agents.generation_of(pod) < agents.generation_of(current)
    )
