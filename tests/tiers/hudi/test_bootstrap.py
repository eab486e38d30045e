"""A table that begins with a plain Parquet dataset: written by the agent alone, whatever it dies
in, and then by writers like any other.
"""

from __future__ import annotations

import importlib
import re
import shutil
import uuid
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_contract.assignment import AssignmentRecord
from hudi_operator.plan.requests import bootstrap as operators_bootstrap
from hudi_runtime.agent import dataset
from hudi_runtime.audit.rows import for_hudi_rs
from hudi_runtime.process.errors import RuntimeFailure
from tests.support.harness.local import AGENT, Process, Table, World, rows, until
from tests.support.harness.stock_tables import StockTable
from tests.support.oracle import not_seen

pytestmark = pytest.mark.extra

ROWS = 3000
PARTITIONS = ("02", "a", "b")


def plain(folder: Path, ids: range = range(ROWS), *, name: str = "part-0", **columns: Any) -> Path:
    """A dataset as Spark or pandas would leave it: the partitions are directories `p=...`, and no
    column of the files.
    """
    for number, partition in enumerate(PARTITIONS):
        mine = [id for id in ids if id % len(PARTITIONS) == number]
        if ids and not mine:
            continue
        ints = pa.array(mine, pa.int32())
        made = {
            "id": ints,
            "v": pa.array([f"plain {id}" for id in mine]),
            "ts": pa.array([1] * len(mine), pa.int64()),
            **columns,
        }
        (folder / f"p={partition}").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(made), folder / f"p={partition}" / f"{name}.parquet")
    return folder


def expected(folder: Path) -> list[tuple[int, str, str, int]]:
    """The dataset's rows, as pandas reads its files."""
    frames = [
        pandas.read_parquet(file).assign(p=file.parent.name.removeprefix("p="))
        for file in sorted(folder.glob("p=*/*.parquet"))
    ]
    whole = pandas.concat(frames)
    return [(int(r.id), str(r.p), str(r.v), int(r.ts)) for r in whole.itertuples()]


def beginning(world: World, name: str, source: Path, **spec: Any) -> Table:
    return world.table(name, bootstrap={"source": {"path": world.url(source), "format": "Parquet"}}, **spec)


def ask(table: Table) -> None:
    """What the operator asks for when the agent has reported the empty table behind the gate that
    was never open.
    """
    source = table.spec.bootstrap
    assert source is not None
    table.ask(operators_bootstrap.request(table.spec.ref.uid, source).to_json())


def created(table: Table, name: str, agent: Process) -> None:
    table.gate("closed")
    table.world.admit_agent(table, name)
    until("the table is created", lambda: table.report().get("exists"), alive=agent)
    ask(table)


def record(table: Table) -> dict[str, Any]:
    return table.get("done/bootstrap") or {}


def ended(table: Table, agent: Process, result: str) -> dict[str, Any]:
    return until(
        f"the bootstrap: {result}",
        lambda: record(table) if record(table).get("result") == result else None,
        alive=agent,
    )


@pytest.mark.parametrize("type", ["CopyOnWrite", "MergeOnRead"])
def test_a_table_begins_with_a_plain_dataset(world: World, type: str) -> None:
    """The agent is killed in the middle of it; the next one rolls its instant back and writes.

    Then a writer upserts.
    """
    name = f"begun-{type.lower()}"
    source = plain(world.lake / "plain" / name)
    table = beginning(world, name, source, type=type)
    agent = world.agent(f"agent-{name}")
    created(table, f"agent-{name}", agent)
    (killed,) = until("the write is under way", table.pending, alive=agent, every=0.01)
    agent.kill()
    assert table.pending() == {killed}, "it was killed in the middle"
    assert record(table)["result"] == "Running"

    inc = table.fence(agent)
    agent = world.agent(f"agent-{name}", pod=f"agent-{name}-2")
    world.admit_agent(table, f"agent-{name}", pod=f"agent-{name}-2")
    assert until("what it has left is settled", lambda: table.outcomes(inc), alive=agent) == {killed: "RolledBack"}
    table.settled(inc)
    done = ended(table, agent, "Completed")
    files = table.data_files()
    assert (done["records"], done["files"], done["failures"]) == (ROWS, len(files), 0)
    assert done["bytes"] == sum((table.folder / file).stat().st_size for file in files)
    assert table.data_files(killed) == []
    assert {file.partition("/")[0] for file in files} == set(PARTITIONS)
    (commit,) = [i for i in table.timeline().completed if i.action != "rollback"]
    assert (commit.requested, commit.completion) == (done["instant"], done["completionTime"])
    table.audited(expected(source))

    # An agent that dies between its commit and its word finds the commit, and does not write the
    # rows twice.
    table.world.etcd.delete(table.key("done/bootstrap"))
    again = ended(table, agent, "Completed")
    assert again["instant"] == commit.requested
    assert len([i for i in table.timeline().completed if i.action != "rollback"]) == 1

    table.gate("open")
    writer = table.writer(
        "upserts", python={"batches": [{"rows": [*rows(range(0, 30, 3), "02", "ours", 2), (ROWS, "a", "ours", 2)]}]}
    )
    assert writer.wait() == 0, writer.log()[-4000:]
    changed = {*range(0, 30, 3)}
    rest = [row for row in expected(source) if row[0] not in changed]
    table.audited([*rest, *rows(sorted(changed), "02", "ours", 2), (ROWS, "a", "ours", 2)])
    assert table.data_files(), "the dataset is not needed any more, and stays as it is"
    assert len(expected(source)) == ROWS
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]


