"""The rows of a table, read by nothing of Hudi's and nothing of the product: base files by pyarrow,
log files by the reader below.

For tables whose readers merge by an ordering column `ts` (EventTime), that were neither compacted
nor clustered, without deletes: what hudi-rs cannot read, file groups that have log files only (mode
NonBlocking), and what Hudi alone would otherwise vouch for. Anything else is an AssertionError.

A log file is a row of blocks: magic, length, format version, kind, headers, content, footers,
length. A block of data has the writer's Avro schema among its headers; its content is a Parquet
file, or records in Avro's binary form.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from demo.lake import DataFile, Instant

from tests.support.harness.own_look import CHECKSUM, data_files, parse_timeline

MAGIC = b"#HUDI#"
AVRO, PARQUET = 3, 5
"""Kinds of blocks that hold rows; of the others a command block alone may be there,
of a rollback.
"""
SCHEMA = 2
"""The header that holds the schema."""
KEY, PARTITION, COMMIT_TIME = "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_time"


def rows_of(folder: Path) -> list[Mapping[str, Any]]:
    """One row for each key and partition: the one with the largest `ts`.

    Of equal ones the version of the commit that completed last.
    """
    instants, files = _completed(folder)
    newest: dict[str, str] = {}
    for file in files:
        if file.path.endswith(".parquet"):
            newest[file.file_id] = max(
                newest.get(file.file_id, ""), file.instant, key=lambda one: instants[one].completed if one else ""
            )
    found: dict[tuple[str, str], tuple[Any, str, Mapping[str, Any]]] = {}
    for file in files:
        base = file.path.endswith(".parquet")
        if base and newest[file.file_id] != file.instant:
            continue
        for row in _rows(folder, file):
            version = (row["ts"], instants[str(row[COMMIT_TIME])].completed, row)
            key = (row[KEY], row[PARTITION])
            found[key] = max(found.get(key, version), version, key=lambda one: one[:2])
    return [row for _, _, row in found.values()]


def same(folder: Path, expected: Sequence[tuple[Any, ...]], columns: Sequence[str] = ("id", "p", "v", "ts")) -> None:
    """AssertionError when the table does not hold these rows."""
    mine = sorted(tuple(row[column] for column in columns) for row in rows_of(folder))
    assert mine == sorted(expected)


@dataclass(frozen=True)
class Written:
    """Rows that one completed commit has written, without the rows of others that it has carried
    into its files.
    """

    completed: str
    """Completion time."""
    rows: Sequence[Mapping[str, Any]]


def commits(folder: Path) -> list[Written]:
    """Each commit that has its own rows, in the order of their completion.

    A compaction has none. Nothing may have been cleaned or archived.
    """
    instants, files = _completed(folder)
    assert "clean" not in {i.action for i in instants.values()}, "not for tables that were cleaned"
    assert not list((folder / ".hoodie" / "timeline" / "history").glob("*.parquet")), (
        "not for tables that were archived"
    )
    found: dict[str, list[Mapping[str, Any]]] = {}
    for file in files:
        own = [row for row in _rows(folder, file) if row[COMMIT_TIME] == file.instant]
        if own:
            found.setdefault(file.instant, []).extend(own)
    return sorted(
        (Written(instants[instant].completed, rows) for instant, rows in found.items()),
        key=lambda commit: commit.completed,
    )


def pulled(folder: Path, start: str, end: str) -> list[Mapping[str, Any]]:
    """Rows that a pull of the commits that were completed after `start`, and at `end` at the
    latest, has to return: for each key the newest row.
    """
    found: dict[tuple[str, str], tuple[Any, str, Mapping[str, Any]]] = {}
    for commit in commits(folder):
        if start < commit.completed <= end:
            for row in commit.rows:
                version = (row["ts"], commit.completed, row)
                key = (row[KEY], row[PARTITION])
                found[key] = max(found.get(key, version), version, key=lambda one: one[:2])
    return [row for _, _, row in found.values()]


def _completed(folder: Path) -> tuple[dict[str, Instant], list[DataFile]]:
    """Instants of the active timeline, and the data files of those that are completed."""
    instants = {
        i.requested: i
        for i in parse_timeline(
            [path.name for path in (folder / ".hoodie" / "timeline").iterdir() if not path.name.endswith(CHECKSUM)]
        )
    }
    odd = {i.action for i in instants.values()} - {"commit", "deltacommit", "rollback", "clean"}
    assert not odd, f"not for tables with {odd}"
    paths = {
        str(path.relative_to(folder)): 0
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(CHECKSUM)
    }
    return instants, [
        file for file in data_files(paths) if file.instant in instants and instants[file.instant].completed
    ]


def _rows(folder: Path, file: DataFile) -> Iterator[Mapping[str, Any]]:
    if file.path.endswith(".parquet"):
        yield from pq.ParquetFile(folder / file.path).read().to_pylist()
    else:
        yield from log_rows((folder / file.path).read_bytes())


def log_rows(content: bytes) -> Iterator[Mapping[str, Any]]:
    """Rows of a log file, in its order."""
    for kind, headers, body in blocks(content):
        assert kind in (0, AVRO, PARQUET), f"block of kind {kind}"
        if kind == PARQUET:
            yield from pq.read_table(io.BytesIO(body)).to_pylist()
        elif kind == AVRO:
            yield from _records(json.loads(headers[SCHEMA]), io.BytesIO(body))


def blocks(content: bytes) -> Iterator[tuple[int, dict[int, str], bytes]]:
    """Kind, headers and content of each block. AssertionError where the file is not whole."""
    source = io.BytesIO(content)
    while magic := source.read(len(MAGIC)):
        assert magic == MAGIC, f"no block at {source.tell() - len(magic)}"
        begin = source.tell() - len(MAGIC)
        length, version, kind = struct.unpack(">qii", _exactly(source, 16))
        assert version == 1, f"log format {version}"
        headers = _strings(source)
        body = _exactly(source, struct.unpack(">q", _exactly(source, 8))[0])
        _strings(source)
        (whole,) = struct.unpack(">q", _exactly(source, 8))
        assert source.tell() - begin == len(MAGIC) + 8 + length == whole + 8, (
            f"a block of {source.tell() - begin} bytes says {length} and {whole}"
        )
        yield kind, headers, body


def _exactly(source: io.BytesIO, number: int) -> bytes:
    found = source.read(number)
    assert len(found) == number, "the file is cut off"
    return found


def _strings(source: io.BytesIO) -> dict[int, str]:
    (count,) = struct.unpack(">i", _exactly(source, 4))
    found = {}
    for _ in range(count):
        name, size = struct.unpack(">ii", _exactly(source, 8))
        found[name] = _exactly(source, size).decode()
    return found


# -- Avro ------------------------------------------------------------------------------------------


def _records(schema: Any, source: io.BytesIO) -> Iterator[Mapping[str, Any]]:
    _, count = struct.unpack(">ii", _exactly(source, 8))
    for _ in range(count):
        (size,) = struct.unpack(">i", _exactly(source, 4))
        record = io.BytesIO(_exactly(source, size))
        yield decode(schema, record)
        assert not record.read(1), "more than one record"


def decode(schema: Any, source: io.BytesIO) -> Any:
    """One value in Avro's binary form; without logical types, enums of other records and fixed."""
    if isinstance(schema, list):
        return decode(schema[_long(source)], source)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, (dict, list)):
        return decode(kind, source)
    if kind == "record":
        return {field["name"]: decode(field["type"], source) for field in schema["fields"]}
    simple = {
        "null": lambda: None,
        "boolean": lambda: _exactly(source, 1) == b"\x01",
        "int": lambda: _long(source),
        "long": lambda: _long(source),
        "float": lambda: struct.unpack("<f", _exactly(source, 4))[0],
        "double": lambda: struct.unpack("<d", _exactly(source, 8))[0],
        "string": lambda: _exactly(source, _long(source)).decode(),
        "bytes": lambda: _exactly(source, _long(source)),
    }
    assert kind in simple, f"type {kind}"
    return simple[kind]()


def _long(source: io.BytesIO) -> int:
    value = shift = 0
    while True:
        (byte,) = _exactly(source, 1)
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1)
