"""HudiTable and HudiWriter objects as typed values, with the CRDs' defaults.

The API server has validated the objects and filled in the defaults; both are repeated here because an object may have been
stored under an older CRD, and because planners are tested without an API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hudi_contract import naming
from hudi_contract.keys import HUDI_VERSION
from hudi_operator.api import bootstrap, callback, kafka, merging, metadata_table, restore, services, sources
from hudi_operator.api.fields import SpecError as SpecError
from hudi_operator.api.fields import get as _get
from hudi_operator.api.fields import string_map as _string_map
from hudi_operator.api.fields import strings as _strings
from hudi_operator.api.pod_settings import OwnAgent, own_agent, pod_settings
from hudi_operator.api.pod_settings import PodSettings as PodSettings
from hudi_operator.api.schedule import Schedule
from hudi_operator.api.sources import ConfigMapKey as ConfigMapKey
from hudi_operator.api.sources import FilesSource, HudiSource, PythonSource, SqlSource

JsonDict = dict[str, Any]


@dataclass(frozen=True)
class ObjectRef:
    """Identity of the object that a spec was read from."""

    namespace: str
    name: str
    uid: str
    generation: int
    resource_version: str
    deleting: bool
    deletion_time: str
    finalizers: tuple[str, ...]
    created_at: str

    @classmethod
    def from_object(cls, obj: JsonDict) -> ObjectRef:
        """Read ``metadata``."""
        meta = obj.get("metadata") or {}
        return cls(
            namespace=meta.get("namespace", ""),
            name=meta.get("name", ""),
            uid=meta.get("uid", ""),
            generation=int(meta.get("generation", 0)),
            resource_version=str(meta.get("resourceVersion", "")),
            deleting=bool(meta.get("deletionTimestamp")),
            deletion_time=meta.get("deletionTimestamp") or "",
            finalizers=tuple(meta.get("finalizers") or ()),
            created_at=meta.get("creationTimestamp") or "",
        )

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class LockSpec:
    """Durations of the lock protocol, in seconds."""

    lease_seconds: int = 10
    keep_alive_seconds: int = 3
    rpc_timeout_seconds: int = 3
    silence_seconds: int = 60
    suspect_seconds: int = 5
    max_hold_seconds: int = 600
    max_clock_skew_seconds: int = 5

    def problem(self) -> str:
        """Why these durations cannot work together; empty when they can (protocol.md, Keys)."""
        if self.keep_alive_seconds + 2 * self.rpc_timeout_seconds > self.lease_seconds:
            return "lock: keepAliveSeconds + 2 x rpcTimeoutSeconds must not exceed leaseSeconds"
        if self.silence_seconds <= self.lease_seconds + self.suspect_seconds:
            return "lock: silenceSeconds must exceed leaseSeconds + suspectSeconds"
        return ""


@dataclass(frozen=True)
class Attestation:
    """A person's word that a pod's processes are gone."""

    pod_uid: str
    node: str
    statement: str
    attested_by: str
    at: str


@dataclass(frozen=True)
class FencingSpec:
    """How the death of a writer is proven."""

    mode: str = "PodTermination"
    drain_seconds: int = 10
    trust_node_deletion: bool = False
    trust_out_of_service_taint: bool = False
    attestations: tuple[Attestation, ...] = ()


@dataclass(frozen=True)
class AdoptionSpec:
    """What to do about a table that is at the path already; `policy` is ``AdoptOrCreate``, ``Adopt`` or ``Create``."""

    policy: str = "AdoptOrCreate"
    rollback_instants: tuple[str, ...] = ()
    """Pending instants whose writers are dead, by a person's word."""


@dataclass(frozen=True)
class SecretRef:
    """A Secret with credentials for the storage; ``as_kind`` is ``S3`` or ``Env``."""

    name: str
    as_kind: str = "S3"


