"""Tables chain: writers whose source is another Hudi table, as real processes, in each of the three
orders (RFC-22, incremental reads).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.local import AGENT, Process, Row, Table, World, rows, until

LIMIT = 900.0
"""Seconds for one step on a machine with much else to do; nothing is measured."""
SEED = [rows(range(number * 10, number * 10 + 10), "a", f"seed{number}", 1) for number in range(3)]
LONG, QUICK = rows(range(100, 110), "b", "long", 1), rows(range(200, 210), "c", "quick", 1)
BEFORE: dict[str, list[list[Row]]] = {
    "CompletionTime": [*SEED, QUICK],
    "OutOfOrder": [*SEED, QUICK],
    "Fenced": SEED,
}
"""Commits of the source that a reader of that order may have while the long writer is pending."""


def reader(table: Table, source: Table, order: str, *, run: int) -> Process:
    """An attempt that copies row by row: what is given twice would be there twice."""
    return table.writer(
        "chain", run=run, hudi={"path": source.path, "order": order, "maxCommitsPerBatch": 1}, operation="insert"
    )


def killed_in_its_second_commit(table: Table, source: Table, order: str) -> tuple[Process, str]:
    process = reader(table, source, order, run=1)

    def second_begun() -> bool:
        timeline = table.timeline()
        return len(timeline.completed) == 1 and bool(timeline.pending)

    until("the second commit has begun", second_begun, alive=process, every=0.005, timeout=LIMIT)
    process.kill()
    (dead,) = table.pending()
    return process, dead


def ended(process: Process) -> dict[str, Any]:
    assert process.wait(LIMIT) == 0, process.log()[-4000:]
    return process.termination()


@pytest.mark.extra
@pytest.mark.timeout(6 * LIMIT)
def test_chained_tables_in_three_orders(world: World, agent: Process) -> None:
    """I9: a reader that is killed in its second commit is continued exactly once.

    A writer of the source that began first and ends last, after readers have passed it, is lost in
    no order.
    """
    source = world.table("chain-source")
    targets = {order: world.table(f"chain-{order.lower()}") for order in BEFORE}
    for table in (source, *targets.values()):
        world.create(table, agent=AGENT, process=agent)
    gate = world.folder / "gate-chain"
    long = source.writer(
        "long", python={"batches": [*({"rows": part} for part in SEED), {"rows": LONG, "gate": str(gate)}]}
    )
    until("the long write is under way", Path(f"{gate}.reached").exists, alive=long, timeout=LIMIT)
    (first_begun,) = source.pending()
    ended(source.writer("quick", python={"batches": [{"rows": QUICK}]}))

    for order, commits in BEFORE.items():
        table = targets[order]
        killed, dead = killed_in_its_second_commit(table, source, order)
        inc = table.fence(killed)
        told = ended(reader(table, source, order, run=1))
        assert (told["commits"], told["records"]) == (len(commits) - 1, 10 * (len(commits) - 1)), order
        assert until("swept", lambda table=table, inc=inc: table.outcomes(inc), alive=agent, timeout=LIMIT) == {
            dead: "RolledBack"
        }
        table.audited([row for part in commits for row in part])

    gate.touch()
    ended(long)
    ends = {i.requested: i.completion for i in source.timeline().completed}
    assert ends[first_begun] == max(ends.values()), "began before, completed after"
    everything = [*(row for part in SEED for row in part), *QUICK, *LONG]
    for order, commits in BEFORE.items():
        told = ended(reader(targets[order], source, order, run=2))
        assert told["commits"] == 5 - len(commits), order
        targets[order].audited(everything)
