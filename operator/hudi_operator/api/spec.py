"""HudiTable and HudiWriter objects as typed values.

The CRDs' schema of each field is declared beside its type (fields.py).

The API server has validated the objects and filled in the defaults; both happen here again, because
an object may have been stored under an older CRD, and because planners are tested without
an API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hudi_contract import naming
from hudi_contract.keys import HUDI_VERSION
from hudi_contract.words import (
    Adoption,
    ApiTableType,
    Concurrency,
    Duplicates,
    FencingMode,
    InsertConflicts,
    MissingColumns,
    TableType,
)
from hudi_operator.api import concurrency, merging, partitions, pod_template, storage_options
from hudi_operator.api.bootstrap import Bootstrap
from hudi_operator.api.bounds import check_size
from hudi_operator.api.callback import Callback
from hudi_operator.api.catalog import Catalog
from hudi_operator.api.dependencies import Application, Deps, same_name_problem
from hudi_operator.api.fields import IMAGE, NAME, NONCE, flag, number, read, record, records, text, text_map, texts
from hudi_operator.api.fields import SpecError as SpecError
from hudi_operator.api.holds import Hold
from hudi_operator.api.jdbc import JdbcSource
from hudi_operator.api.kafka import KafkaSource
from hudi_operator.api.metadata_table import MetadataTable
from hudi_operator.api.more_memory import MoreMemory
from hudi_operator.api.pod_settings import (
    ENV_PREFIX,
    ExecutorSettings,
    OwnAgent,
    PodSettings,
    prefix_problem,
)
from hudi_operator.api.restore import Restore
from hudi_operator.api.retry_classes import RETRIED_CLASSES
from hudi_operator.api.schedule import Schedule
from hudi_operator.api.services import Service, ServicesSpec, switched_on
from hudi_operator.api.sources import FilesSource, HudiSource, PythonSource, SqlSource
from hudi_operator.api.validations import Validation

JsonDict = dict[str, Any]

MOST_ATTEMPTS = 61
"""Attempts of one run: its status lists all of them."""
_COLUMN = (1, 255)
_ONE_LINE = r"^[^\x00-\x1f]*$"
_COLUMN_NAME = r"^[^\x00-\x20\x7f,:`]+$"


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

    lease_seconds: int = number(10, at_least=3, at_most=300)
    keep_alive_seconds: int = number(3, at_least=1, at_most=100)
    rpc_timeout_seconds: int = number(3, at_least=1, at_most=60)
    silence_seconds: int = number(60, at_least=5, at_most=3600)
    suspect_seconds: int = number(5, at_least=0, at_most=600)
    max_hold_seconds: int = number(600, at_least=10, at_most=86400)
    max_clock_skew_seconds: int = number(5, at_least=1, at_most=60)

    def problem(self) -> str:
        """Why these durations contradict each other; empty when they do not (protocol.md, Keys)."""
        if self.keep_alive_seconds + 2 * self.rpc_timeout_seconds > self.lease_seconds:
            return "lock: keepAliveSeconds + 2 x rpcTimeoutSeconds must not exceed leaseSeconds"
        if self.silence_seconds <= self.lease_seconds + self.suspect_seconds:
            return "lock: silenceSeconds must exceed leaseSeconds + suspectSeconds"
        return ""


@dataclass(frozen=True)
class Attestation:
    """A person's statement that a pod's processes are gone."""

    pod_uid: str = text(at="podUID", required=True, at_most=36, pattern="^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
    node: str = text(required=True, at_least=1, at_most=253)
    statement: str = text(required=True, at_least=8, at_most=1024)
    attested_by: str = text(required=True, at_least=1, at_most=253)
    at: str = text(required=True, form="date-time")


@dataclass(frozen=True)
class FencingSpec:
    """Settings for proving the death of a writer."""

    mode: str = text(FencingMode.POD_TERMINATION, choices=FencingMode)
    drain_seconds: int = number(10, at_least=1, at_most=600)
    trust_node_deletion: bool = flag(False)
    trust_out_of_service_taint: bool = flag(False)
    attestations: tuple[Attestation, ...] = records(Attestation, at_most=32, by="podUID")


@dataclass(frozen=True)
class AdoptionSpec:
    """Settings for a table that already exists at the path."""

    policy: str = text(Adoption.ADOPT_OR_CREATE, choices=(Adoption.ADOPT_OR_CREATE, Adoption.ADOPT, Adoption.CREATE))
    rollback_instants: tuple[str, ...] = texts(
        at_most=64, length=(None, 17), matches="^[0-9]{14}([0-9]{3})?$", distinct=True
    )
    """Pending instants whose writers are dead, as attested by a person."""


@dataclass(frozen=True)
class SecretRef:
    """A Secret with credentials for the storage."""

    name: str = text(required=True, at_least=1, at_most=253, pattern=NAME)
    as_kind: str = text(at="as", required=True, choices=("S3", "Files", "Env"))
    prefix: str = text(at_least=2, at_most=64, matches=ENV_PREFIX)
    """Prefix of the names of the variables; only with ``Env``."""

    def problem(self) -> str:
        """Why the Secret cannot be used like this; empty when it can."""
        if (self.as_kind == "Env") != bool(self.prefix):
            return "as: Env needs prefix" if not self.prefix else "prefix: only with as: Env"
        return f"prefix: {told}" if self.prefix and (told := prefix_problem(self.prefix)) else ""


@dataclass(frozen=True)
class PullSecret:
    """A Secret with which images are pulled."""

    name: str = text(required=True, at_least=1, at_most=253, pattern=NAME)


@dataclass(frozen=True)
class StorageSpec:
    """Access of a table's pods to its storage."""

    service_account_name: str = text(at_least=1, at_most=63, matches=NAME)
    secret_refs: tuple[SecretRef, ...] = records(SecretRef, at_most=8, by="name")
    options: Mapping[str, str] = text_map(at_most=32, longest=1024, pattern=_ONE_LINE)


