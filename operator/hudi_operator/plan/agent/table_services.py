"""The operator's part of table services.

It requests runs that are scheduled, or that a person asks for, from the agent, and shows the
outcome of runs in status.

Schedules are evaluated here, because an unreadable schedule must be reported whether or not an
agent exists. The newest tick is in `request/service-<kind>`; the agent runs the service when it has
not served that tick, so ticks missed by either process run once. The tick that had passed when a
schedule was first seen is the baseline, and is not run. A ``runNonce`` needs no baseline: the
agent's record says which ones were served, and outlives the HudiTable.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from hudi_contract import words
from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_contract.records import read
from hudi_contract.reports import TimelineReport
from hudi_contract.requests import Cron, ServiceDone, ServiceRequest, named, request_id
from hudi_contract.table_keys import InstantRecord
from hudi_contract.words import RequestKind, Result
from hudi_operator.api import services
from hudi_operator.api.services import Service
from hudi_operator.model import conditions
from hudi_operator.model.conditions import Condition, condition
from hudi_operator.model.status import ServiceStatus
from hudi_operator.plan.agent import agents
from hudi_operator.plan.core.actions import Action, PutRequest
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View

JsonDict = dict[str, Any]

REASONS = {
    services.COMPACTION: "CompactionFailed",
    services.CLUSTERING: "ClusteringFailed",
    services.TTL: "TtlFailed",
    services.CLEAN: "CleanFailed",
    services.ARCHIVE: "ArchiveFailed",
}
FINISHED = frozenset({services.COMPACTION, services.CLUSTERING, services.CLEAN})
"""Services whose pending instants the agent executes until they are completed, by their action."""
INTERRUPTED = "Interrupted"
TOLERATED_INTERRUPTIONS = 1
"""An agent may be moved or killed once in the middle of a run; a run that ends its agent twice
is a failure.
"""


def plan_requests(view: View) -> PartialPlan:
    """Request the newest tick of each schedule, and each ``runNonce``.

    Requests of services that have neither are deleted. The request of a service that cannot be run
    as specified stays unchanged, and keeps no other one waiting.
    """
    if view.table.suspend:
        return PartialPlan()
    actions: list[Action] = []
    known = {request_id(RequestKind.SERVICE, s.kind): s for s in view.table.services}
    unread = {name for name, s in known.items() if services.problem((s,))}
    wanted = {n: s for n, s in known.items() if n not in unread and (s.schedule is not None or s.run_nonce)}
    requeue = LONGEST_PAUSE_SECONDS
    for name, service in wanted.items():
        value = _request(view, name, service)
        if value is not None:
            actions.append(PutRequest(view.table.table_id, name, value))
        if service.schedule is None:
            continue
        until = service.schedule.next(view.now_ms).timestamp() - view.now_ms / 1000
        requeue = min(requeue, max(0.5, until + 0.5))
    for name in view.etcd.requests:
        if named(RequestKind.SERVICE, name) and name not in wanted and name not in unread:
            actions.append(PutRequest(view.table.table_id, name, None))
    return PartialPlan(tuple(actions), (), requeue)


def _request(view: View, name: str, service: Service) -> JsonDict | None:
    """The request to put; None when the existing one is current."""
    stored = view.etcd.requests.get(name)
    asked = read(stored, ServiceRequest)
    wanted = ServiceRequest(id=name, service=words.Service(service.kind), run=service.run_nonce)
    if service.schedule is not None:
        schedule = Cron(cron=service.schedule.cron, time_zone=service.schedule.time_zone)
        wanted = wanted.but(schedule=schedule, nonce=_time(service.schedule.previous(view.now_ms)))
        if asked.schedule != schedule:
            return wanted.but(baseline=True).to_json()
        if wanted.nonce <= asked.nonce:
            wanted = wanted.but(nonce=asked.nonce, baseline=asked.baseline)
    return wanted.to_json() if stored is None or wanted != asked else None


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- status


def status(view: View, report: TimelineReport) -> dict[str, ServiceStatus]:
    """`status.services`: the last run of each enabled service, and what the next run waits for.

    `report` is the agent's timeline report.
    """
    return {s.kind: _of(view, s, report) for s in view.table.services}


def _executed(service: Service, record: ServiceDone) -> str:
    """The spec's runNonce if it was served, even before another one; else the last that was."""
    if service.run_nonce and service.run_nonce in record.runs:
        return service.run_nonce
    return record.runs[-1] if record.runs else ""


