"""An agent is given so many tables; those that are more have another one, and none moves."""

from __future__ import annotations

import asyncio
from typing import Any

from hudi_contract import naming
from hudi_operator.api.spec import TableSpec
from hudi_operator.api.tolerant import MOST_AGENTS, agents_of
from hudi_operator.control.index import TableIndex
from hudi_operator.model.config import AgentConfig, OperatorConfig
from hudi_operator.model.facts import EtcdFacts, PodFacts
from hudi_operator.plan.core.view import build_view
from tests.support import observe_ports
from tests.support.observe_ports import Ports

JsonDict = dict[str, Any]
CAP = 3
CONFIG = OperatorConfig(spark_image="image")


def table(name: str, stated: str = "", uid: str = "", **spec: Any) -> JsonDict:
    """A HudiTable; ``stated``: the agent that its status names."""
    made: JsonDict = {
        "apiVersion": naming.API_VERSION,
        "kind": naming.TABLE_KIND,
        "metadata": {"namespace": "ns", "name": name, "uid": uid or f"uid-of-{name}", "resourceVersion": "1"},
        "spec": {"path": f"s3a://lake/{name}", "recordKeyFields": ["id"], "orderingFields": ["ts"], **spec},
    }
    return {**made, "status": {"agent": stated}} if stated else made


class OfOne(Ports):
    """Both ports of a namespace with this table alone; ``asked``: whose assignment was read."""

    def __init__(self, obj: JsonDict) -> None:
        super().__init__(EtcdFacts(revision=1, cluster_id="c"))
        self._table = obj
        self.asked = set[str]()

    async def get(self, kind: str, namespace: str, name: str) -> JsonDict | None:
        return self._table if kind == naming.TABLE_KIND else None

    async def writers(self, namespace: str, table: str) -> list[JsonDict]:
        return []

    async def list_objects(self, kind: str, namespace: str, **_: str) -> list[JsonDict]:
        return [self._table]

    async def read_table(self, table_id: str, agent: str, *_others: Any) -> EtcdFacts:
        self.asked.add(agent)
        return self._facts


FIRST, SECOND, THIRD, *_ = agents_of(TableSpec.from_object(table("any")), "image")


def filled(*tables: JsonDict) -> TableIndex:
    index = TableIndex("image", max_tables=CAP)
    for each in tables:
        index.put(each)
    return index


def agent(index: TableIndex, obj: JsonDict) -> str:
    return index.agent(obj, TableSpec.from_object(obj), "")


def numbers(index: TableIndex) -> list[int]:
    return [len(index.of_agent("ns", name)) for name in (FIRST, SECOND, THIRD)]


def test_the_first_agent_is_the_one_that_a_table_has_always_had() -> None:
    assert TableSpec.from_object(table("any")).agent_name("image") == FIRST
    assert len(set(agents_of(TableSpec.from_object(table("any")), "image"))) == MOST_AGENTS


def test_a_table_more_than_one_agent_is_given_has_another_one() -> None:
    assert AgentConfig().max_tables == 200
    assert numbers(filled(*(table(f"t{n}") for n in range(CAP)))) == [CAP, 0, 0]
    assert numbers(filled(*(table(f"t{n}") for n in range(CAP + 1)))) == [CAP, 1, 0]
    assert numbers(filled(*(table(f"t{n}") for n in range(2 * CAP + 1)))) == [CAP, CAP, 1]


def test_a_table_that_is_gone_gives_its_place_back() -> None:
    index = filled(*(table(f"t{n}") for n in range(CAP + 1)))
    index.remove(("ns", "t0"))
    index.put(table("new"))
    assert numbers(index) == [CAP, 1, 0]


def test_no_table_moves_by_itself() -> None:
    """Neither to where there is room, nor from where there are too many."""
    tables = [table(f"t{n}") for n in range(CAP + 1)]
    index = filled(*tables)
    last = tables[-1]
    assert agent(index, last) == SECOND
    index.remove(("ns", "t0"))
    index.put(last)
    assert agent(index, last) == SECOND, "it was chosen before"
    said = table("t9", SECOND)
    assert agent(filled(), said) == SECOND, "another operator has chosen it"
    crowded = filled(*(table(f"t{n}", FIRST) for n in range(2 * CAP)))
    assert numbers(crowded) == [2 * CAP, 0, 0]
    assert agent(crowded, table("new")) == SECOND


def test_the_agent_of_another_access_is_none_of_its() -> None:
    index = filled(*(table(f"t{n}") for n in range(CAP)))
    other = table("t0", FIRST, image="another")
    chosen = agent(index, other)
    assert chosen == TableSpec.from_object(other).agent_name("image")
    assert chosen not in (FIRST, SECOND)
    assert agent(index, table("x", "hudi-agent-of-somebody")) == SECOND
    again = table("t0", uid="made again")
    full = filled(*(table(f"t{n}", FIRST) for n in range(CAP + 1)))
    assert agent(full, again) == SECOND, "another table of the same name"


def test_an_agent_of_its_own_is_never_full() -> None:
    index = TableIndex("image", max_tables=1)
    for name in ("a", "b"):
        own = table(name, agent={})
        index.put(own)
        assert agent(index, own) == TableSpec.from_object(own).agent_name("image")


def test_there_is_an_end_to_the_agents() -> None:
    index = TableIndex("image", max_tables=1)
    for n in range(MOST_AGENTS + 2):
        index.put(table(f"t{n}"))
    *_, last = agents_of(TableSpec.from_object(table("any")), "image")
    assert len(index.of_agent("ns", last)) == 3


def test_what_is_chosen_is_what_is_planned_with() -> None:
    """The keys and the pods that are read are those of the agent that the plan is about."""
    found = OfOne(table("flights"))
    ports: Any = found
    full = filled(*(table(f"t{n}", FIRST) for n in range(CAP)))
    observer = observe_ports.observer(ports, index=full, config=CONFIG)
    observed = asyncio.run(observer.observe(("ns", "flights")))
    assert observed.agent == build_view(observed, CONFIG).agent == SECOND
    assert found.asked == {SECOND}


def test_an_agent_that_is_not_the_first_is_in_use() -> None:
    """Another table of the namespace is served by it: its pod is needed."""

    def pod(name: str) -> PodFacts:
        labels = {**naming.MANAGED, naming.LABEL_ROLE: naming.ROLE_AGENT, naming.LABEL_AGENT: name}
        return PodFacts("ns", f"{name}-1", name, labels, "Running", "n", deleting=False, finalizers=(), containers=())

    class Crowded(OfOne):
        async def list_objects(self, kind: str, namespace: str, **_: str) -> list[JsonDict]:
            return [self._table, table("other", SECOND)]

        async def pods(self, namespace: str, *, labels: str) -> list[Any]:
            return [pod(FIRST), pod(SECOND)]

        async def nodes(self, names: list[str]) -> dict[str, Any]:
            return {}

    ports: Any = Crowded(table("flights", FIRST))
    observer = observe_ports.observer(ports, index=filled(), config=CONFIG)
    assert asyncio.run(observer.observe(("ns", "flights"))).agents_in_use == {SECOND}
