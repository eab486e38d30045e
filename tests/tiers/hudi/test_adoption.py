"""From stock Hudi to us and back: an existing table with what a dead writer has left is adopted,
written, released and written by stock Hudi.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_runtime.table.timeline import WRITE_ACTIONS
from tests.support.harness.local import Process, Table, World, rows, until
from tests.support.harness.stock_tables import StockTable, adopt, release

pytestmark = pytest.mark.extra

CHECKS = ("rows", "hudi-rs", "files", "metadata")


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
    table.audited(mixed, only=CHECKS)

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
    table.audited(mixed, only=CHECKS)

    # Released: stock Hudi writes on, with the settings that it had.
    release(table, name, agent)
    stock.upsert(rows(range(5, 15), "a", "again", 5))
    after = rows(range(5), "a", "ours", 3) + rows(range(5, 15), "a", "again", 5)
    table.audited(after, only=CHECKS)
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
        only=CHECKS,
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
    table.audited([(1, "a", "stock", None), (2, "a", "ours", 3)], only=CHECKS)


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
    table.audited(rows([1, 2], "a", "ours", 3), only=CHECKS)


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
        table.audited(rows(range(3), "a", "stock", 1), only=CHECKS)
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
