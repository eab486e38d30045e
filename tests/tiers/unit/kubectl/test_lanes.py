"""The whole picture of a table: its lanes, and what is remembered while one looks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hudi_contract.settle import Phase
from hudi_kubectl import lanes, past, pictures
from hudi_kubectl.lanes import Lane
from hudi_kubectl.objects import Table, Writer
from hudi_kubectl.pictures import COMMIT, Bar

JsonDict = dict[str, Any]
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
Seen = list[tuple[str, float, float, bool]]


def time(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def instant(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y%m%d%H%M%S") + "000"


def table(**status: Any) -> Table:
    return Table({"kind": "HudiTable", "metadata": {"namespace": "team", "name": "flights"}, "status": status})


def writer(name: str = "load", **status: Any) -> Writer:
    spec = {"tableRef": {"name": "flights"}}
    return Writer(
        {"kind": "HudiWriter", "metadata": {"namespace": "team", "name": name}, "spec": spec, "status": status}
    )


def seen(lane: Lane) -> Seen:
    """Kind, begin and end in seconds before now, and whether it goes on."""
    return [(b.kind, (NOW - b.begin).total_seconds(), (NOW - b.end).total_seconds(), b.is_open) for b in lane.bars]


def lane(found: list[Lane], of: str, name: str = "") -> Lane:
    (one,) = [one for one in found if one.of == of and name in ("", one.name)]
    return one


def event(reason: str, seconds: float, message: str, name: str = "flights") -> JsonDict:
    about = {"kind": "HudiTable", "name": name}
    return {"reason": reason, "message": message, "lastTimestamp": time(seconds), "involvedObject": about}


def test_there_are_lanes_for_what_concerns_all_of_them() -> None:
    found = lanes.lanes(table(), [writer("a"), writer("b")], NOW)
    assert [(one.of, one.name) for one in found] == [
        ("lock", "lock"),
        ("writer", "a"),
        ("writer", "b"),
        ("services", "services"),
        ("savepoints", "savepoints"),
    ]
    assert not [one for one in found if one.bars]


@pytest.mark.parametrize("name", ["services", "settling"])
def test_a_writer_may_have_the_name_of_a_row_of_the_table(name: str) -> None:
    named, other = writer(name), writer("stream", attempts=[{"number": 1, "startTime": time(30)}])
    told = table(timeline={"commits": [{"instant": instant(20), "completionTime": instant(15), "action": "clean"}]})
    assert seen(lane(lanes.lanes(table(), [named], NOW), "writer")) == []
    found = lanes.lanes(told, [named, other], NOW)
    assert seen(lane(found, "writer", name)) == []
    assert [bar.kind for bar in lane(found, "writer", "stream").bars] == ["attempt", "starts"]
    assert seen(lane(found, "services", "services")) == [("commit", 20, 15, False)]


def test_commits_of_a_writer_that_is_gone_and_of_foreign_ones_have_lanes_of_their_own() -> None:
    def commit(seconds: float, **more: str) -> JsonDict:
        return {"instant": instant(seconds), "completionTime": instant(seconds - 1), "action": "commit", **more}

    commits = [commit(40, writer="team/gone"), commit(30, writer="team/load"), commit(20), commit(10)]
    told = table(timeline={"commits": commits, "foreign": [{"instant": instant(20), "action": "commit"}]})
    found = lanes.lanes(told, [writer("load")], NOW)
    assert [(one.of, one.name, seen(one)) for one in found if one.bars] == [
        ("writer", "load", [("commit", 30, 29, False)]),
        ("writer", "gone", [("commit", 40, 39, False)]),
        ("foreign", "foreign", [("commit", 20, 19, False)]),
        ("services", "services", [("commit", 10, 9, False)]),
    ]
    before = lanes.lanes(told, [writer("load"), writer("gone")], NOW)
    assert [(one.of, one.name, seen(one)) for one in lanes.remembered(before, found, NOW) if one.bars] == [
        (one.of, one.name, seen(one)) for one in found if one.bars
    ], "each commit once, while one looks"
    assert [row.name for row in pictures.rows(told, [writer("load")], NOW)] == [
        "load",
        "gone (gone)",
        "foreign",
        "services",
    ]
    assert [who for _, who, what in past.told(told, [], []) if "commit" in what] == [
        "gone",
        "load",
        "a foreign writer",
        "services",
    ]


def test_what_a_writer_does_and_waits_for() -> None:
    load = writer(
        attempts=[
            {
                "number": 1,
                "pod": "load-1",
                "startTime": time(90),
                "readyTime": time(80),
                "endTime": time(60),
                "class": "NodeLost",
            },
            {"number": 2, "pod": "load-2", "startTime": time(30)},
        ],
        recentConflicts=[{"instant": instant(75), "time": time(70), "with": "x"}],
        queue={"position": 2, "since": time(20), "blockedBy": "the lock"},
    )
    pending = [{"instant": instant(10), "owner": "team.load-2", "action": "commit", "state": "INFLIGHT"}]
    found = lanes.lanes(table(timeline={"pending": pending}), [load, writer("other")], NOW)
    assert seen(lane(found, "writer", "load")) == [
        ("attempt", 90, 60, False),
        ("attempt", 30, 0, True),
        ("starts", 90, 80, False),
        ("starts", 30, 0, True),
        ("refused", 75, 70, False),
        ("queued", 20, 0, True),
        ("pending", 10, 0, True),
    ]
    texts = [bar.text for bar in lane(found, "writer", "load").bars]
    assert texts[-2:] == ["waits for admission as number 2: the lock", f"commit {instant(10)} is inflight"]
    assert seen(lane(found, "writer", "other")) == []


def test_an_instant_of_nobody_known_is_one_of_the_services() -> None:
    pending = [{"instant": instant(10), "owner": f"{space}.load-1"} for space in ("team", "other")]
    load = writer(attempts=[{"number": 1, "pod": "load-1"}])
    found = lanes.lanes(table(timeline={"pending": pending}), [load], NOW)
    assert len(lane(found, "writer").bars) == len(lane(found, "services").bars) == 1


def test_lock_services_and_savepoints() -> None:
    found = lanes.lanes(
        table(
            lock={"attempt": "team.load-1", "since": time(25)},
            services={
                "clean": {"outcome": "Completed", "lastTime": time(50)},
                "compaction": {"outcome": "Running", "lastTime": time(8)},
                "clustering": {"outcome": "Failed", "lastTime": time(40)},
                "ttl": {},
            },
            timeline={"commits": [{"instant": instant(20), "completionTime": instant(15), "action": "replacecommit"}]},
            savepoints=[{"name": "s", "outcome": "Completed", "time": time(70)}, {"name": "t", "outcome": "Pending"}],
            restore={"savepoint": "s", "outcome": "Failed", "beginTime": time(60), "endTime": time(55)},
        ),
        [],
        NOW,
    )
    assert seen(lane(found, "lock")) == [("held", 25, 0, True)]
    assert seen(lane(found, "services")) == [
        ("commit", 20, 15, False),
        ("service", 50, 50, False),
        ("service", 8, 0, True),
        ("service", 40, 40, False),
    ]
    assert [bar.failed for bar in lane(found, "services").bars] == [False, False, False, True]
    assert seen(lane(found, "savepoints")) == [("savepoint", 70, 70, False), ("restore", 60, 55, False)]


@pytest.mark.parametrize("phase", [phase.name for phase in Phase])
def test_every_phase_of_settling_is_drawn(phase: str) -> None:
    entry = {"pod": "late-1", "phase": phase, "since": time(22), "reason": "LeaseGone", "waitingFor": "the kubelet"}
    (bar,) = lane(lanes.lanes(table(settling=[entry]), [], NOW), "settling", "late-1").bars
    drawn = {"Fenced": "fenced", "Terminating": "fenced", "Draining": "drained"}
    assert (bar.kind, bar.is_open) == (drawn.get(phase, "rolled back"), True)
    assert bar.text == f"late-1 is {phase} (LeaseGone), waits for the kubelet"


def test_events_say_what_was_settled_before() -> None:
    told = [
        event("RollingBack", 30, "team.late-1: RollingBack"),
        event("Fenced", 60, "team.late-1 is fenced: LeaseGone"),
        event("Unlocked", 35, "team.late-1: Unlocked"),
        event("Ready", 20, "writers may write"),
        event("Fenced", 10, "team.x is fenced: y", "another"),
    ]
    found = lanes.lanes(table(), [], NOW, told)
    assert [one.name for one in found if one.of == "settling"] == ["late-1"]
    assert seen(lane(found, "settling")) == [
        ("fenced", 60, 60, False),
        ("fenced", 60, 35, False),
        ("rolled back", 30, 30, False),
    ]


def test_an_event_of_long_ago_makes_no_axis_of_a_thousand_years() -> None:
    about = {"kind": "HudiTable", "name": "flights"}
    one = {"reason": "Fenced", "message": "a.b is fenced: c", "involvedObject": about}
    for moment in ("0001-01-02T00:00:00Z", time(86_460)):
        found = lanes.lanes(table(), [], NOW, [{**one, "lastTimestamp": moment}])
        assert not [lane for lane in found if lane.of == "settling"], moment


# ---------------------------------------------------------------- what is remembered
def bar(kind: str, begin: float, end: float, *, is_open: bool = False) -> Bar:
    return Bar(kind, NOW - timedelta(seconds=begin), NOW - timedelta(seconds=end), kind, is_open=is_open)


def test_what_was_going_on_and_is_gone_has_ended() -> None:
    before = [Lane("lock", "lock", (bar("held", 25, 5, is_open=True),))]
    (found,) = lanes.remembered(before, [Lane("lock", "lock", ())], NOW)
    assert seen(found) == [("held", 25, 0, False)]
    (later,) = lanes.remembered([found], [Lane("lock", "lock", ())], NOW + timedelta(seconds=60))
    assert later == found, "it has ended once"


def test_what_is_there_still_is_there_once() -> None:
    now = Lane("lock", "lock", (bar("held", 25, 0, is_open=True),))
    assert lanes.remembered([Lane("lock", "lock", (bar("held", 25, 5, is_open=True),))], [now], NOW) == [now]


@pytest.mark.parametrize("kind", [COMMIT, "refused"])
def test_an_instant_that_has_ended_is_not_pending_beside(kind: str) -> None:
    before = [Lane("writer", "load", (bar("pending", 9, 3, is_open=True),))]
    (found,) = lanes.remembered(before, [Lane("writer", "load", (bar(kind, 9, 1),))], NOW)
    assert [one.kind for one in found.bars] == [kind]


def test_an_instant_that_is_gone_was_completed_or_rolled_back() -> None:
    """A clean that is completed is in no status: it has not failed."""
    pending = Bar("pending", NOW - timedelta(seconds=9), NOW, "clean 7 is inflight", is_open=True)
    services = Lane("services", "services", ())
    (found,) = lanes.remembered([replace(services, bars=(pending,))], [services], NOW)
    assert seen(found) == [("ended", 9, 0, False)]
    assert found.bars[0].text == "clean 7 was completed or rolled back"
    assert lanes.remembered([found], [services], NOW) == [found]


@pytest.mark.parametrize("kind", [COMMIT, "refused", "pending"])
def test_an_instant_is_in_one_lane(kind: str) -> None:
    before = [Lane("writer", "load", (bar("pending", 9, 3, is_open=True),)), Lane("services", "services", ())]
    current = [Lane("writer", "load", ()), Lane("services", "services", (bar(kind, 9, 1),))]
    assert lanes.remembered(before, current, NOW) == current


def test_commits_that_the_status_has_no_longer_stay_for_a_day() -> None:
    old, recent = bar(COMMIT, 90_000, 86_401), bar(COMMIT, 3600, 3500)
    before = [Lane("writer", "load", (old, recent))]
    (found,) = lanes.remembered(before, [Lane("writer", "load", (bar(COMMIT, 9, 1),))], NOW)
    assert [one[1] for one in seen(found)] == [3600, 9]


def test_lanes_of_what_is_gone_stay_in_their_place() -> None:
    before = [
        Lane("writer", "gone", (bar(COMMIT, 9, 8),)),
        Lane("settling", "late-1", (bar("fenced", 9, 1, is_open=True),)),
    ]
    current = [
        Lane("lock", "lock", ()),
        Lane("writer", "load", ()),
        Lane("services", "services", ()),
        Lane("savepoints", "savepoints", ()),
    ]
    found = lanes.remembered(before, current, NOW)
    assert [one.name for one in found] == ["lock", "load", "gone", "services", "late-1", "savepoints"]


def test_a_lane_does_not_grow_without_end() -> None:
    before = [Lane("writer", "load", tuple(bar(COMMIT, n + 2, n + 1) for n in range(2000)))]
    (found,) = lanes.remembered(before, [Lane("writer", "load", ())], NOW)
    assert len(found.bars) == lanes.KEPT_BARS
    assert max(one[1] for one in seen(found)) == lanes.KEPT_BARS + 1, "the newest"


def test_times_are_those_that_browsers_read() -> None:
    one = Lane("lock", "lock", (Bar("held", NOW, NOW + timedelta(milliseconds=5), "t", is_open=True),)).as_json()
    assert one == {
        "of": "lock",
        "name": "lock",
        "bars": [
            {
                "kind": "held",
                "begin": "2026-03-01T12:00:00.000Z",
                "end": "2026-03-01T12:00:00.005Z",
                "text": "t",
                "failed": False,
                "open": True,
            }
        ],
    }


def test_history_is_told_in_the_order_of_time() -> None:
    told = table(
        timeline={
            "commits": [
                {"instant": instant(9), "completionTime": instant(8), "writer": "team/load", "action": "commit"}
            ]
        }
    )
    load = writer(attempts=[{"number": 1, "startTime": time(20), "pod": "load-1"}])
    found = past.told(told, [load], [event("Ready", 30, "go"), event("Ready", 5, "else", "another")])
    assert [(who, what) for _, who, what in found] == [
        ("flights", "Ready: go"),
        ("load", "attempt 1 began in pod load-1"),
        ("load", f"commit {instant(9)}: ? records"),
    ]
