"""Dashboards and alerts on a real Prometheus that scrapes a real operator and a real gateway, and
etcd through it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from hudi_contract.assignment import CatalogOrder
from hudi_contract.reports import CatalogReport
from tests.support import ROOT, promtool
from tests.support.harness.gateway import Gateway, Pod
from tests.support.harness.operator_world import SUCCEEDED, World
from tests.support.harness.prometheus_server import Prometheus
from tests.support.harness.servers import wait_for

CHART = ROOT / "charts" / "hudi-operator" / "files"


def instant(seconds_ago: float) -> str:
    """Time of an instant."""
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(time.time() - seconds_ago)) + "000"


def lively(world: World) -> None:
    """A table with nearly everything that a table can show, and one that is not ready."""
    table_id, _, agent = world.running_table(
        type="MergeOnRead",
        concurrency={"maxWriters": 2},
        commitCallback={"url": "https://receiver.example.com/commits"},
        catalog={"hiveMetastore": {"uris": ["thrift://metastore.catalogs:9083"]}},
    )
    now = int(time.time() * 1000)
    world.writer("short", source={"files": {"format": "csv", "paths": ["s3a://landing/x.csv"]}})
    short = world.pod("driver", number=1, writer="short")
    world.run_pod(short)
    world.end_pod(short, exit_code=0, message=SUCCEEDED)
    wait_for("a success", lambda: (world.condition("hudiwriters", "short", "Succeeded") or {}).get("status") == "True")

    load, inc = world.running_writer(table_id, "load")
    dead, dead_inc = world.running_writer(table_id, "dead")
    name = f"{world.namespace}.{load['metadata']['name']}"
    conflict = {"instant": instant(30), "with": instant(40), "fileGroups": [], "atMs": now}
    reported = {
        "attempt": name,
        "inc": inc,
        "atMs": now,
        "stage": "Writing",
        "waiting": 7,
        "commits": 1,
        "records": 5,
        "lastInstant": instant(60),
        "lastCompletionTime": instant(50),
        "conflicts": [conflict],
    }
    world.etcd.put(world.key(table_id, f"report/attempt/{name}"), reported)
    world.writer("third")
    wait_for("a writer that waits", lambda: (world.get("hudiwriters", "third") or {}).get("status", {}).get("queue"))
    timeline = {
        "atMs": now,
        "agentInc": agent,
        "exists": True,
        "lastInstant": instant(60),
        "lastCompletionTime": instant(50),
        "lowestPendingRequestedTime": instant(100),
        "pending": [{"instant": instant(100), "action": "deltacommit", "state": "Inflight"}],
        "pendingCount": 1,
        "activeLength": 2,
        "foreign": [{"instant": instant(100), "action": "deltacommit", "state": "Inflight"}],
        "readCost": {"baseBytes": 100, "logBytes": 400, "fileGroups": 1, "fileGroupsWithLogs": 1},
    }
    world.etcd.put(world.key(table_id, "report/timeline"), timeline)
    callback: dict[str, Any] = {
        "inc": agent,
        "completionTime": instant(500),
        "instant": instant(510),
        "delivered": 7,
        "archivedTo": "",
        "lost": 0,
        "atMs": now,
        "undelivered": 3,
        "oldest": instant(400),
        "failures": 4,
        "reason": "HTTP503",
        "message": "receiver.example.com answered 503",
    }
    world.etcd.put(world.key(table_id, "report/callback"), callback)
    order = CatalogOrder(
        uris=("thrift://metastore.catalogs:9083",),
        database="default",
        table="flights",
        timeout_seconds=60,
        uid=(world.get("huditables", "flights") or {})["metadata"]["uid"],
    )
    catalog = CatalogReport(
        inc=agent,
        target=order.target,
        instant=instant(510),
        completion_time=instant(500),
        at_ms=now,
        failures=1,
        reason="Unreachable",
        message="metastore.catalogs:9083 does not answer",
    )
    world.etcd.put(world.key(table_id, "report/catalog"), catalog.to_json())
    failed = {"service": "clean", "inc": agent, "atMs": now, "message": "no", "instant": "", "failures": 2}
    world.etcd.put(world.key(table_id, "done/service-clean"), {**failed, "result": "Failed"})

    world.lock(table_id, inc, load)
    time.sleep(0.3)
    world.etcd.delete(world.key(table_id, "lock"))
    world.lock(table_id, dead_inc, dead)
    world.revoke(dead_inc)
    world.phase(table_id, dead_inc, "Fenced", "Terminating")
    world.table("other")


@pytest.fixture
def gateway(world: World, tmp_path: Path) -> Iterator[Gateway]:
    """It has answered one pod and refused another; who reads its metrics needs a token."""
    (tmp_path / "token").write_text("of-prometheus\n")
    made = Gateway(world.etcd, tmp_path, f"-metrics-token-file={tmp_path / 'token'}")
    made.start()
    try:
        lock = "/hudi/tables/0123456789abcdef0123456789abcdef/lock"
        with pytest.raises(grpc.RpcError):
            made.pod(Pod("nobody", "nobody-1", "uid")).put(lock, {"inc": "x"})
        with pytest.raises(grpc.RpcError):
            made.client("no token").get(lock)
        yield made
    finally:
        made.stop()


def test_every_panel_shows_something(world: World, gateway: Gateway, tmp_path: Path) -> None:
    promtool.need()
    operator = world.start_operator()
    jobs = {
        "hudi-operator": [operator.metrics_address],
        "hudi-operator-gateway": [gateway.metrics_address],
        "hudi-operator-etcd": [gateway.metrics_address],
    }
    token = {"authorization": {"credentials_file": str(tmp_path / "token")}}
    settings = {
        "hudi-operator-gateway": token,
        "hudi-operator-etcd": {**token, "metrics_path": "/etcd/0/metrics"},
    }
    for path in ("metrics", "etcd/0/metrics"):
        assert gateway.metrics(path) is None, "whoever has no token is told nothing"
    with Prometheus(tmp_path / "prometheus", jobs, rules=CHART / "alerts.yaml", settings=settings) as prometheus:
        lively(world)
        variables = {"job": "hudi-operator", "namespace": world.namespace, "table": "flights"}
        asked = {
            f"{path.stem}/{panel['title']}/{target['refId']}": promtool.replaced(target["expr"], variables)
            for path in sorted((CHART / "dashboards").glob("*.json"))
            for panel in json.loads(path.read_text())["panels"]
            for target in panel.get("targets", ())
            if not target["expr"].endswith("> 0")  # failures, which this cluster has none of
        }

        def empty() -> set[str]:
            return {name for name, expression in asked.items() if not prometheus.ask(expression)}

        try:
            wait_for("data in every panel", lambda: not empty(), seconds=60)
        finally:
            print("\n".join(sorted(empty())))
        assert prometheus.healthy() == dict.fromkeys(jobs, "up")
        assert [s["value"][1] for s in prometheus.ask('etcd_server_has_leader{job="hudi-operator-etcd"}')] == ["1"]

        def begun() -> set[str]:
            return {name for name, state in prometheus.rules().items() if state in ("pending", "firing")}

        expected = {"HudiForeignWriters", "HudiTableNotReady", "HudiServicesUnhealthy"}
        try:
            wait_for("the alerts that this cluster deserves", lambda: expected <= begun(), seconds=60)
        finally:
            print(prometheus.rules())
        assert set(prometheus.rules().values()) <= {"inactive", "pending", "firing"}
        assert not {"HudiOperatorDown", "HudiGatewayDown", "HudiOperatorNoLeader", "HudiCertificateExpiring"} & begun()
