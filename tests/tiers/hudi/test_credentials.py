"""S3 keys that change while writers and agents run (F151): who has them as files goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.local import World, rows, until
from tests.support.harness.s3_users import Users

AGENT = "agent-keys"
READ_AGAIN = 2.0
"""Seconds after which a process has read changed files. The kubelet's part is not here."""


@pytest.fixture
def users(world: World, tmp_path: Path) -> Iterator[Users]:
    world.start_s3()
    made = Users(tmp_path, world.s3_folder)
    yield made
    made.stop()


def test_a_rotated_key_reaches_writers_and_agents_that_run(world: World, users: Users) -> None:
    """The old key is refused before the second batch is written.

    Then nobody's key is valid: the agent says so, and goes on by itself with the next one.
    """
    users.add("first")
    table = world.table("rotated", endpoint=users.url)
    agent = world.agent(AGENT, storage=table)
    users.mount("first", agent.folder)
    world.create(table, agent=AGENT, process=agent)
    gate = world.folder / "gate-rotated"
    batches = [
        {"rows": rows(range(5), "a", "before", 1)},
        {"rows": rows(range(5, 10), "a", "after", 1), "gate": str(gate)},
    ]
    writer = table.writer("writer", python={"batches": batches})
    users.mount("first", writer.folder)
    until("the second write is under way", Path(f"{gate}.reached").exists, alive=writer)
    users.add("second")
    users.mount("second", agent.folder, writer.folder)
    users.remove("first")
    time.sleep(READ_AGAIN)
    gate.touch()
    assert writer.wait() == 0, writer.log()[-6000:]
    assert writer.termination()["commits"] == 2
    assert "S3 credentials have changed" in writer.log()
    users.remove("second")
    error = until("the agent says so", lambda: table.report().get("error"), alive=agent, timeout=120)
    assert error["code"] == "StorageUnreachable", error
    assert "secret-of" not in str(error)
    users.add("third")
    users.mount("third", agent.folder)
    until("the agent goes on", lambda: not table.report().get("error"), alive=agent, timeout=120)
    table.audited(rows(range(5), "a", "before", 1) + rows(range(5, 10), "a", "after", 1))
