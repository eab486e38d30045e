"""One table of an agent: in which order it does what, what it reports when it cannot, and how it
leaves (I6, I10, I12, F38, F48).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_contract.outcomes import FailureClass
from hudi_runtime.agent import adoption, creation, preparation, reports, store_probe, stored_rows
from hudi_runtime.agent import assignment as module
from hudi_runtime.agent import tasks as parts
from hudi_runtime.agent.assignment import Assignment
from hudi_runtime.process.errors import RuntimeFailure
from hudi_runtime.services.tasks import TableTask
from hudi_runtime.settle.rollback import NotYet
from hudi_runtime.table import timeline as tl
from tests.support.world.callback_parts import Store
from tests.support.world.meeting import Meeting

T1, T2, T3 = (f"2026010100000000{n}" for n in range(1, 4))
ME = "inc-me"


class Keys(Store):
    """etcd, with keys relative to the table and absolute ones alike."""

    prefix = "/hudi"
    table = ""

    def _full(self, key: str) -> str:
        return key if key.startswith("/") else f"/hudi/tables/{self.table}/{key}"

    def get(self, key: str) -> Any:
        return super().get(self._full(key))

    def range(self, prefix: str) -> Any:
        return super().range(self._full(prefix))

    def put(self, key: str, value: Any) -> int:
        return super().put(self._full(key), value)

    def cas(self, key: str, value: Any, revision: int) -> int | None:
        self._ask()
        if self.keys.get(self._full(key), ("", 0))[1] != revision:
            return None
        return self.put(key, value)


class Part(TableTask):
    """A task: services, restores, metadata table, bootstrap."""

    unproven = False

    def __init__(self, world: World, name: str) -> None:
        self._world, self._name = world, name
        self.exclusive = name in ("restores", "metadata")  # type: ignore[misc]

    @property
    def idle(self) -> bool:
        return self._world.idle[self._name]

    def consider(self, *_: Any) -> None:
        self._world.did(self._name)()

    def cancel(self) -> None:
        self._world.did(f"cancel {self._name}")()

    def counts(self, *_: Any) -> dict[str, int]:
        return {}

    def between(self, _records: Any) -> bool:
        return self._world.between


class World:
    """Everything that an assignment is made of, in memory.

    What is called is in `calls`, in order.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **spec: Any) -> None:
        operator = Meeting()
        operator.make_table(**spec)
        operator.run(lambda w: "assignment" in w.kv)
        self.value = operator.assignment()
        self.calls: list[str] = []
        self.etcd = Keys()
        self.etcd.table = self.value["T"]
        self.names: list[str] = [f"{T1}_{T2}.commit"]
        self.exists = True
        self.errors: dict[str, Exception] = {}
        self.idle = dict.fromkeys(("services", "restores", "metadata", "bootstrap"), True)
        self.between = self.unproven = self.stopping = False
        self.now = 100.0
        self.session: Any = SimpleNamespace(
            inc=ME, table_id=self.value["T"], etcd=self.etcd, state="LIVE", close=lambda: True, forget=lambda t: None
        )
        self.gate(state="open", authority="here", tableUID="uid-1")
        self._patch(monkeypatch)
        spark: Any = None
        etcd: Any = self.etcd
        slot: Any = None
        self.assignment = Assignment(spark, self.value, etcd=etcd, stopping=lambda: self.stopping, slot=slot)

    def gate(self, **value: Any) -> None:
        self.etcd.put(f"/hudi/control/{self.value['T']}/gate", value)

    def did(self, name: str) -> Callable[..., Any]:
        def call(*_: Any, **__: Any) -> Any:
            self.calls.append(name)
            if name in self.errors:
                raise self.errors[name]

        return call

    def _patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        table = SimpleNamespace(
            exists=lambda: self.exists,
            timeline=lambda: self.did("list")() or tl.parse(self.names),
            require_merger=self.did("merger"),
            commits=lambda instants: [],
            has_archive=lambda: False,
            metadata_partitions=lambda: (set(), set()),
            write_config=lambda *_: None,
            locked=lambda _: nullcontext(),
            begin_timeline=lambda: self.did("begin")() or self.names.append(tl.beginning(merge_on_read=False)),
        )

        probe = SimpleNamespace(
            exists=lambda name: self.did("probe")() or self.exists, close=lambda: self.calls.append("close probe")
        )
        monkeypatch.setattr(preparation, "Storage", lambda spark, path, settings: probe)
        monkeypatch.setattr(module, "AgentTable", lambda spark, path: table)
        opened = SimpleNamespace(open=lambda spark, settings: self.did("open session")() or self.opened(settings))
        monkeypatch.setattr(module, "AgentSession", opened)
        settler = SimpleNamespace(
            run=lambda *_, **__: self.did("settle")() or 1, ended=set(), release_claims=self.did("release claims")
        )
        settler.must_be_proven_dead = lambda: self.unproven
        monkeypatch.setattr(parts, "Settler", lambda *_, **__: settler)
        services, restores, metadata, bootstrap = (Part(self, name) for name in self.idle)
        self.services = services
        self.long_tasks = (services, restores, metadata, bootstrap)
        monkeypatch.setattr(parts, "_services", lambda *_: services)
        monkeypatch.setattr(parts, "_callback_sender", lambda *_: None)
        monkeypatch.setattr(parts, "Bootstrap", lambda _context: bootstrap)
        monkeypatch.setattr(parts, "Restores", lambda _context: restores)
        monkeypatch.setattr(parts, "MetadataTable", lambda _context, known: metadata)
        monkeypatch.setattr(parts.Savepoints, "_serve", self.did("savepoints"))
        monkeypatch.setattr(module, "Bucket", lambda *_: SimpleNamespace(look=lambda: None))
        monkeypatch.setattr(creation, "facts", lambda table: None)
        monkeypatch.setattr(
            creation, "mismatches", lambda *_, adopting: self.did(f"compare{' to adopt' * adopting}")() or []
        )
        monkeypatch.setattr(creation, "check_marker", self.did("marker"))
        monkeypatch.setattr(creation, "create", lambda *_: self.did("create")() or setattr(self, "exists", True))
        monkeypatch.setattr(store_probe, "require", self.did("store"))
        for name in ("refuse_existing", "take_over"):
            monkeypatch.setattr(adoption, name, self.did(name.replace("_", " ")))
        monkeypatch.setattr(adoption, "look", lambda table: None)
        monkeypatch.setattr(adoption, "problems", lambda *_, now: self.did("problems")() or [])
        monkeypatch.setattr(stored_rows, "problems", lambda *_: self.did("rows")() or [])
        monkeypatch.setattr(adoption, "beating", lambda *_, now_ms: frozenset())
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)

    def opened(self, settings: dict[str, str]) -> Any:
        self.settings = settings
        return self.session

    def step(self, seconds: float = 20.0) -> list[str]:
        """One step, so long after the last one; what was called."""
        self.now += seconds
        self.calls.clear()
        self.assignment.step()
        return list(self.calls)

    @property
    def report(self) -> dict[str, Any]:
        found = self.etcd.get("report/timeline")
        return dict(found.value) if found is not None else {}

    @property
    def error(self) -> tuple[str, str]:
        said = self.report.get("error") or {}
        return str(said.get("code", "")), str(said.get("message", ""))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


