"""Pods of one namespace, played from their words: a driver succeeds, an agent finds its tables and
serves what it is asked for. For tests that ask what the operator and the API server make of it.

Words of agents are the contract's own records; nothing is read or written in a store.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from hudi_contract import keys, naming
from hudi_contract.assignment import CatalogOrder
from hudi_contract.reports import CatalogReport
from hudi_contract.requests import BootstrapDone, RestoreDone, SavepointDone
from hudi_contract.shape import Record
from hudi_contract.words import RequestKind, Result
from tests.support.harness.kubelet_parts import Looking
from tests.support.harness.operator_world import SUCCEEDED, World

JsonDict = dict[str, Any]
INSTANT, COMPLETION = "20260101000000000", "20260101000001000"


@dataclass
class Played(Looking):
    """The thread that plays them, from `look_on` to `look_no_more`."""

    world: World
    incs: dict[tuple[str, str], str] = field(default_factory=dict)
    """Incarnation by uid of the pod and table id."""
    ran: set[str] = field(default_factory=set)
    """Uids of pods that were given a node."""

    def _look(self) -> None:
        found = self.world.cluster.request("GET", self.world.path("pods", group="/api/v1")) or {"items": []}
        for pod in found["items"]:
            meta = pod["metadata"]
            role = (meta.get("labels") or {}).get(naming.LABEL_ROLE)
            if meta.get("deletionTimestamp") or role not in (naming.ROLE_DRIVER, naming.ROLE_AGENT):
                continue
            if meta["uid"] not in self.ran:
                self.world.run_pod(pod)
                self.ran.add(meta["uid"])
            elif role == naming.ROLE_AGENT:
                self._agent(pod)
            elif (pod.get("status") or {}).get("phase") == "Running":
                self._driver(pod)

    def _driver(self, pod: JsonDict) -> None:
        """It registers where it is admitted, and a look later it leaves and ends."""
        for table_id in self._admitting(pod):
            inc = self.incs.get((pod["metadata"]["uid"], table_id))
            if inc is None:
                self.incs[pod["metadata"]["uid"], table_id] = self.world.register(table_id, pod)
                return
            for kind in ("writer", "alive"):
                self.world.etcd.delete(self.world.key(table_id, f"{kind}/{inc}"))
            self.world.end_pod(pod, exit_code=0, message=SUCCEEDED)

    def _admitting(self, pod: JsonDict) -> list[str]:
        """Tables at which the operator has admitted a pod."""
        attempt = naming.attempt_id(pod["metadata"]["namespace"], pod["metadata"]["name"])
        known = [table for uid, table in self.incs if uid == pod["metadata"]["uid"]]
        admits = [key.split("/") for key in self.world.etcd.read("/hudi/control/")]
        return known or [key[3] for key in admits if key[4:] == ["admit", attempt]]

    def _agent(self, pod: JsonDict) -> None:
        agent = pod["metadata"]["labels"][naming.LABEL_AGENT]
        prefix = keys.agent_prefix("/hudi", agent)
        for key, order in self.world.etcd.read(prefix).items():
            table_id, uid = key.removeprefix(prefix), pod["metadata"]["uid"]
            if (uid, table_id) not in self.incs:
                if table_id in self._admitting(pod):
                    self.incs[uid, table_id] = self.world.register(table_id, pod, role="agent")
                    self.world.report_timeline(table_id, self.incs[uid, table_id])
                continue
            self._serve(table_id, self.incs[uid, table_id], order)

    def _serve(self, table_id: str, inc: str, order: JsonDict) -> None:
        control = f"/hudi/control/{table_id}/request/"
        for key, request in self.world.etcd.read(control).items():
            name = key.removeprefix(control)
            done = self._done(inc, request)
            if done is not None and not self.world.etcd.read(self.world.key(table_id, f"done/{name}")):
                self.world.etcd.put(self.world.key(table_id, f"done/{name}"), done.to_json())
        if order.get("catalog") and not self.world.etcd.read(self.world.key(table_id, "report/catalog")):
            target = CatalogOrder.from_json(order["catalog"]).target
            report = CatalogReport(
                inc=inc, target=target, instant=INSTANT, completion_time=COMPLETION, at_ms=int(time.time() * 1000)
            )
            self.world.etcd.put(self.world.key(table_id, "report/catalog"), report.to_json())

    @staticmethod
    def _done(inc: str, request: JsonDict) -> Record | None:
        """The record of a request that was carried out; None: this one is not played."""
        now = int(time.time() * 1000)
        if request["kind"] == RequestKind.SAVEPOINT:
            return SavepointDone(
                name=request["name"],
                result=Result.COMPLETED,
                instant=INSTANT,
                completion_time=COMPLETION,
                boundary=COMPLETION,
                at_ms=now,
            )
        if request["kind"] == RequestKind.RESTORE:
            return RestoreDone(
                nonce=request["nonce"],
                savepoint=request["savepoint"],
                result=Result.COMPLETED,
                boundary=COMPLETION,
                newest=INSTANT,
                undone=0,
                begin_ms=now,
                end_ms=now,
                at_ms=now,
                inc=inc,
            )
        if request["kind"] == RequestKind.BOOTSTRAP:
            return BootstrapDone(
                table_uid=request["tableUID"],
                mode=request["mode"],
                source=request["path"],
                result=Result.COMPLETED,
                instant=INSTANT,
                completion_time=COMPLETION,
                records=1,
                files=1,
                bytes=1,
                begin_ms=now,
                end_ms=now,
                inc=inc,
            )
        return None
