"""The position of a writer in Kafka topics, and the ranges of its next commit.

Pure: no I/O.

A position is the next offset of each partition, with the id that the brokers gave to the topic: a
topic that was deleted and created again has another id, and its old offsets are meaningless. A
position is a value; it changes only by `take` and `reset`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class PositionError(ValueError):
    """A stored position that cannot be parsed."""


@dataclass(frozen=True)
class Topic:
    """Next offset of each partition, by its number.

    `id` is empty when the brokers have no topic ids.
    """

    id: str
    next: tuple[int, ...]


@dataclass(frozen=True)
class Seen:
    """A topic in the brokers.

    For each partition, the first kept offset and the offset after the last readable record.
    """

    id: str
    earliest: tuple[int, ...]
    latest: tuple[int, ...]


@dataclass(frozen=True, order=True)
class Range:
    """Records of one partition from offset `begin` (inclusive) to `end` (exclusive)."""

    topic: str
    partition: int
    begin: int
    end: int


@dataclass(frozen=True)
class Position:
    """All records before these offsets were read."""

    topics: Mapping[str, Topic] = field(default_factory=dict)

    def checkpoint(self) -> dict[str, object]:
        """The form to store."""
        return {
            "topics": {name: {"id": topic.id, "next": list(topic.next)} for name, topic in sorted(self.topics.items())}
        }


def parse(checkpoint: Mapping[str, object]) -> Position:
    """The position of a `checkpoint()`. Raises PositionError."""
    topics = checkpoint.get("topics")
    if not isinstance(topics, dict):
        raise PositionError(f"topics {topics!r}: must be a map")
    found = {}
    for name, topic in topics.items():
        offsets = topic.get("next") if isinstance(topic, dict) else None
        if not isinstance(offsets, list) or not all(isinstance(offset, int) and offset >= 0 for offset in offsets):
            raise PositionError(f"topic {name}: next must be a list of offsets, found {offsets!r}")
        found[str(name)] = Topic(str(topic.get("id") or ""), tuple(offsets))
    return Position(found)


def beginning(seen: Mapping[str, Seen], offsets: Mapping[str, tuple[int, ...]]) -> Position:
    """The position before the first commit: `offsets` of each topic in `seen`."""
    return Position({name: Topic(topic.id, offsets[name]) for name, topic in seen.items()})


def extended(position: Position, seen: Mapping[str, Seen]) -> Position:
    """The position extended by new partitions.

    A partition of a known topic from offset 0, a new topic from its earliest offsets.

    Records of such a partition that are already gone are reported as lost.
    """
    topics = dict(position.topics)
    for name, now in seen.items():
        known = topics.get(name)
        if known is None:
            topics[name] = Topic(now.id, now.earliest)
        elif len(now.earliest) > len(known.next):
            topics[name] = Topic(known.id, known.next + (0,) * (len(now.earliest) - len(known.next)))
    return Position(topics)


def lost(position: Position, seen: Mapping[str, Seen], *, gone: tuple[str, ...] = ()) -> list[str]:
    """One sentence for each loss since the position; empty when all records exist.

    `gone`: topics of the position that no longer exist.
    """
    found = [f"topic {name} no longer exists" for name in gone]
    for name, now in sorted(seen.items()):
        known = position.topics[name]
        if known.id and now.id and known.id != now.id:
            found.append(f"topic {name} was deleted and created again (id {known.id}, now {now.id})")
        elif len(now.earliest) < len(known.next):
            found.append(f"topic {name} has {len(now.earliest)} partitions, it had {len(known.next)}")
        else:
            found += [said for part in range(len(known.next)) if (said := _lost_in(name, part, known.next[part], now))]
    return found


def unsure(position: Position, seen: Mapping[str, Seen], *, gone: tuple[str, ...] = ()) -> bool:
    """Whether a loss is told by what one broker remembers of the cluster: topics, ids, partitions.

    It may remember an older state, or nothing yet. Offsets are told by the leader of a partition.
    """
    known = {name: position.topics[name] for name in seen}
    return bool(gone) or any(
        (topic.id and seen[name].id and topic.id != seen[name].id) or len(seen[name].earliest) < len(topic.next)
        for name, topic in known.items()
    )


def _lost_in(name: str, part: int, wanted: int, now: Seen) -> str:
    if wanted < now.earliest[part]:
        return f"topic {name}, partition {part}: offsets {wanted} to {now.earliest[part] - 1} were removed"
    if wanted > now.latest[part]:
        return f"topic {name}, partition {part}: ends at offset {now.latest[part]}, before the position {wanted}"
    return ""


def reset(position: Position, seen: Mapping[str, Seen], *, gone: tuple[str, ...] = ()) -> Position:
    """The position that continues with the earliest available records where records were lost.

    It is unchanged elsewhere.
    """
    topics = {name: topic for name, topic in position.topics.items() if name not in gone}
    for name, now in seen.items():
        known = topics[name]
        same = (not known.id or not now.id or known.id == now.id) and len(now.earliest) >= len(known.next)
        kept = known.next if same else ()
        offsets = [
            kept[part] if part < len(kept) and not _lost_in(name, part, kept[part], now) else now.earliest[part]
            for part in range(len(now.earliest))
        ]
        topics[name] = Topic(now.id, tuple(offsets))
    return Position(topics)


def waiting(position: Position, seen: Mapping[str, Seen]) -> int:
    """Number of offsets between the position and the end of `seen`.

    The lag in records (or more, where records were compacted).
    """
    return sum(
        end - begin
        for name, now in seen.items()
        for begin, end in zip(position.topics[name].next, now.latest, strict=True)
    )


def take(position: Position, seen: Mapping[str, Seen], limit: int | None) -> tuple[tuple[Range, ...], Position]:
    """The ranges of the next commit, and the position after them.

    The ranges have at most `limit` offsets (None: all); there are none when there are no records.

    The limit is shared fairly: each partition gets the same share, and the unused part of a share
    goes to the others.
    """
    unread = [Range(name, part, begin, end) for name, begin, end, part in _open(position, seen)]
    shares = _shares([r.end - r.begin for r in unread], limit)
    taken = tuple(
        Range(r.topic, r.partition, r.begin, r.begin + share) for r, share in zip(unread, shares, strict=True) if share
    )
    ends = {(r.topic, r.partition): r.end for r in taken}
    topics = {
        name: Topic(topic.id, tuple(ends.get((name, part), offset) for part, offset in enumerate(topic.next)))
        for name, topic in position.topics.items()
    }
    return taken, Position(topics)


def _open(position: Position, seen: Mapping[str, Seen]) -> list[tuple[str, int, int, int]]:
    return [
        (name, begin, end, part)
        for name, now in sorted(seen.items())
        for part, (begin, end) in enumerate(zip(position.topics[name].next, now.latest, strict=True))
        if end > begin
    ]


def _shares(sizes: list[int], limit: int | None) -> list[int]:
    """The share taken from each size, `limit` in total."""
    if limit is None or sum(sizes) <= limit:
        return sizes
    shares, left = [0] * len(sizes), limit
    smallest_first = sorted(range(len(sizes)), key=lambda n: sizes[n])
    for done, index in enumerate(smallest_first):
        shares[index] = min(sizes[index], left // (len(sizes) - done))
        left -= shares[index]
    return shares
