"""Tests with Spark that use local files instead of S3, with reasons: read from their source.

A table is there by `World.table(..., local_files="why")`, anything else by an address with
`file://` and a line `# local files: why` above it. docs/design/testing.md has the whole list, and a
unit test compares it: a new exception is a decision.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tests.support import ROOT

PLACES = ("tests/tiers/hudi", "tests/support/harness", "tests/campaigns")
HARNESS = "tests/support/harness/local.py"
"""File in which both kinds of addresses are made."""
_SCHEME, _MARK = re.compile(r"""f?["']file://\{"""), re.compile(r"^\s*# local files: (.+)$")


@dataclass(frozen=True)
class Place:
    """A use of local files, with its reason."""

    file: str
    why: str
    of: str = ""
    """The test that it is in; empty outside of tests, as in a fixture."""


@cache
def exceptions() -> tuple[Place, ...]:
    """All of them, by file. ValueError when one has no reason."""
    files = sorted(path for place in PLACES for path in (ROOT / place).rglob("*.py"))
    names = (str(path.relative_to(ROOT)) for path in files)
    return tuple(
        dict.fromkeys(
            found
            for name in names
            if name != HARNESS
            for found in of_source(name, (ROOT / name).read_text(encoding="utf-8"))
        )
    )


def of_source(file: str, text: str) -> Iterator[Place]:
    """Places in one file. ValueError as above."""
    tree = ast.parse(text)
    yield from _of_tables(file, tree)
    covered = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _MARK.match(line):
            yield Place(file, match[1], _test_at(tree, number))
            covered = _end(tree, number + 1)
        elif _SCHEME.search(line):
            if number > covered:
                raise ValueError(f"{file}:{number}: an address with file:// and no `# local files: why` above it")
            covered = _end(tree, _end(tree, number) + 1)


def _end(tree: ast.Module, line: int) -> int:
    """Last line of the statement that a line belongs to; of a compound statement, of its head."""
    around = [
        node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not around:
        return line
    inner = max(around, key=lambda node: node.lineno)
    body = getattr(inner, "body", None)
    return max(line, body[0].lineno - 1 if isinstance(body, list) else inner.end_lineno or line)


def _of_tables(file: str, tree: ast.Module) -> Iterator[Place]:
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            if keyword.arg == "local_files":
                value = keyword.value
                parts = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
                said = [named.get(part.id) if isinstance(part, ast.Name) else part for part in parts]
                reasons = [
                    part.value
                    for part in said
                    if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value
                ]
                if not reasons:
                    raise ValueError(f"{file}:{node.lineno}: local_files says no reason that can be read here")
                yield from (Place(file, why, _test_at(tree, node.lineno)) for why in reasons)


def _test_at(tree: ast.Module, line: int) -> str:
    found = (
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    )
    return next((node.name for node in found if node.name.startswith("test_")), "")


def table() -> list[str]:
    """The list, as docs/design/testing.md has it."""
    rows = dict.fromkeys(f"| `{one.file}` | {one.why} |" for one in exceptions())
    return ["| where | why |", "|---|---|", *rows]
