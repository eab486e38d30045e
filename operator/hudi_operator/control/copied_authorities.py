"""The certificate authority of the gateway that this process last copied into each namespace.

Not kept across a failover: the next leader copies it once more.
"""

from __future__ import annotations

from typing import Any

from hudi_operator.manifests.namespace import ETCD_CONFIG_MAP

JsonDict = dict[str, Any]


class CopiedAuthorities:
    """Certificate authorities by namespace."""

    def __init__(self) -> None:
        """Nothing was copied by this process."""
        self._authorities: dict[str, str] = {}

    def applied(self, manifest: JsonDict) -> None:
        """Note an object that was applied."""
        if (manifest["kind"], manifest["metadata"]["name"]) == ("ConfigMap", ETCD_CONFIG_MAP):
            self._authorities[manifest["metadata"]["namespace"]] = manifest["data"]["ca.crt"]

    def authority(self, namespace: str) -> str:
        """Empty when this process has copied none."""
        return self._authorities.get(namespace, "")
