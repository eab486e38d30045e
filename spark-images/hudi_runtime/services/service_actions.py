"""Execution of the table services by Hudi.

This module does not decide when they run.

Every client has the failed-writes policy NEVER on its built config: otherwise Hudi's `clean()`
would roll back instants that it considers dead (F2). Only the incarnation that owns or has claimed
an instant executes it (I12); an instant is done when a fresh timeline shows it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hudi_contract.settle import Phase, SettleRecord
from hudi_contract.table_keys import InstantRecord
from hudi_contract.words import Result
from hudi_runtime.job import merging
from hudi_runtime.process.errors import OutcomeUnknown
from hudi_runtime.process.etcd import now_ms
from hudi_runtime.services import holds
from hudi_runtime.services.expiry import Expiry, before
from hudi_runtime.services.partition_backoff import PartitionBackoff
from hudi_runtime.services.rewriting import Clustering, Compaction, require_completed
from hudi_runtime.services.triggers import Done
from hudi_runtime.settle.agent_table import AgentTable, CleanPlan
from hudi_runtime.settle.rollback import NEVER_KEY, NotYet
from hudi_runtime.settle.settle import Records, instants_of
from hudi_runtime.table import timeline as tl

#: Services are enabled for these clients only, and only the requested service runs.
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
    # Otherwise an instant that cannot be written to the archive would still be deleted from the
    # active timeline.
    "hoodie.fail.on.timeline.archiving": "true",
}
MAX_ARCHIVED = 200
"""Maximum number of commits that one run archives: it holds the lock, and a long hold leads to a
fence. A backlog takes several runs.
"""
PLANS = 5
"""Number of times that a clean is planned before it waits for its next turn."""
HOURS = "hoodie.clean.hours.retained"
"""Set with the policy that keeps what was valid in the last hours, and no other."""
KEEP_MIN, KEEP_MAX = "hoodie.keep.min.commits", "hoodie.keep.max.commits"


@dataclass(frozen=True)
class Actions:
    """The services of one table."""

    table: AgentTable
    name: str
    options: Callable[[], Mapping[str, str]]
    """Hudi options of the agent's clients, at each use."""
    records: Callable[[], Records]
    """Reads the table's present keys in etcd."""
    withdrawn: Callable[[str], None]
    lost: Callable[[str], None]
    """See `Clustering`."""
    merge: merging.Merge = merging.LATER_COMMIT
    """Merging of two versions of a record."""
    backoff: PartitionBackoff = field(default_factory=PartitionBackoff)
    """The partitions in which clusterings of this table have lost, for the lifetime
    of this agent.
    """
    gone: set[str] = field(default_factory=set)
    """Commits of which no replaced file was there any more."""
    removing: threading.Lock = field(default_factory=threading.Lock)
    """Held while the plan of a clean is compared with the records and saved, and while instants are
    archived. The holder of the lock sees either as over, or as not begun; and both see earlier
    records.
    """

    def config(self, options: Mapping[str, str]) -> Any:
        """A write config for a service.

        Raises OutcomeUnknown when it does not have the policy NEVER.
        """
        config = self.table.write_config(self.name, {**self.options(), **options, **OPTIONS})
        config.setValue(NEVER_KEY, "NEVER")
        if not config.getFailedWritesCleanPolicy().isNever():
            raise OutcomeUnknown("the client's failed-writes policy is not NEVER: no service runs")
        return config

    def writing_config(self, options: Mapping[str, str]) -> Any:
        """A write config for a service that makes its own commit.

        Hudi needs the schema for it.
        """
        config = self.config(options)
        config.setSchema(self.table.schema())
        return config

    def _merging(self, config: Callable[[Mapping[str, str]], Any], options: Mapping[str, str]) -> Any:
        """A config for a service that merges versions of records.

        Raises NoMerger when the merger class is missing: nothing is planned then.
        """
        self.table.require_merger(self.merge)
        return config(options)

    # -- clean -------------------------------------------------------------------------------------

    def clean(self, options: Mapping[str, str], *, mine: frozenset[str]) -> Done:
        """Plan and execute a clean, or finish pending ones.

        `mine` are the service instants of this incarnation.

        Hudi executes every pending clean that it finds, so all of them must belong to this
        incarnation.
        """
        pending = [i.requested for i in self.table.timeline().pending if i.action == "clean"]
        others = [requested for requested in pending if requested not in mine]
        if others:
            raise NotYet(f"clean {others[0]} belongs to another incarnation")
        emptied: list[str] = []
        if not pending:
            plan = self._plan_clean(options)
            if plan is None:
                return Done(Result.NOTHING_TO_DO, message=self._nothing_to_clean())
            emptied = plan.emptied()
        with self.table.client(self.config(options)) as client:
            metadata = client.clean()
        if metadata is None:
            return Done(Result.NOTHING_TO_DO, message="no file is old enough")
        instant = str(metadata.getStartCleanTime())
        require_completed(self.table, instant)
        self.table.emptied(emptied, instant)
        return Done(Result.COMPLETED, instant, f"{int(metadata.getTotalFilesDeleted())} files deleted")

    def _nothing_to_clean(self) -> str:
        named = self._names_of_holds()
        return f"no file is old enough{f' beside {named}' if named else ''}"

    def _names_of_holds(self) -> str:
        """The holds that last, in words; empty when there is none."""
        names = [hold.name for hold in holds.lasting(self.records().holds, now_ms())]
        return f"hold{'s' if len(names) > 1 else ''} {', '.join(names)}" if names else ""

    def _plan_clean(self, options: Mapping[str, str]) -> CleanPlan | None:
        """Put the plan of a clean on the timeline; None when there is nothing to delete.

        No plan deletes what a pending write may still have to list (F464): a write lists the files
        of its partitions as of its begin, but possibly much later, and to it a file group whose
        version of that time is gone has no rows. Planning takes long, so it is done without the
        lock; under it, when nothing can complete, the plan is compared with the writes that are
        pending then.
        """
        for _ in range(PLANS):
            timeline = self.table.timeline()
            least = keep_at_least(timeline, self._kept_from(timeline, options))
            plan = self.table.plan_clean(self.config(options), least)
            if plan is None:
                return None
            with self.table.locked(self.config(options)), self.removing:
                needed = self._kept_from(self.table.timeline(), options)
                if not needed or plan.keeps_from(needed):
                    plan.save()
                    return plan
        raise NotYet("writes have begun while the clean was planned")

    def _kept_from(self, timeline: tl.Timeline, options: Mapping[str, str]) -> str:
        """The oldest instant whose files, and those that it replaced, stay under any policy.

        Empty when there is none.
        """
        records = self.records()
        held = holds.held_from(timeline, records.holds, now_ms())
        return min({needed_from(timeline, records), _valid_since(timeline, options), held} - {""}, default="")

    # -- services with a plan ----------------------------------------------------------------------

    @property
    def compaction(self) -> Compaction:
        """Compaction of this table."""
        return Compaction(self.table, lambda options: self._merging(self.config, options))

    @property
    def clustering(self) -> Clustering:
        """Clustering of this table."""
        return Clustering(
            self.table,
            lambda options: self._merging(self.writing_config, options),
            self.withdrawn,
            self.lost,
            self.backoff,
        )

    @property
    def expiry(self) -> Expiry:
        """Partition lifecycle of this table."""
        return Expiry(self.table, self.writing_config, self.withdrawn)

    # -- archival ----------------------------------------------------------------------------------

    def archive(self, options: Mapping[str, str]) -> Done:
        """Archive the oldest instants.

        Timeline and records are read under the lock, so the floor cannot move back meanwhile.
        Replaced files are looked for before: those that are gone do not come back.
        """
        self._look_for_replaced(options)
        with self.table.locked(self.config(options)), self.removing:
            timeline, records = self.table.timeline(), self.records()
            oldest = floor(timeline, records)
            needed = keep_at_least(timeline, oldest)
            held = keep_at_least(timeline, holds.held_from(timeline, records.holds, now_ms()))
            replaced = since_replaced(timeline, self.gone)
            least = max(
                needed,
                held,
                # A clean has to know of them.
                keep_at_least(timeline, _valid_since(timeline, options)),
                replaced,
                commits(timeline) - MAX_ARCHIVED,
            )
            archived = self.table.archive(self.config(with_least(options, least)))
        if not archived:
            reason = ""
            if least > int(options[KEEP_MIN]) and commits(timeline) > int(options[KEEP_MAX]):
                reason = owner_that_holds(timeline, oldest, records) if least == needed else ""
                reason = reason or (f"commits stay for {self._names_of_holds()}" if least == held else "")
                reason = reason or (self._replaced_that_holds(timeline) if least == replaced else "")
            return Done(Result.NOTHING_TO_DO, message=f"nothing may be archived yet{reason and f': {reason}'}")
        return Done(Result.COMPLETED, message=f"{archived} instants archived")

    def _replaced_that_holds(self, timeline: tl.Timeline) -> str:
        """Message about a commit that stays because files that it has replaced exist, or empty."""
        first = next((i.requested for i in replacing(timeline) if i.requested not in self.gone), "")
        return first and f"files that {first} has replaced are there: a clean deletes them first"

    def _look_for_replaced(self, options: Mapping[str, str]) -> None:
        """Find out which of the oldest commits have replaced files that are all gone.

        It ends at the first one with a file that is there. Each folder is listed once, because a
        commit without such files is archived or remembered.
        """
        timeline = self.table.timeline()
        written = sorted(i.requested for i in timeline.completed if i.action in tl.WRITE_ACTIONS)
        if len(written) <= int(options[KEEP_MAX]):
            return
        oldest = written[: min(len(written) - int(options[KEEP_MIN]), MAX_ARCHIVED)]
        for instant, info in self.table.written(
            tuple(i for i in replacing(timeline) if i.requested in set(oldest) - self.gone)
        ):
            if self.table.any_file_of(info.replaced):
                return
            self.gone.add(instant.requested)


