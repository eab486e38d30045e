"""A table of a real database as source: each row in the table once, whatever changes there
meanwhile and whoever is killed when. What is read again is the same row (I9).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hudi_contract import job as contract
from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import JdbcSource
from hudi_runtime.process.errors import RuntimeFailure
from hudi_runtime.read import jdbc
from hudi_runtime.read.progress import Progress, jdbc_checkpoint, of_checkpoint
from tests.support.harness.local import AGENT, JAR, Process, Row, Table, World, rows, until
from tests.support.harness.sql_server import PASSWORD, MariaServer, PostgresServer, SqlServer

LIMIT = 600.0
NOON = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
OWN = "SELECT id, p, v, ts FROM source"


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    made = PostgresServer(tmp_path_factory.mktemp("sql") / "postgresql")
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaServer]:
    made = MariaServer(tmp_path_factory.mktemp("sql") / "mariadb")
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module", params=["PostgreSQL", "MariaDB"])
def server(request: pytest.FixtureRequest) -> SqlServer:
    found: SqlServer = request.getfixturevalue({"PostgreSQL": "postgres", "MariaDB": "mariadb"}[request.param])
    return found


@pytest.fixture
def spark(world: World) -> Any:
    """A session of this process that has our module, which opens connections."""
    session = world.spark()
    session.sql(f"ADD JAR '{JAR}'")
    return session


def at(seconds: float) -> str:
    """A time in UTC, for SQL."""
    return (NOON + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S.%f")


def orders(server: SqlServer, name: str) -> None:
    """A table with the columns of the rows of a test and the time of their last change, in UTC."""
    kind = "timestamptz" if server.engine == "PostgreSQL" else "timestamp(6) NULL"
    server.run(
        f"CREATE TABLE {name} (id int PRIMARY KEY, p varchar(10), v varchar(20), ts bigint, changed {kind})",
        f"CREATE INDEX {name}_changed ON {name} (changed)",
    )


def put(server: SqlServer, name: str, seconds: float, *given: Row) -> None:
    """Insert or change rows, with this time of change."""
    utc = "SET TIME ZONE 'UTC'" if server.engine == "PostgreSQL" else "SET time_zone = '+00:00'"
    statements = [utc]
    for number, p, v, ts in given:
        values = f"({number}, '{p}', '{v}', {ts}, TIMESTAMP '{at(seconds)}')"
        statements += [f"DELETE FROM {name} WHERE id = {number}", f"INSERT INTO {name} VALUES {values}"]
    server.run(*statements)


def halves(ids: Sequence[int], v: str, ts: int) -> list[Row]:
    """Rows in two partitions."""
    return [row for number in ids for row in rows([number], "ab"[number % 2], v, ts)]


def content(server: SqlServer, name: str) -> list[Row]:
    return sorted((int(i), p, v, int(t)) for i, p, v, t in server.run(f"SELECT id, p, v, ts FROM {name}"))


def source_of(told: dict[str, Any]) -> JdbcSource:
    return JdbcSource.of(contract.Jdbc.from_json(told))


def read(spark: Any, source: JdbcSource, done: Progress) -> tuple[list[list[int]], Progress]:
    """Ids that a run gives, commit by commit, and the progress behind it."""
    found, count = [], done.count
    for part in jdbc.parts(spark, source, done):
        found.append(sorted(row.id for row in part.frame.collect()))
        assert len(found[-1]) == part.count
        count += part.count
        done = of_checkpoint(jdbc_checkpoint(count, part.position.checkpoint()))
    return found, done


@pytest.mark.timeout(2 * LIMIT)
def test_a_table_that_changes_between_two_runs(world: World, agent: Process, postgres: PostgresServer) -> None:
    """A row with the value of the position, a late one at the end of the lag, and a change."""
    orders(postgres, "orders")
    put(postgres, "orders", 0, *rows([1], "a", "one", 1))
    put(postgres, "orders", 10, *rows([2, 3], "b", "one", 1))
    late = postgres.transaction(f"INSERT INTO orders VALUES (4, 'a', 'late', 1, TIMESTAMPTZ '{at(5)}+00')")
    table = world.table("jdbc")
    world.create(table, agent=AGENT, process=agent)
    source = postgres.source("orders", "changed", lag=5)
    first = table.writer("orders", jdbc=source, transform=OWN)
    assert first.wait(LIMIT) == 0, first.log()[-4000:]
    table.audited([*rows([1], "a", "one", 1), *rows([2, 3], "b", "one", 1)])
    postgres.committed(late)
    put(postgres, "orders", 10, *rows([5], "a", "equal", 1))
    put(postgres, "orders", 4, *rows([6], "a", "too late", 1))
    put(postgres, "orders", 11, *rows([1], "a", "two", 2))
    second = table.writer("orders", jdbc=source, transform=OWN, run=2)
    assert second.wait(LIMIT) == 0, second.log()[-4000:]
    assert second.termination()["commits"] == 1
    assert PASSWORD not in first.log() + second.log()
    wanted = [row for row in content(postgres, "orders") if row[2] != "too late"]
    assert len(wanted) == 5
    table.audited(wanted)


@pytest.mark.extra
def test_what_a_read_gives(spark: Any, server: SqlServer) -> None:
    """By the runtime's own reader, without a table, commit by commit."""
    name = "looks"
    orders(server, name)
    source = source_of(server.source(name, "changed", lag=5))
    assert read(spark, source, Progress()) == ([], Progress()), "an empty table is nothing to commit"
    put(server, name, 0, *rows([1, 2], "a", "v", 1))
    put(server, name, 0.000001, *rows([3], "a", "v", 1))
    given, done = read(spark, source, Progress())
    assert given == [[1, 2, 3]]
    assert done.jdbc is not None
    assert (done.jdbc["to"], done.jdbc["rows"]) == ("2026-01-31 12:00:00.000001", 3)
    assert read(spark, source, done) == ([], done), "nothing is new"

    put(server, name, 0.000001, *rows([4], "a", "equal", 1))
    given, equal = read(spark, source, done)
    assert given == [[1, 2, 3, 4]], "a row with the value of the position"
    exact = replace(source, lag=0)
    assert read(spark, exact, done)[0] == [[3, 4]], "without a lag, rows with that value alone"
    put(server, name, -4.9, *rows([5], "a", "late", 1))
    given, late = read(spark, source, equal)
    assert given == [[1, 2, 3, 4, 5]]
    put(server, name, -5.1, *rows([6], "a", "too late", 1))
    assert read(spark, source, late) == ([], late), "below the lag"
    put(server, name, 100, *rows([7], "a", "v", 1))
    given, after = read(spark, source, late)
    assert given == [[1, 2, 3, 4, 5, 7]], "a read begins at the lag below the position"
    put(server, name, 101, *rows([8], "a", "v", 1))
    assert read(spark, source, after)[0] == [[7, 8]]

    small = replace(source, max_rows=2)
    assert read(spark, small, Progress())[0] == [[5, 6], [1, 2, 5, 6], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 7, 8]]
    one = replace(exact, max_rows=1)
    assert read(spark, one, Progress())[0] == [[6], [5, 6], [1, 2, 5], [1, 2, 3, 4], [3, 4, 7], [7, 8]]
    assert read(spark, replace(source, start_from="2026-01-31T12:00:00.000001Z"), Progress())[0] == [[3, 4, 7, 8]]
    assert read(spark, replace(source, start_from="2027-01-01T00:00:00Z"), Progress()) == ([], Progress())
    nothing, latest = read(spark, replace(source, start_from="Latest"), Progress())
    assert nothing == [[]], "a commit without rows holds the position"
    assert read(spark, source, latest) == ([], latest)
    put(server, name, 102, *rows([9], "a", "v", 1))
    assert read(spark, source, latest)[0] == [[8, 9]], "not below the value at which it began"

    server.run(f"DELETE FROM {name} WHERE id > 6")
    gone, less = read(spark, source, after)
    assert gone == [[]], "the rows at the position were deleted: what comes there is noticed"
    assert read(spark, source, less) == ([], less)
    put(server, name, 99, *rows([10], "a", "again", 1))
    assert read(spark, source, less)[0] == [[10]]
    ids = replace(source, column="id", lag=0)
    assert read(spark, ids, Progress())[0] == [[1, 2, 3, 4, 5, 6, 10]]
    split = replace(ids, partition_column="id", partitions=3)
    assert read(spark, split, Progress())[0] == [[1, 2, 3, 4, 5, 6, 10]]
    by_time = replace(split, partition_column="changed")
    assert read(spark, by_time, Progress())[0] == [[1, 2, 3, 4, 5, 6, 10]]
    query = replace(ids, table="", query=f"SELECT id + 100 AS id, v FROM {name} WHERE v <> 'late'")
    assert read(spark, query, Progress())[0] == [[101, 102, 103, 104, 106, 110]]
    whole = jdbc.whole(spark, replace(split, column=""))
    assert sorted(row.id for row in whole.collect()) == [1, 2, 3, 4, 5, 6, 10]
    changed = {row.id: row.changed.replace(tzinfo=UTC) for row in whole.collect()}
    assert changed[3] == NOON + timedelta(microseconds=1), "times of the database are in UTC"


