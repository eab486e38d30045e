"""A cluster that is played for the plugin: objects, patches, and who changes what meanwhile.

It judges nothing: admission is the API server's (`component/crds/test_kubectl.py`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import TABLE, WRITER

JsonDict = dict[str, Any]
_KINDS = {"HudiTable": TABLE, "HudiWriter": WRITER, "Pod": "pods", "Job": "jobs.batch", "ConfigMap": "configmaps"}


class Played(Kubectl):
    """``meanwhile``: called before each patch. ``later``: one by one, before reads that come after
    more patches than ``asked_before``.
    """

    def __init__(self, *objects: JsonDict) -> None:
        super().__init__()
        self.there = {(_KINDS[one["kind"]], one["metadata"]["name"]): copy.deepcopy(one) for one in objects}
        self.patches: list[JsonDict] = []
        self.dry: list[str] = []
        self.meanwhile: list[Callable[[], None]] = []
        self.later: list[Callable[[], None]] = []
        self.asked_before = 0
        self._version = 1

    def within(self, namespace: str) -> Played:
        return self

    def touched(self, kind: str, name: str) -> JsonDict:
        """An object, to be changed in place by somebody else."""
        self._version += 1
        found = self.there[kind, name]
        found["metadata"]["resourceVersion"] = str(self._version)
        return found

    def get(self, kind: str, name: str) -> JsonDict:
        if len(self.patches) > self.asked_before and self.later:
            self.later.pop(0)()
        if (kind, name) not in self.there:
            raise Failed(f'Error from server (NotFound): {kind} "{name}" not found')
        return copy.deepcopy(self.there[kind, name])

    def objects(self, kind: str, *, everywhere: bool = False, selector: str = "") -> list[JsonDict]:
        return [copy.deepcopy(raw) for (of, _), raw in self.there.items() if of == kind]

    def patch(self, kind: str, name: str, change: JsonDict, *, dry_run: str = "none") -> JsonDict:
        if self.meanwhile:
            self.meanwhile.pop(0)()
        found = copy.deepcopy(self.there[kind, name])
        version = change.get("metadata", {}).get("resourceVersion")
        if version is not None and version != found["metadata"].get("resourceVersion"):
            raise Failed(
                f"Error from server (Conflict): Operation cannot be fulfilled on {kind} {name!r}: the object has been "
                "modified; please apply your changes to the latest version and try again"
            )
        self.dry.append(dry_run)
        _merge(found, change)
        if dry_run != "none":
            return found
        self.patches.append({key: value for key, value in change.items() if key != "metadata" or len(value) > 1})
        self.there[kind, name] = found
        self.touched(kind, name)
        return copy.deepcopy(found)

    def user(self) -> str:
        return "ann"


def _merge(into: JsonDict, change: JsonDict) -> None:
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = copy.deepcopy(value)
