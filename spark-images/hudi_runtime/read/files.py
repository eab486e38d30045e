"""Files of a source: list them, and read the files of one commit together.

So no row is lost, read twice or put into other columns.

Spark takes the columns of several files from some of them: a column that only another file has is
dropped, and columns of CSV in another order are swapped, both without an error. Here the rows of
one commit have the columns of all its files, or the files are refused (F86).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession, functions

from hudi_contract.outcomes import ErrorCode, FailureClass
from hudi_runtime.job.job import FilesSource
from hudi_runtime.process.errors import JavaCause, RuntimeFailure, UserCodeError, describe_causes, java_causes
from hudi_runtime.read.manifests import SourceFile
from hudi_runtime.table.listings import DatedEntry, of_dated_statuses
from hudi_runtime.table.values import unreadable

STRICT = ("csv", "json", "xml")
"""Formats without a schema in the file, in which a line may fail to parse."""
HIDDEN = ("_", ".")
UNDER_WAY = "._COPYING_"
"""Suffix that `hadoop fs -put` gives to a file until it is complete. Spark ignores
such files, too.
"""
AS_NAMED = {"__globPaths__": "false"}
"""Without this, Spark would treat `x[1].csv` as a pattern, and read `x1.csv` instead (F85)."""
ALONE = "commit each file separately (source.files.maxFilesPerCommit: 1): its columns are then adapted to the table's"
ONE_VALUE = "a line (with multiLine: the file) holds one JSON value, and nothing after it"
_MORE = r"[}\]][\s}\]]*[^\s}\]]"
"""Matches text after the end of an object or array: of the value, or of one inside it."""
_NOT_ALONE = f"[{ErrorCode.BAD_DATA}] file "
_DIFFER = re.compile(r"CANNOT_MERGE_|CSV header (?:does not conform|is not equal)|[Ff]ailed (?:to merge|merging)")
_COLUMNS_LIMIT = 500
"""Characters."""


def listed(spark: SparkSession, paths: Iterable[str], *, wait: bool = False) -> list[SourceFile]:
    """Files of paths, folders (recursively) and patterns, except hidden ones.

    A path that matches nothing is an error, unless `wait`.
    """
    jvm: Any = spark.sparkContext._jvm
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    found: set[SourceFile] = set()
    for text in paths:
        path = jvm.org.apache.hadoop.fs.Path(text)
        file_system = path.getFileSystem(configuration)
        array = file_system.globStatus(path)
        matched = [] if array is None else of_dated_statuses(jvm, array)
        statuses = [status for status in matched if not _is_matched_by_chance(status[0], text)]
        if not statuses and not wait:
            raise UserCodeError(f"source path {text} matches nothing")
        for status in statuses:
            found.update(_walk(jvm, file_system, status, top=True))
    return sorted(found)


def _is_matched_by_chance(path: str, text: str) -> bool:
    """Whether a pattern matched a hidden folder or file that it does not name.

    Another job may still be writing it.
    """
    named = text.split("/")
    return any(part.startswith(HIDDEN) and part not in named for part in path.split("/"))


def _walk(jvm: Any, file_system: Any, status: DatedEntry, *, top: bool = False) -> Iterator[SourceFile]:
    """The files of one path or folder. A folder is one listing and one call, however large."""
    path, folder, size, modified = status
    name = path.rpartition("/")[2]
    if name.endswith(UNDER_WAY) or (name.startswith(HIDDEN) and not top):
        return
    if folder:
        listing = file_system.listStatus(jvm.org.apache.hadoop.fs.Path(path))
        for child in of_dated_statuses(jvm, listing):
            yield from _walk(jvm, file_system, child)
    elif name.startswith(HIDDEN):
        raise UserCodeError(f"source path {path}: a file whose name begins with _ or . is never read")
    else:
        yield SourceFile(path, size, modified)


def read(spark: SparkSession, source: FilesSource, paths: Sequence[str]) -> DataFrame:
    """The rows of these files, with the columns of all of them.

    Raises RuntimeFailure(SchemaMismatch) when the columns are incompatible.

    An error that appears only when Spark reads the rows is an error of the write;
    `blamed` explains it.
    """
    frame = _read(spark, source, paths)
    _require_columns_of_folders(frame, source, paths)
    return frame


def _require_columns_of_folders(frame: DataFrame, source: FilesSource, paths: Sequence[str]) -> None:
    """A folder `day=2024-01-01` below a path names a column.

    Spark gives it with the option basePath only, since files are read by their names (F109).
    """
    if "recursivefilelookup" in _lower(source.options):
        return
    present = {name.lower() for name in frame.columns}
    named = {part.partition("=")[0] for text in source.paths for part in text.split("/") if "=" in part}
    for path in paths:
        for folder in path.split("/")[:-1]:
            name, equals, _ = folder.partition("=")
            if name and equals and name not in named and name.lower() not in present:
                ways = (
                    "source.files.options: {basePath: the folder above it} gives the column, "
                    '{recursiveFileLookup: "true"} leaves it out'
                )
                raise RuntimeFailure(
                    FailureClass.SCHEMA_MISMATCH,
                    f"file {path}: its folder {folder} names a column that the file does not have; {ways}",
                )


def _read(spark: SparkSession, source: FilesSource, paths: Sequence[str]) -> DataFrame:
    chosen = _lower(source.options).keys()
    reader = spark.read.format(source.format).options(**reading(source), **AS_NAMED)
    if len(paths) > 1 and source.format == "avro" and not chosen & {"avroschema", "avroschemaurl"}:
        return _by_columns(reader, paths)
    if len(paths) > 1 and source.format == "csv" and "enforceschema" not in chosen and _has_header(source):
        return _by_header(spark, source, paths)
    if source.format == "json" and _lower(reading(source))["mode"].upper() == "FAILFAST":
        return _checked_json(spark, source, paths)
    return reader.load(list(paths))


def _checked_json(spark: SparkSession, source: FilesSource, paths: Sequence[str]) -> DataFrame:
    """Refuse text after the first value of a line.

    Spark ignores it: for example the second of two files joined without a line end (F94).
    """
    options = _lower(reading(source))
    whole = options.get("multiline", "false").strip().lower()
    text = spark.read.format("text").options(**{**options, **AS_NAMED, "wholetext": whole}).load(list(paths))
    told = functions.concat(functions.lit(_NOT_ALONE), functions.input_file_name(), functions.lit(f": {ONE_VALUE}"))
    refused = functions.raise_error(told).cast("boolean")
    checked = text.where(
        functions.when(is_alone(functions.col("value"), options), functions.lit(True)).otherwise(refused)
    )
    if "basepath" in options:  # with columns of folders, which Spark gives only for files
        checked.write.format("noop").mode("overwrite").save()
        return spark.read.format("json").options(**reading(source), **AS_NAMED).load(list(paths))
    jvm: Any = spark.sparkContext._jvm
    lines = getattr(checked._jdf, "as")(jvm.org.apache.spark.sql.Encoders.STRING())
    reader: Any = spark.read.options(**reading(source))
    return DataFrame(reader._jreader.json(lines), spark)


def is_alone(text: Column, options: Mapping[str, str]) -> Column:
    """Whether a text is a single JSON value; `options` of the reader, by names in lower case.

    Text that is not JSON may pass.
    """
    how = {key: value for key, value in options.items() if key.startswith("allow")}
    values = functions.from_json(functions.concat(functions.lit("["), text, functions.lit("]")), "array<string>", how)
    return ~text.rlike(_MORE) | functions.coalesce(functions.size(values) == 1, functions.lit(False))


def _by_columns(reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
    """Read Avro files with the columns of all of them.

    Spark would use the schema of one file for all.
    """
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(reader.load(path).schema.json(), []).append(path)
    first, *others = [(reader.load(group), group[0]) for group in groups.values()]
    whole = first[0]
    for frame, path in others:
        known = {field.name: field.dataType for field in whole.schema.fields}
        for field in frame.schema.fields:
            there = known.get(field.name, field.dataType)
            if there != field.dataType:
                differ = (
                    f"column {field.name}: file {path} has {field.dataType.simpleString()}, files before it "
                    f"{there.simpleString()}"
                )
                raise RuntimeFailure(FailureClass.SCHEMA_MISMATCH, f"{differ}; {ALONE}")
        whole = whole.unionByName(frame, allowMissingColumns=True)
    return whole


def _by_header(spark: SparkSession, source: FilesSource, paths: Sequence[str]) -> DataFrame:
    """Read CSV files with equal headers.

    Spark compares the header of each file, except for names that it made up: those are compared
    here, file by file.
    """
    options = {**reading(source), **AS_NAMED}
    frame = spark.read.format("csv").options(**options, enforceSchema="false").load(list(paths))
    if not any(name.endswith(str(number)) for number, name in enumerate(frame.columns)):
        return frame
    headers = spark.read.format("csv").options(**{**options, "inferSchema": "false"})
    first, wanted = paths[0], list[str]()
    for path in paths:
        found = headers.load(path).columns
        first, wanted = (first, wanted) if wanted else (path, found)
        if found and found != wanted:
            differ = f"file {path} has the columns {', '.join(found)}, {first} has {', '.join(wanted)}"
            raise RuntimeFailure(FailureClass.SCHEMA_MISMATCH, f"{differ}; {ALONE}")
    return spark.read.format("csv").options(**options).load(list(paths))


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    """Options by names in lower case: Spark's option names are case-insensitive."""
    return {key.lower(): value for key, value in options.items()}


