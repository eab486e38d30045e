"""Sources: what is read for each commit, and the progress word that travels with it."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from hudi_runtime import progress as pg
from hudi_runtime.context import Context
from hudi_runtime.errors import UserCodeError, user_error
from hudi_runtime.hudi import Table
from hudi_runtime.job import FilesSource, Job, PythonSource


@dataclass(frozen=True)
class Batch:
    """One commit's worth of input, with the progress that is true once it is committed."""

    frame: DataFrame
    word: dict[str, object]
    digest: str


def batches(spark: SparkSession, job: Job, table: Table, context: Context, done: pg.Progress) -> Iterator[Batch]:
    """Everything that this writer has not committed yet, one batch per commit."""
    if isinstance(job.source, FilesSource):
        yield from _file_batches(spark, job, job.source, table, done)
    elif isinstance(job.source, PythonSource):
        yield from _python_batches(spark, job.source, context, done)
    else:
        raise UserCodeError("the job has neither a source nor an application")


def transform(spark: SparkSession, frame: DataFrame, sql: str | None) -> DataFrame:
    """The user's SELECT over the view `source`."""
    if not sql:
        return frame
    frame.createOrReplaceTempView("source")
    return spark.sql(sql)


def list_files(spark: SparkSession, paths: Iterable[str]) -> list[pg.SourceFile]:
    """Files behind paths, folders (recursively) and globs; hidden ones (`_`, `.`) are left out. A path that matches nothing is an error."""
    jvm: Any = spark.sparkContext._jvm
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    found: set[pg.SourceFile] = set()
    for text in paths:
        path = jvm.org.apache.hadoop.fs.Path(text)
        file_system = path.getFileSystem(configuration)
        statuses = file_system.globStatus(path)
        if not statuses:
            raise UserCodeError(f"source path {text} matches nothing")
        for status in statuses:
            found.update(_walk(file_system, status, top=True))
    return sorted(found)


def _walk(file_system: Any, status: Any, *, top: bool = False) -> Iterator[pg.SourceFile]:
    name = str(status.getPath().getName())
    if name.startswith(("_", ".")) and not top:
        return
    if status.isDirectory():
        for child in file_system.listStatus(status.getPath()):
            yield from _walk(file_system, child)
    else:
        yield pg.SourceFile(str(status.getPath().toString()), int(status.getLen()), int(status.getModificationTime()))


def _file_batches(spark: SparkSession, job: Job, source: FilesSource, table: Table, done: pg.Progress) -> Iterator[Batch]:
    progress = done
    for chunk in pg.chunks(list_files(spark, source.paths), progress, source.max_files):
        previous, progress = progress, pg.advance(progress, chunk)
        manifest = pg.write_manifest(table.storage, job.writer, progress)
        frame = spark.read.format(source.format).options(**source.options).load([item.path for item in chunk])
        yield Batch(frame, progress.word(manifest=manifest), progress.digest)
        pg.prune_manifests(table.storage, job.writer, (previous.digest, progress.digest))


def _python_batches(spark: SparkSession, source: PythonSource, context: Context, done: pg.Progress) -> Iterator[Batch]:
    function = _function(spark, source)
    try:
        answer = function(spark, context)
        frames = iter([answer]) if isinstance(answer, DataFrame) else iter(answer)
    except Exception as error:
        raise user_error(error, source.function) from error
    for number in range(1, sys.maxsize):
        try:
            frame = next(frames)
        except StopIteration:
            return
        except Exception as error:
            raise user_error(error, f"{source.function}, batch {number}") from error
        if not isinstance(frame, DataFrame):
            raise UserCodeError(f"{source.function}, batch {number}: expected a DataFrame, got {type(frame).__name__}")
        if number > done.count:
            word = pg.batches_word(number)
            yield Batch(frame, word, str(word["digest"]))


def _function(spark: SparkSession, source: PythonSource) -> Any:
    module = load_module(spark, Path(source.file))
    function = getattr(module, source.function, None)
    if not callable(function):
        raise UserCodeError(f"{Path(source.file).name} has no function {source.function}")
    return function


def load_module(spark: SparkSession, path: Path) -> ModuleType:
    """Import the user's file so that its functions may run on executors, which do not have it: they are sent by value."""
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
    """Make the other modules in the file's folder importable, here and on executors, as they are now.

    They are copied first: a ConfigMap that is edited while the attempt runs must not give executors other code than the driver has.
    """
    folder = Path(tempfile.mkdtemp(prefix="hudi-code-"))
    sys.path.insert(0, str(folder))
    for sibling in sorted(path.parent.glob("*.py")):
        if sibling.name != path.name:
            copied = shutil.copy(sibling, folder)
            spark.sparkContext.addPyFile(str(copied))
