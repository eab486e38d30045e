"""Executors by owner.

A pod that was created by a driver or an agent is its executor, whatever labels a template put on it
(F26, F51).
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
    """The same observation, with our labels added to every pod that a driver or an agent owns.

    So none is overlooked.
    """
    owners = _hosts(observed)
    return replace(observed, pods=tuple(_labelled(pod, owners) for pod in observed.pods))


def _labelled(pod: PodFacts, owners: Mapping[str, tuple[str, Mapping[str, str]]]) -> PodFacts:
    owner = next((owners[uid] for uid in pod.owner_uids if uid in owners), None)
    if owner is None or pod.uid in owners:
        return pod
    name, labels = owner
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
        {pod.uid: (pod.name, pod.labels) for pod in observed.pods if pod.labels.get(naming.LABEL_ROLE) in hosts}
    )
    return found


def _named(etcd: EtcdFacts | None) -> dict[str, str]:
    found = [
        stored.read(Registration)
        for group in ((etcd.settles, etcd.writers) if etcd is not None else ())
        for stored in group.values()
    ]
    return {one.pod_uid: one.pod for one in found if one.pod_uid and one.pod}
