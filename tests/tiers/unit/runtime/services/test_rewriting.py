"""Clustering: a plan that lost to a writer is withdrawn by its executor, and only when a fresh
timeline shows it pending (I4, I7, I12).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hudi_contract.outcomes import FailureClass
from hudi_runtime.process.errors import OutcomeUnknown, RuntimeFailure
from hudi_runtime.process.etcd import now_ms
from hudi_runtime.services import partition_backoff, rewriting
from hudi_runtime.services.partition_backoff import PartitionBackoff
from hudi_runtime.services.rewriting import GIVE_UP, Clustering
from hudi_runtime.services.triggers import Result
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.storage import Missing

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


def write(*groups: str, before: str | None = T1) -> dict[str, Any]:
    """What a write says that it changes: `partition/file group`."""
    found: dict[str, list[dict[str, Any]]] = {}
    for partition, _, group in (name.rpartition("/") for name in groups):
        found.setdefault(partition, []).append({"fileId": group, "prevCommit": before})
    return {"partitionToWriteStats": found}


class Storage:
    def names(self, _folder: str) -> list[str]:
        raise Missing("no heartbeat folder")


class Table:
    """One clustering: `outcome` is what its execution raises (None: it is completed).

    `left` is what its rollback leaves.
    """

    def __init__(self, outcome: Exception | None = None, *, planned: str = T1, left: list[str] | None = None) -> None:
        self.names = list(PLAN)
        self.outcome, self.planned, self.left = outcome, planned, left or []
        self.victims: dict[str, str] = {}
        self.configs: list[dict[str, str]] = []
        self.said: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.plan: dict[str, Any] | Exception = {
            "inputGroups": [
                {"slices": [{"partitionPath": p, "fileId": f} for p, f in (("hot", "f1"), ("quiet", "f2"))]}
            ]
        }
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
    def client(self, config: dict[str, str]) -> Iterator[Table]:
        self.configs.append(config)
        yield self

    def writes(self, instants: tuple[tl.Instant, ...]) -> Iterator[tuple[tl.Instant, dict[str, Any]]]:
        self.asked = [instant.requested for instant in instants]
        return ((instant, self.said[instant.requested]) for instant in instants if instant.requested in self.said)

    def clustering_plan(self, instant: str) -> dict[str, Any]:
        assert any(name.startswith(instant) for name in self.names), "it goes with the rollback"
        if isinstance(self.plan, Exception):
            raise self.plan
        return self.plan

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
        self.names = [name for name in self.names if not name.startswith(instant)] + self.left
        return True  # what Hudi returns is no evidence


def made(table: Table, known: PartitionBackoff | None = None) -> tuple[Clustering, list[str]]:
    told: list[str] = []
    ended = (lambda t: told.append(f"withdrawn {t}"), lambda t: told.append(f"lost {t}"))
    clustering = Clustering(table, lambda options: options, *ended, known or PartitionBackoff())  # type: ignore[arg-type]
    return clustering, told


def test_a_clustering_that_nobody_disturbs() -> None:
    table = Table()
    clustering, told = made(table)
    planned: list[tuple[str, int]] = []

    def hear(instant: str, number: int) -> None:
        planned.append((instant, number))

    done = clustering.run({}, planned=hear)
    assert (done.result, done.instant, planned, told) == (Result.COMPLETED, T1, [(T1, 0)], [])
    assert table.calls == [f"cluster {T1}"]
    nothing = made(Table(planned=""))[0].run({}, planned=hear)
    assert nothing.result is Result.NOTHING_TO_DO


@pytest.mark.parametrize("failures", [None, 0, 1])
def test_one_that_lost_is_withdrawn(failures: int | None) -> None:
    """The conflict is looked for when all is written, so no task of this execution is at work.

    One of an execution that failed before may be.
    """
    table = Table(CONFLICT)
    clustering, told = made(table)
    with pytest.raises(RuntimeFailure, match="faster"):
        clustering.run({}, planned=lambda *_: None) if failures is None else clustering.again(T1, {}, failures=failures)
    assert table.calls == [f"cluster {T1}", f"purge {T1}"]
    assert told == [f"{'lost' if failures else 'withdrawn'} {T1}"]


def test_another_failure_leaves_the_plan() -> None:
    table = Table(OSError("disk full"))
    clustering, told = made(table)
    with pytest.raises(OSError, match="disk full"):
        clustering.run({}, planned=lambda *_: None)
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
    assert made(table)[0].again(T1, {}, failures=GIVE_UP).result is Result.COMPLETED, (
        "one that could not begin has nothing to stumble over"
    )


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
        clustering.run({}, planned=lambda *_: None)
    assert told == []


def test_what_is_not_on_the_timeline_as_completed_is_not_done() -> None:
    table = Table()
    clustering, _ = made(table)
    table.cluster = lambda instant, complete: None  # type: ignore[method-assign]
    with pytest.raises(OutcomeUnknown, match="not completed"):
        clustering.run({}, planned=lambda *_: None)


C1, C2, W1, W2 = "20260101000000002", "20260101000000003", "20260101000000004", "20260101000000006"
NAMES = [
    *PLAN,
    f"{C1}_{R1}.deltacommit",
    f"{C2}.deltacommit.inflight",
    f"{W1}.deltacommit.requested",
    f"20251231000000000_{T1[:-1]}0.deltacommit",
]


def beside_writers(**said: dict[str, Any]) -> Table:
    """One commit since the plan, one write that says what it changes, one that does not say it yet,
    one commit from before; `said` by name.
    """
    table = Table(CONFLICT)
    table.names = list(NAMES)
    table.said = {
        C1: said.get("committed", write()),
        C2: said.get("writing", write()),
        "20251231000000000": write("quiet/f2"),
    }
    return table


@pytest.mark.parametrize(
    ("said", "names"),
    [
        pytest.param({"committed": write("hot/f1")}, ("hot",), id="committed since the plan"),
        pytest.param({"writing": write("hot/f1")}, ("hot",), id="being written"),
        pytest.param({"committed": write("hot/f1"), "writing": write("quiet/f2")}, ("hot", "quiet"), id="all of it"),
        pytest.param({"committed": write("hot/f9", "elsewhere/f3")}, (), id="other file groups than those of the plan"),
        pytest.param({"committed": write("hot/f1", before=None)}, (), id="a new file group"),
    ],
)
def test_it_is_known_where_a_plan_has_lost(said: dict[str, Any], names: tuple[str, ...]) -> None:
    table, known = beside_writers(**said), PartitionBackoff()
    clustering, told = made(table, known)
    with pytest.raises(RuntimeFailure) as lost:
        clustering.run({}, planned=lambda *_: None)
    assert known.partitions(tl.milliseconds(R1)) == names
    assert (
        str(lost.value)
        == (f"next time {partition_backoff.described(names)}. " if names else "") + "a writer was faster"
    )
    assert sorted(table.asked) == [C1, C2], "not what was there before, nor what a writer has not said yet"
    assert told == [f"withdrawn {T1}"]


def test_a_plan_that_cannot_be_read_is_withdrawn_all_the_same() -> None:
    table = beside_writers()
    table.plan = OSError("gone")
    clustering, told = made(table)
    with pytest.raises(RuntimeFailure, match=r"unknown \(OSError\)\. a writer was faster"):
        clustering.run({}, planned=lambda *_: None)
    assert told == [f"withdrawn {T1}"]


def test_the_next_plan_does_without() -> None:
    """And what it did without stays known, until nobody writes there any more."""
    table, known = beside_writers(writing=write("hot/f1")), PartitionBackoff()
    clustering, _ = made(table, known)
    with pytest.raises(RuntimeFailure):
        clustering.run({"o": "1"}, planned=lambda *_: None)
    assert table.configs[-1] == {"o": "1", **rewriting.PLAN_STRATEGY, **partition_backoff.option(())}
    table.outcome, table.names = None, NAMES
    planned: list[int] = []
    done = clustering.run({"o": "1"}, planned=lambda _, number: planned.append(number))
    assert table.configs[-1] == {"o": "1", **rewriting.PLAN_STRATEGY, **partition_backoff.option(["hot"])}
    assert (done.result, done.left_out, planned) == (Result.COMPLETED, 1, [1])
    assert done.message == "clustered; 1 partition left out because of concurrent writes: hot"
    table.planned = ""
    done = clustering.run({}, planned=lambda *_: None)
    assert (done.result, done.left_out) == (Result.NOTHING_TO_DO, 1)
    assert done.message == "no file group to cluster; 1 partition left out because of concurrent writes: hot"


def test_a_run_looks_at_what_was_written_since_the_last_one() -> None:
    old = now_ms() - 2 * partition_backoff.LEAST_MS
    known = PartitionBackoff()
    known.lost({"hot": old, "quiet": old}, instant=T1, took_ms=1, now_ms=old)
    assert known.partitions(now_ms()) == ()
    table = beside_writers(writing=write("hot/f7"))
    clustering, _ = made(table, known)
    clustering.look()
    assert known.partitions(now_ms()) == ("hot",)
    assert known.seen == R1
    table.asked = []
    made(table, PartitionBackoff())[0].look()
    assert table.asked == [], "nothing is read for nothing"
