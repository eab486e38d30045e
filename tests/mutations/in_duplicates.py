"""Mutations of the look at keys that an insert makes."""

from __future__ import annotations

from tests.mutations.in_agent import a
from tests.mutations.mutation import Edit, mutation

HUDI = "tests/hudi/test_duplicates.py::test_fail_drop_and_allow"
OPTIONS = "tests/unit/runtime/test_runtime_options.py"

LOOKS = (
    mutation(
        "inserts-look-no-key-up",
        "F62",
        "a key that is in the table already is inserted once more",
        a("duplicates", "    if not job.looks_up or not job.table.record_keys:\n", "    if job.inserts:\n"),
        HUDI,
    ),
    mutation(
        "what-inserts-without-a-word-may-double",
        "F62",
        "a writer that says nothing allows duplicates",
        a("job", 'data.get("duplicates") or "Fail"', 'data.get("duplicates") or "Allow"'),
        f"{OPTIONS}::test_hudis_options_for_duplicates_follow_from_ours",
    ),
    mutation(
        "nobody-is-told-of-duplicates",
        "F62",
        "a writer that allows duplicates is not shown at the table",
        Edit("operator/hudi_operator/reconcile/duplicates.py", ' and w.spec.duplicates == "Allow")', ' and w.spec.duplicates == "Drop")'),
        "tests/unit/reconcile/test_table_plan.py::test_one_writer_that_allows_duplicates_voids_the_promise",
    ),
)
