"""A Hive Metastore shows the table as it is: a real metastore, agent and writers, and Spark SQL
that knows the table from the metastore alone.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from hudi_runtime.catalog.options import OWNER
from hudi_runtime.catalog.probe import ANSWERS
from tests.support.harness.archived_table import OPTIONS
from tests.support.harness.hive_server import HiveServer, sync
from tests.support.harness.local import AGENT, Process, Table, World, rows, until
from tests.support.oracle import not_seen
from tests.support.ports import own_address

WIDER = "id int, p string, v string, ts long, extra double"


@pytest.fixture
def metastore(world: World, tmp_path: Path) -> Iterator[HiveServer]:
    server = HiveServer(tmp_path / "metastore", world.s3_settings())
    server.start()
    yield server
    server.stop()


@pytest.fixture
def plain_metastore(tmp_path: Path) -> Iterator[HiveServer]:
    """For tables on local files."""
    server = HiveServer(tmp_path / "metastore", {})
    server.start()
    yield server
    server.stop()


def _report(table: Table, agent: Process, wanted: Any) -> dict[str, Any]:
    found: dict[str, Any] = until(
        "the catalog's report", lambda: (r := table.get("report/catalog") or {}) and wanted(r) and r, alive=agent
    )
    return found


def _last(table: Table) -> str:
    last = table.timeline().last_completed
    assert last is not None
    return last.completion


def _shown(table: Table, agent: Process) -> dict[str, Any]:
    """Wait until the catalog shows the table's last commit."""
    wanted = _last(table)
    return _report(table, agent, lambda r: r["completionTime"] >= wanted and not r["failures"])


def _write(table: Table, number: int, content: list[Any], **more: Any) -> None:
    writer = table.writer("writer", python={"batches": [{"rows": content, **more}]}, run=number)
    assert writer.wait() == 0, writer.log()[-4000:]


@pytest.mark.extra
def test_a_metastore_shows_what_was_committed(
    world: World, agent: Process, metastore: HiveServer, tmp_path: Path
) -> None:
    catalog = {"hiveMetastore": {"uris": [metastore.uri]}, "timeoutSeconds": 30}
    table = world.table("listed-one", type="MergeOnRead", catalog=catalog)
    world.create(table, agent=AGENT, process=agent)
    _write(table, 1, [*rows(range(3), "a", "one", 1), *rows(range(3, 6), "b", "one", 1)])
    first = _shown(table, agent)
    assert first["target"] == f"{metastore.uri} default.listed_one {table.spec.ref.uid}"
    names, partitions, content, optimized = metastore.query(
        tmp_path / "reader",
        "SHOW TABLES",
        "PARTITIONS listed_one",
        "SELECT id, p, v FROM listed_one ORDER BY id",
        "SELECT count(*) FROM listed_one_ro",
    )
    assert {name for _, name, _ in names} == {"listed_one", "listed_one_ro", "listed_one_rt"}
    assert [text for (text,) in partitions] == ["p=a", "p=b"]
    assert content == [[n, "a" if n < 3 else "b", "one"] for n in range(6)]
    assert optimized == [[6]]

    metastore.stop()
    _write(table, 2, [(*row, 0.5) for row in rows(range(2, 8), "a", "two", 2)], schema=WIDER)
    away = _report(table, agent, lambda r: r["failures"] >= 2)
    assert (away["reason"], away["completionTime"]) == ("ConnectionFailed", first["completionTime"])
    assert table.report()["lastInstant"], "the agent goes on"
    metastore.start()
    _shown(table, agent)
    content, partitions = metastore.query(
        tmp_path / "reader", "SELECT id, v, extra FROM listed_one WHERE p = 'a' ORDER BY id", "PARTITIONS listed_one"
    )
    assert content == [[0, "one", None], [1, "one", None], *([n, "two", 0.5] for n in range(2, 8))]
    assert [text for (text,) in partitions] == ["p=a", "p=b"]
    first_rows = [*rows(range(2), "a", "one", 1), *rows(range(3, 6), "b", "one", 1)]
    table.audited(
        [*((*row, None) for row in first_rows), *((*row, 0.5) for row in rows(range(2, 8), "a", "two", 2))],
        schema=WIDER,
    )


