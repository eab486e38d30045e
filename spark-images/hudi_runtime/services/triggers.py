"""Decides when a table service is due, from the timeline and the record of its last run.

Pure: no I/O, `now_ms` is an argument.

A service runs when `afterCommits` commits have completed since its last run began, or when the
operator has requested a tick of its schedule (`request/service-<kind>`; only the newest tick
counts, so ticks missed during an outage run once), or when a person asks for a run (`runNonce`, in
the same request), which its window does not delay. A run that failed or was interrupted is repeated
after a back-off that survives the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_contract.assignment import ServiceOrder
from hudi_contract.backoff import exponential
from hudi_contract.keys import Kind
from hudi_contract.requests import Counted, ServiceDone, ServiceRequest, request_id
from hudi_contract.words import RequestKind, Result, Service
from hudi_runtime.table import timeline as tl

FIRST_BACKOFF_MS = 10_000
MAX_BACKOFF_MS = 3_600_000
POSTPONED_MS = 30_000
"""Minimum time until the next try of a service that lost to a writer, or did not get the lock."""
RETURN = "partitions that were left out"
"""A reason to run that the run itself checks once more."""
REST = 5
"""Pause of a service whose work was lost to a writer, as a multiple of its run time: at most a
sixth of the agent's time is lost.
"""


@dataclass(frozen=True)
class Done:
    """The result of a run: its instant (empty when it has none) and one sentence."""

    result: Result
    instant: str = ""
    message: str = ""
    left_out: int = 0
    """Number of partitions that a clustering left out because of concurrent writes."""


def orders(services: Mapping[str, ServiceOrder]) -> dict[Service, ServiceOrder]:
    """Services of an assignment that this agent knows; absent services do not run."""
    return {kind: services[kind] for kind in Service if kind in services}


def record_key(kind: Service) -> str:
    """Key of a service's record below `P/tables/T/`."""
    return Kind.DONE.of(request_id(RequestKind.SERVICE, kind))


def commits_since(timeline: tl.Timeline, up_to: str, *, merge_on_read: bool) -> int:
    """Completed commits of writers in the active timeline after that completion time.

    On MergeOnRead the action `commit` is the result of a compaction.
    """
    own = {"commit"} if merge_on_read else set()
    return sum(
        1
        for i in timeline.completed
        if i.completion > up_to and i.action in tl.WRITE_ACTIONS - own and not i.of_a_service
    )


def commits_after(timeline: tl.Timeline, up_to: str, counted: Counted | None, *, merge_on_read: bool) -> int:
    """Commits since `up_to`, archived ones included.

    `counted` is the count recorded before archival (`done/counted`).
    """
    if counted is None or counted.up_to != up_to:
        return commits_since(timeline, up_to, merge_on_read=merge_on_read)
    return counted.commits + commits_since(timeline, counted.to, merge_on_read=merge_on_read)


def backoff_ms(failures: int) -> int:
    """Milliseconds until the next try after that many consecutive failures."""
    return int(exponential(failures, first=FIRST_BACKOFF_MS, longest=MAX_BACKOFF_MS))


def postponed_ms(took_ms: int) -> int:
    """Milliseconds of pause after a run of that duration was lost to a writer."""
    return max(POSTPONED_MS, min(MAX_BACKOFF_MS, REST * took_ms))


def due(
    service: ServiceOrder, record: ServiceDone, *, commits: int, request: ServiceRequest, now_ms: int, left_out: int = 0
) -> str:
    """The reason to run the service now, as text; empty when it is not due.

    `left_out`: known number of partitions that it would leave out now.
    """
    if now_ms < record.retry_at_ms:
        return ""
    if request.run and request.run not in record.runs:
        return f"asked for by {request.run}"
    if service.window is not None and not service.window.from_ms <= now_ms < service.window.until_ms:
        return ""
    wanted = request.tick if service.scheduled else ""
    if wanted and wanted != record.nonce:
        return f"schedule {wanted}"
    if service.after_commits is not None and commits >= service.after_commits:
        return f"{commits} commits since the last run"
    return RETURN if record.left_out > left_out else ""
