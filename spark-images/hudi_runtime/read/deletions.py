"""Records that commits of a table have deleted (docs/use/sources.md, Deletes).

They are for readers that carry deletions over.

Hudi keeps no list of deleted records. They are found in three places:

* a base file that replaces another one: the records of the old file that the new one lacks;
* a log file: its delete blocks list the keys;
* file groups that a commit replaced (a deleted or overwritten partition): all their records.

A record that the table contains at the time of the read is not a deletion: it was inserted again,
or the deletion lost against a newer version. For a deleted record its last version is returned, so
that a reader can derive key, partition and ordering values from it. When a file with this
information was cleaned, the position is lost; the deletions are never silently skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from hudi_contract.outcomes import FailureClass
from hudi_contract.words import MergeMode, TableType
from hudi_runtime.job.merging import HUDI_MODES
from hudi_runtime.process.errors import PositionLost, RuntimeFailure
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import SNAPSHOT, Table, WriteInfo
from hudi_runtime.table.values import DELETED as DELETED

COMMIT_TIME = "_hoodie_commit_time"
ROW = ("_hoodie_record_key", "_hoodie_partition_path")
"""Columns that identify a row."""
Group = tuple[str, str]
"""Partition and file group."""


@dataclass(frozen=True)
class Plan:
    """The files in which the deletions of some commits are found."""

    before: frozenset[str] = frozenset()
    """Base files with the rows before those commits."""
    after: frozenset[str] = frozenset()
    """The last base files that the commits wrote in their place."""
    logs: tuple[tuple[tl.Instant, Group, str], ...] = ()
    """Log files with delete blocks, and the commit of each."""
    replaced: tuple[tuple[tl.Instant, Group], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.before or self.logs or self.replaced)


def plan(writes: Iterable[tuple[tl.Instant, WriteInfo]]) -> Plan:
    """Find the files with the deletions of these commits.

    A base file that one of these commits wrote holds no rows that were returned before, except
    those of its predecessor: so the predecessor is used.
    """
    ordered = sorted(((i, w) for i, w in writes if w.carries_rows), key=lambda pair: pair[0].completion)
    written = {path for _, write in ordered for _, path in write.files}
    replaced_by = {change.path: change.before for _, write in ordered for change in write.changes}
    last: dict[Group, str] = {}
    before: dict[Group, set[str]] = {}
    logs = []
    for instant, write in ordered:
        last |= {group: path for group, path in write.files if not is_log(path)}
        for change in write.changes:
            if not change.deletes:
                continue
            if is_log(change.path):
                logs.append((instant, change.group, change.path))
                continue
            old = change.before
            while old in written:
                old = replaced_by.get(old, "")
            if old:
                before.setdefault(change.group, set()).add(old)
    replaced = tuple((instant, group) for instant, write in ordered for group in sorted(write.replaced))
    after = frozenset(last[group] for group in before)
    return Plan(frozenset(path for paths in before.values() for path in paths), after, tuple(logs), replaced)


def deleting(write: WriteInfo) -> bool:
    """Whether a commit has deleted records or replaced file groups, according to its metadata."""
    return write.carries_rows and (bool(write.replaced) or any(change.deletes for change in write.changes))


def is_log(path: str) -> bool:
    """Whether a data file is a log file."""
    return path.rpartition("/")[2].startswith(".")


@dataclass(frozen=True)
class Slice:
    """A file group before a commit.

    Its base file (empty: none), and the commits that wrote log files after it.
    """

    base: str = ""
    logged: tuple[tl.Instant, ...] = ()
    archived: str = ""
    """A log file whose commit was archived."""

    def __bool__(self) -> bool:
        return bool(self.base or self.logged)


def slice_before(
    commit: tl.Instant,
    group: Group,
    *,
    names: Iterable[str],
    timeline: tl.Timeline,
    archived: Callable[[], Iterable[tl.Instant]] = tuple,
) -> Slice:
    """The file group before a completed commit, from the file names in the folder of its partition.

    A log file belongs to the base file that was begun last before the log's commit completed. The
    archive is asked for an instant that is not in the active timeline; one that neither has, and
    that is older than the timeline, completed long ago.
    """
    partition, file_id = group
    bases: dict[str, str] = {}
    logs: dict[str, str] = {}
    for name in names:
        found = _named(name)
        if found is not None and found[0] == file_id:
            (logs if is_log(name) else bases)[found[1]] = name
    times = {*bases, *logs}
    unknown = {time for time in times if timeline.get(time) is None}
    old = {i.requested: i for i in archived() if i.requested in unknown} if unknown else {}
    known = {time: one for time in times if (one := timeline.get(time) or old.get(time)) is not None}

    def completed_before(time: str) -> bool:
        if time not in known:
            return time < timeline.earliest
        return not known[time].pending and known[time].completion < commit.completion

    began = max(filter(completed_before, bases), default="")
    logged, gone = [], ""
    for time in sorted(logs):
        if time not in known:
            gone = logs[time] if began < time < timeline.earliest else gone
        elif completed_before(time) and began < known[time].completion:
            gone = logs[time] if time in old else gone
            logged += [] if time in old else [known[time]]
    base = bases.get(began, "")
    return Slice(f"{partition}/{base}" if base and partition else base, tuple(logged), gone)


def _named(name: str) -> tuple[str, str] | None:
    """File group and requested time of a data file.

    None for others (also log files of Hudi's change capture).
    """
    parts = name.lstrip(".").split("_")
    if is_log(name) and ".log." in name and len(parts) >= 2 and not name.endswith("cdc"):
        return parts[0], parts[1].split(".")[0]
    if not is_log(name) and name.endswith(".parquet") and len(parts) == 3:
        return parts[0], parts[2].split(".")[0]
    return None


@dataclass(frozen=True)
class Ways:
    """Read functions of a snapshot: rows that commits wrote, with the files needed.

    The first missing one of some files; names in a folder; writes that were archived.
    """

    written: Callable[[Sequence[tl.Instant]], Iterator[tuple[list[str], Callable[[], DataFrame]]]]
    missing: Callable[[Iterable[str]], str]
    names: Callable[[str], frozenset[str]]
    archived: Callable[[], Iterable[tl.Instant]]


@dataclass
class _Before:
    """Earlier states of file groups.

    Base files, and the commits that wrote log files after them.
    """

    bases: set[str] = field(default_factory=set)
    logged: set[tl.Instant] = field(default_factory=set)


class Deletions:
    """Reads the records that commits of one table have deleted."""

    def __init__(self, spark: SparkSession, table: Table, timeline: tl.Timeline, ways: Ways) -> None:
        self._spark = spark
        self._table = table
        self._timeline = timeline
        self._ways = ways
        self._names: dict[str, frozenset[str]] = {}

    def rows(self, writes: Sequence[tuple[tl.Instant, WriteInfo]], *, given: DataFrame) -> DataFrame | None:
        """The last versions of the records that these commits deleted, held by Spark.

        None when they deleted nothing.

        `given`: the rows that the same pull returns (with Hudi's own columns). Raises PositionLost.
        """
        wanted = plan(writes)
        if not wanted:
            return None
        self._columns = self._spark.read.format("hudi").options(**SNAPSHOT).load(self._table.path).schema
        config = self._table.meta_client().getTableConfig()
        self._ordering = (
            [str(name) for name in config.getOrderingFields()]
            if str(config.getRecordMergeMode().name()) == HUDI_MODES[MergeMode.EVENT_TIME]
            else []
        )
        gone = [
            *self._replaced_rows(wanted),
            *self._replaced_groups(wanted),
            *(self._logged(wanted) if wanted.logs else ()),
        ]
        if not gone:
            return None
        found = self._newest(reduce(DataFrame.unionByName, gone)).localCheckpoint()
        keys = found.select(*ROW).localCheckpoint()
        now = self._spark.read.format("hudi").options(**SNAPSHOT).load(self._table.path).select(*ROW)
        there = now.join(keys, list(ROW), "left_semi").localCheckpoint()
        return (
            found.join(there, list(ROW), "left_anti").join(given.select(*ROW), list(ROW), "left_anti").localCheckpoint()
        )

    def _replaced_rows(self, wanted: Plan) -> list[DataFrame]:
        """Rows of the files before that are not in the files after.

        A cleaned file after was replaced in turn: the present table then decides.
        """
        if not wanted.before:
            return []
        self._require(wanted.before)
        rows = self._held(wanted.before, [self._base_rows(wanted.before)])
        there = [path for path in sorted(wanted.after) if not self._ways.missing([path])]
        if there:
            rows = rows.join(self._base_rows(there).select(*ROW), list(ROW), "left_anti")
        return [rows]

    def _replaced_groups(self, wanted: Plan) -> list[DataFrame]:
        found = _Before()
        for commit, group in wanted.replaced:
            if not self._add(found, commit, group):
                raise PositionLost(
                    f"file group {group[1]} in partition {group[0]} of {self._table.path} was replaced by "
                    f"{commit.requested} and then cleaned"
                )
        partitions = sorted({partition for _, (partition, _) in wanted.replaced})
        return [part.where(f.col(ROW[1]).isin(partitions)) for part in self._before(found)]

    def _logged(self, wanted: Plan) -> list[DataFrame]:
        """Earlier rows of the keys in delete blocks.

        A key without an earlier row had nothing to delete.
        """
        paths = sorted({path for _, _, path in wanted.logs})
        self._require(paths)
        keys = [(key, partition) for _, (partition, _), path in wanted.logs for key in self._delete_block_keys(path)]
        found = _Before()
        for commit, group, _ in wanted.logs:
            self._add(found, commit, group)
        if not keys:
            return []
        named = self._spark.createDataFrame(keys, f"{ROW[0]} string, {ROW[1]} string").distinct().localCheckpoint()
        rows = self._before(found, only=named)
        self._require(paths)
        known = [part.select(*ROW) for part in rows]
        unknown = named.join(reduce(DataFrame.unionByName, known), list(ROW), "left_anti") if known else named
        if not unknown.isEmpty() and any(instant.action == "clean" for instant in self._table.timeline().pending):
            message = f"files of {self._table.path} are being cleaned: deletions can be read when the clean has ended"
            raise RuntimeFailure(FailureClass.INFRASTRUCTURE, message)
        return rows

    def _add(self, found: _Before, commit: tl.Instant, group: Group) -> bool:
        """Add the state of a file group before a commit; False when it did not exist."""
        if group[0] not in self._names:
            self._names[group[0]] = self._ways.names(group[0])
        before = slice_before(
            commit, group, names=self._names[group[0]], timeline=self._timeline, archived=self._ways.archived
        )
        if before.archived:
            raise PositionLost(
                f"the commit that wrote {before.archived} of {self._table.path} was archived, and {commit.requested} "
                "has deleted its rows"
            )
        if before.base:
            found.bases.add(before.base)
        found.logged.update(before.logged)
        return bool(before)

    def _before(self, found: _Before, *, only: DataFrame | None = None) -> list[DataFrame]:
        """All versions of the rows, held by Spark; `only`: the rows with these keys.

        They are merged later.
        """
        self._require(found.bases)
        files, parts = list(found.bases), [self._base_rows(found.bases)] if found.bases else []
        for needed, rows in self._ways.written(sorted(found.logged)) if found.logged else ():
            files.extend(needed)
            parts.append(self._aligned(rows()))
        if not parts:
            return []
        return [
            self._held(files, [part if only is None else part.join(only, list(ROW), "left_semi") for part in parts])
        ]

    def _held(self, files: Iterable[str], parts: Sequence[DataFrame]) -> DataFrame:
        """The rows of `parts`, held by Spark; the files that they need existed before and after.

        One by one: see `ReadSnapshot._merged`.
        """
        needed = sorted(set(files))
        self._require(needed)
        held = reduce(DataFrame.unionByName, [part.localCheckpoint() for part in parts])
        self._require(needed)
        return held

    def _require(self, files: Iterable[str]) -> None:
        missing = self._ways.missing(files)
        if missing:
            raise PositionLost(
                f"{missing} of {self._table.path} was cleaned: it is needed to find records deleted after the position"
            )

    def _base_rows(self, paths: Iterable[str]) -> DataFrame:
        """Rows of base files with the columns of the table. Files of one commit have one schema."""
        by_commit: dict[str, list[str]] = {}
        for path in sorted(paths):
            by_commit.setdefault(path.rpartition("_")[2], []).append(f"{self._table.path}/{path}")
        reader = self._spark.read.option("__globPaths__", "false")  # a partition may have any name
        return reduce(DataFrame.unionByName, [self._aligned(reader.parquet(*part)) for part in by_commit.values()])

    def _aligned(self, frame: DataFrame) -> DataFrame:
        """`frame` with the columns of the table; columns that an older file lacks are null."""
        present = set(frame.columns)
        columns = self._columns.fields
        return frame.select(
            [
                (f.col(f"`{c.name}`") if c.name in present else f.lit(None)).cast(c.dataType).alias(c.name)
                for c in columns
            ]
        )

    def _newest(self, rows: DataFrame) -> DataFrame:
        """One version of each record, chosen by the table's merge."""
        order = [f.col(name).desc_nulls_last() for name in (*self._ordering, COMMIT_TIME)]
        rank = f.row_number().over(Window.partitionBy(*ROW).orderBy(*order))
        return rows.withColumn("_hudiop_rank", rank).where("_hudiop_rank = 1").drop("_hudiop_rank")

    def _delete_block_keys(self, path: str) -> Iterator[str]:
        """Record key of each record that a log file deletes."""
        jvm: Any = self._spark.sparkContext._jvm
        log_file = jvm.org.apache.hudi.common.model.HoodieLogFile(f"{self._table.path}/{path}")
        reader = jvm.org.apache.hudi.common.table.log.HoodieLogFormat.newReader(
            self._table.meta_client().getStorage(), log_file, None
        )
        try:
            while reader.hasNext():
                block = reader.next()
                if str(block.getBlockType().name()) == "DELETE_BLOCK":
                    # One call for all: an element costs several round trips to the JVM otherwise.
                    said = jvm.org.apache.hudi.common.util.JsonUtils.toString(block.getRecordsToDelete())
                    yield from (str(record["hoodieKey"]["recordKey"]) for record in json.loads(str(said)))
        finally:
            reader.close()


def problem(config: Any) -> str:
    """The reason why the deletions of a table cannot be read; empty when they can."""
    if (
        str(config.getTableType().name()) == TableType.MERGE_ON_READ
        and str(config.getRecordMergeMode().name()) == HUDI_MODES[MergeMode.CUSTOM]
    ):
        return "its record merger decides about deletions at each read"
    if str(config.getBaseFileFormat().name()) != "PARQUET" or bool(config.isMultipleBaseFileFormatsEnabled()):
        return "its base files are not Parquet"
    if bool(config.getBootstrapBasePath().isPresent()):
        return "it was bootstrapped: its base files may be elsewhere"
    if bool(config.shouldDropPartitionColumns()):
        return "its files do not have the partition columns (hoodie.datasource.write.drop.partition.columns)"
    return ""
