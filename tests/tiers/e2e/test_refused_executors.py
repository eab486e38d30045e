"""F301: a real driver whose executors the API server refuses waits, its writer says why, and it
goes on when they are made.
"""

from __future__ import annotations

import json

import pytest
from demo import cluster
from demo.cluster import kubectl

from tests.support.cluster.scene import EXECUTOR, executors
from tests.support.cluster.space import Space, wait_for, written

pytestmark = [pytest.mark.extra, pytest.mark.timeout(900)]


def test_a_limit_range_that_refuses_executors(space: Space) -> None:
    """The driver fits, executors do not."""
    space.table("limited")
    space.wait("huditable/limited", "Ready", seconds=300)
    limits = [{"type": "Container", "max": {"memory": "2Gi"}}]
    meta = {"name": "small", "namespace": space.namespace}
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": limits}}))
    try:
        large = {**EXECUTOR, "memory": "2Gi"}
        space.writer(
            "refused", "limited", batches=1, rows=20, executors={"instances": 1, **large}, retryPolicy={"limit": 0}
        )

        def refused() -> str | None:
            found = space.condition("hudiwriter", "refused", "ExecutorsMissing")
            return str(found["message"]) if found.get("reason") == "Refused" else None

        message = wait_for("the writer says that its executors are refused", refused, seconds=180)
        assert message.startswith("0 of 1 executors run; the API server makes no more of them: LimitRange: "), message
        assert "maximum memory usage per Container is 2Gi" in message
        (driver,) = space.drivers("refused")
        assert not executors(space, driver["metadata"]["name"])
    finally:
        kubectl("delete", "limitrange", "small", "-n", space.namespace)
    wait_for("an executor", lambda: bool(executors(space, driver["metadata"]["name"])), seconds=60)
    wait_for(
        "it is said no more",
        lambda: space.condition("hudiwriter", "refused", "ExecutorsMissing").get("status") == "False",
        seconds=90,
    )
    space.wait("hudiwriter/refused", "Finished", seconds=300)
    status = space.get("hudiwriter", "refused")["status"]
    assert [attempt["class"] for attempt in status["attempts"]] == ["Succeeded"], "a retry was eaten"
    space.audited("limited", written(batches=1, rows=20))
