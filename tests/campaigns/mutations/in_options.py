"""Mutations of what a write may say otherwise than its table, and of the lock provider as Hudi
treats it.
"""

from __future__ import annotations

from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import AVAILABILITY, mutation

WRITE = "WriteOptionsTest"

OPTIONS = (
    mutation(
        "commits-are-archived-beyond-a-savepoint",
        "F76",
        "a table may leave a hole in its active timeline, and a writer takes an old commit for its last one",
        o("api/options", '    Rule("hoodie.archive.beyond.*", _HOLES),\n'),
        "tests/tiers/unit/api/test_options.py::test_nothing_is_archived_beyond_a_savepoint",
    ),
    mutation(
        "an-administrator-may-allow-log-compaction",
        "I9",
        "a table's options may switch log compaction on: readers that follow it get rows twice, or never",
        o("api/options", '    Rule("hoodie.log.compaction.*", _READERS),\n'),
        "tests/tiers/unit/api/test_options.py::test_what_is_on_no_list_is_refused_until_an_administrator_adds_it",
    ),
    mutation(
        "a-time-zone-that-nobody-obeys",
        "F95",
        "a writer may set a time zone for its session, which stays in UTC: its times are wrong by hours",
        o("api/options", '    Rule("spark.sql.session.timezone", _ZONE),\n'),
        "tests/tiers/unit/api/test_options.py::test_a_session_is_in_utc",
    ),
    mutation(
        "keys-that-stand-twice-in-a-batch",
        "F93",
        "a writer may have Hudi write a key as often as it stands in the batch",
        o("api/options", '    Rule("hoodie.combine.before.upsert", _TWICE),\n'),
        "tests/tiers/unit/api/test_options.py::test_rows_are_stored_and_found_in_one_way",
        "tests/tiers/unit/contract/test_hudi_options.py::test_no_writer_says_otherwise_what_every_write_must_say",
    ),
    mutation(
        "a-program-bulk-inserts-into-buckets",
        "F75",
        "a bulk insert makes a second file group of a bucket, and every later upsert fails",
        j("WriteOptions", "        if (hasBuckets\n", "        if (false\n"),
        t(f"{WRITE}.nobodyBulkInsertsIntoBuckets"),
    ),
    mutation(
        "a-bulk-insert-stays-one-with-buckets",
        "F75",
        "a HudiWriter's bulk insert into buckets is not carried out as an insert: it is refused",
        o(
            "manifests/configmaps",
            'if operation is Operation.BULK_INSERT and table.index_type == "Bucket" else',
            "if False else",
        ),
        "tests/tiers/unit/manifests/test_manifests.py::test_a_bulk_insert_into_buckets_is_an_insert",
    ),
    mutation(
        "a-commit-may-leave-out-the-metadata-table",
        "F32",
        "a commit that does not keep up the metadata table is let through",
        j("FencedConflictResolutionStrategy", "      WriteOptions.requireMetadataTable(metaClient, props);\n"),
        t("HudiIntegrationTest.noCommitThatLeavesOutTheMetadataTable"),
    ),
    mutation(
        "a-non-blocking-commit-may-leave-out-the-metadata-table",
        "F32",
        "the same where Hudi asks no conflict strategy",
        j("EtcdLockProvider", "      WriteOptions.requireMetadataTable(metaClient, props);\n"),
        t("NonBlockingTest.aCommitThatLeavesOutTheMetadataTableIsRefused"),
    ),
    mutation(
        "an-option-that-nobody-knows-is-free",
        "F32",
        "a list of known bad options: what is not on it is let through",
        j(
            "WriteOptions",
            "if (RULES.containsKey(name) || OF_HUDI.matcher(name).matches() && !name.startsWith(OURS)) {",
            "if (RULES.containsKey(name)) {",
        ),
        t(f"{WRITE}.anOptionThatNobodyHasLookedAtIsRefused"),
    ),
    mutation(
        "old-names-are-other-options",
        "F32",
        "another name of an option has no rule of its own, so any value",
        j("WriteOptions", "rules.put(parts[0], same != null ? same : new Rule(", "rules.put(parts[0], new Rule("),
        t(f"{WRITE}.otherNamesOfAnOptionAreTheOption"),
    ),
    mutation(
        "what-is-rendered-and-hudis-own-are-alike",
        "F32",
        "what the operator has rendered for the table is not asked for",
        j(
            "WriteOptions",
            "Set<String> needed = rendered.getOrDefault(rule.name, rule.own);",
            "Set<String> needed = rule.own;",
        ),
        t(f"{WRITE}.whatTheOperatorHasRenderedStays"),
    ),
    mutation(
        "a-closed-provider-keeps-the-lock",
        "F42",
        "a provider that was closed while it waited enters all the same: nobody gives the lock back",
        j(
            "EtcdLockProvider",
            "        mine = true;\n        if (closed) {",
            "        mine = true;\n        if (false) {",
        ),
        t("LockProviderTest.closingDoesNotWaitForAThreadThatWaitsForTheLock"),
    ),
    mutation(
        "a-closed-provider-locks-again",
        f"F42 {AVAILABILITY}",
        "a provider that is closed can be locked again",
        j("EtcdLockProvider", "    closed = true;\n"),
        t("LockProviderTest.aClosedOneLocksNoMore"),
    ),
    mutation(
        "a-provider-names-a-lock-that-it-has-not",
        f"F42 {AVAILABILITY}",
        "getLock() is the table's id whether the lock is held or not",
        j(
            "EtcdLockProvider",
            'return mine ? props.getString(TABLE_ID, "") : null;',
            'return props.getString(TABLE_ID, "");',
        ),
        t("LockProviderTest.itNamesALockOnlyWhileItHasIt"),
    ),
)
