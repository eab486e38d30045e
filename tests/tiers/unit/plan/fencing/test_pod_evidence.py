"""When the finalizer of a driver or executor goes, and which objects are left over, from one moment
each (F14, F26).
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_contract import naming
from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_operator.model import conditions
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.fencing import evidence
from tests.support.world.scene import INC, Scene
from tests.support.world.simulated_store import NAMESPACE, START_MS


def planned(scene: Scene) -> tuple[act.Action, ...]:
    return evidence.plan_evidence(scene.view).actions


def dropped(scene: Scene) -> set[str]:
    return {a.name for a in planned(scene) if isinstance(a, act.DropEvidence)}


def killed(scene: Scene) -> set[str]:
    assert all(a.grace_seconds > 0 for a in planned(scene) if isinstance(a, act.DeletePod))
    return {a.name for a in planned(scene) if isinstance(a, act.DeletePod)}


def attempt(phase: str = "Running", *, ended: bool = False, **pod: Any) -> tuple[Scene, str]:
    """The first attempt of a writer, and the name of its pod."""
    scene = Scene()
    name = scene.writer()
    if ended:
        scene.writers["load"]["status"]["attempts"][0]["class"] = "Succeeded"
    scene.pod(name, phase=phase, **pod)
    return scene, name


def proven(name: str) -> dict[str, Any]:
    return {f"uid-of-{name}": {"kind": "PodTerminated", "detail": "", "atMs": START_MS}}


def test_a_proof_on_record_lets_it_go() -> None:
    scene, name = attempt("Failed")
    scene.incarnation(pod=name, alive=False)
    scene.fenced("Terminating", pod=name, proofs=proven(name))
    assert dropped(scene) == {name}


@pytest.mark.parametrize("phase", ["Fenced", "Terminating"])
def test_it_stays_until_settling_has_written_the_proof(phase: str) -> None:
    """F14: although its end can be seen."""
    scene, name = attempt("Failed", ended=True)
    scene.incarnation(pod=name, alive=False)
    scene.fenced(phase, pod=name)
    assert (dropped(scene), killed(scene)) == (set(), set())


@pytest.mark.parametrize("alive", [True, False])
@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_it_stays_while_a_registration_stands(phase: str, alive: bool) -> None:
    """Also of one that has ended: nobody has fenced it yet."""
    scene, name = attempt(phase, ended=True)
    scene.incarnation(pod=name, alive=alive)
    assert (dropped(scene), killed(scene)) == (set(), set())


def test_of_a_living_drivers_executor_it_goes_with_the_object_only() -> None:
    """F611: an object that stays without it, while a kubelet cleans up or for a finalizer of
    somebody else, would be one that was seen without evidence once its driver is fenced.
    """
    scene, name = attempt()
    scene.incarnation(pod=name)
    executor = scene.pod(f"{name}-exec-1", role=naming.ROLE_EXECUTOR, owner=name, phase="Failed")
    assert (dropped(scene), killed(scene)) == (set(), {executor.name})
    executor.deleting_since = scene.now
    assert (dropped(scene), killed(scene)) == (set(), set()), "it was deleted before it ended"
    executor.final = True
    executor.finalizers.append("example.com/quota")
    assert (dropped(scene), killed(scene)) == (set(), set())
    executor.finalizers.remove("example.com/quota")
    assert (dropped(scene), killed(scene)) == ({executor.name}, set())


def test_it_stays_while_it_may_still_register() -> None:
    scene, name = attempt("Failed", ended=True)
    scene.put(f"admit/{naming.attempt_id(NAMESPACE, name)}", {"attempt": "", "role": "writer"})
    assert dropped(scene) == set()
    scene, name = attempt("Failed")
    assert dropped(scene) == set(), "its outcome is not in status yet"
    scene, name = attempt("Failed", ended=True)
    assert dropped(scene) == {name}


def test_it_stays_beside_an_incarnation_that_nobody_can_place() -> None:
    scene, _ = attempt("Failed", ended=True)
    scene.instant("20260101000000001", inc="inc-of-nobody")
    assert dropped(scene) == set()


def test_a_driver_that_does_not_end_is_deleted_and_proven_then() -> None:
    scene, name = attempt("Running", ended=True)
    assert (dropped(scene), killed(scene)) == (set(), {name})
    scene.pods[name].deleting_since = 0.0
    assert (dropped(scene), killed(scene)) == (set(), set())


def with_executor(phase: str, *, deleting: bool = False) -> tuple[Scene, str]:
    """An executor in that phase of a driver that lives."""
    scene, name = attempt()
    scene.incarnation(pod=name)
    executor = scene.pod(f"{name}-exec-1", role=naming.ROLE_EXECUTOR, owner=name, phase=phase)
    if deleting:
        scene.delete_pod(executor.name, 30)
    return scene, executor.name


def test_an_executor_goes_with_its_object() -> None:
    """F26: while its driver lives a pod that was seen without the finalizer would be unproven.

    So it is deleted first.
    """
    scene, executor = with_executor("Running")
    assert (dropped(scene), killed(scene)) == (set(), set())
    scene, executor = with_executor("Failed")
    assert (dropped(scene), killed(scene)) == (set(), {executor})
    scene, executor = with_executor("Failed", deleting=True)
    assert (dropped(scene), killed(scene)) == ({executor}, set())


def test_a_late_executor_of_one_that_is_proven_dead() -> None:
    scene, name = attempt("Failed", ended=True)
    scene.incarnation(pod=name, alive=False)
    scene.fenced("Draining", pod=name, proofs=proven(name))
    executor = scene.pod(f"{name}-exec-9", role=naming.ROLE_EXECUTOR, owner=name)
    assert (dropped(scene), killed(scene)) == ({name}, {executor.name})


def test_a_driver_that_was_left_behind_ends_with_the_table() -> None:
    """cascade=orphan: no HudiWriter is there that anybody could delete."""
    scene, name = attempt()
    scene.incarnation(pod=name)
    del scene.writers["load"]
    assert killed(scene) == set()
    assert scene.table is not None
    scene.table["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    assert killed(scene) == {name}


def test_pods_of_agents_are_not_this_planners() -> None:
    scene = Scene()
    scene.pod("hudi-agent-x-1", role=naming.ROLE_AGENT, phase="Failed")
    assert (dropped(scene), killed(scene)) == (set(), set())


def test_objects_of_old_attempts_go_and_the_last_ones_stay() -> None:
    scene = Scene()
    scene.writer()
    first = scene.writers["load"]["status"]["attempts"][0]["pod"]
    pods = [first[:-1] + str(n) for n in range(1, 6)]
    entries = [
        {"number": n, "pod": pod, "podUID": f"uid-of-{pod}", "class": "Infrastructure"} for n, pod in enumerate(pods, 1)
    ]
    scene.writers["load"]["status"] = {"attempt": 5, "attempts": entries}
    for pod in pods:
        scene.pod(pod, phase="Failed").finalizers.clear()
    gone = {(a.kind, a.name) for a in planned(scene) if isinstance(a, act.DeleteObject)}
    assert gone == {(kind, pod) for pod in pods[:2] for kind in ("Pod", "ConfigMap")}
    scene.pods[pods[0]].finalizers.append("somebody's")
    scene.pods[pods[1]].finalizers.append(naming.EVIDENCE_FINALIZER)
    left = {a.name for a in planned(scene) if isinstance(a, act.DeleteObject)}
    assert left == {pods[0]}, "with our finalizer it is evidence"


def with_ended(number: int, **spec: Any) -> tuple[Scene, list[str]]:
    """A writer with ended attempts, a minute apart, the last one now; names of their pods."""
    scene = Scene()
    scene.writer()
    scene.writers["load"]["spec"].update(spec)
    first = scene.writers["load"]["status"]["attempts"][0]["pod"]
    pods = [first[:-1] + str(n) for n in range(1, number + 1)]
    now = scene.view.now_ms
    entries = [
        {
            "number": n,
            "pod": pod,
            "podUID": f"uid-of-{pod}",
            "class": "Succeeded",
            "endTime": conditions.rfc3339(now - 60_000 * (number - n)),
        }
        for n, pod in enumerate(pods, 1)
    ]
    scene.writers["load"]["status"] = {"attempt": number, "attempts": entries}
    for pod in pods:
        scene.pod(pod, phase="Succeeded").finalizers.clear()
    return scene, pods


def deleted(scene: Scene) -> set[str]:
    return {a.name for a in planned(scene) if isinstance(a, act.DeleteObject) and a.kind == "Pod"}


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_as_many_ended_attempts_keep_their_pods_as_the_limit_says(limit: int) -> None:
    scene, pods = with_ended(4, podHistory={"limit": limit})
    assert deleted(scene) == set(pods[: max(0, 4 - limit)])
    running = pods[0][:-1] + "5"
    scene.writers["load"]["status"]["attempts"].append({"number": 5, "pod": running})
    scene.pod(running)
    assert deleted(scene) == set(pods[: max(0, 4 - limit)]), "one that runs is not among them"


def test_pods_are_kept_for_a_time() -> None:
    scene, pods = with_ended(4, podHistory={"limit": 10, "ttlSecondsAfterFinished": 125})
    assert deleted(scene) == {pods[0]}
    assert evidence.plan_evidence(scene.view).requeue == pytest.approx(5, abs=1.1), "of the next one"
    scene.writers["load"]["spec"]["podHistory"] = {"ttlSecondsAfterFinished": 0}
    assert deleted(scene) == set(pods)
    scene.writers["load"]["spec"]["podHistory"] = {"limit": 10}
    assert deleted(scene) == set()
    assert evidence.plan_evidence(scene.view).requeue == LONGEST_PAUSE_SECONDS


def test_a_pod_that_is_evidence_outlives_the_limits() -> None:
    scene, (pod,) = with_ended(1, podHistory={"limit": 0, "ttlSecondsAfterFinished": 0})
    assert deleted(scene) == {pod}
    scene.incarnation(pod=pod, alive=False)
    assert deleted(scene) == set(), "its incarnation is not settled"
    scene, (pod,) = with_ended(1, podHistory={"limit": 0, "ttlSecondsAfterFinished": 0})
    scene.pods[pod].finalizers.append(naming.EVIDENCE_FINALIZER)
    assert deleted(scene) == set()


def test_admissions_and_reports_of_nobody_go() -> None:
    scene, name = attempt()
    mine, gone, agent = naming.attempt_id(NAMESPACE, name), f"{NAMESPACE}.gone-1", f"{NAMESPACE}.hudi-agent-x-1"
    for one, role in ((mine, "writer"), (gone, "writer"), (agent, "agent")):
        scene.put(f"admit/{one}", {"attempt": one, "role": role})
    scene.kv["report/attempt/" + mine] = scene.kv["report/attempt/" + gone] = scene.kv[f"admit/{mine}"]
    actions = planned(scene)
    assert [a.attempt for a in actions if isinstance(a, act.DeleteAdmit)] == [gone]
    assert [a.kind for a in actions if isinstance(a, act.DeleteReport)] == [f"attempt/{gone}"]
    scene.writers["load"]["spec"] = {"operation": 7}
    actions = planned(scene)
    assert not [a for a in actions if isinstance(a, act.DeleteAdmit | act.DeleteReport)], (
        "a writer that cannot be read may have any"
    )


def test_lease_only_waits_for_no_proof() -> None:
    scene, name = attempt("Failed", ended=True)
    scene.incarnation(INC, pod=name, alive=False)
    scene.fenced("Unlocked", pod=name)
    scene.kv["gate"].value["mode"] = "LeaseOnly"
    assert dropped(scene) == {name}
