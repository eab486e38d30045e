"""What user code is given: the attempt, its table, and the metadata that makes a commit countable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hudi_runtime.job import Job
from hudi_runtime.options import commit_metadata, table_options
from hudi_runtime.session import Session


@dataclass(frozen=True)
class Context:
    """Handed to `function(spark, context)`, and returned by `current()` in an application."""

    job: Job
    inc: str
    spark: SparkSession
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def table_path(self) -> str:
        """Base path of the table."""
        return self.job.table.path

    @property
    def attempt(self) -> str:
        """Id of this attempt, `<namespace>.<driver pod>`."""
        return self.job.attempt

    def read_table(self) -> DataFrame:
        """Snapshot of the table as it is now."""
        return self.spark.read.format("hudi").load(self.table_path)

    def commit_metadata(self) -> dict[str, str]:
        """Write options that name writer, attempt and incarnation in the commit (an application passes them to its own writes)."""
        return commit_metadata(self.job, inc=self.inc, progress=None)

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
