"""Back-off of partitions in which a clustering has lost a conflict.

Clusterings leave them out for a while. No I/O here, `now_ms` is an argument.

A clustering is one commit: a change to a single file group of its plan makes the whole commit lose,
repeatedly when a partition is written all the time. So a partition in which a plan has lost is left
out of the next plans:

* until its file groups were unchanged for as long as the lost run took, for twice as long after the
  second consecutive loss, and so on;
* for at least `LEAST_MS` and at most `MOST_MS` without changes, and for at most `LONGEST_MS` in
  total, however much is written to it.

A run that does not lose resets the partitions that it included. Fairness only; safety does not
depend on it: Hudi's conflict check under the lock decides whether a clustering may commit. So the
memory of an agent is enough. Only the number of partitions that the last run left out is recorded;
an agent that knows fewer runs the service once more.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_contract.backoff import exponential

OPTION = "hudi.operator.clustering.left.out"
"""Read by the plan strategy of the Java module; Hudi has no such option."""
LEAST_MS = 10_000
MOST_MS = 3_600_000
LONGEST_MS = 86_400_000
SHOWN, NAME_LIMIT = 5, 60

WHOLE = ""
"""Stands for all file groups of a partition."""
OVERWRITING = ("INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE")
Group = tuple[str, str]
"""Partition and file group."""


@dataclass(frozen=True)
class Loss:
    """A partition in which clusterings have lost.

    Consecutive losses, time of the last one, duration of its run, last change of a file group.
    """

    times: int
    at_ms: int
    took_ms: int
    changed_ms: int

    @property
    def quiet_ms(self) -> int:
        """Required time without changes."""
        return int(exponential(self.times, first=max(LEAST_MS, self.took_ms), longest=MOST_MS))

    def over(self, now_ms: int) -> bool:
        """Whether the partition may be planned again."""
        return now_ms >= min(self.changed_ms + self.quiet_ms, self.at_ms + LONGEST_MS)


class PartitionBackoff:
    """The back-off of one table in one agent.

    Only the run of a service changes it; other threads read it.
    """

    def __init__(self) -> None:
        self._losses: Mapping[str, Loss] = {}
        self.seen = ""
        """Completion time of the newest commit that was read."""

    def partitions(self, now_ms: int) -> tuple[str, ...]:
        """Names of the partitions to leave out."""
        return tuple(sorted(name for name, loss in self._losses.items() if not loss.over(now_ms)))

    @property
    def known(self) -> bool:
        """Whether new commits must be read for changes."""
        return bool(self._losses)

    def lost(self, changes: Mapping[str, int], *, instant: str, took_ms: int, now_ms: int) -> None:
        """Record that a run of `instant`, which took `took_ms`, has lost in these partitions.

        The values are the times of the changes.

        A table without partitions has none to leave out.
        """
        losses = dict(self._losses)
        self.seen = self.seen if losses else instant
        for partition, changed_ms in changes.items():
            before = losses.get(partition)
            if partition:
                losses[partition] = Loss(before.times + 1 if before else 1, now_ms, took_ms, changed_ms)
        self._losses = losses

    def saw(self, changes: Mapping[str, int], *, up_to: str) -> None:
        """Record the times of changes to these partitions.

        Commits that completed up to `up_to` were read.
        """
        known = self._losses.items()
        self._losses = {
            name: Loss(loss.times, loss.at_ms, loss.took_ms, max(loss.changed_ms, changes.get(name, 0)))
            for name, loss in known
        }
        self.seen = max(self.seen, up_to)

    def forget_all_but(self, names: Collection[str]) -> None:
        """Reset all other partitions after a run that left these out and did not lose."""
        self._losses = {name: loss for name, loss in self._losses.items() if name in names}


def option(names: Iterable[str]) -> dict[str, str]:
    """The plan option that leaves these partitions out."""
    return {OPTION: json.dumps({"partitions": list(names)})}


def planned(plan: Mapping[str, Any]) -> frozenset[Group]:
    """File groups that the plan of a clustering (as Hudi prints it in JSON) replaces."""
    slices = (item for group in plan.get("inputGroups") or [] for item in group.get("slices") or [])
    return frozenset((str(item.get("partitionPath") or ""), str(item.get("fileId") or "")) for item in slices)


def changed(metadata: Mapping[str, Any]) -> frozenset[Group]:
    """File groups that a write changes, except new ones.

    From the metadata of its commit, or from the plan that it stored before it began to write. The
    metadata of an overwriting insert has the partitions of its rows, and replaces them.
    """
    stats = [
        (str(partition), stat)
        for partition, found in (metadata.get("partitionToWriteStats") or {}).items()
        for stat in found
    ]
    overwrites = metadata.get("operationType") in OVERWRITING
    whole = {(partition, WHOLE) for partition, stat in stats if overwrites and stat.get("fileId") == WHOLE}
    written = {
        (partition, str(stat["fileId"]))
        for partition, stat in stats
        if stat.get("fileId") and stat.get("prevCommit") not in (None, "null")
    }
    replaced = {
        (str(partition), str(group))
        for partition, groups in (metadata.get("partitionToReplaceFileIds") or {}).items()
        for group in groups
    }
    return frozenset(written | replaced | whole)


def newest(changes: Iterable[tuple[frozenset[Group], int]], *, among: frozenset[Group] | None = None) -> dict[str, int]:
    """Time of the last change of each partition, from changed file groups and times.

    `among`: only these file groups count.
    """
    counted = None if among is None else among | {(partition, WHOLE) for partition, _ in among}
    found: dict[str, int] = {}
    for groups, at_ms in changes:
        for partition, _ in groups if counted is None else groups & counted:
            found[partition] = max(found.get(partition, 0), at_ms)
    return found


def described(names: Collection[str]) -> str:
    """The partitions as text, with a limit; empty when there are none."""
    if not names:
        return ""
    shown = [name if len(name) <= NAME_LIMIT else f"{name[:NAME_LIMIT]}…" for name in sorted(names)[:SHOWN]]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (
        f"{len(names)} partition{'s' if len(names) > 1 else ''} left out because of concurrent writes: "
        f"{', '.join(shown)}{more}"
    )
