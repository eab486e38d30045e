"""Incremental reads: in each order every commit is given exactly once, the long writer that
finishes last included (RFC-22, options 1 to 3).
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_runtime.process.errors import PositionLost
from hudi_runtime.read import positions
from hudi_runtime.read.incremental import Merges, ReadSnapshot, _before, needed_files
from hudi_runtime.read.positions import ByCompletion, Fenced, OutOfOrder, Position, PositionError
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import WriteInfo, write_info
from tests.support.world.timelines import done, pending, time, timeline


def requested(instants: tuple[tl.Instant, ...]) -> list[int]:
    return [int(i.requested[8:]) for i in instants]


START = [ByCompletion(), Fenced(), OutOfOrder()]
LONG_RUNS = timeline(pending(1), done(2, 3), done(4, 5))
LONG_DONE = timeline(done(1, 6), done(2, 3), done(4, 5))


@pytest.mark.parametrize(
    ("position", "before", "after"), [(START[0], [2, 4], [1]), (START[1], [], [1, 2, 4]), (START[2], [2, 4], [1])]
)
def test_a_long_writer_that_finishes_last(position: Position, before: list[int], after: list[int]) -> None:
    first = position.ready(LONG_RUNS)
    assert requested(first) == before
    position = position.advance(first, LONG_RUNS)
    second = position.ready(LONG_DONE)
    assert requested(second) == after
    assert position.advance(second, LONG_DONE).ready(LONG_DONE) == ()


@st.composite
def histories(draw: st.DrawFn) -> list[tl.Timeline]:
    """Timelines as they follow each other: writers begin, finish or are rolled back, in any order,
    on one clock.
    """
    running: list[int] = []
    finished: list[tl.Instant] = []
    seen: list[tl.Timeline] = []
    for clock, step in enumerate(
        draw(st.lists(st.sampled_from(["begin", "finish", "roll back", "service"]), max_size=25)), 1
    ):
        if step == "begin":
            running.append(clock)
        elif step == "service":
            finished.append(done(clock, clock, "clean"))
        elif running:
            number = running.pop(draw(st.integers(0, len(running) - 1)))
            if step == "finish":
                finished.append(done(number, clock))
        seen.append(timeline(*finished, *(pending(n) for n in running)))
    return [*seen, timeline(*finished)]


@settings(max_examples=500, deadline=None)
@given(histories(), st.sampled_from(START), st.randoms(use_true_random=False), st.integers(1, 3))
def test_every_commit_is_given_once(history: list[tl.Timeline], position: Position, random: object, limit: int) -> None:
    given: list[str] = []
    for number, now in enumerate(history):
        last = number == len(history) - 1
        while (last or random.random() < 0.7) and (taken := position.ready(now)[:limit]):  # type: ignore[attr-defined]
            given += [i.requested for i in taken]
            position = positions.parse(json.loads(json.dumps(position.advance(taken, now).checkpoint())))
    assert sorted(given) == [i.requested for i in history[-1].instants if i.action == "commit"]
    if isinstance(position, OutOfOrder):
        assert not position.advance((), history[-1]).ahead, "nothing is pending: the checkpoint is one time again"


@given(histories())
def test_fenced_never_goes_back_in_requested_time(history: list[tl.Timeline]) -> None:
    position, last = Fenced(), ""
    for now in history:
        for instant in position.ready(now):
            assert instant.requested > last
            last = instant.requested
        position = position.advance(position.ready(now), now)


def test_the_checkpoint_out_of_order_stays_before_what_is_pending() -> None:
    now = timeline(done(1, 2), pending(3), done(4, 5))
    position = OutOfOrder().advance(OutOfOrder().ready(now), now)
    assert position == OutOfOrder(time(1), frozenset({time(4)}))
    rolled_back = timeline(done(1, 2), done(4, 5), done(6, 7))
    position = position.advance(position.ready(rolled_back), rolled_back)
    assert position == OutOfOrder(time(6))


def test_a_listing_is_not_one_moment() -> None:
    """The first listing shows the commit of 4 and misses that of 1, published a moment before:
    neither order goes past it.
    """
    first = timeline(pending(1), done(4, 6))
    second = timeline(done(1, 5), done(4, 6), done(2, 7), pending(8))
    assert requested(ByCompletion().ready(positions.stable(first, second))) == [1, 4]
    assert requested(Fenced().ready(positions.stable(first, second))) == [1], (
        "2 was completed after the first listing: pending"
    )
    assert positions.stable(timeline(), second).instants == ()


def test_pending_services_fence_nothing() -> None:
    now = timeline(pending(1, "compaction"), pending(2, "clean"), done(3, 4))
    assert requested(Fenced().ready(now)) == [3]


@pytest.mark.parametrize(
    "checkpoint",
    [
        {},
        {"order": "Any"},
        {"order": "CompletionTime", "completion": "soon"},
        {"order": "Fenced"},
        {"order": "OutOfOrder", "low": "0", "ahead": "1"},
    ],
)
def test_a_checkpoint_that_is_none_is_refused(checkpoint: dict[str, object]) -> None:
    with pytest.raises(PositionError):
        positions.parse(checkpoint)


def written(*paths: str, replaced: tuple[str, ...] = (), operation: str = "UPSERT") -> WriteInfo:
    stats = [{"partitionPath": "a", "fileId": path.lstrip(".").split("_")[0], "path": f"a/{path}"} for path in paths]
    metadata = {
        "operationType": operation,
        "partitionToWriteStats": {"a": stats},
        "partitionToReplaceFileIds": {"a": list(replaced)},
    }
    return write_info(metadata)


def test_files_that_a_read_needs() -> None:
    assert needed_files([written("f_1.parquet", "g_1.parquet"), written("f_2.parquet")]) == [
        "a/f_2.parquet",
        "a/g_1.parquet",
    ]
    logs = [written("f_1.parquet"), written(".f_2.log.1"), written(".f_3.log.1")]
    assert needed_files(logs) == ["a/.f_2.log.1", "a/.f_3.log.1", "a/f_1.parquet"]
    compacted = [*logs, written("f_4.parquet", operation="COMPACT")]
    assert needed_files(compacted) == ["a/f_4.parquet"]
    assert needed_files([*compacted, written("h_5.parquet", replaced=("f",), operation="CLUSTER")]) == ["a/h_5.parquet"]


def test_services_carry_no_rows() -> None:
    assert [
        written(operation=name).carries_rows
        for name in ("COMPACT", "CLUSTER", "LOG_COMPACT", "UPSERT", "INSERT_OVERWRITE")
    ] == [False] * 3 + [True] * 2


@pytest.mark.parametrize(
    ("after", "before"),
    [
        ("20260301000000000", "20260228235959999"),
        ("20260101000000001", "20260101000000000"),
        ("20260101000001", "20260101000000999"),
    ],
)
def test_one_millisecond_before(after: str, before: str) -> None:
    assert _before(after) == before


@pytest.mark.parametrize(
    "position", [ByCompletion(time(9)), Fenced(time(7)), OutOfOrder(time(3), frozenset({time(7)}))]
)
def test_a_position_behind_a_commit_that_was_undone_is_lost(position: Position) -> None:
    """A restore takes commits away that a reader has had: it must not go on as if the table still
    held them.
    """
    kept = [tl.Instant(time(3), "commit", tl.State.COMPLETED, time(4))]
    undone = tl.Instant(time(7), "commit", tl.State.COMPLETED, time(9))
    later = tl.Instant(time(20), "commit", tl.State.COMPLETED, time(21))
    assert position.undone([*kept, undone, later]) == ""
    assert position.undone([*kept, later]) in (time(7), time(9))
    assert position.undone(kept) in (time(7), time(9))
    assert position.undone([later]) == "", "older than everything that is known: archived and forgotten long ago"
    assert type(position)().undone(kept) == ""


def look(*instants: tl.Instant) -> ReadSnapshot:
    """A table in this state, without an archive."""
    table: Any = SimpleNamespace(path="s3a://lake/flights", has_archive=lambda: False)
    spark: Any = None
    return ReadSnapshot(spark, table, tl.Timeline(instants), merges=Merges(by_readers=False, columns=False))


@pytest.mark.parametrize("begin", [*START, ByCompletion(time(1)), Fenced(time(1)), OutOfOrder(time(1))])
def test_a_pull_asks_whether_what_was_returned_is_still_there(begin: Position) -> None:
    """F635: also in a program, with a position that it has kept."""
    first, undone = done(2, 3), done(4, 5)
    whole = timeline(first, undone)
    stood = begin.advance(begin.ready(whole), whole)
    for position in (stood, positions.parse(json.loads(json.dumps(stood.checkpoint())))):
        assert look(first, undone).pull(position) is None
        with pytest.raises(PositionLost, match="restored to an earlier state"):
            look(first).pull(position)
        with pytest.raises(PositionLost, match="restored to an earlier state"):
            look(first).pull(position.advance((), whole))


@pytest.mark.parametrize("position", [*START, ByCompletion(time(9)), Fenced(time(9)), OutOfOrder(time(9))])
def test_a_time_that_somebody_has_chosen_is_that_of_no_commit(position: Position) -> None:
    before = look() if position in START else look(done(2, 3))
    assert before.pull(position) is None
    assert before.pull(position.advance((), before.timeline)) is None
