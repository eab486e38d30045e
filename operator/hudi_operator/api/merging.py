"""``spec.merge``: which of two versions of a record is kept (docs/use/merging.md).

It also says whether a batch may have only some columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hudi_contract import job
from hudi_contract.words import Concurrency, MergeMode, MissingColumns, PartialUpdates
from hudi_operator.api.fields import text

OF_HUDI = frozenset(
    (
        "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        "ce9acb64-bde0-424c-9b91-f6ebba25356d",
        "1897ef5f-18bc-4557-939c-9d6a8afd1519",
        "00000000-0000-0000-0000-000000000000",
    )
)
"""Strategy ids that Hudi reserves: event time, commit time, no particular one, a payload class."""


@dataclass(frozen=True)
class Merge:
    """Settings for merging versions of a record.

    ``mode`` is ``EventTime``, ``CommitTime`` or ``Custom``.
    """

    mode: str = text(unset="", choices=MergeMode)
    partial_updates: str = text(unset="", choices=PartialUpdates)
    """``IgnoreNulls``: a batch may have only some columns. Empty: a version replaces
    the whole row.
    """
    strategy_id: str = text(
        at="custom.strategyId",
        unset="",
        required=True,
        at_most=36,
        matches="^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    )
    """With ``Custom``: the strategy id of the class, which is stored in the table's properties."""
    class_name: str = text(
        at="custom.className",
        unset="",
        required=True,
        at_most=255,
        matches="^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_$]*)+$",
    )
    """With ``Custom``: a HoodieRecordMerger class in the image."""

    @property
    def of_job(self) -> job.Merge:
        """The merge settings as written to job.json and to an agent's assignment."""
        partial, strategy = self.partial_updates or None, self.strategy_id or None
        return job.Merge(
            mode=self.mode, partial_updates=partial, strategy_id=strategy, class_name=self.class_name or None
        )


LATER_COMMIT = Merge(MergeMode.COMMIT_TIME.value)
"""Default of a table without orderingFields."""


def implied(merge: Merge, ordering_fields: Sequence[str]) -> Merge:
    """The same settings, with an unset mode replaced by its default."""
    default = MergeMode.EVENT_TIME if ordering_fields else MergeMode.COMMIT_TIME
    return merge if merge.mode else replace(merge, mode=default.value)


def problem(merge: Merge, *, ordering_fields: Sequence[str], concurrency: str, missing_columns: str, image: str) -> str:
    """Why these settings contradict each other; empty when they do not.

    ``kubectl apply`` reports the same (crds/).
    """
    ignores_nulls = merge.partial_updates == PartialUpdates.IGNORE_NULLS
    if (merge.mode == MergeMode.CUSTOM) != bool(merge.strategy_id and merge.class_name):
        return f"spec.merge.custom: needed with mode Custom, and only there; the mode is {merge.mode}"
    if merge.strategy_id in OF_HUDI:
        return (
            f"spec.merge.custom.strategyId = {merge.strategy_id!r}: is one of Hudi's own: have your class return "
            "another UUID"
        )
    if merge.mode == MergeMode.CUSTOM and not image:
        return (
            "spec.merge.mode = 'Custom': needs spec.image: an image of yours that has the class; the operator's "
            "image does not have it"
        )
    if merge.mode == MergeMode.CUSTOM and merge.partial_updates:
        return (
            "spec.merge.partialUpdates = 'IgnoreNulls': contradicts mode Custom: there the class says what a null means"
        )
    if merge.mode == MergeMode.EVENT_TIME and not ordering_fields:
        return "spec.merge.mode = 'EventTime': needs orderingFields: their values tell which version is newer"
    if ignores_nulls and merge.mode != MergeMode.COMMIT_TIME:
        return (
            f"spec.merge.partialUpdates = 'IgnoreNulls': contradicts mode {merge.mode}: a row has one ordering value "
            "for all its columns, so an update of"
            " one column would be lost to a later one of another"
        )
    if ignores_nulls and missing_columns == MissingColumns.REFUSE:
        return (
            "spec.merge.partialUpdates = 'IgnoreNulls': contradicts schema.missingColumns Refuse: partial updates are "
            "for batches without some of the columns"
        )
    if merge.mode == MergeMode.COMMIT_TIME and not ignores_nulls and concurrency == Concurrency.NON_BLOCKING:
        return (
            "spec.merge.mode = 'CommitTime': contradicts concurrency.mode NonBlocking: if two versions of a record are "
            "written at once, the kept version would depend on which write began last and on compactions, not on the "
            "order of the commits. Set orderingFields and mode EventTime, or partialUpdates IgnoreNulls"
        )
    return ""