# ---- the beginning


def test_storage_first_then_the_session_then_the_table(world: World) -> None:
    """A wrong key is reported whatever else is missing."""
    calls = world.step()
    assert calls[:5] == ["probe", "close probe", "open session", "compare", "marker"]
    assert world.settings["role"] == "agent"
    assert world.settings["tableId"] == world.value["T"]
    assert world.settings["leaseSeconds"] == str(world.value["lock"]["leaseSeconds"]), (
        "the durations are the gate's, as the operator tells them"
    )


def test_an_unreachable_store_is_reported_without_a_session(world: World) -> None:
    world.errors["probe"] = RuntimeFailure(FailureClass.STORAGE_UNREACHABLE, "no route")
    calls = world.step()
    assert "open session" not in calls
    assert world.report["agentInc"] == ""
    assert world.error == ("StorageUnreachable", "no route")
    assert not world.assignment.reachable


def test_it_is_tried_again_ever_later(world: World) -> None:
    world.errors["probe"] = RuntimeFailure(FailureClass.STORAGE_UNREACHABLE, "no route")
    waits = []
    for _ in range(7):
        world.step(1000)
        waited = 0.0
        while not world.step(0.5):
            waited += 0.5
        waits.append(waited)
    assert waits[0] < waits[-1] <= LONGEST_PAUSE_SECONDS
    del world.errors["probe"]
    world.step(1000)
    assert world.error == ("", "")


