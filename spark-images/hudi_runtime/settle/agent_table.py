"""Operations on a table that only an agent uses, through Hudi's Java classes.

Its own clients, the lock, plans, restores, archival.

A driver cannot import them (import-linter): its only access to a table is the write that it was
started for. This module makes no decisions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError

from hudi_contract.words import TableType
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import TIMELINE, Table
from hudi_runtime.table.storage import Missing

PARTITION_FILE = ".hoodie_partition_metadata"


def _private(owner: Any, declared_in: Any, name: str) -> Any:
    """A private field of a Java object.

    Raises a Py4JJavaError when this version of Hudi has no field with that name.
    """
    field = declared_in.getDeclaredField(name)
    field.setAccessible(True)
    return field.get(owner)


@dataclass(frozen=True)
class SavepointInfo:
    """Metadata of a savepoint: its comment, and names of the files that it keeps, by partition."""

    comment: str
    files: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class CleanPlan:
    """The plan of a clean, which is not on the timeline yet."""

    plan: Any
    table: Any

    def keeps_from(self, instant: str) -> bool:
        """Whether the files of all commits that were requested from then on stay.

        The files that they replaced stay, too.
        """
        retained = str(self.plan.retained())
        return bool(retained) and retained <= instant

    def emptied(self) -> list[str]:
        """Partitions that were empty when the plan was made."""
        return [str(partition) for partition in self.plan.emptied()]

    def save(self) -> None:
        """Put it on the timeline; the caller holds the lock."""
        self.plan.save(self.table)


class AgentTable(Table):
    """A table with the operations of an agent."""

    def writes(self, instants: tuple[tl.Instant, ...]) -> Iterator[tuple[tl.Instant, dict[str, Any]]]:
        """Metadata, as Hudi prints it in JSON, of completed or inflight writes.

        Skips writes that are gone, or have no metadata.
        """
        wanted = {instant.requested: instant for instant in instants}
        timeline = self.meta_client().getActiveTimeline().getCommitsTimeline() if wanted else None
        for java_instant in timeline.getInstants() if timeline else ():
            instant = wanted.get(str(java_instant.requestedTime()))
            if instant is not None:
                try:
                    metadata = self._jvm.org.apache.hudi.common.table.timeline.TimelineUtils.getCommitMetadata(
                        java_instant, timeline
                    )
                    yield instant, dict(json.loads(str(metadata.toJsonString())))
                except Py4JJavaError:
                    continue

    def clustering_plan(self, instant: str) -> dict[str, Any]:
        """The plan of a pending clustering, as Hudi prints it in JSON.

        Raises a Py4JJavaError when it cannot be read.
        """
        plan = self._jvm.org.apache.hudi.common.util.ClusteringUtils.getPendingClusteringPlan(
            self.meta_client(), instant
        )
        return dict(json.loads(str(plan.toString())))

    def pending_rollbacks(self, timeline: tl.Timeline) -> dict[str, str]:
        """Victim -> pending rollback instant, read from the plans.

        Raises when a plan cannot be read (ambiguity).
        """
        pending = {instant.requested for instant in timeline.pending if instant.action == "rollback"}
        if not pending:
            return {}
        meta = self.meta_client()
        victims: dict[str, str] = {}
        for java_instant in meta.getActiveTimeline().filterPendingRollbackTimeline().getInstants():
            plan = self._jvm.org.apache.hudi.table.action.rollback.RollbackUtils.getRollbackPlan(meta, java_instant)
            victims[str(plan.getInstantToRollback().getCommitTime())] = str(java_instant.requestedTime())
        return victims

    def write_config(self, name: str, options: Mapping[str, str]) -> Any:
        """A HoodieWriteConfig for a client of the agent.

        No embedded timeline server, no derived options.
        """
        properties = self._jvm.java.util.Properties()
        for key, value in options.items():
            properties.setProperty(key, value)
        builder = self._jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder().withPath(self.path).forTable(name)
        spark_engine = self._jvm.org.apache.hudi.common.engine.EngineType.SPARK
        return (
            builder.withEngineType(spark_engine)
            .withEmbeddedTimelineServerEnabled(False)
            .withProperties(properties)
            .build()
        )

    @contextmanager
    def client(self, config: Any) -> Iterator[Any]:
        """A SparkRDDWriteClient as a context manager, which closes it."""
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
        """Close the writers that the client has opened for the metadata table.

        Hudi 1.2 begins that write before the conflict check, and does not close it when the commit
        is refused: its heartbeat would be renewed every minute for the lifetime of this JVM. Hudi
        has no method to close it. (Without streaming writes a client would roll back
        those of others.)
        """
        service = client.getTableServiceClient()
        handler = _private(service, service.getClass(), "streamingMetadataWriteHandler")
        for writer in list(_private(handler, handler.getClass().getSuperclass(), "metadataWriterMap").values()):
            if writer.isPresent():
                writer.get().close()

    def savepoint_with(self, timeline: tl.Timeline, comment: str) -> tl.Instant | None:
        """The completed savepoint whose metadata carries that comment; None when there is none.

        Raises when one of the timeline's cannot be read.
        """
        kept = {instant.requested: instant for instant in timeline.savepoints if not instant.pending}
        for requested, metadata in self._savepoints() if kept else ():
            if requested in kept and str(metadata().getComments()) == comment:
                return kept[requested]
        return None

    def savepoint_comment(self, requested: str) -> str:
        """The comment of one completed savepoint.

        Raises Missing when it is gone, and an error when it cannot be read.
        """
        for one, metadata in self._savepoints():
            if one == requested:
                return str(metadata().getComments() or "")
        raise Missing(f"savepoint {requested}")

    def savepoint_infos(self, timeline: tl.Timeline) -> dict[str, SavepointInfo]:
        """Metadata of the completed savepoints, by requested time.

        Raises Missing when one is gone, and an error when one cannot be read.
        """
        kept = {instant.requested for instant in timeline.savepoints if not instant.pending}
        found = {}
        for requested, metadata in self._savepoints() if kept else ():
            said = json.loads(str(metadata().toString()))
            partitions = {
                str(name): tuple(of["savepointDataFile"]) for name, of in (said.get("partitionMetadata") or {}).items()
            }
            found[requested] = SavepointInfo(str(said.get("comments") or ""), partitions)
        if kept - set(found):
            raise Missing(f"savepoint {min(kept - set(found))}")
        return found

    def _savepoints(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Requested time of each completed savepoint, and a function that reads its metadata.

        The function raises an error when they cannot be read.
        """
        active = self.meta_client().getActiveTimeline()
        for java_instant in active.getSavePointTimeline().filterCompletedInstants().getInstants():
            yield str(java_instant.requestedTime()), partial(active.readSavepointMetadata, java_instant)

    def to_be_deleted(self, cleans: tuple[tl.Instant, ...]) -> dict[str, set[str]]:
        """Names of the files that these completed cleans were to delete, by partition.

        Raises Missing when one has left the active timeline, an error when one cannot be read.
        """
        meta, wanted = self.meta_client(), {instant.requested for instant in cleans}
        found: dict[str, set[str]] = {}
        for java_instant in meta.getActiveTimeline().getCleanerTimeline().filterCompletedInstants().getInstants():
            if str(java_instant.requestedTime()) not in wanted:
                continue
            wanted.discard(str(java_instant.requestedTime()))
            plan = self._jvm.org.apache.hudi.common.util.CleanerUtils.getCleanerPlan(meta, java_instant)
            said = json.loads(str(plan.toString()))
            for partition, files in (said.get("filePathsToBeDeletedPerPartition") or {}).items():
                names = found.setdefault(str(partition), set())
                names.update(str(file["filePath"]).rpartition("/")[2] for file in files)
        if wanted:
            raise Missing(f"clean {min(wanted)}")
        return found

    def request_restore(self, config: Any, undone: Iterable[tuple[str, str]], newest: str) -> str:
        """Put Hudi's plan of a restore on the timeline.

        (requested time, action) of the instants to undo, in that order. Returns
        the restore's instant.
        """
        model, engine = self._jvm.org.apache.hudi.avro.model, self._engine()
        meta = self._jvm.org.apache.hudi.table.HoodieSparkTable.create(config, engine).getMetaClient()
        instant = str(meta.createNewInstantTime(False))
        listed = self.java_list(model.HoodieInstantInfo(requested, action) for requested, action in undone)
        requested = self._jvm.org.apache.hudi.common.table.timeline.HoodieInstant.State.REQUESTED
        plan = model.HoodieRestorePlan(listed, 2, newest)
        meta.getActiveTimeline().saveToRestoreRequested(meta.createNewInstant(requested, "restore", instant), plan)
        return instant

    def restore(self, config: Any, instant: str, newest: str) -> None:
        """Execute the plan of a pending restore, continuing where it stopped.

        The caller holds the lock. `newest`: newest requested time that stays.
        """
        engine = self._engine()
        self._jvm.org.apache.hudi.table.HoodieSparkTable.create(config, engine).restore(engine, instant, newest)

    def bucket(self, key: str, fields: Iterable[str], count: int) -> int:
        """The one of so many buckets in which Hudi looks for a record key of these fields."""
        identifier = self._jvm.org.apache.hudi.index.bucket.BucketIdentifier
        return int(identifier.getBucketId(key, ",".join(fields), count))

    def begin_timeline(self) -> None:
        """Put the beginning before the timeline: a commit without files and schema (F630).

        The caller holds the lock, and has seen that nothing was ever committed.
        """
        meta = self.meta_client()
        common = self._jvm.org.apache.hudi.common.model
        commit = common.HoodieCommitMetadata()
        commit.setOperationType(common.WriteOperationType.INSERT)
        merge_on_read = str(meta.getTableType().name()) == TableType.MERGE_ON_READ
        name = tl.beginning(merge_on_read=merge_on_read)
        path = self._jvm.org.apache.hudi.storage.StoragePath(f"{self.path}/{TIMELINE}/{name}")
        content = meta.getCommitMetadataSerDe().getInstantWriter(commit)
        meta.getStorage().createImmutableFileInPath(path, content)

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

    def metadata_partitions(self) -> tuple[set[str], set[str]]:
        """Partitions of the metadata table in the table's configuration, freshly read.

        Finished and unfinished ones.
        """
        config = self.meta_client().getTableConfig()
        return {str(name) for name in config.getMetadataPartitions()}, {
            str(name) for name in config.getMetadataPartitionsInflight()
        }

    def delete_metadata_table(self) -> None:
        """Delete the metadata table, if there is one, beginning with the table's configuration.

        The caller holds the lock.
        """
        self._jvm.org.apache.hudi.metadata.HoodieTableMetadataUtil.deleteMetadataTable(
            self.meta_client(), self._engine(), False
        )

    def make_metadata_table(self, config: Any) -> None:
        """Create the metadata table of `config` from a listing, when there is none.

        The caller holds the lock, and nothing is pending.
        """
        factory = self._jvm.org.apache.hudi.metadata.SparkMetadataWriterFactory
        factory.create(self.storage_conf(), config, self._engine(), self.meta_client().getTableConfig()).close()

    def schema(self) -> str:
        """The table's newest schema, without Hudi's own columns, as Avro JSON."""
        return str(
            self._jvm.org.apache.hudi.common.table.TableSchemaResolver(self.meta_client())
            .getTableSchema(False)
            .toString()
        )

    def live_partitions(self, config: Any) -> list[str]:
        """Partitions with files that readers see.

        `config` keeps one day: Hudi computes the partitions that have expired in the far future.
        """
        engine = self._engine()
        table = self._jvm.org.apache.hudi.table.HoodieSparkTable.create(config, engine)
        factory = self._jvm.org.apache.hudi.table.action.ttl.strategy.HoodiePartitionTTLStrategyFactory
        return [
            str(path)
            for path in factory.createStrategy(table, config.getProps(), "29991231235959999").getExpiredPartitionPaths()
        ]

    def partition_created(self, partition: str) -> str:
        """Requested time of the commit that created the partition.

        Empty when it is not recorded.
        """
        path = self._jvm.org.apache.hudi.storage.StoragePath(f"{self.path}/{partition}")
        storage = self._jvm.org.apache.hudi.storage.HoodieStorageUtils.getStorage(path, self.storage_conf())
        metadata = self._jvm.org.apache.hudi.common.model.HoodiePartitionMetadata(storage, path)
        try:
            found = metadata.readPartitionCreatedCommitTime()
        except Py4JJavaError as error:
            if is_instance_of(
                self._spark.sparkContext._gateway, error.java_exception, "java.lang.NullPointerException"
            ):
                return ""  # the file does not say
            raise
        return str(found.get()) if found.isPresent() else ""

    def deleted_partitions(self) -> dict[str, str]:
        """Partitions that commits of the active timeline have emptied, each with the newest one."""
        commits = tuple(i for i in self.timeline().completed if i.action == "replacecommit")
        return {
            partition: instant.requested
            for instant, info in self.written(tuple(sorted(commits, key=lambda i: i.requested)))
            for partition in info.emptied
        }

    def emptied(self, partitions: Iterable[str], instant: str) -> None:
        """Give the partitions that instant as a new start (F471).

        Files that are written to them from now on are newer than their folders. Hudi leaves an
        existing file with a partition's time of creation unchanged. It is replaced, never deleted:
        to a listing of the storage only folders with it are partitions.
        """
        for partition in partitions:
            name = f"{partition}/{PARTITION_FILE}"
            with suppress(Missing):
                lines = [line for line in self.storage.read(name).splitlines() if not line.startswith("commitTime=")]
                if not any(line.startswith("partitionDepth=") for line in lines):
                    continue  # torn, or of a kind that is not known: nothing is known of its age
                self.storage.write(name, "\n".join([*lines, f"commitTime={instant}", ""]))

    def any_file_of(self, groups: Iterable[tuple[str, str]]) -> bool:
        """Whether a file of these (partition, file group) is there; one listing for each folder."""
        by_partition: dict[str, set[str]] = {}
        for partition, group in groups:
            by_partition.setdefault(partition, set()).add(group)
        for partition, wanted in sorted(by_partition.items()):
            with suppress(Missing):
                # <group>_<token>_<instant>.parquet, .<group>_<instant>.log.<version>_<token>
                if any(name.lstrip(".").split("_")[0] in wanted for name in self.storage.names(partition)):
                    return True
        return False

    def archive(self, config: Any) -> int:
        """Archive instants as the config allows; the caller holds the lock.

        Returns their number. Raises when the timeline cannot be read.
        """
        engine = self._engine()
        table = self._jvm.org.apache.hudi.table.HoodieSparkTable.create(config, engine)
        layout = table.getMetaClient().getTimelineLayoutVersion()
        archiver = self._jvm.org.apache.hudi.client.timeline.TimelineArchivers.getInstance(layout, config, table)
        return int(archiver.archiveIfRequired(engine, False))

    def plan_clean(self, config: Any, commits: int) -> CleanPlan | None:
        """Plan of the files that the config's policy would delete; None when there are none.

        Files of the newest `commits` commits, and those that they replaced, are left out (0: none).
        """
        engine = self._engine()
        table = self._jvm.org.apache.hudi.table.HoodieSparkTable.create(config, engine)
        plan = self._jvm.io.hudioperator.CleanPlan.of(table, engine, config, commits)
        return None if plan is None else CleanPlan(plan, table)

    @contextmanager
    def locked(self, config: Any) -> Iterator[None]:
        """Hold the table's lock.

        It is taken through Hudi's LockManager, so with the provider and waits of the configuration.
        """
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
