"""Problems that each look at a table finds again: logged once, and then once a minute.

Looks come every second while something is settled, whatever is refused meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

AGAIN_SECONDS = 60.0
"""Minimum time between two log records of one problem."""


class Repeated:
    """What was logged lately, by this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: seconds, monotonic."""
        self._clock = clock
        self._logged: dict[Hashable, float] = {}

    def due(self, problem: Hashable) -> bool:
        """Whether a problem is logged now; what is not asked for again is forgotten."""
        now = self._clock()
        for old in [one for one, at in self._logged.items() if now - at >= AGAIN_SECONDS]:
            del self._logged[old]
        if problem in self._logged:
            return False
        self._logged[problem] = now
        return True
