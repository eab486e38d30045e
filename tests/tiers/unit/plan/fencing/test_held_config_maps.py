"""The ConfigMap with which a driver's executors are compared outlives the driver (F200)."""

from __future__ import annotations

from hudi_contract import naming
from hudi_operator.model.facts import HeldConfigMap
from hudi_operator.plan import table as planner
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.fencing.held_config_maps import plan_held
from tests.support.world.scene import Scene
from tests.support.world.simulated_store import CONFIG, NAMESPACE
from tests.support.world.simulated_world import World, at_step, finished, ready_world

EXECUTORS = {"instances": 2}


def laid_out() -> tuple[Scene, str]:
    """A writer whose only attempt has a pod and a ConfigMap that is held."""
    scene = Scene()
    pod = scene.writer()
    scene.pod(pod)
    scene.held[pod] = HeldConfigMap(NAMESPACE, pod, "uid-of-config", "load")
    return scene, pod


def released(scene: Scene) -> list[str]:
    return [a.name for a in plan_held(scene.view).actions if isinstance(a, act.ReleaseConfigMap)]


def test_it_stays_as_long_as_the_object_of_its_pod() -> None:
    """Also when nobody is left in the pod: its token is good as long as the object is there."""
    scene, pod = laid_out()
    scene.writers["load"]["status"]["attempts"][0]["class"] = "Cancelled"
    scene.pods[pod].phase = "Failed"
    scene.pods[pod].finalizers.clear()
    scene.pods[pod].deleting_since = 0.0
    assert released(scene) == []
    del scene.writers["load"]
    assert released(scene) == [], "its HudiWriter is gone, by whatever cascade"
    del scene.pods[pod]
    assert released(scene) == [pod]


def test_it_stays_while_its_pod_may_still_be_made() -> None:
    scene, pod = laid_out()
    del scene.pods[pod]
    assert released(scene) == [], "the attempt has not ended"
    scene.writers["load"]["status"]["attempts"][0]["class"] = "Cancelled"
    scene.put(f"admit/{naming.attempt_id(NAMESPACE, pod)}", {"attempt": pod, "role": "writer"})
    assert released(scene) == [], "it is admitted"
    scene.drop(f"admit/{naming.attempt_id(NAMESPACE, pod)}")
    assert released(scene) == [pod]


def test_it_stays_while_its_writer_cannot_be_read() -> None:
    scene, pod = laid_out()
    del scene.pods[pod]
    scene.writers["load"]["status"]["attempts"][0]["class"] = "Cancelled"
    scene.writers["load"]["spec"] = {"operation": 7}
    assert released(scene) == []


def held(scene: Scene) -> list[str]:
    return [a.name for a in plan_held(scene.view).actions if isinstance(a, act.HoldConfigMap)]


def without_finalizer() -> tuple[Scene, str]:
    """The same, created by an operator from before the finalizer."""
    scene, pod = laid_out()
    scene.unheld[pod] = scene.held.pop(pod)
    scene.pods[pod].secrets = (naming.spark_key_name(pod), "lake")
    return scene, pod


def test_that_of_a_pod_from_before_an_upgrade_is_held() -> None:
    """F271: also when its writer has ended or is gone, while the object of the pod is there."""
    scene, pod = without_finalizer()
    assert held(scene) == [pod]
    scene.writers["load"]["status"]["attempts"][0]["class"] = "Cancelled"
    scene.pods[pod].phase = "Succeeded"
    assert held(scene) == [pod]
    del scene.writers["load"]
    assert held(scene) == [pod]
    del scene.pods[pod]
    assert held(scene) == []


def test_that_of_a_pod_without_executors_is_not_held() -> None:
    scene, pod = without_finalizer()
    scene.pods[pod].secrets = ("lake",)
    assert held(scene) == []


def test_what_was_held_at_an_upgrade_goes_when_its_pod_has_ended() -> None:
    world = working()
    world.unheld, world.held = world.held, {}
    world.run(lambda w: bool(w.held))
    assert not world.unheld
    world.delete(world.writers["backfill"])
    world.run(lambda w: not w.writers and not w.held, crash_every=3)


def left(scene: Scene) -> list[str]:
    """What is released where there is no HudiTable."""
    scene.table = None
    actions = planner.plan_table(scene.observe(), CONFIG).actions
    return [a.name for a in actions if isinstance(a, act.ReleaseConfigMap)]


def test_without_a_table_it_stays_as_long_as_the_evidence() -> None:
    scene, pod = laid_out()
    assert left(scene) == []
    scene.pods[pod].finalizers.clear()
    assert left(scene) == [pod]


def working() -> World:
    """A world with a writer in the middle of its work, which may start executors."""
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("backfill", executors=EXECUTORS)
    world.run(at_step("backfill", 3))
    assert [name.rpartition("-")[2] for name in world.held] == ["1"]
    return world


def test_a_writer_that_is_deleted_leaves_nothing_behind() -> None:
    world = working()
    world.delete(world.writers["backfill"])
    world.run(lambda w: not w.writers and not w.held, crash_every=3)


def test_a_table_that_is_deleted_leaves_nothing_behind() -> None:
    """The world refuses that the HudiTable goes while a ConfigMap is held."""
    world = working()
    assert world.table is not None
    world.delete(world.table)
    world.run(lambda w: w.table is None)
    assert not world.held


def test_a_table_with_kept_pods_leaves_nothing_behind() -> None:
    """Pods that have ended are kept for their logs: nobody would look at the table when they go."""
    world = ready_world()
    world.make_writer("backfill", executors=EXECUTORS)
    world.run(finished("backfill"))
    world.settle_down()
    assert world.table is not None
    assert len(world.held) == 1
    world.delete(world.table)
    world.run(lambda w: w.table is None)
    assert not world.held


def test_a_namespace_that_is_deleted_leaves_nothing_behind() -> None:
    world = working()
    assert world.table is not None
    world.terminating = True
    for obj in (world.table, *world.writers.values(), *world.pods.values()):
        world.delete(obj) if isinstance(obj, dict) else world._mark_deleted(obj, 30)
    world.run(lambda w: w.table is None and not w.writers, crash_every=4)
    assert not world.held


def test_those_of_kept_pods_stay_and_others_go() -> None:
    """The last ended pods are kept for their logs, and their ConfigMaps with them."""
    world = ready_world()
    world.exit_codes = [1] * 4
    world.make_writer("backfill", executors=EXECUTORS, retryPolicy={"limit": 5})
    world.run(finished("backfill"))
    world.settle_down()
    drivers = {name for name, pod in world.pods.items() if pod.labels[naming.LABEL_ROLE] == naming.ROLE_DRIVER}
    assert world.writers["backfill"]["status"]["attempt"] == 5
    assert set(world.held) == drivers
