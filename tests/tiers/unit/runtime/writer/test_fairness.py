"""Two writers that have lost too many races to each other take turns.

Nobody waits for ever, and fairness fails no write.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_runtime.process.etcd import Entry
from hudi_runtime.process.result import Reporter, Tally
from hudi_runtime.process.session import Conflict
from hudi_runtime.writer import fairness as turns
from hudi_runtime.writer.fairness import TURNS, Fairness


class Etcd:
    """The keys of one table, with revisions."""

    def __init__(self) -> None:
        self.keys: dict[str, Entry] = {}
        self.revision = 0
        self.answers, self.looks = True, 0

    def put(self, key: str, value: Any) -> int:
        self.revision += 1
        self.keys[key] = Entry(key, dict(value), self.revision)
        return self.revision

    def ranges(self, *prefixes: str) -> list[list[Entry]]:
        if not self.answers:
            raise ConnectionError
        self.looks += 1
        return [[entry for key, entry in sorted(self.keys.items()) if key.startswith(prefix)] for prefix in prefixes]


class Writer:
    """One attempt: its turns, and its view of a timeline in which `winners` says who
    has completed what.
    """

    def __init__(self, etcd: Etcd, name: str, *, after: int = 2, priority: int = 0, early: bool = False) -> None:
        self.etcd, self.name, self.waits = etcd, name, 0
        self.pending: set[str] = set()
        self.while_waiting: Callable[[int], object] = self._nobody_comes
        etcd.put(f"writer/inc-{name}", {"attempt": f"default.{name}-1", "priority": priority})
        etcd.put(f"alive/inc-{name}", {})
        session: Any = SimpleNamespace(
            attempt=f"default.{name}-1", inc=f"inc-{name}", etcd=etcd, may_yield=lambda _: None
        )
        self.reporter = Reporter(session, Tally())
        table: Any = SimpleNamespace(timeline=self._timeline, commits=self._commits)
        stop: Any = SimpleNamespace(wait=self._wait)
        self.turns = Fairness(session, table, self.reporter, stop, after=after, early=early)

    def _nobody_comes(self, _: int) -> None:
        raise AssertionError(f"{self.name} waits, and nothing will happen")

    def _wait(self, _: float) -> bool:
        self.waits += 1
        return self.while_waiting(self.waits) is True

    def _timeline(self) -> Any:
        completed = [SimpleNamespace(requested=n, action="commit") for n in ("a", "b", "c")]
        return SimpleNamespace(completed=completed, pending=[SimpleNamespace(requested=n) for n in self.pending])

    def _commits(self, instants: Any) -> Any:
        return [(i, SimpleNamespace(extra={"hudioperator.attempt": f"default.{i.requested}-7"})) for i in instants]

    def loses_to(self, other: str, times: int = 1) -> None:
        for _ in range(times):
            self.turns.lost(Conflict("mine", other, ()))

    def writes(self) -> None:
        """Begin a batch, and stand in its write."""
        self.turns.begin()
        assert not self.turns.wait()
        assert self.reporter.last_stage == "Writing"

    def commits(self) -> None:
        self.turns.committed()
        self.reporter.stage("Committed")

    @property
    def turn(self) -> Any:
        return self.etcd.keys[f"report/attempt/default.{self.name}-1"].value["turn"]


@pytest.fixture
def etcd(monkeypatch: Any) -> Etcd:
    clock = iter(range(1, 10**6))
    monkeypatch.setattr(turns, "now_ms", lambda: next(clock))
    return Etcd()


def test_the_turn_is_asked_for_after_so_many_races_lost_to_one_writer(etcd: Etcd) -> None:
    b = Writer(etcd, "b", after=2)
    b.turns.begin()
    for winner in ("a", "c", "a"):
        b.loses_to(winner)
        assert not b.turns.wait()
        assert b.turn == {}
    b.loses_to("a")
    assert not b.turns.wait(), "a is not there"
    assert b.turn["against"] == "default.a"


def test_the_loser_waits_for_the_write_that_the_winner_is_at(etcd: Etcd) -> None:
    a, b = Writer(etcd, "a", priority=1), Writer(etcd, "b")
    a.writes()
    b.turns.begin()
    b.loses_to("a", times=2)

    def goes_on(times: int) -> None:
        assert times == 1
        a.commits()
        a.writes()

    b.while_waiting = goes_on
    assert not b.turns.wait()
    assert b.waits == 1, "a, of higher priority, waits for nobody: only the write that it was at is waited for"


def test_the_winner_waits_until_the_loser_has_committed(etcd: Etcd) -> None:
    a, b = Writer(etcd, "a"), Writer(etcd, "b")
    b.turns.begin()
    b.loses_to("a", times=2)
    assert not b.turns.wait()
    a.while_waiting = lambda times: times == 3 and b.commits()
    a.writes()
    assert a.waits == 3
    assert b.turn == {}
    a.commits()


def test_it_is_not_waited_for_the_dead(etcd: Etcd) -> None:
    a, b = Writer(etcd, "a"), Writer(etcd, "b")
    b.turns.begin()
    b.loses_to("a", times=2)
    assert not b.turns.wait()
    del etcd.keys["alive/inc-b"]
    a.writes()
    assert a.waits == 0


def test_who_began_meanwhile_is_seen(etcd: Etcd) -> None:
    """a has said that it writes, and has no instant yet: it has looked for wishes before this one
    stood there.
    """
    a, b = Writer(etcd, "a"), Writer(etcd, "b")
    a.writes()
    b.turns.begin()
    b.loses_to("a", times=2)
    b.while_waiting = lambda _: a.commits()
    assert not b.turns.wait()
    assert b.waits == 1


def test_an_application_is_waited_for_by_its_instants(etcd: Etcd) -> None:
    a, b = Writer(etcd, "a"), Writer(etcd, "b")
    a.reporter.stage("Writing")
    etcd.put("instant/20260101000000000", {"inc": "inc-a", "state": "Pending"})
    b.turns.begin()
    b.loses_to("a", times=2)
    b.while_waiting = lambda _: etcd.put("instant/20260101000000000", {"inc": "inc-a", "state": "Abandoned"}) and None
    assert not b.turns.wait()
    assert b.waits == 1
    assert a.reporter.turn is None


def test_of_two_wishes_the_older_one_goes_first(etcd: Etcd) -> None:
    a, b = Writer(etcd, "a"), Writer(etcd, "b")
    for writer, other in ((a, "b"), (b, "a")):
        writer.turns.begin()
        writer.loses_to(other, times=2)
        writer.reporter.stage("Retrying")
    assert not a.turns.wait()
    b.while_waiting = lambda _: a.commits()
    assert not b.turns.wait()
    assert b.waits == 1


def test_after_some_turns_it_is_tried_without(etcd: Etcd) -> None:
    b = Writer(etcd, "b", after=3)
    b.turns.begin()
    b.loses_to("a", times=3)
    for _ in range(TURNS):
        assert not b.turns.wait()
        assert b.turn["against"] == "default.a"
        b.commits()
        b.turns.begin()
    assert not b.turns.wait()
    assert b.turn == {}
    b.loses_to("a")
    assert not b.turns.wait()
    assert b.turn["against"] == "default.a", "one lost race is enough to come back"


def test_nobody_waits_for_ever(etcd: Etcd, monkeypatch: Any) -> None:
    a, b = Writer(etcd, "a"), Writer(etcd, "b")
    b.turns.begin()
    b.loses_to("a", times=2)
    assert not b.turns.wait()
    clock = iter(range(0, 10**6, 100))
    monkeypatch.setattr(turns.time, "monotonic", lambda: float(next(clock)))
    a.while_waiting = lambda _: None
    a.writes()
    assert 3 <= a.waits <= 7


def test_fairness_does_not_fail_a_write(etcd: Etcd) -> None:
    a, b = Writer(etcd, "a"), Writer(etcd, "b")
    b.turns.begin()
    b.loses_to("a", times=2)
    assert not b.turns.wait()
    etcd.answers = False
    a.writes()
    assert a.waits == 0


def test_who_met_a_marker_waits_for_it_and_for_its_own_last_try(etcd: Etcd) -> None:
    """No race was lost: it is not counted as one.

    The markers of the own last try would stop the next one.
    """
    b = Writer(etcd, "b", after=1, early=True)
    b.turns.begin()
    b.turns.lost(Conflict("mine", "earlier", ("p/f",), early=True))
    b.pending = {"mine", "earlier"}
    b.while_waiting = lambda times: b.pending.discard("earlier" if times == 1 else "mine")
    assert not b.turns.wait()
    assert (b.waits, b.turn) == (2, {})
    b.loses_to("a")
    b.pending = {"mine"}
    assert not b.turns.wait()
    assert b.waits == 3
    b.turns.begin()
    b.pending = {"mine"}
    assert not b.turns.wait()
    assert b.waits == 3, "another batch"


def test_who_is_asked_to_stop_does_not_wait(etcd: Etcd) -> None:
    a, b = Writer(etcd, "a"), Writer(etcd, "b")
    b.turns.begin()
    b.loses_to("a", times=2)
    assert not b.turns.wait()
    a.while_waiting = lambda _: True
    a.turns.begin()
    assert a.turns.wait()


def test_zero_switches_it_off(etcd: Etcd) -> None:
    b = Writer(etcd, "b", after=0)
    b.turns.begin()
    b.loses_to("a", times=5)
    assert not b.turns.wait()
    assert b.turn == {}


def test_a_write_that_nobody_stands_before_looks_once(etcd: Etcd) -> None:
    """One transaction of etcd; its answer is of one revision."""
    a = Writer(etcd, "a")
    Writer(etcd, "b")
    a.writes()
    assert etcd.looks == 1
