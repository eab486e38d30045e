"""What stands in etcd, read into known types in this one place, tolerantly (F46).

Fields that this version does not know are left alone. A field that is not what contracts.md says is left out; when a decision leans on it
(a *vital* one), or when the value is no JSON object at all, nothing of the value is believed but what its key's name says. Either way the
key and the reason are kept for people, and no reader raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_contract import naming
from hudi_contract.settle import Phase

JsonDict = dict[str, Any]
Check = Callable[[object], str]
"""Empty, or what is wrong with a value."""

MAX_BYTES = 1 << 20
"""A longer value is not parsed: nobody of ours writes more than 64 KiB."""
MAX_MS = 253_402_300_799_999
"""Last millisecond of the year 9999."""
_NONCE = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


@dataclass(frozen=True)
class Stored:
    """One JSON value in etcd with its revisions."""

    value: JsonDict
    create_revision: int
    mod_revision: int
    lease: int = 0
    unreadable: str = ""
    """Why nothing of the value is believed but what the key's name says; empty when it is."""
    doubts: tuple[str, ...] = ()
    """Every part of the value that is not believed, with the reason."""


# ---- types


def text(limit: int = 1 << 16) -> Check:
    """A text of at most ``limit`` characters."""
    return lambda value: "" if isinstance(value, str) and len(value) <= limit else f"is not a text of at most {limit} characters"


def whole(most: int = (1 << 63) - 1) -> Check:
    """A whole number from 0 to ``most``; a flag is none."""
    return lambda value: "" if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most else f"is not a whole number from 0 to {most}"


def integer(value: object) -> str:
    """A whole number of either sign that 64 bits hold."""
    fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    return "" if fits else "is not a whole number"


def one_of(*words: str) -> Check:
    """One of some words."""
    return lambda value: "" if isinstance(value, str) and value in words else f"is not one of {', '.join(words)}"


def flag(value: object) -> str:
    """True or false."""
    return "" if isinstance(value, bool) else "is not true or false"


def listed(item: Check) -> Check:
    """A list of such items."""

    def check(value: object) -> str:
        if not isinstance(value, list):
            return "is not a list"
        return next((_at(f"[{n}]", wrong) for n, one in enumerate(value) if (wrong := item(one))), "")

    return check


def _at(where: str, wrong: str) -> str:
    return f"{where}{'' if wrong[0] in '.[' else ' '}{wrong}"


def mapped(item: Check) -> Check:
    """An object whose values are such items, by any name."""

    def check(value: object) -> str:
        if not isinstance(value, dict):
            return "is not an object"
        return next((_at(f".{name[:64]}", wrong) for name, one in value.items() if (wrong := item(one))), "")

    return check


def fields(*, required: tuple[str, ...] = (), **known: Check) -> Check:
    """An object with these fields; those that are absent or null are fine unless required, others are not looked at."""

    def check(value: object) -> str:
        if not isinstance(value, dict):
            return "is not an object"
        missing = next((name for name in required if value.get(name) in (None, "")), "")
        if missing:
            return f".{missing} is missing"
        return next((_at(f".{name}", wrong) for name, of in known.items() if value.get(name) is not None and (wrong := of(value[name]))), "")

    return check


@dataclass(frozen=True)
class _Kind:
    """What is known about the values of one kind of key."""

    known: Mapping[str, Check]
    vital: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    """Vital fields without which a value says nothing."""


