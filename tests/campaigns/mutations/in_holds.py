"""Mutations of holds and of deleted savepoints: what stays for a reader, since when, how long, and
what may be promised; which savepoint goes, and when.
"""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, TRIGGERS, a
from tests.campaigns.mutations.in_jvm import j
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import AVAILABILITY, mutation

PURE = f"{RUNTIME}/services/test_holds.py"
AGENT = f"{RUNTIME}/agent/test_holds.py"
REQUESTS = "tests/tiers/unit/plan/requests/test_hold_requests.py"
ASKS = "others = self.context.records().other_agents(self.session.inc)"
LISTS = "timeline = self.table.timeline()"

HOLDS = (
    mutation(
        "a-clean-asks-no-hold",
        AVAILABILITY,
        "a clean deletes the files of a commit that a reader has a hold of",
        a(
            "services/service_actions",
            "{needed_from(timeline, records), _valid_since(timeline, options), held}",
            "{needed_from(timeline, records), _valid_since(timeline, options)}",
        ),
        f"{TRIGGERS}::test_a_clean_deletes_nothing_that_a_hold_needs",
        f"{TRIGGERS}::test_a_clean_deletes_nothing_that_a_hold_needs_which_comes_while_it_is_planned",
    ),
    mutation(
        "a-hold-is-archived",
        AVAILABILITY,
        "the commit of a hold leaves the active timeline",
        a("services/service_actions", "                needed,\n                held,\n", "                needed,\n"),
        f"{TRIGGERS}::test_the_commits_of_a_hold_are_not_archived",
    ),
    mutation(
        "a-hold-counts-when-it-is-granted",
        AVAILABILITY,
        "a clean deletes what a hold needs while the agent looks whether it is there",
        a(
            "services/holds",
            "in (Result.PENDING, Result.COMPLETED) and done.instant",
            "is Result.COMPLETED and done.instant",
        ),
        f"{PURE}::test_it_lasts_from_its_record_on_until_its_time_is_over",
        f"{TRIGGERS}::test_a_clean_deletes_nothing_that_a_hold_needs",
    ),
    mutation(
        "a-hold-has-no-end",
        AVAILABILITY,
        "a hold whose time is over keeps files for ever",
        a("services/holds", " and now_ms < done.kept_until_ms", ""),
        f"{PURE}::test_it_lasts_from_its_record_on_until_its_time_is_over",
        f"{TRIGGERS}::test_a_hold_that_is_over_or_refused_keeps_nothing",
    ),
    mutation(
        "a-hold-forgets-long-commits",
        AVAILABILITY,
        "a clean deletes what a commit has replaced that began before the hold and completed after it",
        a("services/holds", "return min([hold.instant, *since])", "return hold.instant"),
        f"{PURE}::test_all_that_completed_since_is_kept_and_what_it_replaced",
    ),
    mutation(
        "a-hold-ends-by-another-clock",
        AVAILABILITY,
        "an agent whose clock is ahead ends a hold before its time",
        a("agent/holds", "(self.context.gate().lock or Durations()).clock_skew * 1000", "0"),
        f"{AGENT}::test_what_a_clock_may_be_ahead_is_the_gates",
    ),
    mutation(
        "a-hold-is-granted-beside-a-clean",
        AVAILABILITY,
        "a hold is granted while a clean that was planned before it deletes its files",
        a(
            "agent/holds",
            '        if pending:\n            raise NotYet(f"clean',
            '        if pending == "":\n            raise NotYet(f"clean',
        ),
        f"{AGENT}::test_a_clean_that_began_before_is_waited_for_until_it_is_over",
    ),
    mutation(
        "a-hold-is-granted-between-a-plan-and-its-file",
        AVAILABILITY,
        "a hold is granted after a clean has compared its plan, and before the plan is on the timeline",
        a(
            "services/service_actions",
            "            with self.table.locked(self.config(options)), self.removing:\n                needed",
            "            with self.table.locked(self.config(options)):\n                needed",
        ),
        f"{TRIGGERS}::test_who_waits_for_what_removes_sees_it_as_over_or_as_not_begun",
    ),
    mutation(
        "an-older-commit-is-granted-unseen",
        AVAILABILITY,
        "a commit is granted although a clean has deleted files of it",
        a(
            "services/holds",
            '    return tuple(i for i in timeline.completed if i.action == "clean" and first and first <= i.requested)',
            "    return ()",
        ),
        f"{AGENT}::test_an_older_commit_is_refused_when_a_clean_has_deleted_a_file_of_it",
        f"{PURE}::test_a_clean_that_saw_no_later_commit_has_deleted_nothing_of_it",
    ),
    mutation(
        "what-completed-later-is-not-needed",
        AVAILABILITY,
        "a hold is granted although a commit that an incremental query from it reads is gone",
        a(
            "services/holds",
            "        if self._completion(time) > self.hold.boundary:\n            return True",
            "        if self._completion(time) > self.hold.boundary:\n            return False",
        ),
        f"{PURE}::test_what_a_later_commit_wrote_is_needed_for_whoever_reads_from_the_hold_on",
    ),
    mutation(
        "an-extended-hold-is-believed",
        AVAILABILITY,
        "a hold that is extended after its end is granted although its files were deleted in between",
        o(
            "plan/requests/holds",
            "if (found.since_ms, found.until_ms) == (asked.since_ms, asked.until_ms) else",
            "if found.since_ms == asked.since_ms else",
        ),
        f"{REQUESTS}::test_one_that_is_extended_counts_from_its_begin_and_is_granted_again",
    ),
    mutation(
        "a-hold-begins-anew-by-itself",
        AVAILABILITY,
        "a hold that stays in Git never ends",
        o("plan/requests/holds", "since_ms=_asked(view, hold).since_ms or view.now_ms)", "since_ms=view.now_ms)"),
        f"{REQUESTS}::test_its_time_ends_it_once_and_it_does_not_begin_anew",
    ),
    mutation(
        "a-slip-deletes-a-savepoint",
        "I8",
        "a savepoint is deleted by its name alone",
        a("agent/savepoints", "        if instant != request.instant:", "        if not request.instant:"),
        "tests/tiers/unit/runtime/agent/test_savepoints.py::test_a_slip_deletes_nothing_and_says_why",
    ),
    mutation(
        "a-deleted-savepoint-is-taken-again",
        AVAILABILITY,
        "an older manifest closes the gate for a savepoint of a later commit",
        o(
            "hudi_contract/requests",
            "(Result.COMPLETED, Result.FAILED, Result.DELETED)",
            "(Result.COMPLETED, Result.FAILED)",
        ),
        "tests/tiers/unit/plan/requests/test_savepoint_requests.py::test_an_older_manifest_neither_takes_it_again_nor_deletes_another_one",
    ),
    mutation(
        "a-shared-savepoint-is-deleted",
        "I8",
        "the savepoint of another name of the same commit is deleted with it",
        a("agent/savepoints", "            if there and other:", "            if not there:"),
        "tests/tiers/unit/runtime/agent/test_savepoints.py::test_the_commit_stays_for_another_name_and_for_somebody_else",
    ),
    mutation(
        "somebody-elses-savepoint-is-deleted",
        "I8",
        "a savepoint that stock Hudi has taken is deleted",
        a(
            "agent/savepoints",
            "            elif there and not comment.startswith(mine):",
            "            elif there and not comment:",
        ),
        "tests/tiers/unit/runtime/agent/test_savepoints.py::test_the_commit_stays_for_another_name_and_for_somebody_else",
    ),
    mutation(
        "a-clean-waits-for-a-commit",
        "F596",
        "what a deleted savepoint has kept stays until somebody commits",
        j("CleanPlan", 'CLEAN_TRIGGER_MAX_COMMITS.key(), "0"', 'CLEAN_TRIGGER_MAX_COMMITS.key(), "1"'),
        "tests/tiers/hudi/test_savepoints.py::test_a_savepoint_is_kept",
    ),
    mutation(
        "a-refusal-is-the-time-of-a-savepoint",
        "F595",
        "a savepoint of March was taken today, says status, because its deletion was refused today",
        a("agent/savepoints", "done.but(at_ms=ended or now_ms())", "done.but(at_ms=now_ms())"),
        "tests/tiers/unit/runtime/agent/test_savepoints.py::test_its_time_is_that_of_its_result",
    ),
    mutation(
        "a-slip-takes-the-lock",
        "F595",
        "a deletion that is refused makes every writer wait",
        a(
            "agent/savepoints",
            "        if instant != request.instant:\n",
            "        with self.table.locked(None):\n            pass\n        if instant != request.instant:\n",
        ),
        "tests/tiers/unit/runtime/agent/test_savepoints.py::test_a_refusal_is_not_looked_at_again_by_this_process",
    ),
    mutation(
        "a-savepoint-is-deleted-before-a-restore-to-it",
        "I8",
        "a savepoint is deleted while the restore to it is asked for",
        a("agent/savepoints", "if any(named(RequestKind.RESTORE, other) for other in requests):", "if not requests:"),
        "tests/tiers/unit/runtime/agent/test_savepoints.py::test_what_may_still_need_it_is_waited_for",
    ),
    mutation(
        "who-asks-as-of-a-commit-sees-all-that-completed-before",
        "F592 I8",
        "a hold of a commit is granted although what its reader needs was deleted for an earlier completion",
        a("services/holds", " or i.requested > hold.instant]", "]"),
        f"{AGENT}::test_who_asks_as_of_a_commit_does_not_see_what_was_requested_after_it",
    ),
    mutation(
        "an-extension-does-not-look-at-the-archive",
        "F592 I8",
        "a hold that had ended is granted again although an archived commit has replaced files of it",
        a("agent/holds", "(bool(request.instant) or known.granted) and", "bool(request.instant) and"),
        f"{AGENT}::test_a_hold_that_is_extended_after_its_end_is_looked_at_with_the_archive",
    ),
    mutation(
        "a-granted-hold-goes-over-to-another-commit",
        "F592 I8",
        "the status says Granted, and what the reader reads is gone",
        a("agent/holds", "        elif request.instant or known.granted:", "        elif request.instant:"),
        f"{AGENT}::test_a_hold_that_was_granted_is_of_no_other_commit",
    ),
    mutation(
        "who-ends-meanwhile-is-not-listed",
        "F592 I8",
        "a clean of an agent that ends meanwhile is not seen, and the hold is granted",
        a(
            "agent/holds",
            f"            {ASKS}\n            {LISTS}\n",
            f"            {LISTS}\n            {ASKS}\n",
        ),
        f"{AGENT}::test_what_an_agent_did_that_ends_meanwhile_is_listed",
    ),
)
