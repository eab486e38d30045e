"""Tasks of a cancelled job are waited for, and named when they do not end."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

from hudi_runtime.process import spark as sp
from tests.support.harness.local import World, until


def test_tasks_that_do_not_end_are_named(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """A cancelled job is over for Spark while its task still runs: it is named with its stage and
    executor until it has ended.
    """
    spark: Any = world.spark()
    assert sp.await_idle(spark, 10), "nothing runs yet"
    assert sp.running_tasks(spark) == ""
    failed: list[Exception] = []

    def run() -> None:
        try:
            spark.range(0, 1, 1, 1).selectExpr("java_method('java.lang.Thread', 'sleep', 10000L + id)").collect()
        except Exception as error:
            failed.append(error)

    job = threading.Thread(target=run)
    job.start()
    until("the task has begun", lambda: not sp.await_idle(spark, 0))
    assert sp.await_idle(spark, 0, group="another")
    sp.cancel_jobs(spark)
    job.join(60)
    assert failed, "the job is over"
    assert not sp.await_idle(spark, 0.5)
    told = sp.running_tasks(spark)
    named = r"executor driver runs 1, task \d+ \(number 0 of stage \d+\.0, attempt 0, since 20\d\d-.*Z\)"
    assert re.fullmatch(named, told), told
    assert "Thread.sleep" in capsys.readouterr().err
    assert sp.await_idle(spark, 60)
    assert sp.running_tasks(spark) == ""
