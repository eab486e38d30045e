"""One table of an agent: prepared, then served about once a second.

A pass raises only for reasons that may affect other tables as well.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from hudi_contract.assignment import AssignmentRecord
from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_contract.keys import Kind
from hudi_contract.requests import Foreign, ForeignInstant
from hudi_contract.table_keys import Clock
from hudi_contract.words import AgentError
from hudi_runtime.agent import adoption, creation, facts, preparation
from hudi_runtime.agent.bucket import Bucket
from hudi_runtime.agent.context import AgentContext, client_options
from hudi_runtime.agent.keys import AgentKeys
from hudi_runtime.agent.preparation import CLOCK_KEY, FOREIGN_KEY, Preparation
from hudi_runtime.agent.reports import Reports
from hudi_runtime.agent.tasks import Tasks
from hudi_runtime.agent.trouble import RETRY_SECONDS, Trouble, told
from hudi_runtime.job.job import TableSpec
from hudi_runtime.process.errors import classify, environment_secrets, record_message
from hudi_runtime.process.etcd import Etcd, read
from hudi_runtime.process.session import FENCED
from hudi_runtime.services.tasks import Observation, Slot
from hudi_runtime.settle.agent_session import AgentSession
from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.settle.rollback import NotYet
from hudi_runtime.settle.settle import Records
from hudi_runtime.table import timeline as tl

LIST_SECONDS = 5.0
"""Between two listings while something is pending.

