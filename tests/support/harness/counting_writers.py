"""Writers that read counters, add one and write them back (`tests/tiers/hudi/apps/update_code.py`):
a lost update is a number that is too small.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.harness.local import Process, Table

CODE = Path(__file__).parents[2] / "tiers" / "hudi" / "apps" / "update_code.py"


def counting(
    table: Table, name: str, function: str, ids: list[int], *, gate: Path | None = None, **more: Any
) -> Process:
    batch = {"ids": ids, **({"gate": str(gate)} if gate else {}), **more}
    return table.writer(name, file=CODE, function=function, python={"batches": [batch]})
