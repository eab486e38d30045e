"""Reports of agents and attempts.

``report/<kind>`` in etcd, and the termination message of a process. For people and status only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from hudi_contract.requests import CallbackPosition
from hudi_contract.shape import LEFT_OUT, Count, Ms, Record, Time

_INSTANT = frozenset({"instant"})


@dataclass(frozen=True, kw_only=True)
class ReportedError(Record):
    """Why the table cannot be served."""

    code: str = ""
    """A value of `AgentError`, or the value of a failure class: the reason of a condition."""
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class ReportedInstant(Record):
    """An instant on the timeline."""

    REQUIRED: ClassVar[frozenset[str]] = _INSTANT

    instant: Time = ""
    action: Time = ""
    state: Time = field(default="", metadata=LEFT_OUT)
    """Hudi's state; set for a pending instant."""
    completion_time: Time = field(default="", metadata=LEFT_OUT)
    """Set for a completed instant."""
    beating: bool = field(default=False, metadata=LEFT_OUT)
    """At adoption: its heartbeat file is recent."""


@dataclass(frozen=True, kw_only=True)
class ReportedCommit(Record):
    """A completed write, with its own metadata."""

    REQUIRED: ClassVar[frozenset[str]] = _INSTANT

    instant: Time = ""
    action: Time = ""
    completion_time: Time = ""
    records: int = 0
    writer: str = field(default="", metadata=LEFT_OUT)
    """namespace/name of its HudiWriter."""
    attempt: str = field(default="", metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class ReadCost(Record):
    """The read cost of a MergeOnRead table."""

    base_bytes: Count = 0
    log_bytes: Count = 0
    file_groups: Count = 0
    file_groups_with_logs: Count = 0


@dataclass(frozen=True, kw_only=True)
class BucketSettings(Record):
    """Settings of an S3 bucket."""

    harmful: tuple[str, ...] = ()
    """Settings that damage tables, one sentence each."""
    costly: tuple[str, ...] = ()
    """Objects that stay in the bucket although nobody needs them, one sentence each."""
    unknown: tuple[str, ...] = ()
    """Settings that the store did not disclose."""


@dataclass(frozen=True, kw_only=True)
class TimelineReport(Record):
    """`report/timeline`, written by the agent at most once per 5 s.

    It is written immediately after a change.
    """

    at_ms: Ms = 0
    agent_inc: str = ""
    """Empty: the agent could not reach the storage and has not registered."""
    exists: bool = False
    """Whether the table exists."""
    error: ReportedError | None = field(default=None, metadata=LEFT_OUT)
    last_instant: Time = ""
    last_completion_time: Time = ""
    lowest_pending_requested_time: Time = ""
    pending: tuple[ReportedInstant, ...] = ()
    """The first 20."""
    pending_count: Count = 0
    active_length: Count = 0
    foreign: tuple[ReportedInstant, ...] = ()
    """Foreign instants (I7): pending without a record, or completed by a writer without this lock.
    The first 20.
    """
    commits_since: Mapping[str, Count] = field(default_factory=dict)
    """Writers' commits since the last run, by table service."""
    read_cost: ReadCost | None = field(default=None, metadata=LEFT_OUT)
    commits: tuple[ReportedCommit, ...] = ()
    """The 10 newest writes, by completion."""
    bucket: BucketSettings | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class ConflictReport(Record):
    """A race that an attempt has lost."""

    instant: Time = ""
    retried_as: Time = ""
    """Instant of the commit that eventually succeeded; empty: none yet."""
    with_: str = ""
    """The other instant."""
    file_groups: tuple[str, ...] = ()
    """The first 5 file groups that both changed."""
    yielded: bool = False
    """It gave way to a writer of higher priority."""
    at_ms: Ms | None = None


@dataclass(frozen=True, kw_only=True)
class Turn(Record):
    """The writer from which an attempt requests its turn; without `against`: none."""

    against: str = field(default="", metadata=LEFT_OUT)
    """An attempt's id without its number."""
    since_ms: Ms = field(default=0, metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class AttemptReport(Record):
    """`report/attempt/<attempt>`, of a writer's driver.

    Other writers read the stage and the turn (spark-images/hudi_runtime/writer/fairness.py).
    """

    attempt: str = ""
    inc: str = ""
    at_ms: Ms = 0
    stage: str = ""
    """A value of `Stage`."""
    commits: Count = 0
    records: Count = 0
    last_instant: Time = ""
    last_completion_time: Time = ""
    conflicts: tuple[ConflictReport, ...] = ()
    """The last 10."""
    conflict_count: Count = field(default=0, metadata=LEFT_OUT)
    """Number of all of them; a process of an older version does not tell it."""
    turn: Turn | None = field(default=None, metadata=LEFT_OUT)
    """None: it does not take turns (an application)."""
    waiting: Count = 0
    """Backlog that the last read of the source left for later commits: files, commits, offsets."""
    caught_up: bool = False
    """A streaming run caught up with its source at least once."""
    bad_records: Count = field(default=0, metadata=LEFT_OUT)
    """Records that the writer's commits left out, up to the last one that the attempt knows
    (`onBadRecord`).
    """
    resumed_ms: Ms = field(default=0, metadata=LEFT_OUT)
    """Time at which a streaming run that had caught up last found new input.

    Its commit is due from then on. 0: never.
    """


@dataclass(frozen=True, kw_only=True)
class CallbackReport(CallbackPosition):
    """`report/callback`, written by the agent at most once per 5 s.

    The position, and the commits after it.
    """

    inc: str = ""
    undelivered: Count = 0
    oldest: Time = ""
    """Completion time of the oldest undelivered one."""
    failures: Count = 0
    """Consecutive failures of the receiver."""
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class CatalogReport(Record):
    """`report/catalog`, written by the agent before and after each try.

    Deleted when the table has no catalog.
    """

    inc: str = ""
    target: str = ""
    """`CatalogOrder.target`."""
    instant: Time = ""
    """Requested time of the last synchronized change; empty: none yet."""
    completion_time: Time = ""
    """Its completion time."""
    at_ms: Count = 0
    """Time of the synchronization; 0: never."""
    failures: Count = 0
    """Consecutive failures since then."""
    begun: Count = field(default=0, metadata=LEFT_OUT)
    """Consecutive tries that have begun and not ended: one that is running, and those with which
    their agent has ended.
    """
    left_out: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    """The first partitions that are known to be missing there: their path has not one value for
    each column.
    """
    dropped: bool = field(default=False, metadata=LEFT_OUT)
    """No entry of this HudiTable is there any more: it is being deleted. ``message``: entries of
    others under these names, which stay.
    """
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class TerminationMessage(Record):
    """The content of `/dev/termination-log` (at most 4096 bytes)."""

    outcome: str = ""
    """A value of `Ending`."""
    class_: str | None = None
    """A value of `FailureClass`; null: the process succeeded."""
    message: str = ""
    """First line, without secrets."""
    commits: Count = 0
    records: Count = 0
    last_instant: Time = ""
    last_completion_time: Time = ""
    conflicts: Count = 0
    waiting: Count = 0
    caught_up: bool = False
    bad_records: Count = field(default=0, metadata=LEFT_OUT)
    """As in `AttemptReport`."""
