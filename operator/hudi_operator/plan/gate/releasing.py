"""The gate of a HudiTable that is deleted, gives way or is gone: it is released for another one.

Uses `gate`. A released gate is frozen and names no HudiTable; I2: nobody acquires behind it.
"""

from __future__ import annotations

from hudi_contract.words import GateState
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View
from hudi_operator.plan.gate import gate

GAVE_WAY_LIMIT = 16
"""HudiTables of one path that a gate remembers."""


def plan_release(view: View) -> PartialPlan:
    """The gate of a HudiTable that is being deleted, or gives way to another one of its path.

    Closed while writers stop, then frozen without an owner, so that the next HudiTable
    takes it over.
    """
    if not gate.is_mine(view):
        return PartialPlan()
    if view.gate.state is GateState.OPEN:
        return gate.put(
            view,
            gate.next_gate(
                view,
                GateState.CLOSED,
                base=view.gate,
                cluster_id=view.gate.cluster_id,
                admitted=tuple(gate.present_attempts(view)),
            ),
            "closing the gate of a deleted table",
        )
    if gate.writers_left(view) or view.etcd.lock is not None:
        return PartialPlan()
    return release(view, "releasing the gate", _gave_way(view))


def release(view: View, summary: str, gave_way: tuple[str, ...] = ()) -> PartialPlan:
    """Put a gate without a HudiTable. What is not trusted stays so for the next one.

    Other writers may write from now on: the next HudiTable handles their pending instants.
    """
    reason = view.gate.reason if view.gate.state is GateState.FROZEN else gate.RELEASED
    value = gate.frozen_gate(view, reason).but(
        table="",
        table_uid="",
        restore_baseline="",
        adopted=False,
        reached=False,
        gave_way=gave_way,
    )
    return gate.put(view, value, summary)


def _gave_way(view: View) -> tuple[str, ...]:
    """With this HudiTable as the last one, unless it has reached its table."""
    me = view.table.ref.key
    return () if gate.reached(view) else (*(t for t in view.gate.gave_way if t != me), me)[-GAVE_WAY_LIMIT:]


def released(view: View) -> bool:
    """True when the gate no longer names this HudiTable."""
    return not gate.is_mine(view)
