"""Operation `InsertOverwrite`: a batch replaces all rows of its partitions, or of the table.

Hudi does this in one commit: it writes new file groups and names those that they replace. A commit
of another writer to one of those partitions meanwhile is a conflict
(`FencedConflictResolutionStrategy.java`), so that its rows are replaced, too. Rows that are
inserted afterwards stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from hudi_contract.outcomes import FailureClass
from hudi_contract.words import Operation
from hudi_runtime.job.job import Job
from hudi_runtime.process.errors import RuntimeFailure

NO_ROWS = (
    "operation InsertOverwrite: the batch has no rows, overwrite.scope is Table and overwrite.ifEmpty Fail; nothing "
    "was replaced"
)


@contextmanager
def held(frame: DataFrame, job: Job) -> Iterator[DataFrame]:
    """The batch, to be written within this context.

    Raises RuntimeFailure(BadData) when it would leave the table empty, unless that is allowed. The
    rows are kept in Spark's cache: a source may return other rows the second time.
    """
    if job.operation != Operation.INSERT_OVERWRITE_TABLE or job.may_truncate:
        yield frame
        return
    kept = frame.persist()
    try:
        if kept.isEmpty():
            raise RuntimeFailure(FailureClass.BAD_DATA, NO_ROWS)
        yield kept
    finally:
        kept.unpersist()
