"""Streaming runs: they take what comes later, are quiet while nothing does, end between two commits
and go on from there (I9).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.kafka_server import KafkaServer
from tests.support.harness.kafka_topics import Topics
from tests.support.harness.local import AGENT, Process, Row, Table, World, rows, until

pytestmark = pytest.mark.extra
LIMIT = 600.0


@pytest.fixture(scope="module")
def topics(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topics]:
    server = KafkaServer(tmp_path_factory.mktemp("kafka") / "broker")
    server.start()
    yield Topics(world, server)
    server.stop()


def stage(table: Table, process: Process) -> str:
    """What the attempt says of itself."""
    return str((table.get(f"report/attempt/{process.name}") or {}).get("stage", ""))


def stopped(table: Table, process: Process) -> dict[str, object]:
    """Asked to stop, it ends by itself, with nothing left to settle, and not as a success."""
    process.terminate()
    assert process.wait(60) == 11, process.log()[-4000:]
    assert table.get(f"writer/{process.inc}") is None
    told = process.termination()
    assert "asked to stop: a streaming run ended at a commit boundary" in str(told["message"])
    return told


@pytest.mark.timeout(4 * LIMIT)
def test_streams(world: World, agent: Process, topics: Topics) -> None:
    """Kafka and files into one table, and that table into another, all three without end."""
    table, copy = world.table("streamed"), world.table("streamed-copy")
    for made in (table, copy):
        world.create(made, agent=AGENT, process=agent)
    topics.make("stream", 1)
    landing = world.lake / "landing-stream"
    files = {"format": "json", "paths": [f"{world.url(landing)}/*.json"], "options": {}, "maxFilesPerCommit": 1}
    sent: list[Row] = []

    def send(ids: range) -> None:
        sent.extend(rows(ids, "k", "kafka", 1))
        topics.send("stream", rows(ids, "k", "kafka", 1))

    send(range(5))
    of_topic = table.writer("of-topic", kafka=topics.source("stream"), operation="insert", streaming=1)
    of_files = table.writer(
        "of-files", files=files, operation="insert", streaming=1, transform="SELECT int(id) AS id, p, v, ts FROM source"
    )
    chained = copy.writer("chained", hudi={"path": table.path}, operation="insert", streaming=1)
    # It may have begun to wait before there was anything to copy.
    until("the first rows are copied", lambda: len(copy.timeline().completed) == 1, alive=chained, timeout=LIMIT)
    for process, where in ((of_topic, table), (of_files, table), (chained, copy)):
        until(
            f"{process.name} waits", lambda p=process, t=where: stage(t, p) == "Waiting", alive=process, timeout=LIMIT
        )
    assert len(table.timeline().completed) == 1, "files that are not there yet are no failure, and no commit"

    before = {t.id: t.timeline() for t in (table, copy)}
    end = time.monotonic() + 15
    until("the lease would have run out twice", lambda: time.monotonic() > end, timeout=60)
    assert {t.id: t.timeline() for t in (table, copy)} == before, "nothing came, nothing was committed"

    send(range(5, 8))
    landing.mkdir()
    (Path(landing) / "part.json.tmp").write_text('{"id": 100, "p": "f", "v": "file", "ts": 1}\n')
    (Path(landing) / "part.json.tmp").rename(landing / "part.json")
    sent.extend(rows([100], "f", "file", 1))
    until("both have come", lambda: len(table.timeline().completed) == 3, alive=of_topic, timeout=LIMIT)

    def copied() -> bool:
        return (copy.get(f"report/attempt/{chained.name}") or {}).get("records") == 9 and stage(
            copy, chained
        ) == "Waiting"

    until("they were copied", copied, alive=chained, timeout=LIMIT)
    told = stopped(table, of_topic)
    assert (told["commits"], told["records"], told["waiting"], told["caughtUp"]) == (2, 8, 0, True)
    send(range(8, 10))
    again = table.writer("of-topic", kafka=topics.source("stream"), operation="insert", streaming=1)
    until(
        "it goes on",
        lambda: len(table.timeline().completed) == 4 and stage(table, again) == "Waiting",
        alive=again,
        timeout=LIMIT,
    )
    until(
        "they were copied",
        lambda: (copy.get(f"report/attempt/{chained.name}") or {}).get("records") == 11,
        alive=chained,
        timeout=LIMIT,
    )
    for process, where in ((again, table), (of_files, table), (chained, copy)):
        stopped(where, process)
    assert again.termination()["records"] == 2
    table.audited(sent)
    copy.audited(sent)
