"""Defaults of a namespace, with the API server, its watches and the operator's process."""

from __future__ import annotations

from typing import Any

from hudi_contract.defaults import CONFIG_MAP, KEY
from tests.support.harness.operator_world import World
from tests.support.harness.servers import JsonDict, wait_for

GOOD = "driver: {nodeSelector: {pool: hudi}, tolerations: [{key: hudi, operator: Exists}]}"
BAD = "driver: {image: evil:1}"
TOLD = (
    "ConfigMap hudi-operator-defaults, defaults.yaml: driver.image = 'evil:1': cannot be a default of a namespace; of "
    "driver, nodeSelector, podTemplate, tolerations can"
)


def set_defaults(world: World, text: str, method: str = "PUT") -> None:
    path = world.path("configmaps", CONFIG_MAP if method == "PUT" else "", group="/api/v1")
    made: JsonDict = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP}, "data": {KEY: text}}
    world.cluster.request(method, path, made)


def stalled(world: World, name: str, reason: str) -> JsonDict:
    def find() -> Any:
        found = world.condition("hudiwriters", name, "Stalled")
        return found if found is not None and found["reason"] == reason else None

    found: JsonDict = wait_for(f"{name}: {reason}", find, seconds=60)
    return found


def told(world: World, reason: str) -> list[JsonDict]:
    events = world.cluster.request("GET", world.path("events", group="/apis/events.k8s.io/v1")) or {}
    return [event for event in events["items"] if event["reason"] == reason]


def test_what_starts_has_them_and_what_runs_goes_on(world: World) -> None:
    """Text after text, as somebody edits the ConfigMap: each is heard of by the watch."""
    world.start_operator()
    table_id, _, _ = world.running_table(maxWriters=8)
    set_defaults(world, GOOD, "POST")
    pod, _ = world.running_writer(table_id, "first")
    assert pod["spec"]["nodeSelector"] == {"pool": "hudi"}
    assert {"key": "hudi", "operator": "Exists"} in pod["spec"]["tolerations"]
    set_defaults(world, BAD)
    world.writer("second")
    assert stalled(world, "second", "InvalidDefaults")["message"] == TOLD
    (event,) = wait_for("its event", lambda: told(world, "InvalidDefaults"), seconds=60)
    assert (event["type"], event["regarding"]["name"], event["note"]) == ("Warning", "second", TOLD)
    assert world.pods("driver", writer="second") == []
    (still,) = world.pods("driver", writer="first")
    assert still["metadata"]["uid"] == pod["metadata"]["uid"]
    assert "deletionTimestamp" not in still["metadata"]
    running = world.condition("hudiwriters", "first", "Running")
    assert running is not None
    assert running["status"] == "True"
    set_defaults(world, GOOD.replace("pool: hudi", "pool: lake"))
    found = world.pod("driver", writer="second", seconds=60)
    assert found["spec"]["nodeSelector"] == {"pool": "lake"}
    # A writer's own field comes first; without the ConfigMap there are no others.
    world.writer("third", driver={"nodeSelector": {"pool": "own"}})
    assert world.pod("driver", writer="third", seconds=60)["spec"]["nodeSelector"] == {"pool": "own"}
    world.cluster.request("DELETE", world.path("configmaps", CONFIG_MAP, group="/api/v1"))
    world.writer("fourth")
    assert "nodeSelector" not in world.pod("driver", writer="fourth", seconds=60)["spec"]
