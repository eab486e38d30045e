"""What the agent decides from a timeline, and which files it may delete (I4, I5, I7, F9, F18)."""

from __future__ import annotations

import pytest

from hudi_contract.settle import SettleRecord
from hudi_runtime.agent import facts
from hudi_runtime.process.etcd import Entry
from hudi_runtime.settle import settle
from hudi_runtime.settle.rollback import Step, decide
from hudi_runtime.settle.sweep import bears, escape, late_files
from hudi_runtime.table import timeline as tl

T1, T2, T3, T4 = "20260101000000001", "20260101000000002", "20260101000000003", "20260101000000004"


@pytest.mark.parametrize(
    ("names", "victims", "instant", "expected"),
    [
        ([f"{T1}.commit.requested", f"{T1}.inflight", f"{T1}_{T3}.commit"], {}, T1, (Step.KEEP, "")),
        ([f"{T1}.commit.requested"], {}, T1, (Step.ROLL_BACK, T1)),
        ([f"{T1}.deltacommit.requested", f"{T1}.deltacommit.inflight"], {}, T1, (Step.ROLL_BACK, T1)),
        ([], {}, T1, (Step.NOTHING, "")),
        ([f"{T2}.rollback.inflight"], {T1: T2}, T1, (Step.ROLL_BACK, T1)),
        ([f"{T2}.rollback.requested", f"{T1}.commit.requested"], {T1: T2}, T2, (Step.ROLL_BACK, T1)),
        ([f"{T2}.rollback.requested"], {}, T2, (Step.UNSUPPORTED, "")),
        ([f"{T1}.compaction.requested"], {}, T1, (Step.EXECUTE, T1)),
        ([f"{T1}.clean.inflight"], {}, T1, (Step.EXECUTE, T1)),
        ([f"{T2}.rollback.requested", f"{T1}.compaction.inflight"], {T1: T2}, T2, (Step.EXECUTE, T1)),
        ([f"{T2}.rollback.requested", f"{T1}.compaction.inflight"], {T1: T2}, T1, (Step.EXECUTE, T1)),
        ([f"{T2}.rollback.requested", f"{T1}_{T3}.clean"], {T1: T2}, T2, (Step.UNSUPPORTED, "")),
        ([f"{T1}.clustering.requested"], {}, T1, (Step.EXECUTE, T1)),
        ([f"{T2}.rollback.requested"], {T1: T2}, T2, (Step.ROLL_BACK, T1)),
        ([f"{T1}.indexing.requested"], {}, T1, (Step.UNSUPPORTED, "")),
        ([f"{T2}_{T3}.rollback"], {}, T2, (Step.KEEP, "")),
    ],
)
def test_decision(names: list[str], victims: dict[str, str], instant: str, expected: tuple[Step, str]) -> None:
    assert decide(instant, tl.parse(names), victims) == expected


def test_a_file_bears_its_instant_only() -> None:
    files = [
        f"a/0f-0_0-1-2_{T1}.parquet",
        f"a/.0f-0_{T1}.log.1_0-1-2",
        f"a/0f-0_0-1-2_{T2}.parquet",
        f"a/0f-0_0-1-2_{T1}9.parquet",
        f"{T1}/.hoodie_partition_metadata",
        f"a/{T1}.parquet",
    ]
    assert late_files(files, T1) == sorted(files[:2])
    assert not bears(f"_{T1}./x", T1), "the folder does not count"


def test_glob_characters_in_partition_values() -> None:
    assert escape("p={a}[1]*?") == r"p=\{a\}\[1\]\*\?"


def entry(key: str, **value: object) -> Entry:
    return Entry(f"/hudi/tables/x/{key}", value, 7)


def records(*entries: Entry) -> settle.Records:
    return settle.Records.from_entries(entries, prefix="/hudi/tables/x/")


def test_instants_of_an_incarnation() -> None:
    known = records(
        entry(f"instant/{T1}", inc="dead", action="commit", state="Pending"),
        entry(f"instant/{T2}", inc="other", action="rollback", state="Pending", claimedBy="dead"),
        entry(f"instant/{T3}", inc="other", action="commit", state="Pending"),
        entry("done/abandoned-dead", inc="dead", instants=["20260101000000000"]),
        entry("report/attempt/x", stage="Writing"),
    )
    found = settle.instants_of(
        "dead",
        SettleRecord.from_json({"phase": "RollingBack", "instants": {"20250101000000000": {"action": "commit"}}}),
        known,
    )
    assert set(found) == {T1, T2, "20260101000000000", "20250101000000000"}


def test_proof() -> None:
    known = records(
        entry("writer/alive", inc="alive"),
        entry("writer/fenced", inc="fenced"),
        entry("settle/fenced", inc="fenced", phase="Draining"),
        entry("writer/dead", inc="dead"),
        entry("settle/dead", inc="dead", phase="RollingBack"),
    )
    assert not known.proven("alive")
    assert not known.proven("fenced"), "drained is not enough: unlocked must be over (F17)"
    assert known.proven("dead")
    assert known.proven("left"), "no registration and no settle record: a clean exit"


