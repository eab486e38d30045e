"""Requests, settling and reports of a world in memory that the agent's own code serves.

Each function puts a part of it in the place of the simulated agent's; the table is the fake of that
part, whose docstring says what it cannot, or `WorldTable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import types

from hudi_contract import metadata
from hudi_contract.assignment import AssignmentRecord
from hudi_runtime.agent import (
    adoption,
    bootstrap,
    creation,
    dataset,
    holds,
    metadata_table,
    preparation,
    store_probe,
    stored_rows,
)
from hudi_runtime.agent import assignment as assignments
from hudi_runtime.agent.assignment import Assignment
from hudi_runtime.agent.savepoints import Savepoints
from hudi_runtime.job.job import TableSpec
from hudi_runtime.process import spark as sp
from hudi_runtime.process.etcd import Entry
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import CommitInfo
from tests.support.world.agent_contexts import AtOnce, context, look
from tests.support.world.fake_bootstrap import Fake as BootstrapFake
from tests.support.world.fake_holds import Fake as HoldFake
from tests.support.world.fake_metadata_table import Fake as MetadataFake
from tests.support.world.fake_metadata_table import serve as serve_metadata
from tests.support.world.fake_restores import Fake as RestoreFake
from tests.support.world.fake_restores import keeper
from tests.support.world.fake_savepoints import Fake as SavepointFake
from tests.support.world.fake_table import FakeTable
from tests.support.world.meeting import Etcd, Meeting
from tests.support.world.simulated_world import Process, World

# ---- requests


def with_savepoints(world: Meeting, fake: SavepointFake) -> None:
    fake.kv = world.etcd.keys  # type: ignore[assignment]

    def serve(process: Any, requests: dict[str, Any]) -> None:
        fake.gate = world.gate()["state"]
        session: Any = SimpleNamespace(
            inc=process.inc, etcd=fake, pending=fake.pending, begin_savepoint=fake.begin_savepoint, abandon=fake.abandon
        )
        names = ("timeline", "savepoint_with", "savepoint_comment", "write_config", "locked", "client")
        table: Any = SimpleNamespace(**{name: getattr(fake, name) for name in names}, storage=fake.store)
        spec, idle = TableSpec.of(AssignmentRecord.from_json(world.assignment())), SimpleNamespace(idle=True)
        keeper = Savepoints(context(table, session, gate=lambda: fake.gate, spec=spec), after=idle)  # type: ignore[arg-type]
        keeper.consider(look(requests, world.etcd.records()))

    world.serve = serve


def with_holds(world: Meeting, fake: HoldFake) -> None:
    fake.kv = world.etcd.keys  # type: ignore[assignment]
    fake.records = world.etcd.records  # type: ignore[method-assign]

    def serve(process: Any, requests: dict[str, Any]) -> None:
        fake.inc, fake.gate = process.inc, world.gate()
        fake.serve(fake.holds(), *requests.values())

    world.serve = serve


def with_restores(world: Meeting, fake: RestoreFake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.kv = world.etcd.keys  # type: ignore[assignment]

    def serve(process: Any, requests: dict[str, Any]) -> None:
        monkeypatch.setitem(keeper.__globals__, "ME", process.inc)  # whose restore the fake's agent takes it for
        fake.gate = world.gate()
        keeper(fake).consider(look(requests, world.etcd.records()))

    world.serve = serve


def dataset_in_memory(made: BootstrapFake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hudi and a dataset in memory.

    The path and format that are asked for must be those of the HudiTable.
    """

    def read(spark: Any, spec: TableSpec, path: str, format: str) -> Any:
        assert (path, format) == ("s3a://lake/plain", "Parquet")
        if made.source_error is not None:
            raise made.source_error
        frame: Any = SimpleNamespace(schema=types.StructType(), write=SimpleNamespace(format=lambda name: made))
        return dataset.Dataset(frame, made.rows)

    monkeypatch.setattr(dataset, "read", read)
    monkeypatch.setattr(BootstrapFake, "mode", lambda self, mode: self, raising=False)
    monkeypatch.setattr(sp, "IDLE_SECONDS", 0)


