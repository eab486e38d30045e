"""Each check of the demo that looks at what was read can fail.

The rows that it expects are those of its three changes; the picture shows what was.
"""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from demo import checks, flights
from demo.executors import from_event_log
from demo.lake import DataFile, Instant
from demo.picture import Axis, Bar, cells

T = [f"2026010100{n:02d}00000" for n in range(30)]
DONE = frozenset({"requested", "inflight", "completed"})


def commits(**counts: int) -> list[tuple[str, Instant]]:
    owners = [name for name, count in counts.items() for _ in range(count)]
    return [(name, Instant(T[n], "commit", DONE, T[n])) for n, name in enumerate(owners)]


def findings(
    owned: list[tuple[str, Instant]], *, kill: Any = None, files: dict[str, int] | None = None, **more: Any
) -> checks.Findings:
    extra = [
        {"instant": i.requested, "extra": {"hudioperator.writer": f"{checks.NAMESPACE}/{name}"}} for name, i in owned
    ]
    spark: Any = SimpleNamespace(commits=extra, checks=[])
    condition = {"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}
    world: Any = SimpleNamespace(writers=lambda: dict.fromkeys(checks.WRITERS, condition))
    return checks.Findings(world, kill, spark, [i for _, i in owned], files or {}, **more)


def test_every_batch_once() -> None:
    good = findings(commits(**checks.COMMITS))
    assert checks.succeeded(good)[0]
    assert not checks.succeeded(findings(commits(**{**checks.COMMITS, "live": checks.COMMITS["live"] + 1})))[0], (
        "a batch twice"
    )
    assert not checks.succeeded(findings(commits(**{**checks.COMMITS, "live": checks.COMMITS["live"] - 1})))[0], (
        "a batch is missing"
    )
    good.world.writers = lambda: {"load": {"status": {"conditions": []}}}  # type: ignore[method-assign]
    assert not checks.succeeded(good)[0]


def test_a_conflict_is_real() -> None:
    owned = commits(load=2)
    entry = {"instant": T[20], "retriedAs": T[0], "with": T[1], "fileGroups": ["a/1"]}
    assert checks.conflict(findings(owned, conflicts=[("live", entry)]))[0]
    for wrong in ({"retriedAs": T[21]}, {"fileGroups": []}, {"instant": T[1]}, {"instant": ""}):
        assert not checks.conflict(findings(owned, conflicts=[("live", entry | wrong)]))[0], wrong
    assert not checks.conflict(findings(owned))[0]


def test_what_was_killed_is_gone() -> None:
    kill = SimpleNamespace(instant=T[20], times={"rolled back": 5.0, "settled": 9.0}, files=["x"], at=0.0)
    assert checks.killed(findings(commits(load=1), kill=kill))[0]
    assert not checks.killed(findings(commits(load=1)))[0]
    assert not checks.killed(findings(commits(load=1), kill=kill, files={f"p/a_1-2-3_{T[20]}.parquet": 1}))[0], (
        "a file is left"
    )
    pending = [("load", Instant(T[20], "commit", frozenset({"inflight"}), ""))]
    assert not checks.killed(findings(pending, kill=kill))[0], "the instant is left"
    assert not checks.killed(findings(commits(load=1), kill=SimpleNamespace(**{**vars(kill), "times": {}})))[0]


def test_both_executors_worked() -> None:
    log = [
        {
            "Event": "SparkListenerEnvironmentUpdate",
            "Spark Properties": {"spark.kubernetes.executor.podNamePrefix": "encrypt"},
        },
        {"Event": "SparkListenerExecutorAdded", "Executor ID": "1", "Executor Info": {"Host": "h"}},
        {
            "Event": "SparkListenerTaskEnd",
            "Stage ID": 2,
            "Task End Reason": {"Reason": "Success"},
            "Task Info": {"Executor ID": "1", "Index": 0, "Task ID": 7},
        },
        {
            "Event": "SparkListenerTaskEnd",
            "Stage ID": 2,
            "Task End Reason": {"Reason": "Killed"},
            "Task Info": {"Executor ID": "1", "Index": 1, "Task ID": 8},
        },
    ]
    files = [DataFile("p/a", "a", T[1], "0-2-7", 1), DataFile("p/b", "b", T[1], "1-2-8", 1)]
    (one,) = from_event_log("\n".join(map(json.dumps, log)), files)
    assert (one.pod, one.tasks, one.files) == ("encrypt-exec-1", {"0-2-7"}, files[:1]), (
        "a file of a task that was killed is nobody's work"
    )
    assert checks.both_executors(findings([], executors=[one, replace(one, pod="encrypt-2")]))[0]
    assert not checks.both_executors(findings([], executors=[one, replace(one, pod="encrypt-2", files=[])]))[0]
    assert not checks.both_executors(findings([]))[0]


def test_an_error_in_a_check_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: checks.Findings) -> tuple[bool, str]:
        raise KeyError("status")

    monkeypatch.setattr(checks, "CHECKS", [("fails", broken)])
    (check,) = checks.run(findings([]))
    assert (check.good, check.detail) == (False, "KeyError: 'status'")


@pytest.mark.parametrize(
    ("outcome", "good"), [("ok", True), ("violated", False), ("unknown", False), ("not asked", False)]
)
def test_of_the_audit_only_ok_is_good(outcome: str, good: bool) -> None:
    check = {"name": "rows", "title": "rows", "outcome": outcome, "sentence": "said", "findings": []}
    assert checks.audited(check).good is good


def test_the_rows_that_are_expected() -> None:
    """One flight of each kind: corrected, encrypted, both months and carriers of neither."""
    base = dict.fromkeys(("year", "day", "hour"), "1") | {
        "origin": "JFK",
        "dest": "LAX",
        "tailnum": "N1",
        "arr_delay": "10",
    }
    kinds = {
        "corrected": ("UA", "1"),
        "twice": ("UA", "4"),
        "encrypted": ("AA", "2"),
        "neither": ("AA", "7"),
        "unknown": ("AA", "3"),
    }
    frame = pd.DataFrame(
        [
            {**base, "carrier": c, "month": m, "flight": str(n), "time_hour": f"2013-0{m}-01 05:00:00"}
            for n, (c, m) in enumerate(kinds.values())
        ]
    )
    frame.loc[4, ["tailnum", "arr_delay"]] = "NA"
    rows = flights.expected(frame, "key").set_index("flight")
    assert rows.arr_delay.astype(object).where(rows.arr_delay.notna(), None).to_dict() == {
        0: 6,
        1: 12,
        2: 10,
        3: 10,
        4: None,
    }
    assert (rows.tailnum[2], rows.tailnum[3]) == (flights.pseudonym("N1", "key"), "N1")
    assert rows.tailnum.isna()[4], "nothing to encrypt"
    assert flights.pseudonym("N1", "key") != flights.pseudonym("N1", "other")
    assert [str(rows.updated_at[n])[:10] for n in range(5)] == [
        "2014-01-15",
        "2014-01-15",
        "2014-02-01",
        "2013-07-01",
        "2014-02-01",
    ]


def test_the_picture_shows_each_bar_where_it_was() -> None:
    row = "".join(
        character
        for character, _ in cells(
            [Bar("a", 0, 2, "commit"), Bar("a", 4, 6, "killed"), Bar("a", 9, 9.5, "refused")], Axis(0, 10, 10)
        )
    )
    assert row == "██▌ ▒▒☠  ✗"
