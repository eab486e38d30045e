"""A slice of `make matrix`: cells in processes of their own."""

from __future__ import annotations

import json

import pytest

from tests.campaigns.matrix import cells
from tests.campaigns.matrix.__main__ import run_cell

# local files: two of these four cells are about a file system with renames
CELLS = ["mor/disjoint/1/s3", "cow/single/3/file", "mor/overlapping/6/s3", "cow/disjoint/7/file"]


@pytest.mark.extra
@pytest.mark.parametrize("name", CELLS)
def test_a_cell_is_ok(name: str) -> None:
    result = run_cell(cells.cell(name), limit=840)
    assert result["verdict"] == "ok", json.dumps(result)
