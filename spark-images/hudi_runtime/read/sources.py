"""Sources: the input of each commit, and the checkpoint that is stored in it."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import lit, when

from hudi_contract import naming
from hudi_contract.job import Validation
from hudi_contract.words import Operation
from hudi_runtime.job.job import FilesSource, HudiSource, JdbcSource, Job, KafkaSource, PythonSource, SqlSource
from hudi_runtime.process.errors import UserCodeError, user_error
from hudi_runtime.read import delete_partition, files, jdbc, kafka, positions, remove_duplicates
from hudi_runtime.read import progress as pg
from hudi_runtime.read.bad_records import BadRecords
from hudi_runtime.read.context import Context
from hudi_runtime.read.deletions import DELETED
from hudi_runtime.read.incremental import META_COLUMNS, PositionLost, Pull, Reader, ReadSnapshot
from hudi_runtime.read.manifests import Manifests
from hudi_runtime.read.update import Base, Update
from hudi_runtime.table.hudi import SNAPSHOT, Table

VIEW = "source"
"""The view that `transform.sql` reads."""
ONE_BATCH = "with operation InsertOverwrite, a second batch would replace the first"
COMMITTED = "the first one is already committed"


@dataclass(frozen=True)
class Batch:
    """The input of one commit, with the progress after that commit."""

    frame: DataFrame | Update
    checkpoint: dict[str, object]
    digest: str
    done: pg.Progress
    """The writer's progress after the commit."""
    waiting: int = 0
    """Backlog that remains for later commits: files, commits of the other table,
    offsets of Kafka, about that many rows of a database.
    """
    base: Base | None = None
    """Base of the rows of the writer's own table that the frame may be made from; None: no rows
    were read, or the frame is an Update.
    """
    deletes: bool = False
    """Whether deleted rows are marked in the column `_hoodie_is_deleted`, which the transform must
    then keep.
    """
    options: Mapping[str, str] = field(default_factory=dict)
    """More options of its write."""
    bad: BadRecords | None = None
    """Records of Kafka that the frame leaves out, and those that the write may leave out; None:
    the write fails at the first one.
    """
    beginning: bool = False
    """Whether it only stores where the source begins: it has no rows, and is not validated."""
    blame: Callable[[Exception], Exception | None] = lambda _: None
    """Asks the source for a better error when a write has failed: the error if the batch itself is
    at fault, else None.
    """

    def validations(self, job: Job) -> tuple[Validation, ...]:
        """The validations of a job that the batch must pass."""
        return () if self.beginning else job.validations


def batches(
    spark: SparkSession,
    job: Job,
    table: Table,
    context: Context,
    done: pg.Progress,
    *,
    looking_up: Callable[[], AbstractContextManager[None]] = nullcontext,
    manifests: Callable[[Table, str], Manifests] = pg.manifests_of,
) -> Iterator[Batch]:
    """All input that this writer has not committed yet, one batch per commit.

    `looking_up`: `Session.looking_up`, for what the runtime reads of the table itself.

    `manifests`: those of a table and a writer, which are the same for all looks of an attempt.
    """
    if job.operation == Operation.REMOVE_DUPLICATES:
        yield from _doubled(spark, job, done, looking_up)
    elif job.operation == Operation.DELETE_PARTITION:
        yield from _partitions(spark, job, done, looking_up)
    elif isinstance(job.source, FilesSource) and job.overwrites:
        yield from _every_file(spark, job, job.source, done)
    elif isinstance(job.source, FilesSource):
        yield from _file_batches(spark, job, job.source, table, done, manifests)
    elif isinstance(job.source, HudiSource):
        yield from _hudi_batches(spark, job.source, done)
    elif isinstance(job.source, KafkaSource):
        yield from _kafka_batches(spark, job.source, done)
    elif isinstance(job.source, JdbcSource):
        yield from _jdbc_batches(spark, job.source, run=job.run, done=done)
    elif isinstance(job.source, PythonSource):
        yield from _python_batches(spark, job.source, context, job, done)
    elif isinstance(job.source, SqlSource):
        yield from _sql_batches(spark, job.source, table, run=job.run, done=done)
    else:
        raise UserCodeError("the job has neither a source nor an application")


