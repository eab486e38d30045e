"""Partitions that a clustering leaves out for a while, because one has lost in them. No I/O here, `now_ms` is an argument.

A clustering is one commit: whoever changes a single file group of its plan makes it lose the whole of it, again and again where a partition is
written all the time. So a partition in which a plan has lost is left out of the next ones:

* until nobody has changed one of its file groups for as long as the lost run took, for twice as long after the second loss in a row, and so on;
* not for less than `LEAST_MS` of quiet and not for more than `MOST_MS`, and not for longer than `LONGEST_MS` however much is written to it.

A run that does not lose forgets the partitions that it has not left out. Fairness only; safety does not depend on it: whether a
clustering may commit is decided by Hudi's conflict check under the lock. So the memory of an agent is enough; what stands on record is how many
partitions the last run has left out, and an agent that knows of fewer runs once more.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

OPTION = "hudi.operator.clustering.left.out"
"""Read by the plan strategy of the Java module; Hudi has no such option."""
LEAST_MS = 10_000
MOST_MS = 3_600_000
LONGEST_MS = 86_400_000
SHOWN, NAME_LIMIT = 5, 60

Group = tuple[str, str]
"""Partition and file group."""


@dataclass(frozen=True)
class Loss:
    """A partition that clusterings have lost in: how often in a row, when last, how long that run took, when a file group was last changed."""

    times: int
    at_ms: int
    took_ms: int
    changed_ms: int

    @property
    def quiet_ms(self) -> int:
        """For how long nobody must have changed it."""
        return min(MOST_MS, max(LEAST_MS, self.took_ms) << min(self.times - 1, 20))

    def over(self, now_ms: int) -> bool:
        """Whether the partition may be planned again."""
        return now_ms >= min(self.changed_ms + self.quiet_ms, self.at_ms + LONGEST_MS)


class PartitionBackoff:
    """What one agent knows of one table. Changed by the run of a service only, and read beside it."""

    def __init__(self) -> None:
        self._losses: Mapping[str, Loss] = {}
        self.seen = ""
        """Completion time of the newest commit that was looked at."""

    def partitions(self, now_ms: int) -> tuple[str, ...]:
        """Those to leave out, by name."""
        return tuple(sorted(name for name, loss in self._losses.items() if not loss.over(now_ms)))

    @property
    def known(self) -> bool:
        """Whether there is anything to look for in new commits."""
        return bool(self._losses)

    def lost(self, changes: Mapping[str, int], *, instant: str, took_ms: int, now_ms: int) -> None:
        """A run of that instant, which took so long, has lost in these partitions; the values are when they were changed.

        A table without partitions has none that could be left out.
        """
        losses = dict(self._losses)
        self.seen = self.seen if losses else instant
        for partition, changed_ms in changes.items():
            before = losses.get(partition)
            if partition:
                losses[partition] = Loss(before.times + 1 if before else 1, now_ms, took_ms, changed_ms)
        self._losses = losses

    def saw(self, changes: Mapping[str, int], *, up_to: str) -> None:
        """These partitions were changed at these times; commits that completed until then were looked at."""
        known = self._losses.items()
        self._losses = {name: Loss(loss.times, loss.at_ms, loss.took_ms, max(loss.changed_ms, changes.get(name, 0))) for name, loss in known}
        self.seen = max(self.seen, up_to)

    def forget_all_but(self, names: Collection[str]) -> None:
        """A run has not lost that left these out."""
        self._losses = {name: loss for name, loss in self._losses.items() if name in names}


def option(names: Iterable[str]) -> dict[str, str]:
    """The option of a plan that leaves these out."""
    return {OPTION: json.dumps({"partitions": list(names)})}


def planned(plan: Mapping[str, Any]) -> frozenset[Group]:
    """File groups that the plan of a clustering (as Hudi prints it in JSON) replaces."""
    slices = (item for group in plan.get("inputGroups") or [] for item in group.get("slices") or [])
    return frozenset((str(item.get("partitionPath") or ""), str(item.get("fileId") or "")) for item in slices)


def changed(metadata: Mapping[str, Any]) -> frozenset[Group]:
    """File groups that a write changes, those that it makes left out: from the metadata of its commit, or from what it has said before it began to write."""
    stats = ((str(partition), stat) for partition, found in (metadata.get("partitionToWriteStats") or {}).items() for stat in found)
    written = {(partition, str(stat["fileId"])) for partition, stat in stats if stat.get("fileId") and stat.get("prevCommit") not in (None, "null")}
    replaced = {(str(partition), str(group)) for partition, groups in (metadata.get("partitionToReplaceFileIds") or {}).items() for group in groups}
    return frozenset(written | replaced)


def newest(changes: Iterable[tuple[frozenset[Group], int]], *, among: frozenset[Group] | None = None) -> dict[str, int]:
    """When each partition was last changed, from what was changed and when; `among`: only these file groups count."""
    found: dict[str, int] = {}
    for groups, at_ms in changes:
        for partition, _ in groups if among is None else groups & among:
            found[partition] = max(found.get(partition, 0), at_ms)
    return found


def told(names: Collection[str]) -> str:
    """The partitions in words, not too many; empty when there are none."""
    if not names:
        return ""
    shown = [name if len(name) <= NAME_LIMIT else f"{name[:NAME_LIMIT]}…" for name in sorted(names)[:SHOWN]]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{len(names)} partition{'s' if len(names) > 1 else ''} left out, which others write to: {', '.join(shown)}{more}"
