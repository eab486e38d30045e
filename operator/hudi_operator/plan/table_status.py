"""Status of a HudiTable.

Conditions after kstatus, the timeline from the agent's report, incarnations being settled and what
they wait for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_contract import naming
from hudi_contract.records import read
from hudi_contract.reports import ReportedCommit, ReportedInstant
from hudi_contract.settle import Phase
from hudi_contract.shape import Record
from hudi_contract.table_keys import InstantRecord, Lock
from hudi_contract.words import AgentError, FencingMode, GateState
from hudi_operator.model import clocks, conditions, doubts
from hudi_operator.model.conditions import Condition, condition
from hudi_operator.model.facts import EtcdFitness
from hudi_operator.model.status import CommitEntry, ForeignEntry, LockStatus, PendingEntry, SettlingEntry
from hudi_operator.plan.agent import agents, table_services
from hudi_operator.plan.core import credentials, trial
from hudi_operator.plan.core.actions import UpdateStatus
from hudi_operator.plan.core.checks import Chain
from hudi_operator.plan.core.view import Incarnation, View
from hudi_operator.plan.fencing import evidence, revocation
from hudi_operator.plan.fencing.settling import awaiting_proof
from hudi_operator.plan.fencing.suspects import LOCK_SHOWN_SECONDS
from hudi_operator.plan.gate import gate
from hudi_operator.plan.gate.stalled import Stall, table_stall
from hudi_operator.plan.requests import bootstrap, callbacks, catalogs, holds, metadata_table, restores, savepoints
from hudi_operator.plan.writers import duplicates
from hudi_operator.plan.writers.admission import Decision, Kind

JsonDict = dict[str, Any]

LISTED = 20
LEFT_NAMED = 3
"""Number of pods without a settle record of which a condition says what can be done."""
COMMITS = 10
"""Number of commits in status."""
_TIMELINE = ("lastInstant", "lastCompletionTime", "lowestPendingRequestedTime", "pendingCount", "activeLength")


_OUTCOMES = ("bootstrap", "savepoints", "restore", "metadataTable")
"""Parts of status with the outcome of a request; they keep their values while the
outcome is unreadable.
"""
_READ_COST = ("baseBytes", "logBytes", "fileGroups", "fileGroupsWithLogs")


def table_status(
    view: View, decisions: Mapping[str, Decision], sentence: str, *, failed: tuple[str, ...] = ()
) -> JsonDict:
    """The status to store.

    Equal facts give an equal status; nothing in it counts seconds. ``failed`` are parts of the plan
    that have a defect.
    """
    if view.unreadable and not gate.owned_by_other(view):
        return _of_unreadable(view, failed)
    stall, generation = table_stall(view), view.table.ref.generation
    status: JsonDict = {"observedGeneration": generation, "tableId": view.table.table_id}
    mine = gate.is_mine(view) or bool(doubts.gate_unreadable(view.etcd))
    if mine:
        status["agent"] = view.agent
        status["timeline"] = _timeline(view)
        served = table_services.status(view, gate.timeline_report(view))
        if served:
            status["services"] = {kind: service.to_json() for kind, service in served.items()}
        kept = savepoints.status(view)
        if kept:
            status["savepoints"] = kept
        if view.table.holds:
            status["holds"] = holds.status(view)
        sections: dict[str, Record | None] = {
            "bootstrap": bootstrap.status(view),
            "restore": restores.status(view, adopted=gate.adopted(view)),
            "metadataTable": metadata_table.status(view),
            "commitCallback": callbacks.status(view),
            "catalog": catalogs.status(view),
        }
        status.update({name: section.to_json() for name, section in sections.items() if section is not None})
        if doubts.undecided(view.etcd):
            status.update({name: view.status[name] for name in _OUTCOMES if name in view.status})
        status.update(_read_cost(view))
        status.update(_of_settling(view))
    elif trial.needed(view):
        status["agent"] = view.agent  # before it knows the trial (F585)
    counts = _writers(decisions)
    status["writers"] = counts
    status["writersSummary"] = f"{counts['running']}/{counts['queued']}/{counts['suspended']}"
    wanted = _conditions(view, stall, sentence) if mine else _foreign_conditions(view, stall, sentence)
    wanted += [_readable(view, failed), _clocks(view), _degraded(view.observed.etcd_fitness)]
    status["conditions"] = conditions.merge(
        view.status.get("conditions") or [], wanted, generation=generation, now_ms=view.now_ms
    )
    return status


def _of_settling(view: View) -> JsonDict:
    """Incarnations being settled, the owner of a long-held lock, and blocking writers.

    A blocking writer keeps other writers waiting.
    """
    settling, blocked = _settling(view), _blocked_by(view)
    return {
        **({"settling": settling[:LISTED]} if settling else {}),
        **_lock(view),
        **({"blockedBy": blocked[:512]} if blocked else {}),
    }


def _of_unreadable(view: View, failed: tuple[str, ...]) -> JsonDict:
    """Status of a table whose spec is unreadable (F69).

    Settling is shown as usual, all else keeps its last value.
    """
    obj = {"metadata": {"generation": view.table.ref.generation}, "status": view.status}
    status = without_etcd(obj, reason="InvalidSpec", message=view.unreadable, stalled=True, now_ms=view.now_ms)
    kept = {name: value for name, value in status.items() if name not in ("settling", "lock", "blockedBy")}
    mine = gate.is_mine(view) or bool(doubts.gate_unreadable(view.etcd))
    wanted = [*(_settled(view) if mine else []), _readable(view, failed), _clocks(view)]
    fresh = {each.type for each in wanted}
    others = [
        Condition(c["type"], c["status"], c["reason"], c.get("message", ""))
        for c in status["conditions"]
        if c["type"] not in fresh
    ]
    old, generation = view.status.get("conditions") or [], view.table.ref.generation
    merged = conditions.merge(old, [*others, *wanted], generation=generation, now_ms=view.now_ms)
    return {**kept, **(_of_settling(view) if mine else {}), "conditions": merged}


def _writers(decisions: Mapping[str, Decision]) -> dict[str, int]:
    kinds = [d.kind for d in decisions.values()]
    return {
        "running": kinds.count(Kind.ACTIVE) + kinds.count(Kind.START),
        "queued": kinds.count(Kind.WAIT),
        "suspended": kinds.count(Kind.SUSPENDED),
        "finished": kinds.count(Kind.FINISHED),
    }


def _read_cost(view: View) -> JsonDict:
    """Read cost of a MergeOnRead table from the agent's last report.

    It keeps its last value while there is no agent.
    """
    counted = gate.timeline_report(view).read_cost
    if counted is None:
        return {"readCost": view.status["readCost"]} if "readCost" in view.status else {}
    found: JsonDict = {name: value for name, value in counted.to_json().items() if name in _READ_COST}
    if found["baseBytes"]:
        found["logToBasePercent"] = round(100 * found["logBytes"] / found["baseBytes"])
    return {"readCost": found}


def _timeline(view: View) -> JsonDict:
    """The agent's last report; it keeps its last value while there is no agent."""
    report = gate.timeline_report(view)
    if not report.exists:
        kept: JsonDict = dict(view.status.get("timeline") or {})
        return kept
    said = report.to_json()
    found: JsonDict = {k: said[k] for k in _TIMELINE if said[k] not in (None, "")}
    last = report.last_completion_time or report.last_instant
    if conditions.hudi_time(last):
        found["lastCommitTime"] = conditions.hudi_time(last)
    pending = [_pending(view, p).to_json() for p in report.pending[:LISTED]]
    if pending:
        found["pending"] = pending
    commits = [_commit(c).to_json() for c in report.commits[-COMMITS:]]
    if commits:
        found["commits"] = commits
    foreign = [_foreign(f).to_json() for f in report.foreign[:LISTED]]
    if foreign:
        found["foreign"] = foreign
    return found


