"""The oracle of the enumerated crashes: each thing that must not happen is told, and a run in order
is not blamed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.crashes import monitor as monitor_module
from tests.campaigns.crashes.agents import not_rolled_back_once
from tests.campaigns.crashes.interruptions import EFFECTS, INTERRUPTIONS
from tests.campaigns.crashes.monitor import EtcdStep, Monitor
from tests.campaigns.crashes.run import differences, drivers, fenced_agents, taken
from tests.support.trace.events import Event

JsonDict = dict[str, Any]
INC, POD, ATTEMPT, T = "inc-1", "load-1", "ns.load-1", "20260101000000000"
RECORD = {
    "inc": INC,
    "podUID": "uid-1",
    "pods": {"uid-2": {}},
    "proofs": {"uid-1": {}, "uid-2": {}},
    "instants": {T: {"outcome": "RolledBack"}},
}
LABELS = {"hudioperator.io/role": "driver"}


class Clock:
    """Time that only the test moves."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(monitor_module, "time", made)
    return made


class Life:
    """The requests of one attempt from its status to the end of its settling, in order.

    A mutant changes them.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock, self.monitor = clock, Monitor("t", drain_seconds=1.0)
        self.record = dict(RECORD)
        self.drain, self.phase, self.revision = 1.0, "Draining", 0

    def etcd(self, action: str, key: str, *operations: tuple[str, str, JsonDict], detail: str = "") -> None:
        step = EtcdStep(action=action, key=key, detail=detail, table="t", operations=operations)
        self.revision += 1
        self.monitor.etcd_sent(step)
        self.monitor.etcd_done(step, revision=self.revision, succeeded=True)

    def status(self) -> None:
        self.monitor.api_done(
            "PUT", "/apis/g/namespaces/ns/hudiwriters/load/status", {"status": {"attempts": [{"pod": POD}]}}, 200, {}
        )

    def admit(self) -> None:
        self.etcd("admit", f"admit/{ATTEMPT}", ("put", f"admit/{ATTEMPT}", {}))

    def create(self) -> None:
        self.monitor.api_done(
            "POST", "/api/v1/namespaces/ns/pods", {"metadata": {"name": POD, "labels": LABELS}}, 201, {}
        )

    def delete(self, **changes: Any) -> None:
        body = {"gracePeriodSeconds": 1, "preconditions": {"uid": "uid-1"}, **changes}
        self.monitor.api_done("DELETE", f"/api/v1/namespaces/ns/pods/{POD}", body, 200, {})

    def draining(self) -> None:
        self.etcd("settle-update", f"settle/{INC}", ("put", f"settle/{INC}", {**self.record, "phase": self.phase}))

    def drop(self) -> None:
        self.monitor.api_done(
            "PATCH", f"/api/v1/namespaces/ns/pods/{POD}", [{}], 200, {"metadata": {"uid": "uid-1", "name": POD}}
        )

    def unlock(self) -> None:
        self.etcd("unlock", "lock", ("delete", "lock", {}), detail=INC)

    def settled(self) -> None:
        settled = {**self.record, "phase": "Settled"}
        self.etcd("settled", f"settle/{INC}", ("put", f"settle/{INC}", settled), ("delete", f"instant/{T}", {}))

    def to_the_drain(self) -> None:
        self.status()
        self.admit()
        self.create()
        self.delete()
        self.draining()
        self.drop()

    def play(self) -> list[str]:
        self.to_the_drain()
        self.clock.now += self.drain
        self.unlock()
        self.settled()
        return self.monitor.wrong


def test_a_life_in_order_is_not_blamed(clock: Clock) -> None:
    assert Life(clock).play() == []


def test_an_older_write_that_is_told_late_takes_nothing_back(clock: Clock) -> None:
    """Of a settle record: the operator's, on which the agent's is based, by another thread."""
    life = Life(clock)
    life.to_the_drain()
    rolling, done = {**RECORD, "phase": "RollingBack", "instants": {}}, {**RECORD, "phase": "RollingBack"}
    life.monitor.agent_wrote(INC, done, life.revision + 1)
    life.etcd("settle-update", f"settle/{INC}", ("put", f"settle/{INC}", rolling))
    assert life.monitor.settles[INC] == done
    life.etcd("settle-update", f"settle/{INC}", ("put", f"settle/{INC}", {**done, "phase": "Swept"}))
    assert life.monitor.settles[INC]["phase"] == "Swept"


def _skip(step: str) -> Callable[[Life], None]:
    return lambda life: setattr(life, step, lambda: None)


def _phase(life: Life) -> None:
    life.phase = "Terminating"


def _half_proven(life: Life) -> None:
    life.record["proofs"] = {"uid-1": {}}


def _unproven(life: Life) -> None:
    life.record["proofs"] = {"uid-2": {}}


def _impatient(life: Life) -> None:
    life.drain = 0.5


def _no_outcome(life: Life) -> None:
    life.record["instants"] = {T: {"outcome": None}}


def _force(life: Life) -> None:
    delete = life.delete
    life.delete = lambda: delete(gracePeriodSeconds=0)  # type: ignore[method-assign]


def _any_uid(life: Life) -> None:
    delete = life.delete
    life.delete = lambda: delete(preconditions={})  # type: ignore[method-assign]


MUTANTS = [
    (_skip("status"), "I6: pod load-1 is created before a status names it"),
    (_skip("admit"), "F23: pod load-1 is created before it is admitted"),
    (_force, "is deleted by force"),
    (_any_uid, "is deleted without its uid"),
    (_skip("draining"), "I1: unlock is sent in the phase None"),
    (_phase, "I1: unlock is sent in the phase Terminating"),
    (_half_proven, "I1: unlock is sent without a proof for every pod"),
    (_unproven, "F14: the evidence of load-1 is dropped before the proof of inc-1 is written"),
    (_impatient, "I1: unlock is sent 0.50 s after the drain began"),
    (_no_outcome, "I4: the record of 20260101000000000 is deleted without an outcome"),
]


@pytest.mark.parametrize(("mutate", "said"), MUTANTS, ids=[said[:50] for _, said in MUTANTS])
def test_what_must_not_happen_is_told(clock: Clock, mutate: Callable[[Life], None], said: str) -> None:
    life = Life(clock)
    mutate(life)
    assert any(said in sentence for sentence in life.play()), life.monitor.wrong


def test_a_drain_begins_again_with_the_next_operator(clock: Clock) -> None:
    """F7: its clock is another process's."""
    life = Life(clock)
    life.to_the_drain()
    clock.now += 0.9
    life.monitor.killed()
    life.monitor.looked()
    clock.now += 0.5
    life.unlock()
    assert any("0.50 s after the drain began" in sentence for sentence in life.monitor.wrong)


