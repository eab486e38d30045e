"""Lines of the protocol log (docs/design/contracts.md, section 3): found in any log file, read, and
put in the order of etcd's revisions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

MARK = "PROTOCOL {"
# Steps that always write, so that no two of them may carry one revision. The others only read, or
# delete what may be gone already.
WRITES = frozenset(
    {"register", "keepalive", "acquire", "enqueue", "record-instant", "publish", "abandon", "release"}
    | {"gate-put", "admit", "fence", "settle-update", "unlock", "settled", "collect"}
)


@dataclass(frozen=True)
class Event:
    """One protocol step as its actor logged it."""

    table: str
    actor: str
    role: str
    action: str
    rev: int
    ok: bool
    key: str = ""
    instant: str = ""
    token: int = 0
    nonce: str = ""
    detail: str = ""
    attempt: str = ""
    outcome: str = ""
    ts: int = 0
    where: str = ""

    @property
    def unknown(self) -> bool:
        """The actor does not know whether etcd executed it."""
        return not self.ok and self.rev == 0 and self.detail.lower().startswith(("unknown", "no answer"))

    @property
    def subject(self) -> str:
        """The incarnation that the step is about: named by the key, else the actor itself."""
        head, _, rest = self.key.partition("/")
        if head in ("fence", "settle"):
            return rest
        return self.detail if self.action == "unlock" and not self.unknown else self.actor

    def said(self) -> str:
        """The event for a sentence."""
        at = f"revision {self.rev}" if self.rev else "no revision"
        return f"{self.action} by {short(self.actor)} ({at}{', refused' if not self.ok else ''})"

    def line(self) -> str:
        """The event in the format of the protocol log."""
        fields = {
            "v": 1,
            "ts": self.ts,
            "table": self.table,
            "actor": self.actor,
            "role": self.role,
            "action": self.action,
            "rev": self.rev,
            "ok": self.ok,
        }
        for name in ("key", "instant", "token", "nonce", "detail", "attempt", "outcome"):
            if getattr(self, name):
                fields[name] = getattr(self, name)
        return "PROTOCOL " + json.dumps(fields, separators=(",", ":"))


def short(name: str) -> str:
    """First part of a UUID: enough for a person."""
    return name[:8] if len(name) == 36 and name.count("-") == 4 else name


def read(lines: Iterable[str], name: str) -> Iterator[Event]:
    """The protocol steps among `lines`.

    Raises ValueError for a line that is marked as one and cannot be read.
    """
    for number, line in enumerate(lines, 1):
        at = line.find(MARK)
        if at < 0:
            continue
        where = f"{name}:{number}"
        try:
            entry, _ = json.JSONDecoder().raw_decode(line[at + len(MARK) - 1 :])
            yield event(entry, where)
        except (ValueError, KeyError, TypeError) as error:
            if line.endswith("\n"):  # the last line of a killed process may be cut off
                raise ValueError(f"{where}: this protocol line cannot be read: {error}") from error


def event(entry: dict[str, object], where: str) -> Event:
    """One parsed line; raises KeyError for a missing field."""
    return Event(
        table=str(entry["table"]),
        actor=str(entry["actor"]),
        role=str(entry["role"]),
        action=str(entry["action"]),
        rev=int(str(entry["rev"])),
        ok=bool(entry["ok"]),
        ts=int(str(entry["ts"])),
        where=where,
        key=str(entry.get("key") or ""),
        instant=str(entry.get("instant") or ""),
        token=int(str(entry.get("token") or 0)),
        nonce=str(entry.get("nonce") or ""),
        detail=str(entry.get("detail") or ""),
        attempt=str(entry.get("attempt") or ""),
        outcome=str(entry.get("outcome") or ""),
    )


def read_files(paths: Iterable[Path]) -> list[Event]:
    """All steps of all files, in the order of the files' lines."""
    events: list[Event] = []
    for path in paths:
        with path.open(encoding="utf-8", errors="replace") as lines:
            events += read(lines, path.name)
    return events


def in_order(events: Iterable[Event]) -> list[Event]:
    """By revision; at one revision the write before the answers that saw it.

    A step without a revision stays behind its actor's last one.
    """
    latest: dict[tuple[str, str, str], int] = {}
    keyed = []
    for n, e in enumerate(events):
        source = (e.table, e.actor, e.where.rpartition(":")[0])
        if e.rev:
            latest[source] = max(latest.get(source, 0), e.rev)
        rank = (0 if e.ok and e.action in WRITES else 1) if e.rev else 2
        keyed.append(((e.rev or latest.get(source, 0), rank, n), e))
    return [e for _, e in sorted(keyed, key=lambda x: x[0])]


def with_lost_acquires(events: list[Event]) -> list[Event]:
    """Put in the acquires that etcd executed although their answers were lost: each stands at the
    revision that is its token.

    The token is named by a later step of that incarnation (also by the step that resolved it), or
    by the operator that deletes the lock.
    """
    result = list(events)
    known = {e.token for e in events if e.action == "acquire" and e.ok}
    for n, e in enumerate(events):
        if not (e.unknown and e.action == "acquire"):
            continue
        later = [x for x in events[n + 1 :] if e.actor in (x.actor, x.subject)]
        tokens = [x.token for x in later if x.token and x.action != "acquire"]
        resolved = next((x for x in later if x.action in ("acquire", "acquire-resolve") and x.rev), None)
        if resolved is not None and resolved.action == "acquire-resolve" and resolved.ok:
            token = resolved.token or next(iter(tokens), resolved.rev)
        elif resolved is None:
            token = next(iter(tokens), 0)
        else:
            continue  # resolved to "not mine": it was not and will never be executed
        if token and token not in known:
            known.add(token)
            result.append(replace(e, ok=True, rev=token, token=token, detail="its answer was lost"))
    return in_order([e for e in result if not (e.unknown and e.action == "acquire")])
