"""The tests' own reader of log files: it reads what was written, and says when a file
is not whole.
"""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.harness import own_rows

SCHEMA = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "v", "type": ["null", "string"]},
        {"name": "ts", "type": "long"},
        {"name": "d", "type": "double"},
    ],
}


def number(value: int) -> bytes:
    """Zigzag, seven bits a byte."""
    rest, found = (value << 1) ^ (value >> 63), b""
    while rest > 0x7F:
        found, rest = found + bytes([rest & 0x7F | 0x80]), rest >> 7
    return found + bytes([rest])


def record(id: int, v: str | None, ts: int, d: float) -> bytes:
    text = number(0) if v is None else number(1) + number(len(v.encode())) + v.encode()
    return number(id) + text + number(ts) + struct.pack("<d", d)


def block(*records: bytes, kind: int = own_rows.AVRO) -> bytes:
    schema = json.dumps(SCHEMA).encode()
    headers = struct.pack(">iii", 1, own_rows.SCHEMA, len(schema)) + schema
    body = struct.pack(">ii", 3, len(records)) + b"".join(struct.pack(">i", len(one)) + one for one in records)
    footers = struct.pack(">i", 0)
    length = 4 + 4 + len(headers) + 8 + len(body) + len(footers) + 8
    whole = len(own_rows.MAGIC) + 8 + length - 8
    return (
        own_rows.MAGIC
        + struct.pack(">qii", length, 1, kind)
        + headers
        + struct.pack(">q", len(body))
        + body
        + footers
        + struct.pack(">q", whole)
    )


def test_rows_of_several_blocks() -> None:
    content = block(record(1, "é", -3, 0.5), record(2, None, 1 << 40, -1.0)) + block(record(-7, "x" * 300, 0, 2.0))
    assert [tuple(row.values()) for row in own_rows.log_rows(content)] == [
        (1, "é", -3, 0.5),
        (2, None, 1 << 40, -1.0),
        (-7, "x" * 300, 0, 2.0),
    ]


@pytest.mark.parametrize("cut", [1, 8, 40, -1, -9])
def test_a_file_that_is_cut_off(cut: int) -> None:
    content = block(record(1, "a", 1, 0.0))
    with pytest.raises(AssertionError):
        list(own_rows.log_rows(content[: len(content) - abs(cut)] if cut < 0 else content[:cut]))
    with pytest.raises(AssertionError):
        list(own_rows.log_rows(content + b"more than it should have"))


def test_a_block_of_another_kind_is_not_passed_over() -> None:
    with pytest.raises(AssertionError, match="kind 1"):
        list(own_rows.log_rows(block(kind=1)))


@pytest.mark.parametrize("value", [0, 1, -1, 63, 64, -64, -65, 2**31, -(2**40)])
def test_numbers(value: int) -> None:
    assert own_rows.decode("long", io.BytesIO(number(value))) == value


FIRST, SECOND, THIRD = "20260101000000001", "20260101000000002", "20260101000000003"


def base_file(folder: Path, instant: str, *rows: tuple[int, str, int, str]) -> None:
    """A file group's base file; rows: id, v, ts, and the commit that has written it."""
    hudis = {
        own_rows.KEY: [str(row[0]) for row in rows],
        own_rows.PARTITION: ["a"] * len(rows),
        own_rows.COMMIT_TIME: [row[3] for row in rows],
    }
    mine = {
        "id": [row[0] for row in rows],
        "p": ["a"] * len(rows),
        "v": [row[1] for row in rows],
        "ts": [row[2] for row in rows],
    }
    pq.write_table(pa.table(hudis | mine), folder / "a" / f"g-0_0-1-1_{instant}.parquet")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The first commit writes 1, 2 and 3; the second, which began later and completed last, 2.

    The third, before it, 1; a fourth one is pending.
    """
    timeline = tmp_path / ".hoodie" / "timeline"
    timeline.mkdir(parents=True)
    (tmp_path / "a").mkdir()
    base_file(tmp_path, FIRST, (1, "one", 1, FIRST), (2, "one", 1, FIRST), (3, "one", 1, FIRST))
    base_file(tmp_path, THIRD, (1, "three", 2, THIRD), (2, "one", 1, FIRST), (3, "one", 1, FIRST))
    base_file(tmp_path, SECOND, (1, "three", 2, THIRD), (2, "two", 2, SECOND), (3, "one", 1, FIRST))
    base_file(tmp_path, "20260101000000004", (1, "pending", 9, "20260101000000004"))
    for instant, completed in ((FIRST, "101"), (SECOND, "103"), (THIRD, "102")):
        (timeline / f"{instant}_20260101000000{completed}.commit").touch()
    (timeline / "20260101000000004.inflight").touch()
    return tmp_path


def test_what_each_commit_has_written_in_the_order_of_completion(table: Path) -> None:
    found = [
        (commit.completed[-3:], [(row["id"], row["v"]) for row in commit.rows]) for commit in own_rows.commits(table)
    ]
    assert found == [("101", [(1, "one"), (2, "one"), (3, "one")]), ("102", [(1, "three")]), ("103", [(2, "two")])], (
        "without what was carried along"
    )


@pytest.mark.parametrize(
    ("start", "end", "due"),
    [
        ("000", "20260101000000101", {1: "one", 2: "one", 3: "one"}),
        ("000", "20260101000000103", {1: "three", 2: "two", 3: "one"}),
        ("20260101000000101", "20260101000000103", {1: "three", 2: "two"}),
        ("20260101000000102", "20260101000000103", {2: "two"}),
        ("20260101000000103", "20260101000000109", {}),
    ],
)
def test_what_a_pull_is_due(table: Path, start: str, end: str, due: dict[int, str]) -> None:
    assert {row["id"]: row["v"] for row in own_rows.pulled(table, start, end)} == due


def test_of_a_table_that_has_lost_files_nothing_is_said(table: Path) -> None:
    (table / ".hoodie" / "timeline" / "20260101000000005_20260101000000105.clean").touch()
    with pytest.raises(AssertionError, match="cleaned"):
        own_rows.commits(table)
