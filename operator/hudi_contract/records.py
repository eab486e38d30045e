"""Values of etcd, read into known types.

All tolerant reading is in this module (F46).

Fields that this version does not know are left alone. A field that does not match contracts.md is
omitted; when a decision depends on it (a *vital* field), or when the value is not a JSON object,
nothing of the value is trusted except what follows from the key's name. Either way the key and the
reason are kept for people, and no reader raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from hudi_contract import naming
from hudi_contract import reports as rp
from hudi_contract import requests as rq
from hudi_contract import table_keys as tk
from hudi_contract.keys import CALLBACK, CATALOG, CREATE, FOREIGN, PULSE, TIMELINE, Kind, abandoned, attempt_report
from hudi_contract.requests import request_id
from hudi_contract.settle import SettleRecord
from hudi_contract.shape import JsonDict, Record, at, every_but, fields_of
from hudi_contract.words import RequestKind, Role

MAX_BYTES = 1 << 20
"""A longer value is not parsed: no part of this project writes more than 256 KiB."""
FREE_ELEMENTS, ELEMENT_BYTES = 32, 12
"""Limit on the elements of objects and lists in a value: this number, and one more for each
ELEMENT_BYTES bytes. A parsed element takes up to 50 times its bytes (F520). The gateway has the
same bound (``values.go``).
"""
_TEXTS = re.compile(rb'"(?:[^"\\]+|\\.)*+"?', re.DOTALL)
_NONCE = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Stored:
    """One JSON value in etcd with its revisions."""

    value: JsonDict
    create_revision: int
    mod_revision: int
    lease: int = 0
    unreadable: str = ""
    """Why nothing of the value is trusted except what follows from the key's name; empty when the
    value is trusted.
    """
    doubts: tuple[str, ...] = ()
    """Every part of the value that is not trusted, with the reason."""

    _read: dict[type[Record], Any] = field(default_factory=dict, compare=False, repr=False)

    def read(self, record: type[R]) -> R:
        """The part of it that can be trusted; a field that is absent has its default."""
        if record not in self._read:
            self._read[record] = record.known(self.value)
        return cast(R, self._read[record])


_NONE = Stored({}, 0, 0)


def read(stored: Stored | None, record: type[R]) -> R:
    """The same; a key that is absent is a record of defaults."""
    return (_NONE if stored is None else stored).read(record)


@dataclass(frozen=True)
class _Kind:
    """Facts about the values of one kind of key."""

    record: type[Record]
    vital: frozenset[str] = frozenset()
    """Fields on which a decision depends."""


def _vital(record: type[Record]) -> _Kind:
    return _Kind(record, every_but(record))


_PREFIX = "-"
_DONE: Mapping[str, _Kind] = {
    f"{RequestKind.RESTORE}{_PREFIX}": _vital(rq.RestoreDone),
    f"{RequestKind.SAVEPOINT}{_PREFIX}": _vital(rq.SavepointDone),
    request_id(RequestKind.METADATA): _vital(rq.MetadataDone),
    request_id(RequestKind.BOOTSTRAP): _vital(rq.BootstrapDone),
    f"{RequestKind.SERVICE}{_PREFIX}": _Kind(rq.ServiceDone),
    f"{RequestKind.HOLD}{_PREFIX}": _Kind(rq.HoldDone),
    CALLBACK: _Kind(rq.CallbackPosition),
    CREATE: _Kind(rq.Created),
    FOREIGN: _Kind(rq.Foreign),
    abandoned(""): _Kind(rq.Abandoned),
}
_KINDS: Mapping[str, _Kind] = {
    Kind.GATE: _Kind(tk.Gate, every_but(tk.Gate, "reason", "closedForMs", "nonBlockingUntil")),
    Kind.LOCK: _Kind(tk.Lock, frozenset({"inc"})),
    Kind.CLOCK: _Kind(tk.Clock),
    Kind.ADMIT: _Kind(tk.Admit),
    Kind.FENCE: _Kind(tk.Fence),
    Kind.SEEN: _Kind(tk.Sighting),
    PULSE: _Kind(tk.Pulse),
    Kind.ALIVE: _Kind(tk.Alive),
    Kind.WRITER: _Kind(tk.Registration),
    Kind.QUEUE: _Kind(tk.Ticket),
    Kind.INSTANT: _Kind(tk.InstantRecord, frozenset({"inc", "action", "state", "claimedBy"})),
    Kind.SETTLE: _Kind(SettleRecord, frozenset({"phase", "proofs", "pods", "instants"})),
    Kind.REPORT.of(TIMELINE): _Kind(
        rp.TimelineReport, frozenset({"agentInc", "exists", "error", "pending", "foreign"})
    ),
    Kind.REPORT.of(attempt_report("")): _Kind(rp.AttemptReport),
    Kind.REPORT.of(CALLBACK): _Kind(rp.CallbackReport),
    Kind.REPORT.of(CATALOG): _Kind(rp.CatalogReport),
    **{Kind.DONE.of(name): kind for name, kind in _DONE.items()},
}
"""By key, or by prefix (then the entry ends in ``/`` or ``-``)."""
_UNKNOWN = _Kind(Record)


# ---- reading


def stored(
    kind: str, name: str, raw: object, *, create_revision: int = 0, mod_revision: int = 0, lease: int = 0
) -> Stored:
    """The value of ``<kind>/<name>``, from bytes of etcd or from JSON that is already parsed.

    Never raises.
    """
    value, wrong = _decode(raw) if isinstance(raw, bytes) else (raw, "")
    doubts: list[str] = []
    unreadable = wrong or ("" if isinstance(value, dict) else f"is a JSON {_json_type(value)}, not an object")
    found: JsonDict = {}
    if isinstance(value, dict) and not unreadable:
        of = _kind(kind, name)
        found = dict(value)
        for name_ in sorted(of.record.REQUIRED):
            if value.get(name_) in (None, ""):
                unreadable = unreadable or f".{name_} is missing"
        for one in fields_of(of.record):
            wrong = one.type.check(value[one.name]) if value.get(one.name) is not None else ""
            if wrong:
                found.pop(one.name)
                doubts.append(at(f".{one.name}", wrong))
                unreadable = unreadable or (doubts[-1] if one.name in of.vital else "")
    if unreadable:
        doubts = doubts or [unreadable]
        found = {}
    said = _said_by_name(kind, name)
    if kind == Kind.QUEUE and found.get("inc") and not _NONCE.search(name):
        said = {}  # only the value says where the incarnation ends and something else begins
    return Stored({**found, **said}, create_revision, mod_revision, lease, unreadable=unreadable, doubts=tuple(doubts))


def _decode(raw: bytes) -> tuple[object, str]:
    if len(raw) > MAX_BYTES:
        return None, f"is longer than {MAX_BYTES} bytes"
    at_most = FREE_ELEMENTS + len(raw) // ELEMENT_BYTES
    if _elements(raw) > at_most and _elements(_TEXTS.sub(b"", raw)) > at_most:
        return None, f"has more than {at_most} elements"
    try:
        return json.loads(raw), ""
    except RecursionError:
        return None, "is nested too deeply"
    except ValueError as error:
        return None, f"is not JSON: {str(error)[:200]}"


def _elements(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "flag", int: "number", float: "number", str: "text", list: "list"}
    return names.get(type(value), "value")


def _kind(kind: str, name: str) -> _Kind:
    """The entry of the table with the longest matching prefix of the key."""
    key = f"{kind}/{name}" if name else kind
    exact = _KINDS.get(kind) or _KINDS.get(key)
    return exact or next(
        (found for begin, found in _KINDS.items() if begin[-1:] in "/-" and key.startswith(begin)), _UNKNOWN
    )


def _said_by_name(kind: str, name: str) -> JsonDict:
    """Fields that follow from a key's name, whatever its value is: the incarnation or attempt."""
    if kind in (Kind.WRITER, Kind.SETTLE, Kind.FENCE, Kind.ALIVE):
        return {"inc": name}
    if kind == Kind.ADMIT:
        agent = naming.is_agent_pod(naming.split_attempt(name)[1]) if "." in name else False
        return {"attempt": name, "role": Role.AGENT.value} if agent else {"attempt": name}
    return {"inc": ticket_owner(name)} if kind == Kind.QUEUE else {}


def ticket_owner(name: str) -> str:
    """Incarnation in the name ``<inc>-<nonce>`` of a ticket.

    Both are UUIDs, which have hyphens themselves.
    """
    return name[: -len(nonce[0])] if (nonce := _NONCE.search(name)) else name.rpartition("-")[0]
