"""A table's own agent with an executor, on a real node: the executor does the compaction, and
outlives its agent.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from typing import Any

import pandas as pd
import pytest
from demo import cluster
from demo.cluster import kubectl

from tests.support.cluster.node import HOST
from tests.support.cluster.scene import EXECUTOR, executors
from tests.support.cluster.space import SMALL, Space, wait_for
from tests.support.harness.s3proxy import Proxy, data_file

pytestmark = [pytest.mark.extra, pytest.mark.timeout(900)]
ROWS, BATCHES = 20, 3
SERVICES = {"clean": {"enabled": False}, "archive": {"enabled": False}}

# Each batch has the same keys as the one before it: what it changes stands in log files.
UPDATES = """
from pyspark.sql.functions import col, lit


def batches(spark, context):
    for batch in range(int(context.arguments["batches"])):
        rows = spark.range(0, int(context.arguments["rows"]), 1, 1)
        yield rows.select(col("id"), lit("p").alias("part"), (col("id") + 1000 * batch).alias("value"), lit(batch).cast("long").alias("ts"))
"""  # noqa: E501 - text of a page or program


def updated_table(space: Space, proxy: Proxy, name: str) -> None:
    """A table with log files that nobody has compacted, whose own agent has one executor."""
    storage = space.table(name, apply=False)["spec"]["storage"]
    storage["options"]["fs.s3a.endpoint"] = f"http://{HOST}:{proxy.port}"
    agent = {**SMALL, "executors": {"instances": 1, **EXECUTOR}}
    space.table(name, storage=storage, agent=agent, services={**SERVICES, "compaction": {"enabled": False}})
    code = kubectl(
        "create",
        "configmap",
        "updates",
        "-n",
        space.namespace,
        f"--from-literal=updates.py={UPDATES}",
        "--dry-run=client",
        "-o",
        "yaml",
    )
    cluster.apply(code)
    arguments = {"batches": str(BATCHES), "rows": str(ROWS)}
    source = {
        "python": {
            "configMapKeyRef": {"name": "updates", "key": "updates.py"},
            "function": "batches",
            "arguments": arguments,
        }
    }
    space.writer(f"{name}-writer", name, source=source, operation="Upsert")
    space.wait(f"hudiwriter/{name}-writer", "Succeeded", seconds=300)


def agents(space: Space, name: str) -> list[dict[str, Any]]:
    """Pods of the table's own agent that are not at their end, by generation."""
    pods = cluster.items(
        "pods", "-n", space.namespace, "-l", f"hudioperator.io/role=agent,hudioperator.io/table={name}"
    )
    running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
    return sorted(running, key=lambda pod: int(pod["metadata"]["labels"]["hudioperator.io/attempt"]))


def compacts(space: Space, executor: str) -> str:
    """Stack of a task in the executor's JVM that is at a compaction.

    The JVM prints all its stacks when it is asked to.
    """
    pid = cluster.jvm_pid(space.namespace, executor)
    assert pid is not None
    os.kill(pid, signal.SIGQUIT)

    def stack() -> str | None:
        threads = kubectl("logs", executor, "-n", space.namespace).split("\n\n")
        return next((t for t in threads if '"Executor task launch worker' in t and ".compact." in t), None)

    return wait_for(f"a task of a compaction in {executor}", stack, seconds=30)


def test_a_compaction_of_an_agent_that_died_is_finished_once_after_its_executors_end(
    space: Space, proxy: Proxy
) -> None:
    """The executor has sent its base file, and is frozen; the agent's JVM is killed.

    The file arrives in the drain. The next generation has an executor of its own, does not touch
    the plan before both are proven dead, and completes it; the table's end leaves no pod.
    """
    name = "heavy"
    updated_table(space, proxy, name)
    path = space.path(name)
    held = proxy.hold_next(lambda line: data_file(line) and f"/{path}/" in line)
    services = {**SERVICES, "compaction": {"enabled": True, "afterCommits": 1}}
    kubectl(
        "patch",
        "huditable",
        name,
        "-n",
        space.namespace,
        "--type=merge",
        "-p",
        json.dumps({"spec": {"services": services}}),
    )
    assert held.arrived.wait(120), "no compaction wrote a base file"
    found = re.search(r"_(\d{17})\.parquet", held.line)
    assert found, held.line
    instant = found[1]
    (pod,) = [a["metadata"]["name"] for a in agents(space, name)]
    (executor,) = executors(space, pod)
    uid = executors(space, pod)[executor]
    print(f"\n{executor}:\n{compacts(space, executor)[:1500]}")

    space.signal_all(executor, signal.SIGSTOP)
    at = time.time()
    space.signal(pod, signal.SIGKILL)

    def phase(wanted: str) -> Any:
        def probe() -> Any:
            record = space.settling(pod)
            return record if record and wanted in record.phases else None

        return wait_for(f"{pod} to be {wanted}", probe, seconds=180, every=0.1)

    phase("Fenced")
    space.signal_all(executor, signal.SIGCONT)
    record = phase("Draining")
    (kept,) = [
        c.value
        for c in space.watch.changes("/settle/")
        if c.value and c.value.get("pod") == pod and c.value.get("phase") == "Draining"
    ][:1]
    assert uid in kept["proofs"], f"proven dead without proof of {executor}: {kept['proofs']}"
    assert kept["proofs"][uid]["atMs"] <= kept["times"]["Draining"]
    claims = [c for c in space.watch.changes(f"/instant/{instant}") if c.value and c.value.get("claimedBy")]
    assert not claims, "another agent has claimed the plan before its executor's end was proven"
    held.deliver.set()
    assert held.delivered.wait(20)

    space.wait_settled(pod, seconds=240)
    wait_for("the end of the compaction", lambda: _completed(space, path, instant), seconds=120)
    seconds = {p: round(t - at, 1) for p, t in (space.settling(pod) or record).phases.items()}
    print(f"agent killed in a compaction, executor frozen and resumed: {seconds}")
    (claim,) = {
        c.value["claimedBy"] for c in space.watch.changes(f"/instant/{instant}") if c.value and c.value.get("claimedBy")
    }
    assert claim != record.inc
    (second,) = [a["metadata"]["name"] for a in agents(space, name)]
    assert second != pod
    assert len(executors(space, second)) == 1
    others = [i for i in space.lake.timeline(path) if i.action in {"commit", "compaction"} and i.requested != instant]
    assert not others, f"the plan was not executed once: {others}"
    ids = pd.RangeIndex(ROWS)
    rows = pd.DataFrame({"id": ids, "part": "p", "value": ids + 1000 * (BATCHES - 1), "ts": BATCHES - 1})
    space.audited(name, rows)

    kubectl("delete", "hudiwriter", f"{name}-writer", "-n", space.namespace, "--timeout=60s", timeout=70)
    kubectl("delete", "huditable", name, "-n", space.namespace, "--timeout=90s", timeout=100)
    wait_for("the end of its pods", lambda: not _left(space, name), seconds=60)


def _completed(space: Space, path: str, instant: str) -> bool:
    return any(i.requested == instant and i.completed for i in space.lake.timeline(path))


def _left(space: Space, name: str) -> list[str]:
    """Pods and ConfigMaps of the table's agent."""
    return [
        o["metadata"]["name"]
        for kind in ("pods", "configmaps")
        for o in cluster.items(kind, "-n", space.namespace, "-l", f"hudioperator.io/table={name}")
    ]
