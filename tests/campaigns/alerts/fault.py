"""A fault for an alert."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.campaigns.alerts.stage import Stage


def nothing() -> None:
    """It ends by itself."""


@dataclass
class Made:
    """A fault that is there.

    ``labels``: of the alert that it must raise, beside its name. ``shows``: what the runbook's
    commands must show, because it tells the cause. ``words``: what stands for the words in capitals
    in the commands. ``again``: done again and again as long as the fault lasts.
    """

    labels: dict[str, str]
    shows: tuple[str, ...]
    repair: Callable[[], None] = nothing
    words: dict[str, str] = field(default_factory=dict)
    again: Callable[[], None] | None = None
    every: float = 1.0
    """Seconds between two of these."""
    seconds: float = 60.0
    """Within these it must have fired."""
    lasts: float = 60.0
    """Within these, after the repair, it must have ended."""


@dataclass(frozen=True)
class Fault:
    """How to make a fault, with the words of the page."""

    alert: str
    done: str
    """What is done."""
    repaired: str
    """What is done of the runbook's mitigation."""
    make: Callable[[Stage], Made]