def _commit(told: ReportedCommit) -> CommitEntry:
    return CommitEntry(
        instant=told.instant[:32],
        action=told.action[:32],
        completion_time=told.completion_time[:32],
        writer=told.writer[:317],
        attempt=told.attempt[:317],
        records=max(0, told.records),
    )


def _foreign(told: ReportedInstant) -> ForeignEntry:
    return ForeignEntry(instant=told.instant, action=told.action, completion_time=told.completion_time)


def _pending(view: View, told: ReportedInstant) -> PendingEntry:
    recorded = read(view.etcd.instants.get(told.instant), InstantRecord).inc
    owner = next((i.attempt or i.inc for i in view.incs if recorded and i.inc == recorded), "")
    return PendingEntry(instant=told.instant, action=told.action, state=told.state[:16], owner=owner)


def being_settled(view: View) -> list[Incarnation]:
    """Incarnations whose settling is not finished."""
    return [i for i in view.incs if i.record is not None and not i.settled and i.phase is not Phase.Settled]


def _settling(view: View) -> list[JsonDict]:
    found = []
    for inc in being_settled(view):
        phase = inc.phase or Phase.Fenced
        since = inc.settling.times.get(phase.name)
        entry = SettlingEntry(
            incarnation=inc.inc,
            attempt=inc.attempt,
            pod=inc.pod,
            phase=phase,
            reason=inc.settling.reason,
            since=conditions.rfc3339(since) if since is not None else "",
            waiting_for=_waiting_for(view, inc)[:1024],
        )
        found.append(entry.to_json())
    return found


