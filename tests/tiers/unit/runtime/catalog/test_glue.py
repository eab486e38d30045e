"""AWS Glue is made what a table is: a client of AWS, and a server of its protocol on loopback that
keeps a catalog in memory. What the table is comes from a test here, and from Hudi in
tests/tiers/hudi/test_catalog_glue.py.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.config import Config
from moto.server import ThreadedMotoServer

from hudi_contract.assignment import AssignmentRecord, CatalogOrder
from hudi_runtime.catalog import glue, held
from hudi_runtime.catalog.description import Column, Description, Entry
from hudi_runtime.catalog.glue import Glue
from hudi_runtime.catalog.outcome import Busy, NotSynced

PATH = "s3a://lake/orders"
KEYS = {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "the-secret-key"}
ORDER = AssignmentRecord(
    id="T",
    path=PATH,
    table="lake/orders",
    name="orders",
    type="COPY_ON_WRITE",
    record_key_fields=("id",),
    partition_fields=("P", "q"),
)
WANTED = CatalogOrder(region="eu-central-1", database="lake", table="orders", timeout_seconds=20, uid="u-1")
SPARK = {"spark.sql.sources.provider": "hudi", "spark.sql.sources.schema.numParts": "1"}
PLAIN = Entry("", "org.apache.hudi.hadoop.HoodieParquetInputFormat", SPARK, {"path": PATH})
TABLE = Description(
    columns=(Column("id", "int"), Column("Name", "string")),
    partition_columns=(Column("P", "string"), Column("q", "int")),
    output_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    serde="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    entries=(PLAIN,),
    everything=True,
    written={("a", "1"): "a/1", ("b", "2"): "b/2"},
    dropped=(),
    left_out=(),
    instant="20260101000000001",
    completion="20260101000000002",
)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    # With its first request it loads what it plays.
    patient = Config(region_name="eu-central-1", read_timeout=300)
    boto3.session.Session(**KEYS).client("glue", config=patient, endpoint_url=address).get_databases()
    yield address
    server.stop()


@functools.cache
def _session() -> boto3.session.Session:
    """One for all connections: each would read Glue's API from its files anew."""
    return boto3.session.Session(**KEYS)


class World:
    """One database, and tables in it."""

    def __init__(self, endpoint: str, database: str) -> None:
        self.endpoint = endpoint
        self.database = database
        self.aws = self.connect()
        self.aws.create_database(DatabaseInput={"Name": database})
        self.since: list[tuple[str, str]] = []
        self.described = TABLE
        self.seconds: list[float] = []

    def connect(self, seconds: float = 60.0) -> Any:
        config = Config(region_name="eu-central-1", read_timeout=seconds, retries={"total_max_attempts": 1})
        return _session().client("glue", config=config, endpoint_url=self.endpoint)

    def of(self, order: AssignmentRecord = ORDER, **wanted: Any) -> Glue:
        def describe(instant: str, completion: str, seconds: float) -> Description:
            self.since.append((instant, completion))
            self.seconds.append(seconds)
            return self.described

        given = WANTED.but(**{"database": self.database, "timeout_seconds": 120, **wanted})
        return Glue(None, order, given, describe=describe, connect=self.connect)

    def table(self, name: str = "orders") -> dict[str, Any]:
        found: dict[str, Any] = self.aws.get_table(DatabaseName=self.database, Name=name)["Table"]
        return found

    def names(self) -> list[str]:
        return sorted(each["Name"] for each in self.aws.get_tables(DatabaseName=self.database)["TableList"])

    def partitions(self, name: str = "orders") -> dict[str, dict[str, Any]]:
        pages = self.aws.get_paginator("get_partitions").paginate(DatabaseName=self.database, TableName=name)
        return {"/".join(each["Values"]): each["StorageDescriptor"] for page in pages for each in page["Partitions"]}


@pytest.fixture
def world(endpoint: str, request: pytest.FixtureRequest) -> World:
    return World(endpoint, f"db_{abs(hash(request.node.nodeid))}")


def later(instant: str, **changes: Any) -> Description:
    return replace(TABLE, everything=False, written={}, instant=instant, completion=instant, **changes)