def test_a_fence_is_permanent(clock: Clock) -> None:
    """I2."""
    life = Life(clock)
    life.etcd("other", f"fence/{INC}", ("delete", f"fence/{INC}", {}))
    assert life.monitor.wrong == [f"I2: fence/{INC} is deleted"]


def test_a_refused_request_has_no_effect(clock: Clock) -> None:
    life = Life(clock)
    life.monitor.api_done("DELETE", f"/api/v1/namespaces/ns/pods/{POD}", {"gracePeriodSeconds": 0}, 409, {})
    assert life.monitor.wrong == []


ADMIT = Event("t", "operator", "operator", "admit", 1, True, key="admit/ns.load-U-1")
FENCE = Event("t", "operator", "operator", "fence", 5, True, key=f"fence/{INC}")
SECOND = replace(ADMIT, rev=7, key="admit/ns.load-U-2")


def test_a_second_driver_of_an_attempt_is_told() -> None:
    assert drivers({"pods/load-U-1": [1, 1], "pods/load-U-2": [1, 0]}, [ADMIT, FENCE, SECOND]) == []
    assert drivers({"pods/load-U-1": [2, 1]}, [ADMIT]) == ["pods/load-U-1: 2 pods were created"]


def test_an_attempt_after_one_that_has_left_is_not_blamed() -> None:
    left = Event("t", INC, "writer", "clean-exit", 6, True)
    assert drivers({}, [ADMIT, left, SECOND]) == []
    assert drivers({}, [ADMIT, replace(left, role="agent"), SECOND]) != []


