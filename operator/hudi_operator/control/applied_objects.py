"""Objects that this process has last applied to each namespace.

They are intentionally lost at a failover: everything is then applied once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from hudi_operator.manifests.namespace import ETCD_CONFIG_MAP

JsonDict = dict[str, Any]
KEPT_SECONDS = 300.0
"""Seconds for which an applied object is assumed to exist."""
KEY_SECONDS = 60.0
"""Seconds for which the key of a pod that waits for it is assumed to exist."""
_MOST = 10_000
"""Objects that are remembered; then all are forgotten."""


class AppliedObjects:
    """Objects of namespaces, and certificate authorities by namespace."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing was applied by this process."""
        self._clock = clock
        self._authorities: dict[str, str] = {}
        self._objects: dict[tuple[str, str, str], tuple[str, JsonDict, float]] = {}
        self._readable: dict[str, tuple[str, float]] = {}
        self._keys: dict[str, float] = {}

    def applied(self, manifest: JsonDict) -> None:
        """Note an object that was applied."""
        if (manifest["kind"], manifest["metadata"]["name"]) == ("ConfigMap", ETCD_CONFIG_MAP):
            self._authorities[manifest["metadata"]["namespace"]] = manifest["data"]["ca.crt"]

    def authority(self, namespace: str) -> str:
        """Empty when this process has copied none."""
        return self._authorities.get(namespace, "")

    def ensured(self, manifest: JsonDict, *, namespace_uid: str) -> None:
        """Note that an object of a namespace was applied. The uid may be unknown, then empty."""
        if len(self._objects) >= _MOST:
            self._objects.clear()
        self._objects[_name(manifest)] = (namespace_uid, manifest, self._clock())

    def is_ensured(self, manifest: JsonDict, *, namespace_uid: str) -> bool:
        """Whether the very same was applied to this namespace a short while ago."""
        uid, known, at = self._objects.get(_name(manifest), ("", {}, 0.0))
        return (uid, known) == (namespace_uid, manifest) and self._clock() - at < KEPT_SECONDS

    def reads_secrets(self, namespace: str, *, namespace_uid: str) -> None:
        """Note that Secrets of a namespace were read."""
        if len(self._readable) >= _MOST:
            self._readable.clear()
        self._readable[namespace] = (namespace_uid, self._clock())

    def may_read_secrets(self, namespace: str, *, namespace_uid: str) -> bool:
        """Whether Secrets of this namespace were read a short while ago."""
        uid, at = self._readable.get(namespace, ("", 0.0))
        return namespace in self._readable and uid == namespace_uid and self._clock() - at < KEPT_SECONDS

    def made_key(self, pod_uid: str) -> None:
        """Note that the key of a pod is there."""
        if len(self._keys) >= _MOST:
            self._keys.clear()
        self._keys[pod_uid] = self._clock()

    def has_key(self, pod_uid: str) -> bool:
        """Whether the key of this pod was there a moment ago."""
        return self._clock() - self._keys.get(pod_uid, float("-inf")) < KEY_SECONDS

    def forget(self, namespace: str) -> None:
        """Something is missing in a namespace: apply everything again."""
        self._readable.pop(namespace, None)
        self._objects = {name: noted for name, noted in self._objects.items() if name[0] != namespace}


def _name(manifest: JsonDict) -> tuple[str, str, str]:
    meta = manifest["metadata"]
    return (meta["namespace"], manifest["kind"], meta["name"])
