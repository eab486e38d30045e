"""What deleted tables have left in namespaces: accounts, bindings, policies and files of theirs.

The operator makes them with the first table of a namespace, and does not remove them with the last
one: another release may need them, or the next table. Whoever may start pods there under such an
account has its rights.
"""

from __future__ import annotations

from hudi_kubectl.changing import How, confirm
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import TABLE, WRITER, JsonDict
from hudi_kubectl.screen import Screen

MANAGED = "app.kubernetes.io/managed-by=hudi-operator"
KINDS = (
    "rolebindings.rbac.authorization.k8s.io",
    "serviceaccounts",
    "networkpolicies.networking.k8s.io",
    "configmaps",
    "secrets",
)
"""In the order in which they are deleted: rights first."""
USERS = (TABLE, WRITER, "pods")
"""Kinds of objects that may need the others: pods with the label of the operator."""


def purge(kubectl: Kubectl, screen: Screen, how: How, *, everywhere: bool) -> int:
    """Delete them in each namespace in which nobody needs them any more."""
    left = _left(kubectl, everywhere=everywhere)
    if not left:
        screen.say("nothing is left of deleted tables" + ("" if everywhere else " in this namespace; -A: in others"))
        return 0
    named = [(kind, one["metadata"]["namespace"], one["metadata"]["name"]) for kind, one in left]
    if screen.as_json:
        screen.give({"left": [{"kind": kind, "namespace": space, "name": name} for kind, space, name in named]})
    else:
        rows = [(space, kind.partition(".")[0], name) for kind, space, name in named]
        screen.table(("NAMESPACE", "KIND", "NAME"), rows)
    if how.is_dry:
        return 0
    spaces = {space for _, space, _ in named}
    confirm(
        f"{len(named)} objects of {len(spaces)} namespaces without tables are deleted. You say that no other release "
        "of the operator needs them.",
        how,
    )
    for kind, space, name in named:
        if _needed(kubectl, space):
            raise Failed(f"namespace {space} has a table, a writer or a pod of the operator again: the rest stays")
        kubectl.within(space).delete(kind, name)
    if not screen.as_json:
        screen.say(f"{len(named)} objects deleted")
    return 0


def _left(kubectl: Kubectl, *, everywhere: bool) -> list[tuple[str, JsonDict]]:
    """Objects of the operator in namespaces without anything that may need them.

    They are listed first, so that a new user of an object is noticed.
    """
    found = [(kind, one) for kind in KINDS for one in kubectl.objects(kind, everywhere=everywhere, selector=MANAGED)]
    needed = {
        str(one["metadata"]["namespace"])
        for kind in USERS
        for one in kubectl.objects(kind, everywhere=everywhere, selector=MANAGED if kind == "pods" else "")
    }
    return [(kind, one) for kind, one in found if one["metadata"]["namespace"] not in needed]


def _needed(kubectl: Kubectl, namespace: str) -> bool:
    within = kubectl.within(namespace)
    return any(within.objects(kind, selector=MANAGED if kind == "pods" else "") for kind in USERS)
