"""Requests of the operator to an agent, and the agent's records of its work.

The requests are ``request/<id>``, the records ``done/<action>``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_contract.shape import LEFT_OUT, Count, Ms, Record, Time
from hudi_contract.words import BootstrapMode, RequestKind, Result, Service

NOTHING_YET = "0"
"""Completion time before the first commit of a table."""
DEFAULT_METADATA = "Files/"
"""Nonce of a table whose metadata table was never changed."""
KEPT_RUNS = 16
"""Values of a `runNonce` that an agent remembers as served."""

# ---- requests


@dataclass(frozen=True, kw_only=True)
class Cron(Record):
    """A schedule."""

    cron: str = ""
    time_zone: str = ""


@dataclass(frozen=True, kw_only=True)
class ServiceRequest(Record):
    """`request/service-<kind>`: the newest tick of a service's schedule, and a person's word."""

    id: str = ""
    kind: RequestKind = RequestKind.SERVICE
    service: Service | None = None
    schedule: Cron | None = None
    nonce: str = ""
    """The tick: RFC 3339, UTC."""
    baseline: bool = False
    """This tick had passed when the schedule was first seen; it is not run."""
    run: str = field(default="", metadata=LEFT_OUT)
    """The service's `runNonce`: a value that was not served yet runs it once."""

    @property
    def tick(self) -> str:
        """The tick to run; empty when there is none."""
        return "" if self.baseline else self.nonce


@dataclass(frozen=True, kw_only=True)
class SavepointRequest(Record):
    """`request/savepoint-<name>`: put while the gate is closed and no writer is left."""

    id: str
    kind: RequestKind = RequestKind.SAVEPOINT
    name: str
    nonce: str = ""


@dataclass(frozen=True, kw_only=True)
class UnsavepointRequest(Record):
    """`request/unsavepoint-<name>`: a savepoint is to be deleted.

    The answer is in `done/savepoint-<name>`.
    """

    id: str = ""
    kind: RequestKind = RequestKind.UNSAVEPOINT
    name: str = ""
    instant: Time = ""
    """Instant of the savepoint, as a person has named it: any other one is refused."""


@dataclass(frozen=True, kw_only=True)
class RestoreRequest(Record):
    """`request/restore-<nonce>`: put while the gate names that nonce in `restoring`."""

    id: str
    kind: RequestKind = RequestKind.RESTORE
    nonce: str
    savepoint: str
    savepoints: tuple[str, ...] = ()
    """Names in the spec."""


@dataclass(frozen=True, kw_only=True)
class BootstrapRequest(Record):
    """`request/bootstrap`: put after the agent reported the empty table.

    It is put only as long as the gate was never open.
    """

    id: str
    kind: RequestKind = RequestKind.BOOTSTRAP
    table_uid: str
    mode: str
    format: str
    path: str


@dataclass(frozen=True, kw_only=True)
class MetadataRequest(Record):
    """`request/metadata`: put while the gate is closed and drained.

    An agent serves it when `metadataTable` in its own assignment is that nonce.
    """

    id: str
    kind: RequestKind = RequestKind.METADATA
    nonce: str
    enabled: bool
    options: Mapping[str, str]
    """Options of Hudi."""


@dataclass(frozen=True, kw_only=True)
class HoldRequest(Record):
    """`request/hold-<name>`: there as long as the spec names the hold, also when its time is over.

    It starts over with another `since_ms`, and is proved once more with another `until_ms`.
    """

    id: str = ""
    kind: RequestKind = RequestKind.HOLD
    name: str = ""
    table_uid: str = ""
    """Uid of the HudiTable: another one with the same hold starts over."""
    instant: Time = ""
    """Requested time of the commit; empty: the last one."""
    since_ms: Ms = 0
    """Time at which the operator first saw it."""
    until_ms: Ms = 0


# ---- done


@dataclass(frozen=True, kw_only=True)
class MetadataDone(Record):
    """`done/metadata`: the last change of the metadata table. No record: Hudi's default."""

    nonce: str = ""
    result: Result | None = None
    partitions: tuple[str, ...] | None = field(default=None, metadata=LEFT_OUT)
    message: str = field(default="", metadata=LEFT_OUT)
    failures: Count = 0
    retry_at_ms: Ms = 0
    inc: str = ""
    at_ms: Ms | None = None


