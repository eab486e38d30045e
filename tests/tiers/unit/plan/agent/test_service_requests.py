"""Table services as the operator sees them: ticks of schedules, status, condition and events."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.model import conditions
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_world import CONFIG, START_MS, World, ready_world

HOURLY = {"clean": {"schedule": {"cron": "0 * * * *"}}}


def request(world: World, kind: str = "clean") -> dict[str, Any]:
    found = world.names("request").get(f"service-{kind}")
    return found.value if found else {}


def later(world: World, hours: float) -> None:
    world.now += hours * 3600
    world.reconcile()


def report(world: World, kind: str, **record: Any) -> None:
    """The agent's record of a run; `inc` is the agent that serves the table."""
    agent = next(inc for inc, key in world.names("writer").items() if key.value["role"] == "agent")
    value = {"service": kind, "inc": agent, "atMs": START_MS, "message": "", "instant": "", "failures": 0, **record}
    world.put(f"done/service-{kind}", value)
    world.reconcile()


def served(world: World) -> dict[str, Any]:
    return dict((world.table or {})["status"].get("services") or {})


def test_the_assignment_names_the_services() -> None:
    world = ready_world(
        type="MergeOnRead",
        services={"archive": {"enabled": False}, "clean": {"retainSeconds": 3 * 3600, "afterCommits": 7}},
    )
    wanted = world.kv["assignment"].value["services"]
    assert set(wanted) == {"clean", "compaction"}
    assert wanted["clean"]["afterCommits"] == 7
    assert wanted["clean"]["options"] == {
        "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS",
        "hoodie.clean.hours.retained": "3",
    }
    assert world.table is not None
    world.edit(world.table, suspend=True)
    world.reconcile()
    assert world.kv["assignment"].value["services"] == {}, "a suspended table is left as it is"


def test_the_assignment_names_the_window_that_is_open_or_comes_next() -> None:
    """Nightly, for two hours: the agent is told the next night as soon as this one is over."""
    world = ready_world(
        services={"clean": {"window": {"cron": "0 1 * * *", "timeZone": "Europe/Berlin", "durationSeconds": 7200}}}
    )

    def window() -> tuple[int, int]:
        told = world.kv["assignment"].value["services"]["clean"]["window"]
        return told["fromMs"], told["untilMs"]

    def now() -> int:
        return START_MS + int(world.now * 1000)

    begin, end = window()
    assert end - begin == 2 * 3600_000
    assert begin > now() or now() < end
    assert served(world)["clean"]["windowOpens"] == conditions.rfc3339(begin)
    assert served(world)["clean"]["windowCloses"] == conditions.rfc3339(end)
    assert "Z" in conditions.rfc3339(begin)
    assert conditions.rfc3339(begin)[11:16] in ("00:00", "23:00"), "one in the morning in Berlin"
    later(world, (begin - now()) / 3600_000 + 1.5)
    assert window() == (begin, end), "open"
    later(world, 1)
    assert window() == (begin + 24 * 3600_000, end + 24 * 3600_000)


def test_no_request_without_a_schedule() -> None:
    assert ready_world().names("request") == {}


def test_ticks_reach_the_agent_once_and_missed_ones_as_one() -> None:
    world = ready_world(services=HOURLY)
    first = request(world)
    assert first["baseline"], "the tick before the beginning is not run"
    later(world, 0.1)
    assert request(world) == first
    later(world, 1)
    second = request(world)
    assert not second["baseline"]
    assert second["nonce"] > first["nonce"]
    later(world, 5.2)
    third = request(world)
    assert not third["baseline"]
    assert conditions.from_rfc3339(third["nonce"]) == conditions.from_rfc3339(second["nonce"]) + 5 * 3_600_000  # type: ignore[operator]


