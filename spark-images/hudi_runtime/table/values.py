"""Values that no row may hold, checked before Hudi gets the row.

Errors have column, record, rule, and the file or the place in Kafka that the row comes from
(docs/use/what-a-table-can-hold.md).

A partition's value is a literal part of a path: Hudi and Hadoop would write a row of `a//b`, `..`
or `x:y` elsewhere or nowhere, and Spark reads the value back from the path. So only values that a
path preserves are accepted. Then a table needs no encoding, and writers, services, patterns and
readers use one name for a partition. The check is part of the written rows: Spark computes them
once, and a refused row never reaches Hudi's key generator.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, functions, types

from hudi_contract.outcomes import ErrorCode, FailureClass
from hudi_contract.words import TableType
from hudi_runtime.job.job import TableSpec
from hudi_runtime.process.errors import JavaCause, RuntimeFailure

PARTITION_KINDS = (
    types.StringType,
    types.ByteType,
    types.ShortType,
    types.IntegerType,
    types.LongType,
    types.BooleanType,
    types.DateType,
)
"""Types whose values Hudi writes into a path as text that Spark reads back as the same value."""
PLAIN_KINDS = (
    *PARTITION_KINDS,
    *(types.TimestampType, types.TimestampNTZType, types.DecimalType, types.FloatType, types.DoubleType),
)
"""Types whose values have one text and one order, in every representation in a batch, a log file or
a reader.
"""
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Hudi's folder for rows without a value: read back as null."""
SEGMENT_BYTES = 200
"""Limit for one folder's name, including `field=`: file systems allow 255."""
PATH_BYTES = 500
"""Limit for a partition's whole path: S3 allows 1024 for the path of a table, a partition, a file
and Hudi's marker of the file.
"""
SHOWN = 80
PLACE = ("_hudiop_topic", "_hudiop_partition", "_hudiop_offset")
"""Columns that say where in Kafka a row was (`KafkaPlaces.java`); they are not written."""
CAUSE = "_hudiop_cause"
"""Column that says why a row is left out."""
DELETED = "_hoodie_is_deleted"
"""Hudi's column: a row that has true there deletes its record."""
KEY_WORDS = ("__null__", "__empty__")
"""Hudi's words for null and for empty text in a key of several columns."""


def held(
    frame: DataFrame, table: TableSpec, *, delete: bool = False, adds: bool = False, kafka: bool = False
) -> DataFrame:
    """The batch with a check that fails at the first invalid row.

    `frame` has the table's columns.

    `delete`: its rows only name records; `adds`: the operation deletes none; `kafka`: they come
    from the source `kafka`.
    Raises RuntimeFailure(SchemaMismatch) when a key, partition or ordering column has an
    unsupported type.
    """
    rules = _rules(frame, table, delete=delete, adds=adds)
    if not rules:
        return frame
    rows, place = located(frame, kafka=kafka)
    return rows.where(_passes(rules, table, place)).drop(*PLACE)


def marked(frame: DataFrame, table: TableSpec, *, delete: bool = False, adds: bool = False) -> DataFrame | None:
    """The rows of a batch from Kafka with `PLACE`, and `CAUSE` of those that `held` would refuse.

    None when there is no rule, or the plan does not show the record of a row. Take `valid` and
    `refused` from one execution: a query may say otherwise in another one.
    """
    rules = _rules(frame, table, delete=delete, adds=adds)
    rows, place = located(frame, kafka=True)
    if not rules or rows.columns == frame.columns:
        return None
    return rows.withColumn(CAUSE, _first(rules, table, place))


def valid(marks: DataFrame) -> DataFrame:
    """The valid ones of `marked` rows, with the columns of the batch."""
    return marks.where(functions.col(CAUSE).isNull()).drop(*PLACE, CAUSE)


def refused(marks: DataFrame) -> DataFrame:
    """`PLACE` and `CAUSE` of the others."""
    return marks.where(functions.col(CAUSE).isNotNull()).select(*PLACE, CAUSE)


