"""Topics of a real broker as source: each record in the table exactly once, whoever is killed when.

What is gone is told, never passed over (I9).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from hudi_contract import job as contract
from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import KafkaSource
from hudi_runtime.process.errors import PositionLost, RuntimeFailure, UserCodeError, classify
from hudi_runtime.read import kafka
from hudi_runtime.read import kafka_positions as kp
from hudi_runtime.read.kafka_values import Values
from hudi_runtime.read.progress import Progress, kafka_checkpoint, of_checkpoint
from hudi_runtime.read.sources import transform
from hudi_runtime.table import values
from tests.support.harness.kafka_server import PASSWORD, USER, KafkaServer
from tests.support.harness.kafka_topics import Topics
from tests.support.harness.local import AGENT, JAR, Process, Row, Table, World, rows, until
from tests.support.harness.refused_values import SPEC, refusal

pytestmark = pytest.mark.extra
LIMIT = 600.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    made = KafkaServer(tmp_path_factory.mktemp("kafka") / "broker")
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def topics(world: World, server: KafkaServer) -> Topics:
    return Topics(world, server)


def source_of(data: dict[str, Any]) -> KafkaSource:
    return KafkaSource.of(contract.Kafka.from_json({"startFrom": "Earliest", "ifPositionLost": "Fail", **data}))


def read(world: World, source: KafkaSource, done: Progress) -> tuple[list[list[Row]], Progress]:
    """What a run gives, commit by commit, and the progress behind it."""
    found = []
    for part in kafka.parts(world.spark(), source, done):
        found.append(sorted((row.id, row.p, row.v, row.ts) for row in part.frame.collect()))
        done = of_checkpoint(kafka_checkpoint(part.offsets, part.position.checkpoint()))
    return found, done


def test_looks_at_topics(world: World, topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded batches, new partitions, what was removed, topics made again, records that do not
    fit: by the runtime's own reader, without a table.
    """
    topics.make("looks", 2)
    source = source_of(topics.source("looks", maxOffsetsPerCommit=3))
    assert read(world, source, Progress()) == ([], Progress()), "an empty topic is nothing to commit"
    first = [rows([1, 2, 3, 4], "a", "one", 1), rows([5], "b", "two", 1)]
    for partition, part in enumerate(first):
        topics.send("looks", part, partition=partition)
    given, done = read(world, source, Progress())
    assert [len(part) for part in given] == [3, 2]
    assert sorted(row for part in given for row in part) == [*first[0], *first[1]]
    assert read(world, source, done) == ([], done)

    nothing, late = read(world, replace(source, start_from="Latest"), Progress())
    assert nothing == [[]], "a commit without rows holds the position"
    topics.widen("looks", 3)
    topics.send("looks", rows([6, 7], "c", "three", 1), partition=2)
    for known in (done, late):
        given, after = read(world, source, known)
        assert given == [rows([6, 7], "c", "three", 1)], "a new partition from its first record"
    by_time, _ = read(world, replace(source, start_from="4102444800000"), Progress())
    assert by_time == [[]], "nothing is as new as that"

    spark = world.spark()
    topics.remove_before("looks", 0, 2)
    with pytest.raises(Exception, match=r"(?s)lost|out of range") as gone:
        kafka.records(spark, source, [kp.Range("looks", 0, 0, 4)]).collect()
    assert classify(gone.value).kind is FailureClass.INFRASTRUCTURE, (
        "retention between look and read: the next attempt's look decides"
    )
    assert read(world, source, after)[0] == [], "what was read may go"
    before = of_checkpoint(
        kafka_checkpoint(1, {"topics": {"looks": {"id": after.kafka["topics"]["looks"]["id"], "next": [1, 1, 2]}}})
    )
    with pytest.raises(
        PositionLost, match="topic looks, partition 0: offsets 1 to 1 were removed; ifPositionLost: Earliest"
    ):
        read(world, source, before)
    assert read(world, replace(source, if_lost="Earliest"), before)[0] == [rows([3, 4], "a", "one", 1)]

    monkeypatch.setattr(kafka, "LOOK_SECONDS", 0.5)
    topics.delete("looks")

    def gone_now() -> bool:
        try:
            read(world, source, after)
        except RuntimeFailure as error:
            return isinstance(error, PositionLost) and "topic looks no longer exists" in str(error)
        return False

    until("the topic is gone", gone_now, timeout=30)
    topics.make("looks", 3)
    for partition in range(3):
        topics.send("looks", rows(range(10 * partition, 10 * partition + 5), "d", "again", 2), partition=partition)
    with pytest.raises(PositionLost, match="was deleted and created again"):
        read(world, source, after)
    with pytest.raises(UserCodeError, match=r"source\.kafka\.topics: topic nowhere does not exist"):
        read(world, replace(source, topics=("nowhere",)), Progress())
    monkeypatch.setattr(kafka, "API_TIMEOUT_MS", 2000)
    with pytest.raises(RuntimeFailure, match=r"source\.kafka: no answer about the list of topics from 127\.0\.0\.1:1"):
        read(world, replace(source, servers=("127.0.0.1:1",)), Progress())


