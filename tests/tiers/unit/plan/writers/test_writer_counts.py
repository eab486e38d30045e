"""What a writer's status counts: its attempts' own words, and what the timeline knows that they did
not come to say.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.records import Stored
from hudi_operator.plan.writers import writer_status

REPORTED = {"records": 20, "lastInstant": "20260101000001000", "lastCompletionTime": "20260101000001500"}


def commit(second: int, attempt: str = "lake.live-1") -> dict[str, Any]:
    return {
        "instant": f"202601010000{second:02d}000",
        "completionTime": f"202601010000{second:02d}500",
        "records": 5,
        "attempt": attempt,
    }


def told(report: dict[str, Any], *commits: dict[str, Any]) -> tuple[int, str]:
    """Records and last instant of an attempt whose pod is gone."""
    reports = {
        "attempt/lake.live-1": Stored(report, 1, 1),
        "timeline": Stored({"agentInc": "a", "exists": True, "commits": list(commits)}, 1, 1),
    }
    view: Any = SimpleNamespace(
        etcd=SimpleNamespace(reports=reports, gate=None),
        incs=(SimpleNamespace(inc="a", registration={}, record=None),),
        table=SimpleNamespace(ref=SimpleNamespace(deleting=False)),
        gate=SimpleNamespace(table_uid="u"),
    )
    attempt: Any = SimpleNamespace(id="lake.live-1", pod=None)
    found = writer_status._last_report(view, attempt).report
    return found.records, found.last_instant


@pytest.mark.parametrize(
    ("report", "commits", "expected"),
    [
        (REPORTED, [commit(1)], (20, commit(1)["instant"])),
        (REPORTED, [commit(1), commit(2)], (25, commit(2)["instant"])),
        (REPORTED, [commit(3), commit(2)], (30, commit(3)["instant"])),
        (REPORTED, [commit(2, "lake.live-2"), commit(3, "")], (20, commit(1)["instant"])),
        ({}, [commit(1)], (5, commit(1)["instant"])),
        (REPORTED, [], (20, commit(1)["instant"])),
    ],
)
def test_a_commit_counts_although_its_writer_died_before_it_could_say_so(
    report: dict[str, Any], commits: list[dict[str, Any]], expected: tuple[int, str]
) -> None:
    assert told(report, *commits) == expected


def test_records_that_were_left_out_are_counted_by_whoever_knows_of_most() -> None:
    """Each attempt knows of those of all commits before its own."""
    reports = {f"attempt/lake.live-{n}": Stored({"badRecords": bad}, 1, 1) for n, bad in ((1, 4), (2, 7))}
    view: Any = SimpleNamespace(
        etcd=SimpleNamespace(reports=reports, gate=None),
        incs=(SimpleNamespace(inc="a", registration={}, record=None),),
        table=SimpleNamespace(ref=SimpleNamespace(deleting=False)),
        gate=SimpleNamespace(table_uid="u"),
    )
    attempts = tuple(SimpleNamespace(id=f"lake.live-{n}", pod=None) for n in (1, 2, 3))
    writer: Any = SimpleNamespace(attempts=attempts)
    assert writer_status._bad_records(view, writer) == 7
    writer = SimpleNamespace(attempts=attempts[2:])
    assert writer_status._bad_records(view, writer) == 0
