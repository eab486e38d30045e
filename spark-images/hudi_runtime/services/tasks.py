"""The interface of an agent's tasks at one table, and the agent's single slot for long work.

A table's step calls each task in turn, about once a second, and waits for none: long work runs on a
separate thread.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pyspark.sql import SparkSession

from hudi_runtime.process import spark as sp
from hudi_runtime.settle.rollback import NotYet
from hudi_runtime.settle.settle import Records
from hudi_runtime.table import timeline as tl

POOL = "services"
"""Spark's scheduler pool: jobs of settling get the next free slot instead of waiting for the last
task of a compaction.
"""
CLUSTERING_THREADS = "clustering-job-group"
"""Names of the threads in which Hudi prepares the groups of a clustering."""
CLOSE_SECONDS = 15.0
"""Upper bound of the wait for a cancelled run. A run that does not end is left to the operator to
settle, with this whole process.
"""


@dataclass(frozen=True)
class Observation:
    """The facts of one pass of the agent about a table."""

    requests: Mapping[str, Mapping[str, Any]]
    """The operator's requests, by id."""
    records: Records
    timeline: tl.Timeline = field(default_factory=tl.Timeline)
    """The last listing; empty before the first one."""


class TableTask(ABC):
    """One task of an agent at one table.

    These defaults are for a task that ends within the step.
    """

    exclusive: ClassVar[bool] = False
    """Whether no other task may begin at the table while this task runs."""

    @property
    def idle(self) -> bool:
        """Whether this task is not running."""
        return True

    @abstractmethod
    def consider(self, look: Observation) -> None:
        """Begin requested work that is due.

        Called by the table's step, which waits only for this call.
        """

    def cancel(self) -> None:  # noqa: B027 - a task that ends within the step needs no cancel
        """Ask running work to end, and begin no new work."""


@dataclass
class Slot:
    """The single slot of an agent for long work: two runs at once would need twice the memory."""

    _executor: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(max_workers=1, thread_name_prefix="service")
    )
    _taken: threading.Lock = field(default_factory=threading.Lock)

    def start(self, run: Callable[[], None]) -> Future[None] | None:
        """Run on the slot's thread; None when the slot is taken.

        Runs are never queued: the caller decides again later.
        """
        if not self._taken.acquire(blocking=False):
            return None

        def held() -> None:
            try:
                run()
            finally:
                self._taken.release()

        return self._executor.submit(held)

    def close(self) -> None:
        """Wait for the current run; no other run is started."""
        self._taken.acquire(timeout=CLOSE_SECONDS)
        self._executor.shutdown(wait=False)


class LongTask(TableTask):
    """A task with long runs: one at a time, in the agent's slot."""

    def __init__(self, spark: SparkSession, slot: Slot, group: str) -> None:
        """``group`` is the Spark job group of the runs."""
        self.spark = spark
        self._slot = slot
        self._group = group
        self._running: Future[None] | None = None
        self._cancelled = False
        self.unproven = False
        """Whether an executor was lost and may still write for the instant of a run, until the end
        of its pod is proven (I12).
        """

    @property
    def idle(self) -> bool:
        """Whether no run is in progress."""
        return self._running is None or self._running.done()

    def cancel(self) -> None:
        """Ask Spark to cancel the jobs of the current run.

        Its unfinished work stays as a dead agent would leave it.
        """
        self._cancelled = True
        if not self.idle:
            self.spark.sparkContext.cancelJobGroup(self._group)

    def _begin(self, run: Callable[[], None]) -> None:
        """Start a run if the slot is free; otherwise the next pass decides again."""

        def noted() -> None:
            try:
                run()
            finally:
                self._note_losses()

        self._running = self._slot.start(noted) or self._running

    def _note_losses(self) -> None:
        """Called at the end of a run, on its thread."""
        self.unproven = self.unproven or sp.lost_executors(self.spark)

    def _end_leftovers(self) -> None:
        """Called by a run that executes again what an earlier run of this process has begun.

        A run ends with the first task that fails, and others may still be uploading a file: one
        that lands after the rollback of that execution would be named by no commit (F632). Raises
        NotYet while a task of the earlier run is at work, or a thread of Hudi's that may begin one.
        """
        end = time.monotonic() + sp.IDLE_SECONDS
        while True:
            self.spark.sparkContext.cancelJobGroup(self._group)
            begins = _begins_jobs(self.spark)
            # In this order: a thread that has ended begins no task after this look
            if sp.await_idle(self.spark, max(0.0, end - time.monotonic()), group=self._group) and not begins:
                return
            if time.monotonic() >= end:
                raise NotYet("tasks of the failed run have not ended yet")
            time.sleep(0.1)

    def _enter_pool(self, description: str) -> None:
        """Called by a run, on its thread.

        Put its jobs into the task's group and into the pool that leaves free slots to settling.
        """
        context = self.spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", POOL)
        context.setJobGroup(self._group, description, interruptOnCancel=True)


def _begins_jobs(spark: SparkSession) -> bool:
    """Whether a thread lives in which Hudi plans a part of a clustering, and begins jobs for it.

    The agent has one run at a time, so it is of one that has ended.
    """
    jvm: Any = spark.sparkContext._jvm
    threads = jvm.java.lang.Thread.getAllStackTraces().keySet()
    return any(str(thread.getName()).startswith(CLUSTERING_THREADS) for thread in threads)