@pytest.mark.extra
def test_partitions_go_and_other_tables_stay(
    world: World, agent: Process, metastore: HiveServer, tmp_path: Path
) -> None:
    def listed(name: str, **more: Any) -> Table:
        catalog = {"hiveMetastore": {"uris": [metastore.uri]}, "timeoutSeconds": 30, **more}
        table = world.table(name, catalog=catalog)
        world.create(table, agent=AGENT, process=agent)
        return table

    def partitions(name: str) -> list[str]:
        (found,) = metastore.query(tmp_path / "reader", f"PARTITIONS {name}")
        return [text for (text,) in found]

    table = listed("gone")
    _write(table, 1, [*rows([1], "a", "x", 1), *rows([2], "b", "x", 1), *rows([3], "c", "x", 1)])
    _shown(table, agent)
    assert partitions("gone") == ["p=a", "p=b", "p=c"]
    # A commit that drops a partition, as partition expiry makes it; here of another writer.
    options = {
        **OPTIONS,
        "hoodie.table.name": "gone",
        "hoodie.keep.min.commits": "30",
        "hoodie.keep.max.commits": "40",
        "hoodie.clean.automatic": "false",
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "b",
    }
    frame = world.spark().createDataFrame(rows([2], "b", "x", 1), "id int, p string, v string, ts long")
    frame.write.format("hudi").options(**options).mode("append").save(table.path)
    assert (table.folder / "b").exists(), "its folder is still there"
    _shown(table, agent)
    assert partitions("gone") == ["p=a", "p=c"]
    # Under another name everything is compared, not only what has changed since.
    assert table.spec.catalog is not None
    table.spec = replace(table.spec, catalog=replace(table.spec.catalog, table="again"))
    table.assign(AGENT)
    wanted = f"{metastore.uri} default.again {table.spec.ref.uid}"
    _report(table, agent, lambda r: r["target"] == wanted and r["instant"])
    assert partitions("again") == ["p=a", "p=c"]

    other = listed("other", table="gone")
    _write(other, 1, rows([1], "a", "y", 1))
    taken = _report(other, agent, lambda r: r["failures"])
    assert (taken["reason"], taken["instant"]) == ("TableTaken", "")
    assert f"table gone exists in the metastore with the location {table.path}" in taken["message"]
    nowhere = listed("nowhere", database="nowhere")
    _write(nowhere, 1, rows([1], "a", "y", 1))
    assert _report(nowhere, agent, lambda r: r["failures"])["reason"] == "DatabaseMissing"
    assert partitions("gone") == ["p=a", "p=c"]
    table.audited(
        [*rows([1], "a", "x", 1), *rows([3], "c", "x", 1)],
        without=not_seen("origin", "files", "stray", "owners", "metadata", "incremental", "late", "overlap"),
    )
    for one in (other, nowhere):
        one.audited(rows([1], "a", "y", 1))


def _slashed(table: str, **options: str) -> list[Any]:
    return ["write", [table, [[1, "a/b", "x", 1], [2, "a-b", "x", 1], [3, "c", "x", 1]]], options]


@pytest.mark.extra
def test_values_with_a_slash_are_partitions_of_their_own(plain_metastore: HiveServer, tmp_path: Path) -> None:
    """F386; with tables of others, whose partitions our writers would have refused."""
    named = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    two = {"hoodie.datasource.write.partitionpath.field": "p,q", "hoodie.datasource.write.keygenerator.type": "COMPLEX"}
    merging = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    drop = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "a/b",
    }
    found = plain_metastore.sync(
        tmp_path / "tables",
        _slashed("one", **merging),
        ["sync", ["one"], {"everything": True, "by": ["p"]}],
        ["partitions", ["one_ro"], {}],
        ["write", ["one", [[4, "d/e", "x", 2]]], merging],
        _slashed("one", **merging, **drop),
        ["sync", ["one"], {"everything": False, "by": ["p"]}],
        ["partitions", ["one"], {}],
        ["sync", ["one"], {"everything": True, "by": []}],
        _slashed("named", **named),
        ["sync", ["named"], {"everything": True, "by": ["p"], "named": True}],
        ["partitions", ["named"], {}],
        _slashed("two", **two),
        ["sync", ["two"], {"everything": True, "by": ["p", "q"]}],
        ["partitions", ["two"], {}],
    )
    said = [value for value in found if value != ""]
    first, names, second, less, other, third, of_named, left_out, of_two = said
    assert (first, second, third) == ([], [], [])
    assert names == {"a/b": "a/b", "a-b": "a-b", "c": "c"}
    assert less == {"d/e": "d/e", "a-b": "a-b", "c": "c"}
    assert isinstance(other, dict), f"it was synchronized: {other}"
    assert other["reason"] == "TableTaken"
    assert "with the partition columns [p], and this table has []" in other["message"]
    assert of_named == {"a/b": "p=a/b", "a-b": "p=a-b", "c": "p=c"}
    assert left_out == ["a/b/x"]
    assert of_two == {"a-b, x": "a-b/x", "c, x": "c/x"}


