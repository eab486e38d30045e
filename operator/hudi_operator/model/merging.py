"""``spec.merge``: which of two versions of a record stays, and whether a batch may bring some columns alone (docs/merging.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hudi_operator.model.fields import get

EVENT_TIME, COMMIT_TIME = "EventTime", "CommitTime"
IGNORE_NULLS = "IgnoreNulls"


@dataclass(frozen=True)
class Merge:
    """How versions of a record are merged. ``mode`` is ``EventTime`` or ``CommitTime``."""

    mode: str
    partial_updates: str = ""
    """``IgnoreNulls``: a batch may bring some columns alone. Empty: a version replaces the whole row."""

    @property
    def word(self) -> dict[str, str | None]:
        """As it stands in job.json and in an agent's assignment."""
        return {"mode": self.mode, "partialUpdates": self.partial_updates or None}


LATER_COMMIT = Merge(COMMIT_TIME)
"""What a table without orderingFields does that says nothing else."""


def from_spec(spec: dict[str, Any], ordering_fields: Sequence[str]) -> Merge:
    """``spec.merge``, with the mode that an unset one means. Raises SpecError."""
    raw = get(spec, "merge", dict, {}, "spec")
    implied = EVENT_TIME if ordering_fields else COMMIT_TIME
    return Merge(get(raw, "mode", str, "", "spec.merge") or implied, get(raw, "partialUpdates", str, "", "spec.merge"))


def problem(merge: Merge, *, ordering_fields: Sequence[str], concurrency: str, missing_columns: str) -> str:
    """Why these cannot go together; empty when they can. ``kubectl apply`` says the same (crds/)."""
    if merge.mode == EVENT_TIME and not ordering_fields:
        return "spec.merge.mode = 'EventTime': needs orderingFields: their values tell which version is newer"
    if merge.partial_updates == IGNORE_NULLS and merge.mode != COMMIT_TIME:
        return (
            f"spec.merge.partialUpdates = 'IgnoreNulls': contradicts mode {merge.mode}: a row has one ordering value for all its columns, so an update of"
            " one column would be lost to a later one of another"
        )
    if merge.partial_updates == IGNORE_NULLS and missing_columns == "Refuse":
        return "spec.merge.partialUpdates = 'IgnoreNulls': contradicts schema.missingColumns Refuse: a batch with some of the columns is what it is for"
    if merge.mode == COMMIT_TIME and merge.partial_updates != IGNORE_NULLS and concurrency == "NonBlocking":
        return (
            "spec.merge.mode = 'CommitTime': contradicts concurrency.mode NonBlocking: of two versions written at once the one that was begun last would stay,"
            " or, when a compaction comes between them, the other: set orderingFields and mode EventTime, or partialUpdates IgnoreNulls"
        )
    return ""
