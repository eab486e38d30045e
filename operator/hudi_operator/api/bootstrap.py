"""``spec.bootstrap``: a table that begins with the rows of a plain dataset (RFC-22, Bootstrap)."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_contract import naming
from hudi_contract.words import Adoption, BootstrapFormat, BootstrapMode
from hudi_operator.api.fields import text

METADATA_ONLY = "MetadataOnly"


@dataclass(frozen=True)
class Bootstrap:
    """Source of a table's first rows, and the parts of them that are written.

    Full records, or only Hudi's own columns.
    """

    path: str = text(at="source.path", required=True, way_required=True, at_least=1, at_most=1024)
    format: str = text(
        at="source.format",
        unset=BootstrapFormat.PARQUET,
        required=True,
        way_required=True,
        choices=BootstrapFormat,
    )
    mode: str = text(BootstrapMode.FULL_RECORD, at_most=32)

    @property
    def canonical_path(self) -> str:
        """The dataset's canonical path."""
        return naming.canonical_path(self.path)


def problem(bootstrap: Bootstrap, *, table_path: str, policy: str) -> str:
    """Why a table at ``table_path`` cannot be bootstrapped like this (field, value, rule).

    Empty when it can. ``policy`` is ``spec.adoption.policy``.
    """
    field, source, table = "spec.bootstrap.source.path", bootstrap.canonical_path, naming.canonical_path(table_path)
    if bootstrap.mode != BootstrapMode.FULL_RECORD:
        # Hudi's metadata-only bootstrap has one fixed instant: a second try could not be
        # distinguished from remains of the first one (R13, I5).
        offered = BootstrapMode.FULL_RECORD
        return f"spec.bootstrap.mode: {bootstrap.mode} is not offered, only {offered}: see docs/use/migrate.md"
    if policy == Adoption.ADOPT:
        return (
            "spec.adoption.policy: Adopt contradicts spec.bootstrap: a bootstrap creates a new table, an adopted "
            "one already exists"
        )
    if naming.path_scheme(bootstrap.path) != naming.path_scheme(table_path):
        return (
            f"{field}: {bootstrap.path} has another scheme than {table_path}: the dataset is read with the "
            "table's access"
        )
    if f"{source}/".startswith(f"{table}/"):
        return f"{field}: {bootstrap.path} lies in the table {table_path}: the dataset must be elsewhere"
    if f"{table}/".startswith(f"{source}/"):
        return (
            f"{field}: the table {table_path} lies in {bootstrap.path}: files of the table would be read as files of "
            "the dataset"
        )
    return ""
