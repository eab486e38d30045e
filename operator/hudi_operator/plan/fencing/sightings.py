"""The node on which each incarnation was seen alive.

A later boot id of that node is compared with it (F43).

A boot id that a JVM reads by itself proves little: in a sandbox with its own kernel it is never the
node's boot id, and another machine may register under the node's name. So a reboot counts only
after the operator has seen, in one look, the incarnation alive on a node whose boot id was the
registered one; it counts only for that node object and that machine. The sighting is in etcd, in a
key that only the operator writes, and survives a restart of the operator. Without a sighting no
reboot proves anything.
"""

from __future__ import annotations

from hudi_contract import records
from hudi_contract.table_keys import Sighting
from hudi_operator.model.proof import Seen
from hudi_operator.plan.core.actions import Action, PutSeen
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import Incarnation, View


def plan_sightings(view: View) -> PartialPlan:
    """Record sightings of live incarnations.

    Sightings of incarnations that are settled or have left are deleted.
    """
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
    """The sighting of a registered incarnation with a running pod; None when it is not certain."""
    if inc.registration is None or inc.alive is None or inc.fenced or inc.record is not None or not inc.boot_id:
        return None
    pod, node = view.pods_by_uid.get(inc.pod_uid), view.nodes.get(inc.node)
    if pod is None or node is None or pod.phase != "Running" or pod.node != node.name or node.boot_id != inc.boot_id:
        return None
    return Sighting(
        inc=inc.inc, pod_uid=pod.uid, node=node.name, node_uid=node.uid, machine=node.machine, boot_id=node.boot_id
    )


def seen(view: View, inc: Incarnation) -> Seen | None:
    """The boot in which an incarnation was seen alive.

    None when there is no sighting, or it is of another pod.
    """
    noted = records.read(view.etcd.seen.get(inc.inc), Sighting)
    whole = noted.pod_uid and noted.node and noted.node_uid and noted.boot_id
    if not whole or noted.pod_uid != inc.pod_uid or noted.node != inc.node:
        return None
    return Seen(noted.node, noted.node_uid, noted.machine, noted.boot_id)
