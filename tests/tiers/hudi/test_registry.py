"""Values of Kafka with the header of a registry, by a real broker and a real registry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from pyspark.sql.avro.functions import to_avro

from hudi_contract import job as contract
from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import KafkaSource
from hudi_runtime.process.errors import classify
from hudi_runtime.read import kafka, registry
from hudi_runtime.read.progress import Progress
from tests.support.harness.kafka_server import KafkaServer
from tests.support.harness.kafka_topics import SCHEMA, Topics
from tests.support.harness.local import AGENT, Process, World
from tests.support.harness.registry_server import RegistryServer

pytestmark = pytest.mark.extra
LIMIT = 600.0


def record(*fields: tuple[str, object], **more: dict[str, object]) -> str:
    named = [{"name": name, "type": kind, **more.get(name, {})} for name, kind in fields]
    return json.dumps({"type": "record", "name": "order", "fields": named})


READER = record(
    ("id", "long"), ("p", "string"), ("v", ["null", "string"]), ("ts", "long"), v={"default": None}, ts={"default": 1}
)
FIRST = record(("id", "int"), ("p", "string"), ("ts", "long"))
SECOND = record(("ts", "long"), ("more", "string"), ("v", ["null", "string"]), ("p", "string"), ("id", "long"))
OF_JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$id": "https://example.com/order.json",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "p": {"type": "string"}},
}
PROTOBUF = 'syntax = "proto3"; message Order { int64 id = 1; }'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryServer]:
    made = RegistryServer(tmp_path_factory.mktemp("registry") / "server")
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def topics(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topics]:
    broker = KafkaServer(tmp_path_factory.mktemp("kafka") / "broker")
    broker.start()
    yield Topics(world, broker)
    broker.stop()


def headed(number: int, content: bytes) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + content


def avro(world: World, schema: str, row: str) -> bytes:
    """A row, given in SQL, as Spark writes it in Avro."""
    (found,) = world.spark().sql(f"SELECT {row} AS v").select(to_avro("v", schema).alias("v")).collect()
    return bytes(found.v)


def source_of(topics: Topics, name: str, server: RegistryServer, **more: Any) -> dict[str, Any]:
    value = {"format": "Avro", "schema": READER, "registry": {"url": server.url}, **more.pop("value", {})}
    return topics.source(name, value=value, **more)


def parsed(world: World, data: dict[str, Any]) -> kafka.Part:
    source = KafkaSource.of(contract.Kafka.from_json({"startFrom": "Earliest", "ifPositionLost": "Fail", **data}))
    (part,) = kafka.parts(world.spark(), source, Progress())
    return part


def test_writers_and_readers_of_other_schemas(
    world: World, agent: Process, topics: Topics, server: RegistryServer
) -> None:
    """A whole run: values of two schemas become rows of a third one, by Avro's rules; tombstones
    stay records without a value.
    """
    table = world.table("registered")
    world.create(table, agent=AGENT, process=agent)
    one, two = server.register("order-value", FIRST), server.register("order-value", SECOND)
    assert one != two
    topics.make("registered", 1)
    values: Sequence[bytes | None] = [
        headed(one, avro(world, FIRST, "named_struct('id', 1, 'p', 'a', 'ts', 5L)")),
        headed(two, avro(world, SECOND, "named_struct('ts', 6L, 'more', 'x', 'v', 'two', 'p', 'b', 'id', 2L)")),
        None,
        headed(two, avro(world, SECOND, "named_struct('ts', 7L, 'more', 'x', 'v', string(null), 'p', 'b', 'id', 3L)")),
    ]
    topics.send_bytes("registered", values)
    sql = "SELECT int(id) AS id, p, v, ts FROM source WHERE id IS NOT NULL"
    writer = table.writer("registered", kafka=source_of(topics, "registered", server), transform=sql)
    assert writer.wait(LIMIT) == 0, writer.log()[-4000:]
    table.audited([(1, "a", None, 5), (2, "b", "two", 6), (3, "b", None, 7)])
    assert "badRecords" not in writer.termination()


def test_what_is_bad(world: World, topics: Topics, server: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """No header, unknown ids, schemas of other kinds, values that do not match: each with its
    cause; by default each of them fails the reader.
    """
    monkeypatch.setattr(registry, "LOOK_SECONDS", 0.1)
    good = server.register("good-value", FIRST)
    other = server.register("other-value", record(("id", "string"), ("p", "string")))
    protobuf = server.register("protobuf-value", PROTOBUF, "PROTOBUF")
    content = avro(world, FIRST, "named_struct('id', 1, 'p', 'a', 'ts', 5L)")
    values = [
        headed(good, content),
        content,
        headed(123456, content),
        headed(protobuf, content),
        headed(good, content[:1]),
        headed(other, avro(world, record(("id", "string"), ("p", "string")), "named_struct('id', 'x', 'p', 'a')")),
        b"\x00\x00",
    ]
    topics.make("mixed", 1)
    topics.send_bytes("mixed", values)
    aside = {"onBadRecord": {"action": "SetAside", "maxPerCommit": 10}}
    part = parsed(world, source_of(topics, "mixed", server, **aside))
    assert [tuple(row) for row in part.frame.collect()] == [(1, "a", None, 5)]
    assert part.bad is not None
    not_avro = "the value is not Avro of the schema in source.kafka.value.schema"
    headless = "the value does not begin with the header of a schema registry"
    assert [(each.offset, each.cause) for each in part.bad.found(None)] == [
        (1, headless),
        (2, "the registry does not know the schema 123456"),
        (3, f"the registry's schema {protobuf} is not one of AVRO"),
        (4, f"(schema {good} of the registry) {not_avro}"),
        (5, f"(schema {other} of the registry) {not_avro}"),
        (6, headless),
    ]
    failing = parsed(world, source_of(topics, "mixed", server))
    with pytest.raises(Exception, match="BAD-RECORD") as bad:
        failing.frame.collect()
    failure = classify(bad.value)
    assert failure.kind is FailureClass.BAD_DATA
    assert failure.message.startswith(f"[HUDIOP-BAD-RECORD] topic mixed, partition 0, offset 1: {headless}")


def test_json(world: World, topics: Topics, server: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry's schema must be one of JSON; the columns are those of the source."""
    monkeypatch.setattr(registry, "LOOK_SECONDS", 0.1)
    number = server.register("json-value", json.dumps(OF_JSON), "JSON")
    avros = server.register("avro-value", FIRST)
    text = b'{"id": 1, "p": "a", "v": "x", "ts": 5}'
    topics.make("json", 1)
    topics.send_bytes("json", [headed(number, text), headed(avros, text), text, headed(number, b"{")])
    aside = {"onBadRecord": {"action": "Drop", "maxPerCommit": 10}}
    part = parsed(world, source_of(topics, "json", server, value={"format": "Json", "schema": SCHEMA}, **aside))
    assert [tuple(row) for row in part.frame.collect()] == [(1, "a", "x", 5)]
    assert part.bad is not None
    assert [each.offset for each in part.bad.found(None)] == [1, 2, 3]
