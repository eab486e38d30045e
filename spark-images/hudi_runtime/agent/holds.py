"""Holds (docs/operate/operations.md, Holds).

The operator requests them in `request/hold-<name>`, beside running writers. From the moment
`done/hold-<name>` names a commit, no plan of a clean and no archival goes past it
(`hudi_runtime.services.service_actions`). The agent waits for cleans that were planned before that,
and then checks whether a file is gone that the commit's readers need. Only then the hold is
granted.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

from hudi_contract.keys import Kind
from hudi_contract.requests import HoldDone, HoldRequest, named
from hudi_contract.shape import ShapeError
from hudi_contract.table_keys import Durations
from hudi_contract.words import RequestKind, Result
from hudi_runtime.agent.context import AgentContext
from hudi_runtime.process.errors import record_message
from hudi_runtime.process.etcd import Entry, now_ms
from hudi_runtime.services import holds
from hudi_runtime.services.holds import Hold
from hudi_runtime.services.service_actions import Actions
from hudi_runtime.services.tasks import LongTask, Observation
from hudi_runtime.settle.rollback import NotYet
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.storage import Missing

RETRY_SECONDS = 10.0
"""Pause after a failure: until then the hold is Pending, and keeps its files."""


class Refused(Exception):
    """The hold cannot be granted; waiting would not help."""


class Holds(LongTask):
    """The holds of one table. Quick work is done within the step."""

    def __init__(self, context: AgentContext, actions: Actions) -> None:
        """``actions``: those that delete files and archive instants."""
        super().__init__(context.spark, context.slot, f"holds-{context.spec.id}")
        self.context = context
        self.table = context.table
        self.session = context.session
        self._actions = actions
        self._retry_at: dict[str, float] = {}
        self._looked = False
        """A look was begun since the last pass."""

    def _note_losses(self) -> None:
        """Do nothing: a look writes nothing."""

    def consider(self, look: Observation) -> None:
        """Answer new and changed requests, and forget holds that are withdrawn."""
        if not self.idle or self._cancelled:
            return
        if self._looked:
            # These records may be older than the answer. The next ones are newer.
            self._looked = False
            return
        asked = {id: HoldRequest.known(value) for id, value in look.requests.items() if named(RequestKind.HOLD, id)}
        for id, entry in look.records.holds.items():
            if id not in asked:
                self.session.etcd.delete(Kind.DONE.of(id), entry.mod_revision)
        for id, request in sorted(asked.items()):
            if time.monotonic() >= self._retry_at.get(id, 0.0):
                self._guarded(id, lambda id=id, request=request: self._serve(id, request, look))

    def _guarded(self, id: str, do: Any) -> None:
        try:
            do()
        except NotYet as waiting:
            self._tell(id, Result.PENDING, str(waiting))
        except Refused as refused:
            self._tell(id, Result.FAILED, str(refused))
        except Exception as error:
            self._retry_at[id] = time.monotonic() + RETRY_SECONDS
            self._tell(id, Result.PENDING, record_message(error))

    # -- one hold ----------------------------------------------------------------------------------

    def _record(self, id: str, look: Observation) -> HoldDone:
        entry = look.records.holds.get(id)
        return HoldDone() if entry is None or entry.unreadable else entry.read(HoldDone)

    def _serve(self, id: str, request: HoldRequest, look: Observation) -> None:
        known = self._record(id, look)
        until = request.until_ms
        kept = until + (self.context.gate().lock or Durations()).clock_skew * 1000
        changed = known.until_ms != until
        new = known.since_ms != request.since_ms
        if known.result is Result.FAILED and not new and not changed:
            return
        # Its time was over before it was granted: nothing was kept since, and nobody reads.
        lapsed = changed and known.result is Result.PENDING and now_ms() >= known.kept_until_ms
        if new or lapsed or not known.instant:
            known = HoldDone(
                name=request.name,
                result=Result.PENDING,
                since_ms=request.since_ms,
                until_ms=until,
                kept_until_ms=kept,
            )
            known = self._begin_hold(id, request, self._save(id, known))
        elif changed:
            granted = known.granted or known.result is not Result.PENDING
            times = {"until_ms": until, "kept_until_ms": kept}
            known = self._save(id, known.but(result=Result.PENDING, message="", granted=granted, **times))
        if now_ms() >= kept:
            return
        hold = Hold(request.name, known.instant, known.boundary)
        if known.result is Result.PENDING:
            self._prove(id, request, known, hold)
        elif holds.gone(look.timeline, hold):
            self._require_there(self.table.timeline(), hold)

    def _require_there(self, timeline: tl.Timeline, hold: Hold) -> None:
        if holds.gone(timeline, hold):
            raise Refused(
                f"commit {hold.instant}, or the last one that its readers see, is no longer in the active timeline: a "
                "restore has undone it, or it was archived before"
            )

    def _begin_hold(self, id: str, request: HoldRequest, known: HoldDone) -> HoldDone:
        """Choose the commit: from the record on, its files are kept."""
        hold, why = holds.chosen(self.table.timeline(), request.instant)
        if hold is None:
            raise Refused(why)
        return self._save(id, known.but(instant=hold.instant, boundary=hold.boundary))

    def _quiet(self) -> tl.Timeline:
        """The timeline, when what began before the hold was recorded can delete nothing more."""
        if not self._actions.removing.acquire(blocking=False):
            raise NotYet("a clean is being planned, or instants are being archived")
        try:
            # This comes first: the listing includes instants that an agent that ends meanwhile has
            # put on the timeline.
            others = self.context.records().other_agents(self.session.inc)
            timeline = self.table.timeline()
        finally:
            self._actions.removing.release()
        if others:
            raise NotYet(f"another agent ({others[0]}) is not settled")
        pending = next((i.requested for i in timeline.pending if i.action == "clean"), "")
        if pending:
            raise NotYet(f"clean {pending} began before the hold, and is not over")
        return timeline

    def _prove(self, id: str, request: HoldRequest, known: HoldDone, hold: Hold) -> None:
        timeline = self._quiet()
        self._require_there(timeline, hold)
        # A commit that was archived may have completed after an older one that is held.
        archived = (bool(request.instant) or known.granted) and self.table.has_archive()
        if not archived and not holds.doubtful(timeline, hold):
            self._save(id, known.but(result=Result.COMPLETED, message=""))
            return
        self._save(id, known.but(message="whether a clean has deleted a file that is needed is looked at"))

        def run() -> None:
            self._guarded(id, lambda: self._look(id, request, known, hold))

        self._looked = True
        self._begin(run)

    def _look(self, id: str, request: HoldRequest, known: HoldDone, hold: Hold) -> None:
        """Find out what cleans have deleted. No clean runs meanwhile: they need this slot, too."""
        timeline = self._quiet()
        why = self._why_not(timeline, hold)
        if not why:
            self._save(id, known.but(result=Result.COMPLETED, message=""))
        elif request.instant or known.granted:
            raise Refused(why)
        else:  # the last commit was asked for, and it is a newer one by now
            self._begin_hold(id, request, known.but(message=""))

    def _why_not(self, timeline: tl.Timeline, hold: Hold) -> str:
        """Why files of the hold may be gone; empty when none is."""
        archived = self.table.archived_instants() if self.table.has_archive() else ()
        late = next((i.requested for i in archived if i.completion > hold.boundary), "")
        if late:
            return f"commit {late} completed after {hold.instant} and was archived: what it has replaced is not known"
        try:
            deleted = self.table.to_be_deleted(holds.doubtful(timeline, hold))
            replacing = tuple(i for i in timeline.completed if i.action == "replacecommit")
            before = tuple(i for i in archived if i.action == "replacecommit")
            written = (*(self.table.archived_written(before) if before else ()), *self.table.written(replacing))
            replaced = {group: instant.requested for instant, info in written for group in info.replaced}
        except Missing as error:
            return f"{error} has left the active timeline: what it has deleted or replaced is not known"
        writes = (i for i in (*archived, *timeline.completed) if i.action in tl.WRITE_ACTIONS)
        proof = holds.Proof(hold, {i.requested: i.completion for i in writes}, replaced)
        missing = proof.missing(deleted, self._names)
        return f"file {missing} was deleted by a clean before the hold" if missing else ""

    def _names(self, partition: str) -> list[str]:
        try:
            return self.table.storage.names(partition)
        except Missing:
            return []

    # -- records -----------------------------------------------------------------------------------

    def _stored(self, id: str) -> Entry | None:
        """The record; None also when it cannot be read, so that it is written again."""
        try:
            return self.session.etcd.get(Kind.DONE.of(id))
        except ShapeError:
            return None

    def _save(self, id: str, done: HoldDone) -> HoldDone:
        entry = self._stored(id)
        if entry is None or replace(entry.read(HoldDone), at_ms=None) != replace(done, at_ms=None):
            self.session.etcd.put(Kind.DONE.of(id), done.but(at_ms=now_ms()).to_json())
            print(
                f"table {self.context.label}: {id}: {done.result} {done.instant} {done.message}",
                file=sys.stderr,
                flush=True,
            )
        return done

    def _tell(self, id: str, result: Result, message: str) -> None:
        """Record why it waits, or why nothing is kept; without an answer it stays unchanged."""
        try:
            entry = self._stored(id)
            known = HoldDone() if entry is None else entry.read(HoldDone)
            if entry is not None and not (result is Result.PENDING and known.result is Result.COMPLETED):
                self._save(id, known.but(result=result, message=message))
        except Exception as error:
            print(
                f"table {self.context.label}: {id}: not recorded: {type(error).__name__}", file=sys.stderr, flush=True
            )
