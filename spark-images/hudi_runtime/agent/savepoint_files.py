"""The files of savepoints on the timeline."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import TIMELINE


def remove(table: AgentTable, savepoints: Iterable[tl.Instant]) -> None:
    """Remove savepoints, also half finished ones; the caller holds the table's lock.

    The completed file goes last: until then it is a savepoint, and nothing waits for a pending one.
    """
    wanted = [
        name
        for savepoint in savepoints
        for name in (
            f"{savepoint.requested}.savepoint.inflight",
            f"{savepoint.requested}_{savepoint.completion}.savepoint",
        )
    ]
    there = set(table.storage.names(TIMELINE)) if wanted else set()
    for name in wanted:
        if name in there:
            table.storage.delete(f"{TIMELINE}/{name}")
