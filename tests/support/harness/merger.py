"""A user's class that merges records: real Java, compiled with the tests of the Java module
(EarliestMerger.java).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

CLASS_NAME = "io.hudioperator.support.EarliestMerger"
"""It keeps the version of a record with the smaller `ts`, which neither of Hudi's own modes does.
"""
STRATEGY = "7d6a3c1e-3f0f-4a52-9a51-2f3c1b0e6f55"
IMAGE = "registry.example.com/with-the-merger:1"
"""For tables whose processes have the class."""
CUSTOM: dict[str, Any] = {"mode": "Custom", "custom": {"strategyId": STRATEGY, "className": CLASS_NAME}}
"""`spec.merge` of such a table."""
READ = {"hoodie.write.record.merge.custom.implementation.classes": CLASS_NAME}
"""Options of a read by somebody who has no part in the table."""


def class_path(classes: Path, folder: Path) -> str:
    """A folder for the class path that has this class alone, made below `folder`.

    It stays empty when `classes` of the Java module are not there.
    """
    target = folder / "merger" / Path(*CLASS_NAME.split(".")).with_suffix(".class")
    target.parent.mkdir(parents=True, exist_ok=True)
    source = classes / target.relative_to(folder / "merger")
    if source.exists():
        shutil.copy(source, target)
    return str(folder / "merger")
