"""Pods and attempts that keys of a table in etcd, and statuses of its writers, name."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_contract import naming
from hudi_contract.keys import reporting_attempt
from hudi_contract.settle import Phase, SettleRecord
from hudi_contract.shape import JsonDict
from hudi_contract.table_keys import Admit, Registration
from hudi_contract.words import Role
from hudi_operator.model.facts import EtcdFacts
from hudi_operator.model.status import attempt_entries


def etcd_uids(etcd: EtcdFacts) -> set[str]:
    """Uids of pods named by registrations and by unsettled records."""
    return {found.pod_uid for found in named_pods(etcd) if found.pod_uid}


def named_pods(etcd: EtcdFacts) -> list[Registration]:
    """The fields of a registration, from both kinds of records."""
    unsettled = [stored for stored in etcd.settles.values() if stored.read(SettleRecord).phase is not Phase.Settled]
    return [stored.read(Registration) for stored in (*etcd.writers.values(), *unsettled)]


def attempts_of_etcd(etcd: EtcdFacts) -> set[str]:
    """Attempts of writers that are admitted or have a report."""
    admitted = {attempt for attempt, stored in etcd.admits.items() if stored.read(Admit).role != Role.AGENT}
    return admitted | {attempt for kind in etcd.reports if (attempt := reporting_attempt(kind))}


def attempts_of(writers: Iterable[JsonDict]) -> set[str]:
    """Attempts named in status."""
    found = ((w["metadata"]["namespace"], entry) for w in writers for entry in attempt_entries(w.get("status") or {}))
    return {naming.attempt_id(namespace, entry.pod) for namespace, entry in found if entry.pod}
