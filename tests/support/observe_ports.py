"""Both ports of one HudiTable, and an observer on them, for looks in unit tests."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hudi_contract import naming
from hudi_operator.control.index import TableIndex
from hudi_operator.control.observe import Observer
from hudi_operator.control.timers import Timers
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import EtcdFacts

JsonDict = dict[str, Any]

TABLE = {
    "apiVersion": naming.API_VERSION,
    "kind": naming.TABLE_KIND,
    "metadata": {"namespace": "ns", "name": "flights", "uid": "u", "generation": 1, "resourceVersion": "1"},
    "spec": {"path": "s3a://lake/flights", "recordKeyFields": ["id"], "orderingFields": ["ts"]},
}


class Ports:
    """Both ports. ``lists``: what the lists of writers answer, one after the other."""

    def __init__(self, facts: EtcdFacts, *lists: list[JsonDict]) -> None:
        self._facts, self._lists = facts, list(lists)

    async def get(self, kind: str, namespace: str, name: str) -> JsonDict | None:
        return TABLE if kind == naming.TABLE_KIND else None

    async def list_objects(self, kind: str, namespace: str, **_: str) -> list[JsonDict]:
        assert kind == naming.TABLE_KIND, "no list of a namespace's writers"
        return [TABLE]

    async def writers(self, namespace: str, table: str) -> list[JsonDict]:
        return [w for w in self._lists.pop(0) if w["spec"]["tableRef"]["name"] == table]

    async def list_metadata(self, kind: str, namespace: str, *, labels: str) -> list[JsonDict]:
        return []

    async def pods(self, namespace: str, *, labels: str) -> list[Any]:
        return []

    def floors(self) -> dict[str, int]:
        return {}

    def clock_offset_ms(self, since: float = 0.0) -> int:
        return 0

    async def read_table(self, table_id: str, agent: str, *_others: Any) -> EtcdFacts:
        return self._facts

    async def read_gates(self, table_ids: Collection[str]) -> dict[str, EtcdFacts]:
        return {table_id: await self.read_table(table_id, "") for table_id in table_ids}


def observer(ports: Any, **others: Any) -> Observer:
    """An observer that reads from both ports; ``others``: what is not as usual."""
    usual: JsonDict = {
        "index": TableIndex("image"),
        "timers": Timers(),
        "config": OperatorConfig(),
        "authority": str,
    }
    return Observer(kubernetes=ports, etcd=ports, **{**usual, **others})
