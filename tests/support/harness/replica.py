"""One operator process as far as etcd and a HudiTable are concerned: its planner and its etcd
adapter, without an API server.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from hudi_contract import naming
from hudi_operator.adapters.etcd import EtcdStore, RevisionNotes, Revisions
from hudi_operator.adapters.etcd_pulse import Pulse
from hudi_operator.adapters.etcd_rpc import Connection
from hudi_operator.model.config import EtcdConfig, OperatorConfig
from hudi_operator.model.facts import Nodes, Observed
from hudi_operator.model.objects import Objects
from hudi_operator.plan.core.actions import PutGate, UpdateStatus
from hudi_operator.plan.table import plan_table
from tests.support.awaited import run
from tests.support.harness.servers import Etcd, wait_for

JsonDict = dict[str, Any]

NAMESPACE = "ns"
PATH = "s3a://lake/flights"
T = naming.table_id(PATH)
AGENT = str(uuid.uuid4())


def huditable() -> JsonDict:
    meta = {
        "name": "flights",
        "namespace": NAMESPACE,
        "uid": "t-1",
        "generation": 1,
        "resourceVersion": "1",
        "finalizers": [naming.SETTLE_FINALIZER],
    }
    lock = {"leaseSeconds": 5, "keepAliveSeconds": 1, "rpcTimeoutSeconds": 2}
    spec = {"path": PATH, "recordKeyFields": ["id"], "orderingFields": ["ts"], "lock": lock}
    return {"apiVersion": naming.API_VERSION, "kind": naming.TABLE_KIND, "metadata": meta, "spec": spec, "status": {}}


class Replica:
    """One operator process, as far as etcd and the HudiTable are concerned."""

    def __init__(self, etcd: Etcd, table: JsonDict, notes: Mapping[str, str]) -> None:
        """``notes``: what the leader before has left in the Lease."""
        pki = etcd.pki
        config = EtcdConfig(
            (etcd.endpoint,), "/hudi", str(pki / "ca.crt"), str(pki / "operator.crt"), str(pki / "operator.key")
        )
        self._connection, revisions = Connection(config), Revisions()
        self.notes = RevisionNotes(revisions)
        self.notes.read(notes)
        self.store = EtcdStore(self._connection, "/hudi", revisions=revisions)
        self.pulse = Pulse(self._connection, "/hudi", revisions=revisions)
        self.told: list[str] = []
        revisions.set_back = lambda: self.told.append("set back")
        self._table = table

    def look(self) -> str:
        """Look once and perform what concerns gate and status; returns the gate's state."""
        floors = self.store.floors()
        facts = run(self.store.read_table(T, "agent-x"))
        observed = Observed(
            objects=Objects(self._table),
            pods=(),
            nodes=Nodes(),
            etcd=facts,
            now_ms=int(time.time() * 1000),
            fresh_uuid=str(uuid.uuid4()),
            revision_floor=floors.get(facts.cluster_id, 0),
            known_cluster_id=facts.cluster_id,
        )
        for action in plan_table(observed, OperatorConfig()).actions:
            if isinstance(action, PutGate):
                assert run(self.store.put_gate(T, action.value, expected_mod=action.expected_mod))
            elif isinstance(action, UpdateStatus):
                self._table["status"] = action.status
        gate = run(self.store.read_table(T, "agent-x")).gate
        return str(gate.value["state"]) if gate is not None else ""

    def until(self, state: str) -> None:
        wait_for(f"gate {state}", lambda: self.look() == state, seconds=10)

    def admit(self, name: str) -> JsonDict:
        """A pod whose JVM may register."""
        assert run(self.store.put_admit(T, attempt=f"{NAMESPACE}.{name}", role="writer"))
        return {"metadata": {"namespace": NAMESPACE, "name": name, "uid": f"uid-{name}"}}

    def unlock_dead(self) -> None:
        """The lock of a JVM that has ended; proof and drain are played."""
        lock = run(self.store.read_table(T, "agent-x")).lock
        if lock is not None:
            inc = lock.value["inc"]
            assert run(
                self.store.fence(
                    T,
                    inc=inc,
                    attempt="",
                    settle={"phase": "Fenced", "reason": "PodTerminated", "times": {}},
                    if_not_alive=False,
                )
            )
            assert run(self.store.unlock(T, inc=inc, create_revision=lock.create_revision))

    def close(self) -> None:
        self._connection.close()


def agent_reports(etcd: Etcd) -> None:
    """The agent is registered and has found the table."""
    etcd.put(
        f"/hudi/tables/{T}/writer/{AGENT}",
        {"inc": AGENT, "attempt": f"{NAMESPACE}.agent", "role": "agent", "podUID": "", "wallClockMs": 0},
    )
    etcd.put(f"/hudi/tables/{T}/alive/{AGENT}", {"inc": AGENT, "n": 1})
    etcd.put(f"/hudi/tables/{T}/report/timeline", {"agentInc": AGENT, "exists": True, "atMs": 0})


def stalled(table: JsonDict) -> JsonDict:
    return next(dict(c) for c in table["status"]["conditions"] if c["type"] == "Stalled")
