"""Restore to a savepoint (docs/operate/operations.md, Restore).

The operator requests it in `request/restore-<nonce>` behind the gate that is closed for it.

This module selects the commits to undo by completion time: all that completed after the savepoint's
boundary, whenever they were requested, and no others. Hudi would select differently: it takes the
time of the one commit that bears the savepoint, and so undoes a commit that was begun before it and
ended after it, although the savepoint holds it. Hudi executes the whole plan under one hold of the
table's lock.

`done/restore-<nonce>` is written ahead. A restore whose plan is on the timeline is executed again
until it is completed, by any agent: the plan is in Hudi's `<t>.restore.requested`, and the commits
that it has already undone no longer exist. One that was written ahead and has no plan is planned
again, and may be refused then: nothing was undone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_contract.keys import Kind
from hudi_contract.requests import RestoreDone, RestoreRequest, SavepointDone, every, named, request_id
from hudi_contract.table_keys import InstantRecord
from hudi_contract.words import GateState, RequestKind, Result
from hudi_runtime.agent import savepoint_files
from hudi_runtime.agent.context import AgentContext
from hudi_runtime.process.errors import OutcomeUnknown, record_message
from hudi_runtime.process.etcd import now_ms, read
from hudi_runtime.services.tasks import LongTask, Observation
from hudi_runtime.settle.agent_table import SavepointInfo
from hudi_runtime.settle.rollback import NEVER_KEY, RESTORE, NotYet
from hudi_runtime.settle.settle import Records, backoff
from hudi_runtime.settle.sweep import Listing
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import TIMELINE
from hudi_runtime.table.storage import Missing

LOG_COMPACTION = "logcompaction"
ATTEMPTS = 3
"""Maximum number of tries before anything was changed; after that it is tried until it is done."""
WAIT_SECONDS = 2.0
LISTED = 20
OPTIONS = {
    # The lock is already held, from before the plan until after the end: Hudi's own locks need to
    # cover only the threads of this process.
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    # The metadata table is deleted, and the next commit makes a new one: rolling it back would
    # depend on its compactions since then.
    "hoodie.metadata.enable": "false",
    "hoodie.table.services.enabled": "false",
}


class Refused(Exception):
    """The requested restore is impossible; nothing was changed, and waiting would not help."""


@dataclass(frozen=True)
class Plan:
    """The plan of a restore.

    Boundary (a completion time), newest requested time that stays, instants to undo (last completed
    first), later savepoints.
    """

    boundary: str
    newest: str
    undone: tuple[tl.Instant, ...]
    dropped: tuple[tl.Instant, ...] = ()


def plan(timeline: tl.Timeline, savepoint: tl.Instant) -> Plan:
    """The plan to restore that savepoint.

    Raises Refused when the commit that it keeps has left the active timeline.

    The savepoint was taken with nothing pending, so its own completion time separates the commits
    that it holds from those that it does not (I10).
    """
    writes = [i for i in timeline.completed if i.action in tl.WRITE_ACTIONS]
    kept = [i for i in writes if i.completion < savepoint.completion]
    if savepoint.requested not in {i.requested for i in kept}:
        raise Refused(f"commit {savepoint.requested} of the savepoint is no longer in the active timeline")
    undone = tuple(reversed([i for i in writes if i.completion > savepoint.completion]))
    boundary = max(i.completion for i in kept)
    return Plan(boundary, max(i.requested for i in kept), undone, later_savepoints(timeline, boundary))


def later_savepoints(timeline: tl.Timeline, boundary: str) -> tuple[tl.Instant, ...]:
    """Savepoints whose commits are to be undone.

    Hudi undoes no commit that a savepoint keeps. Savepoints of commits that a dead agent has
    undone, or made pending again, went before.
    """
    commits = {i.requested: i.completion for i in timeline.completed if i.action in tl.WRITE_ACTIONS}
    return tuple(s for s in timeline.savepoints if commits.get(s.requested, "") > boundary)


def entries(undone: tuple[tl.Instant, ...]) -> list[tuple[str, str]]:
    """Requested time and action for Hudi's plan.

    The commit of a table service is listed twice, with its completed and its pending action:
    otherwise, when an agent dies after Hudi has made it pending again, the next execution would
    skip it and leave it. Hudi's restore does not handle pending log compactions; see
    `Restores._unlog`.
    """
    found = []
    for instant in undone:
        found.append((instant.requested, instant.action))
        if instant.planned and instant.planned not in (instant.action, LOG_COMPACTION):
            found.append((instant.requested, instant.planned))
    return found


class Restores(LongTask):
    """Restores of one table. A cancelled restore stays begun, for the next agent."""

    exclusive = True

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context.spark, context.slot, f"restore-{context.spec.id}")
        self.context = context
        self.table = context.table
        self.session = context.session
        self._retry_at = 0.0
        self._failures: dict[str, int] = {}

    def between(self, records: Records) -> bool:
        """Whether a restore is incomplete.

        Nothing else may change the table, and its pending instants are not foreign. An instant
        whose record cannot be read may be one.
        """
        if records.of_unknown_owner:
            return True
        known = (entry.read(InstantRecord) for entry in records.instants.values())
        return not self.idle or any(record.pending and record.action == RESTORE for record in known)

    def consider(self, look: Observation) -> None:
        """Begin or continue a restore when one is requested and due.

        No other agent may be there (F22).
        """
        requests, records = look.requests, look.records
        asked = any(named(RequestKind.RESTORE, id) for id in requests)
        if (
            not asked
            or not self.idle
            or self._cancelled
            or time.monotonic() < self._retry_at
            or records.other_agents(self.session.inc)
        ):
            return
        gate = self.context.gate()
        id = request_id(RequestKind.RESTORE, gate.restoring)
        if gate.state is not GateState.CLOSED or id not in requests or self._record(id).ended:
            return
        request = RestoreRequest.from_json(requests[id])
        self._begin(lambda: self._run(id, request))

    def _record(self, id: str) -> RestoreDone:
        return read(self.session.etcd.get(Kind.DONE.of(id)), RestoreDone)

    def _save(self, id: str, done: RestoreDone) -> RestoreDone:
        saved = done.but(at_ms=now_ms(), inc=self.session.inc)
        if self._record(id).but(at_ms=0) != saved.but(at_ms=0):
            self.session.etcd.put(Kind.DONE.of(id), saved.to_json())
            print(
                f"table {self.context.label}: {id}: {saved.result} {saved.instant} {saved.message}",
                file=sys.stderr,
                flush=True,
            )
        return saved

    # -- a try, on its own thread ------------------------------------------------------------------

    def _run(self, id: str, request: RestoreRequest) -> None:
        known = self._record(id)
        base = known.but(
            nonce=known.nonce or request.nonce,
            # The request of a nonce that waits may be taken back, and made again for another one.
            savepoint=known.savepoint if known.result is Result.RUNNING else request.savepoint,
            result=known.result or Result.PENDING,
        )
        try:
            self._enter_pool(f"{id} of {self.context.label}")
            done = self._ended(base)
            if done is None:
                done = self._restore(id, request, base).but(message="")
                # A record that its own release has left: the next agent sweeps files that a lost
                # executor still writes, and the gate stays closed until then (F36).
                left = self.session.etcd.get(Kind.INSTANT.of(done.instant)) if done.instant else None
                self.unproven = self.unproven or left is not None
            self._forget()
            self._save(id, done.but(failures=0, after="", result=Result.COMPLETED, end_ms=now_ms()))
        except Exception as error:
            self._failed(id, base, error)

    def _ended(self, base: RestoreDone) -> RestoreDone | None:
        """The restore that an agent completed before it died without recording it.

        None when there is none. It is not executed again, so a commit that it did not undo is
        named: only a process without this lock writes one behind the closed gate.
        """
        if base.result is not Result.RUNNING:
            return None
        if not self.session.quiet():
            raise OutcomeUnknown("the outcome of a publication is unknown")
        timeline = self.table.timeline()
        for instant in timeline.completed:
            if instant.action == RESTORE and instant.requested > base.after:
                self._end_rollbacks()
                left = [i for i in timeline.completed if i.action in tl.WRITE_ACTIONS and i.completion > base.boundary]
                message = (
                    f"{len(left)} commits after the savepoint are still there, the first one is {left[0].requested}: "
                    "another process wrote to the table during the restore, and may have used files that are gone: "
                    "stop it and restore again"
                    if left
                    else ""
                )
                return base.but(instant=instant.requested, completion_time=instant.completion, message=message)
        return None

    def _end_rollbacks(self) -> None:
        """Delete the pending rollbacks that a completed restore consisted of.

        Hudi does so after it has completed the restore. Nothing was pending when the restore began,
        and the gate is still closed, so every recorded one is a part of it.
        """
        with self.table.locked(self.table.write_config(self.context.name, self.context.options())):
            recorded = {entry.name for entry in self.session.etcd.range(Kind.INSTANT.every)}
            left = {i.requested for i in self.table.timeline().pending if i.action == "rollback"} & recorded
            names = set(self.table.storage.names(TIMELINE)) if left else set()
            for instant in sorted(left):
                for state in ("inflight", "requested"):
                    if f"{instant}.rollback.{state}" in names:
                        self.table.storage.delete(f"{TIMELINE}/{instant}.rollback.{state}")

    def _restore(self, id: str, request: RestoreRequest, base: RestoreDone) -> RestoreDone:
        with self.table.locked(self.table.write_config(self.context.name, self.context.options())):
            self.session.begin_restore(request.nonce)
            timeline = self.table.timeline()
            going_on = next((i.requested for i in timeline.pending if i.action == RESTORE), "")
            if going_on:
                if going_on not in self.session.pending() or base.result is not Result.RUNNING:
                    raise NotYet(f"restore {going_on} is not claimed yet")
                ahead = self._save(id, base.but(instant=going_on))
                self._unlog(timeline)
            else:
                wanted = self._planned(request, timeline)
                begun = base.but(
                    result=Result.RUNNING,
                    boundary=wanted.boundary,
                    newest=wanted.newest,
                    undone=len(wanted.undone),
                    undone_instants=tuple(i.requested for i in wanted.undone[:LISTED]),
                    begin_ms=base.begin_ms or now_ms(),
                )
                if not wanted.undone:
                    return begun
                # Written ahead: from here on the operator keeps the gate closed until the restore
                # is completed, or refused before its plan is on the timeline.
                ahead = self._save(id, begun.but(after=timeline.maximum))
                instant = self.table.request_restore(self._config(), entries(wanted.undone), wanted.newest)
                ahead = self._save(id, ahead.but(instant=instant))
            # Hudi's plan is on the timeline: from here on the restore is not refused any more.
            self._drop(later_savepoints(timeline, ahead.boundary))
            self.table.delete_metadata_table()
            self.table.restore(self._config(), ahead.instant, ahead.newest)
            completion = self._verified(ahead.instant, ahead.boundary)
        return ahead.but(completion_time=completion)

    def _config(self) -> Any:
        config = self.table.write_config(self.context.name, {**self.context.options(), **OPTIONS})
        config.setValue(NEVER_KEY, "NEVER")
        if not config.getFailedWritesCleanPolicy().isNever():
            raise OutcomeUnknown("the client's failed-writes policy is not NEVER: nothing is restored")
        return config

    def _verified(self, instant: str, boundary: str) -> str:
        """Completion time of the restore.

        Raises OutcomeUnknown when a fresh timeline does not show the state of the boundary. A
        restore that is still pending is executed again. A completed one is not: only its own
        rollbacks are left beside it, which `_ended` removes.
        """
        timeline = self.table.timeline()
        found = timeline.get(instant)
        if found is None or found.pending:
            raise OutcomeUnknown(f"restore {instant} is not completed on the timeline")
        left = [
            i.requested
            for i in timeline.instants
            if i.pending or (i.action in tl.WRITE_ACTIONS and i.completion > boundary)
        ]
        if left:
            raise OutcomeUnknown(f"instant {left[0]} is still on the timeline after restore {instant}")
        return found.completion

    # -- preconditions -----------------------------------------------------------------------------

    def _planned(self, request: RestoreRequest, timeline: tl.Timeline) -> Plan:
        recorded = {entry.name for entry in self.session.etcd.range(Kind.INSTANT.every)}
        foreign = [i.requested for i in timeline.pending if i.requested not in recorded]
        if foreign:
            raise Refused(
                f"instant {foreign[0]} is pending and has no record in etcd: stop its writer, see ForeignWriters"
            )
        if timeline.pending:
            raise NotYet(f"instant {timeline.pending[0].requested} ({timeline.pending[0].action}) is pending")
        said = self.table.savepoint_infos(timeline)
        savepoint = self._savepoint(request.savepoint, timeline, said)
        found = plan(timeline, savepoint)
        archived = (
            [i.requested for i in self.table.archived_instants() if i.completion > found.boundary]
            if self.table.has_archive()
            else []
        )
        if archived:
            raise Refused(
                f"instant {archived[0]} completed after the savepoint and was archived: its files are no longer known"
            )
        for later in found.dropped:
            self._require_dropped(later, said, names=request.savepoints)
        missing = self._missing(said[savepoint.requested])
        if missing:
            raise Refused(f"file {missing} of the savepoint is gone")
        return found

    def _savepoint(self, name: str, timeline: tl.Timeline, said: Mapping[str, SavepointInfo]) -> tl.Instant:
        """The savepoint of this HudiTable with that name."""
        kept = {s.requested: s for s in timeline.savepoints if not s.pending}
        taken = self._taken(name)
        instant = taken.instant if taken.result is Result.COMPLETED else ""
        instant = instant or next(
            (t for t, info in said.items() if info.comment == f"{self.context.label}: {name}"), ""
        )
        if not instant:
            raise Refused(f"this HudiTable has taken no savepoint {name}")
        if instant not in kept:
            raise Refused(f"savepoint {name} (instant {instant}) is no longer on the timeline")
        return kept[instant]

    def _taken(self, name: str) -> SavepointDone:
        return read(self.session.etcd.get(Kind.DONE.of(request_id(RequestKind.SAVEPOINT, name))), SavepointDone)

    def _require_dropped(self, later: tl.Instant, said: Mapping[str, SavepointInfo], *, names: Sequence[str]) -> None:
        """Require that a later savepoint, whose commit will be undone, may be dropped.

        Its name was removed from the spec before.
        """
        if later.pending:
            return
        comment, mine = said[later.requested].comment, f"{self.context.label}: "
        if not comment.startswith(mine):
            raise Refused(
                f"the savepoint of instant {later.requested} ({comment or 'without a comment'}) is later and not this "
                "HudiTable's: delete it first"
            )
        listed = [name for name in names if self._taken(name).instant == later.requested]
        listed += [comment.removeprefix(mine)] if comment.removeprefix(mine) in names else []
        if listed:
            raise Refused(
                f"savepoint {listed[0]} is later, and would be deleted with the commit that it keeps: remove its name "
                "from spec.savepoints first"
            )

    def _missing(self, info: SavepointInfo) -> str:
        """A missing file of the savepoint; empty when all exist."""
        for partition, names in info.files.items():
            try:
                there = set(self.table.storage.names(partition))
            except Missing:
                there = set()
            lost = sorted(set(names) - there)
            if lost:
                return f"{partition}/{lost[0]}" if partition else lost[0]
        return ""

    # -- preparation and cleanup -------------------------------------------------------------------

    def _drop(self, savepoints: tuple[tl.Instant, ...]) -> None:
        """Delete later savepoints, under the lock.

        Hudi does not undo a commit that a savepoint keeps. Half-finished ones of dead agents are
        deleted, too.
        """
        # The records first: a savepoint without one is found on the timeline by the next try.
        for savepoint in savepoints:
            for entry in self.session.etcd.range(Kind.DONE.of(every(RequestKind.SAVEPOINT))):
                known = entry.read(SavepointDone)
                if known.instant == savepoint.requested and known.result is not Result.DELETED:
                    self.session.etcd.delete(Kind.DONE.of(entry.name), entry.mod_revision)
        savepoint_files.remove(self.table, savepoints)

    def _unlog(self, timeline: tl.Timeline) -> None:
        """Remove log compactions that a dead agent has made pending again, files first.

        A restore begins with nothing pending, so they are to be undone.
        """
        instants = [i.requested for i in timeline.pending if i.action == LOG_COMPACTION]
        listing = Listing.of(self.table, instants)
        for instant in instants:
            for path in listing.data[instant]:
                self.table.storage.delete(path)
            for state in ("inflight", "requested"):
                self.table.storage.delete(f"{TIMELINE}/{instant}.{LOG_COMPACTION}.{state}")

    def _forget(self) -> None:
        """Delete own records whose instants are gone.

        Hudi never completes the rollbacks that a restore consists of.
        """
        timeline = self.table.timeline()
        for entry in self.session.etcd.range(Kind.INSTANT.every):
            record = entry.read(InstantRecord)
            mine = record.inc == self.session.inc and not record.claimed_by and record.pending
            if mine and record.action in ("rollback", RESTORE) and timeline.get(entry.name) is None:
                self.context.ended.add(entry.name)
                self.session.forget(entry.name)

    def _failed(self, id: str, base: RestoreDone, error: Exception) -> None:
        """Record the reason.

        Without an answer of etcd the record written ahead stands, and the operator
        settles this agent.
        """
        try:
            stored = self._record(id)
            known = stored if stored.result is Result.RUNNING else base
            if isinstance(error, NotYet) or self._cancelled:
                self._retry_at = time.monotonic() + WAIT_SECONDS
                self._save(id, known.but(message=record_message(str(error))))
                return
            failures = self._failures[id] = self._failures.get(id, 0) + 1
            self._retry_at = time.monotonic() + max(WAIT_SECONDS, backoff(failures))
            message = record_message(str(error) if isinstance(error, Refused) else error)
            over = isinstance(error, Refused) or (failures >= ATTEMPTS and known.result is not Result.RUNNING)
            if over:
                self._forget()
            if isinstance(error, Refused):
                # Raised only while no plan of Hudi's is on the timeline: nothing was undone,
                # whatever an agent had written ahead before it died (F507).
                known = known.but(
                    boundary="", newest="", undone=None, undone_instants=(), after="", instant="", begin_ms=None
                )
            self._save(
                id, known.but(result=Result.FAILED if over else known.result, message=message, failures=failures)
            )
        except Exception as second:
            print(
                f"table {self.context.label}: {id}: not recorded: {type(second).__name__}", file=sys.stderr, flush=True
            )
