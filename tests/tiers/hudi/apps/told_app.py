"""A program that runs what a test tells it, one piece of Python after another.

Argument: a folder. When `N.py` is there it is run, and `N.json` says what came of it: `said`, the
error's message or nothing, `kind`, the class that an attempt has which ends with that error, and
`value`, what the piece has left in `value`. The file `end` ends it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from hudi_runtime.api import current_context
from hudi_runtime.process.errors import classify_causes, describe_causes, java_causes

folder = Path(sys.argv[1])
current = current_context()
spark = current.spark
path = current.table_path


def save(frame: Any, operation: str = "upsert", mode: str = "append", **options: str) -> None:
    """Save a frame, or the rows of a query."""
    frame = spark.sql(frame) if isinstance(frame, str) else frame
    more = {"hoodie.datasource.write.operation": operation, **options}
    frame.write.format("hudi").options(**current.table_options()).options(**more).mode(mode).save(path)


def pause(name: str, _: object = None) -> bool:
    """Say that this place is reached, once, and wait there until the test lets it go on.

    In SQL with a column of the rows: a condition on none goes to Hudi as one on partitions, which
    cannot evaluate Python.
    """
    gate = folder / name
    if not gate.exists():
        Path(f"{gate}.reached").touch()
    end = time.monotonic() + 300
    while not gate.exists():
        if time.monotonic() >= end:
            raise TimeoutError(f"nobody has opened {gate}")
        time.sleep(0.05)
    return True


spark.udf.register("pause", pause, "boolean")


def main() -> None:
    known: dict[str, Any] = {"spark": spark, "current": current, "path": path, "save": save, "pause": pause}
    number = 0
    while not (folder / "end").exists():
        piece, answer = folder / f"{number}.py", folder / f"{number}.json"
        if not piece.exists():
            time.sleep(0.02)
            continue
        known["value"], said, kind = None, "", ""
        begun = time.monotonic()
        try:
            exec(compile(piece.read_text(), str(piece), "exec"), known)  # of the test
        except Exception as error:
            causes = java_causes(error)
            said = describe_causes(causes) if causes else f"{type(error).__name__}: {error}"
            kind = classify_causes(causes).value if causes else type(error).__name__
        print(f"TOLD {number} ({time.monotonic() - begun:.1f} s): {kind} {said[:300]}", flush=True)
        part = answer.with_suffix(".part")
        part.write_text(json.dumps({"said": said, "kind": kind, "value": known["value"]}, default=str))
        part.rename(answer)
        number += 1


main()
