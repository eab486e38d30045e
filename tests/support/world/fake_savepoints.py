"""A table with two commits, a session and an etcd for savepoints, in one fake.

It lacks abilities of the real parts: a lock that somebody else has or that is lost, a compare that
fails, a lost answer; a put compares nothing, and a savepoint has no files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from hudi_runtime.process.etcd import Entry
from hudi_runtime.table import timeline as tl

T1, T2, T3, T4, T5 = (f"2026010100000000{n}" for n in range(1, 6))
COMMITS = [f"{T1}_{T4}.commit", f"{T2}_{T3}.commit"]


@dataclass
class Fake:
    """Table, session and etcd in one: what happens to the timeline is what Hudi does."""

    names: list[str]
    comments: dict[str, str] = field(default_factory=dict)
    kv: dict[str, dict[str, Any]] = field(default_factory=dict)
    recorded: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    fails: int = 0
    fails_at_deletion: str = ""
    gate: str = "closed"
    revision: int = 1
    """Revision of the gate."""
    reopens: int = 0
    """Number of times that the gate is put while a savepoint is taken."""
    overtakes: str = ""
    """A commit that completes before the lock is given to a savepoint, behind another gate."""
    behind: dict[str, int] = field(default_factory=dict)

    # etcd
    def get(self, key: str) -> Entry | None:
        return Entry(key, self.kv[key], 1) if key in self.kv else None

    def put(self, key: str, value: dict[str, Any]) -> None:
        self.kv[key] = dict(value)

    def range(self, prefix: str) -> list[Entry]:
        return [Entry(key, self.kv[key], 1) for key in sorted(self.kv) if key.startswith(prefix)]

    # session
    def pending(self) -> list[str]:
        return list(self.recorded)

    def begin_savepoint(self, instant: str) -> None:
        assert self.log[-1:] == ["lock"], "under the lock"
        self.log.append(f"begin {instant}")
        self.recorded.append(instant)
        self.behind[instant] = self.revision

    def abandon(self, instant: str) -> bool:
        self.recorded.remove(instant)
        return True

    # table
    def timeline(self) -> tl.Timeline:
        return tl.parse(self.names)

    def savepoint_with(self, timeline: tl.Timeline, comment: str) -> tl.Instant | None:
        return next(
            (s for s in timeline.savepoints if not s.pending and self.comments.get(s.requested) == comment), None
        )

    def savepoint_comment(self, requested: str) -> str:
        assert self.log[-1:] == ["lock"], "nobody has replaced it since"
        self.log.append(f"read {requested}")
        return self.comments.get(requested, "")

    @property
    def store(self) -> Any:
        return SimpleNamespace(delete=self.delete, names=lambda folder: list(self.names))

    def write_config(self, name: str, options: dict[str, str]) -> str:
        return name

    @contextmanager
    def locked(self, config: Any) -> Iterator[None]:
        self.log.append("lock")
        if self.overtakes:
            self.revision += 2
            self.names.append(self.overtakes)
            self.overtakes = ""
        yield
        self.log.append("unlock")

    @contextmanager
    def client(self, config: Any) -> Iterator[Any]:
        yield self

    def savepoint(self, instant: str, user: str, comment: str) -> None:
        assert instant in self.recorded, "not without its record"
        if f"{instant}.savepoint.inflight" in self.names:
            raise ValueError("the savepoint was begun before")
        self.names.append(f"{instant}.savepoint.inflight")
        if self.fails:
            self.fails -= 1
            raise ValueError("the store has failed")
        if self.reopens:
            self.reopens -= 1
            self.revision += 2
        if self.behind[instant] != self.revision:
            raise ValueError("HUDIOP-NOT-PENDING: the gate has changed")
        self.names.append(f"{instant}_{T5}.savepoint")
        self.comments[instant] = comment
        self.recorded.remove(instant)

    def delete(self, path: str) -> None:
        name = path.rpartition("/")[2]
        assert name.partition(".")[0] in self.recorded or self._is_locked(), "only what is ours"
        if self.fails_at_deletion and self.fails_at_deletion in name:
            self.fails_at_deletion = ""
            raise ValueError("the store has failed")
        self.names.remove(name)

    def _is_locked(self) -> bool:
        return self.log.count("lock") > self.log.count("unlock")

    @property
    def done(self) -> dict[str, Any]:
        return self.kv.get("done/savepoint-a", {})
