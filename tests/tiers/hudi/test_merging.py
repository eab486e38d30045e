"""Which of two versions of a record stays (docs/use/merging.md): the same for the snapshot, for
pulls and after a compaction (R44, R45, R46, R53, R54).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hudi_runtime.process.errors import RuntimeFailure
from hudi_runtime.read.incremental import Reader
from hudi_runtime.read.positions import ByCompletion, Position
from hudi_runtime.table import timeline as tl
from tests.support.harness import merger
from tests.support.harness.local import AGENT, ROW_SCHEMA, Process, Table, World, rows, until
from tests.support.oracle import not_seen

pytestmark = pytest.mark.extra
NON_BLOCKING = {"concurrency": {"mode": "NonBlocking"}, "index": {"type": "Bucket", "buckets": 1}}
PARTIAL = {"orderingFields": [], "merge": {"partialUpdates": "IgnoreNulls"}}
SPARSE = "id int, p string, a string, b string"
SERVICES = {kind: {"enabled": False} for kind in ("clean", "archive")} | {"compaction": {"afterCommits": 1}}


def made(world: World, agent: Process, name: str, **spec: Any) -> Table:
    table = world.table(name, **spec)
    world.create(table, agent=AGENT, process=agent)
    return table


def compacted(world: World, agent: Process, table: Table, *, name: str = AGENT, **spec: Any) -> None:
    """Have the agent of that name compact the table once."""
    before = [i for i in table.timeline().completed if i.planned == "compaction"]
    world.table(table.spec.ref.name, **{**spec, "services": SERVICES}).assign(name)
    until(
        "the table is compacted",
        lambda: [i for i in table.timeline().completed if i.planned == "compaction"] != before,
        alive=agent,
    )
    until(
        "nothing is pending any more",
        lambda: not [i for i in table.timeline().pending if i.action == "compaction"],
        alive=agent,
    )
    world.table(table.spec.ref.name, **spec).assign(name)


def pulled(
    table: Table, position: Position, *columns: str, limit: int | None = 1, merger: str = ""
) -> tuple[dict[int, tuple[Any, ...]], Position]:
    """What a reader that replaces rows by key has after it has pulled everything, commit by commit.

    And its position.
    """
    found: dict[int, tuple[Any, ...]] = {}
    look = Reader(table.world.spark(), table.path, merger=merger).look()
    while pull := look.pull(position, limit=limit):
        found |= {row[0]: tuple(row) for row in pull.frame.select(*columns).collect()}
        position = pull.position
    return found, position


def done(*writers: Process, conflicts: Sequence[int] = ()) -> None:
    for number, writer in enumerate(writers):
        assert writer.wait() == 0, writer.log()[-4000:]
        assert not conflicts or writer.termination()["conflicts"] == conflicts[number]


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize("mode", ["EventTime", "CommitTime"])
def test_a_late_version_for_every_reader(world: World, agent: Process, mode: str, kind: str) -> None:
    """A version with an older ordering value that is committed later: it is lost by event time, and
    stays by commit time.
    """
    spec = {"type": kind, "merge": {"mode": mode}}
    table = made(world, agent, f"late-{mode.lower()}-{kind.lower()}", **spec)
    late = [*rows([1], "a", "late", 3), *rows([2], "a", "newer", 9)]
    batches = [rows([1, 2, 3], "a", "seed", 5), rows([1], "a", "new", 7), late]
    writer = table.writer("writer", python={"batches": [{"rows": batch} for batch in batches]})
    done(writer)
    first = rows([1], "a", "new", 7) if mode == "EventTime" else rows([1], "a", "late", 3)
    wanted = [*first, *rows([2], "a", "newer", 9), *rows([3], "a", "seed", 5)]
    columns = ("id", "p", "v", "ts")
    table.audited(wanted)
    assert pulled(table, ByCompletion(), *columns)[0] == {row[0]: row for row in wanted}, "commit by commit"
    assert pulled(table, ByCompletion(), *columns, limit=None)[0] == {row[0]: row for row in wanted}, "all at once"
    if kind == "MergeOnRead":
        compacted(world, agent, table, **spec)
        table.audited(wanted)
        assert pulled(table, ByCompletion(), *columns)[0] == {row[0]: row for row in wanted}


@pytest.mark.parametrize(
    ("concurrency", "kind"),
    [("Optimistic", "CopyOnWrite"), ("Optimistic", "MergeOnRead"), ("NonBlocking", "MergeOnRead")],
)
def test_updates_of_different_columns_commute(world: World, agent: Process, concurrency: str, kind: str) -> None:
    """R46: two writers update different columns of one row at once.

    Whoever commits last, both columns are there, for every reader.
    """
    spec = {"type": kind, **PARTIAL, **(NON_BLOCKING if concurrency == "NonBlocking" else {})}
    table = made(world, agent, f"columns-{concurrency.lower()}-{kind.lower()}", **spec)
    gates = [world.folder / f"gate-columns-{concurrency}-{kind}-{number}" for number in range(2)]
    a, b = "id int, p string, a string", "id int, b string, p string"
    seed = {"schema": SPARSE, "rows": [(key, "x", "a0", "b0") for key in (1, 2, 3)]}
    slow = table.writer(
        "slow",
        python={
            "batches": [
                seed,
                {"schema": a, "rows": [(1, "x", "slow")], "gate": str(gates[0])},
                {"schema": b, "rows": [(2, "slow", "x")], "gate": str(gates[1])},
            ]
        },
    )
    until("column a is being written", Path(f"{gates[0]}.reached").exists, alive=slow)
    first = table.writer("first", python={"batches": [{"schema": b, "rows": [(1, "quick", "x")]}]})
    done(first, conflicts=[0])
    before, position = pulled(table, ByCompletion(), "id", "a", "b", limit=None)
    assert before == {1: (1, "a0", "quick"), 2: (2, "a0", "b0"), 3: (3, "a0", "b0")}
    gates[0].touch()
    until("column b is being written", Path(f"{gates[1]}.reached").exists, alive=slow)
    assert pulled(table, position, "id", "a", "b")[0] == {1: (1, "slow", "quick")}, (
        "a whole row is pulled, although its newest version is an older commit's"
    )
    second = table.writer("second", python={"batches": [{"schema": a, "rows": [(2, "x", "quick")]}]})
    done(second, conflicts=[0])
    gates[1].touch()
    done(slow, conflicts=[2 if concurrency == "Optimistic" else 0])
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    wanted = [(1, "x", "slow", "quick"), (2, "x", "quick", "slow"), (3, "x", "a0", "b0")]
    answers = {row[0]: (row[0], *row[2:]) for row in wanted}

    def same(compaction: bool) -> None:
        if concurrency == "NonBlocking":
            table.audited(wanted, without=not_seen("hudi-rs", "incremental", "overlap"), schema=SPARSE)
        else:
            table.audited(wanted, schema=SPARSE)
        assert pulled(table, ByCompletion(), "id", "a", "b")[0] == answers, compaction
        assert pulled(table, position, "id", "a", "b", limit=None)[0] == {key: answers[key] for key in (1, 2)}, (
            compaction
        )

    same(compaction=False)
    if kind == "MergeOnRead":
        compacted(world, agent, table, **spec)
        same(compaction=True)
        again = table.writer("again", python={"batches": [{"schema": a, "rows": [(3, "x", "again"), (2, "x", None)]}]})
        done(again)
        values = table.world.spark().read.format("hudi").load(table.path).select("id", "a", "b").collect()
        assert {tuple(row) for row in values} == {(1, "slow", "quick"), (2, "quick", "slow"), (3, "again", "b0")}, (
            "on top of a base file; null is no value"
        )


def test_commit_time_between_writers_that_do_not_block_each_other(world: World, agent: Process) -> None:
    """Why that is refused: of two versions written at once the one that was begun last stays, or,
    when a compaction comes between them, the other.
    """
    spec = {"type": "MergeOnRead", "merge": {"mode": "CommitTime"}, **NON_BLOCKING}
    table = made(world, agent, "commit-time-side-by-side", **spec)
    gates = [world.folder / f"gate-commit-time-{number}" for number in range(2)]
    seed = {"rows": rows([1, 2], "a", "seed", 1)}
    slow = table.writer(
        "slow",
        python={"batches": [seed, *({"rows": rows([n + 1], "a", "slow", 2), "gate": str(gates[n])} for n in range(2))]},
    )
    for number in range(2):
        until("a write is under way", Path(f"{gates[number]}.reached").exists, alive=slow)
        quick = table.writer(f"quick-{number}", python={"batches": [{"rows": rows([number + 1], "a", "quick", 3)}]})
        done(quick)
        if number:
            compacted(world, agent, table, **spec)
        gates[number].touch()
    done(slow, conflicts=[0])
    found = {
        row.id: row.v for row in table.world.spark().read.format("hudi").load(table.path).select("id", "v").collect()
    }
    assert found == {1: "quick", 2: "slow"}


@pytest.mark.parametrize(
    ("concurrency", "kind"),
    [("Optimistic", "CopyOnWrite"), ("Optimistic", "MergeOnRead"), ("NonBlocking", "MergeOnRead")],
)
def test_a_merge_of_ones_own(world: World, concurrency: str, kind: str) -> None:
    """A class that keeps the smallest `ts`, which neither of Hudi's modes does.

    Two writers meet twice, the second time with a compaction between them: the snapshot, pulls, a
    chained writer, an update in SQL and compactions all go by the class.
    """
    name = f"own-{concurrency.lower()}-{kind.lower()}"
    spec = {
        "type": kind,
        "image": merger.IMAGE,
        "merge": merger.CUSTOM,
        **(NON_BLOCKING if concurrency == "NonBlocking" else {}),
    }
    table = world.table(name, **spec)
    agent = world.agent(f"agent-{name}", storage=table)
    world.create(table, agent=f"agent-{name}", process=agent)
    gates = [world.folder / f"gate-{name}-{number}" for number in range(2)]
    batches: list[dict[str, Any]] = [
        {"rows": rows([1, 2, 3, 4], "a", "seed", 5)},
        {
            "rows": [*rows([1], "a", "slow", 4), *rows([2], "a", "slow", 8), *rows([3], "a", "slow", 2)],
            "gate": str(gates[0]),
        },
        {"rows": [*rows([1], "a", "slow", 1), *rows([4], "a", "slow", 4)], "gate": str(gates[1])},
    ]
    slow = table.writer("slow", python={"batches": batches})
    until("a write is under way", Path(f"{gates[0]}.reached").exists, alive=slow)
    quick = [*rows([1], "a", "quick", 3), *rows([2], "a", "quick", 9), *rows([3], "a", "quick", 6)]
    done(table.writer("first", python={"batches": [{"rows": quick}]}), conflicts=[0])
    gates[0].touch()
    until("the next write is under way", Path(f"{gates[1]}.reached").exists, alive=slow)

    def same(wanted: Mapping[int, str]) -> Position:
        read = world.spark().read.format("hudi").options(**merger.READ).load(table.path)
        assert {row.id: row.v for row in read.select("id", "v").collect()} == wanted
        for limit in (1, None):
            found, position = pulled(table, ByCompletion(), "id", "v", limit=limit, merger=merger.CLASS_NAME)
            assert found == {key: (key, value) for key, value in wanted.items()}, limit
        return position

    position = same({1: "quick", 2: "seed", 3: "slow", 4: "seed"})
    done(
        table.writer(
            "second", python={"batches": [{"rows": [*rows([1], "a", "quick", 2), *rows([4], "a", "quick", 3)]}]}
        ),
        conflicts=[0],
    )
    if kind == "MergeOnRead":
        compacted(world, agent, table, name=f"agent-{name}", **spec)
    gates[1].touch()
    done(slow, conflicts=[2 if concurrency == "Optimistic" else 0])
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    merged = [
        *rows([1], "a", "slow", 1),
        *rows([2], "a", "seed", 5),
        *rows([3], "a", "slow", 2),
        *rows([4], "a", "quick", 3),
    ]
    wanted = {row[0]: row[2] for row in merged}
    same(wanted)
    assert pulled(table, position, "id", "v", merger=merger.CLASS_NAME)[0] == {
        key: (key, wanted[key]) for key in (1, 4)
    }
    copied = [(row[0] + 10, *row[1:]) for row in merged]
    query = {"query": "SELECT id + 10 AS id, p, v, ts FROM me", "views": [{"name": "me", "hudi": {"path": table.path}}]}
    done(table.writer("sql", sql=query))
    target = world.table(f"{name}-chained", image=merger.IMAGE)
    world.create(target, agent=f"agent-{name}", process=agent)
    done(target.writer("chain", hudi={"path": table.path, "merger": merger.CLASS_NAME}))
    target.audited(
        [*merged, *copied], without=not_seen("origin", "hudi-rs", "stray", "metadata", "incremental", "late", "overlap")
    )
    if kind == "MergeOnRead":
        compacted(world, agent, table, name=f"agent-{name}", **spec)
    same(wanted | {row[0]: row[2] for row in copied})
    # Base files are what every reader reads.
    table.audited([*merged, *copied], without=not_seen("stray", "incremental", "overlap"))
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]


def test_nothing_is_begun_without_the_class(world: World, agent: Process) -> None:
    """An image without it: no table is made, no commit and no compaction is begun, no row is lost,
    and what is missing is named.
    """
    name, missing = (
        "own-missing",
        "spec.merge.custom.className = 'io.hudioperator.support.EarliestMerger': there is no such class in this image",
    )
    spec = {"type": "MergeOnRead", "merge": merger.CUSTOM}
    unmade = world.table("own-unmade", image="registry.example.com/without-it:1", **spec)
    unmade.gate("closed")
    world.admit_agent(unmade, AGENT)
    error = until("the agent says why", lambda: unmade.report().get("error"), alive=agent)
    assert (error["code"], missing in error["message"]) == ("MergerMissing", True), error
    left = [found for found in unmade.folder.rglob("*") if found.is_file()]  # a probe leaves a folder on this S3
    assert left == []
    world.etcd.delete(f"/hudi/control/agents/{AGENT}/{unmade.id}")

    table = world.table(name, image=merger.IMAGE, **spec)
    able = world.agent(f"agent-{name}", storage=table)
    world.create(table, agent=f"agent-{name}", process=able)
    done(
        table.writer(
            "able", python={"batches": [{"rows": rows([1, 2], "a", "seed", 5)}, {"rows": rows([1], "a", "later", 7)}]}
        )
    )
    able.terminate()
    assert able.wait() == 0, able.log()[-3000:]
    before = sorted(path.name for path in (table.folder / ".hoodie" / "timeline").iterdir())

    services = {**SERVICES, "clustering": {"afterCommits": 1, "sortColumns": ["id"]}}
    bare = world.table(name, image="registry.example.com/without-it:1", services=services, **spec)
    writer = bare.writer("bare", python={"batches": [{"rows": rows([1], "a", "lost", 9)}]})
    assert writer.wait() == 10
    assert (writer.termination()["class"], missing in writer.termination()["message"]) == ("UserError", True), (
        writer.termination()
    )
    world.admit_agent(bare, AGENT)
    for kind in ("compaction", "clustering"):
        failed = until(
            f"the {kind} fails",
            lambda kind=kind: (
                found if (found := bare.get(f"done/service-{kind}") or {}).get("result") == "Failed" else None
            ),
            alive=agent,
        )
        assert missing in failed["message"], failed
    assert sorted(path.name for path in (table.folder / ".hoodie" / "timeline").iterdir()) == before, (
        "nothing was begun"
    )
    assert not bare.names("instant/")
    world.etcd.delete(f"/hudi/control/agents/{AGENT}/{bare.id}")
    with pytest.raises(RuntimeFailure, match="the table is merged by a custom class, which this reader does not know"):
        Reader(world.spark(), table.path)
    with pytest.raises(Exception, match="No valid spark merger implementation"):
        world.spark().read.format("hudi").load(table.path).select("id", "v").collect()
    found = world.spark().read.format("hudi").options(**merger.READ).load(table.path).select("id", "v").collect()
    assert {row.id: row.v for row in found} == {1: "seed", 2: "seed"}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_why_the_class_is_looked_at_first(world: World, kind: str) -> None:
    """Hudi itself looks for it when the instant is begun: with a class that calls its merge
    otherwise than the table the write fails then, and leaves it.
    """
    name = f"own-{kind.lower()}"
    options = {
        "hoodie.table.name": name,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.metadata.enable": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.write.markers.type": "DIRECT",
        "hoodie.write.record.merge.mode": "CUSTOM",
        "hoodie.write.record.merge.strategy.id": "11111111-2222-3333-4444-555555555555",
        **merger.READ,
    }
    path = world.lake / name

    frame = world.spark().createDataFrame(rows([1], "a", "seed", 5), ROW_SCHEMA)
    with pytest.raises(Exception, match="No valid merger implementation set"):
        frame.write.format("hudi").options(**options).mode("append").save(world.url(path))
    timeline = tl.parse(os.listdir(path / ".hoodie" / "timeline"))
    assert (len(timeline.completed), len(timeline.pending)) == (0, 1)


class Stock:
    """A table that this process writes alone, with Hudi's own payload for partial updates."""

    def __init__(self, world: World, name: str, *, kind: str, payload: str, ordering: str) -> None:
        self._spark, self._path = world.spark(), world.url(world.lake / name)
        self._options = {
            "hoodie.table.name": name,
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.metadata.enable": "false",
            "hoodie.embed.timeline.server": "false",
            "hoodie.write.markers.type": "DIRECT",
            "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}",
        }
        if ordering:
            self._options["hoodie.table.ordering.fields"] = ordering

    def write(self, row: tuple[Any, ...], operation: str = "upsert") -> None:
        frame = self._spark.createDataFrame([row], f"{SPARSE}, ts long")
        options: Mapping[str, str] = {**self._options, "hoodie.datasource.write.operation": operation}
        frame.write.format("hudi").options(**options).mode("append").save(self._path)

    def values(self) -> dict[int, tuple[str, str]]:
        return {
            row.id: (row.a, row.b)
            for row in self._spark.read.format("hudi").load(self._path).select("id", "a", "b").collect()
        }


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_why_partial_updates_are_refused_with_event_time(world: World, kind: str) -> None:
    """The newer value of column a is lost, because another column has an update that
    is newer still.
    """
    table = Stock(world, f"partial-event-{kind}", kind=kind, payload="PartialUpdateAvroPayload", ordering="ts")
    for row in [(1, "x", "a0", "b0", 1), (1, "x", "a1", None, 9), (1, "x", None, "b2", 11), (1, "x", "a2", None, 10)]:
        table.write(row)
    assert table.values() == {1: ("a1", "b2")}


@pytest.mark.parametrize(("kind", "value"), [("COPY_ON_WRITE", None), ("MERGE_ON_READ", "b1")])
def test_why_partial_updates_take_no_deletes_from_log_files(world: World, kind: str, value: str | None) -> None:
    """A record that comes again after its deletion has its old value again, on the table that keeps
    deletions in log files.
    """
    table = Stock(
        world, f"partial-delete-{kind}", kind=kind, payload="OverwriteNonDefaultsWithLatestAvroPayload", ordering=""
    )
    table.write((1, "x", "a1", "b1", 1))
    table.write((1, "x", "", "", 2), "delete")
    assert table.values() == {}
    table.write((1, "x", "a2", None, 3))
    assert table.values() == {1: ("a2", value)}