@pytest.mark.extra
def test_rows_are_read_once(spark: Any, server: SqlServer) -> None:
    """Whatever changes before they are written, or written again."""
    orders(server, "once")
    put(server, "once", 0, *rows([1, 2], "a", "before", 1))
    source = source_of(server.source("once", "changed"))
    (part,) = jdbc.parts(spark, source, Progress())
    whole = jdbc.whole(spark, replace(source, column=""))
    put(server, "once", 0, *rows([1, 3], "a", "after", 2))
    for frame in (part.frame, whole):
        for _ in range(2):
            assert sorted((row.id, row.v) for row in frame.collect()) == [(1, "before"), (2, "before")]


@pytest.mark.extra
def test_what_cannot_be_read_is_told(spark: Any, server: SqlServer, tmp_path: Path) -> None:
    name = "refused"
    orders(server, name)
    server.run(f"ALTER TABLE {name} ADD COLUMN part double precision")
    put_null = f"INSERT INTO {name} (id, p, v, ts) VALUES (1, 'a', 'v', 1)"
    server.run(put_null)
    source = source_of(server.source(name, "changed"))

    def told(changed: JdbcSource, done: Progress = Progress()) -> str:  # noqa: B008 - immutable
        with pytest.raises(RuntimeFailure) as failure:
            read(spark, changed, done)
        assert PASSWORD not in str(failure.value)
        assert failure.value.failure is FailureClass.USER_ERROR, failure.value
        return str(failure.value)

    assert "changed is null in a row, which would never be read" in told(source)
    assert "column part is of type" in told(replace(source, column="part"))
    assert "column v is of type" in told(replace(source, column="v"))
    assert "source.jdbc: 127.0.0.1" in told(replace(source, table="nothing"))
    assert "source.jdbc: 127.0.0.1" in told(replace(source, column="nothing"))
    assert "source.jdbc: 127.0.0.1" in told(replace(source, table="", query="SELECT FROM WHERE"))
    assert "source.jdbc: 127.0.0.1" in told(replace(source, database="nothing"))
    assert "'5' is no time" in told(replace(source, start_from="5"))
    position = {"database": "shop", "table": name, "column": "id", "kind": "number", "begin": "", "to": "1", "rows": 1}
    done = of_checkpoint(jdbc_checkpoint(1, position))
    assert "source.jdbc.incremental.column: this writer has read id until now" in told(source, done)
    orders(server, "other")
    assert "source.jdbc.table: this writer has read refused until now" in told(
        replace(source, column="id", table="other"), done
    )
    changed = of_checkpoint(jdbc_checkpoint(1, {**position, "column": "changed"}))
    assert "changed held a number and holds a time now" in told(source, changed)
    assert "came from a source of another kind" in told(source, replace(done, jdbc=None, digest="x"))
    with pytest.raises(RuntimeFailure, match=r"source\.jdbc: 127\.0\.0\.1:1: ") as silent:
        read(spark, replace(source, port=1), Progress())
    assert silent.value.failure is FailureClass.INFRASTRUCTURE
    for key, text in (("username", "reader"), ("password", "another one")):
        assert f"the Secret has no key {key}" in told(replace(source, folder=str(tmp_path)))
        (tmp_path / key).write_text(text)
    assert "source.jdbc: 127.0.0.1" in told(replace(source, folder=str(tmp_path)))


