"""Deletes are carried over by readers of a table, once each, whatever its type and the reader's
order (R55, I9).
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_runtime.read import sources
from hudi_runtime.read.incremental import PositionLost, Pull, Reader
from hudi_runtime.read.positions import ByCompletion, Fenced, OutOfOrder, Position
from tests.support.harness.local import AGENT, Process, Table, World, rows, until
from tests.support.oracle import not_seen

pytestmark = pytest.mark.extra
MARKED = "id int, p string, v string, ts long, _hoodie_is_deleted boolean"
Key = tuple[int, str]


class Source:
    """A table that this process writes alone, and what every reader of it has."""

    def __init__(self, world: World, name: str, kind: str) -> None:
        self.spark, self.folder = world.spark(), world.lake / name
        self.path = world.url(self.folder)
        self._options = {
            "hoodie.table.name": name,
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.table.ordering.fields": "ts",
            "hoodie.metadata.enable": "false",
            "hoodie.embed.timeline.server": "false",
            "hoodie.write.markers.type": "DIRECT",
            "hoodie.clean.automatic": "false",
            "hoodie.datasource.write.hive_style_partitioning": str(kind == "COPY_ON_WRITE").lower(),
            "hoodie.upsert.shuffle.parallelism": "1",
        }

    def write(self, *rows: tuple[Any, ...], operation: str = "upsert", **options: str) -> None:
        frame = self.spark.createDataFrame([row if len(row) == 5 else (*row, False) for row in rows], MARKED)
        chosen = self._options | {"hoodie.datasource.write.operation": operation} | options
        frame.write.format("hudi").options(**chosen).mode("append").save(self.path)

    def rows(self) -> dict[Key, str]:
        return {
            (row.id, row.p): row.v
            for row in self.spark.read.format("hudi").load(self.path).select("id", "p", "v").collect()
        }


class Follower:
    """Applies pulls to what it has: rows by key, and then nothing for what was deleted."""

    def __init__(self, source: Source, position: Position, limit: int | None) -> None:
        self._source, self._position, self._limit = source, position, limit
        self.has: dict[Key, str] = {}

    def follow(self) -> list[set[Key]]:
        """Pull everything; what each pull has deleted."""
        look, gone = Reader(self._source.spark, self._source.path).look(), []
        while pull := look.pull(self._position, limit=self._limit, deletes=True):
            gone.append(self._apply(pull))
            self._position = pull.position
        return gone

    def _apply(self, pull: Pull) -> set[Key]:
        rows, gone = [], set()
        for row in sources.marked(pull).select("id", "p", "v", "ts", "_hoodie_is_deleted").collect():
            assert row.ts is not None
            if row._hoodie_is_deleted:
                gone.add((row.id, row.p))
            else:
                rows.append(((row.id, row.p), row.v))
        assert not gone & {key for key, _ in rows}, "either or"
        self.has |= dict(rows)
        for key in gone:
            self.has.pop(key, None)
        return gone


B = "b[1-2]"
"""A partition whose name looks like a pattern."""
HISTORY: tuple[tuple[str, tuple[tuple[Any, ...], ...], set[Key]], ...] = (
    ("upsert", tuple((n, p, "seed", 1) for p, last in (("a", 7), (B, 3)) for n in range(1, last)), set()),
    ("delete", ((1, "a", "", 0), (99, "a", "", 0)), {(1, "a")}),
    ("upsert", ((2, "a", "", 2, True), (3, "a", "new", 2), (7, "a", "added", 2)), {(2, "a")}),
    ("upsert", ((1, "a", "again", 3), (4, "a", "", 0, True)), set()),
    ("delete", ((7, "a", "", 0), (5, "a", "", 0)), {(7, "a"), (5, "a")}),
    ("delete_partition", ((1, B, "", 0),), {(1, B), (2, B)}),
    ("insert_overwrite", ((6, "a", "kept", 4), (8, "a", "fresh", 4)), {(1, "a"), (3, "a"), (4, "a")}),
)
"""Operation, rows, and the keys that are not there any more. A delete that is older than its row
deletes nothing (4: it goes with the partition).
"""


def values(table: Table) -> dict[int, tuple[str, int]]:
    return {
        row.id: (row.v, row.ts)
        for row in table.world.spark().read.format("hudi").load(table.path).select("id", "v", "ts").collect()
    }


def ended(process: Process) -> dict[str, Any]:
    assert process.wait() == 0, process.log()[-4000:]
    return process.termination()


@pytest.mark.parametrize(("kind", "target_kind"), [("CopyOnWrite", "MergeOnRead"), ("MergeOnRead", "CopyOnWrite")])
def test_a_chained_table_follows_its_source(world: World, agent: Process, kind: str, target_kind: str) -> None:
    """Upserts and deletes in one commit, once each: the attempt is killed in its second commit, and
    what another writer of the target inserted after the first one stays.
    """
    source, target = (
        world.table(f"deletes-{name}-{kind.lower()}", type=type) for name, type in (("from", kind), ("to", target_kind))
    )
    for table in (source, target):
        world.create(table, agent=AGENT, process=agent)
    carry = {"path": source.path, "maxCommitsPerBatch": 1, "deletes": "Carry"}
    ended(source.writer("seed", python={"batches": [{"rows": rows(range(1, 9), "a", "seed", 1)}]}))
    assert ended(target.writer("chain", hudi=carry))["commits"] == 1
    assert values(target) == values(source) == dict.fromkeys(range(1, 9), ("seed", 1))

    marked = "id int, p string, v string, ts long, _hoodie_is_deleted boolean"
    mixed = [(2, "a", "gone", 2, True), (3, "a", "new", 2, False), (9, "a", "added", 2, False)]
    ended(source.writer("deletes", operation="delete", python={"batches": [{"rows": rows([1, 4], "a", "", 0)}]}))
    ended(
        source.writer(
            "mixed", python={"batches": [{"schema": marked, "rows": mixed}, {"rows": rows([4], "a", "again", 3)}]}
        )
    )
    ended(source.writer("deletes", run=2, operation="delete", python={"batches": [{"rows": rows([9, 5], "a", "", 0)}]}))
    process = target.writer("chain", run=2, hudi=carry)
    begun = len(target.timeline().completed)

    def second_begun() -> bool:
        timeline = target.timeline()
        return len(timeline.completed) == begun + 1 and bool(timeline.pending)

    until("the second commit has begun", second_begun, alive=process, every=0.005)
    process.kill()
    (dead,) = target.pending()
    assert set(values(target)) == set(range(2, 9)), "1 was deleted for good, 4 comes again"
    inc = target.fence(process)
    assert until("swept", lambda: target.outcomes(inc), alive=agent) == {dead: "RolledBack"}
    ended(target.writer("other", python={"batches": [{"rows": rows([1], "a", "other", 1)}]}))
    told = ended(target.writer("chain", run=2, hudi=carry))
    assert told["commits"] >= 2, "the first commit is not repeated"
    assert values(source) == {3: ("new", 2), 4: ("again", 3), **dict.fromkeys((6, 7, 8), ("seed", 1))}
    assert values(target) == values(source) | {1: ("other", 1)}
    until("nothing is left pending", lambda: not source.pending() and not target.pending(), alive=agent)
    left = [*rows([3], "a", "new", 2), *rows([4], "a", "again", 3), *rows((6, 7, 8), "a", "seed", 1)]
    source.audited(left, without=not_seen("incremental"))
    target.audited([*left, *rows([1], "a", "other", 1)], without=not_seen("incremental"))
    assert ended(target.writer("chain", run=3, hudi=carry))["commits"] == 0

    ended(source.writer("deletes", run=3, operation="delete", python={"batches": [{"rows": rows([6], "a", "", 0)}]}))
    bad = target.writer("chain", run=4, hudi=carry, transform="SELECT id, p, v, ts FROM source")
    assert bad.wait() == 10
    assert bad.termination()["class"] == "UserError"
    assert "the result has no column _hoodie_is_deleted" in bad.termination()["message"]
    assert (
        ended(target.writer("chain", run=5, hudi=carry, transform="SELECT *, 1 AS one FROM source WHERE id < 100"))[
            "commits"
        ]
        == 1
    )
    assert 6 not in values(target)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_reader_that_follows_has_what_the_table_has(world: World, kind: str) -> None:
    source = Source(world, f"deletes-{kind.lower()}", kind)
    at_each = Follower(source, ByCompletion(), None)
    for operation, written, gone in HISTORY:
        partition = f"p={B}" if kind == "COPY_ON_WRITE" else B
        options = {"hoodie.datasource.write.partitions.to.delete": partition} if operation == "delete_partition" else {}
        source.write(*written, operation=operation, **options)
        found = at_each.follow()
        assert found == [gone], operation
        assert at_each.has == source.rows(), operation
    assert source.rows() == {(6, "a"): "kept", (8, "a"): "fresh"}
    for order in (ByCompletion(), Fenced(), OutOfOrder()):
        for limit in (1, None):
            late = Follower(source, order, limit)
            late.follow()
            assert late.has == source.rows(), (order, limit)


def test_what_a_cleaned_file_would_have_told_is_a_lost_position(world: World) -> None:
    """I9: never nothing."""
    source = Source(world, "deletes-lost", "COPY_ON_WRITE")
    source.write((1, "a", "seed", 1), (2, "a", "seed", 1), (3, "b", "seed", 1))
    reader = Reader(source.spark, source.path)
    first = reader.look().pull(ByCompletion())
    assert first is not None
    (old,) = source.folder.glob("p=a/*.parquet")
    source.write((1, "a", "", 0), operation="delete")
    old.rename(f"{old}.away")
    look = reader.look()
    with pytest.raises(PositionLost, match=f"{old.name} of .* was cleaned: it is needed to find records deleted"):
        look.pull(first.position, deletes=True)
    rest = look.pull(first.position)
    assert rest is not None
    assert (rest.frame.count(), rest.deletes) == (0, None)
    assert rest.deleting == rest.instants, "who does not carry deletes over is told that there are some"
    source.write(
        (1, "b", "", 0), operation="delete_partition", **{"hoodie.datasource.write.partitions.to.delete": "p=b"}
    )
    (replaced,) = source.folder.glob("p=b/*.parquet")
    replaced.rename(f"{replaced}.away")
    with pytest.raises(PositionLost, match=r"in partition p=b of .* was replaced by .* and then cleaned"):
        reader.look().pull(rest.position, deletes=True)