@dataclass(frozen=True)
class StorageSpec:
    """Access of a table's pods to its storage."""

    service_account_name: str = ""
    secret_refs: tuple[SecretRef, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableSpec:
    """One HudiTable."""

    ref: ObjectRef
    path: str
    table_name: str
    type: str = "CopyOnWrite"
    record_key_fields: tuple[str, ...] = ()
    partition_fields: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    hive_style_partitioning: bool = False
    index_type: str = ""
    """Empty: Hudi's default."""
    buckets: int = 0
    """File groups of a partition with index type Bucket."""
    merge: merging.Merge = merging.LATER_COMMIT
    """Which of two versions of a record stays."""
    missing_columns: str = "Null"
    """What a batch without a column of the table means: ``Null`` or ``Refuse``."""
    image: str = ""
    hudi_version: str = HUDI_VERSION
    """Release of Hudi that the image must have."""
    concurrency_mode: str = "Optimistic"
    max_writers: int = 16
    change_timeout_seconds: int = 3600
    """How long a run may take to its next commit boundary when the gate is closed for a change; then it is stopped."""
    admission: str = "Always"
    """``DisjointPartitions``: writers whose declared partitions overlap do not run at once."""
    serialize_after_conflicts: int = 2
    """Races in a row that one writer loses to another before the two take turns; 0: never."""
    early_conflict_detection: bool = False
    """Whether a write stops when it meets the marker of one that began earlier."""
    insert_conflicts: str = "Key"
    """What two commits, of which neither has seen the other, may not both insert: ``Key``, ``Partition`` or ``Ignore`` (nothing is compared)."""
    lock: LockSpec = LockSpec()
    fencing: FencingSpec = FencingSpec()
    storage: StorageSpec = StorageSpec()
    hudi_options: Mapping[str, str] = field(default_factory=dict)
    adoption: AdoptionSpec = AdoptionSpec()
    bootstrap: bootstrap.Bootstrap | None = None
    """None: the table begins empty."""
    savepoints: tuple[str, ...] = ()
    """Names of savepoints that the table is to have."""
    restore: restore.Restore | None = None
    """None: nothing is to be undone."""
    services: tuple[services.Service, ...] = ()
    """Table services that the agent runs; those that are switched off are absent."""
    metadata_table: metadata_table.MetadataTable | None = None
    """None: nothing is said, Hudi's defaults hold."""
    agent: OwnAgent | None = None
    """None: the table shares an agent with others that have the same access to storage."""
    callback: callback.Callback | None = None
    """None: nobody is told of commits."""
    suspend: bool = False
    known_id: str = ""
    """Table id that status tells of a table whose path cannot be read; empty: the path says it."""

    @classmethod
    def from_object(cls, obj: JsonDict) -> TableSpec:
        """Read a HudiTable. Raises SpecError."""
        ref, spec = ObjectRef.from_object(obj), _get(obj, "spec", dict, {}, ref_name(obj))
        concurrency = _get(spec, "concurrency", dict, {}, "spec")
        path = _get(spec, "path", str, "", "spec")
        if not path:
            raise SpecError("spec.path: required")
        mode = _get(concurrency, "mode", str, "Optimistic", "spec.concurrency")
        kind = _get(spec, "type", str, "CopyOnWrite", "spec")
        return cls(
            ref=ref,
            path=path,
            table_name=_get(spec, "tableName", str, "", "spec") or ref.name,
            type=kind,
            record_key_fields=_strings(spec, "recordKeyFields", "spec"),
            partition_fields=_strings(spec, "partitionFields", "spec"),
            ordering_fields=_strings(spec, "orderingFields", "spec"),
            hive_style_partitioning=_get(spec, "hiveStylePartitioning", bool, False, "spec"),
            index_type=_get(_get(spec, "index", dict, {}, "spec"), "type", str, "", "spec.index"),
            buckets=_get(_get(spec, "index", dict, {}, "spec"), "buckets", int, 0, "spec.index"),
            merge=merging.from_spec(spec, _strings(spec, "orderingFields", "spec")),
            missing_columns=_get(_get(spec, "schema", dict, {}, "spec"), "missingColumns", str, "Null", "spec.schema"),
            image=_get(spec, "image", str, "", "spec"),
            hudi_version=_get(spec, "hudiVersion", str, HUDI_VERSION, "spec"),
            concurrency_mode=mode,
            max_writers=1 if mode == "SingleWriter" else _get(concurrency, "maxWriters", int, 16, "spec.concurrency"),
            change_timeout_seconds=_get(concurrency, "changeTimeoutSeconds", int, 3600, "spec.concurrency"),
            admission=_get(concurrency, "admission", str, "Always", "spec.concurrency"),
            serialize_after_conflicts=_get(concurrency, "serializeAfterConflicts", int, 2, "spec.concurrency"),
            early_conflict_detection=_get(concurrency, "earlyConflictDetection", bool, False, "spec.concurrency"),
            insert_conflicts=_get(concurrency, "insertConflicts", str, "Key", "spec.concurrency"),
            lock=_lock(_get(spec, "lock", dict, {}, "spec")),
            fencing=_fencing(_get(spec, "fencing", dict, {}, "spec")),
            storage=_storage(_get(spec, "storage", dict, {}, "spec")),
            hudi_options=_string_map(spec, "hudiOptions", "spec"),
            savepoints=tuple(_get(item, "name", str, "", "spec.savepoints") for item in _get(spec, "savepoints", list, [], "spec")),
            restore=restore.from_spec(spec),
            adoption=_adoption(_get(spec, "adoption", dict, {}, "spec")),
            bootstrap=bootstrap.from_spec(spec),
            metadata_table=metadata_table.from_spec(spec),
            agent=own_agent(spec),
            callback=callback.from_spec(spec),
            services=services.from_spec(_get(spec, "services", dict, {}, "spec"), merge_on_read=kind == "MergeOnRead"),
            suspend=_get(spec, "suspend", bool, False, "spec"),
        )

    @property
    def canonical_path(self) -> str:
        """The base path in its one spelling."""
        return naming.canonical_path(self.path)

    @property
    def table_id(self) -> str:
        """Id of the table in etcd."""
        return self.known_id or naming.table_id(self.path)

    def without_path(self, table_id: str) -> TableSpec:
        """The same table, of which the id is known and the path is not."""
        return replace(self, path="", known_id=table_id)

    @property
    def durations(self) -> dict[str, int]:
        """What JVMs are told of the lock's durations, in the gate and in an agent's assignment; seconds."""
        return {
            "leaseSeconds": self.lock.lease_seconds,
            "keepAliveSeconds": self.lock.keep_alive_seconds,
            "rpcTimeoutSeconds": self.lock.rpc_timeout_seconds,
            "silenceSeconds": self.lock.silence_seconds,
            "maxClockSkewSeconds": self.lock.max_clock_skew_seconds,
            "drainSeconds": self.fencing.drain_seconds,
        }

    @property
    def hudi_type(self) -> str:
        """Hudi's word for the table type."""
        return "MERGE_ON_READ" if self.type == "MergeOnRead" else "COPY_ON_WRITE"

    def agent_name(self, default_image: str) -> str:
        """Name of the agent that serves this table; ``default_image`` is the operator's Spark image."""
        return naming.agent_name(
            namespace=self.ref.namespace,
            service_account=self.storage.service_account_name,
            secret_refs=[{"name": r.name, "as": r.as_kind} for r in self.storage.secret_refs],
            storage_options=self.storage.options,
            image=self.image or default_image,
            own=None if self.agent is None else self.agent.key(self.ref.name),
            callback_secret=self.callback.secret if self.callback is not None else "",
        )


def ref_name(obj: JsonDict) -> str:
    """``Kind/name`` for messages."""
    return f"{obj.get('kind', 'object')}/{(obj.get('metadata') or {}).get('name', '?')}"


def _lock(raw: JsonDict) -> LockSpec:
    default, where = LockSpec(), "spec.lock"
    return LockSpec(
        lease_seconds=_get(raw, "leaseSeconds", int, default.lease_seconds, where),
        keep_alive_seconds=_get(raw, "keepAliveSeconds", int, default.keep_alive_seconds, where),
        rpc_timeout_seconds=_get(raw, "rpcTimeoutSeconds", int, default.rpc_timeout_seconds, where),
        silence_seconds=_get(raw, "silenceSeconds", int, default.silence_seconds, where),
        suspect_seconds=_get(raw, "suspectSeconds", int, default.suspect_seconds, where),
        max_hold_seconds=_get(raw, "maxHoldSeconds", int, default.max_hold_seconds, where),
        max_clock_skew_seconds=_get(raw, "maxClockSkewSeconds", int, default.max_clock_skew_seconds, where),
    )


def _fencing(raw: JsonDict) -> FencingSpec:
    where = "spec.fencing"
    return FencingSpec(
        mode=_get(raw, "mode", str, "PodTermination", where),
        drain_seconds=_get(raw, "drainSeconds", int, 10, where),
        trust_node_deletion=_get(raw, "trustNodeDeletion", bool, False, where),
        trust_out_of_service_taint=_get(raw, "trustOutOfServiceTaint", bool, False, where),
        attestations=tuple(
            Attestation(
                pod_uid=_get(item, "podUID", str, "", where),
                node=_get(item, "node", str, "", where),
                statement=_get(item, "statement", str, "", where),
                attested_by=_get(item, "attestedBy", str, "", where),
                at=_get(item, "at", str, "", where),
            )
            for item in _get(raw, "attestations", list, [], where)
        ),
    )


def _adoption(raw: JsonDict) -> AdoptionSpec:
    policy = _get(raw, "policy", str, "AdoptOrCreate", "spec.adoption")
    return AdoptionSpec(policy, _strings(raw, "rollbackInstants", "spec.adoption"))


def _storage(raw: JsonDict) -> StorageSpec:
    where = "spec.storage"
    return StorageSpec(
        service_account_name=_get(raw, "serviceAccountName", str, "", where),
        secret_refs=tuple(
            SecretRef(name=_get(item, "name", str, "", where), as_kind=_get(item, "as", str, "S3", where)) for item in _get(raw, "secretRefs", list, [], where)
        ),
        options=_string_map(raw, "options", where),
    )


# ---- HudiWriter


@dataclass(frozen=True)
class Application:
    """A user's program: ``main_file`` in the image, or a ConfigMap key (exactly one is set)."""

    main_file: str = ""
    config_map: ConfigMapKey | None = None
    """None when ``main_file`` is used."""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class RetryPolicy:
    """How often and when a failed attempt is followed by another, seconds."""

    limit: int = 3
    backoff_seconds: int = 10
    max_backoff_seconds: int = 300
    write_conflict_in_process: int = 3


@dataclass(frozen=True)
class RunSchedule:
    """When runs start. A tick older than ``starting_deadline_seconds`` is left out (None: however old it is)."""

    ticks: Schedule
    starting_deadline_seconds: int | None = None


@dataclass(frozen=True)
class WriterSpec:
    """One HudiWriter."""

    ref: ObjectRef
    table: str
    """Name of the HudiTable, in the same namespace."""
    files: FilesSource | None = None
    hudi: HudiSource | None = None
    python: PythonSource | None = None
    sql: SqlSource | None = None
    kafka: kafka.KafkaSource | None = None
    transform_sql: str = ""
    operation: str = "Upsert"
    duplicates: str = "Fail"
    """Of ``Insert`` and ``BulkInsert``: ``Fail``, ``Drop`` or ``Allow`` a key that is there already."""
    application: Application | None = None
    priority: int = 0
    partitions: tuple[str, ...] = ()
    """Patterns of the partitions that it writes; empty: any."""
    driver: PodSettings = field(default_factory=PodSettings)
    executors: PodSettings = field(default_factory=lambda: PodSettings(instances=0))
    """``instances`` 0: the driver alone computes."""
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    hudi_options: Mapping[str, str] = field(default_factory=dict)
    retry: RetryPolicy = RetryPolicy()
    stop_grace_seconds: int = 60
    active_deadline_seconds: int | None = None
    """Longest life of one attempt; None: no limit."""
    schedule: RunSchedule | None = None
    """None: one run, at once."""
    streaming_seconds: int | None = None
    """Time between two looks at the source of a run that does not end; None: a run ends when its source has nothing more."""
    restart_nonce: str = ""
    suspend: bool = False

    @classmethod
    def from_object(cls, obj: JsonDict) -> WriterSpec:
        """Read a HudiWriter. Raises SpecError."""
        ref, spec = ObjectRef.from_object(obj), _get(obj, "spec", dict, {}, ref_name(obj))
        source = _get(spec, "source", dict, {}, "spec")
        table = _get(_get(spec, "tableRef", dict, {}, "spec"), "name", str, "", "spec.tableRef")
        if not table:
            raise SpecError("spec.tableRef.name: required")
        nonce = spec.get("restartNonce")
        return cls(
            ref=ref,
            table=table,
            files=sources.files(source),
            hudi=sources.hudi(source),
            python=sources.python(source),
            sql=sources.sql(source),
            kafka=kafka.from_spec(source),
            transform_sql=_get(_get(spec, "transform", dict, {}, "spec"), "sql", str, "", "spec.transform"),
            operation=_get(spec, "operation", str, "Upsert", "spec"),
            duplicates=_get(spec, "duplicates", str, "Fail", "spec"),
            application=_application(spec),
            priority=_get(spec, "priority", int, 0, "spec"),
            partitions=_strings(spec, "partitions", "spec"),
            driver=pod_settings(_get(spec, "driver", dict, {}, "spec"), "spec.driver", instances=1),
            executors=pod_settings(_get(spec, "executors", dict, {}, "spec"), "spec.executors", instances=0),
            spark_conf=_string_map(spec, "sparkConf", "spec"),
            hudi_options=_string_map(spec, "hudiOptions", "spec"),
            retry=_retry(_get(spec, "retryPolicy", dict, {}, "spec")),
            stop_grace_seconds=_get(_get(spec, "stop", dict, {}, "spec"), "graceSeconds", int, 60, "spec.stop"),
            active_deadline_seconds=_get(spec, "activeDeadlineSeconds", int, 0, "spec") or None,
            schedule=_schedule(spec),
            streaming_seconds=_streaming(spec),
            restart_nonce="" if nonce is None else str(nonce),
            suspend=_get(spec, "suspend", bool, False, "spec"),
        )

    def driver_pod(self, number: int) -> str:
        """Name of the driver pod of attempt ``number``."""
        return naming.driver_pod_name(self.ref.name, self.ref.uid, number)

    def attempt_id(self, number: int) -> str:
        """Attempt ``number`` as etcd knows it."""
        return naming.attempt_id(self.ref.namespace, self.driver_pod(number))


def _schedule(spec: JsonDict) -> RunSchedule | None:
    raw, where = spec.get("schedule"), "spec.schedule"
    if raw is None:
        return None
    ticks = Schedule(_get(raw, "cron", str, "", where), _get(raw, "timeZone", str, "Etc/UTC", where))
    return RunSchedule(ticks, _get(raw, "startingDeadlineSeconds", int, 0, where) or None)


def _streaming(spec: JsonDict) -> int | None:
    raw = spec.get("streaming")
    return None if raw is None else _get(raw, "intervalSeconds", int, 10, "spec.streaming")


def _application(spec: JsonDict) -> Application | None:
    raw, where = spec.get("application"), "spec.application"
    if raw is None:
        return None
    return Application(
        main_file=_get(raw, "mainFile", str, "", where),
        config_map=sources.config_map_key(raw, where) if raw.get("configMapRef") else None,
        arguments=_strings(raw, "arguments", where),
    )


def _retry(raw: JsonDict) -> RetryPolicy:
    where = "spec.retryPolicy"
    conflict = _get(raw, "writeConflict", dict, {}, where)
    return RetryPolicy(
        limit=_get(raw, "limit", int, 3, where),
        backoff_seconds=_get(raw, "backoffSeconds", int, 10, where),
        max_backoff_seconds=_get(raw, "maxBackoffSeconds", int, 300, where),
        write_conflict_in_process=_get(conflict, "inProcess", int, 3, where),
    )