def test_who_may_not_even_report_tries_ever_later_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """F584: an agent that is not admitted at one of its tables."""

    def denied(*_: Any, **__: Any) -> None:
        raise RuntimeFailure(FailureClass.INFRASTRUCTURE, "the report is denied")

    world.errors["open session"] = RuntimeFailure(FailureClass.INFRASTRUCTURE, "the registration is denied")
    monkeypatch.setattr(world.assignment, "report_error", denied)
    assert "open session" in world.step(1000)
    assert world.step(0.5) == []
    told = capsys.readouterr().err
    assert "the registration is denied" in told
    assert "the report is denied" in told


def test_what_is_waited_for_is_no_error(world: World) -> None:
    world.step()
    before = world.report
    world.errors["settle"] = NotYet("somebody else's instant")
    world.etcd.put("settle/dead", {"inc": "dead", "phase": "RollingBack"})
    assert "settle" in world.step()
    assert world.report == before


@pytest.mark.parametrize(
    ("part", "error", "code"),
    [
        ("compare", creation.TableMismatch("recordKeyFields differ"), "TableMismatch"),
        ("marker", creation.OtherLockAuthority("another lock"), "OtherLockAuthority"),
        (
            "marker",
            RuntimeError("o.a.h.HoodieException: [HUDIOP-OTHER-AUTHORITY] the marker names another lock"),
            "OtherLockAuthority",
        ),
        ("open session", RuntimeFailure(FailureClass.INFRASTRUCTURE, "etcd is away"), "Infrastructure"),
    ],
)
def test_why_a_table_cannot_be_served(world: World, part: str, error: Exception, code: str) -> None:
    world.errors[part] = error
    calls = world.step()
    assert world.error[0] == code
    assert "services" not in calls


# ---- a new table, and one that is adopted


def test_a_table_is_created_and_that_is_written_down_before(world: World) -> None:
    world.exists = False
    world.gate(state="closed", authority="here", tableUID="uid-1")
    world.errors["create"] = OSError("the agent dies")
    calls = world.step()
    assert "store" in calls, "what the store must be able to do is asked before"
    assert calls.index("merger") < calls.index("create")
    assert world.etcd.get("done/create").value == {"tableUID": "uid-1"}
    assert world.etcd.get("clock").value == {"value": preparation.CLOCK_ZERO}


@pytest.mark.parametrize(("adopted", "error"), [(False, "TableNotFound"), (True, "")])
def test_a_table_that_is_to_be_adopted_must_be_there(
    monkeypatch: pytest.MonkeyPatch, adopted: bool, error: str
) -> None:
    """One that was in use and is gone is made again: its HudiTable has seen it before."""
    world = World(monkeypatch, adoption={"policy": "Adopt"})
    world.exists = False
    world.gate(state="closed", authority="here", tableUID="uid-1", adopted=adopted)
    calls = world.step()
    assert world.error[0] == error
    assert ("create" in calls) == adopted


