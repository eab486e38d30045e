"""Runs a table's services, one at a time, on a separate thread.

So a long compaction does not delay settling.

A pending service instant that this incarnation owns or has claimed comes first: it is executed
until it is completed. A new service is begun only when no instant of a dead incarnation is to be
rolled back and no other agent may still be working on the table (F22, I12), and not behind a gate
that is closed for a change (F434): a savepoint, a restore or another metadata table would wait for
it, with all writers. A run never fails a writer; a failed run is repeated after a back-off and
shown in status.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from hudi_contract.assignment import ServiceOrder
from hudi_contract.keys import COUNTED, Kind
from hudi_contract.outcomes import FailureClass
from hudi_contract.requests import KEPT_RUNS, Asked, Counted, ServiceDone, ServiceRequest, named, request_id
from hudi_contract.table_keys import Gate, InstantRecord
from hudi_contract.words import GateState, RequestKind, Result, Service
from hudi_runtime.process import spark as sp
from hudi_runtime.process.errors import classify, record_message
from hudi_runtime.process.etcd import now_ms, read
from hudi_runtime.services.expiry import CREATION, SINCE
from hudi_runtime.services.service_actions import Actions, commits
from hudi_runtime.services.tasks import LongTask, Observation, Slot
from hudi_runtime.services.triggers import (
    POSTPONED_MS,
    RETURN,
    Done,
    backoff_ms,
    commits_after,
    due,
    postponed_ms,
    record_key,
)
from hudi_runtime.settle.agent_session import AgentSession
from hudi_runtime.settle.rollback import NotYet
from hudi_runtime.settle.settle import Records
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.service_kinds import SERVICE_ACTIONS

FORGET_MS = 120_000
"""Milliseconds after the record of an instant. If its requested file does not exist then, it never
will: the store's client has given up long before.
"""
_REWRITING = frozenset({Service.CLUSTERING, Service.TTL})
"""These services need the table's schema, which exists after the first commit."""
_POSTPONING = frozenset({FailureClass.WRITE_CONFLICT, FailureClass.LOCK_TIMEOUT})


