"""Events of a HudiTable: what has changed between two of its statuses."""

from __future__ import annotations

from typing import Any

from hudi_contract import naming
from hudi_contract.settle import Phase
from hudi_contract.words import Result
from hudi_operator.model import conditions
from hudi_operator.model.status import CommitEntry, commit_entries, savepoint_entries, settling_entries
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


def new_commits(old: JsonDict, new: JsonDict) -> list[CommitEntry]:
    """Commits of a status that the previous one did not have.

    None when the previous one had no timeline yet (nothing is new at the first look).
    """
    if not old.get("timeline"):
        return []
    last = max(
        (commit.completion_time for commit in commit_entries(old)),
        default=str(old["timeline"].get("lastCompletionTime") or ""),
    )
    return [commit for commit in commit_entries(new) if commit.completion_time > last]


def _committed(commits: list[CommitEntry]) -> str:
    """The text of one event for all commits of a look.

    A busy table has many, and each event is an object in the API server (F55).
    """
    newest = max(commits, key=lambda c: c.completion_time)
    writers = sorted({c.writer for c in commits} - {""})
    by = f" by {', '.join(writers)}" if writers else ""
    records, completed = sum(c.records for c in commits), f"completed {newest.completion_time}"
    if len(commits) == 1:
        return f"{newest.action} {newest.instant}{by}: {records} records, {completed}"
    return f"{len(commits)} commits{by}: {records} records, the last one {newest.action} {newest.instant}, {completed}"


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
    found.extend(
        event(kind, reason, text)
        for kind, reason, text in (*bootstrap.new_events(old, status), *restores.new_events(old, status))
    )
    if commits := new_commits(old, status):
        newest = max(commits, key=lambda c: c.completion_time)
        found.append(event("Normal", "Committed", _committed(commits), newest.instant))
    before = {settling.incarnation: settling.phase for settling in settling_entries(old)}
    for settling in settling_entries(status):
        phase = settling.phase
        if settling.incarnation not in before:
            found.append(event("Warning", "Fenced", f"{settling.label} is fenced: {settling.reason}"))
        elif before[settling.incarnation] is not phase and phase in (Phase.Unlocked, Phase.RollingBack):
            found.append(event("Normal", phase.name, f"{settling.label}: {phase.name}"))
    return tuple(found)