def test_an_entry_has_what_hudis_tool_writes(world: World) -> None:
    assert world.of().sync(everything=True) == ()
    table = world.table()
    assert table["TableType"] == "EXTERNAL_TABLE"
    assert table["Parameters"] == {
        "EXTERNAL": "TRUE",
        "hudi.metadata-listing-enabled": "FALSE",
        "hudioperator.uid": "u-1",
        "last_commit_time_sync": "20260101000000001",
        "last_commit_completion_time_sync": "20260101000000002",
        **SPARK,
    }
    storage = table["StorageDescriptor"]
    assert [(each["Name"], each["Type"]) for each in storage["Columns"]] == [("id", "int"), ("name", "string")]
    assert [(each["Name"], each["Type"]) for each in table["PartitionKeys"]] == [("p", "string"), ("q", "int")]
    assert storage["Location"] == "s3://lake/orders"
    assert storage["InputFormat"] == PLAIN.input_format
    assert storage["OutputFormat"] == TABLE.output_format
    assert storage["SerdeInfo"] == {
        "SerializationLibrary": TABLE.serde,
        "Parameters": {"serialization.format": "1", "path": PATH},
    }
    found = world.partitions()
    assert {values: each["Location"] for values, each in found.items()} == {
        "a/1": "s3://lake/orders/a/1",
        "b/2": "s3://lake/orders/b/2",
    }
    assert found["a/1"]["InputFormat"] == PLAIN.input_format
    assert [each["Name"] for each in found["a/1"]["Columns"]] == ["id", "name"]
    assert 0 < world.seconds[0] <= 120


def test_later_commits_bring_only_what_they_have_changed(world: World) -> None:
    world.of().sync(everything=True)
    world.described = later("20260102000000000", dropped=(("a", "1"), ("never", "9")))
    world.described = replace(world.described, written={("b", "2"): "b/2", ("c", "3"): "c/3"})
    world.of().sync(everything=False)
    assert world.since == [("", ""), ("20260101000000001", "20260101000000002")]
    assert sorted(world.partitions()) == ["b/2", "c/3"]
    assert world.table()["Parameters"]["last_commit_time_sync"] == "20260102000000000"
    world.of().sync(everything=True)
    assert world.since[-1] == ("", ""), "what the entry shows is not asked for"


def test_a_comparison_of_all_drops_what_is_gone_and_moves_what_lies_elsewhere(world: World) -> None:
    world.of().sync(everything=True)
    where = {"DatabaseName": world.database, "TableName": "orders"}
    moved = {"Values": ["a", "1"], "StorageDescriptor": {"Location": "s3://elsewhere", "Columns": []}}
    world.aws.update_partition(**where, PartitionValueList=["a", "1"], PartitionInput=moved)
    world.aws.create_partition(**where, PartitionInput={"Values": ["old", "0"], "StorageDescriptor": {}})
    world.of().sync(everything=True)
    assert {values: each["Location"] for values, each in world.partitions().items()} == {
        "a/1": "s3://lake/orders/a/1",
        "b/2": "s3://lake/orders/b/2",
    }


def test_a_change_of_columns_reaches_the_partitions_too(world: World) -> None:
    world.of().sync(everything=True)
    world.aws.update_table(
        DatabaseName=world.database,
        TableInput={
            **{key: world.table()[key] for key in ("Name", "TableType", "PartitionKeys", "StorageDescriptor")},
            "Parameters": {
                **world.table()["Parameters"],
                "classification": "orders",
                "spark.sql.sources.schema.part.7": "x",
            },
            "Description": "ours",
        },
    )
    wider = (*TABLE.columns, Column("amount", "decimal(38,18)"))
    world.described = later("20260102000000000", columns=wider)
    world.of().sync(everything=False)
    table = world.table()
    assert [each["Name"] for each in table["StorageDescriptor"]["Columns"]] == ["id", "name", "amount"]
    for each in world.partitions().values():
        assert [column["Name"] for column in each["Columns"]] == ["id", "name", "amount"]
    assert world.partitions()["a/1"]["Location"] == "s3://lake/orders/a/1"
    assert table["Description"] == "ours", "what others have said of it stays"
    assert table["Parameters"]["classification"] == "orders"
    assert "spark.sql.sources.schema.part.7" not in table["Parameters"], "a schema in fewer parts than before"


