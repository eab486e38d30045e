"""A commit during which an executor was lost: what that one writes after it is no row
of the table (F36).
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from urllib.parse import urlparse

import pytest

from tests.support.harness import s3proxy
from tests.support.harness.executors import EXECUTORS, executor_of
from tests.support.harness.local import World, rows, until


@pytest.mark.extra
def test_a_file_of_a_lost_executor_that_comes_after_the_commit_is_swept(world: World) -> None:
    """A bulk insert names its file groups in the executor.

    The executor is killed while its PUT of the data file is on the wire; it arrives after the
    commit, to which another executor's file belongs. Readers that list files would show the rows of
    both. `Allow`: to look the keys up computes the batch once before the write.
    """
    server = urlparse(world.start_s3())
    proxy = s3proxy.Proxy("127.0.0.1", (str(server.hostname), int(server.port or 80)))
    table = world.table("zombie", endpoint=proxy.url)
    agent = world.agent("agent-zombie", storage=table)
    world.create(table, agent="agent-zombie", process=agent)
    gate, opened = world.folder / "gate-zombie", world.folder / "gate-zombie-task"
    opened.touch()
    # A batch with a gate is one task, which writes one file.
    batches = [
        {"rows": rows(range(5), "a", "before", 1)},
        {"rows": rows(range(5, 10), "a", "lost", 1), "after": str(gate), "gate": str(opened)},
    ]
    writer = table.writer(
        "writer", python={"batches": batches}, operation="bulk_insert", duplicates="Allow", spark=EXECUTORS
    )
    until("the first commit is there", Path(f"{gate}.reached").exists, alive=writer)
    held = proxy.hold_next(s3proxy.data_file)
    gate.touch()
    until("its executor sends the data file", held.arrived.is_set, alive=writer)
    (instant,) = table.pending()
    os.kill(executor_of(writer), signal.SIGKILL)
    assert writer.wait() == 0, writer.log()[-6000:]
    assert instant not in table.pending(), "it committed"
    assert writer.inc in table.names("writer/"), "it has left, and nobody waits for the proof of its executor's death"
    assert table.names("instant/") == {instant}, "of the commit before the loss nothing is left to look at"
    (file,) = table.data_files(instant)
    held.deliver.set()
    until("the late file is there", held.delivered.is_set)
    assert " 200 " in held.answer, held.answer
    late = held.line.split(" ")[1].partition("?")[0].rsplit("/", 1)[1]
    found = {path.rsplit("/", 1)[1] for path in table.data_files(instant)}
    assert found == {late, file.rsplit("/", 1)[1]}, "the store has one file of each executor"
    inc = table.fence(writer)
    assert until("swept", lambda: table.outcomes(inc), alive=agent) == {instant: "Completed"}
    assert table.data_files(instant) == [file], "the late file doubles rows, or the commit's own one is gone"
    table.settled(inc)
    listed = world.spark().read.format("hudi").option("hoodie.metadata.enable", "false").load(table.path)
    assert sorted((row.id, row.v) for row in listed.collect()) == [
        *((n, "before") for n in range(5)),
        *((n, "lost") for n in range(5, 10)),
    ]
    table.audited(rows(range(5), "a", "before", 1) + rows(range(5, 10), "a", "lost", 1))
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]
    proxy.stop()
