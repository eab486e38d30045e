"""Mutations of the comparison of inserted keys."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.mutation import mutation

STRATEGY, INSERTS = "FencedConflictResolutionStrategy", "InsertConflicts"
AWAY = "tests/tiers/hudi/test_compacted_away.py"

KEYS = (
    mutation(
        "inserted-keys-are-not-compared",
        "I13 F58",
        "two commits that insert one new key into two file groups are no conflict, as with Hudi's own strategies",
        j(STRATEGY, "                || !sameKeys(mine, other).isEmpty()\n"),
        t("InsertConflictsTest.theLaterCommitOfOneNewKeyIsRefused"),
        t("InsertConflictsTest.theGateSaysWhatIsCompared"),
        "tests/tiers/hudi/test_unique.py::test_three_writers_bring_the_same_new_keys",
    ),
    mutation(
        "the-gate-does-not-say-what-is-compared",
        "I13",
        "keys are compared whatever the gate says",
        j("HeldLock", "    return insertConflicts;\n", "    return InsertRule.KEY;\n"),
        t("InsertConflictsTest.theGateSaysWhatIsCompared"),
    ),
    mutation(
        "ranges-of-other-orders-are-trusted",
        "I13",
        "files whose key ranges are apart by one order of strings have no key in common",
        j(INSERTS, " && plain(one) && plain(two);", ";"),
        t("InsertConflictsTest.rangesOfKeysThatAreOrderedInTwoWaysTellNothing"),
    ),
    mutation(
        "packed-keys-are-not-inserted",
        "I13",
        "only new file groups have inserted keys, not small files into which some were packed",
        j(INSERTS, "(s.getNumInserts() > 0 || Inserted.isNew(s) && s.getNumWrites() > 0)", "Inserted.isNew(s)"),
        t("InsertConflictsTest.keysOfTheVersionBeforeWereNotInserted"),
    ),
    mutation(
        "keys-that-were-there-are-inserted",
        "availability",
        "all keys of a file into which some were packed count as inserted",
        j(INSERTS, "        forEachKey(side.previous, both::remove);\n", "        both.remove(side.name());\n"),
        t("InsertConflictsTest.keysOfTheVersionBeforeWereNotInserted"),
        t("InsertConflictsTest.manyKeysThatWereThereBefore"),
    ),
    mutation(
        "what-cannot-be-read-has-no-keys",
        "I13 I11",
        "files that are gone are no conflict",
        j(
            INSERTS,
            'conflict: " + e);\n            return names(mine.get(0), others.get(0));\n',
            'conflict: " + e);\n            return Set.of();\n',
        ),
        t("InsertConflictsTest.whatCannotBeReadIsAConflict"),
    ),
    mutation(
        "services-insert-what-they-move",
        "availability",
        "what a clustering moves counts as inserted",
        j(
            INSERTS,
            (
                "        if (INSERT_NOTHING.contains(metadata.getOperationType())) {\n"
                "            return Map.of();\n"
                "        }\n"
            ),
        ),
        t("InsertConflictsTest.servicesInsertNothing"),
    ),
    mutation(
        "the-last-files-are-not-compared",
        "I13",
        "files are compared only when there are as many as fit into memory",
        j(INSERTS, "keys >= HASHES_AT_ONCE || n == mine.size() - 1", "keys >= HASHES_AT_ONCE"),
        t("InsertConflictsTest.everyFileIsCompared"),
        t("InsertConflictsTest.theLaterCommitOfOneNewKeyIsRefused"),
    ),
    mutation(
        "a-bloom-filter-is-asked-the-wrong-way",
        "I13",
        "what a Bloom filter may contain counts as not contained",
        j(INSERTS, "maybe[0] || filter.mightContain(key)", "maybe[0] || !filter.mightContain(key)"),
        t("InsertConflictsTest.fewKeysAgainstMany"),
    ),
    mutation(
        "what-was-compared-is-apart",
        "I13",
        "a write that was looked at before the lock is not looked at again, whatever was found",
        j(
            "KeysAhead",
            "            if (inserts.between(bases, other).isEmpty()) {\n",
            "            if (inserts.between(bases, other) != null) {\n",
        ),
        t("InsertConflictsTest.keysAreComparedBeforeTheLock"),
    ),
    mutation(
        "what-a-compaction-removes-is-written",
        "I13 F324",
        "a key comes back into the log of a file group whose compaction has removed it",
        j(
            "CompactedAway",
            "if (stat.getNumDeletes() > 0 && logs.containsKey(group)) {",
            "if (stat.getNumDeletes() < 0 && logs.containsKey(group)) {",
        ),
        f"{AWAY}::test_a_compaction_completes_while_the_key_comes_back",
    ),
    mutation(
        "what-a-pending-compaction-removes-is-written",
        "I13 F324",
        "a key comes back into the log of a file group whose compaction is going to remove it",
        j(
            STRATEGY,
            "            candidates = Stream.concat(candidates, CompactedAway.pending(metaClient).stream());\n",
        ),
        f"{AWAY}::test_a_compaction_is_pending_while_the_key_comes_back",
    ),
    mutation(
        "deleted-keys-are-inserted",
        "I13 F325",
        "an insert gives a second base file to a key that a log file has deleted",
        a("writer/commit", "                        **duplicates.as_upsert(self._table, self._job),\n"),
        "tests/tiers/hudi/test_duplicates.py::test_a_deleted_key_is_inserted_and_written_again",
    ),
    mutation(
        "log-files-are-apart-unseen",
        "I13 F324",
        "log files that were looked at before the lock are not looked at again, whatever was found",
        j("KeysAhead", "between(logs, compaction).isEmpty()) {\n", "between(logs, compaction) != null) {\n"),
        t("LogsAheadTest.aRemovedKeyThatIsFoundWithoutTheLockIsAConflict"),
    ),
    mutation(
        "late-log-files-are-read-under-the-lock",
        "availability",
        "log files are compared with compactions that completed after the last look while the lock is held",
        j(
            "KeysAhead",
            "            throw new InsertConflicts.OutOfTime(); // whole log files would be read\n",
        ),
        t("LogsAheadTest.theLockIsNotHeldWhileLogFilesAreRead"),
    ),
    mutation(
        "log-files-are-compared-under-the-lock-only",
        "availability",
        "log files are compared with compactions by the conflict strategy alone, while the lock is held",
        j("KeysAhead", "            found |= comparesLogs(metaClient) && compareLogs(mine, nanos);\n"),
        t("LogsAheadTest.theLockIsNotHeldWhileLogFilesAreRead"),
    ),
    mutation(
        "nothing-is-compared-before-the-lock",
        "availability",
        "all keys are read while the lock is held",
        j("EtcdLockProvider", "        keys.look();\n        boolean acquired", "        boolean acquired"),
        t("InsertConflictsTest.keysAreComparedBeforeTheLock"),
    ),
    mutation(
        "late-keys-are-read-under-the-lock",
        "availability",
        "keys of commits that completed after the last look are read while the lock is held, however long that takes",
        j("KeysAhead", "compareAll(patience)", "compareAll(Long.MAX_VALUE)"),
        t("InsertConflictsTest.theLockIsNotHeldWhileKeysOfLateCommitsAreRead"),
    ),
    mutation(
        "the-lock-is-given-back-again-and-again",
        "availability",
        "a writer gives the lock back as long as others commit",
        j("EtcdLockProvider", "acquired && given < KeysAhead.RETURNS && remain(keys)", "acquired && remain(keys)"),
        t("InsertConflictsTest.theLockIsGivenBackThreeTimesAtMost"),
    ),
    mutation(
        "what-takes-too-long-is-apart",
        "I13",
        "files whose comparison was broken off count as compared, without a key in common",
        j(INSERTS, "(OutOfTime e) {\n            throw e;\n", "(OutOfTime e) {\n            return Set.of();\n"),
        t("InsertConflictsTest.aConflictThatIsFoundAfterTheLockWasGivenBackIsOne"),
        t("InsertConflictsTest.theLockIsNotHeldWhileKeysOfLateCommitsAreRead"),
    ),
    mutation(
        "who-gave-the-lock-back-is-last",
        "availability",
        "a writer that gave the lock back waits for all who have come since",
        j("Acquisition", "again ? Queue.MAX_OVERTAKES : 0", "0"),
        t("QueueTest.whoGaveTheLockBackIsNext"),
    ),
    mutation(
        "the-clock-of-a-held-lock-tells-all",
        "availability",
        "a commit that is being completed while keys are compared counts as compared",
        j("LockProtocol", "view.lock == null ? TableClock.time(view.clock) : null;", "TableClock.time(view.clock);"),
        t("InsertConflictsTest.theTimelineIsNotReadAgainWhenTheClockHasNotMoved"),
    ),
    mutation(
        "packed-files-are-compared-under-the-lock-only",
        "availability",
        "small files into which new keys were packed are not compared before the lock",
        j("KeysAhead", "(CREATE|MERGE)$", "CREATE$"),
        t("InsertConflictsTest.packedKeysAreComparedBeforeTheLock"),
    ),
    mutation(
        "the-audit-does-not-count-keys",
        "I13",
        "a key that stands twice is not called wrong",
        a("audit/rows", "    if twice:\n", "    if twice < 0:\n"),
        "tests/tiers/hudi/test_audit.py::test_a_key_that_stands_twice",
    ),
    mutation(
        "the-audit-believes-log-files",
        "availability",
        "a healthy table is called wrong when a late commit has brought an older version of a row",
        a("audit/rows", "    if not ordering or ", "    if ordering or "),
        "tests/tiers/hudi/test_audit.py::test_a_late_commit_that_brings_an_older_version_is_no_damage",
    ),
)
