"""Index of all HudiTables from events.

It is used for routing events, for naming sibling tables, and for choosing the agent of a table that
has none, never for a decision about a deletion (I11).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from hudi_contract import naming
from hudi_operator.api.spec import TableSpec
from hudi_operator.api.tolerant import agents_of, former_agents, read_table, stated_agent
from hudi_operator.control.queue import Key
from hudi_operator.model.config import AgentConfig

JsonDict = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One HudiTable."""

    key: Key
    table_id: str
    path: str
    agent: str
    uid: str
    place: str
    """:func:`hudi_contract.naming.place` of the path, with a ``/`` at its end."""

    @property
    def ids(self) -> tuple[str, str]:
        """Ids of the ranges of etcd that concern it: the table's, and its own trial's."""
        return self.table_id, naming.trial_id(self.uid)


def _key(table: JsonDict) -> Key:
    return str(table["metadata"]["namespace"]), str(table["metadata"]["name"])


class TableIndex:
    """HudiTables by table id, path and agent."""

    def __init__(self, default_image: str, *, max_tables: int = AgentConfig.max_tables) -> None:
        """``default_image`` is the operator's Spark image: the agents' names depend on it.

        ``max_tables``: how many tables are given to one agent.
        """
        self._image = default_image
        self.max_tables = max_tables
        self._entries: dict[Key, Entry] = {}
        self._by_id: defaultdict[str, set[Key]] = defaultdict(set)
        self._by_agent: defaultdict[tuple[str, str], set[Key]] = defaultdict(set)

    def __len__(self) -> int:
        """Number of HudiTables."""
        return len(self._entries)

    def put(self, table: JsonDict) -> None:
        """Add or update a HudiTable. A HudiTable that cannot be identified is not indexed."""
        key = _key(table)
        spec, unreadable = read_table(table)
        agent = self.agent(table, spec, unreadable) if spec is not None else ""
        self.remove(key)
        if spec is None:
            return
        place = naming.place(spec.path) + "/"
        entry = Entry(key, spec.table_id, spec.canonical_path, agent, spec.ref.uid, place)
        self._entries[key] = entry
        for each in entry.ids:
            self._by_id[each].add(key)
        self._by_agent[key[0], entry.agent].add(key)

    def agent(self, table: JsonDict, spec: TableSpec, unreadable: str) -> str:
        """Name of the agent that serves a HudiTable, or is to serve it.

        It is the one that status names, or that was chosen before, while it has the table's access
        to storage. Else it is the first one that has room. The numbers may be old: then an agent
        has one table more than allowed, which does no harm.
        """
        if stated := stated_agent(table, spec, unreadable, self._image):
            return stated
        key = _key(table)
        known = self._entries.get(key)
        if known is not None and known.uid == spec.ref.uid and known.agent in agents_of(spec, self._image):
            return known.agent
        last = ""
        for last in agents_of(spec, self._image):
            served = self._by_agent.get((key[0], last), set())
            if len(served - {key}) < self.max_tables:
                break
        return last

    def former_agents(self, table: JsonDict, spec: TableSpec, agent: str) -> tuple[str, ...]:
        """Other agents that may have a HudiTable although ``agent`` is to serve it."""
        return former_agents(table, spec, agent, self._image)

    def remove(self, key: Key) -> None:
        """Remove a deleted HudiTable."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            for each in entry.ids:
                self._by_id[each].discard(key)
            self._by_agent[key[0], entry.agent].discard(key)

    def tables(self, namespace: str = "") -> list[Key]:
        """All HudiTables, or those of one namespace."""
        return [key for key in self._entries if not namespace or key[0] == namespace]

    def table_id(self, key: Key) -> str:
        """Table id of a HudiTable; empty when it is not known."""
        entry = self._entries.get(key)
        return entry.table_id if entry else ""

    def of_id(self, table_id: str) -> set[Key]:
        """HudiTables with this table id, or with this trial."""
        return set(self._by_id.get(table_id, ()))

    def of_agent(self, namespace: str, agent: str) -> set[Key]:
        """HudiTables of a namespace that this agent serves."""
        return set(self._by_agent.get((namespace, agent), ()))

    def overlapping(self, folder: str) -> list[tuple[Key, str]]:
        """HudiTables whose folder may contain this one, lie inside it or be the same.

        With their paths.
        """
        place = naming.place(folder) + "/"
        return [
            (e.key, e.path) for e in self._entries.values() if e.place.startswith(place) or place.startswith(e.place)
        ]

    def uid(self, key: Key) -> str:
        """Uid of a HudiTable; empty when it is not known."""
        entry = self._entries.get(key)
        return entry.uid if entry else ""

    def same_path(self, key: Key, path: str, table_id: str) -> tuple[str, ...]:
        """Other HudiTables with this canonical path, as ``ns/name``."""
        return tuple(
            sorted(
                "/".join(other) for other in self.of_id(table_id) if other != key and self._entries[other].path == path
            )
        )
