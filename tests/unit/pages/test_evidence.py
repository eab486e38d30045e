"""No page of results stands without its commits, without saying what it left out, or as if it were of today's code."""

from __future__ import annotations

import pytest
from tests import evidence
from tests.evidence import NOTHING, OLDER, ROOT, Evidence, faults, none_of, of_results, reachable
from tests.hudi.statements_page import LIST
from tests.hudi.statements_page import page as statements_page
from tests.matrix.cells import EVERY
from tests.mutations.campaign import stored
from tests.mutations.lists import MUTATIONS
from tests.values.cases import CASES

PAGES = (*sorted((ROOT / "docs" / "results").glob("*.md")), ROOT / "docs" / "what-user-code-may-do.md", ROOT / "docs" / "what-a-table-can-hold.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_page_says_what_it_stands_on(page: object) -> None:
    assert faults(PAGES[PAGES.index(page)].read_text()) == []  # type: ignore[arg-type]


def test_rows_are_those_of_the_lists() -> None:
    text = {page.name: page.read_text() for page in PAGES}
    assert text["what-user-code-may-do.md"] == statements_page(), f"written by `python -m tests.hudi.statements_page` from {LIST.name}"
    assert sum(
        line.count("**ok**") + line.count("not run") + line.count("**failed**") for line in text["matrix.md"].splitlines() if line.startswith("| ")
    ) == len(EVERY)
    for case in CASES:
        assert f"## {case.name[0].upper()}{case.name[1:]}\n" in text["what-a-table-can-hold.md"], "written by `python -m tests.values --page`"
    names = {line.split("`")[1] for line in text["mutations.md"].splitlines() if line.startswith("| `")}
    judged = {one.id for one in MUTATIONS if stored(one) is not None}
    assert judged <= names, "written by `python -m tests.mutations --table`"


def test_what_a_page_must_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "reachable", lambda commit: commit == "a123456789")
    good = str(Evidence({"a123456789": "2026-01-01"}, "3 of 3"))
    assert faults(f"# A page\n\n{good}\n") == []
    assert faults(f"# A page\n\n{NOTHING}\n") == []
    assert faults("# A page\n") == ["it has 0 sentences of evidence (**Evidence.**) instead of one"]
    assert faults(good.replace(OLDER, "")) == ["it does not say that later code was not part of the runs"]
    assert faults(good.replace("Left out: ", "")) == ["its evidence does not tell its left out"]
    assert faults(good.replace("Repeats: ", "")) == ["its evidence does not tell its repeats"]
    gone = ["commit abcdef0123 is not in the history, and the page does not say so"]
    assert faults(f"{good}\nRun: commit abcdef0123, by hand\n") == gone
    assert faults(f"{good}\n* `abcdef0123` hudi=1\n") == gone
    lost = str(Evidence({"abcdef0123": "2026-01-01"}, "3 of 3"))
    assert "`abcdef0123`, not in this repository's history (2026-01-01)" in lost
    assert faults(lost) == []


def test_a_dirty_run_says_so_and_days_are_kept() -> None:
    results = [{"commit": "abc+", "at": "2026-01-03T10:00Z"}, {"commit": "abc+", "at": "2026-01-01T10:00Z"}, {"commit": "def", "date": "2026-01-04"}]
    assert of_results(results) == {"def": "2026-01-04", "abc+": "2026-01-01 to 2026-01-03"}
    assert "with changes that were not committed" in str(Evidence(of_results(results), "3"))


def test_the_history_is_asked_where_there_is_one() -> None:
    assert reachable("0" * 40) is not evidence.has_history()
    if evidence.has_history():
        assert reachable(evidence.commit().rstrip("+"))


def test_of_what_was_never_seen_the_bound_is_told() -> None:
    assert none_of(60) == "0 of 60: less than 4.9 %"
    assert none_of(1) == "0 of 1: less than 95 %"
    assert none_of(0) == "0 of 0: nothing is known"
