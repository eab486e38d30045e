"""The timeline parser: every file name that Hudi 1.2.0 was seen to write, and refusal of what it
does not understand.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_runtime.table import timeline as tl
from hudi_runtime.table.timeline import Instant, State

T1, T2, T3, T4 = "20260101000000001", "20260101000000002", "20260101000000003", "20260101000000004"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{T1}.commit.requested", Instant(T1, "commit", State.REQUESTED)),
        (f"{T1}.inflight", Instant(T1, "commit", State.INFLIGHT)),
        (f"{T1}_{T2}.commit", Instant(T1, "commit", State.COMPLETED, T2)),
        (f"{T1}.deltacommit.inflight", Instant(T1, "deltacommit", State.INFLIGHT)),
        (f"{T1}.rollback.requested", Instant(T1, "rollback", State.REQUESTED)),
        (f"{T1}_{T2}.rollback", Instant(T1, "rollback", State.COMPLETED, T2)),
        ("00000000000000_20260101000000002.deltacommit", Instant("00000000000000", "deltacommit", State.COMPLETED, T2)),
        (f"{T1}.requested", None),
        (f"{T1}.commit.requested.9f3a", None),
        ("hoodie.properties", None),
    ],
)
def test_names(name: str, expected: Instant | None) -> None:
    found = tl.parse_name(name)
    assert found == expected
    if found and expected:
        assert (found.state, found.completion) == (expected.state, expected.completion)


def test_pending_is_what_has_no_completed_file() -> None:
    timeline = tl.parse(
        [
            f"{T1}.commit.requested", f"{T1}.inflight", f"{T1}_{T4}.commit",
            f"{T2}.deltacommit.requested", f"{T2}.deltacommit.inflight",
            f"{T3}_{T3}.deltacommit", ".hidden.crc", "history",
        ]
    )  # fmt: skip
    assert [instant.requested for instant in timeline.pending] == [T2]
    assert timeline.pending[0].state is State.INFLIGHT
    assert [instant.requested for instant in timeline.completed] == [T3, T1], (
        "completed instants are ordered by completion time"
    )
    assert timeline.last_completed == timeline.get(T1)
    assert timeline.maximum == T4
    assert timeline.lowest_pending == T2
    assert timeline.earliest == T1
    assert timeline.unknown == ()


@pytest.mark.parametrize("merge_on_read", [False, True])
def test_the_beginning_is_no_instant(merge_on_read: bool) -> None:
    """Nobody sees a commit in it: no reader, no trigger, no status (F630)."""
    name = tl.beginning(merge_on_read=merge_on_read)
    timeline = tl.parse([name, f"{T1}.commit.requested"])
    assert (timeline.completed, timeline.unknown, timeline.begun) == ((), (), True)
    assert timeline.newest == "0"
    assert timeline.maximum == timeline.earliest == timeline.lowest_pending == T1
    assert not tl.parse([f"{T1}_{T2}.commit"]).begun
    with pytest.raises(tl.TimelineError, match="is empty"):
        tl.parse_sizes({name: 0})


@pytest.mark.parametrize("action", ["restore", "indexing"])
def test_what_is_never_archived_is_not_the_oldest(action: str) -> None:
    """F524: commits that came later have left the timeline."""
    timeline = tl.parse([f"{T1}_{T2}.{action}", f"{T3}_{T4}.deltacommit"])
    assert timeline.earliest == T3
    assert tl.parse([f"{T1}_{T2}.{action}"]).earliest == ""


def test_renamed_on_completion() -> None:
    timeline = tl.parse([f"{T1}.compaction.requested", f"{T1}.compaction.inflight", f"{T1}_{T2}.commit"])
    assert not timeline.pending


def test_empty() -> None:
    timeline = tl.parse([])
    assert (timeline.maximum, timeline.earliest, timeline.lowest_pending, timeline.last_completed) == ("", "", "", None)


@pytest.mark.parametrize(
    "names",
    [
        [f"{T1}_{T2}.commit", f"{T1}_{T3}.commit"],
        [f"{T1}.commit.requested", f"{T1}.deltacommit.requested"],
        [f"{T1}.rollback.requested", f"{T1}_{T2}.commit"],
    ],
)
def test_ambiguity_stops(names: list[str]) -> None:
    with pytest.raises(tl.TimelineError):
        tl.parse(names)


def test_a_completed_file_without_content_stops() -> None:
    """F34: it is neither completed nor absent; files of the earlier states may be empty."""
    begun = {f"{T1}.commit.requested": 0, f"{T1}.inflight": 0, "history": 0}
    assert tl.parse_sizes({**begun, f"{T1}_{T2}.commit": 7}).completed == (Instant(T1, "commit", State.COMPLETED, T2),)
    assert tl.parse_sizes(begun).pending == (Instant(T1, "commit", State.INFLIGHT),)
    with pytest.raises(tl.TimelineError, match=f"{T1}_{T2}.commit is empty"):
        tl.parse_sizes({**begun, f"{T1}_{T2}.commit": 0})


def test_unknown_names_are_kept_for_people() -> None:
    assert tl.parse([f"{T1}.frobnicate.requested"]).unknown == (f"{T1}.frobnicate.requested",)


@settings(deadline=None)
@given(st.lists(st.sampled_from([T1, T2, T3, T4]), unique=True), st.randoms())
def test_order_of_the_listing_does_not_matter(instants: list[str], random: object) -> None:
    names = [name for t in instants for name in (f"{t}.commit.requested", f"{t}.inflight", f"{t}_{T4}.commit")]
    shuffled = list(names)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert tl.parse(names) == tl.parse(shuffled)


def test_a_savepoint_stands_beside_the_commit_whose_time_it_bears() -> None:
    timeline = tl.parse(
        [
            f"{T1}.commit.requested",
            f"{T1}.inflight",
            f"{T1}_{T2}.commit",
            f"{T1}.savepoint.inflight",
            f"{T1}_{T4}.savepoint",
        ]
    )
    assert timeline.instants == (Instant(T1, "commit", State.COMPLETED, T2),)
    assert timeline.pending == ()
    assert [(s.requested, s.completion) for s in timeline.savepoints] == [(T1, T4)]
    assert timeline.maximum == T4, "the clock knows it"
    begun = tl.parse([f"{T1}_{T2}.commit", f"{T1}.savepoint.inflight"])
    assert (begun.pending, begun.savepoints[0].pending) == ((), True)
