"""Problems that each look at a table finds again: logged once, and then once a minute.

Looks come every second while something is settled, whatever is refused meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

AGAIN_SECONDS = 60.0
"""Minimum time between two log records of one problem."""


class Repeated:
    """Decides whether a problem is logged, by those that this process has logged lately."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: seconds, monotonic."""
        self._clock = clock
        self._logged: dict[Hashable, float] = {}

    def due(self, problem: Hashable) -> bool:
        """True when a problem is to be logged now.

        Problems that do not come again are forgotten.
        """
        now = self._clock()
        for old in [one for one, at in self._logged.items() if now - at >= AGAIN_SECONDS]:
            del self._logged[old]
        if problem in self._logged:
            return False
        self._logged[problem] = now
        return True