@dataclass(frozen=True)
class Savepoint:
    """A savepoint that the table should have, or should have no more."""

    name: str = text(required=True, at_least=1, at_most=63, matches="^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")
    delete_instant: str = text(at_most=17, matches="^[0-9]{14}([0-9]{3})?$")
    """Its instant, by which a person says that it is to be deleted; empty: it stays."""


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """One HudiTable."""

    ref: ObjectRef
    path: str = text(required=True, at_least=1, at_most=1024)
    table_name: str = text(at_most=128, matches="^[A-Za-z0-9_][A-Za-z0-9_.-]*$")
    """Unset: the object's name."""
    type: str = text(ApiTableType.COPY_ON_WRITE, choices=ApiTableType)
    record_key_fields: tuple[str, ...] = texts(
        required=True, at_least=1, at_most=16, length=_COLUMN, matches=_COLUMN_NAME
    )
    partition_fields: tuple[str, ...] = texts(at_most=8, length=_COLUMN, matches=_COLUMN_NAME)
    ordering_fields: tuple[str, ...] = texts(at_most=4, length=_COLUMN, matches=_COLUMN_NAME)
    hive_style_partitioning: bool = flag(False)
    index_type: str = text(at="index.type", unset="", required=True, at_most=64)
    """Empty: Hudi's default."""
    buckets: int = number(at="index.buckets", unset=0, at_least=1, at_most=4096)
    """Number of file groups per partition with index type Bucket."""
    merge: merging.Merge = record(merging.Merge)
    """Rules that decide which of two versions of a record is kept."""
    missing_columns: str = text(MissingColumns.NULL, at="schema.missingColumns", choices=MissingColumns)
    """Handling of a batch that lacks a column of the table."""
    image: str = text(at_least=1, at_most=512, matches=IMAGE)
    image_pull_secrets: tuple[PullSecret, ...] = records(PullSecret, at_most=8, by="name")
    hudi_version: str = text(HUDI_VERSION, at_most=32, matches="^1[.]2[.][0-9]+$")
    """Required release of Hudi in the image."""
    concurrency_mode: str = text(Concurrency.OPTIMISTIC, at="concurrency.mode", choices=Concurrency)
    max_writers: int = number(at="concurrency.maxWriters", unset=16, at_least=1, at_most=64)
    """1 with SingleWriter."""
    change_timeout_seconds: int = number(
        at="concurrency.changeTimeoutSeconds", unset=3600, at_least=10, at_most=604_800
    )
    """Time that a run has to reach its next commit boundary when the gate is closed for a change;
    then it is stopped.
    """
    admission: str = text(at="concurrency.admission", unset="Always", choices=("Always", "DisjointPartitions"))
    """``DisjointPartitions``: writers whose declared partitions overlap do not run at once."""
    serialize_after_conflicts: int = number(at="concurrency.serializeAfterConflicts", unset=2, at_least=0, at_most=20)
    """Races that one writer loses to another in a row before the two take turns; 0: never."""
    early_conflict_detection: bool = flag(at="concurrency.earlyConflictDetection", unset=False)
    """Whether a write stops when it finds a marker file of an earlier write."""
    insert_conflicts: str = text(at="concurrency.insertConflicts", unset=InsertConflicts.KEY, choices=InsertConflicts)
    """Rule for conflicts of two commits' inserts. ``Ignore``: nothing is compared."""
    lock: LockSpec = record(LockSpec)
    fencing: FencingSpec = record(FencingSpec)
    storage: StorageSpec = record(StorageSpec)
    hudi_options: Mapping[str, str] = text_map(at_most=64, longest=2048, pattern=_ONE_LINE)
    adoption: AdoptionSpec = record(AdoptionSpec)
    bootstrap: Bootstrap | None = record(Bootstrap, optional=True)
    """None: the table begins empty."""
    savepoint_list: tuple[Savepoint, ...] = records(Savepoint, at="savepoints", at_most=16, by="name")
    holds: tuple[Hold, ...] = records(Hold, at_most=16, by="name")
    """Commits whose files stay for readers, for a time."""
    restore: Restore | None = record(Restore, optional=True)
    """None: no restore is requested."""
    service_sections: ServicesSpec = record(ServicesSpec, at="services")
    metadata_table: MetadataTable | None = record(MetadataTable, optional=True)
    """None: Hudi's defaults apply."""
    agent: OwnAgent | None = record(OwnAgent, optional=True)
    """None: the table shares an agent with others that have the same access to storage."""
    callback: Callback | None = record(Callback, at="commitCallback", optional=True)
    """None: commits are not delivered."""
    catalog: Catalog | None = record(Catalog, optional=True)
    """None: the table is in no catalog."""
    suspend: bool = flag(False)
    known_id: str = ""
    """Table id from status, for a table with an unreadable path; empty: that of the path."""

    @classmethod
    def from_object(cls, obj: JsonDict) -> TableSpec:
        """Read a HudiTable. Raises SpecError."""
        check_size(obj.get("spec"))
        ref = ObjectRef.from_object(obj)
        spec = read(cls, obj.get("spec") or {}, "spec", ref=ref)
        for at, secret in enumerate(spec.storage.secret_refs):
            if found := secret.problem():
                raise SpecError(f"spec.storage.secretRefs[{at}].{found}")
        if found := storage_options.problem(spec.storage.options):
            raise SpecError(found)
        if spec.agent is not None:
            where, own = "spec.agent", spec.agent
            pod_template.check((where, own.pod, "agent"), (f"{where}.executors", own.executors, "executor"))
        if found := concurrency.problem((obj.get("spec") or {}).get("concurrency") or {}):
            raise SpecError(f"spec.concurrency.{found}")
        return replace(
            spec,
            table_name=spec.table_name or ref.name,
            max_writers=1 if spec.concurrency_mode == Concurrency.SINGLE_WRITER else spec.max_writers,
            merge=merging.implied(spec.merge, spec.ordering_fields),
        )

    @property
    def savepoints(self) -> tuple[str, ...]:
        """Names of the savepoints that the table should have."""
        return tuple(savepoint.name for savepoint in self.savepoint_list if not savepoint.delete_instant)

    @cached_property
    def services(self) -> tuple[Service, ...]:
        """Table services that the agent runs; disabled ones are absent."""
        return switched_on(self.service_sections, merge_on_read=self.type == ApiTableType.MERGE_ON_READ)

    @property
    def canonical_path(self) -> str:
        """The canonical base path."""
        return naming.canonical_path(self.path)

    @property
    def table_id(self) -> str:
        """Id of the table in etcd."""
        return self.known_id or naming.table_id(self.path)

    def without_path(self, table_id: str) -> TableSpec:
        """The same table with a known id and an unknown path."""
        return replace(self, path="", known_id=table_id)

    @property
    def durations(self) -> dict[str, int]:
        """Durations of the lock for JVMs, in the gate and in an agent's assignment; seconds."""
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
        """Hudi's name of the table type."""
        merged = self.type == ApiTableType.MERGE_ON_READ
        return (TableType.MERGE_ON_READ if merged else TableType.COPY_ON_WRITE).value

    def agent_name(self, default_image: str, shard: int = 0) -> str:
        """Name of one of the agents that may serve this table.

        ``default_image`` is the operator's Spark image, ``shard`` the agent's number among them.
        """
        if default_image not in self._agent_keys:
            self._agent_keys[default_image] = self._agent_key(default_image)
        return naming.agent_of_key(self._agent_keys[default_image], shard)

    @cached_property
    def _agent_keys(self) -> dict[str, str]:
        """By the operator's image. They are long with a podTemplate, and asked for often (F628)."""
        return {}

    def _agent_key(self, default_image: str) -> str:
        return naming.agent_key(
            namespace=self.ref.namespace,
            service_account=self.storage.service_account_name,
            secret_refs=[
                {"name": r.name, "as": r.as_kind, **({"prefix": r.prefix} if r.prefix else {})}
                for r in self.storage.secret_refs
            ],
            storage_options=self.storage.options,
            image=self.image or default_image,
            own=None if self.agent is None else self.agent.key(self.ref.name),
            callback_secret=self.callback.secret if self.callback is not None else "",
            pull_secrets=self.pull_secrets,
        )

    @property
    def pull_secrets(self) -> tuple[str, ...]:
        """Names of the Secrets with which images are pulled."""
        return tuple(dict.fromkeys(secret.name for secret in self.image_pull_secrets))

    def as_run_by(self, writer: WriterSpec) -> TableSpec:
        """The table with a writer's own image, account and pull secrets."""
        account = writer.service_account_name or self.storage.service_account_name
        return replace(
            self,
            image=writer.image or self.image,
            storage=replace(self.storage, service_account_name=account),
            image_pull_secrets=(*self.image_pull_secrets, *writer.image_pull_secrets),
        )


