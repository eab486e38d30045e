"""Restore to a savepoint, on real tables: what completed after the boundary goes and nothing else,
an agent that dies in it is continued by the next one, writers go on from the progress of the
boundary, and readers of the table notice.
"""

from __future__ import annotations

import pytest

from hudi_runtime.table import timeline as tl
from tests.support.harness.local import Table, World, rows, until
from tests.support.harness.restore_requests import ask, ended, keep, load, write_file
from tests.support.oracle import not_seen

pytestmark = pytest.mark.extra


def writes(table: Table) -> list[tl.Instant]:
    return [i for i in table.timeline().completed if i.action in tl.WRITE_ACTIONS]


def restores(table: Table) -> list[str]:
    return [i.requested for i in table.timeline().completed if i.action == "restore"]


def test_a_table_is_restored_and_its_writers_and_readers_go_on(world: World) -> None:
    table, target = world.table("back"), world.table("back-reader")
    agent = world.agent("agent-back")
    for one in (table, target):
        world.create(one, agent="agent-back", process=agent)
    folder = world.lake / "back-files"
    parts = [rows(range(10 * n, 10 * n + 10), "ab"[n % 2], f"file{n}", 1) for n in range(4)]
    write_file(folder, 0, parts[0])
    load(table, folder, run=1)
    kept = keep(table, "good", agent)
    at_the_boundary = table.data_files()
    for n in (1, 2, 3):
        write_file(folder, n, parts[n])
    assert load(table, folder, run=2)["commits"] == 3
    undone = [i.requested for i in writes(table) if i.completion > kept["boundary"]]
    assert len(undone) == 3
    reader = target.writer("chain", hudi={"path": table.path}, operation="insert")
    assert reader.wait() == 0, reader.log()[-4000:]

    # A later savepoint is in the way until its name is taken away.
    keep(table, "later", agent)
    ask(table, "one", "good", names=("good", "later"))
    refused = ended(table, "one", agent)
    assert (refused["result"], refused["message"][:24]) == ("Failed", "savepoint later is later")
    ask(table, "none", "never", names=("good",))
    assert ended(table, "none", agent)["message"] == "this HudiTable has taken no savepoint never"
    assert [i.requested for i in writes(table) if i.completion > kept["boundary"]] == undone, (
        "a refusal changes nothing"
    )

    ask(table, "two", "good", names=("good",))
    done = ended(table, "two", agent)
    assert (done["result"], done["boundary"], sorted(done["undoneInstants"])) == (
        "Completed",
        kept["boundary"],
        undone,
    ), done
    assert [i.requested for i in writes(table)] == [kept["instant"]]
    assert not table.pending()
    assert [s.requested for s in table.timeline().savepoints] == [kept["instant"]]
    assert table.get("done/savepoint-later") is None
    assert table.data_files() == at_the_boundary
    until("nothing of it is left in etcd", lambda: not table.names("instant/"), alive=agent)
    assert (table.get("clock") or {})["value"] >= done["completionTime"] == table.timeline().completed[-1].completion
    assert table.report()["foreign"] == []
    table.audited(parts[0])

    # Once for each nonce, whatever is asked for again; writers go on from the progress of the
    # boundary: exactly the files that were undone.
    until("the agent has looked again", lambda: table.report()["lastInstant"] == done["instant"], alive=agent)
    assert restores(table) == [done["instant"]]
    table.gate("open")
    assert load(table, folder, run=3)["commits"] == 3
    assert min(i.requested for i in writes(table) if i.requested != kept["instant"]) > max(undone), "new instants (R13)"
    table.audited([row for part in parts for row in part])

    # A reader of the table that had what was undone does not go on as if nothing had happened.
    reader = target.writer("chain", hudi={"path": table.path}, operation="insert", run=2)
    assert reader.wait() == 10, reader.log()[-4000:]
    told = reader.termination()
    assert told["class"] == "PositionLost"
    assert "restored to an earlier state" in told["message"]
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]


@pytest.mark.parametrize("type", ["CopyOnWrite", "MergeOnRead"])
def test_an_agent_that_dies_in_a_restore_is_continued(world: World, type: str) -> None:
    name = f"resumed-{type.lower()}"
    services = {"compaction": {"afterCommits": 3}} if type == "MergeOnRead" else {}
    others = {kind: {"enabled": False} for kind in ("clean", "archive")}
    table = world.table(name, type=type)
    agent = world.agent(f"agent-{name}", storage=table)
    world.create(table, agent=f"agent-{name}", process=agent)
    writer = table.writer("first", python={"batches": [{"rows": rows(range(10), "a", f"v{n}", n)} for n in (1, 2)]})
    assert writer.wait() == 0, writer.log()[-4000:]
    kept = keep(table, "good", agent)
    if services:
        world.table(name, type=type, services={**services, **others}).assign(f"agent-{name}")
    batches = [{"rows": rows(range(5, 15), "a", f"v{n}", n)} for n in range(3, 7)] + [
        {"rows": rows(range(20, 25), "b", "v7", 7)}
    ]
    writer = table.writer("second", python={"batches": batches})
    assert writer.wait() == 0, writer.log()[-4000:]
    if services:
        until("it is compacted", lambda: any(i.planned == "compaction" for i in writes(table)), alive=agent)
        world.table(name, type=type).assign(f"agent-{name}")
        until("nothing is pending", lambda: not table.pending(), alive=agent)
    undone = {i.requested for i in writes(table) if i.completion > kept["boundary"]}

    def in_the_middle() -> bool:
        left = {i.requested for i in writes(table)} & undone
        return bool(left) and left != undone

    ask(table, "back", "good", names=("good",))
    until("some of it is undone", in_the_middle, alive=agent, every=0.005)
    agent.kill()
    assert not restores(table), "it was killed in the middle"
    assert (table.get("done/restore-back") or {})["result"] == "Running"
    # Another assignment (services) was another session: the last one is meant.
    dead = table.fence(agent, inc=agent.protocol("register")[-1]["actor"])
    table.gate("closed", restoring="back", adopted=True)
    again = world.agent(f"agent-{name}", table, pod=f"agent-{name}-2", storage=table)
    world.admit_agent(table, f"agent-{name}", pod=f"agent-{name}-2")
    done = ended(table, "back", again)
    assert (done["result"], done["boundary"], done["undone"]) == ("Completed", kept["boundary"], len(undone)), done
    assert restores(table) == [done["instant"]]
    assert not {i.requested for i in writes(table)} & undone
    assert not table.pending()
    assert not [file for t in undone for file in table.data_files(t)]
    outcomes = until("the dead agent is swept", lambda: table.outcomes(dead), alive=again)
    assert outcomes[done["instant"]] == "Completed"
    assert set(outcomes.values()) <= {"Completed", "Gone", "RolledBack"}
    table.settled(dead)
    until("nothing of it is left in etcd", lambda: not table.names("instant/"), alive=again)
    assert (
        until(
            "the agent has looked",
            lambda: table.report() if table.report().get("agentInc") == again.inc else None,
            alive=again,
        )["foreign"]
        == []
    )
    table.audited(rows(range(10), "a", "v2", 2), without=not_seen("metadata", "incremental"))
    table.gate("open")
    writer = table.writer("third", python={"batches": [{"rows": rows(range(5, 15), "a", "new", 9)}]})
    assert writer.wait() == 0, writer.log()[-4000:]
    table.audited(rows(range(5), "a", "v2", 2) + rows(range(5, 15), "a", "new", 9))
    again.terminate()
    assert again.wait() == 0, again.log()[-3000:]
