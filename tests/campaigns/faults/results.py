"""Results of fault runs: one file per cell, keyed by commit and versions."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from tests.support import ROOT
from tests.support.evidence import RAW, commit
from tests.support.evidence.replaced import with_earlier
from tests.support.evidence.versions import versions

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


def key() -> str:
    """Commit and versions in one string."""
    return " ".join([commit(), *(f"{name}={value}" for name, value in versions().items())])


def load(cell: Cell) -> dict[str, Any] | None:
    """The result of a cell, of whatever commit; None: it was never run."""
    path = STORE / f"{cell.file}.json"
    return dict(json.loads(path.read_text())) if path.exists() else None


def save(cell: Cell, result: dict[str, Any]) -> dict[str, Any]:
    """Write a result down with its key, and with the verdicts of those that it replaces."""
    full = with_earlier(
        {
            **result,
            "key": key(),
            "commit": commit(),
            "versions": versions(),
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        },
        load(cell),
    )
    STORE.mkdir(parents=True, exist_ok=True)
    (STORE / f"{cell.file}.json").write_text(json.dumps(full, indent=1) + "\n")
    return full
