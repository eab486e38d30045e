"""Checks of the table's rows.

Tables are compared as multisets of rows, in Spark, so that their size does not matter.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from hudi_contract.words import InsertConflicts
from hudi_runtime.audit.facts import Commit, Facts, is_data_file
from hudi_runtime.audit.report import Check, not_asked, ok, unknown, violated
from hudi_runtime.table import timeline as tl

#: Creates the expected rows from the session and the table's schema (without Hudi's own columns).
Expected = Callable[[SparkSession, StructType], DataFrame]
EXAMPLES = 5
META = "_hoodie_"
KEY, COMMIT_TIME = "_hoodie_record_key", "_hoodie_commit_time"
VECTORIZED = "spark.sql.parquet.enableVectorizedReader"
PARTITION = "_hoodie_partition_path"
#: Begin of the timeline for an incremental query.
BEGINNING = "000"


@contextmanager
def row_reader(spark: SparkSession) -> Iterator[None]:
    """Read parquet row by row within this context.

    Hudi 1.2.0's file format may answer differently about columnar batches when a plan is made and
    when plans are compared: a plan that reads a table several times then sometimes fails with
    `assertion failed` in ColumnarToRowExec (measured).
    """
    before = str(spark.conf.get(VECTORIZED))
    spark.conf.set(VECTORIZED, "false")
    try:
        yield
    finally:
        spark.conf.set(VECTORIZED, before)


def read(spark: SparkSession, path: str, **options: str) -> DataFrame:
    """Read the table with Spark and Hudi's own code.

    A snapshot unless the options select another query.

    Data skipping is disabled: all files are read anyway, and planning would unpersist the column
    statistics, which waits for ever when the plan is part of a frame that is being persisted
    (`difference`), because Spark's cache holds that frame's lock at that time (measured). Files are
    listed at once, so that what a clean deletes meanwhile is an error and not absent (F466).
    """
    always = {"hoodie.enable.data.skipping": "false", "hoodie.datasource.read.file.index.listing.mode": "eager"}
    return spark.read.format("hudi").options(**{**always, **options}).load(path)


def user_columns(frame: DataFrame) -> list[str]:
    """Columns except Hudi's own."""
    return [name for name in frame.columns if not name.startswith(META)]


def difference(left: DataFrame, right: DataFrame, columns: Sequence[str]) -> tuple[int, int, list[str]]:
    """Number of rows only on the left, of rows only on the right (with duplicates), and examples.

    The right side is cast to the types of the left, in which null may be anywhere.
    """
    types = {field.name: nullable(field.dataType) for field in left.schema.fields}
    ours = left.select(*(_comparable(left, name, types[name]) for name in columns), sql.lit(1).alias("__n"))
    theirs = right.select(*(_comparable(right, name, types[name]) for name in columns), sql.lit(-1).alias("__n"))
    odd = ours.unionByName(theirs).groupBy(*columns).agg(sql.sum("__n").alias("__n")).where("__n <> 0").persist()
    try:
        counts = odd.agg(
            sql.sum(sql.expr("greatest(__n, 0)")).alias("l"), sql.sum(sql.expr("greatest(-__n, 0)")).alias("r")
        ).collect()[0]
        shown = [(row["__n"], {name: row[name] for name in columns}) for row in odd.limit(2 * EXAMPLES).collect()]
    finally:
        odd.unpersist()
    sentences = [f"{abs(n)} × {'only there' if n < 0 else 'only here'}: {row}" for n, row in shown]
    return int(counts["l"] or 0), int(counts["r"] or 0), sentences