@pytest.mark.parametrize(
    "events",
    [[ADMIT, SECOND], [ADMIT, SECOND, replace(FENCE, rev=9)], [ADMIT, SECOND, replace(FENCE, rev=6, ok=False)]],
)
def test_an_attempt_before_its_predecessor_is_fenced_is_told(events: list[Event]) -> None:
    assert drivers({}, events) == ["F5: the second attempt was admitted before the first was fenced or had left"]


def test_a_lost_an_additional_and_a_changed_object_are_told() -> None:
    wanted = {"pods/a": {"phase": "Running"}, "configmaps/a": {"x": 1}}
    assert differences(wanted, dict(wanted), "end state") == []
    found = differences(wanted, {"pods/a": {"phase": "Failed"}, "secrets/a": {}}, "end state")
    assert found == [
        'end state: configmaps/a: should be {"x": 1}, is null',
        'end state: pods/a: phase: should be "Running", is "Failed"',
        "end state: secrets/a: should be null, is {}",
    ]


# ---- the table


ROLLBACK = "20260101000005000_20260101000005100.rollback"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """One dead instant, rolled back."""
    timeline = tmp_path / ".hoodie/timeline"
    timeline.mkdir(parents=True)
    (tmp_path / ".hoodie/.temp").mkdir()
    (timeline / "20251231000000000_20251231000000100.commit").write_bytes(b"x")
    (timeline / ROLLBACK).write_bytes(b"rolled back " + T.encode())
    return tmp_path


def test_one_rollback_is_not_blamed(table: Path) -> None:
    assert not_rolled_back_once(table, [T]) == []


def _again(table: Path) -> None:
    (table / ".hoodie/timeline/20260101000006000_20260101000006100.rollback").write_bytes(T.encode())


def _of_another(table: Path) -> None:
    (table / ".hoodie/timeline" / ROLLBACK).write_bytes(b"20251231000000000")


def _marker(table: Path) -> None:
    (table / ".hoodie/.temp" / T).mkdir()


def _data(table: Path) -> None:
    (table / "a").mkdir()
    (table / f"a/x-0_0-1-1_{T}.parquet").write_bytes(b"")


def _unfinished(table: Path) -> None:
    (table / ".hoodie/timeline/20260101000007000.rollback.requested").write_bytes(b"")


def _never(table: Path) -> None:
    (table / ".hoodie/timeline" / ROLLBACK).unlink()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_again, "has 2 completed rollbacks"),
        (_of_another, "has 0 completed rollbacks"),
        (_never, "has 0 completed rollbacks"),
        (_marker, "is left: ['.hoodie/.temp/"),
        (_data, "is left: ['a/x-0_0-1-1_"),
        (_unfinished, "is still pending"),
    ],
)
def test_what_is_wrong_with_a_table_is_told(table: Path, change: Callable[[Path], None], said: str) -> None:
    change(table)
    assert any(said in sentence for sentence in not_rolled_back_once(table, [T]))


def test_an_interruption_without_effect_does_not_count() -> None:
    assert EFFECTS.keys() == INTERRUPTIONS.keys()
    assert taken({"events of etcd dropped": 1, "events of the API server dropped": 2})
    assert not taken({"events of etcd dropped": 0, "events of the API server dropped": 2})
    assert not taken({}), "a run without interruption is hit by its fault alone"


@pytest.mark.parametrize("alive", [True, False])
def test_only_an_agent_without_a_heartbeat_is_the_machines_fault(alive: bool) -> None:
    def fence(inc: str, **changes: Any) -> Event:
        given = {"table": "t", "actor": "op", "role": "operator", "action": "fence", "rev": 12, "ok": True}
        return Event(**{**given, "key": f"fence/{inc}", "detail": "LeaseGone", **changes})

    asked: list[tuple[str, int]] = []

    def alive_at(inc: str, revision: int) -> bool:
        asked.append((inc, revision))
        return alive

    events = [fence("agent-1"), fence("killed"), fence("agent-1", detail="PodFailed"), fence("agent-1", ok=False)]
    disturbed, wrong = fenced_agents(events, ["agent-1"], alive_at)
    assert asked == [("agent-1", 11)]
    assert (disturbed == "", wrong) == (
        alive,
        ["I11: the agent agent-1 was fenced while it was alive"] if alive else [],
    )
    assert fenced_agents(events, [], alive_at) == ("", [])
