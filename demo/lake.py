"""The object store, used by a client outside the cluster: uploads, listings, and
Hudi's file names.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from datetime import UTC, datetime

import pandas as pd
import pyarrow.fs as fs

INSTANT = re.compile(r"^(\d{17,})(?:_(\d{17,}))?\.([a-z]+)(?:\.([a-z]+))?$")
BASE_FILE = re.compile(r"^(?P<file_id>.+)_(?P<token>\d+-\d+-\d+)_(?P<instant>\d{17,})\.(?:parquet|hfile|orc)$")
LOG_FILE = re.compile(r"^\.(?P<file_id>.+)_(?P<instant>\d{17,})\.log\.\d+_(?P<token>\d+-\d+-\d+)(?:\.cdc)?$")
NO_DATA = re.compile(r"^\.hoodie_partition_metadata(?:\.parquet|\.orc)?$")
NO_INSTANT = re.compile(r"^history$|^\d{17,}.*\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""Entries of a timeline's folder besides its instants: the archive; and, on a store with rename,
files that Hudi renames to an instant's file.
"""


class UnknownName(ValueError):
    """A file with an unknown name.

    It must not be ignored, because its meaning may decide whether a test passes.
    """


@dataclass(frozen=True)
class Instant:
    """One instant of a timeline, from its files."""

    requested: str
    action: str
    states: frozenset[str]
    """States among requested, inflight and completed that exist."""
    completed: str
    """Completion time; empty while pending."""


@dataclass(frozen=True)
class DataFile:
    """One base or log file of a table; ``token`` is Hudi's write token partition-stage-task."""

    path: str
    file_id: str
    instant: str
    token: str
    size: int


def moment(instant: str) -> datetime:
    """The time of an instant's name or of its completion time."""
    return datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(
        tzinfo=UTC, microsecond=int(instant[14:17] or 0) * 1000
    )


class Lake:
    """One S3 endpoint."""

    def __init__(self, endpoint: str, access_key: str, secret_key: str) -> None:
        self.endpoint, self.access_key, self.secret_key = endpoint, access_key, secret_key
        self._fs = fs.S3FileSystem(
            access_key=access_key, secret_key=secret_key, endpoint_override=endpoint, region="us-east-1",
            allow_bucket_creation=True, connect_timeout=5, request_timeout=30,
        )  # fmt: skip

    def make_folder(self, name: str) -> None:
        """A bucket, or a folder in one."""
        self._fs.create_dir(name, recursive=False)

    def upload_csv(self, path: str, rows: pd.DataFrame) -> None:
        text = io.StringIO()
        rows.to_csv(text, index=False)
        with self._fs.open_output_stream(path) as out:
            out.write(text.getvalue().encode())

    def upload_parquet(self, path: str, rows: pd.DataFrame) -> None:
        with self._fs.open_output_stream(path) as out:
            rows.to_parquet(out, index=False)

    def mark(self, path: str) -> None:
        """An empty object."""
        with self._fs.open_output_stream(path):
            pass

    def remove(self, path: str) -> None:
        self._fs.delete_file(path)

    def exists(self, path: str) -> bool:
        return bool(self._fs.get_file_info(path).type != fs.FileType.NotFound)

    def files(self, path: str) -> dict[str, int]:
        """All objects below ``path``, relative to it, with their sizes."""
        found = self._fs.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
        return {info.path[len(path) + 1 :]: info.size for info in found if info.type == fs.FileType.File}

    def names(self, path: str) -> list[str]:
        found = self._fs.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return [info.base_name for info in found]

    def content(self, path: str) -> bytes:
        with self._fs.open_input_stream(path) as source:
            return bytes(source.read())

    def text(self, path: str) -> str:
        return self.content(path).decode(errors="replace")

    def timeline(self, table: str) -> list[Instant]:
        """The active timeline of the table (or metadata table) at ``bucket/path``."""
        return parse_timeline(self.names(f"{table}/.hoodie/timeline"))


def parse_timeline(names: list[str]) -> list[Instant]:
    """Instants from the names of the files in a timeline folder; raises UnknownName.

    A savepoint has the requested time of its commit, and is a separate instant.
    """
    found: dict[tuple[str, bool], Instant] = {}
    for name in sorted(names):
        match = INSTANT.match(name)
        if match is None:
            if NO_INSTANT.match(name):
                continue
            raise UnknownName(f"{name!r} in a timeline")
        requested, completed, first, second = match.groups()
        action, state = (
            (first, second) if second else ("commit", first) if first == "inflight" else (first, "completed")
        )
        key = (requested, action == "savepoint")
        before = found.get(key, Instant(requested, action, frozenset(), ""))
        # A completed file names the final action (compaction becomes commit); `<t>.inflight` alone
        # is copy-on-write's commit.
        keep = before.states and not completed
        found[key] = Instant(
            requested, before.action if keep else action, before.states | {state}, completed or before.completed
        )
    return list(found.values())


def data_files(files: dict[str, int]) -> list[DataFile]:
    """Data files among the objects of a table, without the metadata table's.

    Raises UnknownName for an object that is neither a data file nor Hudi's own.
    """
    found = []
    for path, size in files.items():
        folder, _, name = path.rpartition("/")
        if folder.startswith(".hoodie"):
            continue
        match = BASE_FILE.match(name) or LOG_FILE.match(name)
        if match is None and not NO_DATA.match(name):
            raise UnknownName(f"{path!r} in a table")
        if match is not None:
            found.append(DataFile(path, match["file_id"], match["instant"], match["token"], size))
    return found
