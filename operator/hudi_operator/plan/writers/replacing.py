"""Operations that replace partitions, and whether a writer may use one for this table.

The rules of the CRD are checked again, because the object may be older than they are. The rule on
the table's mode is not in the CRD, only here.
"""

from __future__ import annotations

from hudi_contract.words import Concurrency
from hudi_operator.api.spec import WriterSpec
from hudi_operator.plan.core.view import View

_REPLACING = ("InsertOverwrite", "DeletePartition")


def problem(view: View, writer: WriterSpec) -> str:
    """Why this writer may not replace partitions as it says (field, value, rule).

    Empty when it may.
    """
    if writer.operation not in _REPLACING:
        return ""
    if view.table.concurrency_mode == Concurrency.NON_BLOCKING:
        return (
            f"spec.operation: {writer.operation} contradicts concurrency.mode NonBlocking of HudiTable "
            f"{view.table.ref.name}: a bucket keeps its file id in this mode, so rows that are written to the "
            "partition afterwards would be invisible. Delete the rows instead"
        )
    return _contradiction(writer)


def _contradiction(writer: WriterSpec) -> str:
    """Two fields that do not go together, as in the CRD; empty: none."""
    if writer.operation == "DeletePartition":
        return "" if writer.partitions else "spec.operation: DeletePartition needs partitions: those that are deleted"
    source = next((name for name in ("hudi", "kafka") if getattr(writer, name) is not None), "")
    if source:
        return (
            f"spec.operation: InsertOverwrite cannot be combined with source.{source}: a batch has only what is new "
            "there, and would replace everything else"
        )
    again = "a later batch of the run would replace what an earlier one has written"
    if writer.streaming_seconds is not None:
        return f"spec.operation: InsertOverwrite cannot be combined with streaming: {again}"
    if writer.files is not None and writer.files.max_files_per_commit is not None:
        return f"spec.operation: InsertOverwrite cannot be combined with source.files.maxFilesPerCommit: {again}"
    if writer.overwrite.scope == "Table" and writer.partitions:
        return "spec.overwrite.scope: Table cannot be combined with partitions: every partition is replaced"
    return ""
