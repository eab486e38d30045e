"""A savepoint of a real table: taken by the agent behind the closed gate, kept by cleaning,
found again when its record is gone, and deleted by its instant beside an open gate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_contract.requests import ServiceRequest
from hudi_contract.words import Service
from hudi_operator.plan.requests import savepoints
from tests.support.harness.local import Process, Table, World, rows, until
from tests.support.oracle import not_seen

pytestmark = pytest.mark.extra


def ask(table: Table, name: str) -> None:
    """What the operator asks for when nobody but the agent may acquire."""
    table.ask(savepoints.request(name).to_json())


def taken(table: Table, name: str, agent: Process) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        done = table.get(f"done/savepoint-{name}") or {}
        return done if done.get("result") in ("Completed", "Failed") else None

    return until(f"savepoint {name} is taken", found, alive=agent)


def _told(table: Table, name: str, message: str) -> dict[str, Any] | None:
    done = table.get(f"done/savepoint-{name}") or {}
    return done if str(done.get("message", "")).startswith(message) else None


@pytest.mark.parametrize("partitions", [["p"], []], ids=["partitions", "whole"])
def test_a_savepoint_is_kept(world: World, partitions: list[str]) -> None:
    services = {
        "clean": {"afterCommits": 1, "retainCommits": 1},
        "archive": {"enabled": False},
        "compaction": {"enabled": False},
    }
    name, spec = f"kept-{len(partitions)}", {"partitionFields": partitions}
    table = world.table(name, **spec)
    agent = world.agent(f"agent-{name}")
    world.create(table, agent=f"agent-{name}", process=agent)
    batches = [{"rows": rows(range(10), "a", f"v{n}", n)} for n in range(1, 3)]
    writer = table.writer("before", python={"batches": batches})
    assert writer.wait() == 0, writer.log()[-4000:]
    files = set(table.data_files())
    last = table.timeline().last_completed
    assert last is not None

    ask(table, "early")
    done = until("the open gate is refused", lambda: table.get("done/savepoint-early"), alive=agent)
    assert done["result"] == "Pending"
    assert "closed gate" in done["message"]
    table.gate("closed")
    done = taken(table, "early", agent)
    assert (done["result"], done["instant"], done["boundary"]) == ("Completed", last.requested, last.completion)
    (kept,) = table.timeline().savepoints
    assert (kept.requested, kept.completion) == (last.requested, done["completionTime"])
    assert (table.get("clock") or {})["value"] >= kept.completion
    until("nothing of it is left", lambda: not table.names("instant/"), alive=agent)
    names = sorted(path.name for path in (table.folder / ".hoodie" / "timeline").glob("*.savepoint*"))

    # Asked for once more under another name, and by an agent that has lost its record:
    # not taken twice.
    ask(table, "again")
    assert taken(table, "again", agent)["instant"] == last.requested
    world.etcd.delete(table.key("done/savepoint-early"))
    assert taken(table, "early", agent)["completionTime"] == kept.completion
    assert sorted(path.name for path in (table.folder / ".hoodie" / "timeline").glob("*.savepoint*")) == names
    table.gate("open")
    assert table.report()["foreign"] == []

    # Cleaning runs after each commit from now on: what the savepoint keeps stays, the rest goes.
    world.table(name, services=services, **spec).assign(f"agent-{name}")
    more = [{"rows": rows(range(10), "a", f"v{n}", n)} for n in range(3, 8)]
    writer = table.writer("after", python={"batches": more})
    assert writer.wait() == 0, writer.log()[-4000:]
    until(
        "all but the last two versions and the savepoint's are cleaned",
        lambda: len(table.data_files()) <= 3,
        alive=agent,
    )
    of_the_savepoint = {name for name in files if f"_{last.requested}" in Path(name).name}
    assert of_the_savepoint
    assert of_the_savepoint <= set(table.data_files())
    assert not (files - of_the_savepoint) & set(table.data_files()), "what nothing keeps was cleaned"
    # Deleted beside an open gate, not with a slip: the next clean deletes what it alone has kept.
    table.ask(savepoints.deletion("early", done["boundary"]).to_json())
    done = until("the slip is told", lambda: _told(table, "early", "not deleted: deleteInstant"), alive=agent)
    assert (done["result"], len(table.timeline().savepoints)) == ("Completed", 1)
    table.ask(savepoints.deletion("again", last.requested).to_json())
    until("its other name is deleted", lambda: _told(table, "again", "savepoint early keeps the same"), alive=agent)
    assert len(table.timeline().savepoints) == 1
    table.ask(savepoints.deletion("early", last.requested).to_json())
    until("it is deleted", lambda: (table.get("done/savepoint-early") or {})["result"] == "Deleted", alive=agent)
    assert table.timeline().savepoints == ()
    table.ask(ServiceRequest(id="service-clean", service=Service.CLEAN, run="now").to_json())
    until(
        "a clean deletes the files of the deleted savepoint",
        lambda: not of_the_savepoint & set(table.data_files()),
        alive=agent,
    )
    table.audited(rows(range(10), "a", "v7", 7), without=not_seen("origin", "stray", "incremental", "late", "overlap"))
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]
