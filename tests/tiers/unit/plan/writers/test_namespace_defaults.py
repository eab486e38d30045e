"""Defaults of a namespace in the life of writers: what starts has them, what runs goes on, and a
text that cannot be used starts nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_operator.control.memory import Memory
from hudi_operator.model.facts import Observed
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_store import CONFIG
from tests.support.world.simulated_world import World, finished, ready_world
from tests.support.world.watched_world import TABLE, Hears, Watched, at_once, never

GOOD = "driver: {nodeSelector: {pool: hudi}}\nsparkConf: {spark.sql.shuffle.partitions: '64'}\n"
BAD = "driver: {nodeSelector: {pool: 1}}\n"
TOLD = "ConfigMap hudi-operator-defaults, defaults.yaml: driver.nodeSelector['pool']: expected str, found 1"
RESYNC_SECONDS = 260


def started(world: World, name: str, seconds: int = 60) -> list[dict[str, Any]]:
    """Pods of a writer that are made within that time."""
    made: list[dict[str, Any]] = []
    for _ in range(seconds):
        plan = world.reconcile()
        made += [
            action.manifest
            for action in plan.actions
            if isinstance(action, act.CreatePod) and action.manifest["metadata"]["name"].startswith(name)
        ]
        world.tick()
    return made


def stalled(world: World, name: str) -> tuple[str, str, str]:
    found = world.condition(world.writers[name], "Stalled")
    return found["status"], found["reason"], found["message"]


def test_an_attempt_begins_with_them() -> None:
    world = ready_world()
    world.set_defaults(GOOD)
    world.make_writer("load")
    (pod, *_) = started(world, "load")
    assert pod["spec"]["nodeSelector"] == {"pool": "hudi"}
    (config,) = [a for a in world.applied if a["kind"] == "ConfigMap" and a["metadata"]["name"].startswith("load")][:1]
    assert "spark.sql.shuffle.partitions=64" in config["data"]["spark-defaults.conf"]


def test_a_bad_text_starts_nothing_and_stops_nobody() -> None:
    world = ready_world()
    world.set_defaults(GOOD)
    world.writer_hang_at = 1
    world.make_writer("runs")
    world.run(lambda w: w.is_true(w.writers["runs"], "Running"))
    before = {pod for pod in world.pods if pod.startswith("runs")}
    world.set_defaults(BAD)
    world.make_writer("new")
    assert started(world, "new") == []
    assert stalled(world, "new") == ("True", "InvalidDefaults", TOLD)
    (event,) = [event for event in world.events if event.name == "new"]
    assert (event.type, event.reason, event.message) == ("Warning", "InvalidDefaults", TOLD)
    # The other one runs as before, and ends as it would have.
    assert world.is_true(world.writers["runs"], "Running")
    assert stalled(world, "runs")[0] == "False"
    assert {pod for pod in world.pods if pod.startswith("runs")} == before
    process = world.writer_process("runs")
    assert process is not None
    process.hang_at = None
    world.writer_hang_at = None
    world.run(finished("runs"))
    assert not [name for name in world.pods if name.startswith("new")]
    # Whoever corrects it needs to do no more.
    world.set_defaults(GOOD)
    world.run(finished("new"))
    assert stalled(world, "new")[0] == "False"


def test_a_bad_text_makes_no_pod_of_an_attempt_that_has_none_yet() -> None:
    """Its number is in status already: it would begin without what the namespace asks for."""
    world = ready_world()
    world.set_defaults(GOOD)
    world.make_writer("load")
    for _ in range(60):
        plan = plan_table(world.observe(), CONFIG)
        begun = [n for n, a in enumerate(plan.actions) if isinstance(a, act.UpdateStatus) and a.status.get("attempt")]
        if begun:
            break
        world.reconcile()
        world.tick()
    # The operator dies after that status, before it makes anything.
    world.reconcile(crash_after=begun[0] + 1)
    assert world.writers["load"]["status"]["attempt"] == 1
    world.set_defaults(BAD)
    assert started(world, "load") == []
    assert world.condition(world.writers["load"], "Ready")["message"] == TOLD
    assert world.writers["load"]["status"]["attempts"][0].get("class") in (None, "")
    world.set_defaults(GOOD)
    world.run(finished("load"))
    assert world.writers["load"]["status"]["attempt"] == 1


def test_who_rests_is_not_told() -> None:
    """Nothing would start anyway: a suspended writer, and one that has finished."""
    world = ready_world()
    world.make_writer("done")
    world.run(finished("done"))
    world.make_writer("asleep", suspend=True)
    world.set_defaults(BAD)
    started(world, "asleep", 20)
    assert stalled(world, "done")[0] == "False"
    assert world.is_true(world.writers["done"], "Succeeded")
    assert stalled(world, "asleep")[0] == "False"
    assert world.writers["asleep"]["status"]["state"] == "Suspended"


def test_without_the_config_map_they_are_gone() -> None:
    world = ready_world()
    world.set_defaults(BAD)
    world.make_writer("load")
    started(world, "load", 20)
    assert stalled(world, "load")[1] == "InvalidDefaults"
    world.defaults = None
    (pod, *_) = started(world, "load")
    assert "nodeSelector" not in pod["spec"]


def test_a_folder_for_event_logs_is_judged_as_the_writers_own_would_be() -> None:
    world = ready_world()
    world.set_defaults("sparkConf: {spark.eventLog.enabled: 'true', spark.eventLog.dir: s3a://lake/flights/logs}")
    world.make_writer("load")
    assert started(world, "load", 20) == []
    status, reason, message = stalled(world, "load")
    assert (status, reason) == ("True", "PathNotAllowed")
    assert message.startswith("spec.sparkConf['spark.eventLog.dir']: s3a://lake/flights/logs overlaps")
    assert message.endswith("(ConfigMap hudi-operator-defaults, defaults.yaml)")


@pytest.mark.parametrize(("hears", "within"), [(at_once, 20), (never, RESYNC_SECONDS)], ids=["heard", "not heard"])
def test_a_correction_ends_the_wait(hears: Hears, within: int) -> None:
    """A table whose writers wait for nothing else is hardly looked at: the watch tells of it, and
    the next look finds what it has not told.
    """
    world = World()
    world.make_table()
    watched = Watched(world, at_once)
    watched.run(lambda w: w.is_true(w.table, "Ready"))
    world.set_defaults(BAD)
    world.make_writer("load")
    watched.run(lambda w: stalled_for(w, "load") == "InvalidDefaults")
    watched.at_rest()
    watched._hears = hears
    world.set_defaults(GOOD)
    assert watched.run(lambda w: bool(w.writers["load"]["status"].get("attempts"))) <= within


def stalled_for(world: World, name: str) -> str:
    return str(world.condition(world.writers[name], "Stalled").get("reason", ""))


def test_a_look_at_one_table_tells_the_others_of_its_namespace() -> None:
    """And what a watch has brought stands, whatever a look has read before."""
    now = [0.0]
    memory = Memory(clock=lambda: now[0])
    world = ready_world()
    seen = world.observe()
    world.set_defaults(GOOD)
    memory.learn(TABLE, seen, began=1.0)
    now[0] = 2.0
    assert world.defaults is not None
    memory.defaults(world.defaults, deleted=False)
    memory.learn(TABLE, seen, began=1.5)
    assert known(memory) == world.defaults
    memory.learn((TABLE[0], "other"), seen, began=3.0)
    assert known(memory) is None, "its deletion was not told"
    memory.defaults(world.defaults, deleted=False)
    unread = replace(seen.objects, defaults_unread="forbidden")
    memory.learn(TABLE, replace(seen, objects=unread), began=4.0)
    assert known(memory) == world.defaults, "nobody knows"
    memory.defaults(world.defaults, deleted=True)
    assert known(memory) is None


def known(memory: Memory) -> Any:
    found: Observed | None = memory.recall(TABLE)
    assert found is not None
    return found.objects.defaults
