"""A writer that lost an executor and gave up an instant is not believed on its word: its executors
need proof of their end (F4).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.harness import lost_executor


def test_a_killed_executor_is_remembered() -> None:
    script = Path(lost_executor.__file__)
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=180, check=False)
    said = [line for line in ran.stdout.splitlines() if line.startswith(("before", "after"))]
    assert said == ["before False", "after True"], ran.stdout + ran.stderr[-3000:]
