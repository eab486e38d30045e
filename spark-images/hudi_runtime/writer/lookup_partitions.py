"""The partitions that a look at the table's keys has to read: those of the batch's rows, where nothing else could hold their keys (`duplicates`; F67).

A key is one of its partition, so only the partitions that the batch names are read. Hudi leaves out partitions by their paths, which it reads as values of
the partition columns. That is relied on only for values that a path gives back beyond doubt; any other value in the batch, null among them, means that
the whole table is read.

The values are known before the rows are written, so the batch is kept (Spark's cache, on disk where memory does not do), not computed twice: a source may give
other rows the second time. When a part of it is lost and computed anew, a row of another partition fails the write.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row, functions, types

from hudi_contract.outcomes import ErrorCode

MOST_PARTITIONS = 500
"""A batch with rows of more partitions than that is compared with the whole table: the condition grows with each of them."""
_KINDS = (types.StringType, types.ByteType, types.ShortType, types.IntegerType, types.LongType, types.BooleanType, types.DateType)
_WORD = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?")
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_YEARS = (1900, 9999)
"""Dates before have other calendars."""


def may_prune(frame: DataFrame, rows: DataFrame, fields: Sequence[str]) -> bool:
    """Whether batch and table have the partition columns, with one type that a path gives back."""
    here, there = ({field.name: field.dataType for field in of.schema.fields} for of in (frame, rows))
    return bool(fields) and all(name in here and here[name] == there.get(name) and isinstance(here[name], _KINDS) for name in fields)


def of_batch(kept: DataFrame, fields: Sequence[str]) -> Column | None:
    """What is true of each row of the batch, and of each row of the table that may have one of its keys; None: that is not known. Computes the batch."""
    found = kept.select(*fields).distinct().limit(MOST_PARTITIONS + 1).collect()
    return condition(fields, found)


def condition(fields: Sequence[str], found: Sequence[Row | tuple[object, ...]]) -> Column | None:
    """The same for these partitions: those of the table that have one of their values in each column."""
    if len(found) > MOST_PARTITIONS or not all(plain(value) for row in found for value in row):
        return None
    one, *others = [functions.col(name).isin(sorted({row[n] for row in found})) for n, name in enumerate(fields)]
    for other in others:
        one = one & other
    return one


def plain(value: object) -> bool:
    """Whether the folder of this value is read back as this value, whatever its type."""
    if isinstance(value, datetime.date):
        return _YEARS[0] <= value.year <= _YEARS[1]
    if isinstance(value, str):
        return _WORD.fullmatch(value) is not None and value != _HIVE_NULL
    return isinstance(value, (bool, int))


def held(kept: DataFrame, looked: Column) -> DataFrame:
    """The batch, which fails at a row that it did not have when its partitions were looked at."""
    said = f"[{ErrorCode.BATCH_CHANGED}] the batch has a row of another partition than when it was first computed: its source gives other rows each time"
    return kept.where(functions.when(looked, functions.lit(True)).otherwise(functions.raise_error(functions.lit(said)).cast("boolean")))