TEXT, COUNT, MS, TIME = text(), whole(), whole(MAX_MS), text(32)
_NAMES = dict.fromkeys(("attempt", "pod", "namespace", "podUID", "node", "bootId", "appId"), TEXT)
_INSTANT = fields(instant=TIME, action=TIME, state=TIME, completionTime=TIME, required=("instant",))
_COMMIT = fields(instant=TIME, action=TIME, completionTime=TIME, records=integer, writer=TEXT, attempt=TEXT, required=("instant",))
_PROOF = fields(kind=TEXT, detail=TEXT, atMs=MS, required=("kind",))
_POD = fields(name=TEXT, node=TEXT, evidence=flag)
_OUTCOME = fields(action=TEXT, outcome=one_of("Completed", "RolledBack", "Gone", "Reexecuted"), failures=COUNT, error=TEXT)
_LOCK = fields(leaseSeconds=COUNT, keepAliveSeconds=COUNT, rpcTimeoutSeconds=COUNT, silenceSeconds=COUNT, maxClockSkewSeconds=COUNT, drainSeconds=COUNT)
_GATE: dict[str, Check] = {
    "state": one_of("open", "closed", "frozen"),
    "admitted": listed(TEXT),
    "mode": one_of("PodTermination", "LeaseOnly"),
    "protocolVersion": COUNT,
    "tableVersion": COUNT,
    **dict.fromkeys(("hudiVersion", "authority", "path", "table", "tableUID", "clusterId", "reason", "restoring", "restoreBaseline", "closedFor"), TEXT),
    "lock": _LOCK,
    "adopted": flag,
    "acceptedFloor": COUNT,
    "closedForMs": MS,
    "nonBlockingUntil": TIME,
    "concurrency": TEXT,
    "insertConflicts": TEXT,
}
_DONE: dict[str, Check] = {
    **dict.fromkeys(("tableUID", "nonce", "result", "message", "code", "mode", "source", "name", "savepoint", "inc", "service"), TEXT),
    **dict.fromkeys(("instant", "completionTime", "boundary", "newest", "after", "upTo"), TIME),
    **dict.fromkeys(("failures", "records", "files", "bytes", "undone", "leftOut", "durationMs"), COUNT),
    **dict.fromkeys(("atMs", "beginMs", "endMs", "retryAtMs"), MS),
    "partitions": listed(TEXT),
    "undoneInstants": listed(TIME),
}
_TIMELINE: dict[str, Check] = {
    "atMs": MS,
    "agentInc": TEXT,
    "exists": flag,
    "error": fields(code=TEXT, message=TEXT),
    **dict.fromkeys(("lastInstant", "lastCompletionTime", "lowestPendingRequestedTime"), TIME),
    "pending": listed(_INSTANT),
    "foreign": listed(_INSTANT),
    "pendingCount": COUNT,
    "activeLength": COUNT,
    "commitsSince": mapped(COUNT),
    "readCost": fields(baseBytes=COUNT, logBytes=COUNT, fileGroups=COUNT, fileGroupsWithLogs=COUNT),
    "commits": listed(_COMMIT),
    "bucket": fields(harmful=listed(TEXT), unknown=listed(TEXT)),
}
_CONFLICT = fields(instant=TIME, retriedAs=TIME, fileGroups=listed(TEXT), yielded=flag, atMs=MS)
_ATTEMPT: dict[str, Check] = {
    **dict.fromkeys(("attempt", "inc", "stage"), TEXT),
    "atMs": MS,
    "commits": COUNT,
    "records": COUNT,
    "lastInstant": TIME,
    "lastCompletionTime": TIME,
    "conflicts": listed(_CONFLICT),
    "waiting": lambda value: "" if isinstance(value, dict | list | int | str) else "is of no known type",
    "caughtUp": flag,
    "turn": fields(against=TEXT, sinceMs=MS),
}
_CALLBACK: dict[str, Check] = {
    **dict.fromkeys(("inc", "reason", "message", "oldest", "completionTime", "instant", "archivedTo"), TEXT),
    **dict.fromkeys(("undelivered", "failures", "delivered", "lost"), COUNT),
    "atMs": MS,
}
_SETTLE: dict[str, Check] = {
    **_NAMES,
    "role": TEXT,
    "reason": TEXT,
    "phase": one_of(*(phase.name for phase in Phase)),
    "proofs": mapped(_PROOF),
    "pods": mapped(_POD),
    "instants": mapped(_OUTCOME),
    "abandoned": flag,
    "times": mapped(MS),
}

