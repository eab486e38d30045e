"""Cells by name, the verdict that each must have, and a run of one in a separate process."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.campaigns.faults.results import OUT, Cell
from tests.campaigns.faults.scenarios import SCENARIOS, Scenario
from tests.campaigns.faults.sides import SETUPS
from tests.support.harness.apart import run_apart

LIMIT = float(os.environ.get("FAULTS_CELL_SECONDS", "180"))


def cells(names: list[str]) -> list[Cell]:
    """The named cells, all if none is named. Exits when a name is none."""
    every = [Cell(scenario.id, setup) for scenario in SCENARIOS for setup in SETUPS]
    for name in names:
        if not any(name in (cell.scenario, cell.name) for cell in every):
            raise SystemExit(
                f"{name}: no such fault; choose from {', '.join(dict.fromkeys(cell.scenario for cell in every))}, or "
                "fault/setup"
            )
    return [cell for cell in every if not names or cell.scenario in names or cell.name in names]


def scenario_of(cell: Cell) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.id == cell.scenario)


def expected(cell: Cell) -> str:
    return scenario_of(cell).expected[cell.setup]


def run_cell(cell: Cell, *, limit: float = LIMIT) -> dict[str, Any]:
    """Run one cell in a separate process.

    Its files are removed; its logs are kept when the verdict is not the expected one.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"faults-{cell.scenario}-"))
    OUT.mkdir(parents=True, exist_ok=True)
    log = OUT / f"{cell.file}.log"
    command = [sys.executable, "-m", "tests.campaigns.faults", "--cell", cell.name, "--folder", str(folder)]
    result = run_apart(command, folder, log=log, limit=limit + scenario_of(cell).takes_seconds)
    if result["verdict"] == expected(cell):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        result["folder"] = str(folder)
    return result
