"""Whether the index and the keys of a spec are those by which a table's rows were stored.

No property of a table tells the number of its buckets, and none how the keys of its rows are
written. A writer with others finds no row of the table: each update adds a second one (F631). So
rows are read, and compared with where the writers of this spec would look for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession, functions

from hudi_contract.words import TableType
from hudi_runtime.agent import creation
from hudi_runtime.job.job import TableSpec
from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import SNAPSHOT, WriteInfo

SAMPLE = 1000
"""Sample size. Each row distinguishes two numbers of buckets with a probability of at least one
half.
"""
SHOWN = 100
"""Characters of a key in a message."""
KEY, FILE = "_hoodie_record_key", "_hoodie_file_name"
BUCKET_FOLDER = ".hoodie/.bucket_index"
"""Hudi's notes on a consistent hashing index, and on numbers of buckets by partition."""
_BUCKET = re.compile(r"^000(\d{5})-")
_COMPLEX = "ComplexKeyGenerator"


@dataclass(frozen=True)
class StoredRow:
    """A row of the table: its key, its file group, and the values of its key columns.

    `bucket`: where writers of the spec look for the key; None without a bucket index.
    """

    key: str
    group: str
    values: tuple[object, ...] = ()
    bucket: int | None = None


def buckets(options: Mapping[str, str]) -> int:
    """Number of buckets in the table's Hudi options; 0 with another index."""
    if options.get("hoodie.index.type") != "BUCKET":
        return 0
    return int(options.get("hoodie.bucket.index.num.buckets") or 0)


def problems(spark: SparkSession, table: AgentTable, spec: TableSpec, options: Mapping[str, str]) -> list[str]:
    """One sentence for each thing in the table's rows that does not fit, with names and values.

    `options` are the table's Hudi options. Raises when rows cannot be read.
    """
    if table.storage.exists(BUCKET_FOLDER):
        return [
            f"index: table has {BUCKET_FOLDER}, as with consistent hashing or numbers of buckets by partition: needed "
            "none"
        ]
    frame = spark.read.format("hudi").options(**SNAPSHOT, **table.read_options()).load(table.path)
    if not frame.columns:
        return []  # nothing was ever committed
    rows = _sample(frame, table, spec, buckets(options))
    said = [*index_problems(buckets(options), (), rows), *key_problems(spec, rows)]
    return said or key_problems(spec, _other_keys(frame, spec))


def _sample(frame: DataFrame, table: AgentTable, spec: TableSpec, count: int) -> tuple[StoredRow, ...]:
    keys = (functions.col(name) for name in spec.record_keys)
    return tuple(
        StoredRow(
            str(key),
            str(file).partition("_")[0],
            tuple(values),
            table.bucket(str(key), spec.record_keys, count) if count else None,
        )
        for key, file, *values in frame.select(KEY, FILE, *keys).limit(SAMPLE).collect()
    )


def _other_keys(frame: DataFrame, spec: TableSpec) -> list[StoredRow]:
    """A row whose key lacks the name of its only field; reads all keys.

    Of a table with one key field and several partition fields Hudi 0.14.1 to 1.0.2 wrote the value
    alone, releases before and after it with the name. One table may have rows of both.
    """
    field = spec.record_keys[0]
    if len(spec.record_keys) > 1 or not creation.key_generator(spec).endswith(_COMPLEX):
        return []
    others = frame.where(~functions.col(KEY).startswith(f"{field}:")).select(KEY, field).limit(1)
    return [StoredRow(str(key), "", (value,)) for key, value in others.collect()]


# -- what is compared ------------------------------------------------------------------------------


def key_problems(spec: TableSpec, rows: Iterable[StoredRow]) -> list[str]:
    """One sentence for the first row whose key is not as the spec's writers would make it."""
    for row in rows:
        form = _form(spec, row.values)
        if not re.fullmatch(form.pattern, row.key, re.DOTALL):
            return [
                f"recordKeyFields: needed keys of the form {form.shown!r}, table has a row with the key "
                f"{row.key[:SHOWN]!r}: an update would not find it and add a second row; write the rows to a new table"
            ]
    return []


@dataclass(frozen=True)
class _Form:
    pattern: str
    shown: str


def _form(spec: TableSpec, values: Sequence[object]) -> _Form:
    """The key that Hudi makes of these values; of some types only its form is known."""
    fields = spec.record_keys
    texts = [_text(value) for value in values]
    if len(fields) == 1 and not creation.key_generator(spec).endswith(_COMPLEX):
        (text,) = texts
        named = f"(?!{re.escape(fields[0])}:).*"
        return _Form(named if text is None else re.escape(text), fields[0] if text is None else text[:SHOWN])
    parts = list(zip(fields, texts, strict=True))
    return _Form(
        ",".join(f"{re.escape(field)}:{'.*' if text is None else re.escape(text)}" for field, text in parts),
        ",".join(f"{field}:{'…' if text is None else text[:SHOWN]}" for field, text in parts),
    )


def _text(value: object) -> str | None:
    """The value as a part of a key; None for a type of which it is not known here."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    return value if isinstance(value, str) and value else None


def index_problems(count: int, groups: Iterable[str], rows: Iterable[StoredRow] = ()) -> list[str]:
    """One sentence when writers with the spec's index would not find rows of these file groups.

    `count`: the spec's number of buckets; 0 with another index.
    """
    rows = tuple(rows)
    known = sorted({*groups, *(row.group for row in rows)})
    in_buckets = {group: int(match[1]) for group in known if (match := _BUCKET.match(group))}
    if not known:
        return []
    if not count and len(in_buckets) == len(known):
        return [f"index: spec has none of buckets, table has a bucket index (file group {known[0]!r}): set spec.index"]
    if not count:
        return []
    if len(in_buckets) < len(known):
        other = next(group for group in known if group not in in_buckets)
        return [f"index: spec Bucket, table has file group {other!r}, which is not one of a bucket index"]
    if max(in_buckets.values()) >= count:
        return [f"index: spec has {count} buckets, table has bucket {max(in_buckets.values())}"]
    for row in rows:
        if row.bucket is not None and in_buckets[row.group] != row.bucket:
            return [
                f"index: spec has {count} buckets, of which the row with the key {row.key[:SHOWN]!r} belongs to bucket "
                f"{row.bucket}, table has it in bucket {in_buckets[row.group]}: set index.buckets to the number with "
                "which the table was written (there is none if the hash is of other fields than recordKeyFields)"
            ]
    return []


def only_in_logs(writes: Iterable[tuple[tl.Instant, WriteInfo]]) -> tuple[str, ...]:
    """File groups to whose log files rows were added that no base file has; by completion time.

    Only an index that knows of rows in log files adds them there. A compaction takes what had
    completed when it was planned.
    """
    added: dict[tuple[str, str], str] = {}
    for instant, info in writes:
        for group, path in info.files:
            if ".log." not in path.rpartition("/")[2] and added.get(group, instant.requested) < instant.requested:
                del added[group]
        added.update(dict.fromkeys(info.inserted_in_logs, instant.completion))
        for group in info.replaced:
            added.pop(group, None)
    return tuple(sorted(group for _, group in added))


def log_problems(spec: TableSpec, count: int, groups: Sequence[str]) -> list[str]:
    """One sentence when rows are in log files alone, where the spec's index does not look."""
    if count or not groups or spec.type != TableType.MERGE_ON_READ:
        return []
    return [
        "index: spec has none of buckets, so rows are looked for in base files only, table has rows in log files of "
        f"file group {groups[0]!r} that are in none: compact it with the Hudi that wrote it"
    ]
