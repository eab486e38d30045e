"""Batches that are made from rows of the writer's own table (read, modify, write), so that no other writer's commit is lost.

Hudi compares a commit with what completed since its write began. Rows were read before that, and a write that lost a race would be made once
more from the rows of the first try. So (docs/use/sources.md, Read, modify, write):

* an `Update` is a function of the table's rows, asked anew at each try;
* its commit is compared, under the table's lock, with everything that completed since those rows were read (`HUDIOP-SNAPSHOT-MOVED`);
* a plain DataFrame that follows a `context.read_table()` is compared in the same way, and a lost race ends the attempt: only the next one
  asks the function again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from hudi_runtime.read import positions
from hudi_runtime.read.incremental import META_COLUMNS
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import Table

_OPTION = "hoodie.write.lock.etcd.snapshot_"
ISOLATION = f"{_OPTION}isolation"


@dataclass(frozen=True)
class Base:
    """When rows were read. `completion`: everything completed up to then is in them (`0`: nothing had been committed).

    `floor`: what completes later was requested at this time or later.
    """

    completion: str
    floor: str
    read: str = ""
    """Name of the read: writes made from it know each other, and compare themselves with all others of this process too. Empty: writes of one thread do."""

    def options(self, isolation: str) -> dict[str, str]:
        """Write options by which the commit is compared; `isolation` is `frame`, `snapshot` or `serializable` (SnapshotCheck.java)."""
        named = {f"{_OPTION}read": self.read} if self.read else {}
        return {f"{_OPTION}base": self.completion, f"{_OPTION}floor": self.floor, ISOLATION: isolation, **named}


@dataclass(frozen=True)
class Update:
    """A batch made from the table's rows: `rows(snapshot)` gives what is to be written, and is asked anew at each try.

    `snapshot` has the table's columns without Hudi's own (none before the first commit). The function may read `snapshot` as often as it
    likes, and nothing else of the table; what it has done besides returning rows is not undone when the try fails. What it raises, or a result that
    is no DataFrame, ends the attempt as UserError; a commit that is refused at every try (`retryPolicy.writeConflict.inProcess`) as WriteConflict.

    The commit is refused, and the function asked again, when a commit of another writer that `snapshot` may not have has changed a file group
    that this one changes, or removed records from a partition that this one writes to. With `serializable`, when there was any commit with
    rows: then it is as if the writers had run one after another. In tables of the mode NonBlocking always so.
    """

    rows: Callable[[DataFrame], DataFrame]
    serializable: bool = False

    @property
    def isolation(self) -> str:
        """Its name among the write options."""
        return "serializable" if self.serializable else "snapshot"


def base_of(timeline: tl.Timeline) -> Base:
    """The base of what is read after this timeline was listed."""
    last = timeline.last_completed
    writes = [i for i in timeline.instants if i.action in tl.WRITE_ACTIONS]
    pending = [i.requested for i in writes if i.pending]
    return Base(last.completion if last else "0", min(pending or [max((i.requested for i in writes), default="0")]))


def take(spark: SparkSession, table: Table) -> tuple[DataFrame, Base]:
    """The table's rows now, and their base. The timeline is listed first: rows may have more than the base says, never less."""
    base = base_of(positions.stable(table.timeline(), table.timeline()))
    return spark.read.format("hudi").load(table.path), base


def plain(rows: DataFrame) -> DataFrame:
    """Without Hudi's own columns."""
    return rows.drop(*META_COLUMNS)
