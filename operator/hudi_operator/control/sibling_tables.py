"""Agent pods that other HudiTables of a namespace need, read live.

An agent's pod serves several tables and is evidence for all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hudi_contract import naming
from hudi_operator.api.spec import TableSpec
from hudi_operator.control.queue import Key
from hudi_operator.model import containers, doubts
from hudi_operator.model.facts import PodFacts
from hudi_operator.model.objects import read_whole
from hudi_operator.model.ports import EtcdPort, Fatal, KubernetesPort, Retryable
from hudi_operator.plan.agent.agent_pods import unproven_uids
from hudi_operator.plan.requests import restores

JsonDict = dict[str, Any]
_PARALLEL_READS = 8


@dataclass(frozen=True)
class SiblingTables:
    """A field that is None is unknown; nothing that depends on it may be decided (I11)."""

    agents_in_use: frozenset[str] | None = None
    evidence_needed: frozenset[str] | None = None


def worth_knowing(table: TableSpec, agent: str, pods: Iterable[PodFacts]) -> bool:
    """False in the usual case: one agent pod, which runs and serves this table."""
    agents = [pod for pod in pods if pod.labels.get(naming.LABEL_ROLE) == naming.ROLE_AGENT]
    usual = len(agents) <= 1 and all(pod.labels.get(naming.LABEL_AGENT) == agent and not _ended(pod) for pod in agents)
    return bool(agents) and (table.ref.deleting or not usual)


async def read_sibling_tables(
    key: Key, pods: Iterable[PodFacts], *, kubernetes: KubernetesPort, etcd: EtcdPort, default_image: str
) -> SiblingTables:
    """Read the other HudiTables of the namespace.

    While an ended agent pod carries evidence, their keys in etcd are read, too.
    """
    specs: list[TableSpec] = []
    restoring: set[str] = set()
    for table in await kubernetes.list_objects(naming.TABLE_KIND, key[0]):
        if table["metadata"]["name"] != key[1]:
            spec = read_whole(table).spec
            if spec is None:  # an unreadable table may need any agent
                return SiblingTables()
            specs.append(spec)
            restoring.update([spec.ref.name] if restores.goes_on(table.get("status") or {}) else [])
    in_use = frozenset(
        spec.agent_name(default_image) for spec in specs if not spec.ref.deleting or spec.ref.name in restoring
    )
    asked = any(
        _ended(pod) and naming.EVIDENCE_FINALIZER in pod.finalizers
        for pod in pods
        if pod.labels.get(naming.LABEL_ROLE) == naming.ROLE_AGENT
    )
    return SiblingTables(in_use, await _evidence(specs, etcd) if asked else frozenset())


async def _evidence(specs: Iterable[TableSpec], etcd: EtcdPort) -> frozenset[str] | None:
    permits = asyncio.Semaphore(_PARALLEL_READS)

    async def uids(table_id: str) -> frozenset[str] | None:
        async with permits:
            facts = await etcd.read_table(table_id, "")
        return None if doubts.unplaced(facts) else unproven_uids(facts)

    try:
        found = await asyncio.gather(*(uids(spec.table_id) for spec in specs))
    except (Retryable, Fatal):
        return None
    known = [each for each in found if each is not None]
    return frozenset().union(*known) if len(known) == len(found) else None


def _ended(pod: PodFacts) -> bool:
    return pod.deleting or containers.ended(pod)
