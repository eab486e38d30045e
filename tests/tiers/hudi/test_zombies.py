"""A commit during which an executor was lost: what that one writes after it is no row of
the table (F36).
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.support.harness.executors import EXECUTORS, executor_of
from tests.support.harness.local import AGENT, Process, World, rows, until


@pytest.mark.extra
def test_a_file_of_a_lost_executor_that_comes_after_the_commit_is_swept(world: World, agent: Process) -> None:
    """A bulk insert names its file groups in the executor.

    Readers that list files would show the rows of the second file, too. `Allow`: to look the keys
    up computes the batch once before the write, and the gate belongs into the write.
    """
    table = world.table("zombie")
    world.create(table, agent=AGENT, process=agent)
    gate = world.folder / "gate-zombie"
    batches = [
        {"rows": rows(range(5), "a", "before", 1)},
        {"rows": rows(range(5, 10), "a", "lost", 1), "gate": str(gate)},
    ]
    writer = table.writer(
        "writer", python={"batches": batches}, operation="bulk_insert", duplicates="Allow", spark=EXECUTORS
    )
    until("the write is under way", lambda: Path(f"{gate}.reached").exists() and table.pending(), alive=writer)
    (instant,) = table.pending()
    Path(f"{gate}.reached").unlink()
    os.kill(executor_of(writer), signal.SIGKILL)
    until("its task is repeated by another executor", Path(f"{gate}.reached").exists, alive=writer)
    gate.touch()
    assert writer.wait() == 0, writer.log()[-6000:]
    assert instant not in table.pending(), "it committed"
    assert writer.inc in table.names("writer/"), "it has left, and nobody waits for the proof of its executor's death"
    assert table.names("instant/") == {instant}, "of the commit before the loss nothing is left to look at"
    (file,) = table.data_files(instant)
    late = table.folder / Path(file).parent / f"00000000-1111-2222-3333-444444444444-0_0-1-1_{instant}.parquet"
    shutil.copy(table.folder / file, late)
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
