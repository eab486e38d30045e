"""Keeps the table's entry in a catalog (`spec.catalog`, docs/use/catalogs.md).

The agent passes each listing of the timeline and never waits: a separate thread synchronizes. What
was synchronized is in `report/catalog`, and the next agent goes on from there. A try that is
repeated does no harm.
"""

from __future__ import annotations

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
from hudi_runtime.catalog.hive import HiveMetastore, NotSynced
from hudi_runtime.process.errors import record_message
from hudi_runtime.process.etcd import Etcd, now_ms, read
from hudi_runtime.table import timeline as tl

REPORT = Kind.REPORT.of(CATALOG)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 5.0, 300.0
"""After one failure, and at most."""
_AT_ONCE = threading.BoundedSemaphore(4)
"""Tries of this process that run at the same time, so that hanging catalogs of many tables do not
take the JVM's memory.
"""


class Catalog(Protocol):
    """What is kept in step with the table."""

    def sync(self, *, everything: bool) -> None:
        """Synchronize, in bounded time. Raises NotSynced."""


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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``label``: namespace and name of the HudiTable, for the log."""
        self._etcd = etcd
        self._wanted = wanted
        self._catalog = catalog
        self._label = label
        self._inc = inc
        self._clock = clock
        self._offered: tl.Timeline | None = None
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._stopped = threading.Event()
        # Used only by the thread from here on.
        self._known: CatalogReport | None = None
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
        """Synchronize when the listing is newer than what was synchronized, and a try is due."""
        timeline = self._offered
        if timeline is None or self._stopped.is_set() or self._clock() < self._retry_at:
            return
        self._retry_at = 0.0
        known = self._load()
        last = newest(timeline)
        if last is None or (last.completion <= known.completion_time and not known.failures):
            return
        undone = any(i.action == "restore" and i.completion > known.completion_time for i in timeline.completed)
        try:
            with _AT_ONCE:
                if self._stopped.is_set():
                    return
                self._catalog.sync(everything=undone or not known.completion_time)
        except NotSynced as error:
            self._failed(known, error)
            return
        if known.failures:
            print(f"table {self._label}: catalog: synchronized", file=sys.stderr, flush=True)
        self._save(
            CatalogReport(
                inc=self._inc,
                target=self._wanted.target,
                instant=last.requested,
                completion_time=last.completion,
                at_ms=now_ms(),
            )
        )

    def _load(self) -> CatalogReport:
        """What was synchronized with this catalog; written when there was nothing."""
        if self._known is None:
            found = read(self._etcd.get(REPORT), CatalogReport)
            if found.target != self._wanted.target:
                found = CatalogReport(inc=self._inc, target=self._wanted.target)
                self._etcd.put(REPORT, found.to_json())
            self._known = found
        return self._known

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
        self._save(known.but(inc=self._inc, failures=failures, reason=error.reason, message=message))

    def _save(self, report: CatalogReport) -> None:
        if self._stopped.is_set():
            return
        self._etcd.put(REPORT, report.to_json())
        self._known = report


def from_order(spark: SparkSession, order: AssignmentRecord, etcd: Etcd, *, inc: str) -> CatalogSyncer | None:
    """The syncer that an assignment requests; None when it requests none."""
    if order.catalog is None:
        return None
    return CatalogSyncer(etcd, order.catalog, HiveMetastore(spark, order, order.catalog), label=order.table, inc=inc)


def forget(etcd: Etcd) -> None:
    """Delete the report when there is no catalog: a later one is synchronized from the start."""
    entry = etcd.get(REPORT)
    if entry is not None:
        etcd.delete(REPORT, entry.mod_revision)