def test_a_deleted_table_that_is_gone_is_not_made_again_for_its_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entries are dropped all the same: that needs no table."""
    world = World(monkeypatch, catalog={"hiveMetastore": {"uris": ["thrift://metastore.catalogs.svc:9083"]}})
    dropped: list[bool] = []
    syncer = SimpleNamespace(consider=lambda listed: dropped.append(True), stop=lambda: None)
    monkeypatch.setattr(parts.catalog, "HiveMetastore", lambda *_: None)
    monkeypatch.setattr(parts.catalog, "CatalogSyncer", lambda *_, **__: syncer)
    world.exists = False
    order = {**world.value, "catalog": {**world.value["catalog"], "drop": True}}
    spark: Any = None
    etcd: Any = world.etcd
    slot: Any = None
    world.assignment = Assignment(spark, order, etcd=etcd, stopping=lambda: False, slot=slot)
    assert "create" not in world.step()
    assert dropped == [True]
    world.exists = True
    assert "list" in world.step(600)


def test_a_table_is_adopted_when_nothing_is_without_an_owner(world: World) -> None:
    """I7, I10: settled first, then looked for, then taken over.

    The clock is past everything that others have completed.
    """
    world.gate(state="closed", authority="here", tableUID="uid-1")
    world.etcd.put("clock", {"value": preparation.CLOCK_ZERO})
    calls = world.step()
    wanted = ["compare to adopt", "marker", "store", "merger", "refuse existing", "problems", "settle", "take over"]
    assert [call for call in calls if call in wanted] == wanted
    assert world.etcd.get("clock").value == {"value": T2}
    assert world.error == ("", "")


def test_a_pending_instant_without_an_owner_stops_the_adoption(world: World) -> None:
    world.gate(state="closed", authority="here", tableUID="uid-1")
    world.names.append(f"{T3}.commit.requested")
    calls = world.step()
    assert "take over" not in calls
    assert world.error[0] == "PendingInstants"
    assert [item["instant"] for item in world.report["foreign"]] == [T3]
    world.etcd.put(f"instant/{T3}", {"inc": "adopted", "action": "commit", "state": "Pending"})
    assert "take over" in world.step(), "somebody owns it now, and settling looks at it"


def test_the_clock_is_not_set_back(world: World) -> None:
    world.gate(state="closed", authority="here", tableUID="uid-1")
    world.etcd.put("clock", {"value": "20270101000000000"})
    world.step()
    assert world.etcd.get("clock").value == {"value": "20270101000000000"}


@pytest.mark.parametrize(("enabled", "wanted"), [(False, 1), (True, 0)])
@pytest.mark.parametrize("state", ["created", "adopted", "in use"])
def test_a_table_without_a_metadata_table_begins_before_its_first_commit(
    monkeypatch: pytest.MonkeyPatch, enabled: bool, wanted: int, state: str
) -> None:
    """Also one that was made with it, and has no commit yet (F630)."""
    world = World(monkeypatch, metadataTable={"enabled": enabled})
    world.names.clear()
    world.exists = state != "created"
    world.gate(state="closed", authority="here", tableUID="uid-1", adopted=state == "in use")
    calls = world.step()
    assert world.error == ("", "")
    assert calls.count("begin") == wanted
    if wanted and state != "in use":
        assert calls.index("begin") > calls.index("create" if state == "created" else "take over")
    assert "begin" not in world.step(), "it is there"
    assert world.report["commits"] == []
    assert not world.report["lastInstant"]


def test_a_table_in_use_is_not_adopted_again(world: World) -> None:
    calls = world.step()
    assert not {"take over", "refuse existing", "store", "merger", "create"} & set(calls)


# ---- a pass


def passed(world: World) -> list[str]:
    world.step()
    return [call for call in world.step() if call != "list"]


def test_the_order_of_a_pass(world: World) -> None:
    assert passed(world) == ["restores", "bootstrap", "metadata", "savepoints", "services"]


@pytest.mark.parametrize(
    "key",
    [
        ("settle/dead", {"inc": "dead", "phase": "RollingBack"}),
        (f"instant/{T3}", {"inc": "other", "action": "commit", "state": "Abandoned"}),
        ("done/abandoned-other", {"inc": "other", "instants": [T3]}),
    ],
    ids=["settle", "abandoned", "given up"],
)
def test_the_dead_are_settled_before_anything_else(world: World, key: tuple[str, dict[str, Any]]) -> None:
    world.step()
    world.etcd.put(*key)
    assert next(call for call in world.step() if call != "list") == "settle"


def test_nothing_is_settled_that_nobody_asks_for(world: World) -> None:
    world.etcd.put("settle/old", {"inc": "old", "phase": "Settled"})
    world.etcd.put("settle/new", {"inc": "new", "phase": "Draining"})
    assert "settle" not in passed(world)


@pytest.mark.parametrize(
    ("busy", "left"),
    [
        ("restores", ["restores"]),
        ("metadata", ["restores", "bootstrap", "metadata"]),
        ("services", ["restores", "bootstrap", "metadata", "services"]),
    ],
)
def test_who_works_alone(world: World, busy: str, left: list[str]) -> None:
    """While a restore or the metadata table is at work nothing else is begun.

    A savepoint waits for services.
    """
    world.step()
    world.idle[busy] = False
    assert [call for call in world.step() if call != "list"] == left
    assert not world.assignment.idle


def test_between_two_agents_of_a_restore_nothing_is_begun(world: World) -> None:
    """The table is neither what it was nor what it will be; what is pending is nobody's fault."""
    world.step()
    world.between = True
    world.names.append(f"{T3}.restore.requested")
    assert [call for call in world.step() if call != "list"] == ["restores"]
    assert world.report["foreign"] == []


def test_where_it_was_fenced_nothing_is_told_any_more(world: World) -> None:
    """Neither a receiver of callbacks nor a catalog: the next agent does both."""
    world.step()
    tasks = world.assignment._tasks
    assert tasks is not None
    sender: Any = SimpleNamespace(stop=lambda: world.calls.append("stop callbacks"))
    syncer: Any = SimpleNamespace(stop=lambda: world.calls.append("stop catalog"))
    tasks._callback_sender, tasks._catalog_syncer = sender, syncer
    world.calls.clear()
    world.assignment.cease()
    assert world.calls[:2] == ["stop callbacks", "stop catalog"]
    assert "cancel services" in world.calls


