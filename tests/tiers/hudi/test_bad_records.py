"""Records of a real broker that cannot be written: each left out of one commit, which counts it,
and set aside with cause and position, whoever is killed when (I9).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from hudi_contract import job as contract
from hudi_contract import metadata
from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import KafkaSource
from hudi_runtime.process.errors import RuntimeFailure, UserCodeError, classify
from hudi_runtime.read import bad_records, kafka
from hudi_runtime.read import kafka_positions as kp
from hudi_runtime.read.bad_records import Bad, BadRecords
from hudi_runtime.read.progress import Progress
from hudi_runtime.read.sources import transform
from hudi_runtime.table import values
from hudi_runtime.table.hudi import Table as HudiTable
from tests.support.harness.kafka_server import KafkaServer
from tests.support.harness.kafka_topics import Topics
from tests.support.harness.local import AGENT, JAR, Process, Row, Table, World, rows, until
from tests.support.harness.refused_values import SPEC

pytestmark = pytest.mark.extra
LIMIT = 600.0
NOT_JSON = "the value is not Json of the schema in source.kafka.value.schema"
AVRO = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": %s}]}'


@pytest.fixture(scope="module")
def topics(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topics]:
    server = KafkaServer(tmp_path_factory.mktemp("kafka") / "broker")
    server.start()
    yield Topics(world, server)
    server.stop()


def aside(action: str = "SetAside", limit: int = 100) -> dict[str, Any]:
    return {"onBadRecord": {"action": action, "maxPerCommit": limit}}


def source_of(data: dict[str, Any]) -> KafkaSource:
    return KafkaSource.of(contract.Kafka.from_json({"startFrom": "Earliest", "ifPositionLost": "Fail", **data}))


def text(*row: object) -> str:
    return json.dumps(dict(zip(("id", "p", "v", "ts"), row, strict=True)))


def of_commits(table: Table) -> list[dict[str, Any]]:
    """What each commit says of bad records, oldest first; without those that say nothing."""
    found = HudiTable(table.world.spark(), table.path)
    said = [
        json.loads(info.extra.get(metadata.PROGRESS, "{}")) for _, info in found.commits(found.timeline().completed)
    ]
    return [progress["bad"] for progress in said if "bad" in progress]


def lines(table: Table, files: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for file in files for line in (table.folder / file).read_text().splitlines()]


def test_what_is_bad(world: World, topics: Topics) -> None:
    """By the runtime's own reader: values that do not parse, rows that the table cannot hold, each
    record once; and what cannot be spared.
    """
    spark = world.spark()
    spark.sql(f"ADD JAR '{JAR}'")  # a class of ours finds the places; this session is a plain one
    topics.make("bad", 2)
    sent = [text("1", "a", "v", 1), "{", text(None, "a", "v", 1), text("4", "../x", "v", 1), text("5", "a", "v", 1)]
    topics.send_texts("bad", sent, partition=1)
    value = {"format": "Json", "schema": "id STRING, p STRING, v STRING, ts BIGINT"}
    source = source_of(topics.source("bad", value=value, **aside()))
    (part,) = kafka.parts(spark, source, Progress())
    assert part.bad is not None
    assert sorted(str(row.id) for row in part.frame.collect()) == ["1", "4", "5", "None"]
    twice = transform(part.frame, "SELECT id, p, v, ts FROM source LATERAL VIEW explode(array(1, 2)) AS one")
    marks = values.marked(twice, SPEC)
    assert marks is not None
    good, refused = values.valid(marks), values.refused(marks)
    assert sorted(row.id for row in good.collect()) == ["1", "1", "5", "5"]
    assert good.columns == twice.columns
    bad = part.bad.found(refused)
    assert [(each.topic, each.partition, each.offset) for each in bad] == [("bad", 1, n) for n in (1, 2, 3)]
    assert [each.cause for each in bad] == [
        NOT_JSON,
        "[HUDIOP-BAD-DATA] column id of record id=null in topic bad, partition 1, offset 2 is null: a record key has a "
        "value",
        "[HUDIOP-BAD-DATA] column p of record id='4' in topic bad, partition 1, offset 3 is '../x': no folder of a "
        "partition begins with a dot",
    ]
    few = replace(part.bad, limit=2)
    with pytest.raises(RuntimeFailure, match=r"more than 2 bad records in one commit .*topic bad, partition 1") as many:
        few.found(refused)
    assert classify(many.value).kind is FailureClass.BAD_DATA

    grouped = transform(part.frame, "SELECT id, max(p) AS p, max(v) AS v, max(ts) AS ts FROM source GROUP BY id")
    assert values.marked(grouped, SPEC) is None, "a row of several records has no place"

    plain = source_of(topics.source("bad", value={"format": "String"}, **aside()))
    (part,) = kafka.parts(spark, plain, Progress())
    assert part.bad is not None
    assert part.bad.found(None) == ()
    assert part.frame.count() == 5
    (part,) = kafka.parts(spark, replace(source, bad="Fail"), Progress())
    assert part.bad is None
    with pytest.raises(Exception, match="BAD-RECORD"):
        part.frame.collect()


def test_avro(world: World, topics: Topics) -> None:
    """A schema whose fields may all be null does not tell what has not matched."""
    spark = world.spark()
    topics.make("bad-avro", 1)
    topics.send_texts("bad-avro", ["\x02", None, ""])
    typed = {"format": "Avro", "schema": AVRO % '"int"'}
    (part,) = kafka.parts(spark, source_of(topics.source("bad-avro", value=typed, **aside())), Progress())
    assert part.bad is not None
    assert [row.id for row in part.frame.collect()] == [1, None]
    assert [each.offset for each in part.bad.found(None)] == [2]
    loose = source_of(topics.source("bad-avro", value={**typed, "schema": AVRO % '["null", "int"]'}, **aside()))
    with pytest.raises(UserCodeError, match=r"source\.kafka\.onBadRecord: every field of the Avro schema"):
        next(kafka.parts(spark, loose, Progress()))


def test_a_file_of_them(world: World, topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key, value, time and cause; the same name for the same content; nothing without a record."""
    spark = world.spark()
    topics.make("kept", 1)
    topics.send_texts("kept", ["{", "nö", None])
    source = source_of(topics.source("kept"))
    records = kafka.records(spark, source, [kp.Range("kept", 0, 0, 3)])
    found = BadRecords(None, records, limit=10, keep=True)
    bad = [Bad("kept", 0, 1, "why"), Bad("kept", 0, 2, "no value")]
    storage = HudiTable(spark, world.url(world.lake / "kept")).storage
    path = found.set_aside(storage, "ns/w", bad)
    assert path == found.set_aside(storage, "ns/w", bad)
    assert path.startswith(f"{bad_records.folder_of('ns/w')}/")
    one, two = (json.loads(line) for line in storage.read(path).splitlines())
    (at,) = records.where("offset = 1").selectExpr("unix_millis(timestamp) AS ms").collect()
    assert datetime.fromisoformat(one.pop("timestamp")).timestamp() == at.ms / 1000
    assert one == {
        "writer": "ns/w", "topic": "kept", "partition": 0, "offset": 1,
        "cause": "why", "key": base64.b64encode(b"key1").decode(), "value": base64.b64encode("nö".encode()).decode(),
    }  # fmt: skip
    assert two["value"] is None
    with pytest.raises(RuntimeFailure, match=r"has been removed before it was set aside: .* offset 3") as no:
        found.set_aside(storage, "ns/w", [*bad, Bad("kept", 0, 3, "x")])
    assert classify(no.value).kind is FailureClass.INFRASTRUCTURE
    monkeypatch.setattr(bad_records, "MAX_BYTES", 10)
    with pytest.raises(RuntimeFailure, match=r"have 11 bytes, more than 10: lower source\.kafka\.maxOffsets"):
        found.set_aside(storage, "ns/w", bad)


