"""Table services, run by the agent beside writers and settling: nothing is lost, nothing grows for
ever, ingestion never fails because of them.
"""

from __future__ import annotations

from pathlib import Path

from hudi_runtime.table.timeline import Instant, State
from tests.support.harness.compactions import EAGER, SERVICES, batch, compaction
from tests.support.harness.local import Table, World, rows, until

LAST = 11
#: The metadata table is compacted by writers; archival waits for that (Hudi's rule).
METADATA = {"hoodie.metadata.compact.max.delta.commits": "2"}


def committed(table: Table, instant: str) -> Instant | None:
    found = table.timeline().get(instant)
    return found if found is not None and not found.pending else None


def test_a_tended_table(world: World) -> None:
    """A commit that is written while its file group is compacted stands, without a retry.

    Old files and instants go; an agent that is killed in a compaction is followed by one that
    finishes it (I12); every row is there in the end.
    """
    table = world.table("tended", type="MergeOnRead")
    first = world.agent("agent-tended", pod="agent-tended-1")
    world.create(table, agent="agent-tended", process=first, pod="agent-tended-1")
    slow, rest = world.folder / "gate-slow", world.folder / "gate-rest"
    batches = [*(batch(n) for n in range(4)), batch(4, slow), *(batch(n) for n in range(5, LAST)), batch(LAST, rest)]
    writer = table.writer("writer", python={"batches": batches}, options=METADATA, retries=0)

    until("a commit is being written", Path(f"{slow}.reached").exists, alive=writer)
    begin = table.timeline().earliest
    (pending,) = table.pending()
    world.table("tended", type="MergeOnRead", services=SERVICES).assign("agent-tended")
    compacted = until("the file group is compacted", lambda: compaction(table, State.COMPLETED), alive=first)
    assert compacted.requested > pending, "planned while the commit was being written"
    files = set(table.data_files())
    slow.touch()
    commit = until("the commit is completed", lambda: committed(table, pending), alive=writer)
    assert commit.completion > compacted.completion

    until("the other commits are done", Path(f"{rest}.reached").exists, alive=writer)
    until("old file versions are gone", lambda: files - set(table.data_files()), alive=first)
    until("old instants are archived", lambda: table.timeline().earliest > begin and table.archived(), alive=first)
    assert len(table.data_files()) < LAST, "fewer files than commits"
    rest.touch()
    assert writer.wait() == 0, writer.log()[-4000:]
    assert writer.termination()["conflicts"] == 0

    # The last commit makes a compaction due: the agent dies in the middle of it.
    eager = world.table("tended", type="MergeOnRead", services=EAGER)
    eager.assign("agent-tended")
    died = until("a compaction is under way", lambda: compaction(table, State.INFLIGHT), alive=first, every=0.002)
    dead = str((table.get(f"instant/{died.requested}") or {})["inc"])
    first.kill()
    assert table.pending() == {died.requested}
    second = world.agent("agent-tended", pod="agent-tended-2")
    world.admit_agent(eager, "agent-tended", pod="agent-tended-2")
    until(
        "the second agent looks at the table",
        lambda: second.inc and table.report().get("agentInc") == second.inc,
        alive=second,
    )
    assert table.pending() == {died.requested}, "an unproven agent's plan is not touched"
    table.fence(first, inc=dead)
    outcomes = until("the dead agent is settled", lambda: table.outcomes(dead), alive=second)
    assert outcomes[died.requested] == "Completed"
    assert died.requested in [claim["instant"] for claim in second.protocol("claim") if claim["ok"]]
    until("nothing is pending", lambda: not table.pending() and not table.names("instant/"), alive=second)
    assert table.heartbeats() == set()
    table.audited(rows(range(20), "a", f"v{LAST}", LAST))
    second.terminate()
    assert second.wait() == 0, second.log()[-3000:]
