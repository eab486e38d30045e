"""The metadata table (``spec.metadataTable``) is switched on and off, indexed and made anew while nobody writes.

The gate is closed first (writers that run finish, nobody new starts), the agent makes the change alone, and the gate opens when
``done/metadata`` says that it is made: a writer that keeps the metadata table up never runs beside one that does not (R16).
"""

from __future__ import annotations

from typing import Any

from hudi_operator.api.metadata_table import MetadataTable
from hudi_operator.model import conditions
from hudi_operator.plan.core.actions import PutRequest
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View

JsonDict = dict[str, Any]

KEY = "metadata"
COMPLETED = "Completed"


def wanted(view: View) -> MetadataTable:
    """What the spec asks for; Hudi's default when it says nothing."""
    return view.table.metadata_table or MetadataTable()


def _record(view: View) -> JsonDict:
    stored = view.etcd.done.get(KEY)
    return stored.value if stored is not None else {}


def unfinished(view: View) -> str:
    """The change that is still to be made, in one word; empty when there is none, and while the table is suspended."""
    record, word = _record(view), wanted(view).nonce
    done = record.get("nonce") == word and record.get("result") == COMPLETED
    if done or view.table.suspend or (not record and word == MetadataTable().nonce):
        return ""
    return word


def request(table: MetadataTable) -> JsonDict:
    """What the agent is asked for: the value of ``request/metadata``."""
    return {"id": KEY, "kind": KEY, "nonce": table.nonce, "enabled": table.enabled, "options": table.options}


def plan_request(view: View, *, drained: bool) -> PartialPlan:
    """Ask the agent for what is unfinished; ``drained``: the gate is closed and nobody is left who started while it was open."""
    word, asked = unfinished(view), view.etcd.requests.get(KEY)
    if not word:
        return PartialPlan((PutRequest(view.table.table_id, KEY, None),)) if asked is not None else PartialPlan()
    summary = (f"metadata table {word}: {'asked of the agent' if drained else 'waiting for running writers'}",)
    if not drained or (asked is not None and asked.value.get("nonce") == word):
        return PartialPlan((), summary, 2.0)
    return PartialPlan((PutRequest(view.table.table_id, KEY, request(wanted(view))),), summary, 2.0)


def awaited(view: View) -> str:
    """What the writers of a closed gate wait for."""
    record, word = _record(view), unfinished(view)
    failed = record.get("nonce") == word and record.get("failures")
    why = f" ({int(record['failures'])} failures, the last one: {record.get('message') or 'the agent ended in the middle of it'})" if failed else ""
    return f"the metadata table is changed to {word} when running writers have ended{why}"


def status(view: View) -> JsonDict:
    """``status.metadataTable``: what the last change was, and how it ended; empty when there never was one."""
    record = _record(view)
    word = unfinished(view)
    if not record and not word:
        return {}
    shown: JsonDict = {"wanted": wanted(view).nonce, "outcome": "Pending" if word and record.get("nonce") != word else str(record.get("result") or "Pending")}
    if record.get("partitions") is not None and record.get("nonce") == wanted(view).nonce:
        shown["partitions"] = [str(name)[:64] for name in record["partitions"]][:16]
    if record.get("nonce") == wanted(view).nonce:
        if record.get("message"):
            shown["message"] = str(record["message"])[:1024]
        if record.get("failures"):
            shown["failures"] = int(record["failures"])
    if isinstance(record.get("atMs"), int):
        shown["lastTime"] = conditions.rfc3339(record["atMs"])
    return shown
