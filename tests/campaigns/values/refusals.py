"""Values that a table cannot hold, given to the runtime before any write, and its message about
each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql.functions import expr

from hudi_runtime.job.job import TableSpec
from hudi_runtime.process.errors import classify
from hudi_runtime.table import values
from hudi_runtime.writer import schema as sc
from tests.support.harness.refused_values import NO_PATHS, SCHEMA, SPEC

SEVERAL = replace(SPEC, record_keys=("id", "v"))
RULES = sc.Rules(("id", "p"), ("ts",), null_for_missing=True)


def said(frame: Any, spec: TableSpec = SPEC) -> str:
    """Class and message of the refusal of a batch; empty: it is taken."""
    try:
        sc.fit(frame.schema, None, RULES)
        values.held(frame, spec).write.format("noop").mode("overwrite").save()
    except Exception as error:
        failure = classify(error)
        return f"{failure.kind.value}: {failure.message}"
    return ""


def refusals(spark: Any) -> Mapping[str, Mapping[str, str]]:
    """By role: the value or type, and what is said of it."""
    found: dict[str, dict[str, str]] = {}
    for role, shown, frame, spec in _batches(spark):
        found.setdefault(role, {})[shown] = said(frame, spec)
    return found


def _batches(spark: Any) -> Iterator[tuple[str, str, Any, TableSpec]]:
    def row(key: Any = "k", partition: Any = "a", v: Any = "v", ts: Any = 1) -> Any:
        return spark.createDataFrame([(key, partition, v, ts)], SCHEMA)

    def typed(column: str, kind: str) -> Any:
        plain = {"id": "'k'", "p": "'a'", "v": "'v'", "ts": "1L"}
        return spark.sql(
            "SELECT "
            + ", ".join(
                f"{f'CAST(null AS {kind})' if name == column else text} AS {name}" for name, text in plain.items()
            )
        )

    for value in NO_PATHS:
        yield "partition", value, row(partition=value), SPEC
    yield from (("key", shown, row(key=value), SPEC) for shown, value in (("NULL", None), ("''", "")))
    yield "key of double", "-0.0", row().withColumn("id", expr("double('-0.0')")), SPEC
    for shown, key, other in (
        ("NULL, NULL", None, None),
        ("NULL, ''", None, ""),
        ("'__null__', 'v'", "__null__", "v"),
        ("'1,v:2', 'v'", "1,v:2", "v"),
    ):
        yield "key of several columns", shown, row(key=key, v=other), SEVERAL
    yield "ordering", "NULL", row(ts=None), SPEC
    for kind in ("timestamp", "double", "decimal(10,2)", *STRUCTURED):
        yield "type of a partition column", kind, typed("p", kind), SPEC
    for kind in STRUCTURED:
        yield "type of a key column", kind, typed("id", kind), SPEC
        yield "type of an ordering column", kind, typed("ts", kind), SPEC
    for kind in ("decimal(10,2)", "date"):
        yield "type of an ordering column, CopyOnWrite", kind, typed("ts", kind), replace(SPEC, type="COPY_ON_WRITE")
    for kind in NO_TYPES:
        yield "type of any column", kind, typed("v", kind), SPEC


STRUCTURED = ("binary", "array<int>", "struct<a:int>", "map<string,int>")
NO_TYPES = ("void", "map<int,string>", "interval day to second", "interval year to month")