`LONGEST_PAUSE_SECONDS` otherwise: etcd shows commits of our writers at once, listings cost requests
at the store, foreign writers are rare.
"""


class Assignment:
    """One table; `step` is called about once a second, never twice at a time."""

    def __init__(
        self, spark: SparkSession, value: Mapping[str, Any], *, etcd: Etcd, stopping: Callable[[], bool], slot: Slot
    ) -> None:
        self.value = dict(value)
        self._order = AssignmentRecord.from_json(value)
        self.spec = TableSpec.of(self._order)
        self._spark = spark
        self._slot = slot
        self._stopping = stopping
        self._retired = False
        self._keys = AgentKeys(etcd, self.spec.id)
        self._reports = Reports(self._keys)
        self._trouble = Trouble(self.spec.table)
        self._listing = _Listing()
        self._bucket = Bucket(spark, self.spec.path)
        # The steps of the preparation: the storage has answered, the session is open,
        # the tasks exist.
        self._table: AgentTable | None = None
        self._context: AgentContext | None = None
        self._tasks: Tasks | None = None
        self._ready = False

    @property
    def reachable(self) -> bool:
        """Whether the storage has answered."""
        return self._table is not None

    @property
    def _session(self) -> AgentSession | None:
        return self._context.session if self._context is not None else None

    @property
    def must_end(self) -> bool:
        """Whether this agent must not continue.

        The next agent takes its pending instants when every executor of this one is
        proven dead (I12).
        """
        return self._tasks is not None and self._tasks.unproven

    @property
    def clock_refused(self) -> str:
        """Why no times of this process are accepted any more; empty otherwise (F414)."""
        return self._session.clock_refused if self._session is not None else ""

    @property
    def fenced(self) -> bool:
        """Whether this process knows that its incarnation at the table is fenced.

        It does nothing there any more (I2).
        """
        return self._session is not None and self._session.state == FENCED

    def fence_stands(self) -> bool:
        """Whether etcd has the fence of this incarnation."""
        session = self._session
        return session is not None and (self.fenced or self._keys.fenced(session.inc))

    def step(self) -> None:
        """Run one pass: read etcd and do the work that is due."""
        if self._trouble.rests:
            return
        try:
            if not self._ready:
                self._prepare()
            if self._context is not None and self._tasks is not None:
                self._pass(self._context, self._tasks)
            self._trouble.over()
        except NotYet as waiting:
            self._trouble.met(str(waiting))
        except adoption.PendingInstants as waiting:
            self._report_pending(waiting)
        except adoption.NotAdopted as refused:
            self._error(refused.code, str(refused), exists=refused.exists)
        except creation.TableMismatch as mismatch:
            self._error(AgentError.TABLE_MISMATCH, str(mismatch), exists=True)
        except creation.OtherLockAuthority as other:
            self._error(AgentError.OTHER_LOCK_AUTHORITY, str(other), exists=True)
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        code, message = told(error)
        self._error(code, message, exists=bool(self._ready))

    def _error(self, code: str, message: str, *, exists: bool) -> None:
        self._trouble.met(f"{code}: {message}")
        try:
            self.report_error(code, message, exists=exists)
        except Exception as error:  # what it met first is printed, and the pause is set (F584)
            failure = classify(error, secrets=environment_secrets())
            print(f"table {self.spec.table}: this cannot be reported: {failure.message}", file=sys.stderr, flush=True)

    # -- preparation -------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Prepare the storage first, then the session, then the table.

        So a wrong key is always reported.
        """
        if self._table is None:
            exists = preparation.probe(self._spark, self.spec.path)
            self._table = AgentTable(self._spark, self.spec.path)
        else:
            exists = self._table.exists()
        wanted = self._order.hudi_props
        if self._context is None:
            session = AgentSession.open(self._spark, self._settings())
            self._context = AgentContext(
                self._spark,
                self._slot,
                self._keys,
                self.spec,
                self._table,
                session,
                client_options(self.spec, wanted),
                metadata_table=self._order.metadata_table,
            )
        if self._tasks is None:
            self._tasks = Tasks(self._context, self._order)
        if not exists and self._order.catalog is not None and self._order.catalog.drop:
            raise NotYet("the HudiTable is being deleted, and its table is gone: none is created")
        Preparation(
            self._context, self._tasks, policy=self._order.adoption, options=wanted, stopping=self._stopping
        ).run(exists=exists)
        self._ready = True

    def _settings(self) -> dict[str, str]:
        return preparation.session_settings(self.spec, self._order)

    def _report_pending(self, waiting: adoption.PendingInstants) -> None:
        inc = self._session.inc if self._session else ""
        base = facts.report(waiting.timeline, inc=inc, foreigners=waiting.instants, commits_since={})
        self._reports.put(adoption.report(base, waiting))
        self._trouble.rest(RETRY_SECONDS)

    # -- the pass ----------------------------------------------------------------------------------

    def _pass(self, context: AgentContext, tasks: Tasks) -> None:
        records = context.records()
        if tasks.settle(records, stopping=self._stopping):
            self._listing.expire()
        requests = self._keys.requests() if not (self._retired or self._stopping()) else None
        look = Observation(requests or {}, records)
        if requests is not None:
            tasks.restore(look)
        if tasks.restoring:
            return
        between = tasks.between(records)
        if self._listing.due(records):
            self._list(context, tasks, records, between=between)
        if requests is not None and not between:
            tasks.consider(replace(look, timeline=self._listing.timeline))

    def _list(self, context: AgentContext, tasks: Tasks, records: Records, *, between: bool) -> None:
        session, table = context.session, context.table
        timeline = tasks.timeline()
        self._listing.timeline = timeline
        recorded = {entry.name for entry in session.etcd.range(Kind.INSTANT.every)}
        pending = () if between else facts.foreign(timeline, recorded, table.timeline)
        foreigners = (*pending, *self._written_by_others(session, timeline))
        counts = tasks.services.counts(timeline, records)
        newest = facts.commits(table, timeline)
        report = facts.report(timeline, inc=session.inc, foreigners=foreigners, commits_since=counts, newest=newest)
        self._reports.put(report.but(bucket=self._bucket.look(), read_cost=tasks.read_cost))
        self._listing.done()

    def _written_by_others(self, session: AgentSession, timeline: tl.Timeline) -> tuple[tl.Instant, ...]:
        """Completed instants of writers without this lock that are in the active timeline.

        Recorded for the next agent.
        """
        clock, known = session.etcd.get(CLOCK_KEY), read(session.etcd.get(FOREIGN_KEY), Foreign)
        found = (
            {(i.requested, i.action): i for i in facts.written_by_others(timeline, clock.read(Clock).value)}
            if clock
            else {}
        )
        before = [(item.instant, item.action) for item in known.instants]
        listed = {(i.requested, i.action): i for i in (*timeline.completed, *timeline.savepoints)}
        found |= {key: listed[key] for key in before if key in listed}
        newest = sorted(found)[-facts.MAX_LISTED :]
        if newest != before:
            instants = tuple(ForeignInstant(instant=instant, action=action) for instant, action in newest)
            session.etcd.put(FOREIGN_KEY, Foreign(instants=instants).to_json())
        return tuple(found[key] for key in newest)

    def report_error(self, code: str, message: str, *, exists: bool) -> None:
        """Report why the table cannot be served; works without a session."""
        inc = self._session.inc if self._session else ""
        text = record_message(message)
        self._reports.put(facts.error_report(inc=inc, exists=exists, code=code, message=text))

    # -- the end -----------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether nothing is under way at the table."""
        return self._tasks is None or self._tasks.idle

    def retire(self, *, gone: bool) -> None:
        """Begin no new work: this assignment will be closed.

        `gone`: this agent no longer has the table, so its bootstrap is cancelled.
        """
        self._retired = True
        if self._tasks is not None:
            self._tasks.stop_telling()
            if gone:
                self._tasks.cancel_bootstrap()

    def cease(self) -> None:
        """Do nothing more at the table: the operator has ended this incarnation."""
        if self._tasks is not None:
            self._tasks.stop_telling()
        self.cancel_service()

    def cancel_service(self) -> None:
        """Ask running work to end."""
        if self._tasks is not None:
            self._tasks.cancel()

    def close(self) -> bool:
        """Release claims and leave; False when the operator must settle this incarnation."""
        if self._tasks is not None:
            self._tasks.stop_telling()
            if not self._tasks.give_back():
                return False
        return self._session is None or self._session.close()


class _Listing:
    """The last listing of the active timeline, and when the next one is due."""

    def __init__(self) -> None:
        self.timeline = tl.Timeline()
        self._fingerprint: tuple[tuple[str, int], ...] = ()
        self._at = 0.0
        self._interval = 0.0

    def due(self, records: Records) -> bool:
        """Whether the timeline has changed according to etcd, or the last listing is old."""
        fingerprint = tuple(sorted((name, entry.mod_revision) for name, entry in records.instants.items()))
        changed, self._fingerprint = fingerprint != self._fingerprint, fingerprint
        return changed or time.monotonic() - self._at >= self._interval

    def expire(self) -> None:
        """Make the next pass list again."""
        self._interval = 0.0

    def done(self) -> None:
        """Record that the timeline was listed now and reported."""
        self._at = time.monotonic()
        self._interval = LIST_SECONDS if self.timeline.pending else LONGEST_PAUSE_SECONDS
