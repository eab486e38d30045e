"""Which files a run of `InsertOverwrite` reads."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_runtime.job.job import Job
from hudi_runtime.read import sources
from hudi_runtime.read.manifests import SourceFile
from hudi_runtime.read.progress import Progress
from hudi_runtime.read.sources import Batch
from tests.support.world.job_json import JOB

SOURCE = {"files": {"format": "csv", "paths": ["s3a://landing/day=1"]}}


class Landing:
    """A folder of files; rows of files stand for themselves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self.without_rows: list[str] = []
        monkeypatch.setattr(sources.files, "listed", lambda *_, **__: [SourceFile(name, 1, 1) for name in self.names])
        monkeypatch.setattr(sources.files, "read", lambda _spark, _source, paths: paths)
        monkeypatch.setattr(sources.files, "is_empty", lambda frame, _: not set(frame) - set(self.without_rows))

    def run(self, number: int, done: Progress) -> list[Batch]:
        job = Job.from_json(JOB | {"operation": "insert_overwrite", "source": SOURCE, "run": number})
        spark: Any = None
        table: Any = None
        context: Any = None
        return list(sources.batches(spark, job, table, context, done))


def test_a_run_reads_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """F490: the rows of a late file alone would replace those of the files before it."""
    landing = Landing(monkeypatch)
    landing.names = ["a", "b"]
    (first,) = landing.run(1, Progress())
    assert first.frame == ["a", "b"]
    landing.names.append("late")
    assert landing.run(1, first.done) == [], "the next attempt of a run that has committed"
    (second,) = landing.run(2, first.done)
    assert second.frame == ["a", "b", "late"]
    assert second.digest != first.digest


def test_without_a_row_nothing_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    landing = Landing(monkeypatch)
    assert landing.run(1, Progress()) == []
    landing.names = landing.without_rows = ["a"]
    assert landing.run(1, Progress()) == []
