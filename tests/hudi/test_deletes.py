"""Deletes are carried over by readers of a table, once each, whatever its type and the reader's order (R55, I9)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.hudi.harness import World

from hudi_runtime import sources
from hudi_runtime.incremental import PositionLost, Pull, Reader
from hudi_runtime.positions import ByCompletion, Fenced, OutOfOrder, Position

pytestmark = pytest.mark.extra
MARKED = "id int, p string, v string, ts long, _hoodie_is_deleted boolean"
Key = tuple[int, str]


class Source:
    """A table that this process writes alone, and what every reader of it has."""

    def __init__(self, world: World, name: str, kind: str) -> None:
        self.spark, self.folder = world.spark(), world.folder / "tables" / name
        self.path = f"file://{self.folder}"
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
            "hoodie.upsert.shuffle.parallelism": "1",
        }

    def write(self, *rows: tuple[Any, ...], operation: str = "upsert", **options: str) -> None:
        frame = self.spark.createDataFrame([row if len(row) == 5 else (*row, False) for row in rows], MARKED)
        chosen = self._options | {"hoodie.datasource.write.operation": operation} | options
        frame.write.format("hudi").options(**chosen).mode("append").save(self.path)

    def rows(self) -> dict[Key, str]:
        return {(row.id, row.p): row.v for row in self.spark.read.format("hudi").load(self.path).select("id", "p", "v").collect()}


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


HISTORY: tuple[tuple[str, tuple[tuple[Any, ...], ...], set[Key]], ...] = (
    ("upsert", tuple((n, p, "seed", 1) for p, last in (("a", 7), ("b", 3)) for n in range(1, last)), set()),
    ("delete", ((1, "a", "", 0), (99, "a", "", 0)), {(1, "a")}),
    ("upsert", ((2, "a", "", 2, True), (3, "a", "new", 2), (7, "a", "added", 2)), {(2, "a")}),
    ("upsert", ((1, "a", "again", 3), (4, "a", "", 0, True)), set()),
    ("delete", ((7, "a", "", 0), (5, "a", "", 0)), {(7, "a"), (5, "a")}),
    ("delete_partition", ((1, "b", "", 0),), {(1, "b"), (2, "b")}),
    ("insert_overwrite", ((6, "a", "kept", 4), (8, "a", "fresh", 4)), {(1, "a"), (3, "a"), (4, "a")}),
)
"""Operation, rows, and the keys that are not there any more. A delete that is older than its row deletes nothing (4: it goes with the partition)."""


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_reader_that_follows_has_what_the_table_has(world: World, kind: str) -> None:
    source = Source(world, f"deletes-{kind.lower()}", kind)
    at_each = Follower(source, ByCompletion(), None)
    for operation, written, gone in HISTORY:
        options = {"hoodie.datasource.write.partitions.to.delete": "b"} if operation == "delete_partition" else {}
        source.write(*written, operation=operation, **options)
        found = at_each.follow()
        assert found == [gone] or (found[-1:] == [gone] and len(found) == 2), (operation, found)
        assert at_each.has == source.rows(), operation
    assert source.rows() == {(6, "a"): "kept", (8, "a"): "fresh"}
    for order in (ByCompletion(), Fenced(), OutOfOrder()):
        for limit in (1, None):
            late = Follower(source, order, limit)
            late.follow()
            assert late.has == source.rows(), (order, limit)
