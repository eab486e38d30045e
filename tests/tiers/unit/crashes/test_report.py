"""What is said of a campaign of crashes: what was run of a code, and what was not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from tests.campaigns.crashes import campaign, report
from tests.campaigns.crashes.agent_proxy import PREFIX
from tests.campaigns.crashes.campaign import REFERENCES, Case, Results, cases
from tests.campaigns.crashes.faults import KILLS, Target
from tests.campaigns.crashes.play import SCENARIOS
from tests.campaigns.crashes.run import Outcome, Parts

OPERATORS, AGENTS = Target("apply status"), Target(f"{PREFIX}settle-update")


@pytest.fixture(autouse=True)
def no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """This tier has no etcd and no API server that could tell their versions."""
    monkeypatch.setattr(report, "_versions", lambda: "versions")


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Two writes of each reference, nothing else run yet."""
    made = Results(tmp_path / "123456789abc")
    for name in SCENARIOS:
        for played in (False, True):
            writes = [OPERATORS] if played else [OPERATORS, AGENTS]
            for number in range(REFERENCES):
                made.write(Case(name, number=number, played=played), Outcome([], True, writes), tries=1)
    return made


def outcome(*deviations: str, hit: bool = True) -> Outcome:
    times = {"Unlocked": 3000, "Settled": 9000}
    return Outcome(list(deviations), hit, [], seconds=20.0, settle_ms=times, restarts=1)


def test_what_was_run_what_deviates_and_what_was_not_reached(results: Results) -> None:
    todo = [case for case in cases(results) if case.fault in KILLS and case.target == OPERATORS]
    good, bad, missed, *left = todo
    results.write(good, outcome(), tries=1)
    results.write(bad, outcome("two drivers"), tries=1)
    results.write(missed, outcome(hit=False), tries=3)
    results.disturbed(left[0], Outcome(["a lock is free"], False, [], disturbed="OSError: no connection"))
    found = report.summary(results, cases(results))
    assert found["total"] == [len(cases(results)), 2, 1, 1]
    assert found["killed"] == [2, 0]
    assert found["writes"] == {"operator": [1, 1], "agent": [1, 1]}
    assert found["wrong"] == [f"{bad}: two drivers"]
    text = report.page([found, *report.stored()])
    assert f"**2 runs counted, 1 of them deviate.** {len(cases(results))} cases in all" in text
    assert "1 tries that were disturbed (1 OSError), 1 of them with deviations" in text
    assert f"* {bad}: two drivers" in text
    assert "| Settled | 9.0 | 9.0 | 9.0 |" in text
    assert "## Code 123456789abc" in text
    assert all(f"## Code {one['code']}" in text for one in report.stored())


def test_no_bound_is_claimed_for_cases_that_were_not_run(results: Results) -> None:
    """The runs are an enumeration by place, no sample of the others."""
    good, *_ = [case for case in cases(results) if case.fault in KILLS and case.target == OPERATORS]
    results.write(good, outcome(), tries=1)
    found = report.summary(results, cases(results))
    text = report.page([found])
    all_ = len(cases(results))
    assert f"**1 runs counted, 0 of them deviate.** {all_} cases in all, {all_ - 1} not run, of which nothing" in text
    assert "less than" not in text


def test_each_case_counts_in_one_row(results: Results) -> None:
    rows = report.summary(results, cases(results))["rows"]
    assert set(rows) <= set(report.WORDS)
    assert sum(row[0] for of_word in rows.values() for row in of_word.values()) == len(cases(results))


def test_without_a_reference_the_page_is_of_earlier_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a change of its sentences needs no run."""
    monkeypatch.setattr(report, "PAGE", tmp_path / "crashes.md")
    assert report.write(Results(tmp_path / "123456789abc")) == 1
    assert report.PAGE.read_text() == report.page(report.stored())


def test_the_newest_code_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: Results) -> None:
    monkeypatch.setattr(report, "STORE", tmp_path / "raw")
    monkeypatch.setattr(report, "PAGE", report.ROOT / "build" / "crashes-of-a-test.md")
    report.PAGE.parent.mkdir(exist_ok=True)
    earlier = {**report.summary(results, cases(results)), "code": "aaaaaaaaaaaa", "at": "2026-01-01"}
    report.STORE.mkdir()
    (report.STORE / "aaaaaaaaaaaa.json").write_text(json.dumps(earlier))
    try:
        assert report.write(results) == 1, "not everything was run"
        assert [one["code"] for one in report.stored()] == ["123456789abc", "aaaaaaaaaaaa"]
        text = report.PAGE.read_text()
        assert text.index("## Code 123456789abc") < text.index("## Code aaaaaaaaaaaa")
    finally:
        report.PAGE.unlink()


@pytest.mark.parametrize("fails", ["begin", "play", "end", ""])
def test_what_a_run_has_shown_is_kept_though_its_end_fails(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is left out and counted as one that deviated, not as one that showed nothing."""

    class Failing:
        def __init__(self, *_: object, **__: object) -> None:
            if fails == "begin":
                raise OSError("no port")

        def execute(self, _reference: object) -> Outcome:
            if fails == "play":
                raise OSError("no server")
            return outcome("two drivers")

        def close(self) -> None:
            if fails in ("play", "end"):
                raise OSError("no answer")

    monkeypatch.setattr(campaign, "Run", Failing)
    found = campaign._run(cast("Parts", None), Case(next(iter(SCENARIOS)), number=0), tmp_path, None)
    assert found.deviations == ([] if fails in ("begin", "play") else ["two drivers"])
    assert found.disturbed == ({"begin": "OSError: no port"}.get(fails, "OSError: no answer") if fails else "")
