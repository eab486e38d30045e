"""Application mode: the user's program does its own writes.

Lock, fence and rollback apply; exactly-once only with `context.commit_metadata()`.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from hudi_contract import metadata
from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import Application
from hudi_runtime.process.errors import RuntimeFailure, UserCodeError, user_error
from hudi_runtime.process.result import Tally
from hudi_runtime.process.session import Session
from hudi_runtime.read.sources import make_importable
from hudi_runtime.table.hudi import Table


def run(spark: SparkSession, application: Application) -> None:
    """Run the main file in this interpreter, as `python main.py arguments…` would."""
    path = Path(application.main_file)
    make_importable(spark, path)
    sys.argv = [str(path), *application.arguments]
    process = os.getpid()
    try:
        with _spark_goes_on():
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as stop:
        if stop.code not in (None, 0):
            raise UserCodeError(f"{path.name} ended with exit code {stop.code}") from stop
    except Exception as error:
        raise user_error(error, path.name) from error
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
    """Count the commits on the timeline that the program made with `context.commit_metadata()`."""
    if not session.quiet():
        raise RuntimeFailure(FailureClass.INFRASTRUCTURE, "the outcome of a publication is unknown")
    newer = tuple(instant for instant in table.timeline().completed if instant.completion > base)
    for instant, info in table.commits(newer):
        if info.extra.get(metadata.INC) == session.inc:
            tally.committed(instant.requested, instant.completion, info.records, since=tally.conflict_count)
