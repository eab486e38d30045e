"""Clustering: a plan that lost to a writer is withdrawn by its executor, and only when a fresh timeline shows it pending (I4, I7, I12)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hudi_runtime import timeline as tl
from hudi_runtime.errors import FailureClass, OutcomeUnknown, RuntimeFailure
from hudi_runtime.rewriting import GIVE_UP, Clustering
from hudi_runtime.storage import Missing
from hudi_runtime.triggers import Result

T1, R1, T9 = "20260101000000001", "20260101000000005", "20260101000000009"
PLAN = [f"{T1}.clustering.requested", f"{T1}.clustering.inflight"]
DONE = [*PLAN, f"{T1}_{T9}.replacecommit"]
CONFLICT = RuntimeFailure(FailureClass.WRITE_CONFLICT, "a writer was faster")


class Plan:
    def __init__(self, instant: str) -> None:
        self._instant = instant

    def isPresent(self) -> bool:
        return bool(self._instant)

    def get(self) -> str:
        return self._instant


class Storage:
    def names(self, _folder: str) -> list[str]:
        raise Missing("no heartbeat folder")


class Table:
    """One clustering: `outcome` is what its execution raises (None: it is completed); `left` is what its rollback leaves."""

    def __init__(self, outcome: Exception | None = None, *, planned: str = T1, left: list[str] | None = None) -> None:
        self.names = list(PLAN)
        self.outcome, self.planned, self.left = outcome, planned, left or []
        self.victims: dict[str, str] = {}
        self.calls: list[str] = []
        self.storage: Any = Storage()

    # -- table and client

    def timeline(self) -> tl.Timeline:
        return tl.parse(self.names)

    def pending_rollbacks(self, _timeline: tl.Timeline) -> dict[str, str]:
        return self.victims

    def no_option(self) -> None:
        return None

    @contextmanager
    def client(self, _config: object) -> Iterator[Table]:
        yield self

    def scheduleClustering(self, _option: object) -> Plan:
        return Plan(self.planned)

    def cluster(self, instant: str, complete: bool) -> None:
        assert complete
        self.calls.append(f"cluster {instant}")
        if self.outcome is not None:
            raise self.outcome
        self.names = DONE

    def purgePendingClustering(self, instant: str) -> bool:
        self.calls.append(f"purge {instant}")
        self.names = self.left
        return True  # what Hudi returns is no evidence


def made(table: Table) -> tuple[Clustering, list[str]]:
    told: list[str] = []
    clustering = Clustering(table, lambda options: options, lambda t: told.append(f"withdrawn {t}"), lambda t: told.append(f"lost {t}"))  # type: ignore[arg-type]
    return clustering, told


def test_a_clustering_that_nobody_disturbs() -> None:
    table = Table()
    clustering, told = made(table)
    planned: list[str] = []
    done = clustering.run({}, planned=planned.append)
    assert (done.result, done.instant, planned, told) == (Result.COMPLETED, T1, [T1], [])
    assert table.calls == [f"cluster {T1}"]
    nothing = made(Table(planned=""))[0].run({}, planned=planned.append)
    assert nothing.result is Result.NOTHING_TO_DO


@pytest.mark.parametrize("failures", [None, 0, 1])
def test_one_that_lost_is_withdrawn(failures: int | None) -> None:
    """The conflict is looked for when all is written, so no task of this execution is at work; one of an execution that failed before may be."""
    table = Table(CONFLICT)
    clustering, told = made(table)
    with pytest.raises(RuntimeFailure, match="faster"):
        clustering.run({}, planned=lambda _: None) if failures is None else clustering.again(T1, {}, failures=failures)
    assert table.calls == [f"cluster {T1}", f"purge {T1}"]
    assert told == [f"{'lost' if failures else 'withdrawn'} {T1}"]


def test_another_failure_leaves_the_plan() -> None:
    table = Table(OSError("disk full"))
    clustering, told = made(table)
    with pytest.raises(OSError, match="disk full"):
        clustering.run({}, planned=lambda _: None)
    assert (table.calls, told) == ([f"cluster {T1}"], [])


def test_one_that_fails_again_and_again_is_withdrawn() -> None:
    table = Table()
    clustering, told = made(table)
    with pytest.raises(RuntimeFailure, match=f"after {GIVE_UP} failures"):
        clustering.again(T1, {}, failures=GIVE_UP)
    assert (table.calls, told) == ([f"purge {T1}"], [f"lost {T1}"])
    assert made(Table())[0].again(T1, {}, failures=GIVE_UP - 1).result is Result.COMPLETED
    table = Table()
    table.names = PLAN[:1]
    assert made(table)[0].again(T1, {}, failures=GIVE_UP).result is Result.COMPLETED, "one that could not begin has nothing to stumble over"


@pytest.mark.parametrize("names", [DONE, [], [f"{T1}.commit.requested"]])
def test_only_a_pending_clustering_is_withdrawn(names: list[str]) -> None:
    table = Table()
    clustering, told = made(table)
    table.names = names
    with pytest.raises(OutcomeUnknown):
        clustering.again(T1, {}, failures=GIVE_UP)
    assert (table.calls, told) == ([], [])


@pytest.mark.parametrize(("left", "victims"), [(PLAN[:1], {}), ([f"{R1}.rollback.inflight"], {T1: R1})])
def test_withdrawn_is_what_the_timeline_says(left: list[str], victims: dict[str, str]) -> None:
    table = Table(CONFLICT, left=left)
    table.victims = victims
    clustering, told = made(table)
    with pytest.raises(OutcomeUnknown):
        clustering.run({}, planned=lambda _: None)
    assert told == []


def test_what_is_not_on_the_timeline_as_completed_is_not_done() -> None:
    table = Table()
    clustering, _ = made(table)
    table.cluster = lambda instant, complete: None  # type: ignore[method-assign]
    with pytest.raises(OutcomeUnknown, match="not completed"):
        clustering.run({}, planned=lambda _: None)
