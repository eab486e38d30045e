"""Mutations of what keeps values out that a table cannot hold."""

from __future__ import annotations

from tests.mutations.in_agent import a
from tests.mutations.in_jvm import j, t
from tests.mutations.mutation import Edit, mutation

HUDI = "tests/hudi/test_values.py"
MANIFESTS = "operator/hudi_operator/manifests/spark_conf.py"

VALUES = (
    mutation(
        "files-leave-the-table",
        "F39",
        "a data file is created wherever the partition of a row leads",
        j("DataFiles", "    if (!bases.isEmpty()) {\n", "    if (bases.size() > 1000) {\n"),
        t("DataFilesTest.nothingOfAWriteIsCreatedOutsideOfTheTable"),
    ),
    mutation(
        "data-files-in-hudis-own-folders",
        "F39",
        "a data file is created in the metadata table, or beside the timeline",
        j("DataFiles", "    if (!allowed) {\n", "    if (!allowed && path.isRoot()) {\n"),
        t("DataFilesTest.noDataFileIsCreatedInHudisOwnFolders"),
    ),
    mutation(
        "executors-do-not-know-their-table",
        "F39",
        "only a process with a session knows which table its files belong to",
        Edit(MANIFESTS, '    settings[_TABLE_PATH] = table.path\n    settings["spark.plugins"]', '    settings["spark.plugins"]'),
        "tests/unit/manifests/test_held_values.py::test_executors_know_which_table_their_files_belong_to",
    ),
    mutation(
        "every-value-is-a-path",
        "F39",
        "rows are written whatever their partition's value does to the path",
        a("values", "        rules += [(name, value.rlike(expression), why) for expression, why in UNSAFE]\n"),
        f"{HUDI}::test_a_partition_is_a_value_that_its_path_gives_back",
    ),
    mutation(
        "rows-are-not-looked-at",
        "F39 F41",
        "a batch is written without a look at its values",
        a("commit", 'values.held(fit.apply(frame), self._job.table, delete=self._job.operation == "delete")', "fit.apply(frame)"),
        f"{HUDI}::test_no_file_leaves_the_table",
    ),
    mutation(
        "no-ordering-value",
        "F41",
        "a row without a value in an ordering column is written",
        a("values", "*([] if delete or table.merge.ignores_nulls else _ordering_rules(table))]", "]"),
        f"{HUDI}::test_an_ordering_column_has_a_value",
    ),
    mutation(
        "null-for-what-does-not-parse",
        "F41",
        "lines that do not parse become null",
        a("sources", 'else {"mode": "FAILFAST"}', "else {}"),
        f"{HUDI}::test_a_file_that_cannot_be_read_is_named",
    ),
    mutation(
        "files-do-not-say-their-calendar",
        "F41",
        "base files are written as Hudi writes them: Spark does not read old dates in them",
        j("DatedWriteSupport", "    addFooterMetadata(WRITTEN_BY, SINCE);\n"),
        t("DatedWriteSupportTest.filesSayThatTheyWereWrittenBySparkThree"),
    ),
    mutation(
        "bad-data-is-tried-again",
        "F41",
        "an attempt that has met bad data is repeated",
        Edit("operator/hudi_operator/model/classify.py", "PARTITION_NOT_DECLARED, BAD_DATA})", "PARTITION_NOT_DECLARED})"),
        "tests/unit/model/test_classify.py::test_bad_data_is_not_tried_again",
    ),
    mutation(
        "a-record-without-a-key",
        "F80",
        "a row without a record key comes to Hudi, which fails in the middle of the write",
        a("values", '            rules += [(name, value.isNull(), "a record key has a value")]\n'),
        f"{HUDI}::test_a_record_has_a_key",
    ),
    mutation(
        "a-key-of-any-type",
        "F80",
        "a record key may be binary, of which a bulk insert and an upsert make two keys",
        a("values", "    _check_types(frame, table.record_keys, PLAIN_KINDS, KEY_RULE)\n"),
        f"{HUDI}::test_keys_and_ordering_values_are_of_types_that_have_one_text_and_one_order",
    ),
    mutation(
        "an-ordering-of-any-type",
        "F81",
        "an ordering column may be a struct, which readers of a MergeOnRead table cannot compare",
        a("values", "    _check_types(frame, () if delete else table.ordering, PLAIN_KINDS, ORDERING_RULE)\n"),
        f"{HUDI}::test_keys_and_ordering_values_are_of_types_that_have_one_text_and_one_order",
    ),
    mutation(
        "types-that-hudi-does-not-keep",
        "F82",
        "new columns are taken whatever their type",
        a("schema", "    _check_kept(field.name, field.dataType)\n"),
        "tests/unit/runtime/test_schema.py::test_what_hudi_cannot_keep_is_refused_by_column",
    ),
    mutation(
        "decimals-order-updates",
        "F81",
        "a CopyOnWrite table may have an ordering column of decimals, which Hudi cannot compare when it updates",
        a("values", "        _check_types(frame, () if delete else table.ordering, UPDATED_KINDS, DECIMAL_RULE)\n", "        pass\n"),
        f"{HUDI}::test_keys_and_ordering_values_are_of_types_that_have_one_text_and_one_order",
    ),
    mutation(
        "bulk-inserts-have-keys-of-their-own",
        "F83",
        "a bulk insert makes keys of timestamps by Hudi's row writer: an upsert does not find them",
        a("commit", "**values.key_options(rows, self._job.table, self._job.operation), ", ""),
        f"{HUDI}::test_a_timestamp_is_one_key_whatever_writes_it",
    ),
)
