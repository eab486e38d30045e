"""Reads everything that concerns one HudiTable, live, into one Observed."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hudi_contract import naming, records
from hudi_contract.defaults import CONFIG_MAP
from hudi_contract.shape import is_object_name
from hudi_contract.table_keys import Gate
from hudi_operator.api.spec import TableSpec
from hudi_operator.control.applied_objects import AppliedObjects
from hudi_operator.control.consents import read_consents
from hudi_operator.control.index import TableIndex
from hudi_operator.control.late_statuses import LateStatuses
from hudi_operator.control.memory import Memory
from hudi_operator.control.named import attempts_of, attempts_of_etcd, etcd_uids, named_pods
from hudi_operator.control.nesting import Overlapping, on_path, read_overlapping, read_tables_at, undecided
from hudi_operator.control.queue import Key
from hudi_operator.control.sibling_tables import SiblingTables, read_sibling_tables, worth_knowing
from hudi_operator.control.timers import Timers
from hudi_operator.control.wide_looks import WideLooks
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import (
    EtcdFacts,
    EtcdFitness,
    ExecutorAnswer,
    HeldConfigMap,
    Nodes,
    Observed,
    PodFacts,
    PodName,
    Refusal,
)
from hudi_operator.model.objects import Objects
from hudi_operator.model.ports import Conflict, EtcdPort, Fatal, KubernetesPort, Retryable
from hudi_operator.model.store_access import Revocation
from hudi_operator.plan.core import trial
from hudi_operator.plan.fencing import absence
from hudi_operator.plan.writers import event_log, executors_missing, source_tables

JsonDict = dict[str, Any]

SPARK_EXECUTORS = "spark-role=executor"
"""Spark's own label. It finds executors that lack our labels."""


@dataclass(frozen=True)
class _EtcdRead:
    """``facts`` is None when etcd could not be read.

    ``floor``: highest revision seen before, of this cluster.
    """

    facts: EtcdFacts | None = None
    error: str = ""
    floor: int = 0
    fitness: EtcdFitness = field(default_factory=EtcdFitness)


async def _unasked() -> EtcdFitness:
    return EtcdFitness()


def _none_seen(key: Key) -> Mapping[str, Revocation]:
    return {}


def _none_refused(key: Key) -> Mapping[str, Refusal]:
    return {}


def _none_asked(key: Key) -> Mapping[str, ExecutorAnswer]:
    return {}


