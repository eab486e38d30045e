"""The files of a savepoint on the timeline."""

from __future__ import annotations

from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import TIMELINE


def remove(table: AgentTable, savepoint: tl.Instant) -> None:
    """Remove a savepoint, also one that is half finished; the caller holds the table's lock.

    The completed file goes last: until then it is a savepoint, and nothing waits for a pending one.
    """
    names = set(table.storage.names(TIMELINE))
    for name in (
        f"{savepoint.requested}.savepoint.inflight",
        f"{savepoint.requested}_{savepoint.completion}.savepoint",
    ):
        if name in names:
            table.storage.delete(f"{TIMELINE}/{name}")
