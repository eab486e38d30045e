"""Several HudiTables of one path: the gate is kept by one that reaches the table (F191).

The first one makes the gate before anybody has seen whether its credentials reach the path: until
its agent has read or created the table, the gate only gives it the right to try. So while another
HudiTable has the path, it tries for a limited time. Then its agent leaves, the gate is released as
that of a deleted table is, and another HudiTable has its turn: first those that have not tried,
then those whose last turn is longest ago. A gate that was ever open, or whose table was reached, is
never given up here, and so no writer was ever admitted behind one that is.
"""

from __future__ import annotations

from hudi_contract.words import GateState
from hudi_operator.plan.core.actions import StartTimer, StopTimer
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View
from hudi_operator.plan.gate import gate

TRY_SECONDS = 60.0
"""Seconds in which a HudiTable may try to reach its table while another one has the same path."""
WORK_SECONDS = 300.0
"""The same while its agent is registered (it is once the storage has answered) and has reported no
failure: reading a table takes time.
"""
TURN_SECONDS = 60.0
"""Seconds for which a gate that was given up waits for those whose turn it is; then anybody may
take it.
"""


def _disputed(view: View) -> bool:
    """True while others have the path, and this one has the gate but has not reached the table."""
    return (
        gate.is_mine(view)
        and view.gate.state is GateState.CLOSED
        and bool(view.observed.tables_on_path)
        and not gate.reached(view)
        and not gate.writers_left(view)
    )


def _seconds(view: View) -> float:
    at_work = any(
        i.is_agent and i.registration is not None and i.alive is not None and i.record is None for i in view.incs
    )
    return WORK_SECONDS if at_work and gate.timeline_report(view).error is None else TRY_SECONDS


def is_over(view: View) -> bool:
    """True when this HudiTable had its time to reach the table, and others wait for it."""
    return _disputed(view) and (view.timer(gate.UNREACHED_TIMER) or 0.0) >= _seconds(view)


def waits(view: View) -> bool:
    """True when this HudiTable has given the gate up, and another one of the path may take it."""
    tried, me = view.gate.gave_way, view.table.ref.key
    if view.etcd.gate is None or view.gate.table_uid or me not in tried:
        return False
    first = [t for t in view.observed.tables_on_path if t not in tried or tried.index(t) < tried.index(me)]
    return bool(first) and (view.timer(_turn(view)) or 0.0) < TURN_SECONDS


def plan_waiting(view: View) -> PartialPlan:
    """Measures for how long the HudiTables whose turn it is have not taken the gate.

    Only while this one waits.
    """
    begun = () if view.timer(_turn(view)) is not None else (StartTimer(_turn(view)),)
    return PartialPlan(begun, ("released the gate for another HudiTable of the same path",), 5.0)


def plan_time(view: View) -> PartialPlan:
    """Measures how long this HudiTable has tried while others wait."""
    age = view.timer(gate.UNREACHED_TIMER)
    if not _disputed(view):
        return PartialPlan() if age is None else PartialPlan((StopTimer(gate.UNREACHED_TIMER),))
    begun = () if age is not None else (StartTimer(gate.UNREACHED_TIMER),)
    left = max(0.5, _seconds(view) - (age or 0.0))
    return PartialPlan(begun, (f"another HudiTable has this path: {left:.0f} s are left to reach the table",), left)


def _turn(view: View) -> str:
    mod = view.etcd.gate.mod_revision if view.etcd.gate is not None else 0
    return f"{gate.TURN_TIMER}{mod}"
