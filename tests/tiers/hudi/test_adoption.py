"""From stock Hudi to us and back: an existing table with what a dead writer has left is adopted,
written, released and written by stock Hudi.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_runtime.agent.stored_rows import SAMPLE
from hudi_runtime.table.timeline import WRITE_ACTIONS
from tests.support.harness.local import Process, Table, World, rows, until
from tests.support.harness.stock_tables import StockTable, adopt, release
from tests.support.oracle import not_seen

pytestmark = pytest.mark.extra
UNSEEN = not_seen("origin", "stray", "owners", "incremental", "late", "overlap")
"""Of buckets, which may have log files alone."""


def refusal(table: Table, agent: Process, code: str) -> dict[str, Any]:
    report = until(
        f"the agent reports {code}",
        lambda: table.report() if (table.report().get("error") or {}).get("code") == code else None,
        alive=agent,
    )
    return dict(report)


def adopted(table: Table, agent: Process) -> None:
    until("the table is adopted", lambda: table.report().get("exists") and not table.report().get("error"), alive=agent)
    table.gate("open")


@pytest.mark.parametrize("type", ["CopyOnWrite", "MergeOnRead"])
def test_there_and_back(world: World, type: str) -> None:
    table = world.table(f"old-{type.lower()}", type=type)
    stock = StockTable(world, table)
    stock.upsert(rows(range(10), "a", "stock", 1))
    properties = table.folder / ".hoodie" / "hoodie.properties"
    assert "timezone=LOCAL" in properties.read_text(), "plain settings"
    stale = stock.dies_in_its_write(rows(range(10), "a", "lost", 2))
    left = table.data_files(stale)

    # Adopted: refused first, with the instants by name; nothing has changed then.
    before = sorted(
        (path.relative_to(table.folder), path.stat().st_mtime_ns) for path in table.folder.rglob("*") if path.is_file()
    )
    name = f"agent-{table.spec.ref.name}"
    agent = world.agent(name)
    table.gate("closed")
    world.admit_agent(table, name)
    report = refusal(table, agent, "PendingInstants")
    action = "commit" if type == "CopyOnWrite" else "deltacommit"
    assert report["foreign"] == [{"instant": stale, "action": action}]
    assert (
        sorted(
            (path.relative_to(table.folder), path.stat().st_mtime_ns)
            for path in table.folder.rglob("*")
            if path.is_file()
        )
        == before
    )
    inc = adopt(table, {stale: action})
    assert until("the stale instant is settled", lambda: table.outcomes(inc), alive=agent) == {stale: "RolledBack"}
    table.settled(inc)
    adopted(table, agent)
    assert table.pending() == set()
    assert not set(left) & set(table.data_files())
    assert "timezone=UTC" in properties.read_text()

    # Written by ours.
    writer = table.writer("ours", python={"batches": [{"rows": rows(range(5), "a", "ours", 3)}]})
    assert writer.wait() == 0, writer.log()[-4000:]
    mixed = rows(range(5), "a", "ours", 3) + rows(range(5, 10), "a", "stock", 1)
    table.audited(mixed, without=UNSEEN)

    # Somebody who was not told writes with stock Hudi: shown within a minute, although his commit
    # is complete, and not touched.
    known = {i.requested for i in table.timeline().instants}
    stock.upsert(rows(range(9, 10), "a", "stranger", 4))
    (stranger,) = {i.requested for i in table.timeline().completed if i.action in WRITE_ACTIONS} - known
    until(
        "the stranger is shown",
        lambda: stranger in {item["instant"] for item in table.report()["foreign"]},
        timeout=60,
        alive=agent,
    )
    mixed = mixed[:-1] + rows(range(9, 10), "a", "stranger", 4)
    table.audited(mixed, without=UNSEEN)

    # Released: stock Hudi writes on, with the settings that it had.
    release(table, name, agent)
    stock.upsert(rows(range(5, 15), "a", "again", 5))
    after = rows(range(5), "a", "ours", 3) + rows(range(5, 15), "a", "again", 5)
    table.audited(after, without=UNSEEN)
    newest = table.timeline().maximum

    # And adopted once more: the clock goes past what stock Hudi wrote meanwhile (I10).
    table.gate("closed")
    world.admit_agent(table, name)
    adopted(table, agent)
    assert (table.get("clock") or {})["value"] >= newest
    writer = table.writer("ours", python={"batches": [{"rows": rows(range(3), "a", "more", 6)}]}, run=2)
    assert writer.wait() == 0, writer.log()[-4000:]
    table.audited(
        rows(range(3), "a", "more", 6) + rows(range(3, 5), "a", "ours", 3) + rows(range(5, 15), "a", "again", 5),
        without=UNSEEN,
    )
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]


def test_rows_that_were_there_before_are_taken_over(world: World) -> None:
    """F286: a row with null in its ordering column is in the file that user code rewrites, and is
    not its row.
    """
    table = world.table("old-nulls")
    StockTable(world, table).upsert([(1, "a", "stock", None), (2, "a", "stock", 1)])
    name = f"agent-{table.spec.ref.name}"
    agent = world.agent(name)
    table.gate("closed")
    world.admit_agent(table, name)
    adopted(table, agent)
    writer = table.writer("ours", python={"batches": [{"rows": rows([2], "a", "ours", 3)}]})
    assert writer.wait() == 0, writer.log()[-4000:]
    table.audited([(1, "a", "stock", None), (2, "a", "ours", 3)])


def test_a_row_that_an_update_would_make_unreadable_is_found(world: World) -> None:
    """F331: null in an ordering column of a MergeOnRead table; its advice helps."""
    table = world.table("old-unordered", type="MergeOnRead")
    stock = StockTable(world, table)
    stock.upsert([(1, "a", "stock", None), (2, "a", "stock", 1)])
    name = f"agent-{table.spec.ref.name}"
    agent = world.agent(name)
    table.gate("closed")
    world.admit_agent(table, name)
    report = refusal(table, agent, "TableMismatch")
    assert "null in ts, first found at the record id='1'; delete these rows" in report["error"]["message"]
    stock.delete(rows([1], "a", "", 1))
    stock.upsert(rows([1], "a", "again", 1))
    adopted(table, agent)
    writer = table.writer("ours", python={"batches": [{"rows": rows([1, 2], "a", "ours", 3)}]})
    assert writer.wait() == 0, writer.log()[-4000:]
    table.audited(rows([1, 2], "a", "ours", 3))


def test_what_does_not_fit_is_refused_by_name_and_value(world: World) -> None:
    """Real properties of real tables; the table is not touched."""
    keyed = world.table("keyed")
    complex_keys = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}
    StockTable(world, keyed, complex_keys).upsert(rows(range(3), "a", "stock", 1))
    bucket = world.table("bucketed")
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    StockTable(world, bucket, buckets).upsert(rows(range(3), "a", "stock", 1))
    refused = world.table("refused", path=keyed.path, tableName="keyed", adoption={"policy": "Create"})
    missing = world.table("missing", adoption={"policy": "Adopt"})
    agent = world.agent("agent-refusals")
    for table in (keyed, bucket, missing):
        table.gate("closed")
        world.admit_agent(table, "agent-refusals")
    assert (
        "hoodie.table.keygenerator: needed 'SimpleKeyGenerator'"
        in refusal(keyed, agent, "TableMismatch")["error"]["message"]
    )
    assert "table has a bucket index" in refusal(bucket, agent, "TableMismatch")["error"]["message"]
    assert "no Hudi table at" in refusal(missing, agent, "TableNotFound")["error"]["message"]
    assert not list(missing.folder.rglob("*")), "the probe of the store has left something"
    for table in (keyed, bucket):
        table.audited(rows(range(3), "a", "stock", 1), without={"late": "a table that is refused has no marker"})
    properties = keyed.folder / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text() + "hoodie.write.concurrency.mode=SINGLE_WRITER\n")
    hostile = "hoodie.write.concurrency.mode: the operator sets 'OPTIMISTIC_CONCURRENCY_CONTROL', table 'SINGLE_WRITER'"
    until(
        "the hostile property is named",
        lambda: hostile in refusal(keyed, agent, "TableMismatch")["error"]["message"],
        alive=agent,
    )
    refused.assign("agent-refusals")
    assert "policy is Create" in refusal(refused, agent, "TableExists")["error"]["message"]
    assert not (keyed.folder / ".hoodie" / "hudi-operator").exists()
    assert "timezone=LOCAL" in properties.read_text()


def said(table: Table, agent: Process, words: str) -> None:
    """The agent does not adopt the table, for that reason."""
    until(
        f"the agent says: {words}",
        lambda: words in str((table.report().get("error") or {}).get("message")),
        alive=agent,
    )


@pytest.mark.parametrize("type", ["CopyOnWrite", "MergeOnRead"])
def test_an_index_that_would_find_no_row_is_refused(world: World, type: str) -> None:
    """F631: a table of 8 buckets, as after the deletion of its HudiTable, whose last write has no
    files: its rows tell the index. Adopted as it is, no update adds a row.
    """
    name, path = f"agent-buckets-{type.lower()}", world.url(world.lake / f"buckets-{type.lower()}")

    def named(what: str, **spec: object) -> Table:
        return world.table(f"buckets-{what}-{type.lower()}", type=type, path=path, tableName="buckets", **spec)

    doubled = named("16", index={"type": "Bucket", "buckets": 16})
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "8"}
    stock = StockTable(world, doubled, buckets)
    stock.upsert([*rows(range(20), "a", "stock", 1), *rows([20], "b", "stock", 1)])
    gone = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "b",
    }
    stock.upsert(rows([20], "b", "gone", 2), gone)
    agent = world.agent(name)
    doubled.gate("closed")
    world.admit_agent(doubled, name)
    said(doubled, agent, "index: spec has 16 buckets, of which the row with the key ")
    named("4", index={"type": "Bucket", "buckets": 4}).assign(name)
    said(doubled, agent, "index: spec has 4 buckets, table has bucket ")
    named("none").assign(name)
    said(doubled, agent, "table has a bucket index")
    assert not (doubled.folder / ".hoodie" / "hudi-operator").exists()
    right = named("8", index={"type": "Bucket", "buckets": 8})
    right.assign(name)
    adopted(right, agent)
    writer = right.writer("ours", python={"batches": [{"rows": rows(range(20), "a", "ours", 3)}]})
    assert writer.wait() == 0, writer.log()[-4000:]
    right.audited(rows(range(20), "a", "ours", 3))
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]


@pytest.mark.parametrize("type", ["CopyOnWrite", "MergeOnRead"])
def test_keys_without_the_name_of_their_field_are_refused(world: World, type: str) -> None:
    """F631: as Hudi 0.14.1 to 1.0.2 wrote them; a table of version 9 keeps them, and its writers
    make others. The row that tells it is not among those of the largest file.
    """
    name = f"bare-{type.lower()}"
    table = world.table(name, type=type, partitionFields=["p", "v"])
    bare = {
        "hoodie.datasource.write.partitionpath.field": "p,v",
        "hoodie.write.table.version": "8",
        "hoodie.write.auto.upgrade": "false",
        "hoodie.write.complex.keygen.new.encoding": "true",
        "hoodie.write.complex.keygen.validation.enable": "false",
        "hoodie.metadata.enable": "false",
    }
    stock = StockTable(world, table, bare)
    stock.upsert(rows([7], "z", "old", 1))
    now = {"hoodie.write.table.version": "9", "hoodie.write.auto.upgrade": "true"}
    stock.upsert(rows(range(1000, 1000 + 2 * SAMPLE), "a", "new", 1), now)
    agent = world.agent(f"agent-{name}")
    table.gate("closed")
    world.admit_agent(table, f"agent-{name}")
    said(table, agent, "recordKeyFields: needed keys of the form 'id:7', table has a row with the key '7'")
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]
