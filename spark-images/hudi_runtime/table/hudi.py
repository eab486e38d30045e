"""The few calls into Hudi's Java classes, through py4j. This module makes no decisions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession, types

from hudi_runtime.job import merging
from hudi_runtime.process.errors import java_causes
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.listings import of_folders
from hudi_runtime.table.storage import ABSENT, Missing, Storage

TIMELINE = ".hoodie/timeline"
METADATA = ".hoodie/metadata"
SNAPSHOT: Mapping[str, str] = MappingProxyType(
    {
        "hoodie.datasource.query.type": "snapshot",
        "hoodie.datasource.query.incremental.format": "latest_state",
        "hoodie.datasource.merge.type": "payload_combine",
        "hoodie.enable.data.skipping": "false",
        "hoodie.datasource.read.file.index.listing.mode": "eager",
        "ignoreCorruptFiles": "false",
        "ignoreMissingFiles": "false",
    }
)
"""Options of each read of a table: what user code has set in the session would count otherwise
(F105). For statistics of columns see F104, for the listing F466.
"""
LAZY: Mapping[str, str] = MappingProxyType({"hoodie.datasource.read.file.index.listing.mode": "lazy"})
"""For code that reads no rows of the relation's files, or compares them with existing files: the
whole table need not be listed.
"""
COMMITS_KEPT = 1000
"""Number of commits whose metadata is cached: an agent runs for months."""
_SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX"})


@dataclass(frozen=True)
class CommitInfo:
    """Metadata of a completed commit.

    Extra metadata, and number of records written, updated or deleted.
    """

    extra: Mapping[str, str]
    records: int
    schema: str = ""
    """The schema that readers would take from it; empty when they would take none."""


@dataclass(frozen=True)
class Change:
    """A file that a write added to a file group.

    Its path, the base file that it replaced (empty: none), and the number of deleted records.
    """

    group: tuple[str, str]
    path: str
    before: str
    deletes: int


@dataclass(frozen=True)
class WriteInfo:
    """The result of a completed write.

    Hudi's name of the operation, files written by (partition, file group), replaced file groups.
    """

    operation: str
    files: tuple[tuple[tuple[str, str], str], ...]
    replaced: frozenset[tuple[str, str]]
    changes: tuple[Change, ...] = ()
    """The files that replaced a base file or deleted records."""
    inserted_in_logs: frozenset[tuple[str, str]] = frozenset()
    """The file groups to whose log files it has added records."""

    @property
    def carries_rows(self) -> bool:
        """False for a table service: it only rewrites rows of other commits."""
        return self.operation not in _SERVICES

    @property
    def emptied(self) -> set[str]:
        """Partitions of which it has replaced file groups, and in which it has written none.

        None for a table service: other file groups of the partition have rows. One that clusters
        file groups whose rows were all deleted writes nothing.
        """
        if not self.carries_rows:
            return set()
        return {partition for partition, _ in self.replaced} - {partition for (partition, _), _ in self.files}


@dataclass(frozen=True)
class Totals:
    """Totals of a completed commit: records, files, and their size in bytes."""

    records: int
    files: int
    bytes: int


PROPERTIES = (".hoodie/hoodie.properties", ".hoodie/hoodie.properties.backup")
"""Files of which a table has one at least: to change something in the first, Hudi deletes it and
writes it again, and reads the second meanwhile.
"""


class Table:
    """One Hudi table as seen by this JVM; operations of an agent are in `settle.agent_table`.

    Every call makes a fresh listing, and no listing is kept. The cached data does not change: the
    metadata of completed commits, and the schemas that readers make of a text.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._jvm: Any = spark.sparkContext._jvm
        self.path = path
        # Kept from the start: a user's program may stop the Spark context before the runtime reads
        # the timeline.
        self._hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
        self.storage = Storage(spark, path)
        self._commits: dict[str, CommitInfo] = {}
        self._schemas: dict[str, types.StructType] = {}
        """Schemas as readers see them, by the schema in the metadata of a commit."""
        self._kept: Any = None

    def exists(self) -> bool:
        """Whether there is a Hudi table at the path."""
        return any(self.storage.exists(name) for name in PROPERTIES)

    def timeline(self, *, folder: str = TIMELINE) -> tl.Timeline:
        """The active timeline, listed now.

        Raises Missing when there is no timeline folder, TimelineError when it is ambiguous.
        """
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

    def _client(self) -> Any:
        """A meta client that is made once. Its listing of the timeline is of any time."""
        if self._kept is None:
            self._kept = self.meta_client()
        return self._kept

    def _listed_anew(self) -> Any:
        """The kept meta client, with its data of the table read again.

        A new one looks for the table's folders first, and gives the same answers.
        """
        client = self._client()
        client.reloadTableConfig()
        client.reloadActiveTimeline()
        return client

    def columns(self, *, listed: str | None = None) -> tuple[types.StructType | None, str]:
        """The schema that readers see, and a completion time before it was read.

        All commits that had completed by that time are in the schema; later ones are compared
        under the lock (`CommitChecks.requireSchema`). The schema is without Hudi's own columns
        (None: nothing was committed yet).

        A listing is not atomic: it may show a commit and miss one that has completed before. So
        the time is that of another listing, which had ended before this one began. `listed`: the
        newest completion time of such a listing. It is used only when nothing has completed since;
        otherwise the time would be older than it need be, and more commits would be compared.
        """
        timeline = self.timeline()
        if listed is None or timeline.newest != listed:
            listed, timeline = timeline.newest, self.timeline()
        return self._schema(timeline), listed

    def _schema(self, timeline: tl.Timeline) -> types.StructType | None:
        """Readers take it from the commit that began last and may change it.

        The result for a text is always the same, so Hudi is asked once for each text. It lists the
        timeline for itself: its answer is that of the text only when the commit that has the text
        is the last one there, too.
        """
        writes = tuple(i for i in reversed(timeline.instants) if not i.pending and i.action in tl.WRITE_ACTIONS)
        told = ((instant.requested, info.schema) for instant, info in self.commits(writes) if info.schema)
        requested, text = next(told, ("", ""))
        if text in self._schemas:
            return self._schemas[text]
        schema, last = self._asked()
        if schema is not None and text and last == requested:
            self._schemas[text] = schema
        return schema

    def _asked(self) -> tuple[types.StructType | None, str]:
        """The schema that Hudi reads the table with, and when its last completed commit began."""
        client = self._listed_anew()
        last = client.getActiveTimeline().getCommitsTimeline().filterCompletedInstants().lastInstant()
        found = self._jvm.org.apache.hudi.common.table.TableSchemaResolver(client).getTableSchemaIfPresent(False)
        if not found.isPresent():
            return None, ""
        struct = self._jvm.org.apache.hudi.HoodieSchemaConversionUtils.convertHoodieSchemaToStructType(found.get())
        schema = types.StructType.fromJson(json.loads(str(struct.json())))
        return schema, str(last.get().requestedTime()) if last.isPresent() else ""

    def has_rows_deleted_in_logs(self) -> bool:
        """Whether base files have keys of rows that log files have deleted.

        False with a bucket index, which does not look keys up.
        """
        return bool(self._jvm.io.hudioperator.commit.DeletedInLogs.any(self._listed_anew()))

    def require_merger(self, merge: merging.Merge) -> None:
        """Raise NoMerger when this JVM does not have the table's merger class."""
        merging.require(self._jvm, merge)

    def read_options(self, *, class_name: str = "") -> dict[str, str]:
        """See `merging.read_options`."""
        return merging.read_options(self._jvm, self.meta_client().getTableConfig(), self.path, class_name=class_name)

    def storage_conf(self) -> Any:
        """Hudi's wrapper around the Hadoop configuration."""
        return self._jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(self._hadoop)

    def commits(self, instants: tuple[tl.Instant, ...]) -> Iterator[tuple[tl.Instant, CommitInfo]]:
        """Metadata of completed commits, in the given order.

        Completed files never change, so they are read once, by their names, which follow from the
        instants: no listing is needed. Raises Missing when one has left the active timeline.
        """
        for instant in instants:
            if instant.action not in tl.WRITE_ACTIONS:
                continue
            known = self._commits.get(instant.requested)
            if known is None:
                known = commit_info(self._completed(instant))
                self._commits[instant.requested] = known
                if len(self._commits) > COMMITS_KEPT:
                    del self._commits[next(iter(self._commits))]
            yield instant, known

    def _completed(self, instant: tl.Instant) -> Any:
        """Java metadata of a completed commit, from the file of that name."""
        classes, client = self._jvm.org.apache.hudi.common.table.timeline, self._client()
        named = client.getInstantGenerator().createNewInstant(
            classes.HoodieInstant.State.COMPLETED, instant.action, instant.requested, instant.completion
        )
        try:
            return classes.TimelineUtils.getCommitMetadata(named, client.getActiveTimeline())
        except Py4JJavaError as error:
            if any(cause.type in ABSENT for cause in java_causes(error)):
                raise Missing(f"instant {instant.requested}") from error
            raise

    def _metadata(self, timeline: Any, instant: tl.Instant) -> Any:
        """Metadata of a completed commit. Raises Missing when the timeline does not have it."""
        # Not by its time alone: a savepoint bears the time of the commit that it keeps.
        for java_instant in timeline.getCommitsTimeline().filterCompletedInstants().getInstants():
            if java_instant.requestedTime() == instant.requested:
                return self._jvm.org.apache.hudi.common.table.timeline.TimelineUtils.getCommitMetadata(
                    java_instant, timeline
                )
        raise Missing(f"instant {instant.requested}")

    def archived_commits(self) -> Iterator[tuple[tl.Instant, CommitInfo]]:
        """Completed commits of the archived timeline, newest completion first."""
        archived = self.meta_client().getArchivedTimeline()
        archived.loadCompletedInstantDetailsInMemory()
        found = []
        for java_instant in archived.getCommitsTimeline().filterCompletedInstants().getInstants():
            instant = tl.Instant(
                java_instant.requestedTime(),
                java_instant.getAction(),
                tl.State.COMPLETED,
                str(java_instant.getCompletionTime()),
            )
            if instant.requested != tl.BEGINNING:
                found.append((instant, java_instant))
        for instant, java_instant in sorted(found, key=lambda pair: pair[0].completion, reverse=True):
            metadata = self._jvm.org.apache.hudi.common.table.timeline.TimelineUtils.getCommitMetadata(
                java_instant, archived
            )
            yield instant, commit_info(metadata)

    def written(self, instants: tuple[tl.Instant, ...]) -> Iterator[tuple[tl.Instant, WriteInfo]]:
        """Results of completed writes of the active timeline, in the given order.

        Raises Missing when one has left the active timeline.
        """
        timeline = self.meta_client().getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
        known = {str(i.requestedTime()): i for i in timeline.getInstants()}
        for instant in instants:
            if instant.requested not in known:
                raise Missing(f"instant {instant.requested}")
            yield instant, self._write_info(known[instant.requested], timeline)

    def archived_written(self, instants: tuple[tl.Instant, ...]) -> Iterator[tuple[tl.Instant, WriteInfo]]:
        """Results of writes of the archived timeline."""
        archived = self.meta_client().getArchivedTimeline()
        archived.loadCompletedInstantDetailsInMemory()
        wanted = {instant.requested: instant for instant in instants}
        for java_instant in archived.getCommitsTimeline().filterCompletedInstants().getInstants():
            if str(java_instant.requestedTime()) in wanted:
                yield wanted[str(java_instant.requestedTime())], self._write_info(java_instant, archived)

    def _write_info(self, java_instant: Any, timeline: Any) -> WriteInfo:
        # One call for all: a commit may have thousands of files, which would need
        # several calls each.
        metadata = self._jvm.org.apache.hudi.common.table.timeline.TimelineUtils.getCommitMetadata(
            java_instant, timeline
        )
        return write_info(json.loads(str(metadata.toJsonString())))

    def totals(self, instant: tl.Instant) -> Totals:
        """Sums over the files of a completed commit of the active timeline.

        Raises Missing when the commit has left it.
        """
        return totals(self.metadata(instant))

    def metadata(self, instant: tl.Instant) -> dict[str, Any]:
        """Metadata of a completed commit of the active timeline, as Hudi prints it in JSON.

        Raises Missing when the commit has left it.
        """
        found = self._metadata(self.meta_client().getActiveTimeline(), instant)
        return dict(json.loads(str(found.toJsonString())))

    def archived_instants(self) -> tuple[tl.Instant, ...]:
        """Completed writes of the archived timeline; their metadata is not read."""
        found = self.meta_client().getArchivedTimeline().getCommitsTimeline().filterCompletedInstants().getInstants()
        return tuple(
            tl.Instant(str(i.requestedTime()), str(i.getAction()), tl.State.COMPLETED, str(i.getCompletionTime()))
            for i in found
            if str(i.requestedTime()) != tl.BEGINNING
        )

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

    def partitions(self) -> list[str]:
        """Relative partition paths by listing the storage (never from the metadata table)."""
        context = self._engine()
        fs_utils = self._jvm.org.apache.hudi.common.fs.FSUtils
        return [str(path) for path in fs_utils.getAllPartitionPaths(context, self.meta_client(), False)]

    def _engine(self) -> Any:
        return self._jvm.org.apache.hudi.client.common.HoodieSparkEngineContext(self._spark.sparkContext._jsc)

    def metadata_files(self) -> dict[str, int] | None:
        """Data files in the metadata table: relative path -> bytes; None when the table has none.

        Raises ValueError when Hudi cannot open it.
        """
        client = self.meta_client()
        if not client.getTableConfig().isMetadataTableAvailable():
            return None
        engine = self._engine()
        config = self._jvm.org.apache.hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()
        found = self._jvm.org.apache.hudi.metadata.HoodieBackedTableMetadata(
            engine, client.getStorage(), config, self.path
        )
        try:
            if not found.enabled():
                raise ValueError("the table's configuration names a metadata table, and Hudi cannot open it")
            folders = self.java_list(
                f"{self.path}/{partition}" if partition else self.path for partition in found.getAllPartitionPaths()
            )
            listed = of_folders(self._jvm, found.getAllFilesInPartitions(folders))
        finally:
            found.close()
        return {self.storage.relative(path): size for path, _, size in listed}

    def java_list(self, items: Iterable[Any]) -> Any:
        """A java.util.List."""
        made = self._jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made


