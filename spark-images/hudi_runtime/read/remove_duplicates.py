"""The operation RemoveDuplicates: of the records of one key in one partition one stays, in an ordinary commit (F68).

The partitions that have such keys are written anew, each of their rows once (Hudi's `insert_overwrite`): that does away with a key that stands twice in one
file group as well as in several, in the log files of a MergeOnRead table too, which no delete of one of the records does. The rows are an `Update`'s: they are
read at each try, and the commit is compared with everything that completed since. A write to one of those partitions meanwhile is a conflict.
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

INDEXES = ("", "SIMPLE", "BLOOM")
"""The others decide by the key which file group it is in, or look into several partitions."""
_KEY, _PARTITION, _NUMBER = "_hoodie_record_key", "_hoodie_partition_path", "_hudiop_number"


def require(spark: SparkSession, table: TableSpec) -> None:
    """Raises UserCodeError for a table whose records this cannot choose among."""
    jvm: Any = spark.sparkContext._jvm
    index = str(jvm.org.apache.hudi.common.config.DFSPropertiesConfiguration.getGlobalProps().getString("hoodie.index.type", ""))
    said = fault(table, index)
    if said:
        raise UserCodeError(f"operation RemoveDuplicates: {said}")


def fault(table: TableSpec, index: str) -> str:
    """Why it cannot be done with this table; empty: it can."""
    if not table.record_keys:
        return "the HudiTable has no recordKeyFields: nothing can be there twice"
    if index not in INDEXES:
        return f"index.type {index} of the HudiTable: only with Simple and Bloom, or unset"
    if table.merge.mode == MergeMode.CUSTOM:
        return "merge.mode Custom of the HudiTable: its class merges two records, and may keep none of them as it is"
    if table.merge.ignores_nulls:
        return "merge.partialUpdates IgnoreNulls of the HudiTable: what its merge keeps is made of both records"
    return ""


def partitions_of(rows: DataFrame) -> list[str]:
    """Partitions in which a key stands more than once."""
    if not rows.columns:
        return []
    found = rows.groupBy(_PARTITION, _KEY).count().where("count > 1").select(_PARTITION).distinct().collect()
    return sorted(str(row[0]) for row in found)


def read(spark: SparkSession, path: str) -> DataFrame:
    """The table's rows, with Hudi's own columns."""
    return spark.read.format("hudi").load(path)


def once(rows: DataFrame, table: TableSpec) -> DataFrame:
    """All rows of the partitions that have a doubled key, each key once. Raises UserCodeError when a row would go to another partition."""
    found = rows.where(functions.col(_PARTITION).isin(partitions_of(rows)))
    astray = found.where(~_path(table).eqNullSafe(functions.col(_PARTITION))).select(_PARTITION, _KEY).first()
    if astray is not None:
        rule = "its partition columns say another one; RemoveDuplicates would move it"
        raise UserCodeError(f"operation RemoveDuplicates: record {astray[1]} of partition {astray[0]}: {rule}")
    number = functions.row_number().over(Window.partitionBy(_PARTITION, _KEY).orderBy(*_order(table)))
    return plain(found.withColumn(_NUMBER, number).where(functions.col(_NUMBER) == 1).drop(_NUMBER))


def _order(table: TableSpec) -> Sequence[Column]:
    """The record that stays comes first: greatest ordering values with EventTime, then the one of the later commit, then the one written later by it."""
    values = [functions.col(name).desc_nulls_last() for name in table.ordering] if table.merge.mode == MergeMode.EVENT_TIME else []
    number = functions.element_at(functions.split("_hoodie_commit_seqno", "_"), -1).cast("long")
    return [*values, functions.col("_hoodie_commit_time").desc(), number.desc(), functions.col("_hoodie_commit_seqno").desc()]


def _path(table: TableSpec) -> Column:
    """The partition that Hudi's key generator makes of a row."""
    values = [partitions.value(name) for name in table.partitions]
    named = [functions.concat(functions.lit(f"{name}="), of) if table.hive_style else of for name, of in zip(table.partitions, values, strict=True)]
    return functions.concat_ws("/", *named) if named else functions.lit("")
