"""OpenShift's `restricted-v2`, imitated by admission policies of the API server.

In namespaces with the label, a pod that names no user gets the namespace's user, for itself and for
each container, with `fsGroup` and an SELinux level; a pod that names another user is refused.
OpenShift itself cannot run here. The order is the same: its changes are made before policies see
the pod. The rest of its admission is the restricted Pod Security Standard, which the API server
has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from demo import cluster
from demo.cluster import kubectl

JsonDict = dict[str, Any]
USER = 1_000_660_000
LABEL = "platform-users"
LABELS = {LABEL: "assigned"}
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
_POD = "Object.spec.securityContext"
_SECURITY = (
    f"{_POD}{{runAsUser: has(object.spec.securityContext.runAsUser) ? object.spec.securityContext.runAsUser : {USER}, "
    f"fsGroup: has(object.spec.securityContext.fsGroup) ? object.spec.securityContext.fsGroup : {USER}, "
    f'seLinuxOptions: {_POD}.seLinuxOptions{{level: "s0:c26,c5"}}}}'
)
_CONTAINERS = (
    "object.spec.containers.map(c, Object.spec.containers{name: c.name, securityContext: "
    f"Object.spec.containers.securityContext{{runAsUser: {USER}}}}})"
)
_MUTATION = f"Object{{spec: Object.spec{{securityContext: {_SECURITY}, containers: {_CONTAINERS}}}}}"
_VALID = [
    {
        "expression": f"object.spec.securityContext.{field} == {USER}",
        "message": f"unable to validate against any security context constraint: {field} must be {USER}",
    }
    for field in ("runAsUser", "fsGroup")
]


def policies() -> list[JsonDict]:
    """The policies and their bindings."""
    constraints = {
        "namespaceSelector": {"matchLabels": LABELS},
        "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
    }
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": _MUTATION}}
    mutating = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": constraints,
        "mutations": [mutation],
    }
    validating = {"failurePolicy": "Fail", "matchConstraints": constraints, "validations": _VALID}
    made = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": LABEL}}
    return [
        {**made, "kind": "MutatingAdmissionPolicy", "spec": mutating},
        {**made, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": LABEL}},
        {**made, "kind": "ValidatingAdmissionPolicy", "spec": validating},
        {
            **made,
            "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {"policyName": LABEL, "validationActions": ["Deny"]},
        },
    ]


@contextmanager
def platform() -> Iterator[None]:
    """They are there."""
    objects = policies()
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    try:
        yield
    finally:
        for each in objects:
            kubectl("delete", each["kind"], LABEL, "--ignore-not-found")
