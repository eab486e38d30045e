"""The operator's writes in one numbering over API server and etcd, and the one fault that a run
injects into one of them.

A write is known by its name (its effect, without anything that differs from run to run) and its
turn (the n-th write of that name).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum


class Fault(StrEnum):
    """Fate of one write."""

    KILLED_BEFORE = "killed before"
    """The operator is killed; nobody ever receives the request."""
    KILLED_AFTER = "killed after"
    """Applied; the operator is killed before it can read the answer."""
    CONFLICT = "409"
    """API server: 409, not applied. etcd: the compared keys are written by somebody else first,
    with the same value.
    """
    TOO_MANY = "429"
    """Not applied. etcd: RESOURCE_EXHAUSTED, too many requests."""
    ERROR = "500"
    """Not applied. etcd: UNAVAILABLE, leader changed."""
    TIMEOUT = "timeout but applied"
    """Applied; no answer until the client's own deadline is over."""
    LOST = "response lost"
    """Applied; the connection ends instead of an answer."""
    LATE = "applied late"
    """The connection ends first; applied two seconds later, when the operator has gone on."""


KILLS = frozenset({Fault.KILLED_BEFORE, Fault.KILLED_AFTER})
LATE_SECONDS = 2.0


@dataclass(frozen=True)
class Target:
    """One write of a run."""

    name: str
    turn: int = 1

    def __str__(self) -> str:
        return self.name if self.turn == 1 else f"{self.name} #{self.turn}"


@dataclass
class Injector:
    """Numbers the writes of one run; the proxies ask it what to do with each.

    Without target it only records.
    """

    kill: Callable[[], None]
    """Kills the operator; returns when its process is gone."""
    target: Target | None = None
    fault: Fault | None = None
    writes: list[Target] = field(default_factory=list)
    hit: bool = False
    _turns: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def sent(self, name: str) -> Fault | None:
        """The operator sends a write; what to do with it (None: let it pass)."""
        with self._lock:
            turn = self._turns[name] = self._turns.get(name, 0) + 1
            write = Target(name, turn)
            self.writes.append(write)
            if write != self.target or self.hit:
                return None
            self.hit = True
            return self.fault
