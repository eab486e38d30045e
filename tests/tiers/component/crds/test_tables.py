"""HudiTable: what `kubectl apply` accepts, and what it prints when it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support import quick_yaml
from tests.tiers.component.crds.cluster import Cluster, table


def beginning(path: str, format: str = "Parquet") -> dict[str, Any]:
    return {"source": {"path": path, "format": format}}


_ENDPOINT = {"fs.s3a.endpoint": "http://s3:9000"}
_S3 = [{"name": "lake", "as": "S3"}]
_OTHER_ACCESS = (
    "fs.s3a.aws.credentials.provider",
    "fs.s3a.assumed.role.arn",
    "fs.s3a.bucket.lake.endpoint",
    "FS.S3A.Bucket.lake.endpoint",
    "fs.s3a.delegation.tokens.enabled",
)


def _revocable(**storage: Any) -> dict[str, Any]:
    """A spec that may have the fencing mode Credentials, but for what is changed."""
    return {"storage": {"secretRefs": _S3, "options": _ENDPOINT, **storage}}


REFUSED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("local-path", {"path": "file:///etc"}, ("spec.path", "'file:///etc'", "must begin with one of s3a://")),
    ("other-scheme", {"path": "http://x/y"}, ("spec.path", "'http://x/y'", "must begin with one of s3a://")),
    ("upper-case-scheme", {"path": "S3A://lake/x"}, ("spec.path", "'S3A://lake/x'", "must begin with one of s3a://")),
    ("credentials", {"path": "s3a://key:se/cret@lake/x"}, ("spec.path", "path contains '@'", "storage.secretRefs")),
    (
        "credentials-abfs",
        {"path": "abfs://c:k@a.net/x"},
        ("spec.path", "CONTAINER@ACCOUNT.HOST", "without credentials"),
    ),
    ("parent", {"path": "s3a://lake/a/../b"}, ("spec.path", "'s3a://lake/a/../b'", "must not contain '.' or '..'")),
    ("parent-at-end", {"path": "s3a://lake/a/.."}, ("spec.path", "'s3a://lake/a/..'", "must not contain '.' or '..'")),
    ("escaped", {"path": "s3a://lake/%2e%2e/b"}, ("spec.path", "'s3a://lake/%2e%2e/b'", "must not contain '%'")),
    ("another-spelling", {"path": "s3a://lake/a%2Fb"}, ("spec.path", "'s3a://lake/a%2Fb'", "must not contain '%'")),
    ("doubled-slash", {"path": "s3a://lake/a//b"}, ("spec.path", "'s3a://lake/a//b'", "must not contain '//'")),
    ("doubled-slash-first", {"path": "s3a://lake//b"}, ("spec.path", "'s3a://lake//b'", "must not contain '//'")),
    ("bucket-only", {"path": "s3a://lake"}, ("spec.path", "'s3a://lake'", "SCHEME://BUCKET/DIRECTORY")),
    ("bucket-only-slash", {"path": "s3a://lake/"}, ("spec.path", "'s3a://lake/'", "SCHEME://BUCKET/DIRECTORY")),
    ("no-bucket", {"path": "s3a:///flights"}, ("spec.path", "'s3a:///flights'", "SCHEME://BUCKET/DIRECTORY")),
    ("glob", {"path": "s3a://lake/*"}, ("spec.path", "'s3a://lake/*'", "a character other than")),
    ("no-path", {"path": None}, ("spec.path", "Required")),
    ("type", {"type": "MOR"}, ("spec.type", '"MOR"', '"CopyOnWrite", "MergeOnRead"')),
    ("no-keys", {"recordKeyFields": []}, ("spec.recordKeyFields", "at least 1 items")),
    ("two-in-one", {"recordKeyFields": ["a,b"]}, ("spec.recordKeyFields[0]", "'a,b'", "not the name of one column")),
    ("twice", {"partitionFields": ["a", "a"]}, ("spec.partitionFields", '["a", "a"]', "names a column twice")),
    ("too-many", {"orderingFields": ["a", "b", "c", "d", "e"]}, ("spec.orderingFields", "at most 4 items")),
    ("table-name", {"tableName": "a b"}, ("spec.tableName", "'a b'", "letters, digits")),
    (
        "lease",
        {"lock": {"leaseSeconds": 8}},
        ("spec.lock", "keepAliveSeconds 3 + 2 x rpcTimeoutSeconds 3 must not exceed leaseSeconds 8"),
    ),
    (
        "silence",
        {"lock": {"silenceSeconds": 15}},
        ("spec.lock", "silenceSeconds 15 must be more than leaseSeconds 10 + suspectSeconds 5"),
    ),
    ("lock-bounds", {"lock": {"maxHoldSeconds": 1}}, ("spec.lock.maxHoldSeconds", "1", "greater than or equal to 10")),
    ("drain", {"fencing": {"drainSeconds": 0}}, ("spec.fencing.drainSeconds", "0", "greater than or equal to 1")),
    (
        "fencing-mode",
        {"fencing": {"mode": "Lease"}},
        ("spec.fencing.mode", '"Lease"', '"PodTermination", "Credentials", "LeaseOnly"'),
    ),
    *(
        (f"credentials-{name}", {"fencing": {"mode": "Credentials"}, **spec}, (field, told))
        for name, spec, field, told in (
            ("of-nobody", {}, "spec.fencing.mode", "needs a path on s3a, one Secret as S3"),
            ("elsewhere", {**_revocable(), "path": "gs://lake/x"}, "spec.fencing.mode", "needs a path on s3a"),
            ("as-files", _revocable(secretRefs=[{"name": "lake", "as": "Files"}]), "spec.fencing.mode", "one Secret"),
            ("twice", _revocable(secretRefs=[*_S3, {"name": "b", "as": "Files"}]), "spec.fencing.mode", "one Secret"),
            (
                "of-an-account",
                _revocable(serviceAccountName="own"),
                "spec.fencing.mode",
                "no storage.serviceAccountName",
            ),
            ("no-store", _revocable(options={}), "spec.fencing.mode", "fs.s3a.endpoint in storage.options"),
            *(
                (
                    f"other-access-{number}",
                    _revocable(options={**_ENDPOINT, option: "x"}),
                    "spec.storage.options",
                    "revoked",
                )
                for number, option in enumerate(_OTHER_ACCESS)
            ),
        )
    ),
    (
        "single",
        {"concurrency": {"mode": "SingleWriter", "maxWriters": 4}},
        ("spec.concurrency", "maxWriters 4 contradicts mode SingleWriter"),
    ),
    (
        "global-index",
        {"index": {"type": "GlobalBloom"}},
        ("spec.index.type", "'GlobalBloom'", "one key to two file groups"),
    ),
    (
        "missing-columns",
        {"schema": {"missingColumns": "Drop"}},
        ("spec.schema.missingColumns", '"Drop"', '"Null", "Refuse"'),
    ),
    ("no-buckets", {"index": {"type": "Bucket"}}, ("spec.index", "buckets is unset with index.type Bucket")),
    ("buckets", {"index": {"type": "Simple", "buckets": 4}}, ("spec.index", "buckets is 4 with index.type Simple")),
    (
        "index-option",
        {"hudiOptions": {"hoodie.index.type": "BLOOM"}},
        ("spec.hudiOptions", "the index is set by spec.index", "hoodie.index.type"),
    ),
    (
        "non-blocking-copy",
        {"type": "CopyOnWrite", "concurrency": {"mode": "NonBlocking"}, "index": {"type": "Bucket", "buckets": 4}},
        ("spec.type", "type CopyOnWrite contradicts concurrency.mode NonBlocking"),
    ),
    (
        "non-blocking-index",
        {"type": "MergeOnRead", "concurrency": {"mode": "NonBlocking"}},
        ("spec.index", "index.type unset contradicts concurrency.mode NonBlocking"),
    ),
    ("hudi-version", {"hudiVersion": "1.1.0"}, ("spec.hudiVersion", "'1.1.0'", "must be a release 1.2.x")),
    (
        "admission-word",
        {"concurrency": {"admission": "Overlapping"}},
        ("spec.concurrency.admission", '"Overlapping"', '"Always", "DisjointPartitions"'),
    ),
    (
        "admission-of-one",
        {"concurrency": {"mode": "SingleWriter", "admission": "DisjointPartitions"}},
        ("spec.concurrency", "admission DisjointPartitions contradicts mode SingleWriter"),
    ),
    (
        "no-conflicts",
        {"concurrency": {"mode": "SingleWriter", "serializeAfterConflicts": 2}},
        ("spec.concurrency", "serializeAfterConflicts 2 contradicts mode SingleWriter, which does not detect"),
    ),
    (
        "early-detection",
        {"concurrency": {"mode": "SingleWriter", "earlyConflictDetection": True}},
        ("spec.concurrency", "earlyConflictDetection contradicts mode SingleWriter"),
    ),
    (
        "change-timeout",
        {"concurrency": {"changeTimeoutSeconds": 9}},
        ("spec.concurrency.changeTimeoutSeconds", "9", "greater than or equal to 10"),
    ),
    (
        "inserts-word",
        {"concurrency": {"insertConflicts": "Keys"}},
        ("spec.concurrency.insertConflicts", '"Keys"', '"Key", "Partition", "Ignore"'),
    ),
    (
        "inserts-mode",
        {
            "type": "MergeOnRead",
            "index": {"type": "Bucket", "buckets": 2},
            "concurrency": {"mode": "NonBlocking", "insertConflicts": "Partition"},
        },
        ("spec.concurrency", "insertConflicts Partition contradicts mode NonBlocking"),
    ),
    (
        "conflicts",
        {"concurrency": {"serializeAfterConflicts": 21}},
        ("spec.concurrency.serializeAfterConflicts", "21", "less than or equal to 20"),
    ),
    ("writers", {"concurrency": {"maxWriters": 65}}, ("spec.concurrency.maxWriters", "65", "less than or equal to 64")),
    (
        "secret-use",
        {"storage": {"secretRefs": [{"name": "a", "as": "GCS"}]}},
        ("spec.storage.secretRefs[0].as", '"GCS"', '"S3", "Files", "Env"'),
    ),
    (
        "two-s3",
        {"storage": {"secretRefs": [{"name": n, "as": "S3"} for n in "ab"]}},
        ("spec.storage.secretRefs", '["a", "b"]', "only one Secret can be"),
    ),
    (
        "compaction-of-cow",
        {"type": "CopyOnWrite", "services": {"compaction": {}}},
        ("spec.services.compaction", "needs type MergeOnRead", "CopyOnWrite"),
    ),
    (
        "cluster-non-blocking",
        {
            "type": "MergeOnRead",
            "index": {"type": "Bucket", "buckets": 2},
            "concurrency": {"mode": "NonBlocking"},
            "services": {"clustering": {}},
        },
        ("spec.services.clustering", "contradicts concurrency.mode NonBlocking"),
    ),
    (
        "expire-non-blocking",
        {
            "type": "MergeOnRead",
            "index": {"type": "Bucket", "buckets": 2},
            "partitionFields": ["p"],
            "concurrency": {"mode": "NonBlocking"},
            "services": {"ttl": {"retainSeconds": 86400}},
        },
        ("spec.services.ttl", "contradicts concurrency.mode NonBlocking"),
    ),
    (
        "metadata-off",
        {"metadataTable": {"enabled": False, "indexes": ["ColumnStats"]}},
        ("spec.metadataTable.indexes", "contradict enabled false"),
    ),
    (
        "metadata-unknown",
        {"metadataTable": {"indexes": ["RecordIndex"]}},
        ("spec.metadataTable.indexes", '"RecordIndex"'),
    ),
    (
        "metadata-word",
        {"metadataTable": {"rebuild": "now, please"}},
        ("spec.metadataTable.rebuild", "'now, please' must consist of"),
    ),
    (
        "cluster-bucket",
        {"index": {"type": "Bucket", "buckets": 2}, "services": {"clustering": {}}},
        ("spec.services.clustering", "index.type Bucket"),
    ),
    (
        "cluster-skip",
        {"partitionFields": None, "services": {"clustering": {"skipNewestPartitions": 2}}},
        ("skipNewestPartitions 2: the table has no partitionFields",),
    ),
    (
        "cluster-sizes",
        {"services": {"clustering": {"smallFileSize": "99Mi", "targetFileSize": "98Mi"}}},
        ("smallFileSize 99Mi must not be more than targetFileSize 98Mi",),
    ),
    (
        "cluster-size",
        {"services": {"clustering": {"smallFileSize": "300m"}}},
        ("spec.services.clustering.smallFileSize", "'300m' is not a size"),
    ),
    (
        "cluster-layout",
        {"services": {"clustering": {"sortColumns": ["a"], "layout": "ZOrder"}}},
        ("layout ZOrder needs sortColumns",),
    ),
    ("cluster-column", {"services": {"clustering": {"sortColumns": ["a,b"]}}}, ("'a,b' must be the name of a column",)),
    (
        "ttl-unpartitioned",
        {"partitionFields": None, "services": {"ttl": {"retainSeconds": 259200}}},
        ("spec.services.ttl", "ttl needs partitionFields"),
    ),
    (
        "ttl-days",
        {"partitionFields": ["p"], "services": {"ttl": {}}},
        ("spec.services.ttl.retainSeconds", "Required value"),
    ),
    (
        "ttl-none",
        {"partitionFields": ["p"], "services": {"ttl": {"retainSeconds": 0}}},
        ("spec.services.ttl.retainSeconds", "0", "greater than or equal to 86400"),
    ),
    (
        "ttl-hours",
        {"partitionFields": ["p"], "services": {"ttl": {"retainSeconds": 90000}}},
        ("spec.services.ttl.retainSeconds", "90000", "multiple of 86400"),
    ),
    (
        "ttl-since",
        {"partitionFields": ["p"], "services": {"ttl": {"retainSeconds": 86400, "since": "Now"}}},
        ("spec.services.ttl.since", '"Now"'),
    ),
    (
        "retain-two",
        {"services": {"clean": {"retainCommits": 3, "retainSeconds": 3600}}},
        ("spec.services.clean", "one of retainCommits, retainSeconds and"),
    ),
    (
        "retain-minutes",
        {"services": {"clean": {"retainSeconds": 5400}}},
        ("spec.services.clean.retainSeconds", "5400", "multiple of 3600"),
    ),
    (
        "after-none",
        {"services": {"clean": {"afterCommits": 0}}},
        ("spec.services.clean.afterCommits", "0", "greater than or equal to 1"),
    ),
    (
        "retain-none",
        {"services": {"clean": {"retainCommits": 0}}},
        ("spec.services.clean.retainCommits", "0", "greater than or equal to 1"),
    ),
    (
        "keep",
        {"services": {"archive": {"minCommitsToKeep": 30}}},
        ("spec.services.archive", "maxCommitsToKeep 30 must be more than minCommitsToKeep 30"),
    ),
    (
        "keep-short",
        {"services": {"archive": {"minCommitsToKeep": 9}}},
        ("spec.services", "minCommitsToKeep 9 must be more than clean.retainCommits 10"),
    ),
    (
        "keep-less",
        {"services": {"clean": {"retainCommits": 20}}},
        ("spec.services", "minCommitsToKeep 20 must be more than clean.retainCommits 20"),
    ),
    (
        "savepoint-name",
        {"savepoints": [{"name": "Before Load"}]},
        ("spec.savepoints[0].name", "'Before Load'", "lower-case letters, digits and -"),
    ),
    (
        "savepoint-twice",
        {"savepoints": [{"name": "a"}, {"name": "a"}]},
        ("spec.savepoints[1]", "Duplicate value", '"a"'),
    ),
    (
        "savepoint-deleted",
        {"savepoints": [{"name": "a", "deleteInstant": "yes"}]},
        ("spec.savepoints[0].deleteInstant", "'yes'", "14 or 17 digits"),
    ),
    (
        "savepoint-restored",
        {
            "savepoints": [{"name": "a", "deleteInstant": "20260101000000000"}],
            "restore": {"savepoint": "a", "nonce": "1"},
        },
        ("spec.savepoints", "savepoint 'a' has deleteInstant, and restore names it: remove restore first"),
    ),
    (
        "hold-name",
        {"holds": [{"name": "Night Run"}]},
        ("spec.holds[0].name", "'Night Run'", "lower-case letters, digits and -"),
    ),
    (
        "hold-twice",
        {"holds": [{"name": "a"}, {"name": "a"}]},
        ("spec.holds[1]", "Duplicate value", '"a"'),
    ),
    (
        "hold-instant",
        {"holds": [{"name": "a", "instant": "yesterday"}]},
        ("spec.holds[0].instant", "'yesterday'", "14 or 17 digits"),
    ),
    (
        "hold-long",
        {"holds": [{"name": "a", "durationSeconds": 604801}]},
        ("spec.holds[0].durationSeconds", "604801", "less than or equal to 604800"),
    ),
    (
        "hold-reader",
        {"holds": [{"name": "a", "reader": "two\nlines"}]},
        ("spec.holds[0].reader", "should match"),
    ),
    (
        "restore-nonce",
        {"savepoints": [{"name": "a"}], "restore": {"savepoint": "a", "nonce": "x y"}},
        ("spec.restore.nonce", "'x y'", "letters, digits and"),
    ),
    (
        "restore-no-nonce",
        {"savepoints": [{"name": "a"}], "restore": {"savepoint": "a"}},
        ("spec.restore.nonce", "Required value"),
    ),
    (
        "restore-where",
        {"savepoints": [{"name": "a"}], "restore": {"savepoint": "b", "nonce": "1"}},
        ("spec.restore.savepoint", "'b' is none of spec.savepoints"),
    ),
    (
        "restore-nowhere",
        {"restore": {"savepoint": "b", "nonce": "1"}},
        ("spec.restore.savepoint", "'b' is none of spec.savepoints"),
    ),
    (
        "adoption-policy",
        {"adoption": {"policy": "Force"}},
        ("spec.adoption.policy", '"Force"', '"AdoptOrCreate", "Adopt", "Create"'),
    ),
    (
        "adoption-instant",
        {"adoption": {"rollbackInstants": ["2026"]}},
        ("spec.adoption.rollbackInstants[0]", "'2026'", "is not an instant: 17 digits"),
    ),
    (
        "adoption-words",
        {"adoption": {"rollbackInstants": ["'); DROP TABLE t"]}},
        ("spec.adoption.rollbackInstants[0]", "is not an instant: 17 digits"),
    ),
    (
        "adoption-twice",
        {"adoption": {"rollbackInstants": ["20260101000000000"] * 2}},
        ("spec.adoption.rollbackInstants[1]", "Duplicate value", '"20260101000000000"'),
    ),
    (
        "cron",
        {"services": {"archive": {"schedule": {"cron": "@daily ok"}}}},
        ("spec.services.archive.schedule.cron", "'@daily ok'", "five fields"),
    ),
    (
        "window",
        {"services": {"clustering": {"window": {"cron": "0 3 * * *", "durationSeconds": 0}}}},
        ("spec.services.clustering.window.durationSeconds", "0", "greater than or equal to 60"),
    ),
    (
        "endless-window",
        {"services": {"clean": {"window": {"cron": "0 3 * * *"}}}},
        ("spec.services.clean.window.durationSeconds", "Required value"),
    ),
    (
        "zone",
        {"services": {"clean": {"schedule": {"cron": "0 3 * * *", "timeZone": "+01:00"}}}},
        ("spec.services.clean.schedule.timeZone", "'+01:00'"),
    ),
    (
        "bootstrap-inside",
        {"bootstrap": beginning("s3a://lake/flights/raw")},
        ("spec.bootstrap.source.path", "'s3a://lake/flights/raw' lies in the table"),
    ),
    (
        "bootstrap-itself",
        {"bootstrap": beginning("s3a://lake/flights")},
        ("spec.bootstrap.source.path", "'s3a://lake/flights' lies in the table"),
    ),
    (
        "bootstrap-around",
        {"bootstrap": beginning("s3a://lake")},
        ("spec.bootstrap.source.path", "'s3a://lake' must name a bucket or host and a directory"),
    ),
    (
        "bootstrap-parent",
        {"path": "s3a://lake/a/b", "bootstrap": beginning("s3a://lake/a")},
        ("the table 's3a://lake/a/b' lies in 's3a://lake/a'",),
    ),
    (
        "bootstrap-path",
        {"bootstrap": beginning("file:///x/y")},
        ("spec.bootstrap.source.path", "'file:///x/y'", "must begin with one of s3a://"),
    ),
    (
        "bootstrap-format",
        {"bootstrap": beginning("s3a://lake/x", format="CSV")},
        ("spec.bootstrap.source.format", '"CSV"', '"Parquet"'),
    ),
    (
        "bootstrap-no-format",
        {"bootstrap": {"source": {"path": "s3a://lake/x"}}},
        ("spec.bootstrap.source.format", "Required value"),
    ),
    (
        "bootstrap-metadata",
        {"bootstrap": {**beginning("s3a://lake/x"), "mode": "MetadataOnly"}},
        ("spec.bootstrap.mode", "MetadataOnly is not offered"),
    ),
    (
        "bootstrap-mode",
        {"bootstrap": {**beginning("s3a://lake/x"), "mode": "Half"}},
        ("spec.bootstrap.mode", "'Half'", "use FullRecord"),
    ),
    (
        "bootstrap-adopt",
        {"bootstrap": beginning("s3a://lake/x"), "adoption": {"policy": "Adopt"}},
        ("spec.adoption.policy", "adoption.policy Adopt contradicts bootstrap"),
    ),
    (
        "account-elsewhere",
        {"storage": {"serviceAccountName": "kube-system/default"}},
        ("spec.storage.serviceAccountName", "'kube-system/default'", "is not the name of a ServiceAccount"),
    ),
    (
        "same-secret",
        {"storage": {"secretRefs": [{"name": "a", "as": x} for x in ("S3", "Env")]}},
        ("spec.storage.secretRefs[1]", "Duplicate value", '"a"'),
    ),
]


@pytest.mark.parametrize(("spec", "words"), [pytest.param(spec, words, id=name) for name, spec, words in REFUSED])
def test_a_refusal_names_field_value_and_rule(
    light_cluster: Cluster, spec: dict[str, Any], words: tuple[str, ...]
) -> None:
    message = light_cluster.refused(table("default", name="refused", **spec))
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("key", "rule"),
    [
        ("fs.s3a.secret.key", "names a credential"),
        ("fs.s3a.access.key", "names a credential"),
        ("FS.S3A.Session.Token", "names a credential"),
        ("fs.azure.account.key.x.dfs.core.windows.net", "names a credential"),
        ("ssl.keystore.password", "names a credential"),
        ("fs.s3a.impl", "is set by the operator"),
        ("fs.AbstractFileSystem.s3a.impl", "is set by the operator"),
        ("fs.s3a.impl.disable.cache", "is set by the operator"),
        ("hudi.operator.guard.s3a.delegate", "is set by the operator"),
        ("spark.hadoop.fs.s3a.impl", "is set by the operator"),
        ("fs.defaultFS", "is set by the operator"),
        ("spark.hadoop.fs.s3a.endpoint", "must begin with fs."),
        ("io.file.buffer.size", "must begin with fs."),
        (" fs.s3a.endpoint", "no white space"),
        ("fs.s3a.endpoint\n", "no white space"),
    ],
)
def test_storage_options_that_are_refused(light_cluster: Cluster, key: str, rule: str) -> None:
    message = light_cluster.refused(table("default", name="refused", storage={"options": {key: "x"}}))
    assert "spec.storage.options" in message
    assert key.strip() in message
    assert rule in message


@pytest.mark.parametrize(
    "services",
    [
        {},
        {"clean": {"retainCommits": 50}, "archive": {"enabled": False}},
        {
            "clean": {"retainSeconds": 172800, "schedule": {"cron": "30 2 * * 1-5", "timeZone": "Europe/Berlin"}},
            "archive": {"minCommitsToKeep": 2, "maxCommitsToKeep": 3},
        },
        {"clean": {"retainFileVersions": 1}, "archive": {"minCommitsToKeep": 5}},
        {"compaction": {"afterCommits": 1}, "clean": {"enabled": False}},
        {"clustering": {}},
        {
            "clustering": {
                "sortColumns": ["a", "b.c"],
                "layout": "Hilbert",
                "smallFileSize": "64Mi",
                "targetFileSize": "1Gi",
                "partitionPattern": "2026/.*",
            }
        },
    ],
)
def test_good_services(light_cluster: Cluster, services: dict[str, Any]) -> None:
    light_cluster.kubectl(
        "create",
        "--dry-run=server",
        "-f",
        "-",
        stdin=quick_yaml.dump(table("default", type="MergeOnRead", services=services)),
    )


def test_compaction_switched_off_fits_any_table(light_cluster: Cluster) -> None:
    off = table("default", type="CopyOnWrite", services={"compaction": {"enabled": False}})
    light_cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=quick_yaml.dump(off))


def test_an_unknown_field_is_refused(light_cluster: Cluster) -> None:
    message = light_cluster.refused(table("default", name="refused", partitionField=["month"]))
    assert 'unknown field "spec.partitionField"' in message


@pytest.mark.parametrize(
    "path",
    [
        "s3a://lake/flights",
        "s3://lake/a/b=1/",
        "gs://lake/x",
        "abfs://container@account.dfs.core.windows.net/dir/x",
        "abfss://c@a.net/x",
        "hdfs://namenode:8020/user/hudi/x",
        "s3a://my.bucket-1/a.b/..c/d",
    ],
)
def test_good_paths(light_cluster: Cluster, path: str) -> None:
    light_cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=quick_yaml.dump(table("default", path=path)))


def test_the_short_form_is_filled_with_defaults(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(table(namespace, type=None, partitionFields=None, orderingFields=None))
    spec = light_cluster.get("ht", "flights", "-n", namespace)["spec"]
    assert spec == {
        "path": "s3a://lake/flights",
        "type": "CopyOnWrite",
        "recordKeyFields": ["time_hour", "carrier", "flight"],
        "hudiVersion": "1.2.0",
        "hiveStylePartitioning": False,
        "concurrency": {"mode": "Optimistic"},
        "lock": {
            "leaseSeconds": 10,
            "keepAliveSeconds": 3,
            "rpcTimeoutSeconds": 3,
            "silenceSeconds": 60,
            "suspectSeconds": 5,
            "maxHoldSeconds": 600,
            "maxClockSkewSeconds": 5,
        },
        "fencing": {
            "mode": "PodTermination",
            "drainSeconds": 10,
            "trustNodeDeletion": False,
            "trustOutOfServiceTaint": False,
        },
        "suspend": False,
    }


def test_everything_at_once_is_accepted(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(
        table(
            namespace,
            tableName="flights",
            hiveStylePartitioning=True,
            image="registry.example.com/hudi/spark:1",
            concurrency={"mode": "SingleWriter", "maxWriters": 1},
            lock={"leaseSeconds": 30, "keepAliveSeconds": 10, "rpcTimeoutSeconds": 10, "silenceSeconds": 120},
            fencing={
                "mode": "LeaseOnly",
                "drainSeconds": 30,
                "trustNodeDeletion": True,
                "trustOutOfServiceTaint": True,
            },
            storage={
                "serviceAccountName": "lake",
                "secretRefs": [{"name": "a", "as": "S3"}, {"name": "b", "as": "Env", "prefix": "B_"}],
                "options": {"fs.s3a.endpoint": "http://s3:7070", "fs.s3a.path.style.access": "true"},
            },
            hudiOptions={"hoodie.parquet.max.file.size": "1048576", "hoodie.compaction.target.io": "512"},
            suspend=True,
        )
    )


IDENTITY: list[tuple[str, Any, Any]] = [
    ("path", "s3a://lake/flights", "s3a://lake/other"),
    ("tableName", "flights", "other"),
    ("type", "MergeOnRead", "CopyOnWrite"),
    ("recordKeyFields", ["a", "b"], ["b", "a"]),
    ("partitionFields", ["month"], ["month", "day"]),
    ("orderingFields", ["updated_at"], ["at"]),
    ("hiveStylePartitioning", True, False),
]
OPTIONAL = [case for case in IDENTITY if case[0] not in ("path", "type", "recordKeyFields", "hiveStylePartitioning")]


@pytest.mark.parametrize(("field", "old", "new"), IDENTITY, ids=[case[0] for case in IDENTITY])
def test_identity_cannot_be_changed(light_cluster: Cluster, namespace: str, field: str, old: Any, new: Any) -> None:
    light_cluster.apply(table(namespace, **{field: old}))
    message = light_cluster.refused(table(namespace, **{field: new}))
    assert f"spec.{field}: Forbidden: {field} is immutable: it is" in message
    for value in (old, new):
        assert (
            value[-1] if isinstance(value, list) else str(value).lower() if isinstance(value, bool) else value
        ) in message


@pytest.mark.parametrize(("field", "value", "_new"), OPTIONAL, ids=[case[0] for case in OPTIONAL])
def test_identity_cannot_be_added_or_removed(
    light_cluster: Cluster, namespace: str, field: str, value: Any, _new: Any
) -> None:
    light_cluster.apply(
        table(namespace, name="with", **{field: value}), table(namespace, name="without", **{field: None})
    )
    for name, change, text in (
        ("with", None, "cannot become unset"),
        ("without", value, "it is unset and cannot become"),
    ):
        message = light_cluster.refused(table(namespace, name=name, **{field: change}))
        assert f"spec.{field}: " in message
        assert f"{field} is immutable" in message
        assert text in message


def test_removing_type_or_hive_style_means_the_default_and_is_refused_when_that_is_a_change(
    light_cluster: Cluster, namespace: str
) -> None:
    light_cluster.apply(table(namespace, hiveStylePartitioning=True))
    assert "type is immutable: it is MergeOnRead and cannot become CopyOnWrite" in light_cluster.refused(
        table(namespace, type=None, hiveStylePartitioning=True)
    )
    assert "hiveStylePartitioning is immutable: it is true and cannot become false" in light_cluster.refused(
        table(namespace)
    )


def test_how_a_table_begins_cannot_be_changed(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(
        table(namespace, name="with", bootstrap=beginning("s3a://lake/plain")), table(namespace, name="without")
    )
    assert light_cluster.get("ht", "with", "-n", namespace)["spec"]["bootstrap"] == {
        "mode": "FullRecord",
        **beginning("s3a://lake/plain"),
    }
    light_cluster.apply(table(namespace, name="with", bootstrap=beginning("s3a://lake/plain"), suspend=True))
    for name, change in (
        ("with", beginning("s3a://lake/other")),
        ("with", None),
        ("without", beginning("s3a://lake/plain")),
    ):
        assert "bootstrap is immutable: it is how the table begins" in light_cluster.refused(
            table(namespace, name=name, bootstrap=change)
        )


def test_what_is_mutable_can_be_changed(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(table(namespace))
    light_cluster.apply(
        table(
            namespace,
            suspend=True,
            lock={"leaseSeconds": 20},
            image="registry.example.com/spark:2",
            concurrency={"maxWriters": 2, "insertConflicts": "Partition"},
            schema={"missingColumns": "Refuse"},
        )
    )


def test_a_nonce_stands_for_one_restore(light_cluster: Cluster, namespace: str) -> None:
    both = [{"name": "a"}, {"name": "b"}]
    light_cluster.apply(table(namespace, savepoints=both, restore={"savepoint": "a", "nonce": "1"}))
    message = light_cluster.refused(table(namespace, savepoints=both, restore={"savepoint": "b", "nonce": "1"}))
    assert "spec.restore.savepoint" in message
    assert "nonce '1' already requests the restore to 'a'; another savepoint needs a new nonce" in message
    light_cluster.apply(table(namespace, savepoints=both, restore={"savepoint": "b", "nonce": "2"}))
    light_cluster.apply(table(namespace, savepoints=both, restore=None))


def test_a_hold_keeps_its_instant(light_cluster: Cluster, namespace: str) -> None:
    one = {"name": "a", "instant": "20260101000000000"}
    light_cluster.apply(table(namespace, holds=[one]))
    for other in ({"name": "a", "instant": "20260101000000001"}, {"name": "a"}):
        message = light_cluster.refused(table(namespace, holds=[other]))
        assert "spec.holds[0].name" in message
        assert "hold 'a' keeps its instant: another instant needs another name" in message
    light_cluster.apply(table(namespace, holds=[{**one, "durationSeconds": 3600, "reader": "export"}, {"name": "b"}]))
    light_cluster.apply(table(namespace, holds=[{"name": "b"}]))


def test_columns(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(table(namespace))
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Available",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {
        "observedGeneration": 1,
        "conditions": [condition],
        "writersSummary": "2/1/0",
        "blockedBy": "nightly (attempt 2)",
        "timeline": {"lastCommitTime": "2026-01-01T00:00:00Z", "pendingCount": 3},
    }
    light_cluster.kubectl(
        "patch",
        "ht",
        "flights",
        "-n",
        namespace,
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps({"status": status}),
    )
    head, row = light_cluster.kubectl("get", "ht", "-n", namespace).splitlines()
    for column in ("TYPE", "WRITERS", "BLOCKED BY", "LAST COMMIT", "PENDING", "READY", "DEGRADED", "AGE"):
        assert column in head
    for value in ("MergeOnRead", "2/1/0", "nightly (attempt 2)", "3", "True"):
        assert value in row
    assert "s3a://lake/flights" in light_cluster.kubectl("get", "hudi", "-o", "wide", "-n", namespace)
    light_cluster.kubectl("wait", "--for=condition=Ready", "ht/flights", "-n", namespace, "--timeout=1s")


def test_status_is_a_subresource(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(table(namespace) | {"status": {"tableId": "0123456789abcdef0123456789abcdef"}})
    assert "status" not in light_cluster.get("ht", "flights", "-n", namespace)
