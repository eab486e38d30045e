"""`make faults`: put every fault to every setup, and write docs/results/faults.md.

    python -m tests.faults                      what has no result yet for this commit and these versions
    python -m tests.faults paused-writer/ours   only this cell (or `paused-writer`: its row)
    python -m tests.faults --table              only the table, from the results that are there

Each cell is a process of its own with etcd, an S3 server, a proxy before it, Spark writers and the agent (or ZooKeeper), ended after
FAULTS_CELL_SECONDS (180). Its result is one file in build/faults, so that a run that was cut off is continued. Exit status 1 when a cell is
not what it must be.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.faults import table
from tests.faults.apart import RESULT, run_apart
from tests.faults.results import OUT, Cell, key, load, save
from tests.faults.scenarios import SCENARIOS, Scenario, run
from tests.faults.sides import SETUPS

LIMIT = float(os.environ.get("FAULTS_CELL_SECONDS", "180"))


def cells(names: list[str]) -> list[Cell]:
    """The named cells, all if none is named. Exits when a name is none."""
    every = [Cell(scenario.id, setup) for scenario in SCENARIOS for setup in SETUPS]
    for name in names:
        if not any(name in (cell.scenario, cell.name) for cell in every):
            raise SystemExit(f"{name}: no such fault; choose from {', '.join(dict.fromkeys(cell.scenario for cell in every))}, or fault/setup")
    return [cell for cell in every if not names or cell.scenario in names or cell.name in names]


def scenario_of(cell: Cell) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.id == cell.scenario)


def expected(cell: Cell) -> str:
    return scenario_of(cell).expected[cell.setup]


def run_cell(cell: Cell) -> dict[str, Any]:
    """Run one cell in a process of its own; what it has left is removed, its logs are kept when it is not what it must be."""
    folder = Path(tempfile.mkdtemp(prefix=f"faults-{cell.scenario}-"))
    log = OUT / f"{cell.file}.log"
    command = [sys.executable, "-m", "tests.faults", "--cell", cell.name, "--folder", str(folder)]
    result = run_apart(command, folder, log=log, limit=LIMIT + scenario_of(cell).takes_seconds)
    if result["verdict"] == expected(cell):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        result["folder"] = str(folder)
    return result


def inside(name: str, folder: Path) -> None:
    """The cell itself."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scenario, _, setup = name.partition("/")
    result = run(next(s for s in SCENARIOS if s.id == scenario), setup, folder)
    (folder / RESULT).write_text(json.dumps(result))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="fault, or fault/setup")
    parser.add_argument("--table", action="store_true", help="write the table only")
    parser.add_argument("--again", action="store_true", help="run also what has a result")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.cell:
        inside(given.cell, given.folder)
        return 0
    OUT.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for cell in cells(given.names) if not given.table else ():
        wanted = expected(cell)
        if wanted.startswith("n/a"):
            continue
        result = None if given.again else load(cell)
        if result is None or result["key"] != key():
            begin = time.monotonic()
            result = save(cell, run_cell(cell))
            print(f"{cell.name}: {result['verdict']} ({time.monotonic() - begin:.0f} s): {result['told']}", flush=True)
        else:
            print(f"{cell.name}: {result['verdict']} (result of this commit): {result['told']}", flush=True)
        if result["verdict"] != wanted:
            wrong += 1
            print(f"  NOT what it must be: {wanted}; log: {OUT / (cell.file + '.log')}; files: {result.get('folder', '-')}", flush=True)
    path = table.write()
    print(f"{path}; {wrong} cells are not what they must be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