@pytest.mark.extra
def test_entries_are_dropped_by_who_has_made_them_and_describe_what_hive_has(
    plain_metastore: HiveServer, tmp_path: Path
) -> None:
    """F397, F398."""
    merging = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    of = {"by": ["p"], "type": "MERGE_ON_READ"}
    found = plain_metastore.sync(
        tmp_path / "tables",
        _slashed("one", **merging),
        ["sync", ["one"], {"everything": True, "uid": "first", **of}],
        ["owner", ["one_ro"], {}],
        ["drop", ["one"], {"uid": "second", **of}],
        # The HudiTable was made again.
        ["sync", ["one"], {"everything": True, "uid": "second", **of}],
        ["drop", ["one"], {"uid": "first", **of}],
        ["drop", ["one"], {"uid": "second", **of}],
        ["owner", ["one"], {}],
        ["drop", ["one"], {"uid": "second", **of}],
        ["sync", ["one"], {"everything": True, "name": "typed", "by": ["ts"]}],
        ["partitions", ["typed"], {}],
        [
            "write",
            ["cases", [[1, "a", "x", 1, [1, 2]]], "id int, p string, q string, ts long, s struct<A:int,a:int>"],
            {},
        ],
        ["sync", ["cases"], {"everything": True, "by": ["p"]}],
        ["owner", ["cases"], {}],
    )
    _, first, owner, kept, again, other, dropped, gone, twice, left_out, typed, _, cases, none = found
    assert (first, owner, again) == ([], "first", [])
    assert kept == "; ".join(f"table one{suffix} stays: another HudiTable has made it" for suffix in ("", "_ro", "_rt"))
    assert other == kept, "it is the second one's now"
    assert (dropped, gone, twice) == ("", None, "")
    assert (tmp_path / "tables" / "one" / ".hoodie").exists(), "no data goes with an entry"
    assert (sorted(left_out), typed) == (["a-b", "a/b", "c"], {}), "no value of theirs is a number"
    assert cases["reason"] == "NotHeld"
    assert "column 's.a': another one differs only by upper and lower case" in cases["message"]
    assert none is None


@pytest.mark.extra
def test_who_reaches_the_port_changes_and_drops_entries_and_files(plain_metastore: HiveServer, tmp_path: Path) -> None:
    """Nobody is asked for a name. Files go by the metastore's own access to the storage."""
    of = {"everything": True, "by": ["p"], "uid": "ours"}
    tables = tmp_path / "tables"
    made = plain_metastore.sync(
        tables, _slashed("one"), ["sync", ["one"], of], _slashed("two"), ["sync", ["two"], of], ["owner", ["two"], {}]
    )
    assert made == ["", [], "", [], "ours"]
    before, _, _, _, changed, _, gone, _, destroyed = plain_metastore.stranger(
        ["entry", ["one"], {}],
        ["set", ["one"], {OWNER: "somebody"}],
        ["cut", ["one"], {}],
        ["take", ["one", "c"], {}],
        ["entry", ["one"], {}],
        ["drop", ["one"], {}],
        ["entry", ["one"], {}],
        ["destroy", ["two"], {}],
        ["entry", ["two"], {}],
    )
    assert (before["owner"], before["partitions"]) == ("ours", ["p=a%2Fb", "p=a-b", "p=c"])
    assert changed == before | {
        "owner": "somebody",
        "columns": before["columns"][:-1],
        "partitions": ["p=a%2Fb", "p=a-b"],
    }
    assert (gone, destroyed) == (None, None)
    assert list((tables / "one").rglob("*.parquet")), "no data goes with an entry of ours"
    assert not list((tables / "two").rglob("*.parquet")), "unless the metastore may delete it, and is told to"