def transform(frame: DataFrame, sql: str | None) -> DataFrame:
    """The user's SELECT over the view `source`."""
    return over({VIEW: frame}, sql, "transform.sql") if sql else frame


def over(views: Mapping[str, DataFrame], sql: str, field: str) -> DataFrame:
    """The rows of one query over these views, in the session of their rows.

    A program may have created another session, and views belong to a session (F96). Its own views
    stay unchanged. They are not replaced by Spark's own means, which remove the rows of the view
    before from the cache: the program may still use them (F167).
    """
    session: Any = next(iter(views.values())).sparkSession
    catalog = session._jsparkSession.sessionState().catalog()
    own = {name: catalog.getRawTempView(name) for name in views}
    try:
        for name, frame in views.items():
            catalog.dropTempView(name)
            frame.createTempView(name)
        return query(session, sql, field)
    finally:
        for name, view in own.items():
            catalog.dropTempView(name)
            if view.isDefined():
                catalog.createTempView(name, view.get(), True)


def query(spark: SparkSession, sql: str, field: str) -> DataFrame:
    """The rows of one query over views. Raises UserCodeError for anything else (F133).

    It is judged as Spark's parser reads it, before it is analyzed: analysis runs commands, and
    evaluates some functions.
    """
    jvm: Any = spark.sparkContext._jvm
    problem = str(jvm.io.hudioperator.statements.QueryRules.problem(spark._jsparkSession, sql))
    if problem:
        raise UserCodeError(f"{field}: {problem}; it must be one query over its views")
    return spark.sql(sql)


def _file_batches(
    spark: SparkSession,
    job: Job,
    source: FilesSource,
    table: Table,
    done: pg.Progress,
    manifests_of: Callable[[Table, str], Manifests] = pg.manifests_of,
) -> Iterator[Batch]:
    previous = progress = done
    manifests = manifests_of(table, job.writer)
    chunks = pg.chunks(files.listed(spark, source.paths, wait=job.interval is not None), progress, source.max_files)
    waiting = sum(len(chunk) for chunk in chunks)
    for chunk in chunks:
        waiting -= len(chunk)
        frame, blame = _of_files(spark, source, [item.path for item in chunk])
        progress = pg.advance(progress, chunk)
        if frame is None:
            continue  # the progress of the next commit includes its files
        known, manifest = manifests.write(progress.files)
        progress = replace(progress, files=known)
        yield Batch(frame, progress.checkpoint(manifest=manifest), progress.digest, progress, waiting, blame=blame)
        manifests.prune(previous.files, progress.files)
        previous = progress


def _every_file(spark: SparkSession, job: Job, source: FilesSource, done: pg.Progress) -> Iterator[Batch]:
    """The rows of all files in one commit, unless this run has made it; none without a row.

    An overwrite has no memory of files: the rows of a new one alone would replace those of the
    files before it (F490).
    """
    if done.run == job.run:
        return
    paths = [item.path for item in files.listed(spark, source.paths)]
    if not paths:
        return
    frame, blame = _of_files(spark, source, paths)
    if frame is not None:
        yield replace(_counted(frame, pg.batches_checkpoint(job.run, 1)), blame=blame)


def _of_files(
    spark: SparkSession, source: FilesSource, paths: list[str]
) -> tuple[DataFrame | None, Callable[[Exception], Exception | None]]:
    """The rows of these files, None without one, and what finds out which of them is bad."""
    blame = partial(files.blamed, spark, source, paths)
    try:
        frame = files.read(spark, source, paths)
        nothing = files.is_empty(frame, source)
    except Exception as error:
        raise blame(error) or error from error
    return None if nothing else frame, blame


