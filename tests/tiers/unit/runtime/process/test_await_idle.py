"""Whose tasks are waited for (F4): all of a driver, or those of one job group of an agent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_runtime.process import spark as sp
from tests.support.world.spark_tasks import spark_context


@pytest.mark.parametrize(
    ("tasks", "group", "idle"),
    [
        ({}, "", True),
        ({}, "mine", True),
        ({"mine": 1}, "", False),
        ({"mine": 1}, "mine", False),
        ({"another": 1, None: 1}, "mine", True),
        ({"another": 1, None: 1, "mine": 2}, "mine", False),
        ({"another": 1}, "", False),
    ],
)
def test_tasks_that_are_waited_for(tasks: dict[str | None, int], group: str, idle: bool) -> None:
    spark: Any = SimpleNamespace(sparkContext=spark_context(tasks))
    assert sp.await_idle(spark, 0, group=group) is idle


@pytest.mark.parametrize("group", ["", "mine"])
def test_an_executor_that_is_not_reached_is_waited_for(group: str) -> None:
    """F598: the scheduler has forgotten its tasks."""
    spark: Any = SimpleNamespace(sparkContext=spark_context({}, unreached=True))
    assert not sp.await_idle(spark, 0, group=group)
