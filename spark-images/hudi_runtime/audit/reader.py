"""Reads a table through Spark's JVM and collects the `Facts`.

It writes nothing and takes no lock; a table in use may be audited.

The order matters: timeline, files, timeline again. A file's instant is created before the file, and
a completed instant's files before its completed file. A violation is confirmed by a second look
before it is reported (`audit.audit`).
"""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from hudi_contract import naming
from hudi_contract.words import MergeMode, TableType
from hudi_runtime.audit.facts import Commit, Facts, Keys, instant_of, is_data_file
from hudi_runtime.job import merging
from hudi_runtime.process.errors import classify, environment_secrets, redact
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import Table
from hudi_runtime.table.storage import Missing

_MARKER = re.compile(rf"^\.hoodie/hudi-operator/({naming.TABLE_ID})$")
OPENERS = 8
ARCHIVED = 1000
"""Number of archived writes whose metadata is read, newest first."""
T = TypeVar("T")


class TableReader:
    """Reads one table."""

    def __init__(self, spark: SparkSession, path: str, *, keys: Callable[[str], Keys] | None, open_files: bool) -> None:
        """`keys` reads etcd for a table id; None: etcd is not read."""
        self._spark = spark
        self._jvm: Any = spark.sparkContext._jvm
        self._keys = keys
        self._open_files = open_files
        self._errors: dict[str, str] = {}
        self.table = Table(spark, path.rstrip("/"))

    def facts(self) -> Facts:
        """Collect all facts.

        Raises Missing when there is no Hudi table, TimelineError when its timeline
        cannot be parsed.
        """
        self._errors = {}
        before = self.table.timeline()
        files = self.table.storage.walk()
        metadata_timeline = self.table.metadata_timeline()
        timeline = self.table.timeline()
        listed = self._try("metadata", self.table.metadata_files)
        active = {i.requested for i in (*before.instants, *timeline.instants)}
        archived: frozenset[str] = frozenset()
        if any(is_data_file(p) and instant_of(p) not in active for p in files):
            archived = self._try("archived", self.archived) or frozenset()
        commits = tuple(self._try("commits", lambda: list(self._commits(timeline))) or ())
        cleaned = self._try("cleaned", lambda: frozenset(self._cleaned(timeline))) or frozenset()
        missing = {p for commit in commits for p in commit.files if p not in files and p not in cleaned}
        history = bool(self._try("archived", self.table.has_archive))
        if missing and history:
            cleaned |= self._try("cleaned", lambda: frozenset(self._archived_cleaned())) or frozenset()
        present = [p for commit in commits for p in commit.files if p in files]
        return Facts(
            timeline=timeline,
            before=before,
            files=files,
            commits=commits,
            archived_commits=tuple(
                self._try("archive", lambda: list(self._archived_commits()) if history else []) or ()
            ),
            archived=archived,
            history=history,
            cleaned=cleaned,
            rolled_back=self._try("rollbacks", lambda: dict(self._rolled_back(timeline))) or {},
            broken=self._broken(present),
            metadata_timeline=metadata_timeline,
            metadata_files=listed,
            keys=self._try("keys", lambda: self._read_keys(files)),
            errors=dict(self._errors),
        )

    def _try(self, aspect: str, look: Callable[[], T]) -> T | None:
        try:
            return look()
        except Exception as error:
            self._errors[aspect] = reason_of(error)
            return None

    # -- timeline ----------------------------------------------------------------------------------

    def _java_instants(self, timeline: tl.Timeline, actions: Iterable[str]) -> Iterator[tuple[tl.Instant, Any, Any]]:
        """Completed instants of some actions with their Java instant and its timeline.

        Hudi's own view must contain the same ones.
        """
        wanted = set(actions)
        java = self.table.meta_client().getActiveTimeline()
        # A savepoint bears the time of the commit that it keeps.
        known = {(str(i.requestedTime()), str(i.getAction())): i for i in java.filterCompletedInstants().getInstants()}
        for instant in timeline.completed:
            if instant.action in wanted:
                if (instant.requested, instant.action) not in known:
                    raise Missing(
                        f"completed instant {instant.requested} has disappeared from the timeline during the audit"
                    )
                yield instant, known[instant.requested, instant.action], java

    def _commits(self, timeline: tl.Timeline) -> Iterator[Commit]:
        utils = self._jvm.org.apache.hudi.common.table.timeline.TimelineUtils
        for instant, java_instant, java in self._java_instants(timeline, tl.WRITE_ACTIONS):
            yield commit(instant, json.loads(str(utils.getCommitMetadata(java_instant, java).toJsonString())))

    def _archived_commits(self) -> Iterator[Commit]:
        utils = self._jvm.org.apache.hudi.common.table.timeline.TimelineUtils
        archived = self.table.meta_client().getArchivedTimeline()
        found = sorted(
            (str(i.requestedTime()) for i in archived.getCommitsTimeline().filterCompletedInstants().getInstants()),
            reverse=True,
        )[:ARCHIVED]
        if not found:
            return
        archived.loadCompletedInstantDetailsInMemory(found[-1], found[0])
        for java_instant in archived.getCommitsTimeline().filterCompletedInstants().getInstants():
            if tl.BEGINNING != str(java_instant.requestedTime()) >= found[-1]:
                completion = str(java_instant.getCompletionTime())
                instant = tl.Instant(
                    str(java_instant.requestedTime()), str(java_instant.getAction()), tl.State.COMPLETED, completion
                )
                yield commit(instant, json.loads(str(utils.getCommitMetadata(java_instant, archived).toJsonString())))

    def _cleaned(self, timeline: tl.Timeline) -> Iterator[str]:
        for _, java_instant, java in self._java_instants(timeline, ("clean",)):
            yield from deleted_by(json.loads(str(java.readCleanMetadata(java_instant).toString())))

    def _archived_cleaned(self) -> Iterator[str]:
        archived = self.table.meta_client().getArchivedTimeline()
        archived.loadCompletedInstantDetailsInMemory()
        for java_instant in archived.getCleanerTimeline().filterCompletedInstants().getInstants():
            yield from deleted_by(json.loads(str(archived.readCleanMetadata(java_instant).toString())))

    def _rolled_back(self, timeline: tl.Timeline) -> Iterator[tuple[str, str]]:
        for instant, java_instant, java in self._java_instants(timeline, ("rollback",)):
            for victim in (
                json.loads(str(java.readRollbackMetadata(java_instant).toString())).get("commitsRollback") or []
            ):
                yield str(victim), instant.requested

    def ordering(self) -> list[str]:
        """Columns whose values decide for readers which of two versions of a row stays.

        None where writers merge, or the later commit stays.
        """
        config = self.table.meta_client().getTableConfig()
        by_readers = str(config.getTableType().name()) == TableType.MERGE_ON_READ
        by_value = str(config.getRecordMergeMode().name()) == merging.HUDI_MODES[MergeMode.EVENT_TIME]
        return [str(name) for name in config.getOrderingFields()] if by_readers and by_value else []

    def by_column(self) -> bool:
        """Whether log files hold only some columns of a row (partial updates).

        Columns that a commit did not touch are null in them.
        """
        config = self.table.meta_client().getTableConfig()
        return str(config.getTableType().name()) == TableType.MERGE_ON_READ and bool(
            config.getPartialUpdateMode().isPresent()
        )

    def archived(self) -> frozenset[str]:
        """Requested times of the completed instants that have been archived."""
        if not self.table.has_archive():
            return frozenset()
        instants = self.table.meta_client().getArchivedTimeline().filterCompletedInstants().getInstants()
        return frozenset(str(instant.requestedTime()) for instant in instants)

    # -- files -------------------------------------------------------------------------------------

    def _broken(self, paths: list[str]) -> dict[str, str]:
        if not self._open_files:
            self._errors["open"] = "no file was opened: the check is disabled"
            return {}
        with ThreadPoolExecutor(max_workers=OPENERS) as pool:
            return {path: why for path, why in zip(paths, pool.map(self._open, paths), strict=True) if why}

    def _open(self, path: str) -> str:
        try:
            if path.endswith(".parquet"):
                self._open_parquet(path)
            elif ".log." in path:
                self._open_log(path)
        except Exception as error:
            return reason_of(error)
        return ""

    def _open_parquet(self, path: str) -> None:
        parquet = self._jvm.org.apache.parquet.hadoop
        file = parquet.util.HadoopInputFile.fromPath(
            self.table.storage.path(path), self._spark.sparkContext._jsc.hadoopConfiguration()
        )
        parquet.ParquetFileReader.open(file).close()

    def _open_log(self, path: str) -> None:
        java_path = self._jvm.org.apache.hudi.storage.StoragePath(f"{self.table.path}/{path}")
        storage = self._jvm.org.apache.hudi.storage.HoodieStorageUtils.getStorage(java_path, self.table.storage_conf())
        reader = self._jvm.org.apache.hudi.common.table.log.HoodieLogFormat.newReader(
            storage, self._jvm.org.apache.hudi.common.model.HoodieLogFile(java_path), None
        )
        try:
            while reader.hasNext():
                if str(reader.next().getBlockType().name()) == "CORRUPT_BLOCK":
                    raise ValueError("the log file has a corrupt block")
        finally:
            reader.close()

    # -- etcd --------------------------------------------------------------------------------------

    def _read_keys(self, files: Mapping[str, int]) -> Keys | None:
        if self._keys is None:
            return None
        markers = [match[1] for path in files if (match := _MARKER.match(path))]
        if len(markers) != 1:
            raise ValueError(
                f"the table has {len(markers)} markers in .hoodie/hudi-operator; there must be one, which identifies "
                "its keys in etcd"
            )
        return self._keys(markers[0])


