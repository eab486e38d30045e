"""`make prove-stock-hudi`: the same pause of a writer with stock Hudi and ZooKeeper, and with ours,
told step by step.

Two writers update different rows of one file group. The first is stopped (SIGSTOP: a long garbage
collection, a frozen node) inside its critical section, for longer than its lock's lease; the second
one commits; the first goes on. Exit status 0 when stock Hudi's table is corrupt afterwards and ours
is not.
"""

from __future__ import annotations

import sys

from tests.campaigns.faults.cells import run_cell, scenario_of
from tests.campaigns.faults.results import Cell, save
from tests.campaigns.faults.sides import SETUPS
from tests.support.evidence import commit
from tests.support.evidence.versions import versions

FAULT = "paused-writer"


def main() -> int:
    print(scenario_of(Cell(FAULT, "ours")).fault)
    print(f"commit {commit()}; {', '.join(f'{name} {value}' for name, value in versions().items())}\n")
    verdicts = {}
    for setup in ("stock", "ours"):
        print(f"{SETUPS[setup]} …", flush=True)
        cell = Cell(FAULT, setup)
        found = save(cell, run_cell(cell))
        verdicts[setup] = found["verdict"]
        for note in found.get("notes", ()):
            print(f"  {note}")
        print(f"  the audit: {found['verdict'].upper()}: {found['told']}")
        for finding in found.get("findings", ()):
            print(f"    {finding}")
        print(flush=True)
    shown = verdicts == {"stock": "corrupt", "ours": "ok"}
    print("Shown: the lease lock let the table be corrupted, ours did not." if shown else f"NOT shown: {verdicts}")
    return 0 if shown else 1


if __name__ == "__main__":
    sys.exit(main())
