"""One run of a writer with a source.

Read the source, commit its batches, and end, or read again (`streaming`).

A streaming run is the same loop for every source that resumes across runs: when the source has no
more data, the session stays open, waits and reads again. Nothing is committed without new data. The
run ends on request (between two commits) or when it fails; it never succeeds.

A closed gate ends every run at its next commit boundary (F44): a change of the table is waiting,
and the next attempt continues from there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hudi_contract.outcomes import FailureClass
from hudi_contract.words import Stage
from hudi_runtime.process.errors import RuntimeFailure, classify, java_causes
from hudi_runtime.process.result import Tally
from hudi_runtime.process.stopping import Stop
from hudi_runtime.read import progress as pg

if TYPE_CHECKING:
    from hudi_runtime.read.sources import Batch

PATIENCE_SECONDS = 600.0
"""Seconds for which a streaming run waits for a source that does not answer; then the attempt
fails, and the next one is another pod.
"""
PASSING = (FailureClass.INFRASTRUCTURE, FailureClass.STORAGE_UNREACHABLE)
"""Failures of a read that may be temporary."""
NAP_SECONDS = 2.0
"""Interval at which a waiting run checks that its JVM, which may be halted at any time,
is still alive.
"""


class Run:
    """Commits the batches of a source.

    `interval`: seconds between two reads of the source; None: one read is the whole run.
    """

    def __init__(
        self,
        look: Callable[[pg.Progress], Iterator[Batch]],
        commit: Callable[[Batch, str], str],
        *,
        stop: Stop,
        tally: Tally,
        report: Callable[[Stage], bool],
        alive: Callable[[], bool],
        closed: Callable[[], str],
        interval: int | None,
    ) -> None:
        self._look = look
        self._commit = commit
        self._stop = stop
        self._tally = tally
        self._report = report
        self._alive = alive
        self._closed = closed
        self._interval = interval
        self._silent_since: float | None = None
        self._told = False

    def run(self, done: pg.Progress, base: str) -> None:
        """Continue from `done`, read from the timeline up to completion time `base`.

        Raises errors, and RuntimeFailure on a requested stop.
        """
        while True:
            done, base = self._once(done, base)
            if self._interval is None:
                return
            if self._silent_since is None:
                self._tally.caught_up = True
            # Repeated until it is reported: a run that waits for input is not late.
            self._told = self._told or self._report(Stage.WAITING)
            if self._rest(self._interval):
                raise RuntimeFailure(
                    FailureClass.INFRASTRUCTURE, "asked to stop: a streaming run ended at a commit boundary"
                )

    def _once(self, done: pg.Progress, base: str) -> tuple[pg.Progress, str]:
        """Read the source once, and commit each batch."""
        self._end_if_closed()
        batches = self._look(done)
        while (batch := self._next(batches)) is not None:
            if self._stop.requested:
                raise RuntimeFailure(
                    FailureClass.INFRASTRUCTURE, "asked to stop: ended at a commit boundary with input left"
                )
            self._end_if_closed()
            base = self._commit(batch, base)
            done = batch.done
            self._tally.waiting, self._told = batch.waiting, False
            self._report(Stage.READING)
        return done, base

    def _end_if_closed(self) -> None:
        """Between two commits: raises RuntimeFailure when the gate is closed."""
        if change := self._closed():
            raise RuntimeFailure(
                FailureClass.ENDED_FOR_CHANGE, f"ended at a commit boundary: the table's gate is closed for {change}"
            )

    def _rest(self, seconds: float) -> bool:
        """Wait; True when a stop is requested meanwhile.

        Raises RuntimeFailure when the gate is closed, or the JVM has ended.
        """
        while seconds > 0:
            nap = min(seconds, NAP_SECONDS)
            if self._stop.wait(nap):
                return True
            if not self._alive():
                raise RuntimeFailure(FailureClass.INFRASTRUCTURE, "the driver's JVM has ended")
            self._end_if_closed()
            seconds -= nap
        return False

    def _next(self, batches: Iterator[Batch]) -> Batch | None:
        """The next batch; None when there is none.

        It is also None when a streaming run's source temporarily does not answer.
        """
        try:
            batch = next(batches, None)
        except Exception as error:
            if self._interval is None or not _may_pass(error) or not self._alive():
                raise
            now = time.monotonic()
            if self._silent_since is None:
                self._silent_since = now
            if now - self._silent_since > PATIENCE_SECONDS:
                raise
            print(
                f"the source does not answer, trying again: {classify(error).message[:300]}",
                file=sys.stderr,
                flush=True,
            )
            return None
        self._silent_since = None
        return batch


def _may_pass(error: Exception) -> bool:
    """Whether the source failed, not this process or its JVM, and the failure may be temporary."""
    causes = java_causes(error)
    of_source = isinstance(error, RuntimeFailure) or (bool(causes) and causes[-1].type != "py4j")
    return of_source and classify(error).kind in PASSING
