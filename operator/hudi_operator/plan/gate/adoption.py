"""Adoption: taking over a table that was written before this HudiTable by writers without its lock.

Its pending instants have no owner (I7: foreign, never touched). Before the gate opens for the first
time, a person may name them in ``spec.adoption.rollbackInstants``. That attests that their writers
have ended permanently, which is the proof that settling needs. They become the instants of a
synthetic incarnation, which is fenced, drained and settled like any other. The gate opens when
nothing is left.
"""

from __future__ import annotations

from hudi_contract.reports import ReportedInstant
from hudi_contract.settle import Proof, Reason, SettledInstant, SettleRecord
from hudi_contract.words import AgentError, GateState, ProofKind, Role
from hudi_operator.plan.core.actions import Adopt
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View
from hudi_operator.plan.fencing.settling import UNKNOWN_POD
from hudi_operator.plan.gate import gate

SETTLED_HERE = frozenset({"commit", "deltacommit", "replacecommit", "rollback", "clean", "compaction"})
"""Actions that the agent can finish: a write is rolled back, the others are executed."""
FIELD = "spec.adoption.rollbackInstants"


def pending(view: View) -> list[ReportedInstant]:
    """Pending instants without a record in the table to be adopted.

    Empty when there is nothing to adopt.
    """
    if gate.report_error(view)[0] != AgentError.PENDING_INSTANTS:
        return []
    adopted = {t for i in view.incs for t in i.settling.instants}
    return [
        f
        for f in gate.timeline_report(view).foreign
        if f.instant not in view.etcd.instants and f.instant not in adopted
    ]


def problem(view: View) -> str:
    """Why pending instants block the adoption, and the change that resolves it.

    Empty when none does.
    """
    found = pending(view)
    foreign = [f for f in found if f.action not in SETTLED_HERE]
    if foreign:
        return (
            f"pending instants that only the Hudi installation that wrote them can end: {_listed(foreign)}; "
            "complete them or roll them back there, the operator does not touch them"
        )
    named = set(view.table.adoption.rollback_instants)
    unnamed = [f for f in found if f.instant not in named]
    if unnamed:
        wanted = [*view.table.adoption.rollback_instants, *(f.instant for f in unnamed)]
        field = ", ".join(f'"{t}"' for t in wanted)
        return (
            f"pending instants of writers without this lock: {_listed(unnamed)}. When these writers have ended "
            f"permanently, set {FIELD}: [{field}]:  "
            "writes are then rolled back; cleaning, compaction and rollbacks are completed. Nothing is touched until "
            "then"
        )
    beating = [f for f in found if f.beating]
    if beating:
        return (
            f"{FIELD} names instants with a live writer, according to its heartbeat file: {_listed(beating)}. "
            "Stop that writer; the check is repeated"
        )
    return ""


def _listed(found: list[ReportedInstant]) -> str:
    return ", ".join(f"{f.instant} ({f.action or '?'})" for f in found)


def plan_adoption(view: View) -> PartialPlan:
    """Assign the named instants to a fenced incarnation.

    This waits until every pending one is named and none has a recent heartbeat file.
    """
    found = pending(view)
    if not found or view.etcd.gate is None or view.gate.state is not GateState.CLOSED or gate.adopted(view):
        return PartialPlan()
    why = problem(view)
    if why:
        return PartialPlan.of(summary=f"not adopted: {why}", requeue=5)
    record = record_of(
        view.observed.fresh_uuid, {f.instant: f.action for f in found}, who=view.table.ref.key, now_ms=view.now_ms
    )
    adopt = Adopt(view.table.table_id, record.inc, record.to_json(), view.etcd.gate.mod_revision)
    return PartialPlan.of(adopt, summary=f"adopting {_listed(found)} to settle them", requeue=0.5)


def record_of(inc: str, instants: dict[str, str], *, who: str, now_ms: int) -> SettleRecord:
    """Settle record of the incarnation ``inc`` that stands for the table's former writers.

    It has their ``instants`` (and actions).
    """
    record = SettleRecord.of(inc=inc, role=Role.WRITER, reason=Reason.ADOPTED, now_ms=now_ms)
    word = Proof(kind=ProofKind.ATTESTATION, detail=f"{FIELD} of HudiTable {who}", at_ms=now_ms)
    items = {t: SettledInstant(action=action) for t, action in sorted(instants.items())}
    return record.but(proofs={UNKNOWN_POD: word}, instants=items)
