"""Work queue of table keys.

One reconcile per table at a time, equal requests merged, failures retried with exponential
back-off. Tables that are due are taken from the namespaces in turn: a team with many busy tables
delays other teams no more than one with a single table does (F276).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
import time
from collections import deque
from collections.abc import Callable

from hudi_contract.backoff import exponential

Key = tuple[str, str]
"""Namespace and name of a HudiTable, existing or only referenced."""

MIN_INTERVAL_SECONDS = 0.2
"""Minimum time between two looks at a table, whatever the number of events."""
MAX_HELD_SECONDS = 5.0
"""After a failure no event triggers a look before the back-off or this time: the failed action may
itself cause the event.
"""
_FIRST_BACKOFF_SECONDS = 0.5
_MAX_BACKOFF_SECONDS = 60.0


class WorkQueue:
    """A queue belongs to one event loop.

    Other threads use ``loop.call_soon_threadsafe(queue.add, key)``.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._ready: dict[str, deque[Key]] = {}
        """Keys that are due, by namespace: the namespace whose turn is next first."""
        self._counter = itertools.count()
        self._running: set[Key] = set()
        self._again: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._not_before: dict[Key, float] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """Keys that are due now."""
        now = self._clock()
        return sum(1 for due in self._due.values() if due <= now)

    def add(self, key: Key, delay: float = 0.0) -> None:
        """Schedule ``key`` for ``delay`` seconds from now at the latest.

        An earlier request stays.
        """
        due = max(self._clock() + delay, self._not_before.get(key, 0.0))
        if key in self._running:
            self._again[key] = min(due, self._again.get(key, due))
            return
        if key in self._due and self._due[key] <= due:
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, next(self._counter), key))
        self._changed.set()

    async def get(self) -> Key:
        """Wait for the next key that is due; the caller must call :meth:`done` with it."""
        while True:
            wait = self._collect()
            if self._ready:
                key = self._next()
                del self._due[key]
                self._running.add(key)
                return key
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), timeout=wait)
            except TimeoutError:
                continue

    def _next(self) -> Key:
        """The key that has been due for longest, of the namespace whose turn it is."""
        namespace = next(iter(self._ready))
        waiting = self._ready.pop(namespace)
        key = waiting.popleft()
        if waiting:
            self._ready[namespace] = waiting  # at the end: the others come first
        return key

    def _collect(self) -> float | None:
        """Move keys that are due to those that are ready; superseded entries are dropped.

        Returns the seconds until the next one is due; None when there is none.
        """
        while self._heap:
            due, _, key = self._heap[0]
            wait = due - self._clock()
            if self._due.get(key) == due:
                if wait > 0:
                    return wait
                self._ready.setdefault(key[0], deque()).append(key)
            heapq.heappop(self._heap)
        return None

    def done(self, key: Key, *, again: float | None) -> None:
        """The look at ``key`` is finished.

        The next one is after ``again`` seconds (None: only on request).
        """
        self._running.discard(key)
        held = MIN_INTERVAL_SECONDS
        if key in self._failures and again is not None:
            held = max(held, min(again, MAX_HELD_SECONDS))
        self._not_before[key] = self._clock() + held
        requested = self._again.pop(key, None)
        if requested is not None:
            self.add(key, max(0.0, requested - self._clock()))
        if again is not None:
            self.add(key, again)
        elif requested is None:
            self._not_before.pop(key, None)

    def failed(self, key: Key) -> float:
        """Count a failure; returns the delay before the next try: exponential, with jitter."""
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        return exponential(
            failures,
            first=_FIRST_BACKOFF_SECONDS,
            longest=_MAX_BACKOFF_SECONDS,
        ) * random.uniform(0.7, 1.3)  # noqa: S311 - jitter

    def succeeded(self, key: Key) -> None:
        """Forget the failures of ``key``."""
        self._failures.pop(key, None)
