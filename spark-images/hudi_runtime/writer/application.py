"""Application mode: the user's program does its own writes.

It is a Python file or module, run in this interpreter, or a main class, run in the driver's JVM.
Lock, fence and rollback apply; that the same rows are committed once is up to the program.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from hudi_contract import metadata as commit_words
from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import Application
from hudi_runtime.process.errors import RuntimeFailure, UserCodeError, user_error
from hudi_runtime.process.result import Tally
from hudi_runtime.process.session import Session
from hudi_runtime.read.sources import make_importable
from hudi_runtime.table.hudi import Table

LOOK_MILLISECONDS = 500
"""Interval at which a main class is asked whether it has ended."""
END_MILLISECONDS = 10_000
"""Time that other threads of a main class have to end, once it has."""


def run(
    spark: SparkSession,
    application: Application,
    *,
    metadata: Mapping[str, str] = MappingProxyType({}),
    cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """Run the program to its end.

    Raises UserCodeError for an exit code that is not 0, and RuntimeFailure or the error of py4j for
    what the program has raised.

    `metadata`: options that name writer, attempt and incarnation in each commit of a main class.
    Python code passes them itself. `cancelled`: whether the time to stop is over.
    """
    if application.main_class:
        _run_class(spark, application, metadata, cancelled)
    else:
        _run_python(spark, application)


def _run_class(
    spark: SparkSession, application: Application, metadata: Mapping[str, str], cancelled: Callable[[], bool]
) -> None:
    """Run `main(String[])` in the driver's JVM, with the driver's session as the active one."""
    jvm: Any = spark.sparkContext._jvm
    programs = jvm.io.hudioperator.programs
    for key, value in metadata.items():
        jvm.org.apache.hudi.common.config.DFSPropertiesConfiguration.addToGlobalProps(key, value)
    name = application.main_class
    try:
        program, interrupted = programs.Program.start(name, list(application.arguments)), False
        while not program.isOver(LOOK_MILLISECONDS):
            if cancelled() and not interrupted:
                interrupted = True
                program.interrupt()
        program.rethrow()
    except Exception as error:
        raise user_error(error, name) from error
    if code := program.exitCode():
        raise UserCodeError(f"{name} ended with exit code {code}")


def end_threads(spark: SparkSession, application: Application) -> None:
    """Stop what a main class has left running. It can begin no write any more."""
    if application.main_class:
        context: Any = spark.sparkContext
        left = context._jvm.io.hudioperator.programs.Program.endThreads(context._jsc.sc(), END_MILLISECONDS)
        for thread in left:
            print(f"{application.name} has ended, and its thread {thread} goes on", file=sys.stderr, flush=True)


def _run_python(spark: SparkSession, application: Application) -> None:
    """As `python main.py arguments…`, or `python -m module arguments…`, would."""
    path = Path(application.main_file)
    if not application.module:
        make_importable(spark, path)
    sys.argv = [application.module or str(path), *application.arguments]
    process = os.getpid()
    try:
        with _spark_goes_on():
            if application.module:
                runpy.run_module(application.module, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(str(path), run_name="__main__")
    except SystemExit as stop:
        if stop.code not in (None, 0):
            raise UserCodeError(f"{application.name} ended with exit code {stop.code}") from stop
    except Exception as error:
        raise user_error(error, application.name) from error
    finally:
        if os.getpid() != process:  # a child that the program has forked: it must not end the attempt of its parent
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0 if sys.exc_info()[0] is None else 1)


@contextlib.contextmanager
def _spark_goes_on() -> Iterator[None]:
    """`stop()` of a session or its context does nothing while the program runs.

    Most programs end with it. Spark's end is the end of this attempt, whose commits are still to be
    counted: it would fail, and the next attempt would write the same rows again (F285).
    """

    def left(_: Any) -> None:
        print("spark.stop(): Spark is stopped when the program has ended", file=sys.stderr, flush=True)

    kept = SparkSession.stop, SparkContext.stop
    setattr(SparkSession, "stop", left)  # noqa: B010 - mypy allows no assignment to a method
    setattr(SparkContext, "stop", left)  # noqa: B010
    try:
        yield
    finally:
        setattr(SparkSession, "stop", kept[0])  # noqa: B010
        setattr(SparkContext, "stop", kept[1])  # noqa: B010


def count_commits(table: Table, session: Session, tally: Tally, *, base: str) -> None:
    """Count the commits of the program on the timeline.

    They are those that this process has completed, and those whose metadata name it.
    """
    if not session.quiet():
        raise RuntimeFailure(FailureClass.INFRASTRUCTURE, "the outcome of a publication is unknown")
    newer = tuple(instant for instant in table.timeline().completed if instant.completion > base)
    completed = session.completed()
    for instant, info in table.commits(newer):
        if instant.requested in completed or info.extra.get(commit_words.INC) == session.inc:
            tally.committed(instant.requested, instant.completion, info.records, since=tally.conflict_count)
