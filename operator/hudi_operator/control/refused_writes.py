"""Actions of a plan that depend on a write that the API server has refused.

Nothing else is done for that object, and nothing for an attempt that is not in status. Fences,
unlocks, settling and the status of other objects go on (F430).
"""

from __future__ import annotations

from typing import Any

from hudi_contract import naming
from hudi_operator.control.begun import attempt_of
from hudi_operator.model.facts import Observed
from hudi_operator.model.ports import Conflict
from hudi_operator.model.status import attempt_entries
from hudi_operator.plan.core import actions as act

JsonDict = dict[str, Any]
_Object = tuple[str, str, str]


class RefusedWrites:
    """The refused writes of one plan that are not for one attempt alone."""

    def __init__(self) -> None:
        """Nothing was refused yet."""
        self._objects: set[_Object] = set()
        self._agent_untold = False

    def refuse(self, action: act.Action, observed: Observed) -> set[str]:
        """Note a refusal; returns the attempts for which nothing may be made now."""
        if isinstance(action, act.HoldConfigMap):
            return set()  # its pod is stopped all the same
        self._objects.add(object_of(action) or (type(action).__name__, "", ""))
        if not isinstance(action, act.UpdateStatus):
            return set()
        seen = (found_in(observed, action.kind, action.name) or {}).get("status") or {}
        if action.kind == naming.WRITER_KIND:
            # An attempt is in status before anything is made for it.
            return _attempts_in(action.namespace, action.status) - _attempts_in(action.namespace, seen)
        # A table's agent is in status before it gets the table: otherwise it could not be found
        # again, and the next operator might choose another one (F585).
        self._agent_untold = action.status.get("agent") != seen.get("agent")
        return set()

    def withhold(self, action: act.Action, *, last: bool) -> bool:
        """True when an action depends on something that was refused.

        ``last``: there is no HudiTable, and no look is made after its last HudiWriter is gone.
        """
        if not self._objects:
            return False
        if isinstance(action, act.PatchFinalizers) and action.remove and (last or action.kind == naming.TABLE_KIND):
            return True  # the refused write would stay undone
        if self._agent_untold and _begins_agent(action):
            return True
        return object_of(action) in self._objects


def found_in(observed: Observed, kind: str, name: str) -> JsonDict | None:
    """The object as it was read; None when the plan concerns another one."""
    candidates = (observed.table,) if kind == naming.TABLE_KIND else observed.writers
    return next((obj for obj in candidates if obj is not None and obj["metadata"]["name"] == name), None)


def object_of(action: act.Action) -> _Object | None:
    """Kind, namespace and name of the object that an action writes; None when it writes none.

    The ConfigMap of a pod has its name and goes after it: the two are one here.
    """
    match action:
        case act.Apply():
            meta = action.manifest["metadata"]
            kind, namespace, name = action.manifest["kind"], meta.get("namespace", ""), meta["name"]
        case act.PatchFinalizers() | act.UpdateStatus() | act.DeleteObject():
            kind, namespace, name = action.kind, action.namespace, action.name
        case act.DeletePod() | act.DropEvidence() | act.HoldConfigMap() | act.ReleaseConfigMap():
            kind, namespace, name = "Pod", action.namespace, action.name
        case _:
            return None
    return ("Pod" if kind == "ConfigMap" else kind), namespace, name


def _begins_agent(action: act.Action) -> bool:
    """Whether an action gives the table to an agent, or makes something for an attempt of one."""
    if isinstance(action, act.PutAssignment):
        return action.value is not None
    attempt = attempt_of(action)
    return bool(attempt) and naming.is_agent_pod(naming.split_attempt(attempt)[1])


def _attempts_in(namespace: str, status: JsonDict) -> set[str]:
    """The attempts that the status of a HudiWriter names."""
    return {naming.attempt_id(namespace, entry.pod) for entry in attempt_entries(status) if entry.pod}


def held(held: bool, action: act.Action) -> None:
    """Raise Conflict for a compare that did not hold: the facts behind the plan have changed."""
    if not held:
        raise Conflict(f"{type(action).__name__}: etcd has changed since it was read")
