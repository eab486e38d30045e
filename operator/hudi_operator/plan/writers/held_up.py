"""Waits of a running attempt that are not its own work.

Such time counts towards none of its deadlines (:mod:`deadlines`): the table's gate, the table's
lock, the turn of another writer, and input that is not there yet.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_contract.keys import attempt_report
from hudi_contract.records import read
from hudi_contract.reports import AttemptReport
from hudi_contract.table_keys import Ticket
from hudi_contract.words import GateState, Stage
from hudi_operator.plan.core.view import Attempt, Incarnation, View, ticket_owner
from hudi_operator.plan.gate import gate

NOTED_SECONDS = 10
"""A shorter wait is not noted in status, and counts: each commit waits a little for the lock."""


@dataclass(frozen=True)
class Wait:
    """``what`` an attempt waits for, in words."""

    what: str
    since_ms: int = 0
    """Begin of the wait, by the clock of the process that reports it; 0: not known."""
    counts: bool = False
    """The time counts towards the deadline, but the attempt is not stopped during the wait."""
    told: bool = False
    """Its end comes as an event."""

    def began_ms(self, now_ms: int) -> int:
        """Begin of the wait, no later than now."""
        return min(self.since_ms, now_ms) if self._known(now_ms) else now_ms

    def _known(self, now_ms: int) -> bool:
        """Clocks may differ by some seconds."""
        return 0 < self.since_ms <= now_ms + 1000 * NOTED_SECONDS

    def is_noted(self, now_ms: int) -> bool:
        """True when it has lasted for so long that status says so, or that is not known."""
        lasts = not self._known(now_ms) or now_ms - self.since_ms >= 1000 * NOTED_SECONDS
        return lasts and not self.counts


def what(view: View, attempt: Attempt) -> Wait | None:
    """The wait that holds the attempt up; None: it waits for its own work alone."""
    mine = [i for i in attempt.incs if not i.fenced and i.record is None]
    return _gate(view) or (_lock(view, mine) or _others(view, attempt) if mine else None)


def _gate(view: View) -> Wait | None:
    """No attempt begins a commit, and one that runs is asked to end (:mod:`ending_for_change`)."""
    state = view.gate.state
    if state is GateState.OPEN:
        return None
    return Wait(f"the table's gate, which is {state or 'missing'}", gate.closed_for_ms(view))


def _lock(view: View, mine: list[Incarnation]) -> Wait | None:
    """Wait for the lock; its owner is about to commit, and is fenced if that takes too long."""
    if any(i.lock is not None for i in mine):
        return Wait("the end of its commit: it holds the table's lock", counts=True)
    # Also an attempt that is about to begin, and waits for the lock of its predecessor.
    dead = None if view.etcd.lock is None else next((i for i in view.incs if i.lock is not None and i.fenced), None)
    waits_for = "the table's lock" if dead is None else f"the table's lock, which {dead.label} cannot give back"
    if any(i.queued for i in mine):
        return Wait(waits_for, _queued_since_ms(view, {i.inc for i in mine}))
    return Wait(waits_for) if dead is not None else None


def _queued_since_ms(view: View, names: set[str]) -> int:
    tickets = [t.read(Ticket) for name, t in view.etcd.queue.items() if ticket_owner(name, t) in names]
    return min((t.since_ms or 0 for t in tickets), default=0)


def _others(view: View, attempt: Attempt) -> Wait | None:
    """Wait that its driver reports. A stream that has caught up has nothing to commit."""
    report = read(view.etcd.reports.get(attempt_report(attempt.id)), AttemptReport)
    if report.stage == Stage.YIELDING:
        return Wait("another writer, which goes first", report.at_ms)
    return Wait("new input", report.at_ms, told=True) if report.stage == Stage.WAITING else None
