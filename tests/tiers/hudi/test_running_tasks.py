"""Tasks of a cancelled job are waited for, and named when they do not end."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.support.harness import cancelled_task
from tests.support.harness.local import CLASS_PATH, ROOT

SAID = re.compile(
    r"""nothing runs yet: True ''
idle for another group: True
idle for its own group: False
the job is over: True
idle: False
told: executor driver runs 1, task \d+ \(number 0 of stage \d+\.0, attempt 0, since 20\d\d-.*Z\)
at the end: True ''
"""
)


def test_tasks_that_do_not_end_are_named() -> None:
    """A cancelled job is over for Spark while its task still runs: it is named with its stage and
    executor until it has ended.
    """
    command = [sys.executable, "-m", cancelled_task.__name__, CLASS_PATH]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False)
    assert SAID.fullmatch(ran.stdout), ran.stdout + ran.stderr[-3000:]
    assert "Thread.sleep" in ran.stderr
