"""Events are for people: nothing that decides waits for them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from hudi_operator.control import executor
from hudi_operator.control.executor import Executor
from hudi_operator.control.timers import Timers
from hudi_operator.model.facts import Nodes, Observed
from hudi_operator.model.objects import Objects
from hudi_operator.model.ports import Conflict
from hudi_operator.plan.core import actions as act

OBSERVED = Observed(Objects(None), pods=(), nodes=Nodes(), etcd=None)


class Ports:
    """Kubernetes and etcd, as far as they are asked. An event takes ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self.seen: list[str] = []
        self._seconds = seconds

    async def event(self, **said: Any) -> None:
        await asyncio.sleep(self._seconds)
        self.seen.append(said["reason"])

    async def delete(self, *_: object, **__: object) -> None:
        self.seen.append("delete")

    async def unlock(self, *_: object, **__: object) -> bool:
        self.seen.append("unlock")
        return False


def perform(ports: Any, *actions: act.Action) -> None:
    made = Executor(kubernetes=ports, etcd=ports, timers=Timers(), check_leader=lambda: None)
    asyncio.run(made.perform(("ns", "t"), OBSERVED, act.Plan("", actions)))


def event(reason: str) -> act.EmitEvent:
    return act.EmitEvent("HudiTable", "ns", "t", "u", "Normal", reason, "x")


DELETE = act.DeleteObject("Pod", "ns", "p", "u")


def test_events_come_last() -> None:
    ports = Ports(0)
    perform(ports, event("One"), DELETE, event("Two"))
    assert ports.seen == ["delete", "One", "Two"]


def test_events_of_what_was_done_come_also_when_something_after_it_fails() -> None:
    ports = Ports(0)
    with pytest.raises(Conflict):
        perform(ports, event("One"), act.Unlock("t", "i", 1), event("Two"))
    assert ports.seen == ["unlock", "One"]


def test_events_that_are_slow_do_not_keep_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """F55: each is given up after some seconds; so are all of one look together."""
    monkeypatch.setattr(executor, "EVENTS_SECONDS", 0.5)
    ports, started = Ports(0.2), time.monotonic()
    perform(ports, *(event(f"E{number}") for number in range(100)), DELETE)
    assert time.monotonic() - started < 5
    assert ports.seen[0] == "delete"
