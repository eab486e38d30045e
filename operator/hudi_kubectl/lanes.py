"""The whole picture of a table, for where there is room for it.

To the attempts and commits of `pictures` it adds who holds the lock, who waits for admission, what
starts, is refused or is not completed, the settling of dead writers, services and savepoints.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hudi_kubectl import pictures
from hudi_kubectl.objects import FAILED, RUNNING, JsonDict, Table, Writer, when
from hudi_kubectl.pictures import COMMIT, FOREIGN, SERVICES, WRITER, Bar

LOCK, SETTLING, SAVEPOINTS = "lock", "settling", "savepoints"
ORDER = (LOCK, WRITER, FOREIGN, SERVICES, SETTLING, SAVEPOINTS)
"""Kinds of lanes, in the order in which they are drawn."""
HELD, QUEUED, STARTS, PENDING, REFUSED = "held", "queued", "starts", "pending", "refused"
ENDED = "ended"
FENCED, DRAINED, ROLLED_BACK = "fenced", "drained", "rolled back"
SERVICE, SAVEPOINT, RESTORE = "service", "savepoint", "restore"
"""Kinds of bars besides those of `pictures`."""
PHASES = {"Fenced": FENCED, "Terminating": FENCED, "Draining": DRAINED}
"""Phases of settling in which nothing is rolled back yet."""
IS_FENCED, IS_UNLOCKED, ROLLS_BACK = "Fenced", "Unlocked", "RollingBack"
"""Reasons of Events of a table about a dead process."""
BAD = (FAILED, "Interrupted")
KEPT = timedelta(hours=24)
"""Time for which :func:`remembered` keeps bars that are no longer in any status."""
KEPT_BARS = 500
"""Number of bars of a lane that it keeps."""


@dataclass(frozen=True)
class Lane:
    """A line of the picture. ``of``: its kind; ``name``: a writer, a pod, or the kind again."""

    of: str
    name: str
    bars: tuple[Bar, ...]

    def as_json(self) -> JsonDict:
        """The same for programs, with times in UTC to the millisecond."""
        return {"of": self.of, "name": self.name, "bars": [_as_json(bar) for bar in self.bars]}


def _as_json(bar: Bar) -> JsonDict:
    return {
        "kind": bar.kind,
        "begin": _time(bar.begin),
        "end": _time(bar.end),
        "text": bar.text,
        "failed": bar.failed,
        "open": bar.is_open,
    }


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lanes(table: Table, writers: Sequence[Writer], at: datetime, events: Iterable[JsonDict] = ()) -> list[Lane]:
    """Lanes made of the current statuses, and of the table's Events about dead writers."""
    drawn = pictures.rows(table, writers, at)
    pending = list((table.status.get("timeline") or {}).get("pending") or [])
    found = [Lane(LOCK, LOCK, tuple(_lock(table, at)))]
    for writer, row in ((one, drawn[n]) for n, one in enumerate(writers)):
        mine = [one for one in pending if _is_of(writer, one)]
        more = (*_starts(writer, at), *_refused(writer), *_queued(writer, at), *_pending(mine, at))
        found.append(Lane(WRITER, writer.name, (*row.bars, *more)))
    others = [one for one in pending if not any(_is_of(writer, one) for writer in writers)]
    rest = drawn[len(writers) :]
    # A writer that is gone keeps its lane, with what is remembered of it.
    found += [Lane(row.kind, row.of or row.name, row.bars) for row in rest if row.kind in (WRITER, FOREIGN)]
    commits = [bar for row in rest for bar in row.bars if row.kind == SERVICES]
    found.append(Lane(SERVICES, SERVICES, (*commits, *_services(table, at), *_pending(others, at))))
    found += _settling(table, at, events)
    found.append(Lane(SAVEPOINTS, SAVEPOINTS, tuple(_savepoints(table, at))))
    return found


