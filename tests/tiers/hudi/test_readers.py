"""What readers see while a writer commits (RFC-22 R55): all of a commit or nothing of it, in every
file group, with Hudi's reader, hudi-rs, pandas and DuckDB.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlparse

import pytest

from tests.support.harness import own_rows, s3proxy
from tests.support.harness.local import Process, Table, World, committed, rows, until

PARTITIONS = "abcd"
COMMITS = 5


@pytest.fixture(scope="module")
def proxy(world: World) -> Iterator[s3proxy.Proxy]:
    """Before the store of writers and agents; readers go past it."""
    server = urlparse(world.start_s3())
    made = s3proxy.Proxy("127.0.0.1", (str(server.hostname), int(server.port or 80)))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def tended(world: World, proxy: s3proxy.Proxy) -> tuple[World, str, Process]:
    name = "agent-readers"
    return world, name, world.agent(name, storage=world.table("readers-any", endpoint=proxy.url))


def by_spark(table: Table) -> list[str]:
    frame = table.world.spark().read.format("hudi").load(table.path)
    return [row.v for row in frame.select("v").collect()]


def by_arrow(table: Table) -> Any:
    """An Arrow table, by hudi-rs."""
    builder = importlib.import_module("hudi").HudiTableBuilder.from_base_uri(table.path.replace("s3a://", "s3://"))
    snapshot = builder.with_options(table.world.s3_reader_options()).build().read_stream()
    arrow = importlib.import_module("pyarrow")
    return arrow.Table.from_batches(arrow.record_batch(batch) for batch in snapshot)


def by_hudi_rs(table: Table) -> list[str]:
    values: list[str] = by_arrow(table).to_pydict()["v"]
    return values


def by_pandas(table: Table) -> list[str]:
    return list(by_arrow(table).to_pandas()["v"])


def by_duckdb(table: Table) -> list[str]:
    found = importlib.import_module("duckdb").from_arrow(by_arrow(table)).project("v").fetchall()
    return [value for (value,) in found]


READERS = {"Spark": by_spark, "hudi-rs": by_hudi_rs, "pandas": by_pandas, "DuckDB": by_duckdb}


def state(number: int) -> str:
    return f"{number:03d}"


def batch(number: int) -> dict[str, Any]:
    """Every row of the table, with the value of this state."""
    return {
        "rows": [
            row
            for at, p in enumerate(PARTITIONS)
            for row in rows(range(10 * at, 10 * at + 10), p, state(number), number)
        ]
    }


class Looks:
    """What each reader has seen, look by look."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.seen: dict[str, list[str]] = {reader: [] for reader in READERS}

    def look(self) -> set[str]:
        """The states that the readers see now."""
        for reader, read in READERS.items():
            values = read(self._table)
            assert len(values) == 10 * len(PARTITIONS), f"{reader}: {sorted(values)}"
            assert len(set(values)) == 1, f"{reader} has seen a part of a commit: {sorted(values)}"
            self.seen[reader].append(values[0])
        return {values[-1] for values in self.seen.values()}


@pytest.mark.parametrize("kind", [pytest.param("CopyOnWrite", marks=pytest.mark.extra), "MergeOnRead"])
def test_a_commit_is_seen_whole_or_not_at_all(
    tended: tuple[World, str, Process], proxy: s3proxy.Proxy, kind: str
) -> None:
    """Each commit rewrites every row of four partitions, so a snapshot has one value.

    And it never goes back. While the PUT of a completed instant is on the wire the whole state
    before it is read, and when it has arrived, the whole state after it.
    """
    world, name, agent = tended
    patient = {"fs.s3a.connection.timeout": "240000"}  # the PUT is not sent again while readers look
    table = world.table(f"whole-{kind.lower()}", type=kind, endpoint=proxy.url, s3_options=patient)
    world.create(table, agent=name, process=agent)
    world.spark()
    writer = table.writer("writer", python={"batches": [batch(number) for number in range(COMMITS + 1)]})
    until("the first commit is there", lambda: committed(table.folder), alive=writer)
    looks, held = Looks(table), proxy.hold_next(s3proxy.completed)
    while not held.arrived.is_set():
        assert writer.poll() is None, writer.log()[-4000:]
        looks.look()
    before = len(table.timeline().completed) - 1
    assert looks.look() == {state(before)}, "a commit on the wire is not seen"
    match = s3proxy.COMPLETED.match(held.line)
    assert match is not None
    assert match[1] in table.pending(), "it was on the wire all the time"
    following = proxy.hold_next(s3proxy.completed)
    held.deliver.set()
    until("the commit has arrived", held.delivered.is_set, alive=writer)
    assert " 200 " in held.answer, held.answer
    assert looks.look() == {state(before + 1)}
    assert len(table.timeline().completed) == before + 2, "none has followed"
    following.deliver.set()
    while writer.poll() is None:
        looks.look()
    assert writer.wait() == 0, writer.log()[-4000:]
    assert looks.look() == {state(COMMITS)}
    for reader, values in looks.seen.items():
        print(f"{kind}, {reader}: {len(values)} looks, {len(set(values))} of {COMMITS + 1} states")
        assert values == sorted(values), f"{reader} has seen the table go back"
        assert len(set(values)) >= 3, f"{reader} has seen too few states for this to say something: {values}"
    table.audited(batch(COMMITS)["rows"])
    own_rows.same(table.folder, batch(COMMITS)["rows"])