def test_a_person_asks_for_a_run() -> None:
    """The request reaches the agent without another assignment, which would interrupt its work."""
    world = ready_world()
    assert world.table is not None
    before = world.kv["assignment"].value
    world.edit(world.table, services={"clean": {"runNonce": "after-the-load"}})
    world.reconcile()
    found = request(world)
    assert (found["run"], found["nonce"], found["schedule"]) == ("after-the-load", "", None)
    assert world.kv["assignment"].value == before
    later(world, 1)
    assert not [a for a in plan_table(world.observe(), CONFIG).actions if isinstance(a, act.PutRequest)], (
        "it is put once"
    )
    assert "executedNonce" not in served(world)["clean"]
    report(world, "clean", result="Running", instant="20260101000000001", asked={"run": "after-the-load"})
    assert "executedNonce" not in served(world)["clean"], "F551: it is planned, and runs"
    report(world, "clean", result="NothingToDo", runs=["before", "after-the-load"])
    assert served(world)["clean"]["executedNonce"] == "after-the-load"
    report(world, "clean", result="Completed", runs=["after-the-load", "of-a-person"])
    assert served(world)["clean"]["executedNonce"] == "after-the-load", "F568: it is set again, and was served"
    world.edit(world.table, services={})
    world.reconcile()
    assert world.names("request") == {}


def test_a_nonce_beside_a_schedule_changes_no_tick() -> None:
    world = ready_world(services=HOURLY)
    assert world.table is not None
    first = request(world)
    world.edit(world.table, services={"clean": {**HOURLY["clean"], "runNonce": "one"}})
    world.reconcile()
    assert request(world) == {**first, "run": "one"}, "the tick before the beginning is still not run"
    later(world, 1)
    second = request(world)
    assert (second["baseline"], second["run"]) == (False, "one")
    assert second["nonce"] > first["nonce"]


def test_a_disabled_service_is_not_asked_for() -> None:
    assert ready_world(services={"clean": {"enabled": False, "runNonce": "one"}}).names("request") == {}


def test_a_schedule_that_cannot_be_read_keeps_no_other_service_waiting() -> None:
    """Neither for a tick nor for a person."""
    world = ready_world(services={**HOURLY, "archive": {"runNonce": "one"}})
    assert world.table is not None
    first = request(world)
    unread = {"schedule": {"cron": "61 * * * *"}, "runNonce": "one"}
    world.edit(world.table, services={**HOURLY, "archive": {"runNonce": "two"}, "clustering": unread})
    later(world, 1)
    assert request(world, "archive")["run"] == "two"
    assert request(world)["nonce"] > first["nonce"]
    assert request(world, "clustering") == {}, "nobody knows its ticks"
    assert world.condition(world.table, "Stalled")["reason"] == "InvalidSpec"


def test_another_schedule_begins_anew() -> None:
    world = ready_world(services=HOURLY)
    assert world.table is not None
    later(world, 1)
    world.edit(world.table, services={"clean": {"schedule": {"cron": "30 2 * * *", "timeZone": "Europe/Berlin"}}})
    world.reconcile()
    assert request(world)["baseline"]
    world.edit(world.table, services={})
    world.reconcile()
    assert world.names("request") == {}


def test_the_next_look_comes_with_the_next_tick() -> None:
    world = ready_world(services={"clean": {"schedule": {"cron": "* * * * *"}}})
    world.now += 55 - (world.now_ms / 1000) % 60
    world.reconcile()
    assert 4 < plan_table(world.observe(), CONFIG).requeue_seconds < 7


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ({"cron": "61 * * * *"}, ("spec.services.clean.schedule.cron '61 * * * *'", "bad minute")),
        ({"cron": "0 0 31 2 *"}, ("'0 0 31 2 *'", "day-of-month")),
        ({"cron": "* * * * * *"}, ("'* * * * * *'", "five fields")),
        (
            {"cron": "0 3 * * *", "timeZone": "Europe/Atlantis"},
            ("spec.services.clean.schedule.timeZone 'Europe/Atlantis'", "not a time zone"),
        ),
    ],
)
def test_a_schedule_that_cannot_be_read(schedule: dict[str, str], words: tuple[str, ...]) -> None:
    world = ready_world()
    assert world.table is not None
    world.edit(world.table, services={"clean": {"schedule": schedule}})
    world.reconcile()
    stalled = world.condition(world.table, "Stalled")
    assert stalled["reason"] == "InvalidSpec"
    for word in words:
        assert word in stalled["message"]
    assert world.names("request") == {}


