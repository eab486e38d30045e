"""Results of matrix runs: one file per cell in docs/results/raw/matrix, keyed by the commit of what
is tested and by versions.
"""

from __future__ import annotations

import json
import subprocess
import time
from functools import lru_cache
from typing import Any

from tests.campaigns.matrix.cells import Cell
from tests.support import ROOT
from tests.support.evidence import RAW
from tests.support.evidence.replaced import with_earlier
from tests.support.evidence.versions import versions

OUT = ROOT / "build" / "matrix"
"""Logs."""
STORE = RAW / "matrix"
BEFORE = STORE / "before.json"
"""Counts of services, in total, for the runs whose own numbers were not kept."""
TESTED = (
    "operator/hudi_contract",
    "operator/hudi_operator/api",
    "operator/hudi_operator/model",
    "operator/hudi_operator/manifests",
    "spark-images",
    "tests/support/harness",
    "tests/campaigns/matrix",
)
"""Files that an outcome depends on: a commit that changes none of them leaves results valid."""
NOT_TESTED = (
    ":!spark-images/etcd-lock/src/test",
    ":!tests/campaigns/matrix/page.py",
    ":!tests/campaigns/matrix/results.py",
    ":!**/*.md",
)


@lru_cache
def commit() -> str:
    """The last commit that changed what is tested; `+` behind it when files differ from it."""

    def git(*words: str) -> str:
        command = ["git", *words, "--", *TESTED, *NOT_TESTED]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    return git("log", "-1", "--abbrev=10", "--format=%h") + ("+" if git("status", "--porcelain") else "")


def key() -> str:
    """Commit and versions in one string."""
    found = {name: value for name, value in versions().items() if name != "zookeeper"}
    return " ".join([commit(), *(f"{name}={value}" for name, value in found.items())])


def load(cell: Cell) -> dict[str, Any] | None:
    """The result of a cell, of whatever commit; None: it was never run."""
    path = STORE / f"{cell.file}.json"
    return dict(json.loads(path.read_text())) if path.exists() else None


def before() -> dict[str, Any] | None:
    """`BEFORE`, where there is one."""
    return dict(json.loads(BEFORE.read_text())) if BEFORE.exists() else None


def save(cell: Cell, result: dict[str, Any]) -> dict[str, Any]:
    """Write a result down with its key, and with the verdicts of those that it replaces."""
    full = with_earlier(
        {
            **result,
            "cell": cell.name,
            "key": key(),
            "commit": commit(),
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        },
        load(cell),
    )
    STORE.mkdir(parents=True, exist_ok=True)
    (STORE / f"{cell.file}.json").write_text(json.dumps(full, indent=1) + "\n")
    return full
