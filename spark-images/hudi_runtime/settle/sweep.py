"""Late files: files that a dead writer's requests wrote too late (I5; F4, F11, F17).

Its instant had been rolled back before.

A data file that belongs to no instant is invisible only while its instant time is inside the active
timeline; after archival, readers that list files show it as committed. So every file that bears the
instant is deleted: data, metadata table, markers, heartbeat. Deletion comes last, after complete
listings and a fresh timeline that shows the instant neither completed nor pending (I4); any earlier
error stops the sweep.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from hudi_runtime.process.errors import OutcomeUnknown
from hudi_runtime.table.hudi import METADATA, Table
from hudi_runtime.table.storage import Missing
from hudi_runtime.table.timeline import WRITE_ACTIONS, Instant

_FOLDERS_AT_ONCE = 8
"""Folders that are listed at the same time."""
INSTANTS_AT_ONCE = 100
"""Instants in one pattern."""
_FOLDERS_IN_A_ROW = 64
"""Folders after which a process that stops lists no more."""
_GLOB_CHARACTERS = re.compile(r"([\\*?\[\]{}])")


def bears(path: str, instant: str) -> bool:
    """Whether a data or log file was written by that instant.

    `<file id>_<token>_<t>.parquet`, `.<file id>_<t>.log.<n>_<token>`.
    """
    return re.search(rf"_{instant}\.[^/]+$", path.rsplit("/", 1)[-1]) is not None


def escape(path: str) -> str:
    """A path as a Hadoop glob that matches only itself."""
    return _GLOB_CHARACTERS.sub(r"\\\1", path)


def late_files(paths: Iterable[str], instant: str) -> list[str]:
    """The listed files that the instant wrote."""
    return sorted(path for path in paths if bears(path, instant))


class Stopped(Exception):
    """A listing was given up: this process stops."""


@dataclass(frozen=True)
class Listing:
    """Full paths of the files that bear some instants, by instant.

    Every folder is listed once for all of them: a table may have thousands.
    """

    data: Mapping[str, list[str]]
    """In the folders of partitions, as the storage lists them."""
    metadata: Mapping[str, list[str]]
    """In the metadata table."""

    @classmethod
    def of(cls, table: Table, instants: Iterable[str], *, stopping: Callable[[], bool] = lambda: False) -> Self:
        """List the table now. An error of any folder is raised: no listing is incomplete.

        Raises Stopped soon after `stopping` is true.
        """
        wanted = sorted(set(instants))
        data: dict[str, list[str]] = {instant: [] for instant in wanted}
        metadata: dict[str, list[str]] = {instant: [] for instant in wanted}
        folders = [f"{escape(partition)}/" if partition else "" for partition in table.partitions()] if wanted else []
        for start in range(0, len(wanted), INSTANTS_AT_ONCE):
            some = wanted[start : start + INSTANTS_AT_ONCE]
            pattern = f"*_{{{','.join(some)}}}.*" if len(some) > 1 else f"*_{some[0]}.*"
            for paths in _globs(table, folders, pattern, stopping):
                for instant in some:
                    data[instant] += late_files(paths, instant)
            paths = table.storage.glob(f"{METADATA}/*/{pattern}")
            for instant in some:
                metadata[instant] += late_files(paths, instant)
        return cls(data, metadata)


def _globs(table: Table, folders: list[str], pattern: str, stopping: Callable[[], bool]) -> Iterator[list[str]]:
    """Matches in each folder. The patterns are long: those of a row of folders are kept."""
    with ThreadPoolExecutor(_FOLDERS_AT_ONCE, "listing") as pool:
        for first in range(0, len(folders), _FOLDERS_IN_A_ROW):
            if stopping():
                raise Stopped
            row = folders[first : first + _FOLDERS_IN_A_ROW]
            yield from pool.map(table.storage.glob, [folder + pattern for folder in row])


def sweep(table: Table, instant: str, listing: Listing | None = None) -> int:
    """Delete every file that bears the instant; returns their number.

    `listing`: made after the rollback of the instant; None: now. Raises OutcomeUnknown, deleting
    nothing, when the instant exists or is archived.
    """
    storage = table.storage
    listing = listing or Listing.of(table, [instant])
    found = list(listing.data[instant])
    metadata_timeline = table.metadata_timeline()
    _check_uncounted(table, instant)
    if metadata_timeline.get(instant) is None:
        found += listing.metadata[instant]
        storage.delete(f"{METADATA}/.hoodie/.temp/{instant}", recursive=True)
        remove_heartbeat(table, instant, root=f"{METADATA}/")
    deleted = sum(storage.delete(path) for path in found)
    storage.delete(f".hoodie/.temp/{instant}", recursive=True)
    remove_heartbeat(table, instant)
    return deleted


def sweep_unnamed(table: Table, instant: str, listing: Listing | None = None) -> int:
    """Delete base files of a completed instant that no commit names.

    A lost executor wrote them after the commit (F36). Returns their number. `listing`: None: made
    now.

    Log files stay: in older tables they bear the instant of their base file, and readers merge them
    by key. Files of an archived instant stay, too. Raises OutcomeUnknown, deleting nothing, when
    metadata is ambiguous: the instant has changed, or the metadata table lists the file.
    """
    found = table.timeline().get(instant)
    if found is None or found.action not in WRITE_ACTIONS:
        return 0
    listed_now = (listing or Listing.of(table, [instant])).data[instant]
    borne = {table.storage.relative(path) for path in listed_now if not path.rsplit("/", 1)[-1].startswith(".")}
    if found.pending or not borne - _named(table, (found,)):
        return 0
    timeline = table.timeline()
    again = timeline.get(instant)
    if again is None or again.completion != found.completion:
        raise OutcomeUnknown(f"instant {instant} has changed: nothing of it is deleted")
    unnamed = borne - _named(table, tuple(other for other in timeline.completed if other.action in WRITE_ACTIONS))
    listed = sorted(unnamed & set(table.metadata_files() or {}))
    if listed:
        raise OutcomeUnknown(
            f"no commit names {listed[0]} of instant {instant}, and the metadata table lists it: nothing of it is "
            "deleted"
        )
    return sum(table.storage.delete(path) for path in sorted(unnamed))


def _named(table: Table, instants: tuple[Instant, ...]) -> set[str]:
    return {path for _, info in table.written(instants) for _, path in info.files}


def _check_uncounted(table: Table, instant: str) -> None:
    timeline = table.timeline()
    if timeline.get(instant) is not None:
        raise OutcomeUnknown(f"instant {instant} is on the timeline again: nothing of it is deleted")
    if archived_as_completed(table, instant, earliest=timeline.earliest):
        raise OutcomeUnknown(f"instant {instant} is completed and archived: nothing of it is deleted")


def archived_as_completed(table: Table, instant: str, *, earliest: str) -> bool:
    """Whether an instant that is not in the active timeline was completed and archived.

    `earliest` is the active timeline's first instant.
    """
    if earliest and instant > earliest:
        return False
    return table.has_archive() and table.archived_completed(instant)


def remove_heartbeat(table: Table, instant: str, *, root: str = "") -> None:
    """Remove Hudi's own heartbeat file of an instant.

    A remaining one makes Hudi's rollback return False for ever (F9).
    """
    try:
        names = table.storage.names(f"{root}.hoodie/.heartbeat")
    except Missing:
        return
    if instant in names:
        table.storage.delete(f"{root}.hoodie/.heartbeat/{instant}")
