"""What a test on a cluster has measured is kept when it has passed, and is on a page."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.campaigns.pages.measured import EVERY, page
from tests.support import ROOT
from tests.support.evidence import MARK, NOTHING, commit, faults, measured


def keeps(file: Path) -> list[tuple[ast.FunctionDef, ast.Call]]:
    """Each test of a file that keeps seconds, and the call that does it."""
    return [
        (test, call)
        for test in ast.parse(file.read_text()).body
        if isinstance(test, ast.FunctionDef)
        for call in ast.walk(test)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "measured.keep"
    ]


def test_each_test_that_keeps_seconds_is_on_the_page_and_keeps_them_when_it_has_passed() -> None:
    found = {}
    for file in sorted((ROOT / "tests" / "tiers" / "e2e").glob("test_*.py")):
        for test, call in keeps(file):
            found[ast.literal_eval(call.args[0])] = str(file.relative_to(ROOT))
            assert ast.unparse(test.body[-1]) == ast.unparse(call), f"{file.name}::{test.name}: something may fail yet"
    assert found == {name: one.test for name, one in EVERY.items()}


def test_a_page_has_what_was_kept_and_says_what_was_not(tmp_path: Path) -> None:
    empty = page(tmp_path)
    assert NOTHING in empty
    assert empty.count("No run is kept.") == len(EVERY) == 2
    measured.keep("rotated-keys", {"driver": 52.34, "agent": 59.0}, settings={"within": 120}, folder=tmp_path)
    one = page(tmp_path)
    assert NOTHING not in one
    assert one.count("No run is kept.") == 1
    for line in ("| driver | 52.3 |", "| agent | 59.0 |", "* with `within: 120`"):
        assert f"\n{line}\n" in one, one
    assert f"{MARK} Runs: the last one of 1 of 2 tests" in one
    assert f"commit `{commit().rstrip('+')}`" in one
    assert [faults(text) for text in (empty, one)] == [[], []]
