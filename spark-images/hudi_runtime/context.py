"""What user code is given: the attempt, its table, and the metadata that makes a commit countable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hudi_runtime.hudi import Table
from hudi_runtime.job import Job
from hudi_runtime.options import commit_metadata, table_options
from hudi_runtime.session import Session
from hudi_runtime.snapshot import Base, take


@dataclass(frozen=True)
class Context:
    """Handed to `function(spark, context)`, and returned by `current()` in an application."""

    job: Job
    inc: str
    spark: SparkSession
    arguments: Mapping[str, Any] = field(default_factory=dict)
    _read: list[Base] = field(default_factory=list)
    """What was read since the last batch; of what was read before it, the oldest that still counts comes first."""
    _given: list[Base] = field(default_factory=list)

    @property
    def table_path(self) -> str:
        """Base path of the table."""
        return self.job.table.path

    @property
    def attempt(self) -> str:
        """Id of this attempt, `<namespace>.<driver pod>`."""
        return self.job.attempt

    def read_table(self) -> DataFrame:
        """Snapshot of the table as it is now, with Hudi's own columns.

        What is written afterwards counts as made from it: a commit of another writer to the same file groups since this moment is a conflict,
        which ends the attempt (in a python source `Update` does better).
        """
        frame, base = take(self.spark, Table(self.spark, self.table_path))
        self._read.append(base)
        return frame

    def base_of_batch(self) -> Base | None:
        """Called by the runtime for each batch: when the rows were read that it may be made from. Those read since the batch before it, else the same."""
        if self._read:
            self._given[:] = [min(self._read, key=lambda base: base.completion)]
            self._read.clear()
        return self._given[0] if self._given else None

    def commit_metadata(self) -> dict[str, str]:
        """Write options that name writer, attempt and incarnation in the commit (an application passes them to its own writes).

        Also when it has read the table, so that what was committed since then is not overwritten unseen.
        """
        base = self.base_of_batch()
        return commit_metadata(self.job, inc=self.inc, progress=None) | (base.options("frame") if base else {})

    def table_options(self) -> dict[str, str]:
        """Write options that say which table it is."""
        return table_options(self.job.table)


_current: list[Context] = []


def set_current(context: Context) -> None:
    """Called by the runtime before the application starts."""
    _current[:] = [context]


def current() -> Context:
    """The context of this application; raises RuntimeError outside of one."""
    if not _current:
        raise RuntimeError("there is no current context: the program was not started by the hudi-operator runtime")
    return _current[0]


def make(job: Job, session: Session, spark: SparkSession, arguments: Mapping[str, Any]) -> Context:
    """Context of this attempt."""
    return Context(job=job, inc=session.inc, spark=spark, arguments=arguments)
