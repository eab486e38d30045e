"""Compatibility of a batch's columns with the table's (R57).

It is checked before an instant is begun, so that a refusal leaves nothing behind.

Hudi's own rules do not suit a table with several writers: an int column silently becomes a string
column for all writers when one writer sends text, and numbers in a batch for a string column
silently become text (docs/use/schema.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, functions, types

from hudi_contract.outcomes import FailureClass
from hudi_contract.words import MissingColumns, Operation, TableType
from hudi_runtime.job import merging
from hudi_runtime.job.job import Job
from hudi_runtime.process.errors import RuntimeFailure
from hudi_runtime.read.deletions import DELETED
from hudi_runtime.read.incremental import META_COLUMNS

WIDER: Mapping[type[types.DataType], tuple[type[types.DataType], ...]] = {
    types.ByteType: (types.ShortType, types.IntegerType, types.LongType, types.DoubleType),
    types.ShortType: (types.IntegerType, types.LongType, types.DoubleType),
    types.IntegerType: (types.LongType, types.DoubleType),
    types.FloatType: (types.DoubleType,),
}
"""Allowed type changes: the promotions of Avro and Hudi 1.2.0 (HoodieSchemaTypePromotion) that
preserve every value.
"""
LOSSY: Mapping[tuple[type[types.DataType], type[types.DataType]], str] = {
    (types.IntegerType, types.FloatType): "2^24",
    (types.LongType, types.FloatType): "2^24",
    (types.LongType, types.DoubleType): "2^53",
}
"""Promotions of whole numbers that lose values: the number above which adjacent
integers become equal.
"""
DIGITS: Mapping[type[types.DataType], int] = {
    types.ByteType: 3,
    types.ShortType: 5,
    types.IntegerType: 10,
    types.LongType: 19,
}
"""Digits of whole numbers."""
RESERVED = "_hoodie_"
"""Prefix of names that are reserved for Hudi."""
NAME = re.compile(r"[^\W\d]\w*")
"""Valid names of columns and fields in Avro, in which Hudi stores the schema."""
RULE = "two types may only differ by a widening that keeps every value: int to bigint or double, float to double"
NESTED = (
    "inside a struct, an array or a map no type becomes wider: Spark could not read the old files (Hudi refuses "
    "it in vectorized mode)"
)


class SchemaMismatch(RuntimeFailure):
    """The batch does not fit the table.

    The message has the first mismatching column, both types and the rule.
    """

    def __init__(self, message: str) -> None:
        super().__init__(FailureClass.SCHEMA_MISMATCH, message)


@dataclass(frozen=True)
class Rules:
    """The table's settings that affect the columns of a batch."""

    keys: Collection[str]
    """Key and partition columns: present in every batch, with a fixed type. `a.b` is a field in
    column a.
    """
    ordering: Collection[str]
    """Ordering columns: present with a fixed type, but a delete may omit them."""
    null_for_missing: bool
    """Whether a batch may omit other columns of the table: its rows then have null in them."""
    deletes: bool = True
    """Whether records may be deleted (`hudi_runtime.job.merging`)."""
    delete: bool = False
    """Whether the operation is a delete, which only names records: only the columns above of its
    batch count.
    """

    @property
    def fixed(self) -> frozenset[str]:
        """Columns with a fixed type."""
        return frozenset((*self.keys, *self.ordering))

    @property
    def needed(self) -> frozenset[str]:
        """Columns that every batch must have."""
        return frozenset(name.split(".")[0] for name in (self.keys if self.delete else self.fixed))

    @classmethod
    def of(cls, job: Job) -> Rules:
        """The rules of a job's table and operation."""
        table = job.table
        keys = (*table.record_keys, *table.partitions)
        deletes = not (table.merge.ignores_nulls and table.type == TableType.MERGE_ON_READ)
        return cls(
            keys,
            table.ordering,
            null_for_missing=table.missing_columns == MissingColumns.NULL,
            deletes=deletes,
            delete=job.operation == Operation.DELETE,
        )


@dataclass(frozen=True)
class Fit:
    """The schema of the table after the commit of the batch.

    Also whether it differs from the present one.
    """

    schema: types.StructType
    evolves: bool

    def apply(self, frame: DataFrame) -> DataFrame:
        """The batch with exactly those columns, in the table's order.

        Narrower types are cast, missing columns are null.
        """
        present = {field.name: field.dataType for field in frame.schema.fields}
        return frame.select(
            [
                _column(functions.col(_quoted(f.name)), present.get(f.name), f.dataType).alias(f.name)
                for f in self.schema.fields
            ]
        )


