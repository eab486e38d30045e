"""The condition Committed: what became of a writer's last write, also when its process could not
say it.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_contract.reports import AttemptReport
from hudi_operator.model.status import AttemptEntry
from hudi_operator.plan.writers import committed_condition
from tests.support.world.simulated_world import World, at_step, finished, ready_world

T = "20260101000000000"
LOST = {"instant": T, "with": "20260101000000001", "yielded": False}


@pytest.mark.parametrize(
    ("entry", "report", "expected"),
    [
        ({}, {}, ("False", "NothingWritten")),
        ({"number": 1}, {}, ("False", "NothingWritten")),
        ({"number": 1}, {"lastInstant": T}, ("True", "Committed")),
        ({"number": 1}, {"lastInstant": T, "conflicts": [{**LOST, "retriedAs": T}]}, ("True", "Committed")),
        ({"number": 1}, {"lastInstant": T, "conflicts": [LOST]}, ("False", "Conflict")),
        ({"number": 1, "class": "Succeeded"}, {"lastInstant": T}, ("True", "Committed")),
        ({"number": 1, "class": "Succeeded"}, {}, ("False", "NothingWritten")),
        ({"number": 1, "class": "WriteConflict"}, {"lastInstant": T}, ("False", "Conflict")),
        ({"number": 1, "class": "Infrastructure"}, {"lastInstant": T}, ("False", "Aborted")),
    ],
)
def test_what_an_attempt_says(entry: dict[str, Any], report: dict[str, Any], expected: tuple[str, str]) -> None:
    found = committed_condition.committed(
        None, AttemptEntry.from_json(entry) if entry else None, AttemptReport.from_json(report), {}
    )
    assert (found.status, found.reason) == expected


def test_the_next_attempt_has_written_nothing_yet() -> None:
    before = {
        "conditions": [
            {"type": "Committed", "status": "False", "reason": "Conflict", "message": "attempt 1: ended: WriteConflict"}
        ]
    }
    found = committed_condition.committed(None, AttemptEntry(number=2), AttemptReport(), before)
    assert (found.reason, found.message) == ("Conflict", "attempt 1: ended: WriteConflict")


def test_what_is_settled_stays_when_its_record_is_collected() -> None:
    message = "attempt 1: ended: Killed, but instant 5 is completed"
    before = {"conditions": [{"type": "Committed", "status": "True", "reason": "Committed", "message": message}]}
    assert (
        committed_condition.committed(None, AttemptEntry(number=1, class_="Killed"), AttemptReport(), before).message
        == message
    )


def watched(world: World) -> list[tuple[str, str]]:
    """Status and reason of the condition, each time that it changes, until the writer's first
    attempt is settled.
    """
    seen: list[tuple[str, str]] = []

    def over(w: World) -> bool:
        condition = w.condition(w.writers["w"], "Committed")
        now = (condition["status"], condition["reason"])
        if not seen or seen[-1] != now:
            seen.append(now)
        return bool(w.writers["w"]["status"]["attempts"][0].get("class")) and now[0] != "Unknown"

    world.run(over)
    return seen


@pytest.mark.parametrize(("step", "last"), [(3, ("False", "Aborted")), (5, ("True", "Committed"))])
def test_a_killed_writers_outcome_is_unknown_until_the_timeline_says_it(step: int, last: tuple[str, str]) -> None:
    """I4: killed before its completed file, or after it."""
    world = ready_world()
    world.writer_hang_at = step
    world.make_writer("w", retryPolicy={"limit": 0})
    world.run(at_step("w", step))
    process = world.writer_process("w")
    assert process is not None
    world.tick()
    world.kill(process)
    seen = watched(world)
    assert seen[-2:] == [("Unknown", "OutcomeUnknown"), last]
    world.settle_down()
    condition = world.condition(world.writers["w"], "Committed")
    assert (condition["status"], condition["reason"]) == last


def test_a_writer_that_succeeds_has_committed_or_had_nothing_to_write() -> None:
    world = ready_world()
    world.make_writer("w")
    world.run(finished("w"))
    assert world.condition(world.writers["w"], "Committed")["reason"] in ("Committed", "NothingWritten")
