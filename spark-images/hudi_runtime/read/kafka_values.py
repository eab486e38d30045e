"""Values of Kafka's records as columns: text, JSON and Avro, also behind the header of a registry.

A record whose value does not parse fails the job, or is told apart (`onBadRecord`). Errors have its
offset, never its content.

With a registry each value says the id of its schema. The ids of a batch are read first, and their
schemas are asked for by the driver, so that executors need no access to the registry. An Avro value
is read with its own schema and converted to the one of the source, by Avro's rules for readers and
writers; `schema` of the source alone determines the columns.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, types
from pyspark.sql import functions as f

from hudi_contract.outcomes import ErrorCode, FailureClass
from hudi_runtime.job.job import KafkaSource
from hudi_runtime.process.addresses import Address, forbidden
from hudi_runtime.process.errors import RuntimeFailure, UserCodeError
from hudi_runtime.read import files, registry
from hudi_runtime.table.values import CAUSE, PLACE

META = ("key", "topic", "partition", "offset", "timestamp")
META_PREFIX = "_kafka_"
COLUMNS = ("key", "value", *META[1:])
"""Kafka's own columns of a record."""
HEADER_BYTES = 5
MOST_IDS = 1000
"""Schema ids of one batch: bytes that are no header give any number."""
_CORRUPT = "_corrupt_record"
_ID = "_schema_id"
_VALUE = "_value"


@dataclass(frozen=True)
class _Parsed:
    """Records with their parsed value in `_value`."""

    frame: DataFrame
    names: Sequence[str]
    """The fields of the value."""
    bad: Column
    """Whether the value does not parse; never null."""
    rule: Column
    """The rule that such a value breaks."""
    told: bool = True
    """Whether `bad` knows each of them; else reading fails at the first one."""


@dataclass(frozen=True)
class Values:
    """The records of one batch; `frame` has `COLUMNS`. `empty`: it has no record.

    `refused`: addresses at which no registry is asked.
    """

    spark: SparkSession
    source: KafkaSource
    frame: DataFrame
    empty: bool = False
    refused: Callable[[Address], bool] = field(default=forbidden)

    def rows(self) -> DataFrame:
        """Records as rows, according to `value` of the source.

        A record that does not parse fails the job; the error has its offset, not its content.
        """
        if self.source.format == "Binary":
            return self.frame
        if self.source.format == "String":
            return self.frame.withColumns({name: f.col(name).cast("string") for name in ("key", "value")})
        parsed = self._parsed
        place = f.format_string(
            f"[{ErrorCode.BAD_RECORD}] topic %s, partition %d, offset %d: ", "topic", "partition", "offset"
        )
        checked = f.when(parsed.bad, f.raise_error(f.concat(place, parsed.rule))).otherwise(f.col(_VALUE))
        return self._columns(parsed.frame.withColumn(_VALUE, checked))

    def parted(self) -> tuple[DataFrame, DataFrame | None]:
        """The rows of the records that parse, and of the others `PLACE` and `CAUSE`.

        The second is None when every value parses. Raises UserCodeError when a record that does not
        parse cannot be told from others.
        """
        if self.source.format in ("Binary", "String"):
            return self.rows(), None
        parsed = self._parsed
        if not parsed.told:
            raise UserCodeError(
                "source.kafka.onBadRecord: every field of the Avro schema in source.kafka.value.schema may be null, so "
                "that a record that does not match is not told from one without values; use action Fail"
            )
        places = [f.col(name).alias(placed) for name, placed in zip(META[1:4], PLACE, strict=True)]
        bad = parsed.frame.where(parsed.bad).select(*places, parsed.rule.alias(CAUSE))
        return self._columns(parsed.frame.where(~parsed.bad)), bad

    def _columns(self, frame: DataFrame) -> DataFrame:
        """The columns of the source; `frame` has those of the parsed records."""
        meta = [f.col(name).alias(f"{META_PREFIX}{name}") for name in META] if self.source.metadata else []
        return frame.select(*(f.col(_VALUE).getField(name).alias(name) for name in self._parsed.names), *meta)

    @functools.cached_property
    def _parsed(self) -> _Parsed:
        if self.source.registry is not None:
            return self._of_registry()
        content = f.col("value")
        if self.source.format == "Json":
            value, names, bad = _json(self.spark, self.source.schema, content)
            told = True
        else:
            names, required = _fields(self.source.schema)
            # A record that cannot be decoded gives a row of nulls. When every field may be null,
            # that is not detectable, so Spark's own error is used.
            told = bool(required)
            value = _avro(content, self.source.schema, mode="PERMISSIVE" if told else "FAILFAST")
            bad = f.col(_VALUE).getField(required[0]).isNull() if told else f.lit(False)
        bad = content.isNotNull() & f.coalesce(bad, f.lit(False))
        return _Parsed(self.frame.withColumn(_VALUE, value), names, bad, f.lit(_rule(self.source)), told)

    def _of_registry(self) -> _Parsed:
        """Records of which each names its schema."""
        content = f.expr(f"substring(value, {HEADER_BYTES + 1})")
        headed = self.frame.withColumn(_ID, _id())
        known = self._schemas(headed)
        kind = registry.JSON if self.source.format == "Json" else registry.AVRO
        usable = {number: schema for number, schema in known.items() if schema.kind == kind}
        unread: list[int] = []
        if kind == registry.JSON:
            value, names, bad = _json(self.spark, self.source.schema, content)
            told = True
        else:
            names, required = _fields(self.source.schema)
            told = bool(required)
            unread = [number for number, schema in usable.items() if not self._is_avro(schema.text)]
            usable = {number: schema for number, schema in usable.items() if number not in unread}
            mode = "PERMISSIVE" if told else "FAILFAST"
            value = f.when(f.lit(False), _avro(content, self.source.schema, mode=mode))
            for number, schema in sorted(usable.items(), key=lambda item: item[0]):
                value = value.when(
                    f.col(_ID) == number, _avro(content, schema.text, mode=mode, reader=self.source.schema)
                )
            bad = f.col(_VALUE).getField(required[0]).isNull() if told else f.lit(False)
        id_ = f.col(_ID)
        others = {number: schema.kind for number, schema in known.items() if schema.kind != kind}
        no_schema = id_.isNull() | ~id_.isin(*usable) if usable else f.lit(True)
        rule = (
            f.when(id_.isNull(), f.lit("the value does not begin with the header of a schema registry"))
            .when(_among(id_, unread), f.format_string("the registry's schema %d cannot be read by itself", id_))
            .when(_among(id_, others), f.format_string(f"the registry's schema %d is not one of {kind}", id_))
            .when(no_schema, f.format_string("the registry does not know the schema %d", id_))
            .otherwise(f.format_string(f"(schema %d of the registry) {_rule(self.source)}", id_))
        )
        bad = f.col("value").isNotNull() & (no_schema | f.coalesce(bad, f.lit(False)))
        return _Parsed(headed.withColumn(_VALUE, value), names, bad, rule, told)

    def _schemas(self, headed: DataFrame) -> Mapping[int, registry.Schema]:
        if self.empty or self.source.registry is None:
            return {}
        rows = headed.select(_ID).where(f.col(_ID).isNotNull()).distinct().limit(MOST_IDS + 1).collect()
        if len(rows) > MOST_IDS:
            raise RuntimeFailure(
                FailureClass.BAD_DATA,
                f"{registry.WHERE}: the values of one commit name more than {MOST_IDS} schemas: they have no header of "
                "a registry",
            )
        return registry.schemas(self.source.registry, [int(row[0]) for row in rows], refused=self.refused)

    def _is_avro(self, text: str) -> bool:
        """Whether Avro can read a schema by itself: one with references it cannot."""
        jvm: Any = self.spark.sparkContext._jvm
        try:
            jvm.org.apache.avro.Schema.Parser().parse(text)
        except Exception:
            return False
        return True


