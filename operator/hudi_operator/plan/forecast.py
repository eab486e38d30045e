"""Decisions that the planner would make about HudiWriters that are not applied yet.

`kubectl hudi plan` uses this with a user's rights: neither pods nor etcd can be read. Statuses take
their place, so the keys here are those that the operator must have found when it wrote them. The
rules are those of the planner itself (`admission`, `gate`, `stalled`), which gets such a view. No
resulting plan is ever performed.

Two things are left undecided because no status says them: whether the gate of a table without a
registered agent is open (`Fate.gate_untold`), and everything that depends on settings of an
administrator. These settings have values here that refuse nothing which an administrator may allow,
except options that the chart does not list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hudi_contract import naming
from hudi_contract.records import Stored
from hudi_contract.requests import MetadataDone, RestoreDone, SavepointDone, request_id
from hudi_contract.settle import Phase, SettleRecord
from hudi_contract.shape import Record
from hudi_contract.table_keys import Lock
from hudi_contract.words import GateState, RequestKind, Result, Role, WriterState
from hudi_operator.api.defaults import Defaults
from hudi_operator.api.metadata_table import MetadataTable
from hudi_operator.api.options import writer_problem
from hudi_operator.api.spec import SpecError, TableSpec
from hudi_operator.api.tolerant import read_table
from hudi_operator.model import conditions
from hudi_operator.model.config import CredentialsBrokerConfig, OperatorConfig
from hudi_operator.model.facts import EtcdFacts, Nodes, Observed
from hudi_operator.model.objects import Objects, ReadWriter, table_name_of
from hudi_operator.model.status import (
    LockStatus,
    MetadataTableStatus,
    RestoreStatus,
    attempt_entries,
    savepoint_entries,
    settling_entries,
)
from hudi_operator.plan.core.launch import INVALID_DEFAULTS, source_problem
from hudi_operator.plan.core.view import View, build_view
from hudi_operator.plan.gate import gate
from hudi_operator.plan.gate.stalled import RETRIED, Stall, static_stall, table_stall, unusable
from hudi_operator.plan.requests import restores
from hudi_operator.plan.writers import admission, runs, schedules
from hudi_operator.plan.writers.admission import Decision, Kind
from hudi_operator.plan.writers.runs import Progress

JsonDict = dict[str, Any]

GATE_UNTOLD = RETRIED | {"AgentNotReady"}
"""Reasons of Ready=False that a table may have with an open gate, behind which writers start."""
SCHEMES = ("s3a", "hdfs", "gs", "abfs", "abfss")
"""Every scheme that `config.allowedSchemes` may list."""
FIELD_OF = {
    "mode": "fencing.mode",
    "hudi_version": "hudiVersion",
    "concurrency": "concurrency.mode",
    "insert_conflicts": "concurrency.insertConflicts",
}
"""Fields of a HudiTable behind parameters of its gate; those of `lock` have their own names."""
_NO_DEFAULTS = Defaults()
_CLUSTER = "-"
_UNKNOWN_STORE = "the store of the operator's broker"
_UNKNOWN_MIRROR = "the operator's Maven repository"


@dataclass(frozen=True)
class Space:
    """Objects of one namespace, by name.

    ``before``: HudiTables as they are. ``tables`` and ``writers``: all, with the specs that they
    would have, and the statuses that they have. ``asked``: names of the HudiWriters that are about
    to be applied. ``defaults``: those of the namespace for HudiWriters, as they would be.
    """

    before: Mapping[str, JsonDict]
    tables: Mapping[str, JsonDict]
    writers: Mapping[str, JsonDict]
    asked: frozenset[str]
    defaults: Defaults = _NO_DEFAULTS


@dataclass(frozen=True)
class Fate:
    """The forecast for one HudiWriter."""

    decision: Decision
    stalls: Decision | None = None
    """The decision that will stall it when its next attempt is due.

    None: no reason is known now.
    """
    table_stalls: Stall | None = None
    """Why its HudiTable would be stuck; None: it would not."""
    gate_untold: bool = False
    """START: whether the gate is open is not known."""
    table_repaired: bool = False
    """The reason for which its HudiTable is stalled is corrected."""
    from_defaults: tuple[str, ...] = ()
    """Fields that its next attempt has from the defaults of the namespace."""
    defaults_problem: str = ""
    """Why no attempt starts with them; empty: one does."""


def of_writers(space: Space, table: str, *, now_ms: int) -> dict[str, Fate]:
    """The fate of the writers of one HudiTable that are about to be applied, by name."""
    mine = {name: obj for name, obj in space.writers.items() if table_name_of(obj) == table}
    if table not in space.tables:
        return {name: _without_table(space, obj, table) for name, obj in mine.items() if name in space.asked}
    resting = {name for name, obj in mine.items() if _awaits_its_schedule(obj)}
    counted = [_as_asked(obj, suspend=name in resting) for name, obj in mine.items() if _counts(obj, name, space)]
    try:
        view = _view(space, table, counted, now_ms)
    except SpecError as error:
        return {name: _unidentified(space, obj, table, str(error)) for name, obj in mine.items() if name in space.asked}
    progress = {each.name: Progress(tuple(attempt.entry for attempt in each.attempts)) for each in view.writers}
    decisions = admission.decide(view, progress)
    stall = table_stall(view)
    untold = _gate_untold(space.before.get(table), view.table)
    return {
        each.name: Fate(
            decisions[each.name],
            _schedule_problem(mine[each.name]) or admission.stalls_next(view, each, progress[each.name]),
            stall,
            untold and decisions[each.name].kind is Kind.START,
            untold and is_repaired(space.before[table], view.table),
            each.spec.from_defaults if each.spec is not None else (),
            each.spec.defaults_problem if each.spec is not None else "",
        )
        for each in view.writers
        if each.name in space.asked
    }


def of_table(space: Space, table: str, *, now_ms: int) -> str:
    """Why a HudiTable would be stuck, as it is written (field, value, rule); empty: it would not.

    Other HudiTables are not considered.
    """
    try:
        found = unusable(_view(space, table, (), now_ms))
    except SpecError as error:
        return str(error)
    return found.message if found is not None else ""


def changed_alone(before: JsonDict, after: JsonDict) -> list[str]:
    """Fields of a HudiTable whose change waits until no writer runs."""
    (was, _), (will, _) = read_table(before), read_table(after)
    if was is None or will is None:
        return []
    old, new = gate.parameters(was), gate.parameters(will)
    found = [at for name, at in FIELD_OF.items() if getattr(old, name) != getattr(new, name)]
    for name, seconds in will.durations.items():
        if was.durations[name] != seconds:
            found.append(f"fencing.{name}" if name == "drainSeconds" else f"lock.{name}")
    metadata = [(one.metadata_table or MetadataTable()).nonce for one in (was, will)]
    return [*found, *(["metadataTable"] if metadata[0] != metadata[1] else [])]


# ---- writers


def _counts(obj: JsonDict, name: str, space: Space) -> bool:
    """Whether it takes part.

    For others the operator's status is known: one that is stalled takes no place, whatever the
    reason. But one that is stalled for the defaults of the namespace may start with those of
    ``space``.
    """
    status = obj.get("status") or {}
    said = conditions.find(status, "Stalled")
    stalled = said.get("status") == "True" and said.get("reason") != INVALID_DEFAULTS
    stalled = stalled and all(entry.class_ for entry in attempt_entries(status))
    return name in space.asked or not stalled


def _as_asked(obj: JsonDict, *, suspend: bool) -> JsonDict:
    """A HudiWriter without its schedule: no tick is known here.

    ``suspend``: its schedule starts its next run, so it is not due.
    """
    spec = {name: value for name, value in (obj.get("spec") or {}).items() if name != "schedule"}
    return {**obj, "spec": {**spec, "suspend": True} if suspend else spec}


def _awaits_its_schedule(obj: JsonDict) -> bool:
    """Whether nothing but its schedule starts its next attempt."""
    status, spec = obj.get("status") or {}, _read(obj).spec
    if spec is None or spec.schedule is None or runs.restart_wanted(spec, status):
        return False
    entries = attempt_entries(status)
    return not entries or bool(runs.verdict(spec, status, entries))


def _read(obj: JsonDict, defaults: Defaults = _NO_DEFAULTS) -> ReadWriter:
    return Objects(None, (obj,), given=defaults).writer_specs[0]


def _schedule_problem(obj: JsonDict) -> Decision | None:
    """Problem with the schedule, which the view does not have."""
    read = _read(obj)
    found = read.error if read.spec is None else schedules.problem(read.spec)
    return Decision(Kind.STALLED, "InvalidSpec", found) if found else None


def _without_table(space: Space, obj: JsonDict, table: str) -> Fate:
    """Forecast for a writer whose HudiTable does not exist; the HudiWriter alone is judged."""
    decision = Decision(Kind.WAIT, "TableNotFound", f"HudiTable {table} does not exist in this namespace")
    spec, status = _read(obj, space.defaults).spec, obj.get("status") or {}
    if spec is None:
        return Fate(decision, _schedule_problem(obj))
    over = runs.verdict(spec, status, attempt_entries(status))
    if over and not runs.restart_wanted(spec, status):
        decision = Decision(Kind.FINISHED, over)
    elif spec.suspend or _awaits_its_schedule(obj):
        decision = Decision(Kind.SUSPENDED, WriterState.SUSPENDED)
    if found := schedules.problem(spec) or source_problem(spec):
        return Fate(decision, Decision(Kind.STALLED, "InvalidSpec", found))
    if decision.kind is Kind.WAIT and spec.defaults_problem:
        return Fate(decision, Decision(Kind.STALLED, INVALID_DEFAULTS, spec.defaults_problem))
    refused = writer_problem(spec)
    return Fate(decision, _stall("OptionNotAllowed", refused) if refused else None)


def _stall(reason: str, message: str) -> Decision:
    return Decision(Kind.STALLED, reason, message)


def _unidentified(space: Space, obj: JsonDict, table: str, why: str) -> Fate:
    found = _without_table(space, obj, table)
    return replace(found, decision=Decision(Kind.WAIT, "TableStalled", f"HudiTable {table} is stalled: {why}"))


# ---- the view


def _view(space: Space, table: str, writers: Sequence[JsonDict], now_ms: int) -> View:
    """View that the operator would have. Raises SpecError when the HudiTable has no identity."""
    obj, before = space.tables[table], space.before.get(table)
    spec, why = read_table(obj)
    if spec is None:
        raise SpecError(why)
    status = (before or {}).get("status") or {}
    observed = Observed(
        objects=Objects(
            obj, tuple(sorted(writers, key=lambda each: str(each["metadata"]["name"]))), given=space.defaults
        ),
        pods=(),
        nodes=Nodes(),
        etcd=_keys(spec, before),
        timers=dict(_drains(status, now_ms)),
        now_ms=now_ms,
        source_tables=space.tables,
    )
    return build_view(observed, _settings(spec))


def _settings(table: TableSpec) -> OperatorConfig:
    """An administrator's settings, as far as they refuse nothing that they may allow."""
    endpoint = table.storage.options.get("fs.s3a.endpoint") or _UNKNOWN_STORE
    broker = CredentialsBrokerConfig(url="https://unknown", store_endpoint=endpoint)
    return OperatorConfig(allowed_schemes=SCHEMES, credentials_broker=broker, maven_mirror=_UNKNOWN_MIRROR)


