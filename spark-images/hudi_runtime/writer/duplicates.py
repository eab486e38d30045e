"""Handling of keys that already exist, for operations without key lookup.

See `duplicates` of a HudiWriter, docs/use/indexes.md and F62.

Hudi's own lookup (`hoodie.datasource.insert.dup.policy`) is not used: the row writer of a bulk
insert makes none, and with a bucket index it treats every key of an existing bucket as known.
Instead the key columns of the table's snapshot are read, for every table type and index, as a part
of the written rows: a repeated write reads them again. The read counts for that write alone
(`Session.looking_up`): the commit is compared with all commits that completed since, so a key that
another writer has inserted meanwhile is a conflict (I13). For a partitioned table only the
partitions of the batch are read (`lookup_partitions.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame, SparkSession, Window, functions, types

from hudi_contract.outcomes import ErrorCode
from hudi_contract.words import Duplicates, Operation, TableType
from hudi_runtime.job.job import Job, KafkaSource, TableSpec
from hudi_runtime.table import values
from hudi_runtime.table.hudi import SNAPSHOT, Table
from hudi_runtime.writer import lookup_partitions

_PLACE, _TIMES, _THERE, _KEY = "_hudiop_place", "_hudiop_times", "_hudiop_there", "_hudiop_key_"
IN_THE_TABLE = "the table has this key already, and duplicates is Fail"
IN_THE_BATCH = "the batch has this key more than once, and duplicates is Fail"


@contextmanager
def held(
    spark: SparkSession, frame: DataFrame, job: Job, *, columns: types.StructType | None, validated: bool = False
) -> Iterator[DataFrame]:
    """The batch according to `duplicates`, to be written within this context.

    Without the keys of the table, or failing at the first such key. The batch of an operation that
    replaces the rows with its keys is held to itself alone.

    `frame` has the table's columns; `columns` are those that the table has now (None before its
    first commit). `validated`: the batch is computed for validations, before the instant of the
    write begins.
    """
    if not job.adds or job.duplicates == Duplicates.ALLOW or not job.table.record_keys:
        yield frame
        return
    table, fails = job.table, job.duplicates == Duplicates.FAIL
    batch = _with_place(frame, job) if fails else frame
    if job.overwrites:
        yield _held(batch, table, None, fails=fails)
        return
    prunes = lookup_partitions.may_prune(batch, columns, table.partitions)
    if not prunes and not validated:
        # Computed within the write, whose instant keeps the files.
        yield _held(batch, table, _rows(spark, table), fails=fails)
        return
    kept = batch.persist()
    try:
        looked = _looked_in(kept, table.partitions, prunes=prunes)
        # Only now: what is listed before a long batch may be cleaned when it is read (F470).
        rows = _rows(spark, table)
        yield (
            _held(kept, table, rows, fails=fails)
            if looked is None
            else _held(lookup_partitions.held(kept, looked), table, rows.where(looked), fails=fails)
        )
    finally:
        kept.unpersist()


def as_upsert(table: Table, job: Job) -> dict[str, str]:
    """Options with which Hudi looks the keys up, too, where the table needs it (F325); else none.

    For a batch of `held`, whose keys no row of the table has. In a MergeOnRead table whose log
    files have deleted rows the base files still have their keys: a record with such a key must go
    to that file group. With a bucket index every record does.
    """
    if not job.looks_up or job.table.type != TableType.MERGE_ON_READ or not table.has_rows_deleted_in_logs():
        return {}
    print("log files of the table delete rows: the insert is written as an upsert", flush=True)
    return {"hoodie.datasource.write.operation": Operation.UPSERT}


def _looked_in(kept: DataFrame, fields: Sequence[str], *, prunes: bool) -> Column | None:
    """Partitions in which the table may have a key of the batch; None: any. Computes the batch."""
    if prunes:
        return lookup_partitions.of_batch(kept, fields)
    kept.count()
    return None


def _rows(spark: SparkSession, table: TableSpec) -> DataFrame:
    """The table's rows. The commit is compared with all commits that complete from here on."""
    return spark.read.format("hudi").options(**SNAPSHOT).load(table.path)


def _held(batch: DataFrame, table: TableSpec, rows: DataFrame | None, *, fails: bool) -> DataFrame:
    """`rows`: the table's (no columns before its first commit); None: the batch replaces them."""
    keys = [functions.col(name) for name in (*table.partitions, *table.record_keys)]
    there = None
    if rows is not None and rows.columns:
        there = rows.select([key.alias(f"{_KEY}{n}") for n, key in enumerate(keys)])
    return _failing(batch, table, keys, there) if fails else _dropped(batch, table, keys, there)


def _same(keys: Sequence[Column]) -> Column:
    first, *others = [key.eqNullSafe(functions.col(f"{_KEY}{n}")) for n, key in enumerate(keys)]
    for one in others:
        first = first & one
    return first


def _dropped(frame: DataFrame, table: TableSpec, keys: Sequence[Column], there: DataFrame | None) -> DataFrame:
    """For each key, only the row with the greatest ordering values.

    Rows with existing keys are left out.
    """
    order = [functions.col(name).desc_nulls_last() for name in table.ordering] or [functions.lit(1)]
    number = functions.row_number().over(Window.partitionBy(*keys).orderBy(*order))
    one = frame.withColumn(_TIMES, number).where(functions.col(_TIMES) == 1).drop(_TIMES)
    return one if there is None else one.join(there, _same(keys), "left_anti")


def _failing(frame: DataFrame, table: TableSpec, keys: Sequence[Column], there: DataFrame | None) -> DataFrame:
    """The batch with a check that fails at a duplicate key.

    Rows with several matches would be repeated, but no row with a match passes.
    """
    marked = frame.withColumn(_TIMES, functions.count(functions.lit(1)).over(Window.partitionBy(*keys)))
    if there is None:
        marked = marked.withColumn(_THERE, functions.lit(False))
    else:
        marked = marked.join(there.withColumn(_THERE, functions.lit(True)), _same(keys), "left")
    refused = functions.when(functions.col(_THERE), _told(table, IN_THE_TABLE)).when(
        functions.col(_TIMES) > 1, _told(table, IN_THE_BATCH)
    )
    return marked.where(refused.otherwise(functions.lit(True))).drop(
        _PLACE, _TIMES, _THERE, *(f"{_KEY}{n}" for n in range(len(keys)))
    )


def _with_place(frame: DataFrame, job: Job) -> DataFrame:
    rows, place = values.located(frame, kafka=isinstance(job.source, KafkaSource))
    return rows.withColumn(_PLACE, place).drop(*values.PLACE)


def _told(table: TableSpec, why: str) -> Column:
    place = functions.col(_PLACE)
    said = [
        functions.lit(f"[{ErrorCode.BAD_DATA}] column {', '.join(table.record_keys)} of record "),
        values.named(table.record_keys),
    ]
    if table.partitions:
        said += [functions.lit(" of partition "), values.named(table.partitions)]
    said += [
        functions.when(place == "", functions.lit("")).otherwise(functions.concat(functions.lit(" in "), place)),
        functions.lit(f": {why}"),
    ]
    return functions.raise_error(functions.concat(*said)).cast("boolean")
