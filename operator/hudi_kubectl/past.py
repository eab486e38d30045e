"""History of tables and writers, from their statuses and Events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from hudi_kubectl.objects import JsonDict, Table, Writer, when

Told = tuple[datetime, str, str]
"""Time, author, and description of an event."""


def told(thing: Table | Writer, writers: Sequence[Writer], events: Iterable[JsonDict]) -> list[Told]:
    """Attempts, commits, savepoints, holds, restores, services and Events, the oldest first.

    ``writers``: those of the table, or the writer itself.
    """
    found = [*_of_attempts(writers), *(_of_table(thing) if isinstance(thing, Table) else ())]
    found += _of_events(events, {thing.name, *(w.name for w in writers)})
    known = ((when(at), who, what) for at, who, what in found)
    return sorted(((at, who, what) for at, who, what in known if at is not None), key=lambda one: one[0])


def _of_events(events: Iterable[JsonDict], names: set[str]) -> Iterator[tuple[Any, str, str]]:
    for one in events:
        about = one.get("involvedObject") or {}
        if about.get("kind") in ("HudiTable", "HudiWriter") and about.get("name") in names:
            at = one.get("lastTimestamp") or one.get("eventTime")
            yield at, about["name"], f"{one.get('reason')}: {one.get('message', '')}"


def _of_attempts(writers: Sequence[Writer]) -> Iterator[tuple[Any, str, str]]:
    for writer in writers:
        for one in writer.attempts():
            number = one.get("number")
            yield one.get("startTime"), writer.name, f"attempt {number} began in pod {one.get('pod')}"
            said = f": {one['message']}" if one.get("message") else ""
            records = one.get("records") or 0
            yield (
                one.get("endTime"),
                writer.name,
                f"attempt {number} ended: {one.get('class')}, {records} records{said}",
            )
        for one in writer.status.get("recentConflicts") or []:
            yield one.get("time"), writer.name, f"commit {one.get('instant')} was refused because of {one.get('with')}"


def _of_table(table: Table) -> Iterator[tuple[Any, str, str]]:
    foreign = table.foreign()
    for one in table.commits():
        other = "a foreign writer" if one.get("instant") in foreign else "services"
        who = str(one.get("writer") or other).rpartition("/")[2]
        yield (
            one.get("completionTime"),
            who,
            f"{one.get('action')} {one.get('instant')}: {one.get('records', '?')} records",
        )
    for one in table.status.get("savepoints") or []:
        yield (
            one.get("time"),
            table.name,
            f"savepoint {one.get('name')}: {one.get('outcome')} {one.get('message') or ''}",
        )
    for one in table.status.get("holds") or []:
        said = f"until {one.get('until')} {one.get('message') or ''}"
        yield one.get("since"), table.name, f"hold {one.get('name')}: {one.get('outcome')}, {said}"
    restore = table.status.get("restore") or {}
    if restore:
        yield restore.get("beginTime"), table.name, f"restore to {restore.get('savepoint')} began"
        said = restore.get("message") or f"{restore.get('undone', 0)} instants are undone"
        yield (
            restore.get("endTime"),
            table.name,
            f"restore to {restore.get('savepoint')}: {restore.get('outcome')}, {said}",
        )
    for service, one in (table.status.get("services") or {}).items():
        yield one.get("lastTime"), table.name, f"{service}: {one.get('outcome')} {one.get('message') or ''}"
