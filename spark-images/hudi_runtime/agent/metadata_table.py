"""Hudi's metadata table is switched off or made anew, as the operator asks for it in `request/metadata` behind the closed gate.

There is one way to every state: it is deleted, and made again from a listing when it is wanted, with the indexes that are wanted. Both under the
table's lock, with nothing pending, so a half-made one of an agent that died is only one more thing to delete (I6). What readers see does not
change: they list the storage while there is none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from hudi_contract.keys import Kind
from hudi_contract.requests import MetadataDone, MetadataRequest, request_id
from hudi_contract.words import GateState, RequestKind, Result
from hudi_runtime.process.errors import OutcomeUnknown, classify, environment_secrets, first_line
from hudi_runtime.process.etcd import now_ms, read
from hudi_runtime.process.session import Session
from hudi_runtime.services.triggers import backoff_ms
from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.settle.rollback import NotYet
from hudi_runtime.settle.settle import Records

KEY = request_id(RequestKind.METADATA)
DONE = Kind.DONE.of(KEY)
FILES = "files"
MESSAGE_LIMIT = 500
WAIT_MS = 2_000
Beside = Callable[[Callable[[], None]], Future[None] | None]


@dataclass
class MetadataTable:
    """The metadata table of one table. `consider` is called by the table's step and never blocks."""

    table: AgentTable
    session: Session
    name: str
    label: str
    options: Mapping[str, str]
    known: str
    """The nonce that the agent's own options are of: it must not keep up what it is asked to delete."""
    gate: Callable[[], str | None]
    """State of the table's gate, read now."""
    beside: Beside
    """Runs something in the agent's one place for long work; None when that is taken."""
    _running: Future[None] | None = field(default=None)

    @property
    def idle(self) -> bool:
        """Whether no change is under way."""
        return self._running is None or self._running.done()

    def consider(self, requests: Mapping[str, Mapping[str, Any]], records: Records) -> None:
        """Begin a change when one is asked for and due, and nobody else may be at work on the table (I12, R16)."""
        asked = requests.get(KEY)
        if asked is None or not self.idle:
            return
        request = MetadataRequest.from_json(asked)
        if request.nonce != self.known:
            return
        known = read(self.session.etcd.get(DONE), MetadataDone)
        record = known if known.nonce == request.nonce else MetadataDone()
        if record.result is Result.COMPLETED or now_ms() < record.retry_at_ms:
            return
        if records.settling() or records.other_agents(self.session.inc) or self.gate() != GateState.CLOSED:
            return
        self._running = self.beside(lambda: self._run(request, record)) or self._running

    def _run(self, request: MetadataRequest, record: MetadataDone) -> None:
        before = record.failures
        retry_at_ms = now_ms() + backoff_ms(before + 1)
        ahead = MetadataDone(nonce=request.nonce, result=Result.RUNNING, failures=before + 1, retry_at_ms=retry_at_ms, inc=self.session.inc)
        try:
            # Written ahead: a try that ends its own process is repeated after a pause only, and counted.
            self._save(ahead)
            partitions = self._change(enabled=request.enabled, options=request.options)
            self._save(ahead.but(result=Result.COMPLETED, failures=0, retry_at_ms=0, partitions=tuple(partitions)))
            self._say(f"{Result.COMPLETED} {request.nonce}: {', '.join(partitions) or 'there is none'}")
        except Exception as error:
            self._failed(ahead, error, before=before)

    def _change(self, *, enabled: bool, options: Mapping[str, str]) -> list[str]:
        """Delete it, and make it again if it is wanted. Returns its partitions; raises NotYet while something is pending."""
        config = self.table.write_config(self.name, {**self.options, **options})
        with self.table.locked(config):
            # Under the lock: nothing can be begun from here on.
            pending = self.table.timeline().pending
            if pending:
                raise NotYet(f"instant {pending[0].requested} ({pending[0].action}) is pending")
            if self.gate() != GateState.CLOSED:
                raise NotYet("the gate is not closed any more")
            self.table.delete_metadata_table()
            if enabled:
                self.table.make_metadata_table(config)
        made, half_made = self.table.metadata_partitions()
        if half_made or (FILES in made) != enabled or (made and not enabled):
            raise OutcomeUnknown(f"the table names the partitions {sorted(made)} of its metadata table, and as not finished {sorted(half_made)}")
        return sorted(made)

    def _save(self, done: MetadataDone) -> None:
        self.session.etcd.put(DONE, done.but(at_ms=now_ms()).to_json())

    def _failed(self, ahead: MetadataDone, error: Exception, *, before: int) -> None:
        """Put on record why. etcd silent: the record written ahead stands."""
        try:
            secrets, waiting = environment_secrets(), isinstance(error, NotYet)
            said = str(error) if waiting else classify(error, secrets=secrets).message or str(error)
            message = first_line(said, limit=MESSAGE_LIMIT, secrets=secrets)
            self._say(f"{'waits' if waiting else Result.FAILED}: {message}")
            told = ahead.but(failures=before, retry_at_ms=now_ms() + WAIT_MS) if waiting else ahead.but(result=Result.FAILED)
            self._save(told.but(message=message))
        except Exception as second:
            self._say(f"not recorded: {type(second).__name__}")

    def _say(self, text: str) -> None:
        print(f"table {self.label}: metadata table: {text}", file=sys.stderr, flush=True)
