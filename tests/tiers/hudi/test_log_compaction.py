"""Why log compaction is not offered: what Hudi 1.2.0 gives to incremental readers after it.

If a test here fails, Hudi has changed.
"""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.table import timeline as tl
from tests.support.harness.local import ROW_SCHEMA, World, rows
from tests.support.harness.stock_tables import OPTIONS

pytestmark = pytest.mark.extra
NAME = "log_compacted"
STOCK = {
    **OPTIONS,
    "hoodie.table.name": NAME,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.log.compaction.blocks.threshold": "2",
    "hoodie.parquet.compression.codec": "snappy",
}


class Stock:
    """A MergeOnRead table of stock Hudi, written and read in this process."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark, self._path = spark, path
        self.table = AgentTable(spark, path)

    def upsert(self, first: int, value: str, ts: int) -> tl.Instant:
        frame = self._spark.createDataFrame(rows(range(first, 10), "a", value, ts), ROW_SCHEMA)
        frame.write.format("hudi").options(**STOCK).mode("append").save(self._path)
        last = self.table.timeline().last_completed
        assert last is not None
        return last

    def compact_logs(self) -> tl.Instant:
        with self.table.client(self.table.write_config(NAME, STOCK)) as client:
            plan = client.scheduleLogCompaction(self.table.no_option())
            assert plan.isPresent()
            client.logCompact(plan.get(), True)
        done = self.table.timeline().get(str(plan.get()))
        assert done is not None
        assert done.planned == "logcompaction"
        return done

    def snapshot(self) -> set[tuple[Any, ...]]:
        return {
            tuple(row) for row in self._spark.read.format("hudi").load(self._path).select("id", "v", "ts").collect()
        }

    def pull(self, start: tl.Instant, end: tl.Instant, *, without: str = "") -> set[int]:
        """Ids that came after a commit up to another one.

        `without`: a reader leaves out what bears that instant.
        """
        options = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": start.completion,
            "hoodie.datasource.read.end.instanttime": end.completion,
        }
        frame = self._spark.read.format("hudi").options(**options).load(self._path)
        return {row.id for row in frame.where(col("_hoodie_commit_time") != without).select("id").collect()}


@pytest.fixture
def stock(world: World) -> Stock:
    return Stock(world.spark(), world.url(world.lake / NAME))


def test_what_incremental_readers_get_after_a_log_compaction(stock: Stock) -> None:
    """It writes its own instant into every row that it merges.

    A pull that spans it gives rows again that no commit of the pull has changed; a reader that
    takes the rows of the commits which it wants (source.hudi, out of order or fenced) does
    not get them.
    """
    seed, _, second = (stock.upsert(first, f"v{first}", first) for first in (0, 2, 4))
    third = stock.upsert(8, "v8", 8)
    before = stock.snapshot()
    assert stock.pull(seed, third) == {2, 3, 4, 5, 6, 7, 8, 9}
    assert stock.pull(second, third) == {8, 9}, "what the third commit has changed"
    merged = stock.compact_logs()
    assert stock.snapshot() == before, "the rows themselves are right"
    assert stock.pull(second, third) == {8, 9}, "a pull that ends before it is right"
    assert stock.pull(second, merged) == {2, 3, 4, 5, 6, 7, 8, 9}, "rows that had come before come again"
    assert stock.pull(second, merged, without=merged.requested) == set(), (
        "and bear none of the commits that brought them"
    )
