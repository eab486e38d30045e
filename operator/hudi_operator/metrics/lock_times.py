"""Times for which writers and agents wait for a table's lock and hold it, from etcd's watch.

A change counts from when it arrives here. Waits and holds that began before the watch are not
counted.
"""

from __future__ import annotations

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable

from hudi_contract import keys, naming
from hudi_contract.keys import Kind
from hudi_operator.adapters.etcd_watch import Change

Observe = Callable[[str, float], None]
"""Receives table id and seconds."""

MOST_TICKETS = 1000
"""Places in the queue of one table that are remembered; a queue's keys are put by tenants."""


class LockTimes:
    """Follows locks and queues of all tables; called on the watch's thread."""

    def __init__(
        self, prefix: str, *, waited: Observe, held: Observe, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pattern = re.compile(
            rf"^{re.escape(prefix)}/{keys.TABLES}/({naming.TABLE_ID})/({Kind.LOCK}|{Kind.QUEUE})(/.*)?$"
        )
        self._waited, self._held, self._clock = waited, held, clock
        self._mutex = threading.Lock()
        self._late = 0
        self._locks: dict[str, float] = {}
        self._tickets: defaultdict[str, dict[str, float]] = defaultdict(dict)
        """By table and name."""

    def take(self, changes: list[Change]) -> None:
        """Take changes of one watch, in their order."""
        now = self._clock()
        by_revision: dict[int, list[tuple[str, str, str, bool]]] = {}
        for change in changes:
            if change.revision > self._late and (match := self._pattern.match(change.key)):
                table, kind, name = match.group(1), match.group(2), match.group(3) or ""
                by_revision.setdefault(change.revision, []).append((table, kind, name, change.deleted))
        with self._mutex:
            for transaction in by_revision.values():
                self._transaction(transaction, now)

    def lost(self) -> None:
        """Changes may have been missed: waits and holds in progress are not counted."""
        with self._mutex:
            self._locks.clear()
            self._tickets.clear()

    def resumed(self, revision: int) -> None:
        """The watch was interrupted: changes until this revision come late and do not count."""
        self.lost()
        self._late = revision

    def _transaction(self, changes: list[tuple[str, str, str, bool]], now: float) -> None:
        acquired = {table for table, kind, _, deleted in changes if kind == Kind.LOCK and not deleted}
        waited = dict.fromkeys(acquired, 0.0)
        for table, kind, name, deleted in changes:
            if kind == Kind.QUEUE and not deleted:
                if len(self._tickets[table]) < MOST_TICKETS:
                    self._tickets[table].setdefault(name, now)
            elif kind == Kind.QUEUE:
                since = self._tickets[table].pop(name, None)
                if not self._tickets[table]:
                    del self._tickets[table]
                if table in acquired:  # the acquire deletes its ticket in its own transaction
                    if since is None:
                        waited.pop(table, None)
                    else:
                        waited[table] = now - since
            elif deleted:
                since = self._locks.pop(table, None)
                if since is not None:
                    self._held(table, now - since)
            else:
                self._locks[table] = now
        for table, seconds in waited.items():
            self._waited(table, seconds)
