"""Attempts that stand in the way of a closed gate (F44): a change of the table needs nobody left, and some would never leave by themselves.

A run with commit boundaries reads the gate between two commits and ends by itself (``run.py``). Asked to end, as a suspended writer is (its pod is
deleted with ``stop.graceSeconds``, then it is fenced), is who cannot do so: an application at once, because nobody knows its boundaries; an attempt
that has not registered, because nothing of it is lost; any other when ``concurrency.changeTimeoutSeconds`` are over.
"""

from __future__ import annotations

from hudi_operator.plan.core.actions import Action, StartTimer, StopTimer
from hudi_operator.plan.core.view import Attempt, View
from hudi_operator.plan.gate import gate


def _timer(attempt: Attempt) -> str:
    return f"change/{attempt.id}"


def timers(view: View, attempt: Attempt) -> tuple[Action, ...]:
    """The time that a running attempt has to come to a commit boundary, by this operator's own clock; the gate tells it to the next one (F71)."""
    waiting, runs = bool(gate.ends_runs(view)), view.timer(_timer(attempt)) is not None
    if waiting == runs:
        return ()
    return (StartTimer(_timer(attempt)) if waiting else StopTimer(_timer(attempt)),)


def asks(view: View, attempt: Attempt) -> bool:
    """True when a running attempt is to be stopped from outside for the change that the gate is closed for."""
    if not gate.ends_runs(view):
        return False
    unregistered = not attempt.incs and not attempt.entry.get("incarnation")
    at_once = attempt.writer.application is not None or unregistered
    # Whichever is longer: timers die with an operator, and its wall clock may be set back.
    since = gate.closed_for_ms(view)
    over = bool(since) and view.now_ms - since >= view.table.change_timeout_seconds * 1000
    return at_once or over or view.elapsed(_timer(attempt), view.table.change_timeout_seconds)


def asked(view: View, attempt: Attempt) -> bool:
    """True when an attempt that has ended was stopped from outside for that change."""
    deleted = attempt.pod is not None and attempt.pod.deleting
    return bool(gate.ends_runs(view)) and (deleted or view.timer(f"stop/{attempt.id}") is not None)
