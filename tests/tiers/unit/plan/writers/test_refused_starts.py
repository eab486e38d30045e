"""F245: what the API server does not make for an attempt is said of its writer, and no failure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hudi_contract import naming
from hudi_operator.model.facts import Refusal
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.core.view import build_view
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_world import CONFIG, NAMESPACE, World, finished, ready_world

QUOTA = Refusal("QuotaExceeded", "create Pod lake/load-1: exceeded quota: few (403)")


def waiting_world(**table: Any) -> tuple[World, str]:
    """A writer whose first attempt is in status and admitted, and has no pod."""
    world = ready_world(**table)
    world.make_writer("load")
    world.run(lambda w: any(pod.startswith("load-") for pod in w.pods))
    (name,) = [pod for pod in world.pods if pod.startswith("load-")]
    del world.pods[name]
    world.processes = [process for process in world.processes if process.pod != name]
    world.writers["load"]["status"]["attempts"][-1].pop("podUID", None)
    return world, naming.attempt_id(NAMESPACE, name)


def look(world: World, **refusals: Any) -> act.Plan:
    return plan_table(replace(world.observe(), **refusals), CONFIG)


def status_of(plan: act.Plan, kind: str) -> dict[str, Any]:
    (found,) = [a.status for a in plan.actions if isinstance(a, act.UpdateStatus) and a.kind == kind]
    return {each["type"]: each for each in found["conditions"]} | {"attempts": found.get("attempts")}


def test_a_refusal_is_a_condition_of_its_writer_and_no_failure() -> None:
    world, attempt = waiting_world()
    plan = look(world, refusals={attempt: QUOTA})
    said = status_of(plan, naming.WRITER_KIND)
    refused = said["StartRefused"]
    assert (refused["status"], refused["reason"], refused["message"]) == ("True", QUOTA.reason, QUOTA.message)
    assert said["Ready"]["status"] == "False"
    assert QUOTA.message in said["Ready"]["message"]
    assert said["Finished"]["status"] == "False"
    assert [entry.get("class") for entry in said["attempts"]] == [None], "it has not ended"
    assert [a.reason for a in plan.actions if isinstance(a, act.EmitEvent)] == ["StartRefused"]
    assert any(isinstance(a, act.CreatePod) for a in plan.actions), "it is tried again"


def test_an_attempt_without_a_pod_whose_spec_cannot_be_read_keeps_no_place() -> None:
    """F456: nobody knows when the spec is repaired, and others wait for the place."""
    world, attempt = waiting_world(concurrency={"maxWriters": 1})
    world.make_writer("next")
    world.edit(world.writers["load"], operation="OfAnotherVersion")
    plan = look(world)
    assert act.DeleteAdmit in {type(a) for a in plan.actions if getattr(a, "attempt", "") == attempt}
    assert status_of_writer(plan, "load").get("class") is None, "it may still register"
    world.run(finished("next"))
    (entry,) = world.writers["load"]["status"]["attempts"]
    assert (entry["class"], "cannot be read" in entry["message"]) == ("Cancelled", True)
    assert world.condition(world.writers["load"], "Stalled")["reason"] == "InvalidSpec"
    assert not [pod for pod in world.pods if pod.startswith("load-")]
    world.edit(world.writers["load"], operation="Upsert")
    world.run(finished("load"))
    assert [entry["number"] for entry in world.writers["load"]["status"]["attempts"]] == [1, 2]


def status_of_writer(plan: act.Plan, name: str) -> dict[str, Any]:
    """The last attempt in the status that a plan writes of a writer."""
    (found,) = [a.status for a in plan.actions if isinstance(a, act.UpdateStatus) and a.name == name]
    return dict(found["attempts"][-1])


def test_who_is_refused_is_looked_at_when_it_is_tried_again() -> None:
    """A quota that is full refuses the pods of many tables at once."""
    world, attempt = waiting_world()
    assert look(world).requeue_seconds == 5
    for seconds, again in ((0.2, 1), (7, 7), (90, 15)):
        assert look(world, refusals={attempt: replace(QUOTA, seconds=seconds)}).requeue_seconds == again
    assert replace(QUOTA, seconds=7) == QUOTA, "time that passes is no news"


def test_it_is_said_no_more_when_nothing_is_refused() -> None:
    world, attempt = waiting_world()
    for action in look(world, refusals={attempt: QUOTA}).actions:
        if isinstance(action, act.UpdateStatus):
            world.perform(action)
    refused = status_of(look(world), naming.WRITER_KIND)["StartRefused"]
    assert (refused["status"], refused["reason"], refused["message"]) == ("False", "NotRefused", "")


def test_what_the_operator_itself_starts_no_more_is_said_of_an_attempt_without_a_pod() -> None:
    """F292: the spec was changed while the attempt waited."""
    world, attempt = waiting_world()
    world.writers["load"]["spec"]["imagePullSecrets"] = [{"name": "hudi-operator-etcd"}]
    plan = look(world, refusals={attempt: QUOTA})
    assert not any(isinstance(a, act.CreatePod) for a in plan.actions)
    ready = status_of(look(world), naming.WRITER_KIND)["Ready"]
    assert ready["status"] == "False"
    assert "spec.imagePullSecrets: Secret hudi-operator-etcd: names that begin with" in ready["message"]
    world.writers["load"]["spec"].pop("imagePullSecrets")
    assert any(isinstance(a, act.CreatePod) for a in look(world).actions), "the attempt is still there"


def test_a_table_says_that_its_agent_is_refused() -> None:
    world = World()
    world.make_table()
    for _ in range(3):
        world.reconcile()
        if world.pods:
            break
    (name,) = world.pods
    del world.pods[name]
    world.processes.clear()
    view = build_view(world.observe(), CONFIG)
    attempt = naming.attempt_id(NAMESPACE, naming.agent_pod_name(view.agent, 1))
    ready = status_of(look(world, refusals={attempt: QUOTA}), naming.TABLE_KIND)["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "AgentNotReady")
    assert look(world, refusals={attempt: replace(QUOTA, seconds=2)}).requeue_seconds == 2
    assert QUOTA.message in ready["message"]
