"""Prepare an assigned table.

Check that it is reachable and matches the spec, then adopt or create it. Every step
may be repeated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from hudi_contract import environment, naming
from hudi_contract.assignment import AssignmentRecord
from hudi_contract.keys import CREATE, FOREIGN, Kind
from hudi_contract.requests import Created, Foreign
from hudi_contract.table_keys import Clock, Durations
from hudi_contract.words import Adoption, AgentError, Role
from hudi_runtime.agent import adoption, creation, facts, metadata_in_force, store_probe, stored_rows
from hudi_runtime.agent.context import AgentContext
from hudi_runtime.agent.tasks import Tasks
from hudi_runtime.job import merging
from hudi_runtime.job.job import TableSpec
from hudi_runtime.process.etcd import now_ms, read
from hudi_runtime.services.tasks import Observation
from hudi_runtime.settle.rollback import NotYet
from hudi_runtime.table.hudi import PROPERTIES
from hudi_runtime.table.storage import Storage

CREATED_KEY, FOREIGN_KEY, CLOCK_KEY = Kind.DONE.of(CREATE), Kind.DONE.of(FOREIGN), Kind.CLOCK.of()
CLOCK_ZERO = "19700101000000000"
#: The first access must not take minutes when the endpoint or the keys are wrong: S3A would retry
# for that long.
PROBE_SETTINGS = {
    "fs.s3a.attempts.maximum": "1",
    "fs.s3a.retry.limit": "1",
    "fs.s3a.retry.interval": "100ms",
    "fs.s3a.connection.establish.timeout": "3000",
    "fs.s3a.connection.timeout": "8000",
}


def probe(spark: SparkSession, path: str) -> bool:
    """Whether there is a table at the path, asked with a client that gives up soon."""
    storage = Storage(spark, path, settings=PROBE_SETTINGS)
    try:
        return any(storage.exists(name) for name in PROPERTIES)
    finally:
        storage.close()


def session_settings(spec: TableSpec, order: AssignmentRecord) -> dict[str, str]:
    """Settings of the agent's Java session at this table (spark-images/etcd-lock/API.md).

    The durations are the gate's, from the operator's assignment.
    """
    settings = {
        "tableId": spec.id,
        "basePath": spec.path,
        "attempt": naming.attempt_id(
            os.environ.get(environment.POD_NAMESPACE, "default"), os.environ.get(environment.POD_NAME, "agent")
        ),
        "role": Role.AGENT,
    }
    return {**settings, **(order.lock or Durations()).settings()}


class Preparation:
    """Prepares one table.

    Raises the reason when it is not ready: a mismatch, NotAdopted, PendingInstants, NotYet,
    or an error.
    """

    def __init__(
        self,
        context: AgentContext,
        tasks: Tasks,
        *,
        policy: str,
        options: Mapping[str, str],
        stopping: Callable[[], bool],
    ) -> None:
        """``policy`` is the adoption policy, ``options`` are the Hudi options of the spec."""
        self._context = context
        self._tasks = tasks
        self._policy = policy
        self._options = options
        self._stopping = stopping

    def run(self, *, exists: bool) -> None:
        """Compare, adopt or create. ``exists``: whether there is a table at the path."""
        context, table, spec = self._context, self._context.table, self._context.spec
        gate = context.keys.gate()
        adopted = gate.was_open
        if exists:
            found = creation.mismatches(spec, creation.facts(table), adopting=not adopted)
            if found:
                raise creation.TableMismatch("; ".join(found))
        creation.check_marker(table, spec, authority=gate.authority, prefix=context.keys.prefix)
        if not adopted:
            store_probe.require(context.spark, spec.path, exists=exists)
        if not (exists and adopted):
            # For a table in use, dead writers are settled even without the merger, and its services
            # report the missing class.
            self._require_merger(exists=exists)
        if exists and not adopted:
            self._adopt(gate.table_uid)
        self._init_clock(exists=exists)
        if not exists:
            self._create(gate.table_uid, adopted=adopted)
        if metadata_in_force.goes(self._options):
            # Before the gate opens, and before a metadata table that is not wanted any more goes
            creation.begin_timeline(table, context.name, context.options())

    def _require_merger(self, *, exists: bool) -> None:
        try:
            self._context.table.require_merger(self._context.spec.merge)
        except merging.NoMerger as missing:
            raise adoption.NotAdopted(AgentError.MERGER_MISSING, str(missing), exists=exists) from missing

    def _create(self, uid: str, *, adopted: bool) -> None:
        context = self._context
        if self._policy == Adoption.ADOPT and not adopted:
            message = f"spec.adoption.policy is {Adoption.ADOPT}, and there is no Hudi table at {context.spec.path}"
            raise adoption.NotAdopted(AgentError.TABLE_NOT_FOUND, message, exists=False)
        # Written ahead: a table found from now on may be our own half-finished creation.
        context.session.etcd.put(CREATED_KEY, Created(table_uid=uid).to_json())
        creation.create(context.spark, context.table, context.spec, context.options())

    def _adopt(self, uid: str) -> None:
        """Behind the gate that was never open.

        Compare, settle the assigned instants, look for instants without an owner, take
        the table over.
        """
        context, table, session = self._context, self._context.table, self._context.session
        created = read(session.etcd.get(CREATED_KEY), Created)
        adoption.refuse_existing(self._policy, table, mine=bool(uid and created.table_uid == uid))
        found = adoption.problems(context.spec, self._options, adoption.look(table), now=datetime.now(UTC))
        # Rows are read only of a table that fits so far
        found = found or stored_rows.problems(context.spark, table, context.spec, self._options)
        if found:
            raise creation.TableMismatch("; ".join(found))
        records = context.records()
        self._tasks.settle_all(records, stopping=self._stopping)
        timeline = table.timeline()
        if records.services_of(session.inc):
            self._tasks.services.consider(Observation({}, context.records(), timeline))
        recorded = {entry.name for entry in session.etcd.range(Kind.INSTANT.every)}
        foreigners = facts.foreign(timeline, recorded, table.timeline)
        if foreigners:
            raise adoption.PendingInstants(timeline, foreigners, adoption.beating(table, foreigners, now_ms=now_ms()))
        if context.records().adopting():
            raise NotYet("the instants of the table's former writers are being settled")
        unordered = adoption.unordered(context.spark, context.spec)
        if unordered:
            raise creation.TableMismatch("; ".join(unordered))
        adoption.take_over(table, context.name, context.options())
        self._forward_clock(table.timeline().maximum)
        session.etcd.put(FOREIGN_KEY, Foreign().to_json())  # earlier completed instants are not foreign

    def _forward_clock(self, maximum: str) -> None:
        """Move the clock to the newest time.

        Writers without this lock moved the timeline but not the clock (I10).
        """
        etcd = self._context.session.etcd
        clock = etcd.get(CLOCK_KEY)
        newest = Clock(value=_milliseconds(maximum) if maximum else CLOCK_ZERO)
        if (
            clock is not None
            and clock.read(Clock).value < newest.value
            and etcd.cas(CLOCK_KEY, newest.to_json(), clock.mod_revision) is None
        ):
            raise NotYet("the table's clock has changed")

    def _init_clock(self, *, exists: bool) -> None:
        """Start the clock at the newest time of the timeline.

        From then on only the JVMs move it (I10).
        """
        etcd = self._context.session.etcd
        if etcd.get(CLOCK_KEY) is None:
            maximum = self._context.table.timeline().maximum if exists else ""
            etcd.cas(CLOCK_KEY, Clock(value=_milliseconds(maximum) if maximum else CLOCK_ZERO).to_json(), 0)


def _milliseconds(instant: str) -> str:
    """A 14-digit instant of an older table as a 17-digit one that is not smaller."""
    return instant if len(instant) >= 17 else f"{instant}999"
