"""State of one table according to a trace: the keys of etcd as far as the protocol log shows them,
and the meaning of each compare on them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.trace.events import Event, short

PHASES = ("Fenced", "Terminating", "Draining", "Unlocked", "RollingBack", "Swept", "Settled")


@dataclass
class Record:
    """instant/<t>."""

    owner: str
    state: str = "Pending"
    claimed: str = ""
    promised: str = ""
    """Completion time that was promised to it; empty: never asked for leave to publish."""
    token: int = 0
    """Token under which it was promised."""

    @property
    def executor(self) -> str:
        """The one incarnation that may publish it."""
        return self.claimed or self.owner


@dataclass
class TableState:
    """The abstract state on which a trace is replayed."""

    gate: str = ""
    admits: set[str] = field(default_factory=set)
    writers: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    """Incarnations that were registered once and are not any more."""
    fences: set[str] = field(default_factory=set)
    owner: str = ""
    token: int = 0
    """Create revision of the lock while it is held."""
    last_token: int = 0
    instants: dict[str, Record] = field(default_factory=dict)
    clock: str = ""
    settles: dict[str, str] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    unresolved: dict[str, set[str]] = field(default_factory=dict)
    """Per incarnation: instants whose publication it drains."""
    given_up: dict[str, str] = field(default_factory=dict)
    """Instant → owner that had given it up, after the agent has removed its record."""
    holders: dict[str, frozenset[str]] = field(default_factory=dict)
    """Instant → every incarnation that ever owned or claimed it; kept when the record goes."""
    leave: frozenset[str] = frozenset()
    """Instants that ever got leave to publish."""
    outcomes: dict[tuple[str, str], str] = field(default_factory=dict)
    """(Incarnation, instant) → its outcome according to the agent, if it is in the log."""
    outcomes_logged: bool = True
    """False: the agent's lines of this trace do not tell outcomes."""
    maybe: list[Event] = field(default_factory=list)
    """Steps of unknown outcome that etcd may still execute."""
    lease_only: bool = False
    no_operator: bool = False
    """The operator's log is missing: its steps (admissions, gate, fences, unlocks, phases) are
    assumed to have been allowed.
    """
    handed_over: set[str] = field(default_factory=set)
    """Without the operator's log: instants that were claimed although no JVM has recorded them
    (adopted, then).
    """
    no_jvms: bool = False
    """The logs of drivers and agents are missing: their steps are assumed to have been allowed."""

    def copy(self) -> TableState:
        """An independent copy."""
        return copy.deepcopy(self)

    def holder(self) -> str:
        """The lock's owner for a sentence."""
        return f"{short(self.owner)} holds it" if self.owner else "nobody holds it"

    def hold(self, instant: str, inc: str) -> None:
        """`inc` owns or has claimed the instant."""
        self.holders[instant] = self.holders.get(instant, frozenset()) | {inc}

    def left_by(self, inc: str) -> list[str]:
        """Instants that an incarnation owns or has claimed."""
        return sorted(t for t, r in self.instants.items() if inc in (r.owner, r.claimed))

    def proven(self, inc: str) -> bool:
        """Whether an incarnation can do nothing any more: settled as far as proof and drain, or
        gone by a clean exit, which leaves nothing Pending.
        """
        if self.no_operator:
            return True
        phase = self.settles.get(inc)
        return phase in ("RollingBack", "Swept", "Settled") if phase else inc not in self.writers


Compare = Callable[[TableState, Event], bool | None]


def _attempt(s: TableState, e: Event) -> str:
    return e.attempt or s.writers.get(e.actor, "")


def _recorded(s: TableState, e: Event) -> Record | None:
    return s.instants.get(e.instant)


def _mine_and_pending(s: TableState, e: Event) -> bool:
    r = _recorded(s, e)
    return r is not None and r.state == "Pending" and r.executor == e.actor


# The meaning of each compare of protocol.json on a trace; None: the log does not show it.
COMPARES: dict[str, Compare] = {
    "version(admit/<attempt>) > 0": lambda s, e: s.no_operator or _attempt(s, e) in s.admits,
    "version(admit/<attempt>) = 0": lambda s, e: e.key.removeprefix("admit/") not in s.admits,
    "version(fence/<inc>) = 0": lambda s, e: e.subject not in s.fences,
    "version(fence/<inc>) > 0": lambda s, e: e.subject in s.fences,
    "version(writer/<inc>) > 0": lambda s, e: e.actor in s.writers,
    "version(writer/<inc>) = 0": lambda s, e: e.subject not in s.writers,
    "version(lock) = 0": lambda s, e: not s.owner or s.lease_only or s.no_operator,
    "mod(alive/<inc>) = m": lambda s, e: None,
    "mod(gate) = g": lambda s, e: None,
    "value(lock) = mine": lambda s, e: s.owner == e.actor,
    "create(lock) = token": lambda s, e: s.owner == e.actor and s.token == e.token,
    "create(lock) = seen and lock owned by inc": lambda s, e: (
        s.no_jvms or (s.token == e.token and bool(s.owner) and s.owner == e.subject)
    ),
    "version(instant/<t>) = 0": lambda s, e: e.instant not in s.instants,
    "mod(instant/<t>) = mine and Pending": _mine_and_pending,
    "mod(instant/<c>) = seen": lambda s, e: None,
    # Under its token a JVM alone moves the clock, and its log has one line for a request
    # and its repetitions
    "mod(clock) = seen": lambda s, e: True,
    "mod(gate) = seen": lambda s, e: None,
    "mod(gate of T2) = seen for each T2 whose folder overlaps, until the gate was open": lambda s, e: None,
    "version(lock) = 0 when the mode changes": lambda s, e: None,
    "version(alive/<inc>) = 0 when the reason is LeaseGone": lambda s, e: None,
    "mod(settle/<inc>) = seen": lambda s, e: None,
    "version(settle/<inc>) = 0": lambda s, e: e.subject not in s.settles,
}

BROKEN = {
    "version(admit/<attempt>) > 0": "its attempt was not admitted",
    "version(admit/<attempt>) = 0": "the attempt was admitted already",
    "version(fence/<inc>) = 0": "this incarnation was fenced before (I2)",
    "version(fence/<inc>) > 0": "this incarnation was never fenced (I1)",
    "version(writer/<inc>) > 0": "this incarnation is not registered",
    "version(writer/<inc>) = 0": "this incarnation is registered",
    "version(lock) = 0": "the lock was held (I1)",
    "version(settle/<inc>) = 0": "this incarnation has a settle record",
    "value(lock) = mine": "the lock is not its own (I1)",
    "create(lock) = token": "the lock is not held by it under this token (I1)",
    "create(lock) = seen and lock owned by inc": "the lock is not that incarnation's under this token (I1)",
    "version(instant/<t>) = 0": "the instant was recorded before",
    "mod(clock) = seen": "the clock had moved since it was read (I10)",
    "mod(instant/<t>) = mine and Pending": "the instant is not its own and Pending (I7)",
}
