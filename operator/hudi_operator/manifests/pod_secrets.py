"""Secrets that belong to one pod, by owner reference.

Kubernetes deletes them with it, so the operator needs no right to read or delete Secrets.
"""

from __future__ import annotations

from typing import Any

from hudi_contract import naming
from hudi_operator.model.facts import PodFacts, PodName

JsonDict = dict[str, Any]


def spark_key(namespace: str, pod: PodName) -> JsonDict:
    """The Secret for the key of this pod and its executors; its creator adds the key."""
    return _secret_of(namespace, pod, naming.spark_key_name(pod.name), "spark-key")


def storage_key(pod: PodFacts) -> JsonDict:
    """The Secret with the storage credentials of this pod and its executors, without ``data``."""
    return _secret_of(pod.namespace, PodName(pod.name, pod.uid), naming.storage_key_name(pod.name), "storage-key")


def _secret_of(namespace: str, pod: PodName, name: str, component: str) -> JsonDict:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": naming.common_labels(component),
        "ownerReferences": [owner],
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "immutable": True}
