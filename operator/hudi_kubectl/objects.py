"""HudiTables and HudiWriters as the API gives them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

JsonDict = dict[str, Any]
TABLE, WRITER = "huditables.hudioperator.io", "hudiwriters.hudioperator.io"
RUNNING, SCHEDULED, SUCCEEDED, SUSPENDED = "Running", "Scheduled", "Succeeded", "Suspended"
FAILED = "Failed"
"""State of a writer that is not repeated; the reason of its Stalled, too."""
STALLED = "Stalled"
INVALID_DEFAULTS = "InvalidDefaults"
"""Reason of a writer that waits because the defaults of its namespace cannot be used."""
BY_HAND = ("kubectl", "Mozilla")
"""Field managers of people; fields that they set are not set back. `kubectl hudi` is one of the
first.
"""
AS_ASKED = (RUNNING, SCHEDULED, SUCCEEDED, SUSPENDED)
"""States of a writer that matches its spec. These words are those of the CRD; the enum of the
contract needs a newer Python.
"""


class Thing:
    """An object with spec and status."""

    def __init__(self, raw: JsonDict) -> None:
        self.raw = raw
        self.meta: JsonDict = raw.get("metadata") or {}
        self.spec: JsonDict = raw.get("spec") or {}
        self.status: JsonDict = raw.get("status") or {}

    @property
    def kind(self) -> str:
        """HudiTable or HudiWriter."""
        return str(self.raw.get("kind", ""))

    @property
    def name(self) -> str:
        """metadata.name."""
        return str(self.meta.get("name", ""))

    @property
    def namespace(self) -> str:
        """metadata.namespace."""
        return str(self.meta.get("namespace", ""))

    @property
    def looked_at(self) -> bool:
        """Whether the status is about the current spec."""
        return bool(self.status) and self.status.get("observedGeneration", 0) >= self.meta.get("generation", 0)

    @property
    def shown(self) -> JsonDict:
        """The object for programs, as kubectl prints it."""
        return {**self.raw, "metadata": {key: value for key, value in self.meta.items() if key != "managedFields"}}

    def condition(self, kind: str) -> JsonDict:
        """A condition; empty when there is none of that type."""
        return next((dict(c) for c in self.status.get("conditions") or [] if c.get("type") == kind), {})

    def is_(self, kind: str, status: str = "True") -> bool:
        """Whether a condition has that status."""
        return self.condition(kind).get("status") == status

    def managers_of(self, *path: str, root: str = "spec") -> list[str]:
        """Field managers that have set a field below ``root``, with `--show-managed-fields`."""
        found = []
        for entry in self.meta.get("managedFields") or []:
            node: Any = entry.get("fieldsV1") or {}
            for name in (root, *path):
                node = node.get(f"f:{name}") if isinstance(node, dict) else None
            if node is not None:
                found.append(str(entry.get("manager", "")))
        return found


class Table(Thing):
    """A HudiTable."""

    @property
    def state(self) -> str:
        """Ready, Stalled or NotReady."""
        return "Ready" if self.is_("Ready") else STALLED if self.is_(STALLED) else "NotReady"

    def commits(self) -> list[JsonDict]:
        """The writes that completed last, oldest first."""
        return list((self.status.get("timeline") or {}).get("commits") or [])

    def foreign(self) -> set[str]:
        """Instants of writers without the operator's lock, as far as the status lists them."""
        listed = (self.status.get("timeline") or {}).get("foreign") or []
        return {str(one.get("instant")) for one in listed}


class Writer(Thing):
    """A HudiWriter."""

    @property
    def table(self) -> str:
        """Name of its HudiTable."""
        return str((self.spec.get("tableRef") or {}).get("name", ""))

    @property
    def state(self) -> str:
        """Its state in one word."""
        return str(self.status.get("state") or "New")

    def attempts(self) -> list[JsonDict]:
        """The last attempts, oldest first."""
        return list(self.status.get("attempts") or [])

    def attempt(self, number: int = 0) -> JsonDict | None:
        """An attempt by its number; 0: the last one."""
        known = self.attempts()
        if not number:
            return known[-1] if known else None
        return next((one for one in known if one.get("number") == number), None)


def when(text: Any) -> datetime | None:
    """A time of Kubernetes, or of Hudi (`yyyyMMddHHmmssSSS`, UTC); None when it is none."""
    text = str(text or "")
    try:
        if len(text) >= 14 and text[:14].isdigit():
            found = datetime.strptime(text[:14], "%Y%m%d%H%M%S")
            return found.replace(microsecond=int(text[14:17] or 0) * 1000, tzinfo=timezone.utc)
        return datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def now() -> datetime:
    """This moment."""
    return datetime.now(timezone.utc)


def ago(text: Any, at: datetime | None = None) -> str:
    """Age of a time, in the format of kubectl; empty if it is not a time."""
    then = when(text)
    return "" if then is None else span(((at or now()) - then).total_seconds())


def span(seconds: float) -> str:
    """A length of time as kubectl writes ages: 42s, 3m20s, 5h, 2d."""
    s = max(0, int(seconds))
    if s < 120:
        return f"{s}s"
    if s < 600:
        return f"{s // 60}m{s % 60}s" if s % 60 else f"{s // 60}m"
    if s < 7200:
        return f"{s // 60}m"
    return f"{s // 3600}h" if s < 172_800 else f"{s // 86_400}d"


def of_table(writers: Iterable[Writer], table: Table) -> list[Writer]:
    """Its writers, by name."""
    found = (w for w in writers if w.table == table.name and w.namespace == table.namespace)
    return sorted(found, key=lambda w: w.name)
