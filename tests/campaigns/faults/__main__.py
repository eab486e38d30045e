"""`make faults`: put every fault to every setup, and write docs/results/faults.md.

    python -m tests.campaigns.faults                      what has no result yet for this commit and
                                                          these versions
    python -m tests.campaigns.faults paused-writer/ours   only this cell (or
                                                          `paused-writer`: its row)
    python -m tests.campaigns.faults --table              only the table, from the results
                                                          that are there

Each cell is a separate process with etcd, an S3 server, a proxy before it, Spark writers and the
agent (or ZooKeeper), ended after FAULTS_CELL_SECONDS (180). Its result is one file in
docs/results/raw/faults, so that a run that was cut off is continued. Exit status 1 when a cell is
not what it must be.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path

from tests.campaigns.faults import table
from tests.campaigns.faults.cells import cells, expected, run_cell
from tests.campaigns.faults.results import OUT, key, load, save
from tests.campaigns.faults.scenarios import SCENARIOS, run
from tests.support.harness.apart import RESULT


def inside(name: str, folder: Path) -> None:
    """The cell itself."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scenario, _, setup = name.partition("/")
    result = run(next(s for s in SCENARIOS if s.id == scenario), setup, folder)
    (folder / RESULT).write_text(json.dumps(result))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help="fault, or fault/setup")
    parser.add_argument("--table", action="store_true", help="write the table only")
    parser.add_argument("--again", action="store_true", help="run also what has a result")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.cell:
        inside(given.cell, given.folder)
        return 0
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
            print(
                (
                    f"  NOT what it must be: {wanted}; log: {OUT / (cell.file + '.log')}; files: "
                    f"{result.get('folder', '-')}"
                ),
                flush=True,
            )
    path = table.write()
    print(f"{path}; {wrong} cells are not what they must be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
