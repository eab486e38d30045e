"""Pods are the operator's by the role that it gave them, and by nothing else (F205)."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_contract import naming
from hudi_operator.model.facts import PodName
from hudi_operator.plan import table as planner
from hudi_operator.plan.core import actions as act
from tests.support.world.scene import Scene
from tests.support.world.simulated_store import CONFIG

GONE = "2026-01-02T00:00:00Z"


def with_agent(**labels: str) -> Scene:
    """A table whose agent's name somebody's pod has, with more labels of the agent's and others."""
    scene = Scene()
    name = naming.agent_pod_name(scene.view.agent, 999)
    pod = scene.pod(name, role=naming.ROLE_AGENT)
    pod.labels = {naming.LABEL_AGENT: scene.view.agent, naming.LABEL_ATTEMPT: "999", **labels}
    return scene


def started(scene: Scene) -> list[str]:
    assert scene.table is not None
    scene.table["metadata"]["finalizers"] = [naming.SETTLE_FINALIZER]
    actions = planner.plan_table(scene.observe(), CONFIG).actions
    return [a.manifest["metadata"]["name"] for a in actions if isinstance(a, act.CreatePod)]


@pytest.mark.parametrize("role", ["", "executor", "driver", "viewer"])
def test_a_pod_without_the_role_is_not_the_agent(role: str) -> None:
    """It neither serves in the agent's place nor uses up its numbers."""
    scene = with_agent(**({naming.LABEL_ROLE: role} if role else {}))
    assert started(scene) == [naming.agent_pod_name(scene.view.agent, 1)]
    assert scene.view.agent_pods == ()
    assert started(with_agent(**{naming.LABEL_ROLE: naming.ROLE_AGENT})) == []


def test_a_pod_of_another_name_is_not_the_agent() -> None:
    scene = with_agent(**{naming.LABEL_ROLE: naming.ROLE_AGENT})
    (pod,) = scene.pods.values()
    pod.name = "theirs"
    assert started(scene) == [naming.agent_pod_name(scene.view.agent, 1)]


@pytest.mark.parametrize("change", [{naming.LABEL_ROLE: ""}, {naming.LABEL_DRIVER: "another"}])
def test_a_pod_without_the_role_is_not_the_attempt(change: dict[str, str]) -> None:
    scene = Scene()
    name = scene.writer()
    del scene.writers["load"]["status"]["attempts"][0]["podUID"]
    scene.pod(name).labels |= change
    (writer,) = scene.view.writers
    assert writer.last is not None
    assert (writer.last.pod, writer.last.pod_uid) == (None, "")


def acted_upon(scene: Scene) -> set[str]:
    actions: list[Any] = list(planner.plan_table(scene.observe(), CONFIG).actions)
    return {a.name for a in actions if isinstance(a, act.DeletePod | act.DropEvidence | act.DeleteObject)}


def test_whoever_is_named_in_etcd_is_acted_upon_with_its_role_only() -> None:
    for role, expected in (("", set[str]()), (naming.ROLE_DRIVER, {"load-0000-1"})):
        scene = Scene()
        assert scene.table is not None
        scene.table["metadata"]["finalizers"] = [naming.SETTLE_FINALIZER]
        scene.pod().labels[naming.LABEL_ROLE] = role
        scene.incarnation(alive=False)
        scene.fenced("Terminating")
        assert acted_upon(scene) == expected


@pytest.mark.parametrize(
    ("controller", "expected"),
    [
        (PodName("load-0000-1", "uid-of-load-0000-1"), True),
        (PodName("theirs-1", "uid-of-load-0000-1"), False),
        (None, False),
    ],
)
def test_an_executor_is_one_whose_controller_is_the_driver(controller: PodName | None, *, expected: bool) -> None:
    """F356: Spark's label and another owner make nobody an executor."""
    scene = Scene()
    assert scene.table is not None
    scene.table["metadata"]["finalizers"] = [naming.SETTLE_FINALIZER]
    scene.pod()
    pod = scene.pod("load-0000-1-exec-1", role=naming.ROLE_EXECUTOR)
    pod.labels, pod.controller = {"spark-role": "executor"}, controller
    scene.incarnation(alive=False)
    scene.fenced("Terminating")
    assert acted_upon(scene) == {"load-0000-1", *(["load-0000-1-exec-1"] if expected else [])}


def test_a_writer_without_a_table_waits_for_its_own_pods_only() -> None:
    scene = Scene()
    scene.table = None
    name = scene.writer()
    scene.writers["load"]["metadata"]["deletionTimestamp"] = GONE
    pod = scene.pod(name)
    for role, waits in ((naming.ROLE_DRIVER, True), ("", False)):
        pod.labels[naming.LABEL_ROLE] = role
        actions = planner.plan_table(scene.observe(), CONFIG).actions
        assert bool([a for a in actions if isinstance(a, act.PatchFinalizers)]) is not waits
