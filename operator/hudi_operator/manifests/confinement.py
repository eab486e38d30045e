"""What keeps an executor from the node and from others, for the admission policy ``drivers``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hudi_operator.model.config import OperatorConfig

JsonDict = dict[str, Any]

_PROFILES = ("seccompProfile", "appArmorProfile")
_IDS = ("runAsUser", "runAsGroup", "fsGroup")
_QUEUED, _KUEUE = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/managed"
"""Kueue keeps the pods of its queues with a finalizer of its own."""


def values(executor: JsonDict, config: OperatorConfig) -> dict[str, str]:
    """Values of the driver's ConfigMap, from the executor that the operator has rendered.

    Lists, separated by commas, and by bars where profiles are named. No users and groups where the
    platform gives them to pods: nobody knows them before.
    """
    meta, spec = executor["metadata"], executor["spec"]
    finalizers = [*meta["finalizers"], *([_KUEUE] if _QUEUED in meta["labels"] else [])]
    found = {
        "executor-profiles": "|".join(sorted(_profiles(spec))),
        "executor-finalizers": ",".join(finalizers),
        "executor-pull-secrets": ",".join(secret["name"] for secret in spec.get("imagePullSecrets", ())),
    }
    return found if config.user_ids == "Platform" else {**found, "executor-ids": ",".join(sorted(set(_ids(spec))))}


def _contexts(spec: JsonDict) -> Iterator[tuple[str, JsonDict]]:
    """Security contexts of a pod and of its containers, with what is before their fields."""
    yield "", spec["securityContext"]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        yield f"{container['name']}/", container.get("securityContext") or {}


def _profiles(spec: JsonDict) -> Iterator[str]:
    for at, context in _contexts(spec):
        for kind in _PROFILES:
            if profile := context.get(kind):
                yield f"{at}{kind}={profile['type']}:{profile.get('localhostProfile', '')}"


def _ids(spec: JsonDict) -> Iterator[str]:
    for at, context in _contexts(spec):
        yield from (f"{at}{field}={context[field]}" for field in _IDS if context.get(field) is not None)
        yield from (f"{at}supplementalGroups={group}" for group in context.get("supplementalGroups") or ())
