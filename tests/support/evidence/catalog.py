"""Catalog of the tests and of the run that each belongs to: read from their source, so that pages
can say it without running anything.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support import ROOT

JAVA = "spark-images/etcd-lock/src/test/java/io/hudioperator"
COLLECTED = ("tests/tiers/hudi", "tests/tiers/e2e")
"""Tiers of which each parameter of a test has a result of its own."""
EVERY, PART, ALL = "every change", "every change in part", "test-all"
"""In `make test` with all its parameters; with some of them; only in `make test-all`."""
_METHOD = re.compile(r"((?:^[ \t]*@\w+(?:\([^)]*\))?[ \t]*\n)+)^[ \t]*(?:static )?void (\w+)\(", re.M)
_TAG = '@Tag("extra")'


@dataclass(frozen=True)
class Test:
    """One test function: `file::name`, and the run that it is in."""

    __test__ = False
    file: str
    name: str
    run: str
    text: str = ""
    """Its source, and the constants that its parameters are made of; of Java tests nothing."""

    @property
    def id(self) -> str:
        """As pages name it."""
        return f"{self.file}::{self.name}"


def tests(file: str) -> tuple[Test, ...]:
    """Tests of a file, in their order. Raises OSError when there is no such file."""
    return _java(file) if file.endswith(".java") else _python(file)


def ids(file: str) -> tuple[str, ...]:
    """Tests of a file of `COLLECTED` with their parameters, as pytest collects them and reports
    name them. Nothing: a file of another tier, or one that cannot be collected.
    """
    return _collected(str(ROOT)).get(file, ()) if file.startswith(COLLECTED) else ()


@cache
def _collected(root: str) -> dict[str, tuple[str, ...]]:
    folders = [folder for folder in COLLECTED if Path(root, folder).is_dir()]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=-p no:cacheprovider", *folders]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=root, env=outside, capture_output=True, text=True, check=False)
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines() if folders else ():
        file, _, name = line.partition("::")
        if name and file.startswith(COLLECTED):
            found.setdefault(file, []).append(name)
    return {file: tuple(names) for file, names in found.items()}


@cache
def _python(file: str) -> tuple[Test, ...]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    whole = "mark.extra" in ast.unparse(named["pytestmark"]) if "pytestmark" in named else False
    found = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))
    return tuple(
        Test(
            file,
            node.name,
            ALL if whole else _run(node, named),
            "\n".join([ast.unparse(node), *_constants(node, named)]),
        )
        for node in found
    )


def _run(node: ast.FunctionDef, named: dict[str, ast.expr]) -> str:
    marks = [ast.unparse(mark) for mark in node.decorator_list]
    if "pytest.mark.extra" in marks:
        return ALL
    return PART if "mark.extra" in " ".join([*marks, *_constants(node, named)]) else EVERY


def _constants(node: ast.FunctionDef, named: dict[str, ast.expr]) -> list[str]:
    """Values of the file's constants that the function's decorators name."""
    marks = " ".join(ast.unparse(mark) for mark in node.decorator_list)
    return [ast.unparse(value) for name, value in named.items() if re.search(rf"\b{name}\b", marks)]


@cache
def _java(file: str) -> tuple[Test, ...]:
    text = (ROOT / file).read_text(encoding="utf-8")
    whole = _TAG in text.partition("class ")[0]
    found = [(match[1], match[2]) for match in _METHOD.finditer(text) if "Test" in match[1]]
    return tuple(Test(file, name, ALL if whole or _TAG in marks else EVERY) for marks, name in found)


@cache
def every_file() -> tuple[str, ...]:
    """Files with tests, of all tiers."""
    python = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
    return (*python, *sorted(str(path.relative_to(ROOT)) for path in (ROOT / JAVA).rglob("*Test.java")))


def named(word: str) -> tuple[Test, ...]:
    """The tests that a page means by a word: a file or folder, `file::test`, a Java class,
    `Class.method`, or the name of a test alone. Nothing: none.
    """
    file, _, name = word.partition("::")
    if "/" in file:
        files = (
            [file]
            if (ROOT / file).is_file()
            else [one for one in every_file() if one.startswith(f"{file.rstrip('/')}/")]
        )
        return tuple(test for one in files for test in tests(one) if name in ("", test.name))
    short, _, method = word.partition(".")
    if short.endswith("Test") and (java := next((one for one in every_file() if one.endswith(f"/{short}.java")), "")):
        return tuple(test for test in tests(java) if method in ("", test.name))
    return tuple(
        test for test in _all() if test.name == word or (Path(test.file).name == file and name in ("", test.name))
    )


@cache
def _all() -> tuple[Test, ...]:
    return tuple(test for file in every_file() for test in tests(file))


def run_of(found: tuple[Test, ...]) -> str:
    """The run that shows a claim for which these tests are named: the smallest one that has
    all of them.
    """
    runs = {test.run for test in found}
    return runs.pop() if len(runs) == 1 else PART


def words(cell: str) -> Iterator[str]:
    """Words that a cell of a page has between backticks."""
    yield from re.findall(r"`([^`]+)`", cell)
