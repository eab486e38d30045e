"""Mutations of what a write may say otherwise than its table, and of the lock provider as Hudi
treats it.
"""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import MANIFESTS, o
from tests.campaigns.mutations.mutation import AVAILABILITY, Edit, mutation

WRITE = "WriteOptionsTest"

HOSTILE = "tests/tiers/unit/api/test_hostile_specs.py"
PINS = "tests/tiers/unit/layout/test_pins.py"
NAMES = "charts/hudi-operator/templates/_names.tpl"

OPTIONS = (
    mutation(
        "files-of-the-pod-are-a-source",
        "F130",
        "a source may be the pod's own files, or lie outside the namespace's prefixes",
        o("plan/writers/source_tables", "        or _files_problem(view, writer)\n"),
        "tests/tiers/unit/plan/writers/test_source_tables.py::test_files_are_held_to_the_rules_for_tables",
        f"{HOSTILE}::test_ten_thousand_specs",
    ),
    mutation(
        "a-pattern-leads-out-of-its-folder",
        "F130",
        "an alternative of a pattern may be the folder above",
        o("api/paths", "[/{,][.]{1,2}(?=[/},]|", "[/][.]{1,2}(?=[/]|"),
        "tests/tiers/unit/api/test_paths.py::test_a_pattern_does_not_lead_out_of_its_folder",
    ),
    mutation(
        "a-scheme-in-capitals",
        "F299",
        "an attempt starts that cannot open the path of its source",
        o("api/paths", 'not in (scheme, "s3"):\n', 'not in (written, "s3"):\n'),
        "tests/tiers/unit/api/test_paths.py::test_nothing_outside_a_bucket_can_be_named",
    ),
    mutation(
        "white-space-around-a-source",
        "F190",
        "the path that is judged is not the one that Spark is given",
        o("api/paths", "    if path != spelled:\n", "    if path not in spelled:\n"),
        "tests/tiers/unit/api/test_paths.py::test_a_pattern_does_not_lead_out_of_its_folder",
    ),
    mutation(
        "the-kubelet-replaces-variables",
        "F131",
        "a variable's value may be that of a credential",
        o("manifests/pods", '.replace("$", "$$")'),
        f"{MANIFESTS}::test_a_value_of_a_variable_is_what_the_user_wrote",
        f"{HOSTILE}::test_ten_thousand_specs",
    ),
    mutation(
        "secrets-set-any-variable",
        "F131",
        "a Secret may set variables of the loader and of shells",
        o("api/pod_settings", 'return f"{prefix!r}: variables that', 'return "" and f"{prefix!r}: variables that'),
        f"{MANIFESTS}::test_a_prefix_keeps_a_secret_from_setting_the_operators_variables",
    ),
    mutation(
        "names-of-settings-are-not-escaped",
        "F132",
        "a setting's name ends where Java sees its end",
        o("manifests/spark_conf", 'if name and each in " :=#!"', 'if name and each in "#"'),
        "tests/tiers/unit/manifests/test_manifests.py::test_java_reads_back_what_was_written",
    ),
    mutation(
        "readers-options-reach-hadoop",
        "F132",
        "an option of a reader may be another file system, or name a file",
        o("plan/writers/source_tables", "    return options_problem(files.options, field) or (\n", "    return (\n"),
        "tests/tiers/unit/plan/writers/test_source_tables.py::test_options_of_a_reader_are_an_allow_list",
    ),
    mutation(
        "any-statement-is-a-source",
        "F133",
        "the SQL of a HudiWriter may be a command, read files by name and run code",
        a(
            "read/sources",
            "    if problem:\n        raise UserCodeError",
            "    if not sql:\n        raise UserCodeError",
        ),
        "tests/tiers/hudi/test_queries.py::test_what_is_no_query_is_refused_before_it_is_analyzed",
    ),
    mutation(
        "files-of-secrets-are-shown",
        "F192",
        "what code has read from a mounted Secret stands in the message of its failure",
        a("process/errors", ', *_mounted(found.get(secret_names.FOLDERS, ""))', ","),
        "tests/tiers/unit/runtime/process/test_errors.py::test_files_of_mounted_secrets_are_hidden",
        "tests/tiers/unit/runtime/process/test_errors.py::test_files_of_mounted_secrets_are_hidden_as_they_are_now",
    ),
    mutation(
        "a-plan-is-a-message",
        "F476",
        "an unknown column in a user's query ends as BadData, with a part of Spark's plan",
        a("process/errors", 'return message.strip().partition(";\\n")[0] if', "return message if"),
        "tests/tiers/unit/runtime/process/test_errors.py::test_a_plan_is_no_message",
    ),
    mutation(
        "processes-do-not-know-their-secrets",
        "F192",
        "the runtime is not told where Secrets are mounted",
        o("manifests/pods", 'if mount["mountPath"].startswith(roots)', 'if mount["mountPath"] in roots'),
        f"{MANIFESTS}::test_processes_know_where_their_secrets_are_mounted",
    ),
    mutation(
        "secrets-of-other-names-are-shown",
        "F134",
        "values from Secrets are shown when their names do not sound like it",
        a(
            "process/errors",
            "((prefixes and name.startswith(prefixes)) or is_secret(name))",
            "is_secret(name)",
        ),
        "tests/tiers/unit/runtime/process/test_errors.py::test_values_are_hidden_by_name",
    ),
    mutation(
        "commits-are-archived-beyond-a-savepoint",
        "F76",
        "a table may leave a hole in its active timeline, and a writer takes an old commit for its last one",
        o("hudi_contract/options", '    Rule("hoodie.archive.beyond.*", _HOLES),\n'),
        "tests/tiers/unit/api/test_options.py::test_nothing_is_archived_beyond_a_savepoint",
    ),
    mutation(
        "an-administrator-may-allow-log-compaction",
        "I9",
        "a table's options may switch log compaction on: readers that follow it get rows twice, or never",
        o("hudi_contract/options", '    Rule("hoodie.log.compaction.*", _READERS),\n'),
        "tests/tiers/unit/api/test_options.py::test_what_is_on_no_list_is_refused_until_an_administrator_adds_it",
    ),
    mutation(
        "a-writer-sets-the-tables-index",
        "F75",
        "operator and runtime do not know that options of buckets are the table's",
        o("hudi_contract/options", '    "bucket",\n'),
        "tests/tiers/unit/contract/test_hudi_options.py::test_the_crd_has_the_families_of_the_contract",
    ),
    mutation(
        "a-time-zone-that-nobody-obeys",
        "F95",
        "a writer may set a time zone for its session, which stays in UTC: its times are wrong by hours",
        o("hudi_contract/allowed_options", '    Rule("spark.sql.session.timezone", _ZONE),\n'),
        "tests/tiers/unit/api/test_options.py::test_a_session_is_in_utc",
    ),
    mutation(
        "keys-that-stand-twice-in-a-batch",
        "F93",
        "a writer may have Hudi write a key as often as it stands in the batch",
        o("hudi_contract/options", '    Rule("hoodie.combine.before.upsert", _TWICE),\n'),
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
    mutation(
        "a-secret-of-two-names",
        "F344",
        "a podTemplate mounts a Secret for which nobody was asked",
        o("api/pod_template", '_of_source(at, source, "name")', '_of_source(at, source, "secretName")'),
        f"{HOSTILE}::test_ten_thousand_specs",
        f"{HOSTILE}::test_an_attack",
    ),
    mutation(
        "a-template-takes-the-profile-away",
        "F345",
        "a pod runs without a profile of seccomp",
        o(
            "api/pod_template",
            "if field in context and _object(context, field)",
            "if _object(context, field) and _object(context, field)",
        ),
        f"{HOSTILE}::test_an_attack",
    ),
    mutation(
        "a-template-gives-rights-to-its-containers",
        "I1",
        "a container of a podTemplate may have more rights than the operator's",
        o("manifests/pod_template", "or {}), **_CONFINED}}", "or {})}}"),
        f"{HOSTILE}::test_ten_thousand_specs",
    ),
    mutation(
        "a-template-relabels-a-pod",
        "F345",
        "a podTemplate sets a label by which the operator knows its pods",
        o("api/pod_template", "re.fullmatch(owned, name, re.DOTALL)", "re.fullmatch(owned, name)"),
        f"{HOSTILE}::test_an_attack",
    ),
    mutation(
        "a-callback-goes-anywhere",
        "F345",
        "a callback's URL that the CRD refuses is used",
        o("api/http_address", 'NOTHING_IS_SENT if _NEVER.fullmatch(url) else ""', 'NOTHING_IS_SENT if not url else ""'),
        f"{HOSTILE}::test_ten_thousand_specs",
        f"{HOSTILE}::test_an_attack",
    ),
    mutation(
        "a-bootstrap-reads-anything",
        "F130",
        "a table begins with the rows of a dataset that lies outside the namespace's prefixes",
        o(
            "plan/gate/stalled",
            'found or path_problem(wanted.path, o.table.ref.namespace, o.config, field="spec.bootstrap.source.path")',
            "found",
        ),
        f"{HOSTILE}::test_ten_thousand_specs",
    ),
    mutation(
        "a-program-lies-anywhere",
        "F130",
        "a program's file is named through the folder above",
        o("api/dependencies", 'if "/../" in self.main_file:', "if not self.arguments and False:"),
        f"{HOSTILE}::test_ten_thousand_specs",
    ),
    mutation(
        "any-option-of-the-jvm",
        "F56 F131",
        "an option of a JVM names a file with more options, or a command that it runs",
        o(
            "api/pod_settings",
            "if not re.fullmatch(JAVA_OPTION, option):",
            'if not re.fullmatch(JAVA_OPTION, option) and not option.startswith("-XX:"):',
        ),
        f"{HOSTILE}::test_an_attack",
    ),
    mutation(
        "the-log-is-configured-by-users",
        "F565",
        "a variable of a driver names a configuration of Log4j on the network",
        o("api/pod_settings", "|LOG4J_.*", ""),
        f"{HOSTILE}::test_an_attack",
    ),
    mutation(
        "any-variable-is-a-users",
        "F131",
        "a variable of a pod names code that a shell, the loader or a JVM runs",
        o(
            "api/pod_settings",
            "if re.fullmatch(OWNED_ENV, name.upper()):",
            'if name.upper().startswith("HUDI_"):',
        ),
        f"{HOSTILE}::test_an_attack",
    ),
    mutation(
        "a-shell-starts-the-pods",
        "F131",
        "the image's entry point is a shell, which takes code from variables first",
        Edit(
            "spark-images/Dockerfile",
            '"python3", "-I", "/opt/hudi/entrypoint.py"]',
            '"bash", "/opt/hudi/entrypoint.sh"]',
        ),
        "tests/tiers/unit/layout/test_entrypoint.py::test_no_shell_reads_the_environment_first",
    ),
    mutation(
        "packages-without-a-hash",
        "security",
        "packages are installed in whatever version and content the index has today",
        Edit("spark-images/Dockerfile", " --require-hashes", ""),
        f"{PINS}::test_pip_installs_what_has_a_hash",
    ),
    mutation(
        "a-base-image-by-its-tag",
        "security",
        "an image is built on whatever a tag means today",
        Edit("Dockerfile", "grep -qE '@sha256:[0-9a-f]{64}$'", "grep -q ."),
        f"{PINS}::test_a_base_image_is_named_by_digest_only",
    ),
    mutation(
        "an-image-of-whoever-has-the-name",
        "security",
        "a chart without a registry names images that anybody may publish under these names",
        (
            Edit(NAMES, "{{- if not (or $own $root.Values.images.registry) }}", "{{- if false }}"),
            Edit(
                NAMES,
                '(printf "%s/%s" $root.Values.images.registry (index . 1))',
                '(printf "%s/%s" ($root.Values.images.registry | default "hudi-operator") (index . 1))',
            ),
        ),
        "tests/tiers/component/crds/test_chart.py::test_images_are_named_with_their_registry",
    ),
)
