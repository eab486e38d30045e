"""The page of capability levels: each row has an answer, and each yes a test that exists. Those of
the page on packaging have an answer and a place.
"""

from __future__ import annotations

import re

import pytest

from tests.support import ROOT
from tests.support.evidence import catalog

TEXT = (ROOT / "docs/concepts/capability-levels.md").read_text(encoding="utf-8")
LEVELS = ["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"]


def rows() -> dict[str, list[tuple[str, str, list[str]]]]:
    """Of each level its rows: the capability, the answer, and the tests."""
    found = {}
    for part in re.split(r"^## [IV]+: ", TEXT, flags=re.MULTILINE)[1:]:
        name, _, body = part.partition("\n")
        cells = [
            [cell.strip() for cell in line.split("|")[1:-1]] for line in re.findall(r"^\|.*\|$", body, re.MULTILINE)
        ]
        found[name] = [(what, here, re.findall(r"`([^`]+)`", tests)) for what, here, tests in cells[2:]]
    return found


def answer(here: str) -> str:
    told = re.match(r"\*\*(yes|in part|no)\*\*", here)
    assert told, here
    return told[1]


@pytest.mark.parametrize("level", LEVELS)
def test_each_row_is_answered_and_shown(level: str) -> None:
    assert len(rows()[level]) > 3
    for what, here, tests in rows()[level]:
        assert answer(here) == "no" or tests, what
        assert answer(here) != "in part" or len(here) > len("**in part**: "), f"{what}: what is missing?"


def test_each_test_that_it_names_is_there() -> None:
    named = [test for level in rows().values() for _, _, tests in level for test in tests]
    assert len(named) > 30
    assert [test for test in named if not catalog.named(f"tests/tiers/{test}")] == []


def test_the_level_is_the_one_that_its_rows_have() -> None:
    assert list(rows()) == LEVELS
    full = [level for level in LEVELS if all(answer(here) == "yes" for _, here, _ in rows()[level])]
    reached = [level for n, level in enumerate(LEVELS) if LEVELS[: n + 1] == full[: n + 1]]
    told = re.findall(r"\*\*([^*]+)\*\*", re.split("^## ", TEXT, flags=re.MULTILINE)[0])
    assert [one for one in told if one in LEVELS] == reached[-1:]


def test_each_row_of_packaging_has_an_answer_and_a_place() -> None:
    text = (ROOT / "docs/operate/packaging.md").read_text(encoding="utf-8")
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in re.findall(r"^\|.*\|$", text, re.MULTILINE)]
    assert len(table) > 15
    for what, here, where in table[2:]:
        assert here == f"**{answer(here)}**", what
        assert where, what
        assert answer(here) != "yes" or "](" in where or "`" in where, what
