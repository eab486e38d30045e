"""Savepoints (docs/operate/operations.md, Savepoints).

The operator requests them in `request/savepoint-<name>` behind the closed gate.

A savepoint bears the requested time of the commit that it keeps, and its metadata contain the
requested name. So the savepoint of an agent that died before it recorded the result is found again,
and not taken twice.

They are deleted on `request/unsavepoint-<name>`, under the lock and beside running writers: no
writer reads a savepoint. The file goes before the record, so the next agent ends what a dead one
has begun.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from hudi_contract.keys import Kind
from hudi_contract.requests import SavepointDone, SavepointRequest, UnsavepointRequest, every, named, request_id
from hudi_contract.words import GateState, RequestKind, Result
from hudi_runtime.agent import savepoint_files
from hudi_runtime.agent.context import AgentContext
from hudi_runtime.process.errors import OutcomeUnknown, record_message
from hudi_runtime.process.etcd import now_ms, read
from hudi_runtime.services.tasks import Observation, TableTask
from hudi_runtime.settle.rollback import NotYet
from hudi_runtime.settle.settle import Records
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import TIMELINE

USER = "hudi-operator"
ATTEMPTS = 3
RETRY_SECONDS = 10.0
"""Pause after a deletion that failed."""
GATE_CHANGED = "the gate has changed since the savepoint was started: it is started again"


class NothingToKeep(Exception):
    """The table has no completed commit, or a foreign instant is pending.

    Waiting would not help.
    """


class NotDeleted(Exception):
    """The savepoint stays; waiting would not help."""


class Savepoints(TableTask):
    """Takes the savepoints of one table, within the step."""

    def __init__(self, context: AgentContext, *, after: TableTask) -> None:
        """``after`` is the task that must be idle.

        Its writes must be on one side of a savepoint.
        """
        self.context = context
        self.table = context.table
        self.session = context.session
        self._after = after
        self._failures: dict[str, int] = {}
        self._begun: dict[str, int] = {}
        """Instants whose savepoint this process has begun, with the revision of the gate before."""
        self._kept: dict[str, Mapping[str, Any]] = {}
        """Requests of deletions that this process has refused, by id."""
        self._retry_at: dict[str, float] = {}

    def consider(self, look: Observation) -> None:
        """Take the requested savepoints that are not recorded yet.

        The next pass repeats those that must wait (NotYet); failures are counted.
        """
        if self._after.idle:
            if self._begun and not any(named(RequestKind.SAVEPOINT, id) for id in look.requests):
                self._let_go()  # withdrawn after a failure
            self._serve(look.requests, look.records)
            self._serve_deletions(look.requests, look.records)

    def _serve(self, requests: Mapping[str, Mapping[str, Any]], records: Records) -> None:
        for id, request in sorted(requests.items()):
            name = named(RequestKind.SAVEPOINT, id)
            if not name or self._record(id).ended:
                continue
            try:
                done = self._take(SavepointRequest.from_json(request).name, records)
            except NotYet as waiting:
                done = SavepointDone(result=Result.PENDING, message=str(waiting))
            except NothingToKeep as refused:
                done = SavepointDone(result=Result.FAILED, message=str(refused))
            except Exception as error:
                done = self._failed(id, error)
            self._save(id, done.but(name=name))

    def _serve_deletions(self, requests: Mapping[str, Mapping[str, Any]], records: Records) -> None:
        for asked, request in sorted(requests.items()):
            name = named(RequestKind.UNSAVEPOINT, asked)
            id = request_id(RequestKind.SAVEPOINT, name)
            refused = self._kept.get(asked) == request or time.monotonic() < self._retry_at.get(asked, 0.0)
            if not name or refused or self._record(id).result is Result.DELETED:
                continue
            try:
                if self.session.etcd.get(Kind.LOCK) is not None:
                    continue  # this step does not wait for a lock that nobody may be there to release
                if any(named(RequestKind.RESTORE, other) for other in requests):
                    raise NotYet("not deleted yet: a restore is asked for")
                done = self._delete(UnsavepointRequest.known(request), records)
            except NotDeleted as why:
                self._kept[asked] = request
                done = self._record(id).but(message=f"not deleted: {why}")
                done = done if done.result is not None else done.but(result=Result.FAILED)
            except NotYet as waiting:
                done = self._record(id).but(message=str(waiting))
            except Exception as error:
                self._retry_at[asked] = time.monotonic() + RETRY_SECONDS
                done = self._record(id).but(message=f"not deleted yet: {record_message(error)}")
            self._save(id, done.but(name=name, at_ms=None))

    def _delete(self, request: UnsavepointRequest, records: Records) -> SavepointDone:
        """Delete a savepoint of this HudiTable.

        It keeps a savepoint that has another name, too, or that somebody else has taken. Writers
        wait for the lock meanwhile, so no other savepoint is read under it.
        """
        others = records.other_agents(self.session.inc)
        if others:
            raise NotYet(f"not deleted yet: another agent ({others[0]}) is not settled")
        id, mine = request_id(RequestKind.SAVEPOINT, request.name), f"{self.context.label}: "
        known = self._record(id)
        instant = known.instant
        if not instant:
            taken = self.table.savepoint_with(self.table.timeline(), mine + request.name)
            if taken is None:
                raise NotDeleted(f"this HudiTable has taken no savepoint {request.name}")
            instant = taken.requested
        if instant != request.instant:
            raise NotDeleted(f"deleteInstant is {request.instant}, and savepoint {request.name} has instant {instant}")
        config = self.table.write_config(self.context.name, self.context.options())
        with self.table.locked(config):
            there = [s for s in self.table.timeline().savepoints if s.requested == instant and not s.pending]
            comment = self.table.savepoint_comment(instant) if there else ""
            other = next((name for name, done in self._taken() if done.instant == instant and name != request.name), "")
            message = ""
            if there and other:
                message = f"savepoint {other} keeps the same commit"
            elif there and not comment.startswith(mine):
                message = f"a savepoint of somebody else keeps the same commit: {comment or 'no comment'}"
            else:
                savepoint_files.remove(self.table, there)
        return known.but(result=Result.DELETED, instant=instant, message=message)

    def _taken(self) -> list[tuple[str, SavepointDone]]:
        """Savepoints that this table has by its records, by name."""
        entries = self.session.etcd.range(Kind.DONE.of(every(RequestKind.SAVEPOINT)))
        found = [(named(RequestKind.SAVEPOINT, entry.name), entry.read(SavepointDone)) for entry in entries]
        return [(name, done) for name, done in found if done.result is Result.COMPLETED]

    def _record(self, id: str) -> SavepointDone:
        return read(self.session.etcd.get(Kind.DONE.of(id)), SavepointDone)

    def _failed(self, id: str, error: Exception) -> SavepointDone:
        self._failures[id] = self._failures.get(id, 0) + 1
        text = record_message(error)
        over = self._failures[id] >= ATTEMPTS
        if over:
            self._let_go()
        return SavepointDone(result=Result.FAILED if over else Result.PENDING, message=text)

    def _let_go(self) -> None:
        """Leave nothing of an abandoned savepoint pending: archival would wait for it.

        The lock is released, so no request is on the wire.
        """
        timeline = self.table.timeline()
        self._begun.clear()
        for instant in self.session.pending():
            commit = timeline.get(instant)
            if commit is None or commit.pending:
                continue  # the record of a table service, not of a savepoint
            if any(kept.requested == instant and kept.pending for kept in timeline.savepoints):
                self.table.storage.delete(f"{TIMELINE}/{instant}.savepoint.inflight")
            self.session.abandon(instant)

    def _save(self, id: str, done: SavepointDone) -> None:
        """Its time is that of its result, whatever is said of it later."""
        known = self._record(id)
        if known.but(at_ms=None) == done:
            return
        ended = known.at_ms if known.result is done.result else None
        self.session.etcd.put(Kind.DONE.of(id), done.but(at_ms=ended or now_ms()).to_json())
        print(
            f"table {self.context.label}: {id}: {done.result} {done.instant} {done.message}",
            file=sys.stderr,
            flush=True,
        )

    def _take(self, name: str, records: Records) -> SavepointDone:
        gate = self.context.gate_revision()  # before the commit is chosen (F458)
        timeline = self.table.timeline()
        comment = f"{self.context.label}: {name}"
        taken = self.table.savepoint_with(timeline, comment)
        if taken is None:
            commit = self._commit(timeline, records)
            if not any(kept.requested == commit.requested and not kept.pending for kept in timeline.savepoints):
                self._keep(timeline, commit.requested, comment, records, gate)
            timeline = self.table.timeline()
            taken = next(
                (kept for kept in timeline.savepoints if kept.requested == commit.requested and not kept.pending), None
            )
            if taken is None:
                raise OutcomeUnknown(f"the savepoint of {commit.requested} is not on the timeline")
        # Later commits complete after it: the clock moved to the savepoint's completion time before
        # its file was written (I10).
        boundary = max(
            i.completion for i in timeline.completed if i.action in tl.WRITE_ACTIONS and i.completion < taken.completion
        )
        return SavepointDone(
            result=Result.COMPLETED, instant=taken.requested, completion_time=taken.completion, boundary=boundary
        )

    def _commit(self, timeline: tl.Timeline, records: Records) -> tl.Instant:
        """The last commit by requested time.

        With nothing pending, no completed instant was requested later.
        """
        if self.context.gate_state() != GateState.CLOSED:
            raise NotYet("waiting for the closed gate: writers could commit meanwhile")
        others = records.other_agents(self.session.inc)
        if others:
            raise NotYet(f"another agent ({others[0]}) is not settled")
        foreign = [i.requested for i in timeline.pending if i.requested not in records.instants]
        if foreign and not {i.requested for i in self.table.timeline().pending}.isdisjoint(foreign):
            raise NothingToKeep(
                f"instant {foreign[0]} is pending and has no record in etcd: it would be neither in the savepoint nor "
                "after it; stop its writer, see ForeignWriters"
            )
        if timeline.pending:
            raise NotYet(f"instant {timeline.pending[0].requested} ({timeline.pending[0].action}) is pending")
        commits = [i for i in timeline.completed if i.action in tl.WRITE_ACTIONS]
        if not commits:
            raise NothingToKeep("the active timeline has no commit")
        return max(commits)

    def _keep(self, timeline: tl.Timeline, instant: str, comment: str, records: Records, gate: int) -> None:
        """Take the savepoint behind one and the same closed gate.

        ``gate``: its revision when the commit was chosen. The lock is not held from then to the
        begin, nor from the begin to the end. When the gate was put meanwhile, it may have been
        open: the begin is refused here, the end by the session (F435), and the savepoint is begun
        anew.
        """
        mine = instant in self.session.pending()
        if mine and self._begun.get(instant) != gate:
            self._let_go()
            raise NotYet(GATE_CHANGED)
        if not mine and instant in records.instants:
            raise NotYet(f"instant {instant} is being settled")
        config = self.table.write_config(self.context.name, self.context.options())
        if not mine:
            with self.table.locked(config):
                # Behind the gate that the lock was acquired behind, or a later one.
                if self.context.gate_revision() != gate:
                    raise NotYet(GATE_CHANGED)
                self._begun[instant] = gate
                self.session.begin_savepoint(instant)
        if any(kept.requested == instant and kept.pending for kept in timeline.savepoints):
            # Of a dead agent; Hudi does not begin a savepoint twice
            self.table.storage.delete(f"{TIMELINE}/{instant}.savepoint.inflight")
        try:
            with self.table.client(config) as client:
                client.savepoint(instant, USER, comment)
        except Exception as error:
            if self._begun.get(instant) == self.context.gate_revision():
                raise
            self._let_go()
            raise NotYet(GATE_CHANGED) from error
        del self._begun[instant]
