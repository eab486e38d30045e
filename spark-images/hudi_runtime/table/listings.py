"""Fields of many file statuses at once.

An element of a Java array costs py4j several round trips, so the module's class `Listings` puts all
elements into one text. Spark sessions without the module (an audit outside of the Spark image) read
the same fields one by one.
"""

from __future__ import annotations

import json
from typing import Any

from py4j.java_gateway import JavaPackage

Entry = tuple[str, bool, int]
"""Full path, whether it is a folder, and size in bytes (0 for a folder)."""
DatedEntry = tuple[str, bool, int, int]
"""The same, and the time of the last change in milliseconds."""


def of_statuses(jvm: Any, statuses: Any) -> list[Entry]:
    """Entries of an array of Hadoop's FileStatus, in its order."""
    listings = _listings(jvm)
    if listings is None:
        return [_entry(one.getPath(), one.isDirectory(), one.getLen()) for one in statuses]
    return _parse(listings.ofStatuses(statuses))


def of_dated_statuses(jvm: Any, statuses: Any) -> list[DatedEntry]:
    """Dated entries of an array of Hadoop's FileStatus, in its order."""
    listings = _listings(jvm)
    if listings is None:
        return [
            (*_entry(one.getPath(), one.isDirectory(), one.getLen()), int(one.getModificationTime()))
            for one in statuses
        ]
    found = json.loads(str(listings.ofDatedStatuses(statuses)))
    return [(path, folder, size, modified) for path, folder, size, modified in found]


def of_folders(jvm: Any, folders: Any) -> list[Entry]:
    """Entries of a map of lists of Hudi's StoragePathInfo.

    How Hudi's metadata table lists folders.
    """
    listings = _listings(jvm)
    if listings is None:
        return [
            _entry(one.getPath(), one.isDirectory(), one.getLength()) for folder in folders.values() for one in folder
        ]
    return _parse(listings.ofFolders(folders))


def _listings(jvm: Any) -> Any:
    found = jvm.io.hudioperator.Listings
    return None if isinstance(found, JavaPackage) else found


def _entry(path: Any, folder: Any, size: Any) -> Entry:
    return str(path.toString()), bool(folder), 0 if folder else int(size)


def _parse(text: str) -> list[Entry]:
    return [(path, folder, size) for path, folder, size in json.loads(text)]