def with_bootstrap(world: Meeting, fake: BootstrapFake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.kv = world.etcd.keys  # type: ignore[assignment]

    def serve(process: Any, requests: dict[str, Any]) -> None:
        monkeypatch.setitem(BootstrapFake.made.__globals__, "ME", process.inc)
        fake.gate = world.gate()["state"]
        fake.made().consider(look(requests, world.etcd.records()))

    world.serve = serve


def with_metadata(world: Meeting, fake: MetadataFake) -> None:
    fake.kv = world.etcd.keys  # type: ignore[assignment]

    def serve(process: Any, requests: dict[str, Any]) -> None:
        fake.gate, fake.inc = world.gate()["state"], process.inc
        if "metadata" in requests:
            serve_metadata(fake, requests["metadata"], world.etcd.records(), known=world.assignment()["metadataTable"])

    world.serve = serve


def in_its_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses of requests go by the world's time."""
    for module in (bootstrap, metadata_table, holds):
        monkeypatch.setattr(module, "now_ms", lambda: world.now_ms)


# ---- preparation, reports and settling


@dataclass
class Claims:
    """A session, as the settler uses it."""

    world: Meeting
    inc: str
    table_id: str = "T"
    state: str = "LIVE"

    @property
    def etcd(self) -> Any:
        return self.world.etcd

    def claim(self, instant: str, previous: str) -> bool:
        key = self.world.kv[f"instant/{instant}"]
        assert self.world.kv[f"settle/{previous}"].value["phase"] in ("RollingBack", "Swept", "Settled"), (
            "claimed from somebody who is not proven dead (I12)"
        )
        self.world.put(f"instant/{instant}", {**key.value, "claimedBy": self.inc})
        return True


def names_of(world: World) -> list[str]:
    """Files of the timeline, by what is true in the world."""
    found = []
    for instant in sorted(world.completed):
        found.append(f"{instant}_{world.completion(instant)}.commit")
    recorded = {t: str(key.value["action"]) for t, key in world.names("instant").items()}
    for instant, action in {**world.foreign, **recorded}.items():
        if instant not in world.completed | world.rolled_back:
            inflight = "inflight" if action == "commit" else f"{action}.inflight"
            found += [f"{instant}.{action}.requested", f"{instant}.{inflight}"]
    return found


class WorldTable(FakeTable):
    """The world's table: its timeline is what is true there, and a rollback becomes true.

    It has no data files and is not created: it is there.
    """

    def __init__(self, world: World) -> None:
        super().__init__([])
        self._world = world
        self.path = "s3a://lake/flights"
        self.there = True

    def timeline(self) -> tl.Timeline:
        return tl.parse(names_of(self._world))

    def rollback(self, instant: str) -> bool:
        self._world.rolled_back.add(instant)
        return super().rollback(instant)

    def commits(self, instants: tuple[tl.Instant, ...]) -> Iterator[tuple[tl.Instant, CommitInfo]]:
        for instant in instants:
            author = self._world.authors[instant.requested]
            extra = {metadata.ATTEMPT: author.attempt} | ({metadata.WRITER: author.writer} if author.writer else {})
            yield instant, CommitInfo(extra, author.records)

    def written(self, instants: tuple[tl.Instant, ...]) -> list[Any]:
        return []

    def exists(self) -> bool:
        return self.there

    def require_merger(self, merge: Any) -> None:
        """Hudi has it."""


class TableEtcd(Etcd):
    """The keys of the world with the names that the agent's code has for them."""

    prefix = "/hudi"

    def __init__(self, world: Meeting, table_id: str) -> None:
        super().__init__(world)
        self._id = table_id

    def _local(self, key: str) -> str:
        return key.partition(f"/{self._id}/")[2] if key.startswith("/") else key

    def _entry(self, key: str) -> Entry:
        found = super()._entry(key)
        return Entry(f"/hudi/tables/{self._id}/{key}", found.value, found.mod_revision)

    def get(self, key: str) -> Entry | None:
        return super().get(self._local(key))

    def range(self, prefix: str) -> list[Entry]:
        return super().range(self._local(prefix))

    def put(self, key: str, value: Mapping[str, Any]) -> int:
        return super().put(self._local(key), value)


def with_agent(world: Meeting, monkeypatch: pytest.MonkeyPatch, *, there: bool = True, **errors: Exception) -> None:
    """Everything that the agent does at a table but creating it (`hudi_runtime.agent.assignment`).

    `there`: whether the storage has a table. `errors`: errors of the storage, of the comparison
    with the spec, or of the table's marker.
    """
    table, found, running = WorldTable(world), dict[str, Assignment](), list[Process]()
    table.there = there

    def ends(name: str, value: Any = None) -> Any:
        def call(*_: Any, **__: Any) -> Any:
            if name in errors:
                raise errors[name]
            return value

        return call

    def opened(spark: Any, settings: dict[str, str]) -> Any:
        assert world._register(running[0])
        session = Claims(world, running[0].inc, settings["tableId"])
        etcd: Any = TableEtcd(world, settings["tableId"])
        return SimpleNamespace(
            inc=session.inc, table_id=session.table_id, etcd=etcd, state="LIVE", clock_refused="", claim=session.claim
        )

    def step(process: Process) -> None:
        if "assignment" not in world.kv:
            return
        value, running[:] = world.assignment(), [process]
        etcd: Any = TableEtcd(world, value["T"])
        slot: Any = AtOnce()
        spark: Any = None
        if process.inc not in found:
            found[process.inc] = Assignment(spark, value, etcd=etcd, stopping=lambda: False, slot=slot)
        found[process.inc].step()

    monkeypatch.setattr(preparation, "probe", ends("probe", there))
    monkeypatch.setattr(assignments, "AgentTable", lambda spark, path: table)
    monkeypatch.setattr(assignments, "AgentSession", SimpleNamespace(open=opened))
    monkeypatch.setattr(assignments, "Bucket", lambda *_: SimpleNamespace(look=lambda: None))
    monkeypatch.setattr(assignments.time, "monotonic", lambda: world.now)
    monkeypatch.setattr(creation, "facts", lambda table: None)
    monkeypatch.setattr(creation, "mismatches", ends("compare", []))
    monkeypatch.setattr(stored_rows, "problems", lambda *_: [])  # Spark's rows: this table has none
    monkeypatch.setattr(creation, "check_marker", ends("marker"))
    monkeypatch.setattr(store_probe, "require", ends("store"))
    monkeypatch.setattr(adoption, "look", lambda table: None)
    monkeypatch.setattr(adoption, "problems", lambda *_, now: [])
    monkeypatch.setattr(adoption, "take_over", lambda *_: None)
    monkeypatch.setattr(adoption, "beating", lambda *_, now_ms: frozenset(world.beating))
    world._agent = step  # type: ignore[method-assign]
