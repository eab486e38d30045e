"""The operation DeletePartition: which partitions one commit deletes.

Those with rows that match `partitions` of the HudiWriter when the run begins. Hudi replaces their
file groups by nothing, so that readers see them until the commit is completed, and a later clean
deletes the files. A commit of another writer to one of them since the instant began is a conflict
(`FencedConflictResolutionStrategy.java`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, functions

from hudi_runtime.job.job import TableSpec
from hudi_runtime.process.errors import UserCodeError
from hudi_runtime.table import partitions

NAMES = "hoodie.datasource.write.partitions.to.delete"
_PARTITION = "_hoodie_partition_path"
_MEANS_OTHERS = (",", "*", "%2A")
"""Hudi ends a name at the first, and takes the others for any characters (F492)."""


def found(rows: DataFrame, table: TableSpec, patterns: Sequence[str]) -> list[str]:
    """Names of the partitions of these rows that match one of the patterns.

    `rows`: the table's, with Hudi's own columns; without columns before its first commit. Raises
    UserCodeError for a name that Hudi would read as a pattern.
    """
    if not rows.columns:
        return []
    path = functions.concat_ws("/", *(partitions.value(name) for name in table.partitions))
    matching = rows.where(path.rlike(partitions.expression(patterns)))
    return exact(sorted(str(row[0]) for row in matching.select(_PARTITION).distinct().collect()))


def exact(names: list[str]) -> list[str]:
    """These names. Raises UserCodeError when Hudi would take one for those of others."""
    for name in names:
        if any(text in name for text in _MEANS_OTHERS):
            rule = (
                "Hudi takes a comma as the end of a name, and * or %2A as a wildcard; delete the rows with DELETE FROM "
                "in a program"
            )
            raise UserCodeError(f"operation DeletePartition: partition {name}: {rule}")
    return names
