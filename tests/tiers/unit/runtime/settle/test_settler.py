"""The agent's settling against an etcd in memory: what is recorded, claimed, retried and left alone
(I4, I6, I7, I12; F3, F4, F22).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hudi_contract.shape import ShapeError
from hudi_runtime.agent.restores import Restores
from hudi_runtime.process.errors import OutcomeUnknown
from hudi_runtime.process.etcd import Entry
from hudi_runtime.services.service_actions import floor
from hudi_runtime.settle import settle
from hudi_runtime.settle.rollback import Outcome
from hudi_runtime.settle.settle import Records, Settler
from hudi_runtime.table import timeline as tl
from tests.support.world.memory_etcd import PREFIX, MemoryEtcd, MemorySession

T1, T2, T3 = "20260101000000001", "20260101000000002", "20260101000000003"


class World:
    """A table whose instants have a fate: an outcome, or an error to raise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.etcd = MemoryEtcd()
        self.fate: dict[str, Outcome | Exception] = {}
        self.touches: dict[str, list[str]] = {}
        self.swept: list[str] = []
        self.looked: list[str] = []
        self.listings: list[list[str]] = []
        """Of which instants the table's folders were listed, each time."""
        self.broken: set[str] = set()
        """Instants of which a listing fails."""
        self.session = MemorySession(self.etcd)
        session: Any = self.session
        table: Any = object()
        self.settler = Settler(table, session, "t", dict, drain=0.0)
        monkeypatch.setattr(settle, "look_and_roll_back", self._look)
        monkeypatch.setattr(settle.Listing, "of", self._list)
        monkeypatch.setattr(settle, "sweep", lambda _table, instant, _: self.swept.append(instant))
        monkeypatch.setattr(settle, "sweep_unnamed", lambda _table, instant, _: self.swept.append(f"unnamed {instant}"))
        monkeypatch.setattr(settle, "backoff", lambda _failures: 0.0)

    def _look(self, _table: object, instant: str, *, claim: Callable[[str], None], **_: object) -> tuple[Outcome, str]:
        self.looked.append(instant)
        fate = self.fate.get(instant, Outcome.ROLLED_BACK)
        if isinstance(fate, Exception):
            raise fate
        if fate is Outcome.COMPLETED:
            return fate, ""
        if fate is not Outcome.GONE:
            for touched in [instant, *self.touches.get(instant, [])]:
                claim(touched)
        return fate, instant

    def _list(self, _table: object, instants: Iterable[str], **_: object) -> None:
        self.listings.append(list(instants))
        if self.broken & set(self.listings[-1]):
            raise OSError("listing failed")

    def run(self) -> int:
        records = Records.from_entries(self.etcd.range(""), prefix=PREFIX)
        done = self.settler.run(records, stopping=lambda: False)
        assert not self.session.refused, "the real session is the last line, and who settles does not lean on it"
        return done

    def settle(self, inc: str, phase: str = "RollingBack", **more: Any) -> None:
        self.etcd.set(f"settle/{inc}", inc=inc, phase=phase, **more)

    def instant(self, instant: str, inc: str, state: str = "Pending", **more: Any) -> None:
        self.etcd.set(f"instant/{instant}", inc=inc, action="commit", state=state, **more)

    def unreadable(self, key: str) -> None:
        """What `Etcd.range` makes of a value that is no JSON."""
        self.etcd.revision += 1
        self.etcd.keys[key] = Entry(PREFIX + key, {}, self.etcd.revision, "is not JSON")

    def records(self) -> Records:
        return Records.from_entries(self.etcd.range(""), prefix=PREFIX)

    def record(self, inc: str) -> Mapping[str, Any]:
        return self.etcd.keys[f"settle/{inc}"].value


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_every_outcome_is_recorded_then_swept(world: World) -> None:
    world.settle("dead", operatorField={"kept": True})
    for instant, fate in {T1: Outcome.ROLLED_BACK, T2: Outcome.COMPLETED, T3: Outcome.GONE}.items():
        world.instant(instant, "dead")
        world.fate[instant] = fate
    assert world.run() == 3
    record = world.record("dead")
    assert record["phase"] == "Swept"
    assert record["operatorField"] == {"kept": True}, "fields of others are kept"
    assert {t: item["outcome"] for t, item in record["instants"].items()} == {
        T1: "RolledBack",
        T2: "Completed",
        T3: "Gone",
    }
    assert world.swept == [T1, f"unnamed {T2}", T3], (
        "of a completed instant only what no commit names is swept (I4, F36)"
    )
    assert world.etcd.keys[f"instant/{T1}"].value["claimedBy"] == "agent"


