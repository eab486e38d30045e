"""The parts that the campaign plays: agents and drivers, as their pods' status and keys in etcd."""

from __future__ import annotations

import json
from typing import Any

from hudi_contract import naming
from tests.campaigns.alerts.stage import Stage, now_ms
from tests.support.harness.servers import wait_for

JsonDict = dict[str, Any]
LEASE = 3600
"""Seconds of a heartbeat's lease: nobody renews it here."""
FAST = {"retryPolicy": {"limit": 0, "backoffSeconds": 1}}


class Play:
    """Tables and writers of one namespace."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.world = stage.world
        self.namespace = self.world.namespace
        self.ids: dict[str, str] = {}
        self.incs: dict[str, str] = {}
        """Incarnations of the agent, by table."""
        self.timelines: dict[str, JsonDict] = {}

    # ---- tables

    def pending_table(self, name: str, **spec: Any) -> JsonDict:
        """A HudiTable; returns the pod of its agent, which may not run yet."""
        self.ids[name] = self.world.table(name, **spec)
        agent = str(wait_for(f"an agent of {name}", lambda: self.status("huditables", name).get("agent")))
        path = self.world.path("pods", group="/api/v1")
        selector = f"{naming.LABEL_AGENT}%3D{agent}"

        def found() -> list[JsonDict]:
            return list(
                (self.world.cluster.request("GET", f"{path}?labelSelector={selector}") or {"items": []})["items"]
            )

        return wait_for(f"a pod of {agent}", found)[0]

    def serve(self, name: str, pod: JsonDict) -> None:
        """The agent runs, and reports the table."""
        if not pod["spec"].get("nodeName"):
            self.world.run_pod(pod)
        self.incs[name] = self.world.register(self.ids[name], pod, role="agent", lease_seconds=LEASE)
        self.report(name)

    def table(self, name: str, **spec: Any) -> str:
        """A HudiTable that is Ready; returns its id."""
        self.serve(name, self.pending_table(name, **spec))
        wait_for(f"{name} is Ready", lambda: self.true("huditables", name, "Ready"))
        return self.ids[name]

    def report(self, name: str, **more: Any) -> None:
        """The agent's report of the timeline: as the last one, with these changes."""
        empty = {
            "exists": True,
            "lastInstant": "",
            "lastCompletionTime": "",
            "lowestPendingRequestedTime": "",
            "pending": [],
            "pendingCount": 0,
            "activeLength": 0,
            "foreign": [],
        }
        value = self.timelines.get(name, empty) | {"atMs": now_ms(), "agentInc": self.incs[name]} | more
        self.timelines[name] = value
        self.put(name, "report/timeline", value)

    def put(self, table: str, key: str, value: JsonDict) -> None:
        self.world.etcd.put(self.world.key(self.ids[table], key), value)

    def delete(self, table: str, key: str) -> None:
        self.world.etcd.delete(self.world.key(self.ids[table], key))

    # ---- writers

    def driver(self, writer: str, number: int = 1) -> JsonDict:
        return self.world.pod("driver", number=number, writer=writer)

    def started(self, table: str, writer: str, number: int = 1, *, node: str = "node1") -> tuple[JsonDict, str]:
        """An attempt runs and is registered; returns its pod and incarnation."""
        pod = self.driver(writer, number)
        self.world.run_pod(pod, node=node)
        return pod, self.world.register(self.ids[table], pod, lease_seconds=LEASE)

    def writer(self, table: str, name: str, *, node: str = "node1", **spec: Any) -> tuple[JsonDict, str]:
        """A HudiWriter whose first attempt runs; returns its pod and incarnation."""
        self.world.writer(name, table=table, **spec)
        return self.started(table, name, node=node)

    def fails(self, table: str, pod: JsonDict, inc: str, class_: str) -> None:
        """A driver ends with a failure, as it does by itself."""
        self.world.revoke(inc)
        self.delete(table, f"writer/{inc}")
        said = {"outcome": "Failed", "class": class_, "message": f"a row is not as it must be ({class_})"}
        said |= {"commits": 0, "records": 0, "lastInstant": "", "lastCompletionTime": "", "conflicts": 0}
        self.world.end_pod(pod, exit_code=1, message=json.dumps(said))

    def tells(self, table: str, pod: JsonDict, inc: str, **more: Any) -> None:
        """The report of an attempt."""
        name = f"{self.namespace}.{pod['metadata']['name']}"
        value = {"attempt": name, "inc": inc, "atMs": now_ms(), "stage": "Writing", "waiting": 0, **more}
        self.put(table, f"report/attempt/{name}", value)

    # ---- what the operator says

    def status(self, plural: str, name: str) -> JsonDict:
        return dict((self.world.get(plural, name) or {}).get("status") or {})

    def true(self, plural: str, name: str, kind: str) -> bool:
        return (self.world.condition(plural, name, kind) or {}).get("status") == "True"

    def patch(self, plural: str, name: str, **spec: Any) -> None:
        path = self.world.path(plural, name)
        self.world.cluster.request("PATCH", path, {"spec": spec}, "application/merge-patch+json")

    def of_table(self, name: str) -> dict[str, str]:
        """Labels of its alerts."""
        return {"namespace": self.namespace, "table": name}

    def of_writer(self, table: str, name: str) -> dict[str, str]:
        """Labels of its alerts."""
        return {**self.of_table(table), "writer": name}

    def words(self, table: str, writer: str = "", pod: JsonDict | None = None) -> dict[str, str]:
        """Words of the runbooks' commands."""
        found = {"NAMESPACE": self.namespace, "TABLE": table, "WRITER": writer}
        found["AGENT"] = str(self.status("huditables", table).get("agent") or "")
        if pod is not None:
            found["POD"] = str(pod["metadata"]["name"])
        return {word: value for word, value in found.items() if value}
