"""The configuration file of an operator that runs: what is read again, what is refused, and what
needs a restart. The kubelet renews a ConfigMap's file in its volume; here the test does.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import yaml

from tests.support.harness.operator_world import Operator, World
from tests.support.harness.servers import wait_for


def file_of(world: World) -> Path:
    return world.directory / f"config-{len(world.operators) - 1}.yaml"


def write(world: World, **changes: Any) -> None:
    """Another content, in one step, as in a volume."""
    file = file_of(world)
    new = file.with_suffix(".new")
    new.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **changes}))
    os.replace(new, file)


def in_force(operator: Operator, value: float) -> bool:
    return f"hudi_operator_config_in_force {value}" in operator.get("/metrics")[1]


def stalled(world: World) -> str:
    found = world.condition("huditables", "flights", "Stalled") or {}
    return str(found.get("reason")) if found.get("status") == "True" else ""


def test_a_path_is_allowed_and_an_annotation_is_set_without_a_restart(world: World) -> None:
    world.settings = {"pathPrefixes": {world.namespace: ["s3a://elsewhere/"]}}
    operator = world.start_operator()
    table_id = world.table()
    wait_for("the path is refused", lambda: stalled(world) == "PathNotAllowed")
    write(world, pathPrefixes={world.namespace: ["s3a://lake/"]}, driverAnnotations={"a.example/b": "c"})
    wait_for("the path is allowed", lambda: not stalled(world) and world.pods("agent"), seconds=30)
    agent = world.pod("agent")
    world.run_pod(agent)
    world.report_timeline(table_id, world.register(table_id, agent, role="agent"))
    world.writer()
    annotations = world.pod("driver", writer="load")["metadata"]["annotations"]
    assert annotations["a.example/b"] == "c"
    assert operator.process.poll() is None
    assert len(world.operators) == 1
    assert in_force(operator, 1.0)


def test_a_file_that_cannot_be_used_changes_nothing_and_is_told(world: World) -> None:
    operator = world.start_operator()
    world.running_table()
    wait_for("it is in force", lambda: in_force(operator, 1.0))
    good = file_of(world).read_text()
    for bad, said in (
        ({"allowedScheme": ["s3a"]}, "unknown setting allowedScheme"),
        ({"etcd": {**yaml.safe_load(good)["etcd"], "prefix": "/other"}}, "a change of etcd counts after a restart"),
    ):
        write(world, **bad)
        wait_for(said, lambda: in_force(operator, 0.0) and said in operator.log.read_text())  # noqa: B023
        time.sleep(6)
        assert operator.log.read_text().count(said) == 1, "once"
        file_of(world).write_text(good)
        wait_for("it is in force again", lambda: in_force(operator, 1.0))
    assert stalled(world) == ""
    assert operator.process.poll() is None
