"""How long whoever repeats something waits: one rule in operator, agents and drivers. Jitter is the caller's, who may use chance."""

from __future__ import annotations

FACTOR = 2.0
_MOST_STEPS = 60
"""Twice as long sixty times over is longer than any limit; what fails for days must not overflow."""


def exponential(failures: int, *, first: float, longest: float) -> float:
    """The wait after so many failures in a row, in the unit of ``first``: ``first`` after one, then each time twice as long, at most ``longest``.

    0 when nothing has failed.
    """
    return 0.0 if failures <= 0 else min(first * FACTOR ** min(failures - 1, _MOST_STEPS), longest)
