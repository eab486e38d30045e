"""Tests of the tiers hudi and e2e that never run the audit: read from their source.

A test runs it by a call of `audited` or `audit`, its own or one of a function or method that it
uses, of its module, of `tests/support` or of `tests/campaigns`. docs/design/testing.md has the
whole list with the reasons, and a unit test compares it: a new test without an audit is a decision.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support import ROOT

PLACES = ("tests/tiers/hudi", "tests/tiers/e2e")
HEAD = "| tests without an audit | which | why |"
ALL = "all"
AUDITS = frozenset({"audited", "audit"})
GIVEN = frozenset({"Process", "Space", "Table", "World"})
"""Classes that have the audit: to use them is not to ask it."""


@dataclass(frozen=True)
class Module:
    """Names that each function or method uses, and where imported ones are from."""

    uses: dict[str, frozenset[str]]
    classes: dict[str, frozenset[str]]
    """Methods of each class."""
    imports: dict[str, Path]

    @classmethod
    def of(cls, text: str, root: Path = ROOT) -> Module:
        tree = ast.parse(text)
        uses: dict[str, frozenset[str]] = {}
        classes: dict[str, frozenset[str]] = {}
        imports: dict[str, Path] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                uses[node.name] = uses.get(node.name, frozenset()) | frozenset(_names(node))
            elif isinstance(node, ast.ClassDef):
                methods = (one.name for one in node.body if isinstance(one, ast.FunctionDef))
                classes[node.name] = frozenset(methods)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                ("tests.support", "tests.campaigns")
            ):
                path = root / f"{str(node.module).replace('.', '/')}.py"
                imports |= {alias.asname or alias.name: path for alias in node.names if path.exists()}
        return cls(uses, classes, imports)


def _names(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


@cache
def _read(path: Path) -> Module:
    return Module.of(path.read_text(encoding="utf-8"))


def asks(module: Module, function: str, seen: set[tuple[int, str]] | None = None) -> bool:
    """Whether a function may call the audit, itself or by what it uses."""
    seen = set() if seen is None else seen
    if (id(module), function) in seen:
        return False
    seen.add((id(module), function))
    used = module.uses.get(function, frozenset())
    return bool(used & AUDITS) or any(asks(where, name, seen) for where, name in _followed(module, used))


def _followed(module: Module, used: Iterable[str]) -> Iterator[tuple[Module, str]]:
    names = frozenset(used)
    for name in names & module.uses.keys():
        yield module, name
    for name in module.imports.keys() - GIVEN:
        other = _read(module.imports[name])
        if name in names & other.uses.keys():
            yield other, name
        for method in other.classes.get(name, frozenset()) & names:  # a fixture may have made the object
            yield other, method


def without(text: str) -> tuple[str, ...]:
    """Names of the tests of a module that never ask the audit, `ALL` for all of them."""
    module = Module.of(text)
    tests = [name for name in module.uses if name.startswith("test_")]
    silent = sorted(name for name in tests if not asks(module, name))
    return (ALL,) if silent and len(silent) == len(tests) else tuple(silent)


def found() -> dict[str, tuple[str, ...]]:
    """The tests without an audit, by file."""
    files = sorted(path for place in PLACES for path in (ROOT / place).glob("test_*.py"))
    named = {str(path.relative_to(ROOT / "tests/tiers")): without(path.read_text(encoding="utf-8")) for path in files}
    return {file: tests for file, tests in named.items() if tests}


def partial(text: str) -> tuple[int, ...]:
    """Lines of a module that call the audit with `only`: checks are left out by name, with a reason
    (`without` of `audited`), and by no list of those that are asked.
    """
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return tuple(
        call.lineno
        for call in calls
        if {getattr(call.func, "attr", ""), getattr(call.func, "id", "")} & AUDITS
        and any(given.arg == "only" for given in call.keywords)
    )


def listed(page: str) -> dict[str, tuple[str, ...]]:
    """The same as a page lists it. ValueError for a line without a reason, or twice for a file."""
    lines = page.splitlines()
    begin = lines.index(HEAD) + 2
    result: dict[str, tuple[str, ...]] = {}
    for line in lines[begin : lines.index("", begin)]:
        file, tests, why = (cell.strip() for cell in line.strip("|").split("|"))
        name = file.strip("`")
        if not why or name in result:
            raise ValueError(f"{name}: one line for each file, with the reason")
        result[name] = tuple(sorted(test.strip("` ") for test in tests.split(",")))
    return result
