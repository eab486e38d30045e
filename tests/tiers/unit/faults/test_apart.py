"""A cell's process: its result, its failure, or the end of its time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.harness.apart import run_apart


@pytest.mark.parametrize(
    ("code", "verdict", "told"),
    [
        ('open(\'result.json\', \'w\').write(\'{"verdict": "ok", "told": "fine"}\')', "ok", "fine"),
        ("raise AssertionError('the row is lost')", "failed", "AssertionError: the row is lost"),
        ("import time; time.sleep(60)", "unknown", "not within 1 s"),
    ],
)
def test_what_became_of_a_cell(code: str, verdict: str, told: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", f"import os; os.chdir({str(tmp_path)!r})\n{code}"]
    assert run_apart(command, tmp_path, log=tmp_path / "log", limit=1 if "sleep" in code else 60) == {
        "verdict": verdict,
        "told": told,
    }