@pytest.mark.extra
def test_what_others_do_to_an_entry_stands_until_a_commit(
    world: World, agent: Process, metastore: HiveServer, tmp_path: Path
) -> None:
    catalog = {"hiveMetastore": {"uris": [metastore.uri]}, "timeoutSeconds": 30}
    table = world.table("meddled", catalog=catalog)
    world.create(table, agent=AGENT, process=agent)

    def entry() -> Any:
        (found,) = metastore.stranger(["entry", ["meddled"], {}])
        return found

    _write(table, 1, [*rows([1], "a", "x", 1), *rows([2], "b", "x", 1)])
    shown = _shown(table, agent)
    before = entry()
    assert (before["owner"], before["partitions"]) == (table.spec.ref.uid, ["p=a", "p=b"])
    # Without a commit nothing is noticed, and the report says that all is well.
    *_, meddled = metastore.stranger(
        ["cut", ["meddled"], {}],
        ["set", ["meddled"], {OWNER: "somebody"}],
        ["take", ["meddled", "a"], {}],
        ["entry", ["meddled"], {}],
    )
    assert meddled == before | {"columns": before["columns"][:-1], "owner": "somebody", "partitions": ["p=b"]}
    time.sleep(20)  # a commit would be synchronized after 15 s at most
    assert (entry(), table.get("report/catalog")) == (meddled, shown)
    # A commit puts columns and properties right, and of the partitions those that it writes.
    _write(table, 2, rows([2], "b", "y", 2))
    _shown(table, agent)
    assert entry() == before | {"partitions": ["p=b"]}
    _write(table, 3, rows([1], "a", "y", 2))
    _shown(table, agent)
    assert entry() == before
    # An entry that is gone is made again with all partitions, whichever are written.
    metastore.stranger(["drop", ["meddled"], {}])
    _write(table, 4, rows([2], "b", "z", 3))
    _shown(table, agent)
    assert entry() == before
    # One that was moved is somebody else's table until it is dropped or moved back.
    elsewhere = f"file:{tmp_path}/elsewhere"  # as Hive writes it
    metastore.stranger(["move", ["meddled"], {"location": elsewhere}])
    _write(table, 5, rows([1], "a", "z", 3))
    taken = _report(table, agent, lambda r: r["failures"])
    assert taken["reason"] == "TableTaken"
    assert f"table meddled exists in the metastore with the location {elsewhere}" in taken["message"]
    assert entry()["location"] == elsewhere
    metastore.stranger(["drop", ["meddled"], {}])
    _shown(table, agent)
    assert entry() == before
    table.audited([*rows([1], "a", "z", 3), *rows([2], "b", "z", 3)])


