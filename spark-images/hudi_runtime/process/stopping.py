"""SIGTERM: finish the running commit if the grace period allows it, else cancel it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

from hudi_contract.environment import STOP_GRACE_SECONDS

DEFAULT_GRACE_SECONDS = 30.0
LEAVE_SECONDS = 10.0
"""Part of the grace period reserved for abandoning the instant and deregistering; at most 40
% of it.
"""


def working_seconds(grace: float) -> float:
    """Seconds of work left after SIGTERM when SIGKILL follows after `grace` seconds."""
    return max(grace - LEAVE_SECONDS, 0.6 * grace)


class Stop:
    """Set by SIGTERM.

    `on_grace_over` runs on a separate thread when the grace period ends and the
    process still works.
    """

    def __init__(self, on_grace_over: Callable[[], None]) -> None:
        self._event = threading.Event()
        self._cancelled = threading.Event()
        self._on_grace_over = on_grace_over

    def install(self) -> None:
        """Handle SIGTERM from now on (main thread only)."""
        signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._event.is_set():
            return
        self._event.set()
        grace = float(os.environ.get(STOP_GRACE_SECONDS, DEFAULT_GRACE_SECONDS))
        timer = threading.Timer(working_seconds(grace), self._over)
        timer.daemon = True
        timer.start()

    def _over(self) -> None:
        self._cancelled.set()  # before it has any effect
        self._on_grace_over()

    @property
    def requested(self) -> bool:
        """Whether the process was asked to stop."""
        return self._event.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether the grace period is over, so that what still worked was cancelled."""
        return self._cancelled.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for at most `seconds` or until a stop is requested; True when it was requested."""
        return self._event.wait(seconds)