def test_a_table_of_buckets_begins_with_a_plain_dataset(world: World) -> None:
    """NonBlocking: the rows lie in the file groups in which writers look for them."""
    source = plain(world.lake / "plain" / "buckets", range(60))
    spec = {"type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 2}, "concurrency": {"mode": "NonBlocking"}}
    table = beginning(world, "buckets", source, **spec)
    agent = world.agent("agent-buckets", storage=table)
    created(table, "agent-buckets", agent)
    assert ended(table, agent, "Completed")["records"] == 60
    table.gate("open")
    writer = table.writer("upserts", python={"batches": [{"rows": rows(range(0, 30, 3), "02", "ours", 2)}]})
    assert writer.wait() == 0, writer.log()[-4000:]
    rest = [row for row in expected(source) if row[0] not in {*range(0, 30, 3)}]
    table.audited(
        [*rest, *rows(range(0, 30, 3), "02", "ours", 2)],
        without=not_seen("hudi-rs", "stray", "incremental", "late", "overlap"),
    )
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]


def test_what_a_person_has_to_correct_is_said_and_then_it_goes_on(world: World, agent: Process) -> None:
    source = plain(world.lake / "plain" / "doubled")
    plain(source, range(6), name="part-1")
    table = beginning(world, "doubled", source)
    created(table, AGENT, agent)
    failed = ended(table, agent, "Failed")
    assert failed["code"] == "SourceInvalid"
    assert "6 keys occur in more than one row of a partition (0, 3, 1)" in failed["message"]
    assert table.timeline().instants == (), "nothing was written"
    for file in source.glob("p=*/part-1.parquet"):
        file.unlink()
    assert ended(table, agent, "Completed")["records"] == ROWS
    table.audited(expected(source), without=not_seen("origin", "hudi-rs", "stray", "incremental", "late", "overlap"))

    # A table with commits of somebody else is not begun: it would have to be adopted.
    taken = beginning(world, "taken", source)
    stock = StockTable(world, taken)
    stock.upsert(rows(range(3), "a", "stock", 1))
    before = sorted((path, path.stat().st_mtime_ns) for path in taken.folder.rglob("*"))
    taken.gate("closed")
    world.admit_agent(taken, AGENT)
    error = until("it is refused", lambda: taken.report().get("error"), alive=agent)
    assert error["code"] == "TableExists"
    assert "leave spec.bootstrap out to adopt it" in error["message"]
    assert sorted((path, path.stat().st_mtime_ns) for path in taken.folder.rglob("*")) == before


def test_a_try_that_fails_is_given_up_rolled_back_and_repeated(world: World, agent: Process) -> None:
    """The agent lives: the dataset vanishes between the look and the write."""
    source = plain(world.lake / "plain" / "vanishes")
    table = beginning(world, "vanishes", source)
    created(table, AGENT, agent)
    (first,) = until("the write is under way", table.pending, alive=agent, every=0.005)
    source.rename(source.with_name("elsewhere"))
    failed = ended(table, agent, "Failed")
    assert (failed["code"], failed["failures"]) == ("Failed", 1)
    until("its instant is rolled back", lambda: not table.pending() and not table.names("instant/"), alive=agent)
    assert table.data_files() == []
    assert (table.get(f"done/abandoned-{agent_inc(table)}") or {})["instants"] == [first]
    source.with_name("elsewhere").rename(source)
    done = ended(table, agent, "Completed")
    assert done["instant"] > first, "a new instant"
    table.audited(expected(source))


def agent_inc(table: Table) -> str:
    (inc,) = table.names("writer/")
    return inc


