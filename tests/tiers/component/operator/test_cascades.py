"""A HudiWriter that is deleted in each of kubectl's ways, with the API server's own collector."""

from __future__ import annotations

import time

import pytest

from tests.support.harness.operator_world import EVIDENCE, World
from tests.support.harness.servers import JsonDict, wait_for


def meta(world: World, plural: str, name: str) -> JsonDict:
    found = world.get(plural, name) or {"metadata": {}}
    return dict(found["metadata"])


@pytest.mark.parametrize("cascade", ["foreground", "background", "orphan"])
def test_what_executors_are_compared_with_outlives_the_driver(world: World, cascade: str) -> None:
    """F200: whoever deletes the writer, and how; also with another operator half way."""
    operator = world.start_operator(leader_election=False)
    table_id, _, _ = world.running_table()
    pod, inc = world.running_writer(table_id, executors={"instances": 1})
    name = pod["metadata"]["name"]
    assert meta(world, "configmaps", name)["finalizers"] == [EVIDENCE]
    world.cluster.kubectl("delete", "hudiwriter", "load", "-n", world.namespace, f"--cascade={cascade}", "--wait=false")
    wait_for("the driver is told to end", lambda: meta(world, "pods", name).get("deletionTimestamp"))
    operator.kill()
    if cascade == "foreground":
        wait_for("the collector deletes", lambda: meta(world, "configmaps", name).get("deletionTimestamp"))
    world.start_operator(leader_election=False)
    time.sleep(3)
    assert EVIDENCE in meta(world, "configmaps", name)["finalizers"], "the driver still runs"
    world.end_pod(pod, exit_code=143)
    world.phase(table_id, inc, "Settled")
    wait_for("the evidence goes", lambda: EVIDENCE not in meta(world, "pods", name).get("finalizers", []), seconds=60)
    time.sleep(2)
    assert EVIDENCE in meta(world, "configmaps", name)["finalizers"], "the token of its pod is good"
    world.cluster.request("DELETE", f"{world.path('pods', name, '/api/v1')}?gracePeriodSeconds=0")
    wait_for("the writer goes", lambda: world.get("hudiwriters", "load") is None, seconds=60)
    wait_for(
        "nothing holds the ConfigMap",
        lambda: EVIDENCE not in meta(world, "configmaps", name).get("finalizers", []),
        seconds=60,
    )
    if cascade != "orphan":
        wait_for("it is gone", lambda: world.get("configmaps", name) is None, seconds=60)
