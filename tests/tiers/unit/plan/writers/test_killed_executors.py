"""An attempt whose executors had too little memory: its class, and what the next one has."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from hudi_contract.outcomes import EXIT_CODES, JVM_ENDED, FailureClass
from tests.support.world.simulated_store import Process
from tests.support.world.simulated_world import World, ready_world

INFRASTRUCTURE = EXIT_CODES[FailureClass.INFRASTRUCTURE]
HEAP_IS_FULL = 3
MORE = {"maxExecutorMemory": "4Gi"}


def world_of(policy: dict[str, Any]) -> tuple[World, Process, Process]:
    """A writer that computes, its driver and its executor."""
    world = ready_world()
    world.writer_hang_at, world.executors_per_driver = 1, 1
    world.make_writer(
        "load", executors={"instances": 1}, retryPolicy={"limit": 3, "backoffSeconds": 1, "outOfMemory": policy}
    )
    world.run(lambda w: "readyTime" in attempts(w)[0])
    return world, driver_of(world), executor_of(world)


def driver_of(world: World) -> Process:
    found = world.writer_process("load")
    assert found is not None
    return found


def executor_of(world: World) -> Process:
    return [p for p in world.processes if p.role == "executor"][-1]


def attempts(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (world.writers["load"].get("status") or {}).get("attempts") or [{}]
    return found


def fails(world: World, driver: Process, code: int = INFRASTRUCTURE, said: str = "Job aborted") -> None:
    """The driver ends by itself, and says why."""
    word = FailureClass.INFRASTRUCTURE if code == INFRASTRUCTURE else FailureClass.WRITE_CONFLICT
    if said:
        world.pods[driver.pod].message = json.dumps({"outcome": "Failed", "class": word, "message": said})
    world._clean_exit(driver)
    world.kill(driver, code)
    number = len(attempts(world))
    world.run(lambda w: bool(attempts(w)[number - 1].get("class")))


def settings(world: World, number: int) -> str:
    """Spark's settings of an attempt."""
    pod = attempts(world)[number - 1]["pod"]
    (found,) = (m for m in world.applied if m["kind"] == "ConfigMap" and m["metadata"]["name"] == pod)
    return str(found["data"]["spark-defaults.conf"])


@pytest.mark.parametrize("another_operator", [False, True])
def test_executors_have_more_memory_in_the_next_attempt(another_operator: bool) -> None:
    world, driver, executor = world_of(MORE)
    world.kill(executor, HEAP_IS_FULL)
    world.run(lambda w: "outOfMemory" in attempts(w)[0])
    assert attempts(world)[0]["outOfMemory"] == executor.pod
    world.run(lambda w: executor.pod not in w.pods)
    if another_operator:
        world.timers.clear()
    fails(world, driver)
    entry = attempts(world)[0]
    assert (entry["class"], entry["outOfMemory"]) == ("OutOfMemory", executor.pod)
    assert entry["message"] == f"executor {executor.pod} ended for lack of memory; Job aborted"
    world.run(lambda w: len(attempts(w)) == 2 and "podUID" in attempts(w)[1])
    assert "spark.executor.memory=1g" in settings(world, 1)
    assert "spark.executor.memory=1536m" in settings(world, 2)
    assert "spark.driver.memory=1g" in settings(world, 2)


def test_nothing_grows_that_was_not_asked_for() -> None:
    world, driver, executor = world_of({"maxMemory": "4Gi"})
    world.kill(executor, HEAP_IS_FULL)
    world.run(lambda w: "outOfMemory" in attempts(w)[0])
    fails(world, driver)
    world.run(lambda w: len(attempts(w)) == 2 and "podUID" in attempts(w)[1])
    assert attempts(world)[0]["class"] == "OutOfMemory"
    for kind in ("driver", "executor"):
        assert f"spark.{kind}.memory=1g" in settings(world, 2)


def test_an_executor_that_another_one_replaced_is_no_reason_for_what_its_driver_knows_better() -> None:
    world, driver, executor = world_of(MORE)
    world.kill(executor, HEAP_IS_FULL)
    world.run(lambda w: "outOfMemory" in attempts(w)[0])
    fails(world, driver, EXIT_CODES[FailureClass.WRITE_CONFLICT])
    assert attempts(world)[0]["class"] == "WriteConflict"


@pytest.mark.parametrize("code", [0, 1, 137, 143])
def test_an_executor_that_ended_otherwise_lacked_nothing(code: int) -> None:
    world, driver, executor = world_of(MORE)
    world.kill(executor, code)
    world.run(lambda w: executor.pod not in w.pods)
    fails(world, driver)
    assert attempts(world)[0]["class"] == "Infrastructure"
    assert "outOfMemory" not in attempts(world)[0]


def test_a_driver_that_was_killed_is_no_reason_for_its_executors() -> None:
    """Nobody knows why, and an executor had been replaced before."""
    world, driver, executor = world_of(MORE)
    world.kill(executor, HEAP_IS_FULL)
    world.run(lambda w: "outOfMemory" in attempts(w)[0])
    fails(world, driver, 137, said="")
    assert attempts(world)[0]["class"] == "Infrastructure"


def test_a_commit_that_follows_ends_the_want_of_memory() -> None:
    """F579: Spark replaced the executor, and the brokers do not answer days later."""
    world, driver, executor = world_of(MORE)
    world.kill(executor, HEAP_IS_FULL)
    world.run(lambda w: "outOfMemoryTime" in attempts(w)[0])
    world.tick(10)
    completed = datetime.fromtimestamp(world.now_ms / 1000, tz=UTC).strftime("%Y%m%d%H%M%S000")
    driver.commits, driver.instant = 1, completed
    told = world.attempt_report(driver).but(last_completion_time=completed)
    world.put(f"report/attempt/{driver.attempt}", told.to_json())
    world.run(lambda w: "outOfMemory" not in attempts(w)[0])
    assert "outOfMemoryTime" not in attempts(world)[0]
    fails(world, driver, said="source.kafka: brokers do not answer")
    assert attempts(world)[0]["class"] == "Infrastructure"


def test_a_driver_without_its_jvm_is_no_reason_for_its_executors() -> None:
    """F579: its own heap was full."""
    world, driver, executor = world_of(MORE)
    world.kill(executor, HEAP_IS_FULL)
    world.run(lambda w: "outOfMemory" in attempts(w)[0])
    fails(world, driver, said=f"{JVM_ENDED} 3")
    assert attempts(world)[0]["class"] == "Infrastructure"
