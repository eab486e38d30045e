"""State of a simulated world: pods, nodes and processes as they are, the objects of the API server,
the keys of etcd.

Each action of the operator has the effect here that it has on a real etcd
(`tests/tiers/component/operator/test_world_contract.py`). This store lacks abilities of the real
ones: a read that is old, an answer that is lost or late, a permission that is denied, values that
are too large; API server and etcd are seen at one moment, there is one table, and a write is
visible at once. `tests/tiers/component` and `make crashes` test those.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from hudi_contract import naming, records
from hudi_contract.defaults import CONFIG_MAP, KEY
from hudi_contract.records import Stored
from hudi_operator.control.wide_looks import WIDE_SECONDS
from hudi_operator.model import conditions
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import (
    ContainerFacts,
    EtcdFacts,
    ExecutorAnswer,
    HeldConfigMap,
    NodeFacts,
    Nodes,
    Observed,
    PodFacts,
    PodName,
)
from hudi_operator.model.objects import Objects
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.fencing import absence
from hudi_operator.plan.writers import executors_missing

CONFIG = OperatorConfig()
NAMESPACE = "lake"
START_MS = 1_700_000_000_000
LEASE = 10.0
TERMINAL = ("Succeeded", "Failed")


class ConflictError(Exception):
    """A precondition of an action did not hold."""


class OperatorCrashError(Exception):
    """The operator died between two actions."""


@dataclass
class Pod:
    name: str
    uid: str
    labels: dict[str, str]
    owner_uids: tuple[str, ...]
    finalizers: list[str]
    grace: float
    node: str = ""
    phase: str = "Pending"
    exit_code: int | None = None
    message: str = ""
    deleting_since: float | None = None
    delete_grace: float = 30.0
    final: bool = False
    """Its grace period is 0: the object goes with its last finalizer, and not before."""
    cleaned_since: float | None = None
    """Time at which its kubelet began to remove its volumes, after the last container."""
    process: Process | None = None
    ended_at: str = ""
    beside: str = ""
    """Kind of another container that was put into the pod and does not end by
    itself; empty: none.
    """
    beside_ended: bool = False
    secrets: tuple[str, ...] = ()
    """Names of the Secrets that it mounts."""
    controller: PodName | None = None
    """Its driver, of an executor."""
    silent: bool = False
    """The kubelet has refused it, and has said nothing about its containers."""
    unreported: bool = False
    """Whether its kubelet's last report is older than the start of its containers."""
    unlocated: bool = False
    """Its kubelet has ended it, and found none of its containers."""
    collected: bool = False
    """The garbage collector has called it Failed because its node is lost; of its containers nobody
    has said anything since.
    """


@dataclass
class Node:
    name: str
    uid: str
    boot_id: str
    ready: bool = True
    out_of_service: bool = False
    machine: str = "machine-1"
    created_at: str = "2025-12-31T00:00:00Z"
    ready_since: str = "2023-01-01T00:00:00Z"
    was_ready: bool = True


@dataclass
class Process:
    """Process that really runs, whatever the API server says."""

    pod: str
    pod_uid: str
    role: str
    attempt: str
    inc: str
    node: str
    alive: bool = True
    paused: bool = False
    registered: bool = False
    step: int = 0
    instant: str = ""
    token: int = 0
    last_keepalive: float = 0.0
    n: int = 0
    died_at: float = 0.0
    ignores_sigterm: bool = False
    hang_at: int | None = None
    exit_code: int | None = None
    endless: bool = False
    """It commits one batch after the other, and looks at the gate between two of them."""
    commits: int = 0
    assignment: int = 0
    """For an agent: revision of the assignment whose table it has prepared."""


@dataclass(frozen=True)
class Author:
    """Author of a commit, as the commit names it."""

    writer: str
    """Namespace and name of its HudiWriter; empty: its agent's."""
    attempt: str
    records: int


