"""A user's ``podTemplate`` on top of a pod that the operator has made.

Fields that the operator has set stay: :mod:`hudi_operator.api.pod_template` has checked the
template.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_contract import secret_names
from hudi_operator.api import pod_template

JsonDict = dict[str, Any]

_ATOMIC = (
    "affinity",
    "dnsConfig",
    "preemptionPolicy",
    "priorityClassName",
    "runtimeClassName",
    "schedulerName",
)
_ADDED = ("tolerations", "topologySpreadConstraints", "volumes")
_CONFINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def apply(template: Mapping[str, Any], pod: JsonDict, main: str) -> None:
    """Merge a template into a pod. ``main``: name of the operator's container in it."""
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    for field in ("labels", "annotations"):
        if meta.get(field):
            pod["metadata"][field] = {**meta[field], **pod["metadata"].get(field, {})}
    made = pod["spec"]
    made.update({field: spec[field] for field in _ATOMIC if field in spec})
    for field in _ADDED:
        if spec.get(field):
            made[field] = [*made.get(field, ()), *spec[field]]
    if spec.get("nodeSelector"):
        made["nodeSelector"] = {**spec["nodeSelector"], **made.get("nodeSelector", {})}
    made["securityContext"] = {**made["securityContext"], **(spec.get("securityContext") or {})}
    for container in spec.get("containers") or ():
        if container["name"] == main:
            _into(container, made["containers"][0], spec, main)
        else:
            made["containers"].append(_confined(container))
    if spec.get("initContainers"):
        made["initContainers"] = [_confined(container) for container in spec["initContainers"]]


def _confined(container: JsonDict) -> JsonDict:
    return {**container, "securityContext": {**(container.get("securityContext") or {}), **_CONFINED}}


def _into(wanted: JsonDict, container: JsonDict, spec: JsonDict, main: str) -> None:
    """The operator's own container gets variables, mounts, and resources of other kinds."""
    mounts = wanted.get("volumeMounts") or []
    container["volumeMounts"] = [*container["volumeMounts"], *mounts]
    sources = wanted.get("envFrom") or []
    if sources:
        container["envFrom"] = [*container.get("envFrom", ()), *sources]
    for field, amounts in (wanted.get("resources") or {}).items():
        resources = container.setdefault("resources", {})
        resources[field] = {**amounts, **resources.get(field, {})}
    secret = {v["name"] for v in spec.get("volumes") or () if "secret" in v or "projected" in v}
    prefixes = [each["prefix"] for each in sources if "secretRef" in each]
    _extend(container, secret_names.PREFIXES, prefixes)
    _extend(container, secret_names.FOLDERS, [mount["mountPath"] for mount in mounts if mount["name"] in secret])
    scratch = [mount["mountPath"] for mount in mounts if mount["name"].startswith(pod_template.LOCAL_DIRS)]
    if main != "executor":
        # Spark itself says it to executors.
        _extend(container, "SPARK_LOCAL_DIRS", scratch)


def _extend(container: JsonDict, name: str, values: list[str]) -> None:
    """Add values to a variable that is a list."""
    if not values:
        return
    env = container["env"]
    known = next((each for each in env if each["name"] == name), None)
    before = known["value"].split(",") if known is not None else []
    value = ",".join(sorted({*before, *values}))
    if known is not None:
        known["value"] = value
    else:
        env.append({"name": name, "value": value})
