"""Partition lifecycle (TTL).

Delete partitions that were not written for a number of days, in a commit of the agent.

The commit is an ordinary `delete_partition` of Hudi: readers see the partitions until it is
completed, and a later clean deletes their files. It yields to writers: it is refused when a writer
has changed a file group of those partitions since it began, or may still do so.

This module finds the expired partitions, instead of Hudi's own strategy. That strategy computes the
days in 32 bits, so that 50 days become seven hours and 365 days 17; and it reads base files only,
so that a partition updated in log files counts as not written (1.2.0, both measured in
its class file).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hudi_contract.options import TTL_PATTERN
from hudi_contract.outcomes import FailureClass
from hudi_contract.words import Result
from hudi_runtime.process.errors import classify
from hudi_runtime.services.rewriting import Config, others_since, require_completed
from hudi_runtime.services.triggers import Done
from hudi_runtime.settle.agent_table import AgentTable

ACTION = "replacecommit"
DAYS = "hoodie.partition.ttl.strategy.days.retain"
SINCE = "hoodie.partition.ttl.management.strategy.type"
LAST_WRITE, CREATION = "KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"
LIMIT = "hoodie.partition.ttl.strategy.max.delete.partitions"
"""Maximum number of partitions in one run."""
SHOWN = 5
_WRITTEN = re.compile(r"_([1-9]\d{13}(?:\d{3})?)\.[^/]+$")
"""The instant in the name of a base or log file.

Hudi's own bootstrap writes under the instants 00000000000001 and 00000000000002, which are no times
(F499).
"""


def last_write(names: Iterable[str]) -> str:
    """Newest instant that wrote a file of a partition, completed or not, as 17 digits.

    Empty when no file name contains one.
    """
    return max((match[1].ljust(17, "9") for name in names if (match := _WRITTEN.search(name))), default="")


def before(now: datetime, days: int = 0, *, hours: int = 0) -> str:
    """The instant time so many days and hours before `now`, which has a time zone."""
    return (now.astimezone(UTC) - timedelta(days=days, hours=hours)).strftime("%Y%m%d%H%M%S%f")[:17]


@dataclass(frozen=True)
class Expiry:
    """Deletes expired partitions of one table."""

    table: AgentTable
    config: Config
    withdrawn: Callable[[str], None]
    """Called with an own instant that will not be completed: it is abandoned, and rolled back like
    an instant of a writer.
    """

    def run(self, options: Mapping[str, str]) -> Done:
        """Find the expired partitions, and delete them in one commit.

        After a lost conflict it begins once more, without the partitions that others write to:
        they are left for the next run. Raises the error when that leaves none, or all; the instant
        is abandoned then.
        """
        known = {key: value for key, value in options.items() if key != TTL_PATTERN}
        config = self.config({**known, LIMIT: str(2**31 - 1), DAYS: "1", SINCE: LAST_WRITE})
        now = datetime.now(UTC)
        found, limit = self._expired(config, options, now=now), int(options[LIMIT])
        expired = found[:limit]
        if not expired:
            return Done(Result.NOTHING_TO_DO, message="no partition has expired")
        since = self.table.timeline().maximum
        try:
            return self._commit(config, options, expired, now=now)
        except Exception as error:
            # One partition that is written all the time would keep all others (F483).
            lost = classify(error).kind is FailureClass.WRITE_CONFLICT
            written = self._written(since) if lost else set()
            # Those behind the limit take their place (F500).
            rest = [partition for partition in found if partition not in written][:limit] if lost else []
            if not rest or rest == expired:
                raise
        done = self._commit(config, options, rest, now=now)
        left = len(written.intersection(expired))
        return replace(done, message=f"{done.message}; {left} not deleted, because other writers write to them")

    def _commit(self, config: Any, options: Mapping[str, str], expired: list[str], *, now: datetime) -> Done:
        with self.table.client(config) as client:
            instant = str(client.startCommit(ACTION))
            try:
                # Hudi compares with instants that complete from here on; those that have completed
                # since the partitions were listed are in no comparison (F472).
                if options[SINCE] == CREATION:
                    self.begun_anew(expired)
                expired = [partition for partition in expired if self._is_old(partition, options, now=now)]
                if not expired:
                    self.withdrawn(instant)
                    return Done(Result.NOTHING_TO_DO, message="the expired partitions were written to meanwhile")
                self._delete(client, instant, expired)
            except Exception:
                # It writes no data file, so it has no late files. An instant with an unknown
                # outcome is kept: settling finds out.
                self.withdrawn(instant)
                raise
        require_completed(self.table, instant)
        self.table.emptied(expired, instant)
        shown = ", ".join(expired[:SHOWN]) + (", …" if len(expired) > SHOWN else "")
        return Done(Result.COMPLETED, instant, f"{len(expired)} partitions deleted: {shown}")

    def _expired(self, config: Any, options: Mapping[str, str], *, now: datetime) -> list[str]:
        """Partitions that match, have files for readers, and are old enough.

        A partition of unknown age stays.
        """
        partitions = self.table.partitions()
        if options[SINCE] == CREATION:
            self.begun_anew(partitions)
        pattern = options.get(TTL_PATTERN, "")
        old = [p for p in partitions if (not pattern or re.fullmatch(pattern, p)) and self._is_old(p, options, now=now)]
        live = set(self.table.live_partitions(config)) if old else set()
        if options[SINCE] == CREATION:
            # Deleted by a program, or by a run that did not come to the end.
            self.table.emptied(sorted(set(old) - live), before(now, 0))
        return sorted(set(old) & live)

    def _written(self, since: str) -> set[str]:
        """Partitions that others have written to since then, or are writing to."""
        found: set[str] = set()
        for _, metadata in self.table.writes(others_since(self.table.timeline(), since)):
            found.update(metadata.get("partitionToWriteStats") or {}, metadata.get("partitionToReplaceFileIds") or {})
        return found

    def begun_anew(self, partitions: Iterable[str] | None = None) -> None:
        """Let the partitions start again: a deleted one is not older than its deletion (F471).

        ``partitions`` None: all of the table. A writer that deletes one may write to it again
        before anybody finds it empty. Only the active timeline names deletions, so this comes
        before archival, too (F480).
        """
        deleted = self.table.deleted_partitions()
        if deleted and partitions is None:
            partitions = self.table.partitions()
        for partition in deleted.keys() & set(partitions or ()):
            if self.table.partition_created(partition) < deleted[partition]:
                self.table.emptied([partition], deleted[partition])

    def _is_old(self, partition: str, options: Mapping[str, str], *, now: datetime) -> bool:
        return "" < self._since(partition, options[SINCE]) < before(now, int(options[DAYS]))

    def _since(self, partition: str, kind: str) -> str:
        if kind == CREATION:
            created = self.table.partition_created(partition)
            return "" if created.startswith("0") else created.ljust(17, "9")  # F499
        return last_write(self.table.storage.names(partition))

    def _delete(self, client: Any, instant: str, partitions: list[str]) -> None:
        result = client.deletePartitions(self.table.java_list(partitions), instant)
        nothing = self.table.no_option()
        client.commit(instant, result.getWriteStatuses(), nothing, ACTION, result.getPartitionToReplaceFileIds())