@pytest.mark.parametrize("why", ["retired", "stopping"])
def test_who_leaves_begins_nothing(world: World, why: str) -> None:
    world.step()
    if why == "retired":
        world.assignment.retire(gone=False)
    else:
        world.stopping = True
    world.etcd.put("settle/dead", {"inc": "dead", "phase": "RollingBack"})
    assert [call for call in world.step() if call != "list"] == ["settle"], "the dead are settled all the same"


def test_a_deleted_tables_bootstrap_is_cancelled_and_a_changed_ones_goes_on(world: World) -> None:
    world.step()
    world.calls.clear()
    world.assignment.retire(gone=False)
    assert world.calls == []
    world.assignment.retire(gone=True)
    assert world.calls == ["cancel bootstrap"]


# ---- what is seen


def test_the_timeline_is_listed_when_etcd_says_that_it_has_changed(world: World) -> None:
    world.step()
    assert "list" not in world.step(1.0)
    world.etcd.put(f"instant/{T3}", {"inc": "other", "action": "commit", "state": "Pending"})
    assert "list" in world.step(1.0)
    assert "list" not in world.step(1.0)
    assert "list" in world.step(LONGEST_PAUSE_SECONDS), "writers without this lock say nothing in etcd"


def test_it_is_listed_more_often_while_something_is_pending(world: World) -> None:
    world.names.append(f"{T3}.commit.requested")
    world.etcd.put(f"instant/{T3}", {"inc": "other", "action": "commit", "state": "Pending"})
    world.step()
    assert "list" not in world.step(module.LIST_SECONDS - 1)
    assert "list" in world.step(1.0)


def test_a_report_is_repeated_now_and_then_only(world: World) -> None:
    world.step()
    first = world.etcd.get("report/timeline").mod_revision
    world.step(LONGEST_PAUSE_SECONDS)
    assert world.etcd.get("report/timeline").mod_revision == first
    world.step(reports.REPORT_SECONDS)
    assert world.etcd.get("report/timeline").mod_revision > first
    again = world.etcd.get("report/timeline").mod_revision
    world.names.append(f"{T3}_20260101000000009.commit")
    world.step(LONGEST_PAUSE_SECONDS)
    assert world.etcd.get("report/timeline").mod_revision > again
    assert world.report["lastInstant"] == T3


def test_what_others_have_completed_stays_known_to_the_next_agent(world: World) -> None:
    """I7: past the clock when it was seen; a later commit of ours moves the clock past it."""
    world.etcd.put("clock", {"value": T2})
    world.names.append(f"{T3}_{T3}.commit")
    world.step()
    assert [item["instant"] for item in world.report["foreign"]] == [T3]
    world.etcd.put("clock", {"value": "20270101000000000"})
    world.step(LONGEST_PAUSE_SECONDS)
    assert [item["instant"] for item in world.report["foreign"]] == [T3]
    world.names.remove(f"{T3}_{T3}.commit")
    world.step(LONGEST_PAUSE_SECONDS)
    assert world.report["foreign"] == [], "archived"


# ---- the end


def test_it_leaves_when_nothing_is_unresolved(world: World) -> None:
    world.step()
    world.calls.clear()
    assert world.assignment.close()
    assert world.calls == ["release claims"]


def test_it_does_not_leave_what_must_be_proven(world: World) -> None:
    """F4: an executor that it has lost may still write."""
    world.step()
    world.unproven = True
    world.session.close = lambda: pytest.fail("it has left")
    assert not world.assignment.close()


def test_one_that_never_began_leaves(world: World) -> None:
    assert world.assignment.close()


def test_a_fence_is_seen_in_etcd_before_the_session_knows(world: World) -> None:
    """F48: the signal follows the fence."""
    assert not world.assignment.fence_stands()
    world.step()
    assert not world.assignment.fence_stands()
    world.etcd.put(f"/hudi/control/{world.value['T']}/fence/{ME}", {"inc": ME})
    assert (world.assignment.fenced, world.assignment.fence_stands()) == (False, True)
    world.session.state = "FENCED"
    assert world.assignment.fenced


@pytest.mark.parametrize("number", range(4))
def test_a_loss_in_any_long_task_ends_the_agent(world: World, number: int) -> None:
    """I12."""
    assert not world.assignment.must_end
    world.step()
    assert not world.assignment.must_end
    world.long_tasks[number].unproven = True
    assert world.assignment.must_end
