"""Rows that come out otherwise each time are committed as they were computed once (F106)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.harness import random_keys
from tests.support.harness.executors import EXECUTORS
from tests.support.harness.local import AGENT, Process, World

SPARK = {
    **EXECUTORS,
    "spark.master": "local-cluster[2,1,512]",
    "spark.default.parallelism": "8",
    "spark.sql.shuffle.partitions": "8",
}


@pytest.mark.extra
def test_keys_that_are_made_anew_when_an_executor_is_lost(world: World, agent: Process) -> None:
    """Each row that was lost with the executor gets another key, and with it another partition:
    one that is written already, or another one once more. If that is committed, rows are lost and
    doubled (seen once without the check: 4,017 rows instead of 4,000, with some missing).
    """
    table = world.table("random-keys")
    world.create(table, agent=AGENT, process=agent)
    marker = world.folder / "executor-was-killed"
    job = {
        "file": Path(random_keys.__file__),
        "function": "keys",
        "python": {"marker": str(marker)},
        "options": {"hoodie.upsert.shuffle.parallelism": "8"},
        "spark": SPARK,
    }
    first = table.writer("writer", **job)
    assert first.wait() == 11, first.log()[-6000:]
    assert marker.exists(), "nobody was killed"
    told = first.termination()
    assert (told["class"], told["commits"]) == ("Infrastructure", 0), told
    assert told["message"].startswith("[HUDIOP-RECOMPUTED]"), told
    table.fence(first)
    again = table.writer("writer", **job)
    assert again.wait() == 0, again.log()[-6000:]
    found = world.spark().read.format("hudi").load(table.path)
    assert sorted(int(row.v) for row in found.select("v").collect()) == list(range(random_keys.ROWS))
