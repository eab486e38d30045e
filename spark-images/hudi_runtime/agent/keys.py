"""The keys of one table in etcd, as its agent reads and writes them.

The keys of `AgentSession.etcd` are relative to the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_contract.keys import TIMELINE, Kind, TableKeys
from hudi_contract.reports import TimelineReport
from hudi_contract.shape import ShapeError
from hudi_contract.table_keys import Gate
from hudi_runtime.process.etcd import Etcd, read


class AgentKeys:
    """Keys of one table. Each call reads etcd; nothing is cached."""

    def __init__(self, etcd: Etcd, table_id: str) -> None:
        self._etcd = etcd
        self._id = table_id

    @property
    def prefix(self) -> str:
        """Prefix of all keys of this installation."""
        return self._etcd.prefix

    @property
    def table_prefix(self) -> str:
        """Prefix of the table's own keys."""
        return self._keys.tables

    @property
    def _keys(self) -> TableKeys:
        return TableKeys(self._etcd.prefix, self._id)

    def gate(self) -> Gate:
        """The table's gate; a gate without a state when there is none."""
        return read(self._etcd.get(self._keys.of(Kind.GATE)), Gate)

    def gate_revision(self) -> int:
        """Revision at which the gate was last put; 0 when there is none."""
        found = self._etcd.get(self._keys.of(Kind.GATE))
        return found.mod_revision if found is not None else 0

    def requests(self) -> dict[str, Mapping[str, Any]]:
        """The operator's requests, by id. One that cannot be read asks for nothing."""
        found = self._etcd.range(self._keys.every(Kind.REQUEST))
        return {entry.name: entry.value for entry in found if not entry.unreadable}

    def fenced(self, inc: str) -> bool:
        """Whether the operator has fenced this incarnation at the table."""
        try:
            return self._etcd.get(self._keys.of(Kind.FENCE, inc)) is not None
        except ShapeError:
            return True  # whatever its value is, it is there (I2)

    def report(self, told: TimelineReport) -> None:
        """Put the agent's report about the timeline."""
        self._etcd.put(self._keys.of(Kind.REPORT, TIMELINE), told.to_json())
