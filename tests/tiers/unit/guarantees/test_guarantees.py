"""The page of guarantees claims what a test shows, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.campaigns.guarantees.page import PAGE, _cell, last, page, unmarked
from tests.campaigns.guarantees.rows import ROWS, Cell, named
from tests.campaigns.pages import last_run
from tests.support import ROOT


def test_the_page_is_made_of_the_rows() -> None:
    stands, anew = (unmarked(text) for text in (PAGE.read_text(encoding="utf-8"), page()))
    assert stands == anew, "python -m tests.campaigns.guarantees.page"


def test_each_row_is_there_once() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_every_test_that_is_named_exists_with_its_parameters() -> None:
    files = sorted({test.partition("::")[0] for test in named()})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = set(done.stdout.splitlines())
    assert [test for test in named() if test not in found] == []


def test_a_test_without_an_outcome_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome is that of the very parameters, not of the test's others."""
    file = "tests/tiers/hudi/test_index.py"
    run = {"commit": "abc", "at": "2030-01-01T00:00Z", "outcome": "failed", "tests": 1}
    stored: dict[str, Any] = {"hudi": {file: {"test_a[one]": run, "test_b": {**run, "outcome": "passed"}}}}
    monkeypatch.setattr(last_run, "results", lambda tier: stored.get(tier, {}))
    assert last(f"{file}::test_a[one]").startswith("failed 2030-01-01, `abc`")
    assert last(f"{file}::test_b").startswith("passed 2030-01-01, `abc`")
    assert last(f"{file}::test_a[two]") == "no result noted"
    assert last("tests/tiers/hudi/test_updates.py::test_a[one]") == "no result noted"
    cells = [Cell("it holds", f"{file}::{name}") for name in ("test_a[one]", "test_b", "test_a[two]")]
    numbers = {cell.test: number for number, cell in enumerate(cells, 1)}
    assert [_cell(cell, numbers) for cell in cells] == ["failed [1]", "it holds [2]", "not run [3]"]
