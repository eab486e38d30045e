"""Merging of two versions of a record, as Hudi table properties (docs/use/merging.md).

All writers, readers and compactions of the table follow it, also those outside this operator. A
user's own class is checked before anything is begun: Hudi 1.2.0 looks for it only after it has
begun the instant of a write, and would leave that instant pending.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError

from hudi_contract import job as contract
from hudi_contract.words import MergeMode, PartialUpdates, TableType
from hudi_runtime.process.errors import UserCodeError, describe_causes, java_causes

HUDI_MODES: Mapping[str, str] = {
    MergeMode.EVENT_TIME: "EVENT_TIME_ORDERING",
    MergeMode.COMMIT_TIME: "COMMIT_TIME_ORDERING",
    MergeMode.CUSTOM: "CUSTOM",
}
MODE, PARTIAL, STRATEGY = (
    "hoodie.record.merge.mode",
    "hoodie.table.partial.update.mode",
    "hoodie.record.merge.strategy.id",
)
CLASSES = "hoodie.write.record.merge.custom.implementation.classes"
OF_PAYLOADS = "00000000-0000-0000-0000-000000000000"
"""The strategy of tables that are merged by a payload class: readers find all that they need for it
in the table's properties.
"""
MERGER = "org.apache.hudi.common.model.HoodieRecordMerger"
RECORDS = "SPARK"
"""The record type that a class must merge: Spark's readers and writers pass records
of this type.
"""
KEEPS_OLD_FOR_NULL = "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
"""Hudi 1.2.0 has no other way to set the partial update mode of a new table: it stores this class
as IGNORE_DEFAULTS.
"""
NO_DELETES = (
    "no records can be deleted from this table: it is of type MergeOnRead with merge.partialUpdates IgnoreNulls, and "
    "a record that is written again after"
    " its deletion would get its old values back until a compaction; delete from a CopyOnWrite table, or mark "
    "deletions in a column of your own"
)


@dataclass(frozen=True)
class Merge:
    """`mode` is `EventTime`, `CommitTime` or `Custom`."""

    mode: str = MergeMode.COMMIT_TIME
    ignores_nulls: bool = False
    """Partial updates: null in a batch means that the column keeps its value."""
    strategy_id: str = ""
    """With `Custom`: the strategy id of the merger's class."""
    class_name: str = ""
    """With `Custom`: the merger's class."""

    @classmethod
    def of(cls, told: contract.Merge | None, ordering: Sequence[str]) -> Merge:
        """From `merge` of a job or of an assignment; an older operator does not send it."""
        said = told or contract.Merge()
        return cls(
            said.mode or (MergeMode.EVENT_TIME if ordering else MergeMode.COMMIT_TIME),
            said.partial_updates == PartialUpdates.IGNORE_NULLS,
            strategy_id=said.strategy_id or "",
            class_name=said.class_name or "",
        )

    @property
    def partial_mode(self) -> str:
        """Hudi's partial update mode; empty for none."""
        return "IGNORE_DEFAULTS" if self.ignores_nulls else ""


LATER_COMMIT = Merge()
"""The default of a table without ordering columns."""


def configured(jvm: Any, builder: Any, merge: Merge) -> Any:
    """A TableBuilder that creates a table with this merge."""
    if merge.ignores_nulls:
        return builder.setPayloadClassName(KEEPS_OLD_FOR_NULL)
    if merge.mode == MergeMode.CUSTOM:
        builder = builder.setRecordMergeStrategyId(merge.strategy_id)
    return builder.setRecordMergeMode(jvm.org.apache.hudi.common.config.RecordMergeMode.valueOf(HUDI_MODES[merge.mode]))


def problems(merge: Merge, properties: Mapping[str, str]) -> list[str]:
    """One sentence for each property of an existing table that contradicts `merge`."""
    said = []
    needed, found = HUDI_MODES[merge.mode], properties.get(MODE)
    if found is not None and found.lower() != needed.lower():
        said.append(f"{MODE}: needed {needed!r}, table {found!r}: set spec.merge.mode")
    if merge.mode == MergeMode.CUSTOM and properties.get(STRATEGY) != merge.strategy_id:
        said.append(
            f"{STRATEGY}: needed {merge.strategy_id!r}, table {properties.get(STRATEGY, '')!r}: set "
            "spec.merge.custom.strategyId"
        )
    partial = properties.get(PARTIAL, "").replace("NONE", "")
    if partial != merge.partial_mode:
        said.append(
            f"{PARTIAL}: needed {merge.partial_mode or 'none'!r}, table {partial or 'none'!r}: set "
            "spec.merge.partialUpdates"
        )
    return said


