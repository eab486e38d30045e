"""A page of a campaign is what its stored results make, so that a run of a part of it takes no row
away: the others' results are stored with their own commits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.alerts import page as alerts
from tests.campaigns.bench import lock_gateway, lock_load, performance, starvation
from tests.campaigns.certify import page as certify
from tests.campaigns.chaos import page as chaos
from tests.campaigns.crashes import report as crashes
from tests.campaigns.faults import proven
from tests.campaigns.faults import table as faults
from tests.campaigns.history import __main__ as history
from tests.campaigns.kills import results as kills
from tests.campaigns.kills import table as kills_table
from tests.campaigns.matrix import page as matrix
from tests.campaigns.matrix import results as cells
from tests.campaigns.matrix.cells import EVERY
from tests.campaigns.pages import last_run, measured, shown
from tests.campaigns.values import page as values
from tests.support import ROOT
from tests.support.evidence import none_of

JsonDict = dict[str, Any]
PAGES: dict[str, tuple[Callable[[], str], str]] = {
    "alerts": (alerts.page, "tests.campaigns.alerts --page"),
    "certify": (certify.page, "tests.campaigns.certify --page"),
    "chaos": (lambda: chaos.page(chaos.results()), "tests.campaigns.chaos --page"),
    "crashes": (lambda: crashes.page(crashes.stored()), "tests.campaigns.crashes --report"),
    "faults": (lambda: faults.page(lambda mutation: False), "tests.campaigns.faults --table"),
    "history": (lambda: history.page.page(history.load), "tests.campaigns.history --table"),
    "kills": (
        lambda: kills_table.page({kind: kills.rounds(kind) for kind in kills.KINDS}, kills.earlier()),
        "tests.campaigns.kills --table",
    ),
    "last-run": (last_run.page, "tests.campaigns.pages.last_run --page"),
    "lock-gateway": (lock_gateway.page, "tests.campaigns.bench.lock_gateway --page"),
    "lock-load": (lock_load.page, "tests.campaigns.bench.lock_load --page"),
    "matrix": (lambda: matrix.page(cells.load, cells.before()), "tests.campaigns.matrix --table"),
    "on-a-cluster": (measured.page, "tests.campaigns.pages.measured"),
    "performance": (lambda: performance.page(performance.Results.load()), "tests.campaigns.bench.performance"),
    "shown": (shown.page, "tests.campaigns.pages.last_run --page"),
    "starvation": (starvation.page, "tests.campaigns.bench.starvation --page"),
    "what-a-table-can-hold": (values.page, "tests.campaigns.values --page"),
}


EARLIER = re.compile(rf" \(\d+ of them[^()]* {proven.EARLIER}[^()]*\)")
"""Of how many mutations the outcome is of earlier code: that changes with each change of a file,
and the page says how it was when it was written.
"""


def page(name: str) -> Path:
    (found,) = (ROOT / "docs").rglob(f"{name}.md")
    return found


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_results_make(name: str) -> None:
    made, command = PAGES[name]
    stands, anew = (last_run.unmarked(EARLIER.sub("", text)) for text in (page(name).read_text(), made()))
    assert stands == anew, f"written by `python -m {command}`"


def test_one_new_cell_takes_no_other_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = matrix.page(cells.load, cells.before())
    new, *others = EVERY
    result = {**(cells.load(new) or {}), "commit": "abc", "key": "abc hudi=1", "at": "2030-01-01", "counts": {}}
    after = matrix.page(lambda cell: result if cell == new else cells.load(cell), cells.before())
    assert "86 of 86 cells have a result" in before
    assert "86 of 86 cells have a result" in after
    told = {str(found["commit"]) for cell in others if (found := cells.load(cell))}
    assert all(f"`{commit.rstrip('+')}" in after for commit in {"abc", *told})


def test_what_was_never_seen_is_told_with_what_its_number_allows() -> None:
    """A zero, or none, of few is no statement about many."""
    none = none_of(30)
    assert page("kills").read_text().count(f"Kills after which rows were lost, doubled or phantom: {none}.") == 2
    one: JsonDict = {"commit": "abc", "at": "2030-01-01T00:00Z", "seed": 1, "rows": "ok"}
    one["kills"] = [{"instant": "1", "outcome": "RolledBack", "commitsOfOthers": 1}] * 30
    good = kills_table.section("critical", [one])
    assert f"lost, doubled or phantom: {none}." in good
    assert f"Settled: median 1, none in {none}." in good
    assert "Kills after which" not in kills_table.section("critical", [{**one, "rows": "lost"}])
    (code,) = crashes.stored()
    total = code["total"]
    assert f"**{total[1]} runs counted, 0 of them deviate.**" in crashes.page([code]), "an enumeration has no bound"
    assert "1 of them deviate.**" in crashes.page([{**code, "total": [*total[:3], 1]}])
    runs = chaos.results()
    asked = next(iter(chaos.QUESTIONS))
    assert f"| {asked} | {len(runs)} | {none_of(len(runs))} |" in chaos.page(runs)
    bad = {**runs[0], "verdict": "broken", "bad": {"rows": "lost"}}
    assert f"| {asked} | {len(runs) + 1} | 1 of {len(runs) + 1}: less" in chaos.page([bad, *runs])
    assert f"commits {none_of(19)}, pairs {none_of(1)}, keys {none_of(1)}" in history.page.page(history.load)
    assert f"| {none_of(990)} |" in lock_load.page()


def test_what_other_pages_say_of_the_kills_is_what_was_counted() -> None:
    numbers = {
        sum(len(one["kills"]) for one in kills.rounds(kind)) + kills.earlier().get(kind, {}).get("kills", 0)
        for kind in kills.KINDS
    }
    assert len(numbers) == 1, "the sentences below are of as many kills of either kind"
    (number,) = numbers
    paused, readme = (
        " ".join((ROOT / path).read_text().split()) for path in ("docs/design/paused-writers.md", "README.md")
    )
    assert f"none of {number} of each kind with a lost row, so less than one in ten of that kind" in paused
    assert 0.09 < 1 - 0.05 ** (1 / number) < 0.1
    assert f"median of {number} kills above" in paused
    assert f"median of {number} kills in the critical section" in readme


def test_a_rate_of_a_few_events_is_told_with_what_so_little_time_allows() -> None:
    assert [round(end, 2) for end in starvation.interval(1)] == [0.03, 5.57]
    assert [round(end, 2) for end in starvation.interval(3)] == [0.62, 8.77]
    assert [round(end, 1) for end in starvation.interval(100)] == [81.4, 121.6]
    rates = [line.split(" | ")[5] for line in starvation.page().splitlines() if line.startswith("| 2 %")]
    assert rates == ["60 (12 to 175)", "< 60", "< 60"]


def test_new_rounds_of_kills_stand_beside_earlier_ones() -> None:
    one = {
        "commit": "abc",
        "at": "2030-01-01T00:00Z",
        "seed": 1,
        "rows": "ok",
        "load": [1.0],
        "kills": [{"instant": "1", "outcome": "RolledBack", "commitsOfOthers": 1, "Fenced": 1.0}],
    }
    earlier = kills.earlier()
    text = kills_table.page({"critical": [one], "writing": []}, earlier)
    assert f"{1 + sum(found['kills'] for found in earlier.values())} kills" in text
    for found in earlier.values():
        assert "\n".join(found["text"]) in text
    assert "1 kills, rounds: 1" in text


def test_another_code_keeps_what_was_run_of_earlier_ones() -> None:
    earlier = crashes.stored()
    new = {**earlier[0], "code": "123456789abc", "at": "2030-01-01", "commits": {"abc": "2030-01-01"}}
    new |= {"total": [10, 1, 0, 0], "rows": {"killed before": {name: [5, 1, 0, 0] for name in crashes.SCENARIOS}}}
    text = crashes.page([new, *earlier])
    assert re.search("Runs: 1 of 10 cases of .+, the newest code that was run", text)
    for found in earlier:
        assert f"## Code {found['code']}" in text
        assert f"**{found['total'][1]} runs counted" in text
