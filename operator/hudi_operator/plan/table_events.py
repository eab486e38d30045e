"""Events of a HudiTable: what has changed between two of its statuses."""

from __future__ import annotations

from typing import Any

from hudi_contract import naming
from hudi_contract.settle import Phase
from hudi_contract.words import Result
from hudi_operator.model import conditions
from hudi_operator.plan.core.actions import EVENT_LIMIT, EmitEvent
from hudi_operator.plan.requests import bootstrap, callbacks, restores

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
}


def new_commits(old: JsonDict, new: JsonDict) -> list[JsonDict]:
    """Commits of a status that the previous one did not have.

    None when the previous one had no timeline yet (nothing is new at the first look).
    """
    if not old.get("timeline"):
        return []
    last = max(
        (c.get("completionTime", "") for c in old["timeline"].get("commits") or []),
        default=str(old["timeline"].get("lastCompletionTime") or ""),
    )
    return [c for c in (new.get("timeline") or {}).get("commits") or [] if c.get("completionTime", "") > last]


def _committed(commits: list[JsonDict]) -> str:
    """The text of one event for all commits of a look.

    A busy table has many, and each event is an object in the API server (F55).
    """
    newest = max(commits, key=lambda c: str(c.get("completionTime", "")))
    writers = sorted({str(c["writer"]) for c in commits if c.get("writer")})
    by = f" by {', '.join(writers)}" if writers else ""
    records, completed = (
        sum(int(c.get("records") or 0) for c in commits),
        f"completed {newest.get('completionTime', '')}",
    )
    if len(commits) == 1:
        return f"{newest['action']} {newest['instant']}{by}: {records} records, {completed}"
    return (
        f"{len(commits)} commits{by}: {records} records, the last one {newest['action']} {newest['instant']}, "
        f"{completed}"
    )


def events(obj: JsonDict, status: JsonDict) -> tuple[EmitEvent, ...]:
    """Events for conditions that changed, and for incarnations that are newly being settled."""
    meta, old = obj["metadata"], obj.get("status") or {}
    found: list[EmitEvent] = []

    def event(kind: str, reason: str, message: str, instant: str = "") -> EmitEvent:
        about = (naming.TABLE_KIND, meta.get("namespace", ""), meta["name"], meta.get("uid", ""))
        return EmitEvent(*about, kind, reason, message[:EVENT_LIMIT], instant=instant)

    for item in status.get("conditions") or []:
        known = _EVENTS.get((item["type"], item["status"]))
        if known is not None and conditions.find(old, item["type"]).get("status") != item["status"]:
            found.append(event(known[0], known[1] or item["reason"], item["message"]))
    taken = {s["name"]: s["outcome"] for s in old.get("savepoints") or []}
    for entry in status.get("savepoints") or []:
        if entry["outcome"] == Result.COMPLETED and taken.get(entry["name"]) != Result.COMPLETED:
            text = (
                f"savepoint {entry['name']} keeps instant {entry['instant']} and everything completed until "
                f"{entry['boundaryCompletionTime']}"
            )
            found.append(event("Normal", "SavepointTaken", text))
        elif entry["outcome"] == Result.FAILED and taken.get(entry["name"]) != Result.FAILED:
            found.append(event("Warning", "SavepointFailed", f"savepoint {entry['name']}: {entry.get('message', '')}"))
    found.extend(
        event(kind, reason, text) for kind, reason, text in (*bootstrap.told(old, status), *restores.told(old, status))
    )
    if commits := new_commits(old, status):
        newest = max(commits, key=lambda c: str(c.get("completionTime", "")))
        found.append(event("Normal", "Committed", _committed(commits), newest["instant"]))
    before = {s["incarnation"]: s["phase"] for s in old.get("settling") or []}
    for entry in status.get("settling") or []:
        if entry["incarnation"] not in before:
            found.append(
                event("Warning", "Fenced", f"{entry['attempt'] or entry['incarnation']} is fenced: {entry['reason']}")
            )
        elif before[entry["incarnation"]] != entry["phase"] and entry["phase"] in (
            Phase.Unlocked.name,
            Phase.RollingBack.name,
        ):
            found.append(
                event("Normal", entry["phase"], f"{entry['attempt'] or entry['incarnation']}: {entry['phase']}")
            )
    return tuple(found)