@pytest.mark.parametrize("phase", ["Fenced", "Terminating", "Draining", "Unlocked"])
def test_nothing_before_the_operator_hands_over(world: World, phase: str) -> None:
    world.settle("dead", phase)
    world.instant(T1, "dead")
    assert world.run() == 0
    assert world.record("dead")["phase"] == phase


def test_living_writers_are_left_alone(world: World) -> None:
    world.etcd.set("writer/alive", inc="alive")
    world.instant(T1, "alive")
    assert world.run() == 0
    assert "claimedBy" not in world.etcd.keys[f"instant/{T1}"].value


def test_folders_are_listed_once_for_all_instants(world: World) -> None:
    """With thousands of partitions a listing takes longer than the next race that is lost, and no
    service begins before all are settled (F530).
    """
    world.etcd.set("writer/alive", inc="alive")
    for instant in (T1, T2, T3):
        world.instant(instant, "alive", "Abandoned")
    world.fate[T2] = OutcomeUnknown("no storage")
    assert world.run() == 2
    assert world.listings == [[T1, T3]]
    assert sorted(world.swept) == [T1, T3]
    world.fate[T2] = Outcome.COMPLETED
    world.settle("dead")
    times = [f"20260101000001{n:03}" for n in range(200)]
    for instant in times:
        world.instant(instant, "dead")
    assert world.run() == 201
    assert world.listings[1:] == [times[:100], times[100:], [T2]], "as many as one pattern has"


def test_folders_are_listed_once_for_all_incarnations(world: World) -> None:
    """F562: a node's drivers die together, and many batches have lost one race each."""
    world.settle("dead")
    world.settle("claimed", instants={T2: {"action": "commit"}})
    world.instant(T1, "dead")
    world.instant(T2, "dead", claimedBy="claimed")
    t4, t5 = "20260101000000004", "20260101000000005"
    for inc, instants in {"a": [T3], "b": [t4, t5]}.items():
        world.etcd.set(f"done/abandoned-{inc}", inc=inc, instants=instants)
    world.fate[t5] = OutcomeUnknown("no storage")
    assert world.run() == 3
    assert world.listings == [[T1, T2], [T3, t4]]
    for inc in ("dead", "claimed"):
        record = world.record(inc)
        assert record["phase"] == "Swept"
        assert record["instants"][T2]["outcome"] == "RolledBack"
    assert sorted(world.swept) == [T1, T2, T3, t4], "each once"
    assert "done/abandoned-a" not in world.etcd.keys
    assert "done/abandoned-b" in world.etcd.keys, "one of its instants has no end"
    world.fate[t5] = Outcome.ROLLED_BACK
    world.run()
    assert not [key for key in world.etcd.keys if key.startswith("done/")]


def test_who_stops_forgets_only_what_it_has_looked_at(world: World) -> None:
    """F562: the hand-over is short, and the next agent looks at the rest."""
    for inc, instant in {"a": T1, "b": T2}.items():
        world.etcd.set(f"done/abandoned-{inc}", inc=inc, instants=[instant])
        world.fate[instant] = Outcome.GONE
    world.settler.run(world.records(), stopping=lambda: bool(world.looked))
    assert (world.looked, world.listings, world.swept) == ([T1], [], [])
    world.settler.run(world.records(), stopping=lambda: bool(world.swept))
    assert (world.listings, world.swept) == ([[T1, T2]], [T1])
    assert "done/abandoned-a" not in world.etcd.keys
    assert "done/abandoned-b" in world.etcd.keys
    world.run()
    assert world.swept == [T1, T2]
    assert "done/abandoned-b" not in world.etcd.keys


