"""Tables whose lock is held for long, according to etcd's watch.

Looks at a table measure how long an owner has held its lock. A lock that is taken and given back
leads to no look, or there would be one for each commit; a lock that stays does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from hudi_contract import keys, naming
from hudi_contract.keys import Kind

LONG_SECONDS = 5.0


class Change(Protocol):
    """One change of one key."""

    @property
    def key(self) -> str:
        """The whole key."""

    @property
    def deleted(self) -> bool:
        """True when the key is gone."""


class HeldLocks:
    """An instance belongs to one event loop. A change counts from when it arrives here."""

    def __init__(self, prefix: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._pattern = re.compile(rf"^{re.escape(prefix)}/{keys.TABLES}/({naming.TABLE_ID})/{Kind.LOCK}$")
        self._clock = clock
        self._since: dict[str, float] = {}

    def take(self, changes: Iterable[Change]) -> None:
        """Take changes of one watch, in their order."""
        now = self._clock()
        for change in changes:
            match = self._pattern.match(change.key)
            if match and change.deleted:
                self._since.pop(match.group(1), None)
            elif match:
                self._since[match.group(1)] = now

    def long(self) -> list[str]:
        """Ids of the tables whose lock has become a long-held one since the last call."""
        until = self._clock() - LONG_SECONDS
        found = [table_id for table_id, since in self._since.items() if since <= until]
        for table_id in found:
            del self._since[table_id]
        return found
