"""A table with commits and cleans, and an etcd for holds, in one fake.

It lacks abilities of the real parts: a listing that fails except where a test says so, a put that
is lost, a clean that deletes less than its plan says.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from hudi_runtime.agent.holds import Holds
from hudi_runtime.process.etcd import Entry
from hudi_runtime.settle.settle import Records
from hudi_runtime.table import timeline as tl
from tests.support.world.agent_contexts import context, look

PREFIX = "/hudi/tables/T/"


def t(number: int) -> str:
    return f"20260101000000{number:03d}"


def done(requested: int, completed: int, action: str = "commit") -> str:
    return f"{t(requested)}_{t(completed)}.{action}"


def base(group: str, number: int) -> str:
    return f"{group}_0-1-0_{t(number)}.parquet"


def log(group: str, number: int) -> str:
    return f".{group}_{t(number)}.log.1_0-1-0"


@dataclass
class Fake:
    """Table and etcd in one."""

    names: list[str]
    files: dict[str, list[str]] = field(default_factory=dict)
    """Current files of a partition."""
    deleted: dict[str, set[str]] = field(default_factory=dict)
    """Files that doubtful cleans were to delete."""
    replaced: dict[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    """By the requested time of the commit that replaced them."""
    archived: tuple[tl.Instant, ...] = ()
    kv: dict[str, dict[str, Any]] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    others: list[str] = field(default_factory=list)
    """Agents that may still do something."""
    removing: threading.Lock = field(default_factory=threading.Lock)
    asked: list[tuple[str, ...]] = field(default_factory=list)
    """The cleans whose plans were read."""
    listed: int = 0
    error: Exception | None = None
    gate: Any = "open"
    inc: str = "agent-me"

    def __post_init__(self) -> None:
        self.names = list(self.names)

    # etcd
    def get(self, key: str) -> Entry | None:
        if key not in self.kv:
            return None
        entry = self._entry(key)
        _ = entry.readable
        return entry

    def _entry(self, key: str) -> Entry:
        return Entry(PREFIX + key, self.kv[key], 1, "is not JSON" if key in self.unreadable else "")

    def put(self, key: str, value: dict[str, Any]) -> None:
        self.kv[key] = dict(value)
        self.unreadable.discard(key)

    def delete(self, key: str, revision: int) -> bool:
        assert revision
        del self.kv[key]
        return True

    def records(self) -> Records:
        found = Records.from_entries([self._entry(key) for key in self.kv if key.startswith("done/")], prefix=PREFIX)
        agents = {inc: Entry(inc, {"role": "agent"}, 1) for inc in self.others}
        return Records({}, {}, agents, {}, holds=found.holds)

    # table
    @property
    def storage(self) -> Any:
        return SimpleNamespace(names=lambda partition: self.files.get(partition, []))

    def timeline(self) -> tl.Timeline:
        self.listed += 1
        if self.error is not None:
            raise self.error
        return tl.parse(self.names)

    def has_archive(self) -> bool:
        return bool(self.archived)

    def archived_instants(self) -> tuple[tl.Instant, ...]:
        return self.archived

    def to_be_deleted(self, cleans: tuple[tl.Instant, ...]) -> dict[str, set[str]]:
        self.asked.append(tuple(i.requested for i in cleans))
        return self.deleted

    def written(self, instants: tuple[tl.Instant, ...]) -> Iterator[tuple[tl.Instant, Any]]:
        for instant in instants:
            yield instant, SimpleNamespace(replaced=self.replaced.get(instant.requested, frozenset()))

    archived_written = written

    def holds(self) -> Holds:
        """The agent's own code."""
        table: Any = self
        session: Any = SimpleNamespace(inc=self.inc, etcd=self)
        actions: Any = SimpleNamespace(removing=self.removing)
        made = context(table, session, gate=lambda: self.gate, name="flights")
        object.__setattr__(made, "records", self.records)
        return Holds(made, actions)

    def serve(self, holds: Holds, *requests: dict[str, Any], seen: bool = True) -> None:
        """A pass with these requests; `seen`: after a listing."""
        known = look({str(request["id"]): request for request in requests}, self.records())
        if seen and self.error is None:
            object.__setattr__(known, "timeline", tl.parse(self.names))
        holds.consider(known)
