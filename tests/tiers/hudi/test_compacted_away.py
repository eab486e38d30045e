"""A key that is deleted, compacted and inserted again at once exists once (F324).

Hudi looks keys up in base files. A key that a log file has deleted is still in one, so that its new
version goes into the log of its old file group; a compaction that was planned before leaves the key
out of the new base file. If both came to be, no look-up would find the key, and the next upsert
would add a second record.
"""

from __future__ import annotations

import signal
from typing import Any

import pytest

from hudi_runtime.table.timeline import State
from tests.support.harness.compactions import EAGER, OFF, compaction
from tests.support.harness.in_its_write import done, stopped_in_its_write
from tests.support.harness.local import Process, Row, Table, World, rows, until

KEPT = rows([*range(7), 8, 9], "a", "first", 1)
BACK = rows([7], "a", "back", 3)
LAST = rows([7], "a", "last", 4)


def deleted_in_a_log(world: World, name: str, agent: str, process: Process, **spec: Any) -> Table:
    """A table with a base file of ten rows, and a log file that deletes one of them."""
    table = world.table(name, type="MergeOnRead", services=OFF, **spec)
    world.create(table, agent=agent, process=process, pod=f"{agent}-1")
    done(table.writer("first", python={"batches": [{"rows": rows(range(10), "a", "first", 1)}]}))
    done(table.writer("delete", operation="delete", python={"batches": [{"rows": rows([7], "a", "", 2)}]}))
    return table


def eager(world: World, name: str, agent: str, **spec: Any) -> Table:
    """The same table, whose agent compacts after each commit."""
    table = world.table(name, type="MergeOnRead", services=EAGER, **spec)
    table.assign(agent)
    return table


def upsert(table: Table, name: str, batch: list[Row], **more: Any) -> Process:
    return table.writer(name, python={"batches": [{"rows": batch}]}, **more)


@pytest.mark.extra
@pytest.mark.parametrize("index", ["Simple", "Bloom"])
def test_a_compaction_completes_while_the_key_comes_back(world: World, index: str) -> None:
    """The write is a conflict, is repeated, and inserts the key."""
    spec = {"index": {"type": index}}
    name, agent = f"back-{index.lower()}", f"agent-back-{index.lower()}"
    first = world.agent(agent, pod=f"{agent}-1")
    table = deleted_in_a_log(world, name, agent, first, **spec)
    writer = upsert(table, "back", BACK, retries=5)
    stopped_in_its_write(table, writer)
    eager(world, name, agent, **spec)
    until("the deletion is compacted", lambda: compaction(table, State.COMPLETED), alive=first)
    writer.signal(signal.SIGCONT)
    done(writer, conflicts=1)
    done(upsert(table, "last", LAST))
    until("nothing is pending", lambda: not table.pending(), alive=first)
    table.audited([*KEPT, *LAST])


@pytest.mark.extra
def test_a_compaction_is_pending_while_the_key_comes_back(world: World) -> None:
    """Until it is completed the write is refused; other keys of the file group are written."""
    name, agent = "back-pending", "agent-back-pending"
    first = world.agent(agent, pod=f"{agent}-1")
    table = deleted_in_a_log(world, name, agent, first)
    tended = eager(world, name, agent)
    died = until("a compaction is under way", lambda: compaction(table, State.INFLIGHT), alive=first, every=0.002)
    dead = str((table.get(f"instant/{died.requested}") or {})["inc"])
    first.kill()
    assert compaction(table, State.INFLIGHT), "it was quicker than this test"

    done(upsert(table, "other", rows([8], "a", "other", 3)))
    writer = upsert(table, "back", BACK, retries=2)
    assert writer.wait() != 0, writer.log()[-4000:]
    told = writer.termination()
    assert (told["class"], told["commits"], told["conflicts"]) == ("WriteConflict", 0, 3), told

    second = world.agent(agent, pod=f"{agent}-2")
    world.admit_agent(tended, agent, pod=f"{agent}-2")
    until("the second agent looks at the table", lambda: table.report().get("agentInc") == second.inc, alive=second)
    table.fence(first, inc=dead)
    until("the compaction is completed", lambda: compaction(table, State.COMPLETED), alive=second)
    done(upsert(table, "again", BACK))
    done(upsert(table, "last", LAST))
    until("nothing is pending", lambda: not table.pending(), alive=second)
    table.audited([*[row for row in KEPT if row[0] != 8], *rows([8], "a", "other", 3), *LAST])
