"""More memory after attempts that had too little, up to a limit, and for their run alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_operator.api.spec import SpecError, WriterSpec
from hudi_operator.manifests import pods, quantity
from hudi_operator.model.status import AttemptEntry
from hudi_operator.plan.writers.attempts import KEPT_ATTEMPTS, new_entry
from hudi_operator.plan.writers.out_of_memory import grown

AT_ONCE: Any = SimpleNamespace(now_ms=0, latest_ms=0)
POLICY = {"outOfMemory": {"maxMemory": "4Gi", "increasePercent": 50}}


def writer(retry: dict[str, Any] | None = None, **driver: Any) -> WriterSpec:
    spec = {"tableRef": {"name": "t"}, "retryPolicy": POLICY if retry is None else retry, "driver": driver}
    return WriterSpec.from_object({"metadata": {"name": "w", "uid": "0123456789"}, "spec": spec})


def entries(*classes: str, run: int = 2, who: str = "") -> list[AttemptEntry]:
    kinds = enumerate((*classes, ""))
    return [AttemptEntry(number=n + 1, run=run, class_=kind, out_of_memory=who if kind else "") for n, kind in kinds]


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


BOTH = {"outOfMemory": {"maxMemory": "4Gi", "maxExecutorMemory": "3Gi", "increasePercent": 100}}


@pytest.mark.parametrize(
    ("who", "driver", "executors"),
    [("", "2048Mi", "1Gi"), ("driver", "2048Mi", "1Gi"), ("w-1-exec-2", "1Gi", "2048Mi")],
)
def test_who_had_too_little_has_more(who: str, driver: str, executors: str) -> None:
    """An entry of an older operator names nobody: only drivers were told of."""
    made = entries("OutOfMemory", who=who)
    found = grown(writer(BOTH), made[-1], made)
    assert (found.driver.memory, found.executors.memory) == (driver, executors)


def test_both_may_grow_each_for_its_own_ends_and_up_to_its_own_limit() -> None:
    of_executors = entries("OutOfMemory", "OutOfMemory", who="w-1-exec-1")
    ends = [of_executors[0], AttemptEntry(number=2, run=2, class_="OutOfMemory", out_of_memory="driver")]
    now = AttemptEntry(number=3, run=2)
    found = grown(writer(BOTH), now, [*ends, now])
    assert (found.driver.memory, found.executors.memory) == ("2048Mi", "2048Mi")
    last = of_executors[-1]
    assert grown(writer(BOTH), last, of_executors).executors.memory == "3072Mi"


def test_containers_of_executors_grow_with_their_heap() -> None:
    made = entries("OutOfMemory", who="w-1-exec-1")
    resources = {"requests": {"memory": "2Gi", "cpu": "1"}, "limits": {"memory": "2Gi"}}
    spec = {
        "tableRef": {"name": "t"},
        "retryPolicy": BOTH,
        "executors": {"instances": 2, "memory": "1Gi", "resources": resources},
    }
    given = WriterSpec.from_object({"metadata": {"name": "w", "uid": "0123456789"}, "spec": spec})
    found = grown(given, made[-1], made).executors
    assert found.instances == 2
    assert found.resources == {"requests": {"memory": "4096Mi", "cpu": "1"}, "limits": {"memory": "4096Mi"}}


def test_a_policy_without_a_limit_is_refused() -> None:
    with pytest.raises(SpecError, match=r"spec\.retryPolicy\.outOfMemory: needs maxMemory, maxExecutorMemory or both"):
        writer({"outOfMemory": {"increasePercent": 20}})


@pytest.mark.parametrize(("who", "driver", "executors"), [("driver", "4096Mi", "1Gi"), ("w-1-exec-2", "1Gi", "3072Mi")])
def test_the_rest_of_the_run_is_longer_than_the_list_of_its_attempts(who: str, driver: str, executors: str) -> None:
    """F580: each savepoint ends an attempt of a stream."""
    listed: list[AttemptEntry] = []
    for number in range(1, 3 * KEPT_ATTEMPTS):
        made = new_entry(AT_ONCE, writer(BOTH), number, run=2, entries=listed)
        lacked = number <= 2
        kind = "OutOfMemory" if lacked else "EndedForChange"
        ended = made.but(class_=kind, out_of_memory=who if lacked else "")
        listed = [*listed, ended][-KEPT_ATTEMPTS:]
    last = new_entry(AT_ONCE, writer(BOTH), 99, run=2, entries=listed)
    found = grown(writer(BOTH), last, [*listed, last])
    assert (found.driver.memory, found.executors.memory) == (driver, executors)
    another = new_entry(AT_ONCE, writer(BOTH), 99, run=3, entries=listed)
    found = grown(writer(BOTH), another, [*listed, another])
    assert (found.driver.memory, found.executors.memory) == ("1Gi", "1Gi")
