"""`make matrix`: RFC-22's test plan and the cells about new keys, cell by cell, and
docs/results/matrix.md.

    python -m tests.campaigns.matrix                              what has no result yet for this
                                                                  commit and these versions
    python -m tests.campaigns.matrix --only 'mor/overlapping/./s3'   only cells whose name matches
    python -m tests.campaigns.matrix --missing                    only cells that have no good
                                                                  result of any commit
    python -m tests.campaigns.matrix --table                      only the page, from the results
                                                                  that are there
    python -m tests.campaigns.matrix --list                       the names of the cells

Each cell is a separate process, ended after MATRIX_CELL_SECONDS (180). Its result is one file in
docs/results/raw/matrix, so that a run that was cut off is continued. Exit status 1 when a cell is
not ok.
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

from tests.campaigns.matrix import cells, page, results
from tests.campaigns.matrix.cells import Cell
from tests.support.harness.apart import RESULT, TOLD, run_apart

LIMIT = float(os.environ.get("MATRIX_CELL_SECONDS", "180"))


def run_cell(cell: Cell, *, limit: float = LIMIT) -> dict[str, Any]:
    """Run one cell in a separate process.

    Its files are removed when it is ok, else its folder is named in the result.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"matrix-{cell.file}-"))
    results.OUT.mkdir(parents=True, exist_ok=True)
    log = results.OUT / f"{cell.file}.log"
    command = [sys.executable, "-m", "tests.campaigns.matrix", "--cell", cell.name, "--folder", str(folder)]
    begin = time.monotonic()
    result = run_apart(command, folder, log=log, limit=limit)
    if result["verdict"] == "ok":
        shutil.rmtree(folder, ignore_errors=True)
    else:
        result |= {"folder": str(folder), "seconds": round(time.monotonic() - begin)}
    return result


def inside(cell: Cell, folder: Path) -> None:
    """The cell itself."""
    from tests.campaigns.matrix.run import run

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    result = run(cell, folder)
    (folder / RESULT).write_text(json.dumps(result))


def matrix(wanted: tuple[Cell, ...], *, again: bool) -> int:
    """Run what has no result yet; returns how many of these cells are not ok."""
    wrong = 0
    for number, cell in enumerate(wanted, start=1):
        result = None if again else results.load(cell)
        old = result is not None and result["key"] == results.key()
        if result is None or not old:
            result = results.save(cell, run_cell(cell))
        when = "result of this commit" if old else f"{result.get('seconds', '?')} s"
        print(
            f"[{number}/{len(wanted)}] {cell.name}: {result['verdict']} ({when}): {result['told'][:TOLD]}", flush=True
        )
        if result["verdict"] != "ok":
            wrong += 1
            print(f"  log: {results.OUT / (cell.file + '.log')}; files: {result.get('folder', '-')}", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.matrix",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="only cells whose name matches")
    parser.add_argument("--table", action="store_true", help="write the page only")
    parser.add_argument("--list", action="store_true", help="print the names of the cells")
    parser.add_argument("--missing", action="store_true", help="only cells without a good result, of whatever commit")
    parser.add_argument("--again", action="store_true", help="run also what has a result")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.cell:
        inside(cells.cell(given.cell), given.folder)
        return 0
    try:
        wanted = cells.chosen(given.only)
    except ValueError as error:
        parser.error(str(error))
    if given.missing:
        wanted = tuple(cell for cell in wanted if (results.load(cell) or {}).get("verdict") != "ok")
    if given.list:
        print("\n".join(cell.name for cell in wanted))
        return 0
    wrong = 0 if given.table else matrix(wanted, again=given.again)
    path = page.write(results.load, results.before())
    print(f"{path}; {wrong} cells are not ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
