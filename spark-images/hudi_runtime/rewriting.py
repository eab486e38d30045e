"""The services that write rows again in other files: compaction and clustering. First a plan, an instant of its own, then its execution.

Beside writers they behave differently. A compaction that ends while a commit to its file group is being written is no conflict. A clustering
replaces file groups, so it loses against every commit that has changed one of them since it was planned, or may yet (Hudi's PreferWriter
rules, asked under the lock): a plan that has lost describes file groups that are no more, and is withdrawn. Nothing of it was published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_runtime.errors import FailureClass, OutcomeUnknown, RuntimeFailure, classify
from hudi_runtime.hudi import Table
from hudi_runtime.sweep import remove_heartbeat
from hudi_runtime.timeline import State
from hudi_runtime.triggers import Done, Result

GIVE_UP = 3
"""Failures in a row after which the plan of a clustering is withdrawn: a new one may do without what it stumbles over."""

ACTION = "clustering"
Config = Callable[[Mapping[str, str]], Any]


def require_completed(table: Table, instant: str) -> None:
    """Raises OutcomeUnknown unless a fresh timeline shows the instant as completed."""
    found = table.timeline().get(instant)
    if found is None or found.pending:
        raise OutcomeUnknown(f"instant {instant} is not completed after its execution")


@dataclass(frozen=True)
class Compaction:
    """Merges log files into base files."""

    table: Table
    config: Config

    def run(self, options: Mapping[str, str], *, planned: Callable[[str], None]) -> Done:
        """Plan a compaction and execute it; `planned` hears of its instant before the execution."""
        with self.table.client(self.config(options)) as client:
            plan = client.scheduleCompaction(self.table.no_option())
            if not plan.isPresent():
                return Done(Result.NOTHING_TO_DO, message="no log file to compact")
            instant = str(plan.get())
            planned(instant)
            client.compact(instant, True)
        return self._done(instant)

    def again(self, instant: str, options: Mapping[str, str], *, failures: int) -> Done:
        """Execute a pending plan. What an earlier execution has written is rolled back first, by Hudi, to the plan.

        A heartbeat file that its dead executor has left would make Hudi wait for it.
        """
        remove_heartbeat(self.table, instant)
        with self.table.client(self.config(options)) as client:
            client.compact(instant, True)
        return self._done(instant)

    def _done(self, instant: str) -> Done:
        require_completed(self.table, instant)
        return Done(Result.COMPLETED, instant, "compacted")


@dataclass(frozen=True)
class Clustering:
    """Writes the rows of small or unsorted file groups into new, larger or sorted ones, which replace them."""

    table: Table
    config: Config
    withdrawn: Callable[[str], None]
    """Hears of an own instant that was rolled back after all of its tasks had ended."""
    lost: Callable[[str], None]
    """Hears of an own instant that was rolled back while a task of a failed execution may still be at work."""

    def run(self, options: Mapping[str, str], *, planned: Callable[[str], None]) -> Done:
        """Plan a clustering and execute it; `planned` hears of its instant before the execution. Raises what a lost conflict raises."""
        with self.table.client(self.config(options)) as client:
            plan = client.scheduleClustering(self.table.no_option())
            if not plan.isPresent():
                return Done(Result.NOTHING_TO_DO, message="no file group to cluster")
            instant = str(plan.get())
            planned(instant)
            return self._execute(client, instant, ended=self.withdrawn)

    def again(self, instant: str, options: Mapping[str, str], *, failures: int) -> Done:
        """Execute a pending plan, rolled back to the plan first, by Hudi; withdraw it instead when it has failed too often.

        What has changed its file groups since it was planned is found by the conflict check, however long ago that was: archival keeps it.
        """
        remove_heartbeat(self.table, instant)
        found = self.table.timeline().get(instant)
        # Before its execution has begun Hudi would not roll it back.
        planned = found is not None and found.action == ACTION and found.state is State.REQUESTED
        with self.table.client(self.config(options)) as client:
            if failures < GIVE_UP or planned:
                return self._execute(client, instant, ended=self.lost if failures else self.withdrawn)
            self._withdraw(client, instant)
        self.lost(instant)
        raise RuntimeFailure(FailureClass.INFRASTRUCTURE, f"clustering {instant} was rolled back after {failures} failures")

    def _execute(self, client: Any, instant: str, *, ended: Callable[[str], None]) -> Done:
        try:
            client.cluster(instant, True)
        except Exception as error:
            if classify(error).kind is FailureClass.WRITE_CONFLICT:
                # The conflict is looked for when everything is written.
                self._withdraw(client, instant)
                ended(instant)
            raise
        require_completed(self.table, instant)
        return Done(Result.COMPLETED, instant, "clustered")

    def _withdraw(self, client: Any, instant: str) -> None:
        """Roll back a pending plan of this incarnation, plan included. Raises OutcomeUnknown when the timeline does not show its end (I4)."""
        found = self.table.timeline().get(instant)
        if found is None or not found.pending or found.action != ACTION:
            raise OutcomeUnknown(f"instant {instant} is not a pending clustering: nothing is rolled back")
        client.purgePendingClustering(instant)
        timeline = self.table.timeline()
        if timeline.get(instant) is not None:
            raise OutcomeUnknown(f"clustering {instant} is still on the timeline after its rollback")
        if instant in self.table.pending_rollbacks(timeline):
            raise OutcomeUnknown(f"the rollback of clustering {instant} is still pending")
