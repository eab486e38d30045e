"""The page says what was run and what was not."""

from __future__ import annotations

from tests.campaigns.history.page import page
from tests.campaigns.history.run import CELLS

RESULT = {
    "verdict": "ok",
    "told": "",
    "rounds": 3,
    "conflicts": 7,
    "commit": "abc",
    "found": {
        "commits": 20,
        "anomalies": {"G2": 2, "G1a": 1, "G1c": 1},
        "told": ["G2: a -rw x-> b -rw y-> a", "G2: another"],
        "lost": 0,
        "wrong_totals": 0,
        "overdrawn": 1,
        "of_pairs": 3,
        "twice_existing": 0,
        "twice_new": 2,
        "of_keys": 3,
    },
}


def test_each_run_has_a_row() -> None:
    lines = page(lambda cell: RESULT if cell == CELLS[0] else None).splitlines()
    rows = [line for line in lines if line.startswith(("| cow/", "| mor/", "| run"))]
    assert len(rows) == len(CELLS) + 1
    assert len({line.count("|") for line in rows}) == 1
    assert (
        "| cow/Optimistic/Simple/update | snapshot | 3 | 20 | 7 | - | 2 | 0 | 0 | 0 | 0 | 2 | 1 of 3 | 0, 2 of 3 | ok "
        "| abc |"
    ) in rows
    assert sum("not run" in line for line in rows) == len(CELLS) - 1
    assert [line for line in lines if line.startswith("* ")] == [
        "* cow/Optimistic/Simple/update: commits 0 of 20: less than 14 %, pairs 0 of 3: less than 63 %, "
        "keys 0 of 3: less than 63 %",
        "* cow/Optimistic/Simple/update: `G2: a -rw x-> b -rw y-> a`",
    ]


def test_a_run_without_a_result_says_why() -> None:
    broken = {"verdict": "failed", "told": "no word", "commit": "abc"}
    assert "failed: no word" in page(lambda cell: broken if cell == CELLS[0] else None)
