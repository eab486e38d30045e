"""Random histories of the simulated world: whatever happens in whatever order, the invariants hold
and everything ends once it is healed.

Each run draws a new seed and prints it (`RANDOM_SEED` repeats one). A history that has failed once
is a file in `histories/`, and is played in each run.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import seeds
from tests.support.world import histories
from tests.support.world.histories import History

SECONDS = float(os.environ.get("WORLDS_SECONDS", "20"))
"""CPU of the walk of each run."""
WORLDS = int(os.environ.get("WORLDS", "3000"))
CASES = sorted((Path(__file__).parent / "histories").glob("*.json"))


def told(capsys: pytest.CaptureFixture[str], text: str) -> None:
    """In the log also of a run in which all is well."""
    with capsys.disabled():
        print(f"\n{text}", flush=True)


def test_random_worlds(capsys: pytest.CaptureFixture[str]) -> None:
    seed = seeds.drawn()
    told(capsys, f"random worlds from {seeds.VARIABLE}={seed} on, {SECONDS:.0f} s")
    number = histories.walk(seed, seconds=SECONDS)
    told(capsys, f"{number} random worlds from seed {seed} on: nothing wrong")


@pytest.mark.extra
@pytest.mark.timeout(1800)
def test_thousands_of_random_worlds(capsys: pytest.CaptureFixture[str]) -> None:
    seed = seeds.drawn()
    told(capsys, f"{WORLDS} random worlds from {seeds.VARIABLE}={seed} on")
    assert histories.walk(seed, worlds=WORLDS) == WORLDS


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_a_history_that_has_failed(case: Path) -> None:
    assert histories.wrong(History.read(case.read_text())) == ""
