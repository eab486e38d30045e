"""Which index keeps a key where it is, when two writers move it to two partitions at once and both
bring a new one (R4, R6): docs/use/indexes.md.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.local import (
    AGENT,
    NOTHING,
    Process,
    Row,
    Table,
    World,
    rows,
    until,
)
from tests.support.oracle import not_seen

pytestmark = pytest.mark.extra
MOVED = {(1, "a", "seed"), (1, "b", "slow"), (1, "c", "quick")}
"""A key is one of its partition: moving it is a delete there and an insert here, and nobody does
the delete.
"""


def keys(table: Table) -> tuple[set[tuple[int, str, str]], Counter[tuple[int, str]]]:
    """Where key 1 is, and how often each other key is in each partition."""
    found = [
        (row.id, row.p, row.v)
        for row in table.world.spark().read.format("hudi").load(table.path).select("id", "p", "v").collect()
    ]
    return {row for row in found if row[0] == 1}, Counter(row[:2] for row in found if row[0] != 1)


def race(world: World, table: Table, *, slow: list[Row], quick: list[Row]) -> Process:
    """Key 1 is in partition a; slow begins to write, quick writes and commits, then slow does.

    Returns slow.
    """
    gate = world.folder / f"gate-{table.spec.ref.name}"
    seed = {"rows": rows([1], "a", "seed", 1)}
    first = table.writer("slow", python={"batches": [seed, {"rows": slow, "gate": str(gate)}]})
    until("the slow write is under way", Path(f"{gate}.reached").exists, alive=first)
    second = table.writer("quick", python={"batches": [{"rows": quick}]})
    assert second.wait() == 0, second.log()[-4000:]
    gate.touch()
    assert first.wait() == 0, first.log()[-4000:]
    return first


@pytest.mark.parametrize(
    ("name", "spec", "conflicts", "nines"),
    [
        ("simple", {"index": {"type": "Simple"}}, 1, 1),
        ("simple-merge", {"type": "MergeOnRead", "index": {"type": "Simple"}}, 1, 1),
        ("bloom", {"index": {"type": "Bloom"}}, 1, 1),
        ("bloom-merge", {"type": "MergeOnRead", "index": {"type": "Bloom"}}, 1, 1),
        ("ignored", {"index": {"type": "Simple"}, "concurrency": {"insertConflicts": "Ignore"}}, 0, 2),
        ("bucket", {"index": {"type": "Bucket", "buckets": 1}}, 1, 1),
        ("bucket-merge", {"type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 1}}, 1, 1),
        (
            "bucket-free",
            {"type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 1}, "concurrency": {"mode": "NonBlocking"}},
            0,
            1,
        ),
    ],
)
def test_an_index_that_is_allowed(
    world: World, agent: Process, name: str, spec: dict[str, Any], conflicts: int, nines: int
) -> None:
    """A key of two partitions is two records with each of them.

    Two inserts of one new key into one partition are one, unless the table says otherwise.
    """
    table = world.table(f"index-{name}", **spec)
    world.create(table, agent=AGENT, process=agent)
    slow = race(
        world,
        table,
        slow=[*rows([1], "b", "slow", 3), *rows([9], "z", "slow", 3)],
        quick=[*rows([1], "c", "quick", 2), *rows([9], "z", "quick", 2)],
    )
    assert slow.termination()["conflicts"] == conflicts
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    assert keys(table) == (MOVED, Counter({(9, "z"): nines}))
    # The table can be written to afterwards, and with each index the record that an upsert finds is
    # the one it changes.
    after = table.writer("after", python={"batches": [{"rows": rows([9], "z", "after", 5)}]})
    assert after.wait() == 0, after.log()[-4000:]
    assert keys(table) == (MOVED, Counter({(9, "z"): nines}))
    due = [
        *rows([1], "a", "seed", 1),
        *rows([1], "b", "slow", 3),
        *rows([1], "c", "quick", 2),
        *rows([9], "z", "after", 5),
    ]
    if nines == 2:
        table.audited(
            None,
            unique="not asked",
            without={
                "rows": "which of the two records of key 9 the upsert changes is not promised",
                **not_seen("hudi-rs", "incremental"),
            },
        )
    else:
        buckets = not_seen("hudi-rs", "incremental", "overlap")
        table.audited(due, without=buckets if name.startswith("bucket") else NOTHING)


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_any_two_inserts_into_one_partition_conflict(world: World, agent: Process, kind: str) -> None:
    """`insertConflicts: Partition`: whatever their keys are; into two partitions they do not."""
    table = world.table(f"partition-{kind.lower()}", type=kind, concurrency={"insertConflicts": "Partition"})
    world.create(table, agent=AGENT, process=agent)
    slow = race(world, table, slow=rows([8], "z", "slow", 3), quick=rows([9], "z", "quick", 2))
    assert slow.termination()["conflicts"] == 1
    gate = world.folder / f"gate-elsewhere-{kind}"
    first = table.writer("first", python={"batches": [{"rows": rows([10], "x", "first", 3), "gate": str(gate)}]})
    until("the first write is under way", Path(f"{gate}.reached").exists, alive=first)
    second = table.writer("second", python={"batches": [{"rows": rows([11], "y", "second", 3)}]})
    assert second.wait() == 0, second.log()[-4000:]
    gate.touch()
    assert first.wait() == 0, first.log()[-4000:]
    assert first.termination()["conflicts"] == 0
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    written = [(1, "a", "seed", 1), (8, "z", "slow", 3), (9, "z", "quick", 2), (10, "x", "first", 3)]
    table.audited([*written, (11, "y", "second", 3)])


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.index.type": "GLOBAL_SIMPLE"},
        {"hoodie.index.type": "GLOBAL_BLOOM"},
    ],
    ids=lambda options: options["hoodie.index.type"],
)
def test_an_index_that_the_api_refuses_does_not_keep_its_promise(
    world: World, agent: Process, options: dict[str, str]
) -> None:
    """Each key once in the whole table is what a global index is for.

    A new key that two writers bring to two partitions stands twice.
    """
    table = world.table(f"index-{options['hoodie.index.type'].lower().replace('_', '-')}", hudiOptions=options)
    world.create(table, agent=AGENT, process=agent)
    slow = race(world, table, slow=rows([9], "z", "slow", 3), quick=rows([9], "y", "quick", 2))
    assert slow.termination()["conflicts"] == 0
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    assert keys(table)[1] == Counter({(9, "y"): 1, (9, "z"): 1})
    # By partition each key stands once, and nothing else is wrong with it: what is broken is a
    # promise that only a global index makes.
    table.audited([*rows([1], "a", "seed", 1), *rows([9], "z", "slow", 3), *rows([9], "y", "quick", 2)])
