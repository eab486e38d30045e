"""One moment of one table, laid out by a test: the operator's possible view, without a world that
goes on. For tests of single planners.
"""

from __future__ import annotations

from typing import Any

from hudi_contract import naming
from hudi_contract.naming import EVIDENCE_FINALIZER
from hudi_operator.model.facts import PodName
from hudi_operator.plan.core.view import View, build_view
from tests.support.world.simulated_store import CONFIG, NAMESPACE, START_MS, Node, Pod, Store

ATTEMPT_POD = "load-0000-1"
INC = "inc-1"


class Scene(Store):
    """A table with an open gate; a test adds keys, pods and timers, and asks planners of `view`."""

    def __init__(self, **table: Any) -> None:
        super().__init__()
        self.make_table(fencing={"drainSeconds": 10, **table.pop("fencing", {})}, **table)
        self.nodes["n1"] = Node("n1", "node-uid-1", "boot-1")
        assert self.table is not None
        meta = self.table["metadata"]
        lock = {"drainSeconds": 10, "maxClockSkewSeconds": 5}
        self.put(
            "gate",
            {
                "state": "open",
                "mode": "PodTermination",
                "table": f"{NAMESPACE}/flights",
                "tableUID": meta["uid"],
                "lock": lock,
            },
        )

    @property
    def view(self) -> View:
        return build_view(self.observe(), CONFIG)

    def writer(self, name: str = "load") -> str:
        """A HudiWriter with a first attempt in its status.

        Returns the name of the attempt's pod.
        """
        self.make_writer(name)
        obj = self.writers[name]
        pod = f"{name}-{obj['metadata']['uid'][:8]}-1"
        obj["metadata"]["finalizers"] = [naming.SETTLE_FINALIZER]
        obj["status"] = {"attempt": 1, "attempts": [{"number": 1, "pod": pod, "podUID": f"uid-of-{pod}"}]}
        return pod

    def pod(
        self,
        name: str = ATTEMPT_POD,
        *,
        role: str = naming.ROLE_DRIVER,
        phase: str = "Running",
        node: str = "n1",
        owner: str = "",
        **more: Any,
    ) -> Pod:
        """A pod with our finalizer; `phase` terminal: its container has terminated."""
        labels = {
            naming.LABEL_ROLE: role,
            naming.LABEL_TABLE: "flights",
            naming.LABEL_WRITER: name.split("-")[0],
            naming.LABEL_ATTEMPT: "1",
        }
        labels[naming.LABEL_DRIVER] = owner or name
        if role == naming.ROLE_AGENT:
            labels = {naming.LABEL_ROLE: role, naming.LABEL_AGENT: name.rpartition("-")[0], naming.LABEL_ATTEMPT: "1"}
        owners = (f"uid-of-{owner}",) if owner else ()
        made = Pod(name, f"uid-of-{name}", labels, owners, [EVIDENCE_FINALIZER], 30.0, node=node, phase=phase, **more)
        made.controller = PodName(owner, f"uid-of-{owner}") if owner else None
        if phase in ("Succeeded", "Failed"):
            made.exit_code = 0 if phase == "Succeeded" else 137
        self.pods[name] = made
        return made

    def incarnation(
        self,
        inc: str = INC,
        *,
        pod: str = ATTEMPT_POD,
        role: str = "writer",
        alive: bool = True,
        clock_ahead: float = 0.0,
        **more: Any,
    ) -> None:
        """A registered incarnation of a pod, with its heartbeat unless it is not alive."""
        value = {
            "inc": inc,
            "attempt": naming.attempt_id(NAMESPACE, pod),
            "role": role,
            "pod": pod,
            "namespace": NAMESPACE,
            "podUID": f"uid-of-{pod}",
        }
        self.put(
            f"writer/{inc}",
            {**value, "node": "n1", "bootId": "boot-1", "wallClockMs": START_MS + int(clock_ahead * 1000), **more},
        )
        if alive:
            self.put(f"alive/{inc}", {"inc": inc, "n": 3}, lease=inc)

    def lock(self, inc: str = INC, pod: str = ATTEMPT_POD) -> int:
        """The lock is this incarnation's; returns its create revision."""
        value = {
            "inc": inc,
            "attempt": naming.attempt_id(NAMESPACE, pod),
            "podUID": f"uid-of-{pod}",
            "nonce": "x",
            "sinceMs": START_MS,
        }
        return self.put("lock", value)

    def instant(self, instant: str, inc: str = INC, **more: Any) -> None:
        self.put(f"instant/{instant}", {"inc": inc, "action": "commit", "state": "Pending", **more})

    def fenced(self, phase: str, inc: str = INC, *, pod: str = ATTEMPT_POD, **more: Any) -> int:
        """A fence and a settle record in that phase; returns the record's mod revision."""
        self.put(f"fence/{inc}", {"inc": inc, "reason": "LeaseGone"})
        value = {
            "inc": inc,
            "attempt": naming.attempt_id(NAMESPACE, pod),
            "role": "writer",
            "namespace": NAMESPACE,
            "pod": pod,
            "podUID": f"uid-of-{pod}",
        }
        value |= {
            "node": "n1",
            "bootId": "boot-1",
            "appId": "",
            "reason": "LeaseGone",
            "phase": phase,
            "proofs": {},
            "pods": {},
            "instants": {},
        }
        return self.put(f"settle/{inc}", {**value, "abandoned": False, "times": {}, **more})
