"""Time in which an attempt waits for others counts towards none of its deadlines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hudi_contract.reports import AttemptReport
from hudi_contract.words import Stage
from hudi_operator.model.facts import Observed
from hudi_operator.plan.writers.held_up import NOTED_SECONDS, Wait
from tests.support.world.simulated_store import Pod, Process
from tests.support.world.simulated_world import World, finished

COMMIT = 120
GRACE = 5
SPENT = 40
"""Seconds that an attempt has used up before it waits."""


class Hanging(World):
    """Drivers stop before their first commit; etcd may be away."""

    at: int | None = 1
    away = False

    def _start(self, pod: Pod) -> Process:
        process = super()._start(pod)
        if process.role == "writer":
            process.hang_at = self.at
        return process

    def observe(self) -> Observed:
        seen = super().observe()
        return replace(seen, etcd=None, etcd_error="no endpoint answers") if self.away else seen


def world_of(*, table: dict[str, Any] | None = None, **writer: Any) -> Hanging:
    """A table with a writer that is about to begin, and has a deadline to commit."""
    world = Hanging()
    world.make_table(**(table or {}))
    world.run(lambda w: w.is_true(w.table, "Ready"))
    spec = {"stop": {"graceSeconds": GRACE}, "retryPolicy": {"limit": 3, "backoffSeconds": 600}, **writer}
    world.make_writer("load", commitDeadlineSeconds=COMMIT, **spec)
    return world


def ready(**options: Any) -> tuple[Hanging, Process]:
    """The same, whose driver is registered and computes."""
    world = world_of(**options)
    world.run(lambda w: "readyTime" in attempt(w))
    process = world.writer_process("load")
    assert process is not None
    return world, process


def attempt(world: World, name: str = "load", number: int = 0) -> dict[str, Any]:
    found: list[dict[str, Any]] = (world.writers[name].get("status") or {}).get("attempts") or [{}] * (number + 1)
    return found[number]


def late(world: World, name: str = "load") -> dict[str, Any]:
    return world.condition(world.writers[name], "Late")


def passes(world: World, seconds: int, *, step: int = 5) -> None:
    """The operator looks every ``step`` seconds."""
    for _ in range(seconds // step):
        world.reconcile()
        world.tick(step)
    world.reconcile()


def jumps(world: World, seconds: int) -> None:
    """Time passes without the operator. Everybody else goes on."""
    world.now += seconds
    for process in world.processes:
        process.last_keepalive = world.now


def tell(world: World, process: Process, stage: Stage, **more: Any) -> None:
    report = AttemptReport(attempt=process.attempt, inc=process.inc, at_ms=world.now_ms, stage=stage, **more)
    world.put(f"report/attempt/{process.attempt}", report.to_json())


# ---- what it waits for


def queue(world: World, process: Process) -> Callable[[], None]:
    ticket = {"inc": process.inc, "priority": 0, "sinceMs": world.now_ms}
    world.put(f"queue/{process.inc}-1", ticket, lease=process.inc)

    def leave() -> None:
        world.drop(f"queue/{process.inc}-1")

    return leave


def behind_an_agent(world: World, process: Process) -> Callable[[], None]:
    """A table service that holds the lock."""
    agent = world.agent_process()
    assert agent is not None
    world.put("lock", {"inc": agent.inc, "attempt": agent.attempt, "podUID": agent.pod_uid, "sinceMs": world.now_ms})
    leave = queue(world, process)

    def end() -> None:
        world.drop("lock")
        leave()

    return end


def frozen(world: World, process: Process) -> Callable[[], None]:
    before = world.kv["gate"].value
    world.put("gate", {**before, "state": "frozen", "reason": "etcd was replaced"})

    def end() -> None:
        world.put("gate", {**before, "state": "open"})

    return end


def turn(world: World, process: Process) -> Callable[[], None]:
    """A writer of higher priority, or one that has lost too often, goes first."""
    tell(world, process, Stage.YIELDING)
    return lambda: tell(world, process, Stage.WRITING)


def etcd(world: World, process: Process) -> Callable[[], None]:
    assert isinstance(world, Hanging)
    world.away = True

    def end() -> None:
        assert isinstance(world, Hanging)
        world.away = False

    return end


SAID = (queue, behind_an_agent, frozen, turn)
"""What the writer says of itself; of etcd its table does."""


@pytest.mark.parametrize("held", [*SAID, etcd])
@pytest.mark.parametrize("another_operator", [False, True])
def test_the_time_of_a_wait_does_not_count(
    held: Callable[[World, Process], Callable[[], None]], another_operator: bool
) -> None:
    world, process = ready()
    passes(world, SPENT)
    end = held(world, process)
    passes(world, 2 * COMMIT)
    assert attempt(world).get("waitingSince")
    if another_operator:
        world.timers.clear()
    assert "stoppedFor" not in attempt(world)
    assert late(world)["status"] == "False"
    end()
    passes(world, COMMIT - SPENT - 20)
    assert attempt(world).get("countedFrom")
    assert not attempt(world).keys() & {"stoppedFor", "waitingSince"}
    assert late(world)["status"] == "True"
    passes(world, 40)
    assert attempt(world)["stoppedFor"] == "CommitDeadlineExceeded", "the rest of its time is over"


@pytest.mark.parametrize("held", [*SAID, etcd])
def test_a_wait_while_a_clock_is_behind_does_not_count(held: Callable[[World, Process], Callable[[], None]]) -> None:
    """F593: when the clock is set right, the attempt has used up what it has computed."""
    world = world_of()
    world.operator_clock_ms = -10 * COMMIT * 1000
    world.run(lambda w: "readyTime" in attempt(w))
    process = world.writer_process("load")
    assert process is not None
    passes(world, SPENT)
    end = held(world, process)
    passes(world, 2 * COMMIT)
    end()
    passes(world, 10)
    world.operator_clock_ms = 0
    passes(world, COMMIT - SPENT - 40)
    assert "stoppedFor" not in attempt(world)


@pytest.mark.parametrize("held", SAID)
def test_it_is_said_what_it_waits_for(held: Callable[[World, Process], Callable[[], None]]) -> None:
    world, process = ready()
    held(world, process)
    passes(world, NOTED_SECONDS + 10)
    told = late(world)
    assert (told["status"], told["reason"]) == ("False", "Waiting")
    assert told["message"].startswith("it waits for ")
    assert told["message"].endswith("; that time does not count")


def test_a_short_wait_is_not_noted() -> None:
    """Each commit waits for a moment: status is not written for it."""
    world, process = ready()
    end = queue(world, process)
    passes(world, NOTED_SECONDS - 2, step=1)
    end()
    passes(world, 3, step=1)
    assert not attempt(world).keys() & {"waitingSince", "countedFrom"}


def test_nobody_is_stopped_within_a_wait_that_is_not_noted_yet() -> None:
    world, process = ready()
    passes(world, COMMIT - 5)
    passes(world, 2, step=1)
    end = queue(world, process)
    passes(world, NOTED_SECONDS - 2, step=1)
    assert not attempt(world).keys() & {"waitingSince", "stoppedFor"}
    end()
    passes(world, 2, step=1)
    assert attempt(world)["stoppedFor"] == "CommitDeadlineExceeded"


def test_an_attempt_that_waits_is_not_stopped_even_if_its_time_was_over_before() -> None:
    """The operator was away meanwhile."""
    world, process = ready()
    passes(world, SPENT)
    queue(world, process)
    jumps(world, 10 * COMMIT)
    world.reconcile()
    assert "stoppedFor" not in attempt(world)
    passes(world, 5)
    assert "stoppedFor" not in attempt(world), "its place in the queue says since when it waits"


def test_a_dead_writer_that_holds_the_lock_makes_nobody_late() -> None:
    """It may take hours until its death is proven; the others have no ticket while they compute."""
    world, _ = ready()
    world.make_writer("dead", stop={"graceSeconds": 1})
    world.at = 3
    world.run(lambda w: "lock" in w.kv)
    victim = world.writer_process("dead")
    assert victim is not None
    assert world.holds(victim)
    world.fail_node(victim.node, processes_die=False)
    victim.paused = True
    passes(world, 3 * COMMIT)
    assert f"fence/{victim.inc}" in world.kv
    assert "lock" in world.kv
    assert "stoppedFor" not in attempt(world)
    assert "cannot give back" in late(world)["message"]


def test_who_holds_the_lock_is_not_stopped() -> None:
    """It is about to commit; who holds it for too long is fenced for that."""
    world, process = ready()
    passes(world, COMMIT - 10)
    assert world.acquire(process)
    passes(world, 40)
    assert "stoppedFor" not in attempt(world)
    assert "waitingSince" not in attempt(world), "the time counts"
    world.drop("lock")
    passes(world, 2, step=1)
    assert attempt(world)["stoppedFor"] == "CommitDeadlineExceeded"


def test_behind_a_gate_that_is_closed_for_a_savepoint_its_own_time_applies() -> None:
    """It is stopped for the savepoint, when ``changeTimeoutSeconds`` are over."""
    world, _ = ready(table={"concurrency": {"changeTimeoutSeconds": 3 * COMMIT}})
    world.change(savepoints=[{"name": "first"}])
    passes(world, 2 * COMMIT)
    assert world.kv["gate"].value["state"] == "closed"
    assert attempt(world).get("class") is None
    assert "stoppedFor" not in attempt(world)
    passes(world, 2 * COMMIT)
    assert attempt(world)["class"] == "EndedForChange"


@pytest.mark.parametrize("suspended", ["table", "writer", "pod"])
def test_who_is_asked_to_end_for_another_reason_does_not_exceed_its_deadline(suspended: str) -> None:
    world, process = ready(stop={"graceSeconds": 100})
    passes(world, COMMIT - 5)
    process.ignores_sigterm = True
    if suspended == "table":
        world.change(suspend=True)
    elif suspended == "writer":
        world.edit(world.writers["load"], suspend=True)
    else:
        (pod,) = (pod for name, pod in world.pods.items() if name.startswith("load"))
        world._mark_deleted(pod, 100)
    passes(world, 30)
    assert "stoppedFor" not in attempt(world)
    assert late(world)["status"] == "False"
    process.ignores_sigterm = False
    passes(world, 5)
    assert attempt(world)["class"] == ("Eviction" if suspended == "pod" else "Cancelled")


# ---- before and between attempts


@pytest.mark.parametrize("concurrency", [{"mode": "SingleWriter"}, {"maxWriters": 1}])
def test_a_writer_that_waits_for_its_turn_has_no_deadline_yet(concurrency: dict[str, Any]) -> None:
    """Its attempt begins, and with it its time, when it is admitted."""
    world = world_of(table={"concurrency": concurrency})
    world.run(lambda w: "readyTime" in attempt(w))
    world.edit(world.writers["load"], commitDeadlineSeconds=10 * COMMIT)
    times = {"startDeadlineSeconds": 30, "readyDeadlineSeconds": 30, "commitDeadlineSeconds": 60}
    world.make_writer("second", priority=-5, **times)
    passes(world, 2 * COMMIT)
    assert attempt(world, "second") == {}
    assert late(world, "second")["status"] == "False"
    world.at = None
    world.edit(world.writers["load"], suspend=True)
    world.run(finished("second"))
    assert [a["class"] for a in world.writers["second"]["status"]["attempts"]] == ["Succeeded"]


def test_between_the_runs_of_a_schedule_nothing_is_late() -> None:
    world = world_of(schedule={"cron": "*/5 * * * *"})
    world.at = None
    seen: set[str] = set()
    for _ in range(132):
        passes(world, 5)
        seen.add(late(world)["status"])
    assert {a["class"] for a in world.writers["load"]["status"]["attempts"]} == {"Succeeded"}
    assert len(world.writers["load"]["status"]["attempts"]) >= 2
    assert seen <= {"False", "Missing"}


def test_a_run_that_has_written_all_has_nothing_to_commit() -> None:
    """At the end of its input it leaves."""
    world, process = ready()
    tell(world, process, Stage.FINISHED)
    passes(world, 2 * COMMIT)
    assert "stoppedFor" not in attempt(world)


# ---- deadlines before a commit


@pytest.mark.parametrize(
    ("deadline", "class_"),
    [("startDeadlineSeconds", "StartDeadlineExceeded"), ("readyDeadlineSeconds", "ReadyDeadlineExceeded")],
)
def test_an_outage_of_etcd_counts_towards_none(deadline: str, class_: str) -> None:
    """No driver registers meanwhile, and the operator makes no pod."""
    world = Hanging()
    world.make_table()
    world.run(lambda w: w.is_true(w.table, "Ready"))
    world.at, world.schedulable = 0, deadline != "startDeadlineSeconds"
    retries = {"limit": 3, "backoffSeconds": 600}
    world.make_writer("load", stop={"graceSeconds": GRACE}, retryPolicy=retries, **{deadline: 60})
    world.run(lambda w: any(name.startswith("load") for name in w.pods))
    passes(world, 20)
    world.away = True
    passes(world, 180)
    world.away = False
    passes(world, 20)
    assert not attempt(world).keys() & {"class", "stoppedFor", "waitingSince"}
    passes(world, 60)
    assert attempt(world)["class"] == class_


def test_an_outage_of_etcd_counts_towards_no_deadline_of_the_namespace() -> None:
    """F581."""
    world = Hanging()
    world.make_table()
    world.run(lambda w: w.is_true(w.table, "Ready"))
    world.set_defaults("startDeadlineSeconds: 60\n")
    world.schedulable = False
    world.make_writer("load", stop={"graceSeconds": GRACE}, retryPolicy={"limit": 3, "backoffSeconds": 600})
    world.run(lambda w: any(name.startswith("load") for name in w.pods))
    world.away = True
    passes(world, 90, step=15)
    world.away = False
    passes(world, 15)
    assert attempt(world).get("countedFrom")
    assert not attempt(world).keys() & {"class", "stoppedFor"}


# ---- streams


STREAM = {"streaming": {"intervalSeconds": 1}}


@pytest.mark.parametrize("watched", [True, False])
def test_a_stream_without_new_input_is_not_late_and_has_all_its_time_for_the_next(watched: bool) -> None:
    """``watched``: the operator was there all the time."""
    world, process = ready(**STREAM)
    tell(world, process, Stage.WAITING, caught_up=True)
    if watched:
        passes(world, 5 * COMMIT)
        assert "stoppedFor" not in attempt(world)
        assert late(world)["message"].startswith("it waits for new input")
    else:
        jumps(world, 5 * COMMIT)
    tell(world, process, Stage.WRITING, caught_up=True, resumed_ms=world.now_ms)
    passes(world, COMMIT // 2 - 10)
    assert late(world)["status"] == "False"
    passes(world, 20)
    assert late(world)["status"] == "True"
    assert "since there was new input: its stage is Writing" in late(world)["message"]
    passes(world, COMMIT)
    assert attempt(world)["class"] == "CommitDeadlineExceeded"


def test_a_stream_that_conflicts_for_ever_is_late() -> None:
    """Its waits are short, and what it does again is its own work."""
    world, process = ready(**STREAM)
    began = world.now
    while world.now < began + COMMIT - 20:
        for stage in (Stage.WRITING, Stage.RETRYING):
            tell(world, process, stage)
            end = queue(world, process)
            passes(world, 3, step=1)
            end()
            passes(world, 7, step=1)
    passes(world, 40)
    assert attempt(world)["stoppedFor"] == "CommitDeadlineExceeded"


# ---- clocks


@pytest.mark.parametrize(
    ("since", "noted", "began"),
    [
        (0, True, 100_000),
        (200_000, True, 100_000),
        (95_000, False, 95_000),
        (90_000, True, 90_000),
        (100_000, False, 100_000),
        (104_000, False, 100_000),
    ],
)
def test_a_wait_begins_no_later_than_now_whatever_a_clock_says(since: int, noted: bool, began: int) -> None:
    wait = Wait("the lock", since)
    assert (wait.is_noted(100_000), wait.began_ms(100_000)) == (noted, began)
    assert not Wait("the lock", since, counts=True).is_noted(100_000)


@pytest.mark.parametrize("skew", [-3600, 3600])
def test_a_driver_with_a_wrong_clock_is_not_stopped_while_it_waits(skew: int) -> None:
    world, process = ready()
    passes(world, SPENT)
    ticket = {"inc": process.inc, "priority": 0, "sinceMs": world.now_ms + 1000 * skew}
    world.put(f"queue/{process.inc}-1", ticket, lease=process.inc)
    passes(world, 2 * COMMIT)
    world.drop(f"queue/{process.inc}-1")
    passes(world, COMMIT - SPENT - 20)
    assert "stoppedFor" not in attempt(world)
