"""Mutations of what keeps statements and threads of user code from losing rows."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.mutation import mutation

STATEMENTS = (
    mutation(
        "executors-delete-timelines",
        "I8 F33",
        "a process without a session deletes a table's .hoodie",
        j("FolderRules", "} else if (META.equals(path.getName())) {", "} else if (META.equals(path.toString())) {"),
        t("FolderRulesTest.withoutASession"),
    ),
    mutation(
        "writers-delete-folders",
        "I8 F33",
        "a writer, or an executor of it, deletes a partition's folder",
        j("FolderRules", "    if (isWrittenHere(path)) {\n", "    if (path.isRoot()) {\n"),
        t("FolderRulesTest.asAWriter"),
        t("FolderRulesTest.asAnExecutorOfAWriter"),
    ),
    mutation(
        "own-process-is-known",
        "I9 F40",
        "every commit of one's own process counts as known, whichever thread has made it, from whichever read",
        j("TableReads", "return other != null && write.follows(other);", "return other != null;"),
        t("SnapshotMovedTest.whatAnotherThreadHasCommittedIsNotKnown"),
        t("SnapshotMovedTest.whatWasMadeFromAnotherReadIsNotKnown"),
    ),
    mutation(
        "reads-of-statements-do-not-count",
        "I9 F59",
        "only rows that the runtime has read are compared, not those of statements",
        j("SnapshotCheck", "return session.isWriter() ? write.base : null;", "return null;"),
        t("SnapshotMovedTest.whatTheThreadHasReadIsComparedWithoutAnOption"),
    ),
    mutation(
        "any-thread-has-the-lock",
        "I1 F60",
        "what one thread may do under the lock every other one may do, too",
        j("HeldLock", "return thread == Thread.currentThread();", "return thread != null;"),
        t("TimelineGuardTest.anotherThreadHasToWaitForItsTurn"),
        t("SnapshotMovedTest.theLockOfAnotherThreadIsNotEnough"),
    ),
    mutation(
        "unlisted-statements-run",
        "I8 F33",
        "a statement that nobody has looked at runs",
        j(
            "Statements",
            'return !"works".equals(verdict) && !"harmless".equals(verdict);',
            'return "refused".equals(verdict);',
        ),
        t("StatementsTest.whatIsNotListedIsRefused"),
    ),
    mutation(
        "every-empty-table-is-ones-own",
        "I9 F63",
        "a read of any table without commits counts as one of the writer's own table, which had commits",
        j("TableReads", "return !hadCommits;", "return true;"),
        t("SnapshotMovedTest.anEmptyTableIsNotTheOneThatHadCommits"),
    ),
    mutation(
        "no-empty-table-is-ones-own",
        "I9 F63",
        "a read of the writer's own table before its first commit does not count",
        j("TableReads", "return !hadCommits;", "return false;"),
        t("SnapshotMovedTest.anEmptyTableMayBeTheOneThatHadNone"),
    ),
    mutation(
        "drop-of-the-catalog-is-not-judged",
        "I8 F64",
        "DROP TABLE … PURGE is not refused while it is Spark's own command",
        j(
            "StatementRules",
            "} else if (command instanceof DropTable) {",
            "} else if (command instanceof DropTable && spark == null) {",
        ),
        "tests/tiers/hudi/test_statements.py::test_no_statement_loses_a_row",
    ),
    mutation(
        "overwriting-is-allowed",
        "I8 F65",
        "insert_overwrite with mode overwrite, for which Hudi deletes the folder, is judged as insert_overwrite_table",
        j(
            "Statements",
            'path("saves").path(mode + "/" + operation);',
            'path("saves").path(mode + "/" + operation.replaceFirst("overwrite$", "overwrite_table"));',
        ),
        t("StatementsTest.whatIsNotListedIsRefused"),
    ),
    mutation(
        "files-of-the-table-are-read",
        "I9 F79",
        "the table's files may be read past Hudi, and nobody knows as of when",
        j("StatementRules", "      if (isAmongData(path)) {", "      if (isAmongData(path) && path.isEmpty()) {"),
        "tests/tiers/hudi/test_statements.py::test_no_statement_loses_a_row",
    ),
    mutation(
        "statements-make-old-reads-new",
        "I9 F88",
        "what a statement reads for itself replaces what its thread has read before",
        j(
            "TableReads",
            "mine.statement == null ? given : mine.statement.and(given)",
            "mine.statement == null ? given : mine.statement",
        ),
        t("SnapshotMovedTest.whatAStatementReadsReplacesNothingThatTheProgramHasRead"),
    ),
    mutation(
        "reads-of-statements-are-the-programs",
        "I9 F88",
        "what a statement reads for itself counts as read by the program",
        j("StatementRules", "      reads.readByStatement(base);", "      reads.read(base);"),
        "tests/tiers/hudi/test_reads.py::test_what_was_read_before_is_not_written_over_a_change",
    ),
    mutation(
        "what-other-threads-have-read-is-not-handed-over",
        "I9 F88",
        "a thread that has read something is not compared since what others have read",
        j(
            "TableReads",
            "one.number > (one.thread == thread ? mine.wrote : before.wrote)",
            "one.thread == thread && one.number > mine.wrote",
        ),
        t("SnapshotMovedTest.whatOtherThreadsHaveReadCountsBesideOnesOwnRead"),
    ),
    mutation(
        "a-read-of-another-thread-counts-for-ever",
        "F88",
        "a thread that only reads lets no other one write once somebody has committed",
        j(
            "TableReads",
            "(one.thread == thread ? mine.wrote : before.wrote)",
            "(one.thread == thread ? mine.wrote : 0)",
        ),
        t("SnapshotMovedTest.aThreadThatOnlyReadsHoldsNobodyUpForEver"),
    ),
    mutation(
        "hudis-sink-for-streams",
        "F89",
        "a stream is written by Hudi's sink, which passes over batches and ends the JVM",
        j("StatementRules", "      requireNoSink(((WriteToStream) plan).sink());\n"),
        "tests/tiers/hudi/test_reads.py::test_what_was_read_before_is_not_written_over_a_change",
    ),
    mutation(
        "base-files-are-enough",
        "I9 F90",
        "a MergeOnRead table is read without its log files by a program that writes it",
        j("StatementRules", "      requireLogFiles(source, table);\n"),
        "tests/tiers/hudi/test_reads.py::test_what_was_read_before_is_not_written_over_a_change",
    ),
    mutation(
        "old-versions-are-rows",
        "I9 F105",
        "a MergeOnRead table is read without merging by a program that writes it",
        j("StatementRules", "      requireMerged(source, table);\n"),
        "tests/tiers/hudi/test_reads.py::test_what_was_read_before_is_not_written_over_a_change",
    ),
    mutation(
        "a-session-blinds-the-runtime",
        "F62 F105",
        "the runtime reads the table as user code has set it in the session: incrementally, from a time to come",
        a("table/hudi", '        "hoodie.datasource.query.type": "snapshot",\n'),
        "tests/tiers/hudi/test_reads.py::test_settings_of_a_session_blind_nobody",
    ),
    mutation(
        "rows-of-two-computations",
        "F106",
        "rows that come out otherwise each time are committed although a part of them was computed twice",
        j("FencedConflictResolutionStrategy", "      CommitChecks.requireComputedOnce(props);\n"),
        "tests/tiers/hudi/test_recomputed.py::test_keys_that_are_made_anew_when_an_executor_is_lost",
    ),
    mutation(
        "whatever-was-computed-is-committed",
        "F106",
        "the same: nobody asks whether an executor was lost or a stage repeated",
        j(
            "CommitChecks",
            "    if (now == LostExecutors.UNKNOWN || !before.equals(Long.toString(now))) {",
            "    if (now == LostExecutors.UNKNOWN) {",
        ),
        t("RecomputedTest.whatMayHaveBeenComputedTwiceIsNot"),
    ),
    mutation(
        "anybody-begins-a-table-anew",
        "I8 F91",
        "a program deletes what the table is, or makes it anew",
        j(
            "TimelineGuard",
            "    if (session != null && session.isWriter()) {",
            "    if (session != null && !session.isWriter()) {",
        ),
        t("TimelineGuardTest.theTablesPropertiesAreChangedUnderTheLock"),
    ),
)
