"""Sidecars like those of a service mesh or a vault: an admission policy of the API server adds one
more container to every pod of ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from demo import cluster
from demo.cluster import kubectl

JsonDict = dict[str, Any]
NAME = "beside"
_CONTAINER = (
    '{name: "beside", image: "localhost/hudi-operator/spark:dev", imagePullPolicy: "IfNotPresent", command: ["sleep", '
    '"infinity"]%s}'
)
_ORDINARY = "Object.spec.containers" + _CONTAINER % ""
_NATIVE = "Object.spec.initContainers" + _CONTAINER % ', restartPolicy: "Always"'
_EXPRESSIONS = {
    "container": f'[JSONPatch{{op: "add", path: "/spec/containers/-", value: {_ORDINARY}}}]',
    # Our pods have no init containers.
    "sidecar": f'[JSONPatch{{op: "add", path: "/spec/initContainers", value: [{_NATIVE}]}}]',
}


def policy(kind: str, namespace: str) -> list[JsonDict]:
    """Policy and binding: ``container`` (an ordinary one) or ``sidecar`` (an init container that is
    restarted), neither of which ever ends by itself.
    """
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    constraints = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "objectSelector": {"matchExpressions": [{"key": "hudioperator.io/role", "operator": "Exists"}]},
        "resourceRules": [rule],
    }
    mutations = [{"patchType": "JSONPatch", "jsonPatch": {"expression": _EXPRESSIONS[kind]}}]
    spec = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": constraints,
        "mutations": mutations,
    }
    made = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": f"{NAME}-{kind}"}}
    return [
        {**made, "kind": "MutatingAdmissionPolicy", "spec": spec},
        {**made, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": f"{NAME}-{kind}"}},
    ]


@contextmanager
def injected(kind: str, namespace: str) -> Iterator[None]:
    """Every new pod of ours in the namespace gets such a container."""
    objects = policy(kind, namespace)
    try:
        for item in objects:
            cluster.apply(json.dumps(item))
        yield
    finally:
        for item in objects:
            kubectl("delete", item["kind"], item["metadata"]["name"], "--ignore-not-found")
