"""The few calls into Hudi's Java classes, through py4j. Nothing here decides anything."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession, types

from hudi_runtime import merging
from hudi_runtime import timeline as tl
from hudi_runtime.storage import Missing, Storage

TIMELINE = ".hoodie/timeline"
METADATA = ".hoodie/metadata"
_INFO = re.compile(r"StoragePathInfo\{path=(.*?), length=(\d+),")
COMMITS_KEPT = 1000
"""Commits whose metadata is remembered: an agent lives for months."""
_SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX"})


def _private(owner: Any, declared_in: Any, name: str) -> Any:
    """A private field of a Java object. Raises a Py4JJavaError when this Hudi has none of that name."""
    field = declared_in.getDeclaredField(name)
    field.setAccessible(True)
    return field.get(owner)


@dataclass(frozen=True)
class CommitInfo:
    """What a completed commit says about itself: extra metadata, and records written, updated or deleted."""

    extra: Mapping[str, str]
    records: int


@dataclass(frozen=True)
class Change:
    """A file that a write put into a file group: its path, the base file that it replaced (empty: none), and how many records it deleted."""

    group: tuple[str, str]
    path: str
    before: str
    deletes: int


@dataclass(frozen=True)
class WriteInfo:
    """What a completed write did: Hudi's name of the operation, files written by (partition, file group), file groups it replaced."""

    operation: str
    files: tuple[tuple[tuple[str, str], str], ...]
    replaced: frozenset[tuple[str, str]]
    changes: tuple[Change, ...] = ()
    """Of the files those that replaced a base file or deleted records."""

    @property
    def carries_rows(self) -> bool:
        """False for a table service: it only writes again what other commits brought."""
        return self.operation not in _SERVICES


@dataclass(frozen=True)
class SavepointInfo:
    """What a savepoint says of itself: its comment, and names of the files that it keeps, by partition."""

    comment: str
    files: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Totals:
    """What a completed commit has written: records, files, and their size in bytes."""

    records: int
    files: int
    bytes: int


