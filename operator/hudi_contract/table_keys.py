"""Records of the lock protocol.

Gate and admissions, registrations and heartbeats, lock, owners of instants
(docs/design/protocol.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from hudi_contract.keys import default_seconds
from hudi_contract.shape import LEFT_OUT, Count, Ms, ObjectName, Record, Short, Time
from hudi_contract.words import FencingMode, GateState, InstantState, Role


@dataclass(frozen=True, kw_only=True)
class Durations(Record):
    """Durations of the lock in seconds; one that is absent is the default of ``protocol.json``."""

    lease_seconds: Count | None = field(default=None, metadata=LEFT_OUT)
    keep_alive_seconds: Count | None = field(default=None, metadata=LEFT_OUT)
    rpc_timeout_seconds: Count | None = field(default=None, metadata=LEFT_OUT)
    silence_seconds: Count | None = field(default=None, metadata=LEFT_OUT)
    max_clock_skew_seconds: Count | None = field(default=None, metadata=LEFT_OUT)
    drain_seconds: Count | None = field(default=None, metadata=LEFT_OUT)
    """D: after this time, a request that was in flight when its sender died has either
    arrived or failed.
    """

    @property
    def drain(self) -> int:
        """The drain in force."""
        return self.drain_seconds if self.drain_seconds is not None else default_seconds("drainSeconds")

    @property
    def clock_skew(self) -> int:
        """The clock skew in force."""
        said = self.max_clock_skew_seconds
        return said if said is not None else default_seconds("maxClockSkewSeconds")

    def settings(self) -> dict[str, str]:
        """Settings for the Java session; it takes an absent one from the gate."""
        return {name: str(value) for name, value in self.to_json().items() if isinstance(value, int)}


@dataclass(frozen=True, kw_only=True)
class Gate(Record):
    """Controls who may acquire the table's lock, and under which mode, versions and durations.

    No gate: nobody may.
    """

    REQUIRED: ClassVar[frozenset[str]] = frozenset({"state"})

    state: GateState | None = None
    """None: there is no gate, or it is unreadable."""
    admitted: tuple[str, ...] = ()
    """Attempts that may acquire although the gate is closed: they started while it was open."""
    mode: FencingMode | None = None
    protocol_version: Count | None = None
    table_version: Count | None = None
    hudi_version: str = ""
    path: str = ""
    """Canonical base path."""
    concurrency: str = ""
    """`spec.concurrency.mode` in force."""
    insert_conflicts: str = ""
    """Rule for conflicts of two inserts; empty: `Key`."""
    lock: Durations | None = None
    authority: str = ""
    """UUID of the lock authority, which never changes: the table's marker names it."""
    cluster_id: str = ""
    """The etcd cluster in which the gate was created."""
    table: str = ""
    """namespace/name of the HudiTable; empty: released by its last one."""
    table_uid: str = ""
    accepted_floor: Count = field(default=0, metadata=LEFT_OUT)
    """Highest forgotten revision up to which a person has accepted that etcd was set back; 0: it
    never was.
    """
    non_blocking_until: Time = field(default="", metadata=LEFT_OUT)
    """The table's clock when its mode ceased to be NonBlocking: commits up to then may overlap."""
    adopted: bool = field(default=False, metadata=LEFT_OUT)
    """The gate was open for this HudiTable before: instants that were pending without an owner
    until then have been handled.
    """
    restore_baseline: str = field(default="", metadata=LEFT_OUT)
    """Nonce of `spec.restore` when the gate first opened for this HudiTable: it
    is never executed.
    """
    restoring: str = field(default="", metadata=LEFT_OUT)
    """Nonce of the restore for which the gate is closed, with no writer left."""
    closed_for: str = field(default="", metadata=LEFT_OUT)
    """The change for which the gate is closed, in words: a run that reads it between two commits
    ends (F44).
    """
    closed_for_ms: Ms = field(default=0, metadata=LEFT_OUT)
    """Time at which the gate was closed for a change; `changeTimeoutSeconds` starts then, for any
    operator.
    """
    reason: str = field(default="", metadata=LEFT_OUT)
    """Why it is frozen."""
    reached: bool = field(default=False, metadata=LEFT_OUT)
    """This HudiTable's own credentials have read or created the table."""
    gave_way: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    """HudiTables (namespace/name) that had the gate, did not reach the table and gave the gate up
    for another one of the same path, the last one last. Empty once the gate was open.
    """

    @property
    def was_open(self) -> bool:
        """Whether the gate is, or ever was, open for its HudiTable."""
        return self.adopted or self.state is GateState.OPEN


