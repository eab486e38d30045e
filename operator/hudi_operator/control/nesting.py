"""A table inside another one's folder is refused (F61).

A table in the same folder under another spelling is refused, too. The other table is not affected.

Hudi treats everything below a table's base path as part of that table: partitions of one would be
files of the other, and a cleaning, a restore or the metadata table of the outer one would not know
the inner one's writers. Their locks are two independent keys.

Only a table whose gate was never open is checked, so a working table is never stopped by a later
one. If two tables were never open, the older one has priority; if both were created in the same
second, neither has. Anybody could write another team's path into a HudiTable. Therefore a HudiTable
that was never open is ignored if it may not use its path (F210), or if its credentials have not
accessed the table within `REACH_SECONDS` (F277).

The transaction that puts a gate compares the other tables' gates with what the check has read: of
two overlapping tables only one opens, whatever happens between the check and the transaction.

An event log of Spark may not be in a table's folder either (F208).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_contract import naming
from hudi_contract.keys import TIMELINE
from hudi_contract.records import read
from hudi_contract.reports import TimelineReport
from hudi_contract.table_keys import Gate
from hudi_operator.api.spec import ObjectRef, TableSpec
from hudi_operator.control.index import TableIndex
from hudi_operator.control.queue import Key
from hudi_operator.model import conditions
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import EtcdFacts
from hudi_operator.model.objects import read_whole
from hudi_operator.model.ports import EtcdPort, KubernetesPort
from hudi_operator.plan.gate.stalled import path_problem

JsonDict = dict[str, Any]

MOST_COMPARED = 100
"""A transaction of etcd has at most 128 comparisons; tenants make HudiTables."""
REACH_SECONDS = 300.0
"""Seconds for which an older table that has not accessed its path blocks a newer one."""


def undecided(table: TableSpec, etcd: EtcdFacts | None) -> bool:
    """True before anything is created for the table, and once more before its gate first opens.

    It is never True afterwards.
    """
    if etcd is None or table.ref.deleting:
        return False
    gate = read(etcd.gate, Gate)
    if gate.table_uid != table.ref.uid:
        return True
    return not gate.was_open and TIMELINE in etcd.reports


@dataclass(frozen=True)
class Overlapping:
    """Other HudiTables whose folder overlaps with one that was never open."""

    blocking: tuple[str, ...] = ()
    """Tables that keep it from its folder, as ``ns/name``."""
    gates: Mapping[str, int] = field(default_factory=dict)
    """By table id of each of them: mod revision of the gate that was seen; 0: none."""


async def read_overlapping(
    table: TableSpec, *, kubernetes: KubernetesPort, etcd: EtcdPort, config: OperatorConfig, now_ms: int
) -> Overlapping:
    """The HudiTables that keep this one from its folder.

    Read live, also from etcd; raises Retryable or Fatal when that fails.
    """
    others = list[tuple[ObjectRef, str, bool]]()
    for namespace in config.watch_namespaces or ("",):
        for other in await kubernetes.list_objects(naming.TABLE_KIND, namespace):
            path, ref = str((other.get("spec") or {}).get("path") or ""), ObjectRef.from_object(other)
            if (
                ref.key == table.ref.key
                or not naming.overlaps(path, table.path)
                or naming.table_id(path) == table.table_id
            ):
                continue
            allowed = not path_problem(path, ref.namespace, config)
            # Only the path of an unreadable one is known: it keeps its folder.
            first = allowed and (ref.created_at <= table.ref.created_at or read_whole(other).spec is None)
            others.append((ref, naming.table_id(path), first))
    known, found = await etcd.read_gates({table_id for _, table_id, _ in others}), list[str]()
    for ref, table_id, first in others:
        seen, trying = known[table_id], now_ms - (conditions.from_rfc3339(ref.created_at) or 0) < REACH_SECONDS * 1000
        if _was_open(ref.uid, seen) or (first and (trying or _reached(ref.uid, seen))):
            found.append(ref.key)
    gates = {table_id: seen.gate.mod_revision if seen.gate is not None else 0 for table_id, seen in known.items()}
    # Those that have a gate first: the others are the furthest from opening one.
    compared = sorted(gates, key=lambda table_id: (gates[table_id] == 0, table_id))[:MOST_COMPARED]
    return Overlapping(tuple(sorted(found)), {table_id: gates[table_id] for table_id in compared})


def _was_open(uid: str, seen: EtcdFacts) -> bool:
    gate = read(seen.gate, Gate)
    return gate.table_uid == uid and gate.was_open


def _reached(uid: str, seen: EtcdFacts) -> bool:
    """Whether its own credentials have read or created the table, as far as its agent says."""
    gate = read(seen.gate, Gate)
    return gate.table_uid == uid and (gate.reached or read(seen.reports.get(TIMELINE), TimelineReport).exists)


def on_path(index: TableIndex, key: Key, table: TableSpec | None, config: OperatorConfig) -> tuple[str, ...]:
    """Other HudiTables (``ns/name``) with the path of this one that may use it.

    Anybody could write another team's path into a HudiTable: one that may not use it takes no turn,
    and nobody gives it one (F651).
    """
    if table is None:
        return ()
    same = index.same_path(key, table.canonical_path, table.table_id)
    return tuple(name for name in same if not path_problem(table.path, name.partition("/")[0], config))


async def read_tables_at(
    folders: Iterable[str], *, namespace: str, index: TableIndex, etcd: EtcdPort, config: OperatorConfig
) -> Mapping[str, tuple[str, ...]]:
    """By folder, HudiTables (``ns/name``) whose folder overlaps with it; without any it is absent.

    A HudiTable of another namespace, or one that may not use its path, counts only if its gate was
    ever open: anybody could write another team's folder into a HudiTable.
    """

    def counts(key: Key, path: str) -> bool:
        return key[0] == namespace and not path_problem(path, namespace, config)

    at = {
        folder: [(key, naming.table_id(path), counts(key, path)) for key, path in index.overlapping(folder)]
        for folder in sorted(set(folders))
    }
    known = await etcd.read_gates({id for tables in at.values() for _, id, counted in tables if not counted})
    found = dict[str, tuple[str, ...]]()
    for folder, tables in at.items():
        named = ["/".join(key) for key, id, counted in tables if counted or _was_open(index.uid(key), known[id])]
        if named:
            found[folder] = tuple(sorted(named))
    return found
