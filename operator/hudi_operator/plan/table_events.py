"""Events of a HudiTable: changes between two of its statuses.

There are no events for commits: a busy table has many, and each event is an object in the API
server (F250).
"""

from __future__ import annotations

from typing import Any

from hudi_contract import naming
from hudi_contract.settle import Phase
from hudi_contract.words import Result
from hudi_operator.model import conditions
from hudi_operator.model.status import savepoint_entries, settling_entries
from hudi_operator.plan.core.actions import EVENT_LIMIT, EmitEvent
from hudi_operator.plan.requests import bootstrap, callbacks, catalogs, holds, restores

JsonDict = dict[str, Any]

_EVENTS = {
    ("Ready", "True"): ("Normal", "Ready"),
    ("Stalled", "True"): ("Warning", ""),
    ("RecordsReadable", "False"): ("Warning", ""),
    ("AwaitingProofOfDeath", "True"): ("Warning", "AwaitingProofOfDeath"),
    ("ForeignWriters", "True"): ("Warning", "ForeignWriters"),
    ("ServicesHealthy", "False"): ("Warning", ""),
    ("BucketSafe", "False"): ("Warning", ""),
    (callbacks.CONDITION, "False"): ("Warning", "CallbackFailed"),
    (catalogs.CONDITION, "False"): ("Warning", "CatalogSyncFailed"),
    (holds.CONDITION, "True"): ("Warning", "CleaningHeld"),
}


def events(obj: JsonDict, status: JsonDict) -> tuple[EmitEvent, ...]:
    """Events for conditions that changed, requests that ended, and incarnations being settled."""
    meta, old = obj["metadata"], obj.get("status") or {}
    found: list[EmitEvent] = []

    def event(kind: str, reason: str, message: str) -> EmitEvent:
        about = (naming.TABLE_KIND, meta.get("namespace", ""), meta["name"], meta.get("uid", ""))
        return EmitEvent(*about, kind, reason, message[:EVENT_LIMIT])

    for item in status.get("conditions") or []:
        known = _EVENTS.get((item["type"], item["status"]))
        if known is not None and conditions.find(old, item["type"]).get("status") != item["status"]:
            found.append(event(known[0], known[1] or item["reason"], item["message"]))
    taken = {savepoint.name: savepoint.outcome for savepoint in savepoint_entries(old)}
    for savepoint in savepoint_entries(status):
        if savepoint.outcome is Result.COMPLETED and taken.get(savepoint.name) is not Result.COMPLETED:
            text = (
                f"savepoint {savepoint.name} keeps instant {savepoint.instant} and everything completed until "
                f"{savepoint.boundary_completion_time}"
            )
            found.append(event("Normal", "SavepointTaken", text))
        elif savepoint.outcome is Result.FAILED and taken.get(savepoint.name) is not Result.FAILED:
            found.append(event("Warning", "SavepointFailed", f"savepoint {savepoint.name}: {savepoint.message}"))
        elif savepoint.outcome is Result.DELETED and taken.get(savepoint.name) is not Result.DELETED:
            text = f"savepoint {savepoint.name} of instant {savepoint.instant} is deleted"
            found.append(event("Normal", "SavepointDeleted", text))
    found.extend(
        event(kind, reason, text)
        for each in (bootstrap, restores, holds)
        for kind, reason, text in each.new_events(old, status)
    )
    before = {settling.incarnation: settling.phase for settling in settling_entries(old)}
    for settling in settling_entries(status):
        phase = settling.phase
        if settling.incarnation not in before:
            found.append(event("Warning", "Fenced", f"{settling.label} is fenced: {settling.reason}"))
        elif before[settling.incarnation] is not phase and phase in (Phase.Unlocked, Phase.RollingBack):
            found.append(event("Normal", phase.name, f"{settling.label}: {phase.name}"))
    return tuple(found)
