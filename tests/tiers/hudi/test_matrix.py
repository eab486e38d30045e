"""A slice of `make matrix`: cells in processes of their own."""

from __future__ import annotations

import json

import pytest

from tests.campaigns.matrix import cells
from tests.campaigns.matrix.__main__ import run_cell

CELLS = ["mor/disjoint/1/s3"]
# local files: two of these four cells are about a file system with renames
MORE = ["cow/single/3/file", "mor/overlapping/6/s3", "cow/disjoint/7/file"]


@pytest.mark.parametrize("name", [*CELLS, *(pytest.param(name, marks=pytest.mark.extra) for name in MORE)])
def test_a_cell_is_ok(name: str) -> None:
    result = run_cell(cells.cell(name), limit=840)
    assert result["verdict"] == "ok", json.dumps(result)
