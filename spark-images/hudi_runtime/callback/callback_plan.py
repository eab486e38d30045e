"""What a receiver of a table's commits is told next (docs/use/callbacks.md). Pure: no I/O.

Everything is in order of completion time, which in one table never goes back (I10). The position is the completion time up to which the receiver has
answered 2xx; it is durable, and whatever lies behind it is told again after any restart.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hudi_contract.backoff import exponential
from hudi_runtime.table import timeline as tl

NOTHING_YET = "0"
"""Position before the first commit of a table."""
FIRST_RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 300.0
CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
_TYPES = "io.hudioperator.table"


class Kind(enum.Enum):
    """Kinds of events; the value is the end of the CloudEvents type."""

    STARTED = "started.v1"
    COMMITTED = "committed.v1"
    RESTORED = "restored.v1"
    ARCHIVED = "archived.v1"


@dataclass(frozen=True)
class Position:
    """How far the receiver has answered for, as `done/callback` keeps it."""

    completion: str = NOTHING_YET
    """Everything that completed until then is delivered."""
    instant: str = ""
    """Requested time of the last delivered one; empty before it."""
    delivered: int = 0
    """Events answered for so far."""
    archived: str = ""
    """Largest requested time among commits that were archived undelivered, and told as such; empty when there are none."""
    lost: int = 0
    """Number of those commits."""
    at_ms: int = 0
    """When the last event was answered for, Unix milliseconds; 0: none was."""

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Position:
        """Read the record."""
        return cls(
            completion=str(value.get("completionTime") or NOTHING_YET),
            instant=str(value.get("instant") or ""),
            delivered=int(value.get("delivered") or 0),
            archived=str(value.get("archivedTo") or ""),
            lost=int(value.get("lost") or 0),
            at_ms=int(value.get("atMs") or 0),
        )

    def value(self) -> dict[str, Any]:
        """The record."""
        return {
            "completionTime": self.completion,
            "instant": self.instant,
            "delivered": self.delivered,
            "archivedTo": self.archived,
            "lost": self.lost,
            "atMs": self.at_ms,
        }


@dataclass(frozen=True)
class Restore:
    """A completed restore, from `done/restore-<nonce>`."""

    instant: str
    completion: str
    boundary: str
    undone: int
    undone_instants: tuple[str, ...]
    savepoint: str


@dataclass(frozen=True)
class Event:
    """One thing to tell: a commit, a restore, commits that were archived before they could be told, or where a callback begins."""

    kind: Kind
    instant: str
    """Requested time; empty of kind STARTED."""
    completion: str
    action: str = ""
    """Of kind COMMITTED."""
    restore: Restore | None = None
    """Of kind RESTORED."""
    archived: tuple[tl.Instant, ...] = ()
    """Of kind ARCHIVED, by completion time."""


@dataclass(frozen=True)
class Source:
    """The table that events speak of."""

    namespace: str
    name: str
    table_id: str
    path: str


def start(timeline: tl.Timeline) -> Position:
    """Where a new callback begins: behind everything that is completed."""
    last = timeline.last_completed
    return Position(last.completion if last is not None else NOTHING_YET)


def started(position: Position) -> Event | None:
    """What tells the receiver where it begins, before anything else: nothing is left out unsaid, also when etcd has lost the position."""
    return Event(Kind.STARTED, "", position.completion) if position.delivered == 0 else None


def bound(clock: str, before: tl.Timeline | None) -> str:
    """Completion time up to which the next listing has everything; what completed later waits for the listing after that.

    A listing of a store is not one moment: it may show a commit and not the one that completed just before. Whatever completed up to `clock`, read
    before the listing began, was published by then, or the lock is still held for it and nothing later can be; and so was whatever is older than
    something that the listing `before` has shown.
    """
    last = before.last_completed if before is not None else None
    return max(clock, last.completion if last is not None else "")


def undelivered(timeline: tl.Timeline, restores: Sequence[Restore], position: Position, *, until: str, table_services: bool) -> tuple[Event, ...]:
    """What is to be told, in order: completed writes and restores behind the position. Never a pending instant, which may be rolled back.

    `restores` must have been read after the listing: a commit that completed after a restore was begun when that was on record.
    """
    found = [
        Event(Kind.COMMITTED, instant.requested, instant.completion, instant.action)
        for instant in timeline.instants
        if not instant.pending and instant.action in tl.WRITE_ACTIONS and (table_services or not instant.of_a_service)
    ]
    found += [Event(Kind.RESTORED, restore.instant, restore.completion, restore=restore) for restore in restores]
    return tuple(sorted((e for e in found if position.completion < e.completion <= until), key=lambda e: e.completion))


def may_be_archived(before: tl.Timeline | None, now: tl.Timeline, position: Position) -> bool:
    """Whether an undelivered commit can have been archived since the listing `before` (None: nothing is known), so that the archive must be read.

    Instants are archived in order of their requested times, none past a pending one.
    """
    if before is None:
        return True
    left = {instant.requested for instant in now.instants}
    gone = [instant for instant in before.instants if instant.requested not in left]
    writes = [instant.requested for instant in before.instants if instant.action in tl.WRITE_ACTIONS]
    unseen = not writes or writes[-1] not in left
    return unseen or any(instant.pending or instant.completion > position.completion for instant in gone)


def archived(instants: Iterable[tl.Instant], position: Position) -> Event | None:
    """What tells the gap: commits that were archived undelivered and are not told yet; None when there are none."""
    lost = sorted((i for i in instants if i.completion > position.completion and i.requested > position.archived), key=lambda i: i.completion)
    if not lost:
        return None
    return Event(Kind.ARCHIVED, max(i.requested for i in lost), lost[-1].completion, archived=tuple(lost))


def after(position: Position, event: Event, *, at_ms: int) -> Position:
    """The position once the receiver has answered 2xx for the event."""
    told = position.delivered + 1
    if event.kind is Kind.STARTED:
        return Position(position.completion, "", told, position.archived, position.lost, at_ms)
    if event.kind is Kind.ARCHIVED:
        # The completion time stays: what is not archived yet may lie between the lost ones.
        return Position(position.completion, position.instant, told, event.instant, position.lost + len(event.archived), at_ms)
    return Position(event.completion, event.instant, told, position.archived, position.lost, at_ms)


def retry_seconds(failures: int, chance: float, *, asked: float = 0.0) -> float:
    """Time until the next try after that many failures in a row: doubled each time, bounded, and shortened by up to a half by `chance` (0 to 1).

    `asked`: what the receiver has asked for (Retry-After), kept up to the bound.
    """
    longest = exponential(failures, first=FIRST_RETRY_SECONDS, longest=MAX_RETRY_SECONDS)
    return max(longest * (1 - chance / 2), min(asked, MAX_RETRY_SECONDS))


# -- payload ---------------------------------------------------------------------------------------------------------------------------


def rfc3339(hudi_time: str) -> str:
    """A Hudi time (`yyyyMMddHHmmssSSS`, UTC) as RFC 3339; empty when it is none."""
    try:
        parsed = datetime.strptime(f"{hudi_time[:14]}{hudi_time[14:] or '000'}000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    except ValueError:
        return ""
    return parsed.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def body(event: Event, source: Source, metadata: Mapping[str, Any]) -> bytes:
    """The event as CloudEvents 1.0 in structured mode; `metadata` of a commit as Hudi prints it in JSON, empty for the other kinds.

    Equal events give an equal id whoever sends them, so that a receiver can drop repeats.
    """
    data: dict[str, Any] = {"namespace": source.namespace, "table": source.name, "tableId": source.table_id, "path": source.path}
    if event.kind is Kind.COMMITTED:
        data |= _commit(event, metadata)
    elif event.restore is not None:
        data |= _restore(event.restore)
    elif event.kind is Kind.STARTED:
        data["afterCompletionTime"] = event.completion
    else:
        data |= _archived(event)
    return json.dumps(
        {
            "specversion": "1.0",
            "id": ".".join(filter(None, (source.table_id, event.kind.value.partition(".")[0], event.instant, event.completion))),
            "source": f"/apis/hudioperator.io/v1alpha1/namespaces/{source.namespace}/huditables/{source.name}",
            "type": f"{_TYPES}.{event.kind.value}",
            **({"subject": event.instant} if event.instant else {}),
            **({"time": rfc3339(event.completion)} if rfc3339(event.completion) else {}),
            "sequence": event.completion,
            "datacontenttype": "application/json",
            "data": data,
        },
        separators=(",", ":"),
    ).encode()


def _commit(event: Event, metadata: Mapping[str, Any]) -> dict[str, Any]:
    extra = metadata.get("extraMetadata") or {}
    stats = [stat for of_partition in (metadata.get("partitionToWriteStats") or {}).values() for stat in of_partition]

    def total(name: str) -> int:
        return sum(int(stat.get(name) or 0) for stat in stats)

    names = {key: str(extra[f"hudioperator.{key}"]) for key in ("writer", "attempt") if extra.get(f"hudioperator.{key}")}
    return {
        "instant": event.instant,
        "completionTime": event.completion,
        "action": event.action,
        "operation": str(metadata.get("operationType") or "UNKNOWN"),
        **names,
        "records": {"inserted": total("numInserts"), "updated": total("numUpdateWrites"), "deleted": total("numDeletes")},
    }


def _restore(restore: Restore) -> dict[str, Any]:
    return {
        "instant": restore.instant,
        "completionTime": restore.completion,
        "boundaryCompletionTime": restore.boundary,
        "savepoint": restore.savepoint,
        "undone": restore.undone,
        "undoneInstants": list(restore.undone_instants),
    }


def _archived(event: Event) -> dict[str, Any]:
    return {
        "commits": len(event.archived),
        "firstCompletionTime": event.archived[0].completion,
        "lastCompletionTime": event.archived[-1].completion,
    }


def restores(values: Iterable[Mapping[str, Any]]) -> tuple[Restore, ...]:
    """The completed ones among records of restores; one that had nothing to undo has no instant."""
    done = (value for value in values if value.get("result") == "Completed" and value.get("instant") and value.get("completionTime"))
    return tuple(
        Restore(
            instant=str(value["instant"]),
            completion=str(value["completionTime"]),
            boundary=str(value.get("boundary") or ""),
            undone=int(value.get("undone") or 0),
            undone_instants=tuple(str(instant) for instant in value.get("undoneInstants") or ()),
            savepoint=str(value.get("savepoint") or ""),
        )
        for value in done
    )
