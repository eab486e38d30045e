"""What readers see while a writer commits (RFC-22 R55): all of a commit or nothing of it, in every
file group, with Hudi's reader and with hudi-rs.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tests.support.harness import own_rows
from tests.support.harness.local import Process, Table, World, committed, rows, until

PARTITIONS = "abcd"
COMMITS = 6


@pytest.fixture(scope="module")
def tended(world: World) -> tuple[World, str, Process]:
    name = "agent-readers"
    return world, name, world.agent(name, storage=world.table("readers-any"))


def by_spark(table: Table) -> list[str]:
    frame = table.world.spark().read.format("hudi").option("hoodie.enable.data.skipping", "false").load(table.path)
    return [row.v for row in frame.select("v").collect()]


def by_hudi_rs(table: Table) -> list[str]:
    builder = importlib.import_module("hudi").HudiTableBuilder.from_base_uri(table.path.replace("s3a://", "s3://"))
    snapshot = builder.with_options(table.world.s3_reader_options()).build().read_stream()
    record_batch = importlib.import_module("pyarrow").record_batch
    return [value for batch in snapshot for value in record_batch(batch).to_pydict()["v"]]


READERS = {"Spark": by_spark, "hudi-rs": by_hudi_rs}


@pytest.mark.parametrize("kind", [pytest.param("CopyOnWrite", marks=pytest.mark.extra), "MergeOnRead"])
def test_a_commit_is_seen_whole_or_not_at_all(tended: tuple[World, str, Process], kind: str) -> None:
    """Each commit rewrites every row of four partitions, so a snapshot has one value.

    And it never goes back.
    """
    world, name, agent = tended
    table = world.table(f"whole-{kind.lower()}", type=kind)
    world.create(table, agent=name, process=agent)

    def batch(number: int) -> dict[str, Any]:
        return {
            "rows": [
                row
                for at, p in enumerate(PARTITIONS)
                for row in rows(range(10 * at, 10 * at + 10), p, f"{number:03d}", number)
            ]
        }

    world.spark()
    writer = table.writer("writer", python={"batches": [batch(number) for number in range(COMMITS + 1)]})
    until("the first commit is there", lambda: committed(table.folder), alive=writer)
    seen: dict[str, list[str]] = {reader: [] for reader in READERS}
    while writer.poll() is None:
        for reader, read in READERS.items():
            values = read(table)
            assert len(values) == 10 * len(PARTITIONS), f"{reader}: {sorted(values)}"
            assert len(set(values)) == 1, f"{reader} has seen a part of a commit: {sorted(values)}"
            seen[reader].append(values[0])
    assert writer.wait() == 0, writer.log()[-4000:]
    for reader, values in seen.items():
        print(f"{kind}, {reader}: {len(values)} looks, {len(set(values))} of {COMMITS + 1} states")
        assert values == sorted(values), f"{reader} has seen the table go back"
        assert len(set(values)) >= 3, f"{reader} has seen too few states for this to say something: {values}"
    table.audited(batch(COMMITS)["rows"])
    own_rows.same(table.folder, batch(COMMITS)["rows"])
