"""A table without a metadata table before and at its first commit (F630)."""

from __future__ import annotations

import signal
from urllib.parse import urlparse

import pytest

from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import Table
from tests.support.harness import s3proxy
from tests.support.harness.archived_table import OPTIONS
from tests.support.harness.local import World, rows, until

pytestmark = pytest.mark.extra
OFF = {"enabled": False}


@pytest.mark.parametrize("type", ["CopyOnWrite", "MergeOnRead"])
def test_files_of_an_older_write_that_is_pending_are_no_rows(world: World, type: str) -> None:
    """The first commit of the table is not that of the first writer.

    That one has written its file, and is stopped before its commit. The other one adds a row to the
    partition, where the file is small, and writes twice to a row that is in it. The first never
    commits.
    """
    server = urlparse(world.start_s3())
    proxy = s3proxy.Proxy("127.0.0.1", (str(server.hostname), int(server.port or 80)))
    name = f"first-{type.lower()}"
    table = world.table(name, type=type, endpoint=proxy.url, metadataTable=OFF)
    agent = world.agent(f"agent-{name}", storage=table)
    world.create(table, agent=f"agent-{name}", process=agent)
    held = proxy.hold_next(s3proxy.data_file)
    older = table.writer("older", python={"batches": [{"rows": rows(range(5), "a", "lost", 1)}]})
    until("its file is on the wire", held.arrived.is_set, alive=older)
    (instant,) = table.pending()
    older.signal(signal.SIGSTOP)
    held.deliver.set()
    until("its file is there", lambda: table.data_files(instant))

    batches = [
        {"rows": rows(range(10, 15), "a", "w1", 1)},
        {"rows": rows([0, 20], "a", "w2", 2)},
        {"rows": rows([0], "a", "w3", 3)},
    ]
    younger = table.writer("younger", python={"batches": batches})
    assert younger.wait() == 0, younger.log()[-4000:]
    assert table.pending() == {instant}
    older.kill()
    inc = table.fence(older)
    assert until("it is settled", lambda: table.outcomes(inc), alive=agent) == {instant: "RolledBack"}
    table.settled(inc)
    table.audited(rows([0], "a", "w3", 3) + rows(range(10, 15), "a", "w1", 1) + rows([20], "a", "w2", 2))
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]
    proxy.stop()


@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_beginning_is_nothing_to_readers_and_is_archived_first(world: World, type: str) -> None:
    """Hudi reads the table as one without commits, gives it its columns with the first one, and
    archives the beginning as any commit.
    """
    spark = world.spark()
    path = world.url(world.lake / f"begun-{type.lower()}")
    jvm = spark.sparkContext._jvm
    builder = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.newTableBuilder()
    builder = builder.setTableType(type).setTableName("archived").setTableVersion(9)
    builder = builder.setRecordKeyFields("id").setPartitionFields("p").setOrderingFields("ts")
    builder = builder.setCommitTimezone(jvm.org.apache.hudi.common.model.HoodieTimelineTimeZone.valueOf("UTC"))
    table = AgentTable(spark, path)
    builder.initTable(table.storage_conf(), path)
    empty = spark.read.format("hudi").load(path)
    table.begin_timeline()
    assert table.timeline() == tl.Timeline(begun=True)
    assert spark.read.format("hudi").load(path).schema == empty.schema, "readers see what they saw before"
    assert spark.read.format("hudi").load(path).count() == 0
    assert table.columns() == (None, "0")
    archived = False
    for number in range(6):
        frame = spark.createDataFrame([(number, "a", "v", number)], "id int, p string, v string, ts long")
        frame.write.format("hudi").options(**OPTIONS, **{"hoodie.datasource.write.table.type": type}).mode(
            "append"
        ).save(path)
        archived = archived or table.has_archive()
        assert archived or table.timeline().begun
        assert sorted(row.id for row in spark.read.format("hudi").load(path).collect()) == list(range(number + 1))
    assert archived
    assert not table.timeline().begun, "it was archived with the first commit, or before it"
    there = {i.requested for i in table.timeline().completed if i.action in tl.WRITE_ACTIONS}
    away = {i.requested for i in Table(spark, path).archived_instants()}
    assert len(there | away) == 6
    assert tl.BEGINNING not in {i.requested for i, _ in table.archived_commits()}
