"""Pods by the role that the operator gave them, and executors by owner.

A pod whose controller is a driver or an agent, by name and uid, is its executor, whatever labels a
template put on it (F26, F51). Spark makes each executor so, and a template cannot change it; any
other owner reference to a driver says nothing (F356). Any other pod without a role, or with one
that does not fit its name, is nobody's: it is neither counted nor acted upon, whatever its other
labels say (F205).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hudi_contract import naming
from hudi_contract.table_keys import Registration
from hudi_operator.model.facts import EtcdFacts, Observed, PodFacts
from hudi_operator.model.status import attempt_entries

_CARRIED = (naming.LABEL_TABLE, naming.LABEL_WRITER, naming.LABEL_ATTEMPT)


def labelled(observed: Observed) -> Observed:
    """The same observation: with our labels on every pod that a driver or an agent controls.

    Pods without a role of ours are left out.
    """
    owners = _hosts(observed)
    pods = (_labelled(pod, owners) for pod in observed.pods)
    return replace(observed, pods=tuple(pod for pod in pods if has_role(pod)))


def has_role(pod: PodFacts) -> bool:
    """Whether it has a role that the operator gives to a pod of this name."""
    role, driver = pod.labels.get(naming.LABEL_ROLE), pod.labels.get(naming.LABEL_DRIVER, "")
    if role == naming.ROLE_AGENT:
        agent = pod.labels.get(naming.LABEL_AGENT, "")
        return bool(agent) and pod.name.startswith(f"{agent}-")
    if role == naming.ROLE_DRIVER:
        return driver == pod.name
    return role == naming.ROLE_EXECUTOR and bool(driver)


def _labelled(pod: PodFacts, owners: Mapping[str, tuple[str, Mapping[str, str]]]) -> PodFacts:
    if pod.controller is None or pod.uid in owners:
        return pod
    name, labels = owners.get(pod.controller.uid, ("", {}))
    if name != pod.controller.name:
        return pod
    own = {naming.LABEL_ROLE: naming.ROLE_EXECUTOR, naming.LABEL_DRIVER: name}
    return replace(pod, labels={**{key: labels[key] for key in _CARRIED if key in labels}, **pod.labels, **own})


def _hosts(observed: Observed) -> dict[str, tuple[str, Mapping[str, str]]]:
    """Name and labels of pods that may own executors, by uid.

    For a pod whose object is gone they come from etcd and status.
    """
    hosts = (naming.ROLE_DRIVER, naming.ROLE_AGENT)
    found: dict[str, tuple[str, Mapping[str, str]]] = {uid: (name, {}) for uid, name in _named(observed.etcd).items()}
    for writer in observed.writers:
        for entry in attempt_entries(writer.get("status") or {}):
            if entry.pod_uid and entry.pod:
                found[entry.pod_uid] = (entry.pod, {})
    found.update(
        {
            pod.uid: (pod.name, pod.labels)
            for pod in observed.pods
            if pod.labels.get(naming.LABEL_ROLE) in hosts and has_role(pod)
        }
    )
    return found


def _named(etcd: EtcdFacts | None) -> dict[str, str]:
    found = [
        stored.read(Registration)
        for group in ((etcd.settles, etcd.writers) if etcd is not None else ())
        for stored in group.values()
    ]
    return {one.pod_uid: one.pod for one in found if one.pod_uid and one.pod}
