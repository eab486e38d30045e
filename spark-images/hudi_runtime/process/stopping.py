"""SIGTERM: finish the commit at hand if it fits into the grace, else cancel it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

GRACE_VARIABLE = "HUDI_OPERATOR_STOP_GRACE_SECONDS"
DEFAULT_GRACE_SECONDS = 30.0
LEAVE_SECONDS = 10.0
"""Kept of the grace for giving up the instant and deregistering; at most 40 % of it."""


def working_seconds(grace: float) -> float:
    """How long work may go on after SIGTERM when SIGKILL follows `grace` seconds after it."""
    return max(grace - LEAVE_SECONDS, 0.6 * grace)


class Stop:
    """Set by SIGTERM. `on_grace_over` runs on a thread of its own when the grace is over and the process still works."""

    def __init__(self, on_grace_over: Callable[[], None]) -> None:
        self._event = threading.Event()
        self._on_grace_over = on_grace_over

    def install(self) -> None:
        """Handle SIGTERM from now on (main thread only)."""
        signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._event.is_set():
            return
        self._event.set()
        grace = float(os.environ.get(GRACE_VARIABLE, DEFAULT_GRACE_SECONDS))
        timer = threading.Timer(working_seconds(grace), self._on_grace_over)
        timer.daemon = True
        timer.start()

    @property
    def requested(self) -> bool:
        """Whether the process was asked to stop."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait, but not longer than until somebody asks to stop; True when that happened."""
        return self._event.wait(seconds)
