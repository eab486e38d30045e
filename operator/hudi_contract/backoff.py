"""The exponential back-off of operator, agents and drivers.

Jitter is left to the caller, which may use randomness.
"""

from __future__ import annotations

FACTOR = 2.0
_MOST_STEPS = 60
"""Sixty doublings exceed any limit; the cap keeps days of failures from overflowing."""


def exponential(failures: int, *, first: float, longest: float) -> float:
    """The wait after this many failures in a row, in the unit of ``first``.

    ``first`` after one failure, doubled with each further one, at most ``longest``.

    0 when nothing has failed.
    """
    return 0.0 if failures <= 0 else min(first * FACTOR ** min(failures - 1, _MOST_STEPS), longest)
