"""A look at a table with nothing of the product: what its parser of timelines and its listing of
files say is compared with it.

The audit and the tests lean on both; a name that they read wrongly, or do not list, would be
missing on both sides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from demo.lake import data_files, parse_timeline

from hudi_runtime.table import timeline as tl

__all__ = ["data_files", "parse_timeline", "same", "same_files"]
CHECKSUM = ".crc"
"""Files that Hadoop's local file system puts beside each of its own, and does not list."""
BEGINNING = {f"19700101000000000_19700101000000001.{action}" for action in ("commit", "deltacommit")}
"""What an agent puts before a timeline, in which nobody has written anything."""
COMPLETED = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}
"""Names of completed actions that differ from the name of the action."""


def same(names: Sequence[str], found: tl.Timeline) -> None:
    """AssertionError when the product has read something else from a listing of `.hoodie/timeline`.

    A savepoint bears the time of the commit that it keeps.
    """
    names = [name for name in names if not name.endswith(CHECKSUM)]
    alone = [name for name in names if ".savepoint" not in name and name not in BEGINNING]
    mine = {
        i.requested: (COMPLETED.get(i.action, i.action) if i.completed else i.action, i.completed)
        for i in parse_timeline(alone)
    }
    theirs = {i.requested: (i.action, i.completion) for i in found.instants}
    assert theirs == mine, f"{names} is read as {theirs}; names alone say {mine}"
    assert found.begun == bool(BEGINNING.intersection(names))
    kept = {name.partition("_")[0] for name in names if name.endswith(".savepoint")}
    assert {i.requested for i in found.savepoints if not i.pending} == kept, names


def same_files(folder: Path, listing: Callable[[], Mapping[str, int]]) -> None:
    """AssertionError when the product lists other files of a table, or other sizes, than the
    operating system. Files that come or go meanwhile are left out.
    """
    before, listed, after = _files(folder), dict(listing()), _files(folder)
    steady = {path: size for path, size in before.items() if after.get(path) == size}
    assert {path: listed.get(path) for path in steady} == steady
    assert not listed.keys() - before.keys() - after.keys()


def _files(folder: Path) -> dict[str, int]:
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                continue
            if not name.endswith(CHECKSUM):
                found[str(path.relative_to(folder))] = size
    return found
