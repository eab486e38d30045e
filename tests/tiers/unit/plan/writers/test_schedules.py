"""Runs by the clock: each tick at most once, whatever the operator or the writer goes through.

Missed ticks once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hudi_operator.api.spec import WriterSpec
from hudi_operator.control import loop
from hudi_operator.model import conditions
from hudi_operator.plan.table import plan_table
from hudi_operator.plan.writers import schedules
from tests.support.world.simulated_world import CONFIG, World, at_step, finished, ready_world

EVERY_TWO = {"cron": "*/2 * * * *"}
MINUTE = 60_000


def status(world: World, name: str = "w") -> dict[str, Any]:
    return dict(world.writers[name].get("status") or {})


def runs(number: int) -> Callable[[World], bool]:
    """The writer has finished that many attempts."""
    return lambda w: sum(1 for e in status(w).get("attempts", []) if e.get("class")) == number


def pass_time(world: World, seconds: int) -> None:
    for _ in range(seconds):
        world.reconcile()
        world.tick()


def until_minute(world: World) -> None:
    """Up to some seconds after the next even minute."""
    pass_time(world, 120 - int(world.now_ms / 1000) % 120 + 2)


def starts(world: World) -> list[str]:
    return [e["startTime"] for e in status(world)["attempts"]]


def test_a_run_per_tick() -> None:
    world = ready_world()
    world.make_writer("w", schedule=EVERY_TWO)
    pass_time(world, 10)
    waiting = status(world)
    assert waiting["state"] == "Scheduled"
    assert waiting["attempt"] == 0
    assert world.condition(world.writers["w"], "Admitted")["reason"] == "AwaitingSchedule"
    first = waiting["nextScheduleTime"]
    assert (conditions.from_rfc3339(first) or 0) % (2 * MINUTE) == 0
    world.run(finished("w"))
    assert status(world)["lastScheduleTime"] == first
    assert starts(world)[0] >= first
    pass_time(world, 30)
    assert status(world)["attempt"] == 1, "nothing runs between ticks"
    assert status(world)["state"] == "Succeeded"
    world.run(runs(3))
    world.run(finished("w"))
    assert world.is_true(world.writers["w"], "Succeeded")
    assert status(world)["records"] == 30


def test_an_operator_that_dies_anywhere_runs_each_tick_once() -> None:
    world = ready_world()
    world.make_writer("w", schedule=EVERY_TWO)
    began = world.now_ms
    world.run(runs(4), seconds=900, crash_every=2)
    ticks = world.now_ms // (2 * MINUTE) - began // (2 * MINUTE)
    assert status(world)["attempt"] == ticks == 4
    assert len(world.completed) == 4


def test_ticks_during_a_run_count_once_and_afterwards() -> None:
    world = ready_world()
    world.writer_hang_at = 2
    world.make_writer("w", schedule=EVERY_TWO)
    world.run(at_step("w", 2))
    for _ in range(3):
        until_minute(world)
        assert status(world)["attempt"] == 1, "one run at a time"
    process = world.writer_process("w")
    assert process is not None
    world.writer_hang_at = process.hang_at = None
    newest = status(world)["nextScheduleTime"]
    world.run(runs(2), seconds=60)
    assert status(world)["lastScheduleTime"] < newest
    pass_time(world, 60)
    assert status(world)["attempt"] == 2


def test_suspended_then_once() -> None:
    world = ready_world()
    world.make_writer("w", schedule=EVERY_TWO, suspend=True)
    pass_time(world, 300)
    assert status(world)["attempt"] == 0
    assert status(world)["state"] == "Suspended"
    assert "nextScheduleTime" not in status(world)
    until_minute(world)
    world.edit(world.writers["w"], suspend=False)
    world.run(runs(1), seconds=60)
    pass_time(world, 30)
    assert status(world)["attempt"] == 1


def test_suspended_between_runs_stays_finished() -> None:
    world = ready_world()
    world.make_writer("w", schedule=EVERY_TWO)
    world.run(finished("w"))
    world.edit(world.writers["w"], suspend=True)
    pass_time(world, 300)
    assert world.is_true(world.writers["w"], "Finished")
    assert status(world)["attempt"] == 1


@pytest.mark.parametrize(("deadline", "attempts"), [(None, 2), (20, 1)])
def test_a_tick_that_cannot_start_in_time(deadline: int | None, attempts: int) -> None:
    """Another writer has the only place.

    The last run stays finished until the next one really starts.
    """
    world = ready_world(concurrency={"mode": "Optimistic", "maxWriters": 1})
    late = {"startingDeadlineSeconds": deadline} if deadline else {}
    world.make_writer("w", schedule={**EVERY_TWO, **late})
    world.run(finished("w"))
    world.writer_hang_at = 2
    world.make_writer("long")
    world.run(at_step("long", 2))
    until_minute(world)
    assert world.is_true(world.writers["w"], "Finished")
    assert "waits: 1 of 1 writers run: long" in world.condition(world.writers["w"], "Admitted")["message"]
    assert status(world)["queue"].items() >= {"position": 1, "blockedBy": "long"}.items()
    pass_time(world, 30)
    process = world.writer_process("long")
    assert process is not None
    world.writer_hang_at = process.hang_at = None
    world.run(finished("long"))
    pass_time(world, 30)
    assert status(world)["attempt"] == attempts
    assert world.is_true(world.writers["w"], "Finished")


def test_a_failed_run_does_not_end_the_schedule() -> None:
    world = ready_world()
    world.exit_codes = [10]
    world.make_writer("w", schedule=EVERY_TWO, retryPolicy={"limit": 1, "backoffSeconds": 1})
    world.run(finished("w"))
    assert world.is_true(world.writers["w"], "Stalled")
    world.exit_codes = [11]
    world.run(runs(3))
    world.run(finished("w"))
    assert [(e["run"], e["class"]) for e in status(world)["attempts"]] == [
        (1, "UserError"),
        (2, "Infrastructure"),
        (2, "Succeeded"),
    ]
    jobs = [json.loads(m["data"]["job.json"]) for m in world.applied if m["metadata"]["name"].startswith("w-")]
    assert [(job["attempt"]["number"], job["run"]) for job in jobs] == [(1, 1), (2, 2), (3, 2)]
    assert not world.is_true(world.writers["w"], "Stalled")
    assert status(world)["lastScheduleTime"] <= starts(world)[1], "a retry belongs to the run of its tick"


def test_a_tick_does_not_shorten_the_back_off_of_a_run() -> None:
    world = ready_world()
    world.exit_codes = [11]
    world.make_writer("w", schedule=EVERY_TWO, retryPolicy={"limit": 1, "backoffSeconds": 300})
    world.run(runs(1))
    first = status(world)["lastScheduleTime"]
    until_minute(world)
    until_minute(world)
    assert (status(world)["attempt"], status(world)["state"]) == (1, "Retrying")
    world.run(runs(2))
    assert [e["run"] for e in status(world)["attempts"]] == [1, 1]
    world.run(runs(3), seconds=60)
    assert status(world)["lastScheduleTime"] > first, "the newest tick of those in between runs afterwards"


def test_the_back_off_of_a_run_that_is_over_delays_no_tick() -> None:
    world = ready_world()
    world.exit_codes = [11]
    world.make_writer("w", schedule=EVERY_TWO, retryPolicy={"limit": 0, "backoffSeconds": 300})
    world.run(finished("w"))
    until_minute(world)
    world.run(runs(2), seconds=60)


def test_ticks_from_before_the_schedule_do_not_count() -> None:
    world = ready_world()
    world.make_writer("w")
    world.run(finished("w"))
    pass_time(world, 300)
    world.edit(world.writers["w"], schedule={"cron": "0 0 * * *"})
    pass_time(world, 5)
    assert status(world)["attempt"] == 1
    world.edit(world.writers["w"], schedule=EVERY_TWO)
    pass_time(world, 1)
    assert status(world)["attempt"] == 1
    world.run(runs(2))


def test_a_schedule_whose_spec_cannot_be_read_goes_on_later_and_costs_nothing() -> None:
    """F460: the newest of the ticks in between runs once. Nobody looks for one that has passed."""
    world = ready_world()
    world.make_writer("w", schedule=EVERY_TWO)
    world.run(runs(1))
    before = status(world)
    world.edit(world.writers["w"], operation="OfAnotherVersion")
    pass_time(world, 300)
    unread = status(world)
    assert unread["state"] == "Stalled"
    assert [unread[name] == before[name] for name in ("schedule", "lastScheduleTime")] == [True, True]
    assert "nextScheduleTime" not in unread
    assert plan_table(world.observe(), CONFIG).requeue_seconds > 5
    world.edit(world.writers["w"], schedule={"cron": "61 * * * *"}, operation="Upsert")
    pass_time(world, 5)
    assert status(world)["lastScheduleTime"] == before["lastScheduleTime"]
    world.edit(world.writers["w"], schedule=EVERY_TWO)
    pass_time(world, 2)
    assert status(world)["attempt"] == 2, "a tick that was missed"


def test_a_nonce_runs_between_ticks() -> None:
    world = ready_world()
    world.make_writer("w", schedule={"cron": "0 0 1 1 *"})
    pass_time(world, 5)
    world.edit(world.writers["w"], restartNonce="now")
    world.run(finished("w"))
    assert status(world)["attempt"] == 1
    assert "lastScheduleTime" not in status(world)
    world.edit(world.writers["w"], restartNonce="again")
    world.run(runs(2))
    assert [e["run"] for e in status(world)["attempts"]] == [1, 2]


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ({"cron": "61 * * * *"}, ("spec.schedule.cron '61 * * * *'",)),
        ({"cron": "0 0 30 2 *"}, ("spec.schedule.cron '0 0 30 2 *'",)),
        (
            {"cron": "0 0 * * *", "timeZone": "Mars/Olympus"},
            ("spec.schedule.timeZone 'Mars/Olympus'", "not a time zone"),
        ),
    ],
)
def test_a_schedule_that_cannot_be_used(schedule: dict[str, str], words: tuple[str, ...]) -> None:
    world = ready_world()
    world.make_writer("w", schedule=schedule)
    world.run(lambda w: w.is_true(w.writers["w"], "Stalled"))
    stalled = world.condition(world.writers["w"], "Stalled")
    assert stalled["reason"] == "InvalidSpec"
    assert all(word in stalled["message"] for word in words), stalled


@pytest.mark.parametrize(
    ("cron", "now", "ticks"),
    [
        # 02:30 does not exist on 29 March 2026 ...
        (
            "30 2 * * *",
            "2026-03-27T12:00:00Z",
            ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
        ),
        # ... and comes twice on 25 October.
        ("30 2 * * *", "2026-10-24T12:00:00Z", ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
        (
            "30 * * * *",
            "2026-10-24T23:40:00Z",
            ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"],
        ),
    ],
)
def test_time_zones(cron: str, now: str, ticks: list[str]) -> None:
    body = {"tableRef": {"name": "t"}, "schedule": {"cron": cron, "timeZone": "Europe/Berlin"}}
    writer = WriterSpec.from_object({"kind": "HudiWriter", "metadata": {"namespace": "n", "name": "w"}, "spec": body})
    at, found = conditions.from_rfc3339(now) or 0, []
    for _ in ticks:
        at = schedules.next_ms(writer, at)
        found.append(conditions.rfc3339(at))
    assert found == ticks


def test_sums_outlive_the_list_of_attempts() -> None:
    world = ready_world()
    world.make_writer("w", schedule={"cron": "* * * * *"})
    world.run(lambda w: status(w).get("attempt") == 13 and w.is_true(w.writers["w"], "Finished"), seconds=2000)
    assert [e["number"] for e in status(world)["attempts"]] == list(range(4, 14))
    assert status(world)["earlierAttempts"] == {"records": 30, "conflicts": 0}
    assert status(world)["records"] == 130


@pytest.mark.parametrize(("seconds", "quiet"), [(1000, True), (200, False)])
def test_a_table_is_looked_at_in_time_for_its_next_run(seconds: int, quiet: bool) -> None:
    world = ready_world()
    world.make_writer("w")
    world.run(finished("w"))
    world.settle_down()
    observed = world.observe()
    assert loop.is_quiet(observed)
    writer = world.writers["w"]
    writer["spec"]["schedule"] = EVERY_TWO
    writer["status"]["nextScheduleTime"] = conditions.rfc3339(world.now_ms + seconds * 1000)
    assert loop.is_quiet(world.observe()) is quiet


def shown(world: World) -> tuple[str, str, str]:
    """The columns Mode, Ready and State of `kubectl get hudiwriters`."""
    return status(world)["mode"], world.condition(world.writers["w"], "Ready")["status"], status(world)["state"]


def test_a_writer_is_ready_while_it_is_as_its_spec_asks() -> None:
    world = ready_world()
    world.make_writer("w", schedule=EVERY_TWO)
    world.run(lambda w: status(w).get("state") == "Scheduled")
    assert shown(world) == ("Scheduled", "True", "Scheduled")
    world.run(finished("w"))
    assert shown(world) == ("Scheduled", "True", "Succeeded")
    world.edit(
        world.writers["w"],
        schedule=None,
        streaming={},
        restartNonce="again",
        source={"files": {"format": "csv", "paths": ["s3a://x/"]}},
    )
    world.run(lambda w: status(w).get("state") == "Starting")
    assert shown(world) == ("Streaming", "False", "Starting")
    world.run(lambda w: status(w).get("state") == "Running")
    assert shown(world) == ("Streaming", "True", "Running")
    world.edit(world.writers["w"], suspend=True)
    world.run(lambda w: status(w).get("state") == "Suspended")
    assert shown(world) == ("Streaming", "True", "Suspended")
    world.edit(world.writers["w"], suspend=False, streaming=None, sparkConf={"spark.master": "x"})
    world.run(lambda w: status(w).get("state") == "Stalled")
    assert shown(world) == ("Once", "False", "Stalled")
    assert "spark.master" in world.condition(world.writers["w"], "Ready")["message"]
