"""Attempts that are not ready, or do not commit, in time: told at half of it, then stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from hudi_contract.outcomes import EXIT_CODES, FailureClass
from hudi_contract.settle import Reason
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_store import Author, ConflictError, OperatorCrashError, Pod, Process
from tests.support.world.simulated_world import CONFIG, World

READY, COMMIT = 60, 120
GRACE = 5


class Hanging(World):
    """Drivers stop at a step: 0, before they register; 1, before their first commit."""

    at: int | None = None
    says: str = ""
    """Class in the termination message of a driver that is asked to stop; empty: it writes none."""

    def _sigterm_or_kill(self, process: Process) -> None:
        if not self.says or process.role != "writer":
            super()._sigterm_or_kill(process)
            return
        pod = next(p for p in self.pods.values() if p.uid == process.pod_uid)
        pod.message = json.dumps({"outcome": "Failed", "class": self.says, "message": "Job 3 cancelled"})
        self._clean_exit(process)
        self.kill(process, EXIT_CODES[FailureClass(self.says)])

    def _start(self, pod: Pod) -> Process:
        process = super()._start(pod)
        if process.role == "writer":
            process.hang_at = self.at
        return process


def world_of(at: int | None, **writer: Any) -> Hanging:
    world = Hanging()
    world.make_table()
    world.run(lambda w: w.is_true(w.table, "Ready"))
    world.at = at
    spec = {"stop": {"graceSeconds": GRACE}, "retryPolicy": {"limit": 3, "backoffSeconds": 60}}
    deadlines = {"readyDeadlineSeconds": READY, "commitDeadlineSeconds": COMMIT}
    world.make_writer("load", **{**spec, **deadlines, **writer})
    return world


def attempts(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (world.writers["load"].get("status") or {}).get("attempts") or []
    return found


def late(world: World) -> dict[str, Any]:
    return world.condition(world.writers["load"], "Late")


def ended(world: World) -> bool:
    return bool(attempts(world)) and bool(attempts(world)[0].get("class"))


@pytest.mark.parametrize("another_operator", [False, True])
def test_a_driver_that_is_never_ready_is_stopped(another_operator: bool) -> None:
    """The time is in status: another operator goes on counting."""
    world = world_of(0)
    world.run(lambda w: bool(attempts(w)) and "runningTime" in attempts(w)[0])
    began = world.now
    assert late(world)["status"] == "False"
    world.run(lambda w: late(w)["status"] == "True")
    assert READY / 2 < world.now - began < READY / 2 + 10
    assert late(world)["reason"] == "NotReady"
    if another_operator:
        world.timers.clear()
    world.run(ended)
    assert READY < world.now - began < READY + GRACE + 15
    (entry,) = attempts(world)
    assert (entry["class"], entry["stoppedFor"]) == ("ReadyDeadlineExceeded", "ReadyDeadlineExceeded")
    assert entry["message"].startswith(f"its driver was not registered within {READY} s")
    assert "readyTime" not in entry
    assert late(world)["reason"] == "InTime", "no attempt runs"


def test_a_driver_that_does_not_commit_is_stopped() -> None:
    world = world_of(1)
    world.run(lambda w: bool(attempts(w)) and "readyTime" in attempts(w)[0])
    began = world.now
    world.run(lambda w: late(w)["status"] == "True")
    assert COMMIT / 2 < world.now - began < COMMIT / 2 + 10
    assert late(world)["reason"] == "NoCommit"
    world.run(ended)
    assert COMMIT < world.now - began < COMMIT + GRACE + 15
    assert attempts(world)[0]["class"] == "CommitDeadlineExceeded"
    world.at = None
    world.run(lambda w: w.is_true(w.writers["load"], "Succeeded"))
    assert [each["class"] for each in attempts(world)] == ["CommitDeadlineExceeded", "Succeeded"]


def test_a_run_fails_at_once_if_its_author_says_so() -> None:
    limits = [{"class": "CommitDeadlineExceeded", "limit": 0}]
    world = world_of(1, retryPolicy={"limit": 3, "backoffSeconds": 1, "classLimits": limits})
    world.run(lambda w: w.is_true(w.writers["load"], "Finished"))
    assert [each["class"] for each in attempts(world)] == ["CommitDeadlineExceeded"]
    assert "no commit within" in world.condition(world.writers["load"], "Stalled")["message"]


def test_a_commit_begins_the_time_anew() -> None:
    world = world_of(1)
    world.run(lambda w: bool(attempts(w)) and "readyTime" in attempts(w)[0])
    process = world.writer_process("load")
    assert process is not None
    for commits in range(1, 4):
        world.run(lambda w: late(w)["status"] == "True")
        completed = datetime.fromtimestamp(world.now_ms / 1000, tz=UTC).strftime("%Y%m%d%H%M%S000")
        process.commits, process.instant = commits, completed
        told = world.attempt_report(process).but(last_completion_time=completed)
        world.put(f"report/attempt/{process.attempt}", told.to_json())
        world.run(lambda w: late(w)["status"] == "False", seconds=10)
    assert [each.get("class") for each in attempts(world)] == [None]


def test_a_commit_that_it_could_not_report_counts() -> None:
    """Its report of it was lost, and the agent lists it."""
    world = world_of(1)
    world.run(lambda w: bool(attempts(w)) and "readyTime" in attempts(w)[0])
    process = world.writer_process("load")
    assert process is not None
    world.run(lambda w: late(w)["status"] == "True")
    instant = world.new_time()
    world.completions[instant] = datetime.fromtimestamp(world.now_ms / 1000, tz=UTC).strftime("%Y%m%d%H%M%S000")
    world.authors[instant] = Author("default/load", process.attempt, 1)
    world.completed.add(instant)
    world.run(lambda w: late(w)["status"] == "False", seconds=30)
    for _ in range(COMMIT // 2 - 10):
        world.reconcile()
        world.tick()
    assert "stoppedFor" not in attempts(world)[0]


def test_a_driver_that_does_not_end_is_fenced_for_its_deadline() -> None:
    world = world_of(1)
    world.run(lambda w: bool(attempts(w)) and "stoppedFor" in attempts(w)[0])
    assert late(world)["message"].startswith("it is being stopped: no commit within")
    status = world.writers["load"]["status"]
    assert status["state"] == "Stopping", "F555: it is not what was asked for"
    assert not world.is_true(world.writers["load"], "Ready")
    world.reconcile()  # its pod is deleted
    process = world.writer_process("load")
    assert process is not None
    process.ignores_sigterm = True
    for name, pod in world.pods.items():
        if name.startswith("load"):
            pod.delete_grace = 1000
    world.run(lambda w: f"settle/{process.inc}" in w.kv)
    assert world.kv[f"settle/{process.inc}"].value["reason"] == Reason.OVERDUE


def test_a_program_has_no_deadline_to_commit() -> None:
    """F546: its commits are known at its end only, and one that committed all the time was stopped.

    The attempt of an object that gets the deadline all the same goes on.
    """
    world = world_of(1, source=None, application={"mainFile": "local:///opt/job.py"}, commitDeadlineSeconds=None)
    world.run(lambda w: bool(attempts(w)) and "readyTime" in attempts(w)[0])
    world.writers["load"]["spec"]["commitDeadlineSeconds"] = COMMIT
    for _ in range(2 * COMMIT):
        world.reconcile()
        world.tick()
    assert [each.get("class") for each in attempts(world)] == [None]
    assert late(world)["status"] == "False"


def test_a_clock_that_steps_forward_stops_nobody() -> None:
    """F547: by the API server's clock nothing is over."""
    world = world_of(1)
    world.run(lambda w: bool(attempts(w)) and "readyTime" in attempts(w)[0])
    observed = world.observe()
    ahead = replace(observed, now_ms=observed.now_ms + 10 * COMMIT * 1000, api_now_ms=observed.now_ms)
    assert "stoppedFor" not in statuses(plan_table(ahead, CONFIG))
    both = replace(ahead, api_now_ms=ahead.now_ms)
    assert "stoppedFor" in statuses(plan_table(both, CONFIG))


