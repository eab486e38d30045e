"""Key names in etcd, from the data file ``protocol.json``.

The Java module and the protocol model read the same file.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
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
PREFIX = str(protocol()["prefix"])
"""Default prefix P of all keys."""
MAX_VALUE_BYTES = int(protocol()["maxValueBytes"])
"""Longest value of the kinds of keys that have no specific limit."""
HUDI_VERSION = str(protocol()["hudiVersion"])
"""Release of Hudi to which a table is pinned unless its spec names one."""


def default_seconds(name: str) -> int:
    """Default of a duration of the lock, in seconds."""
    return int(protocol()["durations"][name])


CONTROL, TABLES = "control", "tables"
"""The two ranges. Only the operator writes to the first one."""
RANGES = (CONTROL, TABLES)


class Kind(StrEnum):
    """Kinds of keys of one table."""

    GATE = "gate"
    ADMIT = "admit"
    FENCE = "fence"
    REQUEST = "request"
    SEEN = "seen"
    WRITER = "writer"
    ALIVE = "alive"
    LOCK = "lock"
    QUEUE = "queue"
    INSTANT = "instant"
    CLOCK = "clock"
    SETTLE = "settle"
    REPORT = "report"
    DONE = "done"

    @property
    def single(self) -> bool:
        """Whether a table has one key of this kind, without a name."""
        return not _PLACEHOLDER.search(str(protocol()["keys"][self]["path"]))

    @property
    def range(self) -> str:
        """`control`, to which only the operator writes, or `tables`."""
        return str(protocol()["keys"][self]["range"])

    def of(self, name: str = "") -> str:
        """Key relative to the range of its table, as used by the runtime and the protocol's log.

        Raises ValueError when a name is missing or superfluous.
        """
        if self.single == bool(name):
            raise ValueError(f"key {self}: a name is {'superfluous' if name else 'missing'}")
        return _PLACEHOLDER.sub(lambda _: name, str(protocol()["keys"][self]["path"]))

    @property
    def max_value_bytes(self) -> int:
        """The longest value that is written. A settle record names every pod of an incarnation."""
        return int(protocol()["keys"][self].get("maxValueBytes", MAX_VALUE_BYTES))

    @property
    def names(self) -> tuple[str, ...]:
        """Names that there are; one that ends in ``-`` or ``/`` begins many. Empty: any."""
        return tuple(protocol()["keys"][self].get("names", ()))

    @property
    def every(self) -> str:
        """Common prefix of all keys of this kind, relative to the range of their table."""
        return f"{self}/"


CREATE, FOREIGN, COUNTED, CALLBACK = "create", "foreign", "counted", "callback"
"""Names below ``done/`` that answer no request; the last one is used below ``report/`` as well."""
TIMELINE, CATALOG = "timeline", "catalog"
"""Names below ``report/``."""
_ABANDONED, _ATTEMPT = "abandoned-", "attempt/"


def abandoned(inc: str) -> str:
    """Name below ``done/`` of the instants that an incarnation has abandoned."""
    return f"{_ABANDONED}{inc}"


def abandoned_by(name: str) -> str:
    """The incarnation in such a name below ``done/``; empty for any other name."""
    return name.removeprefix(_ABANDONED) if name.startswith(_ABANDONED) else ""


def attempt_report(attempt: str) -> str:
    """Name below ``report/`` of an attempt's report."""
    return f"{_ATTEMPT}{attempt}"


def reporting_attempt(name: str) -> str:
    """The attempt in such a name below ``report/``; empty for any other name."""
    return name.removeprefix(_ATTEMPT) if name.startswith(_ATTEMPT) else ""


def control_prefix(prefix: str, table_id: str) -> str:
    """Range of one table to which only the operator writes."""
    return f"{prefix}/control/{table_id}/"


def tables_prefix(prefix: str, table_id: str) -> str:
    """Range of one table to which its drivers and agents write."""
    return f"{prefix}/tables/{table_id}/"


PULSE = "pulse"
"""Name of the key that says that the leading operator lives, below P/control/."""


def pulse_key(prefix: str) -> str:
    """Key that the leading operator writes again and again.

    An etcd that was set back has an older one.
    """
    return f"{prefix}/{CONTROL}/{PULSE}"


def agent_range(agent: str) -> str:
    """Range with the assignments of one agent, relative to P/."""
    return f"control/agents/{agent}/"


def agent_prefix(prefix: str, agent: str) -> str:
    """Range with the assignments of one agent."""
    return f"{prefix}/{agent_range(agent)}"


def assignment_key(prefix: str, agent: str, table_id: str) -> str:
    """Key that tells an agent to serve a table."""
    return agent_prefix(prefix, agent) + table_id


@dataclass(frozen=True)
class TableKeys:
    """Full keys of one table. ``prefix`` is P."""

    prefix: str
    table_id: str

    @property
    def control(self) -> str:
        """Range to which only the operator writes."""
        return control_prefix(self.prefix, self.table_id)

    @property
    def tables(self) -> str:
        """Range to which drivers and agents write as well."""
        return tables_prefix(self.prefix, self.table_id)

    def of(self, kind: Kind, name: str = "") -> str:
        """Full key. Raises ValueError when a name is missing or superfluous."""
        return self._range(kind) + kind.of(name)

    def every(self, kind: Kind) -> str:
        """Common prefix of all keys of a kind."""
        return self._range(kind) + kind.every

    def _range(self, kind: Kind) -> str:
        return self.control if kind.range == CONTROL else self.tables


def key(prefix: str, table_id: str, kind: str, name: str = "") -> str:
    """Full key of one kind (``gate``, ``writer``, …); ``name`` fills the placeholder.

    Raises KeyError for an unknown kind and ValueError when a name is missing or superfluous.
    """
    if kind not in protocol()["keys"]:
        raise KeyError(kind)
    found = Kind(kind)
    base = control_prefix(prefix, table_id) if found.range == CONTROL else tables_prefix(prefix, table_id)
    return base + found.of(name)


def kind_of(path: str) -> tuple[str, str]:
    """Kind and name of a path below a table's range: ``writer/abc`` is ``("writer", "abc")``.

    ``("", path)`` when unknown.
    """
    head, _, tail = path.partition("/")
    entry = protocol()["keys"].get(head)
    if entry is None or bool(tail) != bool(_PLACEHOLDER.search(str(entry["path"]))):
        return "", path
    return head, tail
