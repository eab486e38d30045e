"""Mutations of the look at keys that an insert makes."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import Edit, mutation

HUDI = "tests/tiers/hudi/test_duplicates.py::test_fail_drop_and_allow"
LOOKED_IN = "tests/tiers/hudi/test_looked_in.py"
DOUBLED = "tests/tiers/hudi/test_doubled.py"
NAMES = "tests/tiers/hudi/test_overwrite.py::test_a_name_that_hudi_reads_as_others_is_refused"
DONE = """    if done.run == job.run:
        return
    with looking_up():
        rows ="""
OVERWRITE = "tests/tiers/hudi/test_overwrite.py"
FILES = "tests/tiers/unit/runtime/read/test_files_of_overwrites.py"
BATCHES = "tests/tiers/unit/runtime/read/test_batches_of_functions.py"
REFUSED = "tests/tiers/unit/plan/writers/test_replacing.py"
OPTIONS = "tests/tiers/unit/runtime/job/test_runtime_options.py"

LOOKS = (
    mutation(
        "inserts-look-no-key-up",
        "F62",
        "a key that is in the table already is inserted once more",
        a(
            "writer/duplicates",
            "    if not job.adds or job.duplicates == Duplicates.ALLOW or not job.table.record_keys:\n",
            "    if job.inserts:\n",
        ),
        HUDI,
    ),
    mutation(
        "keys-are-looked-up-before-the-batch-is-computed",
        "F470",
        "an insert whose batch takes longer than cleaning keeps files fails at each attempt",
        a(
            "writer/duplicates",
            """        looked = _looked_in(kept, table.partitions, prunes=prunes)
        # Only now: what is listed before a long batch may be cleaned when it is read (F470).
        rows = _rows(spark, table)
""",
            """        rows = _rows(spark, table)
        looked = _looked_in(kept, table.partitions, prunes=prunes)
