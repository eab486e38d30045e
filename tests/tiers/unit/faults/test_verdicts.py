"""What a fault's cell is called by what the audit says, and how the page counts it."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hudi_runtime.audit import TITLES, Check, Outcome, Report
from tests.campaigns.faults import scenarios, table
from tests.campaigns.faults.results import Cell
from tests.campaigns.faults.scenarios import SCENARIOS, judge, told_loudly
from tests.campaigns.faults.sides import Side
from tests.support.harness import s3proxy


def report(**others: Outcome) -> Report:
    """An audit in which every check is ok, but for these."""
    return Report("s3a://lake/t", tuple(Check(name, others.get(name, Outcome.OK), "said") for name in TITLES))


@pytest.mark.parametrize(
    ("others", "verdict"),
    [
        ({}, "ok"),
        ({"rows": Outcome.VIOLATED}, "corrupt"),
        ({"rows": Outcome.VIOLATED, "files": Outcome.UNKNOWN}, "corrupt"),
        ({"files": Outcome.UNKNOWN}, "unknown"),
        ({"rows": Outcome.NOT_ASKED}, "unknown"),
        ({"owners": Outcome.UNKNOWN, "late": Outcome.NOT_ASKED}, "ok"),
        ({"owners": Outcome.VIOLATED}, "corrupt"),
        ({"late": Outcome.UNKNOWN}, "unknown"),
    ],
)
def test_ok_is_what_every_check_says(others: dict[str, Outcome], verdict: str) -> None:
    assert judge(report(**others)).verdict == verdict


def test_an_audit_without_checks_shows_nothing() -> None:
    assert judge(Report("s3a://lake/t", ())).verdict == "unknown"
    some = tuple(check for check in report().checks if check.name != "rows")
    assert judge(Report("s3a://lake/t", some)).verdict == "unknown"


def test_damage_stays_damage_whoever_was_told() -> None:
    assert told_loudly(judge(report(rows=Outcome.UNKNOWN))).verdict == "reported"
    assert told_loudly(judge(report(rows=Outcome.VIOLATED))).verdict == "corrupt"
    assert told_loudly(judge(report(rows=Outcome.VIOLATED, files=Outcome.UNKNOWN))).verdict == "corrupt"
    assert told_loudly(judge(report())).verdict == "ok"


@pytest.mark.parametrize(
    ("lock", "acknowledged", "refused", "says"),
    [
        ("ours", True, 3, ""),
        ("ours", False, 3, "A has given up (exit 4)"),
        ("stock", False, 3, ""),
        ("ours", True, 0, "the store was not busy"),
    ],
)
def test_a_writer_of_ours_does_not_give_up_when_the_store_is_busy(
    lock: str, acknowledged: bool, refused: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table without its rows is whole as well: the audit alone would call it ok."""
    side = SimpleNamespace(
        table=SimpleNamespace() if lock == "ours" else None,
        proxy=SimpleNamespace(refuse=lambda *_, times: SimpleNamespace(lines=["PUT"] * refused)),
        write=lambda *_: SimpleNamespace(wait=lambda: 0 if acknowledged else 4),
        acknowledged=lambda _: acknowledged,
        audit=lambda _: report(),
    )
    monkeypatch.setattr(scenarios, "final", lambda *_: [])
    if says:
        with pytest.raises(AssertionError, match=re.escape(says)):
            scenarios.store_is_busy(cast("Side", side))
    else:
        found = scenarios.store_is_busy(cast("Side", side))
        assert (found.verdict, found.notes[0]) == ("ok", "3 + 3 PUTs refused")


def test_files_left_over_are_counted_apart_from_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    def result(cell: Cell) -> dict[str, Any] | None:
        checks = {
            "paused-writer": {"rows": "violated", "stray": "violated"},
            "client-times-out": {"origin": "violated"},
            "store-is-busy": {"rows": "ok", "stray": "violated"},
            "after-the-drain": {"files": "violated", "late": "violated"},
        }.get(cell.scenario)
        if checks is None or cell.setup != "stock":
            return None
        common = {"told": "", "key": "abc", "notes": [], "commit": "abc", "at": "2030-01-01"}
        return {"verdict": "reported" if "late" in checks else "corrupt", "checks": checks, **common}

    monkeypatch.setattr(table, "load", result)
    said = "Another lock: cells damaged: 2, damaged and reported: 1, with files left over: 1."
    assert said in table.page(lambda mutation: False)


def test_what_was_only_told_is_not_counted_as_held(monkeypatch: pytest.MonkeyPatch) -> None:
    def result(cell: Cell) -> dict[str, Any] | None:
        verdict = {"paused-writer": "ok", "after-the-drain": "reported", "store-is-busy": "corrupt"}.get(cell.scenario)
        if verdict is None or cell.setup != "ours":
            return None
        return {"verdict": verdict, "told": "", "key": "abc", "notes": [], "commit": "abc", "at": "2030-01-01"}

    monkeypatch.setattr(table, "load", result)
    assert f"Ours: 1 of {len(SCENARIOS)} faults ok, 1 reported" in table.page(lambda mutation: False)


@pytest.mark.parametrize(
    ("lock", "acknowledged", "status", "stands", "is_due"),
    [
        ("ours", True, "HTTP/1.1 200 OK", True, True),
        ("ours", False, "HTTP/1.1 200 OK", True, True),
        ("ours", False, "HTTP/1.1 503 Slow Down", False, False),
        ("ours", False, "", False, False),
        ("ours", False, "HTTP/1.1 200 OK", False, None),
        ("stock", False, "HTTP/1.1 200 OK", False, False),
    ],
)
def test_a_commit_that_the_store_has_taken_must_stand(
    lock: str, acknowledged: bool, status: str, stands: bool, is_due: bool | None
) -> None:
    line = "PUT /lake/t/.hoodie/timeline/20260101000000001_20260101000000002.commit HTTP/1.1"
    proxy = SimpleNamespace(answered=[(line, status)] if status else [])
    proxy.published = lambda instant: s3proxy.Proxy.published(cast(Any, proxy), instant)
    side = SimpleNamespace(
        table=object() if lock == "ours" else None,
        proxy=proxy,
        acknowledged=lambda process: acknowledged,
        is_completed=lambda instant: stands,
    )

    def due(instant: str) -> bool:
        return scenarios.due(cast(Side, side), cast(Any, None), instant)

    if is_due is None:
        with pytest.raises(AssertionError, match="has taken the completed file of 20260101000000001, and it is gone"):
            due("20260101000000001")
    else:
        assert due("20260101000000001") is is_due
    if not stands and not acknowledged:
        assert due("20260101000000009") is False, "another instant"
