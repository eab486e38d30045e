"""Look and roll back: never a completed instant, never with a policy that chooses for itself, done
only by the timeline (I4; F2, F9, F18).
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from hudi_runtime.process.errors import OutcomeUnknown
from hudi_runtime.settle.rollback import NotYet, Outcome, look_and_roll_back
from hudi_runtime.settle.sweep import Listing, Stopped, sweep
from tests.support.world.fake_table import DONE, PENDING, R1, T1, T9, FakeTable

ROLLED_BACK = [f"{R1}.rollback.requested", f"{R1}.rollback.inflight", f"{R1}_{T9}.rollback"]


def act(table: Any, instant: str = T1, claim: Any = lambda _: None) -> tuple[Outcome, str]:
    return look_and_roll_back(table, instant, name="t", options={}, claim=claim)


def test_pending_is_rolled_back_and_verified() -> None:
    table = FakeTable(PENDING, after=ROLLED_BACK)
    claimed: list[str] = []
    assert act(table, claim=claimed.append) == (Outcome.ROLLED_BACK, T1)
    assert (table.rolled_back, claimed) == ([T1], [T1])


def test_completed_is_kept() -> None:
    table = FakeTable(DONE)
    assert act(table) == (Outcome.COMPLETED, "")
    assert table.rolled_back == []


def test_completed_between_the_looks_is_kept() -> None:
    """The look directly before the call is the one that counts."""
    table = FakeTable(PENDING, DONE)
    with pytest.raises(OutcomeUnknown, match="no longer a pending write"):
        act(table)
    assert table.rolled_back == []


def test_not_done_while_the_timeline_shows_it() -> None:
    with pytest.raises(OutcomeUnknown, match="still on the timeline"):
        act(FakeTable(PENDING, after=PENDING))
    planned = [f"{R1}.rollback.requested", f"{R1}.rollback.inflight"]
    with pytest.raises(OutcomeUnknown, match="still pending"):
        act(FakeTable(PENDING, after=planned, victims={T1: R1}))


def test_gone_but_named_by_a_pending_rollback_is_finished() -> None:
    """F18: an agent died after the victim's files were gone and before its
    rollback was completed.
    """
    planned = [f"{R1}.rollback.requested", f"{R1}.rollback.inflight"]
    table = FakeTable(planned, after=ROLLED_BACK, victims={T1: R1})
    table.storage.files = {f".hoodie/.heartbeat/{T1}", f".hoodie/.heartbeat/{R1}", f".hoodie/.heartbeat/{T9}"}
    claimed: list[str] = []
    assert act(table, claim=claimed.append) == (Outcome.ROLLED_BACK, T1)
    assert claimed == [T1, R1]
    assert table.storage.files == {f".hoodie/.heartbeat/{T9}"}, (
        "a left-over heartbeat would make Hudi refuse for ever (F9)"
    )


def test_the_rollback_itself_is_executed_again() -> None:
    planned = [*PENDING, f"{R1}.rollback.requested"]
    table = FakeTable(planned, after=ROLLED_BACK, victims={T1: R1})
    assert act(table, R1) == (Outcome.REEXECUTED, T1)
    assert table.rolled_back == [T1]


def test_gone() -> None:
    assert act(FakeTable([f"{T9}_{T9}.commit"])) == (Outcome.GONE, T1)


def test_archived_as_completed_is_kept() -> None:
    table = FakeTable([f"{T9}_{T9}.commit"])
    table.archived = {T1}
    assert act(table) == (Outcome.COMPLETED, "")


def test_nothing_is_touched_when_the_claim_is_refused() -> None:
    table = FakeTable(PENDING, after=ROLLED_BACK)
    table.storage.files = {f".hoodie/.heartbeat/{T1}"}

    def refuse(_: str) -> None:
        raise NotYet("not proven dead")

    with pytest.raises(NotYet):
        act(table, claim=refuse)
    assert (table.rolled_back, table.storage.deleted) == ([], [])


def test_policy_must_be_never_on_the_built_config() -> None:
    table = FakeTable(PENDING, after=ROLLED_BACK)
    table.stubborn = True
    with pytest.raises(OutcomeUnknown, match="NEVER"):
        act(table)
    assert table.rolled_back == []


@pytest.mark.parametrize("action", ["compaction", "clustering", "clean"])
def test_service_instants_are_claimed_for_their_execution(action: str) -> None:
    """I12, F3: claimed before anything else, never rolled back; executed beside settling."""
    table, claimed = FakeTable([f"{T1}.{action}.requested"]), []
    with pytest.raises(NotYet, match=T1):
        look_and_roll_back(cast(Any, table), T1, name="t", options={}, claim=claimed.append)
    assert claimed == [T1]
    assert table.rolled_back == []


@pytest.mark.parametrize("action", ["compaction", "clustering"])
@pytest.mark.parametrize("looked_at", [T1, R1])
def test_the_rollback_of_a_service_to_its_plan_goes_with_it(looked_at: str, action: str) -> None:
    """A dead executor's rollback of what it had written: plan and rollback get one new executor."""
    names = [f"{T1}.{action}.requested", f"{T1}.{action}.inflight", f"{R1}.rollback.requested"]
    table, claimed = FakeTable(names, victims={T1: R1}), []
    with pytest.raises(NotYet):
        look_and_roll_back(cast(Any, table), looked_at, name="t", options={}, claim=claimed.append)
    assert set(claimed) == {T1, R1}
    assert table.rolled_back == []


