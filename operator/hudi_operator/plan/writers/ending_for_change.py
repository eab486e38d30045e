"""Attempts that block a change of the table (F44).

The change needs a closed gate without writers, and some attempts would never end by themselves.

A run with commit boundaries reads the gate between two commits and ends by itself (``run.py``).
Other attempts are stopped like a suspended writer (the pod is deleted with ``stop.graceSeconds``,
then it is fenced): an application at once, because its boundaries are unknown; an attempt that has
not registered at once, because it loses nothing; any other attempt after
``concurrency.changeTimeoutSeconds``.
"""

from __future__ import annotations

from hudi_operator.plan.core.actions import Action, StartTimer, StopTimer
from hudi_operator.plan.core.view import Attempt, View
from hudi_operator.plan.gate import gate


def _timer(attempt: Attempt) -> str:
    return f"change/{attempt.id}"


def timers(view: View, attempt: Attempt) -> tuple[Action, ...]:
    """The time that a running attempt has to reach a commit boundary, by this operator's own clock.

    The next operator takes it from the gate (F71).
    """
    waiting, runs = bool(gate.ends_runs(view)), view.timer(_timer(attempt)) is not None
    if waiting == runs:
        return ()
    return (StartTimer(_timer(attempt)) if waiting else StopTimer(_timer(attempt)),)


def asks(view: View, attempt: Attempt) -> bool:
    """True when a running attempt must be stopped from outside.

    It is stopped for the change for which the gate is closed.
    """
    if not gate.ends_runs(view):
        return False
    unregistered = not attempt.incs and not attempt.entry.incarnation
    at_once = attempt.writer.application is not None or unregistered
    # The longer one counts: timers are lost with an operator, and its wall clock may be set back.
    since = gate.closed_for_ms(view)
    over = bool(since) and view.now_ms - since >= view.table.change_timeout_seconds * 1000
    return at_once or over or view.elapsed(_timer(attempt), view.table.change_timeout_seconds)


def asked(view: View, attempt: Attempt) -> bool:
    """True when an attempt that has ended was stopped from outside for that change."""
    deleted = attempt.pod is not None and attempt.pod.deleting
    return bool(gate.ends_runs(view)) and (deleted or view.timer(f"stop/{attempt.id}") is not None)
