"""A writer that lost an executor and gave up an instant is not believed on its word: its executors
need proof of their end (F4).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.harness import lost_executor
from tests.support.harness.compactions import OFF
from tests.support.harness.executors import EXECUTORS
from tests.support.harness.local import AGENT, CLASS_PATH, Process, World, rows


def test_a_killed_executor_is_remembered() -> None:
    """F559: whoever cannot tell says that one may be lost. F560: a slow listener of the program is
    nobody's concern.
    """
    script = Path(lost_executor.__file__)
    ran = subprocess.run(
        [sys.executable, str(script), CLASS_PATH], capture_output=True, text=True, timeout=400, check=False
    )
    said = [line for line in ran.stdout.splitlines() if line.partition(":")[1]]
    assert said == [
        "nobody counts: True",
        "beside a slow listener: False 0",
        f"queue: {2**31 - 1}",
        "late events: True",
        "all is heard: False",
        "killed: True",
    ], ran.stdout + ran.stderr[-3000:]


COMMITS = 34
"""More than the metadata table keeps (Hudi's default: 30)."""


@pytest.mark.extra
def test_a_writer_with_executors_archives_the_metadata_table(world: World, agent: Process) -> None:
    """F503: its tasks delete files of the timeline, and the lock is the driver's."""
    table = world.table("with-executors", services=OFF)
    world.create(table, agent=AGENT, process=agent)
    sent = [rows([number], "a", "v", 1) for number in range(COMMITS)]
    writer = table.writer("writer", python={"batches": [{"rows": batch} for batch in sent]}, spark=EXECUTORS)
    assert writer.wait(600) == 0, writer.log()[-4000:]
    timeline = table.folder / ".hoodie/metadata/.hoodie/timeline"
    kept = {file.name[:17] for file in timeline.iterdir() if "deltacommit" in file.name}
    assert kept, "its instants are here"
    assert "0" * 17 not in kept, "the first instant of each metadata table was not archived"
    table.audited([row for batch in sent for row in batch])
