"""Mutations of the validations of a batch."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import a
from tests.campaigns.mutations.mutation import Edit, mutation

HUDI = "tests/tiers/hudi/test_validations.py"
UNIT = "tests/tiers/unit/runtime/writer/test_validations.py"
SCOPES = "tests/tiers/unit/runtime/writer/test_scopes.py"
READS = f"{HUDI}::test_what_a_validation_has_read_is_compared"

VALIDATIONS = (
    mutation(
        "a-batch-that-fails-is-written",
        "I9",
        "a validation that fails is told to nobody",
        a(
            "writer/validations",
            "            if problem := _problem(one, kept, path):\n",
            "            if (problem := _problem(one, kept, path)) is None:\n",
        ),
        f"{HUDI}::test_what_fails_leaves_nothing_behind",
    ),
    mutation(
        "columns-of-a-batch-that-fails",
        "I8",
        "the new columns of a batch are added to the table before it is validated, and stay when it fails",
        a(
            "writer/commit",
            "            if batch.validations(self._job):  # one that is refused leaves no column behind\n",
            "            if batch.validations(self._job) is None:\n",
        ),
        f"{HUDI}::test_what_fails_leaves_nothing_behind",
    ),
    mutation(
        "other-rows-than-the-validated-ones",
        "F106",
        "the batch is computed once more when it is written",
        a("writer/validations", "    kept = batch.persist()\n", "    kept = batch\n"),
        f"{HUDI}::test_the_rows_that_were_validated_are_written",
    ),
    mutation(
        "the-table-is-listed-before-a-validated-batch",
        "F487",
        "a validation reads a view of the table that is as old as the computation of its batch",
        a("writer/validations", "            kept.count()\n", "            pass\n"),
        f"{UNIT}::test_the_table_is_listed_after_the_batch_is_computed",
    ),
    mutation(
        "keys-are-looked-up-before-a-validated-batch",
        "F487",
        "keys of a validated insert are looked up in files that nothing keeps while its batch is computed",
        a("writer/commit", "validated=bool(asked)", "validated=asked is None"),
        f"{SCOPES}::test_look_ups_are_the_runtimes",
    ),
    mutation(
        "a-value-is-cut-before-its-secret-is-known",
        "F493",
        "the first characters of a long secret stay in the message of a validation",
        a("writer/validations", "redact(text, secrets=environment_secrets()))", "text)"),
        f"{UNIT}::test_a_secret_is_left_out_before_a_value_is_cut",
    ),
    mutation(
        "a-cut-secret-is-none",
        "F493",
        "the first characters of a long secret stay in the message of a check of rows",
        a("process/errors", '                return f"{text[:-length]}<redacted>"\n', "                return text\n"),
        "tests/tiers/unit/runtime/process/test_errors.py::test_redaction_of_values_that_were_cut",
    ),
    mutation(
        "validations-are-compared-by-file-group",
        "I9",
        "a commit that changes what a validation has read is no conflict when it is of another file group",
        a("writer/validations", 'return {ISOLATION: "serializable"} if', "return {} if"),
        READS,
        f"{UNIT}::test_a_query_without_the_word_has_no_view_of_the_table",
    ),
    mutation(
        "validations-of-deletes-are-look-ups",
        "F425",
        "what a validation of a delete has read is not compared in the non-blocking mode",
        a("writer/commit", "deletes=delete and not validations.read_the_table(asked)", "deletes=delete"),
        "tests/tiers/unit/runtime/writer/test_scopes.py::test_look_ups_are_the_runtimes",
        f"{HUDI}::test_a_delete_is_compared_with_what_its_validation_has_read",
    ),
    mutation(
        "where-a-source-begins-needs-rows",
        "availability",
        "a writer with minRows never stores where its source begins",
        a("read/sources", "return () if self.beginning else job.validations", "return job.validations"),
        f"{UNIT}::test_a_batch_that_only_stores_where_its_source_begins",
    ),
    mutation(
        "programs-have-validations",
        "I9",
        "validations of a program are accepted, and nobody asks them",
        Edit(
            "operator/hudi_operator/api/spec.py",
            '        for name in ("validations", "commitDeadlineSeconds"):\n',
            '        for name in ("commitDeadlineSeconds",):\n',
        ),
        "tests/tiers/unit/api/test_validations.py::test_a_program_is_not_validated",
    ),
    mutation(
        "programs-have-a-commit-deadline",
        "F546",
        "a program that an older CRD has let pass is ended for commits that nobody could see",
        Edit(
            "operator/hudi_operator/api/spec.py",
            '        for name in ("validations", "commitDeadlineSeconds"):\n',
            '        for name in ("validations",):\n',
        ),
        "tests/tiers/unit/api/test_validations.py::test_no_deadline_is_set_for_the_commits_of_a_program",
    ),
    mutation(
        "validations-are-tried-again",
        "availability",
        "an attempt whose batch has failed a validation is repeated with the same rows",
        Edit(
            "operator/hudi_operator/model/classify.py",
            "if code == EXIT_CODES[FailureClass.USER_ERROR])",
            "if code == EXIT_CODES[FailureClass.USER_ERROR] and kind is not FailureClass.VALIDATION_FAILED)",
        ),
        "tests/tiers/unit/model/test_classify.py::test_bad_data_is_not_tried_again",
    ),
)
