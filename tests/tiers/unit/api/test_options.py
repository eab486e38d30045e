from typing import Any

import pytest

from hudi_operator.api import options
from hudi_operator.api.spec import TableSpec, WriterSpec


def spec_of(**spec: Any) -> TableSpec:
    return TableSpec.from_object(
        {
            "metadata": {"namespace": "n", "name": "t"},
            "spec": {"path": "s3a://lake/t", "recordKeyFields": ["id"], **spec},
        }
    )


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.write.lock.provider",
        "Hoodie.Write.Lock.Provider",
        "hoodie.write.lock.etcd.table_id",
        "hoodie.write.concurrency.mode",
        "hoodie.write.concurrency.early.conflict.detection.enable",
        "hoodie.cleaner.policy.failed.writes",
        "hoodie.clean.failed.writes.policy",
        "hoodie.client.heartbeat.interval_in_ms",
        "hoodie.client.init.callback.classes",
        "hoodie.rollback.using.markers",
        "hoodie.compact.inline",
        "hoodie.clustering.inline",
        "hoodie.clustering.async.enabled",
        "hoodie.clean.automatic",
        "hoodie.table.name",
        "hoodie.datasource.write.table.type",
        "hoodie.datasource.write.recordkey.field",
        "hoodie.datasource.write.keygenerator.class",
        "hoodie.datasource.write.payload.class",
        "hoodie.write.auto.upgrade",
        "hoodie.log.compaction.enable",
        "hoodie.log.compaction.inline",
        "Hoodie.Log.Compaction.Blocks.Threshold",
        "hoodie.metadata.enable",
        "hoodie.datasource.hive_sync.enable",
        "spark.hoodie.write.lock.provider",
        "spark.hadoop.hoodie.write.lock.provider",
    ],
)
def test_owned_hudi_options(name: str) -> None:
    problem = options.hudi_problem({name: "x"})
    assert "owned by the operator" in problem
    assert name in problem
    assert "'x'" in problem


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.parquet.max.file.size",
        "hoodie.upsert.shuffle.parallelism",
        "hoodie.combine.before.insert",
        "hoodie.bulkinsert.sort.mode",
    ],
)
def test_allowed_hudi_options(name: str) -> None:
    assert options.hudi_problem({name: "1"}) == ""


def test_what_is_on_no_list_is_refused_until_an_administrator_adds_it() -> None:
    assert "allow-list" in options.hudi_problem({"hoodie.brand.new": "1"})
    assert options.hudi_problem({"hoodie.brand.new": "1"}, ("hoodie.brand.*",)) == ""
    assert "owned" in options.hudi_problem({"hoodie.write.lock.provider": "1"}, ("hoodie.*",)), (
        "an administrator cannot give the lock away"
    )
    assert "incremental readers get rows twice" in options.hudi_problem(
        {"hoodie.log.compaction.enable": "true"}, ("hoodie.*",)
    )


@pytest.mark.parametrize(
    "name",
    [
        "",
        "hoodie.parquet.x y",
        "hoodie.parquet.x=1\nhoodie.write.lock.provider",
        "hoodie.parquet.\u200bx",
        "hoodie.parquet.x:",
        "#hoodie.x",
    ],
)
def test_names_that_are_no_names(name: str) -> None:
    assert "not a plain option name" in options.hudi_problem({name: "1"})


def test_values_have_one_line() -> None:
    assert "one line" in options.hudi_problem({"hoodie.parquet.x": "1\nhoodie.write.lock.provider=evil"})


@pytest.mark.parametrize(
    "name",
    [
        "spark.plugins",
        "spark.hadoop.fs.s3a.impl",
        "spark.hadoop.hudi.operator.guard.s3a.delegate",
        "spark.kubernetes.executor.podTemplateFile",
        "spark.kubernetes.driver.pod.name",
        "spark.jars.packages",
        "spark.driver.extraClassPath",
        "spark.executor.extraJavaOptions",
        "spark.master",
        "spark.sql.extensions",
        "spark.task.reaper.enabled",
        "spark.speculation",
        "spark.sql.files.ignoreCorruptFiles",
        "spark.sql.session.timeZone",
        "spark.sql.parquet.datetimeRebaseModeInWrite",
        "spark.hoodie.write.lock.provider",
        "SPARK.PLUGINS",
        "spark.dynamicAllocation.enabled",
        "spark.sql.sources.commitProtocolClass",
        "spark.sql.parquet.output.committer.class",
        "spark.shuffle.manager",
        "spark.shuffle.sort.io.plugin.class",
        "spark.authenticate",
        "spark.authenticate.secret.file",
        "spark.network.crypto.saslFallback",
        "spark.network.sasl.serverAlwaysEncrypt",
        "spark.io.encryption.enabled",
    ],
)
def test_owned_spark_settings(name: str) -> None:
    assert "owned by the operator" in options.spark_problem({name: "x"})


@pytest.mark.parametrize(
    "name",
    [
        "spark.sql.shuffle.partitions",
        "spark.sql.parquet.mergeSchema",
        "spark.memory.fraction",
        "spark.driver.maxResultSize",
        "spark.eventLog.dir",
    ],
)
def test_allowed_spark_settings(name: str) -> None:
    assert options.spark_problem({name: "1"}) == ""


