"""The input of one reconcile of one table: frozen facts read live from the API server and etcd.

A reconcile reads everything that concerns one HudiTable (the object, its HudiWriters, their pods,
the agent's pods, nodes, and the table's keys in etcd), builds one :class:`Observed`, and plans only
from that. No fact here comes from a watch cache when a destructive action could depend on it (I11):
the executor re-checks with live reads and preconditions (uid, mod revision).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hudi_contract.records import Stored
from hudi_operator.api.references import Consent, Named
from hudi_operator.model.objects import Objects, ReadTable, read_whole
from hudi_operator.model.store_access import Revocation

JsonDict = dict[str, Any]


@dataclass(frozen=True)
class ContainerFacts:
    """One container of a pod, init and ephemeral ones included.

    ``started`` is True when the container ever ran; ``terminated`` when its current state is
    terminated. ``exit_code`` and ``reason`` are None unless terminated. ``message`` is the
    termination message.
    """

    name: str
    started: bool
    terminated: bool
    exit_code: int | None = None
    reason: str | None = None
    message: str = ""
    finished_at: str = ""
    kind: str = "container"
    """``container``, ``init``, ``sidecar`` (an init container that is restarted) or
    ``ephemeral``.
    """


@dataclass(frozen=True)
class PodName:
    """A pod by name and uid, as an owner reference names it."""

    name: str
    uid: str


@dataclass(frozen=True)
class PodFacts:
    """One pod as a live GET or LIST returned it."""

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str]
    phase: str
    node: str
    deleting: bool
    finalizers: tuple[str, ...]
    containers: tuple[ContainerFacts, ...]
    grace_seconds: int | None = None
    """``deletionGracePeriodSeconds``: 0 once its kubelet has done with it, or where none had to;
    None while nobody has asked for its deletion.
    """
    deleted_at: str = ""
    """``deletionTimestamp``: when the time is over that it was given to end; empty like the above.
    """
    controller: PodName | None = None
    """The pod that is its controller; None when there is none, or it is no pod."""
    created_at: str = ""
    unschedulable: str = ""
    """Message of PodScheduled=False; empty when scheduled or unknown."""
    gates: tuple[str, ...] = ()
    """Names of its scheduling gates: while it has one, no node is looked for."""
    waiting: str = ""
    """``reason: message`` of the first waiting container (image pull and the like); empty
    when none waits.
    """
    pod_ip: str = ""
    reason: str = ""
    """``status.reason``: why the kubelet ended the whole pod (Evicted,
    DeadlineExceeded); empty otherwise.
    """
    secrets: tuple[str, ...] = ()
    """Names of the Secrets that it mounts."""
    service_account: str = ""
    """The ServiceAccount under which it runs."""

    def goes_with(self, finalizer: str) -> bool:
        """True when the API server removes the object together with this finalizer (F611).

        It keeps one that has other finalizers, and one whose kubelet has not done with it.
        """
        return self.deleting and not self.grace_seconds and self.finalizers == (finalizer,)


@dataclass(frozen=True)
class Refusal:
    """Refusal of the API server to make an object of an attempt.

    ``reason`` and ``message`` as in a condition. ``seconds``: until the attempt is tried again.
    """

    reason: str
    message: str
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class ExecutorAnswer:
    """Answer of the API server about one more executor of an attempt.

    ``reason``: why it makes none, as in a condition; empty: it would make one, or could not be
    asked. ``message``: its own words, or why it could not be asked. ``seconds``: until it may be
    asked again.
    """

    reason: str = ""
    message: str = ""
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class HeldConfigMap:
    """Metadata of a ConfigMap: with our finalizer, it says which executors one pod may start."""

    namespace: str
    name: str
    """Name of the driver's or agent's pod."""
    uid: str
    writer: str = ""
    """Its HudiWriter, as a label's value; empty for an agent's."""


@dataclass(frozen=True)
class NodeFacts:
    """One node that a pod or an incarnation of this table names."""

    name: str
    uid: str
    boot_id: str
    ready: bool
    out_of_service: bool
    """Carries the taint ``node.kubernetes.io/out-of-service``."""
    created_at: str = ""
    """``creationTimestamp`` of the object, RFC 3339 in UTC."""
    machine: str = ""
    """``nodeInfo.systemUUID``: the machine behind the object; empty when the
    kubelet reports none.
    """
    ready_since: str = ""
    """Time at which it became ready, RFC 3339 in UTC; empty while it is not, or if unknown."""


@dataclass(frozen=True)
class Nodes:
    """Nodes by name, as far as one look has asked for them.

    A node is known not to exist only if it was asked for: one that was not may exist.
    """

    found: Mapping[str, NodeFacts] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    """Names that were asked for, and of which the API server has no object."""

    @classmethod
    def of(cls, asked: Iterable[str], found: Mapping[str, NodeFacts]) -> Nodes:
        """Answer of the API server to a question for the nodes ``asked``."""
        return cls(found, frozenset(asked) - found.keys())

    def get(self, name: str) -> NodeFacts | None:
        """The node; None when it does not exist, and when it was not asked for."""
        return self.found.get(name)

    def gone(self, name: str) -> bool:
        """True when it was asked for and does not exist."""
        return name in self.absent


@dataclass(frozen=True)
class EtcdFitness:
    """Problem with etcd itself; ``reason`` and ``message`` as in a condition, empty: none."""

    reason: str = ""
    message: str = ""
    refused: bool = False
    """No table is served."""


@dataclass(frozen=True)
class EtcdFacts:
    """All keys of one table, read in one linearizable transaction at ``revision``.

    Mappings are keyed by the last part of the key (incarnation, instant, attempt, ticket, kind).
    """

    revision: int
    cluster_id: str
    gate: Stored | None = None
    lock: Stored | None = None
    clock: Stored | None = None
    admits: Mapping[str, Stored] = field(default_factory=dict)
    writers: Mapping[str, Stored] = field(default_factory=dict)
    alive: Mapping[str, Stored] = field(default_factory=dict)
    queue: Mapping[str, Stored] = field(default_factory=dict)
    instants: Mapping[str, Stored] = field(default_factory=dict)
    fences: Mapping[str, Stored] = field(default_factory=dict)
    settles: Mapping[str, Stored] = field(default_factory=dict)
    requests: Mapping[str, Stored] = field(default_factory=dict)
    seen: Mapping[str, Stored] = field(default_factory=dict)
    """By incarnation: the node on which it was seen alive (see
    :mod:`hudi_operator.plan.fencing.sightings`).
    """
    reports: Mapping[str, Stored] = field(default_factory=dict)
    """Keyed by the path below ``report/``: ``timeline``, ``attempt/<attempt>``."""
    done: Mapping[str, Stored] = field(default_factory=dict)
    assignment: Stored | None = None
    """``P/control/agents/<agent>/<T>`` of the agent that the table should have."""
    elsewhere: tuple[str, ...] = ()
    """Other agents that have an assignment of the table, as far as they were asked for."""
    forgotten: int = 0
    """Grows each time this cluster is found set back to an older state; 0: it never was. A gate is
    good up to the number that a person has accepted for it (``acceptedFloor``).
    """


@dataclass(frozen=True)
class Observed:
    """All facts of one reconcile of one table."""

    objects: Objects
    """The HudiTable and its writers."""
    pods: tuple[PodFacts, ...]
    """Driver and executor pods of this table, its agent's, and every pod that etcd names, from
    a live list. If a conclusion depends on the absence of a pod, also executors without our labels
    and all agent pods of the namespace (:mod:`hudi_operator.plan.fencing.absence`).
    """
    nodes: Nodes
    """Nodes that these pods and etcd's keys name
    (:func:`hudi_operator.plan.fencing.absence.named_nodes`).
    """
    etcd: EtcdFacts | None
    """None when etcd could not be read: nothing that needs it may then be decided
    (unknown, not empty).
    """
    agent: str = ""
    """Name of the agent that serves the table, or is to serve it; empty: it follows from the object
    alone.
    """
    etcd_error: str = ""
    etcd_fitness: EtcdFitness = EtcdFitness()
    timers: Mapping[str, float] = field(default_factory=dict)
    """Seconds, on this process's monotonic clock, since each named timer was first requested (see
    StartTimer). Lost at failover.
    """
    now_ms: int = 0
    """Wall clock, Unix milliseconds: for display, comparison of registrations' clocks
    and back-off only.
    """
    api_now_ms: int | None = None
    """The API server's wall clock at the same moment, from the dates of its answers (within about a
    second); None: unknown.
    """
    held_config_maps: tuple[HeldConfigMap, ...] = ()
    """ConfigMaps of the table's attempts and agents that our finalizer keeps."""
    unheld_config_maps: tuple[HeldConfigMap, ...] = ()
    """ConfigMaps without our finalizer: of pods without executors, or of an operator without this
    rule.
    """
    tables_on_path: tuple[str, ...] = ()
    """Other HudiTables (``ns/name``) whose canonical path is the same."""
    owner_is_gone: bool = False
    """The gate names another HudiTable, which does not exist: the API server has said so. False: it
    exists, or nobody knows.
    """
    trial: EtcdFacts | None = None
    """Keys of this HudiTable's trial (:mod:`hudi_operator.plan.core.trial`); None: it has none."""
    overlapping: tuple[str, ...] = ()
    """Other HudiTables (``ns/name``) that block this one's path: it lies in theirs, contains it, or
    is the same under another spelling.
    """
    overlapping_gates: Mapping[str, int] = field(default_factory=dict)
    """By table id of other HudiTables in whose folder this one's is, or around it: mod revision of
    the gate that was seen (0: none). Empty once this table's gate was open.
    """
    source_tables: Mapping[str, JsonDict] = field(default_factory=dict)
    """HudiTables of the namespace from which writers of this table read, by name; one that does not
    exist is absent.
    """
    tables_at_event_logs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """HudiTables (``ns/name``) in whose folders event logs of writers would be, by the log's folder
    as it is spelled; a folder without any is absent.
    """
    consents: Mapping[Named, Consent] = field(default_factory=dict)
    """Consents of the Secrets and ServiceAccounts that the table and its writers name; those of a
    kind that nobody is asked about are absent.
    """
    secrets_unreadable: bool = False
    """The API server does not let the operator read Secrets of the namespace, and the operator may
    give itself that right (``config.consentBinding``): `consents` has no Secrets.
    """
    revocations: Mapping[str, Revocation] = field(default_factory=dict)
    """This process's observations of storage credentials, by attempt. Lost at failover."""
    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    """Refusals of the API server to this process, by attempt. Lost at failover."""
    executor_answers: Mapping[str, ExecutorAnswer] = field(default_factory=dict)
    """Its answers about executors that do not come, by attempt. Lost at failover."""
    namespace_terminating: bool = False
    namespace_uid: str = ""
    """Empty when it is unknown."""
    fresh_uuid: str = ""
    """A new random UUID for this reconcile: the lock authority of a gate that is created in it."""
    etcd_authority: str = field(default="", repr=False)
    """Certificate authority of the gateway before etcd, as PEM, copied into the table's namespace;
    empty without TLS.
    """
    copied_authority: str = field(default="", repr=False)
    """The one that this process has last copied there; empty: none."""
    agents_in_use: frozenset[str] | None = None
    """Names of the agents that serve other HudiTables of this namespace, except deleted ones; None:
    unknown, and no agent is ended.
    """
    evidence_needed: frozenset[str] | None = None
    """Uids of agent pods that other tables of this namespace still need: their keys name them
    without a proof, or admit them (``agent_pods.needed_uids`` of each); None: unknown, and no agent
    pod loses its evidence. Only needed while an agent pod is terminal or deleting.
    """
    revision_floor: int = 0
    """Highest known revision of this etcd cluster; a lower revision freezes the table."""
    known_cluster_id: str = ""
    """Cluster id of the floor; empty when none is known."""

    @property
    def earliest_ms(self) -> int:
        """The earlier one of the operator's clock and the API server's, where that is known."""
        return self.now_ms if self.api_now_ms is None else min(self.now_ms, self.api_now_ms)

    @property
    def latest_ms(self) -> int:
        """The later one of both."""
        return self.now_ms if self.api_now_ms is None else max(self.now_ms, self.api_now_ms)

    @property
    def table(self) -> JsonDict | None:
        """The HudiTable object as the API server stores it.

        None when it does not exist (its writers wait).
        """
        return self.objects.table

    @property
    def writers(self) -> tuple[JsonDict, ...]:
        """HudiWriter objects that reference the table, in name order."""
        return self.objects.writers

    @cached_property
    def source_specs(self) -> Mapping[str, ReadTable]:
        """`source_tables` as types."""
        return {name: read_whole(obj) for name, obj in self.source_tables.items()}