def floor(timeline: tl.Timeline, records: Records) -> str:
    """The oldest instant that must stay in the active timeline; empty when there is none (I5, I9).

    Raises ShapeError: then nothing is archived.

    * Instants whose files may not be swept yet: those of settle records before Swept, abandoned
      ones, and all recorded ones. Readers would treat their late files as committed once the active
      timeline begins after the instant.
    * Commits that completed after a pending instant was requested: its conflict check reads them
      from the active timeline. Hudi itself keeps commits by requested time only, and would archive
      a long commit that completed meanwhile.
    """
    named = set(records.instants)
    for inc, entry in records.settles.items():
        record = SettleRecord.from_json(entry.readable)
        if record.phase < Phase.Swept:
            named |= set(instants_of(inc, record, records))
    for inc in records.given_up:
        named.update(records.given_up_by(inc))
    return min(named | {needed_from(timeline, records)} - {""}, default="")


def owner_that_holds(timeline: tl.Timeline, oldest: str, records: Records) -> str:
    """Message about an incarnation that holds the floor of archival until it ends; empty: none.

    An instant that it has given up, or completed although an executor was lost meanwhile, is swept
    once more after its end, and archival waits for that as long as it runs (F497, F601).
    """
    if not oldest:
        return ""
    later = "newer instants are not archived until its process has ended"
    for inc in records.given_up:
        if oldest in records.given_up_by(inc):
            return f"incarnation {inc} has abandoned instant {oldest}: {later}"
    found, entry = timeline.get(oldest), records.instants.get(oldest)
    if entry is None or found is None or found.pending:
        return ""
    return (
        f"incarnation {InstantRecord.from_json(entry.readable).inc} has completed instant {oldest}, and a file of it "
        f"may still come, because an executor was lost or a stage repeated: {later}"
    )


