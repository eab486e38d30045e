"""HudiWriter: what `kubectl apply` accepts, and what it prints when it does not."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.tiers.component.crds.cluster import Cluster, table, writer

PYTHON = {"configMapKeyRef": {"name": "code", "key": "source.py"}, "function": "rows"}
FILES = {"format": "csv", "paths": ["s3a://landing/x/"]}
HUDI = {"tableRef": {"name": "bronze"}}
SQL = {"query": "SELECT 1"}
REFUSED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("nothing-to-do", {"source": None}, ("spec", "neither source nor application is set")),
    (
        "two-things-to-do",
        {"application": {"mainFile": "local:///a.py"}},
        ("spec", "source and application are both set"),
    ),
    (
        "two-sources",
        {"source": {"files": FILES, "python": PYTHON}},
        ("spec.source", "source has several fields, use one of: files python"),
    ),
    ("empty-source", {"source": {}}, ("spec.source", "source is empty")),
    ("empty-application", {"source": None, "application": {}}, ("spec.application", "application is empty")),
    (
        "two-programs",
        {"source": None, "application": {"mainFile": "local:///a.py", "module": "a"}},
        ("spec.application", "application has several of configMapKeyRef, mainFile, module and mainClass: use one"),
    ),
    (
        "class-without-a-jar",
        {"source": None, "application": {"mainClass": "a.B"}},
        ("spec.application.file", "application.mainClass needs application.file"),
    ),
    (
        "jar-without-a-class",
        {"source": None, "application": {"mainFile": "local:///a.py", "file": "local:///a.jar"}},
        ("spec.application.file", "application.file needs application.mainClass"),
    ),
    (
        "jar-from-the-web",
        {"source": None, "application": {"mainClass": "a.B", "file": "https://x/a.jar"}},
        ("spec.application.file", "'https://x/a.jar' must be a jar"),
    ),
    (
        "no-class",
        {"source": None, "application": {"mainClass": "a.B --x", "file": "local:///a.jar"}},
        ("spec.application.mainClass", "'a.B --x' is not the name of a class"),
    ),
    (
        "no-module",
        {"source": None, "application": {"module": "a-b"}},
        ("spec.application.module", "'a-b' is not the name of a Python module"),
    ),
    (
        "upwards",
        {"source": None, "application": {"mainFile": "local:///a.py"}, "deps": {"jars": ["s3a://x/../a.jar"]}},
        ("spec.deps.jars[0]", "'s3a://x/../a.jar' must be a jar"),
    ),
    (
        "compiled-wheel",
        {"source": None, "application": {"mainFile": "local:///a.py"}, "deps": {"pyFiles": ["local:///a-cp311.whl"]}},
        ("spec.deps.pyFiles[0]", "a wheel without compiled code"),
    ),
    (
        "range",
        {"source": None, "application": {"mainFile": "local:///a.py"}, "deps": {"packages": ["a:b:[1,2)"]}},
        ("spec.deps.packages[0]", "GROUP:ARTIFACT:VERSION"),
    ),
    (
        "excludes-of-nothing",
        {"source": None, "application": {"mainFile": "local:///a.py"}, "deps": {"excludePackages": ["a:b"]}},
        ("spec.deps.excludePackages", "needs deps.packages"),
    ),
    (
        "deps-of-no-code",
        {"deps": {"jars": ["local:///a.jar"]}},
        ("spec.deps", "deps needs application or source.python"),
    ),
    (
        "transform",
        {"source": None, "application": {"mainFile": "local:///a.py"}, "transform": {"sql": "x"}},
        ("spec.transform", "cannot be combined with application"),
    ),
    (
        "operation",
        {"source": None, "application": {"mainFile": "local:///a.py"}, "operation": "Insert"},
        ("spec.operation", "operation Insert cannot be combined"),
    ),
    (
        "operation-word",
        {"operation": "upsert"},
        (
            "spec.operation",
            '"upsert"',
            '"Upsert", "Insert", "BulkInsert", "Delete", "InsertOverwrite", "DeletePartition", "RemoveDuplicates"',
        ),
    ),
    (
        "remove-duplicates-of-a-source",
        {"operation": "RemoveDuplicates"},
        ("spec.operation", "RemoveDuplicates cannot be combined with source or transform"),
    ),
    (
        "remove-duplicates-and-transform",
        {"source": None, "operation": "RemoveDuplicates", "transform": {"sql": "x"}},
        ("spec.operation", "RemoveDuplicates cannot be combined with source or transform"),
    ),
    (
        "remove-duplicates-with-a-program",
        {"source": None, "operation": "RemoveDuplicates", "application": {"mainFile": "local:///a.py"}},
        ("spec.operation", "operation RemoveDuplicates cannot be combined with application"),
    ),
    (
        "delete-partition-of-a-source",
        {"operation": "DeletePartition", "partitions": ["a"]},
        ("spec.operation", "DeletePartition cannot be combined with source or transform"),
    ),
    (
        "delete-partition-without-a-name",
        {"source": None, "operation": "DeletePartition"},
        ("spec.operation", "DeletePartition needs partitions"),
    ),
    (
        "overwrite-of-upserts",
        {"overwrite": {"scope": "Table"}},
        ("spec.overwrite", "overwrite needs operation InsertOverwrite: Upsert replaces only records"),
    ),
    (
        "overwrite-word",
        {"operation": "InsertOverwrite", "overwrite": {"scope": "All"}},
        ("spec.overwrite.scope", '"All"', '"Partitions", "Table"'),
    ),
    (
        "overwrite-with-a-part",
        {"operation": "InsertOverwrite", "source": {"hudi": HUDI}},
        ("spec.operation", "InsertOverwrite cannot be combined with source.hudi"),
    ),
    (
        "overwrite-in-several-commits",
        {"operation": "InsertOverwrite", "source": {"files": {**FILES, "maxFilesPerCommit": 1}}},
        ("spec.operation", "InsertOverwrite cannot be combined with source.files.maxFilesPerCommit"),
    ),
    (
        "overwrite-without-an-end",
        {"operation": "InsertOverwrite", "streaming": {}},
        ("spec.operation", "InsertOverwrite cannot be combined with streaming"),
    ),
    (
        "overwrite-of-a-program",
        {"source": None, "application": {"mainFile": "local:///a.py"}, "operation": "InsertOverwrite"},
        ("spec.operation", "operation InsertOverwrite cannot be combined with application"),
    ),
    (
        "overwrite-of-declared-partitions",
        {"operation": "InsertOverwrite", "overwrite": {"scope": "Table"}, "partitions": ["a"]},
        ("spec.overwrite", "scope Table cannot be combined with partitions"),
    ),
    (
        "overwrite-with-nothing",
        {"operation": "InsertOverwrite", "overwrite": {"ifEmpty": "Truncate"}},
        ("spec.overwrite.ifEmpty", "ifEmpty Truncate needs scope Table"),
    ),
    (
        "duplicates-of-a-program",
        {"source": None, "application": {"mainFile": "local:///a.py"}, "duplicates": "Drop"},
        ("spec.duplicates", "duplicates Drop cannot be combined with application"),
    ),
    (
        "duplicates-of-upserts",
        {"duplicates": "Fail"},
        (
            "spec.duplicates",
            "duplicates Fail needs application, or source and operation Insert, BulkInsert or InsertOverwrite",
        ),
    ),
    (
        "duplicates-word",
        {"operation": "Insert", "duplicates": "Ignore"},
        ("spec.duplicates", '"Ignore"', '"Fail", "Drop", "Allow"'),
    ),
    (
        "validations-of-a-program",
        {"source": None, "application": {"mainFile": "local:///a.py"}, "validations": [{"name": "a", "minRows": 1}]},
        ("spec.validations", "validations cannot be combined with application"),
    ),
    (
        "validation-of-nothing",
        {"validations": [{"name": "a"}]},
        ("spec.validations[0]", "validation 'a' must have one of sql, minRows and maxRows, and notNull"),
    ),
    (
        "validation-of-two-kinds",
        {"validations": [{"name": "a", "minRows": 1, "notNull": ["id"]}]},
        ("spec.validations[0]", "validation 'a' must have one of sql, minRows and maxRows, and notNull"),
    ),
    (
        "validation-without-a-result",
        {"validations": [{"name": "a", "sql": "SELECT 1"}]},
        ("spec.validations[0]", "validation 'a': sql needs one of expect and equals"),
    ),
    (
        "validation-with-two-results",
        {"validations": [{"name": "a", "sql": "SELECT 1", "expect": "Empty", "equals": "1"}]},
        ("spec.validations[0]", "validation 'a': sql needs one of expect and equals"),
    ),
    (
        "validation-of-rows-with-a-result",
        {"validations": [{"name": "a", "maxRows": 1, "equals": "1"}]},
        ("spec.validations[0]", "the others have neither"),
    ),
    (
        "validation-that-nothing-passes",
        {"validations": [{"name": "a", "minRows": 2, "maxRows": 1}]},
        ("spec.validations[0].minRows", "minRows 2 is more than maxRows 1"),
    ),
    (
        "validation-of-two-columns",
        {"validations": [{"name": "a", "notNull": ["id,v"]}]},
        ("spec.validations[0].notNull[0]", "'id,v' is not the name of one column"),
    ),
    (
        "validation-without-a-name",
        {"validations": [{"name": "A", "minRows": 1}]},
        ("spec.validations[0].name", "'A' is not the name of a validation"),
    ),
    (
        "validations-of-one-name",
        {"validations": [{"name": "a", "minRows": 1}, {"name": "a", "maxRows": 1}]},
        ("spec.validations[1]", "Duplicate value"),
    ),
    (
        "main-file",
        {"source": None, "application": {"mainFile": "s3a://x/a.py"}},
        ("spec.application.mainFile", "'s3a://x/a.py'", "local:///PATH.py"),
    ),
    (
        "format",
        {"source": {"files": {**FILES, "format": "xml"}}},
        ("spec.source.files.format", '"xml"', '"csv", "parquet", "json", "orc", "avro"'),
    ),
    (
        "three-sources",
        {"source": {"files": FILES, "hudi": HUDI, "python": PYTHON}},
        ("spec.source", "use one of: files hudi python"),
    ),
    ("empty-hudi", {"source": {"hudi": {}}}, ("spec.source.hudi", "source.hudi is empty")),
    (
        "two-tables",
        {"source": {"hudi": {**HUDI, "path": "s3a://lake/x"}}},
        ("spec.source.hudi", "source.hudi.tableRef and source.hudi.path are both set"),
    ),
    (
        "itself",
        {"source": {"hudi": {"tableRef": {"name": "flights"}}}},
        ("spec.source", "tableRef 'flights' is the table that this writer writes to"),
    ),
    (
        "source-name",
        {"source": {"hudi": {"tableRef": {"name": "A"}}}},
        ("spec.source.hudi.tableRef.name", "'A' is not the name of a HudiTable"),
    ),
    (
        "source-path",
        {"source": {"hudi": {"path": "/lake/x"}}},
        ("spec.source.hudi.path", "'/lake/x'", "must begin with one of s3a://"),
    ),
    (
        "source-credentials",
        {"source": {"hudi": {"path": "s3a://k:s@b/x"}}},
        ("spec.source.hudi.path", "credentials do not belong in a path"),
    ),
    (
        "start",
        {"source": {"hudi": {**HUDI, "startFrom": "2026-01-31"}}},
        ("spec.source.hudi.startFrom", "'2026-01-31'", "completion time of 17 digits"),
    ),
    (
        "order",
        {"source": {"hudi": {**HUDI, "order": "Any"}}},
        ("spec.source.hudi.order", '"Any"', '"CompletionTime", "Fenced", "OutOfOrder"'),
    ),
    (
        "start-and-order",
        {"source": {"hudi": {**HUDI, "startFrom": "20260131235959999", "order": "Fenced"}}},
        ("spec.source.hudi.startFrom", "'20260131235959999'", "cannot be combined with order Fenced"),
    ),
    (
        "commits",
        {"source": {"hudi": {**HUDI, "maxCommitsPerBatch": 0}}},
        ("spec.source.hudi.maxCommitsPerBatch", "0", "greater than or equal to 1"),
    ),
    (
        "lost",
        {"source": {"hudi": {**HUDI, "ifPositionLost": "Skip"}}},
        ("spec.source.hudi.ifPositionLost", '"Skip"', '"Fail", "Snapshot"'),
    ),
    (
        "deletes",
        {"source": {"hudi": {**HUDI, "deletes": "Maybe"}}},
        ("spec.source.hudi.deletes", '"Maybe"', '"Ignore", "Carry"'),
    ),
    (
        "deletes-of-a-snapshot",
        {"source": {"hudi": {**HUDI, "deletes": "Carry", "ifPositionLost": "Snapshot"}}},
        (
            "spec.source.hudi.deletes",
            "cannot be combined with ifPositionLost Snapshot: the whole table does not tell what was deleted",
        ),
    ),
    (
        "deletes-of-inserts",
        {"source": {"hudi": {**HUDI, "deletes": "Carry"}}, "operation": "Insert"},
        ("spec.operation", "operation Insert cannot be combined with source.hudi.deletes Carry"),
    ),
    ("no-query", {"source": {"sql": {"views": []}}}, ("spec.source.sql.query", "Required value")),
    ("python-and-sql", {"source": {"python": PYTHON, "sql": SQL}}, ("spec.source", "use one of: python sql")),
    (
        "empty-view",
        {"source": {"sql": {**SQL, "views": [{"name": "a"}]}}},
        ("spec.source.sql.views[0]", "the view is empty: set files or hudi"),
    ),
    (
        "two-in-a-view",
        {
            "source": {
                "sql": {
                    **SQL,
                    "views": [{"name": "a", "files": {"format": "csv", "paths": ["s3a://x/y"]}, "hudi": HUDI}],
                }
            }
        },
        ("spec.source.sql.views[0]", "files and hudi are both set"),
    ),
    (
        "view-table",
        {"source": {"sql": {**SQL, "views": [{"name": "a", "hudi": {}}]}}},
        ("spec.source.sql.views[0].hudi", "hudi is empty"),
    ),
    (
        "view-name",
        {"source": {"sql": {**SQL, "views": [{"name": "source", "hudi": HUDI}]}}},
        ("spec.source.sql.views[0].name", "'source' is not the name of a view"),
    ),
    (
        "view-path",
        {"source": {"sql": {**SQL, "views": [{"name": "a", "files": {"format": "csv", "paths": ["/x"]}}]}}},
        ("spec.source.sql.views[0].files.paths[0]", "'/x'", "must begin with one of s3a://"),
    ),
    ("no-paths", {"source": {"files": {**FILES, "paths": []}}}, ("spec.source.files.paths", "at least 1 items")),
    (
        "no-scheme",
        {"source": {"files": {**FILES, "paths": ["/data/x"]}}},
        ("spec.source.files.paths[0]", "'/data/x'", "must begin with one of s3a://"),
    ),
    (
        "credentials",
        {"source": {"files": {**FILES, "paths": ["s3a://k:s@b/x"]}}},
        ("spec.source.files.paths[0]", "credentials do not belong in a path"),
    ),
    (
        "files-per-commit",
        {"source": {"files": {**FILES, "maxFilesPerCommit": 0}}},
        ("spec.source.files.maxFilesPerCommit", "0", "greater than or equal to 1"),
    ),
    (
        "function",
        {"source": {"python": {**PYTHON, "function": "a.b"}}},
        ("spec.source.python.function", "'a.b'", "not the name of a Python function"),
    ),
    (
        "key",
        {"source": {"python": {**PYTHON, "configMapKeyRef": {"name": "c", "key": "../x"}}}},
        ("spec.source.python.configMapKeyRef.key", "'../x'", "name of a Python file"),
    ),
    ("priority", {"priority": 1001}, ("spec.priority", "1001", "less than or equal to 1000")),
    ("partition-path", {"partitions": ["/2026-01-*"]}, ("spec.partitions[0]", "'/2026-01-*' is not a partition path")),
    (
        "partition-pattern",
        {"partitions": ["a", "2026-0[12]"]},
        ("spec.partitions[1]", "'2026-0[12]': patterns are made of *"),
    ),
    ("partition-stars", {"partitions": ["*a*a*a*a*a*"]}, ("spec.partitions[0]", "'*a*a*a*a*a*' has more than five *")),
    ("no-partitions", {"partitions": []}, ("spec.partitions", "at least 1 items")),
    ("partition-twice", {"partitions": ["a", "a"]}, ("spec.partitions[1]", "Duplicate value")),
    (
        "partitions-of-a-program",
        {"source": None, "application": {"mainFile": "local:///a.py"}, "partitions": ["a"]},
        ("spec.partitions", "partitions cannot be combined with application"),
    ),
    ("heap", {"driver": {"memory": "512m"}}, ("spec.driver.memory", "'512m'", "such as 512Mi or 2Gi")),
    (
        "heap-limit",
        {"executors": {"memory": "4Gi", "resources": {"limits": {"memory": "2Gi"}}}},
        ("spec.executors", "memory (the JVM's heap) 4Gi is more than resources.limits.memory 2Gi"),
    ),
    (
        "requests",
        {"driver": {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "500m"}}}},
        ("spec.driver.resources", "requests.cpu 2 is more than limits.cpu 500m"),
    ),
    (
        "javaOptions",
        {"driver": {"javaOptions": ["-XX:+UseSerialGC", "-Dfs.s3a.impl=x"]}},
        ("spec.driver.javaOptions[1]", "'-Dfs.s3a.impl=x'", "is not a JVM option that may be set here"),
    ),
    (
        "optionsFile",
        {"executors": {"javaOptions": ["-XX:VMOptionsFile=/tmp/x"]}},
        ("spec.executors.javaOptions[0]", "'-XX:VMOptionsFile=/tmp/x' is not a JVM option that may be set here"),
    ),
    (
        "env",
        {"driver": {"env": [{"name": "Hudi_Operator_Role", "value": "x"}]}},
        ("spec.driver.env[0].name", "'Hudi_Operator_Role'", "is set by the operator"),
    ),
    ("instances", {"executors": {"instances": -1}}, ("spec.executors.instances", "-1", "greater than or equal to 0")),
    ("volumes", {"driver": {"volumes": []}}, ('unknown field "spec.driver.volumes"',)),
    ("deadline", {"activeDeadlineSeconds": 5}, ("spec.activeDeadlineSeconds", "5", "greater than or equal to 60")),
    ("retries", {"retryPolicy": {"limit": 21}}, ("spec.retryPolicy.limit", "21", "less than or equal to 20")),
    (
        "retries-by-class",
        {"retryPolicy": {"classLimits": [{"class": kind, "limit": 20} for kind in ("Eviction", "NodeLost", "Fenced")]}},
        ("spec.retryPolicy.classLimits", "limit and classLimits together allow more than 60 retries"),
    ),
    (
        "retries-of-no-class",
        {"retryPolicy": {"classLimits": [{"class": "BadData", "limit": 1}]}},
        ("spec.retryPolicy.classLimits[0].class", "Unsupported value", "BadData"),
    ),
    (
        "no-memory",
        {"retryPolicy": {"outOfMemory": {}}},
        ("spec.retryPolicy.outOfMemory", "maxMemory, maxExecutorMemory"),
    ),
    (
        "memory-of-executors",
        {"retryPolicy": {"outOfMemory": {"maxExecutorMemory": "4096m"}}},
        ("spec.retryPolicy.outOfMemory.maxExecutorMemory", "'4096m'", "such as 512Mi or 2Gi"),
    ),
    (
        "start-deadline",
        {"startDeadlineSeconds": 5},
        ("spec.startDeadlineSeconds", "5", "greater than or equal to 30"),
    ),
    ("pod-history", {"podHistory": {"limit": 11}}, ("spec.podHistory.limit", "11", "less than or equal to 10")),
    (
        "pod-ttl",
        {"podHistory": {"ttlSecondsAfterFinished": -1}},
        ("spec.podHistory.ttlSecondsAfterFinished", "-1", "greater than or equal to 0"),
    ),
    (
        "back-off",
        {"retryPolicy": {"backoffSeconds": 400}},
        ("spec.retryPolicy", "backoffSeconds 400 must not exceed maxBackoffSeconds 300"),
    ),
    ("grace", {"stop": {"graceSeconds": 0}}, ("spec.stop.graceSeconds", "0", "greater than or equal to 1")),
    ("cron", {"schedule": {"cron": "0 * * *  "}}, ("spec.schedule.cron", "'0 * * *  '", "must have five fields")),
    ("no-cron", {"schedule": {"timeZone": "Etc/UTC"}}, ("spec.schedule.cron", "Required value")),
    (
        "time-zone",
        {"schedule": {"cron": "0 * * * *", "timeZone": "../UTC"}},
        ("spec.schedule.timeZone", "'../UTC'", "not the name of a time zone"),
    ),
    (
        "deadline",
        {"schedule": {"cron": "0 * * * *", "startingDeadlineSeconds": 9}},
        ("spec.schedule.startingDeadlineSeconds", "9", "greater than or equal to 10"),
    ),
    (
        "policy",
        {"schedule": {"cron": "0 * * * *", "concurrencyPolicy": "Allow"}},
        ('unknown field "spec.schedule.concurrencyPolicy"',),
    ),
    ("nonce", {"restartNonce": "a b"}, ("spec.restartNonce", "'a b'", "letters, digits")),
    ("unknown", {"maxRetries": 3}, ('unknown field "spec.maxRetries"',)),
]


@pytest.mark.parametrize(("spec", "words"), [pytest.param(spec, words, id=name) for name, spec, words in REFUSED])
def test_a_refusal_names_field_value_and_rule(
    light_cluster: Cluster, spec: dict[str, Any], words: tuple[str, ...]
) -> None:
    message = light_cluster.refused(writer("default", name="refused", **spec))
    for word in words:
        assert word in message


@pytest.mark.parametrize("name", ["a" * 64, "a.b"])
def test_names_that_pods_cannot_have_are_refused(light_cluster: Cluster, name: str) -> None:
    assert f"metadata.name '{name}' must have at most 63 characters and no '.'" in light_cluster.refused(
        writer("default", name=name)
    )


OWNED = [
    "hoodie.write.lock.provider",
    "hoodie.write.lock.zookeeper.url",
    "hoodie.write.concurrency.mode",
    "hoodie.write.concurrency.early.conflict.detection.enable",
    "hoodie.cleaner.policy.failed.writes",
    "hoodie.clean.failed.writes.policy",
    "hoodie.prewrite.cleaner.policy",
    "hoodie.client.init.callback.classes",
    "hoodie.write.commit.callback.http.url",
    "hoodie.table.services.enabled",
    "hoodie.client.heartbeat.interval_in_ms",
    "hoodie.metadata.enable",
    "hoodie.metadata.auto.delete.partitions",
    "hoodie.rollback.avoid.duplicate.plan",
    "hoodie.write.auto.upgrade",
    "hoodie.auto.adjust.lock.configs",
    "hoodie.time.generator.max_expected_clock_skew_ms",
    "hoodie.base.path",
    "hoodie.table.name",
    "hoodie.table.timeline.timezone",
    "hoodie.datasource.write.recordkey.field",
    "hoodie.datasource.write.partitionpath.field",
    "hoodie.datasource.write.precombine.field",
    "hoodie.datasource.write.table.type",
    "hoodie.datasource.write.storage.type",
    "hoodie.datasource.write.table.name",
    "hoodie.datasource.write.operation",
    "hoodie.datasource.write.keygenerator.class",
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.commitmeta.key.prefix",
    "hoodie.datasource.write.reconcile.schema",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
    "hoodie.schema.on.read.enable",
    "hoodie.write.set.null.for.missing.columns",
    "path",
]


def _spellings(key: str) -> list[str]:
    return [
        key,
        key.upper(),
        key.title(),
        f"spark.{key}",
        f"spark.hadoop.{key}",
        f"Spark.Hadoop.{key}",
        f" {key}",
        f"{key}  ",
        f"\u00a0{key}",
    ]


@pytest.mark.parametrize("build", [table, writer])
def test_options_of_the_operator_are_refused_in_every_spelling(light_cluster: Cluster, build: Any) -> None:
    spellings = [spelling for key in OWNED for spelling in _spellings(key)]
    for start in range(0, len(spellings), 60):
        part = sorted(set(spellings[start : start + 60]))
        message = light_cluster.refused(build("default", name="refused", hudiOptions=dict.fromkeys(part, "x")))
        assert "spec.hudiOptions: " in message
        line = next(line for line in message.splitlines() if "is set by the operator" in line)
        assert [spelling for spelling in part if json.dumps(spelling) not in line] == []


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.datasource.insert.dup.policy",
        "Hoodie.Datasource.Write.Insert.Drop.Duplicates",
        "hoodie.merge.allow.duplicate.on.inserts",
    ],
)
def test_what_becomes_of_duplicates_is_a_field(light_cluster: Cluster, key: str) -> None:
    message = light_cluster.refused(writer("default", name="refused", operation="Insert", hudiOptions={key: "x"}))
    assert f'["{key}"] is set by the operator and cannot be set here' in message


@pytest.mark.parametrize("build", [table, writer])
@pytest.mark.parametrize(
    "spelling",
    [
        "hoodie.write.lock.provider",
        "Spark.Hoodie.Write.Lock.Provider ",
        "hoodie.write.lock.provider\n",
        "\thoodie.write.lock.provider",
    ],
)
def test_each_spelling_is_refused_by_itself(light_cluster: Cluster, build: Any, spelling: str) -> None:
    message = light_cluster.refused(build("default", name="refused", hudiOptions={spelling: "x"}))
    assert "spec.hudiOptions: " in message
    assert "is set by the operator and cannot be set here" in message


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.clean.commits.retained",
        "hoodie.keep.max.commits",
        "hoodie.index.type",
        "hoodie.compact.inline",
        "Hoodie.Clustering.inline",
        "hoodie.layout.optimize.enable",
    ],
)
def test_table_wide_options_belong_to_the_table(light_cluster: Cluster, key: str) -> None:
    message = light_cluster.refused(writer("default", name="refused", hudiOptions={key: "x"}))
    assert "spec.hudiOptions" in message
    assert f'["{key}"] concerns the whole table: set it in hudiOptions of the HudiTable' in message


@pytest.mark.parametrize(
    ("key", "rule"),
    [
        ("spark.hoodie.write.lock.provider", "is an option of Hudi"),
        ("spark.hadoop.hoodie.write.lock.provider", "is an option of Hudi"),
        ("hoodie.parquet.max.file.size", "is an option of Hudi"),
        ("spark.plugins", "is set by the operator"),
        ("Spark.Plugins", "is set by the operator"),
        ("spark.hadoop.fs.s3a.impl", "is set by the operator"),
        ("spark.hadoop.fs.s3a.secret.key", "is set by the operator"),
        ("spark.hadoop.hudi.operator.guard.s3a.delegate", "is set by the operator"),
        ("spark.kubernetes.executor.podTemplateFile", "is set by the operator"),
        ("spark.kubernetes.container.image", "is set by the operator"),
        ("spark.driver.extraJavaOptions", "is set by the operator"),
        ("spark.driver.defaultJavaOptions", "is set by the operator"),
        ("spark.executor.extraClassPath", "is set by the operator"),
        ("spark.jars", "is set by the operator"),
        ("spark.jars.packages", "is set by the operator"),
        ("spark.submit.deployMode", "is set by the operator"),
        ("spark.master", "is set by the operator"),
        ("spark.executor.instances", "is set by the operator"),
        ("spark.executor.memory", "is set by the operator"),
        ("spark.dynamicAllocation.enabled", "is set by the operator"),
        ("spark.extraListeners", "is set by the operator"),
        ("spark.sql.extensions", "is set by the operator"),
        ("spark.sql.catalog.spark_catalog", "is set by the operator"),
        ("fs.s3a.endpoint", "must begin with spark."),
        (" spark.sql.shuffle.partitions", "no white space"),
    ],
)
def test_spark_settings_that_are_refused(light_cluster: Cluster, key: str, rule: str) -> None:
    message = light_cluster.refused(writer("default", name="refused", sparkConf={key: "x"}))
    assert "spec.sparkConf" in message
    assert f'"{key}"' in message
    assert rule in message


def test_each_key_that_is_refused_has_one_error(light_cluster: Cluster) -> None:
    """All at once; also the second of two rules is told, and of one rule each of its keys."""
    sets = {
        "is set by the operator": (
            "spark.driver.extraJavaOptions",
            "spark.hadoop.fs.s3a.secret.key",
            "spark.kubernetes.driver.podTemplateFile",
            "spark.kubernetes.driver.volumes.hostPath.root.mount.path",
        ),
        "is an option of Hudi": ("spark.hoodie.write.lock.provider",),
        "is not a setting of Spark": ("fs.s3a.endpoint",),
        "is not an option name": ("spark.sql.x y",),
    }
    refused = {key: "x" for keys in sets.values() for key in keys}
    conf = {**refused, "spark.sql.shuffle.partitions": "8"}
    message = light_cluster.refused(writer("default", name="refused", sparkConf=conf))
    told = re.findall(
        r"sparkConf: (\[.*?\]) (is (?:set|an option|not a setting|not an option name)[a-z A-Z]*)", message
    )
    found = {key: rule for keys, rule in told for key in json.loads(keys)}
    assert sum(len(json.loads(keys)) for keys, _ in told) == len(found) == len(refused), message
    assert {rule: tuple(sorted(key for key in found if found[key].startswith(rule))) for rule in sets} == sets, message


def test_values_without_line_breaks(light_cluster: Cluster) -> None:
    message = light_cluster.refused(
        writer(
            "default", name="refused", hudiOptions={"hoodie.parquet.max.file.size": "1\nhoodie.write.lock.provider=x"}
        )
    )
    assert "spec.hudiOptions.hoodie.parquet.max.file.size" in message
    lines = {f"spark.sql.x{n}": f"{n}\nspark.plugins=x" for n in range(3)}
    message = light_cluster.refused(writer("default", name="refused", sparkConf=lines | {"spark.sql.y": "1"}))
    # The API server names the entries of a map in no order.
    assert {*re.findall(r"spec\.sparkConf\.(spark\.sql\.\w+): Invalid", message)} == lines.keys(), message


def test_the_short_form_is_filled_with_defaults(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(writer(namespace))
    spec = light_cluster.get("hw", "backfill", "-n", namespace)["spec"]
    assert spec == {
        "tableRef": {"name": "flights"},
        "source": {"files": {"format": "csv", "paths": ["s3a://landing/corrections/"]}},
        "priority": 0,
        "driver": {"cores": 1, "memory": "1Gi"},
        "executors": {"cores": 1, "memory": "1Gi", "instances": 0},
        "retryPolicy": {"limit": 3, "backoffSeconds": 10, "maxBackoffSeconds": 300, "writeConflict": {"inProcess": 3}},
        "podHistory": {"limit": 3},
        "stop": {"graceSeconds": 60},
        "suspend": False,
    }


def test_doubled_keys_are_removed_without_a_source(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(writer(namespace, source=None, operation="RemoveDuplicates"))
    assert "source" not in light_cluster.get("hw", "backfill", "-n", namespace)["spec"]


def test_partitions_are_deleted_without_a_source(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(writer(namespace, source=None, operation="DeletePartition", partitions=["2024-*"]))
    assert "source" not in light_cluster.get("hw", "backfill", "-n", namespace)["spec"]


def test_an_overwrite_says_what_it_replaces(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(writer(namespace, operation="InsertOverwrite", duplicates="Drop", overwrite={"scope": "Table"}))
    spec = light_cluster.get("hw", "backfill", "-n", namespace)["spec"]
    assert spec["overwrite"] == {"scope": "Table", "ifEmpty": "Fail"}


def test_everything_at_once_is_accepted(light_cluster: Cluster, namespace: str) -> None:
    pod_settings = {
        "cores": 2,
        "memory": "2Gi",
        "resources": {
            "requests": {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1Gi"},
            "limits": {"cpu": 2, "memory": "3Gi"},
        },
        "env": [{"name": "LANG", "value": "C.UTF-8"}],
        "javaOptions": ["-XX:+UseSerialGC", "-XX:MaxGCPauseMillis=200", "-Xss2m", "-Xlog:gc*=info"],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
    }
    common = {
        "priority": -10,
        "driver": pod_settings,
        "executors": {**pod_settings, "instances": 2},
        "sparkConf": {"spark.sql.shuffle.partitions": "8", "spark.driver.maxResultSize": "1g"},
        "hudiOptions": {"hoodie.upsert.shuffle.parallelism": "8", "hoodie.parquet.compression.codec": "zstd"},
        "retryPolicy": {"limit": 0, "writeConflict": {"inProcess": 0}},
        "stop": {"graceSeconds": 5},
        "schedule": {"cron": "*/5 6-22 * * mon-fri", "timeZone": "Europe/Berlin", "startingDeadlineSeconds": 600},
        "restartNonce": "2026-01-01T00:00:00Z",
        "suspend": True,
    }
    validations = [
        {"name": "a", "sql": "SELECT id FROM batch WHERE v < 0", "expect": "Empty"},
        {"name": "b", "sql": "SELECT count(*) FROM table JOIN batch USING (id)", "equals": "0"},
        {"name": "c", "minRows": 1, "maxRows": 1_000_000_000_000},
        {"name": "d", "notNull": ["id", "a.b"]},
    ]
    light_cluster.apply(
        writer(
            namespace,
            "files",
            transform={"sql": "SELECT * FROM source"},
            operation="Upsert",
            validations=validations,
            **common,
        ),
        writer(namespace, "python", source={"python": {**PYTHON, "arguments": {"from": "2013-01-01"}}}, **common),
        writer(
            namespace,
            "hudi",
            source={
                "hudi": {
                    **HUDI,
                    "startFrom": "20260131235959999",
                    "maxCommitsPerBatch": 4,
                    "ifPositionLost": "Snapshot",
                }
            },
            **common,
        ),
        writer(namespace, "carry", source={"hudi": {**HUDI, "deletes": "Carry"}}, operation="Upsert", **common),
        writer(
            namespace,
            "fenced",
            source={"hudi": {"path": "s3a://lake/x", "startFrom": "Latest", "order": "Fenced"}},
            **common,
        ),
        writer(
            namespace,
            "sql",
            source={
                "sql": {
                    **SQL,
                    "views": [
                        {"name": "a", "hudi": {"path": "s3a://lake/x"}},
                        {"name": "b", "hudi": HUDI},
                        {"name": "c", "files": FILES},
                    ],
                }
            },
            **common,
        ),
        writer(
            namespace,
            "program",
            source=None,
            application={"mainFile": "local:///opt/app/main.py", "arguments": ["--x", "1"]},
            **common,
        ),
        writer(
            namespace,
            "code",
            source=None,
            application={"configMapKeyRef": {"name": "code", "key": "main.py"}},
            **common,
        ),
        writer(
            namespace,
            "class",
            source=None,
            application={"mainClass": "com.example.Load$Main", "file": "s3a://lake/jobs/load-1.0_2.12.jar"},
            deps={
                "jars": [
                    "local:///opt/a.jar",
                    "hdfs://namenode:8020/b/b.jar",
                    "abfss://c@x.dfs.core.windows.net/c.jar",
                ],
                "files": ["gs://lake/a=b/conf", "s3://lake/x.csv"],
                "pyFiles": ["s3a://lake/x-1.0-py3-none-any.whl", "s3a://lake/y.zip", "s3a://lake/z.py"],
                "packages": ["com.example:words_2.12:1.0-rc1"],
                "excludePackages": ["org.slf4j:slf4j-api"],
            },
            **common,
        ),
        writer(namespace, "module", source=None, application={"module": "jobs.load", "arguments": ["x"]}, **common),
        writer(
            namespace,
            "function",
            source={"python": PYTHON},
            deps={"pyFiles": ["local:///opt/x.py"]},
            **common,
        ),
    )


def test_the_table_cannot_be_changed(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(writer(namespace))
    message = light_cluster.refused(writer(namespace, tableRef={"name": "other"}))
    assert "spec.tableRef: Forbidden: tableRef is immutable: it is 'flights' and cannot become 'other'" in message


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"tableRef": {"name": "silver"}}, "the source table cannot be changed"),
        ({"path": "s3a://lake/bronze"}, "the source table cannot be changed"),
        ({**HUDI, "order": "Fenced"}, "order CompletionTime cannot become Fenced"),
    ],
)
def test_the_source_table_and_its_order_cannot_be_changed(
    light_cluster: Cluster, namespace: str, changed: dict[str, Any], rule: str
) -> None:
    light_cluster.apply(writer(namespace, source={"hudi": HUDI}))
    assert rule in light_cluster.refused(writer(namespace, source={"hudi": changed}))
    light_cluster.apply(
        writer(namespace, source={"hudi": {**HUDI, "maxCommitsPerBatch": 2, "ifPositionLost": "Snapshot"}})
    )


def test_columns_and_selection_by_table(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(writer(namespace))
    status = {
        "mode": "Once",
        "attempt": 2,
        "state": "Running",
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Running",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
        "records": 7,
        "conflicts": 1,
        "lastCommit": {"instant": "20260101000000000", "time": "2026-01-01T00:00:00Z"},
        "attempts": [{"number": 2, "pod": "p", "instants": ["20260101000000000"]}],
    }
    light_cluster.kubectl(
        "patch",
        "hw",
        "backfill",
        "-n",
        namespace,
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps({"status": status}),
    )
    head, row = light_cluster.kubectl(
        "get", "hw", "-n", namespace, "--field-selector=spec.tableRef.name=flights"
    ).splitlines()
    assert head.replace("LAST COMMIT", "LAST-COMMIT").split() == [
        "NAME",
        "TABLE",
        "MODE",
        "ATTEMPT",
        "READY",
        "STATE",
        "LAST-COMMIT",
        "RECORDS",
        "CONFLICTS",
        "AGE",
    ]
    cells = row.split()
    assert cells[:6] == ["backfill", "flights", "Once", "2", "True", "Running"]
    assert cells[7:9] == ["7", "1"]
    assert "No resources" in light_cluster.kubectl(
        "get", "hw", "-n", namespace, "--field-selector=spec.tableRef.name=other"
    )


def test_attempts_in_status_are_bounded(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(writer(namespace))
    status = {"attempts": [{"number": n} for n in range(1, 66)]}
    done = light_cluster.run(
        "patch",
        "hw",
        "backfill",
        "-n",
        namespace,
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps({"status": status}),
    )
    assert done.returncode != 0
    assert "status.attempts" in done.stdout
