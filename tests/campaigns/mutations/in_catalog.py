"""Mutations of catalogs: when they are synchronized, where nothing is ever sent, and what is
shown.
"""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.mutation import AVAILABILITY, Edit, mutation

SYNCER = f"{RUNTIME}/catalog/test_catalog.py"
SLASHES = "tests/tiers/hudi/test_catalog.py::test_values_with_a_slash_are_partitions_of_their_own"
GLUE = f"{RUNTIME}/catalog/test_glue.py"
DELETION = "tests/tiers/unit/plan/test_deletion.py"
DROPPED = "tests/tiers/hudi/test_catalog.py::test_entries_are_dropped_by_who_has_made_them_and_describe_what_hive_has"
STATUS = "tests/tiers/unit/plan/requests/test_catalog_status.py"

LISTING = (
    mutation(
        "a-catalog-of-another-protocol",
        "F385",
        "an address is used although what answers there is no metastore",
        a("catalog/probe", "            wrong.append(said)\n", "            found.append(uri)\n"),
        f"{SYNCER}::test_nobody_at_the_port_and_another_that_answers",
    ),
    mutation(
        "any-answer-is-a-metastores",
        "F385",
        "an answer of another protocol is taken for a metastore's",
        a("catalog/probe", "if found in ANSWERS:", "if found:"),
        f"{SYNCER}::test_hives_client_meets_only_what_has_answered_like_a_metastore",
    ),
    mutation(
        "a-try-is-not-noted",
        "F385",
        "a try is not noted before it begins: an agent that it ends is followed by one that repeats it at once",
        a("catalog/catalog", "                self._save(known.but(inc=self._inc, begun=known.begun + 1))\n"),
        f"{SYNCER}::test_a_try_that_ends_its_agent_is_repeated_with_pauses",
    ),
    mutation(
        "an-interrupted-try-is-repeated-at-once",
        "F385",
        "an agent does not wait after a try that has ended the one before it",
        a("catalog/catalog", "            elif found.begun and found.inc != self._inc:", "            elif not found:"),
        f"{SYNCER}::test_a_try_that_ends_its_agent_is_repeated_with_pauses",
    ),
    mutation(
        "hudi-takes-values-from-paths",
        "F386",
        "the value of a single partition column is taken from its path by Hudi's class, without its slashes",
        a(
            "catalog/options",
            'f"{_VALUES}{named}{several}" if fields',
            '"org.apache.hudi.hive.SinglePartPartitionValueExtractor" if fields',
        ),
        f"{SYNCER}::test_options_of_the_tool",
    ),
    mutation(
        "a-named-value-is-split",
        "F386",
        "in Hive style a value ends at a slash",
        j("PartitionValues", "return withoutNames(whole(path));", "return withoutNames(levels(path));"),
        t("PartitionValuesTest.inHiveStyleTheValueFollowsTheName"),
    ),
    mutation(
        "what-is-left-out-is-not-told",
        "F386",
        "a catalog without some partitions is said to show the table",
        Edit(
            "operator/hudi_operator/plan/requests/catalogs.py",
            "    if report.left_out:\n        text",
            "    if not report:\n        text",
        ),
        f"{STATUS}::test_status_and_condition",
    ),
    mutation(
        "a-table-that-was-made-again-is-synchronized",
        "F387",
        "what an agent has synchronized for a HudiTable counts for the one that was made again in its place",
        Edit(
            "operator/hudi_contract/assignment.py",
            "{self.database}.{self.table} {self.uid}",
            "{self.database}.{self.table} u",
        ),
        f"{SYNCER}::test_another_agent_goes_on_and_another_catalog_begins_anew",
    ),
    mutation(
        "where-it-is-fenced-it-tells",
        "F388",
        "an agent goes on with the catalog and the callbacks of a table at which it was fenced",
        a(
            "agent/assignment",
            "            self._tasks.stop_telling()\n        self.cancel_service()",
            "            pass\n        self.cancel_service()",
        ),
        f"{RUNTIME}/agent/test_assignment.py::test_where_it_was_fenced_nothing_is_told_any_more",
    ),
    mutation(
        "a-fenced-agent-begins-a-try",
        "F388",
        "an agent does not look for its fence before it synchronizes a catalog",
        a("catalog/catalog", "                if self._fenced():", "                if not self:"),
        f"{SYNCER}::test_a_fenced_agent_does_not_begin",
    ),
    mutation(
        "the-report-of-a-successor-is-overwritten",
        "F388",
        "an agent writes its report over that of another one",
        a(
            "catalog/catalog",
            "self._etcd.cas(REPORT, report.to_json(), self._revision)",
            "self._etcd.put(REPORT, report.to_json())",
        ),
        f"{SYNCER}::test_the_report_of_a_successor_is_not_overwritten",
    ),
    mutation(
        "an-earlier-try-is-past-its-limit",
        "F389",
        "a try that is still within its limit is said to be past it",
        j("Runs", "return limit - now > 0", "return limit - now > Long.MAX_VALUE - 1"),
        t("CatalogRunsTest.anEarlierTryOfTheNameIsWaitedForUntilItsLimit"),
    ),
    mutation(
        "any-number-of-threads-is-held",
        "F390",
        "metastores of many tables hold any number of the agent's threads",
        j("Runs", "limit == null && running.size() >= mostThreads", "limit == null && mostThreads < 0"),
        t("CatalogRunsTest.notTooManyThreadsAreHeld"),
    ),
    mutation(
        "a-slash-is-dropped-by-name",
        "F386",
        "a partition is dropped from a catalog by its name, in which a slash separates columns",
        j(
            "LivingPartitions",
            "        List<String> dropped = partitions.described(paths);\n",
            "        super.dropPartitions(table, paths);\n        List<String> dropped = List.of();\n",
        ),
        SLASHES,
    ),
    mutation(
        "partition-columns-are-not-compared",
        "F391",
        "a catalog's entry with other partition columns is taken for the table's own",
        j("HiveSync", "                ((LivingPartitions) syncClient).compareColumns(name);\n"),
        SLASHES,
    ),
    mutation(
        "an-earlier-try-is-a-failure",
        "F389",
        "a try that has not ended when the assignment changes makes the next one a failure",
        a("catalog/catalog", "        except Busy:", "        except ZeroDivisionError:"),
        f"{SYNCER}::test_an_earlier_try_of_this_process_is_waited_for",
    ),
    mutation(
        "a-catalog-on-this-pod",
        AVAILABILITY,
        "a catalog may be at an address of the agent's own pod, of its node or of a cloud's metadata",
        a(
            "catalog/hive",
            "resolved(host, port, refused=refused)",
            "resolved(host, port, refused=lambda address: False)",
        ),
        f"{SYNCER}::test_what_is_connected_to_are_the_addresses_that_were_checked",
    ),
    mutation(
        "the-catalogs-name-is-looked-up-again",
        AVAILABILITY,
        "the metastore's client resolves a name again that was checked",
        a(
            "catalog/hive",
            "thrift://{f'[{address}]' if ':' in address else address}:{port}",
            "{uri}",
        ),
        f"{SYNCER}::test_what_is_connected_to_are_the_addresses_that_were_checked",
    ),
    mutation(
        "a-failed-catalog-is-tried-at-once",
        AVAILABILITY,
        "a catalog that fails is tried again without a pause",
        a("catalog/catalog", " or self._clock() < self._retry_at:", ":"),
        f"{SYNCER}::test_a_failure_is_repeated_with_pauses",
    ),
    mutation(
        "a-failed-catalog-is-forgotten",
        AVAILABILITY,
        "a try that failed counts as done",
        a(
            "catalog/catalog",
            "            self._failed(known, error)\n            return\n",
            '            done = CatalogReport(target=known.target, instant="1", completion_time="9")\n',
        ),
        f"{SYNCER}::test_a_failure_is_repeated_with_pauses",
    ),
    mutation(
        "a-catalog-for-each-listing",
        AVAILABILITY,
        "a catalog is synchronized with each listing, not with each change",
        a(
            "catalog/catalog",
            "last is None or (last.completion <= known.completion_time and not known.failures)",
            "last is None",
        ),
        f"{SYNCER}::test_each_new_commit_once",
    ),
    mutation(
        "a-restore-undoes-no-partition",
        AVAILABILITY,
        "after a restore the catalog keeps partitions of the commits that were undone",
        a("catalog/catalog", "everything = undone or not", "everything = not"),
        f"{SYNCER}::test_after_a_restore_everything_is_compared",
    ),
    mutation(
        "a-stopped-catalog-reports",
        AVAILABILITY,
        "a stopped try still reports, over the report of the next agent",
        a(
            "catalog/catalog",
            "        if self._stopped.is_set():\n            return\n        revision = ",
            "        revision = ",
        ),
        f"{SYNCER}::test_who_looks_at_the_table_never_waits_and_a_stopped_one_reports_nothing",
    ),
    mutation(
        "another-catalogs-report",
        AVAILABILITY,
        "what an earlier catalog showed counts for the one that the table has now",
        a("catalog/catalog", "if found.target != self._wanted.target:", "if not found.target:"),
        f"{SYNCER}::test_another_agent_goes_on_and_another_catalog_begins_anew",
    ),
    mutation(
        "status-of-another-catalog",
        AVAILABILITY,
        "status shows the report of an earlier catalog",
        Edit(
            "operator/hudi_operator/plan/requests/catalogs.py",
            "report is not None and report.target == order.target",
            "report is not None",
        ),
        f"{STATUS}::test_status_and_condition",
    ),
    mutation(
        "a-catalog-on-loopback-launches",
        AVAILABILITY,
        "the launch accepts a catalog's address that the CRD refuses",
        Edit("operator/hudi_operator/api/catalog.py", "if _NEVER.fullmatch(uri):", "if not uri:"),
        f"{STATUS}::test_addresses_are_refused_at_launch_too",
    ),
    mutation(
        "a-catalog-without-a-port-launches",
        AVAILABILITY,
        "the launch accepts a catalog's port that does not exist",
        Edit("operator/hudi_operator/api/catalog.py", "if not 0 < int(", "if not int("),
        f"{STATUS}::test_addresses_are_refused_at_launch_too",
    ),
    mutation(
        "a-broken-catalog-does-not-stall",
        AVAILABILITY,
        "a HudiTable whose catalog is refused is not stalled",
        Edit("operator/hudi_operator/plan/gate/stalled.py", "    _catalog_is_wrong,\n", ""),
        f"{STATUS}::test_addresses_are_refused_at_launch_too",
    ),
    mutation(
        "any-folder-is-a-value",
        "F397",
        "a partition is added to a catalog whatever its value is, under a column whose type cannot read it",
        j("Held", "return readsAs(value, type.toLowerCase(Locale.ROOT));", "return !value.isEmpty();"),
        t("HeldTest.aValueOfAPartitionIsOfItsColumnsType"),
    ),
    mutation(
        "hives-types-say-everything",
        "F398",
        "a column that Hive's types cannot describe is written to a metastore",
        j("HiveSync", "            Held.check(syncClient.getStorageSchema(true));\n"),
        DROPPED,
    ),
    mutation(
        "glue-holds-everything",
        "F398",
        "what Glue cannot hold is found when a part of it has been changed",
        a("catalog/glue", "            if not_held:\n", "            if not self:\n"),
        f"{GLUE}::test_what_glue_cannot_hold_is_told_before_anything_is_changed",
    ),
    mutation(
        "anybodys-entry-is-dropped-from-a-metastore",
        AVAILABILITY,
        "the entry of another HudiTable is dropped with this one",
        j("Owner", 'return mark.equals(uid) ? "" : "another HudiTable has made it";', 'return "";'),
        DROPPED,
    ),
    mutation(
        "anybodys-entry-is-dropped-from-glue",
        AVAILABILITY,
        "the entry of another HudiTable is dropped from Glue with this one",
        a("catalog/glue", 'return "" if mark == self._wanted.uid else', 'return "" if mark else'),
        f"{GLUE}::test_only_what_this_hudi_table_has_made_is_dropped",
    ),
    mutation(
        "a-table-elsewhere-is-dropped-from-glue",
        AVAILABILITY,
        "an entry at another location is dropped from Glue",
        a("catalog/glue", 'return "it has another location"', 'return ""'),
        f"{GLUE}::test_only_what_this_hudi_table_has_made_is_dropped",
    ),
    mutation(
        "a-table-has-the-time-of-its-predecessor",
        "F607 availability",
        "the entry of a deleted table stays in its catalog, because the time was over before it began",
        Edit(
            "operator/hudi_operator/plan/requests/catalogs.py",
            'return f"{DROP_TIMER}{view.table.ref.uid}"',
            'return f"{DROP_TIMER}of-another"',
        ),
        f"{DELETION}::test_the_next_huditable_of_the_name_has_its_own_time",
    ),
    mutation(
        "a-catalog-keeps-a-deleted-table",
        AVAILABILITY,
        "the deletion of a HudiTable waits for its catalog without bound",
        Edit(
            "operator/hudi_operator/plan/requests/catalogs.py",
            " and not view.elapsed(_drop_timer(view), drop_seconds(view.table))",
            "",
        ),
        f"{DELETION}::test_a_catalogs_entry_is_awaited_for_a_time",
    ),
    mutation(
        "a-deleted-table-waits-for-no-catalog",
        AVAILABILITY,
        "a HudiTable is gone before its agent has dropped its entries",
        Edit("operator/hudi_operator/plan/deletion.py", "if not closing and catalogs.dropping(view):", "if not view:"),
        f"{DELETION}::test_a_catalogs_entry_is_awaited_for_a_time",
    ),
    mutation(
        "columns-of-partitions-in-glue-are-old",
        AVAILABILITY,
        "after a change of columns the partitions in Glue keep the old ones",
        a("catalog/glue", "                self._cascade(name, storage)\n", "                pass\n"),
        f"{GLUE}::test_a_change_of_columns_reaches_the_partitions_too",
    ),
    mutation(
        "a-cut-off-try-at-glue-counts",
        AVAILABILITY,
        "a try at Glue that was cut off is taken for one that brought everything",
        a(
            "catalog/glue",
            "    if not all(instants):",
            "    instants = [each for each in instants if each]\n    if not instants:",
        ),
        f"{GLUE}::test_a_change_that_one_entry_does_not_show_is_brought_again",
    ),
    mutation(
        "glue-anywhere-launches",
        AVAILABILITY,
        "a table whose storage has no credentials for AWS is launched with Glue",
        Edit(
            "operator/hudi_operator/api/catalog.py",
            'not path.startswith(("s3a://", "s3://"))',
            "not path",
        ),
        f"{STATUS}::test_kinds_are_refused_at_launch_too",
    ),
)