def test_the_dataset_is_looked_at_first(world: World) -> None:
    spark, place = world.spark(), world.lake / "looked-at-first"

    def read(folder: Path) -> dataset.Dataset:
        spec = beginning(world, "looked-at", folder).spec
        return dataset.read(spark, assigned(spec), world.url(folder), "Parquet")

    def assigned(spec: Any) -> Any:
        from hudi_operator.plan.agent import agents
        from hudi_runtime.job.job import TableSpec

        return TableSpec.of(AssignmentRecord.from_json(agents.assignment(spec, 0)))

    good = plain(place / "good", range(9))
    plain(good, range(9, 12), name="part-1", w=pa.array([1.5]))
    found = read(good)
    assert found.rows == 12
    assert sorted(found.frame.columns) == ["id", "p", "ts", "v", "w"], "columns of all files"
    for month in ("01", "02"):
        (place / "months" / f"p={month}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [1], "ts": [1]}), place / "months" / f"p={month}" / "x.parquet")
    assert {row.p for row in read(place / "months").frame.select("p").collect()} == {"01", "02"}, (
        "text, although they look like numbers"
    )

    def refused(folder: Path) -> str:
        with pytest.raises(RuntimeFailure) as raised:
            read(folder)
        assert dataset.of_the_dataset(raised.value)
        return str(raised.value)

    assert "Path does not exist" in refused(place / "nothing")
    assert "holds no rows" in refused(plain(place / "empty", range(0)))
    said = refused(plain(plain(place / "null", range(3)), range(1), name="n", id=pa.array([None], pa.int32())))
    assert re.search(r"null: \[HUDIOP-BAD-DATA\] column id of record id=null in \S+ is null: a record key has a", said)
    other = place / "other"
    other.mkdir()
    pq.write_table(pa.table({"key": [1], "_hoodie_commit_time": ["1"]}), other / "x.parquet")
    text = refused(other)
    assert "recordKeyFields: no column id; there are key" in text
    assert "column _hoodie_commit_time is reserved for Hudi" in text
    (good / ".hoodie").mkdir()
    (good / ".hoodie" / "hoodie.properties").touch()
    assert "is a Hudi table" in refused(good)


def test_why_a_metadata_only_bootstrap_is_not_offered(world: World) -> None:
    """Stock Hudi 1.2.0: what docs/use/migrate.md says of `MetadataOnly`.

    When one of these ends with another Hudi, it can be thought over again.
    """
    spark, place = world.spark(), world.lake / "skeletons"
    source, path = plain(place / "plain", range(30)), place / "table"
    options = {
        "hoodie.table.name": "skeletons",
        "hoodie.datasource.write.operation": "bootstrap",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.bootstrap.base.path": world.url(source),
        "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector",
        "hoodie.bootstrap.parallelism": "1",
        "hoodie.embed.timeline.server": "false",
    }
    empty = spark.read.option("mergeSchema", "true").parquet(world.url(source)).limit(0)

    def bootstrap(target: Path, **more: str) -> list[str]:
        empty.write.format("hudi").options(**options, **more).mode("overwrite").save(world.url(target))
        return [
            file.name
            for file in (target / ".hoodie" / "timeline").iterdir()
            if file.name.endswith(".commit") and "_" in file.name
        ]

    # Column statistics: it fails when its commit is there.
    with pytest.raises(Exception, match="col stats"):
        bootstrap(place / "default")
    assert [f.name for f in (place / "default" / ".hoodie" / "timeline").glob("00000000000001_*.commit")]

    off = {f"hoodie.metadata.index.{kind}.stats.enable": "false" for kind in ("column", "partition")}
    (commit,) = bootstrap(path, **off)
    assert commit.startswith("00000000000001_"), "the one instant that every try has"

    def read(**more: str) -> list[Any]:
        return list(spark.read.format("hudi").options(**more).load(world.url(path)).select("id", "v").collect())

    assert sorted(row.id for row in read()) == [*range(30)]
    assert all(row.v == f"plain {row.id}" for row in read())

    # hudi-rs: rows without their columns, and no error.
    table = (
        importlib.import_module("hudi")
        .HudiTableBuilder.from_base_uri(for_hudi_rs(world.url(path)))
        .with_options(world.s3_reader_options())
        .build()
    )
    batches = pa.Table.from_batches([pa.record_batch(batch) for batch in table.read_stream()])
    assert batches.num_rows == 30
    assert batches.column("v").null_count == 30

    # A file that a first try has left bears the instant of the second: it is committed for whoever
    # lists files.
    skeleton = next((path / "p=a").glob("*_00000000000001.parquet"))
    shutil.copy(skeleton, skeleton.with_name(f"{uuid.uuid4()}_0-1-1_00000000000001.parquet"))
    late = read(**{"hoodie.metadata.enable": "false"})
    assert len(late) == 40
    assert sum(row.v is None for row in late) == 10
