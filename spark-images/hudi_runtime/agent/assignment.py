"""One table of an agent: session, existence, settling, facts. A pass never raises for a reason that another table could not share."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from hudi_contract import naming
from hudi_contract.assignment import AssignmentRecord
from hudi_contract.keys import CREATE, FOREIGN, TIMELINE, Kind, TableKeys
from hudi_contract.outcomes import ErrorCode, FailureClass
from hudi_contract.reports import TimelineReport
from hudi_contract.requests import Created, Foreign, ForeignInstant
from hudi_contract.table_keys import Clock, Durations, Gate
from hudi_contract.words import Adoption, AgentError, GateState, Role, TableType
from hudi_runtime.agent import adoption, bootstrap, creation, facts, store_probe
from hudi_runtime.agent.bucket import Bucket
from hudi_runtime.agent.metadata_table import MetadataTable
from hudi_runtime.agent.read_cost import Gauge
from hudi_runtime.agent.restores import Restores
from hudi_runtime.agent.savepoints import Savepoints
from hudi_runtime.callback import callback
from hudi_runtime.callback.callback_plan import Source
from hudi_runtime.job import merging
from hudi_runtime.job.job import TableSpec
from hudi_runtime.process import spark as sp
from hudi_runtime.process.errors import classify, environment_secrets, first_line, java_causes
from hudi_runtime.process.etcd import Etcd, now_ms, read
from hudi_runtime.process.session import FENCED
from hudi_runtime.services import triggers
from hudi_runtime.services.service_actions import Actions
from hudi_runtime.services.services import Services, Slot
from hudi_runtime.settle.agent_session import AgentSession
from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.settle.rollback import NotYet
from hudi_runtime.settle.settle import Records, Settler
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.storage import Storage

LIST_SECONDS = 5.0
"""Between two listings while something is pending."""
IDLE_LIST_SECONDS = 15.0
"""Otherwise: commits of our writers are seen in etcd at once, listings cost requests at the store, foreign writers are rare."""
REPORT_SECONDS = 60.0
RETRY_SECONDS = 3.0
MAX_RETRY_SECONDS = 15.0
CREATED_KEY, FOREIGN_KEY, CLOCK_KEY = Kind.DONE.of(CREATE), Kind.DONE.of(FOREIGN), Kind.CLOCK.of()
CLOCK_ZERO = "19700101000000000"
#: A first look must not take minutes when the endpoint or the keys are wrong: S3A would retry for that long.
PROBE_SETTINGS = {
    "fs.s3a.attempts.maximum": "1",
    "fs.s3a.retry.limit": "1",
    "fs.s3a.retry.interval": "100ms",
    "fs.s3a.connection.establish.timeout": "3000",
    "fs.s3a.connection.timeout": "8000",
}


class Assignment:
    """One table; `step` is called about once a second, never twice at a time."""

    def __init__(self, spark: SparkSession, value: Mapping[str, Any], *, etcd: Etcd, stopping: Callable[[], bool], slot: Slot) -> None:
        self.value = dict(value)
        self._order = AssignmentRecord.from_json(value)
        self.spec = TableSpec.of(self._order)
        self._keys = TableKeys(etcd.prefix, self.spec.id)
        self._spark = spark
        self._etcd = etcd
        self._stopping = stopping
        self._policy = self._order.adoption
        self._options = dict(self._order.hudi_props)
        self._session: AgentSession | None = None
        self._settler: Settler | None = None
        self._slot = slot
        self._savepoints: Savepoints | None = None
        self._restores: Restores | None = None
        self._services: Services | None = None
        self._bootstrap: bootstrap.Bootstrap | None = None
        self._metadata: MetadataTable | None = None
        self._gauge: Gauge | None = None
        self._bucket = Bucket(spark, self.spec.path)
        self._callback_sender: callback.CallbackSender | None = None
        self._timeline: tl.Timeline | None = None
        self._retired = False
        self._table: AgentTable | None = None
        self._ready = False
        self._fingerprint: tuple[tuple[str, int], ...] = ()
        self._listed = 0.0
        self._interval = LIST_SECONDS
        self._retry_at = 0.0
        self._failures = 0
        self._reason = ""
        self._reported: TimelineReport | None = None
        self._reported_at = 0.0

    @property
    def reachable(self) -> bool:
        """Whether the storage has answered."""
        return self._table is not None

    @property
    def must_end(self) -> bool:
        """Whether this agent may not go on: what it has left pending is for the next one, when every executor of this one is proven dead (I12)."""
        return self._services is not None and self._services.unproven

    @property
    def fenced(self) -> bool:
        """Whether this process knows that its incarnation at the table was ended: it does nothing there any more (I2)."""
        return self._session is not None and self._session.state == FENCED

    def fence_stands(self) -> bool:
        """The same, asked of etcd."""
        session = self._session
        return session is not None and (self.fenced or self._etcd.get(self._keys.of(Kind.FENCE, session.inc)) is not None)

    def step(self) -> None:
        """One pass: read etcd, and do what is due."""
        if time.monotonic() < self._retry_at:
            return
        try:
            if not self._ready:
                self._prepare()
            if self._ready and self._session is not None and self._table is not None:
                self._pass(self._session, self._table)
            self._failures, self._reason = 0, ""
        except NotYet as waiting:
            self._later(str(waiting))
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
        failure = classify(error, secrets=environment_secrets())
        code: str = AgentError.OTHER_LOCK_AUTHORITY if f"[{ErrorCode.OTHER_AUTHORITY}]" in failure.message else failure.kind
        if failure.kind is FailureClass.INFRASTRUCTURE and any(_storage_type(cause.type) for cause in java_causes(error)):
            code = FailureClass.STORAGE_UNREACHABLE
        self._error(code, failure.message, exists=bool(self._ready))

    def _error(self, code: str, message: str, *, exists: bool) -> None:
        self.report_error(code, message, exists=exists)
        self._later(f"{code}: {message}")

    def _later(self, reason: str) -> None:
        self._failures += 1
        self._retry_at = time.monotonic() + min(RETRY_SECONDS * self._failures, MAX_RETRY_SECONDS)
        if reason != self._reason:
            print(f"table {self.spec.table}: {first_line(reason)}", file=sys.stderr, flush=True)
        self._reason = reason

    # -- preparation ---------------------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Storage first (so that a wrong key is reported whatever else is missing), then the session, then the table."""
        if self._table is None:
            exists = self._probe()
            self._table = AgentTable(self._spark, self.spec.path)
        else:
            exists = self._table.exists()
        if self._session is None:
            self._session = AgentSession.open(self._spark, self._settings())
            drain = float(self._lock.drain)
            self._settler = Settler(self._table, self._session, self.spec.name, self._agent_options(), lost=lambda: sp.lost_executors(self._spark), drain=drain)
            self._services = self._make_services(self._table, self._session)
            self._bootstrap = self._make_bootstrap(self._table, self._session, self._services)
            self._metadata = self._make_metadata(self._table, self._session, self._services)
            self._savepoints = Savepoints(self._table, self._session, self.spec.name, self.spec.table, self._agent_options(), self._gate_state)
            self._restores = self._make_restores(self._table, self._session, self._services)
            self._callback_sender = self._make_callback_sender(self._table, self._session)
            # Tables of the other type have no log files.
            self._gauge = Gauge(self._table) if self.spec.type == TableType.MERGE_ON_READ else None
        gate = self._gate()
        adopted = gate.was_open
        if exists:
            found = creation.mismatches(self.spec, creation.facts(self._table), adopting=not adopted)
            if found:
                raise creation.TableMismatch("; ".join(found))
        creation.check_marker(self._table, self.spec, authority=gate.authority, prefix=self._etcd.prefix)
        if not adopted:
            store_probe.require(self._spark, self.spec.path, exists=exists)
        if not (exists and adopted):
            # Of a table that is in use the dead writers are settled all the same, and its services say it.
            self._require_merger(self._table, exists=exists)
        if exists and not adopted:
            self._adopt(self._table, self._session, gate.table_uid)
        self._init_clock(self._table, self._session, exists=exists)
        if not exists:
            self._create(self._table, self._session, gate.table_uid, adopted=adopted)
        self._ready = True

    def _require_merger(self, table: AgentTable, *, exists: bool) -> None:
        try:
            table.require_merger(self.spec.merge)
        except merging.NoMerger as missing:
            raise adoption.NotAdopted(AgentError.MERGER_MISSING, str(missing), exists=exists) from missing

    def _create(self, table: AgentTable, session: AgentSession, uid: str, *, adopted: bool) -> None:
        if self._policy == Adoption.ADOPT and not adopted:
            message = f"spec.adoption.policy is {Adoption.ADOPT}, and there is no Hudi table at {self.spec.path}"
            raise adoption.NotAdopted(AgentError.TABLE_NOT_FOUND, message, exists=False)
        session.etcd.put(CREATED_KEY, Created(table_uid=uid).to_json())  # written ahead: what is found from now on may be our own half of a creation
        creation.create(self._spark, table, self.spec, self._agent_options())

    def _adopt(self, table: AgentTable, session: AgentSession, uid: str) -> None:
        """Behind the gate that was never open: compare, settle what was handed over, look for what has no owner, take the table over."""
        created = read(session.etcd.get(CREATED_KEY), Created)
        adoption.refuse_existing(self._policy, table, mine=bool(uid and created.table_uid == uid))
        found = adoption.problems(self.spec, self._options, adoption.look(table), now=datetime.now(UTC))
        if found:
            raise creation.TableMismatch("; ".join(found))
        records = self._records(session)
        if self._settler is not None:
            self._settler.run(records, stopping=self._stopping)
        timeline = table.timeline()
        if self._services is not None and records.services_of(session.inc):
            self._services.consider(self._records(session), timeline, {})
        recorded = {entry.name for entry in session.etcd.range(Kind.INSTANT.every)}
        foreigners = facts.foreign(timeline, recorded, table.timeline)
        if foreigners:
            raise adoption.PendingInstants(timeline, foreigners, adoption.beating(table, foreigners, now_ms=now_ms()))
        if self._records(session).adopting():
            raise NotYet("the instants of the table's former writers are being settled")
        adoption.take_over(table, self.spec.name, self._agent_options())
        self._forward_clock(session, table.timeline().maximum)
        session.etcd.put(FOREIGN_KEY, Foreign().to_json())  # whatever they have completed was theirs to write

    def _forward_clock(self, session: AgentSession, maximum: str) -> None:
        """Writers without this lock have moved the timeline, and not the clock (I10)."""
        clock = session.etcd.get(CLOCK_KEY)
        newest = Clock(value=_milliseconds(maximum) if maximum else CLOCK_ZERO)
        if clock is not None and clock.read(Clock).value < newest.value and session.etcd.cas(CLOCK_KEY, newest.to_json(), clock.mod_revision) is None:
            raise NotYet("the table's clock has changed")

    def _report_pending(self, waiting: adoption.PendingInstants) -> None:
        inc = self._session.inc if self._session else ""
        base = facts.report(waiting.timeline, inc=inc, foreigners=waiting.instants, commits_since={})
        self._report(adoption.report(base, waiting))
        self._retry_at = time.monotonic() + RETRY_SECONDS

    def _make_services(self, table: AgentTable, session: AgentSession) -> Services:
        ended = self._settler.ended if self._settler is not None else set()

        def withdrawn(instant: str) -> None:
            ended.add(instant)
            session.forget(instant)

        def lost(instant: str) -> None:
            session.forget(instant)

        actions = Actions(table, self.spec.name, self._agent_options(), lambda: self._records(session), withdrawn, lost, self.spec.merge)
        wanted, merge_on_read = triggers.orders(self._order.services), self.spec.type == TableType.MERGE_ON_READ
        return Services(self._spark, actions, session, wanted=wanted, merge_on_read=merge_on_read, label=self.spec.table, slot=self._slot)

    def _make_bootstrap(self, table: AgentTable, session: AgentSession, services: Services) -> bootstrap.Bootstrap:
        return bootstrap.Bootstrap(self._spark, table, session, self.spec, self._agent_options(), self._gate_state, services.beside)

    def _make_restores(self, table: AgentTable, session: AgentSession, services: Services) -> Restores:
        ended = self._settler.ended if self._settler is not None else set()
        return Restores(self._spark, table, session, self.spec.name, self.spec.table, self._agent_options(), self._gate, services.beside, ended)

    def _make_metadata(self, table: AgentTable, session: AgentSession, services: Services) -> MetadataTable:
        known = self._order.metadata_table
        return MetadataTable(table, session, self.spec.name, self.spec.table, self._agent_options(), known, self._gate_state, services.beside)

    def _make_callback_sender(self, table: AgentTable, session: AgentSession) -> callback.CallbackSender | None:
        namespace, _, name = self.spec.table.partition("/")
        source = Source(namespace, name, self.spec.id, self.spec.path)
        made = callback.from_order(self._order.callback, source, table, session.etcd, inc=session.inc)
        if made is None:
            callback.forget(session.etcd)
        return made

    def _records(self, session: AgentSession) -> Records:
        return Records.from_entries(session.etcd.range(""), prefix=self._keys.tables)

    def _probe(self) -> bool:
        probe = Storage(self._spark, self.spec.path, settings=PROBE_SETTINGS)
        try:
            return probe.exists(".hoodie/hoodie.properties")
        finally:
            probe.close()

    def _settings(self) -> dict[str, str]:
        settings = {
            "tableId": self.spec.id,
            "basePath": self.spec.path,
            "attempt": naming.attempt_id(os.environ.get("POD_NAMESPACE", "default"), os.environ.get("POD_NAME", "agent")),
            "role": Role.AGENT,
        }
        return {**settings, **self._lock.settings()}

    @property
    def _lock(self) -> Durations:
        return self._order.lock or Durations()

    def _agent_options(self) -> dict[str, str]:
        """Options of the agent's own clients: the table's defaults, with a heartbeat that does not outlive a killed agent for long."""
        return {
            **self._options,
            "hoodie.table.services.enabled": "false",
            "hoodie.rollback.avoid.duplicate.plan": "true",
            "hoodie.write.lock.etcd.table_id": self.spec.id,
        }

    def _init_clock(self, table: AgentTable, session: AgentSession, *, exists: bool) -> None:
        """The clock starts at what the timeline shows; from then on only the JVMs move it (I10)."""
        if session.etcd.get(CLOCK_KEY) is None:
            maximum = table.timeline().maximum if exists else ""
            session.etcd.cas(CLOCK_KEY, Clock(value=_milliseconds(maximum) if maximum else CLOCK_ZERO).to_json(), 0)

    # -- the pass ------------------------------------------------------------------------------------------------------------------

    def _pass(self, session: AgentSession, table: AgentTable) -> None:
        records = self._records(session)
        if records.work_for_the_settler() and self._settler is not None and self._settler.run(records, stopping=self._stopping):
            self._listed = 0.0
        requests = self._requests() if not (self._retired or self._stopping()) else None
        if self._restores is not None:
            if requests is not None:
                self._restores.consider(requests, records)
            if not self._restores.idle:
                return
        fingerprint = tuple(sorted((name, entry.mod_revision) for name, entry in records.instants.items()))
        if fingerprint != self._fingerprint or time.monotonic() - self._listed >= self._interval:
            self._fingerprint = fingerprint
            self._list(session, table, records)
        between = self._restores is not None and self._restores.between(records)
        if self._services is not None and self._timeline is not None and requests is not None and not between:
            if self._bootstrap is not None:
                self._bootstrap.consider(requests, records)
            if self._metadata is not None:
                self._metadata.consider(requests, records)
                if not self._metadata.idle:
                    return
            if self._savepoints is not None and self._services.idle:
                self._savepoints.serve(requests, records)
            self._services.consider(records, self._timeline, requests)
            if self._gauge is not None:
                self._gauge.consider(self._timeline, self._services.beside)

    def _gate(self) -> Gate:
        return read(self._etcd.get(self._keys.of(Kind.GATE)), Gate)

    def _gate_state(self) -> GateState | None:
        return self._gate().state

    def _requests(self) -> dict[str, Mapping[str, Any]]:
        return {entry.name: entry.value for entry in self._etcd.range(self._keys.every(Kind.REQUEST))}

    def _list(self, session: AgentSession, table: AgentTable, records: Records) -> None:
        self._timeline = timeline = table.timeline() if self._callback_sender is None else self._callback_sender.look(table.timeline)
        recorded = {entry.name for entry in session.etcd.range(Kind.INSTANT.every)}
        between = self._restores is not None and self._restores.between(records)
        pending = () if between else facts.foreign(timeline, recorded, table.timeline)
        foreigners = (*pending, *self._written_by_others(session, timeline))
        counts = self._services.counts(timeline, records) if self._services is not None else {}
        newest = facts.commits(table, timeline)
        report = facts.report(timeline, inc=session.inc, foreigners=foreigners, commits_since=counts, newest=newest)
        self._report(report.but(bucket=self._bucket.look(), read_cost=self._gauge.latest if self._gauge is not None else None))
        self._listed = time.monotonic()
        self._interval = LIST_SECONDS if timeline.pending else IDLE_LIST_SECONDS

    def _written_by_others(self, session: AgentSession, timeline: tl.Timeline) -> tuple[tl.Instant, ...]:
        """Completed instants of writers without this lock, as long as they are in the active timeline; on record, for the next agent."""
        clock, known = session.etcd.get(CLOCK_KEY), read(session.etcd.get(FOREIGN_KEY), Foreign)
        found = {(i.requested, i.action): i for i in facts.written_by_others(timeline, clock.read(Clock).value)} if clock else {}
        before = [(item.instant, item.action) for item in known.instants]
        listed = {(i.requested, i.action): i for i in (*timeline.completed, *timeline.savepoints)}
        found |= {key: listed[key] for key in before if key in listed}
        newest = sorted(found)[-facts.MAX_LISTED :]
        if newest != before:
            instants = tuple(ForeignInstant(instant=instant, action=action) for instant, action in newest)
            session.etcd.put(FOREIGN_KEY, Foreign(instants=instants).to_json())
        return tuple(found[key] for key in newest)

    # -- reports -------------------------------------------------------------------------------------------------------------------

    def report_error(self, code: str, message: str, *, exists: bool) -> None:
        """Report why the table cannot be served; works without a session."""
        inc = self._session.inc if self._session else ""
        text = first_line(message, limit=500, secrets=environment_secrets())
        self._report(facts.error_report(inc=inc, exists=exists, code=code, message=text))

    def _report(self, report: TimelineReport) -> None:
        now = time.monotonic()
        if report == self._reported and now - self._reported_at < REPORT_SECONDS:
            return
        self._etcd.put(self._keys.of(Kind.REPORT, TIMELINE), report.but(at_ms=now_ms()).to_json())
        self._reported, self._reported_at = report, now

    @property
    def idle(self) -> bool:
        """Whether no service of the table is under way."""
        works = (self._services, self._bootstrap, self._restores, self._metadata)
        return all(work is None or work.idle for work in works)

    def retire(self, *, gone: bool) -> None:
        """Begin nothing any more: this assignment is to be closed. `gone`: the table is not this agent's any more, so nobody waits for its bootstrap."""
        self._retired = True
        if self._callback_sender is not None:
            self._callback_sender.stop()
        if gone and self._bootstrap is not None:
            self._bootstrap.cancel()

    def cancel_service(self) -> None:
        """Ask the service under way, if any, to end."""
        if self._services is not None:
            self._services.cancel()
        if self._bootstrap is not None:
            self._bootstrap.cancel()
        if self._restores is not None:
            self._restores.cancel()

    def close(self) -> bool:
        """Give claims back and leave; False when the operator has to settle this incarnation."""
        if self._callback_sender is not None:
            self._callback_sender.stop()
        if self._session is None:
            return True
        if self._settler is not None:
            self._settler.release_claims()
            if self._settler.must_be_proven_dead():
                return False
        return self._session.close()


def _storage_type(name: str) -> bool:
    return name.startswith(("java.io.IOException", "java.nio.file.", "java.net.", "org.apache.hadoop.", "com.amazonaws."))


def _milliseconds(instant: str) -> str:
    """A 14-digit instant of an older table as a 17-digit one that is not smaller."""
    return instant if len(instant) >= 17 else f"{instant}999"