def _among(id_: Column, numbers: Sequence[int] | Mapping[int, str]) -> Column:
    return id_.isin(*numbers) if numbers else f.lit(False)


def _id() -> Column:
    """The id in the header of a value; null when it has no header."""
    head = (f.octet_length("value") >= HEADER_BYTES) & (f.hex(f.expr("substring(value, 1, 1)")) == "00")
    return f.when(head, f.conv(f.hex(f.expr("substring(value, 2, 4)")), 16, 10).cast("long"))


def _rule(source: KafkaSource) -> str:
    return f"the value is not {source.format} of the schema in source.kafka.value.schema"


def _json(spark: SparkSession, ddl: str, content: Column) -> tuple[Column, list[str], Column]:
    """The parsed value, its fields, and whether the value does not parse."""
    try:
        schema = types._parse_datatype_string(ddl)
    except Exception as error:
        raise UserCodeError(
            f"source.kafka.value.schema: {ddl[:200]!r} is not a list of columns such as 'id INT, name STRING'"
        ) from error
    if not isinstance(schema, types.StructType) or not schema.names:
        raise UserCodeError(
            f"source.kafka.value.schema: {ddl[:200]!r} must be a list of columns such as 'id INT, name STRING'"
        )
    # A missing field is null, whatever the schema declares.
    whole = types.StructType([*schema.fields, types.StructField(_CORRUPT, types.StringType())])
    text = content.cast("string")
    parsed = f.from_json(text, whole, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT})
    more = ~files.is_alone(text, {})
    bad = f.col(_VALUE).isNull() | f.col(_VALUE).getField(_CORRUPT).isNotNull() | more
    return parsed, schema.names, bad


def _fields(schema: str) -> tuple[list[str], list[str]]:
    """The fields of an Avro schema, and those that have a value in each record."""
    try:
        fields = json.loads(schema)["fields"]
        names = [str(item["name"]) for item in fields]
        required = [str(item["name"]) for item in fields if item["type"] != "null" and "null" not in item["type"]]
    except (ValueError, KeyError, TypeError) as error:
        raise UserCodeError("source.kafka.value.schema: must be an Avro schema of type record, in JSON") from error
    return names, required


def _avro(content: Column, schema: str, *, mode: str, reader: str = "") -> Column:
    """A value that was written with `schema`, as one of `reader` (empty: of the same)."""
    from pyspark.sql.avro.functions import from_avro

    return from_avro(content, schema, {"mode": mode, **({"avroSchema": reader} if reader else {})})
