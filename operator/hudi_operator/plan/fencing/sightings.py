"""Where each incarnation was seen alive: what a later boot id of its node is compared with (F43).

A boot id that a JVM has read by itself says little: in a sandbox with a kernel of its own it never is the node's, and another machine may
register under the node's name. So a reboot counts only after the operator has once seen, in one look, the incarnation alive on a node whose
boot id was the registered one; it counts for that node object and that machine alone. The note is in etcd, where only the operator
writes, and survives it; until there is one, no reboot proves anything.
"""

from __future__ import annotations

from typing import Any

from hudi_operator.model.proof import Seen
from hudi_operator.plan.core.actions import Action, PutSeen
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import Incarnation, View

JsonDict = dict[str, Any]


def plan_sightings(view: View) -> PartialPlan:
    """Note who is seen alive, and forget who is settled or has left."""
    actions: list[Action] = []
    for inc in view.incs:
        found = _sighting(view, inc)
        stored = view.etcd.seen.get(inc.inc)
        if found is not None and (stored is None or stored.value != found):
            actions.append(PutSeen(view.table.table_id, inc.inc, found))
    needed = {inc.inc for inc in view.incs if not inc.settled}
    actions.extend(PutSeen(view.table.table_id, inc, None) for inc in view.etcd.seen if inc not in needed)
    return PartialPlan(tuple(actions))


def _sighting(view: View, inc: Incarnation) -> JsonDict | None:
    """What is noted of an incarnation that registered and whose pod runs; None when nothing certain is seen."""
    if inc.registration is None or inc.alive is None or inc.fenced or inc.record is not None or not inc.boot_id:
        return None
    pod, node = view.pods_by_uid.get(inc.pod_uid), view.nodes.get(inc.node)
    if pod is None or node is None or pod.phase != "Running" or pod.node != node.name or node.boot_id != inc.boot_id:
        return None
    return {"inc": inc.inc, "podUID": pod.uid, "node": node.name, "nodeUID": node.uid, "machine": node.machine, "bootId": node.boot_id}


def seen(view: View, inc: Incarnation) -> Seen | None:
    """The boot that an incarnation was seen alive in; None when it was not, or when the note is of another pod."""
    stored = view.etcd.seen.get(inc.inc)
    value = stored.value if stored is not None else {}
    words = {name: value.get(name) for name in ("podUID", "node", "nodeUID", "machine", "bootId")}
    whole = all(isinstance(word, str) for word in words.values()) and all(words[name] for name in ("podUID", "node", "nodeUID", "bootId"))
    if not whole or words["podUID"] != inc.pod_uid or words["node"] != inc.node:
        return None
    return Seen(str(words["node"]), str(words["nodeUID"]), str(words["machine"]), str(words["bootId"]))
