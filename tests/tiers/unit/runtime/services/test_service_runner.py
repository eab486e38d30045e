"""The runner of table services: who may begin what, what is written ahead, what a failure leaves
(I12; F2, F12, F22).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.assignment import ServiceOrder
from hudi_contract.outcomes import FailureClass
from hudi_contract.requests import KEPT_RUNS
from hudi_contract.table_keys import Gate
from hudi_contract.words import GateState, Result, Service
from hudi_runtime.process import spark as sp
from hudi_runtime.process.errors import RuntimeFailure
from hudi_runtime.process.etcd import now_ms
from hudi_runtime.services import triggers
from hudi_runtime.services.expiry import CREATION, LAST_WRITE, SINCE
from hudi_runtime.services.partition_backoff import LEAST_MS, PartitionBackoff
from hudi_runtime.services.services import FORGET_MS, Services
from hudi_runtime.services.tasks import Observation, Slot
from hudi_runtime.services.triggers import POSTPONED_MS, Done
from hudi_runtime.settle.rollback import NotYet
from hudi_runtime.settle.settle import Records
from hudi_runtime.table import timeline as tl
from tests.support.world.memory_etcd import PREFIX
from tests.support.world.putting_etcd import Etcd
from tests.support.world.spark_tasks import spark_context

C1, C2, T1 = "20260101000000001", "20260101000000009", "20260101000000020"
COMMITS = [f"{C1}_20260101000000002.deltacommit", f"{C2}_20260101000000010.deltacommit"]
LAST = "20260101000000010"


@pytest.fixture(autouse=True)
def no_executor_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sp, "lost_executors", lambda _spark: False)


def order(kind: Service, after_commits: int | None, *, scheduled: bool = False) -> tuple[Service, ServiceOrder]:
    return kind, ServiceOrder(after_commits=after_commits, scheduled=scheduled)


class Session:
    inc, table_id = "me", "x"

    def __init__(self) -> None:
        self.etcd = Etcd()
        self.forgotten: list[str] = []

    def forget(self, instant: str) -> bool:
        self.forgotten.append(instant)
        return True


class Context:
    """Spark's context, as far as a service uses it."""

    def __init__(self) -> None:
        self.properties: dict[str, str] = {}
        self.tasks: dict[str | None, int] = {}
        """How many run of each job group; they end when their group is cancelled, unless they are
        `stubborn`.
        """
        self.threads: list[str] = []
        self.stubborn = False

    @property
    def _jsc(self) -> Any:
        return spark_context(self.tasks)._jsc

    @property
    def _jvm(self) -> Any:
        threads = [SimpleNamespace(getName=lambda name=name: name) for name in self.threads]
        traces = SimpleNamespace(getAllStackTraces=lambda: SimpleNamespace(keySet=lambda: threads))
        lang = SimpleNamespace(lang=SimpleNamespace(Thread=traces))
        return SimpleNamespace(java=lang, **vars(spark_context(self.tasks)._jvm))

    def cancelJobGroup(self, group: str) -> None:
        if not self.stubborn:
            self.tasks.pop(group, None)
            self.threads.clear()

    def setLocalProperty(self, key: str, value: str) -> None:
        self.properties[key] = value

    def setJobGroup(self, group: str, _text: str, **more: bool) -> None:
        assert more == {"interruptOnCancel": True}
        self.properties["group"] = group


@dataclass
class Rewriting:
    """A service with a plan."""

    world: World
    kind: Service

    def look(self) -> None:
        self.world.looks += 1
        if isinstance(self.world.written, Exception):
            raise self.world.written
        self.world.backoff.saw(self.world.written, up_to=LAST)

    def run(self, _options: object, *, planned: Callable[[str, int], None]) -> Done:
        planned(T1, 1)
        return self.world._do(self.kind.value, None, self.kind)

    def again(self, instant: str, _options: object, *, failures: int) -> Done:
        return self.world._do(f"{self.kind.value} again", (instant, failures), self.kind)


@dataclass
class Expiring:
    """Partition lifecycle."""

    world: World

    def run(self, _options: object) -> Done:
        return self.world._do("ttl", None, Service.TTL)

    def begun_anew(self) -> None:
        self.world.calls.append(("begun anew", None))


