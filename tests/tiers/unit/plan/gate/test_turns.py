"""Several HudiTables of one path: the gate is kept by one that reaches the table (F191)."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from hudi_operator.model.facts import Observed
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.gate import turns
from tests.support.world.simulated_world import Process, World

UNREACHABLE = {"code": "StorageUnreachable", "message": "denied"}


TRY, WORK, TURN = 60, 150, 20


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter than in earnest: each second is a look at each HudiTable."""
    assert turns.TRY_SECONDS == TRY
    assert turns.WORK_SECONDS > WORK
    assert turns.TURN_SECONDS > TURN
    monkeypatch.setattr(turns, "WORK_SECONDS", float(WORK))
    monkeypatch.setattr(turns, "TURN_SECONDS", float(TURN))


class Rivals(World):
    """HudiTables of one path, in one namespace, thus with one agent; the operator looks at each."""

    failure = UNREACHABLE
    slow = False
    """The agent has registered, and does not come to an end of reading."""

    def begin(self, *names: str, reach: tuple[str, ...] = ()) -> None:
        self.reach = reach
        self.tables: dict[str, dict[str, Any]] = {}
        self.ages: dict[str, dict[str, float]] = {}
        self.owners: list[str] = []
        for name in names:
            self.make_table()
            assert self.table is not None
            self.table["metadata"]["name"] = name
            self.tables[name], self.ages[name] = self.table, {}

    def observe(self) -> Observed:
        assert self.table is not None
        mine = self.table["metadata"]["name"]
        self.table_error = None if self._served() in self.reach else self.failure
        return replace(super().observe(), tables_on_path=tuple(f"lake/{n}" for n in self.tables if n != mine))

    def _served(self) -> str:
        key = self.kv.get("assignment")
        return key.value["table"].partition("/")[2] if key is not None else ""

    def _agent(self, process: Process) -> None:
        if not (self.slow and process.registered and "assignment" in self.kv):
            super()._agent(process)

    def perform(self, action: act.Action) -> None:
        if isinstance(action, act.PutGate) and not action.value.get("tableUID"):
            gate = self.kv["gate"].value
            assert gate["state"] == "closed", "a gate that was open is given up"
            assert not gate.get("adopted")
            assert not self.names("writer"), "somebody is registered behind the gate that is given up"
            assert not self.names("admit"), "somebody may still register behind it"
            assert "lock" not in self.kv
        super().perform(action)
        owner = self.owner()
        if owner and (not self.owners or self.owners[-1] != owner):
            self.owners.append(owner)

    def owner(self) -> str:
        gate = self.kv.get("gate")
        return str(gate.value["table"]).partition("/")[2] if gate is not None and gate.value.get("tableUID") else ""

    def look(self, name: str, crash_after: int | None = None) -> None:
        self.table, self.timers = self.tables[name], self.ages[name]
        self.reconcile(crash_after=crash_after)

    def pass_time(self, seconds: int, *names: str, crash_every: int = 0) -> None:
        for second in range(seconds):
            for name in names or tuple(self.tables):
                self.look(name, crash_after=second % 5 if crash_every and second % crash_every == 0 else None)
            self.tick()

    def reason(self, name: str, kind: str) -> str:
        return str(self.condition(self.tables[name], kind)["reason"])


@pytest.mark.parametrize("crash_every", [0, 97])
def test_who_does_not_reach_the_table_gives_way_to_who_does(crash_every: int) -> None:
    world = Rivals()
    world.begin("squatter", "owner", reach=("owner",))
    world.look("squatter")
    world.look("squatter")
    world.pass_time(TRY - 20)
    assert world.owner() == "squatter"
    assert world.reason("owner", "Stalled") == "DuplicatePath"
    # It is quicker than the owner, and still does not take back what it gave up.
    world.pass_time(3 * TRY, *["squatter"] * 3, "owner", crash_every=crash_every)
    assert world.owners == ["squatter", "owner"]
    assert world.is_true(world.tables["owner"], "Ready")
    assert world.reason("squatter", "Stalled") == "DuplicatePath"
    assert "gaveWay" not in world.kv["gate"].value


def test_it_does_not_help_to_come_again() -> None:
    """Two that take turns, and one that is deleted and made again, do not keep a third one out."""
    world = Rivals()
    world.begin("one", "two", "owner", reach=("owner",))
    world.look("one")
    world.look("one")
    world.pass_time(5 * TRY)
    assert world.is_true(world.tables["owner"], "Ready")
    assert Counter(world.owners)["one"] == 1
    assert Counter(world.owners)["two"] <= 1


def test_when_nobody_reaches_the_table_each_has_its_turn() -> None:
    world = Rivals()
    world.begin("a", "b", "c")
    world.pass_time(7 * TRY)
    assert {*world.owners[:3]} == {"a", "b", "c"}
    assert all(one != other for one, other in itertools.pairwise(world.owners))
    assert len(world.owners) >= 5
    world.reach = (world.owners[0],)
    world.pass_time(6 * TRY)
    assert world.is_true(world.tables[world.owners[0]], "Ready")


def test_a_turn_that_nobody_takes_goes_back() -> None:
    """The other HudiTable may be invalid, or of a namespace that no operator looks at."""
    world = Rivals()
    world.begin("slow", "idle")
    world.pass_time(TRY + 10, "slow")
    assert world.owner() == ""
    assert world.reason("slow", "Stalled") == "DuplicatePath"
    world.pass_time(TURN + 10, "slow")
    assert world.owner() == "slow"


def test_alone_it_tries_for_ever() -> None:
    world = Rivals()
    world.begin("alone")
    world.pass_time(4 * TRY)
    assert world.owners == ["alone"]
    assert world.owner() == "alone"


def test_who_has_reached_the_table_keeps_the_gate_although_it_may_not_open_it() -> None:
    world = Rivals()
    world.begin("owner", "other", reach=("owner", "other"))
    world.foreign = {"20260101000000000": "commit"}  # its adoption waits for a person
    world.look("owner")
    world.look("owner")
    world.pass_time(60)
    assert world.reason("owner", "Stalled") == "PendingInstants"
    assert world.kv["gate"].value["reached"] is True
    process = world.agent_process()
    assert process is not None
    world.kill(process)  # and with it its report
    world.schedulable = False
    world.pass_time(2 * TRY)
    assert world.owners == ["owner"]
    assert world.owner() == "owner"


def test_who_is_at_work_has_more_time() -> None:
    """Its agent has registered: the storage has answered. But it has not for ever."""
    world = Rivals()
    world.begin("slow", "other", reach=("slow",))
    world.slow = True
    world.look("slow")
    world.look("slow")
    world.pass_time(TRY + 30)
    assert world.owners == ["slow"]
    world.pass_time(WORK)
    assert world.owners[:2] == ["slow", "other"]


def test_who_tells_of_a_failure_has_no_more_time() -> None:
    """Its credentials may list the bucket, for example, and create nothing in it."""
    world = Rivals()
    world.begin("lister", "owner", reach=("owner",))
    world.failure = {"code": "Forbidden", "message": "denied"}
    world.look("lister")
    world.look("lister")
    world.pass_time(2 * TRY)
    assert world.owners == ["lister", "owner"]
