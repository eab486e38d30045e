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
from dataclasses import dataclass
from typing import Any

JsonDict = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One change of one key; ``value`` is None for a deletion.

    ``at`` is when this program saw it, Unix seconds.
    """

    at: float
    revision: int
    key: str
    value: JsonDict | None


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
        found = [
            json.loads(self.ask("get", "--prefix", part, "-w", "json")) for part in ("/hudi/control/", "/hudi/tables/")
        ]
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
    """``Pending``, ``Abandoned`` for an instant; ``lock`` for the lock."""


def attempts(changes: list[Change]) -> dict[str, str]:
    """Attempt of each incarnation ever registered."""
    return {
        c.value["inc"]: c.value.get("attempt", "")
        for c in changes
        if c.value and "/writer/" in c.key and "inc" in c.value
    }


def intervals(changes: list[Change], part: str) -> list[Held]:
    """Intervals of ownership, from the changes of ``/lock`` (part ``/lock``) or ``/instant/``."""
    who = attempts(changes)
    open_: dict[str, tuple[float, JsonDict]] = {}
    found = []
    for change in changes:
        if part not in change.key or (part == "/lock" and not change.key.endswith("/lock")):
            continue
        if change.value is None:
            start, value = open_.pop(change.key, (change.at, {}))
            found.append(_held(change.key, value, start, change.at, who))
        elif change.key in open_ and open_[change.key][1].get("inc") == change.value.get("inc"):
            open_[change.key] = (open_[change.key][0], change.value)
        else:
            if change.key in open_:  # overwritten by another owner: two intervals, not one
                start, value = open_.pop(change.key)
                found.append(_held(change.key, value, start, change.at, who))
            open_[change.key] = (change.at, change.value)
    found.extend(_held(key, value, start, 0.0, who) for key, (start, value) in open_.items())
    return sorted(found, key=lambda held: held.start)


def _held(key: str, value: JsonDict, start: float, end: float, who: dict[str, str]) -> Held:
    name = key.rsplit("/", 1)[1]
    inc = value.get("inc", "")
    return Held(name, value.get("attempt") or who.get(inc, inc), start, end, value.get("state", "lock"))


@dataclass(frozen=True)
class Settling:
    """How one dead incarnation was settled: when each phase was first seen, Unix seconds."""

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
        if "/settle/" not in change.key or change.value is None:
            continue
        value = change.value
        inc = change.key.rsplit("/", 1)[1]
        record = found.setdefault(inc, Settling(inc, value.get("attempt", ""), {}, {}, {}))
        record.phases.setdefault(value.get("phase", ""), change.at)
        for instant, facts in (value.get("instants") or {}).items():
            outcome = facts.get("outcome")
            if outcome:
                record.outcomes[instant] = outcome
            if outcome == "RolledBack":
                record.rolled_back.setdefault(instant, change.at)
    return list(found.values())
