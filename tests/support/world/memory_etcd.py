"""The agent's view of etcd, in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hudi_runtime.process.etcd import Entry

PREFIX = "/hudi/tables/x/"


class MemoryEtcd:
    """Keys with mod revisions; `before_cas` lets a test change a key just before a compare-and-set.

    It lacks abilities of etcd: a stale read, a lost answer, a denied permission, a lease that ends;
    several keys in one transaction.
    """

    def __init__(self) -> None:
        self.keys: dict[str, Entry] = {}
        self.revision = 0
        self.before_cas: Callable[[str], None] = lambda key: None

    def set(self, key: str, **value: Any) -> None:
        self.revision += 1
        self.keys[key] = Entry(PREFIX + key, value, self.revision)

    def get(self, key: str) -> Entry | None:
        return self.keys.get(key)

    def range(self, prefix: str) -> list[Entry]:
        return [entry for key, entry in sorted(self.keys.items()) if key.startswith(prefix)]

    def ranges(self, *prefixes: str) -> list[list[Entry]]:
        return [self.range(prefix) for prefix in prefixes]

    def cas(self, key: str, value: Mapping[str, Any], revision: int) -> int | None:
        self.before_cas(key)
        current = self.keys.get(key)
        if (current.mod_revision if current else 0) != revision:
            return None
        self.set(key, **value)
        return self.revision

    def delete(self, key: str, revision: int) -> bool:
        current = self.keys.get(key)
        if current is None or current.mod_revision != revision:
            return False
        del self.keys[key]
        return True


class MemorySession:
    """Claims as the Java session does (`InstantProtocol.claim`, `ClaimTest`): only from the present
    executor of an instant, and only when it is settled.

    It lacks abilities of the real one: an answer that is lost, a key that changes between its read
    and its transaction, a fence, permissions.
    """

    inc, table_id, state = "agent", "x", "LIVE"

    def __init__(self, etcd: MemoryEtcd) -> None:
        self.etcd = etcd
        self.refused: list[str] = []

    def claim(self, instant: str, previous: str) -> bool:
        entry, record = self.etcd.get(f"instant/{instant}"), self.etcd.get(f"settle/{previous}")
        if entry is None or previous != (entry.value.get("claimedBy") or entry.value["inc"]):
            return False
        if record is None or record.value["phase"] not in ("RollingBack", "Swept", "Settled"):
            self.refused.append(f"{instant} was to be claimed from {previous}, who is not proven dead")
            return False
        self.etcd.set(f"instant/{instant}", **{**entry.value, "claimedBy": self.inc})
        return True