def _of(view: View, service: Service, report: TimelineReport) -> ServiceStatus:
    record, shown = _record(view, service.kind), ServiceStatus()
    if record.result is not None:
        outcome = _outcome(view, record)
        shown = ServiceStatus(
            outcome=outcome,
            message=record.message[:1024],
            last_time=conditions.rfc3339(record.at_ms),
            last_instant=record.instant,
            failures=record.failures if outcome != Result.RUNNING else 0,
            executed_nonce=_executed(service, record),
        )
    if service.schedule is not None and not services.problem((service,)):
        shown = shown.but(next_time=_time(service.schedule.next(view.now_ms)))
    if service.window is not None and not services.problem((service,)):
        opens, closes = (conditions.rfc3339(at) for at in service.window.around(view.now_ms))
        shown = shown.but(window_opens=opens, window_closes=closes)
    since = report.commits_since.get(service.kind)
    if service.after_commits is not None and since is not None:
        shown = shown.but(commits_until_next=max(0, service.after_commits - since))
    return shown


def _record(view: View, kind: str) -> ServiceDone:
    return read(view.etcd.done.get(request_id(RequestKind.SERVICE, kind)), ServiceDone)


def _outcome(view: View, record: ServiceDone) -> str:
    alive = any(i.inc == record.inc and i.registration is not None and i.record is None for i in view.incs)
    return INTERRUPTED if record.result is Result.RUNNING and not alive else str(record.result or "")


def healthy(view: View) -> Condition:
    """Condition ServicesHealthy.

    False while the last run of a service that is enabled, or has a pending plan, failed, or was
    interrupted again and again, or the agent waits for executors.
    """
    if waiting := agents.executor_waits(view):
        return condition("ServicesHealthy", False, "ExecutorPending", f"the agent waits for an executor: {waiting}")
    enabled = [service.kind for service in view.table.services]
    for kind in [*enabled, *sorted(_pending(view) - set(enabled))]:
        record = _record(view, kind)
        outcome, failures = _outcome(view, record), record.failures
        if outcome == Result.FAILED or (outcome == INTERRUPTED and failures > TOLERATED_INTERRUPTIONS):
            why = record.message or "the agent ended during the run: is its memory large enough?"
            which = kind if kind in enabled else f"{kind} (disabled, and its plan is pending)"
            return condition(
                "ServicesHealthy", False, REASONS[kind], f"{which}: {failures} failures, the last one: {why}"
            )
    if not enabled:
        return condition("ServicesHealthy", True, "Disabled", "no table service is enabled")
    return condition("ServicesHealthy", True, "Healthy")


def _pending(view: View) -> set[str]:
    """Services that have a plan which the agent executes, whether or not they are enabled."""
    known = (stored.read(InstantRecord) for stored in view.etcd.instants.values())
    return {record.action for record in known if record.pending and record.action in FINISHED}


def awaited(view: View) -> str:
    """The services that an operation of the agent alone waits for, in words.

    Empty when none is pending.

    Nothing of a savepoint, a restore or a change of the metadata table says so by itself: a service
    that fails for good holds up all writers (F434).
    """
    known = sorted((time, stored.read(InstantRecord)) for time, stored in view.etcd.instants.items())
    return "; ".join(
        f"the {record.action} {time} is pending{_failures(view, record.action)}"
        for time, record in known
        if record.pending and record.action in FINISHED
    )


def _failures(view: View, kind: str) -> str:
    record = _record(view, kind)
    outcome = _outcome(view, record)
    if not record.failures or outcome not in (Result.FAILED, INTERRUPTED):
        return ""
    why = record.message or "the agent ended during the run: is its memory large enough?"
    return f" ({record.failures} failures, the last one: {why})"
