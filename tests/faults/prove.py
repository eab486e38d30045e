"""`make prove-stock-hudi`: the same pause of a writer with stock Hudi and ZooKeeper, and with ours, told step by step.

Two writers update different rows of one file group. The first is stopped (SIGSTOP: a long garbage collection, a frozen node) inside its critical
section, for longer than its lock's lease; the second one commits; the first goes on. Exit status 0 when stock Hudi's table is corrupt
afterwards and ours is not.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.faults.results import OUT, Cell, commit, save, versions
from tests.faults.scenarios import SCENARIOS, run
from tests.faults.sides import SETUPS

SCENARIO = next(scenario for scenario in SCENARIOS if scenario.id == "paused-writer")


def main() -> int:
    print(" ".join(SCENARIO.fault.split()))
    print(f"commit {commit()}; {', '.join(f'{name} {value}' for name, value in versions().items())}\n")
    OUT.mkdir(parents=True, exist_ok=True)
    verdicts = {}
    for setup in ("stock", "ours"):
        print(f"{SETUPS[setup]} …", flush=True)
        with tempfile.TemporaryDirectory(prefix="prove-") as folder:
            found = save(Cell(SCENARIO.id, setup), run(SCENARIO, setup, Path(folder)))
        verdicts[setup] = found["verdict"]
        for note in found["notes"]:
            print(f"  {note}")
        print(f"  the audit: {found['verdict'].upper()}: {found['told']}")
        for finding in found["findings"]:
            print(f"    {finding}")
        print(flush=True)
    shown = verdicts == {"stock": "corrupt", "ours": "ok"}
    print("Shown: the lease lock let the table be corrupted, ours did not." if shown else f"NOT shown: {verdicts}")
    return 0 if shown else 1


if __name__ == "__main__":
    sys.exit(main())
