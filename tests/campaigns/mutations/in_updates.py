"""Mutations of read, modify, write: batches made from rows of their own table."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.mutation import mutation

UNIT = "tests/tiers/unit/runtime/read/test_update.py"

ERRORS = "tests/tiers/unit/runtime/process/test_errors.py"

UPDATES = (
    mutation(
        "a-read-beside-a-clean-is-the-users-error",
        "F488 availability",
        "a program whose read was refused because of a clean is not repeated",
        a(
            "process/errors",
            "        FailureClass.WRITE_CONFLICT,\n        FailureClass.SCHEMA_MISMATCH,\n",
            "        FailureClass.SCHEMA_MISMATCH,\n",
        ),
        f"{ERRORS}::test_a_program_is_not_to_blame_for_a_clean_or_another_writer",
    ),
    mutation(
        "a-cleaned-file-is-the-users-error",
        "F494 availability",
        "a program whose rows were cleaned before it has read them is not repeated",
        a("process/errors", "if cleaned or lost else", "if lost else"),
        f"{ERRORS}::test_a_program_is_not_to_blame_for_a_file_that_was_cleaned",
    ),
    mutation(
        "a-lost-executor-is-the-users-error",
        "availability",
        "a program whose executors are killed for lack of memory is not repeated, and gets no more memory",
        a("process/errors", "if cleaned or lost else", "if cleaned else"),
        f"{ERRORS}::test_a_program_is_not_to_blame_for_executors_that_were_lost",
    ),
    mutation(
        "read-table-looks-once",
        "F488 availability",
        "read_table() raises as soon as one clean is planned while it lists the files",
        a("read/update", "            if look == LOOKS or not", "            if look == look or not"),
        f"{UNIT}::test_a_read_beside_a_clean_is_repeated",
    ),
    mutation(
        "an-update-beside-a-clean-is-the-users-error",
        "F488 availability",
        "the function of an Update whose read was refused is not called again in this process",
        a(
            "writer/commit",
            "            if classify_causes(java_causes(error)) is FailureClass.WRITE_CONFLICT:\n",
            "            if False:\n",
        ),
        f"{UNIT}::test_a_function_that_reads_beside_a_clean_is_called_again",
    ),
    mutation(
        "updates-are-not-compared",
        "I9",
        "a commit is compared with what completed since its write began, not since its rows were read",
        j(
            "FencedConflictResolutionStrategy",
            "                        moved.stream().map(m -> m.instant),\n",
            "                        Stream.<HoodieInstant>empty(),\n",
        ),
        t("SnapshotMovedTest.whatCompletedBetweenTheReadAndTheBeginningOfTheWrite"),
    ),
    mutation(
        "removed-records-come-back",
        "I9",
        "records that were removed since the read are no conflict: they are written again into another file group",
        j(
            "FencedConflictResolutionStrategy",
            "        if (removedWhatWasRead(mine, other)) {\n            return true;\n        }\n",
        ),
        t("SnapshotMovedTest.whoeverRemovedRecordsOfThePartitionIsInTheWay"),
    ),
    mutation(
        "serializable-is-not",
        "I9",
        "a serializable update goes on over commits to other file groups",
        j("SnapshotCheck", "        requireUnmoved(props, completed, metadata, base.completion);\n"),
        t("SnapshotMovedTest.serializableMeansThatNobodyHasCommittedRows"),
        t("SnapshotMovedTest.inTheNonBlockingModeAnUpdateMeetsEveryCommit"),
    ),
    mutation(
        "non-blocking-updates-are-not-compared",
        "I9",
        "in the non-blocking mode an update is not compared with anything",
        j("EtcdLockProvider", "            SnapshotCheck.inNonBlockingMode(metaClient, props, session, begun);\n"),
        t("SnapshotMovedTest.inTheNonBlockingModeAnUpdateMeetsEveryCommit"),
    ),
    mutation(
        "own-commits-are-in-the-way",
        "availability",
        "an update conflicts with an earlier commit of its own attempt",
        j("TableReads", "return other != null && write.follows(other);", "return other != null && false;"),
        t("SnapshotMovedTest.onesOwnCommitsAreKnown"),
    ),
    mutation(
        "floor-without-pending-writes",
        "I9 I11",
        "archival is compared with the newest commit, although an older write was pending when the rows were read",
        a(
            "read/update",
            'min(pending or [max((i.requested for i in writes), default="0")])',
            'max((i.requested for i in writes), default="0")',
        ),
        f"{UNIT}::test_the_base_is_the_newest_completion_and_the_floor_what_may_still_complete",
    ),
    mutation(
        "old-rows-are-written-again",
        "I9",
        "a frame that was made from the table is written once more after a lost race",
        a(
            "writer/commit",
            "            if batch.base is not None and abandoned:\n",
            "            if batch.base is not None and batch.base.floor == '':\n",
        ),
        f"{UNIT}::test_a_lost_race_of_a_frame_from_the_table_ends_the_attempt",
    ),
    mutation(
        "frames-forget-when-they-were-read",
        "I9",
        "a frame that was made from the table is compared only with what completed since its write began",
        a(
            "writer/commit",
            'return batch.frame, batch.base.options("snapshot") if batch.base else {}',
            "return batch.frame, {}",
        ),
        f"{UNIT}::test_a_frame_keeps_the_base_that_it_has",
    ),
    mutation(
        "queries-of-the-own-table-are-asked-once",
        "I9",
        "a query over the table that it writes is asked once, whatever is committed until it is written",
        a("read/sources", "    if not own:\n", "    if not own or table is not None:\n"),
        f"{UNIT}::test_a_query_of_the_own_table_is_an_update",
    ),
)
