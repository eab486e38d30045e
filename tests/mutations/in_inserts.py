"""Mutations of the comparison of inserted keys."""

from __future__ import annotations

from tests.mutations.in_jvm import j, t
from tests.mutations.mutation import mutation

STRATEGY, INSERTS = "FencedConflictResolutionStrategy", "InsertConflicts"

KEYS = (
    mutation(
        "inserted-keys-are-not-compared",
        "I13",
        "two commits that insert one new key into two file groups are no conflict, as with Hudi's own strategies",
        j(STRATEGY, " || !sameKeys(mine, other).isEmpty();", ";"),
        t("InsertConflictsTest.theLaterCommitOfOneNewKeyIsRefused"),
        t("InsertConflictsTest.theGateSaysWhatIsCompared"),
    ),
    mutation(
        "the-gate-does-not-say-what-is-compared",
        "I13",
        "keys are compared whatever the gate says",
        j("HeldLock", "    return insertConflicts;\n", "    return InsertConflicts.Rule.KEY;\n"),
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
        j(INSERTS, "      return names(mine, close.get(0));\n", "      return Set.of();\n"),
        t("InsertConflictsTest.whatCannotBeReadIsAConflict"),
    ),
    mutation(
        "log-files-have-no-keys",
        "I13 I11",
        "new keys in log files are not looked at",
        j(INSERTS, "        return names(mine, other);\n      }\n      if (!mine.group", "        continue;\n      }\n      if (!mine.group"),
        t("InsertConflictsTest.whatCannotBeReadIsAConflict"),
    ),
    mutation(
        "services-insert-what-they-move",
        "availability",
        "what a clustering moves counts as inserted",
        j(INSERTS, "    if (INSERT_NOTHING.contains(metadata.getOperationType())) {\n      return Map.of();\n    }\n"),
        t("InsertConflictsTest.servicesInsertNothing"),
    ),
    mutation(
        "only-the-first-files-are-compared",
        "I13",
        "beyond the files whose Bloom filters are in memory at once nothing is compared",
        j(INSERTS, "from < close.size(); from += FILES_AT_ONCE", "from < 1; from += FILES_AT_ONCE"),
        t("InsertConflictsTest.everyFileIsCompared"),
    ),
)
