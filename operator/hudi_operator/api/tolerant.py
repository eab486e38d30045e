"""A HudiTable, or a HudiWriter, that is not fully readable.

Stored under another CRD, or written by a newer one (F69).

Everything that is created from a spec (gate, agent, attempts, requests) waits until all of it is
readable. Fencing and settling need little of it: the table's identity, how long writers may be
silent or hold the lock, and which proofs a person allows. Each of these is used if it is readable
by itself, and has its default otherwise; an unreadable field about proofs allows none. Values in
the gate take precedence over both (``view.py``).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hudi_contract import naming
from hudi_operator.api.spec import SpecError, TableSpec, WriterSpec

JsonDict = dict[str, Any]
LOG = logging.getLogger(__name__)

_TABLE_ID = re.compile(naming.TABLE_ID)


def read_table(obj: JsonDict) -> tuple[TableSpec | None, str]:
    """The table, and why it is not fully readable: field and reason, empty when it is.

    None: the table cannot be identified.
    """
    try:
        return TableSpec.from_object(obj), ""
    except Exception as error:
        return _for_settling(obj), why_unread(error)


def why_unread(error: Exception) -> str:
    """Field and reason.

    A defect of the reader is a reason, too: it must not stop other objects (F515).
    """
    if not isinstance(error, SpecError):
        LOG.error("a spec cannot be read", exc_info=error)
    return str(error) if isinstance(error, SpecError) else f"{type(error).__name__}: {error}"[:500]


def known_writer(obj: JsonDict) -> WriterSpec | None:
    """Read the parts of an unreadable HudiWriter that are needed to follow and stop its attempts.

    Its name and uid, and `suspend` and `stop` where they can be read; all else has its default.
    Nothing may be started from it. None: the object has no name.
    """
    spec = obj.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    found: WriterSpec | None = None
    kept: JsonDict = {"tableRef": {"name": "unread"}}
    for name in ("", "suspend", "stop"):
        one = {name: spec[name]} if name in spec else {}
        if (read := _writer({**obj, "spec": {**kept, **one}})) is not None:
            found = read
            kept |= one
    return found


def _writer(obj: JsonDict) -> WriterSpec | None:
    try:
        return WriterSpec.from_object(obj)
    except Exception:
        return None


MOST_AGENTS = 64
"""Agents among which the tables of one access to storage are divided."""


def agents_of(table: TableSpec, default_image: str) -> Iterator[str]:
    """Names of the agents that may serve the table, the first one first.

    A table with an agent of its own has no other one.
    """
    shards = MOST_AGENTS if table.agent is None else 1
    return (table.agent_name(default_image, shard) for shard in range(shards))


def stated_agent(obj: JsonDict, table: TableSpec, unreadable: str, default_image: str) -> str:
    """The agent that status names; empty when the table has, or needs, another one.

    No table moves from one of the agents with its access to storage to another one by itself. If
    fields that determine them are unreadable, what status names counts.
    """
    stored = str((obj.get("status") or {}).get("agent") or "")
    return stored if stored and (unreadable or stored in agents_of(table, default_image)) else ""


def former_agents(obj: JsonDict, table: TableSpec, agent: str, default_image: str) -> tuple[str, ...]:
    """Other agents that may have the table although ``agent`` is to serve it.

    It is the one that status names. A HudiTable without that status may have had a predecessor,
    whose finalizer was removed by hand: then it is any of them.
    """
    stored = str((obj.get("status") or {}).get("agent") or "")
    names = (stored,) if stored else tuple(agents_of(table, default_image))
    return tuple(name for name in names if name != agent)


def agent_of(obj: JsonDict, table: TableSpec, unreadable: str, default_image: str) -> str:
    """Name of the agent that serves the table: the one that status names, or the first one."""
    return stated_agent(obj, table, unreadable, default_image) or table.agent_name(default_image)


def _for_settling(obj: JsonDict) -> TableSpec | None:
    spec = obj.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    meta = {"kind": obj.get("kind", "HudiTable"), "metadata": obj.get("metadata") or {}}
    required: JsonDict = {"path": "-", "recordKeyFields": ["-"]}
    kept: JsonDict = {}

    def readable(section: JsonDict) -> bool:
        try:
            TableSpec.from_object({**meta, "spec": {**required, **section}})
        except Exception:
            return False
        return True

    known_id, known_path = str((obj.get("status") or {}).get("tableId") or ""), readable({"path": spec.get("path")})
    if known_path:
        kept["path"] = spec["path"]
    elif not _TABLE_ID.fullmatch(known_id):
        return None
    if readable({"suspend": spec.get("suspend")}):
        kept["suspend"] = spec.get("suspend")
    for name in ("lock", "fencing"):
        fields = spec.get(name)
        fields = fields if isinstance(fields, dict) else {}
        kept[name] = {
            key: value for key, value in fields.items() if key != "attestations" and readable({name: {key: value}})
        }
        words = fields.get("attestations")
        if isinstance(words, list):
            kept[name]["attestations"] = [word for word in words if readable({name: {"attestations": [word]}})]
    found = replace(TableSpec.from_object({**meta, "spec": {**required, **kept}}), record_key_fields=())
    return found if known_path else found.without_path(known_id)
