"""Selects the next event for a receiver of a table's commits (docs/use/callbacks.md).

Pure: no I/O.

Events are in order of completion time, which never goes back in one table (I10). The position is
the completion time up to which the receiver has answered 2xx. It is durable: after any restart,
events after the position are delivered again.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hudi_contract import metadata, naming
from hudi_contract.backoff import exponential
from hudi_contract.requests import NOTHING_YET, CallbackPosition, RestoreDone
from hudi_contract.words import Result
from hudi_runtime.table import timeline as tl

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
class Event:
    """One event of a callback.

    It is a commit, a restore, commits that were archived before their delivery, or the start
    of a callback.
    """

    kind: Kind
    instant: str
    """Requested time; empty for kind STARTED."""
    completion: str
    action: str = ""
    """For kind COMMITTED."""
    restore: RestoreDone | None = None
    """For kind RESTORED."""
    archived: tuple[tl.Instant, ...] = ()
    """For kind ARCHIVED, by completion time."""


@dataclass(frozen=True)
class Source:
    """The table of the events."""

    namespace: str
    name: str
    table_id: str
    path: str


def start(timeline: tl.Timeline) -> CallbackPosition:
    """The start of a new callback: after all completed instants."""
    last = timeline.last_completed
    return CallbackPosition(completion_time=last.completion if last is not None else NOTHING_YET)


def started(position: CallbackPosition) -> Event | None:
    """The first event, which reports the start of the callback.

    So a receiver notices a gap, also when etcd has lost the position.
    """
    return Event(Kind.STARTED, "", position.completion_time) if position.delivered == 0 else None


def bound(clock: str, before: tl.Timeline | None) -> str:
    """Completion time up to which the next listing is complete.

    Later commits wait for the listing after that.

    A store does not list atomically: a listing may show a commit and miss the one that completed
    just before. Each commit with a completion time up to `clock`, read before the listing began,
    was published by then, or the lock is still held for it and no later one can be published. The
    same holds for each commit that is older than one in the listing `before`.
    """
    last = before.last_completed if before is not None else None
    return max(clock, last.completion if last is not None else "")


def undelivered(
    timeline: tl.Timeline,
    restores: Sequence[RestoreDone],
    position: CallbackPosition,
    *,
    until: str,
    table_services: bool,
) -> tuple[Event, ...]:
    """The undelivered events, in order: completed writes and restores after the position.

    Never a pending instant, which may be rolled back.

    `restores` must have been read after the listing: a commit that completed after a restore was
    begun when the restore was on record.
    """
    found = [
        Event(Kind.COMMITTED, instant.requested, instant.completion, instant.action)
        for instant in timeline.instants
        if not instant.pending and instant.action in tl.WRITE_ACTIONS and (table_services or not instant.of_a_service)
    ]
    found += [Event(Kind.RESTORED, restore.instant, restore.completion_time, restore=restore) for restore in restores]
    return tuple(
        sorted((e for e in found if position.completion_time < e.completion <= until), key=lambda e: e.completion)
    )


def may_be_archived(before: tl.Timeline | None, now: tl.Timeline, position: CallbackPosition) -> bool:
    """Whether an undelivered commit may have been archived since the listing `before`.

    Then the archive must be read. `before` None: unknown.

    Instants are archived in order of their requested times, and never past a pending one.
    """
    if before is None:
        return True
    left = {instant.requested for instant in now.instants}
    gone = [instant for instant in before.instants if instant.requested not in left]
    writes = [instant.requested for instant in before.instants if instant.action in tl.WRITE_ACTIONS]
    unseen = not writes or writes[-1] not in left
    return unseen or any(instant.pending or instant.completion > position.completion_time for instant in gone)


def archived(instants: Iterable[tl.Instant], position: CallbackPosition) -> Event | None:
    """The event for a gap: commits that were archived undelivered and are not yet reported.

    None when there are none.
    """
    lost = sorted(
        (i for i in instants if i.completion > position.completion_time and i.requested > position.archived_to),
        key=lambda i: i.completion,
    )
    if not lost:
        return None
    return Event(Kind.ARCHIVED, max(i.requested for i in lost), lost[-1].completion, archived=tuple(lost))


def after(position: CallbackPosition, event: Event, *, at_ms: int) -> CallbackPosition:
    """The position once the receiver has answered 2xx for the event."""
    told = position.delivered + 1
    if event.kind is Kind.STARTED:
        return position.but(instant="", delivered=told, at_ms=at_ms)
    if event.kind is Kind.ARCHIVED:
        # The completion time stays: commits that are not archived may lie between the lost ones.
        return position.but(
            delivered=told, archived_to=event.instant, lost=position.lost + len(event.archived), at_ms=at_ms
        )
    return position.but(completion_time=event.completion, instant=event.instant, delivered=told, at_ms=at_ms)


def retry_seconds(failures: int, chance: float, *, asked: float = 0.0) -> float:
    """Time until the next try after that many consecutive failures.

    Doubled each time, bounded, and reduced by up to half by `chance` (0 to 1).

    `asked`: the receiver's Retry-After in seconds, respected up to the bound.
    """
    longest = exponential(failures, first=FIRST_RETRY_SECONDS, longest=MAX_RETRY_SECONDS)
    return max(longest * (1 - chance / 2), min(asked, MAX_RETRY_SECONDS))


# -- payload ---------------------------------------------------------------------------------------


def rfc3339(hudi_time: str) -> str:
    """A Hudi time (`yyyyMMddHHmmssSSS`, UTC) as RFC 3339.

    Empty when the text is not a Hudi time.
    """
    try:
        parsed = datetime.strptime(f"{hudi_time[:14]}{hudi_time[14:] or '000'}000", "%Y%m%d%H%M%S%f").replace(
            tzinfo=UTC
        )
    except ValueError:
        return ""
    return parsed.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def body(event: Event, source: Source, said: Mapping[str, Any]) -> bytes:
    """The event as CloudEvents 1.0 in structured mode.

    `said`: the metadata of a commit as Hudi prints it in JSON, empty for the other kinds.

    Equal events have equal ids, whichever agent sends them, so a receiver can drop repeats.
    """
    data: dict[str, Any] = {
        "namespace": source.namespace,
        "table": source.name,
        "tableId": source.table_id,
        "path": source.path,
    }
    if event.kind is Kind.COMMITTED:
        data |= _commit(event, said)
    elif event.restore is not None:
        data |= _restore(event.restore)
    elif event.kind is Kind.STARTED:
        data["afterCompletionTime"] = event.completion
    else:
        data |= _archived(event)
    return json.dumps(
        {
            "specversion": "1.0",
            "id": ".".join(
                filter(None, (source.table_id, event.kind.value.partition(".")[0], event.instant, event.completion))
            ),
            "source": f"/apis/{naming.API_VERSION}/namespaces/{source.namespace}/huditables/{source.name}",
            "type": f"{_TYPES}.{event.kind.value}",
            **({"subject": event.instant} if event.instant else {}),
            **({"time": rfc3339(event.completion)} if rfc3339(event.completion) else {}),
            "sequence": event.completion,
            "datacontenttype": "application/json",
            "data": data,
        },
        separators=(",", ":"),
    ).encode()


def _commit(event: Event, said: Mapping[str, Any]) -> dict[str, Any]:
    extra = said.get("extraMetadata") or {}
    stats = [stat for of_partition in (said.get("partitionToWriteStats") or {}).values() for stat in of_partition]

    def total(name: str) -> int:
        return sum(int(stat.get(name) or 0) for stat in stats)

    names = {
        key: str(extra[name])
        for key, name in (("writer", metadata.WRITER), ("attempt", metadata.ATTEMPT))
        if extra.get(name)
    }
    return {
        "instant": event.instant,
        "completionTime": event.completion,
        "action": event.action,
        "operation": str(said.get("operationType") or "UNKNOWN"),
        **names,
        "records": {
            "inserted": total("numInserts"),
            "updated": total("numUpdateWrites"),
            "deleted": total("numDeletes"),
        },
    }


def _restore(restore: RestoreDone) -> dict[str, Any]:
    return {
        "instant": restore.instant,
        "completionTime": restore.completion_time,
        "boundaryCompletionTime": restore.boundary,
        "savepoint": restore.savepoint,
        "undone": restore.undone or 0,
        "undoneInstants": list(restore.undone_instants),
    }


def _archived(event: Event) -> dict[str, Any]:
    return {
        "commits": len(event.archived),
        "firstCompletionTime": event.archived[0].completion,
        "lastCompletionTime": event.archived[-1].completion,
    }


def restores(done: Iterable[RestoreDone]) -> tuple[RestoreDone, ...]:
    """The completed restores with an instant; a restore that had nothing to undo has none."""
    return tuple(one for one in done if one.result is Result.COMPLETED and one.instant and one.completion_time)