def _hudi_batches(spark: SparkSession, source: HudiSource, done: pg.Progress) -> Iterator[Batch]:
    """Commits to the source table since this writer's last commit.

    They come from one snapshot, so that a run ends.
    """
    reader = Reader(spark, source.path, merger=source.merger)
    if source.deletes:
        reader.require_deletes()
    look = reader.look()
    count, position = done.count, _stored_position(source, done)
    if position is None and source.start_from == "Latest":
        # A commit without rows stores the position: progress is kept only in the target's timeline.
        position = look.latest(positions.ORDERS[source.order]())
        yield replace(_hudi_batch(source, Pull(look.empty(), position, ()), count=count, waiting=0), beginning=True)
    while pull := _next_pull(source, look, position):
        count, position = count + len(pull.instants), pull.position
        yield _hudi_batch(source, pull, count=count, waiting=len(position.ready(look.timeline)))


def _next_pull(source: HudiSource, look: ReadSnapshot, position: positions.Position | None) -> Pull | None:
    """The next commits of the source.

    When the first commits are gone, the whole table is read first; when later ones are gone, only
    if configured.
    """
    start = position or _first_position(source)
    try:
        return look.pull(start, limit=source.max_commits, deletes=source.deletes)
    except PositionLost as error:
        if (position is None and source.start_from == "Earliest") or source.if_lost == "Snapshot":
            return look.snapshot(start)
        aside = " and deletes: Ignore (deleted records then stay in this table)" if source.deletes else ""
        raise PositionLost(
            f"{error}; ifPositionLost: Snapshot{aside} reads the whole table once and continues from there"
        ) from error


def _first_position(source: HudiSource) -> positions.Position:
    if source.start_from in ("Earliest", "Latest"):
        return positions.ORDERS[source.order]()
    return positions.ByCompletion(source.start_from)


def _stored_position(source: HudiSource, done: pg.Progress) -> positions.Position | None:
    """The position of this writer's last commit; None before its first one.

    Raises UserCodeError when that commit read another source.
    """
    if not done.digest:
        return None
    if done.hudi is None:
        raise UserCodeError(
            f"source.hudi: this writer's last commit {done.instant} came from a source of another kind; use another "
            "HudiWriter"
        )
    path, order = done.hudi.get("path"), done.hudi.get("order")
    if path != source.path:
        raise UserCodeError(
            f"source.hudi: this writer has read {path} until now and cannot continue with {source.path}; use another "
            "HudiWriter"
        )
    if order != source.order:
        raise UserCodeError(
            f"source.hudi.order: this writer's position is in order {order} and cannot become {source.order}; use "
            "another HudiWriter"
        )
    return positions.parse(done.hudi)


def _hudi_batch(source: HudiSource, pull: Pull, *, count: int, waiting: int) -> Batch:
    checkpoint = pg.hudi_checkpoint(count, source.path, pull.position.checkpoint())
    if source.deletes:
        return replace(_counted(marked(pull), checkpoint, waiting), deletes=True)
    if pull.deleting:
        commits = f"{len(pull.deleting)} of {len(pull.instants)} commits, the last one {pull.deleting[-1]}"
        print(
            f"source.hudi.deletes is Ignore: {commits}, have deleted records of {source.path}; they stay in this table",
            file=sys.stderr,
            flush=True,
        )
    return _counted(pull.frame, checkpoint, waiting)


def marked(pull: Pull) -> DataFrame:
    """The rows of a pull and the deleted records, distinguished by `_hoodie_is_deleted`."""
    rows = pull.frame.withColumn(DELETED, _mark(False))
    return rows if pull.deletes is None else rows.unionByName(pull.deletes.withColumn(DELETED, _mark(True)))


def _mark(deleted: bool) -> Column:
    """A nullable column: batches of other writers do not have it."""
    return when(lit(True), lit(deleted))