def _rules(frame: DataFrame, table: TableSpec, *, delete: bool, adds: bool) -> list[_Rule]:
    """Every rule for the rows of a batch; the types of its columns are checked at once."""
    _check_types(frame, table.partitions, PARTITION_KINDS, PARTITION_RULE)
    _check_types(frame, table.record_keys, PLAIN_KINDS, KEY_RULE)
    _check_types(frame, () if delete else table.ordering, PLAIN_KINDS, ORDERING_RULE)
    if table.type != TableType.MERGE_ON_READ:
        _check_types(frame, () if delete else table.ordering, UPDATED_KINDS, UPDATED_RULE)
    rules = [
        *_partition_rules(frame, table),
        *_key_rules(frame, table),
        *([] if delete or table.merge.ignores_nulls else _ordering_rules(table)),
    ]
    if adds and DELETED in frame.columns:
        rules.append((DELETED, functions.col(DELETED), DELETE_RULE))
    return rules


def located(frame: DataFrame, *, kafka: bool) -> tuple[DataFrame, Column]:
    """The rows, with the columns `PLACE` if the second needs them, and where each row comes from.

    The second is a text that Spark treats as nondeterministic: a file, or a record of Kafka. Empty
    for rows of neither, and for rows that are made from several files or records.
    """
    if kafka:
        jvm: Any = frame.sparkSession._jvm
        rows = DataFrame(jvm.io.hudioperator.statements.KafkaPlaces.located(frame._jdf), frame.sparkSession)
        told = functions.format_string("topic %s, partition %d, offset %d", *(functions.col(name) for name in PLACE))
        return (frame, nowhere()) if rows.columns == frame.columns else (rows, functions.concat(told, nowhere()))
    file = functions.input_file_name()
    try:
        frame.select(file)
    except AnalysisException:  # rows of several sources come from no one file
        return frame, nowhere()
    return frame, file


def nowhere() -> Column:
    """An empty text that Spark treats as nondeterministic.

    Spark would move a deterministic check below joins of the batch, where it would refuse rows that
    the batch does not have (F101).
    """
    return functions.when(functions.spark_partition_id() < 0, functions.lit(" ")).otherwise(functions.lit(""))


def _check_types(frame: DataFrame, fields: Sequence[str], kinds: tuple[type[types.DataType], ...], rule: str) -> None:
    for name, field in zip(fields, frame.select([functions.col(name) for name in fields]).schema.fields, strict=True):
        if not isinstance(field.dataType, kinds):
            raise RuntimeFailure(
                FailureClass.SCHEMA_MISMATCH, f"column {name}: it is {field.dataType.simpleString()}; {rule}"
            )


PARTITION_RULE = (
    "a partition column holds text, whole numbers, booleans or dates; derive one in transform.sql (of a "
    "timestamp: its date)"
)
KEY_RULE = (
    "a record key holds text, numbers, booleans, dates or timestamps; derive one in transform.sql (of binary: hex)"
)
ORDERING_RULE = (
    "an ordering column holds text, numbers, booleans, dates or timestamps; derive one in transform.sql (of "
    "binary: hex)"
)
UPDATED_RULE = (
    "Hudi cannot compare decimals and dates when it updates a CopyOnWrite table; "
    "cast it in transform.sql: a decimal to a bigint of its smallest unit, a date to a timestamp"
)
UPDATED_KINDS = tuple(kind for kind in PLAIN_KINDS if kind not in (types.DecimalType, types.DateType))


_Rule = tuple[str, Column, str]
"""A column, the condition under which its value is refused, and the reason."""


