"""The operations InsertOverwrite and DeletePartition: rows of partitions, or of the table, are
replaced by those of a batch, or by nothing.

Whoever commits to them meanwhile makes it write again, and no row is lost or there twice.
"""

from __future__ import annotations

import json
import signal
from typing import Any
from urllib.parse import urlparse

import pytest

from hudi_runtime.job.job import TableSpec
from hudi_runtime.process.errors import UserCodeError
from hudi_runtime.read import delete_partition
from hudi_runtime.writer import overwrite
from tests.support.harness import s3proxy
from tests.support.harness.in_its_write import done, stopped_in_its_write
from tests.support.harness.local import AGENT, Process, Row, Table, World, rows, until

APART = {"hoodie.parquet.small.file.limit": "0"}
"""A new key gets a file group of its own, which Hudi compares with nobody's."""
KINDS: dict[str, dict[str, Any]] = {
    "cow": {"type": "CopyOnWrite"},
    "mor": {"type": "MergeOnRead"},
    "mor-bucket": {"type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 2}},
}
SEED = rows(range(3), "b", "seed", 2)


def files_of(table: Table, partition: str) -> list[str]:
    return [name for name in table.data_files() if name.startswith(f"{partition}/")]


def started(table: Table, who: str, *batches: list[Row], operation: str = "insert_overwrite", **job: Any) -> Process:
    return table.writer(who, operation=operation, python={"batches": [{"rows": batch} for batch in batches]}, **job)


def made(world: World, agent: Process, name: str, **spec: Any) -> Table:
    """A table with six rows in partition `a` and three in `b`."""
    table = world.table(name, **spec)
    world.create(table, agent=AGENT, process=agent)
    done(started(table, "seed", [*rows(range(6), "a", "seed", 2), *SEED], operation="upsert"))
    return table


def beside(table: Table, slow: Process, who: str, batch: list[Row], *, conflicts: int, **job: Any) -> None:
    """Another writer commits this batch between the two holds of the lock of `slow`."""
    stopped_in_its_write(table, slow)
    done(started(table, who, batch, **{"operation": "upsert", "options": APART, **job}))
    slow.signal(signal.SIGCONT)
    done(slow, conflicts=conflicts)


@pytest.mark.extra
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_replaces_its_partitions(world: World, agent: Process, kind: str) -> None:
    """Others stay as they are; a commit to them is no conflict, and one to its own is."""
    table = made(world, agent, f"over-{kind}", **KINDS[kind])
    untouched = files_of(table, "b")
    first = [*rows([1, 9], "a", "first", 1), *rows([4], "c", "first", 1)]
    done(started(table, "first", first))
    assert files_of(table, "b") == untouched, "a partition without rows in the batch is not written"
    done(started(table, "first", rows([1], "b", "again", 1)), commits=0)  # the next attempt of a run that has committed

    second = rows([1, 2], "a", "second", 3)
    beside(table, started(table, "same", second), "quick", rows([20], "a", "quick", 9), conflicts=1)
    kept = [*SEED, *rows([4], "c", "first", 1)]
    table.audited([*second, *kept])

    third = rows([2, 3], "a", "third", 4)
    beside(table, started(table, "apart", third), "aside", rows([30], "b", "aside", 9), conflicts=0)
    kept += rows([30], "b", "aside", 9)

    slow = started(table, "updater", rows([3], "a", "updated", 8), operation="upsert")
    last = rows([7], "a", "last", 5)
    beside(table, slow, "last", last, conflicts=1, operation="insert_overwrite")
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited([*last, *rows([3], "a", "updated", 8), *kept])


@pytest.mark.extra
@pytest.mark.timeout(1800)
def test_a_batch_replaces_the_table(world: World, agent: Process) -> None:
    """Any commit meanwhile is a conflict, and a batch without rows replaces nothing unasked."""
    table = made(world, agent, "over-all")
    whole: dict[str, Any] = {"operation": "insert_overwrite_table"}
    for who, batches, kind, commits, said in (
        ("nothing", [[]], "BadData", 0, overwrite.NO_ROWS),
        ("two", [rows([1], "a", "x", 1), rows([2], "a", "x", 1)], "UserError", 1, "more than one batch"),
        ("doubled", [[*rows([1], "a", "x", 1), *rows([1], "a", "y", 2)]], "BadData", 0, "has this key more than once"),
    ):
        refused = started(table, who, *batches, **whole)
        assert refused.wait() != 0
        assert (refused.termination()["class"], refused.termination()["commits"]) == (kind, commits)
        assert said in refused.termination()["message"], refused.termination()
    only = [*rows([1], "c", "only", 1)]
    slow = started(table, "slow", [*rows([1], "c", "less", 0), *only], duplicates="Drop", **whole)
    beside(table, slow, "quick", rows([20], "d", "quick", 9), conflicts=1)
    table.audited(only)
    done(started(table, "emptied", [], may_truncate=True, **whole))
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited([])
    done(started(table, "later", SEED, operation="upsert"))
    table.audited(SEED)


@pytest.mark.extra
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_partitions_are_deleted_by_name(world: World, agent: Process, kind: str) -> None:
    """Those with rows that match; what is committed to them meanwhile is deleted, too."""
    table = made(world, agent, f"dropped-{kind}", **KINDS[kind])
    done(started(table, "more", rows([1], "aa", "more", 2), operation="upsert"))
    drop: dict[str, Any] = {"operation": "delete_partition", "partitions": ["a*"]}
    slow = table.writer("drop", retries=5, **drop)
    beside(table, slow, "quick", rows([20], "a", "quick", 9), conflicts=1)
    done(table.writer("again", **drop), commits=0)  # no partition with rows matches
    done(started(table, "later", rows([1], "a", "later", 1), operation="upsert"))
    done(table.writer("drop", **drop), commits=0)  # the next attempt of the run that has committed
    table.audited([*SEED, *rows([1], "a", "later", 1)])

    beside(table, table.writer("apart", **drop), "aside", rows([30], "b", "aside", 9), conflicts=0)
    kept = [*SEED, *rows([30], "b", "aside", 9)]
    done(started(table, "anew", rows([1, 2], "a", "anew", 2), operation="upsert"))
    slow = started(table, "updater", rows([2], "a", "updated", 8), operation="upsert")
    stopped_in_its_write(table, slow)
    done(table.writer("last", **drop))
    slow.signal(signal.SIGCONT)
    done(slow, conflicts=1)
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited([*kept, *rows([2], "a", "updated", 8)])


@pytest.mark.extra
def test_a_pending_overwrite_says_what_it_replaces(world: World) -> None:
    """F491: a commit of lower priority to its partition waits for it; one to another does not."""
    server = urlparse(world.start_s3())
    proxy = s3proxy.Proxy("127.0.0.1", (str(server.hostname), int(server.port or 80)))
    spec = world.table("over-ahead", endpoint=proxy.url)
    agent = world.agent("agent-ahead", storage=spec)
    world.create(spec, agent="agent-ahead", process=agent)
    done(started(spec, "seed", [*rows(range(6), "a", "seed", 2), *SEED], operation="upsert"))
    held = proxy.hold_next(s3proxy.data_file)
    live = started(spec, "live", rows([1, 2], "a", "live", 3), priority=10, retries=0)
    until("it writes its data file", held.arrived.is_set, alive=live)
    (inflight,) = spec.pending()
    new = rows([20], "a", "backfill", 9)
    backfill = started(spec, "backfill", new, operation="upsert", options=APART, retries=0)
    report = f"report/attempt/{backfill.name}"
    until("backfill gives way", lambda: (spec.get(report) or {}).get("stage") == "Yielding", alive=backfill)
    done(started(spec, "elsewhere", rows([30], "b", "aside", 9), operation="upsert", options=APART, priority=-10))
    held.deliver.set()
    done(live, conflicts=0)
    assert backfill.wait() == 0, backfill.log()[-4000:]
    (conflict,) = (spec.get(report) or {})["conflicts"]
    assert (conflict["with"], conflict["yielded"], conflict["fileGroups"]) == (inflight, True, ["a/*"])
    until("nothing is left pending", lambda: not spec.pending(), alive=agent)
    spec.audited([*rows([1, 2], "a", "live", 3), *new, *rows([30], "b", "aside", 9), *SEED])
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]
    proxy.stop()


