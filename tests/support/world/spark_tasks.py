"""The tasks of a driver, as Spark's scheduler counts them and its status store knows them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class Counts:
    """A Scala iterator over pairs of an executor and the number of its tasks."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._left = list(counts.items())

    def hasNext(self) -> bool:
        return bool(self._left)

    def next(self) -> Any:
        executor, tasks = self._left.pop(0)
        return SimpleNamespace(_1=lambda: executor, _2=lambda: tasks)


def spark_context(*, running: int, known: Callable[[str], int], unreached: bool = False) -> SimpleNamespace:
    """The part of a SparkContext that reports tasks.

    ``running``: how many the scheduler counts. ``known``: how many of a group the store knows.
    ``unreached``: whether an executor is not reached and not given up yet.
    """
    counts = SimpleNamespace(iterator=lambda: Counts({"driver": running}))
    scheduler = SimpleNamespace(runningTasksByExecutors=lambda: counts)
    tracker = SimpleNamespace(
        getJobIdsForGroup=lambda group: [group],
        getJobInfo=lambda job: SimpleNamespace(stageIds=[job]),
        getStageInfo=lambda stage: SimpleNamespace(numActiveTasks=known(stage)),
    )
    context = SimpleNamespace(taskScheduler=lambda: scheduler)
    executors = SimpleNamespace(hasUnreached=lambda asked: asked is context and unreached)
    packages = SimpleNamespace(hudioperator=SimpleNamespace(session=SimpleNamespace(LostExecutors=executors)))
    return SimpleNamespace(
        _jsc=SimpleNamespace(sc=lambda: context), _jvm=SimpleNamespace(io=packages), statusTracker=lambda: tracker
    )
