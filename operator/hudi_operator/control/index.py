"""Index of all HudiTables from events.

It is used only for routing events and naming sibling tables, never for a decision about
a deletion (I11).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from hudi_contract import naming
from hudi_operator.api.tolerant import agent_of, read_table
from hudi_operator.control.queue import Key

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


class TableIndex:
    """HudiTables by table id, path and agent."""

    def __init__(self, default_image: str) -> None:
        """``default_image`` is the operator's Spark image: the agent's name depends on it."""
        self._image = default_image
        self._entries: dict[Key, Entry] = {}
        self._by_id: defaultdict[str, set[Key]] = defaultdict(set)
        self._by_agent: defaultdict[tuple[str, str], set[Key]] = defaultdict(set)

    def __len__(self) -> int:
        """Number of HudiTables."""
        return len(self._entries)

    def put(self, table: JsonDict) -> None:
        """Add or update a HudiTable. A HudiTable that cannot be identified is not indexed."""
        key = (table["metadata"]["namespace"], table["metadata"]["name"])
        self.remove(key)
        spec, unreadable = read_table(table)
        if spec is None:
            return
        agent, place = agent_of(table, spec, unreadable, self._image), naming.place(spec.path) + "/"
        entry = Entry(key, spec.table_id, spec.canonical_path, agent, spec.ref.uid, place)
        self._entries[key] = entry
        self._by_id[entry.table_id].add(key)
        self._by_agent[key[0], entry.agent].add(key)

    def remove(self, key: Key) -> None:
        """Remove a deleted HudiTable."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._by_id[entry.table_id].discard(key)
            self._by_agent[key[0], entry.agent].discard(key)

    def tables(self, namespace: str = "") -> list[Key]:
        """All HudiTables, or those of one namespace."""
        return [key for key in self._entries if not namespace or key[0] == namespace]

    def table_id(self, key: Key) -> str:
        """Table id of a HudiTable; empty when it is not known."""
        entry = self._entries.get(key)
        return entry.table_id if entry else ""

    def of_id(self, table_id: str) -> set[Key]:
        """HudiTables with this table id."""
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
