"""The page of guarantees claims what a test shows, and nothing else."""

from __future__ import annotations

import subprocess
import sys

from tests.campaigns.guarantees.page import PAGE, page
from tests.campaigns.guarantees.rows import ROWS, named
from tests.support import ROOT


def test_the_page_is_made_of_the_rows() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.campaigns.guarantees.page"


def test_each_row_claims_something_once() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert not [row.name for row in ROWS if not any(row.cells)]


def test_every_test_that_is_named_exists_with_its_parameters() -> None:
    files = sorted({test.partition("::")[0] for test in named()})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = set(done.stdout.splitlines())
    assert [test for test in named() if test not in found] == []