def _gate_untold(before: JsonDict | None, will: TableSpec) -> bool:
    ready = conditions.find((before or {}).get("status") or {}, "Ready")
    untold = ready.get("reason") in GATE_UNTOLD or (before is not None and is_repaired(before, will))
    return ready.get("status") == "False" and untold


def is_repaired(before: JsonDict, will: TableSpec) -> bool:
    """True when the spec alone is what its HudiTable is stalled for, and the new one is valid.

    The operator leaves the gate of such a table unchanged: open, if it was Ready before.
    """
    was, unread = read_table(before)
    said = conditions.find(before.get("status") or {}, "Stalled")
    if was is None or unread or said.get("status") != "True":
        return False
    stall = static_stall(was, _settings(was))
    return stall is not None and stall.reason == said.get("reason") and static_stall(will, _settings(will)) is None


def pending(before: JsonDict) -> tuple[frozenset[str], str, bool]:
    """Requests of a HudiTable that are not carried out yet.

    Savepoints by name, the nonce of the restore, and whether the metadata table changes.
    """
    spec, status = before.get("spec") or {}, before.get("status") or {}
    ended = {entry.name for entry in savepoint_entries(status) if entry.outcome is not Result.PENDING}
    wanted = {str(one.get("name")) for one in spec.get("savepoints") or [] if not one.get("deleteInstant")}
    nonce = str((spec.get("restore") or {}).get("nonce") or "")
    restore = RestoreStatus.known(status.get("restore") or {})
    untouched = bool(nonce) and (restore.nonce != nonce or restore.outcome == Result.PENDING)
    changed = MetadataTableStatus.known(status.get("metadataTable") or {})
    metadata = bool(changed.wanted) and changed.outcome == Result.PENDING
    return frozenset(wanted - ended), nonce if untouched else "", metadata