@pytest.mark.parametrize(
    ("held", "proven"),
    [({"state": "Pending"}, False), ({"state": "Pending", "inc": "x", "claimedBy": "who"}, False), ({}, True)],
)
def test_who_has_something_pending_has_not_left_whatever_is_missing(held: dict[str, str], *, proven: bool) -> None:
    """F38: a clean exit leaves nothing Pending, so a registration that is not there is no proof.

    What is Abandoned may be left behind.
    """
    known = records(entry(f"instant/{T1}", **{"inc": "who", "action": "commit", "state": "Abandoned", **held}))
    assert known.proven("who") == proven
    assert known.proven("another")


def test_backoff_grows_to_a_minute() -> None:
    assert settle.backoff(0) == 0
    assert [settle.backoff(n) for n in (1, 2, 20)] == [2, 4, 60]


def test_foreign_is_pending_unrecorded_and_still_there() -> None:
    timeline = tl.parse([f"{T1}.commit.requested", f"{T2}.commit.requested", f"{T3}.commit.requested"])
    later = tl.parse([f"{T1}.commit.requested", f"{T2}.commit.requested", f"{T3}_{T3}.commit"])
    found = facts.foreign(timeline, {T1}, lambda: later)
    assert [instant.requested for instant in found] == [T2], "T1 has a record, T3 was completed meanwhile"


def test_no_second_listing_without_a_suspect() -> None:
    def never() -> tl.Timeline:
        raise AssertionError

    assert facts.foreign(tl.parse([f"{T1}.commit.requested"]), {T1}, never) == ()


def test_report_is_bounded() -> None:
    timeline = tl.parse([f"202601010000{n:05d}.commit.requested" for n in range(100)])
    report = facts.report(timeline, inc="a", foreigners=timeline.pending, commits_since={"clean": 3}).to_json()
    assert len(report["pending"]) == len(report["foreign"]) == 20
    assert report["pendingCount"] == 100
    assert report["commitsSince"] == {"clean": 3}


def test_who_else_may_still_be_at_work() -> None:
    """F22: an agent that is not proven dead keeps the new one from beginning a service.

    Writers do not.
    """
    known = records(
        entry("writer/me", inc="me", role="agent"),
        entry("writer/writer", inc="writer", role="writer"),
        entry("writer/old", inc="old", role="agent"),
        entry("settle/fenced", inc="fenced", role="agent", phase="Terminating"),
        entry("settle/dead", inc="dead", role="agent", phase="RollingBack"),
    )
    assert known.other_agents("me") == ["fenced", "old"]


def test_service_instants_of_one_executor() -> None:
    """I12: owned and not claimed away, or claimed; pending only."""
    known = records(
        entry(f"instant/{T1}", inc="me", action="compaction", state="Pending"),
        entry(f"instant/{T2}", inc="me", action="clean", state="Pending", claimedBy="other"),
        entry(f"instant/{T3}", inc="dead", action="clean", state="Pending", claimedBy="me"),
        entry("instant/20260101000000004", inc="me", action="rollback", state="Pending"),
        entry("instant/20260101000000005", inc="me", action="clean", state="Abandoned"),
    )
    assert known.services_of("me") == {T1: "compaction", T3: "clean"}


@pytest.mark.parametrize(
    ("items", "waits"),
    [
        ({}, True),
        ({T1: {"action": "commit", "outcome": None}}, True),
        ({T1: {"action": "commit", "outcome": "RolledBack"}}, False),
        ({T1: {"action": "compaction", "outcome": None}}, False),
        ({T1: {"action": "compaction", "outcome": None}, T2: {"action": "rollback", "outcome": None}}, True),
    ],
)
def test_what_keeps_services_waiting(items: dict[str, object], waits: bool) -> None:
    assert records(entry("settle/dead", phase="RollingBack", instants=items)).rolling_back() is waits
    assert not records(entry("settle/dead", phase="Terminating", instants=items)).rolling_back()


def test_what_was_given_up_keeps_no_service_waiting() -> None:
    """It is rolled back when its drain is over. Where writers lose a race more often than that,
    none would begin (F535). A bootstrap and another metadata table do wait for it.
    """
    given_up = records(entry(f"instant/{T1}", inc="alive", action="commit", state="Abandoned"))
    assert not given_up.rolling_back()
    assert given_up.settling()


def test_a_completed_instant_past_the_clock_is_nobodys_of_ours() -> None:
    """I10: every publication moves the clock first, so what completed later was published by
    somebody else.
    """
    timeline = tl.parse(
        [
            f"{T1}_{T2}.commit",
            f"{T2}.commit.requested",
            f"{T3}_{T4}.clean",
            f"{T1}_{T4}.savepoint",
            f"{T4}.savepoint.inflight",
        ]
    )
    assert [(i.requested, i.action) for i in facts.written_by_others(timeline, T2)] == [
        (T3, "clean"),
        (T1, "savepoint"),
    ]
    assert facts.written_by_others(timeline, T4) == ()
    report = facts.report(
        timeline, inc="a", foreigners=facts.written_by_others(timeline, T2), commits_since={}
    ).to_json()
    assert report["foreign"][0] == {"instant": T3, "action": "clean", "completionTime": T4}