def test_service_instants_are_not_rolled_back() -> None:
    """F3: they are executed again by whoever can, never rolled back exactly."""
    table = FakeTable([f"{T1}.indexing.requested"])
    with pytest.raises(OutcomeUnknown, match="indexing"):
        act(table)
    assert table.rolled_back == []


@pytest.mark.parametrize("looked_at", [T1, R1])
def test_a_restore_is_claimed_with_its_rollbacks_and_executed_again_elsewhere(looked_at: str) -> None:
    """I8: what a pending restore has made pending again was acknowledged, and is nobody's to roll
    back one by one.
    """
    table, claimed = FakeTable([f"{T1}.restore.inflight", f"{R1}.rollback.requested"], victims={T9: R1}), []
    with pytest.raises(NotYet):
        look_and_roll_back(cast(Any, table), looked_at, name="t", options={}, claim=claimed.append)
    assert set(claimed) == {T1, looked_at}
    assert table.rolled_back == []


@pytest.mark.parametrize("looked_at", [T1, R1])
def test_a_clustering_that_was_being_withdrawn_is_withdrawn(looked_at: str) -> None:
    """Its executor died between the removal of the plan and the end of the rollback, which is
    finished by name.
    """
    table = FakeTable([f"{R1}.rollback.inflight"], after=[f"{R1}_{T9}.rollback"], victims={T1: R1})
    assert act(table, looked_at)[0] is (Outcome.ROLLED_BACK if looked_at == T1 else Outcome.REEXECUTED)
    assert table.rolled_back == [T1]


LATE = {f"a/f_0-1-1_{T1}.parquet", f"a/.f_{T1}.log.1_0-1-1", f".hoodie/metadata/files/.files-0000-0_{T1}.log.1_0-1-1"}


def test_sweep_deletes_what_bears_the_instant() -> None:
    table: Any = FakeTable([f"{T9}_{T9}.commit"])
    table.storage.files = {*LATE, f"a/f_0-1-1_{T9}.parquet"}
    assert sweep(table, T1) == 3
    assert table.storage.files == {f"a/f_0-1-1_{T9}.parquet"}


def test_sweep_removes_markers_and_heartbeats() -> None:
    """F9, F11: of the table and of its metadata table."""
    table: Any = FakeTable([f"{T9}_{T9}.commit"])
    beats = {f".hoodie/.heartbeat/{T1}", f".hoodie/metadata/.hoodie/.heartbeat/{T1}"}
    table.storage.files = {*beats, f".hoodie/.heartbeat/{T9}"}
    assert sweep(table, T1) == 0
    assert table.storage.files == {f".hoodie/.heartbeat/{T9}"}
    assert set(table.storage.deleted) == {*beats, f".hoodie/.temp/{T1}", f".hoodie/metadata/.hoodie/.temp/{T1}"}


@pytest.mark.parametrize("number", [1, 2, 250])
def test_a_listing_is_of_many_instants(number: int) -> None:
    """What bears none of them is not in it."""
    table: Any = FakeTable([f"{T9}_{T9}.commit"])
    times = [f"20260101000001{n:03}" for n in range(number)]
    data = {t: [f"a/.f_{t}.log.1_0-1-1", f"a/f_0-1-1_{t}.parquet"] for t in times}
    metadata = {t: [f".hoodie/metadata/files/.files-0000-0_{t}.log.1_0-1-1"] for t in times}
    every = {path for paths in (*data.values(), *metadata.values()) for path in paths}
    table.storage.files = {f"a/f_0-1-1_{T9}.parquet", *every}
    listing = Listing.of(table, [*times, times[0]])
    assert {t: sorted(paths) for t, paths in listing.data.items()} == data
    assert listing.metadata == metadata
    assert sum(sweep(table, t, listing) for t in times) == 3 * number
    assert table.storage.files == {f"a/f_0-1-1_{T9}.parquet"}
    table.storage.broken = "a/"
    assert Listing.of(table, []) == Listing({}, {})


def test_a_listing_ends_when_its_process_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """F562: nothing that is not complete is returned."""
    table: Any = FakeTable([f"{T9}_{T9}.commit"])
    table.partitions = lambda: [f"p{n}" for n in range(1000)]
    table.storage.files = {f"p999/f_0-1-1_{T1}.parquet"}
    assert Listing.of(table, [T1]).data == {T1: [f"p999/f_0-1-1_{T1}.parquet"]}
    asked: list[str] = []

    def glob(pattern: str) -> list[str]:
        asked.append(pattern)
        return []

    monkeypatch.setattr(table.storage, "glob", glob)
    with pytest.raises(Stopped):
        Listing.of(table, [T1], stopping=lambda: len(asked) >= 10)
    assert 10 <= len(asked) < 100


@pytest.mark.parametrize("broken", ["a/", ".hoodie/metadata"])
def test_sweep_deletes_nothing_after_a_failed_listing(broken: str) -> None:
    table: Any = FakeTable([f"{T9}_{T9}.commit"])
    table.storage.files = set(LATE)
    table.storage.broken = broken
    with pytest.raises(OSError, match="listing failed"):
        sweep(table, T1)
    assert table.storage.deleted == []


@pytest.mark.parametrize("names", [PENDING, DONE])
def test_sweep_deletes_nothing_of_an_instant_that_counts(names: list[str]) -> None:
    table: Any = FakeTable(names)
    table.storage.files = set(LATE)
    with pytest.raises(OutcomeUnknown):
        sweep(table, T1)
    assert table.storage.deleted == []
