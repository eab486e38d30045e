"""Edge values by type and role, as SQL, and the tables that hold them: many values in one table, so
that a run costs one writer, not one each.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

KINDS = ("CopyOnWrite", "MergeOnRead")
Values = Sequence[str]

PAYLOAD: Mapping[str, tuple[str, Values]] = {
    "boolean": ("boolean", ("true", "false", "NULL")),
    "tinyint": ("tinyint", ("-128", "127", "0", "NULL")),
    "smallint": ("smallint", ("-32768", "32767", "0", "NULL")),
    "int": ("int", ("-2147483648", "2147483647", "0", "NULL")),
    "bigint": ("bigint", ("-9223372036854775808", "9223372036854775807", "NULL")),
    "float": ("float", ("'NaN'", "'Infinity'", "'-Infinity'", "'-0.0'", "1.4e-45", "NULL")),
    "double": ("double", ("'NaN'", "'Infinity'", "'-Infinity'", "'-0.0'", "4.9e-324", "NULL")),
    "decimal(38,10)": ("decimal(38,10)", ("-9999999999999999999999999999.9999999999", "0.0000000001", "NULL")),
    "decimal(5,2)": ("decimal(5,2)", ("-999.99", "0", "NULL")),
    "string": (
        "string",
        (
            "''",
            "' '",
            "char(0)",
            "char(9)||char(10)||char(13)||char(34)",
            "'😀é'",
            "'null'",
            "repeat('x', 1000000)",
            "'a//b'",
            "'../x'",
            "NULL",
        ),
    ),
    "binary": ("binary", ("X''", "X'00FF80'", "NULL")),
    "date": ("date", ("'1582-10-15'", "'1899-12-30'", "'1970-01-01'", "'9999-12-31'", "NULL")),
    "date before 1582": ("date", ("'0001-01-01'", "'1582-10-04'", "NULL")),
    "timestamp": (
        "timestamp",
        ("'1900-01-01 00:00:00'", "'1969-12-31 23:59:59.999999'", "'9999-12-31 23:59:59.999999'", "NULL"),
    ),
    "timestamp before 1900": ("timestamp", ("'0001-01-01 00:00:00'", "'1899-12-30 00:00:00'", "NULL")),
    "timestamp_ntz": (
        "timestamp_ntz",
        ("'0001-01-01 00:00:00'", "'1969-12-31 23:59:59.999999'", "'9999-12-31 23:59:59.999999'", "NULL"),
    ),
    "array<string>": ("array<string>", ("array()", "array('a', NULL)", "array(NULL)", "array('')", "NULL")),
    "array<timestamp>": (
        "array<timestamp>",
        ("array(timestamp'0001-01-01 00:00:00', NULL)", "array(timestamp'9999-12-31 23:59:59.999999')", "NULL"),
    ),
    "array<array<int>>": ("array<array<int>>", ("array(array(1, NULL), NULL)", "array(array())", "NULL")),
    "array<struct>": (
        "array<struct<a:int,b:string>>",
        ("array(named_struct('a', 1, 'b', NULL), NULL)", "array()", "NULL"),
    ),
    "map<string,string>": ("map<string,string>", ("map()", "map('k', NULL, '', 'v')", "NULL")),
    "map<string,array>": ("map<string,array<int>>", ("map('k', array(NULL, 1))", "map('k', NULL)", "NULL")),
    "struct": (
        "struct<a:string,b:struct<c:int,d:array<double>>>",
        (
            "named_struct('a', NULL, 'b', NULL)",
            "named_struct('a', '', 'b', named_struct('c', NULL, 'd', array(1.5, NULL)))",
            "NULL",
        ),
    ),
}
"""Name of the row on the page: type, and values."""

PATHS = (
    *(
        "'a b'",
        "' a'",
        "'a '",
        "'50%'",
        "'#x'",
        "'a?b'",
        "'*'",
        "'[a]'",
        "'{a}'",
        "'a,b'",
        "'a;b'",
        "'a&b'",
        "'a+b'",
        "'ü'",
        "'😀'",
        '"\'q"',
        "'~'",
        "'a|b'",
    ),
    *(
        "'<a>'",
        "'^'",
        "'`'",
        "'$a'",
        "'@'",
        "'_x'",
        "'null'",
        "'true'",
        "'1.50'",
        "'007'",
        "'1e3'",
        "'2024-01-01'",
        "'2024/01/02'",
        "repeat('x', 200)",
        "NULL",
    ),
)
HIVE_PATHS = tuple(v.replace("200", "198") for v in PATHS if "/" not in v)
"""One value is one folder, whose name begins with `p=`."""
KEYS = (
    *(
        "' '",
        "'a,b:c'",
        "'a'",
        "'A'",
        "'a '",
        "'null'",
        "'__null__'",
        "'ü😀'",
        "'a//b'",
        "'../x'",
        "char(9)||'x'",
        "char(10)",
        "'a'||char(0)",
        "'%41'",
    ),
    *("'\"q'", "repeat('k', 2000)", "repeat('l', 20000)"),
)


@dataclass(frozen=True)
class Case:
    """One table: its columns with types and values, and what they are to it.

    A column that is no key, partition or ordering column is payload.
    """

    name: str
    columns: Mapping[str, tuple[str, Values]]
    keys: tuple[str, ...] = ("id",)
    partitions: tuple[str, ...] = ("p",)
    ordering: tuple[str, ...] = ("ts",)
    kinds: tuple[str, ...] = KINDS
    """Types of the table; with the others it is refused."""
    first: str = "upsert"
    """Operation of the first batch."""
    table: Mapping[str, Any] = field(default_factory=dict)
    """More of the HudiTable."""

    @property
    def fingerprint(self) -> str:
        """Digest of everything that decides what a run of this case writes: a result has it."""
        said = json.dumps(
            [self.columns, self.keys, self.partitions, self.ordering, self.first, self.table], sort_keys=True
        )
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    @property
    def size(self) -> int:
        """Rows: enough for each value of each column."""
        return max(len(values) for _, values in self.columns.values())

    def rows(self, ts: int, *, shift: int = 0, where: str = "true") -> str:
        """A SELECT of all rows: row n has the value n + shift of each column that is no key and no
        partition. Column `batch` says which one it is of.
        """
        fixed = {*self.keys, *self.partitions}
        made = [
            f"{_pick(values, 'n' if name in fixed else f'(n + {shift})')} AS `{name}`"
            for name, values in self.columns.items()
        ]
        given = {"id": "int(n) AS id", "p": "'a' AS p", "ts": f"{ts}L AS ts"}
        made += [text for name, text in given.items() if name not in self.columns]
        return (
            f"SELECT {', '.join([*made, f'{ts} AS batch'])} FROM (SELECT id AS n FROM range({self.size})) WHERE {where}"
        )


def _pick(typed: tuple[str, Values], number: str) -> str:
    kind, values = typed
    made = ", ".join(f"CAST({value} AS {kind})" for value in values)
    return f"element_at(array({made}), int({number} % {len(values)}) + 1)"


def _typed(prefix: str, types: Mapping[str, Values]) -> dict[str, tuple[str, Values]]:
    return {f"{prefix}{n}": (kind, values) for n, (kind, values) in enumerate(types.items())}


PARTITION_TYPES: Mapping[str, Values] = {
    "string": ("'a'", "'ü b'", "NULL"),
    "tinyint": ("-128", "7", "NULL"),
    "int": ("-5", "2147483647", "NULL"),
    "bigint": ("9223372036854775807", "0", "NULL"),
    "boolean": ("true", "false", "NULL"),
    "date": ("'1582-10-15'", "'9999-12-31'", "'2024-01-01'", "NULL"),
}
TIMES = (
    "'1969-12-31 23:59:59.999999'",
    "'1969-12-31 23:59:59.999998'",
    "'2024-01-01 10:00:00'",
    "'9999-12-31 23:59:59.999999'",
)
KEY_TYPES: Mapping[str, Values] = {
    "string": ("'a'", "'a,b'", "''", "'null'", "NULL"),
    "int": ("-1", "2147483647"),
    "bigint": ("-9223372036854775808", "0"),
    "date": ("'0001-01-01'", "'1899-12-30'", "'9999-12-31'"),
    "timestamp": TIMES,
    "decimal(38,10)": ("0.0000000001", "-1"),
    "double": ("1.5", "1e300", "'NaN'"),
    "float": ("0.1", "1e30"),
    "boolean": ("true", "false"),
}
ORDERINGS: Mapping[str, Values] = {
    "timestamp": (
        "'0001-01-01 00:00:00'",
        "'1969-12-31 23:59:59.999999'",
        "'2024-01-01 10:00:00'",
        "'9999-12-31 23:59:59.999999'",
    ),
    "date": ("'0001-01-01'", "'1899-12-30'", "'2024-01-01'", "'9999-12-31'"),
    "double": ("'-Infinity'", "-1.5", "1e300", "'Infinity'", "'NaN'"),
    "decimal(38,10)": ("-1", "0.0000000001", "9999999999999999999999999999"),
    "string": ("'a'", "'a'", "''", "'ﬀ'", "'😀'", "'😀'", "'ü'"),
}
SEVERAL_ORDERINGS: Mapping[str, Values] = {
    "string": ("'a'", "'a'", "''", "'ﬀ'", "'😀'", "'😀'", "'ü'"),
    "boolean": ("false", "true", "true"),
    "int": ("-2147483648", "0", "2147483647", "2147483647"),
    "float": ("'NaN'", "0.1", "'-Infinity'"),
}
"""Columns of one ordering: rows that are equal in the first ones are told apart by the next."""
ORDERING_WITHOUT_ZONE: Mapping[str, Values] = {
    "int": ("0", "0", "2147483647"),
    "timestamp_ntz": ("'1969-12-31 23:59:59.999999'", "'2024-01-01 10:00:00'"),
}

SMALL_ORDERINGS: Mapping[str, Values] = {
    "tinyint": ("-128", "127", "127"),
    "smallint": ("-32768", "-32768", "0", "32767"),
    "bigint": ("-9223372036854775808", "9223372036854775807", "0"),
}

APART = ("timestamp_ntz", "array<timestamp>")
"""Types with a separate table: hudi-rs reads nothing of a MergeOnRead table that has one of them.
"""


def _payload(*names: str) -> dict[str, tuple[str, Values]]:
    return {
        f"c{n}": typed
        for n, (name, typed) in enumerate(PAYLOAD.items())
        if (name in names if names else name not in APART)
    }


def _ordered(kind: str) -> dict[str, tuple[str, Values]]:
    return {"ts": (kind, ORDERINGS[kind])}


BUCKETS = {"type": "Bucket", "buckets": 3}
_HIVE: Mapping[str, tuple[str, Values]] = {"p": ("string", HIVE_PATHS), "id": ("string", KEYS)}
CASES: Sequence[Case] = (
    Case("payload", _payload(), kinds=("CopyOnWrite",)),
    Case("payload; ordering: decimal", {**_payload(), **_ordered("decimal(38,10)")}, kinds=("MergeOnRead",)),
    Case(
        "payload that hudi-rs does not know; key: decimal; ordering: string",
        {
            **_payload(*APART),
            "id": ("decimal(38,10)", ("0.0000000001", "-1", "2", "3", "4", "5", "6")),
            **_ordered("string"),
        },
    ),
    Case(
        "ordering of several columns",
        _typed("o", SEVERAL_ORDERINGS),
        ordering=tuple(f"o{n}" for n in range(len(SEVERAL_ORDERINGS))),
    ),
    Case(
        "key and ordering of small and large integers; partition: smallint",
        {
            "k0": ("tinyint", ("-128", "0", "127")),
            "k1": ("smallint", ("-32768", "32767", "0", "1")),
            "p": ("smallint", ("-32768", "32767", "0", "NULL")),
            **_typed("o", SMALL_ORDERINGS),
        },
        keys=("k0", "k1"),
        ordering=tuple(f"o{n}" for n in range(len(SMALL_ORDERINGS))),
    ),
    Case(
        "ordering of int and timestamp_ntz; key: timestamp_ntz",
        {"id": ("timestamp_ntz", (*TIMES, "'0001-01-01 00:00:00'")), **_typed("o", ORDERING_WITHOUT_ZONE)},
        ordering=tuple(f"o{n}" for n in range(len(ORDERING_WITHOUT_ZONE))),
    ),
    Case(
        "payload; key and partition of several types; ordering: timestamp",
        {**_payload(), **_typed("k", KEY_TYPES), **_typed("p", PARTITION_TYPES), **_ordered("timestamp")},
        keys=tuple(f"k{n}" for n in range(len(KEY_TYPES))),
        partitions=tuple(f"p{n}" for n in range(len(PARTITION_TYPES))),
        first="bulk_insert",
    ),
    Case(
        "partition of text; key: timestamp; ordering: double",
        {"p": ("string", PATHS), "id": ("timestamp", TIMES), **_ordered("double")},
        first="bulk_insert",
    ),
    Case(
        "partition of text, hive style; key of text",
        _HIVE,
        kinds=("CopyOnWrite",),
        first="bulk_insert",
        table={"hiveStylePartitioning": True},
    ),
    Case(
        "partition of text, hive style; key of text; ordering: date",
        {**_HIVE, **_ordered("date")},
        kinds=("MergeOnRead",),
        first="bulk_insert",
        table={"hiveStylePartitioning": True},
    ),
    Case(
        "payload; partition of text; key of text; index: Bucket",
        {**_payload(), "p": ("string", PATHS), "id": ("string", KEYS)},
        kinds=("CopyOnWrite",),
        table={"index": BUCKETS},
    ),
    Case(
        "payload; partition of text; key of text; ordering: decimal; index: Bucket; NonBlocking",
        {**_payload(), "p": ("string", PATHS), "id": ("string", KEYS), **_ordered("decimal(38,10)")},
        kinds=("MergeOnRead",),
        table={"index": BUCKETS, "concurrency": {"mode": "NonBlocking"}},
    ),
)
