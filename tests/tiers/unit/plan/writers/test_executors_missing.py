"""F301: executors that do not come are said of their writer, with the reason, and end nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_contract import naming
from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_operator.control.loop import is_quiet
from hudi_operator.model.facts import ExecutorAnswer
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.table import plan_table
from hudi_operator.plan.writers import executors_missing
from tests.support.world.simulated_world import CONFIG, World, ready_world

QUOTA = ExecutorAnswer("QuotaExceeded", "pods is forbidden: exceeded quota: few")
NAMES = ("missing", "wanted")


def running_world(*, made: int, wanted: int = 2, answer: ExecutorAnswer = QUOTA, **spec: Any) -> World:
    """A writer that runs and waits, with as many executors as the API server has made."""
    world = ready_world()
    world.executors_per_driver, world.executors_refused = made, answer
    world.writer_hang_at = 1
    world.make_writer("load", executors={"instances": wanted}, **spec)
    world.run(lambda w: w.is_true(w.writers["load"], "Running"))
    return world


def passes(world: World, seconds: int) -> None:
    for _ in range(seconds):
        world.reconcile()
        world.tick()
    world.reconcile()


def said(world: World) -> tuple[str, str, str]:
    found = world.condition(world.writers["load"], "ExecutorsMissing")
    return found["status"], found["reason"], found["message"]


def attempts(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.writers["load"]["status"]["attempts"]
    return found


def add_executor(world: World, number: int, **fields: Any) -> None:
    process = world.writer_process("load")
    assert process is not None
    world._make_executor(world.pods[process.pod], number, process.inc)
    for name, value in fields.items():
        setattr(world.pods[f"{process.pod}-exec-{number}"], name, value)


def test_a_refusal_is_said_with_the_words_of_the_api_server() -> None:
    world = running_world(made=1)
    passes(world, 15)
    assert said(world) == ("False", "NotMissing", ""), "they may still come"
    assert world.asked == []
    passes(world, 10)
    assert said(world) == (
        "True",
        "Refused",
        "1 of 2 executors run; the API server makes no more of them: QuotaExceeded: "
        "pods is forbidden: exceeded quota: few",
    )
    assert [a.reason for a in world.events if a.reason == "ExecutorsMissing"] == ["ExecutorsMissing"]
    (attempt,) = attempts(world)
    assert (attempt["number"], attempt.get("class"), attempt["executors"]) == (1, None, 2)
    assert world.is_true(world.writers["load"], "Running"), "whether it goes on is the user's to say"


def test_it_is_said_no_more_when_they_have_come() -> None:
    world = running_world(made=0)
    passes(world, 25)
    assert said(world)[:2] == ("True", "Refused")
    add_executor(world, 0)
    world.schedulable = False
    add_executor(world, 1, phase="Pending", node="")
    passes(world, 1)
    status, reason, message = said(world)
    assert (status, reason) == ("True", "Pending")
    assert message.startswith("1 of 2 executors run; pod load-")
    assert message.endswith("-exec-1: Pending")
    asked = len(world.asked)
    passes(world, 60)
    assert len(world.asked) == asked, "all pods are there"
    add_executor(world, 1)
    passes(world, 1)
    assert said(world) == ("False", "NotMissing", "")
    assert not [name for name in world.timers if name.startswith(executors_missing.TIMER)]


def test_the_api_server_is_asked_again_while_they_are_missing() -> None:
    """The quota has room, or another one is full."""
    world = running_world(made=0)
    passes(world, 25)
    world.executors_refused = ExecutorAnswer()
    passes(world, 35)
    assert len(world.asked) == 2
    status, reason, message = said(world)
    assert (status, reason) == ("True", "Pending")
    assert "the API server would accept another one, but Spark has not created it" in message
    world.executors_refused = ExecutorAnswer(message="a webhook has side effects")
    passes(world, 35)
    assert "the API server cannot be asked why: a webhook has side effects" in said(world)[2]


@pytest.mark.parametrize("pending", [True, False])
def test_a_full_cluster_costs_no_look_every_few_seconds(pending: bool) -> None:
    """F624: hundreds of writers may wait for their executors for hours."""
    world = running_world(made=0)
    if pending:
        world.schedulable = False
        add_executor(world, 0, phase="Pending", node="")
        add_executor(world, 1, phase="Pending", node="")
    passes(world, 15)
    assert not is_quiet(world.observe()), "it is to be reported after 20 s"
    passes(world, 10)
    assert said(world)[0] == "True"
    assert is_quiet(world.observe())
    if pending:
        world.pods[next(name for name in world.pods if name.endswith("-exec-0"))].phase = "Failed"
        assert not is_quiet(world.observe()), "an executor that has ended is evidence"


def test_what_was_known_is_said_until_it_is_known_again() -> None:
    """Another process of the operator has lost timers and answers."""
    world = running_world(made=0)
    passes(world, 25)
    before = said(world)
    assert before[:2] == ("True", "Refused")
    world.timers.clear()
    world.executor_answers.clear()
    world.executors_refused = ExecutorAnswer("LimitRange", "maximum memory usage per Pod is 1Gi")
    for _ in range(19):
        passes(world, 1)
        assert said(world) == before
    passes(world, 30)
    assert "LimitRange: maximum memory usage per Pod is 1Gi" in said(world)[2]


def _without_executors(world: World) -> None:
    world.edit(world.writers["load"], executors={"instances": 0})


def _stopping(world: World) -> None:
    process = world.writer_process("load")
    assert process is not None
    process.ignores_sigterm = True
    world.edit(world.writers["load"], suspend=True)


@pytest.mark.parametrize(
    ("change", "asked"), [(_without_executors, True), (_stopping, False)], ids=["the-next-attempt", "stopping"]
)
def test_what_the_attempt_wants_counts(change: Callable[[World], None], asked: bool) -> None:
    """Not what the spec says by now; and nothing is missing to an attempt that is stopped."""
    world = running_world(made=0)
    change(world)
    passes(world, 25)
    assert bool(world.asked) == asked
    assert (said(world)[0] == "True") == asked


@pytest.mark.parametrize(("made", "wanted"), [(2, 2), (0, 0)])
def test_nothing_is_asked_where_nothing_is_missing(made: int, wanted: int) -> None:
    world = running_world(made=made, wanted=wanted)
    passes(world, 60)
    assert world.asked == []
    assert said(world) == ("False", "NotMissing", "")
    assert attempts(world)[0].get("executors", 0) == wanted


def test_the_question_comes_after_everything_else() -> None:
    """A slow webhook keeps no status waiting."""
    world = running_world(made=0)
    passes(world, 19)
    world.tick()
    world.tick()
    world.edit(world.writers["load"], priority=7)
    plan = world.reconcile()
    kinds = [type(action) for action in plan.actions]
    assert act.UpdateStatus in kinds
    assert kinds[-1] is act.AskExecutors
    (question,) = [a for a in plan.actions if isinstance(a, act.AskExecutors)]
    assert question.attempt == naming.attempt_id(question.namespace, question.driver)
    assert question.uid == world.pods[question.driver].uid
    assert plan.sentence.startswith("load has 0 of 2 executors")
    assert plan.requeue_seconds == LONGEST_PAUSE_SECONDS, "it may have to wait for others"
    world.executor_answers.clear()
    world.executor_answers[question.attempt] = QUOTA
    world.now += 25
    assert plan_table(world.observe(), CONFIG).requeue_seconds == 5
    world.now += 5
    assert plan_table(world.observe(), CONFIG).requeue_seconds == LONGEST_PAUSE_SECONDS


def test_an_attempt_without_a_pod_will_want_what_the_spec_says() -> None:
    """Its pod and its ConfigMap are made of the spec as it is then, and the status comes first."""
    world = ready_world()
    world.make_writer("load", executors={"instances": 1})
    world.run(lambda w: any(pod.startswith("load-") for pod in w.pods))
    (name,) = [pod for pod in world.pods if pod.startswith("load-")]
    del world.pods[name]
    world.created.remove(name)
    world.processes = [process for process in world.processes if process.pod != name]
    attempts(world)[-1].pop("podUID", None)
    world.edit(world.writers["load"], executors={"instances": 3})
    plan = world.reconcile()
    assert attempts(world)[-1]["executors"] == 3
    kinds = [type(action) for action in plan.actions]
    assert kinds.index(act.UpdateStatus) < kinds.index(act.CreatePod)