@dataclass(frozen=True, kw_only=True)
class BootstrapDone(Record):
    """`done/bootstrap`: `Running` is written before the work, with the failure counted.

    A record of another `tableUID` does not count.
    """

    table_uid: str = ""
    mode: str = ""
    source: str = ""
    result: Result | None = None
    code: str = field(default="", metadata=LEFT_OUT)
    """Why it failed: `SourceInvalid` or `Failed`."""
    message: str = field(default="", metadata=LEFT_OUT)
    instant: Time = field(default="", metadata=LEFT_OUT)
    completion_time: Time = field(default="", metadata=LEFT_OUT)
    records: Count | None = field(default=None, metadata=LEFT_OUT)
    files: Count | None = field(default=None, metadata=LEFT_OUT)
    bytes: Count | None = field(default=None, metadata=LEFT_OUT)
    begin_ms: Ms | None = None
    end_ms: Ms | None = field(default=None, metadata=LEFT_OUT)
    failures: Count = 0
    retry_at_ms: Ms = 0
    inc: str = ""


@dataclass(frozen=True, kw_only=True)
class BootstrapMark(Record):
    """Metadata of a bootstrap's commit.

    It identifies the commit when its agent died before it recorded the result.
    """

    table_uid: str = ""
    mode: str = BootstrapMode.FULL_RECORD
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class SavepointDone(Record):
    """`done/savepoint-<name>`."""

    name: str = ""
    result: Result | None = None
    message: str = field(default="", metadata=LEFT_OUT)
    instant: Time = field(default="", metadata=LEFT_OUT)
    completion_time: Time = field(default="", metadata=LEFT_OUT)
    boundary: Time = field(default="", metadata=LEFT_OUT)
    """Completion time of the last commit in it."""
    at_ms: Ms | None = None

    @property
    def ended(self) -> bool:
        """True when it was taken, or cannot be taken; also when it was deleted since."""
        return self.result in (Result.COMPLETED, Result.FAILED, Result.DELETED)


@dataclass(frozen=True, kw_only=True)
class HoldDone(Record):
    """`done/hold-<name>`: the commit whose files a hold keeps, and whether they are there.

    `Pending`: they are kept from now on, and it is not proved yet that all are there. `Completed`:
    it is. `Failed`: nothing is kept.
    """

    name: str = ""
    result: Result | None = None
    message: str = field(default="", metadata=LEFT_OUT)
    instant: Time = field(default="", metadata=LEFT_OUT)
    """Requested time of the commit."""
    boundary: Time = field(default="", metadata=LEFT_OUT)
    """Completion time of the last commit that its readers see."""
    since_ms: Ms = 0
    until_ms: Ms = 0
    """Both of the request that it answers."""
    kept_until_ms: Ms = 0
    """Until then its files are kept, by the clock of the process that would delete them:
    `until_ms`, and what this clock may be ahead.
    """
    granted: bool = field(default=False, metadata=LEFT_OUT)
    """It was `Completed` before its end was changed: no other commit is chosen for it."""
    at_ms: Ms | None = None


@dataclass(frozen=True, kw_only=True)
class RestoreDone(Record):
    """`done/restore-<nonce>`, kept forever.

    `Running` is written before the work; the gate stays closed until it is `Completed`, or `Failed`
    because it is found to be impossible before Hudi's plan of it exists.
    """

    nonce: str = ""
    savepoint: str = ""
    result: Result | None = None
    message: str = field(default="", metadata=LEFT_OUT)
    boundary: Time = field(default="", metadata=LEFT_OUT)
    """Completion time up to which all commits are kept."""
    newest: Time = field(default="", metadata=LEFT_OUT)
    """Largest requested time that is kept."""
    undone: Count | None = field(default=None, metadata=LEFT_OUT)
    undone_instants: tuple[Time, ...] = field(default=(), metadata=LEFT_OUT)
    """The first ones."""
    after: Time = field(default="", metadata=LEFT_OUT)
    """Newest time on the timeline when the restore began."""
    instant: Time = field(default="", metadata=LEFT_OUT)
    completion_time: Time = field(default="", metadata=LEFT_OUT)
    begin_ms: Ms | None = field(default=None, metadata=LEFT_OUT)
    end_ms: Ms | None = field(default=None, metadata=LEFT_OUT)
    failures: Count = field(default=0, metadata=LEFT_OUT)
    at_ms: Ms | None = None
    inc: str = ""

    @property
    def ended(self) -> bool:
        """True when it is completed, or was refused before anything was changed."""
        return self.result in (Result.COMPLETED, Result.FAILED)