class World:
    """One table; `outcome` is what Hudi does: a Done, or an error to raise.

    The names of the calls are in `calls`.
    """

    def __init__(self, *wanted: tuple[Service, ServiceOrder]) -> None:
        self.session = Session()
        self.names = list(COMMITS)
        self.calls: list[tuple[str, object]] = []
        self.during: list[Mapping[str, Any]] = []
        self.outcome: Done | Exception = Done(Result.COMPLETED, T1, "done")
        self.slot = Slot()
        self.backoff = PartitionBackoff()
        self.loses_in: tuple[str, ...] = ()
        self.looks = 0
        self.written: dict[str, int] | Exception = {}
        self.gate = Gate(state=GateState.OPEN)
        spark: Any = type("Spark", (), {"sparkContext": Context()})
        self.context: Context = spark.sparkContext
        services = dict(wanted)
        self.services = Services(
            spark,
            self,  # type: ignore[arg-type]
            self.session,  # type: ignore[arg-type]
            wanted=services,
            merge_on_read=True,
            label="ns/t",
            slot=self.slot,
            gate=lambda: self.gate,
        )

    # -- Actions

    @property
    def table(self) -> World:
        return self

    def timeline(self) -> tl.Timeline:
        return tl.parse(self.names)

    def _do(self, name: str, detail: object, kind: Service) -> Done:
        self.calls.append((name, detail))
        self.during.append(self.record(kind))
        if isinstance(self.outcome, Exception):
            lost_in(self, *self.loses_in)
            raise self.outcome
        return self.outcome

    def clean(self, _options: object, *, mine: frozenset[str]) -> Done:
        return self._do("clean", mine, Service.CLEAN)

    def archive(self, _options: object) -> Done:
        return self._do("archive", None, Service.ARCHIVE)

    @property
    def compaction(self) -> Rewriting:
        return Rewriting(self, Service.COMPACTION)

    @property
    def expiry(self) -> Expiring:
        return Expiring(self)

    @property
    def clustering(self) -> Rewriting:
        return Rewriting(self, Service.CLUSTERING)

    # -- the test's part

    def record(self, kind: Service) -> Mapping[str, Any]:
        entry = self.session.etcd.keys.get(f"done/service-{kind.value}")
        return entry.value if entry else {}

    def records(self) -> Records:
        return Records.from_entries(self.session.etcd.range(""), prefix=PREFIX)

    def consider(self, listing: tl.Timeline | None = None, **requests: Mapping[str, Any]) -> list[tuple[str, object]]:
        """One look (with an older listing), and what it started, waited for."""
        asked = {f"service-{name}": value for name, value in requests.items()}
        if self.services._running is not None:
            assert self.look(self.records(), listing, asked) == [], (
                "the first look after a run may be older than its end"
            )
        return self.look(self.records(), listing, asked)

    def look(
        self, records: Records, listing: tl.Timeline | None = None, asked: Mapping[str, Mapping[str, Any]] | None = None
    ) -> list[tuple[str, object]]:
        """What is started after these records were read."""
        before = len(self.calls)
        self.services.consider(Observation(asked or {}, records, listing or self.timeline()))
        if self.services._running is not None:
            self.services._running.result(10)
        return self.calls[before:]

    def patience(self, kind: Service) -> None:
        """Let the time until the next try pass."""
        self.session.etcd.set(f"done/service-{kind.value}", **{**self.record(kind), "retryAtMs": 0})


def test_a_due_service_runs_once() -> None:
    world = World(order(Service.CLEAN, 2))
    assert world.consider() == [("clean", frozenset())]
    (during,) = world.during
    assert (during["result"], during["failures"]) == ("Running", 1), (
        "written ahead: a run that kills its process is counted"
    )
    assert during["retryAtMs"] > during["atMs"]
    assert during["upTo"] == "", "nothing is served yet"
    record = world.record(Service.CLEAN)
    assert (record["result"], record["instant"], record["upTo"], record["failures"], record["retryAtMs"]) == (
        "Completed",
        T1,
        LAST,
        0,
        0,
    )
    assert world.consider() == []
    assert world.context.properties["spark.scheduler.pool"] == "services"


