"""`spec.metadataTable`.

Whether the table has Hudi's metadata table, its indexes, and the nonce that rebuilds it.

All writers share it: if one maintains it and another does not, its listing misses files. So a
change goes through the closed gate, and only the table's agent makes it
(plan/requests/metadata_table.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_operator.api.fields import NONCE, flag, text, texts

COLUMN_STATS = "ColumnStats"
INDEXES = (COLUMN_STATS,)
_OPTIONS = {
    "hoodie.metadata.index.column.stats.enable": COLUMN_STATS,
    # Partition statistics are computed from file statistics. Hudi 1.2 creates both together,
    # whatever is set here (measured).
    "hoodie.metadata.index.partition.stats.enable": COLUMN_STATS,
}


@dataclass(frozen=True)
class MetadataTable:
    """The wanted metadata table.

    By default it has no column statistics: with them readers miss rows (F104).
    """

    enabled: bool = flag(True)
    indexes: tuple[str, ...] = texts(at_most=len(INDEXES), choices=INDEXES, distinct=True)
    """Indexes besides the list of files, which always exists."""
    rebuild: str = text(at_most=64, matches=NONCE)
    """A value other than the last one deletes and rebuilds the metadata table."""

    @property
    def nonce(self) -> str:
        """Nonce of these settings.

        When it equals the nonce of the agent's last change there is nothing to do.
        """
        return f"{'+'.join(('Files', *sorted(self.indexes))) if self.enabled else 'Off'}/{self.rebuild}"

    @property
    def options(self) -> dict[str, str]:
        """Hudi options of every process that writes to the table."""
        on = {"hoodie.metadata.enable": str(self.enabled).lower()}
        return on | {option: str(self.enabled and name in self.indexes).lower() for option, name in _OPTIONS.items()}


def problem(wanted: MetadataTable | None) -> str:
    """Why there can be no such metadata table (field and rule), as in the CRD; empty: there can."""
    if wanted is None or wanted.enabled or not wanted.indexes:
        return ""
    return "spec.metadataTable.indexes: contradict enabled false: they are parts of the metadata table"
