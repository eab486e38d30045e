"""What one large object, or many deletions, cost the operator (F629, F644)."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import pytest

from hudi_operator.api import bounds
from hudi_operator.control import memory as shelves
from hudi_operator.control.consents import AT_ONCE
from hudi_operator.control.memory import GONE_SECONDS, Memory, slim
from hudi_operator.model.config import ConsentConfig, OperatorConfig
from hudi_operator.model.facts import EtcdFacts
from hudi_operator.model.objects import Objects
from tests.support.large_objects import table, wide, with_secrets, writer
from tests.support.observe_ports import Ports, observer

KEY = ("ns", "flights")


class Asked(Ports):
    """Answers to questions for consent take a while; ``most``: how many were open at once."""

    def __init__(self, writer: dict[str, Any]) -> None:
        super().__init__(EtcdFacts(revision=1, cluster_id="c"), [writer])
        self.open = self.most = self.all = 0

    async def annotations(self, kind: str, namespace: str, name: str) -> dict[str, str] | None:
        self.open += 1
        self.all += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0.001)
        self.open -= 1
        return None


def look(ports: Asked, memory: Memory) -> Any:
    config = OperatorConfig(consent=ConsentConfig("Required", "Required"))
    return asyncio.run(observer(ports, config=config, memory=memory).observe(KEY))


def test_one_look_asks_for_few_secrets_at_once() -> None:
    ports = Asked(writer(with_secrets(40)))
    assert len(look(ports, Memory()).consents) == ports.all == 40
    assert ports.most == AT_ONCE


def test_twenty_thousand_secrets_are_not_asked_for() -> None:
    ports = Asked(writer(with_secrets(20_000)))
    found = look(ports, Memory())
    assert ports.all == 0
    assert "has more than" in found.objects.writer_specs[0].error


def test_a_look_keeps_no_large_object() -> None:
    ports, memory = Asked(writer(wide(400_000))), Memory()
    told = look(ports, memory).objects.writer_specs[0].error
    seen = memory.recall(KEY)
    assert seen is not None
    assert isinstance(seen.writers[0]["spec"]["driver"]["podTemplate"], bounds.TooLarge)
    assert Objects(None, seen.writers).writer_specs[0].error == told


def test_events_keep_no_large_object() -> None:
    """Eight of these took 259 MiB."""
    memory = Memory()
    tracemalloc.start()
    try:
        for number in range(8):
            obj = table(wide(100_000))
            obj["metadata"] |= {"name": f"t{number}", "uid": f"u{number}", "managedFields": [{}]}
            event = slim(obj)
            assert obj["metadata"]["managedFields"], "the object of the event is not ours"
            memory.table(event, deleted=False)
        del obj, event
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()
    assert memory.has_table(("ns", "t7"))


def test_a_deletion_looks_at_old_ones_only(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    shelf = shelves._Shelf[dict[str, Any]](lambda obj: str(obj["uid"]))
    for number in range(1000):
        shelf.drop(("ns", f"w{number}"), {"uid": str(number)}, now)
        now += 1.0
    assert len(shelf._gone) == GONE_SECONDS

    class Counted(dict[Any, float]):
        looked = 0

        def __getitem__(self, key: Any) -> float:
            Counted.looked += 1
            return super().__getitem__(key)

        def items(self) -> Any:
            Counted.looked += len(self)
            return super().items()

    shelf._gone = Counted(shelf._gone)
    shelf.drop(("ns", "w999"), {"uid": "999"}, now)  # told twice
    shelf.drop(("ns", "w1000"), {"uid": "1000"}, now)
    assert Counted.looked <= 4
    assert list(shelf._gone)[-2:] == [(("ns", "w999"), "999"), (("ns", "w1000"), "1000")]
    assert list(shelf._gone.values()) == sorted(shelf._gone.values())
