"""A table inside another one's folder is refused (F61).

So is a table in the same folder under another spelling. The other table is not affected.

Hudi treats everything below a table's base path as part of that table: partitions of one would be
files of the other, and a cleaning, a restore or the metadata table of the outer one would not know
the inner one's writers. Their locks are two independent keys.

Only a table whose gate was never open is checked, so a working table is never stopped by a later
one. Of two tables that were never open the older one comes first; if both were created in the same
second, neither does.
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
    """True before anything is created for the table, and once more before its gate first opens.

    It is never True afterwards.
    """
    if etcd is None or table.ref.deleting:
        return False
    gate = read(etcd.gate, Gate)
    if gate.table_uid != table.ref.uid:
        return True
    return not gate.was_open and TIMELINE in etcd.reports


async def read_overlapping(
    table: TableSpec, *, kubernetes: KubernetesPort, etcd: EtcdPort, namespaces: tuple[str, ...]
) -> tuple[str, ...]:
    """HudiTables (``ns/name``) that block this one's folder.

    Read live, also from etcd; raises Retryable or Fatal when that fails.
    """
    found = []
    for namespace in namespaces or ("",):
        for other in await kubernetes.list_objects(naming.TABLE_KIND, namespace):
            path, ref = str((other.get("spec") or {}).get("path") or ""), ObjectRef.from_object(other)
            if (
                ref.key == table.ref.key
                or not naming.overlaps(path, table.path)
                or naming.table_id(path) == table.table_id
            ):
                continue
            if ref.created_at <= table.ref.created_at or await _open(other, ref, etcd):
                found.append(ref.key)
    return tuple(sorted(found))


async def _open(other: JsonDict, ref: ObjectRef, etcd: EtcdPort) -> bool:
    try:
        spec = TableSpec.from_object(other)
    except SpecError:
        return True  # its rights are unknown
    gate = read((await etcd.read_table(spec.table_id, "")).gate, Gate)
    return gate.table_uid == ref.uid and gate.was_open
