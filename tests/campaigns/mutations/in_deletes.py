"""Mutations of deletes, and of those that are carried over from another table."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.mutation import mutation

UNIT = f"{RUNTIME}/read/test_deletions.py"
PROGRAMS = "tests/tiers/hudi/test_deletes_of_programs.py::test_a_delete_deletes_what_it_names_or_is_refused"
TYPED = "tests/tiers/hudi/test_deletes_of_programs.py::test_a_record_has_one_key_whatever_its_type"
SAVES = "tests/tiers/hudi/test_saves_of_programs.py"
LATE = "tests/tiers/hudi/test_late_versions.py::test_a_late_version_brings_no_deleted_row_back"

DELETES = (
    mutation(
        "deleted-rows-are-written-again",
        "I9",
        "a transform may leave out which rows are deletes: they are written as rows",
        a(
            "writer/commit",
            "        if batch.deletes and DELETED not in frame.columns:\n",
            "        if not batch.deletes and frame is None:\n",
        ),
        f"{UNIT}::test_a_transform_that_leaves_the_mark_out_is_refused",
    ),
    mutation(
        "only-the-file-before-each-commit",
        "I9",
        (
            "what a commit deleted is looked for in the file before it, although an earlier one of the same batch "
            "wrote that, from rows that were given"
        ),
        a("read/deletions", '                old = replaced_by.get(old, "")\n', '                old = ""\n'),
        f"{UNIT}::test_the_file_before_the_first_of_the_commits_and_the_last_one_that_they_wrote",
    ),
    mutation(
        "archived-logs-told-nothing",
        "I9",
        "rows that only an archived commit's log file has were not there: their deletion is left out without a word",
        a("read/deletions", "gone = logs[time] if began < time < timeline.earliest else gone", "continue"),
        f"{UNIT}::test_what_was_archived_is_older_than_the_timeline",
    ),
    mutation(
        "the-archive-is-not-asked",
        "F532 I9",
        "a base file whose commit was archived behind a savepoint is taken for one of no commit",
        a(
            "read/deletions",
            "if i.requested in unknown} if unknown else {}",
            "if i.requested in unknown and not unknown}",
        ),
        f"{UNIT}::test_the_archive_says_what_was_archived",
    ),
    mutation(
        "files-of-writes-that-did-not-complete",
        "I4 I9",
        "a base file of a write that completed later, or never, is taken for what was there before",
        a(
            "read/deletions",
            "        return not known[time].pending and known[time].completion < commit.completion\n",
            "        return time < commit.requested\n",
        ),
        f"{UNIT}::test_a_file_group_as_it_was",
    ),
    mutation(
        "delete-from-has-no-ordering-value",
        "F326",
        "a late version brings back a row that DELETE FROM has deleted",
        j("OrderedDeletes", "table == null || !isNeeded(table)", "table == null || table != null"),
        LATE,
    ),
    mutation(
        "saved-deletes-have-no-ordering-value",
        "F326",
        "a late version brings back a row that a HudiWriter or a save has deleted",
        j("OrderedDeletes", "        if (!isNeeded(table)) {\n", "        if (table != null) {\n"),
        LATE,
    ),
    mutation(
        "deletes-by-keys-of-any-type",
        "F327",
        "a delete by keys of another type deletes records that it does not name",
        j(
            "OrderedDeletes",
            '        KeyTypes.require("a delete", given.schema(), there.schema(), identity(config));\n',
        ),
        PROGRAMS,
    ),
    mutation(
        "deletes-of-hudi-by-keys-of-any-type",
        "F366",
        "a delete by keys of another type succeeds and deletes nothing, where Hudi's own way is taken",
        j("StatementRules", "            KeyTypes.require(what, rows, columns, identity);\n"),
        TYPED,
    ),
    mutation(
        "any-type-is-the-same-text",
        "F367 F371",
        "an upsert by keys of another type adds a second record, or makes the column another one for all",
        j("KeyTypes", "!isSameText(given, needed) &&", "!isSameText(given, needed) && what == null &&"),
        t("KeyTypesTest.noTypeThatGivesAKeyAnotherText"),
    ),
    mutation(
        "a-key-in-another-spelling-is-null",
        "F371",
        "the column of a key that is spelled otherwise is taken for one of null",
        j("KeyTypes", "            if (given == null) {\n", "            if (given == null && what == null) {\n"),
        t("KeyTypesTest.noRowsWithoutAColumn"),
    ),
    mutation(
        "ordering-columns-become-wider",
        "F372",
        "a save makes an ordering column wider, and nobody can read what was deleted before",
        j("SavedColumns", "if (ordering.contains(field.name()) && !isTaken", "if (ordering == null && !isTaken"),
        t("SavedColumnsTest.anOrderingColumnKeepsItsType"),
    ),
    mutation(
        "inner-types-become-wider",
        "F373",
        "a save makes a type inside a column wider",
        j("SavedColumns", "isInner && !there.equals(DataTypes.StringType)", "!isInner && !there.equals(given)"),
        t("SavedColumnsTest.nothingInsideAColumnBecomesWider"),
    ),
    mutation(
        "names-that-differ-in-case",
        "F373",
        "a save adds a column that differs from another one in case alone",
        j("SavedColumns", '        requireNames("", batch, table);\n'),
        t("SavedColumnsTest.aNameHasOneSpelling"),
    ),
    mutation(
        "two-records-of-a-program-have-one-key",
        "F377",
        "values of keys and partitions that read like others are not looked at in the files of programs",
        j(
            "ProgramFiles",
            "            confused = rules.confused(schema, file);\n",
            "            confused = List.of();\n",
        ),
        f"{SAVES}::test_no_two_records_of_a_program_are_one",
    ),
    mutation(
        "a-key-reads-like-the-next-column",
        "F377",
        "a value of a key of several columns holds the name of the next one",
        j("RowRules", 'text.contains("," + name + ":")', "text.isEmpty()"),
        t("RowRulesTest.twoRecordsHaveTwoKeysAndTwoPartitions"),
    ),
    mutation(
        "programs-delete-beside-partial-updates",
        "F374",
        "a program deletes in a table in which a deleted row comes back",
        j("StatementRules", "        if (deletes\n", "        if (what == null\n"),
        f"{SAVES}::test_programs_delete_nothing_where_it_would_come_back",
    ),
    mutation(
        "new-rows-are-left-out",
        "F375",
        "a save with an option that leaves known rows out leaves new ones out",
        j("StatementRules", "if (!leavesOut.isEmpty() && (isBucket", "if (table == null && (isBucket"),
        f"{SAVES}::test_a_save_leaves_the_table_readable",
    ),
    mutation(
        "saves-are-compared-from-the-options-read-on",
        "F369",
        "a frame of an older read overwrites what was committed before the read that the option names",
        j("SnapshotCheck", ".and(own);", ";"),
        t("SnapshotMovedTest.whatTheRowsThemselvesWereReadFromCountsBesideTheOption"),
    ),
    mutation(
        "deletions-beside-a-pending-compaction",
        "F370",
        "an insert does not see a deletion in a log that a pending compaction does not take",
        j("DeletedInLogs", "group.getAllRawFileSlices()", "group.getAllFileSlices()"),
        t("DeletedInLogsTest.aDeletionThatAPendingCompactionDoesNotTake"),
    ),
    mutation(
        "merge-into-deletes-by-keys-of-another-type",
        "F376",
        "a MERGE INTO that only deletes finds no record by a key of another type, and succeeds",
        j("MergeRules", "if (isOrdering || identity.stream()", "if (isOrdering || table == null && identity.stream()"),
        f"{SAVES}::test_a_save_leaves_the_table_readable",
    ),
    mutation(
        "digits-after-the-point-are-no-other-text",
        "F367",
        "a decimal of more digits after the point is taken for the same text",
        j("KeyTypes", "((DecimalType) given).scale() == ((DecimalType) needed).scale()", "given != null"),
        t("KeyTypesTest.noTypeThatGivesAKeyAnotherText"),
    ),
    mutation(
        "deletes-leave-known-rows-out",
        "F328",
        "a delete of a session that leaves known rows out of inserts deletes nothing, and succeeds",
        j("OrderedDeletes", "List.of(InsertOptions.DEFAULTS, mark.options())", "List.of(mark.options())"),
        PROGRAMS,
    ),
    mutation(
        "deletes-know-the-catalogs-columns-only",
        "F329",
        "DELETE FROM fails once another writer has added a column that the program's catalog does not know",
        j("OrderedDeletes", "if (!known.contains(field.name()))", "if (known.isEmpty())"),
        PROGRAMS,
    ),
    mutation(
        "statements-take-the-sessions-operation",
        "F330",
        "an UPDATE deletes its rows, where the session has the operation delete",
        j("StatementRules", "spark.sessionState().conf().contains(OPERATION)", "statement.isEmpty()"),
        PROGRAMS,
    ),
    mutation(
        "deletes-before-the-first-commit",
        "F332",
        "a delete in a table without a commit is repeated as a failure of the infrastructure",
        j(
            "StatementRules",
            "if (schema.isEmpty() && isDelete) {",
            "if (schema.isEmpty() && isDelete && rows.isEmpty()) {",
        ),
        PROGRAMS,
    ),
    mutation(
        "deletes-of-no-key-find-nothing",
        "F333",
        "a delete of rows without a record key succeeds, and deletes nothing",
        j(
            "OrderedDeletes",
            "(i == 0 ? functions.when(isNamed, key) : key)",
            "(i < 0 ? functions.when(isNamed, key) : key)",
        ),
        PROGRAMS,
    ),
    mutation(
        "merges-know-the-catalogs-columns-only",
        "F353",
        "MERGE INTO takes a column that another writer has added away from the rows of the files that it writes",
        j("KnownColumns", "        if (schema.isEmpty()) {", "        if (schema != null) {"),
        "tests/tiers/hudi/test_old_columns.py::test_a_statement_that_does_not_know_a_column_takes_no_value_of_it",
    ),
    mutation(
        "inserts-with-the-mark-of-deletes",
        "F108",
        "an insert with the options of a delete of this process stores its rows",
        j("OwnDeletes", '"upsert".equalsIgnoreCase(write.getProperty(OPERATION, ""))', "OPERATION != null"),
        t("WriteOptionsTest.onlyTheDeletesOfThisProcessMarkRows"),
    ),
    mutation(
        "anybody-marks-rows-as-deleted",
        "F32 F108",
        "a program's insert stores the rows that it marks as deleted",
        j("OwnDeletes", 'NUMBER.equals(write.getProperty(OPTION, ""))', "NUMBER != null"),
        t("WriteOptionsTest.onlyTheDeletesOfThisProcessMarkRows"),
    ),
    mutation(
        "deletes-meet-every-commit",
        "availability",
        "a delete in the non-blocking mode is a conflict with each commit since it has read the table",
        j("StatementRules", "OrderedDeletes.onlyFinds(options(source))", "source == null"),
        "tests/tiers/hudi/test_non_blocking.py::test_the_operation_delete_deletes_what_it_has_read",
    ),
    mutation(
        "what-a-delete-finds-is-compared",
        "availability",
        "the versions that a delete has found count in the non-blocking mode, too",
        j("SnapshotCheck", "nonBlocking ? null : write.found", "write.found"),
        t("SnapshotMovedTest.whatADeleteFindsIsNoReasonForItInTheNonBlockingMode"),
    ),
    mutation(
        "what-a-delete-finds-is-forgotten",
        "I9",
        "in the optimistic mode a delete is not compared with what completed since it has found the rows",
        j("SnapshotCheck", "nonBlocking ? null : write.found", "null"),
        t("SnapshotMovedTest.whatADeleteFindsIsNoReasonForItInTheNonBlockingMode"),
    ),
    mutation(
        "a-delete-needs-no-reason",
        "F425",
        "in the non-blocking mode a delete is not compared with anything, whatever its program has read",
        j(
            "SnapshotCheck",
            "            return session.isWriter() ? TableReads.Base.both(write.base, found) : null;\n",
            "            return session.isWriter() && !nonBlocking ? TableReads.Base.both(write.base, found) : null;\n",
        ),
        t("SnapshotMovedTest.whatADeleteFindsIsNoReasonForItInTheNonBlockingMode"),
    ),
)
