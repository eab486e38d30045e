"""A result that a rerun replaces leaves its verdict, and the page counts it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.faults import results as faults
from tests.campaigns.faults import table as faults_table
from tests.campaigns.history import __main__ as history
from tests.campaigns.history.run import CELLS
from tests.campaigns.matrix import page as matrix_page
from tests.campaigns.matrix import results as matrix
from tests.campaigns.matrix.cells import EVERY
from tests.campaigns.values import page as values
from tests.campaigns.values.run import HELD
from tests.support.evidence import replaced

FOUND = {"told": "", "seconds": 1, "counts": {}}


def verdicts(result: dict[str, Any]) -> list[str]:
    return [one["verdict"] for one in result["earlier"]]


def test_verdicts_of_all_reruns_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "STORE", tmp_path)
    monkeypatch.setattr(matrix, "key", lambda: "abc hudi=1")
    monkeypatch.setattr(matrix, "commit", lambda: "abc")
    first = matrix.save(EVERY[0], {**FOUND, "verdict": "failed"})
    assert verdicts(first) == []
    matrix.save(EVERY[0], {**FOUND, "verdict": "unknown"})
    last = matrix.save(EVERY[0], {**FOUND, "verdict": "ok"})
    assert verdicts(last) == ["failed", "unknown"]
    assert last["earlier"][0] == {"verdict": "failed", "commit": "abc", "at": first["at"]}
    matrix.save(EVERY[1], {**FOUND, "verdict": "ok"})
    matrix.save(EVERY[1], {**FOUND, "verdict": "ok"})
    text = matrix_page.page(matrix.load)
    assert (
        "Left out: results that newer ones have replaced (3, 2 of them not as they must be, counted since 2026-11-28; "
        in text
    )
    assert "2 of 86 cells have a result: 2 ok" in text


def test_a_cell_of_another_lock_must_be_corrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not ok is told by what the cell must be."""
    monkeypatch.setattr(faults, "STORE", tmp_path)
    monkeypatch.setattr(faults, "key", lambda: "abc hudi=1")
    monkeypatch.setattr(faults, "commit", lambda: "abc")
    monkeypatch.setattr(faults, "versions", dict)
    for verdict in ("corrupt", "ok", "corrupt"):
        found = faults.save(faults.Cell("client-times-out", "stock"), {**FOUND, "verdict": verdict})
    assert verdicts(found) == ["corrupt", "ok"]
    assert "results that newer ones have replaced (2, 1 of them not as they must be" in faults_table._evidence()


def test_runs_of_histories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "STORE", tmp_path)
    monkeypatch.setattr(history, "commit", lambda: "abc")
    for verdict in ("broken", "ok"):
        found = history.save(CELLS[0], {**FOUND, "verdict": verdict})
    assert verdicts(found) == ["broken"]
    assert "results that newer ones have replaced (1, 1 of them not" in history.page.page(history.load)


def test_values_count_runs_and_not_their_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run writes its result down after each step; that replaces nothing of another run."""
    monkeypatch.setattr(values, "RESULTS", tmp_path / "values.json")
    monkeypatch.setattr(values, "LOCK", tmp_path / "lock")
    monkeypatch.setattr(values, "commit", lambda: "abc")
    case, kind = values.CASES[0], values.CASES[0].kinds[0]
    runs = ([{"a": "lost"}], [{"a": HELD}, {"a": HELD}], [{"a": HELD}])
    for number, steps in enumerate(runs):
        before = values.earlier(case.name, kind)
        for step in steps:
            values.keep(case, kind, {"written: Spark": step}, whole=False, earlier=before)
        if number != 1:
            values.keep(case, kind, {"written: Spark": steps[-1]}, whole=True, earlier=before)
    found = json.loads((tmp_path / "values.json").read_text())["cases"][f"{case.name}/{kind}"]
    assert verdicts(found) == ["damaged", "not whole"]
    assert "results that newer ones have replaced (2, 2 of them not" in values._evidence({f"{case.name}/{kind}": found})


def test_a_case_that_was_changed_has_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was run had other columns than the page lists."""
    monkeypatch.setattr(values, "RESULTS", tmp_path / "values.json")
    monkeypatch.setattr(values, "LOCK", tmp_path / "lock")
    monkeypatch.setattr(values, "commit", lambda: "abc")
    case, kind = values.CASES[0], values.CASES[0].kinds[0]
    values.keep(case, kind, {"upserts: Spark": {"": HELD}}, whole=True)
    assert values.fresh(case.name, kind)
    assert "Runs: 1 of " in values.page()
    changed = replace(case, columns={**case.columns, "more": ("int", ("1",))})
    monkeypatch.setattr(values, "CASES", (changed, *values.CASES[1:]))
    assert not values.fresh(case.name, kind)
    assert f"* {case.name} ({kind}), " in values.page()
    assert "upserts: Spark" not in values.page()


def test_a_result_of_before_has_none_and_counts_itself_when_it_is_replaced() -> None:
    old = {"verdict": "ok", "commit": "abc"}
    assert replaced.with_earlier({"verdict": "ok"}, old)["earlier"] == [{"verdict": "ok", "commit": "abc", "at": ""}]
    assert replaced.told([old, None]).startswith("results that newer ones have replaced (0, 0 of them")
