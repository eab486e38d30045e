"""Incremental reads of a Hudi table.

Commits since a position, in one of three orders (hudi_runtime.read.positions).

    reader = Reader(spark, "s3a://lake/flights")
    look = reader.look()
    while pull := look.pull(position, limit=10):
        use(pull.frame)
        position = pull.position        # store it together with the result, in the same commit

A pull returns, for each row that its commits wrote, the newest version among them. For a
MergeOnRead table it returns the row as merged by the table, including data of earlier commits: Hudi
itself merges only what the pulled commits wrote (point-in-time reads by `as.of.instant` use
requested time and change while older writers finish; a snapshot does not). A row that a later
commit changed again may be returned with that commit instead, but is never missed. With
`look.pull(position, deletes=True)` a pull also returns the records that its commits deleted, as
`pull.deletes` (hudi_runtime.read.deletions); a record is either among its rows or
among its deletes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from hudi_contract.outcomes import FailureClass
from hudi_contract.words import TableType
from hudi_runtime.process.errors import PositionLost as PositionLost
from hudi_runtime.process.errors import RuntimeFailure
from hudi_runtime.read import deletions, positions
from hudi_runtime.read.deletions import COMMIT_TIME, ROW
from hudi_runtime.read.positions import Position
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import LAZY, SNAPSHOT, Table, WriteInfo
from hudi_runtime.table.storage import Missing

META_COLUMNS = (
    COMMIT_TIME,
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
MIN_TABLE_VERSION = 8
"""The first table version whose timeline has completion times."""


@dataclass(frozen=True)
class Merges:
    """Properties of the merging of a row's versions.

    `by_readers` (MergeOnRead), and `columns` of several commits in one row (partial updates).

    `options`: Hudi's options for the merge, needed with each read.
    """

    by_readers: bool
    columns: bool
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pull:
    """Rows of some commits: the result of :meth:`ReadSnapshot.pull`."""

    frame: DataFrame
    """For each row that the commits wrote, its newest version among them, without Hudi's own
    columns. From `pull` it is already read and held by Spark.
    """
    position: Position
    """The reader's position after these rows: store it together with the result, in
    the same commit.
    """
    instants: tuple[str, ...]
    """Requested times of the commits, 17 digits in UTC."""
    deletes: DataFrame | None = None
    """Records that are no longer in the table, each in its last version, without Hudi's own
    columns; None: none, or not requested.
    """
    deleting: tuple[str, ...] = ()
    """The instants that have deleted records."""


class Reader:
    """Reads one Hudi table incrementally, in any process with Spark and Hudi; it writes nothing.

    `path`: the table's base path, with its scheme. `merger`: the merger class of a table with
    `spec.merge.mode: Custom`; empty: the class of this process's own table. Raises RuntimeFailure:
    of class Infrastructure when there is no table at the path, of class UserError when the table
    cannot be read incrementally (a table version below 8, no meta fields). Raises the errors of the
    store's client (Py4JJavaError).
    """

    def __init__(self, spark: SparkSession, path: str, *, merger: str = "") -> None:
        self._spark = spark
        self.path = path.rstrip("/")
        self._table = Table(spark, self.path)
        if not self._table.exists():
            raise RuntimeFailure(FailureClass.INFRASTRUCTURE, f"source table {self.path} does not exist")
        config = self._table.meta_client().getTableConfig()
        version = int(config.getTableVersion().versionCode())
        if version < MIN_TABLE_VERSION:
            message = (
                f"source table {self.path} has table version {version}: {MIN_TABLE_VERSION} or newer is needed, "
                "older ones have no completion times"
            )
            raise RuntimeFailure(FailureClass.USER_ERROR, message)
        if not config.populateMetaFields():
            message = (
                f"source table {self.path} has no meta fields (hoodie.populate.meta.fields is false): its rows do "
                "not name their commits"
            )
            raise RuntimeFailure(FailureClass.USER_ERROR, message)
        self._merges = Merges(
            by_readers=str(config.getTableType().name()) == TableType.MERGE_ON_READ,
            columns=bool(config.getPartialUpdateMode().isPresent()),
            options=self._table.read_options(class_name=merger),
        )

    def look(self) -> ReadSnapshot:
        """The table as it is now.

        All pulls of one snapshot together return the commits that were completed then,
        and nothing newer.

        Raises TimelineError when the timeline is ambiguous, and the errors of the store's client
        (Py4JJavaError).
        """
        first = self._table.timeline()
        return ReadSnapshot(
            self._spark, self._table, positions.stable(first, self._table.timeline()), merges=self._merges
        )

    def require_deletes(self) -> None:
        """Raises RuntimeFailure of class UserError when the deletions of this table cannot be read.

        Call it before `pull(deletes=True)`.
        """
        why = deletions.problem(self._table.meta_client().getTableConfig())
        if why:
            raise RuntimeFailure(FailureClass.USER_ERROR, f"deletions of {self.path} cannot be read: {why}")


class ReadSnapshot:
    """One state of the timeline, and the reads of it: the result of :meth:`Reader.look`.

    `timeline` is internal to the runtime.
    """

    def __init__(self, spark: SparkSession, table: Table, timeline: tl.Timeline, *, merges: Merges) -> None:
        self._spark = spark
        self._table = table
        self._written: dict[str, WriteInfo] = {}
        self._archived: tuple[tl.Instant, ...] | None = None
        self._merges = merges
        self.timeline = timeline

    def latest(self, position: Position) -> Position:
        """The position of a reader that skips all present commits.

        `position` gives only the order.
        """
        return position.advance(position.ready(self.timeline), self.timeline)

    def require_kept(self, position: Position) -> None:
        """Raises PositionLost when the last commit before the position is no longer in the table.

        A restore has undone rows that were returned. `pull` asks this of each position that a pull
        has returned, or `positions.parse`.
        """
        known = (
            *(i for i in self.timeline.instants if not i.pending and i.action in tl.WRITE_ACTIONS),
            *self._known_archived(),
        )
        undone = position.undone(known)
        if undone:
            raise PositionLost(
                f"{self._table.path} was read up to the commit of {undone}, which is no longer in the table: it was "
                "restored to an earlier state"
            )

    def pull(self, position: Position, *, limit: int | None = None, deletes: bool = False) -> Pull | None:
        """Rows of the next `limit` commits (None: all); None when there are none.

        The rows are already read and held by Spark.

        `deletes`: also return the records that they deleted. More than `limit` commits are returned
        together when a file of the first ones was cleaned because later ones replaced it. Raises
        PositionLost when commits were archived, or when their files are gone, or when a restore has
        undone a commit before the position; with `deletes`, also when files are gone that are
        needed to find the deleted records.
        """
        if position.given:
            self.require_kept(position)
        lost = self._archived_wanted(position)
        if lost:
            raise PositionLost(
                f"{len(lost)} commits of {self._table.path} after the position {_told(position)} were archived, the "
                f"last one {lost[-1]}"
            )
        taken: list[tl.Instant] = []
        missing, rows = "", 0
        ready = position.ready(self.timeline)
        self._read_metadata(ready)
        for instant in ready:
            taken.append(instant)
            rows += self._written[instant.requested].carries_rows
            if rows and (len(taken) == len(ready) or (limit is not None and rows >= limit)):
                frame, missing = self._read(taken, position)
                if frame is not None:
                    return self._pulled(taken, frame, position, deletes=deletes)
        if missing:
            raise PositionLost(
                f"{missing} of {self._table.path}, written after the position {_told(position)}, was cleaned"
            )
        return None

    def _pulled(self, taken: Sequence[tl.Instant], frame: DataFrame, position: Position, *, deletes: bool) -> Pull:
        writes = [(instant, self._written[instant.requested]) for instant in taken]
        gone = None
        if deletes:
            ways = deletions.Ways(self._runs_of, self._missing, self._names_in, self._known_archived)
            gone = deletions.Deletions(self._spark, self._table, self.timeline, ways).rows(writes, given=frame)
        deleting = tuple(instant.requested for instant, write in writes if deletions.deleting(write))
        given = tuple(instant.requested for instant in taken)
        return Pull(
            _plain(frame),
            position.advance(taken, self.timeline),
            given,
            None if gone is None else _plain(gone),
            deleting,
        )

    def snapshot(self, position: Position) -> Pull | None:
        """Every row of the table in this snapshot, whatever was archived or cleaned before.

        None for a table without commits.

        `position` gives only the order. Rows whose newest version is from a later commit are left
        out: the following pulls return them.
        """
        ready = type(position)().ready(self.timeline)
        if not ready:
            return None
        return Pull(
            _plain(self._state(position)), self.latest(type(position)()), tuple(sorted(i.requested for i in ready))
        )

    def _state(self, position: Position) -> DataFrame:
        """The table without rows whose newest version is from a commit outside this snapshot."""
        given = {i.requested for i in type(position)().ready(self.timeline)}
        later = [
            i.requested for i in self.timeline.instants if i.action in tl.WRITE_ACTIONS and i.requested not in given
        ]
        newest = max(i.requested for i in self.timeline.instants)
        frame = self._load().where(col(COMMIT_TIME) <= newest)
        return frame.where(~col(COMMIT_TIME).isin(later)) if later else frame

    def empty(self) -> DataFrame:
        """No rows, with the columns of the table."""
        return _plain(self._load(LAZY)).limit(0)

    def _load(self, options: Mapping[str, str] | None = None) -> DataFrame:
        return (
            self._spark.read.format("hudi")
            .options(**{**SNAPSHOT, **self._merges.options, **(options or {})})
            .load(self._table.path)
        )

    def _read(self, taken: Sequence[tl.Instant], position: Position) -> tuple[DataFrame | None, str]:
        """Rows of these commits, held by Spark, with Hudi's own columns.

        Or None, and a missing file.

        For cleaned files Hudi silently reads the newest state instead. So the files are checked
        again after the rows were read.
        """
        missing = ""
        for files, rows in self._ways(taken, position):
            missing = self._missing(files)
            if missing:
                continue
            frame = rows().localCheckpoint()
            missing = self._missing(files)
            if not missing:
                return frame, ""
        return None, missing

    def _ways(
        self, taken: Sequence[tl.Instant], position: Position
    ) -> Iterator[tuple[list[str], Callable[[], DataFrame]]]:
        """Ways to read, in order of preference: the files that each needs, and the rows.

        For a table that readers merge, the commits determine the rows, and the table their present
        values. A compaction hides a commit's write of a row when the version of another commit
        stayed: so the commits before and after it are read separately. If their files were cleaned,
        the files of the compaction replace them, unless the columns of each commit matter.
        """
        whole = _span(self.timeline, taken)
        self._read_metadata(whole)
        if not self._merges.by_readers:
            yield self._needed(whole), lambda: self._frame(taken)
            return
        runs = self._runs(taken)
        yield (
            sorted({path for run in runs for path in self._needed(run)}),
            lambda: self._merged([self._frame(run) for run in runs], position),
        )
        if not self._merges.columns:
            yield self._needed(whole), lambda: self._merged([self._frame(taken)], position)

    def _merged(self, written: Sequence[DataFrame], position: Position) -> DataFrame:
        """The present rows of the table with the keys of those frames.

        The keys are computed first: a plan that reads a table several times sometimes fails in Hudi
        1.2.0 (columnar batches, see audit/rows.py).
        """
        keys = reduce(DataFrame.unionByName, [frame.select(*ROW).localCheckpoint() for frame in written]).distinct()
        return self._state(position).join(keys, list(ROW), "left_semi")

    def _runs(self, taken: Sequence[tl.Instant]) -> list[list[tl.Instant]]:
        """The commits that carry rows, in runs without any other completed instant in between."""
        whole = _span(self.timeline, taken)
        self._read_metadata(whole)
        return _runs(whole, {i.requested for i in taken if self._written[i.requested].carries_rows})

    def _runs_of(self, taken: Sequence[tl.Instant]) -> Iterator[tuple[list[str], Callable[[], DataFrame]]]:
        """The writes of these commits, run by run: the files that each needs, and the rows."""
        for run in self._runs(taken):
            yield self._needed(run), lambda run=run: self._frame(run)  # type: ignore[misc]

    def _frame(self, taken: Sequence[tl.Instant]) -> DataFrame:
        begin, end = _before(min(i.completion for i in taken)), max(i.completion for i in taken)
        options = {
            "hoodie.datasource.query.type": "incremental",
            # It lists the files of its commits, and not the table; which are gone is looked at.
            **LAZY,
            # Completion times; the begin is exclusive, the end inclusive.
            "hoodie.datasource.read.begin.instanttime": begin,
            "hoodie.datasource.read.end.instanttime": end,
        }
        return self._load(options).where(col(COMMIT_TIME).isin([i.requested for i in taken]))

    # ---- existence of commits and files

    def _known_archived(self) -> tuple[tl.Instant, ...]:
        if self._archived is None:
            self._archived = self._table.archived_instants() if self._table.has_archive() else ()
        return self._archived

    def _archived_wanted(self, position: Position) -> list[str]:
        wanted = tuple(i for i in self._known_archived() if position.wants(i) and i.action in tl.WRITE_ACTIONS)
        if not wanted:
            return []
        return sorted(i.requested for i, info in self._table.archived_written(wanted) if info.carries_rows)

    def _read_metadata(self, instants: Iterable[tl.Instant]) -> None:
        unread = tuple(i for i in instants if i.requested not in self._written)
        try:
            for instant, info in self._table.written(unread) if unread else ():
                self._written[instant.requested] = info
        except Missing as error:
            raise RuntimeFailure(
                FailureClass.INFRASTRUCTURE, f"{error} of {self._table.path} was archived during the look"
            ) from error

    def _needed(self, span: Sequence[tl.Instant]) -> list[str]:
        return needed_files(self._written[i.requested] for i in span)

    def _missing(self, files: Iterable[str]) -> str:
        """The first of these files that is missing; empty when all exist."""
        found: dict[str, frozenset[str]] = {}
        for path in files:
            folder, _, name = path.rpartition("/")
            if folder not in found:
                found[folder] = self._names_in(folder)
            if name not in found[folder]:
                return path
        return ""

    def _names_in(self, folder: str) -> frozenset[str]:
        try:
            return frozenset(self._table.storage.names(folder))
        except Missing:
            return frozenset()


def _span(timeline: tl.Timeline, taken: Sequence[tl.Instant]) -> list[tl.Instant]:
    """All writes that completed from the first of these commits to the last, in that order."""
    begin, end = min(i.completion for i in taken), max(i.completion for i in taken)
    return [i for i in timeline.completed if i.action in tl.WRITE_ACTIONS and begin <= i.completion <= end]


def _runs(span: Sequence[tl.Instant], chosen: Collection[str]) -> list[list[tl.Instant]]:
    """The chosen instants, in runs without any other completed instant in between."""
    pieces: list[list[tl.Instant]] = [[]]
    for instant in span:
        if instant.requested in chosen:
            pieces[-1].append(instant)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def needed_files(writes: Iterable[WriteInfo]) -> list[str]:
    """Files, relative to the table, that a read of these writes (in order of completion) opens.

    A base file replaces all files before it.
    """
    needed: dict[tuple[str, str], list[str]] = {}
    for write in writes:
        for group in write.replaced:
            needed.pop(group, None)
        for group, path in write.files:
            is_log = path.rpartition("/")[2].startswith(".")
            needed[group] = [*needed.get(group, []), path] if is_log else [path]
    return sorted(path for paths in needed.values() for path in paths)


def _plain(frame: DataFrame) -> DataFrame:
    return frame.drop(*META_COLUMNS)


def _before(time: str) -> str:
    """The instant time one millisecond before."""
    padded = time.ljust(17, "0")
    moment = (
        datetime.strptime(padded[:14], "%Y%m%d%H%M%S")  # noqa: DTZ007 - a string computation
        + timedelta(milliseconds=int(padded[14:]) - 1)
    )
    return moment.strftime("%Y%m%d%H%M%S") + f"{moment.microsecond // 1000:03d}"


def _told(position: Position) -> str:
    return ", ".join(
        f"{name} {value}" for name, value in position.checkpoint().items() if name not in ("order", "ahead")
    )
