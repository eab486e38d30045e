"""Options of Hudi's tool for the table, and the names of its entries."""

from __future__ import annotations

from hudi_contract.assignment import AssignmentRecord, CatalogOrder
from hudi_contract.words import TableType

OWNER = "hudioperator.uid"
"""Property of each entry: the uid of the HudiTable that keeps it."""
SYNC = "hoodie.datasource.hive_sync"
_NOT_PARTITIONED = "org.apache.hudi.hive.NonPartitionedExtractor"
_VALUES = "io.hudioperator.catalog.PartitionValues$"


def of_table(order: AssignmentRecord, wanted: CatalogOrder) -> dict[str, str]:
    """Options that are the same for each catalog."""
    fields = order.partition_fields
    named, several = "Named" if order.hive_style_partitioning else "", "Levels" if len(fields) > 1 else "Whole"
    return {
        "hoodie.datasource.meta.sync.base.path": order.path,
        f"{SYNC}.database": wanted.database,
        f"{SYNC}.table": wanted.table,
        f"{SYNC}.partition_fields": ",".join(fields),
        f"{SYNC}.partition_extractor_class": f"{_VALUES}{named}{several}" if fields else _NOT_PARTITIONED,
        f"{SYNC}.support_timestamp": "true",
        # For a deleted partition, the metadata table and the storage say different things until it
        # is cleaned.
        "hoodie.meta.sync.metadata_file_listing": "false",
    }


def entries(order: AssignmentRecord, wanted: CatalogOrder) -> list[str]:
    """The names under which the catalog has the table."""
    suffixes = ("", "_ro", "_rt") if order.type == TableType.MERGE_ON_READ else ("",)
    return [f"{wanted.table}{suffix}" for suffix in suffixes]