def test_status_tells_the_last_run_and_the_next() -> None:
    world = ready_world(
        services={"clean": {"afterCommits": 10, "schedule": {"cron": "0 3 * * *"}}, "archive": {"enabled": False}}
    )
    assert set(served(world)) == {"clean"}, "compaction is no service of a CopyOnWrite table"
    found = world.kv["report/timeline"].value
    world.put("report/timeline", {**found, "commitsSince": {"clean": 4}})
    report(world, "clean", result="Completed", instant="20260101000000001", message="3 files deleted")
    world.put("report/timeline", {**found, "commitsSince": {"clean": 4}})
    world.reconcile()
    clean = served(world)["clean"]
    assert clean["outcome"] == "Completed"
    assert clean["message"] == "3 files deleted"
    assert clean["lastInstant"] == "20260101000000001"
    assert clean["lastTime"] == conditions.rfc3339(START_MS)
    assert clean["nextTime"].endswith("T03:00:00Z")
    assert clean["commitsUntilNext"] == 6
    assert "failures" not in clean


def test_status_tells_what_readers_have_to_merge() -> None:
    world = ready_world(type="MergeOnRead")
    assert world.table is not None
    assert "readCost" not in world.table["status"]
    found = world.kv["report/timeline"].value
    for base, percent in ((1000, {"logToBasePercent": 25}), (0, {})):
        counted = {"baseBytes": base, "logBytes": 250, "fileGroups": 4, "fileGroupsWithLogs": 2}
        world.put("report/timeline", {**found, "readCost": counted})
        world.reconcile()
        assert world.table["status"]["readCost"] == {**counted, **percent}


def test_a_failure_is_a_condition_and_an_event() -> None:
    world = ready_world()
    assert world.table is not None
    assert world.condition(world.table, "ServicesHealthy")["reason"] == "Healthy"
    report(world, "clean", result="Postponed", failures=0, message="a writer was faster")
    assert world.is_true(world.table, "ServicesHealthy"), "what a writer wins is no failure"
    agent = next(inc for inc, key in world.names("writer").items() if key.value["role"] == "agent")
    world.put(
        "done/service-clean",
        {"service": "clean", "inc": agent, "atMs": START_MS, "result": "Failed", "failures": 2, "message": "disk full"},
    )
    plan = plan_table(world.observe(), CONFIG)
    (event,) = [a for a in plan.actions if isinstance(a, act.EmitEvent)]
    assert (event.type, event.reason) == ("Warning", "CleanFailed")
    world.reconcile()
    unhealthy = world.condition(world.table, "ServicesHealthy")
    assert (unhealthy["status"], unhealthy["reason"]) == ("False", "CleanFailed")
    assert unhealthy["message"] == "clean: 2 failures, the last one: disk full"
    assert served(world)["clean"]["failures"] == 2
    report(world, "clean", result="Completed")
    assert world.is_true(world.table, "ServicesHealthy")


@pytest.mark.parametrize(("failures", "healthy"), [(1, True), (2, False)])
def test_a_run_that_ends_its_agent_twice_is_a_failure(failures: int, healthy: bool) -> None:
    world = ready_world(type="MergeOnRead")
    report(world, "compaction", result="Running", failures=failures)
    assert served(world)["compaction"]["outcome"] == "Running"
    assert world.is_true(world.table, "ServicesHealthy")
    report(world, "compaction", result="Running", failures=failures, inc="an agent that is gone")
    assert served(world)["compaction"]["outcome"] == "Interrupted"
    assert world.is_true(world.table, "ServicesHealthy") is healthy


@pytest.mark.parametrize("others", [True, False])
def test_a_plan_that_fails_shows_when_its_service_is_disabled(others: bool) -> None:
    """The agent executes it until it is completed (F531)."""
    clean = {"enabled": others}
    world = ready_world(type="MergeOnRead", services={"compaction": {"enabled": False}, "clean": clean})
    assert world.table is not None
    report(world, "compaction", result="Failed", failures=3, message="no memory")
    assert world.is_true(world.table, "ServicesHealthy"), "no run is due"
    agent = next(inc for inc, key in world.names("writer").items() if key.value["role"] == "agent")
    for action, healthy in (("commit", True), ("compaction", False)):
        world.put("instant/20260101000000001", {"inc": agent, "action": action, "state": "Pending"})
        world.reconcile()
        assert world.is_true(world.table, "ServicesHealthy") is healthy
    told = world.condition(world.table, "ServicesHealthy")
    assert told["reason"] == "CompactionFailed"
    assert told["message"] == "compaction (disabled, and its plan is pending): 3 failures, the last one: no memory"


def test_a_table_without_services() -> None:
    world = ready_world(services={"clean": {"enabled": False}, "archive": {"enabled": False}})
    assert served(world) == {}
    assert world.condition(world.table or {}, "ServicesHealthy")["reason"] == "Disabled"
