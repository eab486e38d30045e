"""How a batch's columns fit those of the table (R57): each rule by a type that it lets through and
one that it refuses.
"""

from __future__ import annotations

import copy
import dataclasses
import re

import pytest
from pyspark.sql import types

from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import Job
from hudi_runtime.writer.schema import Rules, SchemaMismatch, fit
from tests.support.world.job_json import JOB

FIXED = "id int, p string, ts bigint"
RULES = Rules(("id", "p"), ("ts",), null_for_missing=True)


def struct(columns: str) -> types.StructType:
    """From DDL; pyspark's own parser needs a JVM, this one knows what the tests use."""
    return types.StructType(
        [types.StructField(name, kind(text)) for name, text in (part.split(" ", 1) for part in split(columns))]
    )


def split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()]


def kind(text: str) -> types.DataType:
    if text.startswith("array<"):
        return types.ArrayType(kind(text[6:-1]))
    if text.startswith("map<"):
        key, value = split(text[4:-1])
        return types.MapType(kind(key), kind(value))
    if text.startswith("struct<"):
        return struct(text[7:-1])
    if text.startswith("decimal("):
        precision, scale = text[8:-1].split(",")
        return types.DecimalType(int(precision), int(scale))
    simple = (
        types.ByteType,
        types.ShortType,
        types.IntegerType,
        types.LongType,
        types.FloatType,
        types.DoubleType,
        types.StringType,
    )
    simple += (
        types.BooleanType,
        types.TimestampType,
        types.DateType,
        types.BinaryType,
        types.NullType,
        types.DayTimeIntervalType,
    )
    return next(t() for t in simple if t().simpleString() == text)


def columns(schema: types.StructType) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)


def after(table: str, batch: str, rules: Rules = RULES) -> tuple[str, bool]:
    found = fit(struct(batch), struct(table), rules)
    return columns(found.schema), found.evolves


@pytest.mark.parametrize(
    ("old", "new", "merged"),
    [
        ("int", "int", "int"),
        ("int", "bigint", "bigint"),
        ("int", "double", "double"),
        ("float", "double", "double"),
        ("decimal(12,4)", "decimal(10,2)", "decimal(12,4)"),
        ("bigint", "int", "bigint"),  # the batch is cast
        ("double", "float", "double"),
        ("double", "int", "double"),
        ("bigint", "smallint", "bigint"),
        ("decimal(21,2)", "bigint", "decimal(21,2)"),
        ("string", "void", "string"),
        ("array<bigint>", "array<int>", "array<bigint>"),
        ("map<string,bigint>", "map<string,int>", "map<string,bigint>"),
        ("struct<a int,b string>", "struct<b string,c date>", "struct<a:int,b:string,c:date>"),
        ("array<struct<a bigint>>", "array<struct<a int,b int>>", "array<struct<a:bigint,b:int>>"),
    ],
)
def test_types_that_fit(old: str, new: str, merged: str) -> None:
    found, evolves = after(f"{FIXED}, n {old}", f"{FIXED}, n {new}")
    assert found == f"{FIXED}, n {merged}"
    assert evolves == (kind(old).simpleString() != merged)


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        ("string", "int", "n"),
        ("int", "string", "n"),
        ("bigint", "double", "n"),
        ("double", "bigint", "n"),
        ("int", "float", "n"),
        ("float", "int", "n"),
        ("float", "bigint", "n"),
        ("int", "boolean", "n"),
        ("timestamp", "date", "n"),
        ("string", "binary", "n"),
        ("decimal(10,2)", "decimal(10,3)", "n"),
        ("decimal(10,2)", "double", "n"),
        ("decimal(10,2)", "decimal(12,2)", "n"),
        ("decimal(20,2)", "bigint", "n"),
        ("bigint", "decimal(21,2)", "n"),
        ("array<string>", "array<int>", "n.element"),
        ("map<string,string>", "map<string,int>", "n.value"),
        ("map<string,string>", "map<int,string>", "n"),
        ("struct<a int,b string>", "struct<a int,b int>", "n.b"),
        ("string", "struct<a int>", "n"),
    ],
)
def test_types_that_are_refused_are_named_with_column_and_rule(old: str, new: str, column: str) -> None:
    with pytest.raises(SchemaMismatch) as refused:
        after(f"{FIXED}, n {old}", f"{FIXED}, n {new}")
    text = str(refused.value)
    inner_old, inner_new = (kind(t) for t in (old, new))
    if column == "n":
        assert f"column n: the table has {inner_old.simpleString()}, the batch has {inner_new.simpleString()};" in text
    assert text.startswith(f"column {column}: the table has ")
    assert "two types may only differ by a widening that keeps every value" in text
    assert refused.value.failure is FailureClass.SCHEMA_MISMATCH


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("array<void>", "column n.element: it is new and has no type"),
        ("map<string,void>", "column n.value: it is new and has no type"),
        ("map<int,string>", "column n: it is map<int,string>; keys of a map are text"),
        ("struct<a array<map<date,int>>>", "column n.a.element: it is map<date,int>; keys of a map are text"),
        ("interval day to second", "column n: it is interval day to second; Hudi cannot store an interval"),
        ("struct<a int,A int>", "in n: column A: the batch has it twice"),
        ("struct<a-b int>", "in n: column a-b: a name has letters, digits and _ only"),
        ("array<struct<1a int>>", "in n.element: column 1a: a name has letters, digits and _ only"),
    ],
)
def test_what_hudi_cannot_keep_is_refused_by_column(kind: str, said: str) -> None:
    """F82: Hudi refuses it when the instant is begun, or by words that name no column."""
    for table in (None, struct(FIXED)):
        with pytest.raises(SchemaMismatch, match=re.escape(said)):
            fit(struct(f"{FIXED}, n {kind}"), table, RULES)


