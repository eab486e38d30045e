"""`make history`: histories of concurrent writers, and docs/results/history.md.

    python -m tests.campaigns.history                            what has no result yet
                                                                 for this commit
    python -m tests.campaigns.history --only 'cow/.*/update'     only runs whose name matches
    python -m tests.campaigns.history --rounds 8                 six steps of each writer in a round
                                                                 (default 3)
    python -m tests.campaigns.history --table                    only the page, from the results
                                                                 that are there

Each run is a separate process, ended after HISTORY_SECONDS (900). Its result is one file in
docs/results/raw/history. Exit status 1 when something is there that was promised not to be, or when
a run has no result.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.campaigns.history import page
from tests.campaigns.history.run import CELLS, Cell
from tests.support import seeds
from tests.support.evidence import RAW
from tests.support.evidence.replaced import with_earlier
from tests.support.harness.apart import RESULT, TOLD, run_apart

ROOT = page.ROOT
OUT = ROOT / "build" / "history"
"""Logs."""
STORE = RAW / "history"
LIMIT = float(os.environ.get("HISTORY_SECONDS", "900"))
TESTED = (
    "operator/hudi_contract",
    "operator/hudi_operator/api",
    "operator/hudi_operator/model",
    "operator/hudi_operator/manifests",
    "spark-images",
    "tests/campaigns/history",
    "tests/support/harness/local.py",
)
"""Files that a result depends on."""
NOT_TESTED = (":!spark-images/etcd-lock/src/test", ":!tests/campaigns/history/page.py", ":!**/*.md")


def commit() -> str:
    """The last commit that changed what is tested; `+` behind it when files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words, "--", *TESTED, *NOT_TESTED], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()

    return git("log", "-1", "--abbrev=10", "--format=%h") + ("+" if git("status", "--porcelain") else "")


def path(cell: Cell) -> Path:
    """File with the result of a run."""
    return STORE / f"{cell.name.replace('/', '-').lower()}.json"


def load(cell: Cell) -> dict[str, Any] | None:
    """The result of a run, of whatever commit; None: there is none."""
    return dict(json.loads(path(cell).read_text())) if path(cell).exists() else None


def apart(cell: Cell, *, rounds: int, chance: int) -> dict[str, Any]:
    """The run in a separate process; its folder is removed when it is ok."""
    for place in (OUT, STORE):
        place.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="history-"))
    command = [
        sys.executable,
        "-m",
        "tests.campaigns.history",
        "--inside",
        cell.name,
        "--folder",
        str(folder),
        "--rounds",
        str(rounds),
        "--chance",
        str(chance),
    ]
    result = run_apart(command, folder, log=OUT / path(cell).with_suffix(".log").name, limit=LIMIT)
    if result["verdict"] == "ok":
        shutil.rmtree(folder, ignore_errors=True)
    else:
        result["folder"] = str(folder)
    return save(cell, result)


def save(cell: Cell, result: dict[str, Any]) -> dict[str, Any]:
    """Write a result down with its commit, and with the verdicts of those that it replaces."""
    new = {**result, "commit": commit(), "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    full = with_earlier(new, load(cell))
    STORE.mkdir(parents=True, exist_ok=True)
    path(cell).write_text(json.dumps(full, indent=1) + "\n")
    return full


def inside(name: str, folder: Path, *, rounds: int, chance: int) -> None:
    """The run itself."""
    from tests.campaigns.history.run import run

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    (cell,) = (cell for cell in CELLS if cell.name == name)
    (folder / RESULT).write_text(json.dumps(run(cell, folder, rounds=rounds, seed_of_chance=chance)))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.history",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="only runs whose name matches")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chance", type=int, default=seeds.drawn(), help="seed of which records are chosen (drawn)")
    parser.add_argument("--table", action="store_true", help="write the page only")
    parser.add_argument("--again", action="store_true", help="run also what has a result")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        inside(given.inside, given.folder, rounds=given.rounds, chance=given.chance)
        return 0
    wrong = 0
    for cell in CELLS if not given.table else ():
        if not re.search(given.only, cell.name):
            continue
        known = load(cell)
        result = (
            known
            if known and known["commit"] == commit() and not given.again
            else apart(cell, rounds=given.rounds, chance=given.chance)
        )
        wrong += result["verdict"] != "ok"
        print(f"{cell.name}: {result['verdict']} ({result.get('seconds', '?')} s): {result['told'][:TOLD]}", flush=True)
    print(f"{page.write(load)}; {wrong} runs are not ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