def _counted(
    frame: DataFrame | Update, checkpoint: dict[str, object], waiting: int = 0, *, base: Base | None = None
) -> Batch:
    """A batch whose checkpoint is its complete progress."""
    return Batch(frame, checkpoint, str(checkpoint["digest"]), pg.of_checkpoint(checkpoint), waiting, base)


def _kafka_batches(spark: SparkSession, source: KafkaSource, done: pg.Progress) -> Iterator[Batch]:
    """Records in the topics that this writer has not committed.

    They come from one read of the offsets, so that a run ends.
    """
    count = done.count
    for part in kafka.parts(spark, source, done):
        count += part.offsets
        batch = _counted(part.frame, pg.kafka_checkpoint(count, part.position.checkpoint()), part.waiting)
        yield replace(batch, beginning=not part.offsets, bad=part.bad)


def _jdbc_batches(spark: SparkSession, source: JdbcSource, *, run: str, done: pg.Progress) -> Iterator[Batch]:
    """Rows of a database that this writer has not committed.

    Without a column these are all rows, once in each run.
    """
    if not source.column:
        if done.run != run:
            yield _counted(jdbc.whole(spark, source), pg.batches_checkpoint(run, 1))
        return
    count = done.count
    for part in jdbc.parts(spark, source, done):
        count += part.count
        batch = _counted(part.frame, pg.jdbc_checkpoint(count, part.position.checkpoint()), part.waiting)
        yield replace(batch, beginning=part.beginning)


def _python_batches(
    spark: SparkSession, source: PythonSource, context: Context, job: Job, done: pg.Progress
) -> Iterator[Batch]:
    """The batches of the function, without those that this run has already committed.

    Raises UserCodeError when there are several, and a later one would replace an earlier one. A
    generator is asked for the second one after the commit of the first: what stands behind a
    `yield` runs when the batch is committed (F485).
    """
    committed = done.count if done.run == job.run else 0
    function = _function(spark, source)
    try:
        answer = function(spark, context)
        frames = iter([answer]) if isinstance(answer, (DataFrame, Update)) else iter(answer)
    except Exception as error:
        raise user_error(error, source.function + _made_again(job, 1, committed)) from error
    if job.overwrites and isinstance(answer, (list, tuple)) and len(answer) > 1:
        raise UserCodeError(f"{source.function}: more than one batch; {ONE_BATCH}")
    for number in range(1, sys.maxsize):
        try:
            frame = next(frames)
        except StopIteration:
            return
        except Exception as error:
            where = f"{source.function}, batch {number}{_made_again(job, number, committed)}"
            raise user_error(error, where) from error
        if job.overwrites and number > 1:
            raise UserCodeError(f"{source.function}: more than one batch; {ONE_BATCH}; {COMMITTED}")
        if not isinstance(frame, (DataFrame, Update)):
            raise UserCodeError(
                f"{source.function}, batch {number}: expected a DataFrame or an Update, got {type(frame).__name__}"
            )
        base = context.base_of_batch()
        if number > committed:
            yield _counted(
                frame, pg.batches_checkpoint(job.run, number), base=base if isinstance(frame, DataFrame) else None
            )


def _made_again(job: Job, number: int, committed: int) -> str:
    """Message for a batch for which the function is asked a second time; else empty (F498).

    Batches are known by their number: one that was left out would make the next one count as
    committed.
    """
    if number > committed:
        return ""
    if job.overwrites:
        return " (its batch is already committed: yield nothing if its input no longer exists)"
    return (
        f" (batches up to {committed} are already committed: yield an empty DataFrame for each whose input no longer "
        "exists)"
    )


def _sql_batches(
    spark: SparkSession, source: SqlSource, table: Table, *, run: str, done: pg.Progress
) -> Iterator[Batch]:
    """The query's rows in one commit, unless this run has committed them.

    A query of the writer's own table is repeated at each try.
    """
    if done.run == run:
        return
    own = [view for view in source.views if view.files is None and naming.place(view.path) == naming.place(table.path)]
    if not own:
        yield _counted(_query(spark, source, {}), pg.batches_checkpoint(run, 1))
    else:
        update = Update(lambda rows: _query(spark, source, dict.fromkeys((view.name for view in own), rows)))
        yield _counted(update, pg.batches_checkpoint(run, 1))