def commit_info(metadata: Any) -> CommitInfo:
    """CommitInfo of a Java HoodieCommitMetadata."""
    extra = {str(key): str(value) for key, value in dict(metadata.getExtraMetadata()).items()}
    records = (
        metadata.fetchTotalInsertRecordsWritten()
        + metadata.fetchTotalUpdateRecordsWritten()
        + metadata.getTotalRecordsDeleted()
    )
    changes = str(metadata.getOperationType()) not in _SERVICES
    return CommitInfo(extra, int(records), extra.get("schema", "") if changes else "")


def totals(metadata: Mapping[str, Any]) -> Totals:
    """Totals of a commit's metadata as Hudi prints it in JSON."""
    stats = [
        stat
        for of_partition in (metadata.get("partitionToWriteStats") or {}).values()
        for stat in of_partition
        if stat.get("path")
    ]
    return Totals(
        sum(int(s.get("numWrites") or 0) for s in stats),
        len(stats),
        sum(int(s.get("fileSizeInBytes") or 0) for s in stats),
    )


def write_info(metadata: Mapping[str, Any]) -> WriteInfo:
    """WriteInfo of a commit's metadata as Hudi prints it in JSON."""
    stats = [stat for of_partition in (metadata.get("partitionToWriteStats") or {}).values() for stat in of_partition]
    files = tuple(
        ((str(stat.get("partitionPath") or ""), str(stat["fileId"])), str(stat["path"]))
        for stat in stats
        if stat.get("path")
    )
    replaced = {
        (partition, str(group))
        for partition, groups in (metadata.get("partitionToReplaceFileIds") or {}).items()
        for group in groups
    }
    changes = tuple(
        change for change in (_change(stat) for stat in stats if stat.get("path")) if change.before or change.deletes
    )
    inserted = {
        (str(stat.get("partitionPath") or ""), str(stat["fileId"]))
        for stat in stats
        if ".log." in str(stat.get("path") or "").rpartition("/")[2] and stat.get("numInserts")
    }
    operation = str(metadata.get("operationType") or "UNKNOWN")
    return WriteInfo(operation, files, frozenset(replaced), changes, frozenset(inserted))


def _change(stat: Mapping[str, Any]) -> Change:
    partition, before = str(stat.get("partitionPath") or ""), str(stat.get("prevBaseFile") or "")
    if before and partition:
        before = f"{partition}/{before}"
    return Change((partition, str(stat["fileId"])), str(stat["path"]), before, int(stat.get("numDeletes") or 0))