def _partition_rules(frame: DataFrame, table: TableSpec) -> list[_Rule]:
    rules: list[_Rule] = []
    schema = (
        frame.select([functions.col(name) for name in table.partitions]).schema
        if table.partitions
        else types.StructType()
    )
    lengths = [functions.lit(0)]
    for name, field in zip(table.partitions, schema.fields, strict=True):
        value = functions.col(name)
        if not isinstance(field.dataType, types.StringType):
            if isinstance(field.dataType, types.DateType):
                rules.append(
                    (
                        name,
                        ~functions.year(value).between(1, 9999),
                        "a date that is a partition has a year from 1 to 9999",
                    )
                )
            continue
        rules += [
            (name, value == functions.lit(""), "a partition's value is not empty (null has a partition of its own)")
        ]
        rules += [(name, value == functions.lit(NO_VALUE), "this is the name of the partition for null")]
        rules += [(name, value.rlike(expression), why) for expression, why in UNSAFE]
        prefix = len(f"{name}=".encode()) if table.hive_style else 0
        if prefix or len(table.partitions) > 1:
            rules += [
                (
                    name,
                    value.contains("/"),
                    (
                        "a partition's value has no / when there are several partition columns or "
                        "hiveStylePartitioning is true"
                    ),
                )
            ]
        longest = functions.array_max(functions.transform(functions.split(value, "/"), functions.octet_length))
        rules += [
            (
                name,
                longest > SEGMENT_BYTES - prefix,
                f"a folder of a partition has at most {SEGMENT_BYTES} bytes (UTF-8)",
            )
        ]
        lengths.append(functions.coalesce(functions.octet_length(value), functions.lit(0)))
    if len(lengths) > 1:
        whole = sum(lengths[2:], lengths[1])
        rules += [
            (
                table.partitions[-1],
                whole > PATH_BYTES,
                f"the values of a partition have at most {PATH_BYTES} bytes (UTF-8)",
            )
        ]
    return rules


UNSAFE: Sequence[tuple[str, str]] = (
    (r"[\x00-\x1f\x7f]", "a partition's value has no control characters"),
    (r"(^|/)\.", "no folder of a partition begins with a dot"),
    (r"^/|//|/$", "a partition's value does not begin or end with /, and has no //"),
    (r"[:=\\]", "a partition's value has no colon, no equals sign and no backslash"),
    (
        r"%[0-9A-Fa-f]{2}",
        "a partition's value has no % before two hexadecimal digits: Spark would read them as one character",
    ),
)
"""Java regular expressions for text that a path does not preserve, and the rule."""


def _key_rules(frame: DataFrame, table: TableSpec) -> list[_Rule]:
    """Rules for record keys.

    Hudi writes a key of several columns as `a:1,b:2`, with words for null and empty: two records
    must not get the same key.
    """
    rules: list[_Rule] = []
    schema = (
        frame.select([functions.col(name) for name in table.record_keys]).schema
        if table.record_keys
        else types.StructType()
    )
    several = len(table.record_keys) > 1
    names = "|".join(re.escape(name) for name in table.record_keys)
    for name, field in zip(table.record_keys, schema.fields, strict=True):
        value = functions.col(name)
        text = isinstance(field.dataType, types.StringType)
        if isinstance(field.dataType, (types.FloatType, types.DoubleType)):
            rules += [(name, (value == functions.lit(0.0)) & value.cast("string").startswith("-"), NEGATIVE_ZERO)]
        if not several:
            rules += [(name, value.isNull(), "a record key has a value")]
            rules += [(name, value == functions.lit(""), "a record key is not empty")] if text else []
        elif text:
            rules += [(name, value.isin(*KEY_WORDS), "this is how a key of several columns says null or empty")]
            rules += [(name, value.rlike(f",({names}):"), "it reads like the next column of the key")]
    if several:
        absent = [
            functions.coalesce(functions.col(name).cast("string"), functions.lit("")) == functions.lit("")
            for name in table.record_keys
        ]
        rules += [
            (
                table.record_keys[0],
                functions.forall(functions.array(*absent), lambda one: one),
                "one column of a record key at least has a value",
            )
        ]
    return rules


