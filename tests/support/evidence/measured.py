"""Times that a test on a cluster has measured: the last run of each, in docs/results/raw/e2e."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from tests.support import ROOT
from tests.support.evidence import commit

FOLDER = ROOT / "docs" / "results" / "raw" / "e2e"


def keep(name: str, seconds: dict[str, float], *, settings: dict[str, float], folder: Path = FOLDER) -> Path:
    """Write the seconds of one run, what they depend on, its commit and its day."""
    folder.mkdir(parents=True, exist_ok=True)
    told = {
        "at": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
        "commit": commit(),
        "load": round(os.getloadavg()[0], 1),
        "processors": os.cpu_count(),
        "settings": settings,
        "seconds": {what: round(number, 1) for what, number in seconds.items()},
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return path