def test_values(world: World, topics: Topics) -> None:
    topics.make("values-1", 1)
    topics.send_texts("values-1", ['{"id": 1, "more": {}}', None, '{"id": "x"}'])
    data = topics.source("values-1")
    source = source_of(
        {
            **data,
            "topics": [],
            "topicPattern": "values-[0-9]",
            "value": {"format": "Json", "schema": "id INT, v STRING", "metadata": True},
        }
    )

    def frame(end: int, of: KafkaSource = source, begin: int = 0) -> Any:
        return Values(world.spark(), of, kafka.records(world.spark(), of, [kp.Range("values-1", 0, begin, end)])).rows()

    found = frame(2)
    assert found.columns == [
        "id",
        "v",
        "_kafka_key",
        "_kafka_topic",
        "_kafka_partition",
        "_kafka_offset",
        "_kafka_timestamp",
    ]
    assert [(row.id, row.v, bytes(row._kafka_key), row._kafka_offset) for row in found.collect()] == [
        (1, None, b"key0", 0),
        (None, None, b"key1", 1),
    ]
    with pytest.raises(Exception, match="BAD-RECORD") as bad:
        frame(3).collect()
    failure = classify(bad.value)
    assert failure.kind is FailureClass.BAD_DATA
    assert failure.message.startswith(
        "[HUDIOP-BAD-RECORD] topic values-1, partition 0, offset 2: the value is not Json"
    ), failure.message
    text = frame(3, replace(source, format="String")).select("key", "value", "topic", "partition", "offset").collect()
    assert [tuple(row) for row in text][1:] == [
        ("key1", None, "values-1", 0, 1),
        ("key2", '{"id": "x"}', "values-1", 0, 2),
    ]
    for schema in ("id NOTHING", "INT"):
        with pytest.raises(UserCodeError, match=r"source\.kafka\.value\.schema"):
            frame(3, replace(source, schema=schema))
    avro = (
        '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "int"}, {"name": "v", "type": ["null", '
        '"string"]}]}'
    )
    encoded = world.spark().sql("SELECT 'values-2' topic, named_struct('id', 7, 'v', 'seven') v")
    from pyspark.sql.avro.functions import to_avro

    topics.make("values-2", 1)
    encoded.select("topic", to_avro("v", avro).alias("value")).write.format("kafka").option(
        "kafka.bootstrap.servers", data["bootstrapServers"][0]
    ).save()
    typed = replace(source, format="Avro", schema=avro, metadata=False)
    found = Values(world.spark(), typed, kafka.records(world.spark(), typed, [kp.Range("values-2", 0, 0, 1)])).rows()
    assert [tuple(row) for row in found.collect()] == [(7, "seven")]
    with pytest.raises(Exception, match="BAD-RECORD"):
        frame(3, typed, 2).collect()
    assert [tuple(row) for row in frame(2, typed, 1).collect()] == [(None, None)], "no value"
    loose = replace(typed, schema=avro.replace('"int"', '["null", "int"]'))
    with pytest.raises(Exception, match="Malformed") as bad:
        frame(3, loose, 2).collect()
    assert classify(bad.value).kind is FailureClass.BAD_DATA


