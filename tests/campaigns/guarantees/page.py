"""docs/use/guarantees.md, from the cells: `python -m tests.campaigns.guarantees.page`."""

from __future__ import annotations

from pathlib import Path

from tests.campaigns.guarantees.rows import ROWS, Cell, Row, named
from tests.support.evidence import catalog

PAGE = Path(__file__).resolve().parents[3] / "docs" / "use" / "guarantees.md"
HEAD = """# Guarantees

What writers that work on one table at once can do to each other. Written by
`python -m tests.campaigns.guarantees.page` from `tests/campaigns/guarantees/rows.py`; do not edit.
A number is that of the test below which shows the cell with the real Hudi, Spark and etcd; "not run"
is a cell that no test shows, whatever follows from the protocol. Behind each test stands the run
that it is in: `make test` and CI (every change), or `make test-all`; when it passed last, and on
which commit: [last-run.md](../results/last-run.md).

In the terms of [jepsen.io/consistency](https://jepsen.io/consistency), where a commit is a
transaction: a batch (`Upsert`, `Insert`, `BulkInsert`, `Delete`) reads nothing that its rows depend
on, so lost rows and doubled keys are what can go wrong. An `Update`
([sources](sources.md#read-modify-write)) reads and writes. Snapshot isolation is promised for it (no
lost update, P4; write skew, A5B, is possible): one history was run, and the transactions of
[chaos](../results/chaos.md). With `serializable`, or in the mode NonBlocking, such writers shall be
serializable (no G2): no history of that was run ([history](../results/history.md)). A reader's
snapshot has what was completed when its files were listed.

| operation | mode | index | type | duplicates | lost update | write skew | what a reader sees |
|---|---|---|---|---|---|---|---|
"""


def page() -> str:
    """Its text."""
    numbers = {test: n for n, test in enumerate(dict.fromkeys(named()), 1)}
    lines = [_line(row, numbers) for row in ROWS]
    shown = [f"{n}. `{test}` ({_run(test)})" for test, n in numbers.items()]
    return HEAD + "\n".join(lines) + "\n\nTests:\n\n" + "\n".join(shown) + "\n"


def _run(test: str) -> str:
    """The run that it is in, its parameters not looked at."""
    return catalog.run_of(catalog.named(test.partition("[")[0]))


def _line(row: Row, numbers: dict[str, int]) -> str:
    return (
        "| "
        + " | ".join([row.operation, row.mode, row.index, row.type, *(_cell(cell, numbers) for cell in row.cells)])
        + " |"
    )


def _cell(cell: Cell | None, numbers: dict[str, int]) -> str:
    return "not run" if cell is None else f"{cell.claim} [{numbers[cell.test]}]"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
