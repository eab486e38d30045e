"""The release and a table are kept in Git: rendered, applied, compared and pruned by a tool that is
not Helm, under a writer that never stops.

`kubectl apply --server-side` plays the tool (Argo CD, Flux), and deletes what an inventory has too
much: no Helm release exists.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from demo import cluster, world
from demo.cluster import kubectl
from demo.lake import Lake
from demo.protocol import Watch
from demo.screen import Screen

from tests.support import quick_yaml
from tests.support.cluster.node import NodeLogs, Relay
from tests.support.cluster.space import (
    NAMESPACE,
    OUT,
    Space,
    fresh_namespace,
    installed_with,
    make_space,
    run,
    suspend,
    wait_for,
    written,
)

# It changes the installation that the other tests share.
pytestmark = [pytest.mark.extra, pytest.mark.timeout(1200)]

JsonDict = dict[str, Any]
RELEASE, SYSTEM, TABLES = "gitops", "gitops-system", "gitops-tables"
TOOL = ("--server-side", "--force-conflicts", "--field-manager=gitops", "-f", "-")
ROWS = 10


def rendered(*more: str) -> str:
    """What the tool gets from the chart; the CRDs are there."""
    values = json.dumps([TABLES])
    return run(
        *(
            "helm",
            "template",
            RELEASE,
            "charts/hudi-operator",
            "-n",
            SYSTEM,
            "--values=demo/values.yaml",
            "--skip-tests",
        ),
        f"--set-json=config.watchNamespaces={values}",
        "--set=crds.enabled=false",
        *more,
    )


def objects(manifests: str) -> dict[str, JsonDict]:
    """By kind, namespace and name."""
    return {
        f"{each['kind']}/{each['metadata'].get('namespace', '')}/{each['metadata']['name']}": each
        for each in quick_yaml.load_all(manifests)
        if each
    }


def synchronize(manifests: str, before: str = "") -> None:
    """Apply, and delete what an earlier rendering had and this one has not."""
    kubectl("apply", *TOOL, stdin=manifests, timeout=300)
    for name in objects(before).keys() - objects(manifests).keys():
        kubectl("delete", "-f", "-", "--timeout=60s", stdin=json.dumps(objects(before)[name]))


def drift(manifests: str) -> str:
    """What a synchronization would change; empty: nothing."""
    done = subprocess.run(["kubectl", "diff", *TOOL], input=manifests, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr[-3000:]
    return done.stdout


def states(manifests: str) -> dict[str, tuple[int | None, str]]:
    """Generation and uid of each object that was rendered."""
    found = json.loads(kubectl("get", "-f", "-", "-o", "json", stdin=manifests))["items"]
    return {
        f"{o['kind']}/{o['metadata']['name']}": (o["metadata"].get("generation"), o["metadata"]["uid"]) for o in found
    }


def pods() -> dict[str, tuple[str, int]]:
    """Uid and restarts of each pod of the release."""
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            sum(status["restartCount"] for status in pod["status"].get("containerStatuses", ())),
        )
        for pod in cluster.items("pods", "-n", SYSTEM)
    }


def rolled_out() -> None:
    for kind in ("deployment", "statefulset"):
        for found in cluster.items(kind, "-n", SYSTEM):
            kubectl(
                "rollout", "status", f"{kind}/{found['metadata']['name']}", "-n", SYSTEM, "--timeout=300s", timeout=310
            )


@pytest.fixture
def tables(space: Space, lake: Lake, watch: Watch) -> Iterator[Space]:
    """The namespace with tables; the release of all tests leaves it to the one in Git."""
    others = json.dumps([NAMESPACE])
    installed_with(f"--set-json=config.watchNamespaces={others}")
    made = make_space(TABLES, lake, watch)
    fresh_namespace(SYSTEM, {})
    everything = rendered()
    try:
        yield made
    finally:
        kubectl("delete", "namespace", TABLES, "--ignore-not-found", "--timeout=240s", timeout=250)
        kubectl("delete", "-f", "-", "--ignore-not-found", "--wait=false", stdin=everything)
        kubectl("delete", "namespace", SYSTEM, "--ignore-not-found", "--wait=false")
        installed_with()


def test_a_release_in_git_is_synchronized_under_a_writer(tables: Space) -> None:
    first = rendered()
    assert rendered() == first
    synchronize(first)
    rolled_out()
    found, way = world.etcd_watch(Screen(), way=Relay, namespace=SYSTEM, etcd=f"{RELEASE}-hudi-operator-etcd")
    found.start()
    tables.watch = found
    logs = NodeLogs(SYSTEM, OUT / "logs" / SYSTEM)
    logs.start()
    tables.logs.start()
    try:
        table = json.dumps(tables.table("kept"))
        tables.writer("through", "kept", batches=100_000, rows=ROWS, delay=0.2)

        def records() -> int:
            return int(tables.get("hudiwriter", "through").get("status", {}).get("records", 0))

        def commits_after(what: str) -> None:
            before = records()
            wait_for(f"commits after {what}", lambda: records() >= before + 3 * ROWS, seconds=180)

        wait_for("the first commits", lambda: records() >= 3 * ROWS, seconds=240)
        known, running = states(first), pods()
        assert len(running) >= 4, "operator, identities, etcd, gateways"

        # The next synchronizations of the same commit.
        for _ in range(2):
            synchronize(first)
            assert drift(first) == ""
        assert (states(first), pods()) == (known, running)
        commits_after("synchronizations without a change")

        # Somebody's kubectl is undone, and nothing else.
        gateway = f"{RELEASE}-hudi-operator-gateway"
        kubectl("scale", f"statefulset/{gateway}", "--replicas=1", "-n", SYSTEM)
        assert "replicas" in drift(first)
        synchronize(first)
        rolled_out()
        assert drift(first) == ""
        assert {name: one for name, one in pods().items() if name != f"{gateway}-1"} == {
            name: one for name, one in running.items() if name != f"{gateway}-1"
        }
        commits_after("a change that was undone")

        # A commit that has one object less.
        running, metrics = pods(), f"{RELEASE}-hudi-operator-metrics"
        assert cluster.exists("service", metrics, "-n", SYSTEM)
        less = rendered("--set=metrics.service.enabled=false")
        synchronize(less, before=first)
        assert not cluster.exists("service", metrics, "-n", SYSTEM)
        assert drift(less) == ""
        assert pods() == running
        commits_after("an object that was pruned")

        # A table in Git: what the operator and the defaults of its CRD add is no drift.
        for _ in range(2):
            kubectl("apply", *TOOL, stdin=table)
            assert drift(table) == ""
        commits_after("the table's synchronizations")

        suspend("through", TABLES)
        tables.wait("hudiwriter/through", "Suspended", seconds=120)
        attempts: list[Any] = tables.get("hudiwriter", "through")["status"]["attempts"]
        assert len(attempts) == 1, attempts
        tables.audited("kept", written(batches=records() // ROWS, rows=ROWS))
        tables.conform(logs, ended=tables.tables)
    finally:
        tables.logs.stop()
        logs.stop()
        found.stop()
        way.stop()