class Services(LongTask):
    """The services of one table. A cancelled run leaves its instant pending."""

    def __init__(
        self,
        spark: SparkSession,
        actions: Actions,
        session: AgentSession,
        *,
        wanted: Mapping[Service, ServiceOrder],
        merge_on_read: bool,
        label: str,
        slot: Slot,
        gate: Callable[[], Gate],
    ) -> None:
        """``gate`` reads the table's gate."""
        super().__init__(spark, slot, f"service-{session.table_id}")
        self._actions = actions
        self._session = session
        self._wanted = wanted
        self._merge_on_read = merge_on_read
        self._label = label
        self._gate = gate

    def _note_losses(self) -> None:
        """Do nothing: a run notes them itself, unless it was postponed and began nothing."""

    def counts(self, timeline: tl.Timeline, records: Records) -> dict[str, int]:
        """Commits since the last run, for each service that counts them."""
        return {
            kind: self._commits(timeline, records, kind)
            for kind, service in self._wanted.items()
            if service.after_commits is not None
        }

    def _commits(self, timeline: tl.Timeline, records: Records, kind: Service) -> int:
        """Commits since the last run of a service, archived ones included."""
        up_to, counted = _record(records, kind).up_to, records.counted_of(kind)
        return commits_after(timeline, up_to, counted, merge_on_read=self._merge_on_read)

    def consider(self, look: Observation) -> None:
        """Start a service that is due. Requests of the operator are keyed by `service-<kind>`."""
        if not self.idle:
            return
        records, timeline, requests = look.records, look.timeline, look.requests
        if self._running is not None:
            # The run may have ended after these records were read, so they may name a withdrawn
            # instant. The next records are newer.
            self._running = None
            return
        now = now_ms()
        mine = records.services_of(self._session.inc)
        lost = [t for t in mine if timeline.get(t) is None and self._own_since(records, t, now) > FORGET_MS]
        if lost:
            self._begin(lambda: self._forget(lost))
            return
        mine = {t: action for t, action in mine.items() if (found := timeline.get(t)) is not None and found.pending}
        for instant, action in sorted(mine.items()):
            kind = SERVICE_ACTIONS[action]
            record = _record(records, kind)
            if now >= record.retry_at_ms:
                after = replace(_planned_for(record, instant), instant=instant, up_to=max(record.up_to, instant))
                self._start(kind, replace(record, instant=instant), pending=frozenset(mine), after=after)
                return
        if records.rolling_back() or records.other_agents(self._session.inc):
            return
        for kind, service in self._wanted.items():
            if any(SERVICE_ACTIONS[action] is kind for action in mine.values()):
                continue
            record = _record(records, kind)
            if (ended := _ended_unseen(record, timeline)) is not None:
                self._begin(partial(self._save, kind, ended))
                return
            request = ServiceRequest.known(requests.get(request_id(RequestKind.SERVICE, kind)))
            commits, left_out = self._commits(timeline, records, kind), len(self._actions.backoff.partitions(now))
            if why := due(service, record, commits=commits, request=request, now_ms=now, left_out=left_out):
                if _changes(requests, self._gate()):
                    return
                last = timeline.last_completed
                asked = Asked(nonce=request.nonce, run=request.run, up_to=last.completion if last else "")
                after = replace(_served(record, asked), up_to=asked.up_to)
                self._start(
                    kind, replace(record, asked=asked), pending=frozenset(), after=after, returning=why == RETURN
                )
                return

    def _own_since(self, records: Records, instant: str, now: int) -> int:
        """Milliseconds since this incarnation recorded an instant.

        0 for a claimed one, which settling handles.
        """
        record = records.instants[instant].read(InstantRecord)
        return now - (record.at_ms or now) if record.inc == self._session.inc else 0

    # -- the run, on its own thread ----------------------------------------------------------------

    def _start(
        self,
        kind: Service,
        record: ServiceDone,
        *,
        pending: frozenset[str],
        after: ServiceDone,
        returning: bool = False,
    ) -> None:
        def run() -> None:
            if not returning or self._return(kind, record):
                self._run(kind, record, pending, after)

        self._begin(run)

    def _return(self, kind: Service, record: ServiceDone) -> bool:
        """Whether partitions that were left out are still unchanged.

        This is asked after reading the newest commits.
        """
        try:
            self._actions.clustering.look()
        except Exception as error:
            # The run meets the error again, and records it
            self._say(kind, f"{type(error).__name__} while reading recent commits")
            return True
        return record.left_out > len(self._actions.backoff.partitions(now_ms()))

    def _run(self, kind: Service, record: ServiceDone, pending: frozenset[str], after: ServiceDone) -> None:
        begun, started = now_ms(), time.monotonic()
        failures = record.failures + 1
        ahead = replace(
            record,
            result=Result.RUNNING,
            at_ms=begun,
            failures=failures,
            retry_at_ms=begun + backoff_ms(failures),
            inc=self._session.inc,
        )
        try:
            # Written ahead: a run that ends its own process is repeated after a pause
            # only, and counted.
            self._save(kind, ahead if pending else replace(ahead, instant="", message=""))
            if pending:
                self._end_leftovers()
            self._enter_pool(f"{kind} of {self._label}")
            done = self._act(kind, record.instant, pending, ahead)
            took = int((time.monotonic() - started) * 1000)
            result = replace(
                after,
                result=done.result,
                instant=done.instant or after.instant,
                message=done.message,
                failures=0,
                retry_at_ms=0,
            )
            if not pending:
                result = replace(result, left_out=done.left_out)
            self._save(kind, replace(result, at_ms=now_ms(), duration_ms=took, inc=self._session.inc))
            self._say(kind, f"{done.result} {done.instant} in {took} ms: {done.message}")
            # The files it left are swept after its end (F36)
            self.unproven = self.unproven or sp.lost_executors(self.spark)
        except Exception as error:
            self._failed(
                kind, ahead, error, failures_before=record.failures, took=int((time.monotonic() - started) * 1000)
            )

    def _act(self, kind: Service, instant: str, pending: frozenset[str], ahead: ServiceDone) -> Done:
        options = self._wanted[kind].options if kind in self._wanted else {}
        if not pending and kind in _REWRITING and not commits(self._actions.table.timeline()):
            return Done(Result.NOTHING_TO_DO, message="nothing was committed yet")
        if kind is Service.ARCHIVE:
            self._count()
            if Service.TTL in self._wanted and self._wanted[Service.TTL].options.get(SINCE) == CREATION:
                self._actions.expiry.begun_anew()
            return self._actions.archive(options)
        if kind is Service.TTL:
            return self._actions.expiry.run(options)
        if kind is Service.CLEAN:
            return self._actions.clean(options, mine=pending)
        do = self._actions.clustering if kind is Service.CLUSTERING else self._actions.compaction
        if pending:
            return do.again(instant, options, failures=ahead.failures - 1)
        return do.run(
            options,
            planned=lambda planned, left_out: self._save(
                kind, replace(ahead, instant=planned, message="", left_out=left_out)
            ),
        )

    def _count(self) -> None:
        """Record the counts before archival.

        Otherwise a service that waits for more commits than the active timeline holds would never
        be due.
        """
        records, timeline = self._actions.records(), self._actions.table.timeline()
        last = timeline.last_completed
        if last is None:
            return
        kinds = [kind for kind, service in self._wanted.items() if service.after_commits is not None]
        counted = {
            str(kind): Counted(
                up_to=_record(records, kind).up_to, commits=self._commits(timeline, records, kind), to=last.completion
            ).to_json()
            for kind in kinds
        }
        self._session.etcd.put(Kind.DONE.of(COUNTED), counted)

    def _failed(self, kind: Service, ahead: ServiceDone, error: Exception, *, failures_before: int, took: int) -> None:
        """Record the reason. Without an answer of etcd the record written ahead stands."""
        try:
            self.unproven = self.unproven or (not isinstance(error, NotYet) and sp.lost_executors(self.spark))
            failure, message = classify(error), record_message(error)
            record = replace(ahead, result=Result.FAILED, message=message, at_ms=now_ms(), duration_ms=took)
            if self._cancelled or isinstance(error, NotYet) or failure.kind in _POSTPONING:
                lost = failure.kind is FailureClass.WRITE_CONFLICT
                later = now_ms() + (0 if self._cancelled else postponed_ms(took) if lost else POSTPONED_MS)
                record = replace(record, result=Result.POSTPONED, failures=failures_before, retry_at_ms=later)
                if lost and kind is Service.CLUSTERING:
                    # One more than the number left out now: the rest of the lost plan is still due.
                    record = replace(record, left_out=len(self._actions.backoff.partitions(now_ms())) + 1)
            self._say(kind, f"{record.result}: {message}")
            current = self._session.etcd.get(record_key(kind))
            known = read(current, ServiceDone) if current else ahead
            self._save(kind, replace(record, instant=known.instant))
        except Exception as second:
            self._say(kind, f"not recorded: {type(second).__name__}")

    def _forget(self, instants: list[str]) -> None:
        """Abandon own instants that have a record but never got a file; settling checks them again.

        The record is written first (F12).
        """
        timeline = self._actions.table.timeline()
        for instant in instants:
            if timeline.get(instant) is None:
                self._session.forget(instant)

    def _save(self, kind: Service, record: ServiceDone) -> None:
        self._session.etcd.put(record_key(kind), replace(record, service=kind).to_json())

    def _say(self, kind: Service, text: str) -> None:
        print(f"table {self._label}: {kind}: {text}", file=sys.stderr, flush=True)


