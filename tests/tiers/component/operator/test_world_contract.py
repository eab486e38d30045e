"""The simulated world of the unit tests and a real etcd answer each action of the operator alike:
when it holds, and what is there afterwards.

What the simulated one cannot at all is said at its top (tests/support/world/simulated_store.py).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hudi_operator.adapters.etcd import EtcdStore, Revisions
from hudi_operator.control.executor import Executor
from hudi_operator.model.facts import Observed
from hudi_operator.model.objects import Objects
from hudi_operator.model.ports import Conflict
from hudi_operator.plan.core import actions as act
from tests.support.harness.etcd_connections import connect
from tests.support.harness.servers import Etcd
from tests.support.world.simulated_world import ConflictError, World

JsonDict = dict[str, Any]
T = "00000000000000bb00000000000000bb"
AGENT = "agent-x"
CONTROL = ("gate", "admit", "fence", "request", "seen")
INC, T1, T2 = "inc-1", "20260101000000001", "20260101000000002"
GATE = {"state": "closed", "mode": "LeaseOnly", "lock": {"drainSeconds": 1}, "tableUID": "u"}
SETTLE = {
    "inc": INC,
    "attempt": "lake.p-1",
    "role": "writer",
    "pod": "p-1",
    "reason": "LeaseGone",
    "phase": "Fenced",
    "instants": {},
    "times": {},
}
LOCK = {"inc": INC, "attempt": "lake.p-1", "podUID": "u", "nonce": "n", "sinceMs": 0}
WRITER = {"inc": INC, "attempt": "lake.p-1", "role": "writer", "pod": "p-1", "podUID": "u"}
INSTANT = {"inc": INC, "action": "commit", "state": "Pending"}
MOVED, DONE = {**SETTLE, "phase": "Terminating"}, {**SETTLE, "phase": "Settled"}
HAS_GATE, HAS_FENCE, HAS_LOCK, HAS_RECORD = (
    ("gate", GATE),
    (f"fence/{INC}", {"inc": INC}),
    ("lock", LOCK),
    (f"settle/{INC}", SETTLE),
)
IS_SETTLED, IS_REGISTERED = (f"settle/{INC}", DONE), (f"writer/{INC}", WRITER)
ADOPTED = {**SETTLE, "reason": "Adopted", "instants": {T1: {"action": "commit", "outcome": None, "failures": 0}}}


class Side:
    """Keys of one table, simulated or real. `revisions` are (create, mod) by key."""

    def set(self, key: str, value: JsonDict) -> None:
        raise NotImplementedError

    def revisions(self, key: str) -> tuple[int, int]:
        raise NotImplementedError

    def perform(self, action: act.Action) -> bool:
        """Whether it held."""
        raise NotImplementedError

    def keys(self) -> dict[str, JsonDict]:
        raise NotImplementedError


class Simulated(Side):
    def __init__(self) -> None:
        self.world = World()
        self.world.make_table(adoption={"policy": "Adopt", "rollbackInstants": [T1]})
        self.world.rolled_back |= {T1, T2}  # the truth that the world checks forgotten instants against

    def set(self, key: str, value: JsonDict) -> None:
        self.world.put(key, value)

    def revisions(self, key: str) -> tuple[int, int]:
        found = self.world.kv.get(key)
        return (found.create, found.mod) if found is not None else (0, 0)

    def perform(self, action: act.Action) -> bool:
        try:
            self.world.perform(action)
        except ConflictError:
            return False
        return True

    def keys(self) -> dict[str, JsonDict]:
        return {key: found.value for key, found in self.world.kv.items()}


class Timers:
    """None is needed."""

    def start(self, *_: Any) -> None:
        raise AssertionError

    stop = start


class Real(Side):
    def __init__(self, etcd: Etcd) -> None:
        self.etcd = etcd
        self.connection = connect(etcd)
        store: Any = EtcdStore(self.connection, "/hudi", revisions=Revisions())
        nothing: Any = None
        timers: Any = Timers()
        self.executor = Executor(kubernetes=nothing, etcd=store, timers=timers, check_leader=lambda: None)

    @staticmethod
    def name(key: str) -> str:
        if key == "assignment":
            return f"/hudi/control/agents/{AGENT}/{T}"
        return f"/hudi/{'control' if key.partition('/')[0] in CONTROL else 'tables'}/{T}/{key}"

    def set(self, key: str, value: JsonDict) -> None:
        done = self.etcd.ctl("root", "put", self.name(key), "--", json.dumps(value))
        assert done.returncode == 0, done.stderr

    def revisions(self, key: str) -> tuple[int, int]:
        found = json.loads(self.etcd.ctl("root", "get", self.name(key), "-w", "json").stdout).get("kvs") or [{}]
        return int(found[0].get("create_revision", 0)), int(found[0].get("mod_revision", 0))

    def perform(self, action: act.Action) -> bool:
        observed = Observed(Objects(None), (), {}, None)
        try:
            asyncio.run(self.executor.perform(("lake", "flights"), observed, act.Plan("", (action,))))
        except Conflict:
            return False
        return True

    def keys(self) -> dict[str, JsonDict]:
        found = {}
        for prefix in (f"/hudi/control/{T}/", f"/hudi/tables/{T}/"):
            found |= {key.removeprefix(prefix): value for key, value in self.etcd.read(prefix).items()}
        agent = self.etcd.read(f"/hudi/control/agents/{AGENT}/{T}")
        return found | ({"assignment": next(iter(agent.values()))} if agent else {})

    def close(self) -> None:
        self.connection.close()
        for prefix in (f"/hudi/control/{T}", f"/hudi/tables/{T}", f"/hudi/control/agents/{AGENT}/{T}"):
            self.etcd.ctl("root", "del", "--prefix", prefix)


@pytest.fixture
def real(etcd: Etcd) -> Iterator[Real]:
    made = Real(etcd)
    made.close()
    made = Real(etcd)
    yield made
    made.close()


Make = Callable[[Side], act.Action]


def mod(key: str, wrong: int = 0) -> Callable[[Side], int]:
    return lambda side: side.revisions(key)[1] + wrong


def case(make: Make, *keys: tuple[str, JsonDict], holds: bool = True) -> Any:
    return make, keys, holds


CASES = {
    "a gate is made": case(lambda s: act.PutGate(T, GATE, 0)),
    "a gate is there already": case(lambda s: act.PutGate(T, GATE, 0), HAS_GATE, holds=False),
    "a gate is changed": case(lambda s: act.PutGate(T, {**GATE, "state": "open"}, mod("gate")(s)), HAS_GATE),
    "a gate has changed": case(
        lambda s: act.PutGate(T, GATE, mod("gate", -1)(s)), HAS_GATE, ("gate", {**GATE, "state": "open"}), holds=False
    ),
    "an attempt is admitted": case(lambda s: act.PutAdmit(T, "lake.p-1", "writer")),
    "an admission is deleted": case(
        lambda s: act.DeleteAdmit(T, "lake.p-1"), ("admit/lake.p-1", {"attempt": "lake.p-1", "role": "writer"})
    ),
    "no admission to delete": case(lambda s: act.DeleteAdmit(T, "lake.p-1")),
    "an agent is assigned": case(lambda s: act.PutAssignment(AGENT, T, {"T": T})),
    "an assignment is taken back": case(lambda s: act.PutAssignment(AGENT, T, None), ("assignment", {"T": T})),
    "a fence": case(
        lambda s: act.Fence(T, INC, "lake.p-1", SETTLE, if_not_alive=False),
        IS_REGISTERED,
        (f"alive/{INC}", {"inc": INC, "n": 1}),
        ("admit/lake.p-1", {"attempt": "lake.p-1", "role": "writer"}),
        HAS_LOCK,
    ),
    "a fence of somebody who is back": case(
        lambda s: act.Fence(T, INC, "lake.p-1", SETTLE, if_not_alive=True),
        (f"alive/{INC}", {"inc": INC, "n": 1}),
        holds=False,
    ),
    "a fence for a lost lease": case(lambda s: act.Fence(T, INC, "lake.p-1", SETTLE, if_not_alive=True), IS_REGISTERED),
    "a second fence": case(lambda s: act.Fence(T, INC, "lake.p-1", SETTLE, if_not_alive=False), HAS_FENCE, holds=False),
    "instants are adopted": case(lambda s: act.Adopt(T, INC, ADOPTED, mod("gate")(s)), HAS_GATE),
    "the gate has changed since": case(lambda s: act.Adopt(T, INC, ADOPTED, mod("gate", -1)(s)), HAS_GATE, holds=False),
    "one of them has a record": case(
        lambda s: act.Adopt(T, INC, ADOPTED, mod("gate")(s)), HAS_GATE, (f"instant/{T1}", INSTANT), holds=False
    ),
    "a settle record moves": case(
        lambda s: act.UpdateSettle(T, INC, MOVED, mod(f"settle/{INC}")(s)), HAS_GATE, HAS_RECORD
    ),
    "a settle record has moved": case(
        lambda s: act.UpdateSettle(T, INC, MOVED, mod(f"settle/{INC}", -1)(s)),
        HAS_GATE,
        HAS_RECORD,
        holds=False,
    ),
    "a settle record of a fence alone": case(lambda s: act.UpdateSettle(T, INC, SETTLE, 0), HAS_GATE, HAS_FENCE),
    "a lock is deleted": case(lambda s: act.Unlock(T, INC, s.revisions("lock")[0]), HAS_GATE, HAS_LOCK, HAS_FENCE),
    "another lock stands": case(
        lambda s: act.Unlock(T, INC, s.revisions("lock")[0] - 1), HAS_GATE, HAS_LOCK, HAS_FENCE, holds=False
    ),
    "a lock without a fence": case(
        lambda s: act.Unlock(T, INC, s.revisions("lock")[0]), HAS_GATE, HAS_LOCK, holds=False
    ),
    "a lock that was written anew": case(
        lambda s: act.Unlock(T, INC, s.revisions("lock")[0]),
        HAS_GATE,
        HAS_LOCK,
        ("lock", {**LOCK, "sinceMs": 1}),
        HAS_FENCE,
    ),
    "an incarnation is settled": case(
        lambda s: act.FinishSettle(T, INC, DONE, mod(f"settle/{INC}")(s), ((T1, mod(f"instant/{T1}")(s)),)),
        HAS_RECORD,
        IS_REGISTERED,
        (f"instant/{T1}", INSTANT),
        (f"instant/{T2}", INSTANT),
    ),
    "an instant has changed": case(
        lambda s: act.FinishSettle(T, INC, DONE, mod(f"settle/{INC}")(s), ((T1, mod(f"instant/{T1}", -1)(s)),)),
        HAS_RECORD,
        (f"instant/{T1}", INSTANT),
        holds=False,
    ),
    "an instant is gone": case(
        lambda s: act.FinishSettle(T, INC, DONE, mod(f"settle/{INC}")(s), ((T1, 3),)), HAS_RECORD, holds=False
    ),
    "a record is collected": case(
        lambda s: act.Collect(T, INC, mod(f"settle/{INC}")(s)),
        HAS_GATE,
        IS_SETTLED,
        HAS_FENCE,
    ),
    "it is registered": case(
        lambda s: act.Collect(T, INC, mod(f"settle/{INC}")(s)),
        HAS_GATE,
        IS_SETTLED,
        HAS_FENCE,
        IS_REGISTERED,
        holds=False,
    ),
    "a report is deleted": case(
        lambda s: act.DeleteReport(T, "attempt/lake.p-1"), ("report/attempt/lake.p-1", {}), ("report/timeline", {})
    ),
    "a record of work is deleted": case(
        lambda s: act.DeleteDone(T, "hold-a", mod("done/hold-a")(s)), ("done/hold-a", {}), ("done/hold-b", {})
    ),
    "a record of work was put once more": case(
        lambda s: act.DeleteDone(T, "hold-a", mod("done/hold-a", -1)(s)), ("done/hold-a", {}), holds=False
    ),
    "a request is put": case(lambda s: act.PutRequest(T, "service-clean", {"id": "service-clean"})),
    "a request is taken back": case(
        lambda s: act.PutRequest(T, "service-clean", None), ("request/service-clean", {"id": "x"})
    ),
    "a sighting": case(lambda s: act.PutSeen(T, INC, {"inc": INC})),
    "a sighting is forgotten": case(lambda s: act.PutSeen(T, INC, None), (f"seen/{INC}", {"inc": INC})),
}


def timeless(keys: dict[str, JsonDict]) -> dict[str, JsonDict]:
    """Without wall clock times, and what a fence and an admission say for people."""
    return {
        key: {
            name: value for name, value in found.items() if name not in ("atMs", "reason") or key.startswith("settle/")
        }
        for key, found in keys.items()
    }


@pytest.mark.parametrize("name", list(CASES))
def test_both_answer_alike(real: Real, name: str) -> None:
    make, keys, holds = CASES[name]
    results = []
    for side in (Simulated(), real):
        for key, value in keys:
            side.set(key, value)
        results.append((side.perform(make(side)), timeless(side.keys())))
    simulated, found = results
    assert found[0] == holds, f"a real etcd: {'held' if found[0] else 'refused'}"
    assert simulated == found


def test_every_action_on_etcd_has_a_case() -> None:
    tried = {type(make(Simulated())) for make, _, _ in CASES.values()}
    kinds = {
        kind
        for kind in vars(act).values()
        if isinstance(kind, type) and "table_id" in getattr(kind, "__dataclass_fields__", ())
    }
    assert tried == kinds