def _has_header(source: FilesSource) -> bool:
    return _lower(source.options).get("header", "").strip().lower() == "true"


def reading(source: FilesSource) -> dict[str, str]:
    """The options for reading files.

    Text that does not parse is an error, not null, unless the user's options choose a mode.
    """
    chosen = _lower(source.options)
    strict = {} if source.format not in STRICT or "mode" in chosen else {"mode": "FAILFAST"}
    # With column pruning Spark does not count the columns of a line that the query does not need.
    pruning = {"columnPruning": "false"} if strict and source.format == "csv" and "columnpruning" not in chosen else {}
    merged = {"mergeSchema": "true"} if source.format in ("parquet", "orc") and "mergeschema" not in chosen else {}
    return {**strict, **pruning, **merged, **source.options}


def is_empty(frame: DataFrame, source: FilesSource) -> bool:
    """Whether files without a schema have no rows.

    The columns that Spark infers from such files fit no table (F87).
    """
    return source.format in STRICT and frame.isEmpty()


def blamed(spark: SparkSession, source: FilesSource, paths: Sequence[str], error: Exception) -> Exception | None:
    """The fault of these files: the first one that cannot be read by itself, or differing columns.

    None: the files are not at fault.
    """
    causes = java_causes(error)
    for cause in causes:
        if _DIFFER.search(cause.message):
            return RuntimeFailure(
                FailureClass.SCHEMA_MISMATCH,
                f"the files of this commit have different columns: {_last(causes)}; {ALONE}",
            )
        if _NOT_ALONE in cause.message:
            return RuntimeFailure(
                FailureClass.BAD_DATA, cause.message.split(f"[{ErrorCode.BAD_DATA}] ")[1].splitlines()[0]
            )
    if not unreadable(causes):
        return None
    for path in paths:
        try:
            read(spark, source, [path]).write.format("noop").mode("overwrite").save()
        except Exception as alone:
            causes = java_causes(alone)
            return (
                RuntimeFailure(FailureClass.BAD_DATA, f"file {path}: {describe_causes(causes)}")
                if unreadable(causes)
                else None
            )
    return None


def _last(causes: Sequence[JavaCause]) -> str:
    """The innermost message about differing columns, on one line.

    It is shortened, so that the advice behind it fits into the message of the failure.
    """
    return " ".join([cause.message for cause in causes if _DIFFER.search(cause.message)][-1].split())[:_COLUMNS_LIMIT]