def test_the_order_and_one_at_a_time() -> None:
    world = World(*(order(kind, 1) for kind in Service))
    world.slot._taken.acquire()
    assert world.consider() == [], "another table's service is under way"
    world.slot._taken.release()
    assert [world.consider()[0][0] for _ in Service] == ["compaction", "clustering", "ttl", "clean", "archive"]
    assert world.consider() == []


def test_commits_that_were_archived_are_not_forgotten() -> None:
    """Otherwise a service that wants more commits than the active timeline keeps would
    never be due.
    """
    world = World(order(Service.CLUSTERING, 5), order(Service.ARCHIVE, 1))
    for number in range(3):
        assert world.consider() == [("archive", None)]
        assert world.session.etcd.keys["done/counted"].value["clustering"]["commits"] == number + 2
        world.names[:] = [f"2026010100000003{number}_2026010100000004{number}.deltacommit"]
    assert world.services.counts(world.timeline(), world.records()) == {"clustering": 5, "archive": 1}
    assert world.consider() == [("clustering", None)]
    assert world.services.counts(world.timeline(), world.records())["clustering"] == 0, "it has run"


@pytest.mark.parametrize(("since", "before"), [(CREATION, [("begun anew", None)]), (LAST_WRITE, [])])
def test_a_deletion_is_remembered_before_it_is_archived(since: str, before: list[tuple[str, object]]) -> None:
    """F480: a later run of `ttl` would not know of it."""
    ttl = (Service.TTL, ServiceOrder(after_commits=None, scheduled=True, options={SINCE: since}))
    assert World(ttl, order(Service.ARCHIVE, 1)).consider() == [*before, ("archive", None)]
    assert World(order(Service.ARCHIVE, 1)).consider() == [("archive", None)]


@pytest.mark.parametrize("kind", [Service.CLUSTERING, Service.TTL])
def test_a_table_without_commits_is_left_as_it_is(kind: Service) -> None:
    world = World(order(kind, None, scheduled=True))
    world.names.clear()
    assert world.consider(**{kind.value: {"nonce": "2026-11-22T03:00:00Z"}}) == []
    assert world.record(kind)["result"] == "NothingToDo"


def test_a_tick_is_served_once() -> None:
    world = World(order(Service.CLEAN, None, scheduled=True))
    assert world.consider() == []
    assert world.consider(clean={"nonce": "2026-11-22T03:00:00Z"}) == [("clean", frozenset())]
    assert world.consider(clean={"nonce": "2026-11-22T03:00:00Z"}) == []
    assert world.record(Service.CLEAN)["nonce"] == "2026-11-22T03:00:00Z"


def test_a_run_that_a_person_asks_for_is_served_once() -> None:
    """A run that failed serves nothing: it is repeated for the same nonce."""
    world = World(order(Service.CLEAN, 99))
    world.outcome = RuntimeError("the store is away")
    assert world.consider(clean={"run": "one"}) == [("clean", frozenset())]
    failed = world.record(Service.CLEAN)
    assert (failed["result"], failed.get("runs")) == ("Failed", None)
    assert world.consider(clean={"run": "one"}) == [], "not before its next try"
    world.patience(Service.CLEAN)
    world.outcome = Done(Result.NOTHING_TO_DO, "", "nothing to clean")
    assert world.consider(clean={"run": "one"}) == [("clean", frozenset())]
    assert world.record(Service.CLEAN)["runs"] == ["one"]
    assert world.consider(clean={"run": "one"}) == []
    assert world.consider() == [], "the request is gone"
    assert world.consider(clean={"run": "two"}) == [("clean", frozenset())]


TICK = {"nonce": "2026-11-22T03:00:00Z"}
PERSON = {"run": "one"}


def plan_of(world: World, kind: Service, *, state: str = "requested") -> None:
    """The plan that a run has made, or another agent, and this one has claimed, is pending."""
    world.names.append(f"{T1}.{kind.value}.{state}")
    world.session.etcd.set(f"instant/{T1}", inc="me", action=kind.value, state="Pending")


def without_plan(world: World, kind: Service) -> None:
    """It is completed, or rolled back."""
    world.names[:] = [name for name in world.names if not name.startswith(T1)]
    world.session.etcd.keys.pop(f"instant/{T1}", None)
    world.patience(kind)


def served(world: World, kind: Service) -> tuple[str, list[str]]:
    record = world.record(kind)
    return record["nonce"], record.get("runs") or []


