"""Cost of comparing a million inserted keys with a million of another commit (I13).

    python -m tests.campaigns.bench.insert_conflicts

Runs `InsertConflictsTest.theCostOfAMillionKeysBesideAMillion`, a JVM on the local disk with one
etcd, and stores what it tells in docs/results/raw/bench/insert-conflicts.json, in place of the last
run.

Steps: `compared`, three times, without the lock; `heldForTheLateCommit`, under the lock, until it
is given back; `withoutTheLock`, the comparison after that; `heldAtTheCommit`, under the lock again;
`ignored` and `heldAndIgnored`, the first and the last with `insertConflicts: Ignore`.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.campaigns.bench.services import OUT, at, machine
from tests.support import ROOT
from tests.support.evidence import commit
from tests.support.evidence.versions import versions

TEST = "InsertConflictsTest#theCostOfAMillionKeysBesideAMillion"
FILE = OUT / "insert-conflicts.json"


def main() -> None:
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "costs"
        command = ["mvn", "-q", "-B", "-o", "-f", "spark-images/etcd-lock/pom.xml", "test"]
        subprocess.run(
            [*command, f"-Dtest={TEST}", "-Dleft.out=none"],
            cwd=ROOT,
            env={**os.environ, "INSERT_CONFLICTS_COSTS": str(told)},
            check=True,
        )
        runs = [json.loads(line) for line in told.read_text().splitlines()]
    found: dict[str, Any] = {
        "commit": commit(),
        "versions": {"hudi": versions()["hudi"]},
        "machine": machine(),
        "at": at(),
        "loadBefore": before,
        "loadAfter": os.getloadavg()[0],
        "runs": runs,
    }
    FILE.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
