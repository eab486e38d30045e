"""Requests to a store are counted by what they ask for."""

from __future__ import annotations

import pytest

from tests.support.harness.s3_requests import counted, part, verb

LISTED = "GET /lake?list-type=2&delimiter=%2F&max-keys=5000&prefix={}&fetch-owner=false HTTP/1.1"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (LISTED.format("t%2F.hoodie%2Ftimeline%2F"), ("LIST", "timeline")),
        (LISTED.format("t%2F.hoodie%2Fmetadata%2F.hoodie%2Ftimeline%2F"), ("LIST", "metadata table")),
        (LISTED.format("t%2Fa%2F"), ("LIST", "data")),
        ("HEAD /lake/t/.hoodie/hoodie.properties HTTP/1.1", ("HEAD", "properties")),
        ("HEAD /lake/t/.hoodie/hoodie.properties.backup HTTP/1.1", ("HEAD", ".hoodie")),
        ("GET /lake/t/.hoodie/timeline/20260101000000001_20260101000000002.deltacommit HTTP/1.1", ("GET", "timeline")),
        ("PUT /lake/t/.hoodie/.temp/2026/a/f.marker.CREATE HTTP/1.1", ("PUT", "markers")),
        ("PUT /lake/t/a/f_1.parquet HTTP/1.1", ("PUT", "data")),
        ("HEAD /lake/t/.hoodie HTTP/1.1", ("HEAD", ".hoodie")),
        ("DELETE /lake/t/.hoodie/.heartbeat/1 HTTP/1.1", ("DELETE", ".hoodie")),
        ("POST /lake?delete HTTP/1.1", ("DELETE", "several")),
        ("POST /lake/t/a/f_1.parquet?uploads HTTP/1.1", ("POST", "data")),
    ],
)
def test_what_a_request_asks_for(line: str, expected: tuple[str, str]) -> None:
    assert (verb(line), part(line)) == expected
    assert counted([line, line]) == {expected: 2}