@pytest.mark.parametrize("kind", [Service.COMPACTION, Service.CLUSTERING, Service.CLEAN])
@pytest.mark.parametrize("asked", [TICK, PERSON])
def test_what_was_planned_serves_who_asked_for_it(kind: Service, asked: dict[str, Any]) -> None:
    """F548: the plan of a run that failed is executed until it is completed, and then a second run
    followed at once.
    """
    world = World(order(kind, 99 if asked is PERSON else None, scheduled=asked is TICK))
    world.outcome = OSError("disk full")
    assert len(world.consider(**{kind.value: asked})) == 1
    assert world.record(kind)["result"] == "Failed"
    plan_of(world, kind)
    world.patience(kind)
    assert served(world, kind) == ("", []), "F551: it has not run"
    world.outcome = Done(Result.COMPLETED, T1, "done")
    ((_, again),) = world.consider(**{kind.value: asked})
    assert again in ((T1, 1), frozenset({T1}))
    assert world.during[-1].get("runs") is None, "F551: it is running"
    without_plan(world, kind)
    assert world.record(kind)["result"] == "Completed"
    assert served(world, kind) == (asked.get("nonce", ""), [asked["run"]] if asked is PERSON else [])
    assert world.consider(**{kind.value: asked}) == []


def test_a_run_that_completed_unseen_has_served_who_asked_for_it() -> None:
    """F567: its agent ended between Hudi's completion and the record, or did not hear from the
    store. A second whole run followed.
    """
    world = World(order(Service.CLUSTERING, 99))
    world.outcome = OSError("the store does not answer")
    assert len(world.consider(clustering=PERSON)) == 1
    record = {**world.record(Service.CLUSTERING), "instant": T1}
    world.session.etcd.set("done/service-clustering", **record)
    world.names.append(f"{T1}_{T1[:-3]}999.replacecommit")
    world.patience(Service.CLUSTERING)
    world.outcome = Done(Result.COMPLETED, T1, "done")
    assert world.consider(clustering=PERSON) == []
    assert served(world, Service.CLUSTERING) == ("", [PERSON["run"]])
    assert world.record(Service.CLUSTERING)["result"] == "Completed"
    assert world.consider(clustering=PERSON) == []


def test_nobody_is_served_while_the_run_that_was_asked_for_is_executed() -> None:
    """F551: `kubectl wait` for the nonce returned hours before its compaction had ended."""
    world = World(order(Service.COMPACTION, 99))
    assert world.consider(compaction=PERSON) == [("compaction", None)]
    (during,) = world.during
    assert (during["result"], during["instant"], during.get("runs")) == ("Running", T1, None), "it is planned"
    assert served(world, Service.COMPACTION) == ("", ["one"])


def test_a_plan_from_before_serves_nobody_who_asked_later() -> None:
    """It does not cover what was committed since."""
    kind = Service.COMPACTION
    world = World(order(kind, 99))
    world.names.append("20260101000000030_20260101000000031.deltacommit")
    world.outcome = OSError("disk full")
    assert world.consider(compaction=PERSON) == [("compaction", None)]
    plan_of(world, kind)
    world.patience(kind)
    world.outcome = Done(Result.COMPLETED, T1, "done")
    assert world.consider(compaction=PERSON) == [("compaction again", (T1, 1))]
    without_plan(world, kind)
    assert served(world, kind) == ("", [])
    assert world.consider(compaction=PERSON) == [("compaction", None)]


@pytest.mark.parametrize("asked", [TICK, PERSON])
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(RuntimeFailure(FailureClass.INFRASTRUCTURE, "rolled back after 3 failures"), id="given up"),
        pytest.param(RuntimeFailure(FailureClass.WRITE_CONFLICT, "a writer was faster"), id="lost later"),
    ],
)
def test_a_plan_that_was_withdrawn_later_serves_nobody(asked: dict[str, Any], end: Exception) -> None:
    """F552: the night's clustering was lost, and a runNonce was shown as executed."""
    kind = Service.CLUSTERING
    world = World(order(kind, 99 if asked is PERSON else None, scheduled=asked is TICK))
    world.outcome = OSError("disk full")
    assert world.consider(clustering=asked) == [("clustering", None)]
    plan_of(world, kind, state="inflight")
    for failures in (1, 2):
        world.patience(kind)
        assert world.consider(clustering=asked) == [("clustering again", (T1, failures))]
    world.outcome = end
    world.patience(kind)
    assert world.consider(clustering=asked) == [("clustering again", (T1, 3))]
    without_plan(world, kind)
    assert served(world, kind) == ("", [])
    world.outcome = Done(Result.COMPLETED, T1, "done")
    assert world.consider(clustering=asked) == [("clustering", None)]
    assert served(world, kind) == (asked.get("nonce", ""), [asked["run"]] if asked is PERSON else [])
    assert world.consider(clustering=asked) == []


