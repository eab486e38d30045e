"""A look at the table's keys reads the partitions of the batch and no others, and misses no key
whatever the partitions are (F67).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from hudi_runtime.job.job import Job
from hudi_runtime.table.hudi import Table as HudiTable
from hudi_runtime.writer import duplicates
from tests.support.harness.local import World
from tests.support.world.job_json import JOB

DAY = datetime.date
PLAIN = ("a", "A", "b-1", "007", "1e3", "2024-01-01", "null", "true")
ODD = (None, "a b", "ü", "50%", "2024/01/02", "a.")
TYPED: Sequence[tuple[Any, ...]] = [
    ("a", 5, True, DAY(2024, 1, 1)),
    ("a", -5, False, DAY(2024, 1, 1)),
    ("b", 0, True, DAY(9999, 12, 31)),
]
TYPED_ODD: Sequence[tuple[Any, ...]] = [
    ("a", None, True, DAY(2024, 1, 1)),
    (None, 5, True, DAY(1582, 10, 15)),
    ("a", 5, None, None),
]


class Held:
    """A table whose partitions each have record 1, and what a batch becomes beside it."""

    def __init__(
        self, world: World, name: str, kind: str, fields: str, found: Sequence[tuple[Any, ...]], *, hive: bool
    ) -> None:
        self.spark, self.folder = world.spark(), world.lake / f"looked-in-{name}"
        self.fields, self._schema = (
            [field.split()[0] for field in fields.split(",")],
            f"id int, {fields}, v string, ts long",
        )
        of = {
            "path": (path := world.url(self.folder)),
            "type": kind,
            "partitionFields": self.fields,
            "hiveStylePartitioning": hive,
        }
        self._data = JOB | {"table": JOB["table"] | of, "operation": "insert"}  # type: ignore[operator]
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": ",".join(self.fields),
            "hoodie.datasource.write.hive_style_partitioning": str(hive).lower(),
            "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{'Complex' if len(self.fields) > 1 else 'Simple'}KeyGenerator",  # noqa: E501 - one literal
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.metadata.enable": "false",
        }
        for operation in ("bulk_insert", "upsert"):
            rows = self.frame([1], found)
            rows.write.format("hudi").options(**options, **{"hoodie.datasource.write.operation": operation}).mode(
                "append"
            ).save(path)
        self.columns = HudiTable(self.spark, path).columns()[0]
        """As the runtime asks for them before it makes the batch."""

    def frame(self, ids: Sequence[int], found: Sequence[tuple[Any, ...]]) -> Any:
        return self.spark.createDataFrame(
            [(number, *partition, "v", 1) for partition in found for number in ids], self._schema
        )

    def new(self, found: Sequence[tuple[Any, ...]], ids: Sequence[int] = (1, 2)) -> list[tuple[Any, ...]]:
        """What Drop leaves of records with these ids in each of these partitions."""
        job = Job.from_json(self._data | {"duplicates": "Drop"})
        with duplicates.held(self.spark, self.frame(ids, found), job, columns=self.columns) as kept:
            return sorted(((row.id, *(row[field] for field in self.fields)) for row in kept.collect()), key=str)

    @contextmanager
    def without_files(self, partition: str) -> Iterator[None]:
        """The data files of one partition cannot be read: whoever does fails."""
        files = {
            path: path.read_bytes()
            for path in (self.folder / partition).iterdir()
            if path.is_file() and not path.name.startswith(".")
        }
        assert files
        for path in files:
            path.write_bytes(b"nothing of Hudi's")
        yield
        for path, content in files.items():
            path.write_bytes(content)


@pytest.mark.extra
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_look_reads_the_partitions_of_the_batch_and_misses_no_key(world: World, kind: str) -> None:
    """Text, in folders without names: one batch of everything plain, and a batch for each value
    that a folder might not give back.
    """
    table = Held(world, f"text-{kind.lower()}", kind, "p string", [(value,) for value in (*PLAIN, *ODD)], hive=False)
    plain = [(value,) for value in PLAIN]
    assert table.new(plain) == sorted(((2, *one) for one in plain), key=str)
    for value in ODD:
        assert table.new([("a",), (value,)]) == sorted([(2, "a"), (2, value)], key=str), value
    assert table.new([("new",)]) == [(1, "new"), (2, "new")]
    with table.without_files("b-1"):
        assert table.new([("a",), ("007",)]) == [(2, "007"), (2, "a")], "files of another partition are not read"
        for read in ("b-1", "a b"):
            with pytest.raises(Exception, match="b-1"):
                table.new([(read,)])


@pytest.mark.extra
@pytest.mark.parametrize("hive", [False, True])
def test_typed_partitions(world: World, hive: bool) -> None:
    """Several columns: whole numbers, booleans and dates are read back as they were."""
    table = Held(
        world, f"typed-{hive}", "COPY_ON_WRITE", "p0 string,p1 int,p2 boolean,p3 date", [*TYPED, *TYPED_ODD], hive=hive
    )
    for found in (TYPED[:1], TYPED, *([one] for one in TYPED_ODD), [TYPED[0], TYPED_ODD[0]]):
        assert table.new(found) == sorted(((2, *one) for one in found), key=str), found
    away = "b/0/true/9999-12-31" if not hive else "p0=b/p1=0/p2=true/p3=9999-12-31"
    with table.without_files(away):
        assert table.new(TYPED[:2]) == sorted(((2, *one) for one in TYPED[:2]), key=str), (
            "files of another partition are not read"
        )


def test_a_source_that_gives_other_rows_the_second_time(world: World) -> None:
    """What is written was looked at, or the write fails: rows that are computed anew may be of a
    partition that nobody has looked in.
    """
    table = Held(world, "moody", "COPY_ON_WRITE", "p string", [("a",), ("b",)], hive=False)
    marker = world.folder / "moody"

    def moody(_: Any) -> Iterator[tuple[Any, ...]]:
        yield (1 if marker.exists() else 2, "b" if marker.exists() else "a", "v", 1)

    rows = table.spark.createDataFrame(
        table.spark.sparkContext.parallelize([0], 1).mapPartitions(moody), "id int, p string, v string, ts long"
    )
    job = Job.from_json(table._data | {"duplicates": "Drop"})
    with duplicates.held(table.spark, rows, job, columns=table.columns) as kept:
        marker.touch()
        assert [(row.id, row.p) for row in kept.collect()] == [(2, "a")], "the batch is computed once"
        rows.unpersist()
        with pytest.raises(Exception, match="HUDIOP-BATCH-CHANGED"):
            kept.select("*").collect()
