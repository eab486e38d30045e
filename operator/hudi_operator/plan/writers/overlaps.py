"""Writers that may write the same partitions run one after the other.

The table requires it with ``concurrency.admission: DisjointPartitions`` (R42).

Fairness only; safety does not depend on it: if two writers of one partition run at once, one loses
a race at worst. Writers behind a waiting one wait for it too if their partitions overlap with its
own, so that no later writer overtakes it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property

from hudi_operator.api import partitions
from hudi_operator.api.spec import WriterSpec
from hudi_operator.model import conditions
from hudi_operator.plan.core.view import View, WriterView
from hudi_operator.plan.writers.block import Block

MAX_OVERTAKES = 8
"""Number of other writers' attempts that may start while a writer waits, before it comes first; as
in the queue for the lock (F24).
"""
MOST_STEPS = 500_000
"""Characters of patterns that are compared in one look: less than half a second. The first in the
queue needs at most 262,144: 64 running writers, and its own 32 patterns of 128 characters.
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


class Declarations:
    """Partitions that the writers of a table declare.

    They are read once for all writers that wait, and compared (F513).
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._left = MOST_STEPS
        self._of: dict[str, partitions.Patterns] = {}

    def block(self, writer: WriterView, *, running: Sequence[str], ahead: Sequence[WriterView]) -> Block | None:
        """The first writer that may write one of this writer's partitions.

        It is a running writer, or one ahead in the queue.
        """
        if self._view.table.admission != "DisjointPartitions":
            return None
        active = [w for w in self._view.writers if w.name in running and w.name != writer.name]
        return next((b for other in active if (b := self._between(writer, other, "runs"))), None) or next(
            (b for other in ahead if (b := self._between(writer, other, "comes first"))), None
        )

    def _between(self, writer: WriterView, other: WriterView, doing: str) -> Block | None:
        if self._left <= 0:
            # It may be, so it waits; the first in the queue is always compared.
            text = (
                f"{other.name} {doing} and may write the same partitions: the writers of this table declare more and "
                "longer spec.partitions than are compared at once"
            )
            return Block("OverlappingPartitions", text, other.name)
        found, steps = partitions.in_common(self._patterns(writer), self._patterns(other))
        self._left -= steps
        if found is None:
            return None
        text = (
            f"{other.name} {doing} and may write the same partitions: "
            f"{_words(_declared(self._view, writer), found[0])} here, "
            f"{_words(_declared(self._view, other), found[1])} there"
        )
        return Block("OverlappingPartitions", text, other.name)

    def _patterns(self, writer: WriterView) -> partitions.Patterns:
        if writer.name not in self._of:
            self._of[writer.name] = partitions.Patterns(_declared(self._view, writer))
        return self._of[writer.name]


def waiting_since_ms(view: View, writer: WriterView) -> int:
    """Unix milliseconds at which a writer joined the queue; now if it joins in this look."""
    return conditions.from_rfc3339(str((writer.status.get("queue") or {}).get("since") or "")) or view.now_ms


class Starts:
    """Start times of the table's attempts, read once for all writers that wait (F439)."""

    def __init__(self, view: View) -> None:
        self._view = view

    @cached_property
    def _of(self) -> dict[str, list[int]]:
        """By writer, in order of time."""
        found: dict[str, list[int]] = {}
        for writer in self._view.writers:
            starts = (conditions.from_rfc3339(a.entry.start_time) for a in writer.attempts)
            found.setdefault(writer.name, []).extend(start for start in starts if start is not None)
        return {name: sorted(starts) for name, starts in found.items()}

    @cached_property
    def _all(self) -> list[int]:
        return sorted(start for own in self._of.values() for start in own)

    def overtaken(self, writer: WriterView, *, since_ms: int) -> int:
        """Number of other writers' attempts that started after that time."""
        return _after(self._all, since_ms) - _after(self._of.get(writer.name, []), since_ms)


def _after(times: Sequence[int], since_ms: int) -> int:
    return len(times) - bisect_right(times, since_ms)


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