def _is_of(writer: Writer, pending: JsonDict) -> bool:
    """Whether one of its attempts recorded an instant; an attempt is `NAMESPACE.POD`."""
    namespace, _, pod = str(pending.get("owner") or "").partition(".")
    return namespace == writer.namespace and any(one.get("pod") == pod for one in writer.attempts())


def _between(kind: str, begin: object, end: object, at: datetime, text: str, *, failed: bool = False) -> Iterator[Bar]:
    """A bar; without an ``end`` it goes on. None where nothing has begun."""
    begun, ended = when(begin), when(end)
    if begun is not None:
        yield Bar(kind, begun, max(begun, ended or at), text, failed, ended is None)


def _at(kind: str, moment: object, text: str, *, failed: bool = False) -> Iterator[Bar]:
    """A mark: a bar without a length."""
    then = when(moment)
    if then is not None:
        yield Bar(kind, then, then, text, failed)


def _lock(table: Table, at: datetime) -> Iterator[Bar]:
    lock = table.status.get("lock") or {}
    owner = lock.get("attempt") or lock.get("owner")
    yield from _between(HELD, lock.get("since"), None, at, f"attempt {owner} holds the lock")


def _starts(writer: Writer, at: datetime) -> Iterator[Bar]:
    for one in writer.attempts():
        ready = one.get("readyTime") or one.get("endTime")
        yield from _between(STARTS, one.get("startTime"), ready, at, f"attempt {one.get('number')} starts")


def _refused(writer: Writer) -> Iterator[Bar]:
    for one in writer.status.get("recentConflicts") or []:
        again = f"; repeated as {one['retriedAs']}" if one.get("retriedAs") else ""
        said = f"{one.get('instant')} was refused because of {one.get('with')}{again}"
        end = when(one.get("time"))
        if end is not None:
            begin = when(one.get("instant")) or end
            yield Bar(REFUSED, min(begin, end), end, said, failed=True)


def _queued(writer: Writer, at: datetime) -> Iterator[Bar]:
    queue = writer.status.get("queue") or {}
    by = f": {queue['blockedBy']}" if queue.get("blockedBy") else ""
    said = f"waits for admission as number {queue.get('position', '?')}{by}"
    yield from _between(QUEUED, queue.get("since"), None, at, said)


def _pending(instants: Iterable[JsonDict], at: datetime) -> Iterator[Bar]:
    for one in instants:
        said = f"{one.get('action')} {one.get('instant')} is {str(one.get('state') or 'not completed').lower()}"
        yield from _between(PENDING, one.get("instant"), None, at, said)


def _services(table: Table, at: datetime) -> Iterator[Bar]:
    for service, one in (table.status.get("services") or {}).items():
        outcome = str(one.get("outcome"))
        said = f"{service}: {outcome}" + (f": {one['message']}" if one.get("message") else "")
        if outcome == RUNNING:
            yield from _between(SERVICE, one.get("lastTime"), None, at, said)
        else:
            yield from _at(SERVICE, one.get("lastTime"), said, failed=outcome in BAD)
    one = table.status.get("bootstrap") or {}
    if one:
        yield from _between(SERVICE, one.get("beginTime"), one.get("endTime"), at, f"bootstrap: {one.get('outcome')}")


