"""Recognition of the operator's own objects: names of pods, files and keys can be computed."""

from __future__ import annotations

from typing import Any

from hudi_operator.model.ports import Refused
from hudi_operator.plan.core import actions as act

JsonDict = dict[str, Any]


def is_own(found: JsonDict, manifest: JsonDict) -> bool:
    """Whether an object is one that the operator has made of this manifest, as far as it says."""
    have, wanted = found["metadata"], manifest["metadata"]
    labels, finalizers = have.get("labels") or {}, have.get("finalizers") or ()
    owners = {owner["uid"] for owner in have.get("ownerReferences") or ()}
    return (
        all(labels.get(name) == value for name, value in (wanted.get("labels") or {}).items())
        and set(wanted.get("finalizers") or ()) <= set(finalizers)
        and {owner["uid"] for owner in wanted.get("ownerReferences") or ()} <= owners
    )


def foreign(kind: str, namespace: str, name: str) -> str:
    """Message about an object under a name of the operator's that somebody else has created."""
    return (
        f"{kind} {namespace}/{name} exists, but was not created by the operator: nothing is started under this name "
        "until it is deleted. The API server's audit log shows who created it"
    )


def in_own_namespace(namespace: str, action: act.DeletePod | act.DropEvidence) -> None:
    """Require that a pod of a table is in the table's namespace, even if etcd names another one.

    Raises Refused.
    """
    if action.namespace != namespace:
        text = f"Pod {action.namespace}/{action.name} is none of the namespace {namespace}"
        raise Refused(text, reason="OtherNamespace")
