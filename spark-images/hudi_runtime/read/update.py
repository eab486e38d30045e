"""Batches that are made from rows of the writer's own table (read, modify, write).

No other writer's commit is lost.

Hudi compares a commit with the commits that completed since its write began. The rows were read
before that, and a retry after a lost race would use the rows of the first try again. So
(docs/use/sources.md, Read, modify, write):

* an `Update` is a function of the table's rows, called again at each try;
* its commit is compared, under the table's lock, with all commits that completed since those rows
  were read (`HUDIOP-SNAPSHOT-MOVED`);
* a plain DataFrame that follows a `context.read_table()` is compared in the same way, and a lost
  race ends the attempt: only the next attempt calls the function again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from hudi_contract.outcomes import ErrorCode
from hudi_runtime.process.errors import has_code, java_causes
from hudi_runtime.read import positions
from hudi_runtime.read.incremental import META_COLUMNS
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import SNAPSHOT, Table

_OPTION = "hoodie.write.lock.etcd.snapshot_"
LOOKS = 5
"""Number of times that the table is read if cleans are planned meanwhile."""
ISOLATION = f"{_OPTION}isolation"
"""The write option that says with which commits since then a commit is compared."""


@dataclass(frozen=True)
class Base:
    """The time of a read.

    `completion`: the rows contain all commits completed up to then (`0`: nothing
    had been committed).

    `floor`: commits that complete later were requested at this time or later.
    """

    completion: str
    floor: str
    read: str = ""
    """Name of the read: its writes know each other's commits, and are compared with all other
    commits of this process, too. Empty: those of a thread do.
    """

    def options(self, isolation: str) -> dict[str, str]:
        """Write options for the comparison of the commit.

        `isolation` is `snapshot` or `serializable` (SnapshotCheck.java).
        """
        named = {f"{_OPTION}read": self.read} if self.read else {}
        return {
            f"{_OPTION}base": self.completion,
            f"{_OPTION}floor": self.floor,
            ISOLATION: isolation,
            **named,
        }


@dataclass(frozen=True)
class Update:
    """A batch made from the table's rows.

    `rows(snapshot)` returns the rows to write, and is called again at each try.

    `snapshot` has the table's columns without Hudi's own (none before the first commit). The
    function may read `snapshot` any number of times, and must not read the table in other ways;
    side effects of a failed try are not undone. An exception, or a result that is not a DataFrame,
    ends the attempt as UserError; a commit that is refused at every try
    (`retryPolicy.writeConflict.inProcess`) ends it as WriteConflict.

    The commit is refused, and the function called again, when another writer's commit that may be
    missing from `snapshot` has changed a file group that this commit changes, or removed records
    from a partition that this commit writes to. With `serializable`, any such commit with rows is a
    conflict: the result is as if the writers had run one after another. Tables in mode NonBlocking
    are always serializable.
    """

    rows: Callable[[DataFrame], DataFrame]
    serializable: bool = False

    @property
    def isolation(self) -> str:
        """The isolation level in the write options."""
        return "serializable" if self.serializable else "snapshot"


def base_of(timeline: tl.Timeline) -> Base:
    """The base of rows that are read after this timeline was listed."""
    writes = [i for i in timeline.instants if i.action in tl.WRITE_ACTIONS]
    pending = [i.requested for i in writes if i.pending]
    return Base(timeline.newest, min(pending or [max((i.requested for i in writes), default="0")]))


def take(spark: SparkSession, table: Table) -> tuple[DataFrame, Base]:
    """The table's present rows, and their base.

    The timeline is listed first: the rows may contain more commits than the base, never fewer.
    A read that is refused because a clean was planned while it listed the files is repeated, a
    bounded number of times (F488). Raises the errors of Spark and of the store's client.
    """
    look = 1
    while True:
        base = base_of(positions.stable(table.timeline(), table.timeline()))
        try:
            return spark.read.format("hudi").options(**SNAPSHOT).load(table.path), base
        except Exception as error:
            if look == LOOKS or not has_code(java_causes(error), ErrorCode.SNAPSHOT_MOVED):
                raise
        look += 1


def plain(rows: DataFrame) -> DataFrame:
    """`rows` without Hudi's own columns."""
    return rows.drop(*META_COLUMNS)
