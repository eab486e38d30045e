"""Holds: commits whose files stay for readers, until a time (docs/operate/operations.md, Holds).

Pure: no I/O, the time is an argument.

A hold has a commit and a *boundary*, the completion time of the last commit that a reader sees who
lists the table at the hold. Two kinds of readers may come: one whose snapshot is what completed
until the boundary, and one who asks as of the commit's requested time. For both, and for readers of
the commits after the boundary one by one, no file may go that a later commit has replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from hudi_contract.requests import HoldDone, named
from hudi_contract.words import RequestKind, Result
from hudi_runtime.process.etcd import Entry
from hudi_runtime.table import timeline as tl

Group = tuple[str, str]
"""Partition and file group."""
_BASE = re.compile(r"(?P<group>[^.].*)_[^_]+_(?P<time>\d{14}(?:\d{3})?)\.[a-z]+")
_LOG = re.compile(r"\.(?P<group>.+)_(?P<time>\d{14}(?:\d{3})?)\.log\..+")


@dataclass(frozen=True)
class Hold:
    """A hold that lasts."""

    name: str
    instant: str
    """Requested time of the commit."""
    boundary: str
    """Completion time."""


def lasting(entries: Mapping[str, Entry], now_ms: int) -> tuple[Hold, ...]:
    """Holds of the records `done/hold-<name>` whose time is not over.

    Raises ShapeError when one cannot be read: then nothing may be deleted.
    """
    known = {id: HoldDone.from_json(entry.readable) for id, entry in sorted(entries.items())}
    return tuple(
        Hold(named(RequestKind.HOLD, id), done.instant, done.boundary)
        for id, done in known.items()
        if done.result in (Result.PENDING, Result.COMPLETED) and done.instant and now_ms < done.kept_until_ms
    )


def oldest_of(timeline: tl.Timeline, hold: Hold) -> str:
    """The oldest commit whose files, and those that it replaced, a hold needs.

    It is the oldest of the commit and of those that have completed since the boundary: a long one
    may have been requested before, and have replaced what the readers see.
    """
    since = [i.requested for i in timeline.completed if i.action in tl.WRITE_ACTIONS and i.completion >= hold.boundary]
    return min([hold.instant, *since])


def held_from(timeline: tl.Timeline, entries: Mapping[str, Entry], now_ms: int) -> str:
    """The oldest commit that any hold needs; empty when there is none. Raises ShapeError."""
    return min((oldest_of(timeline, hold) for hold in lasting(entries, now_ms)), default="")


def chosen(timeline: tl.Timeline, instant: str) -> tuple[Hold | None, str]:
    """The commit that is asked for, or the last one (`instant` empty); else why there is none."""
    writes = [i for i in timeline.completed if i.action in tl.WRITE_ACTIONS]
    if not instant:
        if not writes:
            return None, "the active timeline has no commit"
        return Hold("", max(i.requested for i in writes), max(i.completion for i in writes)), ""
    found = timeline.get(instant)
    if found is not None and found.pending:
        return None, f"instant {instant} is pending: a hold is of a completed commit"
    if found is not None and found in writes:
        return Hold("", instant, found.completion), ""
    other = next((i.requested for i in writes if i.completion == instant), "")
    if other:
        return None, f"{instant} is the completion time of commit {other}: name its requested time"
    return None, f"the active timeline has no commit that was requested at {instant}"


def gone(timeline: tl.Timeline, hold: Hold) -> bool:
    """Whether the commit, or the last one that its readers see, has left the active timeline."""
    times = {(i.requested, i.completion) for i in timeline.completed if i.action in tl.WRITE_ACTIONS}
    return not any(r == hold.instant for r, _ in times) or not any(c == hold.boundary for _, c in times)


def doubtful(timeline: tl.Timeline, hold: Hold) -> tuple[tl.Instant, ...]:
    """Completed cleans that may have deleted what a hold needs.

    Those that were planned before any commit completed that one of the readers does not see have
    not: a clean deletes what has been replaced, and to the readers nothing had been. A reader that
    asks as of the commit does not see those that were requested after it and completed before
    (F592). The instant of a clean comes after its plan.
    """
    writes = [i for i in timeline.completed if i.action in tl.WRITE_ACTIONS]
    later = [i.completion for i in writes if i.completion > hold.boundary or i.requested > hold.instant]
    first = min(later, default="")
    return tuple(i for i in timeline.completed if i.action == "clean" and first and first <= i.requested)


@dataclass(frozen=True)
class Proof:
    """Finds out whether a clean has deleted a file that a hold needs."""

    hold: Hold
    completions: Mapping[str, str]
    """Completion times of commits by their requested times, archived ones included."""
    replaced: Mapping[Group, str] = field(default_factory=dict)
    """Requested time of the commit that has replaced a whole file group."""

    def missing(self, deleted: Mapping[str, Iterable[str]], there: Callable[[str], Iterable[str]]) -> str:
        """A deleted file that is needed; empty when there is none.

        ``deleted``: what cleans have deleted, names by partition. ``there``: names of the files
        that a partition has now.
        """
        for partition, names in sorted(deleted.items()):
            lost = sorted(set(names))
            known = [*lost, *there(partition)]
            bases: dict[str, set[str]] = {}
            for name in known:
                if found := _BASE.fullmatch(name):
                    bases.setdefault(found["group"], set()).add(found["time"])
            for name in lost:
                if self._is_needed(partition, name, bases):
                    return f"{partition}/{name}" if partition else name
        return ""

    def _completion(self, requested: str) -> str:
        # Hudi's bootstrap, and instants without a completion time in the archive, come before all
        # others.
        return self.completions.get(requested, requested)

    def _is_needed(self, partition: str, name: str, bases: Mapping[str, set[str]]) -> bool:
        base, log = _BASE.fullmatch(name), _LOG.fullmatch(name)
        found = base or log
        if found is None:
            return True  # of a kind that is not known
        group, time = found["group"], found["time"]
        if self._completion(time) > self.hold.boundary:
            return True  # of a commit that comes after the boundary
        end = self.replaced.get((partition, group), "")
        return any(
            sees(time)
            and not (end and sees(end))
            and self._is_of_newest(time, max(filter(sees, bases.get(group, ())), default=""), log=base is None)
            for sees in (self._in_snapshot, self._as_of)
        )

    def _is_of_newest(self, time: str, newest: str, *, log: bool) -> bool:
        """Whether a file is of the version that begins with the base file of ``newest``.

        A log file is of the version after whose begin it was completed.
        """
        return self._completion(time) > newest if log else time >= newest

    def _in_snapshot(self, requested: str) -> bool:
        return self._completion(requested) <= self.hold.boundary

    def _as_of(self, requested: str) -> bool:
        return requested <= self.hold.instant
