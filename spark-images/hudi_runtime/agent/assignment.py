"""One table of an agent: session, existence, settling, facts. A pass never raises for a reason that another table could not share."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from hudi_runtime.agent import adoption, bootstrap, creation, facts, store_probe
from hudi_runtime.agent.bucket import Bucket
from hudi_runtime.agent.metadata_table import MetadataTable
from hudi_runtime.agent.read_cost import Gauge, value_of
from hudi_runtime.agent.restores import Restores
from hudi_runtime.agent.savepoints import Savepoints
from hudi_runtime.callback import callback
from hudi_runtime.callback.callback_plan import Source
from hudi_runtime.job import merging
from hudi_runtime.job.job import TableSpec
from hudi_runtime.process import spark as sp
from hudi_runtime.process.errors import FailureClass, classify, environment_secrets, first_line, java_causes
from hudi_runtime.process.etcd import Entry, Etcd, now_ms
from hudi_runtime.services import triggers
from hudi_runtime.services.service_actions import Actions
from hudi_runtime.services.services import Services, Slot
from hudi_runtime.settle.agent_session import AgentSession
from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.settle.rollback import NotYet
from hudi_runtime.settle.settle import ROLLING_BACK, Records, Settler
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.storage import Storage

LIST_SECONDS = 5.0
"""Between two listings while something is pending."""
IDLE_LIST_SECONDS = 15.0
"""Otherwise: commits of our writers are seen in etcd at once, listings cost requests at the store, foreign writers are rare."""
REPORT_SECONDS = 60.0
DRAIN_SECONDS = 10.0
"""When the assignment does not say it."""
RETRY_SECONDS = 3.0
MAX_RETRY_SECONDS = 15.0
FOREIGN_KEY = "done/foreign"
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
        self.spec = TableSpec.from_json(value)
        self._spark = spark
        self._etcd = etcd
        self._stopping = stopping
        self._policy = str(value.get("adoption") or "AdoptOrCreate")
        self._options = {str(key): str(item) for key, item in (value.get("hudiProps") or {}).items()}
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
        self._reported: dict[str, Any] = {}
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
        return self._session is not None and self._session.state == "FENCED"

    def fence_stands(self) -> bool:
        """The same, asked of etcd."""
        session = self._session
        return session is not None and (self.fenced or self._etcd.get(f"{self._etcd.prefix}/control/{self.spec.id}/fence/{session.inc}") is not None)

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
            self._error("TableMismatch", str(mismatch), exists=True)
        except creation.OtherLockAuthority as other:
            self._error("OtherLockAuthority", str(other), exists=True)
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        failure = classify(error, secrets=environment_secrets())
        code = "OtherLockAuthority" if "[HUDIOP-OTHER-AUTHORITY]" in failure.message else failure.kind.value
        if failure.kind is FailureClass.INFRASTRUCTURE and any(_storage_type(cause.type) for cause in java_causes(error)):
            code = FailureClass.STORAGE_UNREACHABLE.value
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
            drain = float((self.value.get("lock") or {}).get("drainSeconds") or DRAIN_SECONDS)
            self._settler = Settler(self._table, self._session, self.spec.name, self._agent_options(), lost=lambda: sp.lost_executors(self._spark), drain=drain)
            self._services = self._make_services(self._table, self._session)
            self._bootstrap = self._make_bootstrap(self._table, self._session, self._services)
            self._metadata = self._make_metadata(self._table, self._session, self._services)
            self._savepoints = Savepoints(self._table, self._session, self.spec.name, self.spec.table, self._agent_options(), self._gate_state)
            self._restores = self._make_restores(self._table, self._session, self._services)
            self._callback_sender = self._make_callback_sender(self._table, self._session)
            # Tables of the other type have no log files.
            self._gauge = Gauge(self._table) if self.spec.type == "MERGE_ON_READ" else None
        gate = self._etcd.get(f"{self._etcd.prefix}/control/{self.spec.id}/gate")
        authority = str(gate.value.get("authority", "")) if gate else ""
        adopted = gate is not None and bool(gate.value.get("adopted") or gate.value.get("state") == "open")
        if exists:
            found = creation.mismatches(self.spec, creation.facts(self._table), adopting=not adopted)
            if found:
                raise creation.TableMismatch("; ".join(found))
        creation.check_marker(self._table, self.spec, authority=authority, prefix=self._etcd.prefix)
        if not adopted:
            store_probe.require(self._spark, self.spec.path, exists=exists)
        if not (exists and adopted):
            # Of a table that is in use the dead writers are settled all the same, and its services say it.
            self._require_merger(self._table, exists=exists)
        if exists and not adopted:
            self._adopt(self._table, self._session, self._table_uid(gate))
        self._init_clock(self._table, self._session, exists=exists)
        if not exists:
            self._create(self._table, self._session, self._table_uid(gate), adopted=adopted)
        self._ready = True

    def _require_merger(self, table: AgentTable, *, exists: bool) -> None:
        try:
            table.require_merger(self.spec.merge)
        except merging.NoMerger as missing:
            raise adoption.NotAdopted("MergerMissing", str(missing), exists=exists) from missing

    @staticmethod
    def _table_uid(gate: Entry | None) -> str:
        return str(gate.value.get("tableUid") or "") if gate else ""

    def _create(self, table: AgentTable, session: AgentSession, uid: str, *, adopted: bool) -> None:
        if self._policy == adoption.ADOPT and not adopted:
            message = f"spec.adoption.policy is {adoption.ADOPT}, and there is no Hudi table at {self.spec.path}"
            raise adoption.NotAdopted("TableNotFound", message, exists=False)
        session.etcd.put("done/create", {"tableUid": uid})  # written ahead: what is found from now on may be our own half of a creation
        creation.create(self._spark, table, self.spec, self._agent_options())

    def _adopt(self, table: AgentTable, session: AgentSession, uid: str) -> None:
        """Behind the gate that was never open: compare, settle what was handed over, look for what has no owner, take the table over."""
        created = session.etcd.get("done/create")
        adoption.refuse_existing(self._policy, table, mine=bool(created and uid and created.value.get("tableUid") == uid))
        found = adoption.problems(self.spec, self._options, adoption.look(table), now=datetime.now(UTC))
        if found:
            raise creation.TableMismatch("; ".join(found))
        records = self._records(session)
        if self._settler is not None:
            self._settler.run(records, stopping=self._stopping)
        timeline = table.timeline()
        if self._services is not None and records.services_of(session.inc):
            self._services.consider(self._records(session), timeline, {})
        recorded = {entry.name for entry in session.etcd.range("instant/")}
        foreigners = facts.foreign(timeline, recorded, table.timeline)
        if foreigners:
            raise adoption.PendingInstants(timeline, foreigners, adoption.beating(table, foreigners, now_ms=now_ms()))
        if self._records(session).adopting():
            raise NotYet("the instants of the table's former writers are being settled")
        adoption.take_over(table, self.spec.name, self._agent_options())
        self._forward_clock(session, table.timeline().maximum)
        session.etcd.put(FOREIGN_KEY, {"instants": []})  # whatever they have completed was theirs to write

    def _forward_clock(self, session: AgentSession, maximum: str) -> None:
        """Writers without this lock have moved the timeline, and not the clock (I10)."""
        clock = session.etcd.get("clock")
        newest = _milliseconds(maximum) if maximum else CLOCK_ZERO
        if clock is not None and str(clock.value.get("value")) < newest and session.etcd.cas("clock", {"value": newest}, clock.mod_revision) is None:
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
        wanted, merge_on_read = triggers.from_assignment(self.value), self.spec.type == "MERGE_ON_READ"
        return Services(self._spark, actions, session, wanted=wanted, merge_on_read=merge_on_read, label=self.spec.table, slot=self._slot)

    def _make_bootstrap(self, table: AgentTable, session: AgentSession, services: Services) -> bootstrap.Bootstrap:
        return bootstrap.Bootstrap(self._spark, table, session, self.spec, self._agent_options(), self._gate_state, services.beside)

    def _make_restores(self, table: AgentTable, session: AgentSession, services: Services) -> Restores:
        ended = self._settler.ended if self._settler is not None else set()
        return Restores(self._spark, table, session, self.spec.name, self.spec.table, self._agent_options(), self._gate_value, services.beside, ended)

    def _make_metadata(self, table: AgentTable, session: AgentSession, services: Services) -> MetadataTable:
        known = str(self.value.get("metadataTable") or "")
        return MetadataTable(table, session, self.spec.name, self.spec.table, self._agent_options(), known, self._gate_state, services.beside)

    def _make_callback_sender(self, table: AgentTable, session: AgentSession) -> callback.CallbackSender | None:
        namespace, _, name = self.spec.table.partition("/")
        source = Source(namespace, name, self.spec.id, self.spec.path)
        made = callback.from_assignment(self.value, source, table, session.etcd, inc=session.inc)
        if made is None:
            callback.forget(session.etcd)
        return made

    def _records(self, session: AgentSession) -> Records:
        return Records.from_entries(session.etcd.range(""), prefix=f"{self._etcd.prefix}/tables/{self.spec.id}/")

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
            "attempt": f"{os.environ.get('POD_NAMESPACE', 'default')}.{os.environ.get('POD_NAME', 'agent')}",
            "role": "agent",
        }
        lock = self.value.get("lock") or {}
        settings.update({str(key): str(item) for key, item in lock.items() if str(key).endswith("Seconds")})
        return settings

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
        if session.etcd.get("clock") is None:
            maximum = table.timeline().maximum if exists else ""
            session.etcd.cas("clock", {"value": _milliseconds(maximum) if maximum else CLOCK_ZERO}, 0)

    # -- the pass ------------------------------------------------------------------------------------------------------------------

    def _pass(self, session: AgentSession, table: AgentTable) -> None:
        records = self._records(session)
        busy = any(entry.value.get("phase") == ROLLING_BACK for entry in records.settles.values())
        busy = busy or bool(records.given_up) or any(entry.value.get("state") == "Abandoned" for entry in records.instants.values())
        if busy and self._settler is not None and self._settler.run(records, stopping=self._stopping):
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

    def _gate_value(self) -> Mapping[str, Any]:
        gate = self._etcd.get(f"{self._etcd.prefix}/control/{self.spec.id}/gate")
        return gate.value if gate else {}

    def _gate_state(self) -> str:
        return str(self._gate_value().get("state") or "")

    def _requests(self) -> dict[str, Mapping[str, Any]]:
        prefix = f"{self._etcd.prefix}/control/{self.spec.id}/request/"
        return {entry.name: entry.value for entry in self._etcd.range(prefix)}

    def _list(self, session: AgentSession, table: AgentTable, records: Records) -> None:
        self._timeline = timeline = table.timeline() if self._callback_sender is None else self._callback_sender.look(table.timeline)
        recorded = {entry.name for entry in session.etcd.range("instant/")}
        between = self._restores is not None and self._restores.between(records)
        pending = () if between else facts.foreign(timeline, recorded, table.timeline)
        foreigners = (*pending, *self._written_by_others(session, timeline))
        counts = self._services.counts(timeline, records) if self._services is not None else {}
        newest = facts.commits(table, timeline)
        report = facts.report(timeline, inc=session.inc, foreigners=foreigners, commits_since=counts, newest=newest)
        self._report({**report, **self._bucket.look(), **value_of(self._gauge.latest if self._gauge is not None else None)})
        self._listed = time.monotonic()
        self._interval = LIST_SECONDS if timeline.pending else IDLE_LIST_SECONDS

    def _written_by_others(self, session: AgentSession, timeline: tl.Timeline) -> tuple[tl.Instant, ...]:
        """Completed instants of writers without this lock, as long as they are in the active timeline; on record, for the next agent."""
        clock, known = session.etcd.get("clock"), session.etcd.get(FOREIGN_KEY)
        found = {(i.requested, i.action): i for i in facts.written_by_others(timeline, str(clock.value["value"]))} if clock else {}
        before = [(str(item["instant"]), str(item["action"])) for item in known.value.get("instants", [])] if known else []
        listed = {(i.requested, i.action): i for i in (*timeline.completed, *timeline.savepoints)}
        found |= {key: listed[key] for key in before if key in listed}
        newest = sorted(found)[-facts.MAX_LISTED :]
        if newest != before:
            session.etcd.put(FOREIGN_KEY, {"instants": [{"instant": instant, "action": action} for instant, action in newest]})
        return tuple(found[key] for key in newest)

    # -- reports -------------------------------------------------------------------------------------------------------------------

    def report_error(self, code: str, message: str, *, exists: bool) -> None:
        """Report why the table cannot be served; works without a session."""
        inc = self._session.inc if self._session else ""
        text = first_line(message, limit=500, secrets=environment_secrets())
        self._report(facts.error_report(inc=inc, exists=exists, code=code, message=text))

    def _report(self, report: dict[str, Any]) -> None:
        now = time.monotonic()
        if report == self._reported and now - self._reported_at < REPORT_SECONDS:
            return
        self._etcd.put(f"{self._etcd.prefix}/tables/{self.spec.id}/report/timeline", {"atMs": now_ms(), **report})
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
