"""`spec.metadataTable`: whether the table has Hudi's metadata table, with which indexes, and the word to make it anew.

It belongs to all writers: one that keeps it up beside one that does not would leave a listing that misses files. So a change goes through the
closed gate, and the table's agent makes it alone (plan/requests/metadata_table.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_operator.api.fields import flag, text, texts

COLUMN_STATS = "ColumnStats"
INDEXES = (COLUMN_STATS,)
_OPTIONS = {
    "hoodie.metadata.index.column.stats.enable": COLUMN_STATS,
    # Those of partitions are made from those of files. Hudi 1.2 makes them along with them, whatever is said here (measured).
    "hoodie.metadata.index.partition.stats.enable": COLUMN_STATS,
}


@dataclass(frozen=True)
class MetadataTable:
    """What is wanted. The default is Hudi's: a metadata table with statistics of columns."""

    enabled: bool = flag(True)
    indexes: tuple[str, ...] = texts(unset=INDEXES, at_most=len(INDEXES), choices=INDEXES)
    """The list of files is always there."""
    rebuild: str = text(at_most=64)
    """Any other word than the last one: delete the metadata table and make it anew."""

    @property
    def nonce(self) -> str:
        """What the agent has brought about last, in one word; equal words mean that nothing is to be done."""
        return f"{'+'.join(('Files', *sorted(self.indexes))) if self.enabled else 'Off'}/{self.rebuild}"

    @property
    def options(self) -> dict[str, str]:
        """Hudi options of everybody who writes to the table."""
        on = {"hoodie.metadata.enable": str(self.enabled).lower()}
        return on | {option: str(self.enabled and name in self.indexes).lower() for option, name in _OPTIONS.items()}