def _waiting_for(view: View, inc: Incarnation) -> str:
    if inc.record is not None and inc.record.unreadable:
        return "manual repair: its settle record cannot be read"
    if inc.phase in (Phase.Fenced, Phase.Terminating):
        return awaiting_proof(view, inc) or f"proof of death of pod {inc.pod or inc.inc}"
    if inc.phase is Phase.Draining:
        return f"drain of {revocation.drain_seconds(view, inc.settling):.0f} s"
    if inc.phase in (Phase.Unlocked, Phase.RollingBack):
        count, error = inc.settling.failures
        return f"the agent ({count} failures: {error})" if count else "the agent"
    return "the operator"


def _lock(view: View) -> JsonDict:
    """Shown only when held long or when its owner is being settled."""
    lock = view.etcd.lock
    if lock is None:
        return {}
    owner = next((i for i in view.incs if i.lock is not None), None)
    suspect = owner is not None and owner.record is not None
    if not suspect and not view.elapsed(f"hold/{lock.create_revision}", LOCK_SHOWN_SECONDS):
        return {}
    held = lock.read(Lock)
    since = conditions.rfc3339(held.since_ms) if held.since_ms is not None else ""
    return {"lock": LockStatus(owner=held.inc, attempt=held.attempt, since=since).to_json()}


def _blocked_by(view: View) -> str:
    for inc in view.incs:
        if inc.lock is not None and inc.record is not None:
            return f"{inc.label} ({(inc.phase or Phase.Fenced).name})"
    if view.gate.state is GateState.FROZEN:
        return "frozen gate"
    return ""


# ---- conditions


def _foreign_conditions(view: View, stall: Stall | None, sentence: str) -> list[Condition]:
    """Conditions before the gate names this table, and after it is released.

    They do not mention incarnations of another HudiTable. Of this one's pods its deletion may still
    await the end (F649).
    """
    stalled = stall is not None
    code, said = gate.report_error(view) if trial.needed(view) else ("", "")
    reason, message = (stall.reason, stall.message) if stall is not None else (code or "Creating", said or sentence)
    return [
        condition("Ready", False, reason, message),
        condition("Reconciling", not stalled, reason, message),
        condition("Stalled", stalled, reason if stalled else "NotStalled", message if stalled else ""),
        *([_awaiting(_left(view))] if view.table.ref.deleting else []),
        condition("Suspended", view.table.suspend, "Suspended" if view.table.suspend else "NotSuspended"),
    ]


@dataclass(frozen=True)
class _Readiness:
    """Facts for the decision whether writers may write to a table."""

    view: View
    stall: Stall | None


def _gate_is_unreadable(r: _Readiness) -> Condition | None:
    unreadable = r.stall is None and doubts.gate_unreadable(r.view.etcd)
    return (
        _not_ready(
            "RecordsUnreadable", "the gate cannot be read: nobody can acquire the lock, and the gate is not changed"
        )
        if unreadable
        else None
    )


def _is_deleted(r: _Readiness) -> Condition | None:
    return _not_ready("Deleting", "the table is being deleted") if r.view.table.ref.deleting else None


def _is_stalled(r: _Readiness) -> Condition | None:
    return _not_ready(r.stall.reason, r.stall.message) if r.stall is not None else None


def _is_adopted(r: _Readiness) -> Condition | None:
    adopting = gate.report_error(r.view)[0] == AgentError.PENDING_INSTANTS
    return _not_ready("Adopting", "settling the pending instants of the table's former writers") if adopting else None


def _agent_reports_an_error(r: _Readiness) -> Condition | None:
    code, message = gate.report_error(r.view)
    return _not_ready(code, message or code) if code else None


def _changes(r: _Readiness) -> Condition | None:
    if not gate.changing(r.view):
        return None
    owner = gate.awaits_lock(r.view)
    waits_for = f"{owner} to release the lock before the mode changes" if owner else ""
    return _not_ready("Changing", f"waiting for {waits_for or 'running writers before mode or durations change'}")