def test_a_plan_that_was_withdrawn_serves_nobody() -> None:
    kind = Service.CLUSTERING
    world = World(order(kind, 99))
    world.outcome = RuntimeFailure(FailureClass.WRITE_CONFLICT, "a writer was faster")
    assert world.consider(clustering=PERSON) == [("clustering", None)]
    assert world.record(kind)["result"] == "Postponed"
    assert served(world, kind) == ("", [])
    world.patience(kind)
    world.outcome = Done(Result.COMPLETED, T1, "done")
    assert world.consider(clustering=PERSON) == [("clustering", None)]
    assert served(world, kind) == ("", ["one"])


def test_a_nonce_that_comes_back_was_served() -> None:
    """F553: Git has the first one, a person set another one, and a sync put the first one back."""
    world = World(order(Service.CLEAN, 99))
    for run in ("a", "b"):
        assert world.consider(clean={"run": run}) == [("clean", frozenset())]
    assert world.consider(clean={"run": "a"}) == []
    assert served(world, Service.CLEAN) == ("", ["a", "b"])
    for number in range(KEPT_RUNS):
        assert world.consider(clean={"run": str(number)}) == [("clean", frozenset())]
    assert len(served(world, Service.CLEAN)[1]) == KEPT_RUNS


def test_a_run_that_was_asked_for_waits_as_any_other() -> None:
    """For the gate of a change, and for what is being settled (I12, F434)."""
    world = World(order(Service.CLEAN, 99))
    world.gate = Gate(state=GateState.CLOSED, closed_for="savepoint a")
    assert world.consider(clean={"run": "one"}) == []
    world.gate = Gate(state=GateState.OPEN)
    world.session.etcd.set("settle/dead", phase="RollingBack", instants={})
    assert world.consider(clean={"run": "one"}) == []
    world.session.etcd.keys.clear()
    assert world.consider(clean={"run": "one"}) == [("clean", frozenset())]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("settle/dead", {"phase": "RollingBack", "instants": {}}),
        ("writer/old", {"inc": "old", "role": "agent"}),
        ("settle/old", {"role": "agent", "phase": "Terminating"}),
    ],
)
def test_settling_and_other_agents_come_first(key: str, value: dict[str, Any]) -> None:
    world = World(order(Service.CLEAN, 1))
    world.session.etcd.set(key, **value)
    assert world.consider() == []
    world.session.etcd.keys.clear()
    assert world.consider() == [("clean", frozenset())]


def test_what_a_writer_has_given_up_is_not_waited_for() -> None:
    """F535: where a race is lost more often than a drain takes, something always waits for its
    rollback.
    """
    world = World(order(Service.CLEAN, 1))
    world.session.etcd.set("writer/w", inc="w", role="writer")
    world.session.etcd.set(f"instant/{T1}", inc="w", action="deltacommit", state="Abandoned")
    assert world.consider() == [("clean", frozenset())]


def test_a_claimed_compaction_is_executed_again_before_anything_new() -> None:
    """Also while its dead owner is being settled, which waits for exactly this, and although
    compaction is switched off.
    """
    world = World(order(Service.CLEAN, 1))
    world.names.append(f"{T1}.compaction.inflight")
    world.session.etcd.set(f"instant/{T1}", inc="dead", action="compaction", state="Pending", claimedBy="me")
    world.session.etcd.set(
        "settle/dead", role="agent", phase="RollingBack", instants={T1: {"action": "compaction", "outcome": None}}
    )
    assert world.consider() == [("compaction again", (T1, 0))]
    assert world.during[0]["instant"] == T1
    assert world.record(Service.COMPACTION)["upTo"] == T1, "the plan covers what had completed before it"


