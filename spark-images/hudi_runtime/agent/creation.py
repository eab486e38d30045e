"""The agent creates the table behind the closed gate, or compares an existing one with the spec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from hudi_runtime.job import merging
from hudi_runtime.job.job import TableSpec
from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.storage import Missing

TABLE_VERSION = 9
MARKERS = ".hoodie/hudi-operator"
_KEY_GENERATOR = "hoodie.datasource.write.keygenerator.class"


class TableMismatch(Exception):
    """The table at the path does not match the spec; nothing is written."""


class OtherLockAuthority(Exception):
    """The marker names another lock authority or another table id.

    Two locks for one table (F10).
    """


def key_generator(spec: TableSpec) -> str:
    """Key generator that Hudi infers from the number of key and partition fields."""
    if not spec.partitions:
        name = "NonpartitionedKeyGenerator"
    elif len(spec.partitions) == 1 and len(spec.record_keys) == 1:
        name = "SimpleKeyGenerator"
    else:
        name = "ComplexKeyGenerator"
    return f"org.apache.hudi.keygen.{name}"


def create(spark: SparkSession, table: AgentTable, spec: TableSpec, options: Mapping[str, str]) -> None:
    """Create the table under its lock, unless it exists by then."""
    jvm: Any = spark.sparkContext._jvm
    config = table.write_config(spec.name, options)
    with table.locked(config):
        if table.exists():
            return
        utc = jvm.org.apache.hudi.common.model.HoodieTimelineTimeZone.valueOf("UTC")
        builder = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.newTableBuilder()
        builder = (
            builder.setTableType(spec.type)
            .setTableName(spec.name)
            .setTableVersion(TABLE_VERSION)
            .setRecordKeyFields(",".join(spec.record_keys))
            .setCommitTimezone(utc)
            .setKeyGeneratorClassProp(options.get(_KEY_GENERATOR) or key_generator(spec))
            .setHiveStylePartitioningEnable(spec.hive_style)
            .setUrlEncodePartitioning(False)
            .setPopulateMetaFields(True)
        )
        if spec.partitions:
            builder = builder.setPartitionFields(",".join(spec.partitions))
        if spec.ordering:
            builder = builder.setOrderingFields(",".join(spec.ordering))
        builder = merging.configured(jvm, builder, spec.merge)
        builder.initTable(table.storage_conf(), table.path)
    with table.locked(config):
        pass  # the session leaves its marker the first time it holds the lock of a table that exists


def begin_timeline(table: AgentTable, name: str, options: Mapping[str, str]) -> None:
    """Put a beginning before the timeline of a table to which nothing was ever committed (F630).

    A table without a metadata table needs it before its first write. Hudi takes a base file from
    before the active timeline for committed, and the timeline begins with the first instant that
    has completed: not with an older one that is pending still.
    """
    if _lacks_beginning(table):
        with table.locked(table.write_config(name, options)):
            if _lacks_beginning(table):
                table.begin_timeline()


def _lacks_beginning(table: AgentTable) -> bool:
    timeline = table.timeline()
    written = any(instant.action in tl.WRITE_ACTIONS for instant in timeline.completed)
    return not (timeline.begun or written or table.has_archive())


def facts(table: AgentTable) -> dict[str, str]:
    """The table's own values for the fields of the spec."""
    config = table.meta_client().getTableConfig()

    def joined(fields: Any) -> str:
        return ",".join(fields.get()) if fields.isPresent() else ""

    return {
        "tableName": str(config.getTableName()),
        "type": str(config.getTableType().name()),
        "recordKeyFields": joined(config.getRecordKeyFields()),
        "partitionFields": joined(config.getPartitionFields()),
        "orderingFields": ",".join(str(field) for field in config.getOrderingFields()),
        "hiveStylePartitioning": str(config.getHiveStylePartitioningEnable() or "false").lower(),
        "tableVersion": str(config.getTableVersion().versionCode()),
        "timelineTimezone": str(config.getTimelineTimezone().name()),
    }


def mismatches(spec: TableSpec, found: Mapping[str, str], *, adopting: bool = False) -> list[str]:
    """One sentence for each field that differs, with the values of spec and table.

    Adoption changes Hudi's default time zone to UTC.
    """
    wanted = {
        "tableName": spec.name,
        "type": spec.type,
        "recordKeyFields": ",".join(spec.record_keys),
        "partitionFields": ",".join(spec.partitions),
        "orderingFields": ",".join(spec.ordering),
        "hiveStylePartitioning": str(spec.hive_style).lower(),
        "tableVersion": str(TABLE_VERSION),
        "timelineTimezone": "UTC",
    }
    if adopting and found["timelineTimezone"] == "LOCAL":
        del wanted["timelineTimezone"]
    return [
        f"{field}: spec {value!r}, table {found[field]!r}" for field, value in wanted.items() if found[field] != value
    ]


def check_marker(table: AgentTable, spec: TableSpec, *, authority: str, prefix: str) -> None:
    """Raise OtherLockAuthority when the table has a marker of another lock authority.

    The Java session writes the marker, under the lock.
    """
    try:
        names = table.storage.names(MARKERS)
    except Missing:
        return
    other = [name for name in names if name != spec.id]
    if other:
        raise OtherLockAuthority(f"the table is already locked under table id {other[0]}, not {spec.id}")
    found = json.loads(table.storage.read(f"{MARKERS}/{spec.id}"))
    ours = {"authority": authority, "prefix": prefix}
    for field, value in ours.items():
        if value and found.get(field) != value:
            raise OtherLockAuthority(
                f"the table belongs to another lock authority: {field} is {found.get(field)!r}, not {value!r}"
            )
