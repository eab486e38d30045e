"""The tests' own reader of log files: it reads what was written, and says when a file is not whole."""

from __future__ import annotations

import io
import json
import struct

import pytest

from tests.support.harness import own_rows

SCHEMA = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "id", "type": "int"}, {"name": "v", "type": ["null", "string"]}, {"name": "ts", "type": "long"}, {"name": "d", "type": "double"}],
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
    return own_rows.MAGIC + struct.pack(">qii", length, 1, kind) + headers + struct.pack(">q", len(body)) + body + footers + struct.pack(">q", whole)


def test_rows_of_several_blocks() -> None:
    content = block(record(1, "é", -3, 0.5), record(2, None, 1 << 40, -1.0)) + block(record(-7, "x" * 300, 0, 2.0))
    assert [tuple(row.values()) for row in own_rows.log_rows(content)] == [(1, "é", -3, 0.5), (2, None, 1 << 40, -1.0), (-7, "x" * 300, 0, 2.0)]


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
