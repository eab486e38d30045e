"""Edge values by type and role, as SQL, and the tables that hold them: many values in one table, so that a run costs one writer, not one each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

KINDS = ("CopyOnWrite", "MergeOnRead")
Values = Sequence[str]

PAYLOAD: Mapping[str, tuple[str, Values]] = {
    "boolean": ("boolean", ("true", "false", "NULL")),
    "int": ("int", ("-2147483648", "2147483647", "0", "NULL")),
    "bigint": ("bigint", ("-9223372036854775808", "9223372036854775807", "NULL")),
    "float": ("float", ("'NaN'", "'Infinity'", "'-Infinity'", "'-0.0'", "1.4e-45", "NULL")),
    "double": ("double", ("'NaN'", "'Infinity'", "'-Infinity'", "'-0.0'", "4.9e-324", "NULL")),
    "decimal(38,10)": ("decimal(38,10)", ("-9999999999999999999999999999.9999999999", "0.0000000001", "NULL")),
    "decimal(5,2)": ("decimal(5,2)", ("-999.99", "0", "NULL")),
    "string": (
        "string",
        ("''", "' '", "char(0)", "char(9)||char(10)||char(13)||char(34)", "'😀é'", "'null'", "repeat('x', 1000000)", "'a//b'", "'../x'", "NULL"),
    ),
    "binary": ("binary", ("X''", "X'00FF80'", "NULL")),
    "date": ("date", ("'1582-10-15'", "'1899-12-30'", "'1970-01-01'", "'9999-12-31'", "NULL")),
    "date before 1582": ("date", ("'0001-01-01'", "'1582-10-04'", "NULL")),
    "timestamp": ("timestamp", ("'1900-01-01 00:00:00'", "'1969-12-31 23:59:59.999999'", "'9999-12-31 23:59:59.999999'", "NULL")),
    "timestamp before 1900": ("timestamp", ("'0001-01-01 00:00:00'", "'1899-12-30 00:00:00'", "NULL")),
    "timestamp_ntz": ("timestamp_ntz", ("'0001-01-01 00:00:00'", "'1969-12-31 23:59:59.999999'", "'9999-12-31 23:59:59.999999'", "NULL")),
    "array<string>": ("array<string>", ("array()", "array('a', NULL)", "array(NULL)", "array('')", "NULL")),
    "array<array<int>>": ("array<array<int>>", ("array(array(1, NULL), NULL)", "array(array())", "NULL")),
    "array<struct>": ("array<struct<a:int,b:string>>", ("array(named_struct('a', 1, 'b', NULL), NULL)", "array()", "NULL")),
    "map<string,string>": ("map<string,string>", ("map()", "map('k', NULL, '', 'v')", "NULL")),
    "map<string,array>": ("map<string,array<int>>", ("map('k', array(NULL, 1))", "map('k', NULL)", "NULL")),
    "struct": (
        "struct<a:string,b:struct<c:int,d:array<double>>>",
        ("named_struct('a', NULL, 'b', NULL)", "named_struct('a', '', 'b', named_struct('c', NULL, 'd', array(1.5, NULL)))", "NULL"),
    ),
}
"""Name of the row on the page: type, and values."""

PATHS = (
    *("'a b'", "' a'", "'a '", "'50%'", "'#x'", "'a?b'", "'*'", "'[a]'", "'{a}'", "'a,b'", "'a;b'", "'a&b'", "'a+b'", "'ü'", "'😀'", '"\'q"', "'~'", "'a|b'"),
    *("'<a>'", "'^'", "'`'", "'$a'", "'@'", "'_x'", "'null'", "'true'", "'1.50'", "'007'", "'1e3'", "'2024-01-01'", "'2024/01/02'", "repeat('x', 200)", "NULL"),
)
KEYS = ("' '", "'a,b:c'", "'a'", "'null'", "'ü😀'", "'a//b'", "'../x'", "char(9)||'x'", "repeat('k', 2000)")


@dataclass(frozen=True)
class Case:
    """One table: its columns with types and values, what they are to it, and what is done with it besides upserts."""

    name: str
    columns: Mapping[str, tuple[str, Values]]
    keys: tuple[str, ...] = ("id",)
    partitions: tuple[str, ...] = ("p",)
    ordering: tuple[str, ...] = ("ts",)
    steps: tuple[str, ...] = ("services",)
    first: str = "upsert"
    """Operation of the first batch."""
    table: Mapping[str, Any] = field(default_factory=dict)
    """More of the HudiTable."""

    @property
    def size(self) -> int:
        """Rows: enough for each value of each column."""
        return max(len(values) for _, values in self.columns.values())

    def rows(self, ts: int, *, shift: int = 0, where: str = "true") -> str:
        """A SELECT of all rows: row n has the value n + shift of each column that is no key and no partition."""
        fixed = {*self.keys, *self.partitions}
        made = [f"{_pick(values, 'n' if name in fixed else f'(n + {shift})')} AS `{name}`" for name, values in self.columns.items()]
        given = {"id": "int(n) AS id", "p": "'a' AS p", "ts": f"{ts}L AS ts"}
        made += [text for name, text in given.items() if name not in self.columns]
        return f"SELECT {', '.join([*made, f'{ts} AS batch'])} FROM (SELECT id AS n FROM range({self.size})) WHERE {where}"


def _pick(typed: tuple[str, Values], number: str) -> str:
    kind, values = typed
    made = ", ".join(f"CAST({value} AS {kind})" for value in values)
    return f"element_at(array({made}), int({number} % {len(values)}) + 1)"


def _typed(prefix: str, types: Mapping[str, Values]) -> dict[str, tuple[str, Values]]:
    return {f"{prefix}{n}": (kind, values) for n, (kind, values) in enumerate(types.items())}


PARTITION_TYPES: Mapping[str, Values] = {
    "string": ("'a'", "'ü b'", "NULL"),
    "int": ("-5", "2147483647", "NULL"),
    "bigint": ("9223372036854775807", "0", "NULL"),
    "boolean": ("true", "false", "NULL"),
    "date": ("'1582-10-15'", "'9999-12-31'", "'2024-01-01'", "NULL"),
}
KEY_TYPES: Mapping[str, Values] = {
    "string": ("'a'", "'a,b'", "''", "'null'"),
    "int": ("-1", "2147483647"),
    "date": ("'1899-12-30'", "'9999-12-31'"),
    "timestamp": ("'1969-12-31 23:59:59.999999'", "'2024-01-01 10:00:00'"),
    "decimal(38,10)": ("0.0000000001", "-1"),
    "double": ("1.5", "1e300"),
    "boolean": ("true", "false"),
}
ORDERINGS: Mapping[str, Values] = {
    "timestamp": ("'1969-12-31 23:59:59.999999'", "'2024-01-01 10:00:00'", "'9999-12-31 23:59:59.999999'"),
    "date": ("'1899-12-30'", "'2024-01-01'", "'9999-12-31'"),
    "double": ("'-Infinity'", "-1.5", "1e300", "'Infinity'"),
    "decimal(38,10)": ("-1", "0.0000000001", "9999999999999999999999999999"),
    "string": ("''", "'a'", "'b'", "'ü'"),
}

APART = ("timestamp_ntz", "map<string,string>", "map<string,array>", "array<array<int>>", "array<struct>")
"""Types with a table of their own: a reader that does not know one of them reads nothing of a table that has it."""


def _payload(*names: str) -> dict[str, tuple[str, Values]]:
    return {f"c{n}": typed for n, (name, typed) in enumerate(PAYLOAD.items()) if (name in names if names else name not in APART)}


CASES: Sequence[Case] = (
    Case("payload", _payload(), steps=("services", "source", "restore")),
    *(Case(f"payload: {name}", _payload(name), steps=("services", "source", "restore")) for name in APART),
    Case("payload, BulkInsert first", {f"c{n}": typed for n, typed in enumerate(PAYLOAD.values())}, first="bulk_insert", steps=()),
    Case("partition of text", {"p": ("string", PATHS)}, steps=("services", "source")),
    Case("partition of text, hive style", {"p": ("string", tuple(v for v in PATHS if "/" not in v))}, steps=(), table={"hiveStylePartitioning": True}),
    Case("partition of several types", _typed("p", PARTITION_TYPES), partitions=tuple(f"p{n}" for n in range(len(PARTITION_TYPES)))),
    Case("key of text", {"id": ("string", KEYS)}, first="bulk_insert"),
    Case("key of several types", _typed("k", KEY_TYPES), keys=tuple(f"k{n}" for n in range(len(KEY_TYPES))), first="bulk_insert", steps=()),
    Case("key: timestamp", {"id": ("timestamp", KEY_TYPES["timestamp"])}, first="bulk_insert", steps=()),
    *(Case(f"ordering: {kind}", {"ts": (kind, values)}) for kind, values in ORDERINGS.items()),
)
