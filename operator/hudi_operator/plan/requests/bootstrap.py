"""Bootstrap (``spec.bootstrap``): the agent writes the first commit of a new table, alone, before any writer is admitted (RFC-22 R14, R15).

Nothing else is needed for "alone" than the gate, which is created closed and opens for the first time when ``done/bootstrap``, the agent's record,
says Completed. The agent's commit is recorded, fenced and settled like any other: an agent that dies in it is proven dead, its instant is
rolled back exactly, and the next agent begins anew; one that dies after it finds the commit by its metadata.
"""

from __future__ import annotations

from typing import Any

from hudi_operator.api.bootstrap import FULL_RECORD, Bootstrap
from hudi_operator.model import conditions
from hudi_operator.model.conditions import Condition, condition
from hudi_operator.plan.core.actions import PutRequest
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View

JsonDict = dict[str, Any]

KEY = "bootstrap"
POLICY = "Bootstrap"
"""What an agent is told instead of the adoption policy: a table with commits of somebody else is refused."""
PENDING, RUNNING, COMPLETED, FAILED = "Pending", "Running", "Completed", "Failed"
SOURCE_INVALID = "SourceInvalid"
_COUNTS = ("records", "files", "bytes")


def record(view: View) -> JsonDict:
    """The agent's record about this HudiTable; empty before it begins (one of an earlier HudiTable does not count)."""
    stored = view.etcd.done.get(KEY)
    return stored.value if stored is not None and stored.value.get("tableUID") == view.table.ref.uid else {}


def unfinished(view: View, *, adopted: bool) -> bool:
    """True while the table is still to begin; ``adopted``: its gate was open before, so writers have come and nothing begins any more."""
    return view.table.bootstrap is not None and not adopted and record(view).get("result") != COMPLETED


def request(table_uid: str, source: Bootstrap) -> JsonDict:
    """What the agent is asked for: the value of ``request/bootstrap``. ``table_uid``: of the HudiTable."""
    return {"id": KEY, "kind": KEY, "tableUID": table_uid, "mode": source.mode, "format": source.format, "path": source.canonical_path}


def plan_request(view: View, *, adopted: bool, ready: bool) -> PartialPlan:
    """Ask the agent for what is unfinished; ``ready``: the gate is closed and the agent has reported the empty table without error."""
    asked, source = KEY in view.etcd.requests, view.table.bootstrap
    if source is None or not unfinished(view, adopted=adopted) or view.table.suspend:
        return PartialPlan.of(PutRequest(view.table.table_id, KEY, None)) if asked else PartialPlan()
    wanted = request(view.table.ref.uid, source)
    summary = _state(view)
    if ready and (not asked or view.etcd.requests[KEY].value != wanted):
        return PartialPlan.of(PutRequest(view.table.table_id, KEY, wanted), summary=summary, requeue=2.0)
    return PartialPlan.of(summary=summary, requeue=2.0)


def _state(view: View) -> str:
    """What the bootstrap does or waits for, for people."""
    found, source = record(view), view.table.bootstrap.path if view.table.bootstrap is not None else ""
    if found.get("result") == FAILED:
        return f"the bootstrap from {source} has failed, and is tried again: {found.get('message') or '?'}"
    if found.get("result") == RUNNING:
        return f"the agent writes the rows of {source}"
    if view.table.suspend:
        return f"the bootstrap from {source} waits: the table is suspended"
    return f"the bootstrap from {source} waits for the agent"


def blocks(view: View, *, adopted: bool) -> str:
    """Why writers wait; empty when they do not wait for a bootstrap."""
    return _state(view) if unfinished(view, adopted=adopted) else ""


def status(view: View) -> JsonDict:
    """``status.bootstrap``; empty for a table that begins without rows."""
    source = view.table.bootstrap
    if source is None:
        return {}
    found = record(view)
    shown: JsonDict = {"outcome": str(found.get("result") or PENDING), "mode": str(found.get("mode") or FULL_RECORD), "source": source.canonical_path}
    for field, key in (("instant", "instant"), ("completionTime", "completionTime")):
        if found.get(key):
            shown[field] = str(found[key])[:32]
    for field, key in (("beginTime", "beginMs"), ("endTime", "endMs")):
        if isinstance(found.get(key), int):
            shown[field] = conditions.rfc3339(found[key])
    shown.update({name: int(found[name]) for name in _COUNTS if isinstance(found.get(name), int)})
    if found.get("failures"):
        shown["failures"] = int(found["failures"])
    if found.get("message"):
        shown["message"] = str(found["message"])[:1024]
    return shown


def bootstrapped(view: View, *, adopted: bool) -> Condition:
    """Condition Bootstrapped: writers may come as far as this is concerned."""
    kind = "Bootstrapped"
    if view.table.bootstrap is None:
        return condition(kind, True, "NotRequested", "the table begins without rows of another dataset")
    if not unfinished(view, adopted=adopted):
        done = record(view)
        return condition(kind, True, kind, f"{done.get('records', '?')} records of {view.table.bootstrap.path} are in commit {done.get('instant') or '?'}")
    found = record(view)
    reason = {RUNNING: "Running", FAILED: str(found.get("code") or FAILED)}.get(str(found.get("result")), "Waiting")
    return condition(kind, False, reason, _state(view))


def told(old: JsonDict, new: JsonDict) -> list[tuple[str, str, str]]:
    """Type, reason and message of the events that a new status is worth."""
    before, now = old.get("bootstrap") or {}, new.get("bootstrap") or {}
    if now.get("outcome") == before.get("outcome"):
        return []
    if now.get("outcome") == COMPLETED:
        counts = f"{now.get('records', '?')} records in {now.get('files', '?')} files, {now.get('bytes', '?')} bytes"
        return [("Normal", "Bootstrapped", f"{now['source']} is in commit {now.get('instant', '?')}: {counts}")]
    return [("Warning", "BootstrapFailed", f"{now['source']}: {now.get('message', '?')}")] if now.get("outcome") == FAILED else []
