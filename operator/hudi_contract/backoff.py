"""The pauses of operator, agents and drivers: between looks, and after failures.

Jitter is left to the caller, which may use randomness.
"""

from __future__ import annotations

FACTOR = 2.0
LONGEST_PAUSE_SECONDS = 15.0
"""Upper bound of a pause while others may be waiting.

It holds for the time between two looks of the operator at a table at which nothing is expected,
between two listings of an idle table by its agent, between two tries of an agent to serve a table,
and between two tries of a driver to commit.
"""
_MOST_STEPS = 60
"""Sixty doublings exceed any limit; the cap keeps days of failures from overflowing."""


def exponential(failures: int, *, first: float, longest: float) -> float:
    """The wait after this many failures in a row, in the unit of ``first``.

    ``first`` after one failure, doubled with each further one, at most ``longest``.

    0 when nothing has failed.
    """
    return 0.0 if failures <= 0 else min(first * FACTOR ** min(failures - 1, _MOST_STEPS), longest)