class Table:
    """One Hudi table as seen by this JVM. Every question is answered by a fresh listing."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._jvm: Any = spark.sparkContext._jvm
        self.path = path
        # Held from the start: a user's program may stop the Spark context before the runtime asks for the truth.
        self._hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
        self.storage = Storage(spark, path)
        self._commits: dict[str, CommitInfo] = {}

    def exists(self) -> bool:
        """Whether a Hudi table stands at the path."""
        return self.storage.exists(".hoodie/hoodie.properties")

    def timeline(self, *, folder: str = TIMELINE) -> tl.Timeline:
        """The active timeline, listed now. Raises Missing when there is no timeline folder, TimelineError when it is ambiguous."""
        return tl.parse_sizes(self.storage.sizes(folder))

    def metadata_timeline(self) -> tl.Timeline:
        """The active timeline of the metadata table; empty when the table has none."""
        try:
            return self.timeline(folder=f"{METADATA}/{TIMELINE}")
        except Missing:
            return tl.Timeline()

    def meta_client(self) -> Any:
        """A freshly loaded HoodieTableMetaClient."""
        builder = self._jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
        return builder.setBasePath(self.path).setConf(self.storage_conf()).build()

    def columns(self) -> tuple[types.StructType | None, str]:
        """The schema that readers see, without Hudi's own columns (None: nothing was committed yet), and the newest completion time before it was read."""
        last = self.timeline().last_completed
        found = self._jvm.org.apache.hudi.common.table.TableSchemaResolver(self.meta_client()).getTableSchemaIfPresent(False)
        if not found.isPresent():
            return None, last.completion if last else "0"
        struct = self._jvm.org.apache.hudi.HoodieSchemaConversionUtils.convertHoodieSchemaToStructType(found.get())
        return types.StructType.fromJson(json.loads(str(struct.json()))), last.completion if last else "0"

    def require_merger(self, merge: merging.Merge) -> None:
        """Raise NoMerger when records of the table are merged by a class that this JVM does not have."""
        merging.require(self._jvm, merge)

    def read_options(self, *, class_name: str = "") -> dict[str, str]:
        """See `merging.read_options`."""
        return merging.read_options(self._jvm, self.meta_client().getTableConfig(), self.path, class_name=class_name)

    def storage_conf(self) -> Any:
        """Hudi's wrapper around the Hadoop configuration."""
        return self._jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(self._hadoop)

    def commits(self, instants: tuple[tl.Instant, ...]) -> Iterator[tuple[tl.Instant, CommitInfo]]:
        """Metadata of completed commits, in the given order. Completed files never change, so they are read once."""
        meta: Any = None
        for instant in instants:
            if instant.action not in tl.WRITE_ACTIONS:
                continue
            known = self._commits.get(instant.requested)
            if known is None:
                meta = meta or self.meta_client()
                known = self._read_commit(meta.getActiveTimeline(), instant)
                self._commits[instant.requested] = known
                if len(self._commits) > COMMITS_KEPT:
                    del self._commits[next(iter(self._commits))]
            yield instant, known

    def _read_commit(self, timeline: Any, instant: tl.Instant) -> CommitInfo:
        return commit_info(self._metadata(timeline, instant))

    def _metadata(self, timeline: Any, instant: tl.Instant) -> Any:
        """Metadata of a completed commit. Raises Missing when the timeline does not have it."""
        # Not by its time alone: a savepoint bears that of the commit that it keeps.
        for java_instant in timeline.getCommitsTimeline().filterCompletedInstants().getInstants():
            if java_instant.requestedTime() == instant.requested:
                return self._jvm.org.apache.hudi.common.table.timeline.TimelineUtils.getCommitMetadata(java_instant, timeline)
        raise Missing(f"instant {instant.requested}")

    def archived_commits(self) -> Iterator[tuple[tl.Instant, CommitInfo]]:
        """Completed commits of the archived timeline, newest completion first."""
        archived = self.meta_client().getArchivedTimeline()
        archived.loadCompletedInstantDetailsInMemory()
        found = []
        for java_instant in archived.getCommitsTimeline().filterCompletedInstants().getInstants():
            instant = tl.Instant(java_instant.requestedTime(), java_instant.getAction(), tl.State.COMPLETED, str(java_instant.getCompletionTime()))
            found.append((instant, java_instant))
        for instant, java_instant in sorted(found, key=lambda pair: pair[0].completion, reverse=True):
            metadata = self._jvm.org.apache.hudi.common.table.timeline.TimelineUtils.getCommitMetadata(java_instant, archived)
            yield instant, commit_info(metadata)

    def written(self, instants: tuple[tl.Instant, ...]) -> Iterator[tuple[tl.Instant, WriteInfo]]:
        """What completed writes of the active timeline did, in the given order. Raises Missing when one has left the active timeline."""
        timeline = self.meta_client().getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
        known = {str(i.requestedTime()): i for i in timeline.getInstants()}
        for instant in instants:
            if instant.requested not in known:
                raise Missing(f"instant {instant.requested}")
            yield instant, self._write_info(known[instant.requested], timeline)

    def archived_written(self, instants: tuple[tl.Instant, ...]) -> Iterator[tuple[tl.Instant, WriteInfo]]:
        """What writes of the archived timeline did."""
        archived = self.meta_client().getArchivedTimeline()
        archived.loadCompletedInstantDetailsInMemory()
        wanted = {instant.requested: instant for instant in instants}
        for java_instant in archived.getCommitsTimeline().filterCompletedInstants().getInstants():
            if str(java_instant.requestedTime()) in wanted:
                yield wanted[str(java_instant.requestedTime())], self._write_info(java_instant, archived)

    def _write_info(self, java_instant: Any, timeline: Any) -> WriteInfo:
        # One call for the whole: a commit may have thousands of files, each of several calls otherwise.
        metadata = self._jvm.org.apache.hudi.common.table.timeline.TimelineUtils.getCommitMetadata(java_instant, timeline)
        return write_info(json.loads(str(metadata.toJsonString())))

    def totals(self, instant: tl.Instant) -> Totals:
        """Sums over the files of a completed commit of the active timeline. Raises Missing when it has left that."""
        return totals(self.metadata(instant))

    def metadata(self, instant: tl.Instant) -> dict[str, Any]:
        """Metadata of a completed commit of the active timeline, as Hudi prints it in JSON. Raises Missing when it has left that."""
        found = self._metadata(self.meta_client().getActiveTimeline(), instant)
        return dict(json.loads(str(found.toJsonString())))

    def writes(self, instants: tuple[tl.Instant, ...]) -> Iterator[tuple[tl.Instant, dict[str, Any]]]:
        """Metadata, as Hudi prints it in JSON, of writes that are completed or inflight. One that is gone, or has said nothing, is passed over."""
        wanted = {instant.requested: instant for instant in instants}
        timeline = self.meta_client().getActiveTimeline().getCommitsTimeline() if wanted else None
        for java_instant in timeline.getInstants() if timeline else ():
            instant = wanted.get(str(java_instant.requestedTime()))
            if instant is not None:
                try:
                    metadata = self._jvm.org.apache.hudi.common.table.timeline.TimelineUtils.getCommitMetadata(java_instant, timeline)
                    yield instant, dict(json.loads(str(metadata.toJsonString())))
                except Py4JJavaError:
                    continue

    def clustering_plan(self, instant: str) -> dict[str, Any]:
        """The plan of a pending clustering, as Hudi prints it in JSON. Raises a Py4JJavaError when it cannot be read."""
        plan = self._jvm.org.apache.hudi.common.util.ClusteringUtils.getPendingClusteringPlan(self.meta_client(), instant)
        return dict(json.loads(str(plan.toString())))

    def archived_instants(self) -> tuple[tl.Instant, ...]:
        """Completed writes of the archived timeline; their metadata is not read."""
        found = self.meta_client().getArchivedTimeline().getCommitsTimeline().filterCompletedInstants().getInstants()
        return tuple(tl.Instant(str(i.requestedTime()), str(i.getAction()), tl.State.COMPLETED, str(i.getCompletionTime())) for i in found)

    def archived_completed(self, requested: str) -> bool:
        """Whether the archived timeline holds that instant as completed."""
        archived = self.meta_client().getArchivedTimeline()
        return any(i.requestedTime() == requested for i in archived.filterCompletedInstants().getInstants())

    def has_archive(self) -> bool:
        """Whether anything was ever archived."""
        try:
            return bool(self.storage.names(f"{TIMELINE}/history"))
        except Missing:
            return False

    def pending_rollbacks(self, timeline: tl.Timeline) -> dict[str, str]:
        """Victim -> pending rollback instant, read from the plans. Raises when a plan cannot be read (ambiguity)."""
        pending = {instant.requested for instant in timeline.pending if instant.action == "rollback"}
        if not pending:
            return {}
        meta = self.meta_client()
        victims: dict[str, str] = {}
        for java_instant in meta.getActiveTimeline().filterPendingRollbackTimeline().getInstants():
            plan = self._jvm.org.apache.hudi.table.action.rollback.RollbackUtils.getRollbackPlan(meta, java_instant)
            victims[str(plan.getInstantToRollback().getCommitTime())] = str(java_instant.requestedTime())
        return victims

    def partitions(self) -> list[str]:
        """Relative partition paths by listing the storage (never from the metadata table)."""
        context = self._engine()
        fs_utils = self._jvm.org.apache.hudi.common.fs.FSUtils
        return [str(path) for path in fs_utils.getAllPartitionPaths(context, self.meta_client(), False)]

    def write_config(self, name: str, options: Mapping[str, str]) -> Any:
        """A HoodieWriteConfig for an own client: no embedded timeline server, nothing derived."""
        properties = self._jvm.java.util.Properties()
        for key, value in options.items():
            properties.setProperty(key, value)
        builder = self._jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder().withPath(self.path).forTable(name)
        spark_engine = self._jvm.org.apache.hudi.common.engine.EngineType.SPARK
        return builder.withEngineType(spark_engine).withEmbeddedTimelineServerEnabled(False).withProperties(properties).build()

    @contextmanager
    def client(self, config: Any) -> Iterator[Any]:
        """A SparkRDDWriteClient, closed at the end."""
        engine = self._engine()
        client = self._jvm.org.apache.hudi.client.SparkRDDWriteClient(engine, config)
        try:
            yield client
        finally:
            try:
                self._end_metadata_writes(client)
            finally:
                client.close()

    @staticmethod
    def _end_metadata_writes(client: Any) -> None:
        """Close what the client has opened to write to the metadata table.

        Hudi 1.2 begins that write before the conflict check, and does not close it when the commit is refused: its heartbeat would be written again
        every minute for as long as this JVM lives. It has no method for that. (Without such streaming writes it would roll back those of others.)
        """
        service = client.getTableServiceClient()
        handler = _private(service, service.getClass(), "streamingMetadataWriteHandler")
        for writer in list(_private(handler, handler.getClass().getSuperclass(), "metadataWriterMap").values()):
            if writer.isPresent():
                writer.get().close()

    def savepoint_with(self, timeline: tl.Timeline, comment: str) -> tl.Instant | None:
        """The completed savepoint whose metadata carries that comment; None when there is none. Raises when one cannot be read."""
        kept = {instant.requested: instant for instant in timeline.savepoints if not instant.pending}
        if not kept:
            return None
        active = self.meta_client().getActiveTimeline()
        for java_instant in active.getSavePointTimeline().filterCompletedInstants().getInstants():
            metadata = active.readSavepointMetadata(java_instant)
            if str(metadata.getComments()) == comment and str(java_instant.requestedTime()) in kept:
                return kept[str(java_instant.requestedTime())]
        return None

    def savepoints_said(self, timeline: tl.Timeline) -> dict[str, SavepointInfo]:
        """What the completed savepoints say, by requested time. Raises Missing when one is gone, and when one cannot be read."""
        kept = {instant.requested for instant in timeline.savepoints if not instant.pending}
        if not kept:
            return {}
        found = {}
        active = self.meta_client().getActiveTimeline()
        for java_instant in active.getSavePointTimeline().filterCompletedInstants().getInstants():
            said = json.loads(str(active.readSavepointMetadata(java_instant).toString()))
            partitions = {str(name): tuple(of["savepointDataFile"]) for name, of in (said.get("partitionMetadata") or {}).items()}
            found[str(java_instant.requestedTime())] = SavepointInfo(str(said.get("comments") or ""), partitions)
        if kept - set(found):
            raise Missing(f"savepoint {min(kept - set(found))}")
        return found

    def request_restore(self, config: Any, undone: Iterable[tuple[str, str]], newest: str) -> str:
        """Put Hudi's plan of a restore on the timeline: (requested time, action) of what goes, in that order. Returns the restore's instant."""
        model, engine = self._jvm.org.apache.hudi.avro.model, self._engine()
        meta = self._jvm.org.apache.hudi.table.HoodieSparkTable.create(config, engine).getMetaClient()
        instant = str(meta.createNewInstantTime(False))
        listed = self.java_list(model.HoodieInstantInfo(requested, action) for requested, action in undone)
        requested = self._jvm.org.apache.hudi.common.table.timeline.HoodieInstant.State.REQUESTED
        plan = model.HoodieRestorePlan(listed, 2, newest)
        meta.getActiveTimeline().saveToRestoreRequested(meta.createNewInstant(requested, "restore", instant), plan)
        return instant

    def restore(self, config: Any, instant: str, newest: str) -> None:
        """Execute the plan of a pending restore, from wherever it stands; the caller holds the lock. `newest` requested time that stays."""
        engine = self._engine()
        self._jvm.org.apache.hudi.table.HoodieSparkTable.create(config, engine).restore(engine, instant, newest)

    def _engine(self) -> Any:
        return self._jvm.org.apache.hudi.client.common.HoodieSparkEngineContext(self._spark.sparkContext._jsc)

    def set_property(self, key: str, value: str) -> None:
        """Change one of the table's own properties; the caller holds the lock."""
        properties = self._jvm.java.util.Properties()
        properties.setProperty(key, value)
        folder = self._jvm.org.apache.hudi.storage.StoragePath(f"{self.path}/.hoodie")
        storage = self._jvm.org.apache.hudi.storage.HoodieStorageUtils.getStorage(folder, self.storage_conf())
        self._jvm.org.apache.hudi.common.table.HoodieTableConfig.update(storage, folder, properties)

    def no_option(self) -> Any:
        """Hudi's empty Option."""
        return self._jvm.org.apache.hudi.common.util.Option.empty()

    def metadata_files(self) -> dict[str, int] | None:
        """Data files as the metadata table lists them: relative path -> bytes; None when the table has none. Raises ValueError when Hudi cannot open it."""
        client = self.meta_client()
        if not client.getTableConfig().isMetadataTableAvailable():
            return None
        engine = self._engine()
        config = self._jvm.org.apache.hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()
        found = self._jvm.org.apache.hudi.metadata.HoodieBackedTableMetadata(engine, client.getStorage(), config, self.path)
        try:
            if not found.enabled():
                raise ValueError("the table's configuration names a metadata table, and Hudi cannot open it")
            folders = self.java_list(f"{self.path}/{partition}" if partition else self.path for partition in found.getAllPartitionPaths())
            # One call and one string: an element costs several round trips to the JVM otherwise.
            text = str(found.getAllFilesInPartitions(folders).toString())
        finally:
            found.close()
        return {self.storage.relative(path): int(size) for path, size in _INFO.findall(text)}

    def metadata_partitions(self) -> tuple[set[str], set[str]]:
        """Partitions of the metadata table as the table's configuration names them, freshly read: finished ones, and those that are not."""
        config = self.meta_client().getTableConfig()
        return {str(name) for name in config.getMetadataPartitions()}, {str(name) for name in config.getMetadataPartitionsInflight()}

    def delete_metadata_table(self) -> None:
        """Delete the metadata table, if there is one, first of all from the table's configuration; the caller holds the lock."""
        self._jvm.org.apache.hudi.metadata.HoodieTableMetadataUtil.deleteMetadataTable(self.meta_client(), self._engine(), False)

    def make_metadata_table(self, config: Any) -> None:
        """Make the metadata table that a config asks for from a listing, where there is none; the caller holds the lock, nothing is pending."""
        factory = self._jvm.org.apache.hudi.metadata.SparkMetadataWriterFactory
        factory.create(self.storage_conf(), config, self._engine(), self.meta_client().getTableConfig()).close()

    def schema(self) -> str:
        """The table's newest schema, without Hudi's own columns, as Avro JSON."""
        return str(self._jvm.org.apache.hudi.common.table.TableSchemaResolver(self.meta_client()).getTableSchema(False).toString())

    def java_list(self, items: Iterable[Any]) -> Any:
        """A java.util.List."""
        made = self._jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def live_partitions(self, config: Any) -> list[str]:
        """Partitions that readers see files of. `config` says that one day is kept: Hudi is asked what has expired in a far future."""
        engine = self._engine()
        table = self._jvm.org.apache.hudi.table.HoodieSparkTable.create(config, engine)
        factory = self._jvm.org.apache.hudi.table.action.ttl.strategy.HoodiePartitionTTLStrategyFactory
        return [str(path) for path in factory.createStrategy(table, config.getProps(), "29991231235959999").getExpiredPartitionPaths()]

    def partition_created(self, partition: str) -> str:
        """Requested time of the commit that has made the partition; empty when nothing says it."""
        path = self._jvm.org.apache.hudi.storage.StoragePath(f"{self.path}/{partition}")
        storage = self._jvm.org.apache.hudi.storage.HoodieStorageUtils.getStorage(path, self.storage_conf())
        found = self._jvm.org.apache.hudi.common.model.HoodiePartitionMetadata(storage, path).readPartitionCreatedCommitTime()
        return str(found.get()) if found.isPresent() else ""

    def archive(self, config: Any) -> int:
        """Archive what the config lets go; the caller holds the lock. Returns the number of instants. Raises when the timeline cannot be read."""
        engine = self._engine()
        table = self._jvm.org.apache.hudi.table.HoodieSparkTable.create(config, engine)
        layout = table.getMetaClient().getTimelineLayoutVersion()
        archiver = self._jvm.org.apache.hudi.client.timeline.TimelineArchivers.getInstance(layout, config, table)
        return int(archiver.archiveIfRequired(engine, False))

    @contextmanager
    def locked(self, config: Any) -> Iterator[None]:
        """Hold the table's lock (through Hudi's LockManager, so with the provider and waits of the configuration)."""
        path = self._jvm.org.apache.hudi.storage.StoragePath(self.path)
        storage = self._jvm.org.apache.hudi.storage.HoodieStorageUtils.getStorage(path, self.storage_conf())
        manager = self._jvm.org.apache.hudi.client.transaction.lock.LockManager(config, storage)
        try:
            manager.lock()
            try:
                yield
            finally:
                manager.unlock()
        finally:
            manager.close()