# ---- HudiWriter


@dataclass(frozen=True)
class Overwrite:
    """Settings for the scope of ``InsertOverwrite``."""

    scope: str = text("Partitions", choices=("Partitions", "Table"))
    if_empty: str = text("Fail", choices=("Fail", "Truncate"))
    """Whether a batch without rows may replace the rows of the table."""


@dataclass(frozen=True)
class ClassLimit:
    """Retries of one class of failures, which do not count towards those of the others."""

    class_: str = text(
        at="class",
        required=True,
        choices=RETRIED_CLASSES,
    )
    limit: int = number(required=True, at_least=0, at_most=20)


@dataclass(frozen=True)
class PodHistory:
    """Number of driver pods of ended attempts that stay for their logs, and for how long."""

    limit: int = number(3, at_least=0, at_most=10)
    ttl_seconds: int | None = number(at="ttlSecondsAfterFinished", unset=None, at_least=0, at_most=31_536_000)
    """Seconds from the end of an attempt; None: no limit."""


@dataclass(frozen=True)
class RetryPolicy:
    """Number and back-off of retries after a failed attempt."""

    limit: int = number(3, at_least=0, at_most=20)
    backoff_seconds: int = number(10, at_least=1, at_most=3600)
    max_backoff_seconds: int = number(300, at_least=1, at_most=86400)
    write_conflict_in_process: int = number(3, at="writeConflict.inProcess", at_least=0, at_most=20)
    class_limits: tuple[ClassLimit, ...] = records(ClassLimit, at_most=len(RETRIED_CLASSES), by="class")
    out_of_memory: MoreMemory | None = record(MoreMemory, optional=True)
    """None: the next attempt has the same memory."""

    @property
    def by_class(self) -> dict[str, int]:
        """Limits of the classes that have their own."""
        return {each.class_: each.limit for each in self.class_limits}

    @property
    def most_attempts(self) -> int:
        """Attempts of one run that may have to be counted."""
        return 1 + self.limit + sum(self.by_class.values())

    def problem(self) -> str:
        """Why this is no policy; empty when it is one."""
        if self.out_of_memory is not None and (found := self.out_of_memory.problem()):
            return f"retryPolicy.outOfMemory: {found}"
        if self.most_attempts > MOST_ATTEMPTS:
            retries, most = self.most_attempts - 1, MOST_ATTEMPTS - 1
            return f"retryPolicy.classLimits: together with limit {retries} retries, more than {most}"
        return ""