def _drains(status: JsonDict, now_ms: int) -> Iterator[tuple[str, float]]:
    """Timers of drains, from their start: another operator restarts them."""
    for entry in settling_entries(status):
        since = conditions.from_rfc3339(entry.since)
        if entry.phase is Phase.Draining and since is not None:
            yield f"drain/{entry.incarnation}", max(0, now_ms - since) / 1000


def _keys(table: TableSpec, before: JsonDict | None) -> EtcdFacts:
    """Keys with which the operator would have written the status of ``before``.

    None where it has no HudiTable yet, or one that is not readable: then there is no gate.
    """
    was, unread = read_table(before) if before is not None else (None, "")
    if before is None or was is None or unread:
        return EtcdFacts(1, _CLUSTER)
    status = before.get("status") or {}
    lock = LockStatus.known(status.get("lock") or {})
    return EtcdFacts(
        1,
        _CLUSTER,
        gate=_stored(_gate(table, was, before)),
        lock=_stored(Lock(inc=lock.owner, attempt=lock.attempt)) if lock.owner else None,
        settles=dict(_settled(table.ref.namespace, status)),
        done=dict(_done(status)),
    )


def _gate(table: TableSpec, was: TableSpec, before: JsonDict) -> Record:
    """The gate in force: it has the parameters of the spec that is."""
    status = before.get("status") or {}
    is_open = conditions.is_true(status, "Ready") or _gate_untold(before, table)
    restore = RestoreStatus.known(status.get("restore") or {})
    return gate.parameters(was).but(
        state=GateState.OPEN if is_open else GateState.CLOSED,
        table=table.ref.key,
        table_uid=table.ref.uid,
        cluster_id=_CLUSTER,
        adopted=True,
        restore_baseline=restore.nonce if restore.outcome == restores.NOT_EXECUTED else "",
    )


