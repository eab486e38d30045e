"""A slice of `make history`: what a history of real writers shows and does not show.

And that stock Hudi loses updates, so that it could be seen.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.history.run import CELLS, Run, check, commits, final
from tests.campaigns.history.workload import judge, parse_notes, seed
from tests.support import seeds
from tests.support.harness.local import AGENT, Process, World, until
from tests.support.harness.stock import StockWriter
from tests.support.harness.stock_tables import OPTIONS, StockTable, spark_of

pytestmark = pytest.mark.extra


@pytest.mark.parametrize(
    "name", ["cow/Optimistic/Simple/update", "mor/NonBlocking/Bucket/update", "cow/Optimistic/Simple/serializable"]
)
def test_a_history_shows_nothing_that_was_promised_not_to_be(world: World, agent: Process, name: str) -> None:
    """I9: three writers, one round of steps, one of them killed in the middle and followed."""
    (cell,) = (cell for cell in CELLS if cell.name == name)
    chance = seeds.drawn()
    print(f"{seeds.VARIABLE}={chance}")
    run = Run(world, agent, AGENT, cell, rounds=1, seed_of_chance=chance)
    run.play()
    found = run.found()
    assert found.commits >= 1 + len(run.names)
    assert check(cell, found) == [], found.told
    assert found.met + run.conflicts >= 2, "two have read while another one was under way, or were refused for it"
    assert run.audited() == {}


def test_stock_hudi_loses_updates(world: World, tmp_path: Path) -> None:
    """Two writers with plain settings read a list, then one writes after the other: no write
    overlaps another one, so no lock would help.
    """
    table = world.table("history-stock")
    stock = StockTable(world, table)
    stock.upsert(seed(1))
    options = {
        **OPTIONS,
        "hoodie.table.name": table.spec.table_name,
        "hoodie.datasource.write.table.type": table.spec.hudi_type,
    }
    writers = []
    for mark in ("a", "b"):
        gate, notes = tmp_path / f"go-{mark}", tmp_path / f"notes-{mark}"
        job = {
            "path": table.path,
            "options": options,
            "spark": spark_of(world),
            "mark": mark,
            "go": str(gate),
            "notes": str(notes),
        }
        writer = world.child(
            StockWriter(f"stock-{mark}", tmp_path / mark, job, module="tests.campaigns.history.stock_writer")
        )
        writers.append((writer, gate, notes))
    for writer, _, notes in writers:
        until("it has read", notes.exists, alive=writer)
    for writer, gate, _ in writers:
        gate.touch()
        assert writer.wait() == 0, writer.log()[-4000:]
        assert writer.acknowledged
    notes = [note for _, _, path in writers for note in parse_notes(path.read_text())]
    found = judge(notes, commits(table), final(table), 1)
    assert (found.commits, found.lost, found.anomalies) == (3, 1, {"G-single": 1})
    assert found.broken == ["G-single: 1", "lost: 1"]
