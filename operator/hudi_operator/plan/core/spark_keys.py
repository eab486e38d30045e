"""The key between a driver and its executors, one for each driver or agent pod that may have any.

It is created with the pod, which owns it (`control/executor.py`), or by later looks if it may be
missing. Until then the kubelet waits with the pod's start.
"""

from __future__ import annotations

from hudi_contract import naming
from hudi_operator.manifests import pod_secrets, spark_conf
from hudi_operator.model.facts import PodFacts, PodName
from hudi_operator.plan.core.actions import Action, CreateKey


def create(pod: PodFacts) -> tuple[Action, ...]:
    """Create the key of a pod that mounts one and has not started yet."""
    if pod.phase != "Pending" or pod.deleting or naming.spark_key_name(pod.name) not in pod.secrets:
        return ()
    return (CreateKey(pod_secrets.spark_key(pod.namespace, PodName(pod.name, pod.uid)), spark_conf.SPARK_KEY),)
