"""F45: a container that never ends is put beside ours in every pod.

Attempts end all the same, and what has to be proven is proven.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pandas as pd
import pytest
from demo import cluster
from demo.lake import Lake
from demo.protocol import Watch

from tests.support.cluster.beside import injected
from tests.support.cluster.node import NodeLogs
from tests.support.cluster.space import Space, make_space, wait_for, written

pytestmark = [pytest.mark.extra, pytest.mark.timeout(1200)]


@pytest.fixture(params=["container", "sidecar"])
def crowded(request: pytest.FixtureRequest, lake: Lake, watch: Watch, operator_logs: NodeLogs) -> Iterator[Space]:
    """A namespace of its own, for the agent's pods get one, too."""
    found = make_space(f"e2e-beside-{request.param}", lake, watch)
    found.logs.start()
    with injected(request.param, found.namespace):
        yield found
        found.logs.stop()
        cluster.kubectl("delete", "namespace", found.namespace, "--wait=false")
    found.conform(operator_logs, ended=found.tables)


def beside(space: Space, pod: str) -> dict[str, object]:
    """State of the other container of a pod."""
    status = space.get("pod", pod)["status"]
    found = [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]
    return next((item["state"] for item in found if item["name"] == "beside"), {})


def test_attempts_end_with_their_driver(crowded: Space) -> None:
    """One writer after the other (a single slot).

    The pods end, too, and leave no evidence behind.
    """
    crowded.table("t", concurrency={"maxWriters": 1})
    for number in range(2):
        crowded.writer(f"w{number}", "t", batches=1, rows=20, first=1000 * number)
    for number in range(2):
        crowded.wait(f"hudiwriter/w{number}", "Succeeded", seconds=400)

    def over() -> bool:
        left = [pod for number in range(2) for pod in crowded.drivers(f"w{number}")]
        return all(
            pod["status"]["phase"] in ("Succeeded", "Failed") and not pod["metadata"].get("finalizers") for pod in left
        )

    wait_for("the end of the drivers' pods", over, seconds=90)
    crowded.audited("t", pd.concat([written(batches=1, rows=20, first=1000 * number) for number in range(2)]))


def test_a_killed_driver_is_proven_dead_with_what_runs_beside_it(crowded: Space) -> None:
    crowded.table("t")
    crowded.writer("victim", "t", batches=1, rows=60, delay=0.3)
    instant, pod = crowded.wait_inflight("victim", "t", seconds=400)
    assert "running" in beside(crowded, pod)
    uid = crowded.get("pod", pod)["metadata"]["uid"]
    crowded.signal(pod, signal.SIGKILL)
    at = time.time()
    record = crowded.wait_settled(pod, seconds=180)
    print(f"\ndriver killed beside an endless container: settled after {time.time() - at:.1f} s")
    assert record.outcomes == {instant: "RolledBack"}, record
    changes = [
        change.value
        for change in crowded.watch.changes("/settle/")
        if change.value and change.value.get("podUID") == uid
    ]
    assert changes[-1]["proofs"][uid]["kind"] == "PodTerminated"
    crowded.wait("hudiwriter/victim", "Succeeded", seconds=400)
    crowded.audited("t", written(batches=1, rows=60))
