"""Times at which a table's pods are listed widely without a decision that needs it.

The narrow list of a look has the pods that bear the table's label, and those of its agent. A wide
list also finds pods that the narrow one cannot show and that somebody has to remove: an executor
that a template has left without our labels (F26, F51), and an agent that no table uses any more. So
a table is listed widely at first, then once an hour, and as long as the last wide list has found
such a pod.

Where absence decides, `plan/fencing/absence.py` asks for the wide list, regardless of this module.
"""

from __future__ import annotations

from collections.abc import Callable

from hudi_operator.control.queue import Key

WIDE_SECONDS = 3600.0


class WideLooks:
    """By table: when its pods were listed widely, and whether the list has shown more."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock``: monotonic, in seconds."""
        self._clock = clock
        self._taken: dict[Key, float] = {}

    def due(self, key: Key) -> bool:
        """Whether the next list is to be a wide one."""
        taken = self._taken.get(key)
        return taken is None or self._clock() - taken >= WIDE_SECONDS

    def taken(self, key: Key, *, shown_more: bool) -> None:
        """A wide list was read. ``shown_more``: it has pods that a narrow one has not."""
        if shown_more:
            self._taken.pop(key, None)
        else:
            self._taken[key] = self._clock()

    def forget(self, key: Key) -> None:
        """Forget a table at which no look is made any more."""
        self._taken.pop(key, None)
