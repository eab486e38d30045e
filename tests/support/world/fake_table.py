"""A table whose listings follow one another as a test says, and its storage in memory."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hudi_runtime.table import timeline as tl
from hudi_runtime.table.storage import Missing

T1, R1, T9 = "20260101000000001", "20260101000000005", "20260101000000009"
PENDING = [f"{T1}.commit.requested", f"{T1}.inflight"]
DONE = [*PENDING, f"{T1}_{T9}.commit"]


class Config:
    """The built write config: OCC's builder has made LAZY of everything."""

    def __init__(self, *, stubborn: bool) -> None:
        self.policy = "LAZY"
        self._stubborn = stubborn

    def setValue(self, key: str, value: str) -> None:
        assert key == "hoodie.clean.failed.writes.policy"
        if not self._stubborn:
            self.policy = value

    def getFailedWritesCleanPolicy(self) -> Any:
        policy = self.policy

        class Policy:
            def isNever(self) -> bool:
                return policy == "NEVER"

        return Policy()


class FakeStorage:
    """Files of a table by relative path, as `hudi_runtime.table.storage.Storage` shows them
    (`tests/tiers/hudi/test_contract.py`).

    It lacks abilities of a store: an answer that is lost or late, a folder without files, a file
    that changes while it is listed; it is asked for no rights.
    """

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.texts: dict[str, str] = {}
        self.deleted: list[str] = []
        self.broken = ""

    def names(self, relative: str) -> list[str]:
        if self.broken and self.broken in relative:
            raise OSError("listing failed")
        found = [name.rsplit("/", 1)[-1] for name in self.files if name.rsplit("/", 1)[0] == relative]
        if not found:
            raise Missing(relative)
        return found

    def glob(self, pattern: str) -> list[str]:
        if self.broken and self.broken in pattern:
            raise OSError("listing failed")
        options = re.fullmatch(r"(.*)\{([^{}]*)\}(.*)", pattern)  # as Hadoop's: one of them
        if options:
            before, words, after = options.groups()
            return [name for word in words.split(",") for name in self.glob(before + word + after)]
        wanted = pattern.split("/")
        found = ((name, name.split("/")) for name in self.files)
        return [
            name for name, parts in found if len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))
        ]

    def exists(self, relative: str) -> bool:
        return relative in self.files or any(name.startswith(f"{relative}/") for name in self.files)

    def read(self, relative: str) -> str:
        if relative not in self.files:
            raise Missing(relative)
        return self.texts[relative]

    def write(self, relative: str, text: str) -> None:
        self.files.add(relative)
        self.texts[relative] = text

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        self.deleted.append(path)
        known = path in self.files
        self.files.discard(path)
        return known


class FakeTable:
    """`states` are the listings that follow one another; the last one stays.

    A rollback moves on to `after`.
    """

    def __init__(
        self, *states: list[str], after: list[str] | None = None, victims: dict[str, str] | None = None
    ) -> None:
        self.states = list(states)
        self.after = after
        self.victims = victims or {}
        self.rolled_back: list[str] = []
        self.storage = FakeStorage()
        self.stubborn = False
        self.archived: set[str] = set()

    def timeline(self) -> tl.Timeline:
        return tl.parse(self.states.pop(0) if len(self.states) > 1 else self.states[0])

    def metadata_timeline(self) -> tl.Timeline:
        return tl.Timeline()

    def pending_rollbacks(self, timeline: tl.Timeline) -> dict[str, str]:
        pending = {instant.requested for instant in timeline.pending}
        return {victim: rollback for victim, rollback in self.victims.items() if rollback in pending}

    def has_archive(self) -> bool:
        return bool(self.archived)

    def archived_completed(self, requested: str) -> bool:
        return requested in self.archived

    def partitions(self) -> list[str]:
        return ["a"]

    def write_config(self, _name: str, _options: object) -> Config:
        return Config(stubborn=self.stubborn)

    @contextmanager
    def client(self, config: Config) -> Iterator[FakeTable]:
        assert config.policy == "NEVER"
        yield self

    def rollback(self, instant: str) -> bool:
        self.rolled_back.append(instant)
        if self.after is not None:
            self.states = [self.after]
        return False  # what Hudi returns is no evidence
