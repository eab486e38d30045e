"""Keeps the table's entry in a catalog (`spec.catalog`, docs/use/catalogs.md).

The agent passes each listing of the timeline and never waits: a separate thread synchronizes. The
state of the synchronization is in `report/catalog`, and the next agent goes on from there. A try
that is repeated does no harm. Each try is noted there before it begins, so that one that ends the
agent's process is repeated with pauses as well. An agent that has lost the report to another one
reads it again.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol

from pyspark.sql import SparkSession

from hudi_contract.assignment import AssignmentRecord, CatalogOrder
from hudi_contract.backoff import exponential
from hudi_contract.keys import CATALOG, Kind
from hudi_contract.reports import CatalogReport
from hudi_runtime.catalog.glue import Glue
from hudi_runtime.catalog.hive import HiveMetastore
from hudi_runtime.catalog.outcome import Busy, NotSynced
from hudi_runtime.process.errors import record_message
from hudi_runtime.process.etcd import Etcd, now_ms, read
from hudi_runtime.table import timeline as tl

REPORT = Kind.REPORT.of(CATALOG)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 5.0, 300.0
"""After one failure, and at most."""
MOST_LEFT_OUT = 5
"""Partitions that are named."""
_AT_ONCE = threading.BoundedSemaphore(4)
"""Tries of this process that run at the same time, so that hanging catalogs of many tables do not
take the JVM's memory.
"""


class Catalog(Protocol):
    """Catalog that is kept in step with the table, until its entries are dropped."""

    def sync(self, *, everything: bool) -> tuple[str, ...]:
        """Synchronize, in bounded time.

        Returns the first partitions that it has met and that the catalog cannot describe.

        Raises NotSynced.
        """

    def drop(self) -> str:
        """Drop the entries that this HudiTable has made, in bounded time; no data goes with them.

        Returns which entries of its names stay, and why; empty: none.

        Raises NotSynced.
        """


class _Moved(Exception):
    """Another agent has written the report."""


def newest(timeline: tl.Timeline) -> tl.Instant | None:
    """The change of the table that completed last; None without a commit: it has no columns yet."""
    if not any(i.action in tl.WRITE_ACTIONS for i in timeline.completed):
        return None
    changes = [i for i in timeline.completed if i.action in tl.WRITE_ACTIONS or i.action == "restore"]
    return changes[-1]


class CatalogSyncer:
    """Synchronizes the newest listing of one table.

    The agent calls `consider` and `stop`, which never wait for a catalog.
    """

    def __init__(
        self,
        etcd: Etcd,
        wanted: CatalogOrder,
        catalog: Catalog,
        *,
        label: str,
        inc: str = "",
        fenced: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """``label``: namespace and name of the HudiTable, for the log.

        ``fenced``: whether etcd has the fence of this incarnation.
        """
        self._etcd = etcd
        self._wanted = wanted
        self._catalog = catalog
        self._label = label
        self._inc = inc
        self._fenced = fenced
        self._clock = clock
        self._chance = chance
        self._offered: tl.Timeline | None = None
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._stopped = threading.Event()
        # Used only by the thread from here on.
        self._known: CatalogReport | None = None
        self._revision = 0
        self._retry_at = 0.0

    def consider(self, timeline: tl.Timeline) -> None:
        """Take a new listing."""
        if self._stopped.is_set():
            return
        self._offered = timeline
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"catalog-{self._label}", daemon=True)
            self._thread.start()
        self._wake.set()

    def stop(self) -> None:
        """Begin nothing more. A running try ends by itself, and is not reported."""
        self._stopped.set()
        self._wake.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.step()
            except Exception as error:  # etcd does not answer, or the JVM is gone
                self._known = None
                self._retry_at = self._clock() + FIRST_PAUSE_SECONDS
                print(f"table {self._label}: catalog: {record_message(error)}", file=sys.stderr, flush=True)
            pause = self._retry_at - self._clock()
            if self._wake.wait(pause if pause > 0 else None):
                self._wake.clear()

    def step(self) -> None:
        """Synchronize when the listing is newer than the last synchronization, and a try is due."""
        timeline = self._offered
        if timeline is None or self._stopped.is_set() or self._clock() < self._retry_at:
            return
        self._retry_at = 0.0
        try:
            self._try(timeline)
        except _Moved:
            self._known = None
            self._retry_at = self._clock() + FIRST_PAUSE_SECONDS

    def _try(self, timeline: tl.Timeline) -> None:
        known = self._load()
        if self._clock() < self._retry_at:
            return
        if self._wanted.drop:
            if not known.dropped:
                self._run_once(known, lambda: self._drop(known))
            return
        last = newest(timeline)
        if last is None or (last.completion <= known.completion_time and not known.failures):
            return
        undone = any(i.action == "restore" and i.completion > known.completion_time for i in timeline.completed)
        everything = undone or not known.completion_time
        self._run_once(known, lambda: self._sync(known, last, everything=everything))

    def _run_once(self, known: CatalogReport, run: Callable[[], CatalogReport]) -> None:
        """A try, noted before it begins."""
        try:
            with _AT_ONCE:
                if self._fenced():
                    self._stopped.set()
                self._save(known.but(inc=self._inc, begun=known.begun + 1))
                if self._stopped.is_set():
                    return
                done = run()
        except Busy:
            self._retry_at = self._clock() + FIRST_PAUSE_SECONDS
            self._save(known.but(inc=self._inc, begun=0))
            return
        except NotSynced as error:
            self._failed(known, error)
            return
        if known.failures:
            print(f"table {self._label}: catalog: synchronized", file=sys.stderr, flush=True)
        self._save(done)

    def _sync(self, known: CatalogReport, last: tl.Instant, *, everything: bool) -> CatalogReport:
        left_out = self._catalog.sync(everything=everything)
        return CatalogReport(
            inc=self._inc,
            target=self._wanted.target,
            instant=last.requested,
            completion_time=last.completion,
            at_ms=now_ms(),
            left_out=tuple(dict.fromkeys((*(() if everything else known.left_out), *left_out)))[:MOST_LEFT_OUT],
        )

    def _drop(self, known: CatalogReport) -> CatalogReport:
        stays = record_message(self._catalog.drop())
        return known.but(inc=self._inc, begun=0, failures=0, reason="", message=stays, dropped=True)

    def _load(self) -> CatalogReport:
        """Report on this catalog; an empty one is written when there was none."""
        if self._known is None:
            entry = self._etcd.get(REPORT)
            found, self._revision = read(entry, CatalogReport), entry.mod_revision if entry is not None else 0
            if found.target != self._wanted.target:
                self._save(CatalogReport(inc=self._inc, target=self._wanted.target))
            elif found.begun and found.inc != self._inc:
                self._interrupted(found)
            else:
                self._known = found
        return self._known or CatalogReport()

    def _interrupted(self, found: CatalogReport) -> None:
        """Wait: an agent before this one was stopped during a try, or the try has ended it.

        Tries of several tables were interrupted together, and must not be repeated
        together for ever: the pause is random.
        """
        pause = exponential(found.begun, first=FIRST_PAUSE_SECONDS, longest=LONGEST_PAUSE_SECONDS)
        self._retry_at = self._clock() + pause * (0.5 + self._chance() / 2)
        self._known = found
        if found.begun > 1:
            message = f"the last {found.begun} tries did not end: their agents were stopped, or ended"
            self._save(found.but(inc=self._inc, failures=found.failures + 1, reason="Interrupted", message=message))

    def _failed(self, known: CatalogReport, error: NotSynced) -> None:
        failures = known.failures + 1
        self._retry_at = self._clock() + exponential(failures, first=FIRST_PAUSE_SECONDS, longest=LONGEST_PAUSE_SECONDS)
        message = record_message(str(error))
        if (error.reason, message) != (known.reason, known.message):
            print(
                f"table {self._label}: catalog: not synchronized: {error.reason}: {message}",
                file=sys.stderr,
                flush=True,
            )
        self._save(known.but(inc=self._inc, begun=0, failures=failures, reason=error.reason, message=message))

    def _save(self, report: CatalogReport) -> None:
        if self._stopped.is_set():
            return
        revision = self._etcd.cas(REPORT, report.to_json(), self._revision)
        if revision is None:
            raise _Moved
        self._known, self._revision = report, revision


def from_order(
    spark: SparkSession, order: AssignmentRecord, etcd: Etcd, *, inc: str, fenced: Callable[[], bool]
) -> CatalogSyncer | None:
    """The syncer that an assignment requests; None when it requests none.

    To drop entries it needs no listing, and begins at once.
    """
    if order.catalog is None:
        return None
    catalog: Catalog = (HiveMetastore if order.catalog.uris else Glue)(spark, order, order.catalog)
    made = CatalogSyncer(etcd, order.catalog, catalog, label=order.table, inc=inc, fenced=fenced)
    if order.catalog.drop:
        made.consider(tl.parse(()))
    return made


def forget(etcd: Etcd) -> None:
    """Delete the report when there is no catalog: a later one is synchronized from the start."""
    entry = etcd.get(REPORT)
    if entry is not None:
        etcd.delete(REPORT, entry.mod_revision)
