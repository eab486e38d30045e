"""Bootstrap: the agent writes the table's first commit from a plain dataset.

It does so behind the gate that was never open (RFC-22 R14, R15).

The operator requests it in `request/bootstrap`. The commit is an ordinary bulk insert under an
ordinary instant: recorded before its file, published under the lock, rolled back by settling when
its agent dies, and never by Hudi's inline rollback of bootstraps. `done/bootstrap` is written ahead
of each try. The commit's own metadata shows whether a try has succeeded, so the commit of an agent
that died after it is not repeated.
"""

from __future__ import annotations

import json
import sys

from hudi_contract import metadata
from hudi_contract.keys import Kind
from hudi_contract.outcomes import FailureClass
from hudi_contract.requests import BootstrapDone, BootstrapMark, BootstrapRequest, request_id
from hudi_contract.table_keys import InstantRecord
from hudi_contract.words import BootstrapMode, GateState, RequestKind, Result, SourceError
from hudi_runtime.agent import dataset
from hudi_runtime.agent.context import AgentContext
from hudi_runtime.job.options import key_options, table_options
from hudi_runtime.process import spark as sp
from hudi_runtime.process.errors import (
    OutcomeUnknown,
    RuntimeFailure,
    UserCodeError,
    environment_secrets,
    first_line,
    record_message,
)
from hudi_runtime.process.etcd import encode, now_ms, read
from hudi_runtime.services.tasks import LongTask, Observation
from hudi_runtime.services.triggers import backoff_ms
from hudi_runtime.settle.rollback import NotYet
from hudi_runtime.table import timeline as tl

KEY = request_id(RequestKind.BOOTSTRAP)
DONE = Kind.DONE.of(KEY)
WORD = metadata.BOOTSTRAP
"""Key in the commit's metadata: the HudiTable that was bootstrapped by it, and the source
of its rows.
"""
INSERTS = frozenset({"commit", "deltacommit"})
OPTIONS = {
    "hoodie.datasource.write.operation": "bulk_insert",
    # One open file at a time, however many partitions there are; Spark sorts on disk.
    "hoodie.bulkinsert.sort.mode": "PARTITION_SORT",
}


