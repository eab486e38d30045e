"""Holds (``spec.holds``).

The files that readers of a commit need stay until a time: cleaning deletes none of them, and
archival leaves the commit in the active timeline.

No gate is closed: writers are not concerned. ``request/hold-<name>`` has the time, and is the
operator's memory of when the hold began; it stays as long as the spec names the hold, so that an
expired hold does not start over. The agent keeps the files from its first look on, and says in
``done/hold-<name>`` whether they are all there. It is believed for the time that it was asked for
alone: a hold that is extended is proved once more. Nobody has to end a hold: a process that would
delete a file compares the time with its own clock.
"""

from __future__ import annotations

from typing import Any

from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_contract.records import read
from hudi_contract.requests import HoldDone, HoldRequest, named, request_id
from hudi_contract.words import HoldOutcome, RequestKind, Result
from hudi_operator.api.holds import DAY, Hold
from hudi_operator.model import conditions
from hudi_operator.model.conditions import Condition, condition
from hudi_operator.model.status import HoldEntry, hold_entries
from hudi_operator.plan.core.actions import Action, PutRequest
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View

JsonDict = dict[str, Any]

CONDITION = "CleaningHeld"
_OUTCOMES = {Result.COMPLETED: HoldOutcome.GRANTED, Result.FAILED: HoldOutcome.REFUSED}
LONG_MS = DAY * 1000
"""A hold that is older is reported in a condition."""


def _asked(view: View, hold: Hold) -> HoldRequest:
    """The request in etcd; one without a time when there is none of this HudiTable."""
    found = read(view.etcd.requests.get(request_id(RequestKind.HOLD, hold.name)), HoldRequest)
    mine = found.table_uid == view.table.ref.uid and found.instant == hold.instant
    return found if mine else HoldRequest()


def _record(view: View, hold: Hold) -> HoldDone:
    """The agent's record of this hold and of the time that it has now; else one of defaults."""
    found, asked = read(view.etcd.done.get(request_id(RequestKind.HOLD, hold.name)), HoldDone), _asked(view, hold)
    return found if (found.since_ms, found.until_ms) == (asked.since_ms, asked.until_ms) else HoldDone()


def plan_requests(view: View, *, adopted: bool) -> PartialPlan:
    """Request each hold, and withdraw those that the spec does not name any more.

    ``adopted``: the gate was open for this HudiTable before, so its files are the table's.
    """
    actions: list[Action] = []
    requeue = LONGEST_PAUSE_SECONDS
    known = {request_id(RequestKind.HOLD, hold.name): hold for hold in view.table.holds}
    for id, hold in known.items() if adopted else ():
        wanted = hold.request(view.table.ref.uid, since_ms=_asked(view, hold).since_ms or view.now_ms)
        stored = view.etcd.requests.get(id)
        if stored is None or stored.value != wanted.to_json():
            actions.append(PutRequest(view.table.table_id, id, wanted.to_json()))
        for at in (wanted.until_ms, wanted.since_ms + LONG_MS):
            requeue = min(requeue, max(0.5, (at - view.now_ms) / 1000)) if at > view.now_ms else requeue
    actions.extend(
        PutRequest(view.table.table_id, id, None)
        for id in view.etcd.requests
        if named(RequestKind.HOLD, id) and id not in known
    )
    return PartialPlan(tuple(actions), (), requeue)


def status(view: View) -> list[JsonDict]:
    """``status.holds``: one entry for each that the spec names."""
    return [_entry(view, hold).to_json() for hold in view.table.holds]


def _entry(view: View, hold: Hold) -> HoldEntry:
    asked, record = _asked(view, hold), _record(view, hold)
    entry = HoldEntry(
        name=hold.name,
        reader=hold.reader,
        instant=record.instant or hold.instant,
        boundary_completion_time=record.boundary,
        message=record.message[:1024],
    )
    if not asked.since_ms:
        return entry
    if record.result is None:
        entry = entry.but(message="the agent has not seen it yet")
    outcome = _OUTCOMES.get(record.result or Result.PENDING, HoldOutcome.PENDING)
    if outcome is not HoldOutcome.REFUSED and view.now_ms >= asked.until_ms:
        outcome = HoldOutcome.EXPIRED
    since, until = conditions.rfc3339(asked.since_ms), conditions.rfc3339(asked.until_ms)
    return entry.but(outcome=outcome, since=since, until=until)


def held(view: View) -> list[Condition]:
    """Condition CleaningHeld: a hold keeps old files for long; none without a hold in the spec."""
    if not view.table.holds:
        return []
    entries = [_entry(view, hold) for hold in view.table.holds]
    granted = [entry for entry in entries if entry.outcome is HoldOutcome.GRANTED]
    began = {hold.name: _asked(view, hold).since_ms for hold in view.table.holds}
    long = [entry for entry in granted if view.now_ms - began[entry.name] >= LONG_MS]
    told = "; ".join(
        f"{entry.label} keeps the files of {entry.instant} since {entry.since}, until {entry.until}" for entry in long
    )
    return [condition(CONDITION, bool(long), "HeldForLong" if long else "NotHeldForLong", told)]


def new_events(old: JsonDict, new: JsonDict) -> list[tuple[str, str, str]]:
    """Type, reason and message of the events for a new status."""
    found = []
    before = {entry.name: (entry.outcome, entry.since) for entry in hold_entries(old)}
    for entry in hold_entries(new):
        if before.get(entry.name) == (entry.outcome, entry.since):
            continue
        if entry.outcome is HoldOutcome.GRANTED:
            text = f"{entry.label} keeps the files of {entry.instant} until {entry.until}"
            found.append(("Normal", "HoldGranted", text))
        elif entry.outcome is HoldOutcome.REFUSED:
            found.append(("Warning", "HoldRefused", f"{entry.label}: {entry.message or '?'}"))
    return found