@dataclass(frozen=True, kw_only=True)
class Admit(Record):
    """An attempt that may register."""

    attempt: str = ""
    role: str = ""
    at_ms: Ms = 0


@dataclass(frozen=True, kw_only=True)
class Registration(Record):
    """An incarnation: one start of a JVM (of an agent: one JVM and table session)."""

    inc: str = ""
    attempt: str = ""
    role: str = ""
    pod: str = ""
    namespace: str = ""
    pod_uid: str = ""
    node: ObjectName = ""
    boot_id: Short = ""
    """Boot id of the node, as read by the JVM."""
    app_id: Short = ""
    """Spark's application id, from the second `register` on."""
    priority: int = 0
    protocol_version: Count | None = None
    wall_clock_ms: Ms | None = None

    @property
    def is_agent(self) -> bool:
        """Role agent."""
        return self.role == Role.AGENT


@dataclass(frozen=True, kw_only=True)
class Alive(Record):
    """Heartbeat of an incarnation, on its lease."""

    inc: str = ""
    n: Count = 0
    """Counts puts."""


@dataclass(frozen=True, kw_only=True)
class Lock(Record):
    """The table's lock. It has no lease; in mode LeaseOnly it has its owner's."""

    REQUIRED: ClassVar[frozenset[str]] = frozenset({"inc"})

    inc: str = ""
    attempt: str = ""
    pod_uid: str = ""
    nonce: str = ""
    since_ms: Ms | None = None


@dataclass(frozen=True, kw_only=True)
class Ticket(Record):
    """A place in the queue for the lock, on the lease of its incarnation."""

    inc: str = ""
    priority: int = 0
    overtaken: Count = 0
    since_ms: Ms | None = None


@dataclass(frozen=True, kw_only=True)
class InstantRecord(Record):
    """The owner of an instant.

    The record is put before any file of the instant (F12), and deleted when the instant is
    completed or gone.
    """

    REQUIRED: ClassVar[frozenset[str]] = frozenset({"inc"})

    inc: str = ""
    action: Short = ""
    """Hudi's action on the timeline."""
    state: InstantState | None = None
    claimed_by: str = field(default="", metadata=LEFT_OUT)
    """Incarnation of the agent that is its only executor (I12)."""
    at_ms: Ms = 0

    @property
    def pending(self) -> bool:
        """True unless its owner abandoned it."""
        return self.state is InstantState.PENDING

    @property
    def abandoned(self) -> bool:
        """True when its owner abandoned it. This is final."""
        return self.state is InstantState.ABANDONED


@dataclass(frozen=True, kw_only=True)
class Clock(Record):
    """The table's clock: no new instant under this lock is older (I10)."""

    value: Time = ""


@dataclass(frozen=True, kw_only=True)
class Fence(Record):
    """An incarnation that may never acquire, publish or register again (I2)."""

    inc: str = ""
    reason: str = ""
    at_ms: Ms = 0


@dataclass(frozen=True, kw_only=True)
class Pulse(Record):
    """The leading operator lives, and etcd has what it wrote last (F620). Of no table."""

    forgotten: Count = 0
    """Grows each time this etcd is found set back: to the highest revision known then, at least.

    0: it never was.
    """
    at_ms: Ms = 0


@dataclass(frozen=True, kw_only=True)
class Sighting(Record):
    """The node on which an incarnation was seen alive.

    It counts while that node reported the registered boot id (F43).
    """

    inc: str = ""
    pod_uid: str = ""
    node: str = ""
    node_uid: str = ""
    machine: str = ""
    """System UUID of the node."""
    boot_id: str = ""
