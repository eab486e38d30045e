"""Typed wrapper of the Java module's EtcdFacade: JSON values, linearizable reads, compare-and-set.

Only the Java side connects to etcd.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from pyspark.sql import SparkSession

from hudi_contract.shape import Record, ShapeError

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Entry:
    """One key: its name below the facade's prefix and its JSON value.

    It also has the revision for the next compare-and-set.
    """

    key: str
    value: Mapping[str, Any]
    mod_revision: int
    unreadable: str = ""
    """Why the value cannot be read, and is an empty one here; empty when it was read.

    Nothing may be concluded from it but that the key exists (F417).
    """
    _read: dict[type[Record], Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """Last part of the key."""
        return self.key.rsplit("/", 1)[-1]

    @property
    def readable(self) -> Mapping[str, Any]:
        """The value. Raises ShapeError when it cannot be read."""
        if self.unreadable:
            raise ShapeError(f"the value of key {self.key} in etcd {self.unreadable}")
        return self.value

    def read(self, record: type[R]) -> R:
        """The value as a record; a field that is absent, or of another type, has its default."""
        if record not in self._read:
            self._read[record] = record.known(self.value)
        return cast(R, self._read[record])


def read(entry: Entry | None, record: type[R]) -> R:
    """The value of an entry as a record; a record of defaults when the key is absent."""
    return record.known({}) if entry is None else entry.read(record)


class Etcd:
    """Keys relative to `P/tables/T/` (of a session) or to `P/` (without one).

    Absolute keys begin with `/`.
    """

    def __init__(self, facade: Any) -> None:
        self._facade = facade
        self._told: dict[str, int] = {}
        """Revisions of unreadable values that the log already names."""

    @property
    def prefix(self) -> str:
        """The prefix P."""
        return str(self._facade.prefix())

    def get(self, key: str) -> Entry | None:
        """Linearizable read; None when the key is absent.

        Raises ShapeError when its value cannot be read.
        """
        found = self._facade.get(key)
        if found is None:
            return None
        entry = _entry(str(found.key()), str(found.value()), int(found.modRevision()))
        _ = entry.readable
        return entry

    def range(self, prefix: str) -> list[Entry]:
        """All keys with that prefix, sorted.

        A value that cannot be read is an `unreadable` entry: it stops no work on the others.
        """
        return self._entries(json.loads(self._facade.rangeAsJson(prefix)))

    def ranges(self, *prefixes: str) -> list[list[Entry]]:
        """Entries of each prefix, as `range` returns them, at one revision, in one transaction."""
        return [self._entries(each) for each in json.loads(self._facade.rangesAsJson("\n".join(prefixes)))]

    def _entries(self, read: Iterable[tuple[str, str, int]]) -> list[Entry]:
        found = [_entry(*each) for each in read]
        for entry in found:
            if entry.unreadable and self._told.get(entry.key) != entry.mod_revision:
                self._told[entry.key] = entry.mod_revision
                print(f"the value of key {entry.key} in etcd {entry.unreadable}", file=sys.stderr, flush=True)
        return found

    def cas(self, key: str, value: Mapping[str, Any], revision: int) -> int | None:
        """Put if the key's mod revision is still `revision` (0: absent).

        Returns the new revision, or None when the key has changed.
        """
        answer = int(self._facade.casPut(key, encode(value), revision))
        return None if answer < 0 else answer

    def put(self, key: str, value: Mapping[str, Any]) -> int:
        """Put without a compare. For reports only."""
        return int(self._facade.put(key, encode(value)))

    def delete(self, key: str, revision: int) -> bool:
        """Delete if the mod revision is still `revision`."""
        return bool(self._facade.delete(key, revision))


def _entry(key: str, text: str, mod_revision: int) -> Entry:
    try:
        value = json.loads(text)
    except RecursionError:
        return Entry(key, {}, mod_revision, "is nested too deeply")
    except ValueError as error:  # also a number with too many digits
        return Entry(key, {}, mod_revision, f"is not JSON that can be read: {str(error)[:200]}")
    if not isinstance(value, dict):
        return Entry(key, {}, mod_revision, f"is not a JSON object, but of type {type(value).__name__}")
    return Entry(key, value, mod_revision)


def encode(value: Mapping[str, Any]) -> str:
    """Canonical JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def unbound(spark: SparkSession) -> Etcd:
    """A facade for no particular table: keys relative to P/."""
    jvm: Any = spark.sparkContext._jvm
    return Etcd(jvm.io.hudioperator.Sessions.etcd(jvm.java.util.HashMap()))


def now_ms() -> int:
    """Wall clock in milliseconds, for display and metrics, never for a decision."""
    return int(time.time() * 1000)


def protocol_log(*, table: str, actor: str, role: str, action: str, revision: int, ok: bool, **more: str) -> None:
    """One machine-readable line per protocol step (contracts, section 3)."""
    line = {
        "v": 1,
        "ts": now_ms(),
        "table": table,
        "actor": actor,
        "role": role,
        "action": action,
        "rev": revision,
        "ok": ok,
        **more,
    }
    print(f"PROTOCOL {json.dumps(line, separators=(',', ':'))}", file=sys.stderr, flush=True)
