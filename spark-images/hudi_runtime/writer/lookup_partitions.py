"""The partitions that a lookup of keys must read.

Those of the batch's rows, because no other partition can hold their keys (`duplicates`; F67).

A key is unique within its partition, so only the partitions of the batch are read. Hudi prunes
partitions by their paths, which it parses as values of the partition columns. This module relies on
that only for values that a path certainly preserves; with any other value in the batch, including
null, the whole table is read.

The values must be known before the rows are written, so the batch is cached (by Spark, on disk if
memory is short), not computed twice: a source may return other rows the second time. When a part of
the cache is lost and computed again, a row of another partition fails the write.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row, functions, types

from hudi_contract.outcomes import ErrorCode
from hudi_runtime.table.values import NO_VALUE, PARTITION_KINDS

MOST_PARTITIONS = 500
"""A batch with rows of more partitions is compared with the whole table: the condition grows with
each partition.
"""
_WORD = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?")
_YEARS = (1900, 9999)
"""Range of years; earlier dates depend on the calendar."""


def may_prune(frame: DataFrame, columns: types.StructType | None, fields: Sequence[str]) -> bool:
    """Whether batch and table have the partition columns.

    Their types must be equal, and a path must preserve them. `columns`: those of the table; None
    before its first commit.
    """
    here, there = (
        {field.name: field.dataType for field in of.fields} for of in (frame.schema, columns or types.StructType())
    )
    return bool(fields) and all(
        name in here and here[name] == there.get(name) and isinstance(here[name], PARTITION_KINDS) for name in fields
    )


def of_batch(kept: DataFrame, fields: Sequence[str]) -> Column | None:
    """A condition that holds for all rows of the batch; None: unknown.

    It holds for all rows of the table that may have one of its keys, too. Computes the batch.
    """
    found = kept.select(*fields).distinct().limit(MOST_PARTITIONS + 1).collect()
    return condition(fields, found)


def condition(fields: Sequence[str], found: Sequence[Row | tuple[object, ...]]) -> Column | None:
    """The condition for these partitions.

    Rows with one of their values in each partition column.
    """
    if len(found) > MOST_PARTITIONS or not all(plain(value) for row in found for value in row):
        return None
    one, *others = [functions.col(name).isin(sorted({row[n] for row in found})) for n, name in enumerate(fields)]
    for other in others:
        one = one & other
    return one


def plain(value: object) -> bool:
    """Whether a path preserves this value, whatever its type."""
    if isinstance(value, datetime.date):
        return _YEARS[0] <= value.year <= _YEARS[1]
    if isinstance(value, str):
        return _WORD.fullmatch(value) is not None and value != NO_VALUE
    return isinstance(value, (bool, int))


def held(kept: DataFrame, looked: Column) -> DataFrame:
    """The batch with a check that fails at a row outside the partitions that were found."""
    said = (
        f"[{ErrorCode.BATCH_CHANGED}] the batch has a row of a partition that it did not have when it was first "
        "computed: the source does not return the same rows each time"
    )
    return kept.where(
        functions.when(looked, functions.lit(True)).otherwise(
            functions.raise_error(functions.lit(said)).cast("boolean")
        )
    )
