"""When the code of a function of a `python` source runs, and which batches an overwrite takes."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_runtime.job.job import Job
from hudi_runtime.process.errors import UserCodeError
from hudi_runtime.read import sources
from hudi_runtime.read.context import Context
from hudi_runtime.read.progress import Progress
from tests.support.world.job_json import JOB

CODE = """
from hudi_runtime.read.update import Update

LOG = []

def one():
    return Update(lambda snapshot: snapshot)

def first(spark, context):
    yield one()
    LOG.append("behind the first yield")

def second(spark, context):
    yield one()
    LOG.append("behind the first yield")
    yield one()

def gone(spark, context):
    raise FileNotFoundError("the input")
    yield

def listed(spark, context):
    return [one() for _ in range(context.arguments["count"])]
"""


def batches(
    tmp_path: Path, function: str, operation: str, *, count: int = 1, done: Progress | None = None
) -> tuple[Iterator[Any], list[str]]:
    """The batches, and what the function notes."""
    file = tmp_path / "main.py"
    file.write_text(CODE)
    source = {"python": {"file": str(file), "function": function}}
    job = Job.from_json(JOB | {"operation": operation, "source": source})
    spark: Any = None
    table: Any = None
    found = sources.batches(spark, job, table, Context(job, "i", spark, {"count": count}), done or Progress())
    first = next(found)
    return itertools.chain([first], found), sys.modules["hudi_user_code"].__dict__["LOG"]


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite", "insert_overwrite_table"])
def test_what_stands_behind_a_yield_runs_after_the_commit(tmp_path: Path, operation: str) -> None:
    """F485: it may delete what the batch is still to be read from."""
    found, noted = batches(tmp_path, "first", operation)
    next(found)
    assert noted == [], "the first batch is still to be committed"
    assert list(found) == []
    assert noted == ["behind the first yield"]


def test_a_second_batch_of_an_overwrite_is_refused(tmp_path: Path) -> None:
    found, noted = batches(tmp_path, "second", "insert_overwrite")
    next(found)
    assert noted == []
    with pytest.raises(UserCodeError, match=r"more than one batch.*; the first one is already committed"):
        next(found)
    assert len(list(batches(tmp_path, "second", "upsert")[0])) == 2


def test_a_list_of_two_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    assert len(list(batches(tmp_path, "listed", "insert_overwrite", count=1)[0])) == 1
    with pytest.raises(UserCodeError, match=r"more than one batch.*replace the first$"):
        batches(tmp_path, "listed", "insert_overwrite", count=2)
    assert len(list(batches(tmp_path, "listed", "upsert", count=2)[0])) == 2


@pytest.mark.parametrize(
    ("operation", "committed", "said"),
    [
        ("upsert", 0, "batch 1: "),
        ("upsert", 1, r"batch 1 \(batches up to 1 are already committed: yield an empty DataFrame for each"),
        ("insert_overwrite", 1, r"batch 1 \(its batch is already committed: yield nothing if"),
    ],
)
def test_a_function_whose_input_is_gone_is_told_what_is_committed(
    tmp_path: Path, operation: str, committed: int, said: str
) -> None:
    """F498: it is called again by each attempt of a run, also when its only batch is committed."""
    done = Progress(run=Job.from_json(JOB).run, count=committed)
    with pytest.raises(UserCodeError, match=said):
        batches(tmp_path, "gone", operation, done=done)