def reason_of(error: BaseException) -> str:
    """One redacted line with the reason of an error; the whole traceback goes to stderr."""
    secrets = environment_secrets()
    print(redact("".join(traceback.format_exception(error)), secrets=secrets), file=sys.stderr, flush=True)
    return classify(error, secrets=secrets).message


def commit(instant: tl.Instant, metadata: Mapping[str, Any]) -> Commit:
    """A Commit from the JSON of Hudi's HoodieCommitMetadata."""
    files: dict[str, int] = {}
    groups: set[str] = set()
    deletes = False
    for partition, stats in (metadata.get("partitionToWriteStats") or {}).items():
        for stat in stats:
            groups.add(f"{partition}/{stat['fileId']}")
            deletes = deletes or int(stat.get("numDeletes") or 0) > 0
            if stat.get("path"):
                files[str(stat["path"])] = max(0, int(stat.get("fileSizeInBytes") or 0))
            files.update({str(path): int(size) for path, size in (stat.get("cdcStats") or {}).items()})
    for partition, replaced in (metadata.get("partitionToReplaceFileIds") or {}).items():
        groups.update(f"{partition}/{file_id}" for file_id in replaced)
        deletes = deletes or bool(replaced)
    return Commit(instant, str(metadata.get("operationType") or ""), files, frozenset(groups), deletes)


def deleted_by(clean: Mapping[str, Any]) -> Iterator[str]:
    """Relative paths that the metadata of a clean list as deleted."""
    for partition, part in (clean.get("partitionMetadata") or {}).items():
        for path in part.get("successDeleteFiles") or []:
            name = str(path).rsplit("/", 1)[-1]
            yield f"{partition}/{name}" if partition else name
