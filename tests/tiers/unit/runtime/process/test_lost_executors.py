"""Whether the driver has lost an executor is asked in one place (F4, F559)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_runtime.process import spark as sp


class _Store:
    """Spark's status store, from whose queue the loss was dropped: every executor is active."""

    def executorList(self, _active: bool) -> Any:
        return SimpleNamespace(size=lambda: 1, apply=lambda _index: SimpleNamespace(isActive=lambda: True))


def _session(*, lost: bool, stopped: bool = False) -> Any:
    scala: Any = SimpleNamespace(statusStore=_Store)
    asked: list[Any] = []

    def answer(context: Any) -> bool:
        asked.append(context)
        assert asked == [scala], "of the driver's own context"
        return lost

    java = SimpleNamespace(io=SimpleNamespace(hudioperator=SimpleNamespace()))
    java.io.hudioperator.session = SimpleNamespace(LostExecutors=SimpleNamespace(lost=answer))
    context = SimpleNamespace(_jsc=None if stopped else SimpleNamespace(sc=lambda: scala), _jvm=java)
    return SimpleNamespace(sparkContext=context)


@pytest.mark.parametrize("lost", [False, True])
def test_the_java_module_knows_what_the_status_store_has_missed(*, lost: bool) -> None:
    assert sp.lost_executors(_session(lost=lost)) == lost


def test_of_a_context_that_is_stopped_nothing_is_known() -> None:
    assert sp.lost_executors(_session(lost=False, stopped=True))