class Bootstrap(LongTask):
    """The bootstrap of one table. A cancelled try abandons its instant."""

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context.spark, context.slot, f"{KEY}-{context.spec.id}")
        self.context = context
        self.table = context.table
        self.session = context.session
        self.spec = context.spec

    def consider(self, look: Observation) -> None:
        """Begin a try when one is requested and due.

        Nothing of an earlier one may be left (I7, I12).
        """
        asked = look.requests.get(KEY)
        if asked is None or not self.idle or self._cancelled:
            return
        request = BootstrapRequest.from_json(asked)
        record = self._record(request)
        if record.result is Result.COMPLETED or now_ms() < record.retry_at_ms:
            return
        if look.records.settling() or look.records.other_agents(self.session.inc):
            return
        if self.context.gate_state() != GateState.CLOSED:  # R14: only agents may acquire
            return
        self._begin(lambda: self._run(request, record))

    def _record(self, request: BootstrapRequest) -> BootstrapDone:
        """`done/bootstrap` of the requesting HudiTable; an empty record when there is none."""
        known = read(self.session.etcd.get(DONE), BootstrapDone)
        return known if known.table_uid == request.table_uid else BootstrapDone()

    # -- a try, on its own thread ------------------------------------------------------------------

    def _run(self, request: BootstrapRequest, record: BootstrapDone) -> None:
        failures, begun = record.failures, now_ms()
        ahead = BootstrapDone(
            table_uid=request.table_uid,
            mode=request.mode,
            source=request.path,
            result=Result.RUNNING,
            begin_ms=record.begin_ms or begun,
            failures=failures + 1,
            retry_at_ms=begun + backoff_ms(failures + 1),
            inc=self.session.inc,
        )
        try:
            self._end_own()
            # Written ahead: a try that ends its own process is repeated after a pause
            # only, and counted.
            self.session.etcd.put(DONE, ahead.to_json())
            found = self._found(request, ahead) or self._write(request, ahead)
            self.session.etcd.put(
                DONE, found.but(result=Result.COMPLETED, end_ms=now_ms(), failures=0, retry_at_ms=0).to_json()
            )
            self._say(f"{Result.COMPLETED} {found.instant}: {found.records} records of {request.path}")
        except Exception as error:
            self._failed(ahead, error, before=failures)

    def _write(self, request: BootstrapRequest, ahead: BootstrapDone) -> BootstrapDone:
        if request.mode != BootstrapMode.FULL_RECORD:
            raise UserCodeError(f"mode {request.mode} is not supported, only {BootstrapMode.FULL_RECORD}")
        self._require_empty()
        self._enter_pool(f"{KEY} of {self.spec.table}")
        source = dataset.read(self.spark, self.spec, request.path, request.format)
        mark = BootstrapMark(table_uid=request.table_uid, mode=request.mode, source=request.path)
        options = {
            **self.context.options(),
            **table_options(self.spec),
            **OPTIONS,
            **key_options(source.frame.schema, self.spec.record_keys),
            metadata.INC: self.session.inc,
            metadata.ATTEMPT: self.session.attempt,
            WORD: encode(mark.to_json()),
        }
        source.frame.write.format("hudi").options(**options).mode("append").save(self.table.path)
        found = self._found(request, ahead)
        if found is None:
            raise OutcomeUnknown("the write ended without an error, but its commit is not on the timeline")
        if found.records != source.rows:
            said = (
                f"the dataset had {source.rows} rows when it was checked: either it was changed meanwhile or rows "
                "are wrong; compare both"
            )
            return found.but(message=said)
        return found

    def _require_empty(self) -> None:
        """Require a table without commits.

        A table with commits is adopted, not bootstrapped (I4, I8).
        """
        written = [i.requested for i in self.table.timeline().completed if i.action in tl.WRITE_ACTIONS]
        if written or self.table.has_archive():
            raise RuntimeFailure(
                FailureClass.INFRASTRUCTURE,
                (
                    f"{self.table.path} already has commits ({written[0] if written else 'archived'}): it is "
                    "bootstrapped only once"
                ),
            )
        pending = [i.requested for i in self.table.timeline().pending]
        if pending:
            raise NotYet(f"instant {pending[0]} is pending")

    def _found(self, request: BootstrapRequest, ahead: BootstrapDone) -> BootstrapDone | None:
        """The record completed from the metadata of this bootstrap's commit.

        It does not matter which agent made the commit. None when there is no such commit.
        """
        if not self.session.quiet():
            raise OutcomeUnknown("the outcome of a publication is unknown")
        completed = self.table.timeline().completed
        for instant, info in self.table.commits(completed):
            mark = BootstrapMark.known(json.loads(info.extra.get(WORD) or "{}"))
            if mark.table_uid and mark.table_uid == request.table_uid:
                totals = self.table.totals(instant)
                found = ahead.but(records=totals.records, files=totals.files, bytes=totals.bytes)
                return found.but(instant=instant.requested, completion_time=instant.completion, source=mark.source)
        return None

    # -- failures ----------------------------------------------------------------------------------

    def _failed(self, ahead: BootstrapDone, error: Exception, *, before: int) -> None:
        """Record the reason, and abandon the instant.

        Without an answer of etcd the record written ahead stands, and the operator
        settles this agent.
        """
        try:
            waiting = isinstance(error, NotYet) or self._cancelled
            message = record_message(str(error) if isinstance(error, NotYet) else error)
            self._say(f"{'waits' if waiting else Result.FAILED}: {message}")
            code = SourceError.SOURCE_INVALID if dataset.of_the_dataset(error) else Result.FAILED
            told = (
                ahead.but(failures=before, retry_at_ms=now_ms() + backoff_ms(1))
                if waiting
                else ahead.but(result=Result.FAILED, code=code)
            )
            self.session.etcd.put(DONE, told.but(message=message).to_json())
            self._end_own()
        except Exception as second:
            self._say(
                f"not recorded: {type(second).__name__}: "
                f"{first_line(str(second), limit=200, secrets=environment_secrets())}"
            )

    def _end_own(self) -> None:
        """Declare the pending instants of a failed try of this incarnation Abandoned.

        Settling rolls them back then (F4).

        Raises NotYet when there were any, and OutcomeUnknown when a publication is unknown or tasks
        do not end: then they stay Pending.
        """
        if not self.session.quiet():
            raise OutcomeUnknown("the outcome of a publication is unknown")
        timeline = self.table.timeline()
        left = [
            t
            for t in self.session.pending()
            if self._inserts(t) and ((found := timeline.get(t)) is None or found.pending)
        ]
        if not left:
            return
        self.spark.sparkContext.cancelJobGroup(self._group)
        if not sp.await_idle(self.spark, sp.IDLE_SECONDS, group=self._group):
            raise OutcomeUnknown("tasks of the failed try do not end")
        for instant in left:
            self.session.abandon(instant)
        raise NotYet(f"instant {left[0]} of a failed try is rolled back first")

    def _inserts(self, instant: str) -> bool:
        """Whether an own instant was recorded for an insert.

        Settling records rollbacks in parallel, and an agent inserts only in a bootstrap.
        """
        return read(self.session.etcd.get(Kind.INSTANT.of(instant)), InstantRecord).action in INSERTS

    def _say(self, text: str) -> None:
        print(f"table {self.spec.table}: {KEY}: {text}", file=sys.stderr, flush=True)
