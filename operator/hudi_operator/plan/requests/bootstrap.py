"""Bootstrap (``spec.bootstrap``).

The agent writes the first commit of a new table, alone, before any writer is admitted
(RFC-22 R14, R15).

The gate alone ensures this: it is created closed and opens for the first time when
``done/bootstrap``, the agent's record, is Completed. The agent's commit is recorded, fenced and
settled like any other: if the agent dies during it, its death is proven, its instant is rolled back
exactly, and the next agent starts over; if it dies after the commit, the next agent finds the
commit by its metadata.
"""

from __future__ import annotations

from typing import Any

from hudi_contract.records import read
from hudi_contract.requests import BootstrapDone, BootstrapRequest, request_id
from hudi_contract.words import BootstrapMode, RequestKind, Result
from hudi_operator.api.bootstrap import Bootstrap
from hudi_operator.model import conditions
from hudi_operator.model.conditions import Condition, condition
from hudi_operator.model.status import BootstrapStatus
from hudi_operator.plan.core.actions import PutRequest
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View

JsonDict = dict[str, Any]

KEY = request_id(RequestKind.BOOTSTRAP)


def record(view: View) -> BootstrapDone:
    """The agent's record about this HudiTable.

    Empty before the agent begins (a record of an earlier HudiTable does not count).
    """
    found = read(view.etcd.done.get(KEY), BootstrapDone)
    return found if found.table_uid == view.table.ref.uid else BootstrapDone()


def unfinished(view: View, *, adopted: bool) -> bool:
    """True while the bootstrap is not finished.

    ``adopted``: the gate was open before, so writers may have written and there is no
    bootstrap any more.
    """
    return view.table.bootstrap is not None and not adopted and record(view).result is not Result.COMPLETED


def request(table_uid: str, source: Bootstrap) -> BootstrapRequest:
    """The request to the agent. ``table_uid``: uid of the HudiTable."""
    return BootstrapRequest(
        id=KEY, table_uid=table_uid, mode=source.mode, format=source.format, path=source.canonical_path
    )


def plan_request(view: View, *, adopted: bool, ready: bool) -> PartialPlan:
    """Request an unfinished bootstrap from the agent.

    ``ready``: the gate is closed and the agent has reported the empty table without error.
    """
    asked, source = KEY in view.etcd.requests, view.table.bootstrap
    if source is None or not unfinished(view, adopted=adopted) or view.table.suspend:
        return PartialPlan.of(PutRequest(view.table.table_id, KEY, None)) if asked else PartialPlan()
    wanted = request(view.table.ref.uid, source).to_json()
    summary = _state(view)
    if ready and (not asked or view.etcd.requests[KEY].value != wanted):
        return PartialPlan.of(PutRequest(view.table.table_id, KEY, wanted), summary=summary, requeue=2.0)
    return PartialPlan.of(summary=summary, requeue=2.0)


def _state(view: View) -> str:
    """State of the bootstrap, as a message for people."""
    found, source = record(view), view.table.bootstrap.path if view.table.bootstrap is not None else ""
    if found.result is Result.FAILED:
        return f"the bootstrap from {source} failed and is retried: {found.message or '?'}"
    if found.result is Result.RUNNING:
        return f"the agent writes the rows of {source}"
    if view.table.suspend:
        return f"the bootstrap from {source} waits: the table is suspended"
    return f"the bootstrap from {source} waits for the agent"


def blocks(view: View, *, adopted: bool) -> str:
    """Why writers wait; empty when they do not wait for a bootstrap."""
    return _state(view) if unfinished(view, adopted=adopted) else ""


def status(view: View) -> BootstrapStatus | None:
    """``status.bootstrap``; None for a table that begins without rows."""
    source = view.table.bootstrap
    if source is None:
        return None
    found = record(view)
    return BootstrapStatus(
        outcome=str(found.result or Result.PENDING),
        mode=found.mode or BootstrapMode.FULL_RECORD.value,
        source=source.canonical_path,
        begin_time=conditions.rfc3339(found.begin_ms) if found.begin_ms is not None else "",
        end_time=conditions.rfc3339(found.end_ms) if found.end_ms is not None else "",
        instant=found.instant,
        completion_time=found.completion_time,
        records=found.records,
        files=found.files,
        bytes=found.bytes,
        failures=found.failures,
        message=found.message[:1024],
    )


def bootstrapped(view: View, *, adopted: bool) -> Condition:
    """Condition Bootstrapped: True when writers need not wait for a bootstrap."""
    kind = "Bootstrapped"
    if view.table.bootstrap is None:
        return condition(kind, True, "NotRequested", "the table begins without rows of another dataset")
    if not unfinished(view, adopted=adopted):
        done = record(view)
        return condition(
            kind,
            True,
            kind,
            f"{_or_unknown(done.records)} records of {view.table.bootstrap.path} are in commit {done.instant or '?'}",
        )
    found = record(view)
    if found.result is Result.FAILED:
        return condition(kind, False, found.code or Result.FAILED, _state(view))
    return condition(kind, False, "Running" if found.result is Result.RUNNING else "Waiting", _state(view))


def _or_unknown(number: int | None) -> str:
    return "?" if number is None else str(number)


def new_events(old: JsonDict, new: JsonDict) -> list[tuple[str, str, str]]:
    """Type, reason and message of the events for a new status."""
    if "bootstrap" not in new:
        return []
    before, now = (BootstrapStatus.known(status.get("bootstrap") or {"outcome": ""}) for status in (old, new))
    if now.outcome == before.outcome:
        return []
    if now.outcome == Result.COMPLETED:
        records, files, size = map(_or_unknown, (now.records, now.files, now.bytes))
        text = f"{now.source} is in commit {now.instant or '?'}: {records} records in {files} files, {size} bytes"
        return [("Normal", "Bootstrapped", text)]
    failed = now.outcome == Result.FAILED
    return [("Warning", "BootstrapFailed", f"{now.source}: {now.message or '?'}")] if failed else []
