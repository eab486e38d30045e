"""What the operator writes to the API server from `kubectl apply` of a HudiWriter to Running.

`docs/design/architecture.md` says the same numbers.
"""

from __future__ import annotations

import re
import time
from collections import Counter

import pytest

from tests.support.harness.operator_world import Operator, World
from tests.support.harness.servers import JsonDict, wait_for

_REQUESTS = re.compile(r'^hudi_operator_api_requests_total\{code="2\d\d",verb="(POST|PUT|PATCH|DELETE)"\} (\S+)$', re.M)
QUIET_SECONDS = 3.0
LOOKS_SECONDS = 2.0
"""Enough for a look at what has changed."""


def written(operator: Operator) -> Counter[str]:
    """Writes so far, by verb, when there has been none for a while."""
    known, since = Counter[str](), time.monotonic()

    def at_rest() -> bool:
        nonlocal known, since
        found = Counter[str]()
        for verb, value in _REQUESTS.findall(operator.get("/metrics")[1]):
            found[verb] += int(float(value))  # of each code
        if found != known:
            known, since = found, time.monotonic()
        return bool(known) and time.monotonic() - since >= QUIET_SECONDS

    wait_for("no more writes", at_rest, seconds=60)
    return known


@pytest.mark.parametrize(
    ("executors", "writes"),
    [
        # The pod; finalizer and ConfigMap; the writer's status as it starts, and when it is
        # registered, and the HudiTable's count.
        pytest.param(0, {"POST": 1, "PATCH": 2, "PUT": 3}, id="without-executors"),
        # Beside these the key of their connections.
        pytest.param(1, {"POST": 2, "PATCH": 2, "PUT": 3}, id="with-executors"),
    ],
)
def test_from_its_creation_until_it_runs(world: World, executors: int, writes: dict[str, int]) -> None:
    operator = world.start_operator(leader_election=False)
    table_id, _, _ = world.running_table()
    more = {"executors": {"instances": executors}} if executors else {}
    world.writer("first", **more)  # what all attempts of a namespace share is made for it
    begins(world, table_id, world.pod("driver", number=1, writer="first"), "first")
    before = written(operator)
    world.writer("load", **more)
    pod = world.pod("driver", number=1, writer="load")
    begins(world, table_id, pod, "load")
    assert written(operator) - before == writes
    (attempt,) = (world.get("hudiwriters", "load") or {})["status"]["attempts"]
    assert attempt["podUID"] == pod["metadata"]["uid"]
    assert {"runningTime", "readyTime"} <= attempt.keys()


def begins(world: World, table_id: str, pod: JsonDict, writer: str) -> None:
    """The driver's container is made, runs, and a while later the driver is registered."""
    world.pod_waits(pod, "ContainerCreating")
    time.sleep(LOOKS_SECONDS)
    world.run_pod(pod, bound=True)
    time.sleep(LOOKS_SECONDS)
    world.register(table_id, pod)
    wait_for("it runs", lambda: (world.condition("hudiwriters", writer, "Running") or {}).get("status") == "True")
