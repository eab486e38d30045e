"""Positions in topics: every offset in exactly one commit, whatever is cut where.

What is gone is told (I9).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_runtime.read import kafka_positions as kp
from hudi_runtime.read import progress as pg
from hudi_runtime.read.kafka_positions import Position, Range, Seen, Topic

OFFSETS = st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple)


def seen(**topics: tuple[tuple[int, ...], tuple[int, ...]]) -> dict[str, Seen]:
    return {name: Seen(f"id-{name}", *offsets) for name, offsets in topics.items()}


@st.composite
def growing(draw: st.DrawFn) -> list[dict[str, Seen]]:
    """A topic at several moments: it grows, gets partitions, and its beginning stays."""
    ends: list[int] = [draw(st.integers(0, 5))]
    looks = []
    for _ in range(draw(st.integers(1, 4))):
        ends = [end + draw(st.integers(0, 5)) for end in ends] + [
            draw(st.integers(0, 5)) for _ in range(draw(st.integers(0, 1)))
        ]
        looks.append({"t": Seen("id", (0,) * len(ends), tuple(ends))})
    return looks


@settings(deadline=None)
@given(growing(), st.integers(1, 7), st.randoms(use_true_random=False))
def test_every_offset_is_given_once(looks: list[dict[str, Seen]], limit: int, chance: object) -> None:
    """Over several runs and attempts that die after any commit: what is stored is all that the next
    one knows.
    """
    given_ones: list[tuple[int, int]] = []
    stored = ""
    for look in looks:
        while True:
            position = (
                kp.extended(kp.parse(json.loads(stored)), look)
                if stored
                else kp.beginning(look, {"t": look["t"].earliest})
            )
            assert kp.lost(position, look) == []
            ranges, after = kp.take(position, look, limit)
            if not ranges:
                break
            sizes = [r.end - r.begin for r in ranges]
            assert min(sizes) > 0
            assert sum(sizes) <= limit
            assert kp.waiting(position, look) - kp.waiting(after, look) == sum(sizes)
            given_ones += [(r.partition, offset) for r in ranges for offset in range(r.begin, r.end)]
            stored = json.dumps(after.checkpoint())
    assert sorted(given_ones) == [
        (part, offset) for part, end in enumerate(looks[-1]["t"].latest) for offset in range(end)
    ]


def test_the_limit_is_shared_fairly() -> None:
    look = seen(a=((0, 0), (2, 100)), b=((0,), (100,)))
    ranges, _ = kp.take(kp.beginning(look, {"a": (0, 0), "b": (0,)}), look, 22)
    assert ranges == (Range("a", 0, 0, 2), Range("a", 1, 0, 10), Range("b", 0, 0, 10))
    everything, after = kp.take(kp.beginning(look, {"a": (0, 0), "b": (0,)}), look, None)
    assert [r.end for r in everything] == [2, 100, 100]
    assert kp.take(after, look, None) == ((), after)


def test_a_new_partition_begins_at_its_first_record_and_a_new_topic_at_its_earliest() -> None:
    position = Position({"a": Topic("id-a", (7,))})
    look = seen(a=((0, 0), (9, 4)), b=((3,), (5,)))
    ranges, after = kp.take(kp.extended(position, look), look, None)
    assert ranges == (Range("a", 0, 7, 9), Range("a", 1, 0, 4), Range("b", 0, 3, 5))
    assert after.topics == {"a": Topic("id-a", (9, 4)), "b": Topic("id-b", (5,))}


def test_a_topic_that_is_read_no_more_keeps_its_place() -> None:
    position = Position({"a": Topic("id-a", (7,)), "b": Topic("id-b", (1,))})
    look = seen(a=((0,), (9,)))
    assert kp.take(kp.extended(position, look), look, None)[1].topics["b"] == Topic("id-b", (1,))


LOST: list[tuple[Topic, Seen, str, tuple[int, ...]]] = [
    (Topic("x", (5,)), Seen("x", (6,), (9,)), "topic t, partition 0: offsets 5 to 5 were removed", (6,)),
    (Topic("x", (5,)), Seen("x", (0,), (4,)), "topic t, partition 0: ends at offset 4, before the position 5", (0,)),
    (Topic("x", (5,)), Seen("y", (0,), (9,)), "topic t was deleted and created again (id x, now y)", (0,)),
    (Topic("", (5, 5)), Seen("", (0,), (9,)), "topic t has 1 partitions, it had 2", (0,)),
    (Topic("x", (5,)), Seen("x", (0, 2), (9, 9)), "topic t, partition 1: offsets 0 to 1 were removed", (5, 2)),
]


@pytest.mark.parametrize(("known", "now", "told", "instead"), LOST)
def test_what_is_gone_is_told(known: Topic, now: Seen, told: str, instead: tuple[int, ...]) -> None:
    position = kp.extended(Position({"t": known}), {"t": now})
    assert kp.lost(position, {"t": now}) == [told]
    after = kp.reset(position, {"t": now})
    assert after.topics["t"] == Topic(now.id, instead)
    assert kp.lost(after, {"t": now}) == []


@pytest.mark.parametrize(
    ("known", "now"),
    [
        (Topic("x", (5,)), Seen("x", (5,), (5,))),
        (Topic("", (5,)), Seen("y", (0,), (5,))),
        (Topic("x", (0,)), Seen("", (0,), (1,))),
    ],
)
def test_what_is_there_is_not_lost(known: Topic, now: Seen) -> None:
    """At the very end, and where the brokers tell no ids."""
    assert kp.lost(Position({"t": known}), {"t": now}) == []


def test_a_topic_that_is_gone() -> None:
    position = Position({"a": Topic("x", (1,)), "b": Topic("y", (1,))})
    look: Mapping[str, Seen] = {"b": Seen("y", (0,), (1,))}
    assert kp.lost(position, look, gone=("a",)) == ["topic a no longer exists"]
    assert kp.reset(position, look, gone=("a",)) == Position({"b": Topic("y", (1,))})


@pytest.mark.parametrize(
    "checkpoint",
    [{}, {"topics": []}, {"topics": {"t": 1}}, {"topics": {"t": {"next": ["1"]}}}, {"topics": {"t": {"next": [-1]}}}],
)
def test_a_position_that_means_nothing(checkpoint: dict[str, object]) -> None:
    with pytest.raises(kp.PositionError):
        kp.parse(checkpoint)


@settings(deadline=None)
@given(OFFSETS, OFFSETS)
def test_words_differ_where_positions_do(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    words = [pg.kafka_checkpoint(1, Position({"t": Topic("id", offsets)}).checkpoint()) for offsets in (first, second)]
    assert (words[0]["digest"] == words[1]["digest"]) == (first == second)
    done = pg.of_checkpoint(words[0])
    assert done.kafka is not None
    assert kp.parse(done.kafka) == Position({"t": Topic("id", first)})
