"""F301: what the API server does not make for a driver is said of its writer, and ends nothing.

Real: the refusals, and the operator's question. Played: Spark, which makes executors, and the
kubelet. What Spark does when it is refused: `test_executor_pods.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_operator.manifests import asked_executor
from tests.support.harness.operator_world import World
from tests.support.harness.servers import JsonDict, wait_for

PROBE = {"httpGet": {"host": "169.254.169.254", "port": 80}}
"""A probe of another host, which PodSecurity has refused since Kubernetes 1.34."""
BESIDE = {"name": "beside", "image": "registry/beside:1", "livenessProbe": PROBE}


def put(world: World, plural: str, name: str, spec: JsonDict, status: JsonDict | None = None) -> None:
    path = world.path(plural, group="/api/v1")
    made = world.cluster.request("POST", path, {"apiVersion": "v1", "metadata": {"name": name}, "spec": spec})
    if status is not None:
        # Nobody counts in this cluster.
        world.cluster.request("PUT", f"{path}/{name}/status", {**(made or {}), "status": status})


def quota(world: World) -> None:
    hard = {"count/pods": "1"}
    put(world, "resourcequotas", "few", {"hard": hard}, {"hard": hard, "used": hard})


def limits(world: World) -> None:
    put(world, "limitranges", "small", {"limits": [{"type": "Container", "max": {"memory": "256Mi"}}]})


def security(world: World) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    path = f"/api/v1/namespaces/{world.namespace}"
    world.cluster.request("PATCH", path, {"metadata": {"labels": labels}}, "application/merge-patch+json")


def no_security(world: World) -> None:
    labels = {"pod-security.kubernetes.io/enforce": None}
    path = f"/api/v1/namespaces/{world.namespace}"
    world.cluster.request("PATCH", path, {"metadata": {"labels": labels}}, "application/merge-patch+json")


def gone(plural: str, name: str) -> Callable[[World], None]:
    return lambda world: world.cluster.request("DELETE", world.path(plural, name, group="/api/v1")) and None


def missing(world: World, status: str, reason: str, *, seconds: float = 80) -> JsonDict:
    def find() -> JsonDict | None:
        found = world.condition("hudiwriters", "load", "ExecutorsMissing")
        return found if found is not None and (found["status"], found["reason"]) == (status, reason) else None

    return wait_for(f"ExecutorsMissing {status} {reason}", find, seconds=seconds)


def add_executor(world: World, driver: JsonDict, number: int) -> JsonDict:
    """What Spark makes."""
    meta = driver["metadata"]
    files = (world.get("configmaps", meta["name"]) or {})["data"]
    pod = asked_executor.executor_pod(files, namespace=world.namespace, driver=meta["name"], uid=meta["uid"])
    pod["metadata"]["name"] = f"{meta['name']}-exec-{number}"
    return world.cluster.request("POST", world.path("pods", group="/api/v1"), pod) or {}


def attempts(world: World) -> list[JsonDict]:
    found: list[JsonDict] = ((world.get("hudiwriters", "load") or {}).get("status") or {})["attempts"]
    return found


REFUSALS: dict[str, tuple[Callable[[World], Any], Callable[[World], Any], str, str]] = {
    "quota": (quota, gone("resourcequotas", "few"), "QuotaExceeded", "exceeded quota: few, requested: count/pods=1"),
    "limit-range": (limits, gone("limitranges", "small"), "LimitRange", "maximum memory usage per Container is 256Mi"),
    "pod-security": (security, no_security, "PodSecurity", 'violates PodSecurity "restricted:latest"'),
}


@pytest.mark.parametrize(
    "refusal", ["quota", *(pytest.param(one, marks=pytest.mark.extra) for one in ("limit-range", "pod-security"))]
)
def test_what_executors_are_refused_for_is_said_and_ends_nothing(world: World, refusal: str) -> None:
    begin, end, reason, words = REFUSALS[refusal]
    world.start_operator()
    table_id, _, _ = world.running_table()
    template = {"spec": {"containers": [BESIDE]}} if refusal == "pod-security" else {}
    executors = {"instances": 2, "memory": "512Mi", "podTemplate": template}
    driver, _ = world.running_writer(table_id, executors=executors, retryPolicy={"limit": 0, "backoffSeconds": 1})
    begin(world)
    found = missing(world, "True", "Refused")
    assert found["message"].startswith(f"0 of 2 executors run; the API server makes no more of them: {reason}: ")
    assert words in found["message"]
    assert not world.pods("executor"), "nothing is stored"
    end(world)
    for number in (1, 2):
        pod = add_executor(world, driver, number)
        if number == 1:
            world.run_pod(pod)
    found = missing(world, "True", "Pending", seconds=20)
    assert found["message"] == f"1 of 2 executors run; pod {pod['metadata']['name']}: Pending"
    world.run_pod(pod)
    missing(world, "False", "NotMissing", seconds=20)
    (attempt,) = attempts(world)
    assert (attempt["number"], attempt.get("class"), attempt["executors"]) == (1, None, 2), "no retry was eaten"
    running = world.condition("hudiwriters", "load", "Running")
    assert running is not None
    assert running["status"] == "True"
