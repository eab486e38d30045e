"""Savepoints (``spec.savepoints``): a commit is kept against cleaning and archival, as a point that everybody agrees on.

Hudi would let a savepoint be taken beside running writers: a commit that was requested before it and ends after it would then be on neither side.
So the gate is closed first (writers that run finish, nobody new starts), the agent takes the savepoint of the last commit when nothing is
pending, and the gate opens again. Which savepoints are unfinished is told by ``done/savepoint-<name>``, the agent's record.
"""

from __future__ import annotations

from typing import Any

from hudi_operator.model import conditions
from hudi_operator.plan.core.actions import IDLE_SECONDS, Action, PutRequest
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View

JsonDict = dict[str, Any]

PREFIX = "savepoint-"
COMPLETED, FAILED = "Completed", "Failed"


def unfinished(view: View) -> list[str]:
    """Names of savepoints that are still to be taken; none while the table is suspended."""
    return [] if view.table.suspend else [name for name in view.table.savepoints if _record(view, name).get("result") not in (COMPLETED, FAILED)]


def _record(view: View, name: str) -> JsonDict:
    stored = view.etcd.done.get(f"{PREFIX}{name}")
    return stored.value if stored is not None else {}


def request(name: str) -> JsonDict:
    """What the agent is asked for: the value of ``request/savepoint-<name>``."""
    return {"id": f"{PREFIX}{name}", "kind": "savepoint", "name": name, "nonce": name}


def plan_requests(view: View, *, drained: bool) -> PartialPlan:
    """Ask the agent for what is unfinished; ``drained``: the gate is closed and nobody is left who started while it was open."""
    wanted = {f"{PREFIX}{name}": name for name in unfinished(view)}
    actions: list[Action] = [PutRequest(view.table.table_id, id, None) for id in view.etcd.requests if id.startswith(PREFIX) and id not in wanted]
    if drained:
        new = {id: name for id, name in wanted.items() if id not in view.etcd.requests}
        actions.extend(PutRequest(view.table.table_id, id, request(name)) for id, name in new.items())
    summary = (f"savepoint {next(iter(wanted.values()))}: {'asked of the agent' if drained else 'waiting for running writers'}",) if wanted else ()
    return PartialPlan(tuple(actions), summary, 2.0 if wanted else IDLE_SECONDS)


def status(view: View) -> list[JsonDict]:
    """``status.savepoints``: one entry for each that the spec names."""
    return [_of(name, _record(view, name)) for name in view.table.savepoints]


def _of(name: str, record: JsonDict) -> JsonDict:
    shown: JsonDict = {"name": name, "outcome": str(record.get("result") or "Pending")}
    for field, key in (("instant", "instant"), ("completionTime", "completionTime"), ("boundaryCompletionTime", "boundary")):
        if record.get(key):
            shown[field] = str(record[key])[:32]
    if record.get("message"):
        shown["message"] = str(record["message"])[:1024]
    if isinstance(record.get("atMs"), int):
        shown["time"] = conditions.rfc3339(record["atMs"])
    return shown
