"""A table with a savepoint and commits after it, a session and an etcd for restores,
in one fake.

It lacks abilities of the real parts: a lock that somebody else has or that is lost, a compare that
fails, a lost answer; keys have no revisions, and a restore changes names, no rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from hudi_runtime.agent.restores import Restores
from hudi_runtime.process.etcd import Entry
from hudi_runtime.settle.agent_table import SavepointInfo
from hudi_runtime.settle.settle import Records
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.storage import Missing
from tests.support.world.agent_contexts import context

T = [f"2026010100000{n:04d}" for n in range(30)]
ME, OTHER = "agent-me", "agent-other"
ID = "restore-n1"
GATE = {"state": "closed", "restoring": "n1"}
# T[2] bears the savepoint; T[1] was begun before it and ended after it, and both had ended when the
# savepoint was taken.
KEPT = [f"{T[1]}_{T[4]}.commit", f"{T[2]}_{T[3]}.commit", f"{T[2]}_{T[5]}.savepoint"]
UNDONE = [f"{T[6]}_{T[9]}.commit", f"{T[7]}_{T[8]}.commit"]


@dataclass
class Fake:
    """Table, session and etcd in one: what happens to the timeline is what Hudi does."""

    names: list[str]
    comments: dict[str, str] = field(default_factory=lambda: {T[2]: "lake/flights: good"})
    files: dict[str, tuple[str, ...]] = field(default_factory=lambda: {"a": ("f1",)})
    there: dict[str, list[str]] = field(default_factory=lambda: {"a": ["f1", "f2"]})
    kv: dict[str, dict[str, Any]] = field(default_factory=dict)
    gate: dict[str, Any] = field(default_factory=lambda: dict(GATE))
    held: bool = False
    begun: str = ""
    fails_after: int = -1
    """Undone instants after which Hudi fails (-1: it does not)."""
    fails_at_request: int = 0
    fails_at_deletion: str = ""
    """Beginning of a key or name whose next deletion fails."""
    loses_an_executor: bool = False
    """Then the release of the lock leaves the record of the restore (F36)."""
    fails_at_the_end: bool = False
    """Hudi fails after it has completed the restore, before it deletes its rollbacks."""
    archived: tuple[tl.Instant, ...] = ()
    executions: int = 0
    metadata: bool = True
    names_of_logs: list[str] = field(default_factory=list)
    plan: list[tuple[str, str]] = field(default_factory=list)

    # etcd
    def get(self, key: str) -> Entry | None:
        return Entry(key, self.kv[key], 1) if key in self.kv else None

    def put(self, key: str, value: dict[str, Any]) -> None:
        self.kv[key] = dict(value)

    def range(self, prefix: str) -> list[Entry]:
        return [Entry(key, value, 1) for key, value in self.kv.items() if key.startswith(prefix)]

    def delete(self, key: str, revision: int = 0) -> bool:
        if self.fails_at_deletion and key.startswith(self.fails_at_deletion):
            self.fails_at_deletion = ""
            raise ValueError("the store has failed")
        if key.startswith((".hoodie", "/t/")):
            assert self.held, "under the lock"
            (self.names if key[0] == "." else self.names_of_logs).remove(
                key if key[0] == "/" else key.rpartition("/")[2]
            )
            return True
        return self.kv.pop(key, None) is not None

    # session
    def pending(self) -> list[str]:
        mine = (
            e
            for e in self.range("instant/")
            if ME in (e.value.get("claimedBy") or e.value["inc"]) and e.value["state"] == "Pending"
        )
        return [entry.name for entry in mine]

    def begin_restore(self, nonce: str) -> None:
        assert self.held, "under the lock"
        assert self.gate.get("restoring") == nonce
        self.begun = nonce

    def forget(self, instant: str) -> bool:
        self.kv[f"instant/{instant}"]["state"] = "Abandoned"
        return True

    # table
    def timeline(self) -> tl.Timeline:
        return tl.parse(self.names)

    @contextmanager
    def locked(self, config: Any) -> Iterator[None]:
        self.held = True
        try:
            yield
        finally:
            self.held, self.begun = False, ""

    def write_config(self, name: str, options: dict[str, str]) -> Any:
        never = SimpleNamespace(isNever=lambda: True)
        return SimpleNamespace(options=options, setValue=lambda *_: None, getFailedWritesCleanPolicy=lambda: never)

    def has_archive(self) -> bool:
        return bool(self.archived)

    def archived_instants(self) -> tuple[tl.Instant, ...]:
        return self.archived

    def savepoint_infos(self, timeline: tl.Timeline) -> dict[str, SavepointInfo]:
        return {
            s.requested: SavepointInfo(self.comments.get(s.requested, ""), self.files)
            for s in timeline.savepoints
            if not s.pending
        }

    def names_in(self, folder: str) -> list[str]:
        if folder == ".hoodie/timeline":
            return list(self.names)
        if folder not in self.there:
            raise Missing(folder)
        return self.there[folder]

    def delete_metadata_table(self) -> None:
        assert self.held, "under the lock"
        self.metadata = False

    def request_restore(self, config: Any, undone: Any, newest: str) -> str:
        assert self.begun, "not without the word"
        assert config.options["hoodie.metadata.enable"] == "false"
        if self.fails_at_request:
            self.fails_at_request -= 1
            raise ValueError("the store has failed")
        self.put(f"instant/{T[20]}", {"inc": ME, "action": "restore", "state": "Pending"})
        self.names.append(f"{T[20]}.restore.requested")
        self.plan, self.newest = list(undone), newest
        return T[20]

    def restore(self, config: Any, instant: str, newest: str) -> None:
        assert self.begun, "not without the word"
        assert not self.metadata, "it would be rolled back itself"
        self.executions += 1
        self.put(f"instant/{T[21]}", {"inc": ME, "action": "rollback", "state": "Pending"})
        for number, (requested, _) in enumerate(self.plan):
            if number == self.fails_after:
                self.fails_after = -1
                self.names.append(f"{T[21]}.rollback.inflight")
                raise ValueError("the store has failed")
            kept = [name for name in self.names if name.startswith(requested) and name.endswith(".savepoint")]
            assert not kept, "Hudi undoes no commit that a savepoint keeps"
            self.names = [name for name in self.names if not name.startswith(requested)]
        self.names = [name for name in self.names if ".rollback" not in name]
        self.names.append(f"{T[20]}_{T[25]}.restore")
        if not self.loses_an_executor:
            del self.kv[f"instant/{T[20]}"]
        if self.fails_at_the_end:
            self.fails_at_the_end = False
            self.names += [f"{T[21]}.rollback.requested", f"{T[21]}.rollback.inflight"]
            raise ValueError("the store has failed")

    @property
    def done(self) -> dict[str, Any]:
        return self.kv.get(f"done/{ID}", {})


def keeper(fake: Fake) -> Restores:
    session: Any = SimpleNamespace(
        inc=ME,
        etcd=fake,
        table_id="t",
        pending=fake.pending,
        begin_restore=fake.begin_restore,
        forget=fake.forget,
        quiet=lambda: True,
    )
    storage = SimpleNamespace(names=fake.names_in, delete=fake.delete, glob=lambda _: list(fake.names_of_logs))
    table: Any = SimpleNamespace(
        **{
            name: getattr(fake, name)
            for name in (
                "timeline",
                "locked",
                "write_config",
                "has_archive",
                "archived_instants",
                "savepoint_infos",
                "delete_metadata_table",
                "request_restore",
                "restore",
            )
        },
        storage=storage,
        partitions=lambda: ["a"],
    )
    spark: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(setLocalProperty=lambda *_: None, setJobGroup=lambda *_, **__: None)
    )

    return Restores(context(table, session, gate=lambda: fake.gate, name="flights", spark=spark))


def records(fake: Fake, **writers: str) -> Records:
    instants = {entry.name: entry for entry in fake.range("instant/")}
    return Records(instants, {}, {inc: Entry(inc, {"role": role}, 1) for inc, role in writers.items()}, {})
