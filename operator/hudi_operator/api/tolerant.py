"""A HudiTable, or a HudiWriter, that is not fully readable.

Stored under another CRD, or written by a newer one (F69).

Everything that is created from a spec (gate, agent, attempts, requests) waits until all of it is
readable. Fencing and settling need little of it: the table's identity, how long writers may be
silent or hold the lock, and which proofs a person allows. Each of these is used if it is readable
by itself, and has its default otherwise; an unreadable field about proofs allows none. Values in
the gate take precedence over both (``view.py``).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from hudi_contract import naming
from hudi_operator.api.spec import SpecError, TableSpec, WriterSpec

JsonDict = dict[str, Any]

_TABLE_ID = re.compile(naming.TABLE_ID)


def read_table(obj: JsonDict) -> tuple[TableSpec | None, str]:
    """The table, and why it is not fully readable: field and reason, empty when it is.

    None: the table cannot be identified.
    """
    try:
        return TableSpec.from_object(obj), ""
    except SpecError as error:
        return _for_settling(obj), str(error)


def known_writer(obj: JsonDict) -> WriterSpec | None:
    """What is known of a HudiWriter with an unreadable spec: enough to follow and stop attempts.

    Its name and uid, and `suspend` and `stop` where they can be read; all else has its default.
    Nothing may be started from it. None: the object has no name.
    """
    spec = obj.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    found: WriterSpec | None = None
    kept: JsonDict = {"tableRef": {"name": "unread"}}
    for name in ("", "suspend", "stop"):
        one = {name: spec[name]} if name in spec else {}
        try:
            found = WriterSpec.from_object({**obj, "spec": {**kept, **one}})
        except SpecError:
            continue
        kept |= one
    return found


def agent_of(obj: JsonDict, table: TableSpec, unreadable: str, default_image: str) -> str:
    """Name of the agent that serves the table.

    If fields that determine it are unreadable, it is taken from status.
    """
    stored = (obj.get("status") or {}).get("agent")
    return str(stored) if unreadable and stored else table.agent_name(default_image)


def _for_settling(obj: JsonDict) -> TableSpec | None:
    spec = obj.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    meta = {"kind": obj.get("kind", "HudiTable"), "metadata": obj.get("metadata") or {}}
    required: JsonDict = {"path": "-", "recordKeyFields": ["-"]}
    kept: JsonDict = {}

    def readable(section: JsonDict) -> bool:
        try:
            TableSpec.from_object({**meta, "spec": {**required, **section}})
        except SpecError:
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
