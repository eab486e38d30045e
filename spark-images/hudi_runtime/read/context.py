"""The context of user code.

The attempt, its table, and the metadata that identifies its commits.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hudi_runtime.job.job import Job
from hudi_runtime.job.options import commit_metadata, table_options
from hudi_runtime.process.session import Session
from hudi_runtime.read.reads import Reads
from hudi_runtime.read.update import Base, take
from hudi_runtime.table.hudi import Table


@dataclass(frozen=True)
class Context:
    """The attempt that user code runs in.

    Passed to `function(spark, context)`, and returned by `current_context()` in an application.
    """

    job: Job
    """The operator's description of the attempt (docs/design/contracts.md, section 6); its fields
    are internal to the runtime.
    """
    inc: str
    """Id of this process's incarnation; the metadata of its commits contain it."""
    spark: SparkSession
    """The session of this process."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """`source.python.arguments` of the HudiWriter; empty in an application."""
    _reads: Reads = field(default_factory=Reads)

    @property
    def table_path(self) -> str:
        """Base path of the table, with its scheme and without a slash at the end."""
        return self.job.table.path

    @property
    def attempt(self) -> str:
        """Id of this attempt, `<namespace>.<driver pod>`."""
        return self.job.attempt

    def read_table(self) -> DataFrame:
        """Current snapshot of the table, with Hudi's own columns.

        Later writes count as made from it: a commit of another writer to the same file groups since
        this moment is a conflict, which ends the attempt as WriteConflict (in a python source,
        prefer `Update`). Raises the errors of Spark and of the store's client.
        """
        frame, base = take(self.spark, Table(self.spark, self.table_path))
        self._reads.add(replace(base, read=uuid.uuid4().hex))
        return frame

    def base_of_batch(self) -> Base | None:
        """Called by the runtime for each batch.

        The base of the rows that the batch may be made from.

        See `Reads.of_batch`.
        """
        return self._reads.of_batch()

    def commit_metadata(self) -> dict[str, str]:
        """Write options that record writer, attempt and incarnation in the commit.

        An application passes them to its own writes.

        They also record when the program read the table, so that later commits are not overwritten
        unseen. This includes commits of other threads of this program: of its own commits, only
        those that the same thread made from the same read count as known.
        """
        base = self.base_of_batch()
        if base is None:
            return commit_metadata(self.job, inc=self.inc, progress=None)
        named = replace(base, read=f"{base.read}-{self._reads.thread}")
        return commit_metadata(self.job, inc=self.inc, progress=None) | named.options("snapshot")

    def table_options(self) -> dict[str, str]:
        """Write options that identify the table.

        Its name, type, key, partition and ordering fields. For an application's own writes.
        """
        return table_options(self.job.table)


_current: list[Context] = []


def set_current(context: Context) -> None:
    """Called by the runtime before the application starts."""
    _current[:] = [context]


def current_context() -> Context:
    """The context of this application.

    Raises RuntimeError in a program that the runtime has not started.
    """
    if not _current:
        raise RuntimeError("there is no current context: the program was not started by the hudi-operator runtime")
    return _current[0]


def make(job: Job, session: Session, spark: SparkSession, arguments: Mapping[str, Any]) -> Context:
    """Context of this attempt."""
    return Context(job=job, inc=session.inc, spark=spark, arguments=arguments)
