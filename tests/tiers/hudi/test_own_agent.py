"""An agent with an executor: it is a process of its own here, and Spark runs no
task anywhere else.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_runtime.table.timeline import State
from tests.support.harness.compactions import EAGER, batch, compaction
from tests.support.harness.local import World, rows, until

OFF = {kind: {"enabled": False} for kind in EAGER}


@pytest.mark.extra
def test_rollback_and_compaction_on_an_executor(world: World) -> None:
    """A dead writer is rolled back and the table is compacted.

    An agent that is killed in a compaction is followed by one that finishes it (I12).
    """
    table = world.table("own", type="MergeOnRead", services=OFF)
    first = world.agent("agent-own", pod="agent-own-1", executor=True)
    world.create(table, agent="agent-own", process=first, pod="agent-own-1")
    slow = world.folder / "own-slow"
    writer = table.writer("dies", python={"batches": [batch(1), batch(2), batch(3, slow)]})
    until("a commit is being written", Path(f"{slow}.reached").exists, alive=writer)
    (pending,) = table.pending()
    inc = writer.inc
    writer.kill()
    table.fence(writer)
    outcomes = until("the dead writer is settled", lambda: table.outcomes(inc), alive=first)
    assert outcomes == {pending: "RolledBack"}
    table.settled(inc)

    eager = world.table("own", type="MergeOnRead", services=EAGER)
    eager.assign("agent-own")
    compacted = until("the file group is compacted", lambda: compaction(table, State.COMPLETED), alive=first)
    last = table.writer("goes-on", python={"batches": [batch(4)]})
    died = until(
        "another compaction is under way",
        lambda: (
            found if (found := compaction(table, State.INFLIGHT)) and found.requested > compacted.requested else None
        ),
        alive=first,
        every=0.002,
    )
    dead = str((table.get(f"instant/{died.requested}") or {})["inc"])
    first.kill()
    assert last.wait() == 0, last.log()[-4000:]
    second = world.agent("agent-own", pod="agent-own-2", executor=True)
    world.admit_agent(eager, "agent-own", pod="agent-own-2")
    until(
        "the second agent looks at the table",
        lambda: second.inc and table.report().get("agentInc") == second.inc,
        alive=second,
    )
    assert died.requested in table.pending(), "an unproven agent's plan is not touched"
    table.fence(first, inc=dead)
    outcomes = until("the dead agent is settled", lambda: table.outcomes(dead), alive=second)
    assert outcomes[died.requested] == "Completed"
    until("nothing is pending", lambda: not table.pending() and not table.names("instant/"), alive=second)
    table.audited(rows(range(20), "a", "v4", 4))
    second.terminate()
    assert second.wait() == 0, second.log()[-3000:]