@pytest.mark.extra
def test_a_query_changes_nothing(spark: Any, postgres: PostgresServer) -> None:
    """Not even with a function, by a user who may."""
    orders(postgres, "kept")
    put(postgres, "kept", 0, *rows([1], "a", "v", 1))
    postgres.run(
        "CREATE FUNCTION emptied() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'DELETE FROM kept RETURNING id'"
    )
    source = source_of(postgres.source("", query="SELECT emptied() AS id"))
    with pytest.raises(RuntimeFailure, match="read-only transaction"):
        jdbc.whole(spark, source)
    assert content(postgres, "kept") == rows([1], "a", "v", 1)


@pytest.mark.extra
def test_a_server_is_known_by_its_certificate(spark: Any, postgres: PostgresServer, tmp_path: Path) -> None:
    orders(postgres, "verified")
    put(postgres, "verified", 0, *rows([1], "a", "v", 1))
    for name in ("username", "password"):
        (tmp_path / name).write_text((postgres.secret / name).read_text())
    source = source_of(postgres.source("verified", tls="Verify", folder=str(tmp_path)))
    with pytest.raises(RuntimeFailure, match=r"(?i)certif|PKIX"):
        jdbc.whole(spark, source)
    (tmp_path / "ca.crt").write_text(postgres.authority)
    assert [row.id for row in jdbc.whole(spark, source).collect()] == [1]
    with pytest.raises(RuntimeFailure, match=r"(?i)host ?name"):
        jdbc.whole(spark, replace(source, host="localhost"))


