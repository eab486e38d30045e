"""Progress survives archival (I9), and what is archived as completed is never swept (I4)."""

from __future__ import annotations

import json

import pytest
from demo import spark_read

from hudi_runtime.process.errors import OutcomeUnknown
from hudi_runtime.read import progress
from hudi_runtime.settle.sweep import sweep
from hudi_runtime.table.hudi import Table
from tests.support.harness.archived_table import OPTIONS
from tests.support.harness.local import World


def test_progress_survives_archival(world: World) -> None:
    spark = world.spark()
    path = world.url(world.lake / "archived")
    for number in range(4):
        writer = "default/early" if number == 0 else "default/late"
        word = json.dumps({"count": number + 1, "digest": f"d{number}", "manifest": ""})
        frame = spark.createDataFrame([(number, "a", "v", number)], "id int, p string, v string, ts long")
        options = {**OPTIONS, "hudioperator.writer": writer, "hudioperator.progress": word}
        frame.write.format("hudi").options(**options).mode("append").save(path)
    table = Table(spark, path)
    timeline = table.timeline()
    early, base = progress.read(table, "default/early")
    assert (early.count, early.digest) == (1, "d0")
    assert early.instant < timeline.earliest, "the commit is in the archived timeline only"
    last = timeline.last_completed
    assert last is not None
    assert base == last.completion
    assert progress.read(table, "default/late")[0].count == 4
    assert progress.read(table, "default/none")[0] == progress.Progress()
    there = {commit["instant"] for commit in spark_read.commits(spark, path)}
    told = {commit["instant"]: commit for commit in spark_read.archived(spark, path)}
    assert len(there | told.keys()) == 4, "each commit is in one of the two"
    assert told[early.instant]["extra"]["hudioperator.writer"] == "default/early"
    assert (told[early.instant]["operation"], told[early.instant]["records"]) == ("UPSERT", 1)
    files = list((world.lake / "archived" / "a").glob("*.parquet"))
    with pytest.raises(OutcomeUnknown, match="completed and archived"):
        sweep(table, early.instant)
    with pytest.raises(OutcomeUnknown, match="on the timeline"):
        sweep(table, last.requested)
    assert list((world.lake / "archived" / "a").glob("*.parquet")) == files
