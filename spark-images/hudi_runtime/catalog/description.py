"""Description of a table for a catalog, made by Hudi's own classes and read by the Java module."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Values = tuple[str, ...]
"""Values of the partition columns, in their order."""


@dataclass(frozen=True)
class Column:
    """A column in Hive's types."""

    name: str
    type: str


@dataclass(frozen=True)
class Entry:
    """Differences between the names of a table: one name, or three for a MergeOnRead table."""

    suffix: str
    input_format: str
    properties: Mapping[str, str]
    serde_properties: Mapping[str, str]


@dataclass(frozen=True)
class Description:
    """A table at one moment."""

    columns: tuple[Column, ...]
    """Without the partition columns."""
    partition_columns: tuple[Column, ...]
    output_format: str
    serde: str
    entries: tuple[Entry, ...]
    everything: bool
    """`written` are all partitions that have data, not those of later changes."""
    written: Mapping[Values, str]
    """Partitions, each with its path below the table's."""
    dropped: tuple[Values, ...]
    left_out: tuple[str, ...]
    """Paths that have not one value for each partition column."""
    instant: str
    """Requested time of the last commit; empty: none."""
    completion: str
    """The latest time at which one completed."""

    @classmethod
    def from_json(cls, text: str) -> Description:
        """Read what the Java module has written."""
        found: dict[str, Any] = json.loads(text)
        return cls(
            columns=tuple(Column(name, kind) for name, kind in found["columns"]),
            partition_columns=tuple(Column(name, kind) for name, kind in found["partitionColumns"]),
            output_format=found["outputFormat"],
            serde=found["serde"],
            entries=tuple(
                Entry(one["suffix"], one["inputFormat"], one["properties"], one["serdeProperties"])
                for one in found["entries"]
            ),
            everything=found["everything"],
            written={tuple(values): path for path, *values in found["written"]},
            dropped=tuple(tuple(values) for _, *values in found["dropped"]),
            left_out=tuple(found["leftOut"]),
            instant=found["instant"],
            completion=found["completion"],
        )
