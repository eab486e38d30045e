"""Mutations of what keeps values out that a table cannot hold."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.mutation import AVAILABILITY, Edit, mutation

HUDI = "tests/tiers/hudi/test_values.py"
FILES = "tests/tiers/hudi/test_files.py"
MANIFESTS = "operator/hudi_operator/manifests/spark_conf.py"

AUDIT = "tests/tiers/unit/runtime/audit/test_audit.py"

VALUES = (
    mutation(
        "rows-without-null-inside-are-not-known",
        "F608",
        "the audit compares rows in types that Spark casts nothing to",
        Edit(
            "spark-images/hudi_runtime/audit/rows.py",
            "[StructField(one.name, nullable(one.dataType), True) for one in kind.fields]",
            "[StructField(one.name, nullable(one.dataType), one.nullable) for one in kind.fields]",
        ),
        f"{AUDIT}::test_rows_are_compared_by_types_in_which_null_may_be_anywhere",
    ),
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
        Edit(
            MANIFESTS,
            '    settings[_TABLE_PATH] = table.path\n    settings["spark.plugins"]',
            '    settings["spark.plugins"]',
        ),
        "tests/tiers/unit/manifests/test_held_values.py::test_executors_know_which_table_their_files_belong_to",
    ),
    mutation(
        "every-value-is-a-path",
        "F39",
        "rows are written whatever their partition's value does to the path",
        a("table/values", "        rules += [(name, value.rlike(expression), why) for expression, why in UNSAFE]\n"),
        f"{HUDI}::test_a_partition_is_a_value_that_its_path_gives_back",
    ),
    mutation(
        "rows-are-not-looked-at",
        "F39 F41",
        "a batch is written without a look at its values",
        a(
            "writer/commit",
            (
                "rows = values.held(\n"
                "            frame,\n"
                "            self._job.table,\n"
                "            delete=delete,\n"
                "            adds=self._job.adds,\n"
                "            kafka=isinstance(self._job.source, KafkaSource),\n"
                "        )"
            ),
            "rows = frame",
        ),
        f"{HUDI}::test_no_file_leaves_the_table",
    ),
    mutation(
        "no-ordering-value",
        "F41",
        "a row without a value in an ordering column is written",
        a("table/values", "        *([] if delete or table.merge.ignores_nulls else _ordering_rules(table)),\n", ""),
        f"{HUDI}::test_an_ordering_column_has_a_value",
    ),
    mutation(
        "null-for-what-does-not-parse",
        "F41",
        "lines that do not parse become null",
        a("read/files", 'else {"mode": "FAILFAST"}', "else {}"),
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
        Edit(
            "operator/hudi_operator/model/classify.py",
            "if code == EXIT_CODES[FailureClass.USER_ERROR])",
            "if code == EXIT_CODES[FailureClass.USER_ERROR] and kind is not FailureClass.BAD_DATA)",
        ),
        "tests/tiers/unit/model/test_classify.py::test_bad_data_is_not_tried_again",
    ),
    mutation(
        "names-are-patterns",
        "F85",
        "Spark takes the name of a file for a pattern",
        a("read/files", 'AS_NAMED = {"__globPaths__": "false"}', "AS_NAMED: dict[str, str] = {}"),
        f"{FILES}::test_a_name_is_no_pattern",
    ),
    mutation(
        "patterns-find-what-is-hidden",
        "F85",
        "a pattern finds files that another job is writing",
        a(
            "read/files",
            " for status in matched if not _is_matched_by_chance(status[0], text)]",
            " for status in matched]",
        ),
        f"{FILES}::test_a_pattern_finds_nothing_that_is_hidden",
    ),
    mutation(
        "one-header-for-all",
        "F86",
        "the header of one CSV file counts for all of a commit",
        a("read/files", 'enforceSchema="false"', 'enforceSchema="true"'),
        f"{FILES}::test_csv_of_one_commit_has_one_header",
    ),
    mutation(
        "one-schema-for-all",
        "F86",
        "the columns of one Parquet or ORC file count for all of a commit",
        a("read/files", '{"mergeSchema": "true"} if', '{"mergeSchema": "false"} if'),
        f"{FILES}::test_files_of_one_commit_have_the_columns_of_all",
    ),
    mutation(
        "one-avro-schema-for-all",
        "F86",
        "the columns of one Avro file count for all of a commit",
        a("read/files", 'source.format == "avro"', 'source.format == ""'),
        f"{FILES}::test_files_of_one_commit_have_the_columns_of_all",
    ),
    mutation(
        "empty-files-have-columns",
        "F87",
        "a file without rows is written as a batch, with the columns that Spark makes up",
        a(
            "read/files",
            "return source.format in STRICT and frame.isEmpty()",
            "return source.format in STRICT and frame is None",
        ),
        f"{FILES}::test_an_empty_file_is_in_nobodys_way",
    ),
    mutation(
        "names-of-hudis-own",
        AVAILABILITY,
        "a batch brings a column that Hudi takes for one of its own, and is repeated in vain",
        a(
            "writer/schema",
            (
                "    _check_reserved(field for field in columns if table is None or field.name not in "
                "table.fieldNames())\n"
            ),
        ),
        "tests/tiers/unit/runtime/writer/test_schema.py::test_names_of_hudis_own_are_refused",
    ),
    mutation(
        "children-come-back",
        AVAILABILITY,
        "a child that a program has forked ends the attempt of its parent",
        a("writer/application", "        if os.getpid() != process:", "        if os.getpid() < 0:"),
        "tests/tiers/unit/runtime/writer/test_application.py::test_a_child_of_the_program_does_not_come_back",
    ),
    mutation(
        "the-first-value-of-a-line",
        "F94",
        "of a line of JSON the first value is read, and the others are left out",
        a("read/files", '    if source.format == "json" and _lower', '    if source.format == "" and _lower'),
        f"{FILES}::test_what_follows_a_value_is_not_left_out",
    ),
    mutation(
        "the-first-value-of-a-record",
        "F94",
        "of a record of Kafka the first JSON value is read, and the others are left out",
        a("read/kafka", "getField(_CORRUPT).isNotNull() | more", "getField(_CORRUPT).isNotNull()"),
        f"{FILES}::test_what_follows_the_value_of_a_record_is_not_left_out",
    ),
    mutation(
        "the-view-of-another-session",
        "F96",
        "rows of a session that the program has made are left out, and those of the batch before are written twice",
        a(
            "read/sources",
            "        return query(session, sql, field)\n",
            "        return query(SparkSession.builder.getOrCreate(), sql, field)\n",
        ),
        f"{FILES}::test_a_frame_of_another_session_is_transformed_itself",
    ),
    mutation(
        "the-programs-view-is-replaced",
        "F167",
        "a view `source` of the program is the batch before, and its other rows are never written",
        a("read/sources", "            if view.isDefined():\n", "            if False:\n"),
        f"{FILES}::test_a_view_of_the_program_stays_what_it_is",
    ),
    mutation(
        "the-programs-cache-is-emptied",
        "F167",
        "the next batch takes rows of the program out of the cache, and they are computed anew",
        a(
            "read/sources",
            "        for name, view in own.items():\n            catalog.dropTempView(name)\n",
            "        for name, view in own.items():\n            session.catalog.dropTempView(name)\n",
        ),
        f"{FILES}::test_rows_that_the_program_has_cached_stay_cached",
    ),
    mutation(
        "a-run-of-a-deleted-writer",
        "F97",
        (
            "a HudiWriter that is deleted and applied again takes what the old one has committed for its own, and "
            "writes nothing"
        ),
        a("job/job", 'run=f"{told.writer.uid}/{told.run}"', "run=str(told.run)"),
        "tests/tiers/unit/runtime/read/test_progress.py::test_a_writer_that_is_applied_again_begins_a_run_of_its_own",
    ),
    mutation(
        "files-are-forgotten",
        "F103",
        "a HudiWriter that has read something else in between commits all of its files once more",
        a("read/progress", 'if not of_files or checkpoint.get("manifest"):', "if True:"),
        "tests/tiers/unit/runtime/read/test_progress.py::test_files_are_known_whatever_the_writer_has_read_since",
    ),
    mutation(
        "a-key-is-negative-zero",
        "F99",
        "0.0 and -0.0 are two records",
        a(
            "table/values",
            (
                '            rules += [(name, (value == functions.lit(0.0)) & value.cast("string").startswith("-"), '
                "NEGATIVE_ZERO)]\n"
            ),
            "            pass\n",
        ),
        f"{HUDI}::test_zero_is_one_key",
    ),
    mutation(
        "checks-below-joins",
        "F101",
        "a batch is refused for rows that its joins leave out",
        a("table/values", "functions.when(functions.spark_partition_id() < 0,", "functions.when(functions.lit(1) < 0,"),
        f"{HUDI}::test_rows_that_a_join_leaves_out_are_not_asked",
    ),
    mutation(
        "partitions-in-partitions",
        "F100",
        "a partition may lie in the folder of another one, where nobody who lists folders looks for it",
        j("DataFiles", "        requireBesideOthers(base, path, fs);\n"),
        t("DataFilesTest.noPartitionLiesInTheFolderOfAnother"),
    ),
    mutation(
        "keys-by-two-orders",
        "F102",
        "the Bloom index passes over files by ranges of keys that bulk inserts name by another order",
        Edit(
            "operator/hudi_operator/manifests/hudi_conf.py",
            '        options["hoodie.bloom.index.prune.by.ranges"] = "false"\n',
            "        pass\n",
        ),
        "tests/tiers/hudi/test_bloom_keys.py::test_an_upsert_finds_keys_of_every_script",
        "tests/tiers/unit/manifests/test_manifests.py::test_a_bloom_index_does_not_go_by_ranges",
    ),
    mutation(
        "a-record-without-a-key",
        "F80",
        "a row without a record key comes to Hudi, which fails in the middle of the write",
        a("table/values", '            rules += [(name, value.isNull(), "a record key has a value")]\n'),
        f"{HUDI}::test_a_record_has_a_key",
    ),
    mutation(
        "a-key-of-any-type",
        "F80",
        "a record key may be binary, of which a bulk insert and an upsert make two keys",
        a("table/values", "    _check_types(frame, table.record_keys, PLAIN_KINDS, KEY_RULE)\n"),
        f"{HUDI}::test_keys_and_ordering_values_are_of_types_that_have_one_text_and_one_order",
    ),
    mutation(
        "an-ordering-of-any-type",
        "F81",
        "an ordering column may be a struct, which readers of a MergeOnRead table cannot compare",
        a("table/values", "    _check_types(frame, () if delete else table.ordering, PLAIN_KINDS, ORDERING_RULE)\n"),
        f"{HUDI}::test_keys_and_ordering_values_are_of_types_that_have_one_text_and_one_order",
    ),
    mutation(
        "types-that-hudi-does-not-keep",
        "F82",
        "new columns are taken whatever their type",
        a("writer/schema", "    _check_kept(field.name, field.dataType)\n"),
        "tests/tiers/unit/runtime/writer/test_schema.py::test_what_hudi_cannot_keep_is_refused_by_column",
    ),
    mutation(
        "decimals-and-dates-order-updates",
        "F81",
        (
            "a CopyOnWrite table may have an ordering column of decimals or dates, which Hudi cannot compare when it "
            "updates"
        ),
        a(
            "table/values",
            "        _check_types(frame, () if delete else table.ordering, UPDATED_KINDS, UPDATED_RULE)\n",
            "        pass\n",
        ),
        f"{HUDI}::test_keys_and_ordering_values_are_of_types_that_have_one_text_and_one_order",
    ),
    mutation(
        "a-bulk-insert-makes-keys-of-its-own",
        "F92",
        "the row writer makes another key of a timestamp than every other write does",
        a("job/options", '{ROW_WRITER: "false"}', '{ROW_WRITER: "true"}'),
        "tests/tiers/hudi/test_time_keys.py::test_a_bulk_insert_makes_the_key_of_an_upsert",
    ),
    mutation(
        "a-program-makes-keys-of-its-own",
        "F92",
        "a program may use the row writer with a timestamp in the key",
        j(
            "WriteOptions",
            "        && isTimeInKey(props, table)) {",
            "        && isTimeInKey(props, table) && props.isEmpty()) {",
        ),
        t("WriteOptionsTest.aBulkInsertMakesNoKeysOfItsOwn"),
    ),
    mutation(
        "statistics-of-columns-by-default",
        "F104",
        "a table has statistics of columns unless it says otherwise, and readers pass over rows that they ask for",
        Edit("operator/hudi_operator/api/metadata_table.py", "texts(at_most=", "texts(unset=INDEXES, at_most="),
        "tests/tiers/unit/plan/requests/test_metadata_requests.py::test_every_writer_is_told",
        "tests/tiers/hudi/test_skipping.py::test_what_a_reader_asks_for_is_found",
    ),
    mutation(
        "a-statement-skips-files",
        "F104",
        "a statement that changes rows goes by statistics of columns, and misses some",
        Edit(
            "operator/hudi_operator/manifests/hudi_conf.py",
            '        "hoodie.enable.data.skipping": "false",\n',
            '        "hoodie.enable.data.skipping": "true",\n',
        ),
        "tests/tiers/hudi/test_skipping.py::test_a_writer_finds_what_it_changes",
    ),
    mutation(
        "kafka-rows-have-no-place",
        "F383",
        "a row of a topic that is refused is not told by topic, partition and offset",
        a("writer/commit", "            kafka=isinstance(self._job.source, KafkaSource),\n"),
        "tests/tiers/hudi/test_kafka.py::test_a_writer_says_which_record_it_refuses",
    ),
    mutation(
        "a-place-for-rows-of-several-records",
        "F383",
        "a row that is made from two records is told with the place of the first of them",
        j("KafkaPlaces", '            "Filter", "SubqueryAlias",', '            "Join", "Filter", "SubqueryAlias",'),
        "tests/tiers/hudi/test_kafka.py::test_a_row_that_is_refused_has_a_place",
    ),
    mutation(
        "an-insert-of-deletes",
        "F108",
        "rows that are marked as deletes are inserted",
        a("writer/commit", "            adds=self._job.adds,\n"),
        f"{HUDI}::test_an_insert_deletes_nothing",
    ),
    mutation(
        "a-program-inserts-deletes-as-rows",
        "F108",
        "a bulk insert of a program stores rows that are marked as deletes, and readers show them",
        Edit(
            "operator/hudi_operator/manifests/hudi_conf.py",
            '        "hoodie.parquet.spark.row.write.support.class": ROW_WRITE_SUPPORT,\n',
            "",
        ),
        f"{HUDI}::test_a_program_inserts_no_delete_and_one_calendar",
        "tests/tiers/unit/manifests/test_held_values.py::test_everybody_writes_dates_as_they_are_and_says_so",
    ),
    mutation(
        "a-failed-row-is-noted",
        "F380",
        "a row that cannot be written is noted beside the others, as Hudi does it",
        j(
            "FailFastWriteStatus",
            "        throw failure(row.getRecordKey(), row.getPartitionPath(), cause);\n",
            "        super.markFailure(row, cause, metadata);\n",
        ),
        "tests/tiers/hudi/test_deletes_of_programs.py::test_a_record_has_one_key_whatever_its_type",
    ),
    mutation(
        "hudis-own-write-status",
        "F380",
        "writers use Hudi's class, which notes a failed row",
        Edit(
            "operator/hudi_operator/manifests/hudi_conf.py", '        "hoodie.writestatus.class": WRITE_STATUS,\n', ""
        ),
        "tests/tiers/unit/manifests/test_held_values.py::test_a_row_that_cannot_be_written_fails_the_write",
    ),
    mutation(
        "a-program-inserts-deletes",
        "F108",
        "an insert of a program leaves out rows that are marked as deletes, whose records stay",
        j("CommitRules", "            requireNoDeletes(path, operation, (Map<?, ?>) said.get(STATS));\n"),
        f"{HUDI}::test_a_program_inserts_no_delete_and_one_calendar",
    ),
    mutation(
        "dates-of-two-calendars",
        "F170",
        "a bulk insert writes dates in the calendar that user code has set in its session",
        j(
            "InsertedRowWriteSupport",
            "        if (!CORRECTED.equals(mode)) {",
            "        if (mode.isEmpty()) {",
        ),
        f"{HUDI}::test_a_program_inserts_no_delete_and_one_calendar",
    ),
    mutation(
        "partitions-created-at-once",
        "F171",
        "two partitions, one in the folder of the other, get rows when both are created at once",
        j("DataFiles", " && !APART.contains(name)) {", " && name.isEmpty()) {"),
        t("DataFilesTest.partitionsThatAreCreatedAtOnceDoNotBothGetRows"),
        t("DataFilesTest.aPartitionWithRowsKeepsOthersAway"),
    ),
    mutation(
        "a-program-stores-null-in-an-ordering-column",
        "F212",
        "a program's file is not read after it was written, and readers of the table fail from then on",
        j("ProgramFiles", "                afterClose.run();\n"),
        f"{HUDI}::test_a_program_orders_each_row",
    ),
    mutation(
        "a-program-writes-a-partition-that-its-path-does-not-show",
        "F212",
        "a program commits rows of the partition a//b, which no reader finds",
        j("CommitRules", "        requirePartitions(path, (Map<?, ?>) said.get(STATS));\n"),
        f"{HUDI}::test_a_program_writes_no_partition_that_its_path_does_not_preserve",
    ),
    mutation(
        "a-program-creates-a-folder-that-cannot-be-listed",
        "F212",
        "a program creates the folder of a partition with a colon or an equals sign",
        j("DataFiles", "                requirePartition(base, file.substring(base.length() + 1), path);\n"),
        f"{HUDI}::test_a_program_writes_no_partition_that_its_path_does_not_preserve",
    ),
    mutation(
        "partitions-of-a-program-have-any-text",
        "F212",
        "a partition's value of a program is not compared with what a path preserves",
        j("RowRules", "if (rule.getKey().matcher(value).find()) {", "if (value.isEmpty()) {"),
        t("RowRulesTest.aPartitionIsAValueThatItsPathPreserves"),
    ),
    mutation(
        "columns-of-a-program-have-any-type",
        "F212",
        "a program stores an ordering column that readers cannot compare",
        j("RowRules", "type != null && !allowed.contains(type)", "type != null && allowed.isEmpty()"),
        t("RowRulesTest.columnsHaveTypesWithOneTextAndOneOrder"),
    ),
    mutation(
        "merge-into-writes-some-columns",
        "F213",
        "a MERGE INTO of some columns writes the others as null, or a log file that incremental queries cannot read",
        j("MergeRules", "                if (!left.isEmpty()) {", "                if (all.isEmpty()) {"),
        f"{HUDI}::test_a_program_orders_each_row",
    ),
    mutation(
        "rows-of-others-are-judged",
        "F286",
        "a program's file is refused for a row that it only takes over from the file before it",
        j("ProgramFiles", "if (!instant.isEmpty() && ", "if (false && "),
        "tests/tiers/hudi/test_adoption.py::test_rows_that_were_there_before_are_taken_over",
    ),
    mutation(
        "merge-into-leaves-a-clause-out",
        "F282",
        "a MERGE INTO with WHEN NOT MATCHED BY SOURCE succeeds, and these rows stay as they are",
        j("MergeRules", "        requireClauses(merge);\n"),
        f"{HUDI}::test_a_program_merges_as_the_statement_says",
    ),
    mutation(
        "merge-into-updates-what-it-is-to-delete",
        "F287",
        "a MERGE INTO that deletes before it updates succeeds, and the rows are updated",
        j("MergeRules", "        requireOrder(merge);\n"),
        f"{HUDI}::test_a_program_merges_as_the_statement_says",
    ),
    mutation(
        "merge-into-matches-by-key-only",
        "F288",
        "a MERGE INTO whose ON has other conditions succeeds, and updates rows that do not fulfil them",
        j("MergeKeys", '"compares more than key and partition (" + String.join(", ", others) + ")"', '""'),
        f"{HUDI}::test_a_program_merges_as_the_statement_says",
    ),
    mutation(
        "rows-of-a-program-have-no-ordering-column",
        "F289",
        "the first rows of a table are stored without its ordering column",
        j("ProgramFiles", "if (value(row, column) == null) {", "if (value(row, column) == null && has(row, column)) {"),
        f"{HUDI}::test_no_row_of_a_program_is_without_the_ordering_column",
    ),
    mutation(
        "a-program-writes-some-columns",
        "F297",
        "a write says by an option which columns its files have",
        Edit(
            "operator/hudi_contract/hudi_options.tsv",
            "hoodie.write.partial.update.schema\tfixed\t\n",
            "hoodie.write.partial.update.schema\tfree\tschema\n",
        ),
        t("WriteOptionsTest.noWriteSaysWhichColumnsItsFilesHave"),
        f"{HUDI}::test_a_program_merges_as_the_statement_says",
    ),
    mutation(
        "a-program-says-its-schema",
        "F297",
        "a write says by an option, or by its session, which schema it has",
        j("StatementRules", "        if (isSaid) {\n", "        if (isSaid && SCHEMA.isEmpty()) {\n"),
        f"{HUDI}::test_a_program_merges_as_the_statement_says",
    ),
    mutation(
        "clauses-of-merge-into-have-no-order",
        "F298",
        "a MERGE INTO with five clauses, any of which may come first, succeeds",
        j("MergeRules", "        if (conditions.size() > IN_ORDER) {", "        if (conditions.size() < 0) {"),
        f"{HUDI}::test_a_program_merges_as_the_statement_says",
    ),
    mutation(
        "the-last-clause-of-merge-into-counts",
        "F298",
        "a MERGE INTO with one condition twice succeeds, and the second clause counts",
        j(
            "MergeRules",
            "later.canonicalized().equals(conditions.get(i).canonicalized())",
            "later == conditions.get(i)",
        ),
        f"{HUDI}::test_a_program_merges_as_the_statement_says",
    ),
    mutation(
        "merge-into-looks-nothing-up",
        "F295",
        "a MERGE INTO that only inserts stores known records again, and one that only deletes deletes none",
        j("MergeRules", "            requireOrdering(table);\n"),
        f"{HUDI}::test_a_program_merges_into_a_table_with_ordering_columns",
    ),
    mutation(
        "merge-into-loses-new-records-of-a-bucket",
        "F310",
        "a MERGE INTO of a MergeOnRead table with a bucket index inserts no new record, or updates it into the table",
        j("MergeRules", "            requireSameForNewRecords(merge);\n"),
        f"{HUDI}::test_a_program_merges_into_log_files",
    ),
    mutation(
        "merge-into-loses-records-that-were-deleted",
        "F314",
        "a MERGE INTO of a MergeOnRead table does not insert a record that was there before",
        j("MergeRules", "            requireSameForNewRecords(merge);\n"),
        f"{HUDI}::test_a_program_merges_as_the_statement_says",
    ),
    mutation(
        "merge-into-deletes-by-another-type",
        "F311",
        "a MERGE INTO deletes with an ordering value that readers cannot compare, and nobody can read the table",
        j("MergeRules", "            if (deletes(merge)) {\n", "            if (merge == null) {\n"),
        f"{HUDI}::test_a_program_merges_into_log_files",
    ),
    mutation(
        "insert-by-a-wrong-name",
        "F312",
        "an INSERT INTO by name with a name that the table does not have writes all values into wrong columns",
        j("GuardedParser", "        StatementRules.requireByPosition(session, plan);\n"),
        f"{HUDI}::test_a_program_inserts_by_no_wrong_name",
    ),
    mutation(
        "insert-into-looks-no-key-up",
        "F321",
        "an INSERT INTO of a known key adds a second record",
        Edit(
            "operator/hudi_operator/manifests/hudi_conf.py",
            '        options["hoodie.spark.sql.insert.into.operation"] = "upsert"\n',
            "",
        ),
        f"{HUDI}::test_a_program_inserts_by_no_wrong_name",
    ),
    mutation(
        "files-name-classes",
        "F323",
        "Parquet's reader for Avro calls the constructor of a class that a file names",
        Edit(
            MANIFESTS,
            '        "spark.hadoop.parquet.avro.data.supplier": "org.apache.parquet.avro.GenericDataSupplier",\n',
            "",
        ),
        "tests/tiers/unit/manifests/test_held_values.py::test_no_file_names_a_class_to_its_reader",
    ),
    mutation(
        "write-with-an-internal-option",
        "F322",
        "a program's row is stored under a key that is not its own",
        j("StatementRules", "            requireNotInternal(name);\n"),
        f"{HUDI}::test_a_program_inserts_by_no_wrong_name",
    ),
    mutation(
        "merge-into-takes-a-key-by-its-name",
        "F293",
        "a MERGE INTO compares the key with one column of its source, and Hudi takes another",
        j("MergeKeys", "        requireNames();\n"),
        f"{HUDI}::test_a_program_merges_as_the_statement_says",
    ),
    mutation(
        "merge-into-changes-keys",
        "F293",
        "a MERGE INTO gives a record another key or partition, and it stays where the old one was",
        j("MergeKeys", "if (meant != null && !meant.semanticEquals(value) && !itself) {", "if (value == null) {"),
        f"{HUDI}::test_a_program_merges_as_the_statement_says",
    ),
    mutation(
        "merge-into-inserts-without-a-partition",
        "F293",
        "a MERGE INTO inserts a row without its partition column, into the folder that ON names",
        j("MergeKeys", "if (each && !left.isEmpty()) {", "if (each && left.isEmpty()) {"),
        f"{HUDI}::test_a_program_merges_as_the_statement_says",
    ),
    mutation(
        "merge-into-doubles-what-has-moved",
        "F294",
        "a MERGE INTO that does not compare the partition inserts a record again that is in another one",
        j("MergeKeys", '"does not compare the partition (" + String.join(", ", folders) + ")"', '""'),
        f"{HUDI}::test_a_program_merges_as_the_statement_says",
    ),
    mutation(
        "merge-into-asks-rows-that-it-does-not-read",
        "F296",
        "a MERGE INTO a MergeOnRead table with a condition on the table's columns succeeds, and does nothing",
        j("MergeRules", "            requireOfSource(merge);\n"),
        f"{HUDI}::test_a_program_merges_as_the_statement_says",
    ),
    mutation(
        "an-empty-table-has-no-name",
        "F295",
        "the first MERGE INTO of a table is not checked, for its relation does not say which table it is",
        j(
            "Relations",
            "return isEmpty(source) ? named(((LogicalRelation) leaf).catalogTable(), spark) : table(source);",
            "return isEmpty(source) ? null : table(source);",
        ),
        f"{HUDI}::test_a_program_merges_into_a_table_with_ordering_columns",
    ),
    mutation(
        "a-partition-of-a-program-has-any-number-of-folders",
        "F284",
        "a program's partition has more folders than there are partition columns, and no reader knows which is which",
        j("RowRules", "if (folders.length != partitions.size() && ", "if (folders.length == 0 && "),
        t("RowRulesTest.eachPartitionColumnHasOneFolder"),
        f"{HUDI}::test_each_partition_column_has_one_folder",
    ),
    mutation(
        "a-column-that-rows-do-not-have-is-null",
        "F313",
        "a delete without the column of the partition deletes nothing, and succeeds",
        j("StatementRules", "        requireKeys(names, identity);\n"),
        f"{HUDI}::test_a_program_inserts_by_no_wrong_name",
    ),
    mutation(
        "a-python-source-saves-any-row",
        "F281",
        "what a python source saves by itself is not checked",
        a("job/job", " or isinstance(self.source, PythonSource)\n", "\n"),
        f"{HUDI}::test_a_python_source_that_saves_by_itself_is_a_program",
    ),
    mutation(
        "file-contexts-pass-the-wrapper",
        "F280",
        "Hadoop's other interface is another client of the store: checkpoints come among the data",
        Edit(
            MANIFESTS,
            '    settings = {f"spark.hadoop.fs.AbstractFileSystem.{scheme}.impl": GUARDED_CONTEXT}\n',
            "    settings: dict[str, str] = {}\n",
        ),
        "tests/tiers/unit/manifests/test_manifests.py::test_a_user_cannot_replace_the_storage_wrapper_or_the_plugin",
        f"{HUDI}::test_a_program_leaves_nothing_beside_its_rows",
    ),
    mutation(
        "copies-into-the-tables-own-folder",
        "F283",
        "a program copies a file to the table's folder itself, and it lies among the data",
        j("DataFiles", ' || FolderRules.isWrittenHere(new Path(path, "any"));', ";"),
        f"{HUDI}::test_a_program_leaves_nothing_beside_its_rows",
    ),
    mutation(
        "a-program-that-stops-spark-is-repeated",
        "F285",
        "a program stops Spark, its attempt fails after its commits, and the next one writes the rows again",
        a("writer/application", "        with _spark_goes_on():\n", "        with contextlib.nullcontext():\n"),
        "tests/tiers/unit/runtime/writer/test_application.py::test_a_program_may_stop_spark",
    ),
    mutation(
        "columns-of-folders-are-left-out",
        "F109",
        "files are read without the columns that their folders name",
        a("read/files", "    _require_columns_of_folders(frame, source, paths)\n"),
        f"{FILES}::test_a_folder_that_names_a_column",
    ),
)
