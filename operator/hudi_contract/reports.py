"""What agents and attempts report: ``report/<kind>`` in etcd, and the last word of a process in its termination message. For people and status."""

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
    """A word of `AgentError`, or the value of a failure class: the reason of a condition."""
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class ReportedInstant(Record):
    """An instant on the timeline."""

    REQUIRED: ClassVar[frozenset[str]] = _INSTANT

    instant: Time = ""
    action: Time = ""
    state: Time = field(default="", metadata=LEFT_OUT)
    """Of a pending one: Hudi's state."""
    completion_time: Time = field(default="", metadata=LEFT_OUT)
    """Of a completed one."""
    beating: bool = field(default=False, metadata=LEFT_OUT)
    """At adoption: its heartbeat file is young."""


@dataclass(frozen=True, kw_only=True)
class ReportedCommit(Record):
    """A write that is completed, and what it says of itself."""

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
    """What readers of a MergeOnRead table pay."""

    base_bytes: Count = 0
    log_bytes: Count = 0
    file_groups: Count = 0
    file_groups_with_logs: Count = 0


@dataclass(frozen=True, kw_only=True)
class BucketSettings(Record):
    """Settings of an S3 bucket."""

    harmful: tuple[str, ...] = ()
    """Sentences: settings that damage tables."""
    unknown: tuple[str, ...] = ()
    """What the store has not told."""


@dataclass(frozen=True, kw_only=True)
class TimelineReport(Record):
    """`report/timeline`, of the agent: at most one per 5 s, at once when something changed."""

    at_ms: Ms = 0
    agent_inc: str = ""
    """Empty: it could not reach the storage before it had registered."""
    exists: bool = False
    """Whether there is a table."""
    error: ReportedError | None = field(default=None, metadata=LEFT_OUT)
    last_instant: Time = ""
    last_completion_time: Time = ""
    lowest_pending_requested_time: Time = ""
    pending: tuple[ReportedInstant, ...] = ()
    """The first 20."""
    pending_count: Count = 0
    active_length: Count = 0
    foreign: tuple[ReportedInstant, ...] = ()
    """Instants of nobody here (I7): pending without a record, or completed by a writer without this lock. The first 20."""
    commits_since: Mapping[str, Count] = field(default_factory=dict)
    """Commits of writers since the last run, by table service."""
    read_cost: ReadCost | None = field(default=None, metadata=LEFT_OUT)
    commits: tuple[ReportedCommit, ...] = ()
    """The 10 newest writes, by completion."""
    bucket: BucketSettings | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class ConflictReport(Record):
    """A race that an attempt has lost."""

    instant: Time = ""
    retried_as: Time = ""
    """Instant of the commit that came of it in the end; empty: not yet."""
    with_: str = ""
    """The other instant."""
    file_groups: tuple[str, ...] = ()
    """The first 5 that both have changed."""
    yielded: bool = False
    """It gave way to a writer of higher priority."""
    at_ms: Ms | None = None


@dataclass(frozen=True, kw_only=True)
class Turn(Record):
    """Against whom an attempt asks for its turn; without `against`: against nobody."""

    against: str = field(default="", metadata=LEFT_OUT)
    """An attempt's id without its number."""
    since_ms: Ms = field(default=0, metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class AttemptReport(Record):
    """`report/attempt/<attempt>`, of a writer's driver. Other writers read stage and turn (spark-images/hudi_runtime/writer/fairness.py)."""

    attempt: str = ""
    inc: str = ""
    at_ms: Ms = 0
    stage: str = ""
    """A word of `Stage`."""
    commits: Count = 0
    records: Count = 0
    last_instant: Time = ""
    last_completion_time: Time = ""
    conflicts: tuple[ConflictReport, ...] = ()
    """The last 10."""
    turn: Turn | None = field(default=None, metadata=LEFT_OUT)
    """None: it takes no turns (an application)."""
    waiting: Count = 0
    """What the last look at the source has left for later commits: files, commits, offsets."""
    caught_up: bool = False
    """A streaming run had nothing left to do at least once."""


@dataclass(frozen=True, kw_only=True)
class CallbackReport(CallbackPosition):
    """`report/callback`, of the agent: the position, and what waits behind it. At most one per 5 s."""

    inc: str = ""
    undelivered: Count = 0
    oldest: Time = ""
    """Completion time of the oldest undelivered one."""
    failures: Count = 0
    """Of the receiver, in a row."""
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class TerminationMessage(Record):
    """What a process writes to `/dev/termination-log` (at most 4096 bytes)."""

    outcome: str = ""
    """A word of `Ending`."""
    class_: str | None = None
    """A word of `FailureClass`; null: it has succeeded."""
    message: str = ""
    """First line, without secrets."""
    commits: Count = 0
    records: Count = 0
    last_instant: Time = ""
    last_completion_time: Time = ""
    conflicts: Count = 0
    waiting: Count = 0
    caught_up: bool = False
