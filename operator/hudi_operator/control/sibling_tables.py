"""Agent pods that other HudiTables of a namespace need, read live.

An agent's pod serves several tables and is evidence for all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from hudi_contract import naming
from hudi_operator.api.spec import TableSpec
from hudi_operator.control.queue import Key
from hudi_operator.model import containers, doubts
from hudi_operator.model.facts import PodFacts
from hudi_operator.model.objects import read_whole
from hudi_operator.model.ports import EtcdPort, Fatal, KubernetesPort, Retryable
from hudi_operator.plan.agent.agent_pods import KEPT_AGENT_PODS, leaving, needed_uids
from hudi_operator.plan.requests import catalogs, restores

JsonDict = dict[str, Any]
_PARALLEL_READS = 8
_MOST_HOLDERS = 10_000


@dataclass(frozen=True)
class SiblingTables:
    """A field that is None is unknown; nothing that depends on it may be decided (I11)."""

    agents_in_use: frozenset[str] | None = None
    evidence_needed: frozenset[str] | None = None


def worth_knowing(table: TableSpec, agent: str, pods: Iterable[PodFacts], *, used: Callable[[str], bool]) -> bool:
    """False in the usual case: there are no agent pods to decide about.

    This table's agent has one pod, which runs, and objects of earlier ones that are kept. The other
    agents among the ``pods`` have HudiTables of their own, and no evidence that waits to be
    dropped: a table that gives way to another one of its path does not look after its agent.

    ``used``: whether the watches know a HudiTable that an agent serves.
    """
    agents = [pod for pod in pods if pod.labels.get(naming.LABEL_ROLE) == naming.ROLE_AGENT]
    own = [pod for pod in agents if pod.labels.get(naming.LABEL_AGENT) == agent]
    others = {pod.labels.get(naming.LABEL_AGENT, "") for pod in agents} - {agent}
    usual = (
        len(own) <= KEPT_AGENT_PODS
        and sum(not _kept(pod) for pod in own) <= 1
        and not any(leaving(pod) and not _kept(pod) for pod in agents)
        and all(used(other) for other in others)
    )
    return bool(agents) and (table.ref.deleting or not usual)


def _kept(pod: PodFacts) -> bool:
    """Whether only the object is left, for its logs."""
    return containers.ended(pod) and not pod.deleting and naming.EVIDENCE_FINALIZER not in pod.finalizers


async def read_sibling_tables(
    key: Key,
    pods: Iterable[PodFacts],
    *,
    kubernetes: KubernetesPort,
    etcd: EtcdPort,
    agent_of: Callable[[JsonDict, TableSpec], str],
    holders: set[str] | None = None,
) -> SiblingTables:
    """Read the other HudiTables of the namespace.

    While an ended agent pod carries evidence, their keys in etcd are read, too, until each such pod
    is known to be needed. ``agent_of``: name of a HudiTable's agent. ``holders``: ids of tables
    that needed one when they were last read, read first; it is brought up to date.
    """
    specs: list[TableSpec] = []
    agents: dict[str, str] = {}
    restoring: set[str] = set()
    for table in await kubernetes.list_objects(naming.TABLE_KIND, key[0]):
        if table["metadata"]["name"] != key[1]:
            spec = read_whole(table).spec
            if spec is None:  # an unreadable table may need any agent
                return SiblingTables()
            specs.append(spec)
            agents[spec.ref.name] = agent_of(table, spec)
            restoring.update([spec.ref.name] if restores.goes_on(table.get("status") or {}) else [])
    in_use = frozenset(
        agents[spec.ref.name]
        for spec in specs
        if not spec.ref.deleting or spec.ref.name in restoring or catalogs.may_need_agent(spec)
    )
    asked = [
        pod
        for pod in pods
        if pod.labels.get(naming.LABEL_ROLE) == naming.ROLE_AGENT
        and leaving(pod)
        and naming.EVIDENCE_FINALIZER in pod.finalizers
    ]
    ids = {spec.table_id for spec in specs} if asked else set[str]()
    return SiblingTables(in_use, await _evidence(ids, etcd, asked, holders if holders is not None else set()))


async def _evidence(
    ids: Iterable[str], etcd: EtcdPort, pods: Collection[PodFacts], holders: set[str]
) -> frozenset[str] | None:
    """Uids of those of the ``pods`` that tables need, and others; None: unknown.

    A pod that one table needs stays, whatever the others say. So among the N tables that an agent
    has served, each look reads the few that still hold its pod, and all of them only once none of
    these does (F265).
    """

    async def uids(table_id: str) -> frozenset[str] | None:
        facts = await etcd.read_table(table_id, "")
        return None if doubts.unplaced(facts) else needed_uids(facts, pods)

    asked = {pod.uid for pod in pods}

    if len(holders) > _MOST_HOLDERS:
        holders.clear()
    left, found = sorted(ids, key=lambda table_id: (table_id not in holders, table_id)), set[str]()
    while left and not asked <= found:
        some, left = left[:_PARALLEL_READS], left[_PARALLEL_READS:]
        try:
            read = await asyncio.gather(*(uids(table_id) for table_id in some))
        except (Retryable, Fatal):
            return None
        for table_id, needed in zip(some, read, strict=True):
            if needed is None or needed & asked:
                holders.add(table_id)
            else:
                holders.discard(table_id)
        known = [needed for needed in read if needed is not None]
        if len(known) < len(read):
            return None
        found.update(*known)
    return frozenset(found)