class Observer:
    """Reads tables.

    Raises Retryable or Fatal when Kubernetes cannot be read; etcd's failure is part of the
    observation.
    """

    def __init__(
        self,
        *,
        kubernetes: KubernetesPort,
        etcd: EtcdPort,
        index: TableIndex,
        timers: Timers,
        config: OperatorConfig,
        authority: Callable[[], str],
        fitness: Callable[[], Awaitable[EtcdFitness]] = _unasked,
        revocations: Callable[[Key], Mapping[str, Revocation]] = _none_seen,
        applied: AppliedObjects | None = None,
        memory: Memory | None = None,
        refusals: Callable[[Key], Mapping[str, Refusal]] = _none_refused,
        executor_answers: Callable[[Key], Mapping[str, ExecutorAnswer]] = _none_asked,
        late: LateStatuses | None = None,
    ) -> None:
        """``authority`` returns the gateway's certificate authority; it may raise Retryable.

        ``fitness`` reports problems of etcd; it may raise Retryable or Fatal. ``revocations`` says
        what was seen of the storage credentials of a table's attempts. ``applied`` is the
        executor's note of the authority that it has copied into namespaces. ``memory`` has what the
        watches bring. ``refusals`` returns the API server's refusals to make objects for a table's
        attempts, ``executor_answers`` its answers about executors that do not come. ``late``: what
        the executor has not written yet.
        """
        self._kubernetes = kubernetes
        self._etcd = etcd
        self._index = index
        self._timers = timers
        self._config = config
        self._authority = authority
        self._fitness = fitness
        self._revocations = revocations
        self._applied = applied or AppliedObjects()
        self._memory = memory or Memory()
        self._holders: set[str] = set()
        self._wide = WideLooks(self._memory.clock)
        self._refusals = refusals
        self._executor_answers = executor_answers
        self._late = late or LateStatuses()

    def configure(self, config: OperatorConfig) -> None:
        """Read by this configuration from now on, also in a look that is under way."""
        self._config = config

    async def observe(self, key: Key) -> Observed:
        """Observe one table, or the writers that wait for it.

        The order matters: etcd is read after the pods. A pod found dead cannot register any more,
        so a registration that is not there then will never be (protocol.md, Settling).
        """
        namespace, name = key
        began, asked = self._memory.clock(), time.monotonic()
        table, named, (namespace_uid, terminating) = await asyncio.gather(
            self._kubernetes.get(naming.TABLE_KIND, namespace, name),
            self._kubernetes.writers(namespace, name),
            self._namespace(namespace),
        )
        writers = tuple(self._late.known(key, sorted(named, key=lambda w: str(w["metadata"]["name"]))))
        # Both are read after the writers: a default that existed when a writer was created is known
        # to its first attempt. And before the pods: a ConfigMap that is there has its pod already,
        # or an admission in etcd.
        defaults, (held, unheld) = await asyncio.gather(self._defaults(namespace), self._config_maps(namespace, name))
        objects = Objects(table, writers, *defaults)
        spec, error = objects.table_spec
        agent = self._index.agent(table, spec, error) if table is not None and spec is not None else ""
        sources = await self._source_tables(namespace, objects)
        pods, read, wide = await self._pods_and_keys(key, objects, agent, terminating=terminating)
        if spec is not None and read.facts is not None:
            await self._check_admissions(key, read.facts, writers)
        consents, readable = await read_consents(
            namespace, namespace_uid, spec, objects, ask=self._kubernetes, config=self._config, applied=self._applied
        )
        siblings = await self._sibling_tables(key, spec, agent, pods.values())
        # Times that the API server told before this look may be older than a step of a clock.
        now_ms, offset = int(time.time() * 1000), self._kubernetes.clock_offset_ms(since=asked)
        overlapping = await self._overlapping(None if error else spec, read.facts, now_ms + (offset or 0))
        tried = await self._trial(table, spec, read.facts, agent)
        observed = Observed(
            objects=objects,
            agent=agent,
            pods=tuple(sorted(pods.values(), key=lambda pod: (pod.name, pod.uid))),
            nodes=await self._nodes(pods.values(), read.facts),
            etcd=read.facts,
            etcd_error=read.error,
            etcd_fitness=read.fitness,
            timers=self._timers.ages(key),
            held_config_maps=held,
            unheld_config_maps=unheld,
            now_ms=now_ms,
            api_now_ms=None if offset is None else now_ms + offset,
            tables_on_path=on_path(self._index, key, spec, self._config),
            trial=tried,
            owner_is_gone=await self._owner_is_gone(spec, read.facts),
            overlapping=overlapping.blocking,
            overlapping_gates=overlapping.gates,
            source_tables=sources,
            tables_at_event_logs=await self._tables_at_event_logs(namespace, objects, read.facts),
            consents=consents,
            secrets_unreadable=not readable,
            revocations=self._revocations(key),
            refusals=self._refusals(key),
            executor_answers=self._executor_answers(key),
            namespace_terminating=terminating,
            namespace_uid=namespace_uid,
            fresh_uuid=str(uuid.uuid4()),
            etcd_authority=self._authority(),
            copied_authority=self._applied.authority(namespace),
            agents_in_use=siblings.agents_in_use,
            evidence_needed=siblings.evidence_needed,
            revision_floor=read.floor,
            known_cluster_id=read.facts.cluster_id if read.facts is not None else "",
        )
        self._memory.learn(key, observed, began=began, agent="" if wide else agent)
        if table is None and not self._memory.has_table(key):
            self._index.remove(key)  # the event of its deletion was lost
        return observed

    async def glance(self, key: Key) -> Observed | None:
        """The table as known from the watches, with its keys in etcd, which are read.

        The API server is asked for nothing. All that may follow is that nothing is to be done, or
        that a live look is needed (I11). None: one is needed.
        """
        seen = self._memory.recall(key)
        spec = seen.objects.table_spec.spec if seen is not None else None
        if seen is None or seen.table is None or spec is None or seen.secrets_unreadable:
            return None
        agent = self._index.agent(seen.table, spec, seen.objects.table_spec.error)
        if self._is_wide(key, seen.objects, agent):
            return None
        # As in a live look, agents of other tables are left out.
        seen = replace(seen, pods=tuple(pod for pod in seen.pods if not _is_agent(pod) or _serves(pod, agent)))
        read = await self._read_etcd(seen.table, spec, agent)
        if read.facts is None or etcd_uids(read.facts) - {pod.uid for pod in seen.pods}:
            return None
        if self._worth_knowing(key, spec, agent, seen.pods):
            return None
        try:
            tried = await self._trial(seen.table, spec, read.facts, agent)
        except (Retryable, Fatal):
            return None
        now_ms, offset = int(time.time() * 1000), self._kubernetes.clock_offset_ms()
        return replace(
            seen,
            agent=agent,
            etcd=read.facts,
            etcd_error=read.error,
            etcd_fitness=read.fitness,
            timers=self._timers.ages(key),
            now_ms=now_ms,
            api_now_ms=None if offset is None else now_ms + offset,
            tables_on_path=on_path(self._index, key, spec, self._config),
            trial=tried,
            revocations=self._revocations(key),
            refusals=self._refusals(key),
            executor_answers=self._executor_answers(key),
            etcd_authority=self._authority(),
            copied_authority=self._applied.authority(key[0]),
            revision_floor=read.floor,
            known_cluster_id=read.facts.cluster_id,
        )

    def forget(self, key: Key) -> None:
        """Forget a table at which no look is made any more."""
        self._memory.forget(key)
        self._wide.forget(key)

    async def _check_admissions(self, key: Key, etcd: EtcdFacts, writers: Iterable[JsonDict]) -> None:
        """Raise Conflict when another operator began an attempt after the writers were read.

        Its admission would look orphaned (I11).

        An attempt is in status before it is admitted, so a list that is read after etcd names every
        admitted attempt.
        """
        unnamed = attempts_of_etcd(etcd) - attempts_of(writers)
        # Another HudiTable may have the same path: attempts of its writers do not belong to this
        # table.
        begun = sorted(unnamed & attempts_of(await self._kubernetes.writers(*key))) if unnamed else []
        if begun:
            raise Conflict(f"attempt {begun[0]} began while the table was read")

    async def _source_tables(self, namespace: str, objects: Objects) -> Mapping[str, JsonDict]:
        names = sorted(_sources_of(objects))
        found = await asyncio.gather(*(self._kubernetes.get(naming.TABLE_KIND, namespace, name) for name in names))
        return {name: table for name, table in zip(names, found, strict=True) if table is not None}

    async def _owner_is_gone(self, spec: TableSpec | None, etcd: EtcdFacts | None) -> bool:
        """Whether the other HudiTable that the gate names is known not to exist."""
        gate = records.read(etcd.gate if etcd is not None else None, Gate)
        namespace, _, name = gate.table.partition("/")
        if spec is None or not gate.table_uid or gate.table_uid == spec.ref.uid or gate.table == spec.ref.key:
            return False
        if not (is_object_name(namespace) and is_object_name(name)):
            return False
        try:
            found = await self._kubernetes.get(naming.TABLE_KIND, namespace, name)
        except Fatal:  # of a namespace that this release does not watch nothing is known
            return False
        return found is None or not _has_path(found, gate, spec)

    async def _trial(
        self, table: JsonDict | None, spec: TableSpec | None, etcd: EtcdFacts | None, agent: str
    ) -> EtcdFacts | None:
        """Keys of the HudiTable's trial, read after those of the table; None: it has none."""
        if spec is None or etcd is None or not trial.concerns(spec, etcd, self._config):
            return None
        others = self._index.former_agents(table or {}, spec, agent)
        return await self._etcd.read_table(naming.trial_id(spec.ref.uid), agent, others)

    async def _overlapping(self, spec: TableSpec | None, etcd: EtcdFacts | None, now_ms: int) -> Overlapping:
        if spec is None or not undecided(spec, etcd):
            return Overlapping()
        return await read_overlapping(
            spec, kubernetes=self._kubernetes, etcd=self._etcd, config=self._config, now_ms=now_ms
        )

    async def _tables_at_event_logs(
        self, namespace: str, objects: Objects, etcd: EtcdFacts | None
    ) -> Mapping[str, tuple[str, ...]]:
        """Nothing starts without etcd, so nobody asks then."""
        writers = [writer.spec for writer in objects.writer_specs if writer.spec is not None]
        folders = [folder for writer in writers for _, folder in event_log.folders(writer)]
        if not folders or etcd is None:
            return {}
        return await read_tables_at(
            folders, namespace=namespace, index=self._index, etcd=self._etcd, config=self._config
        )

    async def _defaults(self, namespace: str) -> tuple[JsonDict | None, str]:
        """The ConfigMap with the defaults of a namespace, and why it could not be read.

        Fencing and settling do not wait for that right.
        """
        try:
            return await self._kubernetes.get("ConfigMap", namespace, CONFIG_MAP), ""
        except Fatal as error:
            return None, str(error)

    async def _namespace(self, namespace: str) -> tuple[str, bool]:
        """Its uid, and whether it is being deleted.

        Unknown and False when the operator may not read namespaces: the objects' own deletion then
        follows a moment later.
        """
        try:
            found = await self._kubernetes.get("Namespace", "", namespace)
        except Fatal:
            found = None
        meta = found["metadata"] if found else {}
        return str(meta.get("uid") or ""), bool(meta.get("deletionTimestamp"))

    async def _config_maps(
        self, namespace: str, table: str
    ) -> tuple[tuple[HeldConfigMap, ...], tuple[HeldConfigMap, ...]]:
        """ConfigMaps that our finalizer keeps, and those that it may keep but does not."""
        wanted = {**naming.MANAGED, naming.LABEL_TABLE: naming.label_value(table)}
        selector = ",".join(f"{name}={value}" for name, value in wanted.items())
        found = await self._kubernetes.list_metadata("ConfigMap", namespace, labels=selector)
        held, unheld = list[HeldConfigMap](), list[HeldConfigMap]()
        for meta in sorted(found, key=lambda meta: str(meta["name"])):
            writer = (meta.get("labels") or {}).get(naming.LABEL_WRITER, "")
            config_map = HeldConfigMap(namespace, meta["name"], meta["uid"], writer)
            if naming.EVIDENCE_FINALIZER in (meta.get("finalizers") or ()):
                held.append(config_map)
            elif not meta.get("deletionTimestamp"):
                unheld.append(config_map)
        return tuple(held), tuple(unheld)

    async def _pods_and_keys(
        self, key: Key, objects: Objects, agent: str, *, terminating: bool
    ) -> tuple[dict[str, PodFacts], _EtcdRead, bool]:
        """Pods by uid, then etcd, and whether the list of pods is a wide one.

        It is needed for conclusions from the absence of a pod.
        """
        (namespace, name), (spec, error) = key, objects.table_spec
        wide = terminating or self._is_wide(key, objects, agent)
        pods = await self._pods(namespace, name, "" if wide else agent)
        ages = self._timers.ages(key)
        if not wide and absence.in_pods(
            objects, pods.values(), reports=lambda pod: executors_missing.reports(pod, ages)
        ):
            wide, pods = True, {**pods, **await self._pods(namespace, name, "")}
        if wide:
            await self._list_widely(key, objects, pods, agent=agent)
        read = _EtcdRead(error=error) if spec is None else await self._read_etcd(objects.table, spec, agent)
        if spec is None or read.facts is None:
            return pods, read, wide
        unseen = etcd_uids(read.facts) - pods.keys()
        if unseen or (not wide and absence.in_keys(read.facts)):
            pods.update(await self._pods_of_etcd(namespace, read.facts, known=pods))
            if not wide:
                wide = True
                pods.update(await self._pods(namespace, name, ""))
                await self._list_widely(key, objects, pods, agent=agent)
            missed = {PodName(v.pod, v.pod_uid) for v in named_pods(read.facts) if v.pod_uid in unseen}
            pods.update(await self._executors(namespace, missed) if missed else {})
            # Read etcd again, to keep the order.
            read = await self._read_etcd(objects.table, spec, agent)
        return pods, read, wide

    def _is_wide(self, key: Key, objects: Objects, agent: str) -> bool:
        """Whether the pods are listed widely, whatever they are (see :mod:`absence`)."""
        before = str(((objects.table or {}).get("status") or {}).get("agent") or "")
        return (
            self._wide.due(key)
            or before not in ("", agent)
            or absence.in_objects(objects, self._timers.ages(key))
            or self._nobody_uses(key[0], agent)
        )

    def _nobody_uses(self, namespace: str, agent: str) -> bool:
        """Whether the watches know an agent of the namespace that no HudiTable uses.

        One of the tables has to end it.
        """
        return any(
            name != agent and not self._index.of_agent(namespace, name) for name in self._memory.agents(namespace)
        )

    async def _pods(self, namespace: str, table: str, agent: str) -> dict[str, PodFacts]:
        """Pods of the table, and those of its agent; without one all agents' of the namespace."""
        agents = f"{naming.LABEL_ROLE}={naming.ROLE_AGENT}" + (f",{naming.LABEL_AGENT}={agent}" if agent else "")
        selectors = (f"{naming.LABEL_TABLE}={naming.label_value(table)}", agents)
        lists = await asyncio.gather(*(self._kubernetes.pods(namespace, labels=selector) for selector in selectors))
        return {pod.uid: pod for pods in lists for pod in pods if _made_here(pod)}

    async def _list_widely(self, key: Key, objects: Objects, found: dict[str, PodFacts], *, agent: str) -> None:
        """Add to what was ``found``: executors without our labels, and all agents' pods."""
        namespace, own = key[0], naming.label_value(key[1])
        drivers = {pod.uid: pod for pod in found.values() if pod.labels.get(naming.LABEL_TABLE) == own}
        bare = dict[str, PodFacts]()
        # A table's own agent may have executors; executors of other agents do not belong
        # to this table.
        if any(_executors_wanted(w) for w in objects.writers) or any(_is_agent(pod) for pod in drivers.values()):
            executors = await self._executors(namespace, {PodName(pod.name, pod.uid) for pod in drivers.values()})
            bare = {uid: pod for uid, pod in executors.items() if uid not in found}
            found.update(executors)
        agents = {pod.labels.get(naming.LABEL_AGENT, "") for pod in found.values() if _is_agent(pod)}
        unused = any(not self._index.of_agent(namespace, other) for other in agents - {agent})
        self._wide.taken(key, shown_more=bool(bare) or unused)

    def _worth_knowing(self, key: Key, spec: TableSpec, agent: str, pods: Iterable[PodFacts]) -> bool:
        return worth_knowing(spec, agent, pods, used=lambda other: bool(self._index.of_agent(key[0], other)))

    async def _sibling_tables(
        self, key: Key, spec: TableSpec | None, agent: str, pods: Iterable[PodFacts]
    ) -> SiblingTables:
        if spec is None or not self._worth_knowing(key, spec, agent, pods):
            return SiblingTables()
        return await read_sibling_tables(
            key,
            pods,
            kubernetes=self._kubernetes,
            etcd=self._etcd,
            agent_of=lambda table, spec: self._index.agent(table, spec, ""),
            holders=self._holders,
        )

    async def _pods_of_etcd(
        self, namespace: str, etcd: EtcdFacts, *, known: Mapping[str, PodFacts]
    ) -> dict[str, PodFacts]:
        """Pods of the table's namespace that etcd names and that no label selector found.

        JVMs write there what is to be deleted here: neither a pod of another namespace nor one that
        bears no mark of ours is taken for one of the table.
        """
        wanted = [
            v for v in named_pods(etcd) if v.pod_uid not in known and v.namespace == namespace and is_object_name(v.pod)
        ]
        found = await asyncio.gather(*(self._kubernetes.pod(v.namespace, v.pod) for v in wanted))
        return {
            pod.uid: pod
            for pod, v in zip(found, wanted, strict=True)
            if pod is not None and pod.uid == v.pod_uid and _made_here(pod)
        }

    async def _executors(self, namespace: str, drivers: set[PodName]) -> dict[str, PodFacts]:
        """Executors of these drivers by their controller, whatever labels they carry (F26)."""
        found = await self._kubernetes.pods(namespace, labels=SPARK_EXECUTORS)
        return {pod.uid: pod for pod in found if pod.controller in drivers}

    async def _nodes(self, pods: Iterable[PodFacts], etcd: EtcdFacts | None) -> Nodes:
        names = absence.named_nodes(pods, etcd)
        return Nodes.of(names, await self._kubernetes.nodes(sorted(names))) if names else Nodes()

    async def _read_etcd(self, table: JsonDict | None, spec: TableSpec, agent: str) -> _EtcdRead:
        # Taken before the request is sent: the answer cannot be older than this.
        floors = self._etcd.floors()
        try:
            fitness = await self._fitness()
            if fitness.refused:
                return _EtcdRead(error=fitness.message, fitness=fitness)
            others = self._index.former_agents(table or {}, spec, agent)
            facts = await self._etcd.read_table(spec.table_id, agent, others)
        except (Retryable, Fatal) as error:
            return _EtcdRead(error=str(error))
        return _EtcdRead(facts, "", floors.get(facts.cluster_id, 0), fitness)


