"""Sections of status, and entries of its lists: one class for reading and writing each.

The CRDs have the same fields (a test compares them). Reading is tolerant: a field that is absent or
not of its type has its default; one that this version does not know is kept and written back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_contract.settle import Phase
from hudi_contract.shape import LEFT_OUT, Count, Record
from hudi_contract.words import HoldOutcome, Result


@dataclass(frozen=True, kw_only=True)
class AttemptEntry(Record):
    """An attempt of a HudiWriter (``status.attempts``)."""

    number: Count = 0
    """Counted over all runs, from 1; 0: the entry cannot be read."""
    run: Count | None = field(default=None, metadata=LEFT_OUT)
    generation: Count | None = field(default=None, metadata=LEFT_OUT)
    """metadata.generation of the HudiWriter that it ran."""
    executors: Count = field(default=0, metadata=LEFT_OUT)
    """Number of executors that its driver asks for."""
    pod: str = field(default="", metadata=LEFT_OUT)
    pod_uid: str = field(default="", metadata=LEFT_OUT)
    """Never changes once it is recorded (F23)."""
    incarnation: str = field(default="", metadata=LEFT_OUT)
    class_: str = field(default="", metadata=LEFT_OUT)
    """Class of its end (:mod:`classify`); empty: it has not ended."""
    exit_code: int | None = field(default=None, metadata=LEFT_OUT)
    message: str = field(default="", metadata=LEFT_OUT)
    start_time: str = field(default="", metadata=LEFT_OUT)
    end_time: str = field(default="", metadata=LEFT_OUT)
    gated: bool = field(default=False, metadata=LEFT_OUT)
    """Its driver pod has, or had, a scheduling gate."""
    ungated_time: str = field(default="", metadata=LEFT_OUT)
    """Time at which that pod was first seen without one; its start is due from then on."""
    running_time: str = field(default="", metadata=LEFT_OUT)
    """Time at which its driver was first seen running."""
    ready_time: str = field(default="", metadata=LEFT_OUT)
    """Time at which it was first seen registered."""
    counted_from: str = field(default="", metadata=LEFT_OUT)
    """Time from which its deadline is counted. It is later than its start by the length of past
    waits, or because the operator's clock was behind; empty: neither.
    """
    waiting_since: str = field(default="", metadata=LEFT_OUT)
    """Begin of its wait for others, which does not count; empty: it does not wait."""
    stopped_for: str = field(default="", metadata=LEFT_OUT)
    """Class of the deadline for which it was asked to stop; empty: it was not."""
    out_of_memory: str = field(default="", metadata=LEFT_OUT)
    """``driver``, or the pod of an executor that has ended for lack of memory; empty: none has
    since its last commit.
    """
    out_of_memory_time: str = field(default="", metadata=LEFT_OUT)
    """Time at which that executor was seen."""
    drivers_lacked: Count = field(default=0, metadata=LEFT_OUT)
    """Earlier attempts of its run that ended because their drivers had too little memory."""
    executors_lacked: Count = field(default=0, metadata=LEFT_OUT)
    """The same of their executors."""
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
class PlanStatus(Record):
    """What happens next with a HudiWriter (``status.plan``)."""

    verdict: str = ""
    reason: str = field(default="", metadata=LEFT_OUT)
    message: str = field(default="", metadata=LEFT_OUT)


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
class HoldEntry(Record):
    """A hold that the spec of a HudiTable names (``status.holds``)."""

    name: str = ""
    outcome: HoldOutcome = HoldOutcome.PENDING
    reader: str = field(default="", metadata=LEFT_OUT)
    instant: str = field(default="", metadata=LEFT_OUT)
    boundary_completion_time: str = field(default="", metadata=LEFT_OUT)
    """A reader that lists the table at the hold sees the commits that completed until then."""
    since: str = field(default="", metadata=LEFT_OUT)
    until: str = field(default="", metadata=LEFT_OUT)
    message: str = field(default="", metadata=LEFT_OUT)

    @property
    def label(self) -> str:
        """The hold, and its reader if known."""
        return f"hold {self.name}{f' ({self.reader})' if self.reader else ''}"


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


@dataclass(frozen=True, kw_only=True)
class BootstrapStatus(Record):
    """The dataset with which a HudiTable begins (``status.bootstrap``)."""

    outcome: str = Result.PENDING
    mode: str = field(default="", metadata=LEFT_OUT)
    source: str = field(default="", metadata=LEFT_OUT)
    begin_time: str = field(default="", metadata=LEFT_OUT)
    end_time: str = field(default="", metadata=LEFT_OUT)
    instant: str = field(default="", metadata=LEFT_OUT)
    completion_time: str = field(default="", metadata=LEFT_OUT)
    records: Count | None = field(default=None, metadata=LEFT_OUT)
    files: Count | None = field(default=None, metadata=LEFT_OUT)
    bytes: Count | None = field(default=None, metadata=LEFT_OUT)
    failures: Count = field(default=0, metadata=LEFT_OUT)
    message: str = field(default="", metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class RestoreStatus(Record):
    """The restore in progress, or the one that the spec names (``status.restore``)."""

    nonce: str = ""
    savepoint: str = ""
    outcome: str = Result.PENDING
    """A :class:`Result`, or ``NotExecuted``."""
    instant: str = field(default="", metadata=LEFT_OUT)
    completion_time: str = field(default="", metadata=LEFT_OUT)
    boundary_completion_time: str = field(default="", metadata=LEFT_OUT)
    undone: Count | None = field(default=None, metadata=LEFT_OUT)
    """Number of instants that the restore removed."""
    undone_instants: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    begin_time: str = field(default="", metadata=LEFT_OUT)
    end_time: str = field(default="", metadata=LEFT_OUT)
    failures: Count = field(default=0, metadata=LEFT_OUT)
    message: str = field(default="", metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class MetadataTableStatus(Record):
    """The last change of the metadata table (``status.metadataTable``)."""

    wanted: str = ""
    """The settings of the spec."""
    outcome: str = Result.PENDING
    partitions: tuple[str, ...] | None = field(default=None, metadata=LEFT_OUT)
    message: str = field(default="", metadata=LEFT_OUT)
    failures: Count = field(default=0, metadata=LEFT_OUT)
    last_time: str = field(default="", metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class CallbackStatus(Record):
    """The delivery of commits to a receiver (``status.commitCallback``)."""

    delivered: Count = 0
    undelivered: Count = 0
    undelivered_since: str = field(default="", metadata=LEFT_OUT)
    failures: Count = 0
    """In a row."""
    archived_undelivered: Count = 0
    """Archived before they were delivered."""
    last_instant: str = field(default="", metadata=LEFT_OUT)
    last_completion_time: str = field(default="", metadata=LEFT_OUT)
    last_delivery_time: str = field(default="", metadata=LEFT_OUT)
    message: str = field(default="", metadata=LEFT_OUT)
    """Why the last delivery failed."""


@dataclass(frozen=True, kw_only=True)
class CatalogStatus(Record):
    """The table's entry in a catalog (``status.catalog``)."""

    database: str
    table: str
    last_instant: str = field(default="", metadata=LEFT_OUT)
    """The change that the catalog shows; empty: none yet."""
    last_completion_time: str = field(default="", metadata=LEFT_OUT)
    last_sync_time: str = field(default="", metadata=LEFT_OUT)
    failures: Count = 0
    """In a row."""
    message: str = field(default="", metadata=LEFT_OUT)
    """Why the last try failed."""


