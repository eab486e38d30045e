"""Mutations of what a clustering leaves out because one has lost there."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, SERVICES, TRIGGERS, a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.mutation import AVAILABILITY, mutation

LEFT_OUT = f"{RUNTIME}/services/test_partition_backoff.py"
REWRITING = f"{RUNTIME}/services/test_rewriting.py"

LEAVING_OUT = (
    mutation(
        "plans-what-has-lost",
        AVAILABILITY,
        "a clustering plans the partitions again in which it has lost: where one is always written it never wins",
        a("services/rewriting", ", **partition_backoff.option(names)", ", **partition_backoff.option(())"),
        f"{REWRITING}::test_the_next_plan_does_without",
    ),
    mutation(
        "leaves-out-whatever-is-written",
        AVAILABILITY,
        "a partition is left out because other file groups of it were changed than those of the plan",
        a("services/rewriting", ", among=groups)", ")"),
        f"{REWRITING}::test_it_is_known_where_a_plan_has_lost",
    ),
    mutation(
        "commits-that-are-under-way-are-not-seen",
        AVAILABILITY,
        "a clustering that lost to writes that are not completed does not find out where",
        a(
            "services/rewriting",
            "i.state is State.INFLIGHT or i.completion > since",
            "not i.pending and i.completion > since",
        ),
        f"{REWRITING}::test_it_is_known_where_a_plan_has_lost",
    ),
    mutation(
        "does-not-let-writers-say-where",
        AVAILABILITY,
        (
            "a clustering loses to every writer that has just begun, wherever it writes: those that waited for its "
            "plan begin together when that is made"
        ),
        j(
            "FencedConflictResolutionStrategy",
            "anyMatch(HoodieInstant::isRequested) && System",
            "anyMatch(HoodieInstant::isCompleted) && System",
        ),
        t("YieldingServiceTest.itHearsWhatAWriteSaysMeanwhile"),
    ),
    mutation(
        "left-out-for-ever",
        AVAILABILITY,
        "a partition that is written now and then is never clustered again once clusterings have lost there",
        a(
            "services/partition_backoff",
            "min(self.changed_ms + self.quiet_ms, self.at_ms + LONGEST_MS)",
            "self.changed_ms + self.quiet_ms",
        ),
        f"{LEFT_OUT}::test_nothing_is_left_out_for_ever",
    ),
    mutation(
        "quiet-is-what-nobody-has-looked-at",
        AVAILABILITY,
        "a partition that is left out counts as quiet although it is written all the time",
        a("services/partition_backoff", "max(loss.changed_ms, changes.get(name, 0))", "loss.changed_ms"),
        f"{LEFT_OUT}::test_left_out_until_it_is_quiet_for_as_long_as_the_lost_run_took",
        f"{REWRITING}::test_a_run_looks_at_what_was_written_since_the_last_one",
    ),
    mutation(
        "it-was-left-out-and-is-forgotten",
        AVAILABILITY,
        "a partition that was left out and is quiet waits for commits that may never come",
        a("services/triggers", '    return RETURN if record.left_out > left_out else ""\n', '    return ""\n'),
        f"{TRIGGERS}::test_partitions_that_were_left_out_are_not_forgotten",
        f"{SERVICES}::test_a_run_that_left_partitions_out_is_followed_by_another_one",
    ),
    mutation(
        "asked-for-and-served-for-ever",
        AVAILABILITY,
        "a run that a person asks for is not noted as served: the service runs again and again",
        a(
            "services/services",
            "runs = (*known, asked.run)[-KEPT_RUNS:] if asked.run else record.runs",
            "runs = record.runs",
        ),
        f"{SERVICES}::test_a_run_that_a_person_asks_for_is_served_once",
    ),
    mutation(
        "asked-for-between-the-tries",
        AVAILABILITY,
        "a run that a person asks for, and that ends its agent each time, is repeated without a pause",
        (
            a(
                "services/triggers",
                '    if now_ms < record.retry_at_ms:\n        return ""\n    if request.run',
                "    if request.run",
            ),
        ),
        f"{TRIGGERS}::test_what_a_person_asks_for_runs_once",
        f"{SERVICES}::test_a_run_that_a_person_asks_for_is_served_once",
    ),
    mutation(
        "a-lost-run-is-forgotten",
        AVAILABILITY,
        "a run that was begun for a partition that is quiet again, and lost, is not followed by another one",
        a(
            "services/services",
            "len(self._actions.backoff.partitions(now_ms())) + 1)",
            "len(self._actions.backoff.partitions(now_ms())))",
        ),
        f"{SERVICES}::test_a_run_that_was_lost_is_followed_by_another_one",
    ),
    mutation(
        "runs-without-a-look",
        AVAILABILITY,
        "a clustering begins whenever a partition might be quiet, without a look at what was written to it",
        a("services/services", "if not returning or self._return(kind, record):", "if kind:"),
        f"{SERVICES}::test_what_seems_quiet_is_looked_at_first",
    ),
    mutation(
        "left-out-and-not-on-record",
        AVAILABILITY,
        (
            "a partition that was left out is not on record in the plan: Hudi does not look at it again until "
            "somebody writes to it"
        ),
        j("QuietPartitionsPlanStrategy", "? missing : planned)", "? new ArrayList<String>() : planned)"),
        t("QuietPartitionsPlanTest.whatIsLeftOutIsOnRecord"),
    ),
    mutation(
        "fewer-partitions-than-are-skipped",
        AVAILABILITY,
        "clustering fails on a table with fewer partitions than skipNewestPartitions, as Hudi itself does",
        j(
            "QuietPartitionsPlanStrategy",
            "        Pair<List<String>, List<String>> ofTheUser = allSkipped(config, partitions)\n",
            "        Pair<List<String>, List<String>> ofTheUser = partitions.isEmpty()\n",
        ),
        t("QuietPartitionsPlanTest.fewerPartitionsThanAreSkipped"),
    ),
    mutation(
        "again-beside-tasks-of-the-first-execution",
        "F632 I5",
        "a plan is executed again while tasks of its first execution may still upload a file that nobody sweeps",
        a("services/services", "                self._end_leftovers()\n", "                pass\n"),
        f"{SERVICES}::test_nothing_is_executed_again_while_tasks_of_its_first_execution_run",
    ),
    mutation(
        "again-beside-threads-that-begin-tasks",
        "F632 I5",
        "a plan is executed again while a thread of Hudi may begin a task of the first execution",
        a("services/tasks", "group=self._group) and not begins:", "group=self._group):"),
        f"{SERVICES}::test_nothing_is_executed_again_while_tasks_of_its_first_execution_run",
    ),
)