@dataclass(frozen=True)
class RunSchedule:
    """Start of runs. Ticks older than ``starting_deadline_seconds`` are skipped (None: never)."""

    ticks: Schedule = record(Schedule, at="")
    starting_deadline_seconds: int | None = number(unset=None, at_least=10, at_most=31_536_000)


def _deps_problem(spec: WriterSpec) -> str:
    """Why the writer cannot bring these files along; empty when it can."""
    if spec.deps is not None and spec.application is None and spec.python is None:
        return "spec.deps: needs application or source.python: only code of yours uses it"
    if spec.deps is not None and (found := spec.deps.problem()):
        return f"spec.deps{found}"
    return same_name_problem(spec.application, spec.deps)


@dataclass(frozen=True, kw_only=True)
class WriterSpec:
    """One HudiWriter."""

    ref: ObjectRef
    table: str = text(at="tableRef.name", required=True, way_required=True, at_least=1, at_most=63, matches=NAME)
    """Name of the HudiTable, in the same namespace."""
    files: FilesSource | None = record(FilesSource, at="source.files", optional=True)
    hudi: HudiSource | None = record(HudiSource, at="source.hudi", optional=True)
    python: PythonSource | None = record(PythonSource, at="source.python", optional=True)
    sql: SqlSource | None = record(SqlSource, at="source.sql", optional=True)
    kafka: KafkaSource | None = record(KafkaSource, at="source.kafka", optional=True)
    jdbc: JdbcSource | None = record(JdbcSource, at="source.jdbc", optional=True)
    transform_sql: str = text(at="transform.sql", unset="", required=True, at_least=1, at_most=65536)
    operation: str = text(
        unset="Upsert",
        choices=(
            "Upsert",
            "Insert",
            "BulkInsert",
            "Delete",
            "InsertOverwrite",
            "DeletePartition",
            "RemoveDuplicates",
        ),
    )
    overwrite: Overwrite = record(Overwrite)
    """Rows that ``InsertOverwrite`` replaces."""
    duplicates: str = text(unset=Duplicates.FAIL, choices=Duplicates)
    """Handling of an existing key by ``Insert``, ``BulkInsert`` and programs, and of a key that the
    batch has twice by these and ``InsertOverwrite``.
    """
    validations: tuple[Validation, ...] = records(Validation, at_most=16, by="name")
    """Conditions that each batch must meet before it is written."""
    application: Application | None = record(Application, optional=True)
    deps: Deps | None = record(Deps, optional=True)
    """Files and packages that an application or a function brings along; None: none."""
    image: str = text(at_least=1, at_most=512, matches=IMAGE)
    """Image of driver and executors; empty: the table's."""
    image_pull_secrets: tuple[PullSecret, ...] = records(PullSecret, at_most=8, by="name")
    """In addition to the table's."""
    service_account_name: str = text(at_least=1, at_most=63, matches=NAME)
    """ServiceAccount of driver and executors; empty: the table's."""
    priority: int = number(0, at_least=-1000, at_most=1000)
    partitions: tuple[str, ...] = texts(at_least=1, at_most=32, length=(1, 128), distinct=True)
    """Patterns of the partitions that it writes, or deletes (``DeletePartition``); empty: any."""
    driver: PodSettings = record(PodSettings)
    executors: ExecutorSettings = record(ExecutorSettings)
    spark_conf: Mapping[str, str] = text_map(at_most=64, longest=2048, pattern=_ONE_LINE)
    hudi_options: Mapping[str, str] = text_map(at_most=64, longest=2048, pattern=_ONE_LINE)
    retry: RetryPolicy = record(RetryPolicy, at="retryPolicy")
    stop_grace_seconds: int = number(60, at="stop.graceSeconds", at_least=1, at_most=3600)
    active_deadline_seconds: int | None = number(unset=None, at_least=60, at_most=31_536_000)
    """Maximum duration of one attempt, in seconds; None: no limit."""
    start_deadline_seconds: int | None = number(unset=None, at_least=30, at_most=86400)
    """Maximum time from the begin of an attempt to the start of its driver's container, in seconds;
    None: no limit.
    """
    ready_deadline_seconds: int | None = number(unset=None, at_least=30, at_most=86400)
    """Maximum time from then until it is registered, in seconds; None: no limit."""
    commit_deadline_seconds: int | None = number(unset=None, at_least=60, at_most=31_536_000)
    """Maximum time from then, or from its last commit, until it commits, without the time that it
    waits for others, in seconds; None: no limit.
    """
    schedule: RunSchedule | None = record(RunSchedule, optional=True)
    """None: one run, started immediately."""
    streaming_seconds: int | None = number(10, at="streaming.intervalSeconds", unset=None, at_least=1, at_most=86400)
    """Seconds between two reads of the source of a run without an end; None: a run ends when its
    source is exhausted.
    """
    pod_history: PodHistory = record(PodHistory)
    restart_nonce: str = text(at_most=64, matches=NONCE)
    suspend: bool = flag(False)
    from_defaults: tuple[str, ...] = ()
    """Fields that the defaults of its namespace have set."""
    defaults_problem: str = ""
    """Why these cannot be used, and no attempt starts; empty: there is no such reason."""

    @classmethod
    def from_object(cls, obj: JsonDict) -> WriterSpec:
        """Read a HudiWriter. Raises SpecError."""
        check_size(obj.get("spec"))
        spec = read(cls, obj.get("spec") or {}, "spec", ref=ObjectRef.from_object(obj))
        if found := spec.retry.problem():
            raise SpecError(f"spec.{found}")
        if spec.application is not None and (found := spec.application.problem()):
            raise SpecError(f"spec.application{found}")
        if found := _deps_problem(spec):
            raise SpecError(found)
        for index, pattern in enumerate(spec.partitions):
            if found := partitions.problem(pattern):
                raise SpecError(f"spec.partitions[{index}]: {found}")
        for name in ("validations", "commitDeadlineSeconds"):
            if spec.application is not None and (obj.get("spec") or {}).get(name):
                raise SpecError(f"spec.{name}: cannot be combined with application")
        for index, validation in enumerate(spec.validations):
            if found := validation.problem():
                raise SpecError(f"spec.validations[{index}]{found}")
        if spec.sql is not None and any(view.name == "source" for view in spec.sql.views):
            raise SpecError("spec.source.sql.views: the name 'source' is reserved for transform")
        pod_template.check(("spec.driver", spec.driver, "driver"), ("spec.executors", spec.executors, "executor"))
        return spec

    @property
    def mode(self) -> str:
        """Kind of start of its runs: ``Once``, ``Scheduled`` or ``Streaming``."""
        return (
            "Streaming" if self.streaming_seconds is not None else "Scheduled" if self.schedule is not None else "Once"
        )

    def driver_pod(self, number: int) -> str:
        """Name of the driver pod of attempt ``number``."""
        return naming.driver_pod_name(self.ref.name, self.ref.uid, number)

    def attempt_id(self, number: int) -> str:
        """Attempt ``number`` as etcd knows it."""
        return naming.attempt_id(self.ref.namespace, self.driver_pod(number))

    def number_of(self, attempt: str) -> int:
        """Number of an attempt of this writer that etcd knows; 0: it is not one of its attempts."""
        number = attempt.rpartition("-")[2]
        is_one = number.isascii() and number.isdigit() and len(number) < 16
        return int(number) if is_one and attempt == self.attempt_id(int(number)) else 0
