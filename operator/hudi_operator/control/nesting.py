"""A table inside another one's folder, or the same folder under another spelling, is refused (F61): the other one stays as it is.

Hudi takes what lies below a table's base path for the table's own: partitions of one would be files of the other, and a cleaning, a restore or the
metadata table of the outer one would not know of the inner one's writers. Their locks are two keys that know nothing of each other.

Only a table whose gate was never open is asked, so a table that works is never stopped by one that comes later. Of two that were never open the older
one goes first; of two of the same second neither does.
"""

from __future__ import annotations

from typing import Any

from hudi_contract import naming
from hudi_contract.keys import TIMELINE
from hudi_contract.records import read
from hudi_contract.table_keys import Gate
from hudi_operator.api.spec import ObjectRef, SpecError, TableSpec
from hudi_operator.model.facts import EtcdFacts
from hudi_operator.model.ports import EtcdPort, KubernetesPort

JsonDict = dict[str, Any]


def undecided(table: TableSpec, etcd: EtcdFacts | None) -> bool:
    """True before anything is made for the table, and once more before its gate opens for the first time; never afterwards."""
    if etcd is None or table.ref.deleting:
        return False
    gate = read(etcd.gate, Gate)
    if gate.table_uid != table.ref.uid:
        return True
    return not gate.was_open and TIMELINE in etcd.reports


async def read_overlapping(table: TableSpec, *, kubernetes: KubernetesPort, etcd: EtcdPort, namespaces: tuple[str, ...]) -> tuple[str, ...]:
    """HudiTables (``ns/name``) that keep their folder from this one. Read live, also from etcd; raises Retryable or Fatal when that cannot be had."""
    found = []
    for namespace in namespaces or ("",):
        for other in await kubernetes.list_objects(naming.TABLE_KIND, namespace):
            path, ref = str((other.get("spec") or {}).get("path") or ""), ObjectRef.from_object(other)
            if ref.key == table.ref.key or not naming.overlaps(path, table.path) or naming.table_id(path) == table.table_id:
                continue
            if ref.created_at <= table.ref.created_at or await _open(other, ref, etcd):
                found.append(ref.key)
    return tuple(sorted(found))


async def _open(other: JsonDict, ref: ObjectRef, etcd: EtcdPort) -> bool:
    try:
        spec = TableSpec.from_object(other)
    except SpecError:
        return True  # what it may have is not known
    gate = read((await etcd.read_table(spec.table_id, "")).gate, Gate)
    return gate.table_uid == ref.uid and gate.was_open
