"""Savepoints (``spec.savepoints``).

A commit is protected from cleaning and archival, as a consistent point for all writers.

Hudi allows a savepoint beside running writers: a commit that was requested before it and completes
after it would then be on neither side. So the gate is closed first (running writers finish, no new
one starts), the agent takes the savepoint of the last commit when nothing is pending, and the gate
opens again. The agent's record ``done/savepoint-<name>`` shows whether a savepoint is finished.

A savepoint is deleted (``deleteInstant``) beside running writers: no writer reads savepoints, and
only the agent may remove the file of one. A person names its instant, so neither a slip in a name
nor an older manifest deletes one; and a name that was deleted is never taken again.
"""

from __future__ import annotations

from typing import Any

from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_contract.records import read
from hudi_contract.requests import SavepointDone, SavepointRequest, UnsavepointRequest, named, request_id
from hudi_contract.words import RequestKind, Result
from hudi_operator.api.spec import Savepoint
from hudi_operator.model import conditions
from hudi_operator.model.status import SavepointEntry
from hudi_operator.plan.core.actions import Action, PutRequest
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View

JsonDict = dict[str, Any]


def unfinished(view: View) -> list[str]:
    """Names of unfinished savepoints; none while the table is suspended."""
    return [] if view.table.suspend else [name for name in view.table.savepoints if not _record(view, name).ended]


def _record(view: View, name: str) -> SavepointDone:
    return read(view.etcd.done.get(request_id(RequestKind.SAVEPOINT, name)), SavepointDone)


def request(name: str) -> SavepointRequest:
    """The request to the agent."""
    return SavepointRequest(id=request_id(RequestKind.SAVEPOINT, name), name=name, nonce=name)


def deletion(name: str, instant: str) -> UnsavepointRequest:
    """The request to delete it. ``instant``: the savepoint's own, as a person has named it."""
    return UnsavepointRequest(id=request_id(RequestKind.UNSAVEPOINT, name), name=name, instant=instant)


def plan_deletions(view: View, *, ready: bool) -> PartialPlan:
    """Request the deletion of savepoints, and withdraw what is done or not wanted any more.

    ``ready``: the table is this HudiTable's, and no restore is asked for.
    """
    wanted = {
        request_id(RequestKind.UNSAVEPOINT, each.name): deletion(each.name, each.delete_instant).to_json()
        for each in view.table.savepoint_list
        if each.delete_instant and _record(view, each.name).result is not Result.DELETED
    }
    stored = {id: one for id, one in view.etcd.requests.items() if named(RequestKind.UNSAVEPOINT, id)}
    actions: list[Action] = [PutRequest(view.table.table_id, id, None) for id in stored if id not in wanted]
    if ready and not view.table.suspend:
        new = {id: value for id, value in wanted.items() if id not in stored or stored[id].value != value}
        actions.extend(PutRequest(view.table.table_id, id, value) for id, value in new.items())
    return PartialPlan(tuple(actions))


def plan_requests(view: View, *, drained: bool) -> PartialPlan:
    """Request unfinished savepoints from the agent.

    ``drained``: the gate is closed and no attempt that started while it was open is left.
    """
    wanted = {request_id(RequestKind.SAVEPOINT, name): name for name in unfinished(view)}
    actions: list[Action] = [
        PutRequest(view.table.table_id, id, None)
        for id in view.etcd.requests
        if named(RequestKind.SAVEPOINT, id) and id not in wanted
    ]
    if drained:
        new = {id: name for id, name in wanted.items() if id not in view.etcd.requests}
        actions.extend(PutRequest(view.table.table_id, id, request(name).to_json()) for id, name in new.items())
    summary = (
        (
            f"savepoint {next(iter(wanted.values()))}: "
            f"{'requested from the agent' if drained else 'waiting for running writers'}",
        )
        if wanted
        else ()
    )
    return PartialPlan(tuple(actions), summary, 2.0 if wanted else LONGEST_PAUSE_SECONDS)


def status(view: View) -> list[JsonDict]:
    """``status.savepoints``: one entry for each that the spec names."""
    return [_of(each, _record(view, each.name)).to_json() for each in view.table.savepoint_list]


def _of(savepoint: Savepoint, record: SavepointDone) -> SavepointEntry:
    # A deletion that is not wanted any more is not reported.
    told = record.message if record.result is not Result.COMPLETED or savepoint.delete_instant else ""
    return SavepointEntry(
        name=savepoint.name,
        outcome=record.result or Result.PENDING,
        instant=record.instant,
        completion_time=record.completion_time,
        boundary_completion_time=record.boundary,
        message=told[:1024],
        time=conditions.rfc3339(record.at_ms) if record.at_ms is not None else "",
    )