def test_a_row_that_is_refused_has_a_place(world: World, topics: Topics) -> None:
    """F383: topic, partition and offset are told whatever `transform.sql` has left of their
    columns, as long as a row is made from one record.
    """
    spark = world.spark()
    spark.sql(f"ADD JAR '{JAR}'")  # a class of ours finds the place; this session is a plain one
    topics.make("places", 2)
    topics.send("places", [*rows([1], "a", "v", 1), *rows([2], "../victim/a", "v", 1)], partition=1)
    source = source_of(topics.source("places"))
    frame = Values(spark, source, kafka.records(spark, source, [kp.Range("places", 1, 0, 2)])).rows()

    def told(sql: str | None, of: DataFrame = frame) -> str:
        return refusal(transform(of, sql), kafka=True)

    place = " in topic places, partition 1, offset 1 is '../victim/a': no folder of a partition begins with a dot"
    ranked = "SELECT *, row_number() OVER (PARTITION BY id ORDER BY ts) AS n FROM source"
    for sql in (
        None,
        "SELECT id, concat(p, '') AS p, ts FROM source s WHERE id > 0 ORDER BY id",
        "SELECT id, p, ts, 'mine' AS topic, 7L AS offset FROM source",
        "SELECT id, p, ts, one FROM source LATERAL VIEW explode(array(1, 2)) AS one",
        f"WITH ranked AS ({ranked}) SELECT id, p, ts FROM ranked WHERE n = 1",
        f"SELECT id, p, ts FROM ({ranked}) WHERE n = 1",
    ):
        assert told(sql) == f"[HUDIOP-BAD-DATA] column p of record id='2'{place}", sql
    text = kafka.records(spark, source, [kp.Range("places", 1, 0, 2)])
    bad = "SELECT 2 AS id, '../victim/a' AS p, topic, partition, offset, 1L AS ts FROM source WHERE offset = 1"
    assert told(bad, text) == f"[HUDIOP-BAD-DATA] column p of record id='2'{place}"
    for sql in (
        "SELECT id, max(p) AS p, max(ts) AS ts FROM source GROUP BY id",
        "SELECT DISTINCT * FROM source",
        "SELECT one.id, other.p, one.ts FROM source one JOIN source other ON other.id = one.id + 1",
        "SELECT * FROM source UNION ALL SELECT * FROM source",
    ):
        assert place.partition(" is ")[2] in told(sql), sql
        assert " in topic " not in told(sql), sql
    taken = values.held(transform(frame, "SELECT * FROM source WHERE id = 1"), SPEC, kafka=True)
    assert (taken.columns, [tuple(row) for row in taken.collect()]) == (frame.columns, rows([1], "a", "v", 1))


def test_a_writer_says_which_record_it_refuses(world: World, agent: Process, topics: Topics) -> None:
    """F383: a partition that leads out of the table, in one of two partitions of a topic. And a key
    that comes twice.
    """
    table = world.table("kafka-places")
    world.create(table, agent=AGENT, process=agent)
    topics.make("refused", 2)
    topics.send("refused", rows([1, 2], "a", "v", 1), partition=0)
    topics.send("refused", [*rows([3], "a", "v", 1), *rows([4], "../victim/a", "v", 1)], partition=1)
    writer = table.writer("refused", kafka=topics.source("refused"), transform="SELECT * FROM source")
    assert writer.wait(LIMIT) == 10, writer.log()[-4000:]
    told = writer.termination()
    assert (told["class"], told["commits"]) == ("BadData", 0), told
    wanted = "column p of record id='4' in topic refused, partition 1, offset 1 is '../victim/a'"
    assert wanted in told["message"], told
    assert not (table.folder.parent / "victim").exists()
    topics.make("doubled", 1)
    topics.send("doubled", rows([7, 8, 7], "a", "v", 1))
    writer = table.writer("inserts", kafka=topics.source("doubled"), operation="insert")
    assert writer.wait(LIMIT) == 10, writer.log()[-4000:]
    told = writer.termination()
    assert (told["class"], told["commits"]) == ("BadData", 0), told
    record = r"column id of record id='7' of partition p='a' in topic doubled, partition 0, offset [02]: the batch has"
    assert re.search(record, told["message"]), told