def _changes(requests: Mapping[str, Mapping[str, object]], gate: Gate) -> bool:
    """Whether the gate is closed for a change, which would wait for a new run."""
    asked = any(
        id == str(RequestKind.METADATA) or named(RequestKind.SAVEPOINT, id) or named(RequestKind.RESTORE, id)
        for id in requests
    )
    return gate.state is GateState.CLOSED and bool(asked or gate.closed_for or gate.restoring)


def _record(records: Records, kind: Service) -> ServiceDone:
    """The last run; an empty record for a service that never ran."""
    return read(records.services.get(request_id(RequestKind.SERVICE, kind)), ServiceDone)


def _served(record: ServiceDone, asked: Asked) -> ServiceDone:
    """The record when a run has ended well: who asked for it is served."""
    known = tuple(run for run in record.runs if run != asked.run)
    runs = (*known, asked.run)[-KEPT_RUNS:] if asked.run else record.runs
    return replace(record, nonce=asked.nonce or record.nonce, runs=runs, asked=None)


def _ended_unseen(record: ServiceDone, timeline: tl.Timeline) -> ServiceDone | None:
    """The record of a run whose instant is completed, and which nobody has recorded as such.

    Its agent ended in between, or did not hear from the store. None: there is no such run. The
    instant of a record is that of its own run, or empty.
    """
    asked = record.asked
    if asked is None or record.instant <= asked.up_to or record.result in (None, Result.COMPLETED):
        return None
    found = timeline.get(record.instant)
    if found is None or found.pending:
        return None
    served = replace(_served(record, asked), up_to=asked.up_to)
    return replace(served, result=Result.COMPLETED, message="", failures=0, retry_at_ms=0)


def _planned_for(record: ServiceDone, instant: str) -> ServiceDone:
    """The record when the plan of this instant is executed.

    It serves who asked for the run that has made it, or that saw no commit behind it (F548); not
    before: it may be withdrawn, and then another run is due (F551, F552).
    """
    asked = record.asked
    return record if asked is None or instant <= asked.up_to else _served(record, asked)
