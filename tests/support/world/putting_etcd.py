"""The etcd in memory with a plain put, as the runner of table services uses it.

It cannot what `MemoryEtcd` cannot; a put has no lease and always succeeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.world.memory_etcd import MemoryEtcd


class Etcd(MemoryEtcd):
    def put(self, key: str, value: Mapping[str, Any]) -> int:
        self.set(key, **value)
        return self.revision
