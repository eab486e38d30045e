"""The services that rewrite rows into other files: compaction and clustering.

Each first makes a plan, which is a separate instant, and then executes it.

They differ with concurrent writers. A compaction that ends while a commit to its file group is
being written is not a conflict. A clustering replaces file groups, so it loses against every commit
that has changed one of them since it was planned, or may still do so (Hudi's PreferWriter rules,
checked under the lock). A lost plan describes file groups that no longer exist, and is withdrawn;
nothing of it was published. The partitions in which it has lost are left out of the next plans for
a while (partition_backoff.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hudi_contract.outcomes import FailureClass
from hudi_contract.words import Result
from hudi_runtime.process.errors import OutcomeUnknown, RuntimeFailure, classify
from hudi_runtime.process.etcd import now_ms
from hudi_runtime.services import partition_backoff
from hudi_runtime.services.partition_backoff import Group, PartitionBackoff
from hudi_runtime.services.triggers import Done
from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.settle.sweep import remove_heartbeat
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.timeline import State

GIVE_UP = 3
"""Consecutive failures after which the plan of a clustering is withdrawn: a new plan may avoid
their cause.
"""

ACTION = "clustering"
PLAN_STRATEGY = {"hoodie.clustering.plan.strategy.class": "io.hudioperator.QuietPartitionsPlanStrategy"}
Planned = Callable[[str, int], None]
"""Called with the instant of a plan before its execution, and the number of partitions that it
leaves out.
"""
Config = Callable[[Mapping[str, str]], Any]


def others_since(timeline: tl.Timeline, since: str) -> tuple[tl.Instant, ...]:
    """Writes of other writers that completed after that time, or are inflight.

    They show which file groups were changed.
    """
    found = (i for i in timeline.instants if i.action in tl.WRITE_ACTIONS and not i.of_a_service)
    return tuple(i for i in found if i.state is State.INFLIGHT or i.completion > since)


def require_completed(table: AgentTable, instant: str) -> None:
    """Raises OutcomeUnknown unless a fresh timeline shows the instant as completed."""
    found = table.timeline().get(instant)
    if found is None or found.pending:
        raise OutcomeUnknown(f"instant {instant} is not completed after its execution")


@dataclass(frozen=True)
class Compaction:
    """Merges log files into base files."""

    table: AgentTable
    config: Config

    def run(self, options: Mapping[str, str], *, planned: Planned) -> Done:
        """Plan a compaction and execute it."""
        with self.table.client(self.config(options)) as client:
            plan = client.scheduleCompaction(self.table.no_option())
            if not plan.isPresent():
                return Done(Result.NOTHING_TO_DO, message="no log file to compact")
            instant = str(plan.get())
            planned(instant, 0)
            client.compact(instant, True)
        return self._done(instant)

    def again(self, instant: str, options: Mapping[str, str], *, failures: int) -> Done:
        """Execute a pending plan.

        Hudi first rolls back the files of an earlier execution, and keeps the plan.

        The heartbeat file is removed before: one left by a dead executor would make Hudi
        wait for it.
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
    """Writes the rows of small or unsorted file groups into new ones.

    The new ones are larger or sorted, and replace them.
    """

    table: AgentTable
    config: Config
    withdrawn: Callable[[str], None]
    """Called with an own instant that was rolled back after all of its tasks had ended."""
    lost: Callable[[str], None]
    """Called with an own instant that was rolled back while a task of a failed execution may still
    be running.
    """
    backoff: PartitionBackoff
    """The partitions in which clusterings of this table have lost."""

    def run(self, options: Mapping[str, str], *, planned: Planned) -> Done:
        """Plan a clustering and execute it. Raises RuntimeFailure when it loses a conflict."""
        self.look()
        names = self.backoff.partitions(now_ms())
        with self.table.client(self.config({**options, **PLAN_STRATEGY, **partition_backoff.option(names)})) as client:
            plan = client.scheduleClustering(self.table.no_option())
            if not plan.isPresent():
                done = Done(Result.NOTHING_TO_DO, message="no file group to cluster")
            else:
                instant = str(plan.get())
                planned(instant, len(names))
                done = self._execute(client, instant, ended=self.withdrawn)
        self.backoff.forget_all_but(names)
        return replace(
            done,
            message="; ".join(filter(None, (done.message, partition_backoff.described(names)))),
            left_out=len(names),
        )

    def look(self) -> None:
        """Read the changes since the last look in the partitions in which clusterings have lost."""
        if self.backoff.known:
            timeline = self.table.timeline()
            last = timeline.last_completed
            self.backoff.saw(
                partition_backoff.newest(self._changes(timeline, since=self.backoff.seen)),
                up_to=last.completion if last else "",
            )

    def _changes(self, timeline: tl.Timeline, *, since: str) -> Iterator[tuple[frozenset[Group], int]]:
        """File groups that writers changed, with times.

        In commits that completed after `since`, and in inflight ones.
        """
        now = now_ms()
        for instant, metadata in self.table.writes(others_since(timeline, since)):
            yield partition_backoff.changed(metadata), now if instant.pending else tl.milliseconds(instant.completion)

    def again(self, instant: str, options: Mapping[str, str], *, failures: int) -> Done:
        """Execute a pending plan, after Hudi has rolled it back to the plan.

        Withdraw it instead when it has failed too often.

        The conflict check finds all changes to its file groups since it was planned, however long
        ago: archival keeps those commits.
        """
        remove_heartbeat(self.table, instant)
        found = self.table.timeline().get(instant)
        # Hudi does not roll it back before its execution has begun.
        planned = found is not None and found.action == ACTION and found.state is State.REQUESTED
        with self.table.client(self.config(options)) as client:
            if failures < GIVE_UP or planned:
                return self._execute(client, instant, ended=self.lost if failures else self.withdrawn)
            self._withdraw(client, instant)
        self.lost(instant)
        raise RuntimeFailure(
            FailureClass.INFRASTRUCTURE, f"clustering {instant} was rolled back after {failures} failures"
        )

    def _execute(self, client: Any, instant: str, *, ended: Callable[[str], None]) -> Done:
        started = time.monotonic()
        try:
            client.cluster(instant, True)
        except Exception as error:
            failure = classify(error)
            if failure.kind is not FailureClass.WRITE_CONFLICT:
                raise
            # The conflict check runs after all files are written. The rollback removes
            # the plan, too.
            where = self._learn(instant, took_ms=int((time.monotonic() - started) * 1000))
            self._withdraw(client, instant)
            ended(instant)
            raise RuntimeFailure(failure.kind, f"{where}{failure.message}") from error
        require_completed(self.table, instant)
        return Done(Result.COMPLETED, instant, "clustered")

    def _learn(self, instant: str, *, took_ms: int) -> str:
        """Find the partitions in which a plan has lost, and describe those that will be left out.

        A failure here affects only the next plan.
        """
        try:
            groups = partition_backoff.planned(self.table.clustering_plan(instant))
            lost = partition_backoff.newest(self._changes(self.table.timeline(), since=instant), among=groups)
        except Exception as error:
            return f"the changed partitions are unknown ({type(error).__name__}). "
        self.backoff.lost(lost, instant=instant, took_ms=took_ms, now_ms=now_ms())
        names = partition_backoff.described([name for name in lost if name])
        return f"next time {names}. " if names else ""

    def _withdraw(self, client: Any, instant: str) -> None:
        """Roll back a pending plan of this incarnation, plan included.

        Raises OutcomeUnknown when the timeline does not show its end (I4).
        """
        found = self.table.timeline().get(instant)
        if found is None or not found.pending or found.action != ACTION:
            raise OutcomeUnknown(f"instant {instant} is not a pending clustering: nothing is rolled back")
        client.purgePendingClustering(instant)
        timeline = self.table.timeline()
        if timeline.get(instant) is not None:
            raise OutcomeUnknown(f"clustering {instant} is still on the timeline after its rollback")
        if instant in self.table.pending_rollbacks(timeline):
            raise OutcomeUnknown(f"the rollback of clustering {instant} is still pending")
