"""The page that says who reaches what has a cell for each role and asset, and tests that exist."""

from __future__ import annotations

import pytest

from tests.campaigns.pages import reach
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
        return text.partition("## What the tests said last")[0]

    assert told(reach.PAGE.read_text(encoding="utf-8")) == told(reach.page())