def nullable(kind: Any) -> Any:
    """The type with null allowed in each of its parts.

    Spark casts nothing to a type that allows less inside, although no value is null (F608).
    """
    if isinstance(kind, StructType):
        return StructType([StructField(one.name, nullable(one.dataType), True) for one in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(nullable(kind.elementType), True)
    if isinstance(kind, MapType):
        return MapType(nullable(kind.keyType), nullable(kind.valueType), True)
    return kind


def _comparable(frame: DataFrame, name: str, wanted: Any) -> Any:
    column = sql.col(f"`{name}`").cast(wanted)
    return (sql.array_sort(sql.map_entries(column)) if isinstance(wanted, MapType) else column).alias(name)


def _differs(name: str, found: tuple[int, int, list[str]], *, here: str, there: str) -> Check:
    left, right, examples = found
    examples = [
        text.replace("only here", f"only in {here}").replace("only there", f"only in {there}") for text in examples
    ]
    return violated(name, f"{left} rows only in {here}, {right} rows only in {there}", examples)


def expected(spark: SparkSession, snapshot: DataFrame, wanted: Expected) -> Check:
    """The table has exactly the expected rows, each as often as expected (I8)."""
    columns = user_columns(snapshot)
    right = wanted(spark, StructType([field for field in snapshot.schema.fields if field.name in columns]))
    if set(right.columns) != set(columns):
        return violated(
            "rows",
            "the columns differ",
            [f"table: {', '.join(sorted(columns))}", f"expected: {', '.join(sorted(right.columns))}"],
        )
    found = difference(snapshot, right, columns)
    if found[0] or found[1]:
        return _differs("rows", found, here="the table", there="what is expected")
    return ok("rows", f"{snapshot.count()} rows as expected")


def origin(snapshot: DataFrame, facts: Facts, archived: Callable[[], frozenset[str]]) -> Check:
    """No readable row belongs to an instant that is not completed: pending, or rolled back."""
    if COMMIT_TIME not in snapshot.columns:
        return unknown("origin", "the rows do not name their commits (hoodie.populate.meta.fields is off)")
    counts = {str(row[0]): int(row[1]) for row in snapshot.groupBy(COMMIT_TIME).count().collect()}
    completed = {i.requested for i in facts.timeline.completed} | facts.archived
    if counts.keys() - completed:
        completed |= archived()
    wrong = [
        f"{counts[instant]} rows of {instant}, which is not completed" for instant in sorted(counts.keys() - completed)
    ]
    if wrong:
        return violated("origin", "rows of instants that are not completed are readable", wrong)
    return ok("origin", f"{sum(counts.values())} rows of {len(counts)} completed instants")


def unique(snapshot: DataFrame, facts: Facts) -> Check:
    """No record key occurs twice in a partition (I13), unless the table's gate allows it."""
    if facts.keys is not None and facts.keys.gate.insert_conflicts == InsertConflicts.IGNORE:
        return not_asked("unique", "the table allows it (concurrency.insertConflicts: Ignore)")
    if not {KEY, PARTITION} <= set(snapshot.columns):
        return unknown("unique", "the rows do not name their keys (hoodie.populate.meta.fields is off)")
    counted = snapshot.groupBy(KEY, PARTITION).count()
    keys, twice = counted.agg(sql.count("*"), sql.count(sql.expr("nullif(count > 1, false)"))).collect()[0]
    if twice:
        worst = counted.where("count > 1").orderBy(sql.col("count").desc(), KEY, PARTITION).limit(EXAMPLES).collect()
        examples = [f"{row['count']} × key {row[KEY]} in partition {row[PARTITION] or '(none)'}" for row in worst]
        return violated("unique", f"{twice} of {keys} keys occur more than once in their partition", examples)
    return ok("unique", f"{keys} keys")


# -- hudi-rs ---------------------------------------------------------------------------------------


def hudi_rs(spark: SparkSession, path: str, snapshot: DataFrame, facts: Facts, options: Mapping[str, str]) -> Check:
    """hudi-rs, which shares no code with the writers, reads the same rows.

    `hudi_rs_cannot` lists the states that it cannot read.
    """
    cannot = hudi_rs_cannot(facts)
    if cannot:
        return unknown("hudi-rs", "hudi-rs cannot read this state: run the audit again after a compaction", cannot)
    try:
        builder = importlib.import_module("hudi").HudiTableBuilder
        pyarrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        return unknown("hudi-rs", f"the Python package is not installed: {error}")
    table = builder.from_base_uri(for_hudi_rs(path)).with_options(dict(options)).build()
    columns = user_columns(snapshot)
    with tempfile.TemporaryDirectory(prefix="audit-") as folder:
        rows = _save(table, Path(folder) / "rows.parquet", pyarrow, parquet)
        if rows == 0:
            found = difference(snapshot, snapshot.limit(0), columns)
        else:
            right = spark.read.parquet(f"file://{folder}/rows.parquet")
            if missing := set(columns) - set(right.columns):
                return violated("hudi-rs", "the columns differ", sorted(missing))
            found = difference(snapshot, right, columns)
    if found[0] or found[1]:
        return _differs("hudi-rs", found, here="Spark's answer", there="hudi-rs's answer")
    return ok("hudi-rs", f"{rows} rows, the same")


def _save(table: Any, target: Path, pyarrow: Any, parquet: Any) -> int:
    """Stream the snapshot into one parquet file; returns the number of rows.

    Without rows no file is written.
    """
    writer: Any = None
    rows = 0
    try:
        for batch in table.read_stream():
            data = pyarrow.record_batch(batch)
            writer = writer or parquet.ParquetWriter(
                str(target), data.schema, coerce_timestamps="us", allow_truncated_timestamps=False
            )
            writer.write_batch(data)
            rows += data.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows


def hudi_rs_cannot(facts: Facts) -> list[str]:
    """File groups with log files only.

    For them hudi-rs 0.5.0 returns too few rows without an error.
    """
    based: set[str] = set()
    logged: dict[str, str] = {}
    for path in facts.files:
        if is_data_file(path):
            folder, _, name = path.rpartition("/")
            if name.startswith("."):
                logged.setdefault(f"{folder}/{name[1:].rpartition('.log.')[0].rpartition('_')[0]}", path)
            else:
                based.add(f"{folder}/{name.split('_', 1)[0]}")
    return [
        f"{path}: its file group has log files only" for group, path in sorted(logged.items()) if group not in based
    ]


def for_hudi_rs(path: str) -> str:
    """The path in the form that hudi-rs's object store expects."""
    for scheme in ("s3a://", "s3n://"):
        if path.startswith(scheme):
            return f"s3://{path.removeprefix(scheme)}"
    return path


# -- incremental -----------------------------------------------------------------------------------


def incremental(
    spark: SparkSession,
    path: str,
    snapshot: DataFrame,
    facts: Facts,
    *,
    steps: int,
    ordering: Sequence[str] = (),
    by_column: bool = False,
) -> Check:
    """Check that a consumer that pulls by completion time ends with the final row of each key.

    It pulls commit by commit.

    If readers merge by the columns `ordering`, Hudi's pulls return every version in a log file: a
    version that the table's own version precedes, by those columns, is ignored. `by_column`: a null
    in a pulled row is ignored, because the commit need not have had that column.

    Only the last `steps` commits are pulled one by one; older commits are read in one pull before
    them. If files of the oldest commits were cleaned, the pull begins after those commits.
    """
    if "commits" in facts.errors:
        return unknown("incremental", "the commits could not be read", [facts.errors["commits"]])
    if not {KEY, PARTITION, COMMIT_TIME} <= set(snapshot.columns):
        return unknown("incremental", "the rows do not name their keys (hoodie.populate.meta.fields is off)")
    commits = sorted(facts.commits, key=lambda c: c.instant.completion)
    if not commits:
        return ok("incremental", "nothing was committed")
    begin = retained_from(facts, commits)
    pulled = [c for c in commits if c.instant.completion > begin]
    ends = [c.instant.completion for c in pulled][-max(1, steps) :]
    if not ends:
        return unknown("incremental", "files of the newest commit were cleaned: nothing is left to pull")
    columns = [KEY, PARTITION, COMMIT_TIME, *user_columns(snapshot)]
    pulls = [pull(spark, path, start, end, columns) for start, end in windows(begin, pulled, ends)]
    union = without_overtaken(reduce(DataFrame.unionByName, pulls), snapshot, ordering)
    newest = Window.partitionBy(KEY, PARTITION).orderBy(sql.col("__end").desc())
    last = union.withColumn("__rank", sql.row_number().over(newest)).where("__rank = 1").drop("__rank", "__end")
    if any(c.deletes for c in pulled):  # a pull does not return deleted rows: these keys have no final row
        last = last.join(snapshot.select(KEY, PARTITION), [KEY, PARTITION], "left_semi")
    if by_column:
        last = with_kept_columns(last, snapshot)
    if begin != BEGINNING:
        # Archival orders by requested time: a long commit may be archived although it completed
        # after `begin`, and is then pulled, too.
        named = sql.col(COMMIT_TIME).isin([c.instant.requested for c in pulled])
        snapshot, last = snapshot.where(named), last.where(named)
    found = difference(snapshot, last, columns)
    since = "the beginning" if begin == BEGINNING else f"{begin} (older files were cleaned or archived)"
    if found[0] or found[1]:
        return _differs("incremental", found, here="the snapshot", there=f"the incremental pull from {since}")
    return ok("incremental", f"{len(ends)} pulls from {since}")


def without_overtaken(pulled: DataFrame, snapshot: DataFrame, ordering: Sequence[str]) -> DataFrame:
    """Pulled rows, except those with lower ordering values than the same record in the table."""
    if not ordering or not set(ordering) <= set(snapshot.columns):
        return pulled
    shown = (
        snapshot.select(KEY, PARTITION, _values(ordering).alias("__shown"))
        .groupBy(KEY, PARTITION)
        .agg(sql.max("__shown").alias("__shown"))
    )
    overtaken = sql.coalesce(_values(ordering) < sql.col("__shown"), sql.lit(False))
    return pulled.join(shown, [KEY, PARTITION], "left").where(~overtaken).drop("__shown")


def with_kept_columns(pulled: DataFrame, snapshot: DataFrame) -> DataFrame:
    """Pulled rows with their nulls replaced by the values of the same record in the table."""
    names = user_columns(pulled)
    kept = snapshot.select(
        KEY, PARTITION, *(sql.col(f"`{name}`").alias(f"__kept_{number}") for number, name in enumerate(names))
    )
    filled = {
        name: sql.coalesce(sql.col(f"`{name}`"), sql.col(f"__kept_{number}")) for number, name in enumerate(names)
    }
    return pulled.join(kept, [KEY, PARTITION], "left").select(
        *(filled[name].alias(name) if name in filled else sql.col(name) for name in pulled.columns)
    )


def _values(ordering: Sequence[str]) -> Any:
    return sql.struct(*(sql.col(f"`{name}`") for name in ordering))


def retained_from(facts: Facts, commits: Sequence[Commit]) -> str:
    """Completion time after which every file that a commit wrote still exists.

    BEGINNING when nothing was cleaned or archived.
    """
    begin = BEGINNING
    if facts.history:
        begin = max((i.completion for i in facts.timeline.completed[:1]), default=BEGINNING)
    for commit in commits:
        if any(path in facts.cleaned for path in commit.files):
            begin = max(begin, commit.instant.completion)
    return begin


def windows(begin: str, pulled: Sequence[Commit], ends: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(from, to] of each pull.

    First one for all commits before the single steps, then one for each commit.
    """
    older = [c.instant.completion for c in pulled if c.instant.completion < ends[0]]
    start = begin
    for end in [*older[-1:], *ends]:
        yield start, end
        start = end


def pull(spark: SparkSession, path: str, start: str, end: str, columns: Sequence[str]) -> DataFrame:
    """Rows of Hudi's incremental query for commits completed after `start`, up to `end`.

    A commit that completed at `end` is among them. The column `__end` names `end`.
    """
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": start,
        "hoodie.datasource.read.end.instanttime": end,
    }
    return read(spark, path, **options).select(*columns).withColumn("__end", sql.lit(end))


def unchanged(first: tl.Timeline, second: tl.Timeline) -> bool:
    """Whether nothing was completed between two listings.

    All readers in between saw the same rows then.
    """
    last, now = first.last_completed, second.last_completed
    return (last.completion if last else "") == (now.completion if now else "")