def _doubled(
    spark: SparkSession, job: Job, done: pg.Progress, looking_up: Callable[[], AbstractContextManager[None]]
) -> Iterator[Batch]:
    """One commit that keeps one record of each key, unless this run has made it.

    None when there are no duplicates.
    """
    if done.run == job.run:
        return
    remove_duplicates.require(spark, job.table)
    with looking_up():  # each try looks again
        found = remove_duplicates.partitions_of(remove_duplicates.read(spark, job.table.path))
    if found:
        yield _counted(
            Update(lambda _: remove_duplicates.once(remove_duplicates.read(spark, job.table.path), job.table)),
            pg.batches_checkpoint(job.run, 1),
        )


def _partitions(
    spark: SparkSession, job: Job, done: pg.Progress, looking_up: Callable[[], AbstractContextManager[None]]
) -> Iterator[Batch]:
    """One commit that deletes the partitions of the job, unless this run has made it.

    None when no row is in one of them.
    """
    if done.run == job.run:
        return
    with looking_up():
        rows = spark.read.format("hudi").options(**SNAPSHOT).load(job.table.path)
        found = delete_partition.found(rows, job.table, job.partitions)
    if found:
        # An Update: each try is compared from its own begin on, not from the look above (F447).
        nothing = Update(lambda snapshot: spark.createDataFrame([], snapshot.schema))
        batch = _counted(nothing, pg.batches_checkpoint(job.run, 1))
        yield replace(batch, options={delete_partition.NAMES: ",".join(found)})


def _query(spark: SparkSession, source: SqlSource, given: Mapping[str, DataFrame]) -> DataFrame:
    """The result of the query over the present views; `given`: views that were already read."""
    for view in source.views:
        if view.name in given:
            frame = given[view.name]
        elif view.files is not None:
            frame = files.read(spark, view.files, [item.path for item in files.listed(spark, view.files.paths)])
        else:
            table = Table(spark, view.path)
            # When there is no table at the path (yet), let Hudi report it.
            options = table.read_options(class_name=view.merger) if table.exists() else {}
            frame = spark.read.format("hudi").options(**SNAPSHOT, **options).load(view.path).drop(*META_COLUMNS)
        frame.createOrReplaceTempView(view.name)
    return query(spark, source.query, "source.sql.query")


def _function(spark: SparkSession, source: PythonSource) -> Any:
    module = load_module(spark, Path(source.file))
    function = getattr(module, source.function, None)
    if not callable(function):
        raise UserCodeError(f"{Path(source.file).name} has no function {source.function}")
    return function


def load_module(spark: SparkSession, path: Path) -> ModuleType:
    """Import the user's file so that its functions can run on executors.

    Executors do not have the file: the functions are sent by value.
    """
    make_importable(spark, path)
    spec = importlib.util.spec_from_file_location("hudi_user_code", path)
    if spec is None or spec.loader is None:
        raise UserCodeError(f"{path.name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules["hudi_user_code"] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise user_error(error, path.name) from error
    register: Any = cloudpickle.register_pickle_by_value
    register(module)
    return module


def make_importable(spark: SparkSession, path: Path) -> None:
    """Make the other modules in the file's folder importable, here and on executors.

    They are made so in their present version.

    They are copied first: editing the ConfigMap while the attempt runs must not give executors
    other code than the driver.
    """
    folder = Path(tempfile.mkdtemp(prefix="hudi-code-"))
    sys.path.insert(0, str(folder))
    for sibling in sorted(path.parent.glob("*.py")):
        if sibling.name != path.name:
            copied = shutil.copy(sibling, folder)
            spark.sparkContext.addPyFile(str(copied))