@pytest.mark.extra
@pytest.mark.timeout(4 * LIMIT)
@pytest.mark.parametrize("operation", ["upsert", "insert"])
def test_a_writer_that_is_killed_in_its_write(
    world: World, agent: Process, postgres: PostgresServer, operation: str
) -> None:
    """I9: between the read of a batch and its commit. The position stays, and rows that have
    changed meanwhile are in the table as they are, each once.
    """
    name = f"killed_{operation}"
    orders(postgres, name)
    for second in range(10):
        put(postgres, name, second, *halves(range(4 * second, 4 * second + 4), "v", 1))
    table = world.table(name.replace("_", "-"))
    world.create(table, agent=AGENT, process=agent)
    job = {"operation": operation, **({"duplicates": "Drop"} if operation == "insert" else {})}
    source = postgres.source(name, "changed", maxRowsPerCommit=12)
    dead = table.writer("orders", jdbc=source, transform=OWN, **job)
    until("it writes its second commit", lambda: _writes(dead, table, after=1), alive=dead, every=0.005, timeout=LIMIT)
    dead.kill()
    inc = table.fence(dead)
    put(postgres, name, 9, *halves([40, 41], "new", 1))
    if operation == "upsert":
        put(postgres, name, 11, *halves(range(20), "changed", 2))
    again = table.writer("orders", jdbc=source, transform=OWN, **job)
    assert again.wait(LIMIT) == 0, again.log()[-4000:]
    until("swept", lambda: table.outcomes(inc) is not None, alive=agent, timeout=LIMIT)
    table.audited(content(postgres, name))


def _writes(process: Process, table: Table, *, after: int) -> bool:
    mine = [i for i in table.keys("instant/") if i.value["inc"] == process.inc and i.value["state"] == "Pending"]
    pending = any(i.key.rsplit("/", 1)[-1] in table.pending() for i in mine)
    return len(process.protocol("publish")) >= after and pending


@pytest.mark.extra
@pytest.mark.timeout(4 * LIMIT)
def test_a_stream_beside_transactions(world: World, agent: Process, postgres: PostgresServer) -> None:
    """Rows change while the writer runs, in transactions that are committed up to two seconds after
    the time that they write; at the end the table has what the database has.
    """
    orders(postgres, "busy")
    table = world.table("jdbc-stream")
    world.create(table, agent=AGENT, process=agent)
    source = postgres.source("busy", "changed", lag=10)
    writer = table.writer("busy", jdbc=source, transform=OWN, streaming=1)
    dice, stop, failures = random.Random(1), threading.Event(), []

    def change() -> None:
        turn = 0
        try:
            while not stop.is_set():
                turn += 1
                number = dice.randrange(30)
                values = f"({number}, '{'ab'[number % 2]}', 'turn {turn}', {turn}, clock_timestamp())"
                replaced = "ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v, ts = EXCLUDED.ts, changed = EXCLUDED.changed"
                client = postgres.transaction(f"INSERT INTO busy VALUES {values} {replaced}")
                time.sleep(dice.choice((0, 0, 0.1, 2)))
                postgres.committed(client)
        except AssertionError as error:
            failures.append(error)

    changes = [threading.Thread(target=change) for _ in range(2)]
    for each in changes:
        each.start()
    try:
        until("five commits", lambda: len(writer.protocol("publish")) >= 5, alive=writer, timeout=LIMIT)
    finally:
        stop.set()
        for each in changes:
            each.join()
    assert not failures, failures
    known = len(writer.protocol("publish"))
    until("the rest", lambda: _caught_up(writer, known), alive=writer, timeout=LIMIT)
    writer.terminate()
    writer.wait(LIMIT)
    table.audited(content(postgres, "busy"))


def _caught_up(writer: Process, known: int) -> bool:
    """Whether it has not committed for ten reads."""
    before = len(writer.protocol("publish"))
    time.sleep(12)
    return len(writer.protocol("publish")) == before >= known