def fit(batch: types.StructType, table: types.StructType | None, rules: Rules) -> Fit:
    """The new schema of the table (`table` None: it has no schema yet). Raises SchemaMismatch."""
    columns = [field for field in batch.fields if field.name not in META_COLUMNS]
    _check_reserved(field for field in columns if table is None or field.name not in table.fieldNames())
    _check_names([field.name for field in columns], [] if table is None else table.fieldNames())
    if not rules.deletes and (rules.delete or DELETED in batch.fieldNames()):
        raise SchemaMismatch(merging.NO_DELETES)
    for name in sorted(rules.needed - {field.name for field in columns}):
        raise SchemaMismatch(
            f"column {name}: the batch does not have it; every batch must have the key, partition and ordering columns"
        )
    if table is None:
        return Fit(types.StructType([_new(field) for field in columns]), evolves=False)
    brought = {field.name: field for field in columns}
    if rules.delete:
        named = {name.split(".")[0] for name in rules.fixed} & set(brought)
        return Fit(
            types.StructType(
                [_merged(field, brought[field.name], rules) for field in table.fields if field.name in named]
            ),
            evolves=False,
        )
    known = set(table.fieldNames())
    merged = [_merged(field, brought.get(field.name), rules) for field in table.fields]
    schema = types.StructType(merged + [_new(field) for field in columns if field.name not in known])
    return Fit(schema, evolves=_types(schema) != _types(table))


def _check_reserved(columns: Iterable[types.StructField]) -> None:
    """Refuse reserved names.

    Hudi treats such a column as its own: it never becomes part of a schema, or must have the type
    that Hudi expects.
    """
    for field in columns:
        if not field.name.lower().startswith(RESERVED):
            continue
        if field.name != DELETED:
            raise SchemaMismatch(
                f"column {field.name}: names that begin with {RESERVED} are reserved for Hudi; drop it or rename it "
                "in transform.sql"
            )
        if not isinstance(field.dataType, types.BooleanType):
            raise SchemaMismatch(
                f"column {DELETED}: it is {field.dataType.simpleString()}; it marks deleted rows and must be boolean"
            )


def _check_names(batch: Iterable[str], table: Iterable[str], path: str = "") -> None:
    """Check names.

    Spark's column names are case-insensitive: two names that differ only in case could not be read.
    `path`: of the enclosing struct.
    """
    spelled = {name.lower(): name for name in table}
    seen: set[str] = set()
    within = f"in {path}: " if path else ""
    for name in batch:
        if name.lower() in seen:
            raise SchemaMismatch(f"{within}column {name}: the batch has it twice (names are case-insensitive)")
        seen.add(name.lower())
        if not NAME.fullmatch(name):
            raise SchemaMismatch(
                f"{within}column {name}: a name has letters, digits and _ only, and does not begin with a digit; "
                "rename it in transform.sql"
            )
        if spelled.get(name.lower(), name) != name:
            rule = "use the table's spelling (names are case-insensitive)"
            raise SchemaMismatch(f"{within}column {name}: the table has {spelled[name.lower()]}; {rule}")


def _new(field: types.StructField) -> types.StructField:
    if isinstance(field.dataType, types.NullType):
        raise SchemaMismatch(f"column {field.name}: it is new and has no type (only nulls); cast it to one")
    _check_kept(field.name, field.dataType)
    return types.StructField(field.name, field.dataType, True)


def _check_kept(path: str, kind: types.DataType) -> None:
    """Refuse types that Hudi cannot store.

    Hudi would refuse them after it has begun an instant, or with an error that names no column.
    """
    if isinstance(kind, types.NullType):
        raise SchemaMismatch(
            f"column {path}: it is new and has no type (it is always null or empty); cast the column to one"
        )
    if isinstance(kind, INTERVALS):
        raise SchemaMismatch(
            f"column {path}: it is {kind.simpleString()}; Hudi cannot store an interval, store a number of its units"
        )
    if isinstance(kind, types.MapType):
        if not isinstance(kind.keyType, types.StringType):
            raise SchemaMismatch(
                f"column {path}: it is {kind.simpleString()}; keys of a map are text: cast them (transform_keys)"
            )
        _check_kept(f"{path}.value", kind.valueType)
    elif isinstance(kind, types.ArrayType):
        _check_kept(f"{path}.element", kind.elementType)
    elif isinstance(kind, types.StructType):
        _check_names(kind.fieldNames(), (), path)
        for field in kind.fields:
            _check_kept(f"{path}.{field.name}", field.dataType)


INTERVALS = (types.DayTimeIntervalType, types.YearMonthIntervalType)


def _merged(old: types.StructField, new: types.StructField | None, rules: Rules) -> types.StructField:
    """The table's column after the batch."""
    if new is None:
        if not rules.null_for_missing:
            raise SchemaMismatch(
                f"column {old.name}: the table has {old.dataType.simpleString()}, the batch does not have the column; "
                "spec.schema.missingColumns of the HudiTable is Refuse"
            )
        if not old.nullable:
            raise SchemaMismatch(
                f"column {old.name}: the table has {old.dataType.simpleString()} not null, the batch does not have "
                "the column"
            )
        return old
    merged = _merged_type(old.dataType, new.dataType, old.name, nested=False)
    if old.name in rules.fixed and _plain(merged) != _plain(old.dataType):
        raise SchemaMismatch(
            _refusal(
                old.name, old.dataType, new.dataType, "the type of a key, partition or ordering column cannot change"
            )
        )
    return types.StructField(old.name, merged, old.nullable)