def test_a_password_is_read_by_the_client_alone(
    world: World, server: KafkaServer, topics: Topics, tmp_path: Path
) -> None:
    topics.make("guarded", 1)
    topics.send("guarded", rows([1], "a", "one", 1))
    security = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "folder": str(tmp_path)}
    source = source_of(topics.source("guarded", bootstrapServers=[server.guarded], security=security))
    (tmp_path / "username").write_text(USER)
    (tmp_path / "password").write_text("another one")
    with pytest.raises(RuntimeFailure, match="SaslAuthenticationException"):
        read(world, source, Progress())
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    with pytest.raises(UserCodeError, match="key password of the Secret must be one line"):
        read(world, source, Progress())
    (tmp_path / "password").write_text(PASSWORD)
    assert read(world, source, Progress())[0] == [rows([1], "a", "one", 1)]
    assert PASSWORD not in str(kafka.client_settings(source))


def killed(process: Process, table: Table, *, writing: bool, after: int) -> str:
    """Kill it in the middle of a write, or between two, once it has made `after` commits.

    The instant that it leaves pending.
    """

    def now() -> bool:
        mine = [i for i in table.keys("instant/") if i.value["inc"] == process.inc and i.value["state"] == "Pending"]
        if len(process.protocol("publish")) < after or bool(mine) != writing:
            return False
        return not writing or any(i.key.rsplit("/", 1)[-1] in table.pending() for i in mine)

    until(
        f"{process.name} is {'writing' if writing else 'between two commits'}",
        now,
        alive=process,
        every=0.005,
        timeout=LIMIT,
    )
    process.kill()
    left = [i.key.rsplit("/", 1)[-1] for i in table.keys("instant/") if i.value["inc"] == process.inc]
    return next(iter(left), "")


@pytest.mark.timeout(4 * LIMIT)
def test_two_writers_two_topics_one_table(world: World, agent: Process, topics: Topics) -> None:
    """I9: each record once, although one writer is killed between two of its commits and the other
    in the middle of a write. Inserts: what is given twice would be there twice.
    """
    table = world.table("kafka")
    world.create(table, agent=AGENT, process=agent)
    records = {}
    for number, name in enumerate(("left", "right")):
        topics.make(name, 2)
        records[name] = [
            rows(range(1000 * number + 100 * part, 1000 * number + 100 * part + 40), name, f"p{part}", 1)
            for part in range(2)
        ]
        for part, found in enumerate(records[name]):
            topics.send(name, found, partition=part)

    def writer(name: str) -> Process:
        return table.writer(name, kafka=topics.source(name, maxOffsetsPerCommit=20), operation="insert")

    processes = {name: writer(name) for name in records}
    incs = {}
    for name, writing in (("left", False), ("right", True)):
        dead = killed(processes[name], table, writing=writing, after=1)
        assert bool(dead) or not writing, "nothing was pending"
        incs[name] = table.fence(processes[name])
    processes = {name: writer(name) for name in records}
    told = {name: (process.wait(LIMIT), process.termination()) for name, process in processes.items()}
    for name, inc in incs.items():
        assert told[name][0] == 0, processes[name].log()[-4000:]
        assert told[name][1]["records"] < 80, f"{name} had committed something before it was killed"
        until("swept", lambda inc=inc: table.outcomes(inc) is not None, alive=agent, timeout=LIMIT)
    table.audited([row for parts in records.values() for part in parts for row in part])
