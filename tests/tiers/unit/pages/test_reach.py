"""The page that says who reaches what has a cell for each role and asset, and tests that exist."""

from __future__ import annotations

import pytest

from tests.campaigns.pages import last_run, reach
from tests.support.evidence import catalog


@pytest.mark.parametrize("asset", reach.CELLS)
def test_each_role_has_an_answer(asset: str) -> None:
    assert tuple(reach.CELLS[asset]) == reach.ROLES
    for role, cell in reach.CELLS[asset].items():
        assert cell.says, role
        assert "unknown" not in cell.says, role
        assert cell.tests or cell.says.startswith(reach.NOT_TESTED), f"{role}: no test shows it, and it does not say so"


def test_each_test_that_it_names_is_there() -> None:
    assert [test for test in reach.tests() if not catalog.named(test)] == []


def test_the_page_is_what_the_module_makes() -> None:
    """All but what the tests said last, which each run changes."""

    def told(text: str) -> str:
        cells = text.partition("## What the tests said last")[0]
        for mark in reach.MARKS:
            cells = cells.replace(mark, "")
        return cells

    assert told(reach.PAGE.read_text(encoding="utf-8")) == told(reach.page())


def test_a_cell_says_which_of_its_tests_has_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no results at all each test of each cell has the mark."""
    monkeypatch.setattr(last_run, "results", lambda tier: {})
    rows = [line for line in reach.page().splitlines() if line.startswith(tuple(f"| {role} |" for role in reach.ROLES))]
    named = sum(len(cell.tests) for row in reach.CELLS.values() for cell in row.values())
    assert sum(line.count(reach.MARKS[1]) for line in rows) == named