def _agent_is_not_ready(r: _Readiness) -> Condition | None:
    if agents.serving(r.view):
        return None
    pod = agents.current_pod(r.view)
    why = (pod.waiting or pod.unschedulable) if pod is not None else agents.last_failure(r.view)
    why = agents.refusal(r.view) or why
    return _not_ready("AgentNotReady", f"waiting for agent {r.view.agent}{': ' + why if why else ''}")


def _is_bootstrapped(r: _Readiness) -> Condition | None:
    why = gate.bootstrapping(r.view)
    return _not_ready("Bootstrapping", why) if why else None


def _is_restored(r: _Readiness) -> Condition | None:
    if not gate.closed_for_restore(r.view):
        return None
    return _waits(r.view, restores.REASON, restores.blocks(r.view, adopted=gate.adopted(r.view)))


def _savepoint_is_taken(r: _Readiness) -> Condition | None:
    name = gate.closed_for_savepoint(r.view)
    return _waits(r.view, "Savepoint", f"savepoint {name} is taken when running writers have ended") if name else None


def _metadata_table_changes(r: _Readiness) -> Condition | None:
    return _waits(r.view, "MetadataTable", metadata_table.awaited(r.view)) if gate.closed_for_metadata(r.view) else None


def _waits(view: View, reason: str, message: str) -> Condition:
    """Condition for work of the agent alone, with services that it has to finish first (F434)."""
    return _not_ready(reason, "; ".join(filter(None, (message, table_services.awaited(view)))))


def _gate_is_not_open(r: _Readiness) -> Condition | None:
    if gate.is_open(r.view):
        return None
    return _not_ready("Preparing", f"the gate is {r.view.gate.state}: the agent has not reported the table yet")


def _not_ready(reason: str, message: str) -> Condition:
    return condition("Ready", False, reason, message)


NOT_READY: Chain[_Readiness, Condition] = Chain(
    _gate_is_unreadable,
    _is_deleted,
    _is_stalled,
    _is_adopted,
    _agent_reports_an_error,
    _changes,
    _agent_is_not_ready,
    _is_bootstrapped,
    _is_restored,
    _savepoint_is_taken,
    _metadata_table_changes,
    _gate_is_not_open,
)
"""Why a table is not ready: the first reason that applies."""


def _ready(view: View, stall: Stall | None) -> Condition:
    unsafe = (
        " (fencing mode LeaseOnly: a paused writer can corrupt the table)"
        if view.mode == FencingMode.LEASE_ONLY
        else ""
    )
    return NOT_READY(_Readiness(view, stall)) or condition("Ready", True, "Ready", f"writers may write{unsafe}")


def _readable(view: View, failed: tuple[str, ...]) -> Condition:
    """F46: keys that are not trusted, with the reason, or parts of the plan with a defect.

    Everything that does not depend on them continues.
    """
    found = [f"{each.key} {each.reason}" for each in doubts.unreadable(view.etcd)]
    reason = "UnreadableRecord" if found else "PlanningFailed" if failed else "AllReadable"
    more = [f"and {len(found) - LISTED} more"] if len(found) > LISTED else []
    return condition("RecordsReadable", not (found or failed), reason, "; ".join([*found[:LISTED], *more, *failed]))


def _degraded(etcd: EtcdFitness) -> Condition:
    """Condition for a problem with etcd, on which the table depends."""
    return condition("Degraded", bool(etcd.reason), etcd.reason or "NotDegraded", etcd.message)


def _clocks(view: View) -> Condition:
    """F47: the operator's clock differs from the API server's.

    No incarnation is fenced for that; back-off and schedules use the operator's clock.
    """
    said = clocks.disagreement(
        now_ms=view.now_ms, api_now_ms=view.observed.api_now_ms, skew_seconds=view.table.lock.max_clock_skew_seconds
    )
    return condition("ClocksAgree", not said, "OperatorClock" if said else "WithinMaxClockSkew", said)


def _conditions(view: View, stall: Stall | None, sentence: str) -> list[Condition]:
    ready = _ready(view, stall)
    busy = ready.status != "True" and stall is None
    foreign = (_timeline(view)).get("foreign") or []
    names = ", ".join(f["instant"] for f in foreign[:5])
    return [
        ready,
        condition("Reconciling", busy, ready.reason if busy else "Current", ready.message if busy else ""),
        condition(
            "Stalled", stall is not None, stall.reason if stall else "NotStalled", stall.message if stall else ""
        ),
        *_settled(view),
        condition(
            "ForeignWriters",
            bool(foreign),
            "ForeignInstants" if foreign else "NoForeignInstants",
            f"instants of writers without this lock: {names}" if foreign else "",
        ),
        table_services.healthy(view),
        bootstrap.bootstrapped(view, adopted=gate.adopted(view)),
        *callbacks.delivered(view),
        *catalogs.synced(view),
        *holds.held(view),
        *_bucket(view),
        duplicates.allowed(view),
        credentials.renewed(view),
        *_broker(view),
        condition("Suspended", view.table.suspend, "Suspended" if view.table.suspend else "NotSuspended"),
    ]


