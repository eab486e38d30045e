"""The tasks of a driver, as Spark's scheduler knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

GROUP = "spark.jobGroup.id"


class Counts:
    """A Scala iterator over pairs of an executor and the number of its tasks."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._left = list(counts.items())

    def hasNext(self) -> bool:
        return bool(self._left)

    def next(self) -> Any:
        executor, tasks = self._left.pop(0)
        return SimpleNamespace(_1=lambda: executor, _2=lambda: tasks)


class Elements:
    """A Java enumeration."""

    def __init__(self, elements: Sequence[Any]) -> None:
        self._left = list(elements)

    def hasMoreElements(self) -> bool:
        return bool(self._left)

    def nextElement(self) -> Any:
        return self._left.pop(0)


def spark_context(tasks: Mapping[str | None, int], *, unreached: bool = False) -> SimpleNamespace:
    """The part of a SparkContext that reports tasks.

    ``tasks``: how many of each job group run (None: of a job without any). ``unreached``: whether
    an executor is not reached and not given up yet.
    """
    counts = SimpleNamespace(iterator=lambda: Counts({"driver": sum(tasks.values())}))
    sets = [
        SimpleNamespace(
            properties=lambda group=group: None if group is None else SimpleNamespace(getProperty={GROUP: group}.get)
        )
        for group, number in tasks.items()
        for _ in range(number)
    ]
    managers = [SimpleNamespace(taskSet=lambda each=each: each) for each in sets]
    scheduler = SimpleNamespace(
        runningTasksByExecutors=lambda: counts,
        taskIdToTaskSetManager=lambda: SimpleNamespace(elements=lambda: Elements(managers)),
    )
    context = SimpleNamespace(taskScheduler=lambda: scheduler)
    executors = SimpleNamespace(hasUnreached=lambda asked: asked is context and unreached)
    packages = SimpleNamespace(hudioperator=SimpleNamespace(session=SimpleNamespace(LostExecutors=executors)))
    return SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: context), _jvm=SimpleNamespace(io=packages))