@dataclass(frozen=True, kw_only=True)
class ServiceStatus(Record):
    """A table service (an entry of ``status.services``)."""

    outcome: str = field(default="", metadata=LEFT_OUT)
    """A :class:`Result`, or ``Interrupted``; empty: it has not run yet."""
    message: str | None = field(default=None, metadata=LEFT_OUT)
    last_time: str = field(default="", metadata=LEFT_OUT)
    last_instant: str = field(default="", metadata=LEFT_OUT)
    failures: Count = field(default=0, metadata=LEFT_OUT)
    """In a row."""
    next_time: str = field(default="", metadata=LEFT_OUT)
    window_opens: str = field(default="", metadata=LEFT_OUT)
    window_closes: str = field(default="", metadata=LEFT_OUT)
    commits_until_next: Count | None = field(default=None, metadata=LEFT_OUT)
    executed_nonce: str = field(default="", metadata=LEFT_OUT)
    """The last ``runNonce`` that was served."""


@dataclass(frozen=True, kw_only=True)
class LockStatus(Record):
    """The owner of the table's lock, if it matters to people (``status.lock``)."""

    owner: str = ""
    attempt: str = ""
    since: str = field(default="", metadata=LEFT_OUT)


def attempt_entries(status: Mapping[str, Any]) -> tuple[AttemptEntry, ...]:
    """``status.attempts`` of a HudiWriter, in the stored order."""
    return tuple(AttemptEntry.known(entry) for entry in status.get("attempts") or ())


def numbered_attempts(status: Mapping[str, Any]) -> tuple[AttemptEntry, ...]:
    """``status.attempts`` in the order of numbers.

    Raises ValueError for an entry without a number.
    """
    return in_order(attempt_entries(status))


def in_order(found: tuple[AttemptEntry, ...]) -> tuple[AttemptEntry, ...]:
    """The same entries in the order of numbers. Raises ValueError for an entry without a number."""
    if any(not entry.number for entry in found):
        raise ValueError("an entry has no number")
    return tuple(sorted(found, key=lambda entry: entry.number))


def commit_entries(status: Mapping[str, Any]) -> tuple[CommitEntry, ...]:
    """``status.timeline.commits`` of a HudiTable, oldest first."""
    return tuple(CommitEntry.known(entry) for entry in (status.get("timeline") or {}).get("commits") or ())


def savepoint_entries(status: Mapping[str, Any]) -> tuple[SavepointEntry, ...]:
    """``status.savepoints`` of a HudiTable."""
    return tuple(SavepointEntry.known(entry) for entry in status.get("savepoints") or ())


def hold_entries(status: Mapping[str, Any]) -> tuple[HoldEntry, ...]:
    """``status.holds`` of a HudiTable."""
    return tuple(HoldEntry.known(entry) for entry in status.get("holds") or ())


def settling_entries(status: Mapping[str, Any]) -> tuple[SettlingEntry, ...]:
    """``status.settling`` of a HudiTable."""
    return tuple(SettlingEntry.known(entry) for entry in status.get("settling") or ())
