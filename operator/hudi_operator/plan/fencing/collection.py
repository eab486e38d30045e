"""Old settle records and fences are collected when they cannot be needed any more.

Otherwise etcd would grow with every failed attempt.

A fence may be deleted because other facts stop its incarnation as well: its death is proven and
drained, its admission was deleted with the fence (no registration), its registration with the
record (no heartbeat), and an acquire compares a heartbeat that does not exist (I2). The record is
the operator's and the agent's memory of proofs and rollbacks; the newest ones are kept,
also for people.
"""

from __future__ import annotations

from collections.abc import Iterable

from hudi_contract import keys
from hudi_contract.naming import EVIDENCE_FINALIZER
from hudi_contract.records import Stored
from hudi_contract.settle import Phase, SettleRecord
from hudi_contract.words import ProofKind, Role
from hudi_operator.plan.core.actions import Action, Collect, StartTimer, StopTimer
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import Incarnation, View

KEPT_RECORDS = 50
"""Number of settled incarnations per table whose records are kept."""
COLLECT_SECONDS = 900.0
"""Seconds for which an operator itself must have seen that a record may be collected. By then every
request of an earlier operator has arrived or failed: a fence that arrived later would create an
incarnation whose death could no longer be proven.
"""
CERTAIN_PROOFS = frozenset({ProofKind.POD_TERMINATED, ProofKind.NEVER_SCHEDULED, ProofKind.NODE_REBOOTED})
"""Proofs that come from the cluster itself. An attestation may be wrong; its fence then keeps the
process out permanently. The same is true of a process that lives on with revoked credentials.
"""
AT_ONCE = 10
"""Number of records collected in one look."""
TIMER = "collect/"


def plan_collection(view: View) -> PartialPlan:
    """Collect records that have been collectable for long enough."""
    ready = collectable(view)
    names = {f"{TIMER}{inc.inc}" for inc in ready}
    actions: list[Action] = [
        StopTimer(name) for name in view.observed.timers if name.startswith(TIMER) and name not in names
    ]
    actions += [StartTimer(f"{TIMER}{inc.inc}") for inc in ready if view.timer(f"{TIMER}{inc.inc}") is None]
    due = [inc for inc in ready if view.elapsed(f"{TIMER}{inc.inc}", COLLECT_SECONDS)][:AT_ONCE]
    collect = [Collect(view.table.table_id, inc.inc, inc.record.mod_revision) for inc in due if inc.record is not None]
    summary = (f"forgetting {len(collect)} settled incarnation{'s' if len(collect) != 1 else ''}",) if collect else ()
    return PartialPlan((*actions, *collect), summary)


def collectable(view: View) -> list[Incarnation]:
    """Settled incarnations beyond the kept ones whose record and fence may be deleted.

    The oldest come first (in the order of etcd's revisions).
    """
    records = {
        inc: stored for inc, stored in view.etcd.settles.items() if stored.read(SettleRecord).phase is Phase.Settled
    }
    order = sorted(records, key=lambda inc: records[inc].mod_revision)
    kept = {*order[-KEPT_RECORDS:], *_newest_agents(records.values())}
    known = {inc.inc: inc for inc in view.incs}
    going_on = _going_on(view)
    return [
        known[inc]
        for inc in order
        if inc not in kept and known[inc].attempt not in going_on and _may_go(view, known[inc])
    ]


def _newest_agents(records: Iterable[Stored]) -> set[str]:
    """The newest record of each agent name.

    The next generation's number follows from it (attempts are never reused).
    """
    newest: dict[str, Stored] = {}
    for stored in records:
        record = stored.read(SettleRecord)
        agent = record.pod.rpartition("-")[0]
        if record.role == Role.AGENT and (agent not in newest or stored.mod_revision > newest[agent].mod_revision):
            newest[agent] = stored
    return {stored.read(SettleRecord).inc for stored in newest.values()}


def _may_go(view: View, inc: Incarnation) -> bool:
    if inc.record is None or not inc.settled:
        return False
    record = inc.settling
    uids = {inc.pod_uid, *record.pods, *record.proofs} - {""}
    proven = bool(inc.pod_uid) and all(
        uid in record.proofs and record.proofs[uid].kind in CERTAIN_PROOFS for uid in uids
    )
    evidence = any(pod.uid in uids and EVIDENCE_FINALIZER in pod.finalizers for pod in view.observed.pods)
    named = (
        inc.named
        or inc.alive is not None
        or bool(inc.claimed)
        or inc.attempt in view.etcd.admits
        or keys.abandoned(inc.inc) in view.etcd.done
    )
    swept = not record.without_outcome(record.instants)
    return proven and swept and not evidence and not named


def _going_on(view: View) -> set[str]:
    """Attempts whose end is not in status, because the API server refuses it, for example.

    Their incarnations may be the only sign that they had a pod, which is not made again.
    """
    return {attempt.id for writer in view.writers for attempt in writer.attempts if not attempt.ended}