def test_many_partitions_are_many_requests(world: World) -> None:
    world.described = replace(TABLE, written={(f"p{n}", "1"): f"p{n}/1" for n in range(230)})
    world.of().sync(everything=True)
    assert len(world.partitions()) == 230
    world.described = replace(TABLE, written={("p0", "1"): "p0/1"})
    world.of().sync(everything=True)
    assert list(world.partitions()) == ["p0/1"]


def test_three_names_of_a_merge_on_read_table(world: World) -> None:
    order = ORDER.but(type="MERGE_ON_READ")
    world.described = replace(
        TABLE, entries=tuple(replace(PLAIN, suffix=suffix, input_format=f"of{suffix}") for suffix in ("_ro", "_rt", ""))
    )
    world.of(order).sync(everything=True)
    assert world.names() == ["orders", "orders_ro", "orders_rt"]
    assert world.table("orders_ro")["StorageDescriptor"]["InputFormat"] == "of_ro"
    assert list(world.partitions("orders_rt")) == ["a/1", "b/2"]
    assert world.of(order).drop() == ""
    assert world.names() == []


def test_a_change_that_one_entry_does_not_show_is_brought_again(world: World) -> None:
    """The try was cut off between the entries of the table."""
    order = ORDER.but(type="MERGE_ON_READ")
    world.described = replace(
        TABLE, entries=tuple(replace(PLAIN, suffix=suffix, input_format=f"of{suffix}") for suffix in ("_ro", "_rt", ""))
    )
    world.of(order).sync(everything=True)
    world.of(order).sync(everything=False)
    assert world.since[-1] != ("", "")
    world.aws.delete_table(DatabaseName=world.database, Name="orders_rt")
    world.of(order).sync(everything=False)
    assert world.since[-1] == ("", "")


def test_a_try_that_was_cut_off_is_finished_by_the_next(world: World) -> None:
    class Cut(Exception):
        pass

    real = world.connect
    cut = ["update_table"]

    def connect(seconds: float) -> Any:
        client = real(seconds)
        if cut:
            operation = cut.pop()

            def fail(**request: Any) -> Any:
                raise Cut

            setattr(client, operation, fail)
        return client

    world.connect = connect  # type: ignore[method-assign]
    with pytest.raises(Cut):
        world.of().sync(everything=True)
    assert "last_commit_time_sync" not in world.table()["Parameters"]
    world.of().sync(everything=False)
    assert world.since == [("", ""), ("", "")], "all of it once more"
    assert world.table()["Parameters"]["last_commit_time_sync"] == TABLE.instant


def refused(run: Any, **given: Any) -> tuple[str, str]:
    with pytest.raises(NotSynced) as found:
        run(**given)
    return found.value.reason, str(found.value)


def test_tables_of_others_are_not_changed(world: World) -> None:
    world.of().sync(everything=True)
    before = world.table()
    reason, message = refused(world.of(ORDER.but(path="s3a://lake/other")).sync, everything=True)
    assert reason == "TableTaken"
    assert "table orders exists in Glue with the location s3://lake/orders, which is not this table" in message
    world.described = replace(TABLE, partition_columns=TABLE.partition_columns[:1])
    reason, message = refused(world.of().sync, everything=True)
    assert (reason, "partition columns ['p', 'q'], and this table has ['p']" in message) == ("TableTaken", True)
    assert world.table() == before
    assert refused(world.of(database="nowhere").sync, everything=True) == (
        "DatabaseMissing",
        "the database does not exist in Glue",
    )


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        ({}, ""),
        ({"Parameters": {"hudioperator.uid": "another"}}, "another HudiTable has made it"),
        ({"Parameters": {}}, "it does not say which HudiTable has made it"),
        ({"StorageDescriptor": {"Location": "s3://lake/orders2"}}, "it has another location"),
    ],
)
def test_only_what_this_hudi_table_has_made_is_dropped(world: World, change: dict[str, Any], stays: str) -> None:
    world.of().sync(everything=True)
    kept = {
        key: world.table()[key] for key in ("Name", "TableType", "PartitionKeys", "Parameters", "StorageDescriptor")
    }
    world.aws.update_table(DatabaseName=world.database, TableInput=kept | change)
    assert world.of().drop() == (f"table orders stays: {stays}" if stays else "")
    assert world.names() == (["orders"] if stays else [])
    assert world.of(table="was_never_there").drop() == ""


