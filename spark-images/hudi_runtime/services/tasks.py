"""What an agent does at one table, as tasks with one interface, and the one place of an agent for work that takes long.

A table's step asks each task in turn, about once a second, and waits for none: what takes long runs on a thread of its own.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pyspark.sql import SparkSession

from hudi_runtime.settle.settle import Records
from hudi_runtime.table import timeline as tl

POOL = "services"
"""Spark's scheduler pool: settling's jobs get the next free slot, not the one after the last task of a compaction."""
CLOSE_SECONDS = 15.0
"""A run whose jobs were cancelled ends soon; one that does not is left to the operator to settle, with everything else of this process."""


@dataclass(frozen=True)
class Look:
    """What one pass of the agent knows of a table."""

    requests: Mapping[str, Mapping[str, Any]]
    """What the operator asks for, by the request's id."""
    records: Records
    timeline: tl.Timeline = field(default_factory=tl.Timeline)
    """The last listing; empty before the first."""


class TableTask(ABC):
    """One thing that an agent does at one table. This much alone is a task that ends within the step."""

    exclusive: ClassVar[bool] = False
    """Whether nothing else is begun at the table while this task is under way."""

    @property
    def idle(self) -> bool:
        """Whether nothing of this task is under way."""
        return True

    @abstractmethod
    def consider(self, look: Look) -> None:
        """Begin what is asked for and due. Called by the table's step, which waits for nothing else."""

    def cancel(self) -> None:  # noqa: B027 - what ends within the step needs no asking
        """Ask what is under way to end; nothing is begun any more."""


@dataclass
class Slot:
    """The one place of an agent for long work: two at once would need twice the memory."""

    _executor: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=1, thread_name_prefix="service"))
    _taken: threading.Lock = field(default_factory=threading.Lock)

    def start(self, run: Callable[[], None]) -> Future[None] | None:
        """Run beside the caller; None when the place is taken. What is decided is done now or decided again later, never queued."""
        if not self._taken.acquire(blocking=False):
            return None

        def held() -> None:
            try:
                run()
            finally:
                self._taken.release()

        return self._executor.submit(held)

    def close(self) -> None:
        """Wait for the run under way; nothing is started any more."""
        self._taken.acquire(timeout=CLOSE_SECONDS)
        self._executor.shutdown(wait=False)


class LongTask(TableTask):
    """A task whose runs take long: one at a time, in the agent's one place."""

    def __init__(self, spark: SparkSession, slot: Slot, group: str) -> None:
        """``group`` is the group of Spark's jobs that a run belongs to."""
        self.spark = spark
        self._slot = slot
        self._group = group
        self._running: Future[None] | None = None
        self._cancelled = False

    @property
    def idle(self) -> bool:
        """Whether no run is under way."""
        return self._running is None or self._running.done()

    def cancel(self) -> None:
        """Ask Spark to end the jobs of the run under way. What it has begun stays as a dead agent would leave it."""
        self._cancelled = True
        if not self.idle:
            self.spark.sparkContext.cancelJobGroup(self._group)

    def _begin(self, run: Callable[[], None]) -> None:
        """Start a run, if the place is free; otherwise it is decided again at the next look."""
        self._running = self._slot.start(run) or self._running

    def _enter_pool(self, description: str) -> None:
        """Called by a run, on its thread: its jobs belong to the task's group, and leave free slots to settling."""
        context = self.spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", POOL)
        context.setJobGroup(self._group, description, interruptOnCancel=True)