DELETE_RULE = (
    "this row is a delete, and Insert, BulkInsert and InsertOverwrite take none; use operation Upsert, or leave it "
    "out in transform.sql"
)
NEGATIVE_ZERO = "0.0 and -0.0 are one number, and would be two keys; write it as 0.0 (in transform.sql: id + 0.0)"


def _ordering_rules(table: TableSpec) -> list[_Rule]:
    return [
        (name, functions.col(name).isNull(), "an ordering column has a value in every row") for name in table.ordering
    ]


def _passes(rules: Sequence[_Rule], table: TableSpec, place: Column) -> Column:
    """True for a valid row; raises an error for a row that breaks a rule."""
    checks = [(refused, functions.raise_error(told).cast("boolean")) for refused, told in _checks(rules, table, place)]
    return _first_of(checks).otherwise(functions.lit(True))


def _first(rules: Sequence[_Rule], table: TableSpec, place: Column) -> Column:
    """What the first rule that a row breaks says of it; null for a valid row."""
    return _first_of(_checks(rules, table, place))


def _checks(rules: Sequence[_Rule], table: TableSpec, place: Column) -> list[tuple[Column, Column]]:
    """For each column, when its value is refused, and what is said of the row.

    Spark generates the code of this expression for each batch. A message for each rule instead of
    each column made that a tenth of the driver's processor time of a small commit.
    """
    by_column: dict[str, list[_Rule]] = {}
    for rule in rules:
        by_column.setdefault(rule[0], []).append(rule)
    return [
        (reduce(operator.or_, [refused for _, refused, _ in own]), _told(name, table, place, _reason(own)))
        for name, own in by_column.items()
    ]


def _reason(rules: Sequence[_Rule]) -> Column:
    """Why a row is refused that breaks one of these rules: the first of them."""
    return _first_of([(refused, functions.lit(why)) for _, refused, why in rules])


def _first_of(branches: Sequence[tuple[Column, Column]]) -> Column:
    found = functions.when(*branches[0])
    for condition, value in branches[1:]:
        found = found.when(condition, value)
    return found


def _told(name: str, table: TableSpec, place: Column, why: Column) -> Column:
    where = functions.when(place == "", functions.lit("")).otherwise(functions.concat(functions.lit(" in "), place))
    said = [
        functions.lit(f"[{ErrorCode.BAD_DATA}] column {name} of record "),
        named(table.record_keys),
        where,
        functions.lit(" is "),
        _shown(functions.col(name)),
        functions.lit(": "),
        why,
    ]
    return functions.concat(*said)


def named(fields: Sequence[str]) -> Column:
    """Columns and their values, for a message."""
    return functions.concat_ws(
        ", ", *(functions.concat(functions.lit(f"{field}="), _shown(functions.col(field))) for field in fields)
    )


def _shown(value: Column) -> Column:
    """A value as text, truncated and on one line."""
    text = functions.regexp_replace(value.cast("string"), r"[\x00-\x1f\x7f]", "?")
    quoted = functions.concat(functions.lit("'"), text, functions.lit("'"))
    long = functions.concat(functions.lit("'"), functions.substring(text, 1, SHOWN), functions.lit("…'"))
    return (
        functions.when(value.isNull(), functions.lit("null"))
        .when(functions.length(text) > SHOWN, long)
        .otherwise(quoted)
    )


UNREADABLE = re.compile(
    r"(EOFException|ZipException|ParquetDecodingException|AvroRuntimeException|OrcCorruptFormatException|"
    r"FileFormatException)$"
)
UNREADABLE_TEXT = re.compile(
    r"Malformed records are detected|is not a Parquet file|incorrect (header|data) check|invalid (block type|stored "
    r"block|distance|code)|[Cc]orrupt"
)


def unreadable(causes: Sequence[JavaCause]) -> bool:
    """Whether these causes show that the file itself is unreadable.

    A failure of the store, the network or this process is another thing.
    """
    return any(UNREADABLE.search(cause.type) or UNREADABLE_TEXT.search(cause.message) for cause in causes)