def killed_in_a_write(process: Process, table: Table) -> str:
    """Kill it in the middle of its second write; the instant that it leaves pending."""

    def now() -> bool:
        mine = [i for i in table.keys("instant/") if i.value["inc"] == process.inc and i.value["state"] == "Pending"]
        return bool(process.protocol("publish")) and any(i.key.rsplit("/", 1)[-1] in table.pending() for i in mine)

    until(f"{process.name} is writing", now, alive=process, every=0.005, timeout=LIMIT)
    process.kill()
    return next(i.key.rsplit("/", 1)[-1] for i in table.keys("instant/") if i.value["inc"] == process.inc)


@pytest.mark.timeout(4 * LIMIT)
def test_each_is_left_out_of_one_commit(world: World, agent: Process, topics: Topics) -> None:
    """I9, F637: a writer is killed in the middle of a write. Each record is then in the table, or
    in one file that a commit names; another writer makes a table of these files.
    """
    table, errors = world.table("spared", type="MergeOnRead"), world.table("spared-errors")
    for one in (table, errors):
        world.create(one, agent=AGENT, process=agent)
    topics.make("spared", 2)
    good: list[Row] = []
    bad: dict[tuple[int, int], str] = {}
    for partition in range(2):
        texts = []
        for offset in range(40):
            row = (100 * partition + offset, "a", "v", 1)
            texts.append(text(*row))
            if offset % 7 == 3:
                texts[-1], bad[partition, offset] = "{", NOT_JSON
            elif offset % 11 == 5:
                texts[-1], bad[partition, offset] = text(row[0], "../x", "v", 1), "no folder of a partition begins"
            else:
                good.append(row)
        topics.send_texts("spared", texts, partition=partition)

    def writer(**more: Any) -> Process:
        return table.writer("w", kafka=topics.source("spared", maxOffsetsPerCommit=20, **aside()), **more)

    process = writer(operation="insert", transform="SELECT * FROM source")
    assert killed_in_a_write(process, table), "nothing was pending"
    inc = table.fence(process)
    process = writer(operation="insert", transform="SELECT * FROM source")
    assert process.wait(LIMIT) == 0, process.log()[-4000:]
    until("swept", lambda: table.outcomes(inc) is not None, alive=agent, timeout=LIMIT)
    table.audited(good)
    said = of_commits(table)
    assert [one["count"] for one in said] == [one["total"] - before for one, before in zip(
        said, [0, *(one["total"] for one in said)], strict=False
    )]  # fmt: skip
    assert said[-1]["total"] == len(bad) == process.termination()["badRecords"]
    named = [one["file"] for one in said if one["count"]]
    kept = {(line["partition"], line["offset"]): line for line in lines(table, named)}
    assert sum(one["count"] for one in said) == len(lines(table, named)) == len(kept)
    assert {place: bad[place] in line["cause"] for place, line in kept.items()} == dict.fromkeys(bad, True)

    folder = {"format": "json", "paths": [f"{table.path}/{bad_records.ROOT}/"], "options": {}}
    sql = "SELECT int(1000 * partition + offset) AS id, topic AS p, cause AS v, offset AS ts FROM source"
    reader = errors.writer("errors", files=folder, transform=sql)
    assert reader.wait(LIMIT) == 0, reader.log()[-4000:]
    errors.audited(
        [(1000 * part + offset, "spared", kept[part, offset]["cause"], offset) for part, offset in sorted(bad)]
    )