def test_a_name_is_one_that_hudi_takes() -> None:
    assert fit(struct(f"{FIXED}, größe_2 int"), None, RULES).schema.fieldNames()[-1] == "größe_2"
    with pytest.raises(SchemaMismatch, match=r"column a b: a name has letters, digits and _ only"):
        fit(types.StructType([*struct(FIXED).fields, types.StructField("a b", types.IntegerType())]), None, RULES)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("array<int>", "array<bigint>", "n.element"),
        ("map<string,float>", "map<string,double>", "n.value"),
        ("struct<a int>", "struct<a bigint>", "n.a"),
        ("array<struct<a int>>", "array<struct<a bigint>>", "n.element.a"),
    ],
)
def test_nothing_becomes_wider_inside_a_column(old: str, new: str, part: str) -> None:
    with pytest.raises(
        SchemaMismatch,
        match=f"column {part}: the table has .* inside a struct, an array or a map no type becomes wider",
    ):
        after(f"{FIXED}, n {old}", f"{FIXED}, n {new}")


@pytest.mark.parametrize(
    ("old", "new", "number"),
    [
        ("double", "bigint", "2^53"),
        ("bigint", "double", "2^53"),
        ("float", "int", "2^24"),
        ("bigint", "float", "2^24"),
        ("string", "int", ""),
    ],
)
def test_a_widening_that_loses_values_is_told_from_a_mistake(old: str, new: str, number: str) -> None:
    """Avro and Hudi would take it; 2^53 + 1 would become 2^53, without a word."""
    with pytest.raises(SchemaMismatch) as refused:
        after(f"{FIXED}, n {old}", f"{FIXED}, n {new}")
    assert str(refused.value).endswith(f"(whole numbers beyond {number} would change)" if number else "float to double")


def test_a_new_column_goes_to_the_end_and_the_order_of_the_batch_does_not_matter() -> None:
    assert after(f"{FIXED}, v string", "c string, ts bigint, v string, p string, id int") == (
        f"{FIXED}, v string, c string",
        True,
    )
    assert after(f"{FIXED}, v string", "v string, ts bigint, p string, id int") == (f"{FIXED}, v string", False)
    with pytest.raises(SchemaMismatch, match="column c: it is new and has no type"):
        after(FIXED, f"{FIXED}, c void")


def test_the_first_batch_makes_the_schema() -> None:
    found = fit(struct(f"{FIXED}, v string, _hoodie_commit_time string"), None, RULES)
    assert columns(found.schema) == f"{FIXED}, v string"
    assert not found.evolves


