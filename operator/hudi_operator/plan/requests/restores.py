"""Restore (``spec.restore``).

The table is taken back to a savepoint, once for each nonce (RFC-22 R52).

Acknowledged commits are undone, so no writer may be active: the gate is closed, running writers
finish, dead ones are settled, and the gate then names the restore for which it is closed. Only
under that gate does the storage wrapper allow the agent to begin it. Each such change moves the
gate's revision, which is compared when the restore's instant is recorded: a withdrawn request is
never begun afterwards.

A nonce that exists when the gate opens for the first time is the baseline and is never executed: a
manifest that is left in Git does not undo a table that was rebuilt. So is the one that exists when
a person accepts an etcd that was set back, which may have forgotten that it was executed. Each
nonce has its own ``done/restore-<nonce>``, the agent's record, which is kept forever: going back to
an older YAML does nothing either. A restore that has begun (``Running``) is never withdrawn,
whatever the spec is by then; the gate stays closed until it is completed, or refused with nothing
changed because Hudi's plan of it was never made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hudi_contract.records import read
from hudi_contract.requests import RestoreDone, RestoreRequest, named, request_id
from hudi_contract.table_keys import InstantRecord
from hudi_contract.words import RequestKind, Result
from hudi_operator.api.restore import Restore
from hudi_operator.model import conditions
from hudi_operator.model.status import RestoreStatus
from hudi_operator.plan.core.actions import Action, PutRequest
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View

JsonDict = dict[str, Any]

ACTION = "restore"
"""Action of an instant on the timeline."""
NOT_EXECUTED = "NotExecuted"
"""Outcome in status of the baseline nonce."""
REASON = "Restore"
"""Reason of condition Ready during a restore."""
LISTED = 20


def _record(view: View, nonce: str) -> RestoreDone:
    return read(view.etcd.done.get(request_id(RequestKind.RESTORE, nonce)), RestoreDone)


def begun(view: View) -> Restore | None:
    """The restore that the agent has begun and not finished; None when there is none."""
    for id, stored in sorted(view.etcd.done.items()):
        nonce = named(RequestKind.RESTORE, id)
        if nonce and stored.read(RestoreDone).result is Result.RUNNING:
            return Restore(stored.read(RestoreDone).savepoint, nonce)
    return None


def goes_on(status: JsonDict) -> bool:
    """True when a restore has begun, according to a HudiTable's status."""
    return bool((status.get("restore") or {}).get("outcome") == Result.RUNNING)


def recorded(view: View) -> bool:
    """True while an instant of a restore is pending.

    The table is between its old and its new state.
    """
    return any(stored.read(InstantRecord).action == ACTION for stored in view.etcd.instants.values())


def baseline(view: View, *, adopted: bool) -> str:
    """Nonce that is never executed; empty when there is none.

    ``adopted``: the gate was open for this HudiTable before.
    """
    if adopted:
        return view.gate.restore_baseline
    return view.table.restore.nonce if view.table.restore is not None else ""


def unfinished(view: View, *, adopted: bool) -> Restore | None:
    """The restore for which the gate is, or must be, closed; None when there is none.

    A restore that has begun comes first.
    """
    going_on = begun(view)
    if going_on is not None:
        return going_on
    wanted = view.table.restore
    if wanted is None or not adopted or view.table.suspend or wanted.nonce == baseline(view, adopted=adopted):
        return None
    return None if _record(view, wanted.nonce).ended else wanted


def request(restore: Restore, savepoints: Iterable[str]) -> RestoreRequest:
    """The request to the agent. ``savepoints``: those that the HudiTable names."""
    id, names = request_id(RequestKind.RESTORE, restore.nonce), tuple(sorted(savepoints))
    return RestoreRequest(id=id, nonce=restore.nonce, savepoint=restore.savepoint, savepoints=names)


def plan_requests(view: View, *, adopted: bool, ready: bool) -> PartialPlan:
    """Request an unfinished restore from the agent.

    ``ready``: the gate is closed for this restore and no writer is left.
    """
    restore = unfinished(view, adopted=adopted)
    wanted = request_id(RequestKind.RESTORE, restore.nonce) if restore is not None else ""
    actions: list[Action] = [
        PutRequest(view.table.table_id, id, None)
        for id in view.etcd.requests
        if named(RequestKind.RESTORE, id) and id != wanted
    ]
    if restore is None:
        return PartialPlan(tuple(actions))
    value = request(restore, view.table.savepoints).to_json()
    if ready and (wanted not in view.etcd.requests or view.etcd.requests[wanted].value != value):
        actions.append(PutRequest(view.table.table_id, wanted, value))
    return PartialPlan(tuple(actions), (_state(view, restore, ready=ready),), 2.0)


def _state(view: View, restore: Restore, *, ready: bool) -> str:
    found = _record(view, restore.nonce)
    what = f"restore to savepoint {restore.savepoint} (nonce {restore.nonce})"
    if found.result is Result.RUNNING:
        return f"{what}: the agent undoes commits{': ' + found.message if found.message else ''}"
    return f"{what}: {'requested from the agent' if ready else 'waiting for running writers'}"


def blocks(view: View, *, adopted: bool) -> str:
    """Why writers wait; empty when they do not wait for a restore."""
    restore = unfinished(view, adopted=adopted)
    return _state(view, restore, ready=view.gate.restoring == restore.nonce) if restore is not None else ""


def status(view: View, *, adopted: bool) -> RestoreStatus | None:
    """``status.restore``: the restore in progress, or the one that the spec names.

    None when there is none.
    """
    restore = begun(view) or view.table.restore
    if restore is None:
        return None
    found = _record(view, restore.nonce)
    savepoint = found.savepoint or restore.savepoint
    if found.result is None and restore.nonce == baseline(view, adopted=adopted):
        message = (
            "the nonce was set when the HudiTable was created, or when etcd had been set back and a person accepted "
            "that: set a new one to restore the table"
        )
        return RestoreStatus(nonce=restore.nonce, savepoint=savepoint, outcome=NOT_EXECUTED, message=message)
    return RestoreStatus(
        nonce=restore.nonce,
        savepoint=savepoint,
        outcome=str(found.result or Result.PENDING),
        instant=found.instant,
        completion_time=found.completion_time,
        boundary_completion_time=found.boundary,
        undone=found.undone,
        undone_instants=found.undone_instants[:LISTED],
        begin_time=conditions.rfc3339(found.begin_ms) if found.begin_ms is not None else "",
        end_time=conditions.rfc3339(found.end_ms) if found.end_ms is not None else "",
        failures=found.failures,
        message=found.message[:1024],
    )


def new_events(old: JsonDict, new: JsonDict) -> list[tuple[str, str, str]]:
    """Type, reason and message of the events for a new status."""
    if "restore" not in new:
        return []
    before, now = (RestoreStatus.known(status.get("restore") or {"outcome": ""}) for status in (old, new))
    if (now.nonce, now.outcome) == (before.nonce, before.outcome):
        return []
    what = f"savepoint {now.savepoint} (nonce {now.nonce})"
    if now.outcome == Result.COMPLETED:
        boundary = now.boundary_completion_time or "?"
        text = f"{what}: everything that completed after {boundary} is undone, {now.undone or 0} instants"
        return [("Warning" if now.message else "Normal", "Restored", "; ".join(filter(None, (text, now.message))))]
    if now.outcome == Result.RUNNING:
        return [("Normal", "Restoring", f"{what}: commits are being undone")]
    failed = now.outcome == Result.FAILED
    return [("Warning", "RestoreFailed", f"{what}: {now.message or '?'}")] if failed else []
