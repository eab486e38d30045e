"""Mutations of what is asked of a table's store before the table is used."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import Mutation, mutation

BUCKET, RENAMES = t("StoreProbeTest.whatABucketLacksIsNamed"), t("StoreProbeTest.whatRenamesLackIsNamed")


def unasked(name: str, does: str, old: str, new: str, *tests: str) -> Mutation:
    return mutation(name, "F61", does, j("StoreProbe", old, new), *tests)


ASKING = (
    unasked(
        "late-listings-do-not-matter",
        "a store that lists a file late is used",
        "if (length != LENGTH) {",
        "if (length > LENGTH) {",
        BUCKET,
    ),
    unasked(
        "early-files-do-not-matter",
        "a store that shows a file before it is closed is used",
        "if (listed(file) >= 0 || fs.exists(file)) {",
        "if (listed(file) > LENGTH) {",
        BUCKET,
    ),
    unasked(
        "nobody-watches",
        "a store that shows a file empty or in part is used",
        "if (length >= 0 && length != LENGTH) {",
        "if (length > LENGTH) {",
        BUCKET,
        RENAMES,
    ),
    unasked(
        "replaced-files-do-not-matter",
        "a store is used where a create without overwrite replaces",
        'return "a create without overwrite replaces a file";',
        'return "";',
        BUCKET,
    ),
    unasked(
        "copies-are-renames",
        "a file system is used whose rename leaves the old name",
        "if (listed(from) >= 0) {",
        "if (listed(from) > LENGTH) {",
        RENAMES,
    ),
    mutation(
        "the-probe-decides-nothing",
        "F61",
        "what the store lacks is found, and the table is used all the same",
        a("agent/store_probe", "    if missing:\n", "    if missing and not path:\n"),
        "tests/tiers/unit/runtime/agent/test_store_probe.py::test_what_is_missing_is_named",
    ),
    mutation(
        "a-marker-is-there-before-its-content",
        "F66",
        (
            "where a file is seen from its creation on, whoever dies while it writes the marker of the lock authority "
            "leaves an empty one"
        ),
        j("TableStorage", "boolean renames = renames(base, conf);", "boolean renames = false;"),
        t("AuthorityMarkerTest.whoDiesWhileItWritesTheMarkerStopsNobody"),
    ),
    mutation(
        "a-rule-around-the-table-is-none-of-its-business",
        "F61",
        "a lifecycle rule for the whole bucket is not told",
        a(
            "agent/bucket",
            "(folder.startswith(rule.prefix) or rule.prefix.startswith(folder))",
            "rule.prefix.startswith(folder)",
        ),
        "tests/tiers/unit/runtime/agent/test_bucket.py::test_an_expiry_rule_over_the_tables_files_is_named",
    ),
    mutation(
        "harmful-settings-are-kept-back",
        "F61",
        "what the agent has found of the bucket is in no condition",
        o(
            "plan/table_status",
            '"BucketSafe", False, "HarmfulSettings",',
            '"BucketSafe", True, "HarmfulSettings",',
        ),
        "tests/tiers/unit/plan/test_bucket_settings.py::test_a_rule_is_named_until_it_is_gone",
    ),
)
