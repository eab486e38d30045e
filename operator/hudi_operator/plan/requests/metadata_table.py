"""The metadata table (``spec.metadataTable``) is changed while nobody writes.

It is enabled, disabled, indexed or rebuilt.

The gate is closed first (running writers finish, no new one starts), the agent makes the change
alone, and the gate opens when ``done/metadata`` confirms the change: a writer that maintains the
metadata table never runs beside one that does not (R16).
"""

from __future__ import annotations

from typing import Any

from hudi_contract.records import read
from hudi_contract.requests import MetadataDone, MetadataRequest, request_id
from hudi_contract.words import RequestKind, Result
from hudi_operator.api.metadata_table import MetadataTable
from hudi_operator.model import conditions
from hudi_operator.model.status import MetadataTableStatus
from hudi_operator.plan.core.actions import PutRequest
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View

JsonDict = dict[str, Any]

KEY = request_id(RequestKind.METADATA)


def wanted(view: View) -> MetadataTable:
    """The metadata table of the spec; the list of files alone when the spec has none."""
    return view.table.metadata_table or MetadataTable()


def _record(view: View) -> MetadataDone:
    return read(view.etcd.done.get(KEY), MetadataDone)


def unfinished(view: View) -> str:
    """Nonce of the unfinished change.

    Empty when there is none, and while the table is suspended.
    """
    record, word = _record(view), wanted(view).nonce
    done = record.nonce == word and record.result is Result.COMPLETED
    if done or view.table.suspend or (record.result is None and word == MetadataTable().nonce):
        return ""
    return word


def request(table: MetadataTable) -> MetadataRequest:
    """The request to the agent."""
    return MetadataRequest(id=KEY, nonce=table.nonce, enabled=table.enabled, options=table.options)


def plan_request(view: View, *, drained: bool) -> PartialPlan:
    """Request an unfinished change from the agent.

    ``drained``: the gate is closed and no attempt that started while it was open is left.
    """
    word, asked = unfinished(view), view.etcd.requests.get(KEY)
    if not word:
        return PartialPlan((PutRequest(view.table.table_id, KEY, None),)) if asked is not None else PartialPlan()
    summary = (f"metadata table {word}: {'requested from the agent' if drained else 'waiting for running writers'}",)
    if not drained or (
        asked is not None and MetadataRequest.wrong(asked.value) == "" and asked.read(MetadataRequest).nonce == word
    ):
        return PartialPlan((), summary, 2.0)
    return PartialPlan((PutRequest(view.table.table_id, KEY, request(wanted(view)).to_json()),), summary, 2.0)


def awaited(view: View) -> str:
    """The change for which writers wait while the gate is closed, in words."""
    record, word = _record(view), unfinished(view)
    failed = record.nonce == word and record.failures
    why = (
        f" ({record.failures} failures, the last one: {record.message or 'the agent ended during the change'})"
        if failed
        else ""
    )
    return f"the metadata table is changed to {word} when running writers have ended{why}"


def status(view: View) -> MetadataTableStatus | None:
    """``status.metadataTable``: the last change and its outcome; None when there never was one."""
    record = _record(view)
    word = unfinished(view)
    if record.result is None and not word:
        return None
    other = record.nonce != wanted(view).nonce
    shown = MetadataTableStatus(
        wanted=wanted(view).nonce,
        outcome=str((None if other else record.result) or Result.PENDING),
        last_time=conditions.rfc3339(record.at_ms) if record.at_ms is not None else "",
    )
    if record.nonce != shown.wanted:
        return shown
    names = record.partitions
    return shown.but(
        partitions=tuple(name[:64] for name in names[:16]) if names is not None else None,
        message=record.message[:1024],
        failures=record.failures,
    )
