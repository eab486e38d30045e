"""Results of fault runs: one file per cell, keyed by commit and versions."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from tests.evidence import RAW
from tests.hudi.harness import BUNDLE, CACHE, ROOT

OUT = ROOT / "build" / "faults"
"""Logs."""
STORE = RAW / "faults"


@dataclass(frozen=True)
class Cell:
    """One fault put to one setup."""

    scenario: str
    setup: str

    @property
    def name(self) -> str:
        return f"{self.scenario}/{self.setup}"

    @property
    def file(self) -> str:
        return f"{self.scenario}--{self.setup}"


@lru_cache
def versions() -> dict[str, str]:
    """What a result depends on."""
    said = subprocess.run([CACHE / "bin" / "etcd", "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "hudi": BUNDLE.removesuffix(".jar").rsplit("-", 1)[-1],
        "spark": version("pyspark"),
        "hudi-rs": version("hudi"),
        "etcd": said.split()[2],
        "zookeeper": "as in pyspark",
        "python": platform.python_version(),
    }


@lru_cache
def commit() -> str:
    """The commit that is tested; `+` behind it when files differ from it."""
    head = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    changed = subprocess.run(["git", "status", "--porcelain", "--", "operator", "spark-images", "tests"], cwd=ROOT, capture_output=True, text=True, check=True)
    return head + ("+" if changed.stdout.strip() else "")


def key() -> str:
    """Commit and versions in one string."""
    return " ".join([commit(), *(f"{name}={value}" for name, value in versions().items())])


def load(cell: Cell) -> dict[str, Any] | None:
    """The result of a cell, of whatever commit; None: it was never run."""
    path = STORE / f"{cell.file}.json"
    return dict(json.loads(path.read_text())) if path.exists() else None


def save(cell: Cell, result: dict[str, Any]) -> dict[str, Any]:
    """Write a result down with its key."""
    full = {**result, "key": key(), "commit": commit(), "versions": versions(), "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    STORE.mkdir(parents=True, exist_ok=True)
    (STORE / f"{cell.file}.json").write_text(json.dumps(full, indent=1) + "\n")
    return full