@pytest.mark.parametrize(
    ("gate", "asked"),
    [
        (Gate(state=GateState.CLOSED, closed_for="savepoint a"), {}),
        (Gate(state=GateState.CLOSED, restoring="one"), {}),
        (Gate(state=GateState.CLOSED), {"savepoint-a": {}}),
        (Gate(state=GateState.CLOSED), {"metadata": {}}),
        (Gate(state=GateState.CLOSED), {"restore-one": {}}),
    ],
)
def test_nothing_new_is_begun_behind_a_gate_that_is_closed_for_a_change(gate: Gate, asked: dict[str, Any]) -> None:
    """F434: what is pending is finished, because the change waits for it."""
    world = World(order(Service.CLEAN, 1))
    world.gate = gate
    assert world.look(world.records(), asked=asked) == []
    world.names.append(f"{T1}.compaction.inflight")
    world.session.etcd.set(f"instant/{T1}", inc="me", action="compaction", state="Pending", atMs=now_ms())
    assert world.look(world.records(), asked=asked) == [("compaction again", (T1, 0))]
    world = World(order(Service.CLEAN, 1))
    world.gate = Gate(state=GateState.CLOSED)
    assert world.consider() == [("clean", frozenset())], "closed for nothing that would wait"


def test_how_often_a_plan_has_failed_is_told_to_who_executes_it_again() -> None:
    world = World(order(Service.CLUSTERING, 1))
    world.names.append(f"{T1}.clustering.inflight")
    world.session.etcd.set(f"instant/{T1}", inc="me", action="clustering", state="Pending", atMs=now_ms())
    world.outcome = OSError("a file is missing")
    for failures in (0, 1, 2):
        assert world.consider() == [("clustering again", (T1, failures))]
        assert world.record(Service.CLUSTERING)["failures"] == failures + 1
        assert world.consider() == [], "another one must not be planned beside it"
        world.patience(Service.CLUSTERING)


def lost_in(world: World, *partitions: str, changed_ms: int | None = None) -> None:
    """A clustering has lost in these partitions, which were changed then, or just now."""
    world.backoff.lost(dict.fromkeys(partitions, changed_ms or now_ms()), instant=C1, took_ms=1, now_ms=now_ms())


def test_a_run_that_left_partitions_out_is_followed_by_another_one() -> None:
    """Also when nobody writes any more: they would stay as they are otherwise."""
    world = World(order(Service.CLUSTERING, 1))
    lost_in(world, "hot")
    world.outcome = Done(Result.COMPLETED, T1, "done", left_out=1)
    assert world.consider() == [("clustering", None)]
    assert world.during[0]["leftOut"] == 1, "an agent that goes on with the plan knows that something is left out of it"
    assert world.record(Service.CLUSTERING)["leftOut"] == 1
    assert (world.consider(), world.looks) == ([], 0), "others write there"
    world.backoff.forget_all_but(())
    world.outcome = Done(Result.COMPLETED, T1, "done")
    assert world.consider() == [("clustering", None)]
    assert world.looks == 1
    assert world.record(Service.CLUSTERING)["leftOut"] == 0
    assert (world.consider(), world.looks) == ([], 1)


def test_what_seems_quiet_is_looked_at_first() -> None:
    world = World(order(Service.CLUSTERING, 9))
    world.session.etcd.set("done/service-clustering", result="Completed", instant=T1, leftOut=1)
    lost_in(world, "hot", changed_ms=now_ms() - LEAST_MS)
    world.written = {"hot": now_ms()}
    assert (world.consider(), world.looks) == ([], 1)
    assert world.record(Service.CLUSTERING)["result"] == "Completed", "what the last run did stays on record"
    assert (world.consider(), world.looks) == ([], 1), "not again at once"
    world.backoff.forget_all_but(())
    world.written = OSError("the store is away")
    assert (world.consider(), world.looks) == ([("clustering", None)], 2), (
        "the run meets it again, and puts it on record"
    )


