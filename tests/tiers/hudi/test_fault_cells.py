"""A slice of `make faults`: a cell in a process of its own."""

from __future__ import annotations

import json

import pytest

from tests.campaigns.faults.cells import cells, expected, run_cell


@pytest.mark.extra
def test_what_lands_in_the_drain_is_kept() -> None:
    """I3, I8: the completed file of a dead writer arrives before its lock is deleted."""
    (cell,) = cells(["inside-the-drain/ours"])
    result = run_cell(cell, limit=600)
    assert result["verdict"] == expected(cell), json.dumps(result)
