"""Where each incarnation was seen alive: what a later boot id of its node is compared with (F43).

A boot id that a JVM has read by itself says little: in a sandbox with a kernel of its own it never is the node's, and another machine may
register under the node's name. So a reboot counts only after the operator has once seen, in one look, the incarnation alive on a node whose
boot id was the registered one; it counts for that node object and that machine alone. The note is in etcd, where only the operator
writes, and survives it; until there is one, no reboot proves anything.
"""

from __future__ import annotations

from hudi_contract import records
from hudi_contract.table_keys import Sighting
from hudi_operator.model.proof import Seen
from hudi_operator.plan.core.actions import Action, PutSeen
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import Incarnation, View


def plan_sightings(view: View) -> PartialPlan:
    """Note who is seen alive, and forget who is settled or has left."""
    actions: list[Action] = []
    for inc in view.incs:
        found = _sighting(view, inc)
        stored = view.etcd.seen.get(inc.inc)
        if found is not None and (stored is None or stored.read(Sighting) != found):
            actions.append(PutSeen(view.table.table_id, inc.inc, found.to_json()))
    needed = {inc.inc for inc in view.incs if not inc.settled}
    actions.extend(PutSeen(view.table.table_id, inc, None) for inc in view.etcd.seen if inc not in needed)
    return PartialPlan(tuple(actions))


def _sighting(view: View, inc: Incarnation) -> Sighting | None:
    """What is noted of an incarnation that registered and whose pod runs; None when nothing certain is seen."""
    if inc.registration is None or inc.alive is None or inc.fenced or inc.record is not None or not inc.boot_id:
        return None
    pod, node = view.pods_by_uid.get(inc.pod_uid), view.nodes.get(inc.node)
    if pod is None or node is None or pod.phase != "Running" or pod.node != node.name or node.boot_id != inc.boot_id:
        return None
    return Sighting(inc=inc.inc, pod_uid=pod.uid, node=node.name, node_uid=node.uid, machine=node.machine, boot_id=node.boot_id)


def seen(view: View, inc: Incarnation) -> Seen | None:
    """The boot that an incarnation was seen alive in; None when it was not, or when the note is of another pod."""
    noted = records.read(view.etcd.seen.get(inc.inc), Sighting)
    whole = noted.pod_uid and noted.node and noted.node_uid and noted.boot_id
    if not whole or noted.pod_uid != inc.pod_uid or noted.node != inc.node:
        return None
    return Seen(noted.node, noted.node_uid, noted.machine, noted.boot_id)
