"""F52: what a real kubelet writes of a pod that it refuses, and what when that pod is deleted: the
evidence that the operator goes by.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from demo import cluster
from demo.cluster import kubectl

from hudi_contract.naming import EVIDENCE_FINALIZER
from hudi_operator.adapters.kubernetes_facts import node_facts, pod_facts
from hudi_operator.model.facts import Nodes
from hudi_operator.model.proof import pod_proof, silent
from tests.support.cluster.space import Space, wait_for

pytestmark = [pytest.mark.extra, pytest.mark.timeout(300)]


def test_a_refused_pod_is_proven_when_it_was_deleted(space: Space) -> None:
    """More CPU than the node has, and no scheduler that would mind."""
    node = cluster.items("nodes")[0]["metadata"]["name"]
    container = {
        "name": "executor",
        "image": "localhost/hudi-operator/spark:dev",
        "command": ["sleep", "60"],
        "resources": {"requests": {"cpu": "1000"}},
    }
    meta = {"name": "refused", "namespace": space.namespace, "finalizers": [EVIDENCE_FINALIZER]}
    spec = {"nodeName": node, "restartPolicy": "Never", "containers": [container]}
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}))

    def found() -> dict[str, Any]:
        return space.get("pod", "refused")

    def kind() -> str:
        nodes = Nodes.of({node}, {node: node_facts(cluster.get("node", node))})
        proof = pod_proof(pod_facts(found()), nodes, hosted=False)
        return proof.kind if proof is not None else ""

    try:
        wait_for("the refusal", lambda: found()["status"]["phase"] == "Failed", seconds=60)
        assert silent(pod_facts(found())), found()["status"]
        assert kind() == ""
        kubectl("delete", "pod", "refused", "-n", space.namespace, "--wait=false", "--grace-period=5")
        wait_for("what the kubelet has found", lambda: not silent(pod_facts(found())), seconds=60)
        print(json.dumps(found()["status"], indent=1))
        assert kind() == "PodTerminated", found()["status"]
    finally:
        kubectl(
            "patch", "pod", "refused", "-n", space.namespace, "--type=merge", "-p", '{"metadata":{"finalizers":null}}'
        )
