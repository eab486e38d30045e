"""Whether duplicate keys are allowed in the table.

Then the table does not guarantee unique keys (docs/use/indexes.md).
"""

from __future__ import annotations

from hudi_contract.words import Duplicates, InsertConflicts
from hudi_operator.model.conditions import Condition, condition
from hudi_operator.plan.core.view import View

CONDITION = "DuplicatesAllowed"
_LISTED = 5
_INSERTS = ("Insert", "BulkInsert", "InsertOverwrite")


def allowed(view: View) -> Condition:
    """Condition DuplicatesAllowed.

    True while a HudiWriter has `duplicates: Allow`, or the table does not compare inserted keys.
    """
    names = sorted(
        w.name
        for w in view.writers
        if w.spec is not None
        and w.spec.duplicates == Duplicates.ALLOW
        and (w.spec.application is not None or w.spec.operation in _INSERTS)
    )
    if names:
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        return condition(
            CONDITION,
            True,
            "AllowedByWriter",
            f"duplicates is Allow in HudiWriter {', '.join(names[:_LISTED])}{more}: a key may exist twice",
        )
    if view.table.insert_conflicts == InsertConflicts.IGNORE:
        return condition(
            CONDITION,
            True,
            "InsertConflictsIgnored",
            "concurrency.insertConflicts is Ignore: a key that two writers insert at the same time exists twice",
        )
    return condition(CONDITION, False, "NobodyAllows")
