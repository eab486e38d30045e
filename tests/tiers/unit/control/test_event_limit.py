"""A table has a limited number of events, whatever happens how often."""

from __future__ import annotations

import asyncio
from typing import Any

from hudi_operator.control import event_limit
from hudi_operator.control.event_limit import AT_ONCE, EVERY_SECONDS, LEFT_OUT, EventLimit
from hudi_operator.control.executor import Executor
from hudi_operator.control.timers import Timers
from hudi_operator.model.facts import Nodes, Observed
from hudi_operator.model.objects import Objects
from hudi_operator.plan.core import actions as act

TABLE = ("lake", "orders")


class Limit:
    """The limit with a clock of the test's."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self._limit = EventLimit(lambda: self.now)

    def told(self, number: int, *, kind: str = "HudiWriter", type_: str = "Normal", uid: str = "u") -> str | None:
        event = act.EmitEvent(kind, "lake", "live", uid, type_, "AttemptStarted", f"attempt {number}", number)
        return self._limit.text(TABLE, event, str(number))


def test_a_table_has_some_events_at_once_and_then_one_from_time_to_time() -> None:
    limit = Limit()
    told = [limit.told(number) for number in range(1, 200)]
    assert [number for number, text in enumerate(told, start=1) if text] == list(range(1, AT_ONCE + 1))
    sent = 0
    for number in range(200, 200 + 3600):
        limit.now += 1
        sent += limit.told(number) is not None
    assert sent == 3600 // EVERY_SECONDS
    limit.now += AT_ONCE * EVERY_SECONDS * 10
    assert len([n for n in range(5000, 5100) if limit.told(n)]) == AT_ONCE, "a quiet time saves no more"


def test_the_next_one_says_that_others_were_left_out() -> None:
    limit = Limit()
    for number in range(1, AT_ONCE + 5):
        limit.told(number)
    limit.now += 2 * EVERY_SECONDS
    assert limit.told(100) == f"attempt 100{LEFT_OUT}"
    assert limit.told(101) == "attempt 101"
    limit.now += 2 * EVERY_SECONDS
    long = act.EmitEvent("HudiTable", "lake", "orders", "u", "Warning", "Stalled", "x" * act.EVENT_LIMIT)
    assert len(EventLimit().text(TABLE, long, "k") or "") == act.EVENT_LIMIT


def test_what_is_frequent_does_not_hide_what_is_rare() -> None:
    limit = Limit()
    for number in range(1, 100):
        limit.told(number)
        limit.told(number, type_="Warning", uid="w")
    assert limit.told(100) is None
    assert limit.told(100, kind="HudiTable", type_="Warning") == "attempt 100"


def test_what_happens_again_is_told_again_when_its_event_is_gone() -> None:
    """F251: the API server keeps an event for an hour."""
    limit = Limit()
    assert limit.told(1)
    limit.now += 3599
    assert limit.told(1) is None
    limit.now += 1
    assert limit.told(1)


def test_what_is_remembered_has_a_bound(monkeypatch: Any) -> None:
    monkeypatch.setattr(event_limit, "_REMEMBERED", 50)
    limit = EventLimit(lambda: 0.0)
    for number in range(500):
        event = act.EmitEvent("HudiTable", "lake", f"t{number}", f"u{number}", "Normal", "Ready", "x")
        assert limit.text(("lake", f"t{number}"), event, "")
    assert len(limit._sent) <= 50
    assert len(limit._shares) <= 50


def test_an_executor_sends_no_more() -> None:
    seen: list[str] = []

    class Kubernetes:
        async def event(self, **said: Any) -> None:
            seen.append(said["message"])

    ports: Any = Kubernetes()
    made = Executor(kubernetes=ports, etcd=ports, timers=Timers(), check_leader=lambda: None)
    events = [act.EmitEvent("HudiTable", "ns", "t", "u", "Normal", "Ready", "x", number) for number in range(1, 100)]
    observed = Observed(Objects(None), pods=(), nodes=Nodes(), etcd=None)
    asyncio.run(made.perform(("ns", "t"), observed, act.Plan("", tuple(events))))
    assert seen == ["x"] * AT_ONCE