def _settled(namespace: str, status: JsonDict) -> Iterator[tuple[str, Stored]]:
    for entry in settling_entries(status):
        if entry.incarnation:
            since = conditions.from_rfc3339(entry.since) or 0
            role = Role.AGENT if naming.is_agent_pod(entry.pod) else Role.WRITER
            record = SettleRecord.of(
                inc=entry.incarnation,
                reason=entry.reason,
                now_ms=since,
                attempt=entry.attempt,
                role=role,
                namespace=namespace,
                pod=entry.pod,
            )
            yield entry.incarnation, _stored(record.moved(entry.phase, now_ms=since))


def _done(status: JsonDict) -> Iterator[tuple[str, Stored]]:
    """The agent's records of requests that were carried out."""
    for entry in savepoint_entries(status):
        done = SavepointDone(name=entry.name, result=entry.outcome)
        yield request_id(RequestKind.SAVEPOINT, entry.name), _stored(done)
    restore = RestoreStatus.known(status.get("restore") or {})
    if restore.nonce and restore.outcome in list(Result):
        back = RestoreDone(nonce=restore.nonce, savepoint=restore.savepoint, result=Result(restore.outcome))
        yield request_id(RequestKind.RESTORE, restore.nonce), _stored(back)
    changed = MetadataTableStatus.known(status.get("metadataTable") or {})
    if changed.outcome == Result.COMPLETED:
        yield request_id(RequestKind.METADATA), _stored(MetadataDone(nonce=changed.wanted, result=Result.COMPLETED))


def _stored(record: Record) -> Stored:
    return Stored(record.to_json(), 1, 1)
