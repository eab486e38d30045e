"""More memory after attempts that had too little, up to a limit, and for their run alone."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.api.spec import WriterSpec
from hudi_operator.manifests import pods, quantity
from hudi_operator.model.status import AttemptEntry
from hudi_operator.plan.writers.out_of_memory import grown

POLICY = {"outOfMemory": {"maxMemory": "4Gi", "increasePercent": 50}}


def writer(retry: dict[str, Any] | None = None, **driver: Any) -> WriterSpec:
    spec = {"tableRef": {"name": "t"}, "retryPolicy": POLICY if retry is None else retry, "driver": driver}
    return WriterSpec.from_object({"metadata": {"name": "w", "uid": "0123456789"}, "spec": spec})


def entries(*classes: str, run: int = 2) -> list[AttemptEntry]:
    return [AttemptEntry(number=n + 1, run=run, class_=kind) for n, kind in enumerate((*classes, ""))]


@pytest.mark.parametrize(
    ("classes", "heap"),
    [
        ([], "1Gi"),
        (["Infrastructure"], "1Gi"),
        (["OutOfMemory"], "1536Mi"),
        (["OutOfMemory", "Eviction"], "1536Mi"),
        (["OutOfMemory", "OutOfMemory"], "2304Mi"),
        (["OutOfMemory"] * 4, "4096Mi"),
        (["OutOfMemory"] * 20, "4096Mi"),
    ],
)
def test_heap_grows_up_to_a_limit(classes: list[str], heap: str) -> None:
    made = entries(*classes)
    assert grown(writer(), made[-1], made).driver.memory == heap


def test_the_container_grows_with_its_heap() -> None:
    made = entries("OutOfMemory")
    small, large = (grown(writer(), each, made).driver for each in (made[0], made[-1]))
    sizes = [quantity.kubernetes_mib(pods._resources(each)["limits"]["memory"]) for each in (small, large)]
    assert sizes[1] > 1.3 * sizes[0]
    resources = {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"memory": "3Gi"}}
    found = grown(writer(resources=resources), made[-1], made).driver
    assert found.resources == {"requests": {"cpu": "2", "memory": "3072Mi"}, "limits": {"memory": "4608Mi"}}


def test_only_its_run_counts_and_only_what_came_before() -> None:
    before, now = entries("OutOfMemory", "OutOfMemory", run=1), entries("", run=2)
    assert grown(writer(), now[-1], [*before, *now]).driver.memory == "1Gi"
    made = entries("OutOfMemory", "OutOfMemory")
    assert grown(writer(), made[1], made).driver.memory == "1536Mi", "as it was made, whatever came later"


def test_it_never_shrinks_and_nothing_happens_unless_it_is_asked_for() -> None:
    made = entries("OutOfMemory")
    assert grown(writer(memory="6Gi"), made[-1], made).driver.memory == "6Gi"
    assert grown(writer({}), made[-1], made).driver.memory == "1Gi"