def test_a_missing_column_is_null_or_refused() -> None:
    assert after(f"{FIXED}, v string, c int", f"{FIXED}, c int") == (f"{FIXED}, v string, c int", False)
    strict = dataclasses.replace(RULES, null_for_missing=False)
    with pytest.raises(
        SchemaMismatch,
        match=(
            r"column v: the table has string, the batch does not have the column; spec.schema.missingColumns .* "
            r"Refuse"
        ),
    ):
        after(f"{FIXED}, v string, c int", f"{FIXED}, c int", strict)
    table = types.StructType([*struct(FIXED).fields, types.StructField("v", types.StringType(), nullable=False)])
    with pytest.raises(SchemaMismatch, match="column v: the table has string not null"):
        fit(struct(FIXED), table, RULES)


@pytest.mark.parametrize("column", ["id", "p", "ts"])
def test_key_partition_and_ordering_columns_are_never_missing(column: str) -> None:
    batch = types.StructType([field for field in struct(f"{FIXED}, v string").fields if field.name != column])
    for table in (struct(f"{FIXED}, v string"), None):
        with pytest.raises(SchemaMismatch, match=f"column {column}: the batch does not have it"):
            fit(batch, table, RULES)


def test_their_type_stays() -> None:
    with pytest.raises(
        SchemaMismatch,
        match=(
            "column id: the table has int, the batch has bigint; the type of a key, partition or ordering column "
            "cannot change"
        ),
    ):
        after(FIXED, "id bigint, p string, ts bigint")
    assert after(FIXED, "id int, p string, ts int") == (FIXED, False)


def test_names_that_differ_by_case_alone_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="column V: the table has v;"):
        after(f"{FIXED}, v string", f"{FIXED}, V string")
    with pytest.raises(SchemaMismatch, match="column W: the batch has it twice"):
        after(FIXED, f"{FIXED}, w string, W string")
    with pytest.raises(SchemaMismatch, match="in n: column A: the table has a;"):
        after(f"{FIXED}, n struct<a int>", f"{FIXED}, n struct<A int>")


@pytest.mark.parametrize(
    "column",
    [
        "_hoodie_operation string",
        "_HOODIE_operation int",
        "_hoodie_is_deleted string",
        "_hoodie_is_deleted int",
        "_hoodie_x int",
    ],
)
def test_names_of_hudis_own_are_refused(column: str) -> None:
    """Hudi takes such a column for one of its own."""
    for table in (struct(f"{FIXED}, v string"), None):
        with pytest.raises(SchemaMismatch, match=column.split()[0]):
            fit(struct(f"{FIXED}, v string, {column}"), table, RULES)


def test_marks_of_deletes_and_hudis_columns_of_another_table_pass() -> None:
    assert after(
        f"{FIXED}, v string", f"_hoodie_commit_time string, {FIXED}, v string, _hoodie_is_deleted boolean"
    ) == (
        f"{FIXED}, v string, _hoodie_is_deleted boolean",
        True,
    )
    assert after(f"{FIXED}, _hoodie_operation string", f"{FIXED}, _hoodie_operation string")[1] is False, (
        "an adopted table has it"
    )


def test_a_delete_brings_names_of_records_alone() -> None:
    data = copy.deepcopy(JOB) | {"operation": "delete"}
    rules = Rules.of(Job.from_json(data))
    found = fit(struct("id int, p string, v int, new string"), struct(f"{FIXED}, v string, c int"), rules)
    assert columns(found.schema) == "id int, p string"
    assert not found.evolves
    with_time = fit(struct("ts int, id int, p string, v int"), struct(f"{FIXED}, v string"), rules)
    assert columns(with_time.schema) == FIXED
    with pytest.raises(SchemaMismatch, match="column p: the batch does not have it"):
        fit(struct("id int"), struct(FIXED), rules)


def test_a_field_of_a_column_as_key_needs_the_column() -> None:
    rules = Rules(("k.id", "p"), (), null_for_missing=True)
    assert (
        after("k struct<id int>, p string", "k struct<id int,more int>, p string", rules)[0]
        == "k struct<id:int,more:int>, p string"
    )
    with pytest.raises(SchemaMismatch, match="column k: the batch does not have it"):
        after("k struct<id int>, p string", "p string", rules)


def test_the_rules_come_from_the_table() -> None:
    data = copy.deepcopy(JOB)
    assert Rules.of(Job.from_json(data)) == RULES
    data["table"]["missingColumns"] = "Refuse"  # type: ignore[index]
    assert Rules.of(Job.from_json(data)) == dataclasses.replace(RULES, null_for_missing=False)