@pytest.mark.parametrize("loses_in", [(), ("hot",), ("hot", "warm")])
def test_a_run_that_was_lost_is_followed_by_another_one(loses_in: tuple[str, ...]) -> None:
    """It may have been begun for no other reason than a partition that is quiet again: what else
    was in its plan is still to be done.
    """
    world = World(order(Service.CLUSTERING, 9))
    world.session.etcd.set("done/service-clustering", result="Completed", instant=T1, leftOut=1)
    world.outcome, world.loses_in = RuntimeFailure(FailureClass.WRITE_CONFLICT, "lost"), loses_in
    assert world.consider() == [("clustering", None)]
    assert world.record(Service.CLUSTERING)["result"] == "Postponed"
    assert world.consider() == [], "it rests first"
    world.patience(Service.CLUSTERING)
    world.outcome = Done(Result.COMPLETED, T1, "done", left_out=len(loses_in))
    assert world.consider() == [("clustering", None)]
    assert world.consider() == []


def test_records_read_before_a_run_ended_decide_nothing() -> None:
    """They name an instant that the run has withdrawn meanwhile: executing that again would be
    counted as a failure.
    """
    world = World(order(Service.CLUSTERING, 1))
    world.names.append(f"{T1}.clustering.requested")
    world.session.etcd.set(f"instant/{T1}", inc="me", action="clustering", state="Pending", atMs=now_ms())
    read, listed = world.records(), world.timeline()
    assert world.consider() == [("clustering again", (T1, 0))]
    assert world.look(read, listed) == []


def test_what_was_lost_to_a_writer_is_not_tried_at_once() -> None:
    """The rest grows with the work that was lost."""
    assert [triggers.postponed_ms(took) for took in (0, 6_000, 60_000, 3_600_000)] == [
        POSTPONED_MS,
        POSTPONED_MS,
        300_000,
        3_600_000,
    ]


def test_a_claimed_clean_is_named_to_the_clean() -> None:
    world = World(order(Service.CLEAN, 99))
    world.names.append(f"{T1}.clean.requested")
    world.session.etcd.set(f"instant/{T1}", inc="dead", action="clean", state="Pending", claimedBy="me")
    assert world.consider() == [("clean", frozenset({T1}))]


def test_an_instant_of_somebody_else_is_not_executed() -> None:
    world = World()
    world.names.append(f"{T1}.compaction.requested")
    world.session.etcd.set(f"instant/{T1}", inc="me", action="compaction", state="Pending", claimedBy="other")
    assert world.consider() == []


def test_a_failure_is_counted_shown_and_repeated_later() -> None:
    world = World(order(Service.COMPACTION, 2))
    world.outcome = OSError("disk full\nmore")
    assert world.consider() == [("compaction", None)]
    record = world.record(Service.COMPACTION)
    assert (record["result"], record["failures"], record["message"], record["upTo"]) == (
        "Failed",
        1,
        "OSError: disk full",
        "",
    )
    assert record["instant"] == T1, "what was planned is named"
    assert world.consider() == [], "not before the next try"
    world.patience(Service.COMPACTION)
    assert world.consider() == [("compaction", None)]
    assert world.record(Service.COMPACTION)["failures"] == 2
    world.patience(Service.COMPACTION)
    world.outcome = Done(Result.NOTHING_TO_DO)
    assert world.consider()
    assert (world.record(Service.COMPACTION)["result"], world.record(Service.COMPACTION)["failures"]) == (
        "NothingToDo",
        0,
    )


@pytest.mark.parametrize(
    "error",
    [
        NotYet("another incarnation"),
        RuntimeFailure(FailureClass.WRITE_CONFLICT, "lost"),
        RuntimeFailure(FailureClass.LOCK_TIMEOUT, "busy"),
    ],
)
def test_what_a_writer_wins_is_no_failure(error: Exception) -> None:
    world = World(order(Service.CLEAN, 1))
    world.outcome = error
    world.consider()
    record = world.record(Service.CLEAN)
    assert (record["result"], record["failures"]) == ("Postponed", 0)
    assert record["retryAtMs"] > record["atMs"]


def test_an_agent_that_stops_has_not_failed() -> None:
    """Its jobs are cancelled; the next agent goes on without a pause."""
    world = World(order(Service.CLEAN, 1))
    world.outcome = OSError("job cancelled")
    world.services.cancel()
    world.consider()
    record = world.record(Service.CLEAN)
    assert (record["result"], record["failures"]) == ("Postponed", 0)
    assert record["retryAtMs"] <= now_ms()