@dataclass
class Key:
    value: dict[str, Any]
    create: int
    mod: int
    lease: str = ""
    _read: tuple[object, int, Stored] | None = field(default=None, compare=False, repr=False)

    def stored(self, kind: str, name: str, lease: int = 0) -> Stored:
        """Value that the operator reads there.

        Parsed once for each value: a world is looked at some hundred times, and few keys change.
        """
        written = raw(self.value)
        if self._read is None or self._read[:2] != (written, lease):
            found = records.stored(kind, name, written, create_revision=self.create, mod_revision=self.mod, lease=lease)
            self._read = copy.deepcopy(written), lease, found
        return self._read[2]


class Garbage(dict[str, Any]):
    """A value in etcd that nobody of ours writes, as bytes or JSON.

    The world's own checks read empty texts in it.
    """

    def __init__(self, written: object = None) -> None:
        super().__init__()
        self.written = written

    def __missing__(self, key: str) -> str:
        return ""


def raw(value: dict[str, Any]) -> object:
    """Value as etcd stores it."""
    return value.written if isinstance(value, Garbage) else value


@dataclass
class Store:
    """API server and etcd: their contents, and the part that the operator may see.

    Beside it the truth.
    """

    schedulable: bool = True
    gates: tuple[str, ...] = ()
    """Scheduling gates of each pod that has no node."""
    now: float = 0.0
    revision: int = 1
    forgotten: int = 0
    """Forgotten revision of an etcd that was set back."""
    kv: dict[str, Key] = field(default_factory=dict)
    table: dict[str, Any] | None = None
    writers: dict[str, dict[str, Any]] = field(default_factory=dict)
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Other HudiTables of the namespace, which writers read from."""
    defaults: dict[str, Any] | None = None
    """The ConfigMap with the defaults of the namespace."""
    applied: list[dict[str, Any]] = field(default_factory=list)
    pods: dict[str, Pod] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    timers: dict[str, float] = field(default_factory=dict)
    completed: set[str] = field(default_factory=set)
    rolled_back: set[str] = field(default_factory=set)
    created: list[str] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    """Names of Secrets with a key that the operator has made."""
    events: list[act.EmitEvent] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    terminating: bool = False
    operator_clock_ms: int = 0
    """By how much the operator's wall clock is ahead of the right time."""
    api_clock_ms: int = 0
    """By how much the API server's is."""
    agent_hangs_at: str = ""
    """``first outcome``: agents die after the first outcome they have written."""
    table_error: dict[str, str] | None = None
    foreign: dict[str, str] = field(default_factory=dict)
    """Pending instants (and actions) of writers that know nothing of the lock."""
    beating: set[str] = field(default_factory=set)
    """Instants among them whose heartbeat file is young."""
    bootstrap_hang_at: int | None = None
    """Step of a bootstrap at which new agents hang (None: they finish)."""
    bootstrap_error: str = ""
    metadata_error: str = ""
    """Why the dataset cannot be read; empty: it can."""
    held: dict[str, HeldConfigMap] = field(default_factory=dict)
    """ConfigMaps with our finalizer, by name."""
    unheld: dict[str, HeldConfigMap] = field(default_factory=dict)
    """ConfigMaps of an older operator, without the finalizer."""
    bootstrapped: list[str] = field(default_factory=list)
    """Completed commits of bootstraps: never more than one."""
    restore_hang_at: int | None = None
    """Step of a restore at which agents hang (None: they finish)."""
    restored: list[str] = field(default_factory=list)
    """Nonces of completed restores: never one twice."""
    undone: set[str] = field(default_factory=set)
    restore_instants: set[str] = field(default_factory=set)
    """Completed instants of restores."""
    completions: dict[str, str] = field(default_factory=dict)
    """Completion times of completed instants, as far as somebody has asked for them."""
    authors: dict[str, Author] = field(default_factory=dict)
    reported: object = None
    """Input of the last report on the timeline."""
    writer_hang_at: int | None = None
    """Step at which new writer processes hang (None: they finish)."""
    kernels: bool = False
    """Pods run in sandboxes with their own kernels (Kata): a JVM reads another boot id than the
    node has.
    """
    wide_at: float | None = None
    """Time at which a look last listed pods widely, and found no more than a narrow list has."""
    bare_executors: bool = False
    """Executors come with Spark's own label and none of ours: a pod template has
    taken them away.
    """
    beside: str = ""
    """Kind of a container that somebody's webhook puts into every new pod of a driver, executor or
    agent: it never ends by itself.
    """
    executors_per_driver: int = 0
    executors_per_agent: int = 0
    executors_refused: ExecutorAnswer = field(default_factory=ExecutorAnswer)
    """Answer of the API server about one more executor."""
    asked: list[tuple[float, str]] = field(default_factory=list)
    """Times at which it was asked about executors, each with the attempt."""
    executor_answers: dict[str, ExecutorAnswer] = field(default_factory=dict)
    """Its last answers, by attempt."""
    exit_codes: list[int] = field(default_factory=list)
    """Exit codes of the next writers instead of a success (consumed)."""
    counter: Any = field(default_factory=lambda: itertools.count(1))
    proofs_seen_at: dict[str, float] = field(default_factory=dict)

    # ---- set-up

    def make_table(self, **spec: Any) -> None:
        self.table = self._object(
            "HudiTable", "flights", {"path": "s3a://lake/flights", "recordKeyFields": ["id"], **spec}
        )
        self.nodes.setdefault("n1", Node("n1", "node-uid-1", "boot-1"))

    def make_writer(self, name: str, **spec: Any) -> None:
        source = {"files": {"format": "csv", "paths": ["s3a://landing/x/"]}}
        self.writers[name] = self._object(
            "HudiWriter", name, {"tableRef": {"name": "flights"}, "source": source, **spec}
        )

    def set_defaults(self, text: str) -> None:
        """Write the ConfigMap with the defaults of the namespace."""
        made = self._object("ConfigMap", CONFIG_MAP, {})
        self.defaults = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": made["metadata"], "data": {KEY: text}}

    def _object(self, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        meta = {
            "namespace": NAMESPACE,
            "name": name,
            "uid": f"{next(self.counter):08x}-{kind.lower()}",  # names of pods have its first eight characters
            "generation": 1,
            "resourceVersion": str(next(self.counter)),
            "creationTimestamp": f"2026-01-01T00:00:{len(self.writers):02d}Z",
        }
        return {"apiVersion": naming.API_VERSION, "kind": kind, "metadata": meta, "spec": spec}

    def new_time(self) -> str:
        """A time of the timeline, later than all before."""
        return f"2026010100000{next(self.counter):04d}"

    def completion(self, instant: str) -> str:
        """Completion time of a completed instant."""
        if instant not in self.completions:
            self.completions[instant] = self.new_time()
        return self.completions[instant]

    def pod_uid(self) -> str:
        return f"00000000-0000-0000-0000-{next(self.counter):012x}"

    def edit(self, obj: dict[str, Any], **spec: Any) -> None:
        obj["spec"].update(spec)
        obj["metadata"]["generation"] += 1
        self._touch(obj)

    def delete(self, obj: dict[str, Any]) -> None:
        obj["metadata"].setdefault("deletionTimestamp", "2026-01-02T00:00:00Z")
        self._touch(obj)
        self._collect_objects()

    def _touch(self, obj: dict[str, Any]) -> None:
        obj["metadata"]["resourceVersion"] = str(next(self.counter))

    def _collect_objects(self) -> None:
        if (
            self.table is not None
            and self.table["metadata"].get("deletionTimestamp")
            and not self.table["metadata"].get("finalizers")
        ):
            self.table = None
        for name, obj in list(self.writers.items()):
            if obj["metadata"].get("deletionTimestamp") and not obj["metadata"].get("finalizers"):
                del self.writers[name]
                for pod in list(self.pods.values()):  # garbage collection by owner
                    if obj["metadata"]["uid"] in pod.owner_uids:
                        self._mark_deleted(pod, 30)

    # ---- etcd

    def put(self, key: str, value: dict[str, Any], lease: str = "") -> int:
        self.revision += 1
        old = self.kv.get(key)
        self.kv[key] = Key(copy.deepcopy(value), old.create if old else self.revision, self.revision, lease)
        return self.revision

    def drop(self, key: str) -> None:
        if self.kv.pop(key, None) is not None:
            self.revision += 1

    def mod(self, key: str) -> int:
        return self.kv[key].mod if key in self.kv else 0

    def names(self, kind: str) -> dict[str, Key]:
        return {k.partition("/")[2]: v for k, v in self.kv.items() if k.startswith(kind + "/")}

    def _stored(self, kind: str) -> dict[str, Stored]:
        return {n: k.stored(kind, n, 7 if k.lease else 0) for n, k in self.names(kind).items()}

    def _one(self, key: str) -> Stored | None:
        found = self.kv.get(key)
        return found.stored(key, "") if found else None

    def etcd_facts(self) -> EtcdFacts:
        return EtcdFacts(
            revision=self.revision,
            cluster_id="c1",
            gate=self._one("gate"),
            lock=self._one("lock"),
            clock=self._one("clock"),
            admits=self._stored("admit"),
            writers=self._stored("writer"),
            alive=self._stored("alive"),
            queue=self._stored("queue"),
            instants=self._stored("instant"),
            fences=self._stored("fence"),
            settles=self._stored("settle"),
            reports=self._stored("report"),
            done=self._stored("done"),
            assignment=self._one("assignment"),
            elsewhere=tuple(self.names("elsewhere")),
            requests=self._stored("request"),
            seen=self._stored("seen"),
            forgotten=self.forgotten,
        )

    # ---- what the operator sees

    def pod_facts(self, pod: Pod) -> PodFacts:
        started = (
            (pod.phase in ("Running", *TERMINAL) and pod.exit_code is not None)
            or pod.phase == "Running"
            or (pod.collected and not pod.unreported)
        )
        return PodFacts(
            namespace=NAMESPACE,
            name=pod.name,
            uid=pod.uid,
            labels=dict(pod.labels),
            phase=pod.phase,
            node=pod.node,
            deleting=pod.deleting_since is not None,
            grace_seconds=None if pod.deleting_since is None else 0 if pod.final else max(1, int(pod.delete_grace)),
            deleted_at=self._deleted_at(pod),
            finalizers=tuple(pod.finalizers),
            containers=self._containers(pod, started),
            controller=pod.controller,
            secrets=pod.secrets,
            gates=() if pod.node else self.gates,
            created_at="2026-01-01T00:00:00Z",
        )

    def _deleted_at(self, pod: Pod) -> str:
        """By the API server's clock."""
        if pod.deleting_since is None:
            return ""
        over = pod.deleting_since + (0.0 if pod.final else pod.delete_grace)
        return conditions.rfc3339(START_MS + int(over * 1000) + self.api_clock_ms)

    @staticmethod
    def _containers(pod: Pod, started: bool) -> tuple[ContainerFacts, ...]:
        if pod.silent:
            return ()
        name = pod.labels.get(naming.LABEL_ROLE, "executor")
        reason = "ContainerStatusUnknown" if pod.unlocated else None
        own = ContainerFacts(name, started, pod.exit_code is not None, pod.exit_code, reason, pod.message, pod.ended_at)
        beside = ContainerFacts("beside", started, pod.beside_ended, 0 if pod.beside_ended else None, kind=pod.beside)
        return (own, beside) if pod.beside else (own,)

    def observe(self) -> Observed:
        objects = Objects(self.table, tuple(self.writers[n] for n in sorted(self.writers)), self.defaults)
        etcd = self.etcd_facts() if self.table is not None else None
        pods = self._listed(objects, etcd)
        return Observed(
            objects=objects,
            pods=pods,
            nodes=self._asked_for(absence.named_nodes(pods, etcd)),
            etcd=etcd,
            timers={n: self.now - t for n, t in self.timers.items()},
            held_config_maps=tuple(self.held[name] for name in sorted(self.held)),
            unheld_config_maps=tuple(self.unheld[name] for name in sorted(self.unheld)),
            executor_answers=self._answers(),
            now_ms=self.now_ms + self.operator_clock_ms,
            api_now_ms=self.now_ms + self.api_clock_ms,
            fresh_uuid=f"authority-{next(self.counter)}",
            source_tables=self.sources,
            namespace_terminating=self.terminating,
            agents_in_use=frozenset(),
            evidence_needed=frozenset(),
        )

    def _asked_for(self, names: Iterable[str]) -> Nodes:
        """Nothing is known of any other node."""
        self._nodes_become_ready()
        there = [self.nodes[name] for name in names if name in self.nodes]
        return Nodes.of(names, {n.name: self._node_facts(n) for n in there})

    @staticmethod
    def _node_facts(n: Node) -> NodeFacts:
        since = n.ready_since if n.ready else ""
        return NodeFacts(n.name, n.uid, n.boot_id, n.ready, n.out_of_service, n.created_at, n.machine, since)

    def _nodes_become_ready(self) -> None:
        for node in self.nodes.values():
            if node.ready and not node.was_ready:
                node.ready_since = conditions.rfc3339(self.now_ms)
            node.was_ready = node.ready

    def _listed(self, objects: Objects, etcd: EtcdFacts | None) -> tuple[PodFacts, ...]:
        """As `control/observe.py` lists them: those without our labels where absence decides."""
        found = tuple(self.pod_facts(p) for _, p in sorted(self.pods.items()))
        narrow = tuple(pod for pod in found if naming.LABEL_ROLE in pod.labels)
        due = self.wide_at is None or self.now - self.wide_at >= WIDE_SECONDS
        ages = {name: self.now - since for name, since in self.timers.items()}
        if not (
            due
            or self.terminating
            or absence.in_objects(objects, self.timers)
            or absence.in_pods(objects, narrow, reports=lambda pod: executors_missing.reports(pod, ages))
            or (etcd is not None and absence.in_keys(etcd))
        ):
            return narrow
        self.wide_at = self.now if narrow == found else None
        return found

    def _answers(self) -> dict[str, ExecutorAnswer]:
        """Each may be asked for again 30 s after the last time."""
        last = {attempt: at for at, attempt in self.asked}
        return {
            a: replace(said, seconds=max(0.0, last[a] + 30 - self.now)) for a, said in self.executor_answers.items()
        }

    @property
    def now_ms(self) -> int:
        return START_MS + int(self.now * 1000)

    # ---- pods and processes

    def delete_pod(self, name: str, grace: float) -> None:
        """Somebody else than the operator deletes a pod: Spark, a drain, a person."""
        self._mark_deleted(self.pods[name], grace)

    def _mark_deleted(self, pod: Pod, grace: float) -> None:
        """As the API server: of what has no node, or has ended, the first request is the last."""
        ended = pod.deleting_since is None and (pod.phase in TERMINAL or not pod.node)
        pod.final = pod.final or ended or grace == 0
        if pod.deleting_since is None:
            pod.deleting_since, pod.delete_grace = self.now, grace
        else:
            pod.delete_grace = min(pod.delete_grace, self.now - pod.deleting_since + grace)
        self._remove_if_done(pod)

    def _remove_if_done(self, pod: Pod) -> None:
        if pod.deleting_since is not None and not pod.finalizers and pod.final and self.pods.get(pod.name) is pod:
            del self.pods[pod.name]

    def _check_dead(self, inc: str, what: str) -> None:
        alive = [p for p in self.processes if p.inc == inc and p.alive]
        assert not alive, f"{what} of {inc} while its process runs in pod {alive[0].pod} (I1)"
