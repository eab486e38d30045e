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


def attempt(world: World, name: str) -> JsonDict:
    """The first attempt of a writer in its status; empty before there is one."""
    attempts = ((world.get("hudiwriters", name) or {}).get("status") or {}).get("attempts") or [{}]
    return dict(attempts[0])


@pytest.mark.parametrize(
    ("executors", "writes"),
    [
        # The pod; finalizer and ConfigMap; the writer's status as it starts, with the pod's uid,
        # when the driver runs, and when it is registered, and the HudiTable's count.
        pytest.param(0, {"POST": 1, "PATCH": 2, "PUT": 5}, id="without-executors"),
        # Beside these the key of their connections.
        pytest.param(1, {"POST": 2, "PATCH": 2, "PUT": 5}, id="with-executors"),
    ],
)
def test_from_its_creation_until_it_runs(world: World, executors: int, writes: dict[str, int]) -> None:
    operator = world.start_operator(leader_election=False)
    table_id, _, _ = world.running_table()
    more = {"executors": {"instances": executors}} if executors else {}
    world.writer("first", **more)  # what all attempts of a namespace share is made for it
    world.pod("driver", number=1, writer="first")
    wait_for("its pod is known", lambda: attempt(world, "first").get("podUID"))
    before = written(operator)
    world.writer("load", **more)
    pod = world.pod("driver", number=1, writer="load")
    wait_for("its pod is known", lambda: attempt(world, "load").get("podUID"))
    world.run_pod(pod)
    wait_for("its driver runs", lambda: attempt(world, "load").get("runningTime"))
    world.register(table_id, pod)
    wait_for("load runs", lambda: (world.condition("hudiwriters", "load", "Running") or {}).get("status") == "True")
    assert written(operator) - before == writes