@pytest.mark.extra
def test_glue_is_told_what_hudi_says_of_a_table(tmp_path: Path) -> None:
    server = ThreadedMotoServer(ip_address=own_address(), port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    try:
        keys = {"aws_access_key_id": "AKIDLAKE", "aws_secret_access_key": "secret-of-the-lake"}
        aws = boto3.session.Session(**keys).client("glue", region_name="eu-central-1", endpoint_url=endpoint)
        aws.create_database(DatabaseInput={"Name": "default"})
        merging = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
        drop = {
            "hoodie.datasource.write.operation": "delete_partition",
            "hoodie.datasource.write.partitions.to.delete": "a/b",
        }
        of = {"by": ["p"], "type": "MERGE_ON_READ", "endpoint": endpoint}
        wider = "id int, p string, q string, ts long, Amount decimal(10,2), s struct<X:int,y:array<timestamp>>"
        found = sync(
            tmp_path / "tables",
            "",
            _slashed("one", **merging),
            ["sync", ["one"], {"everything": True, **of}],
            _slashed("one", **merging, **drop),
            ["write", ["one", [[4, "d/e", "x", 2, None, None]], wider], merging],
            ["sync", ["one"], {"everything": False, **of}],
            ["credentials", ["s3a://lake/orders"], {}],
        )
        assert [found[1], found[4], found[5]] == [[], [], keys]
        tables = {each["Name"]: each for each in aws.get_tables(DatabaseName="default")["TableList"]}
        assert sorted(tables) == ["one", "one_ro", "one_rt"]
        for name, table in tables.items():
            storage = table["StorageDescriptor"]
            columns = {each["Name"]: each["Type"] for each in storage["Columns"]}
            assert columns["amount"] == "decimal(10,2)"
            assert columns["s"] == "struct<x:int,y:array<timestamp>>"
            assert columns["_hoodie_commit_time"] == "string"
            assert [(each["Name"], each["Type"]) for each in table["PartitionKeys"]] == [("p", "string")]
            pages = aws.get_partitions(DatabaseName="default", TableName=name)["Partitions"]
            # local files: what a catalog is told of a table is the same in every store
            folder = f"file://{tmp_path}/tables/one"
            assert {each["Values"][0]: each["StorageDescriptor"]["Location"] for each in pages} == {
                "a-b": f"{folder}/a-b",
                "c": f"{folder}/c",
                "d/e": f"{folder}/d/e",
            }
            assert all(len(each["StorageDescriptor"]["Columns"]) == len(columns) for each in pages)
            assert table["Parameters"]["spark.sql.sources.provider"] == "hudi"
            assert table["Parameters"]["hudioperator.uid"] == "u"
            assert table["Parameters"]["last_commit_time_sync"] >= "2026"
            assert storage["SerdeInfo"]["Parameters"]["hoodie.query.as.ro.table"] == str(name == "one_ro").lower()
        realtime = tables["one"]["StorageDescriptor"]["InputFormat"]
        assert realtime == "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
        optimized = tables["one_ro"]["StorageDescriptor"]["InputFormat"]
        assert optimized == "org.apache.hudi.hadoop.HoodieParquetInputFormat"
        found = sync(tmp_path / "tables", "", ["drop", ["one"], of])
        assert (found, aws.get_tables(DatabaseName="default")["TableList"]) == ([""], [])
    finally:
        server.stop()


@contextmanager
def _server(said: bytes) -> Iterator[str]:
    """Answers the first call of each connection with this, and nothing after it."""
    with socket.create_server((own_address(), 0)) as server:
        held: list[socket.socket] = []

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection = server.accept()[0]
                    held.append(connection)
                    connection.settimeout(10)
                    with suppress(OSError):
                        connection.recv(1000)
                        connection.sendall(said)

        threading.Thread(target=serve, daemon=True).start()
        host, port = server.getsockname()
        yield f"thrift://{host}:{port}"
        server.shutdown(socket.SHUT_RDWR)
        for connection in held:
            connection.close()


def test_a_port_of_another_protocol_ends_no_agent(world: World, agent: Process) -> None:
    """Hive's client takes the first bytes for a length and asks for 1.2 GB."""
    with _server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as uri:
        table = world.table("wrong-port", catalog={"hiveMetastore": {"uris": [uri]}, "timeoutSeconds": 10})
        world.create(table, agent=AGENT, process=agent)
        _write(table, 1, rows([1], "a", "x", 1))
        refused = _report(table, agent, lambda r: r["failures"] >= 2)
        assert refused["reason"] == "ConnectionFailed"
        assert f"{uri} answers, but is no Hive Metastore" in refused["message"]


@pytest.mark.extra
def test_a_metastore_that_hangs_holds_nobody_up(world: World, agent: Process) -> None:
    """It answers once and never again; commits, reports and a second table go on meanwhile."""
    with _server(next(iter(ANSWERS))) as uri:
        table = world.table("hanging", catalog={"hiveMetastore": {"uris": [uri]}, "timeoutSeconds": 6})
        world.create(table, agent=AGENT, process=agent)
        _write(table, 1, rows([1], "a", "x", 1))
        until("the agent has seen the commit", lambda: table.report().get("lastInstant"), alive=agent)
        beside = world.table("beside", catalog={"hiveMetastore": {"uris": ["thrift://127.0.0.1:9083"]}})
        world.create(beside, agent=AGENT, process=agent)
        hung = _report(table, agent, lambda r: r["failures"])
        assert hung["reason"] in ("Timeout", "ConnectionFailed")
        assert "does not answer as a Hive Metastore" not in hung["message"]
        assert (hung["instant"], table.pending()) == ("", set())
        until("another try", lambda: (table.get("report/catalog") or {})["failures"] >= 2, alive=agent)
        assert (beside.get("report/catalog") or {})["failures"] == 0, "a table without a commit is not tried"
        table.audited(rows([1], "a", "x", 1))
