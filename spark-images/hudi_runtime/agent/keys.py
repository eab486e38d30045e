"""The keys of one table in etcd, as its agent reads and writes them. Those of `AgentSession.etcd` are relative to the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_runtime.process.etcd import Entry, Etcd


class AgentKeys:
    """Keys of one table. Every question is answered by etcd as it is now."""

    def __init__(self, etcd: Etcd, table_id: str) -> None:
        self._etcd = etcd
        self._id = table_id

    @property
    def prefix(self) -> str:
        """What all keys of this installation begin with."""
        return self._etcd.prefix

    @property
    def _control(self) -> str:
        return f"{self._etcd.prefix}/control/{self._id}/"

    @property
    def table_prefix(self) -> str:
        """What the table's own keys begin with."""
        return f"{self._etcd.prefix}/tables/{self._id}/"

    def gate(self) -> Entry | None:
        """The table's gate; None when there is none."""
        return self._etcd.get(f"{self._control}gate")

    def requests(self) -> dict[str, Mapping[str, Any]]:
        """What the operator asks for, by the request's id."""
        return {entry.name: entry.value for entry in self._etcd.range(f"{self._control}request/")}

    def fenced(self, inc: str) -> bool:
        """Whether the operator has ended this incarnation at the table."""
        return self._etcd.get(f"{self._control}fence/{inc}") is not None

    def report(self, value: Mapping[str, Any]) -> None:
        """Put the agent's word about the timeline."""
        self._etcd.put(f"{self.table_prefix}report/timeline", value)
