"""A path whose gate names a HudiTable that does not exist: a person may take it over (F618).

A HudiTable whose finalizer was removed by hand, or whose object is lost, releases nothing. The
operator does not take its path over by itself: the etcd may be shared with another cluster, where
that HudiTable lives.
"""

from __future__ import annotations

from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View
from hudi_operator.plan.gate import gate, releasing
from hudi_operator.plan.gate.trust import TAKE_OVER_ANNOTATION, gate_word


def word(view: View) -> str:
    """Value of the annotation that takes the path over as its gate is now; empty: none does.

    The operator must have seen that the HudiTable does not exist that the gate names.
    """
    return gate_word(view) if gate.owned_by_other(view) and view.observed.owner_is_gone else ""


def problem(view: View) -> str:
    """What a person can do about it, and has to know; empty when the HudiTable may exist."""
    said = word(view)
    return (
        "another HudiTable has this path, and does not exist where its gate in etcd says: either it went without "
        "releasing the path, or it is in another cluster that uses the same etcd. When you know that no other "
        "cluster has it and that no pod of it runs anywhere, annotate this HudiTable with "
        f"{TAKE_OVER_ANNOTATION}={said}"
        if said
        else ""
    )


def plan(view: View) -> PartialPlan:
    """Release the gate by a person's word; nothing without it.

    From then on nobody acquires, as behind the gate of a deleted HudiTable, and this one takes the
    gate as it takes that of such a one. Whoever is registered is fenced and settled by the same
    rules and proofs as ever, and its lock stays until then.
    """
    said, meta = word(view), (view.observed.table or {}).get("metadata") or {}
    if not said or (meta.get("annotations") or {}).get(TAKE_OVER_ANNOTATION) != said:
        return PartialPlan.of(summary="another HudiTable has this path")
    return releasing.release(view, "taking the path of a HudiTable that is gone, by a person's word")