def _merged_type(old: types.DataType, new: types.DataType, path: str, *, nested: bool) -> types.DataType:
    """The wider of two types; `nested`: for a part of a column.

    Raises SchemaMismatch when neither is wider.
    """
    if isinstance(new, types.NullType) or _plain(old) == _plain(new) or taken(new, old):
        return old
    if widens(old, new):
        if nested:
            raise SchemaMismatch(_refusal(path, old, new, NESTED))
        return new
    if isinstance(old, types.StructType) and isinstance(new, types.StructType):
        return _merged_struct(old, new, path)
    if isinstance(old, types.ArrayType) and isinstance(new, types.ArrayType):
        return types.ArrayType(_merged_type(old.elementType, new.elementType, f"{path}.element", nested=True), True)
    if isinstance(old, types.MapType) and isinstance(new, types.MapType) and _plain(old.keyType) == _plain(new.keyType):
        return types.MapType(
            old.keyType, _merged_type(old.valueType, new.valueType, f"{path}.value", nested=True), True
        )
    raise SchemaMismatch(_refusal(path, old, new, RULE))


def _merged_struct(old: types.StructType, new: types.StructType, path: str) -> types.StructType:
    """Fields of a nested column: new ones go to the end, missing ones stay."""
    _check_names(new.fieldNames(), old.fieldNames(), path)
    brought = {field.name: field for field in new.fields}
    merged = []
    for field in old.fields:
        found = brought.get(field.name)
        kind = (
            field.dataType
            if found is None
            else _merged_type(field.dataType, found.dataType, f"{path}.{field.name}", nested=True)
        )
        merged.append(types.StructField(field.name, kind, field.nullable))
    known = set(old.fieldNames())
    return types.StructType(merged + [_new(field) for field in new.fields if field.name not in known])


def _refusal(path: str, old: types.DataType, new: types.DataType, rule: str) -> str:
    lossy = LOSSY.get((type(old), type(new))) or LOSSY.get((type(new), type(old)))
    why = f" (whole numbers beyond {lossy} would change)" if lossy and rule is RULE else ""
    return f"column {path}: the table has {old.simpleString()}, the batch has {new.simpleString()}; {rule}{why}"


def widens(old: types.DataType, new: types.DataType) -> bool:
    """Whether a column of type `old` may change to type `new`.

    No value is lost, and Hudi reads old files as the new type.
    """
    return type(new) in WIDER.get(type(old), ())


def taken(new: types.DataType, old: types.DataType) -> bool:
    """Whether values of a batch can be cast to the column's wider type.

    A decimal column must have enough digits and scale for them.
    """
    if isinstance(old, types.DecimalType):
        digits, scale = (
            (new.precision - new.scale, new.scale)
            if isinstance(new, types.DecimalType)
            else (DIGITS.get(type(new), 99), 0)
        )
        return old.precision - old.scale >= digits and old.scale >= scale
    return widens(new, old)


def _types(schema: types.StructType) -> list[tuple[str, str]]:
    return [(field.name, _plain(field.dataType)) for field in schema.fields]


def _plain(kind: types.DataType) -> str:
    """A type without nullability: nulls in a batch do not affect its type."""
    return kind.simpleString()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _column(column: Column, old: types.DataType | None, new: types.DataType) -> Column:
    """A column of type `old` (None: missing) cast to type `new`, which is equal or wider."""
    if old is None:
        return functions.lit(None).cast(new)
    if _plain(old) == _plain(new):
        return column
    if isinstance(old, types.StructType) and isinstance(new, types.StructType):
        present = {field.name: field.dataType for field in old.fields}
        fields = [_column(column.getField(f.name), present.get(f.name), f.dataType).alias(f.name) for f in new.fields]
        return functions.when(column.isNotNull(), functions.struct(*fields))
    if isinstance(old, types.ArrayType) and isinstance(new, types.ArrayType):
        return functions.transform(column, _within(old.elementType, new.elementType))
    if isinstance(old, types.MapType) and isinstance(new, types.MapType):
        inner = _within(old.valueType, new.valueType)
        return functions.transform_values(column, lambda _key, value: inner(value))
    if isinstance(old, types.FloatType) and isinstance(new, types.DoubleType):
        # 0.1 stays 0.1: Hudi reads old files this way, and one number must not become two
        return column.cast(types.StringType()).cast(new)
    return column.cast(new)


def _within(old: types.DataType, new: types.DataType) -> Callable[[Column], Column]:
    return lambda value: _column(value, old, new)