@pytest.mark.parametrize(
    ("error", "lost", "unproven"),
    [
        pytest.param(
            OSError("stage failed"),
            True,
            True,
            id="it may still write files of the instant that would be executed again",
        ),
        pytest.param(OSError("stage failed"), False, False, id="every task has ended with its executor's word"),
        pytest.param(NotYet("another incarnation"), True, False, id="nothing was begun"),
        pytest.param(None, True, True, id="it may still write files of the instant that is completed (F36)"),
    ],
)
def test_a_failure_after_the_loss_of_an_executor_is_not_repeated_here(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, *, lost: bool, unproven: bool
) -> None:
    """I12."""
    monkeypatch.setattr(sp, "lost_executors", lambda _spark: lost)
    world = World(order(Service.CLEAN, 1))
    world.outcome = error or world.outcome
    world.consider()
    assert world.services.unproven == unproven


@pytest.mark.parametrize("kind", [Service.CLUSTERING, Service.COMPACTION])
@pytest.mark.parametrize(
    ("tasks", "threads", "stubborn", "runs"),
    [
        ({}, [], False, True),
        ({"service-x": 2, "another": 1}, [], False, True),
        ({"service-x": 1}, [], True, False),
        ({}, ["clustering-job-group-pool-1"], True, False),
        ({"another": 1, None: 1}, ["Executor task launch worker"], True, True),
    ],
    ids=["nothing", "they end", "a task goes on", "Hudi may begin another one", "those of other tables"],
)
def test_nothing_is_executed_again_while_tasks_of_its_first_execution_run(
    monkeypatch: pytest.MonkeyPatch,
    kind: Service,
    tasks: dict[str | None, int],
    threads: list[str],
    *,
    stubborn: bool,
    runs: bool,
) -> None:
    """F632: the rollback of that one would not see the file that such a task is about to upload."""
    monkeypatch.setattr(sp, "IDLE_SECONDS", 0)
    world = World(order(kind, 1))
    world.outcome = OSError("a task has failed")
    world.consider()
    plan_of(world, kind, state="inflight")
    world.patience(kind)
    world.context.tasks, world.context.threads, world.context.stubborn = dict(tasks), list(threads), stubborn
    world.outcome = Done(Result.COMPLETED, T1, "done")
    assert world.consider() == ([(f"{kind.value} again", (T1, 1))] if runs else [])
    record = world.record(kind)
    assert (record["result"], record["failures"]) == (("Completed", 0) if runs else ("Postponed", 1))
    if not runs:
        world.context.tasks.clear()
        world.context.threads.clear()
        world.patience(kind)
        assert world.consider() == [(f"{kind.value} again", (T1, 1))]


def test_a_record_without_file_is_given_up() -> None:
    """F12: otherwise a clean exit would never come.

    What is young (its file may be on the wire), has a file, or is claimed, stays.
    """
    world = World()
    old, young, claimed = "20260101000000030", "20260101000000032", "20260101000000033"
    world.session.etcd.set(
        f"instant/{old}", inc="me", action="clean", state="Pending", atMs=now_ms() - FORGET_MS - 1000
    )
    world.session.etcd.set(f"instant/{young}", inc="me", action="clean", state="Pending", atMs=now_ms() - 1000)
    world.session.etcd.set(f"instant/{claimed}", inc="dead", claimedBy="me", action="clean", state="Pending", atMs=0)
    assert world.consider() == []
    assert world.session.forgotten == [old]
    stale = world.timeline()
    world.names.append(f"{old}.clean.requested")
    assert world.consider(stale) == []
    assert world.session.forgotten == [old], "a fresh listing shows it"
    assert world.consider() == [("clean", frozenset({old}))]
    assert world.session.forgotten == [old]


def test_the_runner_survives_a_silent_etcd() -> None:
    world = World(order(Service.CLEAN, 1))
    world.outcome = OSError("x")
    world.session.etcd.range = lambda prefix: (_ for _ in ()).throw(ConnectionError()) if prefix == "instant/" else []  # type: ignore[method-assign]
    records = Records.from_entries([], prefix=PREFIX)
    world.services.consider(Observation({}, records, world.timeline()))
    assert world.services._running is not None
    assert world.services._running.result(10) is None
    assert world.services.idle
    assert not world.slot._taken.locked()
