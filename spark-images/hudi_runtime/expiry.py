"""Partition lifecycle (TTL): partitions that nobody has written for so many days are replaced by nothing, in a commit of the agent's.

The commit is an ordinary one of Hudi's `delete_partition`: readers see the partitions until it is completed, and their files go with a later
clean. It yields to writers: it is refused when one has changed a file group of those partitions since it began, or may yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_runtime.hudi import Table
from hudi_runtime.rewriting import Config, require_completed
from hudi_runtime.triggers import Done, Result

ACTION = "replacecommit"
PATTERN = "hudi.operator.ttl.partition.pattern"
"""Not an option of Hudi's: only partitions whose whole path matches it expire."""
LIMIT = "hoodie.partition.ttl.strategy.max.delete.partitions"
"""Partitions of one run. Hudi would count those that do not match the pattern, too, and never get past them."""
SHOWN = 5


@dataclass(frozen=True)
class Expiry:
    """Deletes expired partitions of one table."""

    table: Table
    config: Config
    withdrawn: Callable[[str], None]
    """Hears of an own instant that will not be completed: it is given up, and rolled back like that of a writer."""

    def run(self, options: Mapping[str, str]) -> Done:
        """Find what has expired, and delete it in one commit. Raises what a lost conflict raises; the instant is given up then."""
        config = self.config({**{key: value for key, value in options.items() if key != PATTERN}, LIMIT: str(2**31 - 1)})
        expired = self._expired(config, options.get(PATTERN, ""))[: int(options[LIMIT])]
        if not expired:
            return Done(Result.NOTHING_TO_DO, message="no partition has expired")
        with self.table.client(config) as client:
            instant = str(client.startCommit(ACTION))
            try:
                self._delete(client, instant, expired)
            except Exception:
                # It writes no data file, so that nothing of it can be late. One whose outcome is unknown is kept: whoever looks finds out.
                self.withdrawn(instant)
                raise
        require_completed(self.table, instant)
        shown = ", ".join(expired[:SHOWN]) + (", …" if len(expired) > SHOWN else "")
        return Done(Result.COMPLETED, instant, f"{len(expired)} partitions deleted: {shown}")

    def _expired(self, config: Any, pattern: str) -> list[str]:
        found = (str(path) for path in self.table.expired_partitions(config))
        return sorted(path for path in found if not pattern or re.fullmatch(pattern, path))

    def _delete(self, client: Any, instant: str, partitions: list[str]) -> None:
        result = client.deletePartitions(self.table.java_list(partitions), instant)
        nothing = self.table.no_option()
        client.commit(instant, result.getWriteStatuses(), nothing, ACTION, result.getPartitionToReplaceFileIds())
