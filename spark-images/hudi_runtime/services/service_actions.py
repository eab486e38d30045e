"""The table services as Hudi runs them. Nothing here decides when.

Every client carries the failed-writes policy NEVER on its built config: Hudi's `clean()` would otherwise roll back what it takes for dead (F2).
An instant is executed only by the incarnation that owns or has claimed it (I12); done is what a fresh timeline says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_contract.settle import Phase, SettleRecord
from hudi_contract.words import Result
from hudi_runtime.job import merging
from hudi_runtime.process.errors import OutcomeUnknown
from hudi_runtime.services.expiry import Expiry
from hudi_runtime.services.partition_backoff import PartitionBackoff
from hudi_runtime.services.rewriting import Clustering, Compaction, require_completed
from hudi_runtime.services.triggers import Done
from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.settle.rollback import NEVER_KEY, NotYet
from hudi_runtime.settle.settle import Records, instants_of
from hudi_runtime.table import timeline as tl

#: Services are switched on for these clients only, and nothing runs beside what is asked for.
OPTIONS = {
    "hoodie.table.services.enabled": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.clean.multiple.enabled": "false",
    "hoodie.compact.inline": "false",
    "hoodie.compact.schedule.inline": "false",
    "hoodie.clustering.inline": "false",
    "hoodie.clustering.schedule.inline": "false",
    "hoodie.partition.ttl.inline": "false",
    # Otherwise an instant that cannot be written to the archive would be deleted from the active timeline all the same.
    "hoodie.fail.on.timeline.archiving": "true",
}
MAX_ARCHIVED = 200
"""Commits that one run archives at most: it holds the lock, and who holds it for long is fenced. A backlog goes in several runs."""
KEEP_MIN, KEEP_MAX = "hoodie.keep.min.commits", "hoodie.keep.max.commits"


@dataclass(frozen=True)
class Actions:
    """The services of one table."""

    table: AgentTable
    name: str
    options: Mapping[str, str]
    records: Callable[[], Records]
    """Reads the table's keys in etcd now."""
    withdrawn: Callable[[str], None]
    lost: Callable[[str], None]
    """See `Clustering`."""
    merge: merging.Merge = merging.LATER_COMMIT
    """Which of two versions of a record stays."""
    left_out: PartitionBackoff = field(default_factory=PartitionBackoff)
    """Where clusterings of this table have lost, as long as this agent lives."""

    def config(self, options: Mapping[str, str]) -> Any:
        """A write config for a service. Raises OutcomeUnknown when the policy NEVER does not hold on it."""
        config = self.table.write_config(self.name, {**self.options, **options, **OPTIONS})
        config.setValue(NEVER_KEY, "NEVER")
        if not config.getFailedWritesCleanPolicy().isNever():
            raise OutcomeUnknown("the client's failed-writes policy is not NEVER: no service runs")
        return config

    def writing_config(self, options: Mapping[str, str]) -> Any:
        """The same for a service that makes a commit of its own; Hudi wants to be told the schema."""
        config = self.config(options)
        config.setSchema(self.table.schema())
        return config

    def _merging(self, config: Callable[[Mapping[str, str]], Any], options: Mapping[str, str]) -> Any:
        """A config for a service that merges versions of records. Raises NoMerger when the class for it is not there: nothing is planned then."""
        self.table.require_merger(self.merge)
        return config(options)

    # -- clean ---------------------------------------------------------------------------------------------------------------------

    def clean(self, options: Mapping[str, str], *, mine: frozenset[str]) -> Done:
        """Plan and execute a clean, or finish those that are pending. `mine` are the service instants of this incarnation.

        Hudi executes every pending clean that it finds, so all of them must be ours.
        """
        others = [i.requested for i in self.table.timeline().pending if i.action == "clean" and i.requested not in mine]
        if others:
            raise NotYet(f"clean {others[0]} belongs to another incarnation")
        with self.table.client(self.config(options)) as client:
            metadata = client.clean()
        if metadata is None:
            return Done(Result.NOTHING_TO_DO, message="no file is old enough")
        instant = str(metadata.getStartCleanTime())
        require_completed(self.table, instant)
        return Done(Result.COMPLETED, instant, f"{int(metadata.getTotalFilesDeleted())} files deleted")

    # -- services with a plan ------------------------------------------------------------------------------------------------------

    @property
    def compaction(self) -> Compaction:
        """Compaction of this table."""
        return Compaction(self.table, lambda options: self._merging(self.config, options))

    @property
    def clustering(self) -> Clustering:
        """Clustering of this table."""
        return Clustering(self.table, lambda options: self._merging(self.writing_config, options), self.withdrawn, self.lost, self.left_out)

    @property
    def expiry(self) -> Expiry:
        """Partition lifecycle of this table."""
        return Expiry(self.table, self.writing_config, self.withdrawn)

    # -- archival ------------------------------------------------------------------------------------------------------------------

    def archive(self, options: Mapping[str, str]) -> Done:
        """Archive the oldest instants. Timeline and records are read under the lock, so nothing can become older than the floor meanwhile."""
        with self.table.locked(self.config(options)):
            timeline = self.table.timeline()
            least = max(keep_at_least(timeline, floor(timeline, self.records())), commits(timeline) - MAX_ARCHIVED)
            archived = self.table.archive(self.config(with_least(options, least)))
        if not archived:
            return Done(Result.NOTHING_TO_DO, message="nothing may be archived yet")
        return Done(Result.COMPLETED, message=f"{archived} instants archived")


def floor(timeline: tl.Timeline, records: Records) -> str:
    """The oldest instant that has to stay in the active timeline; empty when nothing has to (I5, I9). Raises ShapeError: then nothing is archived.

    * Instants whose files may not be swept yet: those of settle records that are not Swept, given up ones, and every recorded one. A late
      file of theirs would be taken for committed once the active timeline begins after it.
    * Commits that completed after a pending instant was requested: its conflict check reads them from the active timeline. Hudi itself
      keeps by requested time only, and would let a long commit go that completed meanwhile.
    """
    named = set(records.instants)
    for inc, entry in records.settles.items():
        record = SettleRecord.from_json(entry.value)
        if record.phase < Phase.Swept:
            named |= set(instants_of(inc, record, records))
    for inc in records.given_up:
        named.update(records.given_up_by(inc))
    pending = {i.requested for i in timeline.pending} | {t for t in records.instants if (found := timeline.get(t)) is None or found.pending}
    oldest = min(pending, default="")
    overlapping = {i.requested for i in timeline.completed if oldest and i.completion > oldest}
    return min(named | pending | overlapping, default="")


def keep_at_least(timeline: tl.Timeline, oldest: str) -> int:
    """How many of the newest completed commits hold everything from `oldest` on; 0 when it is empty.

    One more than are as new as it: the active timeline must begin before `oldest`, or readers take its files for committed.
    """
    return 1 + sum(1 for i in timeline.completed if i.requested >= oldest and i.action in tl.WRITE_ACTIONS) if oldest else 0


def commits(timeline: tl.Timeline) -> int:
    """Completed commits of the active timeline."""
    return sum(1 for i in timeline.completed if i.action in tl.WRITE_ACTIONS)


def with_least(options: Mapping[str, str], least: int) -> dict[str, str]:
    """Archival options that keep at least so many commits."""
    minimum, maximum = int(options[KEEP_MIN]), int(options[KEEP_MAX])
    if least <= minimum:
        return dict(options)
    return {**options, KEEP_MIN: str(least), KEEP_MAX: str(max(maximum, least + 1))}