def needed_from(timeline: tl.Timeline, records: Records) -> str:
    """The oldest instant that a pending write depends on; empty when nothing is pending.

    It is the oldest of the pending instants and of those that have completed since the oldest
    pending one was requested.
    """
    pending = {i.requested for i in timeline.pending} | {
        t for t in records.instants if (found := timeline.get(t)) is None or found.pending
    }
    oldest = min(pending, default="")
    overlapping = {i.requested for i in timeline.completed if oldest and i.completion > oldest}
    return min(pending | overlapping, default="")


def replacing(timeline: tl.Timeline) -> list[tl.Instant]:
    """Completed commits that may have replaced file groups, oldest first."""
    return sorted(i for i in timeline.completed if i.action == "replacecommit")


def since_replaced(timeline: tl.Timeline, gone: Collection[str]) -> int:
    """Number of newest completed commits from the first one whose replaced files are there.

    `gone` are those without such files. Only the active timeline says that they are replaced:
    without it their rows are back (F479). Hudi keeps such a commit by what the last clean says of
    itself.
    """
    first = next((i.requested for i in replacing(timeline) if i.requested not in gone), "")
    return keep_at_least(timeline, first) - 1 if first else 0


def valid_since(timeline: tl.Timeline, since: str) -> str:
    """The oldest commit that was requested before that time and has completed since; else empty.

    Until it completed, readers saw the files that it replaced. Hudi takes such a commit for one of
    before that time, and deletes them (F475).
    """
    return min((i.requested for i in timeline.completed if i.requested < since < i.completion), default="")


def _valid_since(timeline: tl.Timeline, options: Mapping[str, str]) -> str:
    """The same with the hours of a clean's options; empty with another policy."""
    return valid_since(timeline, before(datetime.now(UTC), hours=int(options[HOURS]))) if HOURS in options else ""


def keep_at_least(timeline: tl.Timeline, oldest: str) -> int:
    """Number of newest completed commits to keep, so that all commits from `oldest` on stay.

    0 when it is empty.

    This is one more than the commits since `oldest`: the active timeline must begin before
    `oldest`, or readers treat its files as committed.
    """
    return (
        1 + sum(1 for i in timeline.completed if i.requested >= oldest and i.action in tl.WRITE_ACTIONS)
        if oldest
        else 0
    )


def commits(timeline: tl.Timeline) -> int:
    """Completed commits of the active timeline."""
    return sum(1 for i in timeline.completed if i.action in tl.WRITE_ACTIONS)


def with_least(options: Mapping[str, str], least: int) -> dict[str, str]:
    """Archival options that keep at least `least` commits."""
    minimum, maximum = int(options[KEEP_MIN]), int(options[KEEP_MAX])
    if least <= minimum:
        return dict(options)
    return {**options, KEEP_MIN: str(least), KEEP_MAX: str(max(maximum, least + 1))}
