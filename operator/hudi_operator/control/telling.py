"""Statuses that only inform: no decision is made from the fields that they change.

Each report of its writers and its agent changes the status of a busy table. Such a status may be
written from a glance; it is compared with the object that was glanced at, like every status.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hudi_contract import naming
from hudi_operator.model.objects import Objects
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.writers import committed_condition

JsonDict = dict[str, Any]

_COUNTED = frozenset({"records", "conflicts", "instants", "advanced"})
"""Fields of an attempt's entry that the report of a living attempt changes."""
_TOLD_OF_TABLES = frozenset({"timeline", "readCost", "services"})
_TOLD_OF_WRITERS = frozenset({"records", "conflicts", "lastCommit", "recentConflicts"})


def only_tells(actions: Iterable[act.Action], seen: Objects) -> bool:
    """True when the actions are statuses of this kind and events, and there is one at least."""
    actions = tuple(actions)
    return bool(actions) and all(
        isinstance(action, act.EmitEvent) or (isinstance(action, act.UpdateStatus) and _tells(action, seen))
        for action in actions
    )


def _tells(action: act.UpdateStatus, seen: Objects) -> bool:
    table = action.kind == naming.TABLE_KIND
    objects = (seen.table,) if table else seen.writers
    known = next((obj for obj in objects if obj is not None and obj["metadata"]["name"] == action.name), None)
    if known is None:
        return False
    old, new = known.get("status") or {}, action.status
    changed = {name for name in {*old, *new} if old.get(name) != new.get(name)}
    if table:
        return changed <= _TOLD_OF_TABLES
    return (
        changed <= _TOLD_OF_WRITERS | {"attempts", "conditions"}
        and _without(old.get("attempts"), _COUNTED) == _without(new.get("attempts"), _COUNTED)
        and _other(old.get("conditions")) == _other(new.get("conditions"))
    )


def _without(entries: list[JsonDict] | None, names: frozenset[str]) -> list[JsonDict]:
    return [{name: value for name, value in entry.items() if name not in names} for entry in entries or ()]


def _other(conditions: list[JsonDict] | None) -> list[JsonDict]:
    """All but what became of the last write."""
    return [condition for condition in conditions or () if condition["type"] != committed_condition.KIND]
