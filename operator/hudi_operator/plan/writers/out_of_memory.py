"""More memory for driver and executors after attempts of their run that had too little."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from hudi_contract.reports import AttemptReport
from hudi_operator.api.pod_settings import PodSettings
from hudi_operator.api.spec import WriterSpec
from hudi_operator.manifests import quantity
from hudi_operator.model import classify, conditions, containers
from hudi_operator.model.facts import PodFacts
from hudi_operator.model.status import AttemptEntry
from hudi_operator.plan.core.view import View

T = TypeVar("T", bound=PodSettings)


def noted(view: View, entry: AttemptEntry, driver: PodFacts | None, report: AttemptReport) -> tuple[str, str]:
    """An executor of an attempt that ran out of memory, and since when that is known.

    A commit that completed afterwards ends it: its driver did without that executor (F579).
    """
    who, since, now = entry.out_of_memory, entry.out_of_memory_time, conditions.rfc3339(view.now_ms)
    if entry.class_:
        return who, since
    found = executor(view, driver)
    if found not in ("", who):
        return found, now
    if not found and who and conditions.hudi_time(report.last_completion_time) > (since or now):
        return "", ""
    return who, since or (now if who else "")


def executor(view: View, driver: PodFacts | None) -> str:
    """An executor of the driver that has ended for lack of memory; empty: none is known.

    Spark deletes its pod, which stays as evidence until one look has seen its end.
    """
    if driver is None:
        return ""
    ended = (pod.name for pod in view.executors(driver.name) if classify.lacked_memory(containers.host(pod)))
    return min(ended, default="")


def grown(writer: WriterSpec, entry: AttemptEntry, entries: Iterable[AttemptEntry]) -> WriterSpec:
    """The writer as attempt ``entry`` runs it.

    Equal entries give an equal writer: an attempt's objects may be made in several looks.
    """
    policy = writer.retry.out_of_memory
    if policy is None:
        return writer
    of_drivers, of_executors = before(entry, entries)
    factor = 1 + policy.increase_percent / 100
    return replace(
        writer,
        driver=_with_more(writer.driver, policy.max_memory, factor**of_drivers),
        executors=_with_more(writer.executors, policy.max_executor_memory, factor**of_executors),
    )


def before(entry: AttemptEntry, entries: Iterable[AttemptEntry]) -> tuple[int, int]:
    """Numbers of earlier attempts of the run in which the driver, and the executors, lacked memory.

    Status lists only the last attempts; the first listed entry of the run has the numbers of those
    before it (F580).
    """
    listed = [each for each in entries if each.run == entry.run and each.number < entry.number]
    failed = [each.out_of_memory for each in listed if each.class_ == classify.OUT_OF_MEMORY]
    # An entry of an older operator names nobody: it was the driver.
    of_drivers = sum(who in ("", classify.DRIVER) for who in failed)
    first = min((*listed, entry), key=lambda each: each.number)
    return first.drivers_lacked + of_drivers, first.executors_lacked + len(failed) - of_drivers


def _with_more(settings: T, most: str, factor: float) -> T:
    """Heap and container times ``factor``, the heap up to ``most``; empty: as they are."""
    heap = quantity.kubernetes_mib(settings.memory)
    wanted = min(quantity.kubernetes_mib(most), int(heap * factor)) if most else heap
    if wanted <= heap:
        return settings
    resources = {
        kind: {name: _scaled(name, amount, wanted, heap) for name, amount in (amounts or {}).items()}
        for kind, amounts in settings.resources.items()
    }
    return replace(settings, memory=f"{wanted}Mi", resources=resources)


def _scaled(name: str, amount: object, wanted: int, heap: int) -> object:
    """The amount of memory of a container whose heap grows from ``heap`` to ``wanted`` MiB."""
    return f"{quantity.kubernetes_mib(amount) * wanted // heap}Mi" if name == "memory" else amount
