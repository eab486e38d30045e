"""More memory for the driver after attempts of its run that had too little."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hudi_operator.api.spec import WriterSpec
from hudi_operator.manifests import quantity
from hudi_operator.model import classify
from hudi_operator.model.status import AttemptEntry


def grown(writer: WriterSpec, entry: AttemptEntry, entries: Iterable[AttemptEntry]) -> WriterSpec:
    """The writer as attempt ``entry`` runs it.

    Equal entries give an equal writer: an attempt's objects may be made in several looks.
    """
    policy, heap = writer.retry.out_of_memory, quantity.kubernetes_mib(writer.driver.memory)
    failed = sum(
        1
        for each in entries
        if each.class_ == classify.OUT_OF_MEMORY and each.number < entry.number and each.run == entry.run
    )
    if policy is None or not failed:
        return writer
    factor = 1 + policy.increase_percent / 100
    wanted = min(quantity.kubernetes_mib(policy.max_memory), int(heap * factor**failed))
    if wanted <= heap:
        return writer
    resources = {
        kind: {name: _scaled(name, amount, wanted, heap) for name, amount in (amounts or {}).items()}
        for kind, amounts in writer.driver.resources.items()
    }
    return replace(writer, driver=replace(writer.driver, memory=f"{wanted}Mi", resources=resources))


def _scaled(name: str, amount: object, wanted: int, heap: int) -> object:
    """The amount of memory of a container whose heap grows from ``heap`` to ``wanted`` MiB."""
    return f"{quantity.kubernetes_mib(amount) * wanted // heap}Mi" if name == "memory" else amount