def test_each_option_that_is_refused_is_told_once_in_the_order_of_names() -> None:
    assert "must begin with" in options.hudi_problem({"a": "1"})
    conf = {
        "spark.driver.extraJavaOptions": "-javaagent:/tmp/x.jar",
        "spark.hadoop.fs.s3a.secret.key": "hunter2",
        "spark.kubernetes.driver.podTemplateFile": "/tmp/x.yaml",
        "spark.kubernetes.driver.volumes.hostPath.root.mount.path": "/",
        "spark.sql.shuffle.partitions": "8\nspark.plugins=x",
    }
    found = options.spark_problem(conf | {"spark.sql.ansi.enabled": "true"}).split("; ")
    assert [each.partition("[")[2].partition("]")[0].strip("'") for each in found] == list(conf)
    assert "hunter2" not in str(found)
    both = options.writer_problem(
        WriterSpec.from_object(
            {
                "kind": "HudiWriter",
                "metadata": {"name": "load", "namespace": "default"},
                "spec": {
                    "tableRef": {"name": "flights"},
                    "hudiOptions": {"hoodie.table.name": "x"},
                    "sparkConf": {"spark.master": "x"},
                    "source": {"files": {"format": "csv", "paths": ["s3a://lake/x"]}},
                },
            }
        )
    )
    assert [each.partition("[")[0] for each in both.split("; ")] == ["spec.hudiOptions", "spec.sparkConf"]
    many = options.spark_problem({f"spark.kubernetes.{n}": "x" for n in range(30)})
    assert many.count("spec.sparkConf[") == options.LISTED
    assert many.endswith("; and 22 more")


def table(**hudi_options: str) -> str:
    options_ = {name.replace("__", "."): value for name, value in hudi_options.items()}
    return options.table_problem(spec_of(hudiOptions=options_))


@pytest.mark.parametrize("value", ["true", "false"])
def test_nothing_is_archived_beyond_a_savepoint(value: str) -> None:
    """F76: how far a writer has come is told by its newest commit of the active timeline, which
    must have no hole.
    """
    assert "hoodie.archive.beyond.savepoint" in table(hoodie__archive__beyond__savepoint=value)
    assert table(hoodie__archive__merge__enable="true") == ""


@pytest.mark.parametrize("name", ["hoodie.compaction.target.io", "hoodie.archive.merge.enable"])
def test_what_concerns_the_whole_table_is_set_there(name: str) -> None:
    assert "HudiTable" in options.hudi_problem({name: "BLOOM"})
    assert table(**{name.replace(".", "__"): "BLOOM"}) == ""


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.combine.before.upsert",
        "hoodie.bucket.index.hash.field",
        "hoodie.parquet.outputTimestampType",
        "hoodie.logfile.data.block.format",
        "hoodie.bloom.index.prune.by.ranges",
    ],
)
def test_rows_are_stored_and_found_in_one_way(name: str) -> None:
    """F93, F102: what one writer, or a table from now on, does otherwise doubles keys
    or changes values.
    """
    assert "owned by the operator" in options.hudi_problem({name: "false"})
    assert "owned by the operator" in table(**{name.replace(".", "__"): "false"})


def test_a_session_is_in_utc() -> None:
    """F95: the time zone was accepted and not obeyed, so times without a zone were read as others
    than the user meant.
    """
    problem = options.spark_problem({"spark.sql.session.timeZone": "Europe/Berlin"})
    assert "spark.sql.session.timeZone'] = 'Europe/Berlin'" in problem
    assert "source.files.options.timeZone" in problem


def test_why_an_option_is_refused_is_its_own_reason() -> None:
    assert "a key that occurs twice in a batch" in options.hudi_problem({"hoodie.combine.before.upsert": "false"})


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.clean.commits.retained",
        "hoodie.cleaner.policy",
        "hoodie.keep.max.commits",
        "hoodie.clean.trigger.max.commits",
    ],
)
def test_what_services_say_is_not_said_twice(name: str) -> None:
    assert "spec.services" in table(**{name.replace(".", "__"): "5"})
    assert "spec.services" in options.hudi_problem({name: "5"})


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.clean.failed.writes.policy",
        "hoodie.cleaner.policy.failed.writes",
        "hoodie.compact.inline",
        "hoodie.write.lock.x",
        "hoodie.table.name",
    ],
)
def test_a_table_does_not_own_the_protocol_either(name: str) -> None:
    assert "owned by the operator" in table(**{name.replace(".", "__"): "x"})


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"index": {"type": "Bloom"}}, ""),
        ({"index": {"type": "Simple"}}, ""),
        ({"index": {"type": "Bucket", "buckets": 4}}, ""),
        ({"index": {"type": "Bucket"}}, "spec.index.buckets = 0"),
        ({"index": {"type": "Simple", "buckets": 4}}, "spec.index.buckets = 4"),
        ({"index": {"type": "GlobalBloom"}}, "spec.index.type = 'GlobalBloom'"),
        ({"index": {"type": "RecordIndex"}}, "spec.index.type = 'RecordIndex'"),
        ({"concurrency": {"mode": "NonBlocking"}, "type": "MergeOnRead"}, "spec.concurrency.mode = 'NonBlocking'"),
        (
            {
                "concurrency": {"mode": "NonBlocking"},
                "type": "MergeOnRead",
                "index": {"type": "Bucket", "buckets": 4},
                "orderingFields": ["t"],
            },
            "",
        ),
        (
            {"concurrency": {"mode": "NonBlocking"}, "type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 4}},
            "spec.merge.mode = 'CommitTime'",
        ),
        ({"hudiOptions": {"hoodie.index.type": "BLOOM"}}, "set it in spec.index"),
        ({"hudiOptions": {"hoodie.bucket.index.num.buckets": "4"}}, "set it in spec.index"),
    ],
)
def test_index_and_mode_fit_together(spec: dict[str, Any], problem: str) -> None:
    found = options.table_problem(spec_of(**spec))
    assert problem in found
    assert bool(problem) == bool(found)
