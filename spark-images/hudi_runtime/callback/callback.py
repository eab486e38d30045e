"""Delivers a table's commits to a receiver (`spec.commitCallback`, docs/use/callbacks.md).

It runs in parallel with the agent's other work.

The agent passes each listing of the timeline and never waits: reading, sending and waiting for a
dead receiver happen on a separate thread, with one event in memory at a time. `done/callback` is
the position. It moves by compare-and-set, and only after the receiver has answered 2xx. So a
successor, or a second agent beside this one, may repeat an event but never skips one.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hudi_contract.assignment import CallbackOrder
from hudi_contract.keys import CALLBACK, Kind
from hudi_contract.reports import CallbackReport
from hudi_contract.requests import CallbackPosition, RestoreDone, every
from hudi_contract.table_keys import Clock
from hudi_contract.words import RequestKind
from hudi_runtime.callback import callback_plan as plan
from hudi_runtime.callback.callback_http import SECRET_FOLDER, Sender, Undelivered
from hudi_runtime.callback.callback_plan import Event
from hudi_runtime.process.errors import record_message
from hudi_runtime.process.etcd import Etcd, now_ms, read
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import Table
from hudi_runtime.table.storage import Missing

CLOCK = Kind.CLOCK.of()
KEY, REPORT = Kind.DONE.of(CALLBACK), Kind.REPORT.of(CALLBACK)
REPORT_SECONDS = 5.0
"""Minimum interval between two reports."""
TROUBLE_SECONDS = 5.0
"""Time until the next try when etcd or the table could not be read."""
NOT_READ = "TableNotRead"


@dataclass(frozen=True)
class _Listing:
    timeline: tl.Timeline
    until: str
    """Completion time up to which the listing is complete (`callback_plan.bound`)."""


class _Moved(Exception):
    """Another agent has moved the position."""


class CallbackSender:
    """Delivers the commits in one table's listings.

    The agent calls `look` and `stop`, which never wait for a receiver.
    """

    def __init__(
        self,
        table: Table,
        etcd: Etcd,
        source: plan.Source,
        sender: Sender,
        *,
        table_services: bool,
        inc: str = "",
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._table = table
        self._etcd = etcd
        self._source = source
        self._sender = sender
        self._table_services = table_services
        self._inc = inc
        self._clock = clock
        self._chance = chance
        self._begun = False
        self._offered: _Listing | None = None
        self._before: tl.Timeline | None = None
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._stopped = False
        # Used only by the thread from here on.
        self._position: CallbackPosition | None = None
        self._shown: CallbackPosition | None = None
        self._revision = 0
        self._checked: tl.Timeline | None = None
        self._outdated: _Listing | None = None
        self._failures = 0
        self._reason, self._message = "", ""
        self._retry_at = 0.0
        self._gap: Event | None = None
        self._waiting: tuple[Event, ...] = ()
        self._reported: CallbackReport | None = None
        self._report_at = 0.0

    # -- the agent's side --------------------------------------------------------------------------

    def look(self, listed: Callable[[], tl.Timeline]) -> tl.Timeline:
        """Read the table's clock, list the timeline, and take the listing.

        Call this before the listing is reported: see `begin`.
        """
        clock = self._etcd.get(CLOCK)
        timeline = listed()
        self.consider(timeline, read(clock, Clock).value)
        return timeline

    def consider(self, timeline: tl.Timeline, clock: str) -> None:
        """Take a new listing; `clock` is the table's clock, read before the listing."""
        if self._stopped:
            return
        if not self._begun:
            self.begin(timeline)
        self._offered = _Listing(timeline, plan.bound(clock, self._before))
        self._before = timeline
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"callback-{self._source.table_id}", daemon=True)
            self._thread.start()
        self._wake.set()

    def begin(self, timeline: tl.Timeline) -> None:
        """Set the start of a new callback.

        The gate of a new table opens only after the first report, so none of its
        commits is skipped.
        """
        if self._etcd.get(KEY) is None:
            self._etcd.cas(KEY, plan.start(timeline).to_json(), 0)
        self._begun = True

    def stop(self) -> None:
        """Send nothing more. A running request is aborted, and the next agent repeats it."""
        self._stopped = True
        self._sender.abort()
        self._wake.set()

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopped:
            try:
                self.step()
            except Exception as error:
                self._trouble(error)
            due = [at for at in (self._retry_at, self._report_at) if at > self._clock()]
            if self._wake.wait(max(0.01, min(due) - self._clock()) if due else None):
                self._wake.clear()

    def _trouble(self, error: Exception) -> None:
        """Record that etcd or the table could not be read: the state of the receiver is unknown."""
        self._position = None
        self._retry_at = self._clock() + TROUBLE_SECONDS
        text = record_message(error)
        if text != self._message:
            self._say(text)
        self._reason, self._message = NOT_READ, text

    def step(self) -> None:
        """Deliver until nothing is left, the receiver fails, or the listing is too old.

        Before the next try is due, only count the undelivered events.
        """
        while not self._stopped and self._offered is not None:
            listing, resting = self._offered, self._clock() < self._retry_at
            if listing is self._outdated or (resting and self._position is None):
                break
            position = self._load()
            if position is None:
                return
            event = self._next(listing, position, resting=resting)
            if self._reason == NOT_READ and not resting:
                self._reason, self._message = "", ""
            if event is None or resting or not self._deliver(event, listing, position):
                break
        if not self._stopped:
            self._report()

    def _load(self) -> CallbackPosition | None:
        """The position; None when the callback was withdrawn, or etcd has lost the position.

        The next listing starts over.
        """
        if self._position is None:
            entry = self._etcd.get(KEY)
            if entry is None:
                self._begun = False
                return None
            self._position, self._revision = entry.read(CallbackPosition), entry.mod_revision
            self._shown = self._position
        return self._position

    def _next(self, listing: _Listing, position: CallbackPosition, *, resting: bool) -> Event | None:
        """The next event.

        The archive is read only when it may contain an undelivered commit, and not for each listing
        of a dead receiver.
        """
        begun = plan.started(position)
        if listing.timeline is not self._checked and not resting and begun is None:
            suspect = plan.may_be_archived(self._checked, listing.timeline, position) and self._table.has_archive()
            self._gap = plan.archived(self._table.archived_instants(), position) if suspect else None
            if self._gap is None:
                self._checked = listing.timeline  # with a gap, the archive is read again after the gap is delivered
        restores = plan.restores(
            RestoreDone.known(entry.readable) for entry in self._etcd.range(Kind.DONE.of(every(RequestKind.RESTORE)))
        )
        self._waiting = plan.undelivered(
            listing.timeline, restores, position, until=listing.until, table_services=self._table_services
        )
        return begun or self._gap or (self._waiting[0] if self._waiting else None)

    def _deliver(self, event: Event, listing: _Listing, position: CallbackPosition) -> bool:
        """Deliver one event; False when nothing more can be delivered now."""
        try:
            metadata = self._metadata(event, listing.timeline)
        except Missing:
            # Archived or undone since: the next listing shows it. This one is outdated.
            self._outdated = listing
            return True
        try:
            self._sender.post(plan.body(event, self._source, metadata), plan.CONTENT_TYPE)
        except Undelivered as error:
            self._failed(error)
            return False
        try:
            self._advance(plan.after(position, event, at_ms=now_ms()))
        except _Moved:
            self._position = None
        self._failures, self._reason, self._message = 0, "", ""
        if event.kind is plan.Kind.ARCHIVED:
            self._gap = None
            self._say(
                f"{len(event.archived)} commits were archived before they could be delivered; the receiver was notified"
            )
        return True

    def _metadata(self, event: Event, timeline: tl.Timeline) -> dict[str, Any]:
        instant = timeline.get(event.instant) if event.kind is plan.Kind.COMMITTED else None
        return self._table.metadata(instant) if instant is not None else {}

    def _advance(self, position: CallbackPosition) -> None:
        revision = self._etcd.cas(KEY, position.to_json(), self._revision)
        if revision is None:
            raise _Moved
        self._position, self._revision = position, revision
        self._shown = position

    def _failed(self, error: Undelivered) -> None:
        if self._stopped:
            return
        self._failures += 1
        self._retry_at = self._clock() + plan.retry_seconds(self._failures, self._chance(), asked=error.retry_after)
        text = record_message(str(error))
        if text != self._message:
            self._say(f"not delivered: {text}")
        self._reason, self._message = error.reason, text

    # -- report for status -------------------------------------------------------------------------

    def _report(self) -> None:
        position = self._shown
        if position is None:
            return
        gap = self._gap.archived if self._gap is not None else ()
        waiting = [*(instant.completion for instant in gap), *(event.completion for event in self._waiting)]
        report = CallbackReport(
            inc=self._inc,
            completion_time=position.completion_time,
            instant=position.instant,
            delivered=position.delivered,
            archived_to=position.archived_to,
            lost=position.lost,
            at_ms=position.at_ms,
            undelivered=len(waiting),
            oldest=min(waiting, default=""),
            failures=self._failures,
            reason=self._reason,
            message=self._message,
        )
        if report == self._reported:
            self._report_at = 0.0
        elif self._clock() >= self._report_at:
            self._etcd.put(REPORT, report.to_json())
            self._reported, self._report_at = report, self._clock() + REPORT_SECONDS

    def _say(self, text: str) -> None:
        print(
            f"table {self._source.namespace}/{self._source.name}: commit callback: {text}", file=sys.stderr, flush=True
        )


def from_order(
    wanted: CallbackOrder | None, source: plan.Source, table: Table, etcd: Etcd, *, inc: str
) -> CallbackSender | None:
    """The sender that an assignment requests; None when it requests none."""
    if wanted is None:
        return None
    sender = Sender(wanted.url, timeout=float(wanted.timeout_seconds), folder=SECRET_FOLDER if wanted.secret else None)
    return CallbackSender(table, etcd, source, sender, table_services=wanted.table_services, inc=inc)


def forget(etcd: Etcd) -> None:
    """Delete the position when there is no callback.

    A later one begins after the commits that are completed by then.
    """
    for key in (KEY, REPORT):
        entry = etcd.get(key)
        if entry is not None:
            etcd.delete(key, entry.mod_revision)