def commit_info(metadata: Any) -> CommitInfo:
    """CommitInfo of a Java HoodieCommitMetadata."""
    extra = {str(key): str(value) for key, value in dict(metadata.getExtraMetadata()).items()}
    records = metadata.fetchTotalInsertRecordsWritten() + metadata.fetchTotalUpdateRecordsWritten() + metadata.getTotalRecordsDeleted()
    return CommitInfo(extra, int(records))


def totals(metadata: Mapping[str, Any]) -> Totals:
    """Totals of a commit's metadata as Hudi prints it in JSON."""
    stats = [stat for of_partition in (metadata.get("partitionToWriteStats") or {}).values() for stat in of_partition if stat.get("path")]
    return Totals(sum(int(s.get("numWrites") or 0) for s in stats), len(stats), sum(int(s.get("fileSizeInBytes") or 0) for s in stats))


def write_info(metadata: Mapping[str, Any]) -> WriteInfo:
    """WriteInfo of a commit's metadata as Hudi prints it in JSON."""
    stats = [stat for of_partition in (metadata.get("partitionToWriteStats") or {}).values() for stat in of_partition]
    files = tuple(((str(stat.get("partitionPath") or ""), str(stat["fileId"])), str(stat["path"])) for stat in stats if stat.get("path"))
    replaced = {(partition, str(group)) for partition, groups in (metadata.get("partitionToReplaceFileIds") or {}).items() for group in groups}
    changes = tuple(change for change in (_change(stat) for stat in stats if stat.get("path")) if change.before or change.deletes)
    return WriteInfo(str(metadata.get("operationType") or "UNKNOWN"), files, frozenset(replaced), changes)


def _change(stat: Mapping[str, Any]) -> Change:
    partition, before = str(stat.get("partitionPath") or ""), str(stat.get("prevBaseFile") or "")
    if before and partition:
        before = f"{partition}/{before}"
    return Change((partition, str(stat["fileId"])), str(stat["path"]), before, int(stat.get("numDeletes") or 0))
