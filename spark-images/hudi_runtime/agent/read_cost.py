"""The read cost of a MergeOnRead table (RFC-22 R58).

Bytes in log files that readers must merge, compared with the bytes of the base files.

It is counted from the listing of the metadata table, so without a request per folder. A log file
counts until its file group has a base file that was planned after the log's commit was completed.
Status shows it; no decision depends on it.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Collection, Mapping

from hudi_contract.reports import ReadCost
from hudi_runtime.process.errors import classify, environment_secrets
from hudi_runtime.services.tasks import Observation, Slot, TableTask
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import Table
from hudi_runtime.table.storage import Missing

EVERY_SECONDS = 30.0
"""Minimum interval between two counts; it is extended so that counting takes at most a twentieth of
the time (SHARE).
"""
SHARE = 20
_BASE = re.compile(r"^([^_]+)_[^_]+_(\d{14,17})\.(?:parquet|orc|hfile|lance)$")
_LOG = re.compile(r"^\.(.+)_(\d{14,17})\.log\.\d+")


def count(files: Mapping[str, int], timeline: tl.Timeline, *, replaced: Collection[tuple[str, str]] = ()) -> ReadCost:
    """The cost of reading the newest state of these files (relative path -> bytes).

    File groups in `replaced` (partition, id) are left out.
    """
    completed = {i.requested: i.completion for i in timeline.completed}
    bases: dict[tuple[str, str], tuple[str, int]] = {}
    logs: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for path, size in files.items():
        partition, _, name = path.rpartition("/")
        base, log = _BASE.match(name), _LOG.match(name)
        if base:
            group = (partition, base[1])
            bases[group] = max(bases.get(group, ("", 0)), (base[2], size))
        elif log:
            # An archived commit was completed long ago: its requested time is close enough.
            logs.setdefault((partition, log[1]), []).append((completed.get(log[2], log[2]), size))
    groups = (bases.keys() | logs.keys()) - set(replaced)
    waiting = {
        group: sum(size for at, size in logs.get(group, ()) if at > bases.get(group, ("", 0))[0]) for group in groups
    }
    return ReadCost(
        base_bytes=sum(bases[group][1] for group in groups if group in bases),
        log_bytes=sum(waiting.values()),
        file_groups=len(groups),
        file_groups_with_logs=sum(1 for size in waiting.values() if size),
    )


class Gauge(TableTask):
    """Counts the read cost of one table, in parallel with other tasks.

    It does so when there was a commit since the last count.

    It is always idle: a count changes nothing, so no other task waits for it.
    """

    def __init__(self, table: Table, slot: Slot, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._table = table
        self._slot = slot
        self._clock = clock
        self._seen = ""
        self._next = 0.0
        self.latest: ReadCost | None = None

    def consider(self, look: Observation) -> None:
        """Begin to count when it is due and the slot is free."""
        timeline, last = look.timeline, look.timeline.last_completed
        if last is None or last.completion == self._seen or self._clock() < self._next:
            return
        self._slot.start(lambda: self._run(timeline, last.completion))

    def _run(self, timeline: tl.Timeline, completion: str) -> None:
        begun = self._clock()
        try:
            files = self._table.metadata_files()
            self.latest = None if files is None else count(files, timeline, replaced=self._replaced(timeline))
            self._seen = completion
        except Exception as error:
            print(
                f"read cost of {self._table.path}: {classify(error, secrets=environment_secrets()).message}",
                file=sys.stderr,
                flush=True,
            )
        self._next = self._clock() + max(EVERY_SECONDS, SHARE * (self._clock() - begun))

    def _replaced(self, timeline: tl.Timeline) -> set[tuple[str, str]]:
        """File groups that are still listed although a later commit has replaced them.

        Those of archived commits have been cleaned.
        """
        found: set[tuple[str, str]] = set()
        for instant in timeline.completed:
            if instant.action == "replacecommit":
                try:
                    found.update(group for _, info in self._table.written((instant,)) for group in info.replaced)
                except Missing:
                    continue  # archived meanwhile
        return found