def test_what_could_not_be_listed_is_listed_again(world: World) -> None:
    """I4: no outcome before a complete listing."""
    world.settle("dead")
    world.instant(T1, "dead")
    world.instant(T2, "alive", "Abandoned")
    world.broken = {T1, T2}
    assert world.run() == 0
    assert "listing failed" in world.record("dead")["instants"][T1]["error"]
    assert f"instant/{T2}" in world.etcd.keys
    assert world.swept == []
    world.broken = set()
    assert world.run() == 2


def test_who_stops_lists_nothing_more(world: World) -> None:
    """The hand-over is short, and the next agent looks again."""
    world.settle("dead")
    world.instant(T1, "dead")
    answers = iter([False, False, True, True])
    assert world.settler.run(world.records(), stopping=lambda: next(answers)) == 0
    assert (world.listings, world.swept) == ([], [])
    assert world.run() == 1


def test_a_failure_is_counted_and_does_not_stop_the_others(world: World) -> None:
    world.settle("dead")
    world.instant(T1, "dead")
    world.instant(T2, "dead")
    world.fate[T1] = OutcomeUnknown("the listing failed")
    assert world.run() == 1
    item = world.record("dead")["instants"][T1]
    assert (item["outcome"], item["failures"]) == (None, 1)
    assert "the listing failed" in item["error"]
    assert world.record("dead")["phase"] == "RollingBack"
    world.run()
    assert world.record("dead")["instants"][T1]["failures"] == 2
    world.fate[T1] = Outcome.ROLLED_BACK
    world.run()
    assert world.record("dead")["phase"] == "Swept"
    assert "error" not in world.record("dead")["instants"][T1]


def test_a_failures_record_has_no_secret_of_the_environment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_PASSWORD", "s3cr3t-of-the-store")
    world.settle("dead")
    world.instant(T1, "dead")
    world.fate[T1] = OutcomeUnknown("the store at https://user:s3cr3t-of-the-store@lake answered 500")
    world.run()
    error = world.record("dead")["instants"][T1]["error"]
    assert "answered 500" in error
    assert "s3cr3t" not in error