def _broker(view: View) -> list[Condition]:
    """Whether attempts get storage credentials and lose them again (mode Credentials only)."""
    if FencingMode.CREDENTIALS not in (view.mode, view.table.fencing.mode):
        return []
    found = revocation.problems(view)
    told = "; ".join(found[:5])
    return [condition("BrokerAnswers", not found, "CredentialsProblem" if found else "NoProblem", told)]


def _settled(view: View) -> list[Condition]:
    """Conditions for settling that waits for an overdue proof, or for the agent."""
    proofs = [text for text in (awaiting_proof(view, i) for i in being_settled(view)) if text]
    rolling = [i for i in being_settled(view) if i.phase in (Phase.Unlocked, Phase.RollingBack, Phase.Swept)]
    worst = max((i.settling.failures for i in rolling), default=(0, ""))
    text = f"{', '.join(i.label for i in rolling[:5])}{f' ({worst[0]} failures: {worst[1]})' if worst[0] else ''}"
    return [
        _awaiting([*proofs, *_left(view)]),
        condition(
            "RollbackPending", bool(rolling), "RollingBack" if rolling else "NothingPending", text if rolling else ""
        ),
    ]


def _left(view: View) -> list[str]:
    """How to end the wait for pods that no settle record names."""
    left = evidence.unproven(view) if view.mode != FencingMode.LEASE_ONLY else []
    others = [f"{len(left) - LEFT_NAMED} more pods like these"] if len(left) > LEFT_NAMED else []
    return [*left[:LEFT_NAMED], *others]


def _awaiting(proofs: list[str]) -> Condition:
    reason = "ProofMissing" if proofs else "NotAwaited"
    return condition("AwaitingProofOfDeath", bool(proofs), reason, "; ".join(proofs))


def _bucket(view: View) -> list[Condition]:
    """Harmful settings of the bucket; none for a table outside of S3.

    The condition keeps its last value while there is no agent.
    """
    report = gate.timeline_report(view)
    if report.bucket is None:
        old = next((c for c in view.status.get("conditions") or [] if c.get("type") == "BucketSafe"), None)
        return (
            [Condition("BucketSafe", old["status"], old["reason"], old.get("message", ""))]
            if old and not report.exists
            else []
        )
    told = report.bucket
    notes = [*told.costly, *([f"not known: {', '.join(told.unknown)}"] if told.unknown else [])]
    if told.harmful:
        return [condition("BucketSafe", False, "HarmfulSettings", "; ".join([*told.harmful, *notes]))]
    return [
        Condition("BucketSafe", "Unknown", "NotTold", "; ".join(notes))
        if told.unknown
        else condition("BucketSafe", True, "NothingHarmful", "; ".join(notes))
    ]


def without_etcd(
    obj: JsonDict, *, reason: str, message: str, stalled: bool, now_ms: int, fitness: EtcdFitness | None = None
) -> JsonDict:
    """Status when etcd or the spec is unreadable.

    All known values stay, and the conditions show that they are not current.
    """
    old = obj.get("status") or {}
    generation = int(obj["metadata"].get("generation") or 0)
    known = [
        condition("Ready", False, reason, message),
        condition("Reconciling", not stalled, reason, message),
        condition("Stalled", stalled, reason if stalled else "NotStalled", message if stalled else ""),
    ]
    if fitness is not None and fitness.reason:
        known.append(_degraded(fitness))
    kept = [
        Condition(c["type"], c["status"], c["reason"], c.get("message", ""))
        for c in old.get("conditions") or []
        if c.get("type") not in {one.type for one in known}
    ]
    merged = conditions.merge(old.get("conditions") or [], [*known, *kept], generation=generation, now_ms=now_ms)
    return {**old, "observedGeneration": generation, "conditions": merged}


def update(obj: JsonDict, status: JsonDict) -> UpdateStatus | None:
    """The write of a status; None when nothing has changed."""
    return UpdateStatus.of(naming.TABLE_KIND, obj, status)
