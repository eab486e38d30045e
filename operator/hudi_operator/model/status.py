"""Entries of lists in status: one class for reading and writing each.

The CRDs have the same fields (a test compares them). Reading is tolerant: a field that is absent or
not of its type has its default; one that this version does not know is kept and written back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_contract.settle import Phase
from hudi_contract.shape import LEFT_OUT, Count, Record
from hudi_contract.words import Result


@dataclass(frozen=True, kw_only=True)
class AttemptEntry(Record):
    """An attempt of a HudiWriter (``status.attempts``)."""

    number: Count = 0
    """Counted over all runs, from 1; 0: the entry cannot be read."""
    run: Count | None = field(default=None, metadata=LEFT_OUT)
    generation: Count | None = field(default=None, metadata=LEFT_OUT)
    """metadata.generation of the HudiWriter that it ran."""
    pod: str = field(default="", metadata=LEFT_OUT)
    pod_uid: str = field(default="", metadata=LEFT_OUT)
    """Never changes once it is recorded (F23)."""
    incarnation: str = field(default="", metadata=LEFT_OUT)
    class_: str = field(default="", metadata=LEFT_OUT)
    """How it ended (:mod:`classify`); empty: it has not ended."""
    exit_code: int | None = field(default=None, metadata=LEFT_OUT)
    message: str = field(default="", metadata=LEFT_OUT)
    start_time: str = field(default="", metadata=LEFT_OUT)
    end_time: str = field(default="", metadata=LEFT_OUT)
    records: Count = field(default=0, metadata=LEFT_OUT)
    advanced: bool = field(default=False, metadata=LEFT_OUT)
    """An attempt of a streaming run has committed or caught up with its source."""
    conflicts: Count = field(default=0, metadata=LEFT_OUT)
    instants: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    """The last instants that it committed."""


@dataclass(frozen=True, kw_only=True)
class Counts(Record):
    """Sums over the attempts that are no longer listed (``status.earlierAttempts``)."""

    records: Count = 0
    conflicts: Count = 0


@dataclass(frozen=True, kw_only=True)
class ConflictEntry(Record):
    """A commit of a HudiWriter that was refused (``status.recentConflicts``)."""

    instant: str = field(default="", metadata=LEFT_OUT)
    retried_as: str = field(default="", metadata=LEFT_OUT)
    with_: str = field(default="", metadata=LEFT_OUT)
    """Instant or attempt that came first."""
    yielded: bool = field(default=False, metadata=LEFT_OUT)
    file_groups: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    time: str = field(default="", metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class PendingEntry(Record):
    """An instant that is not completed (``status.timeline.pending`` of a HudiTable)."""

    instant: str = ""
    action: str = ""
    state: str = ""
    owner: str = field(default="", metadata=LEFT_OUT)
    """Attempt that recorded it."""


@dataclass(frozen=True, kw_only=True)
class CommitEntry(Record):
    """A completed write (``status.timeline.commits`` of a HudiTable)."""

    instant: str = field(default="", metadata=LEFT_OUT)
    action: str = field(default="", metadata=LEFT_OUT)
    completion_time: str = field(default="", metadata=LEFT_OUT)
    writer: str = field(default="", metadata=LEFT_OUT)
    attempt: str = field(default="", metadata=LEFT_OUT)
    records: Count = 0


@dataclass(frozen=True, kw_only=True)
class ForeignEntry(Record):
    """An instant of a writer without the table's lock (``status.timeline.foreign``)."""

    instant: str = ""
    action: str = ""
    completion_time: str = field(default="", metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class SavepointEntry(Record):
    """A savepoint that the spec of a HudiTable names (``status.savepoints``)."""

    name: str = ""
    outcome: Result = Result.PENDING
    instant: str = field(default="", metadata=LEFT_OUT)
    completion_time: str = field(default="", metadata=LEFT_OUT)
    boundary_completion_time: str = field(default="", metadata=LEFT_OUT)
    """The savepoint contains exactly the commits that completed until then."""
    time: str = field(default="", metadata=LEFT_OUT)
    message: str = field(default="", metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class SettlingEntry(Record):
    """A dead incarnation whose work is being settled (``status.settling`` of a HudiTable)."""

    incarnation: str = ""
    attempt: str = ""
    pod: str = ""
    phase: Phase = Phase.Fenced
    reason: str = ""
    since: str = field(default="", metadata=LEFT_OUT)
    waiting_for: str = ""

    @property
    def label(self) -> str:
        """Attempt, or incarnation when the attempt is unknown."""
        return self.attempt or self.incarnation


def attempt_entries(status: Mapping[str, Any]) -> tuple[AttemptEntry, ...]:
    """``status.attempts`` of a HudiWriter, in the stored order."""
    return tuple(AttemptEntry.known(entry) for entry in status.get("attempts") or ())


def numbered_attempts(status: Mapping[str, Any]) -> tuple[AttemptEntry, ...]:
    """``status.attempts`` in the order of numbers.

    Raises ValueError for an entry without a number.
    """
    found = attempt_entries(status)
    if any(not entry.number for entry in found):
        raise ValueError("an entry has no number")
    return tuple(sorted(found, key=lambda entry: entry.number))


def commit_entries(status: Mapping[str, Any]) -> tuple[CommitEntry, ...]:
    """``status.timeline.commits`` of a HudiTable, oldest first."""
    return tuple(CommitEntry.known(entry) for entry in (status.get("timeline") or {}).get("commits") or ())


def savepoint_entries(status: Mapping[str, Any]) -> tuple[SavepointEntry, ...]:
    """``status.savepoints`` of a HudiTable."""
    return tuple(SavepointEntry.known(entry) for entry in status.get("savepoints") or ())


def settling_entries(status: Mapping[str, Any]) -> tuple[SettlingEntry, ...]:
    """``status.settling`` of a HudiTable."""
    return tuple(SettlingEntry.known(entry) for entry in status.get("settling") or ())