def test_a_clock_that_was_behind_stops_nobody_when_it_is_right() -> None:
    """F593: the times in status were written by it."""
    world = world_of(1)
    world.operator_clock_ms = -10 * COMMIT * 1000
    world.run(lambda w: bool(attempts(w)) and "readyTime" in attempts(w)[0])
    world.operator_clock_ms = 0
    world.run(lambda w: late(w)["status"] == "True", seconds=COMMIT)
    assert "stoppedFor" not in attempts(world)[0]
    world.run(lambda w: "stoppedFor" in attempts(w)[0], seconds=COMMIT)


def statuses(plan: act.Plan) -> str:
    """What is written of the writers."""
    return json.dumps(
        [a.status for a in plan.actions if isinstance(a, act.UpdateStatus) and a.kind == "HudiWriter"], default=str
    )


def test_an_attempt_that_has_ended_is_not_seen_running() -> None:
    """Its pod is kept, and says that it ran."""
    world = world_of(None, retryPolicy={"limit": 0})
    world.run(lambda w: w.is_true(w.writers["load"], "Finished"))
    entry = world.writers["load"]["status"]["attempts"][0]
    for name in ("runningTime", "readyTime"):
        entry.pop(name)
    for _ in range(5):
        world.reconcile()
        world.tick()
    assert not {"runningTime", "readyTime"} & attempts(world)[0].keys()


@pytest.mark.parametrize("class_", ["UserError", "Infrastructure", "ValidationFailed"])
def test_what_a_stopped_driver_says_of_its_end_does_not_end_the_run(class_: str) -> None:
    """F550: user code whose job is cancelled raises, and the run was over until a person acted."""
    world = world_of(1)
    world.says = class_
    world.run(ended)
    world.at = None
    world.run(lambda w: w.is_true(w.writers["load"], "Succeeded"))
    assert [each["class"] for each in attempts(world)] == ["CommitDeadlineExceeded", "Succeeded"]
    assert attempts(world)[0]["message"].startswith("no commit within")


@pytest.mark.parametrize("error", [ConflictError, OperatorCrashError])
def test_no_pod_is_deleted_for_a_deadline_that_is_not_in_status(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F578: somebody applies the HudiWriter within the look, or the operator dies."""
    world = world_of(1)
    refused: list[act.Action] = []
    perform = world.perform

    def once(action: act.Action) -> None:
        if not refused and isinstance(action, act.UpdateStatus) and "stoppedFor" in json.dumps(action.status):
            refused.append(action)
            raise error
        perform(action)

    monkeypatch.setattr(world, "perform", once)
    world.run(ended)
    assert refused
    assert attempts(world)[0]["class"] == "CommitDeadlineExceeded"
