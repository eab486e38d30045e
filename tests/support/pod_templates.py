"""A podTemplate with everything that users may set."""

from __future__ import annotations

import copy
from typing import Any

JsonDict = dict[str, Any]

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
SCRATCH = {"name": "spark-local-dir-1", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}
GOOD: JsonDict = {
    "metadata": {"labels": {"team": "lake", "kueue.x-k8s.io/queue-name": "q"}, "annotations": {"a/b": "c"}},
    "spec": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
                }
            }
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "nodeSelector": {"disk": "ssd"},
        "priorityClassName": "batch",
        "preemptionPolicy": "Never",
        "runtimeClassName": "gvisor",
        "schedulerName": "volcano",
        "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]},
        "securityContext": {"runAsUser": 100123, "fsGroup": 5, "supplementalGroups": [6]},
        "volumes": [
            SCRATCH,
            {"name": "ca", "configMap": {"name": "company-ca"}},
            {"name": "keys", "secret": {"secretName": "keys", "optional": True}},
            {
                "name": "both",
                "projected": {"sources": [{"secret": {"name": "more"}}, {"configMap": {"name": "settings"}}]},
            },
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "shared", "emptyDir": {"sizeLimit": "1Gi"}},
        ],
        "containers": [
            {
                "name": "driver",
                "envFrom": [
                    {"prefix": "APP_", "secretRef": {"name": "app"}},
                    {"prefix": "MODE_", "configMapRef": {"name": "modes"}},
                ],
                "resources": {"limits": {"nvidia.com/gpu": 1}},
                "volumeMounts": [
                    {"name": "spark-local-dir-1", "mountPath": "/scratch"},
                    {"name": "keys", "mountPath": "/keys", "readOnly": True},
                    {"name": "shared", "mountPath": "/data/shared", "subPath": "a"},
                ],
            },
            {
                "name": "shipper",
                "image": "registry/shipper:1",
                "args": ["--all"],
                "env": [
                    {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "shipper", "key": "token"}}},
                    {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "mode", "key": "a"}}},
                ],
                "volumeMounts": [{"name": "ca", "mountPath": "/etc/ssl/company"}],
            },
        ],
        "initContainers": [
            {"name": "proxy", "image": "registry/proxy:1", "restartPolicy": "Always", "ports": [{"containerPort": 1}]},
            {"name": "fetch", "image": "registry/fetch:1", "command": ["fetch"]},
        ],
    },
}


def changed(path: str, value: Any) -> JsonDict:
    """GOOD with another value at a path, or one more in a list; numbers are places in lists."""
    made = copy.deepcopy(GOOD)
    *way, last = path.split(".")
    node: Any = made
    for name in way:
        node = node[int(name)] if isinstance(node, list) else node.setdefault(name, {})
    if isinstance(node, list):
        node.append(value)
    else:
        node[last] = value
    return made
