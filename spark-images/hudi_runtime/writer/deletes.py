"""Operation `Delete` in a MergeOnRead table with ordering fields (docs/use/merging.md, F326).

There a deletion needs the ordering value of the row that it deletes, so that the table's rows are
read: `OrderedDeletes.java` joins them with the batch. This module only says in which partitions
they are (`lookup_partitions.py`).

The read only finds the versions of the records that the batch names. So in the non-blocking mode it
is not compared with other commits: a version that is committed meanwhile is a later one, or one
that loses against the deletion, by its ordering value (F425).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, types

from hudi_contract.words import MergeMode, Operation, TableType
from hudi_runtime.job.job import Job
from hudi_runtime.writer import lookup_partitions

IN = "hoodie.write.lock.etcd.deleted_in"


@contextmanager
def held(
    frame: DataFrame, job: Job, *, columns: types.StructType | None
) -> Iterator[tuple[DataFrame, Mapping[str, str]]]:
    """The batch, to be written within this context, and options of the write.

    `columns`: those that the table has now; None before its first commit.
    """
    table = job.table
    if job.operation != Operation.DELETE or table.type != TableType.MERGE_ON_READ or not table.ordering:
        yield frame, {}
        return
    if table.merge.mode != MergeMode.EVENT_TIME:
        yield frame, {}
        return
    if not lookup_partitions.may_prune(frame, columns, table.partitions):
        yield frame, {}
        return
    kept = frame.persist()
    try:
        looked = lookup_partitions.of_batch(kept, table.partitions)
        if looked is None:
            yield kept, {}
        else:
            condition = str(looked._jc.expr().sql())
            yield lookup_partitions.held(kept, looked), {IN: condition}
    finally:
        kept.unpersist()
