"""Restore (``spec.restore``): the table is taken back to a savepoint, once for each nonce (RFC-22 R52).

Acknowledged commits are undone, so nobody else may be at work: the gate is closed, running writers finish, dead ones are settled, and the gate then
says which restore it is closed for. Only under that gate does the storage wrapper let the agent begin it. Each such change moves the gate's revision,
which the record of the restore's instant compares: a request that was withdrawn is never begun afterwards.

A nonce that is there when the gate opens for the first time is the baseline and never carried out: what is left in Git does not undo a table again
that was built anew. Each nonce has its own ``done/restore-<nonce>``, the agent's record, for ever: going back to an older YAML does nothing either.
A restore that has begun is brought to its end, whatever the spec says by then; the gate stays closed until it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hudi_operator.api.restore import Restore
from hudi_operator.model import conditions
from hudi_operator.plan.core.actions import Action, PutRequest
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View

JsonDict = dict[str, Any]

PREFIX = "restore-"
ACTION = "restore"
BASELINE = "restoreBaseline"
"""In the gate: the nonce that was there when it opened for the first time."""
RESTORING = "restoring"
"""In the closed gate: the nonce of the restore that it is closed for."""
PENDING, RUNNING, COMPLETED, FAILED, NOT_EXECUTED = "Pending", "Running", "Completed", "Failed", "NotExecuted"
REASON = "Restore"
"""Of condition Ready, while it goes on."""
LISTED = 20


def _record(view: View, nonce: str) -> JsonDict:
    stored = view.etcd.done.get(f"{PREFIX}{nonce}")
    return stored.value if stored is not None else {}


def begun(view: View) -> Restore | None:
    """The restore that the agent has begun and not ended; None when there is none."""
    for id, stored in sorted(view.etcd.done.items()):
        if id.startswith(PREFIX) and stored.value.get("result") == RUNNING:
            return Restore(str(stored.value.get("savepoint") or ""), id.removeprefix(PREFIX))
    return None


def goes_on(status: JsonDict) -> bool:
    """Whether a HudiTable's status says that a restore has begun."""
    return bool((status.get("restore") or {}).get("outcome") == RUNNING)


def recorded(view: View) -> bool:
    """True while an instant of a restore is pending: the table is neither what it was nor what it will be."""
    return any(stored.value.get("action") == ACTION for stored in view.etcd.instants.values())


def baseline(view: View, *, adopted: bool) -> str:
    """Nonce that is never carried out; empty when there is none. ``adopted``: the gate was open for this HudiTable before."""
    if adopted:
        return str(view.gate.get(BASELINE) or "")
    return view.table.restore.nonce if view.table.restore is not None else ""


def unfinished(view: View, *, adopted: bool) -> Restore | None:
    """The restore for which the gate is, or is to be, closed; None when there is none. One that has begun comes first."""
    going_on = begun(view)
    if going_on is not None:
        return going_on
    wanted = view.table.restore
    if wanted is None or not adopted or view.table.suspend or wanted.nonce == baseline(view, adopted=adopted):
        return None
    return None if _record(view, wanted.nonce).get("result") in (COMPLETED, FAILED) else wanted


def request(restore: Restore, savepoints: Iterable[str]) -> JsonDict:
    """What the agent is asked for: the value of ``request/restore-<nonce>``. ``savepoints``: those that the HudiTable names."""
    return {"id": f"{PREFIX}{restore.nonce}", "kind": ACTION, "nonce": restore.nonce, "savepoint": restore.savepoint, "savepoints": sorted(savepoints)}


def plan_requests(view: View, *, adopted: bool, ready: bool) -> PartialPlan:
    """Ask the agent for what is unfinished; ``ready``: the gate is closed for this restore and no writer is left."""
    restore = unfinished(view, adopted=adopted)
    wanted = f"{PREFIX}{restore.nonce}" if restore is not None else ""
    actions: list[Action] = [PutRequest(view.table.table_id, id, None) for id in view.etcd.requests if id.startswith(PREFIX) and id != wanted]
    if restore is None:
        return PartialPlan(tuple(actions))
    value = request(restore, view.table.savepoints)
    if ready and (wanted not in view.etcd.requests or view.etcd.requests[wanted].value != value):
        actions.append(PutRequest(view.table.table_id, wanted, value))
    return PartialPlan(tuple(actions), (_state(view, restore, ready=ready),), 2.0)


def _state(view: View, restore: Restore, *, ready: bool) -> str:
    found = _record(view, restore.nonce)
    what = f"restore to savepoint {restore.savepoint} (nonce {restore.nonce})"
    if found.get("result") == RUNNING:
        return f"{what}: the agent undoes commits{': ' + str(found['message']) if found.get('message') else ''}"
    return f"{what}: {'asked of the agent' if ready else 'waiting for running writers'}"


def blocks(view: View, *, adopted: bool) -> str:
    """Why writers wait; empty when they do not wait for a restore."""
    restore = unfinished(view, adopted=adopted)
    return _state(view, restore, ready=view.gate.get(RESTORING) == restore.nonce) if restore is not None else ""


def status(view: View, *, adopted: bool) -> JsonDict:
    """``status.restore``: the restore that goes on, or the one that the spec names; empty when there is none."""
    restore = begun(view) or view.table.restore
    if restore is None:
        return {}
    found = _record(view, restore.nonce)
    outcome = str(found.get("result") or PENDING)
    shown: JsonDict = {"nonce": restore.nonce, "savepoint": str(found.get("savepoint") or restore.savepoint)}
    if not found and restore.nonce == baseline(view, adopted=adopted):
        message = "the nonce was there when the HudiTable was created: a new one restores the table"
        return {**shown, "outcome": NOT_EXECUTED, "message": message}
    shown["outcome"] = outcome
    for field, key in (("instant", "instant"), ("completionTime", "completionTime"), ("boundaryCompletionTime", "boundary")):
        if found.get(key):
            shown[field] = str(found[key])[:32]
    for field, key in (("beginTime", "beginMs"), ("endTime", "endMs")):
        if isinstance(found.get(key), int):
            shown[field] = conditions.rfc3339(found[key])
    if isinstance(found.get("undone"), int):
        shown["undone"] = int(found["undone"])
    undone = [str(instant)[:32] for instant in (found.get("undoneInstants") or [])[:LISTED]]
    if undone:
        shown["undoneInstants"] = undone
    if found.get("failures"):
        shown["failures"] = int(found["failures"])
    if found.get("message"):
        shown["message"] = str(found["message"])[:1024]
    return shown


def told(old: JsonDict, new: JsonDict) -> list[tuple[str, str, str]]:
    """Type, reason and message of the events that a new status is worth."""
    before, now = old.get("restore") or {}, new.get("restore") or {}
    if (now.get("nonce"), now.get("outcome")) == (before.get("nonce"), before.get("outcome")):
        return []
    what = f"savepoint {now.get('savepoint')} (nonce {now.get('nonce')})"
    if now.get("outcome") == COMPLETED:
        text = f"{what}: everything that completed after {now.get('boundaryCompletionTime', '?')} is undone, {now.get('undone', 0)} instants"
        return [("Normal", "Restored", text)]
    if now.get("outcome") == RUNNING:
        return [("Normal", "Restoring", f"{what}: commits are being undone")]
    return [("Warning", "RestoreFailed", f"{what}: {now.get('message', '?')}")] if now.get("outcome") == FAILED else []