def _settling(table: Table, at: datetime, events: Iterable[JsonDict]) -> list[Lane]:
    """A lane for each dead process: what Events say of it, and its phase now."""
    found: dict[str, list[Bar]] = {}
    fenced: dict[str, datetime] = {}
    told = [(when(one.get("lastTimestamp") or one.get("eventTime")), one) for one in events]
    recent = ((m, e) for m, e in told if m is not None and m >= at - KEPT)  # the author of an Event chooses its time
    for moment, one in sorted(recent, key=lambda pair: pair[0]):
        message, reason = str(one.get("message") or ""), one.get("reason")
        label, sign, _ = message.partition(" is fenced: " if reason == IS_FENCED else ": ")
        about = one.get("involvedObject") or {}
        if not sign or (about.get("kind"), about.get("name")) != ("HudiTable", table.name):
            continue
        bars = found.setdefault(_pod(label), []) if reason in (IS_FENCED, IS_UNLOCKED, ROLLS_BACK) else []
        if reason == IS_FENCED:
            fenced[label] = moment
            bars.append(Bar(FENCED, moment, moment, message))
        elif reason == IS_UNLOCKED:
            bars.append(Bar(FENCED, fenced.get(label, moment), moment, f"{label} was fenced until it had no lock"))
        elif reason == ROLLS_BACK:
            bars.append(Bar(ROLLED_BACK, moment, moment, message))
    for one in table.status.get("settling") or []:
        label = str(one.get("pod") or _pod(str(one.get("attempt") or one.get("incarnation"))))
        kind = PHASES.get(str(one.get("phase")), ROLLED_BACK)
        waits = f", waits for {one['waitingFor']}" if one.get("waitingFor") else ""
        said = f"{label} is {one.get('phase')} ({one.get('reason')}){waits}"
        found.setdefault(label, []).extend(_between(kind, one.get("since"), None, at, said))
    return [Lane(SETTLING, label, tuple(bars)) for label, bars in found.items()]


def _pod(label: str) -> str:
    """The pod of an attempt; any other name stays unchanged."""
    return label.partition(".")[2] or label


def _savepoints(table: Table, at: datetime) -> Iterator[Bar]:
    for one in table.status.get("savepoints") or []:
        said = f"savepoint {one.get('name')}: {one.get('outcome')}" + (
            f": {one['message']}" if one.get("message") else ""
        )
        yield from _at(SAVEPOINT, one.get("time"), said, failed=one.get("outcome") in BAD)
    one = table.status.get("restore") or {}
    if one:
        said = f"restore to {one.get('savepoint')}: {one.get('outcome')}"
        failed = one.get("outcome") in BAD
        yield from _between(RESTORE, one.get("beginTime"), one.get("endTime"), at, said, failed=failed)


# ---------------------------------------------------------------- while one looks
def remembered(before: Sequence[Lane], current: Sequence[Lane], at: datetime) -> list[Lane]:
    """Current lanes merged with earlier ones: a status keeps only the last of each.

    Work that was going on and is gone has ended by ``at``. An instant that is completed or refused
    by now, or pending in another lane, is not pending beside that. If an instant is gone without a
    trace, it is not known whether it was completed: a status has commits of writes alone.
    """
    bars = [bar for lane in (*before, *current) for bar in lane.bars if bar.kind in (COMMIT, REFUSED)]
    bars += [bar for lane in current for bar in lane.bars if bar.kind == PENDING]
    elsewhere = {bar.begin for bar in bars}
    old = {(lane.of, lane.name): lane.bars for lane in before}
    found = [
        replace(lane, bars=_merged(old.pop((lane.of, lane.name), ()), lane.bars, elsewhere, at)) for lane in current
    ]
    gone = [Lane(of, name, _merged(kept, (), elsewhere, at)) for (of, name), kept in old.items()]
    return sorted([*found, *(lane for lane in gone if lane.bars)], key=lambda lane: ORDER.index(lane.of))


def _merged(old: Sequence[Bar], new: Sequence[Bar], elsewhere: Collection[datetime], at: datetime) -> tuple[Bar, ...]:
    there = {(bar.kind, bar.begin) for bar in new}
    kept = []
    for one in old:
        if (one.kind, one.begin) in there or (one.kind in (PENDING, ENDED) and one.begin in elsewhere):
            continue
        said = f"{one.text.partition(' is ')[0]} was completed or rolled back"
        bar = replace(one, kind=ENDED, text=said) if one.kind == PENDING else one
        if bar.end >= at - KEPT or bar.is_open:
            kept.append(replace(bar, end=max(at, bar.begin), is_open=False) if bar.is_open else bar)
    return (*sorted(kept, key=lambda bar: bar.end)[-KEPT_BARS:], *new)