def test_the_other_account_is_named_in_each_request(world: World) -> None:
    asked: list[Any] = []
    real = world.connect

    def connect(seconds: float) -> Any:
        client = real(seconds)
        client.meta.events.register("provide-client-params.glue", lambda params, **_: asked.append(params))
        return client

    world.connect = connect  # type: ignore[method-assign]
    world.of(account="210987654321").sync(everything=True)
    assert len(asked) > 3
    assert {each["CatalogId"] for each in asked} == {"210987654321"}


class _Answers:
    """A client that answers each request with one error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, operation: str) -> Any:
        def ask(**request: Any) -> Any:
            raise self._error

        return ask

    def close(self) -> None:
        pass


def test_nobody_answers_and_answers_that_refuse(world: World) -> None:
    from botocore.exceptions import ClientError

    world.endpoint = "http://127.0.0.1:1"
    reason, message = refused(world.of().sync, everything=True)
    assert (reason, "127.0.0.1:1" in message) == ("ConnectionFailed", True)
    denied = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no glue:GetDatabase"}}, "GetDatabase")
    target = Glue(None, ORDER, WANTED, describe=lambda *_: TABLE, connect=lambda seconds: _Answers(denied))
    reason, message = refused(target.sync, everything=True)
    assert (reason, message) == ("AccessDenied", "GetDatabase: AccessDeniedException: no glue:GetDatabase")
    assert KEYS["aws_secret_access_key"] not in message


def test_it_ends_in_time_and_only_one_try_runs(world: World) -> None:
    now = [0.0]
    target = world.of(timeout_seconds=5)
    target._clock = lambda: now[0]

    def describe(*_: Any) -> Description:
        reason, _message = refused(world.of().drop)
        assert reason == "busy"
        now[0] += 6
        return TABLE

    target._describe = describe
    assert refused(target.sync, everything=True) == ("Timeout", "not done within 5 s")
    assert world.of().drop() == "", "the next try may run"
    assert issubclass(Busy, NotSynced)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ((Column("a" * 256, "int"),), "has 256 characters: Glue holds 1 to 255"),
        ((Column("a\nb", "int"),), "column 'a\\nb' has a control character: Glue holds none in a name"),
        ((Column("s", "struct<a\x01:int>"),), "column 's' has a control character in the name of a field"),
        ((Column("s", f"struct<{'a' * 131_072}:int>"),), "has a type of 131084 characters: Glue holds 131072"),
        ((Column("A", "int"), Column("a", "int")), "column 'a' occurs 2 times in lower case"),
        ((Column("Q", "int"),), "column 'q' occurs 2 times in lower case"),
    ],
)
def test_what_glue_cannot_hold_is_told_before_anything_is_changed(
    world: World, columns: tuple[Column, ...], words: str
) -> None:
    world.described = replace(TABLE, columns=columns)
    reason, message = refused(world.of().sync, everything=True)
    assert reason == "NotHeld"
    assert words in message
    assert world.names() == []


def test_partitions_that_glue_cannot_hold_are_left_out(world: World) -> None:
    long = "x" * 1025
    world.described = replace(
        TABLE, written={("a", "1"): "a/1", ("b\nc", "1"): "b\nc/1", (long, "1"): f"{long}/1"}, left_out=("z",)
    )
    assert world.of().sync(everything=True) == ("b\\nc/1", "x" * 80, "z")
    assert list(world.partitions()) == ["a/1"]
    assert held.problem(replace(TABLE, entries=(replace(PLAIN, properties={"k": "v" * 512_001}),))) == (
        "property 'k' has 512001 characters: Glue holds 512000"
    )


def test_no_credential_is_in_what_is_shown() -> None:
    text = repr(Glue(None, ORDER, WANTED)) + repr(vars(Glue(None, ORDER, WANTED)))
    assert KEYS["aws_secret_access_key"] not in text
    assert "uris" not in WANTED.to_json()
    assert WANTED.target == "glue:eu-central-1: lake.orders u-1"
    assert glue.CREATED_AT_ONCE == 100
