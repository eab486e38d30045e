"""When a table service is due, judged from the timeline and from what is on record of its last run. Pure: no I/O, `now_ms` is an argument.

A service runs when `afterCommits` commits have completed since its last run began, or when the operator has asked for a tick of its schedule
(`request/service-<kind>`; only the newest tick counts, so ticks missed during an outage run once). A run that failed or was interrupted is
repeated after a back-off that survives the agent.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_contract.backoff import exponential
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.service_kinds import Kind

FIRST_BACKOFF_MS = 10_000
MAX_BACKOFF_MS = 3_600_000
POSTPONED_MS = 30_000
"""A service that met a writer, or did not get the lock, tries again after this time at the earliest."""
RETURN = "partitions that were left out"
"""A reason to run that is looked at once more by the run itself."""
REST = 5
"""A service whose work was lost to a writer rests for so many times as long as it has worked: at most a sixth of the agent's time is lost."""


class Result(enum.Enum):
    """How the last run of a service ended."""

    RUNNING = "Running"
    COMPLETED = "Completed"
    NOTHING_TO_DO = "NothingToDo"
    POSTPONED = "Postponed"
    FAILED = "Failed"


@dataclass(frozen=True)
class Done:
    """What a run did: its instant (empty when it has none) and one sentence."""

    result: Result
    instant: str = ""
    message: str = ""
    left_out: int = 0
    """Partitions that a clustering has left out, because others are writing to them."""


@dataclass(frozen=True)
class Service:
    """One service that the table wants: `after_commits` None means only by schedule; `options` are Hudi's.

    `window`: runs begin only from the first moment (Unix milliseconds) until before the second; the operator names the next one when it is over.
    """

    kind: Kind
    after_commits: int | None = None
    scheduled: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    window: tuple[int, int] | None = None


def from_assignment(value: Mapping[str, Any]) -> dict[Kind, Service]:
    """Services of an agent's assignment (contracts, section 1); those that are absent do not run."""
    found = {}
    for kind in Kind:
        raw = (value.get("services") or {}).get(kind.value)
        if raw is not None:
            options = {str(key): str(item) for key, item in (raw.get("options") or {}).items()}
            window = raw.get("window")
            hours = (int(window["fromMs"]), int(window["untilMs"])) if window else None
            found[kind] = Service(kind, raw.get("afterCommits"), bool(raw.get("scheduled")), options, hours)
    return found


@dataclass(frozen=True)
class Record:
    """`done/service-<kind>`: the last run. `up_to` is the completion time of the last commit that it saw, `nonce` the last tick that it served.

    `Running` is written ahead with the failure counted and the time of the next try set, so that a run that kills its process does not
    follow on itself without pause.
    """

    result: str = ""
    instant: str = ""
    message: str = ""
    at_ms: int = 0
    duration_ms: int = 0
    failures: int = 0
    retry_at_ms: int = 0
    up_to: str = ""
    nonce: str = ""
    inc: str = ""
    left_out: int = 0
    """Partitions that the last clustering has left out: it runs again when fewer have to be, with no further commit nor tick."""

    @classmethod
    def from_value(cls, value: Mapping[str, Any] | None) -> Record:
        """From the stored JSON; an absent record is the record of a service that never ran."""
        data = value or {}
        return cls(
            result=str(data.get("result", "")),
            instant=str(data.get("instant", "")),
            message=str(data.get("message", "")),
            at_ms=int(data.get("atMs", 0)),
            duration_ms=int(data.get("durationMs", 0)),
            failures=int(data.get("failures", 0)),
            retry_at_ms=int(data.get("retryAtMs", 0)),
            up_to=str(data.get("upTo", "")),
            nonce=str(data.get("nonce", "")),
            inc=str(data.get("inc", "")),
            left_out=int(data.get("leftOut", 0)),
        )

    def value(self, kind: Kind) -> dict[str, Any]:
        """The JSON to store."""
        return {
            "service": kind.value,
            "result": self.result,
            "instant": self.instant,
            "message": self.message,
            "atMs": self.at_ms,
            "durationMs": self.duration_ms,
            "failures": self.failures,
            "retryAtMs": self.retry_at_ms,
            "upTo": self.up_to,
            "nonce": self.nonce,
            "inc": self.inc,
            "leftOut": self.left_out,
        }


def record_key(kind: Kind) -> str:
    """Key of a service's record below `P/tables/T/`."""
    return f"done/service-{kind.value}"


def commits_since(timeline: tl.Timeline, up_to: str, *, merge_on_read: bool) -> int:
    """Completed commits of writers in the active timeline after that completion time. On MergeOnRead action `commit` is the result of a compaction."""
    own = {"commit"} if merge_on_read else set()
    return sum(1 for i in timeline.completed if i.completion > up_to and i.action in tl.WRITE_ACTIONS - own and not i.of_a_service)


def commits_after(timeline: tl.Timeline, up_to: str, counted: Mapping[str, Any] | None, *, merge_on_read: bool) -> int:
    """The same, with those that were archived since then: `counted` is what was written down before (`done/counted`)."""
    if not counted or str(counted.get("upTo", "")) != up_to:
        return commits_since(timeline, up_to, merge_on_read=merge_on_read)
    return int(counted["commits"]) + commits_since(timeline, str(counted["to"]), merge_on_read=merge_on_read)


def backoff_ms(failures: int) -> int:
    """Milliseconds before the next try after that many failures in a row."""
    return int(exponential(failures, first=FIRST_BACKOFF_MS, longest=MAX_BACKOFF_MS))


def postponed_ms(took_ms: int) -> int:
    """Milliseconds of rest after a run of that length was lost to a writer."""
    return max(POSTPONED_MS, min(MAX_BACKOFF_MS, REST * took_ms))


def tick(request: Mapping[str, Any] | None) -> str:
    """The tick that the operator asks for; empty when there is none, or when it only marks the beginning of the schedule."""
    return "" if request is None or request.get("baseline") else str(request.get("nonce", ""))


def due(service: Service, record: Record, *, commits: int, request: Mapping[str, Any] | None, now_ms: int, left_out: int = 0) -> str:
    """Why the service has to run now, in words; empty when it has not. `left_out`: partitions that it would leave out now, as far as it is known."""
    if now_ms < record.retry_at_ms or (service.window is not None and not service.window[0] <= now_ms < service.window[1]):
        return ""
    wanted = tick(request) if service.scheduled else ""
    if wanted and wanted != record.nonce:
        return f"schedule {wanted}"
    if service.after_commits is not None and commits >= service.after_commits:
        return f"{commits} commits since the last run"
    return RETURN if record.left_out > left_out else ""
