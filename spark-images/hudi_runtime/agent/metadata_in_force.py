"""Hudi's options for the metadata table that the agent's clients use (F434).

The options of the spec are in force when the change to them is done. Until then writers of the
former ones may run, and work that the agent finishes or rolls back has to be committed to the table
as it is: with the new options a compaction would be refused for a metadata table that goes only
when nothing is pending.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hudi_contract.keys import Kind
from hudi_contract.requests import DEFAULT_METADATA, MetadataDone, request_id
from hudi_contract.words import RequestKind, Result
from hudi_runtime.table import timeline as tl

KEY = request_id(RequestKind.METADATA)
DONE = Kind.DONE.of(KEY)
FILES, COLUMN_STATS = "files", "column_stats"
ENABLED = "hoodie.metadata.enable"
INDEXES = ("hoodie.metadata.index.column.stats.enable", "hoodie.metadata.index.partition.stats.enable")


class _Has(Protocol):
    def metadata_partitions(self) -> tuple[set[str], set[str]]: ...

    def timeline(self) -> tl.Timeline: ...


def changed(wanted: str, record: MetadataDone) -> bool:
    """Whether the table has the metadata table of this nonce, as far as `done/metadata` says."""
    if record.result is None:
        return wanted == DEFAULT_METADATA
    return record.nonce == wanted and record.result is Result.COMPLETED


def goes(wanted: Mapping[str, str]) -> bool:
    """Whether the spec wants no metadata table."""
    return wanted.get(ENABLED) == "false"


def options(wanted: Mapping[str, str], table: _Has) -> dict[str, str]:
    """`wanted`, with the metadata table that the table has now, as its configuration says.

    A table without a commit has none yet: its writers make it with the first one.
    """
    made, _ = table.metadata_partitions()
    on = FILES in made or not table.timeline().completed
    indexed = str(on and COLUMN_STATS in made).lower()
    return {**wanted, ENABLED: str(on).lower(), **dict.fromkeys(INDEXES, indexed)}
