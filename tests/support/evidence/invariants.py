"""The tests that show each invariant of docs/design/protocol.md with the most real parts.

First those of the run of every change, then longer ones.
"""

from __future__ import annotations

INVARIANTS: dict[str, tuple[str, ...]] = {
    "I1": (
        "tests/tiers/e2e/test_lease_only.py::test_default_mode_makes_the_second_writer_wait_and_conflict",
        "tests/tiers/e2e/test_node_faults.py",
    ),
    "I2": (
        "tests/tiers/hudi/test_agent.py::test_a_fenced_writer_halts_by_itself",
        "tests/tiers/e2e/test_pod_faults.py::test_frozen_in_the_critical_section",
        "AcquireTest.fencedNeverAcquires",
    ),
    "I3": (
        "tests/tiers/e2e/test_lease_only.py::test_default_mode_makes_the_second_writer_wait_and_conflict",
        "tests/tiers/hudi/test_audit.py",
    ),
    "I4": (
        "tests/tiers/e2e/test_faults.py::test_each_kill_is_settled",
        "tests/tiers/hudi/test_failed_reads.py::test_a_store_that_does_not_list_takes_nothing_away",
        "ReleaseTest.aListingThatFailsDecidesNothing",
        "faults::listing-fails",
    ),
    "I5": (
        "tests/tiers/hudi/test_agent.py::test_rolls_back_exactly_the_dead_writers_instant",
        "tests/tiers/e2e/test_faults.py::test_each_kill_is_settled",
        "tests/tiers/e2e/test_pod_executors.py",
    ),
    "I6": (
        "tests/tiers/e2e/test_faults.py::test_agent_killed_while_it_settles_is_replaced",
        "tests/tiers/e2e/test_lifecycle.py::test_reinstalled_operator_settles_what_was_left",
        "tests/tiers/component/operator/test_enumerated_crashes.py",
    ),
    "I7": (
        "tests/tiers/hudi/test_agent.py::test_rolls_back_exactly_the_dead_writers_instant",
        "tests/tiers/e2e/test_faults.py::test_each_kill_is_settled",
        "tests/tiers/hudi/test_foreign.py",
        "make chaos",
    ),
    "I8": (
        "tests/tiers/e2e/test_faults.py::test_each_kill_is_settled",
        "tests/tiers/hudi/test_writer.py::test_files_exactly_once_over_sigkill",
        "tests/tiers/hudi/test_retention.py",
        "make chaos",
    ),
    "I9": (
        "tests/tiers/e2e/test_lease_only.py::test_default_mode_makes_the_second_writer_wait_and_conflict",
        "tests/tiers/hudi/test_writer.py::test_two_writers_rewrite_one_file_group",
        "tests/tiers/hudi/test_readers.py",
        "make chaos",
    ),
    "I10": (
        "tests/tiers/hudi/test_writer.py::test_two_writers_rewrite_one_file_group",
        "tests/tiers/e2e/test_lease_only.py::test_default_mode_makes_the_second_writer_wait_and_conflict",
        "MutationClockCompareTest",
        "tests/tiers/e2e/test_pod_clock.py",
    ),
    "I11": (
        "tests/tiers/component/operator/test_crashes.py::test_without_etcd_nothing_is_decided_and_the_table_says_so",
        "tests/tiers/e2e/test_faults.py::test_agent_killed_while_it_settles_is_replaced",
        "tests/tiers/hudi/test_failed_reads.py",
        "tests/tiers/e2e/test_node_faults.py",
    ),
    "I12": (
        "tests/tiers/hudi/test_services.py::test_a_tended_table",
        "tests/tiers/e2e/test_faults.py::test_agent_killed_while_it_settles_is_replaced",
        "ClaimTest",
        "tests/tiers/e2e/test_pod_agents.py",
    ),
    "I13": (
        "tests/tiers/e2e/test_use.py::test_two_writers_bring_the_same_new_keys",
        "tests/tiers/hudi/test_unique.py",
        "InsertConflictsTest",
        "make chaos",
    ),
}
