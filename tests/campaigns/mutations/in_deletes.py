"""Mutations of deletes that are carried over from another table."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, a
from tests.campaigns.mutations.mutation import mutation

UNIT = f"{RUNTIME}/read/test_deletions.py"

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
        a("read/deletions", "archived = logs[time] if began < time < timeline.earliest else archived", "continue"),
        f"{UNIT}::test_what_was_archived_is_older_than_the_timeline",
    ),
    mutation(
        "files-of-writes-that-did-not-complete",
        "I4 I9",
        "a base file of a write that completed later, or never, is taken for what was there before",
        a(
            "read/deletions",
            "    return not known.pending and known.completion < commit.completion\n",
            "    return known.requested < commit.requested\n",
        ),
        f"{UNIT}::test_a_file_group_as_it_was",
    ),
)