""",
        ),
        "tests/tiers/hudi/test_clean_beside_writers.py::test_a_clean_leaves_what_a_pending_write_has_to_list",
        f"{RUNTIME}/writer/test_validations.py::test_keys_are_looked_up_after_the_batch_is_computed",
    ),
    mutation(
        "what-inserts-without-a-word-may-double",
        "F62",
        "a writer that says nothing allows duplicates",
        Edit(
            "operator/hudi_contract/job.py",
            "duplicates: str = Duplicates.FAIL",
            "duplicates: str = Duplicates.ALLOW",
        ),
        f"{OPTIONS}::test_hudis_options_for_duplicates_follow_from_ours",
    ),
    mutation(
        "nobody-is-told-of-duplicates",
        "F62",
        "a writer that allows duplicates is not shown at the table",
        Edit(
            "operator/hudi_operator/plan/writers/duplicates.py",
            "and w.spec.duplicates == Duplicates.ALLOW",
            'and w.spec.duplicates == "Drop"',
        ),
        "tests/tiers/unit/plan/test_table_plan.py::test_one_writer_that_allows_duplicates_voids_the_promise",
    ),
)

PARTITIONS = (
    mutation(
        "a-look-relies-on-every-path",
        "F67",
        "the partition of null, or of a value that its path may not give back, is not looked in",
        a("writer/lookup_partitions", " or not all(plain(value) for row in found for value in row):", ":"),
        "tests/tiers/unit/runtime/writer/test_lookup_partitions.py::test_one_value_in_doubt_means_the_whole_table",
    ),
    mutation(
        "rows-of-partitions-that-nobody-looked-in",
        "F67",
        "rows that are computed anew go into partitions whose keys were not read",
        a("writer/duplicates", "_held(lookup_partitions.held(kept, looked), table,", "_held(kept, table,"),
        f"{LOOKED_IN}::test_a_source_that_gives_other_rows_the_second_time",
    ),
    mutation(
        "a-look-reads-the-whole-table",
        "F67",
        "an insert reads the keys of every partition",
        a("writer/duplicates", "rows.where(looked), fails=fails)", "rows, fails=fails)"),
        f"{LOOKED_IN}::test_typed_partitions",
    ),
)
REMOVAL = (
    mutation(
        "the-record-stays-that-the-merge-would-drop",
        "F68",
        "of doubled keys the record with the least ordering value stays",
        a("read/remove_duplicates", "functions.col(name).desc_nulls_last()", "functions.col(name).asc()"),
        f"{DOUBLED}::test_which_record_stays",
    ),
    mutation(
        "doubled-keys-are-removed-with-any-index",
        "F68",
        "a partition is written anew with file groups that the index does not know",
        a("read/remove_duplicates", "if index not in INDEXES:", "if False:"),
        "tests/tiers/unit/runtime/read/test_remove_duplicates.py::test_a_table_that_it_cannot_be_done_with_is_named",
    ),
)

REPLACING = (
    mutation(
        "an-overwritten-partition-has-the-rows-of-both",
        "I9",
        "a partition is overwritten although another writer has committed to it meanwhile",
        j(
            "FencedConflictResolutionStrategy",
            "            WriteOperationType.INSERT_OVERWRITE,\n",
        ),
        t("ConflictTest.whatWasWrittenToAPartitionIsNotReplaced"),
        f"{OVERWRITE}::test_a_batch_replaces_its_partitions",
    ),
    mutation(
        "an-overwritten-table-keeps-rows-of-others",
        "I9",
        "a table is overwritten although another writer has committed to another partition meanwhile",
        j(
            "FencedConflictResolutionStrategy",
            "mine.getOperationType() != WriteOperationType.INSERT_OVERWRITE_TABLE) {",
            "mine.getOperationType() != null) {",
        ),
        t("ConflictTest.whatWasWrittenToAPartitionIsNotReplaced"),
        f"{OVERWRITE}::test_a_batch_replaces_the_table",
    ),
    mutation(
        "a-batch-without-rows-empties-the-table",
        "I8",
        "a source that gives no rows once takes all rows of the table",
        a("writer/overwrite", "        if kept.isEmpty():\n", "        if False:\n"),
        f"{OVERWRITE}::test_a_batch_replaces_the_table",
    ),
    mutation(
        "a-batch-replaces-the-one-before-it",
        "I8",
        "of several batches of one run only the last one stays",
        a("read/sources", "        if job.overwrites and number > 1:\n", "        if False:\n"),
        f"{BATCHES}::test_a_second_batch_of_an_overwrite_is_refused",
        f"{OVERWRITE}::test_a_batch_replaces_the_table",
    ),
    mutation(
        "an-unknown-operation-ends-a-clustering",
        "F491",
        "the check of a write that has only begun fails, and no clustering beside it ends",
        j("FencedConflictResolutionStrategy", " || other.getOperationType() == null", ""),
        "tests/tiers/hudi/test_clustering.py::test_updates_beside_clustering",
    ),
    mutation(
        "nobody-waits-for-a-pending-overwrite",
        "F491 availability",
        "a pending overwrite has to repeat, however important, when others commit to its partitions",
        j(
            "FencedConflictResolutionStrategy",
            "return completed || other.getOperationType() == null ? Set.of() : writtenAndReplaced",
            "return true ? Set.of() : writtenAndReplaced",
        ),
        t("ConflictTest.whoeverIsAboutToReplaceAPartitionIsInTheWay"),
        f"{OVERWRITE}::test_a_pending_overwrite_says_what_it_replaces",
    ),
    mutation(
        "a-clustering-plans-what-is-about-to-be-replaced",
        "F491 availability",
        "a partition that a pending overwrite replaces is planned again at once",
        a(
            "services/partition_backoff",
            "return frozenset(written | replaced | whole)",
            "return frozenset(written | replaced)",
        ),
        "tests/tiers/unit/runtime/services/test_partition_backoff.py::test_a_pending_overwrite_changes_whole_partitions",
    ),
    mutation(
        "a-late-file-replaces-those-before-it",
        "F490 I8",
        "a partition is replaced by the rows of the files that came since the last run",
        a(
            "read/sources",
            "isinstance(job.source, FilesSource) and job.overwrites:\n",
            "isinstance(job.source, str):\n",
        ),
        f"{FILES}::test_a_run_reads_every_file",
        f"{OVERWRITE}::test_a_late_file_replaces_nothing_alone",
    ),
    mutation(
        "an-overwrite-of-files-forgets-its-commit",
        "F490 I9",
        "an attempt reads all files again although the one before it has committed them",
        a(
            "writer/attempt",
            "isinstance(self._job.source, job_file.FilesSource) and not self._job.overwrites\n",
            "isinstance(self._job.source, job_file.FilesSource)\n",
        ),
        f"{OVERWRITE}::test_a_late_file_replaces_nothing_alone",
    ),
    mutation(
        "code-behind-a-yield-runs-before-the-commit",
        "F485 I8",
        "a function is asked for a second batch, and may delete its input, before the first one is written",
        a(
            "read/sources",
            "        base = context.base_of_batch()\n        if number > committed:\n",
            "        base = context.base_of_batch()\n"
            "        frames = iter([*frames]) if job.overwrites else frames\n"
            "        if number > committed:\n",
        ),
        f"{BATCHES}::test_what_stands_behind_a_yield_runs_after_the_commit",
    ),
    mutation(
        "an-overwrite-doubles-a-key-of-its-batch",
        "F62",
        "a batch that replaces a partition is not held to its own keys",
        a("writer/duplicates", "    if not job.adds or", "    if not job.inserts or"),
        f"{OVERWRITE}::test_a_batch_replaces_the_table",
    ),
    mutation(
        "partitions-are-replaced-where-nobody-looks",
        "F423",
        "an overwrite is started in a table of mode NonBlocking",
        o(
            "plan/writers/replacing",
            "    if view.table.concurrency_mode == Concurrency.NON_BLOCKING:\n",
            "    if False:\n",
        ),
        f"{REFUSED}::test_nothing_is_replaced_in_the_mode_without_conflicts",
    ),
    mutation(
        "a-deletion-of-partitions-is-repeated",
        "I9",
        "the next attempt of a run deletes again what was written after its commit",
        a("read/sources", DONE, DONE.replace("done.run == job.run", "False")),
        f"{OVERWRITE}::test_partitions_are_deleted_by_name",
    ),
    mutation(
        "partitions-are-deleted-that-nobody-named",
        "I8",
        "the patterns of a deletion are not looked at",
        a(
            "read/delete_partition",
            "    matching = rows.where(path.rlike(partitions.expression(patterns)))\n",
            "    matching = rows\n",
        ),
        f"{OVERWRITE}::test_partitions_are_deleted_by_name",
    ),
    mutation(
        "a-coded-star-is-a-letter",
        "F492 I8",
        "rows of partitions that nobody named are deleted with one whose name has %2A",
        a("read/delete_partition", '(",", "*", "%2A")', '(",", "*")'),
        "tests/tiers/unit/runtime/read/test_delete_partition.py::test_a_name_that_hudi_takes_for_others_is_refused",
    ),
    mutation(
        "a-name-with-a-comma-is-two",
        "I8",
        "a partition whose name has a comma is deleted as two others",
        a("read/delete_partition", "if any(text in name for text in _MEANS_OTHERS):", "if False:"),
        NAMES,
    ),
    mutation(
        "a-deletion-without-a-name",
        "I8",
        "an attempt is started that deletes partitions and names none",
        o("plan/writers/replacing", 'return "" if writer.partitions else', 'return "" if True else'),
        f"{REFUSED}::test_what_is_deleted_is_named",
    ),
    mutation(
        "a-part-replaces-the-whole",
        "I8",
        "what is new in another table replaces all that a partition had",
        o("plan/writers/replacing", "    if source:\n", "    if False:\n"),
        f"{REFUSED}::test_what_makes_no_sense_together",
    ),
)
