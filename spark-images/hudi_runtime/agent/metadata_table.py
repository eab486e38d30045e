"""Disable or rebuild Hudi's metadata table.

The operator requests it in `request/metadata` behind the closed gate.

There is one way to every state: delete the metadata table, and make it again from a listing if it
is wanted, with the wanted indexes. Both steps run under the table's lock, with nothing pending, so
a half-made one of an agent that died is only one more thing to delete (I6). Readers see no change:
they list the storage while there is no metadata table.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from hudi_contract.requests import MetadataDone, MetadataRequest
from hudi_contract.words import GateState, Result
from hudi_runtime.agent.context import AgentContext
from hudi_runtime.agent.metadata_in_force import DONE, FILES, KEY
from hudi_runtime.process.errors import OutcomeUnknown, record_message
from hudi_runtime.process.etcd import now_ms, read
from hudi_runtime.services.tasks import LongTask, Observation
from hudi_runtime.services.triggers import backoff_ms
from hudi_runtime.settle.rollback import NotYet

WAIT_MS = 2_000


class MetadataTable(LongTask):
    """The metadata table of one table."""

    exclusive = True

    def __init__(self, context: AgentContext, *, known: str) -> None:
        """``known`` is the nonce of the agent's own options.

        With older options it would rebuild, after the change, the partitions that it has deleted.
        """
        super().__init__(context.spark, context.slot, f"{KEY}-{context.spec.id}")
        self.context = context
        self.table = context.table
        self.session = context.session
        self.known = known

    def cancel(self) -> None:
        """Do nothing: a change runs to its end.

        A half-made metadata table would only have to be deleted again.
        """

    def consider(self, look: Observation) -> None:
        """Begin a change when one is requested and due.

        No other process may be working on the table (I12, R16).
        """
        asked = look.requests.get(KEY)
        if asked is None or not self.idle:
            return
        request = MetadataRequest.from_json(asked)
        if request.nonce != self.known:
            return
        known = read(self.session.etcd.get(DONE), MetadataDone)
        record = known if known.nonce == request.nonce else MetadataDone()
        if record.result is Result.COMPLETED or now_ms() < record.retry_at_ms:
            return
        if (
            look.records.settling()
            or look.records.other_agents(self.session.inc)
            or self.context.gate_state() != GateState.CLOSED
        ):
            return
        self._begin(lambda: self._run(request, record))

    def _run(self, request: MetadataRequest, record: MetadataDone) -> None:
        before = record.failures
        retry_at_ms = now_ms() + backoff_ms(before + 1)
        ahead = MetadataDone(
            nonce=request.nonce,
            result=Result.RUNNING,
            failures=before + 1,
            retry_at_ms=retry_at_ms,
            inc=self.session.inc,
        )
        try:
            # Written ahead: a try that ends its own process is repeated after a pause
            # only, and counted.
            self._save(ahead)
            partitions = self._change(enabled=request.enabled, options=request.options)
            self._save(ahead.but(result=Result.COMPLETED, failures=0, retry_at_ms=0, partitions=tuple(partitions)))
            self._say(f"{Result.COMPLETED} {request.nonce}: {', '.join(partitions) or 'no partitions'}")
        except Exception as error:
            self._failed(ahead, error, before=before)

    def _change(self, *, enabled: bool, options: Mapping[str, str]) -> list[str]:
        """Delete the metadata table, and make it again if it is wanted.

        Returns its partitions; raises NotYet while an instant is pending.
        """
        config = self.table.write_config(self.context.name, {**self.context.wanted, **options})
        with self.table.locked(config):
            # Under the lock: nothing can be begun from here on.
            pending = self.table.timeline().pending
            if pending:
                raise NotYet(f"instant {pending[0].requested} ({pending[0].action}) is pending")
            if self.context.gate_state() != GateState.CLOSED:
                raise NotYet("the gate is not closed any more")
            self.table.delete_metadata_table()
            if enabled:
                self.table.make_metadata_table(config)
        made, half_made = self.table.metadata_partitions()
        if half_made or (FILES in made) != enabled or (made and not enabled):
            raise OutcomeUnknown(
                f"the table lists the partitions {sorted(made)} of its metadata table as finished, and "
                f"{sorted(half_made)} as unfinished"
            )
        return sorted(made)

    def _save(self, done: MetadataDone) -> None:
        self.session.etcd.put(DONE, done.but(at_ms=now_ms()).to_json())

    def _failed(self, ahead: MetadataDone, error: Exception, *, before: int) -> None:
        """Record the reason. Without an answer of etcd the record written ahead stands."""
        try:
            waiting = isinstance(error, NotYet)
            message = record_message(str(error) if waiting else error)
            self._say(f"{'waits' if waiting else Result.FAILED}: {message}")
            told = (
                ahead.but(failures=before, retry_at_ms=now_ms() + WAIT_MS)
                if waiting
                else ahead.but(result=Result.FAILED)
            )
            self._save(told.but(message=message))
        except Exception as second:
            self._say(f"not recorded: {type(second).__name__}")

    def _say(self, text: str) -> None:
        print(f"table {self.context.label}: metadata table: {text}", file=sys.stderr, flush=True)
