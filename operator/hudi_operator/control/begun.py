"""Objects that a plan makes for the attempts that it begins."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_contract import naming
from hudi_operator.plan.core import actions as act

JsonDict = dict[str, Any]
Making = act.Apply | act.CreatePod | act.CreateKey | act.GiveCredentials
"""Actions that make an object."""


def attempt_of(action: act.Action) -> str:
    """The attempt that an action begins, or whose pod needs what it makes; empty for others."""
    if isinstance(action, act.PutAdmit | act.Apply | act.GiveCredentials):
        return action.attempt
    if isinstance(action, act.CreatePod):
        meta = action.manifest["metadata"]
        return naming.attempt_id(meta["namespace"], meta["name"])
    if isinstance(action, act.CreateKey):
        meta = action.manifest["metadata"]
        (pod,) = meta["ownerReferences"]
        return naming.attempt_id(meta["namespace"], pod["name"])
    return ""


@dataclass(frozen=True)
class Begun:
    """The objects that a plan makes for one attempt."""

    digest: str
    files: frozenset[str] = frozenset()
    """The ConfigMaps that its pod mounts."""


def made_of_attempts(plan: act.Plan) -> dict[str, list[Making]]:
    """By attempt, the actions of a plan that make something for it."""
    made: dict[str, list[Making]] = {}
    for action in plan.actions:
        if isinstance(action, Making) and (attempt := attempt_of(action)):
            made.setdefault(attempt, []).append(action)
    return made


def begun(made: Sequence[Making]) -> Begun:
    """The objects that these actions make for their attempt."""
    manifests = json.dumps([action.manifest for action in made], sort_keys=True)
    pods = [action.manifest for action in made if isinstance(action, act.CreatePod)]
    return Begun(
        hashlib.sha256(manifests.encode()).hexdigest(), frozenset(name for pod in pods for name in files_of_pod(pod))
    )


def files_of_pod(pod: JsonDict) -> Iterator[str]:
    """The ConfigMaps that a pod mounts."""
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume, *(_object(volume, "projected").get("sources") or ())):
            # A volume of a podTemplate may name none; the API server refuses such a pod.
            if name := _object(source, "configMap").get("name"):
                yield str(name)


def secrets_of_pod(pod: JsonDict) -> frozenset[str]:
    """The Secrets that are volumes of a pod."""
    volumes = pod["spec"].get("volumes") or ()
    return frozenset(str(name) for one in volumes if (name := _object(one, "secret").get("secretName")))


def _object(source: object, name: str) -> Mapping[str, Any]:
    """Empty for any other value: no manifest may end the actions of its table."""
    found = source.get(name) if isinstance(source, Mapping) else None
    return found if isinstance(found, Mapping) else {}
