"""The files that a writer has read, as its commits keep them.

A commit names a manifest, `.hoodie/hudi-operator-progress/<writer hash>/<name>.json`. It lists the
files of its own commit, and names the manifests that list the others. It takes over the files of
earlier ones once it lists as many: a file is written again only when the number of files with which
it is listed doubles, and a manifest names few others, however many commits there are.

A manifest's name is the hash of its content: the content of a name never changes, and a process
that writes late, or twice, writes the same.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from hudi_runtime.table.storage import Missing, Storage

ROOT = ".hoodie/hudi-operator-progress"
_NAME = re.compile(r"[0-9a-f]{32}")
_DIGITS = 32


@dataclass(frozen=True, order=True)
class SourceFile:
    """One input file. A file that was rewritten (other size or time) is another file."""

    path: str
    size: int
    modified: int


class ManifestError(Exception):
    """A manifest is gone, or is not what its name says."""


@dataclass(frozen=True)
class Part:
    """Files that one manifest lists; its `name` is empty until it is written."""

    files: frozenset[SourceFile]
    name: str = ""

    @functools.cached_property
    def total(self) -> int:
        """Sum of the files' hashes: that of a union is the sum of its parts'."""
        return sum(
            int.from_bytes(hashlib.sha256(f"{f.path}\t{f.size}\t{f.modified}\n".encode()).digest()[:16], "big")
            for f in self.files
        )


@dataclass(frozen=True)
class KnownFiles:
    """The files of all commits of a writer.

    Its parts have no file in common; older, larger ones come first.
    """

    parts: tuple[Part, ...] = ()

    def __contains__(self, file: SourceFile) -> bool:
        """Whether the file was read."""
        return any(file in part.files for part in self.parts)

    def __iter__(self) -> Iterator[SourceFile]:
        """Each file once."""
        return itertools.chain.from_iterable(part.files for part in self.parts)

    def __len__(self) -> int:
        """Number of files."""
        return sum(len(part.files) for part in self.parts)

    @functools.cached_property
    def digest(self) -> str:
        """Digest of the set of files, whatever its parts are."""
        return f"{sum(part.total for part in self.parts) % 16**_DIGITS:0{_DIGITS}x}"

    @property
    def names(self) -> frozenset[str]:
        """Names of the manifests that list the files."""
        return frozenset(part.name for part in self.parts if part.name)

    def plus(self, files: Iterable[SourceFile]) -> KnownFiles:
        """With the files of one more commit.

        Parts that no manifest lists, and those that are no larger, become part of the last one.
        """
        parts, last = list(self.parts), frozenset(file for file in files if file not in self)
        while parts and (not parts[-1].name or len(parts[-1].files) <= len(last)):
            last |= parts.pop().files
        return KnownFiles((*parts, Part(last)))


def folder_of(writer: str) -> str:
    """Folder of a writer's manifests, below the table's base path."""
    return f"{ROOT}/{hash_of(writer)}"


def hash_of(writer: str) -> str:
    """Name of a writer's folder: its own name may have characters that a path may not."""
    return hashlib.sha256(writer.encode()).hexdigest()[:16]


def path_of(writer: str, name: str) -> str:
    """Path of the manifest with that name, below the table's base path."""
    return f"{folder_of(writer)}/{name}.json"


def load(storage: Storage, writer: str, path: str) -> KnownFiles:
    """The files of the manifest at `path`, which a commit names, and of those that it names."""
    last, others = _read(storage, writer, _name_in(path))
    return KnownFiles((*(_read(storage, writer, name)[0] for name in others), last))


def _name_in(path: str) -> str:
    """The manifest's name. A commit says no more: where manifests are is known here."""
    return path.rpartition("/")[2].removesuffix(".json")


def _read(storage: Storage, writer: str, name: str) -> tuple[Part, tuple[str, ...]]:
    """Its own files, and the names of the manifests that list the others."""
    if not _NAME.fullmatch(name):
        raise ManifestError(f"{name!r} is no name of a manifest")
    path = path_of(writer, name)
    try:
        text = storage.read(path)
    except Missing as error:
        raise ManifestError(f"the manifest {path} is gone") from error
    if _name(text) != name:
        raise ManifestError(f"the manifest {path} is not what was written")
    found = json.loads(text)
    files = frozenset(SourceFile(path, int(size), int(modified)) for path, size, modified in found["files"])
    return Part(files, name), tuple(str(other) for other in found["others"])


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


class Manifests:
    """The manifests of a writer, for one attempt."""

    def __init__(self, storage: Storage, writer: str, *, needed: Iterable[str] = ()) -> None:
        """``needed``: paths of manifests that stay, with those that they name."""
        self._storage = storage
        self._writer = writer
        self._needed = {name for path in needed for name in self._named_by(_name_in(path))}
        try:
            found = storage.names(folder_of(writer))
        except Missing:
            found = []
        self._seen = {name.removesuffix(".json") for name in found if name.endswith(".json")}

    def _named_by(self, name: str) -> set[str]:
        try:
            return {name, *_read(self._storage, self._writer, name)[1]}
        except ManifestError:
            return {name}  # the restore that needs it will say so

    def write(self, files: KnownFiles) -> tuple[KnownFiles, str]:
        """Write the manifest of the last part; returns the files with its name, and its path."""
        *others, last = files.parts
        content = {
            "writer": self._writer,
            "files": [[file.path, file.size, file.modified] for file in sorted(last.files)],
            "others": [part.name for part in others],
        }
        text = json.dumps(content, separators=(",", ":"))
        name = _name(text)
        path = path_of(self._writer, name)
        self._storage.write(path, text)
        self._seen.add(name)
        return KnownFiles((*others, replace(last, name=name))), path

    def prune(self, *known: KnownFiles) -> None:
        """Delete manifests that none of these and nothing else needs.

        Only such as were there when this attempt began, or are its own: a process that goes on
        after it was fenced deletes none of its successor's. A crash in between leaves more of them.
        """
        for name in self._seen - self._needed - {name for files in known for name in files.names}:
            self._storage.delete(path_of(self._writer, name))
            self._seen.discard(name)
