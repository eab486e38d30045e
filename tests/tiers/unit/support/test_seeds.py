"""Random tests draw anew in each run, and a run can be repeated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support import ROOT, seeds

RANDOM = """
from hypothesis import given, strategies

drawn = []

@given(strategies.integers(0, 10**12))
def test_numbers(number):
    drawn.append(number)

def test_told():
    print("DRAWN", drawn)
"""


def examples(folder: Path, seed: str) -> tuple[str, str]:
    """What Hypothesis draws in a run where `CI` is set, and what the run says of its seed."""
    (folder / "test_random.py").write_text(RANDOM)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p", "tests.tiers.unit.conftest", "."],
        cwd=folder,
        env={**os.environ, "CI": "1", "PYTHONPATH": str(ROOT), seeds.VARIABLE: seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (drawn,) = [line.partition("DRAWN ")[2] for line in ran.stdout.splitlines() if "DRAWN " in line]
    (told,) = [line for line in ran.stdout.splitlines() if line.startswith("examples of Hypothesis: ")]
    return drawn, told


def test_examples_are_drawn_anew_also_where_ci_is_set(tmp_path: Path) -> None:
    first, told = examples(tmp_path, "5")
    assert told == f"examples of Hypothesis: {seeds.VARIABLE}=5"
    assert examples(tmp_path, "5") == (first, told), "repeated by its seed"
    assert examples(tmp_path, "")[0] != first