def _has_path(table: JsonDict, gate: Gate, spec: TableSpec) -> bool:
    """Whether this is the HudiTable of the gate, or another one of its name with the same path."""
    path = str((table.get("spec") or {}).get("path") or "")
    return table["metadata"]["uid"] == gate.table_uid or naming.table_id(path) == spec.table_id


def _serves(pod: PodFacts, agent: str) -> bool:
    return pod.labels.get(naming.LABEL_AGENT) == agent


def _is_agent(pod: PodFacts) -> bool:
    return pod.labels.get(naming.LABEL_ROLE) == naming.ROLE_AGENT


def _made_here(pod: PodFacts) -> bool:
    """Whether a pod bears a mark of the operator's.

    Policies of the chart keep others from making such pods, and from taking the marks off.
    """
    return naming.MANAGED.items() <= pod.labels.items() or naming.EVIDENCE_FINALIZER in pod.finalizers


def _sources_of(objects: Objects) -> set[str]:
    """Names of the HudiTables that the writers read.

    A writer with an unreadable spec does not run.
    """
    specs = [writer.spec for writer in objects.writer_specs if writer.spec is not None]
    return {reference.table for spec in specs for reference in source_tables.references(spec) if reference.table}


def _executors_wanted(writer: JsonDict) -> bool:
    """Whether its attempts may have executors: those of its spec, or those that they began with."""
    attempts = (writer.get("status") or {}).get("attempts") or ()
    return bool(((writer.get("spec") or {}).get("executors") or {}).get("instances")) or any(
        isinstance(attempt, dict) and attempt.get("executors") for attempt in attempts
    )