class NoMerger(UserCodeError):
    """The merger class of a table is not in this image, or does not fit the table.

    Nothing was begun.
    """


@dataclass(frozen=True)
class Found:
    """The merger class that this JVM has under a name.

    `why`: the reason when it has none (empty: there is one).
    """

    why: str = ""
    strategy_id: str = ""
    records: str = ""
    """The record type that it merges."""


def fault(merge: Merge, found: Found, *, where: str) -> str:
    """Field, value and broken rule; empty when this class can merge the table.

    `where`: the field above className and strategyId.
    """
    said = f"{where}.className = {merge.class_name!r}"
    if found.why:
        return f"{said}: {found.why}"
    if found.strategy_id != merge.strategy_id:
        return (
            f"{where}.strategyId = {merge.strategy_id!r}: class {merge.class_name} returns {found.strategy_id!r} "
            "(getMergingStrategy)"
        )
    if found.records != RECORDS:
        return f"{said}: it merges records of type {found.records}, {RECORDS} is needed (getRecordType)"
    return ""


def require(jvm: Any, merge: Merge, *, where: str = "spec.merge.custom") -> None:
    """Raise NoMerger unless this JVM has the class of a `Custom` merge.

    The class must also fit the table. Call it before an instant is begun.

    Executors run the same image.
    """
    if merge.mode != MergeMode.CUSTOM:
        return
    said = fault(merge, _find(jvm, merge.class_name), where=where)
    if said:
        raise NoMerger(said)


def _find(jvm: Any, name: str) -> Found:
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        found = jvm.java.lang.Class.forName(name, True, loader)
        if not jvm.java.lang.Class.forName(MERGER, True, loader).isAssignableFrom(found):
            return Found(f"the class does not implement {MERGER}")
        merger = jvm.org.apache.hudi.common.util.HoodieRecordUtils.loadRecordMerger(name)
        return Found(strategy_id=str(merger.getMergingStrategy()), records=str(merger.getRecordType().name()))
    except Py4JJavaError as error:
        causes = java_causes(error)
        if any(cause.type == "java.lang.ClassNotFoundException" for cause in causes):
            return Found(
                "there is no such class in this image: its jar must be in Spark's jars directory of the table's "
                "spec.image"
            )
        return Found(f"it cannot be loaded: {describe_causes(causes)}")


def read_options(jvm: Any, config: Any, path: str, *, class_name: str = "") -> dict[str, str]:
    """Options for reading a table with these properties (a HoodieTableConfig).

    The merger class, when readers must merge.

    `class_name` empty: the class of this process's own table is used. Raises NoMerger when no class
    can merge this table.
    """
    properties = config.getProps()
    by_class = str(properties.getProperty(MODE) or "").upper() == HUDI_MODES[
        MergeMode.CUSTOM
    ] and properties.getProperty(STRATEGY) not in (None, OF_PAYLOADS)
    if not by_class or str(config.getTableType().name()) != TableType.MERGE_ON_READ:
        return {}
    name = class_name or str(
        jvm.org.apache.hudi.common.config.DFSPropertiesConfiguration.getGlobalProps().getProperty(CLASSES) or ""
    )
    strategy = str(properties.getProperty(STRATEGY))
    if not name:
        said = (
            "the table is merged by a custom class, which this reader does not know: read it by tableRef, or pass "
            "the class to Reader(merger=)"
        )
        raise NoMerger(f"table {path}: {STRATEGY} = {strategy!r}: {said}")
    require(
        jvm,
        Merge(MergeMode.CUSTOM, strategy_id=strategy, class_name=name),
        where=f"spec.merge.custom (as table {path} has it)",
    )
    return {CLASSES: name}