def test_a_limit_and_a_total(world: World, agent: Process, topics: Topics) -> None:
    """More than the limit leaves nothing behind; what was left out stays counted when nothing is
    spared any more.
    """
    table = world.table("limited")
    world.create(table, agent=AGENT, process=agent)
    topics.make("limited", 1)
    topics.send_texts("limited", [text(1, "a", "v", 1), "{", "{", "{"])
    writer = table.writer("w", kafka=topics.source("limited", **aside(limit=2)))
    assert writer.wait(LIMIT) == 10, writer.log()[-4000:]
    told = writer.termination()
    assert (told["class"], told["commits"]) == ("BadData", 0), told
    assert "more than 2 bad records in one commit" in told["message"], told
    writer = table.writer("w", kafka=topics.source("limited", **aside("Drop", limit=3)))
    assert writer.wait(LIMIT) == 0, writer.log()[-4000:]
    assert of_commits(table) == [{"count": 3, "total": 3, "file": ""}]
    assert writer.termination()["badRecords"] == 3
    topics.send("limited", rows([2], "a", "v", 1))
    writer = table.writer("w", kafka=topics.source("limited"))
    assert writer.wait(LIMIT) == 0, writer.log()[-4000:]
    assert of_commits(table)[-1] == {"count": 0, "total": 3, "file": ""}
    table.audited(rows([1, 2], "a", "v", 1))


def test_rows_that_differ_each_time_are_not_spared(world: World, agent: Process, topics: Topics) -> None:
    """F638: such a row could be good when it is looked for, and bad when it is written."""
    table = world.table("unsure")
    world.create(table, agent=AGENT, process=agent)
    topics.make("unsure", 1)
    topics.send("unsure", rows([1, 2], "a", "v", 1))
    sql = "SELECT id, if(rand() < 2, '../x', 'a') AS p, v, ts FROM source"
    writer = table.writer("unsure", kafka=topics.source("unsure", **aside()), transform=sql)
    assert writer.wait(LIMIT) == 10, writer.log()[-4000:]
    told = writer.termination()
    assert (told["class"], told["commits"]) == ("BadData", 0), told
    assert "no folder of a partition begins with a dot" in told["message"], told


def test_what_is_bad_now_and_good_a_moment_later(world: World, agent: Process, topics: Topics) -> None:
    """F638: the time of a query is another one in each of its executions. Each record is in the
    table or left out, whatever time it was.
    """
    table = world.table("moments")
    world.create(table, agent=AGENT, process=agent)
    topics.make("moments", 1)
    topics.send("moments", rows(range(6), "a", "v", 1))
    sql = "SELECT id, if(unix_micros(current_timestamp()) % 2 = 0, '../x', p) AS p, v, ts FROM source"
    kafka_source = topics.source("moments", maxOffsetsPerCommit=1, **aside())
    writer = table.writer("moments", kafka=kafka_source, transform=sql)
    assert writer.wait(LIMIT) == 0, writer.log()[-4000:]
    kept = {line["offset"] for line in lines(table, [one["file"] for one in of_commits(table) if one["count"]])}
    table.audited([row for offset, row in enumerate(rows(range(6), "a", "v", 1)) if offset not in kept])
