"""A cell in a process of its own, ended after a time: what it was found to be, or why there
is no result.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RESULT = "result.json"
"""In the cell's folder."""
GRACE_SECONDS = 20
"""For a cell that is asked to end its own children."""
TOLD = 300


def run_apart(command: Sequence[str], folder: Path, *, log: Path, limit: float) -> dict[str, Any]:
    """Run the command for `limit` seconds at most.

    Its result; else the verdict `unknown` (ended by us) or `failed`, with a sentence.
    """
    with (
        log.open("wb") as out,
        subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True) as process,
    ):
        try:
            process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
    found = folder / RESULT
    if found.exists():
        return dict(json.loads(found.read_text()))
    if process.returncode in (-signal.SIGTERM, -signal.SIGKILL, 128 + signal.SIGTERM):
        return {"verdict": "unknown", "told": f"not within {limit:.0f} s"}
    return {"verdict": "failed", "told": why(log.read_text(errors="replace"))}


def why(log: str) -> str:
    """The error's own first line, from the end of a log."""
    found = [line for line in log.splitlines() if "Error: " in line and not line.startswith(" ")]
    return (found or log.splitlines() or ["no word"])[-1][:TOLD]
