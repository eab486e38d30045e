"""`duplicates` of a writer that inserts: Fail, Drop and Allow, lone and beside others (F62)."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.compactions import OFF
from tests.support.harness.in_its_write import done, stopped_in_its_write
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


def keys(table: Table) -> Counter[tuple[int, str]]:
    found = table.world.spark().read.format("hudi").load(table.path).select("id", "p").collect()
    return Counter((row.id, row.p) for row in found)


def refused(writer: Process, number: int, why: str) -> None:
    assert writer.wait() == 10, writer.log()[-4000:]
    told = writer.termination()
    assert told["class"] == "BadData"
    assert f"column id of record id='{number}' of partition p='a'" in told["message"], told
    assert why in told["message"]


BLOOM = {"index": {"type": "Bloom"}}
BUCKET = {"type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 1}}
FREE = {**BUCKET, "concurrency": {"mode": "NonBlocking"}}


NOT_HELD: dict[str, Mapping[str, str]] = {
    "bucket-merge": not_seen("hudi-rs", "incremental"),
    "bucket-free": not_seen("hudi-rs", "incremental", "overlap"),
}


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        pytest.param("merge", {"type": "MergeOnRead"}, id="merge"),
        pytest.param("copy", {}, id="copy", marks=pytest.mark.extra),
        pytest.param("bloom-merge", {"type": "MergeOnRead", **BLOOM}, id="bloom-merge", marks=pytest.mark.extra),
        pytest.param("bloom-copy", BLOOM, id="bloom-copy", marks=pytest.mark.extra),
        pytest.param("bucket-merge", BUCKET, id="bucket-merge", marks=pytest.mark.extra),
        pytest.param("bucket-free", FREE, id="bucket-free", marks=pytest.mark.extra),
    ],
)
def test_fail_drop_and_allow(world: World, agent: Process, name: str, spec: dict[str, Any]) -> None:
    """Nobody doubles a key who has not said Allow: neither alone nor beside a writer that commits
    the key while the insert is written. In a bucket of a MergeOnRead table Allow doubles none
    either: readers merge the records of one key.
    """
    table = world.table(f"duplicates-{name}", **spec)
    world.create(table, agent=AGENT, process=agent)

    buckets = "buckets" in spec.get("index", {})

    def start(who: str, operation: str, batch: list[Row], duplicates: str | None = None) -> Process:
        if buckets and operation == "bulk_insert":
            operation = "insert"  # the operator does so
        return table.writer(who, operation=operation, duplicates=duplicates, python={"batches": [{"rows": batch}]})

    refused(
        start("first", "bulk_insert", [*rows([1], "a", "x", 1), *rows([1], "a", "y", 2)]),
        1,
        "the batch has this key more than once",
    )
    done(
        start(
            "drop-first",
            "insert",
            [*rows(range(4), "a", "old", 1), *rows(range(2), "a", "seed", 2), *rows([1], "b", "seed", 1)],
            "Drop",
        )
    )
    present = [*rows(range(2), "a", "seed", 2), *rows([2, 3], "a", "old", 1), *rows([1], "b", "seed", 1)]
    table.audited(present, without=NOT_HELD.get(name, NOTHING))

    files = world.lake / f"duplicates-{name}-files"
    files.mkdir()
    (files / "part.json").write_text('{"id": 4, "p": "a", "v": "f", "ts": 1}\n{"id": 3, "p": "a", "v": "f", "ts": 1}\n')
    source = {"format": "json", "paths": [world.url(files)], "options": {}, "maxFilesPerCommit": None}
    lone = table.writer(
        "lone", operation="insert", files=source, transform="SELECT int(id) AS id, p, v, ts FROM source"
    )
    refused(lone, 3, "part.json: the table has this key already")

    # A writer that commits one of their keys after they have looked.
    first, second = (world.folder / f"after-{name}-{number}" for number in (1, 2))
    quick = table.writer(
        "quick",
        python={
            "batches": [
                {"rows": rows([number], "a", "quick", 1), "after": str(after)}
                for number, after in ((20, first), (30, second))
            ]
        },
    )
    until("the other writer is ready", Path(f"{first}.reached").exists, alive=quick)
    fails = start("fails", "bulk_insert", rows([20, 21], "a", "fails", 9))
    stopped_in_its_write(table, fails)
    first.touch()
    until("its key is committed", Path(f"{second}.reached").exists, alive=quick)
    fails.signal(signal.SIGCONT)
    refused(fails, 20, "the table has this key already")
    assert fails.termination()["conflicts"] == 1
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    drops = start("drops", "insert", [*rows([2, 30, 31], "a", "drops", 9), *rows([2], "b", "drops", 9)], "Drop")
    stopped_in_its_write(table, drops)
    second.touch()
    done(quick, commits=2)
    drops.signal(signal.SIGCONT)
    done(drops, conflicts=1)
    present += [*rows([20, 30], "a", "quick", 1), *rows([31], "a", "drops", 9), *rows([2], "b", "drops", 9)]
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited(present, without=NOT_HELD.get(name, NOTHING))

    done(start("bulk", "bulk_insert", rows([3], "a", "bulk", 9), "Allow"))
    done(start("insert", "insert", rows([3], "a", "insert", 9), "Allow"))
    doubled = 0 if buckets else 2
    assert keys(table) == Counter({row[:2]: 1 for row in present}) + Counter({(3, "a"): doubled})


@pytest.mark.extra
@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_a_deleted_key_is_inserted_and_written_again(world: World, agent: Process, operation: str) -> None:
    """F325: the base file still has the key that a log file has deleted. An insert puts the record
    into another file group, and the next upsert finds both.
    """
    name = f"deleted-{operation.replace('_', '-')}"
    table = world.table(name, type="MergeOnRead", services=OFF)
    world.create(table, agent=AGENT, process=agent)

    def write(who: str, operation: str, batch: list[Row]) -> None:
        done(table.writer(who, operation=operation, python={"batches": [{"rows": batch}]}))

    write("first", "upsert", rows(range(4), "a", "first", 1))
    write("delete", "delete", rows([2], "a", "", 2))
    write("insert", operation, rows([2, 7], "a", "again", 3))
    kept = rows([0, 1, 3], "a", "first", 1)
    table.audited([*kept, *rows([2, 7], "a", "again", 3)])
    write("update", "upsert", rows([2, 7], "a", "last", 4))
    table.audited([*kept, *rows([2, 7], "a", "last", 4)])
    write("gone", "delete", rows([2], "a", "", 5))
    table.audited([*kept, *rows([7], "a", "last", 4)])