def test_a_record_that_cannot_be_read_stays_as_it_is_and_keeps_no_other_waiting(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """I11: whether its instants have an outcome is unknown, so nothing of it is looked at
    again or forgotten.
    """
    world.settle("unread", instants={T1: {"action": "commit", "outcome": "Vanished"}})
    world.settle("dead")
    world.instant(T1, "unread")
    world.instant(T2, "dead")
    before = world.record("unread")
    assert world.run() == 1
    assert world.run() == 0
    assert (world.record("unread"), world.record("dead")["phase"]) == (before, "Swept")
    assert capsys.readouterr().err.count("settle/unread is left as it is: SettleRecord.instants.") == 1
    with pytest.raises(ShapeError):
        floor(tl.parse([]), Records.from_entries(world.etcd.range(""), prefix=PREFIX))


@pytest.mark.parametrize("key", [f"instant/{T3}", "settle/other", "done/abandoned-other", "writer/other", "report/x"])
def test_a_value_that_is_no_json_keeps_no_instant_waiting(world: World, key: str) -> None:
    """F417: its key is left as it is."""
    world.settle("dead")
    world.instant(T1, "dead")
    world.instant(T2, "gone", state="Abandoned")
    world.unreadable(key)
    before = world.etcd.keys[key]
    assert world.run() == 2
    assert world.record("dead")["instants"][T1]["outcome"] == "RolledBack"
    assert f"instant/{T2}" not in world.etcd.keys
    assert world.etcd.keys[key] is before
    swept = world.record("dead")["phase"] == "Swept"
    assert swept == (not key.startswith("instant/")), "an instant without a readable owner may be its own (I7)"


def test_an_instant_without_a_readable_owner_may_be_anybodys(world: World) -> None:
    """F417, I11: who is not registered has perhaps left it; nothing is begun beside it."""
    assert world.records().proven("left")
    assert not Restores.between(cast(Any, SimpleNamespace(idle=True)), world.records())
    world.unreadable(f"instant/{T1}")
    assert not world.records().proven("left")
    assert Restores.between(cast(Any, SimpleNamespace(idle=True)), world.records())
    world.etcd.set("done/abandoned-left", inc="left", instants=[T2])
    world.run()
    assert "done/abandoned-left" in world.etcd.keys, "the instant may be one of its own"
    world.settler.lost = lambda: True
    assert world.settler.must_be_proven_dead()


def test_who_cannot_be_read_may_be_an_agent(world: World) -> None:
    """F417, I12: no service is begun beside it."""
    world.etcd.set("writer/w", inc="w", role="writer")
    assert world.records().other_agents("agent") == []
    world.unreadable("writer/x")
    world.unreadable("settle/y")
    assert world.records().other_agents("agent") == ["x", "y"]
    assert world.records().adopting(), "its reason may be the adoption"


def test_what_was_given_up_is_not_written_over_when_it_cannot_be_read(world: World) -> None:
    """F417, I4"""
    world.unreadable("done/abandoned-w")
    with pytest.raises(ShapeError, match="done/abandoned-w in etcd is not JSON"):
        world.records().given_up_by("w")
    with pytest.raises(ShapeError):
        floor(tl.Timeline(), world.records())
    world.instant(T1, "w", state="Abandoned")
    assert world.run() == 0
    assert world.etcd.keys["done/abandoned-w"].unreadable
    assert f"instant/{T1}" in world.etcd.keys, "not remembered, so not forgotten"


@pytest.mark.parametrize("end", ["left", "settled"])
def test_what_a_writer_abandons_is_swept_at_its_end_however_much_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """F634: what has no room in one key keeps its record, and holds archival as the others do."""
    monkeypatch.setattr(settle, "ABANDONED_KEPT", 2)
    times = [f"2026010100000000{number}" for number in range(1, 6)]
    world.etcd.set("writer/w", inc="w", role="writer")
    for instant in times:
        world.instant(instant, "w", "Abandoned")
    assert world.run() == 2
    assert world.etcd.keys["done/abandoned-w"].value["instants"] == times[:2]
    kept = [name for name in times if f"instant/{name}" in world.etcd.keys]
    assert kept == times[2:]
    assert sorted(world.swept) == times
    assert floor(tl.Timeline(), world.records()) == times[0]
    world.swept.clear()
    assert world.run() == 0
    assert world.swept == [], "it is not looked at again each second"

    world.etcd.keys.pop("writer/w")
    if end == "settled":
        world.settle("w")
    world.run()
    world.run()
    assert set(world.swept) == set(times), "the last sweep"
    assert "done/abandoned-w" not in world.etcd.keys
    if end == "left":
        assert not [key for key in world.etcd.keys if key.startswith("instant/")]
    else:
        assert world.record("w")["phase"] == "Swept"
        assert set(world.record("w")["instants"]) == set(times)


def test_an_unproven_agents_rollback_is_awaited(world: World) -> None:
    """F22: the first agent has planned rollback T2 of T1 and is not proven dead."""
    world.settle("dead")
    world.settle("agent-0", "Draining")
    world.instant(T1, "dead", claimedBy="agent-0")
    world.instant(T2, "agent-0")
    world.touches[T1] = [T2]
    assert world.run() == 0
    item = world.record("dead")["instants"][T1]
    assert (item["outcome"], item["failures"]) == (None, 0), "waiting is no failure"
    assert item["error"] == f"instant {T1} belongs to agent-0, which is not proven dead"
    world.settle("agent-0")
    world.settler._due.clear()
    world.run()
    assert world.record("dead")["phase"] == "Swept"
    assert world.record("agent-0")["phase"] == "Swept"
    assert set(world.record("agent-0")["instants"]) == {T1, T2}


def test_a_lost_compare_and_set_writes_nothing_more(world: World) -> None:
    """The operator changed the record meanwhile: this pass stops, the next one starts from what is
    there (I6).
    """
    world.settle("dead")
    world.instant(T1, "dead")
    world.instant(T2, "dead")
    changed = []

    def interfere(key: str) -> None:
        if key == "settle/dead" and not changed:
            changed.append(key)
            world.settle("dead", attempt="default.w-1")

    world.etcd.before_cas = interfere
    world.run()
    assert world.record("dead")["phase"] == "RollingBack"
    world.fate[T1] = Outcome.GONE
    world.run()
    assert world.record("dead")["phase"] == "Swept"
    assert world.record("dead")["attempt"] == "default.w-1"


def test_the_owners_word_is_enough_and_the_sweep_comes_again(world: World) -> None:
    """F4: Abandoned by a living writer; swept now, and once more when the writer is settled."""
    world.etcd.set("writer/alive", inc="alive")
    world.instant(T1, "alive", "Abandoned")
    assert world.run() == 1
    assert f"instant/{T1}" not in world.etcd.keys
    assert world.etcd.keys["done/abandoned-alive"].value["instants"] == [T1]
    world.run()
    assert world.swept == [T1], "not again while the writer lives"
    world.settle("alive")
    world.fate[T1] = Outcome.GONE
    world.run()
    assert world.swept == [T1, T1]
    assert world.record("alive")["phase"] == "Swept"
    assert "done/abandoned-alive" not in world.etcd.keys


def test_what_was_on_the_wire_at_the_owners_word_and_at_its_end_has_landed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F35, I5: no rollback before D is over after the word, no last sweep before D is over after
    the owner has left.
    """
    now = [1000.0]
    monkeypatch.setattr(settle.time, "monotonic", lambda: now[0])
    world.settler.drain = 10.0
    world.etcd.set("writer/alive", inc="alive")
    world.instant(T1, "alive", "Abandoned")
    assert world.run() == 0
    now[0] += 9.9
    assert world.run() == 0
    assert (world.swept, list(world.etcd.keys)) == ([], ["writer/alive", f"instant/{T1}"])
    now[0] += 0.1
    assert world.run() == 1
    assert world.swept == [T1]
    now[0] += 100.0
    world.run()
    del world.etcd.keys["writer/alive"]
    world.run()
    now[0] += 9.9
    world.run()
    assert world.swept == [T1], "its last requests may be on the wire"
    assert "done/abandoned-alive" in world.etcd.keys
    now[0] += 0.1
    world.run()
    assert world.swept == [T1, T1]
    assert not world.etcd.keys


def test_the_drain_of_the_gate_counts_from_now_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """F437: it was made longer while this agent was busy, with its former assignment."""
    now, gate = [1000.0], [0.0]
    monkeypatch.setattr(settle.time, "monotonic", lambda: now[0])
    world.settler.drain, world.settler.gate_drain = 1.0, lambda: gate[0]
    world.etcd.set("writer/alive", inc="alive")
    world.instant(T1, "alive", "Abandoned")
    assert world.run() == 0
    gate[0] = 60.0
    now[0] += 59.0
    assert world.run() == 0
    now[0] += 1.0
    assert world.run() == 1


@pytest.mark.parametrize(("left", "wanted"), [([], "alone"), (["agent"], "alone"), (["writer"], "served")])
def test_a_rollback_without_any_writer_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch, left: list[str], wanted: str
) -> None:
    """F434: a metadata table that is to go is not used when nobody else uses it."""
    used: list[Any] = []

    def look(_table: object, _instant: str, *, options: Any, **_: object) -> tuple[Outcome, str]:
        used.append(options)
        return Outcome.GONE, ""

    monkeypatch.setattr(settle, "look_and_roll_back", look)
    world.settler.options, world.settler.alone = lambda: {"is": "served"}, lambda: {"is": "alone"}
    for role in left:
        world.etcd.set(f"writer/{role}", inc=role, role=role, attempt="lake.p-1", pod="p-1")
    world.etcd.set("writer/dead", inc="dead", role="writer")
    world.settle("dead")
    world.instant(T1, "dead")
    world.run()
    assert used == [{"is": wanted}]


def test_an_agent_that_takes_over_drains_again(world: World) -> None:
    """F35: what the one before has waited is not known."""
    world.settler.drain = 10.0
    world.settler._since[("somebody", T1)] = 0.0
    world.instant(T1, "left", "Abandoned")
    assert world.run() == 0
    assert f"instant/{T1}" in world.etcd.keys


def test_after_a_clean_exit_the_sweep_comes_again_too(world: World) -> None:
    world.instant(T1, "left", "Abandoned")
    world.run()
    world.run()
    assert world.swept == [T1, T1]
    assert not world.etcd.keys


def test_a_late_requested_file_of_a_writer_that_left_is_rolled_back(world: World) -> None:
    """Given up when it was gone.

    Its requested file was on the wire and landed afterwards, without a record.
    """
    world.etcd.set("writer/alive", inc="alive")
    world.instant(T1, "alive", "Abandoned")
    world.fate[T1] = Outcome.GONE
    world.run()
    assert f"instant/{T1}" not in world.etcd.keys
    world.fate[T1] = Outcome.ROLLED_BACK
    world.run()
    assert "done/abandoned-alive" in world.etcd.keys, "its owner lives: not yet"
    del world.etcd.keys["writer/alive"]
    world.run()
    assert not world.etcd.keys


def test_a_failing_last_look_blocks_nothing_else(world: World) -> None:
    world.instant(T1, "left", "Abandoned")
    world.run()
    world.fate[T1] = OutcomeUnknown("the listing failed")
    world.settle("dead")
    world.instant(T2, "dead")
    assert world.run() == 1
    assert world.record("dead")["phase"] == "Swept"
    assert "done/abandoned-left" in world.etcd.keys


def test_what_had_ended_before_it_was_given_up_is_not_remembered(world: World) -> None:
    """An agent's own clustering that lost to a writer: none of its tasks is left, so nothing can be
    late, and archival does not wait for the agent's end.
    """
    world.etcd.set("writer/me", inc="me")
    world.instant(T1, "me", "Abandoned")
    world.settler.ended.add(T1)
    assert world.run() == 1
    assert world.swept == [T1]
    assert f"instant/{T1}" not in world.etcd.keys
    assert not [key for key in world.etcd.keys if key.startswith("done/")]


def test_a_lost_executor_may_be_late_with_what_had_ended(world: World) -> None:
    """F4: every task that the agent knows of has ended.

    One that runs where it cannot see may still write.
    """
    world.etcd.set("writer/me", inc="me")
    world.instant(T1, "me", "Abandoned")
    world.settler.ended.add(T1)
    world.settler.lost = lambda: True
    assert world.run() == 1
    assert world.etcd.keys["done/abandoned-me"].value["instants"] == [T1]


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("left", ["", "instant", "swept once"])
def test_an_agent_leaves_by_itself_unless_a_lost_executor_may_write_for_it(
    world: World, *, lost: bool, left: str
) -> None:
    world.settler.lost = lambda: lost
    world.instant(T1, "another", "Abandoned")
    if left == "instant":
        world.instant(T2, "agent", "Abandoned")
    elif left:
        world.etcd.set("done/abandoned-agent", inc="agent", instants=[T2])
    assert world.settler.must_be_proven_dead() == (lost and bool(left))


def test_a_fenced_agent_takes_nothing_more(world: World) -> None:
    """F48: its process lives on for other tables."""
    session: Any = world.settler.session
    session.state = "FENCED"
    world.settle("dead")
    world.instant(T1, "dead")
    assert world.run() == 0
    assert world.etcd.keys[f"instant/{T1}"].value.get("claimedBy") is None
    assert world.record("dead")["instants"][T1]["outcome"] is None


def test_what_was_completed_at_its_owners_word_is_looked_at_again_after_its_end(world: World) -> None:
    """F36: a lost executor may write after the commit.

    The record of the instant has stayed for that.
    """
    world.etcd.set("writer/w", inc="w")
    world.instant(T1, "w", "Abandoned")
    world.fate[T1] = Outcome.COMPLETED
    assert world.run() == 1
    assert world.etcd.keys["done/abandoned-w"].value["instants"] == [T1]
    world.swept.clear()
    world.run()
    assert world.swept == []
    world.settle("w")
    world.run()
    assert world.swept == [f"unnamed {T1}"]
    assert world.record("w")["instants"][T1]["outcome"] == "Completed"
    assert "done/abandoned-w" not in world.etcd.keys


def test_abandoned_of_a_suspect_waits_for_its_settling(world: World) -> None:
    world.settle("dead", "Terminating")
    world.instant(T1, "dead", "Abandoned")
    assert world.run() == 0
    assert world.etcd.keys[f"instant/{T1}"].value["state"] == "Abandoned"


def test_an_unrecorded_instant_is_foreign(world: World) -> None:
    """I7: a rollback that would touch an instant without any record is not done."""
    world.settle("dead")
    world.instant(T1, "dead")
    world.touches[T1] = [T3]
    assert world.run() == 0
    assert world.record("dead")["instants"][T1]["outcome"] is None


def test_claims_are_given_back_on_a_clean_exit(world: World) -> None:
    world.instant(T1, "dead", claimedBy="agent")
    world.instant(T2, "dead", claimedBy="other")
    world.settler.release_claims()
    assert "claimedBy" not in world.etcd.keys[f"instant/{T1}"].value
    assert world.etcd.keys[f"instant/{T2}"].value["claimedBy"] == "other"


def test_stopping_stops_between_instants(world: World) -> None:
    world.settle("dead")
    world.instant(T1, "dead")
    records = Records.from_entries(world.etcd.range(""), prefix=PREFIX)
    assert world.settler.run(records, stopping=lambda: True) == 0
    assert world.record("dead") == {"inc": "dead", "phase": "RollingBack"}


def protocol(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [
        json.loads(line.removeprefix("PROTOCOL "))
        for line in capsys.readouterr().err.splitlines()
        if line.startswith("PROTOCOL ")
    ]


def test_the_log_tells_outcomes_and_lost_answers(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Each outcome stands in the protocol log.

    A compare-and-set without an answer is logged as unknown, never as refused or done.
    """
    world.settle("dead")
    world.instant(T1, "dead")
    world.run()
    lines = [line for line in protocol(capsys) if line["action"] == "settle-update"]
    assert [(line.get("instant"), line.get("outcome"), line["detail"]) for line in lines] == [
        (T1, "RolledBack", "RollingBack"),
        (None, None, "Swept"),
    ]

    def silent(key: str) -> None:
        raise ConnectionError("no answer")

    world.settle("other")
    world.instant(T2, "other")
    world.etcd.before_cas = silent
    with pytest.raises(ConnectionError):
        world.run()
    (line,) = [line for line in protocol(capsys) if line["action"] == "settle-update"]
    assert (line["ok"], line["rev"], line["detail"], line["instant"]) == (False, 0, "unknown", T2)


def test_the_log_tells_of_given_up_records(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """The removal of an Abandoned record is logged when it happened, and so is the claim of an
    instant whose record is gone.
    """
    world.etcd.set("writer/living", inc="living")
    world.instant(T1, "living", state="Abandoned")
    world.run()
    assert [(line["action"], line["ok"]) for line in protocol(capsys)] == [("claim", True), ("done", True)]
    world.etcd.delete("writer/living", world.etcd.keys["writer/living"].mod_revision)
    world.run()
    found = [(line["action"], line.get("key")) for line in protocol(capsys)]
    assert found == [("claim-unrecorded", "settle/living"), ("done", None)]


@pytest.mark.parametrize("fate", [Outcome.ROLLED_BACK, Outcome.GONE])
def test_the_log_of_a_given_up_instant_comes_after_its_owners_word(
    world: World, fate: Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one that is gone nothing was claimed before: without the record's revision its line would
    stand anywhere in the trace.
    """
    world.etcd.set("writer/living", inc="living", role="writer")
    world.instant(T1, "living")
    world.instant(T1, "living", state="Abandoned")
    word = world.etcd.keys[f"instant/{T1}"].mod_revision
    world.fate[T1] = fate
    assert world.run() == 1
    lines = [
        json.loads(line.removeprefix("PROTOCOL "))
        for line in capsys.readouterr().err.splitlines()
        if line.startswith("PROTOCOL ")
    ]
    (done,) = [line for line in lines if line["action"] == "done"]
    assert (done["instant"], done["ok"], done["detail"]) == (T1, True, f"abandoned {fate.value}")
    assert done["rev"] >= word
