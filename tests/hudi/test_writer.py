"""The driver's runtime: exactly once over a SIGKILL, conflicts, failures told as the operator needs them."""

from __future__ import annotations

import json

import pytest
from conftest import AGENT
from harness import Process, Table, World, until


@pytest.fixture
def table(world: World, agent: Process, request: pytest.FixtureRequest) -> Table:
    made = world.table(request.node.name.replace("[", "-").rstrip("]").replace("_", "-"), type=getattr(request, "param", "CopyOnWrite"))
    world.create(made, agent=AGENT, process=agent)
    return made


def test_files_exactly_once_over_sigkill(world: World, table: Table, agent: Process) -> None:
    """I9: six files, two per commit; killed in the second commit; the next attempt commits the rest, each row once."""
    landing = world.folder / "landing"
    landing.mkdir()
    for number in range(6):
        lines = [json.dumps({"id": number * 10 + n, "p": "a", "v": f"f{number}", "ts": 1}) for n in range(10)]
        (landing / f"{number}.json").write_text("\n".join(lines))
    job = {
        "files": {"format": "json", "paths": [f"file://{landing}"], "options": {}, "maxFilesPerCommit": 2},
        "transform": "SELECT cast(id AS int) AS id, p, v, ts FROM source",
        "operation": "insert",
    }
    first = table.writer("ingest", **job)
    until("second commit has begun", lambda: len(table.timeline().completed) == 1 and table.pending(), alive=first, every=0.005)
    first.kill()
    (dead,) = table.pending()
    inc = table.fence(first)
    second = table.writer("ingest", **job)
    assert second.wait() == 0, second.log()[-4000:]
    assert second.termination()["commits"] == 2
    outcomes = until("swept", lambda: table.outcomes(inc), alive=agent)
    assert outcomes[dead] == "RolledBack"
    assert [row[0] for row in table.rows()] == list(range(60))
    assert len(table.timeline().pending) == 0
    third = table.writer("ingest", **job)
    assert third.wait() == 0
    assert third.termination()["commits"] == 0, "nothing is left to do"
