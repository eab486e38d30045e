"""The metadata table (``spec.metadataTable``) is switched on and off, indexed and made anew while nobody writes.

The gate is closed first (writers that run finish, nobody new starts), the agent makes the change alone, and the gate opens when
``done/metadata`` says that it is made: a writer that keeps the metadata table up never runs beside one that does not (R16).
"""

from __future__ import annotations

from typing import Any

from hudi_contract.records import read
from hudi_contract.requests import MetadataDone, MetadataRequest, request_id
from hudi_contract.words import RequestKind, Result
from hudi_operator.api.metadata_table import MetadataTable
from hudi_operator.model import conditions
from hudi_operator.plan.core.actions import PutRequest
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View

JsonDict = dict[str, Any]

KEY = request_id(RequestKind.METADATA)


def wanted(view: View) -> MetadataTable:
    """What the spec asks for; Hudi's default when it says nothing."""
    return view.table.metadata_table or MetadataTable()


def _record(view: View) -> MetadataDone:
    return read(view.etcd.done.get(KEY), MetadataDone)


def unfinished(view: View) -> str:
    """The change that is still to be made, in one word; empty when there is none, and while the table is suspended."""
    record, word = _record(view), wanted(view).nonce
    done = record.nonce == word and record.result is Result.COMPLETED
    if done or view.table.suspend or (record.result is None and word == MetadataTable().nonce):
        return ""
    return word


def request(table: MetadataTable) -> MetadataRequest:
    """What the agent is asked for."""
    return MetadataRequest(id=KEY, nonce=table.nonce, enabled=table.enabled, options=table.options)


def plan_request(view: View, *, drained: bool) -> PartialPlan:
    """Ask the agent for what is unfinished; ``drained``: the gate is closed and nobody is left who started while it was open."""
    word, asked = unfinished(view), view.etcd.requests.get(KEY)
    if not word:
        return PartialPlan((PutRequest(view.table.table_id, KEY, None),)) if asked is not None else PartialPlan()
    summary = (f"metadata table {word}: {'asked of the agent' if drained else 'waiting for running writers'}",)
    if not drained or (asked is not None and MetadataRequest.wrong(asked.value) == "" and asked.read(MetadataRequest).nonce == word):
        return PartialPlan((), summary, 2.0)
    return PartialPlan((PutRequest(view.table.table_id, KEY, request(wanted(view)).to_json()),), summary, 2.0)


def awaited(view: View) -> str:
    """What the writers of a closed gate wait for."""
    record, word = _record(view), unfinished(view)
    failed = record.nonce == word and record.failures
    why = f" ({record.failures} failures, the last one: {record.message or 'the agent ended in the middle of it'})" if failed else ""
    return f"the metadata table is changed to {word} when running writers have ended{why}"


def status(view: View) -> JsonDict:
    """``status.metadataTable``: what the last change was, and how it ended; empty when there never was one."""
    record = _record(view)
    word = unfinished(view)
    if record.result is None and not word:
        return {}
    other = word and record.nonce != word
    shown: JsonDict = {"wanted": wanted(view).nonce, "outcome": str((None if other else record.result) or Result.PENDING)}
    if record.nonce == wanted(view).nonce:
        if record.partitions is not None:
            shown["partitions"] = [name[:64] for name in record.partitions][:16]
        if record.message:
            shown["message"] = record.message[:1024]
        if record.failures:
            shown["failures"] = record.failures
    if record.at_ms is not None:
        shown["lastTime"] = conditions.rfc3339(record.at_ms)
    return shown