@pytest.mark.extra
def test_a_late_file_replaces_nothing_alone(world: World, agent: Process) -> None:
    """F490: each run reads all files of its paths, and each run commits once."""
    table = made(world, agent, "over-files")
    folder = world.lake / "landing" / "late"
    folder.mkdir(parents=True)
    first, late = rows([1, 2], "a", "first", 5), rows([7], "a", "late", 5)

    def arrives(name: str, batch: list[Row]) -> None:
        lines = [json.dumps(dict(zip(("id", "p", "v", "ts"), row, strict=True))) for row in batch]
        (folder / name).write_text("\n".join(lines))

    job: dict[str, Any] = {
        "operation": "insert_overwrite",
        "files": {"format": "json", "paths": [f"{world.url(folder)}/*.json"], "options": {}},
        "transform": "SELECT int(id) AS id, p, v, ts FROM source",
    }
    arrives("1.json", first)
    done(table.writer("files", **job))
    table.audited([*first, *SEED])
    arrives("2.json", late)
    done(table.writer("files", **job), commits=0)  # the next attempt of a run that has committed
    done(table.writer("files", run=2, **job))
    table.audited([*first, *late, *SEED])


def test_a_name_that_hudi_reads_as_others_is_refused(world: World) -> None:
    columns = "p string, _hoodie_partition_path string"
    spec = TableSpec("id", "ns/t", "t", "s3a://lake/t", "COPY_ON_WRITE", ("id",), ("p",), (), hive_style=False)
    there = world.spark().createDataFrame([(p, p) for p in ("a", "a1", "b", "c,d")], columns)
    assert delete_partition.found(there, spec, ["a*"]) == ["a", "a1"]
    assert delete_partition.found(there, spec, ["?"]) == ["a", "b"]
    with pytest.raises(UserCodeError, match="partition c,d: Hudi takes a comma"):
        delete_partition.found(there, spec, ["*"])
