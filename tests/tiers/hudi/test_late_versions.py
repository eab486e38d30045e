"""A version that comes after the deletion of its record, with a smaller ordering value than the
deleted row, brings nothing back (F326).

Hudi's own deletion in a log file has no ordering value. A late version replaced it, lost against
the row of the base file, and that row was there again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_runtime.table.timeline import State
from tests.support.harness.compactions import EAGER, OFF, compaction
from tests.support.harness.in_its_write import done
from tests.support.harness.local import World, rows, until

APP = Path(__file__).parent / "apps" / "deletes_app.py"
FIRST = [*rows([0, 1, 2, 4], "a", "first", 5), *rows([3], "a", "third", 5), *rows([1], "b", "first", 5)]
STAYS = [*rows([0], "a", "first", 5), *rows([1], "b", "first", 5)]


@pytest.mark.parametrize("index", ["Simple", pytest.param("Bucket", marks=pytest.mark.extra)])
def test_a_late_version_brings_no_deleted_row_back(world: World, index: str) -> None:
    """Whoever has deleted it, and whatever ordering value the deletion itself has."""
    spec: dict[str, Any] = {"index": {"type": index, **({"buckets": 2} if index == "Bucket" else {})}}
    name, agent = f"late-{index.lower()}", f"agent-{index.lower()}"
    process = world.agent(agent, pod=f"{agent}-1")
    table = world.table(name, type="MergeOnRead", services=OFF, **spec)
    world.create(table, agent=agent, process=process, pod=f"{agent}-1")
    done(table.writer("first", python={"batches": [{"rows": FIRST}]}))
    done(table.writer("delete", operation="delete", python={"batches": [{"rows": rows([1, 9], "a", "", 1)}]}))
    program = table.writer("program", application={"mainFile": str(APP), "arguments": []})
    assert program.wait() == 0, program.log()[-4000:]
    table.audited(STAYS)

    late = rows([1, 2, 3, 4], "a", "late", 3)
    done(table.writer("late", python={"batches": [{"rows": late}]}))
    table.audited(STAYS)
    newer = rows([1, 2], "a", "newer", 7)
    done(table.writer("newer", python={"batches": [{"rows": newer}]}))
    table.audited([*STAYS, *newer])

    eager = world.table(name, type="MergeOnRead", services=EAGER, **spec)
    eager.assign(agent)
    done(eager.writer("last", python={"batches": [{"rows": rows([8], "a", "last", 1)}]}))
    until("it is compacted", lambda: compaction(eager, State.COMPLETED), alive=process)
    until("nothing is pending", lambda: not eager.pending(), alive=process)
    eager.audited([*STAYS, *newer, *rows([8], "a", "last", 1)])
