"""What a receiver of commits is told, in which order, and what is never told (R20)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudi_contract.requests import NOTHING_YET, CallbackPosition, RestoreDone
from hudi_contract.words import Result
from hudi_runtime.callback import callback_plan as plan
from hudi_runtime.callback.callback_plan import Kind
from hudi_runtime.table import timeline as tl
from tests.support.world.callback_parts import WRITER, Commits, t

SOURCE = plan.Source("lake", "orders", "0123456789abcdef0123456789abcdef", "s3a://lake/orders")
RESTORED = RestoreDone(
    instant=t(30),
    completion_time=t(40),
    result=Result.COMPLETED,
    boundary=t(12),
    undone=2,
    undone_instants=(t(3), t(5)),
    savepoint="before",
)


def at(
    completion_time: str = NOTHING_YET,
    instant: str = "",
    delivered: int = 0,
    archived_to: str = "",
    lost: int = 0,
    at_ms: int = 0,
) -> CallbackPosition:
    return CallbackPosition(
        completion_time=completion_time,
        instant=instant,
        delivered=delivered,
        archived_to=archived_to,
        lost=lost,
        at_ms=at_ms,
    )


def restores(*values: dict[str, Any]) -> tuple[RestoreDone, ...]:
    return plan.restores(RestoreDone.from_json(value) for value in values)


def told(
    timeline: tl.Timeline,
    position: CallbackPosition,
    *,
    restores: tuple[RestoreDone, ...] = (),
    until: str = t(999),
    services: bool = False,
) -> list[str]:
    return [
        event.instant for event in plan.undelivered(timeline, restores, position, until=until, table_services=services)
    ]


def test_completed_writes_in_order_of_completion_and_nothing_that_is_pending() -> None:
    table = Commits()
    table.add(1, 9)
    table.add(2, 3, "deltacommit")
    table.add(4, 7, "replacecommit")
    table.add(6, 8, "clean")
    table.add(10, 11, "rollback")
    table.names += [
        f"{t(0)}.commit.requested",
        f"{t(0)}.inflight",
        f"{t(12)}.deltacommit.requested",
        f"{t(12)}.deltacommit.inflight",
    ]
    assert told(table.listing(), at()) == [t(2), t(4), t(1)]
    assert told(table.listing(), at(t(3))) == [t(4), t(1)]
    assert told(table.listing(), at(t(9))) == []


def test_table_services_only_when_asked_for() -> None:
    table = Commits()
    table.add(1, 2, "deltacommit")
    table.add(3, 4, "commit", planned="compaction")
    table.add(5, 6, "replacecommit", planned="clustering")
    table.add(7, 8, "deltacommit", planned="logcompaction")
    assert told(table.listing(), at()) == [t(1)]
    assert told(table.listing(), at(), services=True) == [t(1), t(3), t(5), t(7)]


def test_a_commit_that_a_listing_shows_too_early_waits_for_the_next_one() -> None:
    """A listing is not one moment: it may have the commit of 7 and not that of 5,
    which completed before.
    """
    table = Commits()
    table.add(6, 7)
    first = table.listing()
    until = plan.bound(t(4), None)
    assert told(first, at(), until=until) == []
    table.add(1, 5)
    assert told(table.listing(), at(), until=plan.bound(t(4), first)) == [t(1), t(6)]
    assert told(table.listing(), at(), until=plan.bound(t(7), None)) == [t(1), t(6)], "the clock is past both"


def test_a_restore_is_told_in_its_place() -> None:
    table = Commits()
    table.add(1, 2)
    table.add(30, 40, "restore")
    table.add(41, 42)
    assert told(table.listing(), at(), restores=(RESTORED,)) == [t(1), t(30), t(41)]
    assert told(table.listing(), at(t(40)), restores=(RESTORED,)) == [t(41)]


def test_only_completed_restores_that_undid_something() -> None:
    base = {
        "result": "Completed",
        "instant": t(30),
        "completionTime": t(40),
        "boundary": t(12),
        "undone": 2,
        "undoneInstants": [t(3), t(5)],
    }
    assert restores({**base, "savepoint": "before"}) == (RESTORED,)
    assert restores({**base, "result": "Running"}, {**base, "instant": ""}, {"result": "Completed", "undone": 0}) == ()


def test_the_archive_is_read_only_when_something_may_be_lost_in_it() -> None:
    table = Commits()
    for number in (1, 3, 5):
        table.add(number, number + 1)
    before = table.listing()
    assert plan.may_be_archived(None, before, at(t(6))), "after a start nothing is known"
    table.add(7, 8)
    assert not plan.may_be_archived(before, table.listing(), at(t(6)))
    table.archived(1)
    assert not plan.may_be_archived(before, table.listing(), at(t(2))), "it was delivered"
    table.archived(3)
    assert plan.may_be_archived(before, table.listing(), at(t(2)))
    assert not plan.may_be_archived(before, table.listing(), at(t(4)))
    table.archived(5)
    assert plan.may_be_archived(before, table.listing(), at(t(6))), "something newer may have come and gone since"


def test_a_pending_instant_that_is_gone_may_have_completed_and_been_archived() -> None:
    table = Commits([f"{t(1)}.commit.requested"])
    table.add(2, 3)
    before = table.listing()
    table.undo(1)
    assert plan.may_be_archived(before, table.listing(), at(t(3)))


def test_a_gap_is_told_once_and_moves_nothing_else() -> None:
    table = Commits()
    for requested, completed in ((1, 2), (3, 9), (4, 5)):
        table.add(requested, completed)
    table.archived(1, 3)
    position = at(t(2), t(1), 1)
    gap = plan.archived(table.archive, position)
    assert gap is not None
    assert (gap.kind, [i.requested for i in gap.archived]) == (Kind.ARCHIVED, [t(3)])
    moved = plan.after(position, gap, at_ms=7)
    assert moved == at(t(2), t(1), 2, t(3), 1, 7)
    assert plan.archived(table.archive, moved) is None
    assert told(table.listing(), moved) == [t(4)], "completed before the lost one, and still there"
    table.archived(4)
    again = plan.archived(table.archive, moved)
    assert again is not None
    assert [i.requested for i in again.archived] == [t(4)]


def test_a_position_survives_its_record() -> None:
    position = at(t(2), t(1), 5, t(3), 1, 7)
    assert CallbackPosition.from_json(json.loads(json.dumps(position.to_json()))) == position
    assert plan.start(tl.Timeline()) == CallbackPosition.from_json({}) == at("0")
    table = Commits()
    table.add(1, 9)
    table.add(2, 3)
    assert plan.start(table.listing()).completion_time == t(9)


@pytest.mark.parametrize(("failures", "longest"), [(1, 1), (2, 2), (5, 16), (9, 256), (10, 300), (10_000, 300)])
def test_tries_are_further_and_further_apart(failures: int, longest: float) -> None:
    assert plan.retry_seconds(failures, 0.0) == longest
    assert plan.retry_seconds(failures, 1.0) == longest / 2
    assert plan.retry_seconds(failures, 1.0, asked=120) == max(120, longest / 2)
    assert plan.retry_seconds(failures, 0.0, asked=1e9) == 300


def test_what_an_event_says_of_a_commit() -> None:
    table = Commits()
    table.add(1, 9)
    (event,) = plan.undelivered(table.listing(), (), at(), until=t(9), table_services=False)
    said = json.loads(plan.body(event, SOURCE, table.metadata(table.listing().instants[0])))
    assert said == {
        "specversion": "1.0",
        "id": f"0123456789abcdef0123456789abcdef.committed.{t(1)}.{t(9)}",
        "source": "/apis/hudioperator.io/v1alpha1/namespaces/lake/huditables/orders",
        "type": "io.hudioperator.table.committed.v1",
        "subject": t(1),
        "time": "2026-01-01T00:00:00.009Z",
        "sequence": t(9),
        "datacontenttype": "application/json",
        "data": {
            "namespace": "lake",
            "table": "orders",
            "tableId": "0123456789abcdef0123456789abcdef",
            "path": "s3a://lake/orders",
            "instant": t(1),
            "completionTime": t(9),
            "action": "commit",
            "operation": "UPSERT",
            "writer": WRITER["hudioperator.writer"],
            "attempt": WRITER["hudioperator.attempt"],
            "records": {"inserted": 4, "updated": 2, "deleted": 1},
        },
    }
    foreign = json.loads(plan.body(event, SOURCE, {}))["data"]
    assert "writer" not in foreign
    assert (foreign["operation"], foreign["records"]) == ("UNKNOWN", {"inserted": 0, "updated": 0, "deleted": 0})


def test_where_a_callback_begins_is_told_first() -> None:
    event = plan.started(at(t(2)))
    assert event is not None
    said = json.loads(plan.body(event, SOURCE, {}))
    assert (said["id"], said["type"]) == (
        f"0123456789abcdef0123456789abcdef.started.{t(2)}",
        "io.hudioperator.table.started.v1",
    )
    assert (said["data"]["afterCompletionTime"], "subject" in said) == (t(2), False)
    moved = plan.after(at(t(2)), event, at_ms=1)
    assert moved == at(t(2), "", 1, at_ms=1)
    assert plan.started(moved) is None
    empty = plan.started(at())
    assert empty is not None
    assert "time" not in json.loads(plan.body(empty, SOURCE, {}))


def test_what_an_event_says_of_a_restore_and_of_a_gap() -> None:
    event = plan.Event(Kind.RESTORED, RESTORED.instant, RESTORED.completion_time, restore=RESTORED)
    said = json.loads(plan.body(event, SOURCE, {}))
    assert said["type"] == "io.hudioperator.table.restored.v1"
    assert said["data"]["boundaryCompletionTime"] == t(12)
    assert (said["data"]["undone"], said["data"]["undoneInstants"], said["data"]["savepoint"]) == (
        2,
        [t(3), t(5)],
        "before",
    )
    table = Commits()
    table.add(1, 4)
    table.add(2, 3)
    table.archived(1, 2)
    gap = plan.archived(table.archive, at())
    assert gap is not None
    said = json.loads(plan.body(gap, SOURCE, {}))
    assert (said["type"], said["subject"], said["sequence"]) == ("io.hudioperator.table.archived.v1", t(2), t(4))
    assert {key: said["data"][key] for key in ("commits", "firstCompletionTime", "lastCompletionTime")} == {
        "commits": 2,
        "firstCompletionTime": t(3),
        "lastCompletionTime": t(4),
    }
