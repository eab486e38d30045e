"""Output of the demo: steps, facts and waits.

With a spinner on a terminal, as plain lines elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from rich.console import Console
from rich.status import Status

Answer = TypeVar("Answer")


class DemoFailed(Exception):
    """The demo cannot continue; the message has the awaited state and the last observation."""


class Screen:
    """Prints progress with the seconds since the start."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self._started = time.monotonic()
        self._status: Status | None = None

    def elapsed(self) -> float:
        return time.monotonic() - self._started

    def step(self, text: str) -> None:
        """Announce a new part of the scenario."""
        self.console.print(f"\n[bold][{self.elapsed():5.0f} s] {text}[/bold]")

    def fact(self, text: str) -> None:
        """Report an event."""
        self.console.print(f"[{self.elapsed():5.0f} s]   {text}", markup=False)

    def wait(
        self, what: str, probe: Callable[[], tuple[Answer | None, str]], *, seconds: float, every: float = 1.0
    ) -> Answer:
        """Call ``probe`` until it returns an answer; the observation of each call is shown.

        Raises DemoFailed after ``seconds``.
        """
        deadline = time.monotonic() + seconds
        shown, shown_at = "", 0.0
        with self.console.status(f"waiting for {what}") as spinner:
            while True:
                answer, seen = probe()
                if answer is not None:
                    return answer
                if time.monotonic() > deadline:
                    raise DemoFailed(f"waited {seconds:.0f} s for {what}; last seen: {seen or 'nothing'}")
                if self.console.is_terminal:
                    spinner.update(f"waiting for {what}: {seen}")
                elif (seen != shown and time.monotonic() > shown_at + 5) or time.monotonic() > shown_at + 30:
                    self.fact(f"waiting for {what}: {seen}")
                    shown, shown_at = seen, time.monotonic()
                time.sleep(every)
