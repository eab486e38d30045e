"""The lock service during the demo: one watch on all of the table's keys, from its start on.

The operator does not need this; the demo uses it to show which incarnation held what over time
(docs/design/contracts.md, section 1).
"""

from __future__ import annotations

import base64
import json
import subprocess
import threading
import time
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hudi_contract import records
from hudi_contract.keys import PREFIX, RANGES, Kind, kind_of
from hudi_contract.settle import SettleRecord
from hudi_contract.shape import Record
from hudi_contract.table_keys import InstantRecord, Lock, Registration
from hudi_contract.words import Outcome

JsonDict = dict[str, Any]
R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Change:
    """One change of one key; ``value`` is None for a deletion.

    ``at`` is when this program saw it, Unix seconds.
    """

    at: float
    revision: int
    key: str
    value: JsonDict | None

    @property
    def of(self) -> tuple[str, str]:
        """Kind and name of the key: ``("instant", "20260301120000000")``."""
        return kind_of(self.key.removeprefix(f"{PREFIX}/").split("/", 2)[-1])

    def read(self, record: type[R]) -> R:
        """The value as a record of the contract; one of defaults for a deletion."""
        return records.stored(*self.of, self.value or {}).read(record)


def parse(line: str, at: float) -> list[Change]:
    """Changes in one line of ``etcdctl watch -w json``."""
    changes = []
    for event in json.loads(line).get("Events") or []:
        pair = event.get("kv", {})
        value = None
        if event.get("type", 0) != 1:
            value = json.loads(base64.b64decode(pair.get("value", "")) or "{}")
        changes.append(Change(at, int(pair.get("mod_revision", 0)), base64.b64decode(pair["key"]).decode(), value))
    return changes


class Watch:
    """Runs ``command`` (an ``etcdctl watch``) and keeps every change."""

    def __init__(self, command: list[str], prefix: str) -> None:
        self._command, self.prefix = command, prefix
        self._changes: list[Change] = []
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._stop = False
        self._from = 1
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> bool:
        """Record the current revision, at which the watch starts.

        False when etcd does not answer.
        """
        done = subprocess.run([*self._command, "get", self.prefix, "-w", "json"], capture_output=True, text=True)
        if done.returncode != 0:
            return False
        self._from = int(json.loads(done.stdout)["header"]["revision"]) + 1
        return True

    def ask(self, *arguments: str) -> str:
        """Run ``etcdctl`` once; raises CalledProcessError."""
        return subprocess.run([*self._command, *arguments], capture_output=True, text=True, check=True).stdout

    def keys(self) -> str:
        """All keys of all tables, as ``etcdctl get -w json`` prints them.

        The writers' certificate may read two ranges, but not the keys between them.
        """
        found = [json.loads(self.ask("get", "--prefix", f"{PREFIX}/{part}/", "-w", "json")) for part in RANGES]
        return json.dumps({"kvs": [pair for answer in found for pair in answer.get("kvs") or []]})

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop = True
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def changes(self, part: str = "") -> list[Change]:
        """Changes of keys that contain ``part``, in order."""
        with self._lock:
            return [change for change in self._changes if part in change.key]

    def latest(self, part: str = "") -> dict[str, JsonDict]:
        """Current values of the keys that contain ``part``."""
        values: dict[str, JsonDict] = {}
        for change in self.changes(part):
            if change.value is None:
                values.pop(change.key, None)
            else:
                values[change.key] = change.value
        return values

    def _run(self) -> None:
        while not self._stop:
            with self._lock:
                next_revision = self._changes[-1].revision + 1 if self._changes else self._from
            self._process = subprocess.Popen(
                [*self._command, "watch", "--prefix", self.prefix, f"--rev={next_revision}", "-w", "json"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            assert self._process.stdout is not None
            for line in self._process.stdout:
                changes = parse(line, time.time())
                with self._lock:
                    self._changes.extend(changes)
            time.sleep(0.5)


@dataclass(frozen=True)
class Held:
    """An interval in which an incarnation held the lock or had an instant recorded as its own.

    ``end`` 0 = still.
    """

    what: str
    attempt: str
    start: float
    end: float
    how: str
    """State of an instant's record; ``lock`` for the lock."""


def attempts(changes: list[Change]) -> dict[str, str]:
    """Attempt of each incarnation ever registered."""
    found = (c.read(Registration) for c in changes if c.value and c.of[0] == Kind.WRITER)
    return {one.inc: one.attempt for one in found}


def intervals(changes: list[Change], kind: Kind) -> list[Held]:
    """Intervals of ownership, of the lock or of instants (the kind of their keys)."""
    who = attempts(changes)
    open_: dict[str, Change] = {}
    found = []
    for change in (change for change in changes if change.of[0] == kind):
        before = open_.pop(change.key, None)
        if change.value is None:
            found.append(_held(before or change, before.at if before else change.at, change.at, who))
        elif before is not None and _owner(before) == _owner(change):
            open_[change.key] = replace(change, at=before.at)
        else:
            if before is not None:  # overwritten by another owner: two intervals, not one
                found.append(_held(before, before.at, change.at, who))
            open_[change.key] = change
    found.extend(_held(change, change.at, 0.0, who) for change in open_.values())
    return sorted(found, key=lambda held: held.start)


def _owner(change: Change) -> str:
    return change.read(Lock).inc if change.of[0] == Kind.LOCK else change.read(InstantRecord).inc


def _held(change: Change, start: float, end: float, who: dict[str, str]) -> Held:
    kind, name = change.of
    inc = _owner(change)
    if kind == Kind.LOCK:
        return Held(kind, change.read(Lock).attempt or who.get(inc, inc), start, end, kind)
    return Held(name, who.get(inc, inc), start, end, change.read(InstantRecord).state or "")


@dataclass(frozen=True)
class Settling:
    """Settling of one dead incarnation: when each phase was first seen, Unix seconds."""

    inc: str
    attempt: str
    phases: dict[str, float]
    rolled_back: dict[str, float]
    """Instant → when its outcome was recorded as RolledBack."""
    outcomes: dict[str, str]


def settlings(changes: list[Change]) -> list[Settling]:
    """All settlings seen so far."""
    found: dict[str, Settling] = {}
    for change in changes:
        if change.of[0] != Kind.SETTLE or change.value is None:
            continue
        stored = change.read(SettleRecord)
        record = found.setdefault(stored.inc, Settling(stored.inc, stored.attempt, {}, {}, {}))
        record.phases.setdefault(stored.phase.name, change.at)
        for instant, facts in stored.instants.items():
            if facts.outcome is not None:
                record.outcomes[instant] = facts.outcome.value
            if facts.outcome is Outcome.ROLLED_BACK:
                record.rolled_back.setdefault(instant, change.at)
    return list(found.values())
