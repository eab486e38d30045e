"""A slice of `make matrix`: cells in processes of their own."""

from __future__ import annotations

import json

import pytest

from tests.campaigns.matrix import cells
from tests.campaigns.matrix.__main__ import run_cell

# local files: two of these four cells are about a file system with renames
CELLS = ["mor/disjoint/1/s3", "cow/single/3/file"]
RACE, PULLS = "mor/overlapping/6/s3", "cow/disjoint/7/file"

pytestmark = pytest.mark.extra


def is_ok(name: str) -> None:
    result = run_cell(cells.cell(name), limit=840)
    assert result["verdict"] == "ok", json.dumps(result)


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_is_ok(name: str) -> None:
    is_ok(name)


def test_a_cell_with_a_race_is_ok() -> None:
    is_ok(RACE)


def test_a_cell_of_pulls_is_ok() -> None:
    is_ok(PULLS)
