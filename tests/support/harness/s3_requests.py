"""Parsing of request lines of an S3 server: the verb, and the part of a table that is requested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.harness.s3proxy import deletion, listing

LIST, DELETE = "LIST", "DELETE"
TIMELINE, PROPERTIES, DATA = "timeline", "properties", "data"
PARTS = (
    ("/.hoodie/metadata", "metadata table"),
    ("/.hoodie/timeline", TIMELINE),
    ("/.hoodie/hoodie.properties", PROPERTIES),
    ("/.hoodie/.temp", "markers"),
    ("/.hoodie/hudi-operator-progress", "progress"),
    ("/.hoodie/hudi-operator-bad-records", "bad records"),
    ("/.hoodie", ".hoodie"),
)
"""The first one that a path has; a path without any is `DATA`."""


def verb(line: str) -> str:
    """The method; LIST for a listing, DELETE for a deletion of several objects, too."""
    if listing(line):
        return LIST
    return DELETE if deletion(line) else line.partition(" ")[0]


def part(line: str) -> str:
    """Part of a table that is requested: for a listing the part of its prefix; for objects that are
    deleted together none, because their names are in the body.
    """
    asked = urlsplit(line.split(" ")[1])
    path = unquote(asked.path)
    if listing(line):
        path = f"/{parse_qs(asked.query, keep_blank_values=True).get('prefix', [''])[0]}"
    elif deletion(line) and not line.startswith("DELETE "):
        return "several"
    return next((name for beginning, name in PARTS if f"{beginning}/" in f"{path}/"), DATA)


def counted(lines: Iterable[str]) -> Counter[tuple[str, str]]:
    """Number of requests for each verb and part."""
    return Counter((verb(line), part(line)) for line in lines)
