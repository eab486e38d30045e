"""The operation RemoveDuplicates: of doubled keys one record stays, the one that the table's merge
keeps, and nothing else changes (F68).
"""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_runtime.audit import Outcome
from hudi_runtime.job.job import TableSpec
from hudi_runtime.job.merging import Merge
from hudi_runtime.process.errors import UserCodeError
from hudi_runtime.read import remove_duplicates
from tests.support.harness.in_its_write import done, stopped_in_its_write
from tests.support.harness.local import AGENT, Process, Row, Table, World, rows, until


def files_of(table: Table, partition: str) -> list[str]:
    return [name for name in table.data_files() if name.startswith((f"{partition}/", f"p={partition}/"))]


META = (
    "_hoodie_commit_time string, _hoodie_commit_seqno string, _hoodie_record_key string, _hoodie_partition_path "
    "string, _hoodie_file_name string"
)
SPEC = TableSpec(
    "id", "ns/t", "t", "s3a://lake/t", "MERGE_ON_READ", ("id",), ("p",), ("ts",), False, merge=Merge("EventTime")
)


def test_which_record_stays(world: World) -> None:
    """Of each key in each partition the one that the merge would keep.

    Whole partitions, and only those with a doubled key.
    """

    def row(
        key: str, path: str, time: str, number: int, v: str, ts: int | None, p: str | None = None
    ) -> tuple[object, ...]:
        return (time, f"{time}_0_{number}", key, path, "f", key, p or path, v, ts)

    found = [
        row("1", "a", "1", 1, "late", 5),
        row("1", "a", "2", 1, "early", 4),
        row("2", "a", "1", 1, "same, before", 5),
        row("2", "a", "2", 1, "same, later", 5),
        row("3", "a", "1", 9, "one batch, ninth", 5),
        row("3", "a", "1", 10, "one batch, tenth", 5),
        row("4", "a", "1", 1, "alone", 1),
        row("5", "a", "9", 1, "without a value", None),
        row("5", "a", "1", 1, "with one", 1),
        row("1", "b", "1", 1, "in another partition", 1),
    ]

    def stay(spec: TableSpec, *more: tuple[object, ...]) -> dict[str, str]:
        frame = world.spark().createDataFrame([*found, *more], f"{META}, id string, p string, v string, ts long")
        kept = remove_duplicates.once(frame, spec)
        assert kept.columns == ["id", "p", "v", "ts"]
        return {r.id: r.v for r in kept.collect() if r.p == "a"} | {
            f"{r.id} in {r.p}": r.v for r in kept.collect() if r.p != "a"
        }

    event = {"1": "late", "2": "same, later", "3": "one batch, tenth", "4": "alone", "5": "with one"}
    assert stay(SPEC) == event
    assert stay(replace(SPEC, merge=Merge("CommitTime"))) == event | {"1": "early", "5": "without a value"}
    assert stay(SPEC, row("9", "c", "1", 1, "c", 1), row("1", "b", "2", 1, "newer", 2)) == event | {"1 in b": "newer"}
    with pytest.raises(UserCodeError, match="record 8 of partition a: its partition columns give another partition"):
        stay(SPEC, row("8", "a", "1", 1, "v", 1, "elsewhere"))


@pytest.mark.extra
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_one_record_of_each_key_stays(world: World, agent: Process, kind: str) -> None:
    """Keys doubled in one file group and across.

    A commit to one of them meanwhile is a conflict, and is in what stays.
    """
    table = world.table(f"doubled-{kind.lower()}", type=kind)
    world.create(table, agent=AGENT, process=agent)

    def write(who: str, batch: list[Row], operation: str, duplicates: str | None = None) -> None:
        done(table.writer(who, operation=operation, duplicates=duplicates, python={"batches": [{"rows": batch}]}))

    write("seed", [*rows(range(6), "a", "seed", 2), *rows(range(3), "b", "seed", 2)], "upsert")
    done(table.writer("nothing", operation="remove_duplicates"), commits=0)
    write("packed", [*rows([0], "a", "packed", 5), *rows([1], "a", "packed", 1)], "insert", "Allow")
    write(
        "bulk",
        [
            *rows([1], "a", "bulk", 4),
            *rows([2], "a", "bulk", 1),
            *rows([9], "a", "less", 1),
            *rows([9], "a", "more", 3),
        ],
        "bulk_insert",
        "Allow",
    )
    write("tie", rows([3], "a", "tie", 2), "bulk_insert", "Allow")
    write("update", rows([4], "a", "update", 3), "upsert")
    assert table.audit().get("unique").outcome is Outcome.VIOLATED
    untouched = files_of(table, "b")

    after = world.folder / f"after-{kind}"
    quick = table.writer("quick", python={"batches": [{"rows": rows([1, 5], "a", "quick", 9), "after": str(after)}]})
    until("the other writer is ready", Path(f"{after}.reached").exists, alive=quick)
    verb = table.writer("verb", operation="remove_duplicates", retries=5)
    stopped_in_its_write(table, verb)
    after.touch()
    done(quick)
    verb.signal(signal.SIGCONT)
    done(verb, conflicts=1)
    stay = [
        *rows([0], "a", "packed", 5),
        *rows([1, 5], "a", "quick", 9),
        *rows([2], "a", "seed", 2),
        *rows([3], "a", "tie", 2),
        *rows([4], "a", "update", 3),
        *rows([9], "a", "more", 3),
        *rows(range(3), "b", "seed", 2),
    ]
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited(stay)
    assert files_of(table, "b") == untouched, "a partition without doubled keys is not written"
    done(table.writer("again", operation="remove_duplicates"), commits=0)
    write("later", rows([1], "a", "later", 10), "upsert")
    table.audited([*(row for row in stay if row[:2] != (1, "a")), *rows([1], "a", "later", 10)])
