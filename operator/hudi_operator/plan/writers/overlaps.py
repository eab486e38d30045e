"""Writers that may write the same partitions run one after the other.

The table requires it with ``concurrency.admission: DisjointPartitions`` (R42).

Fairness only; safety does not depend on it: if two writers of one partition run at once, one loses
a race at worst. Writers behind a waiting one wait for it too if their partitions overlap with its
own, so that no later writer overtakes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudi_operator.api import partitions
from hudi_operator.api.spec import WriterSpec
from hudi_operator.model import conditions
from hudi_operator.plan.core.view import View, WriterView
from hudi_operator.plan.writers.block import Block

MAX_OVERTAKES = 8
"""Number of other writers' attempts that may start while a writer waits, before it comes first; as
in the queue for the lock (F24).
"""


def problem(view: View, writer: WriterSpec) -> str:
    """Why a writer's declared partitions do not fit this table (field, value and rule).

    Empty when they do.
    """
    if writer.partitions and not view.table.partition_fields:
        return (
            f"spec.partitions = {list(writer.partitions)[:5]}: HudiTable {view.table.ref.name} has no partitionFields"
        )
    return ""


def block(view: View, writer: WriterView, *, running: Sequence[str], ahead: Sequence[WriterView]) -> Block | None:
    """The first writer that may write one of this writer's partitions.

    It is a running writer, or one ahead in the queue.
    """
    if view.table.admission != "DisjointPartitions":
        return None
    mine = _declared(view, writer)
    active = [w for w in view.writers if w.name in running and w.name != writer.name]
    for other in (*active, *ahead):
        found = partitions.in_common(mine, _declared(view, other))
        if found is None:
            continue
        doing = "comes first" if other in ahead else "runs"
        text = (
            f"{other.name} {doing} and may write the same partitions: {_words(mine, found[0])} here, "
            f"{_words(_declared(view, other), found[1])} there"
        )
        return Block("OverlappingPartitions", text, other.name)
    return None


def waiting_since_ms(view: View, writer: WriterView) -> int:
    """When a writer joined the queue, Unix milliseconds; now if it joins in this look."""
    return conditions.from_rfc3339(str((writer.status.get("queue") or {}).get("since") or "")) or view.now_ms


def overtaken(view: View, writer: WriterView, *, since_ms: int) -> int:
    """Number of other writers' attempts that started after that time."""
    starts = (
        conditions.from_rfc3339(a.entry.start_time) for w in view.writers if w.name != writer.name for a in w.attempts
    )
    return sum(1 for start in starts if start is not None and start > since_ms)


def _declared(view: View, writer: WriterView) -> tuple[str, ...]:
    """Normalized patterns of a writer.

    None: it may write any partition, as may an attempt that began before the last change
    of the spec.
    """
    spec, active = writer.spec, writer.active
    if spec is None or (active is not None and active.entry.generation != spec.ref.generation):
        return ()
    return tuple(partitions.normal(pattern, view.table.partition_fields) for pattern in spec.partitions)


def _words(declared: Sequence[str], pattern: str) -> str:
    return pattern if declared else "any"
