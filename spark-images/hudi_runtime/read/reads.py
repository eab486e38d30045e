"""The reads of a table that a program has named by `read_table()`, and the batches made from them.

As TableReads.java does for all reads, reads and batches are numbered, and belong to a thread. A
thread is known by a unique value: idents are reused as soon as a thread has ended (F443).
"""

from __future__ import annotations

import threading
import uuid
from collections import deque
from dataclasses import dataclass, field

from hudi_runtime.read.update import Base

MOST_READS = 1_000
"""Limit on the reads that are remembered; if there are more, the two oldest count as one."""


@dataclass(frozen=True)
class _Batches:
    """The last batch of a thread, or of the process."""

    number: int = 0
    """Number of the batch, in the order of reads and batches; 0: there was none."""
    base: Base | None = None
    """Base of the rows that it may be made from; for the process, of rows that any batch could be
    made from.
    """


class _Thread(threading.local):
    def __init__(self) -> None:
        self.name = uuid.uuid4().hex
        self.last = _Batches()


@dataclass(frozen=True)
class _Read:
    number: int
    thread: str
    base: Base


@dataclass
class Reads:
    """The reads of one process."""

    _mine: _Thread = field(default_factory=_Thread)
    _last: _Batches = field(default_factory=_Batches)
    _reads: deque[_Read] = field(default_factory=deque)
    _number: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def thread(self) -> str:
        """Name of the calling thread, which no other thread of this process ever has."""
        return self._mine.name

    def add(self, base: Base) -> None:
        """The calling thread has read rows."""
        with self._lock:
            self._number += 1
            self._reads.append(_Read(self._number, self.thread, base))
            if len(self._reads) > MOST_READS:
                one, other = self._reads.popleft(), self._reads.popleft()
                self._reads.appendleft(_Read(other.number, other.thread, _oldest([one.base, other.base])))

    def of_batch(self) -> Base | None:
        """The base of the rows that a batch of the calling thread may be made from.

        These are the rows that this thread has read since its previous batch. If there are none,
        those that other threads have read since then; otherwise those of that batch. For a thread
        without a batch the last one of the process counts, with all that could be in it. None:
        nothing was read.
        """
        with self._lock:
            before = self._mine.last if self._mine.last.number else self._last
            own = [r.base for r in self._reads if r.thread == self.thread and r.number > self._mine.last.number]
            found = own or [r.base for r in self._reads if r.thread != self.thread and r.number > before.number]
            base = _oldest(found) if found else before.base
            since = [r.base for r in self._reads if r.number > self._last.number]
            self._number += 1
            self._mine.last = _Batches(self._number, base)
            self._last = _Batches(self._number, _oldest(since) if since else self._last.base)
            return base


def _oldest(bases: list[Base]) -> Base:
    return min(bases, key=lambda base: base.completion)
