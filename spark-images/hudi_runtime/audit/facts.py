"""The facts of an audit of one table.

Listings, timelines, metadata of completed instants, and the keys in etcd.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_contract.keys import Kind, abandoned_by
from hudi_contract.requests import Abandoned
from hudi_contract.settle import Phase, SettleRecord
from hudi_contract.table_keys import Gate, InstantRecord
from hudi_runtime.table import timeline as tl

_INSTANT_OF_FILE = re.compile(r"_(\d{17,})\.(?:parquet|orc|hfile|lance|log\.[^/]+)$")
_DATA_SUFFIX = re.compile(r"\.(?:parquet|orc|hfile|lance)$|\.log\.\d+")
#: Operations that run concurrently with writers of the same file group by design.
COMPACTIONS = frozenset({"COMPACT", "LOG_COMPACT"})
#: Operations that execute a plan: the files of a dead executor are rolled back, the plan stays and
# is executed again.
PLANNED = frozenset({*COMPACTIONS, "CLUSTER"})
METADATA = ".hoodie/metadata/"


@dataclass(frozen=True)
class Commit:
    """A completed write, from its own metadata."""

    instant: tl.Instant
    operation: str
    files: Mapping[str, int]
    """Relative path → size in bytes (0: unknown)."""
    groups: frozenset[str]
    """File groups written or replaced, `partition/file id`."""
    deletes: bool
    """Whether it removed rows or replaced file groups."""


@dataclass(frozen=True)
class Keys:
    """The table's keys in etcd.

    Names relative to `P/tables/T/` and `P/control/T/` → JSON values.
    """

    tables: Mapping[str, Mapping[str, Any]]
    control: Mapping[str, Mapping[str, Any]]

    @property
    def gate(self) -> Gate:
        """The table's gate."""
        return Gate.known(self.control.get(Kind.GATE))

    @property
    def awaiting_sweep(self) -> frozenset[str]:
        """Instants whose files the agent has not yet swept for the last time.

        Their owner has abandoned them and still lives or has just left, or it is being settled.
        """
        records = {name: InstantRecord.known(value) for name, value in self.of(Kind.INSTANT).items()}
        found = {name for name, record in records.items() if record.abandoned}
        for name, value in self.of(Kind.DONE).items():
            if abandoned_by(name):
                found.update(Abandoned.known(value).instants)
        for inc, value in self.of(Kind.SETTLE).items():
            settle = SettleRecord.known(value)
            if settle.phase < Phase.Swept:
                found.update(settle.instants)
                found.update(name for name, record in records.items() if inc in (record.inc, record.claimed_by))
        return frozenset(found)

    def of(self, kind: Kind) -> dict[str, Mapping[str, Any]]:
        """Keys `<kind>/<name>` of either range, by name."""
        return {
            name.partition("/")[2]: value
            for keys in (self.tables, self.control)
            for name, value in keys.items()
            if name.startswith(kind.every)
        }


@dataclass(frozen=True)
class Facts:
    """The input of the structural checks.

    `errors` names each aspect that could not be read, with the reason.
    """

    timeline: tl.Timeline
    """Listed after the files."""
    before: tl.Timeline
    """Listed before the files."""
    files: Mapping[str, int]
    """Every file below the base path, `.hoodie` included: relative path → size in bytes."""
    commits: tuple[Commit, ...] = ()
    archived_commits: tuple[Commit, ...] = ()
    """Commits of the newest archived writes; the fate of their files is no longer known."""
    archived: frozenset[str] = frozenset()
    """Requested times of completed instants in the archived timeline; read only when a data file
    bears an instant that is not active.
    """
    history: bool = False
    """Whether anything was ever archived."""
    cleaned: frozenset[str] = frozenset()
    """Relative paths that completed cleans name as deleted."""
    rolled_back: Mapping[str, str] = field(default_factory=dict)
    """Instant → completed rollback that names it."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Files of completed instants that could not be opened, with the reason."""
    metadata_timeline: tl.Timeline = field(default_factory=tl.Timeline)
    metadata_files: Mapping[str, int] | None = None
    """Data files as the metadata table lists them; None: the table has none."""
    keys: Keys | None = None
    """None: etcd was not read."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Aspect (`commits`, `archived`, `cleaned`, `metadata`, `keys`, `open`) → why it could
    not be read.
    """

    @property
    def known(self) -> frozenset[str]:
        """Every instant that is archived as completed, or was on the active timeline.

        It counts whether it was there before or after the files were listed.
        """
        active = {instant.requested for timeline in (self.before, self.timeline) for instant in timeline.instants}
        return frozenset(active) | self.archived


def instant_of(path: str) -> str:
    """The instant in the name of a data or log file; empty when there is none."""
    match = _INSTANT_OF_FILE.search(path)
    return match[1] if match else ""


def is_data_file(path: str) -> bool:
    """Whether a path is a data or log file of the table itself (not of its metadata table)."""
    name = path.rsplit("/", 1)[-1]
    return (
        not path.startswith(".hoodie/")
        and not name.endswith(".crc")
        and not name.startswith(".hoodie_partition")
        and bool(_DATA_SUFFIX.search(name))
    )


def is_metadata_file(path: str) -> bool:
    """Whether a path is a data or log file of the metadata table."""
    name = path.rsplit("/", 1)[-1]
    inside = path.removeprefix(METADATA)
    return (
        inside != path
        and not inside.startswith(".hoodie/")
        and not name.endswith(".crc")
        and bool(_DATA_SUFFIX.search(name))
    )


def left_behind(path: str) -> str:
    """The instant of a marker folder or heartbeat file, of the table or its metadata table.

    Empty for any other file.
    """
    match = re.match(r"(?:\.hoodie/metadata/)?\.hoodie/(?:\.temp/(\d{17,})/|\.heartbeat/(\d{17,})$)", path)
    return (match[1] or match[2]) if match else ""
