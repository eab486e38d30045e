"""What the pages say of tables and writers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hudi_console import views
from hudi_contract.words import WriterState
from hudi_kubectl import why
from hudi_kubectl.objects import Table, Writer
from tests.tiers.unit.console.played import JsonDict, condition, table, writer

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def time(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def world(tables: list[JsonDict], writers: list[JsonDict]) -> why.World:
    return why.World([Table(one) for one in tables], [Writer(one) for one in writers], {}, NOW)


QUEUE = {"position": 1, "since": time(21), "blockedBy": "the lock is held by a suspect"}


def row(tables: JsonDict, *writers: JsonDict) -> JsonDict:
    (found,) = [one for one in views.rows([Table(tables)], map(Writer, writers), NOW) if "orphan" not in one]
    return found


def test_a_row_has_what_there_is_of_a_table() -> None:
    told = table(
        timeline={"pendingCount": 2, "lastCommitTime": time(14)},
        conditions=[condition("Ready", "True", "Ready"), condition("Degraded", "True", "EtcdVersion", "too old")],
    )
    writers = [
        writer(name="a"),
        writer(name="b", conflicts=3),
        writer(name="c", state="Waiting", conflicts=1, queue=QUEUE),
    ]
    found = row(told, *writers, writer(name="d", of="another"), writer("team-b", "e"))
    assert (found["state"], found["tone"], found["pending"], found["conflicts"]) == ("Ready", "good", 2, 4)
    assert found["lastCommit"] == "2026-03-01T11:59:46.000Z"
    assert [(one["state"], one["count"], one["tone"]) for one in found["writers"]] == [
        ("Running", 2, "good"),
        ("Waiting", 1, "busy"),
    ]
    assert [(one["type"], one["tone"]) for one in found["conditions"]] == [("Degraded", "bad")]
    assert found["why"] == "HudiTable flights: Degraded=True, EtcdVersion for 60s: too old"


def test_a_table_that_stands_still_says_why() -> None:
    still = [
        condition("Ready", "False", "Stalled"),
        condition("Stalled", "True", "TableMismatch", "recordKeyFields differ"),
    ]
    found = row(table(conditions=still))
    assert found["why"] == "HudiTable flights: Stalled=True, TableMismatch for 60s: recordKeyFields differ"
    assert (found["state"], found["tone"], found["conditions"]) == ("Stalled", "bad", []), "its state says it already"
    still[1]["message"] = "x" * 1000
    assert len(row(table(conditions=still))["why"]) == 240


def test_what_waits_is_said_in_one_sentence() -> None:
    waits = writer(name="backfill", state="Waiting", queue=QUEUE)
    assert row(table(), writer(), waits)["why"] == (
        "backfill: it has waited 21s for admission as number 1: the lock is held by a suspect"
    )
    assert row(table(), writer())["why"] == ""


def test_a_writer_of_a_table_that_does_not_exist_has_a_row() -> None:
    some = [writer(name="b", of="fligths"), writer(name="a", of="fligths"), writer()]
    for kept in (views.kept, views.kept_in_short):
        found = views.rows([Table(kept(table()))], [Writer(kept(one)) for one in some], NOW)
        assert [(one["name"], one["state"], one["tone"], one.get("orphan")) for one in found] == [
            ("flights", "Ready", "good", None),
            ("fligths", "Missing", "bad", "a"),
        ]
        assert found[1]["why"] == "there is no HudiTable fligths, which a, b would write"


def test_a_writer_that_has_failed_goes_before_one_that_waits() -> None:
    waits = writer(name="a", state="Waiting", queue=QUEUE)
    failed = writer(name="z", state="Failed", conditions=[condition("Ready", "False", "Failed", "no such column")])
    found = row(table(), waits, failed)
    assert found["why"].startswith("z: ")
    assert [(one["state"], one["tone"]) for one in found["writers"]] == [("Failed", "bad"), ("Waiting", "busy")]


def test_a_row_of_what_is_kept_in_short_is_that_of_the_whole() -> None:
    conditions = [
        condition("Ready", "False", "Savepoint", "x"),
        condition("ClocksAgree", "True", "Within"),
        condition("Late", "True", "No"),
    ]
    told = table(
        conditions=conditions,
        blockedBy="load",
        lock={"attempt": "team-a.load-1", "since": time(9)},
        tableId="x" * 32,
        timeline={
            "pendingCount": 1,
            "commits": [{"instant": "1"}, {"completionTime": "20260301115900000"}],
            "pending": [{}],
        },
    )
    attempts = [{"number": n, "startTime": time(90)} for n in (1, 2)]
    load = writer(
        state="Retrying",
        nextRetryTime=time(-9),
        attempts=attempts,
        recentConflicts=[{"with": "a"}, {"with": "b"}],
        conflicts=2,
    )
    assert row(views.kept_in_short(told), views.kept_in_short(load)) == row(told, load)
    short = views.kept_in_short(told)
    assert "tableId" not in short["status"]
    assert len(short["status"]["conditions"]) == 2
    assert len(short["status"]["timeline"]["commits"]) == 1


@pytest.mark.parametrize(
    ("kind", "status", "tone"),
    [
        ("Ready", "True", "good"),
        ("Ready", "False", "bad"),
        ("Ready", "Unknown", "busy"),
        ("Stalled", "True", "bad"),
        ("Stalled", "False", "good"),
        ("RollbackPending", "True", "busy"),
        ("ServicesHealthy", "False", "bad"),
        ("CatalogSynced", "False", "bad"),
        ("CleaningHeld", "True", "bad"),
        ("CleaningHeld", "False", "good"),
        ("Bootstrapped", "False", "bad"),
        ("Suspended", "True", "quiet"),
        ("Admitted", "False", "quiet"),
    ],
)
def test_how_a_condition_is_shown(kind: str, status: str, tone: str) -> None:
    assert views.tone({"type": kind, "status": status}) == tone


@pytest.mark.parametrize("reason", ["Running", "Waiting"])
def test_a_bootstrap_that_runs_needs_nobody(reason: str) -> None:
    assert views.tone(condition("Bootstrapped", "False", reason)) == "busy"
    assert views.tone(condition("Bootstrapped", "False", "Failed")) == "bad"
    assert views.tone(condition("ServicesHealthy", "False", "ExecutorPending")) == "busy"


def test_every_state_of_a_writer_is_shown_in_some_way() -> None:
    tones = {state: views.tone_of(Writer(writer(state=state))) for state in WriterState}
    assert {state for state, tone in tones.items() if tone == "bad"} == {"Failed", "Stalled"}
    assert {state for state, tone in tones.items() if tone == "good"} == {"Running"}
    assert {state for state, tone in tones.items() if tone == "quiet"} == {"Scheduled", "Succeeded", "Suspended"}
    assert len(tones) >= 11


def test_what_a_table_shows() -> None:
    commit = {
        "instant": "20260301115800000",
        "completionTime": "20260301115830000",
        "action": "commit",
        "writer": "team-a/load",
        "records": 3,
    }
    told = table(
        timeline={
            "commits": [commit],
            "pending": [{"instant": "20260301115900000", "action": "clean", "state": "INFLIGHT"}],
        },
        services={"clean": {"outcome": "Completed", "lastTime": time(5)}, "archive": {"outcome": "NothingToDo"}},
        settling=[{"pod": "late-1", "phase": "Draining", "since": time(3)}],
    )
    waits = [
        writer(name=name, state="Waiting", queue={**QUEUE, "position": place}) for name, place in (("b", 2), ("c", 1))
    ]
    refused = writer(recentConflicts=[{"time": time(50), "instant": "1"}, {"time": time(40), "instant": "2"}])
    seen = world([told], [refused, *waits])
    event = {
        "involvedObject": {"kind": "HudiTable", "name": "flights"},
        "lastTimestamp": time(1),
        "reason": "Ready",
        "message": "go",
    }
    found, lanes = views.of_one_table(seen, seen.tables[0], [event])
    assert [one["name"] for one in found["queue"]] == ["c", "b"]
    assert [one["name"] for one in found["services"]] == ["archive", "clean"]
    assert [one["instant"] for one in found["conflicts"]] == ["2", "1"], "the newest first"
    assert [lane["of"] for lane in found["lanes"]] == [
        "lock",
        "writer",
        "writer",
        "writer",
        "services",
        "settling",
        "savepoints",
    ]
    assert [lane.of for lane in lanes] == [lane["of"] for lane in found["lanes"]]
    assert found["told"][0] == {"time": "2026-03-01T11:59:59.000Z", "who": "flights", "what": "Ready: go"}
    assert (found["eventsHidden"], found["at"]) == (False, "2026-03-01T12:00:00.000Z")
    assert views.of_one_table(seen, seen.tables[0], None)[0]["eventsHidden"] is True


def test_what_a_writer_shows() -> None:
    attempts = [
        {
            "number": 1,
            "startTime": time(90),
            "readyTime": time(80),
            "endTime": time(60),
            "class": "NodeLost",
            "exitCode": 1,
            "message": "gone",
        },
        {"number": 2, "startTime": time(50), "endTime": time(40), "class": "Succeeded"},
        {"number": 3, "startTime": time(30), "readyTime": time(20)},
        {"number": 4, "startTime": time(10)},
    ]
    seen = world([table()], [writer(attempts=attempts, earlierAttempts={"records": 7})])
    found = views.of_one_writer(seen, seen.writers[0], None)
    assert [(one["number"], one["tone"]) for one in found["attempts"]] == [
        (4, "busy"),
        (3, "good"),
        (2, "quiet"),
        (1, "bad"),
    ]
    assert found["attempts"][3]["start"] == "2026-03-01T11:58:30.000Z"
    assert (found["writer"]["table"], found["writer"]["tableExists"], found["earlier"]) == (
        "flights",
        True,
        {"records": 7},
    )
    alone = world([], [writer()])
    assert views.of_one_writer(alone, alone.writers[0], [])["writer"]["tableExists"] is False


def test_what_no_page_shows_is_not_kept() -> None:
    raw = table()
    raw["metadata"] |= {"managedFields": [{}], "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x"}}
    kept = views.kept(raw)
    assert set(kept["metadata"]) == {"namespace", "name", "generation"}
    assert kept["status"] == raw["status"]
