"""The operation RemoveDuplicates.

Keep one record for each key in a partition, in an ordinary commit (F68).

The partitions with duplicate keys are written again, with one row for each key (Hudi's
`insert_overwrite`). This removes duplicates within one file group and across several, also in the
log files of a MergeOnRead table; a delete of one of the records could not. The rows come from an
`Update`: they are read at each try, and the commit is compared with all commits that completed
since. A concurrent write to one of those partitions is a conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window, functions

from hudi_contract.words import MergeMode
from hudi_runtime.job.job import TableSpec
from hudi_runtime.process.errors import UserCodeError
from hudi_runtime.read.update import plain
from hudi_runtime.table import partitions
from hudi_runtime.table.hudi import SNAPSHOT

INDEXES = ("", "SIMPLE", "BLOOM")
"""The other indexes derive the file group from the key, or search several partitions."""
_KEY, _PARTITION, _NUMBER = "_hoodie_record_key", "_hoodie_partition_path", "_hudiop_number"


def require(spark: SparkSession, table: TableSpec) -> None:
    """Raises UserCodeError for a table without a rule to choose among its records."""
    jvm: Any = spark.sparkContext._jvm
    index = str(
        jvm.org.apache.hudi.common.config.DFSPropertiesConfiguration.getGlobalProps().getString("hoodie.index.type", "")
    )
    said = fault(table, index)
    if said:
        raise UserCodeError(f"operation RemoveDuplicates: {said}")


def fault(table: TableSpec, index: str) -> str:
    """The reason why the operation is impossible with this table; empty: it is possible."""
    if not table.record_keys:
        return "the HudiTable has no recordKeyFields: there can be no duplicates"
    if index not in INDEXES:
        return f"index.type {index} of the HudiTable: must be Simple or Bloom, or unset"
    if table.merge.mode == MergeMode.CUSTOM:
        return "merge.mode Custom of the HudiTable: its class merges two records, and may keep none of them as it is"
    if table.merge.ignores_nulls:
        return "merge.partialUpdates IgnoreNulls of the HudiTable: its merge combines both records"
    return ""


def partitions_of(rows: DataFrame) -> list[str]:
    """Partitions in which a key occurs more than once."""
    if not rows.columns:
        return []
    found = rows.groupBy(_PARTITION, _KEY).count().where("count > 1").select(_PARTITION).distinct().collect()
    return sorted(str(row[0]) for row in found)


def read(spark: SparkSession, path: str) -> DataFrame:
    """The table's rows, with Hudi's own columns."""
    return spark.read.format("hudi").options(**SNAPSHOT).load(path)


def once(rows: DataFrame, table: TableSpec) -> DataFrame:
    """One row for each key of the partitions with duplicate keys.

    Raises UserCodeError when a row would move to another partition.
    """
    found = rows.where(functions.col(_PARTITION).isin(partitions_of(rows)))
    astray = found.where(~_path(table).eqNullSafe(functions.col(_PARTITION))).select(_PARTITION, _KEY).first()
    if astray is not None:
        rule = "its partition columns give another partition; RemoveDuplicates would move it"
        raise UserCodeError(f"operation RemoveDuplicates: record {astray[1]} of partition {astray[0]}: {rule}")
    number = functions.row_number().over(Window.partitionBy(_PARTITION, _KEY).orderBy(*_order(table)))
    return plain(found.withColumn(_NUMBER, number).where(functions.col(_NUMBER) == 1).drop(_NUMBER))


def _order(table: TableSpec) -> Sequence[Column]:
    """Order in which the record that stays comes first.

    Greatest ordering values (EventTime only), then the later commit, then the later row
    of a commit.
    """
    values = (
        [functions.col(name).desc_nulls_last() for name in table.ordering]
        if table.merge.mode == MergeMode.EVENT_TIME
        else []
    )
    number = functions.element_at(functions.split("_hoodie_commit_seqno", "_"), -1).cast("long")
    return [
        *values,
        functions.col("_hoodie_commit_time").desc(),
        number.desc(),
        functions.col("_hoodie_commit_seqno").desc(),
    ]


def _path(table: TableSpec) -> Column:
    """The partition path that Hudi's key generator derives from a row."""
    values = [partitions.value(name) for name in table.partitions]
    named = [
        functions.concat(functions.lit(f"{name}="), of) if table.hive_style else of
        for name, of in zip(table.partitions, values, strict=True)
    ]
    return functions.concat_ws("/", *named) if named else functions.lit("")
