"""The agent of a table: its number is spent only by a pod that was there, and its failure is told."""

from __future__ import annotations

import json
from dataclasses import replace

from simulated_world import CONFIG, World

from hudi_operator.model.facts import ContainerFacts, PodFacts
from hudi_operator.reconcile import actions as act
from hudi_operator.reconcile.table import plan_table


def _created(plan: act.Plan) -> list[str]:
    return [a.manifest["metadata"]["name"] for a in plan.actions if isinstance(a, act.CreatePod)]


def test_a_refused_agent_pod_keeps_its_number() -> None:
    world = World()
    world.make_table()
    world.reconcile()
    world.reconcile()
    first = plan_table(world.observe(), CONFIG)
    assert len(_created(first)) == 1
    for action in first.actions:
        if not isinstance(action, act.CreatePod):  # the API server refuses the pod: nothing after it is done
            world.perform(action)
    again = plan_table(world.observe(), CONFIG)
    assert _created(again) == _created(first)


def test_a_failed_agent_is_quoted_in_the_condition() -> None:
    world = World()
    world.make_table()
    world.reconcile()
    world.reconcile()
    observed = world.observe()
    plan = plan_table(observed, CONFIG)
    made = next(a.manifest for a in plan.actions if isinstance(a, act.CreatePod))
    word = json.dumps({"outcome": "Failed", "class": "Infrastructure", "message": "no route to etcd"})
    ended = ContainerFacts("agent", started=True, terminated=True, exit_code=11, reason="Error", message=word, finished_at="2026-01-01T00:00:00Z")
    pod = PodFacts(
        namespace=made["metadata"]["namespace"], name=made["metadata"]["name"], uid="u", labels=made["metadata"]["labels"], phase="Failed",
        node="n", deleting=False, finalizers=(), containers=(ended,),
    )  # fmt: skip
    plan = plan_table(replace(observed, pods=(pod,)), CONFIG)
    status = next(a.status for a in plan.actions if isinstance(a, act.UpdateStatus))
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    assert ready["reason"] == "AgentNotReady"
    assert f"{pod.name} failed: no route to etcd" in ready["message"]
