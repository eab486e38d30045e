"""Mutations of fairness between writers: giving way, taking turns, declared partitions.

They guard somebody's work; one guards rows, and is noticed by a test of the same races.
"""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.in_wrapper import NO_CONFLICT
from tests.campaigns.mutations.mutation import mutation

YIELDING = f"{RUNTIME}/writer/test_yielding.py"
WAITS = f"{RUNTIME}/writer/test_fairness.py"
RACES = "tests/tiers/hudi/test_fairness.py"
OUTCOMES = "tests/tiers/unit/plan/writers/test_committed_condition.py"
OVERLAPS = "tests/tiers/unit/plan/writers/test_overlaps.py"
LOST_TO = f"{RUNTIME}/writer/test_lost_to.py"

FAIRNESS = (
    mutation(
        "a-deletion-fails-beside-a-service",
        "F486 availability",
        "partitions that a pending compaction or clustering rewrites are not deleted, and nobody waits for it",
        a("process/errors", "|HoodieDeletePartitionPendingTableServiceException$", ""),
        f"{LOST_TO}::test_a_deletion_of_partitions_waits_for_the_service_that_rewrites_them",
        "tests/tiers/hudi/test_clustering.py::test_a_deletion_of_partitions_waits_for_a_clustering",
    ),
    mutation(
        "a-refused-look-up-has-lost-the-last-race",
        "F489",
        "a look-up that is refused because of a clean is told, and counted, as the conflict of an hour ago",
        a("writer/commit", "            and known != before\n"),
        f"{LOST_TO}::test_a_look_up_that_was_refused_has_lost_to_nobody",
    ),
    mutation(
        "a-refused-look-up-ends-the-attempt",
        "F489 availability",
        "rows of read_table() are made again although only the look-up of their keys was refused",
        a(
            "writer/commit",
            "            if batch.base is not None and abandoned:\n",
            "            if batch.base is not None:\n",
        ),
        f"{LOST_TO}::test_rows_of_the_table_stay_right_when_a_look_up_is_refused",
    ),
    mutation(
        "a-deletion-does-not-wait-for-a-service",
        "F486 availability",
        "a deletion of partitions uses up its tries while a service is at work",
        a(
            "writer/commit",
            "        if service := pending_service(java_causes(error)):\n",
            "        if service := '':\n",
        ),
        f"{LOST_TO}::test_a_deletion_of_partitions_waits_for_the_service_that_rewrites_them",
    ),
    mutation(
        "gives-way-for-ever",
        "availability",
        "a batch gives way to more important writers without end",
        a(
            "writer/fairness",
            "self._session.may_yield(MAX_YIELDS - self._yields)",
            "self._session.may_yield(MAX_YIELDS)",
        ),
        f"{YIELDING}::test_giving_way_is_no_retry_and_has_an_end",
    ),
    mutation(
        "giving-way-is-a-retry",
        "availability",
        "who gives way uses up a retry, and fails when there is none left",
        a("writer/commit", "            if conflict.yielded:\n                continue\n"),
        f"{YIELDING}::test_giving_way_is_no_retry_and_has_an_end",
    ),
    mutation(
        "wishes-are-not-heard",
        "availability",
        "the winner of many races goes on while the loser asks for its turn",
        a("writer/fairness", "if o.wish.against == self._me and", "if o.wish.against == o.writer and"),
        f"{WAITS}::test_the_winner_waits_until_the_loser_has_committed",
        f"{RACES}::test_with_turns_wasted_work_is_bounded",
    ),
    mutation(
        "a-lost-race-is-committed",
        "I9",
        "a slow writer commits over the commits that a quick one has made to its file group meanwhile",
        NO_CONFLICT,
        f"{RACES}::test_without_turns_the_slow_writer_never_commits",
    ),
    mutation(
        "waits-for-every-write",
        "availability",
        "the loser waits as long as the winner begins one write after the other",
        a(
            "writer/fairness",
            "for o in look.others if at_work & o.work)",
            "for o in look.others if at_work and o.work)",
        ),
        f"{WAITS}::test_the_loser_waits_for_the_write_that_the_winner_is_at",
    ),
    mutation(
        "the-dead-have-their-turn",
        "availability",
        "a wish counts although its writer is dead",
        a(
            "writer/fairness",
            "elif entry.name in alive and writer.attempt in reports:",
            "elif writer.attempt in reports:",
        ),
        f"{WAITS}::test_it_is_not_waited_for_the_dead",
    ),
    mutation(
        "after-you",
        "availability",
        "two writers that ask for their turn against each other wait for each other",
        a("writer/fairness", "return not mine.against or (other", "return bool(mine.against) or (other"),
        f"{WAITS}::test_of_two_wishes_the_older_one_goes_first",
    ),
    mutation(
        "the-modest-writer-is-starved",
        "F24",
        "a stream of important writers keeps a modest one out for ever",
        o("plan/writers/admission", "since_ms=since) < overlaps.MAX_OVERTAKES", "since_ms=since) >= 0"),
        f"{OVERLAPS}::test_a_modest_writer_is_not_starved",
    ),
    mutation(
        "slips-past",
        "F24",
        "a writer starts beside those that run although it would keep out one that has waited longer",
        o("plan/writers/admission", "            ahead.append(turn.writer)\n", "            ahead[:] = []\n"),
        f"{OVERLAPS}::test_nobody_slips_past_who_waits",
    ),
    mutation(
        "declares-nothing-writes-nothing",
        "availability",
        "a writer that declares no partitions is admitted beside everybody",
        o("api/partitions", 'tuple(patterns) or ("*",)', "tuple(patterns)"),
        f"{OVERLAPS}::test_who_declares_nothing_runs_alone",
    ),
    mutation(
        "patterns-are-compared-without-end",
        "F513",
        "writers with many long patterns keep the operator from every other table",
        o("plan/writers/overlaps", "        if self._left <= 0:\n", "        if not self._of:\n"),
        f"{OVERLAPS}::test_what_is_too_much_to_compare_waits",
    ),
    mutation(
        "a-star-stands-for-nothing",
        "F513",
        "writers whose patterns match a common partition run at once",
        o("api/partitions", "(reached | (self._above - reached)) & ~self._above", "reached"),
        "tests/tiers/unit/api/test_partitions.py::test_what_is_in_common_is_what_some_text_shows",
    ),
    mutation(
        "no-pattern-is-a-pattern",
        "availability",
        "a writer starts with patterns that `kubectl apply` refuses",
        o("api/spec", "if found := partitions.problem(pattern):", "if found := '':"),
        "tests/tiers/unit/api/test_partitions.py::test_what_is_no_pattern",
    ),
    mutation(
        "the-new-declaration-counts-at-once",
        "availability",
        "a declaration that was changed counts for the attempt that runs with the old one",
        o(
            "plan/writers/overlaps",
            "active.entry.generation != spec.ref",
            "not active.entry.generation and spec.ref",
        ),
        f"{OVERLAPS}::test_a_declaration_that_was_changed_counts_for_the_next_attempt",
    ),
    mutation(
        "stops-at-its-own-marker",
        "availability",
        "a write that stopped early is repeated at once, and stops at the markers of its own last try",
        a("writer/fairness", "frozenset({conflict.instant} if self._early else ())", "frozenset()"),
        f"{WAITS}::test_who_met_a_marker_waits_for_it_and_for_its_own_last_try",
    ),
    mutation(
        "declared-somewhere-in-the-path",
        "availability",
        "a partition is taken for declared when a pattern matches a part of its path",
        a("table/partitions", r"(?s)\A(?:", "(?s)(?:"),
        f"{RUNTIME}/table/test_declared_partitions.py::test_what_a_pattern_matches",
    ),
    mutation(
        "the-outcome-is-guessed",
        "I4",
        "of a writer that died the last write is said to be aborted before the timeline was looked at",
        o(
            "plan/writers/committed_condition",
            "if any(not inc.settled for inc in incs):",
            "if any(not inc.inc for inc in incs):",
        ),
        f"{OUTCOMES}::test_a_killed_writers_outcome_is_unknown_until_the_timeline_says_it",
    ),
    mutation(
        "killed-is-aborted",
        "I8",
        "of a writer that died the last write is said to be aborted although its completed file is there",
        o("plan/writers/committed_condition", "if outcome is Outcome.COMPLETED), default", "if outcome == t), default"),
        f"{OUTCOMES}::test_a_killed_writers_outcome_is_unknown_until_the_timeline_says_it",
    ),
    mutation(
        "markers-of-what-is-completed",
        "availability",
        "a write stops at the markers of a commit that has just completed",
        j("EarlyConflictDetection", "pending.containsInstant(instant) && "),
        t("EarlyConflictDetectionTest.whatHasCompletedDoesNot"),
    ),
)
