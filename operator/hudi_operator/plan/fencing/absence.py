"""Conclusions from the absence of a pod, which need a wide list of pods.

A narrow list has the pods with the table's label, and those of its own agent: all pods that the
operator and its templates make. A wide one also has the executors that a template has left without
our labels, found by their controller (F26, F51), and every agent's pod of the namespace. A pod that
is missing in a narrow list proves nothing. So a look lists widely whenever settling waits for the
last pod of an incarnation, a settle record is collected, evidence or a finalizer may be dropped, or
missing executors are reported.

A node that is missing proves something only where a person has said so, and only when it was asked
for: :func:`named_nodes` has every node of which that may be concluded.

Each function may return True without need, which costs a list; a wrong False would cost a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hudi_contract import naming
from hudi_contract.naming import EVIDENCE_FINALIZER
from hudi_contract.settle import Phase, SettleRecord
from hudi_contract.shape import JsonDict
from hudi_contract.table_keys import Registration
from hudi_operator.model import containers
from hudi_operator.model.facts import EtcdFacts, PodFacts
from hudi_operator.model.objects import Objects
from hudi_operator.model.status import attempt_entries
from hudi_operator.plan.fencing import collection

_HOSTS = (naming.ROLE_DRIVER, naming.ROLE_AGENT)


def in_objects(objects: Objects, timers: Iterable[str]) -> bool:
    """Whether a finalizer of the objects may be dropped, or a settle record collected.

    ``timers``: names of the table's timers. True also for a table that is not there or cannot be
    read whole, because it is not known then.
    """
    found, problem = objects.table_spec
    every = [obj for obj in (objects.table, *objects.writers) if obj is not None]
    return (
        found is None
        or bool(problem)
        or any(obj["metadata"].get("deletionTimestamp") for obj in every)
        or any(name.startswith(collection.TIMER) for name in timers)
    )


def in_pods(objects: Objects, pods: Iterable[PodFacts], *, reports: Callable[[PodFacts], bool]) -> bool:
    """Whether a driver or an agent ends that bears evidence, or executors of one are missing.

    ``reports``: whether missing executors of a driver are about to be reported, or have been. For
    those of a driver that has just started nothing is concluded.
    """
    known = tuple(pods)
    running: dict[str, int] = {}
    for pod in known:
        if pod.labels.get(naming.LABEL_ROLE) == naming.ROLE_EXECUTOR and pod.phase == "Running" and not pod.deleting:
            driver = pod.labels.get(naming.LABEL_DRIVER, "")
            running[driver] = running.get(driver, 0) + 1
    wanted = _wanted(objects.writers)
    return any(
        _ends(pod)
        or (
            _may_have_executors(pod) and running.get(pod.name, 0) < wanted.get(pod.name, 1) and _concludes(pod, reports)
        )
        for pod in known
        if pod.labels.get(naming.LABEL_ROLE) in _HOSTS
    )


def in_keys(etcd: EtcdFacts) -> bool:
    """Whether an incarnation is being settled, or will be: it is fenced without a record."""
    unsettled = any(stored.read(SettleRecord).phase is not Phase.Settled for stored in etcd.settles.values())
    return unsettled or bool(etcd.fences.keys() - etcd.settles.keys())


def named_nodes(pods: Iterable[PodFacts], etcd: EtcdFacts | None) -> frozenset[str]:
    """Names of the nodes of these pods, and of those that etcd names and nobody has settled.

    A settle record names the nodes of its executors, too, whose objects may be gone (F610).
    """
    names = {pod.node for pod in pods}
    if etcd is not None:
        records = (stored.read(SettleRecord) for stored in etcd.settles.values())
        unsettled = [record for record in records if record.phase is not Phase.Settled]
        names |= {stored.read(Registration).node for stored in etcd.writers.values()}
        names |= {record.node for record in unsettled}
        names |= {pod.node for record in unsettled for pod in record.pods.values()}
    return frozenset(names - {""})


def _ends(pod: PodFacts) -> bool:
    return EVIDENCE_FINALIZER in pod.finalizers and (pod.deleting or containers.ended(pod))


def _concludes(pod: PodFacts, reports: Callable[[PodFacts], bool]) -> bool:
    return pod.labels.get(naming.LABEL_ROLE) == naming.ROLE_AGENT or reports(pod)


def _may_have_executors(pod: PodFacts) -> bool:
    """It runs, and shares a key of their connections with them."""
    return pod.phase == "Running" and naming.spark_key_name(pod.name) in pod.secrets


def _wanted(writers: Iterable[JsonDict]) -> Mapping[str, int]:
    """Executors of the attempts that have not ended, by their driver's pod."""
    entries = (entry for obj in writers for entry in attempt_entries(obj.get("status") or {}))
    return {entry.pod: entry.executors for entry in entries if entry.pod and not entry.class_}