@dataclass(frozen=True, kw_only=True)
class Asked(Record):
    """Origin of a run of a table service: served when it is `Completed` or has `NothingToDo`.

    A plan that is executed later serves them, too, if it was requested after `up_to`: it covers
    what the run saw.
    """

    nonce: str = ""
    """The tick."""
    run: str = ""
    """The `runNonce`."""
    up_to: Time = ""
    """Completion time of the last commit when the run began."""


@dataclass(frozen=True, kw_only=True)
class ServiceDone(Record):
    """`done/service-<kind>`: the last run of a table service.

    `Running` is written before the work, with the failure counted and the time of the next try set,
    so that a run that kills its process is not repeated without a pause.
    """

    service: str = ""
    result: Result | None = None
    instant: Time = ""
    message: str = ""
    at_ms: Ms = 0
    duration_ms: Count = 0
    failures: Count = 0
    retry_at_ms: Ms = 0
    up_to: Time = ""
    """Completion time of the last commit that the run saw."""
    nonce: str = ""
    """The last tick that was served."""
    runs: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    """The values of `runNonce` that were served, the last one at the end; at most `KEPT_RUNS`."""
    asked: Asked | None = field(default=None, metadata=LEFT_OUT)
    """Origin of a run that is not served yet; null: none."""
    inc: str = ""
    left_out: Count = 0
    """Partitions that the last clustering skipped. It runs again when fewer must be skipped,
    without a further commit or tick.
    """


@dataclass(frozen=True, kw_only=True)
class Counted(Record):
    """One service in `done/counted`, written before each archival.

    Some of the counted commits leave the timeline then.
    """

    up_to: Time = ""
    """Completion time up to which its last run saw commits."""
    commits: Count = 0
    """Writers' commits after that, until `to`."""
    to: Time = ""


@dataclass(frozen=True, kw_only=True)
class Created(Record):
    """`done/create`: written before a table is created.

    A table that is found later may be a creation that this HudiTable left half done.
    """

    table_uid: str = ""


@dataclass(frozen=True, kw_only=True)
class ForeignInstant(Record):
    """A completed instant of a writer without this lock."""

    instant: Time
    action: str = ""


@dataclass(frozen=True, kw_only=True)
class Foreign(Record):
    """`done/foreign`: completed instants of writers without this lock (past the clock when seen).

    They are kept while they are in the active timeline.
    """

    instants: tuple[ForeignInstant, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Abandoned(Record):
    """`done/abandoned-<inc>`.

    Instants that were rolled back because their living owner abandoned them; swept once more when
    it is settled or has left.
    """

    inc: str = ""
    instants: tuple[Time, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CallbackPosition(Record):
    """`done/callback`: how far the receiver of commits answered 2xx.

    Created at the first listing with a callback, deleted at the first one without.
    """

    completion_time: Time = NOTHING_YET
    """Every commit that completed until then is delivered."""
    instant: Time = ""
    """Requested time of the last delivered commit; empty when there is none."""
    delivered: Count = 0
    """Number of acknowledged events."""
    archived_to: Time = ""
    """Largest requested time among commits that were archived before delivery, and reported as
    such; empty when there are none.
    """
    lost: Count = 0
    """Number of those commits."""
    at_ms: Ms = 0
    """Time at which the last event was acknowledged; 0: none was."""


REQUESTS: Mapping[RequestKind, type[Record]] = {
    RequestKind.SERVICE: ServiceRequest,
    RequestKind.SAVEPOINT: SavepointRequest,
    RequestKind.RESTORE: RestoreRequest,
    RequestKind.BOOTSTRAP: BootstrapRequest,
    RequestKind.METADATA: MetadataRequest,
    RequestKind.HOLD: HoldRequest,
    RequestKind.UNSAVEPOINT: UnsavepointRequest,
}


def request_id(kind: RequestKind, name: Any = "") -> str:
    """Id of a request; the agent's record of it has the same name below ``done/``.

    ``name``: the service, savepoint or nonce of the request.
    """
    return f"{kind}-{name}" if name else str(kind)


def every(kind: RequestKind) -> str:
    """Common prefix of the ids of all requests of a kind, for kinds that have names."""
    return f"{kind}-"


def named(kind: RequestKind, id: str) -> str:
    """The service, savepoint or nonce in a request's id; empty when the id is of another kind."""
    head, _, name = id.partition("-")
    return name if head == kind else ""
