"""Which of two versions of a record stays, as Hudi's table properties say it (docs/merging.md).

It is a property of the table: every writer, reader and compaction goes by it, also those of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

EVENT_TIME, COMMIT_TIME = "EventTime", "CommitTime"
HUDI_MODES: Mapping[str, str] = {EVENT_TIME: "EVENT_TIME_ORDERING", COMMIT_TIME: "COMMIT_TIME_ORDERING"}
MERGE_ON_READ = "MERGE_ON_READ"
MODE, PARTIAL = "hoodie.record.merge.mode", "hoodie.table.partial.update.mode"
KEEPS_OLD_FOR_NULL = "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
"""Hudi 1.2.0 has no other word for the partial update mode when a table is made: it writes this one down as IGNORE_DEFAULTS."""
NO_DELETES = (
    "no records can be deleted from this table: it is of type MergeOnRead with merge.partialUpdates IgnoreNulls, and a record that comes again after its"
    " deletion would get its old values back until a compaction; delete from a CopyOnWrite table, or keep a column of your own for it"
)


@dataclass(frozen=True)
class Merge:
    """`mode` is `EventTime` or `CommitTime`."""

    mode: str = COMMIT_TIME
    ignores_nulls: bool = False
    """Partial updates: null in a batch means that the column keeps its value."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None, ordering: Sequence[str]) -> Merge:
        """`merge` of job.json or of an assignment; an older operator does not send it."""
        said = data or {}
        return cls(str(said.get("mode") or (EVENT_TIME if ordering else COMMIT_TIME)), said.get("partialUpdates") == "IgnoreNulls")

    @property
    def partial_mode(self) -> str:
        """Hudi's partial update mode; empty for none."""
        return "IGNORE_DEFAULTS" if self.ignores_nulls else ""


LATER_COMMIT = Merge()
"""What a table without ordering columns does that says nothing else."""


def configured(jvm: Any, builder: Any, merge: Merge) -> Any:
    """A TableBuilder that makes a table with this merge."""
    if merge.ignores_nulls:
        return builder.setPayloadClassName(KEEPS_OLD_FOR_NULL)
    return builder.setRecordMergeMode(jvm.org.apache.hudi.common.config.RecordMergeMode.valueOf(HUDI_MODES[merge.mode]))


def problems(merge: Merge, properties: Mapping[str, str]) -> list[str]:
    """What the properties of an existing table say otherwise, a sentence each."""
    said = []
    needed, found = HUDI_MODES[merge.mode], properties.get(MODE)
    if found is not None and found.lower() != needed.lower():
        said.append(f"{MODE}: needed {needed!r}, table {found!r}: spec.merge.mode says it")
    partial = properties.get(PARTIAL, "").replace("NONE", "")
    if partial != merge.partial_mode:
        said.append(f"{PARTIAL}: needed {merge.partial_mode or 'none'!r}, table {partial or 'none'!r}: spec.merge.partialUpdates says it")
    return said
