"""Key names in etcd, from ``protocol.json``, the data file that the Java module and the protocol model read as well."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from typing import Any, cast

JsonDict = dict[str, Any]
_PLACEHOLDER = re.compile(r"<[^>]+>")


@cache
def protocol() -> JsonDict:
    """Content of ``protocol.json``."""
    text = resources.files("hudi_contract").joinpath("protocol.json").read_text(encoding="utf-8")
    return cast(JsonDict, json.loads(text))


PROTOCOL_VERSION = int(protocol()["protocolVersion"])
TABLE_VERSION = int(protocol()["tableVersion"])
HUDI_VERSION = str(protocol()["hudiVersion"])
"""Release of Hudi that tables are pinned to when their spec does not say."""


def control_prefix(prefix: str, table_id: str) -> str:
    """Range of one table that only the operator writes."""
    return f"{prefix}/control/{table_id}/"


def tables_prefix(prefix: str, table_id: str) -> str:
    """Range of one table that its drivers and agents write."""
    return f"{prefix}/tables/{table_id}/"


def agent_prefix(prefix: str, agent: str) -> str:
    """Range with the assignments of one agent."""
    return f"{prefix}/control/agents/{agent}/"


def assignment_key(prefix: str, agent: str, table_id: str) -> str:
    """Key that tells an agent to serve a table."""
    return agent_prefix(prefix, agent) + table_id


def key(prefix: str, table_id: str, kind: str, name: str = "") -> str:
    """Full key of one kind (``gate``, ``writer``, …); ``name`` fills the placeholder.

    Raises KeyError for an unknown kind and ValueError when a name is missing or superfluous.
    """
    entry = protocol()["keys"][kind]
    path = str(entry["path"])
    if bool(_PLACEHOLDER.search(path)) != bool(name):
        raise ValueError(f"key {kind}: a name is {'missing' if not name else 'superfluous'}")
    base = control_prefix(prefix, table_id) if entry["range"] == "control" else tables_prefix(prefix, table_id)
    return base + _PLACEHOLDER.sub(lambda _: name, path)


def kind_of(path: str) -> tuple[str, str]:
    """Kind and name of a path below a table's range: ``writer/abc`` is ``("writer", "abc")``; ``("", path)`` when unknown."""
    head, _, tail = path.partition("/")
    entry = protocol()["keys"].get(head)
    if entry is None or bool(tail) != bool(_PLACEHOLDER.search(str(entry["path"]))):
        return "", path
    return head, tail