_KINDS: Mapping[str, _Kind] = {
    "gate": _Kind(_GATE, frozenset(_GATE) - {"reason", "closedForMs", "nonBlockingUntil"}, frozenset({"state"})),
    "lock": _Kind({"inc": TEXT, "attempt": TEXT, "podUID": TEXT, "nonce": TEXT, "sinceMs": MS}, frozenset({"inc"}), frozenset({"inc"})),
    "clock": _Kind({"value": TIME}),
    "admit": _Kind({"role": TEXT}),
    "writer": _Kind({**_NAMES, "role": TEXT, "priority": integer, "protocolVersion": COUNT, "wallClockMs": MS}),
    "queue": _Kind({"inc": TEXT, "priority": integer, "overtaken": COUNT, "sinceMs": MS}),
    "instant": _Kind(
        {"inc": TEXT, "action": TEXT, "state": one_of("Pending", "Abandoned"), "claimedBy": TEXT, "atMs": MS},
        frozenset({"inc", "action", "state", "claimedBy"}),
        frozenset({"inc"}),
    ),
    "settle": _Kind(_SETTLE, frozenset({"phase", "proofs", "pods", "instants"}), frozenset({"phase"})),
    "request": _Kind({}),
    "report/timeline": _Kind(_TIMELINE, frozenset({"agentInc", "exists", "error", "pending", "foreign"})),
    "report/attempt/": _Kind(_ATTEMPT),
    "report/callback": _Kind(_CALLBACK),
    **{f"done/{name}": _Kind(_DONE, frozenset(_DONE)) for name in ("restore-", "savepoint-", "metadata", "bootstrap")},
    "done/service-": _Kind(_DONE),
    "done/callback": _Kind(_CALLBACK),
}
_UNKNOWN = _Kind({})


# ---- reading


def stored(kind: str, name: str, raw: object, *, create_revision: int = 0, mod_revision: int = 0, lease: int = 0) -> Stored:
    """The value of ``<kind>/<name>`` as bytes of etcd, or as JSON that was parsed already. Never raises."""
    value, wrong = _decode(raw) if isinstance(raw, bytes) else (raw, "")
    doubts: list[str] = []
    unreadable = wrong or ("" if isinstance(value, dict) else f"is a JSON {_json_type(value)}, not an object")
    found: JsonDict = {}
    if isinstance(value, dict) and not unreadable:
        of = _kind(kind, name)
        found = dict(value)
        for field in sorted(of.required):
            if value.get(field) in (None, ""):
                unreadable = unreadable or f".{field} is missing"
        for field, check in of.known.items():
            wrong = check(value[field]) if value.get(field) is not None else ""
            if wrong:
                found.pop(field)
                doubts.append(_at(f".{field}", wrong))
                unreadable = unreadable or (doubts[-1] if field in of.vital else "")
    if unreadable:
        doubts = doubts or [unreadable]
        found = {}
    said = _said_by_name(kind, name)
    if kind == "queue" and found.get("inc"):
        said = {}  # the value says it, too, and more plainly: the name has a nonce behind it
    return Stored({**found, **said}, create_revision, mod_revision, lease, unreadable=unreadable, doubts=tuple(doubts))


def _decode(raw: bytes) -> tuple[object, str]:
    if len(raw) > MAX_BYTES:
        return None, f"is longer than {MAX_BYTES} bytes"
    try:
        return json.loads(raw), ""
    except RecursionError:
        return None, "is nested too deeply"
    except ValueError as error:
        return None, f"is not JSON: {str(error)[:200]}"


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "flag", int: "number", float: "number", str: "text", list: "list"}
    return names.get(type(value), "value")


def _kind(kind: str, name: str) -> _Kind:
    """The longest entry of the table that begins the key."""
    key = f"{kind}/{name}" if name else kind
    exact = _KINDS.get(kind) or _KINDS.get(key)
    return exact or next((found for begin, found in _KINDS.items() if begin[-1:] in "/-" and key.startswith(begin)), _UNKNOWN)


def _said_by_name(kind: str, name: str) -> JsonDict:
    """What a key's name says, whatever its value does: it names the incarnation or attempt."""
    if kind in ("writer", "settle", "fence", "alive"):
        return {"inc": name}
    if kind == "admit":
        agent = naming.split_attempt(name)[1].startswith("hudi-agent-") if "." in name else False
        return {"attempt": name, "role": naming.ROLE_AGENT} if agent else {"attempt": name}
    return {"inc": ticket_owner(name)} if kind == "queue" else {}


def ticket_owner(name: str) -> str:
    """Incarnation in the name ``<inc>-<nonce>`` of a ticket; both are UUIDs with hyphens of their own."""
    return name[: -len(nonce[0])] if (nonce := _NONCE.search(name)) else name.rpartition("-")[0]
