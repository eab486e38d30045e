"""Options that a writer may not set, in any spelling, and what one write carries."""

from __future__ import annotations

import pytest
from pyspark.sql import types

from hudi_contract.options import OF_THE_TABLE, OWNED, Rule
from hudi_operator.api import options as operator_options
from hudi_runtime.job.job import Job
from hudi_runtime.job.options import check_allowed, key_options, schema_options, write_options
from hudi_runtime.process.errors import OptionNotAllowed
from tests.support.world.job_json import JOB


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.write.lock.provider",
        "HOODIE.Write.Lock.Provider",
        " hoodie.write.lock.provider ",
        "spark.hoodie.write.lock.provider",
        "hoodie.write.concurrency.mode",
        "hoodie.clean.failed.writes.policy",
        "hoodie.cleaner.policy.failed.writes",
        "hoodie.client.init.callback.classes",
        "hoodie.client.heartbeat.interval_in_ms",
        "hoodie.table.services.enabled",
        "hoodie.datasource.write.recordkey.field",
        "hoodie.datasource.write.operation",
        "hoodie.datasource.write.commitmeta.key.prefix",
        "hoodie.metadata.enable",
        "hoodie.rollback.avoid.duplicate.plan",
        "hoodie.write.auto.upgrade",
        "hoodie.clean.automatic",
        "hoodie.compact.inline",
        "hoodie.clustering.inline",
        "hoodie.base.path",
        "hudioperator.progress",
        "path",
    ],
)
def test_refused(key: str) -> None:
    with pytest.raises(OptionNotAllowed, match=r"^\[HUDIOP-OPTION\]"):
        check_allowed({key: "x"})


@pytest.mark.parametrize(
    "key",
    ["hoodie.parquet.max.file.size", "hoodie.upsert.shuffle.parallelism", "hoodie.datasource.write.row.writer.enable"],
)
def test_allowed(key: str) -> None:
    check_allowed({key: "x"})


def sample(pattern: str) -> str:
    return pattern.replace("*", "x")


@pytest.mark.parametrize("rule", [*OWNED, *OF_THE_TABLE], ids=lambda rule: rule.pattern)
def test_the_contracts_rules_apply_to_a_job(rule: Rule) -> None:
    with pytest.raises(OptionNotAllowed):
        check_allowed({sample(rule.pattern): "x"})


def test_what_admission_allows_is_allowed_in_a_job() -> None:
    check_allowed({sample(pattern): "x" for pattern in operator_options.ALLOWED_HUDI})


def test_one_write() -> None:
    job = Job.from_json(JOB)
    options = write_options(job, inc="i1", progress={"count": 2, "digest": "d"}, progress_base="0", schema_base="5")
    assert options["hoodie.write.lock.etcd.schema_base"] == "5"
    assert options["hoodie.parquet.max.file.size"] == "1000"
    assert options["hoodie.write.lock.etcd.progress_writer"] == "default/w"
    assert options["hoodie.write.lock.etcd.progress_base"] == "0"
    assert options["hudioperator.progress"] == '{"count":2,"digest":"d"}'
    assert options["hudioperator.inc"] == "i1"
    assert options["hoodie.datasource.write.hive_style_partitioning"] == "true"
    assert job.table.path == "s3a://lake/t"
    assert job.in_process_retries == 3


@pytest.mark.parametrize(
    ("duplicates", "merged"), [(None, "false"), ("Fail", "false"), ("Drop", "false"), ("Allow", "true")]
)
@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_hudis_options_for_duplicates_follow_from_ours(operation: str, duplicates: str | None, merged: str) -> None:
    job = Job.from_json({**JOB, "operation": operation, "duplicates": duplicates})
    assert (job.duplicates, job.looks_up) == (duplicates or "Fail", duplicates != "Allow")
    options = write_options(job, inc="i1", progress={}, progress_base="0", schema_base="5")
    assert options["hoodie.merge.allow.duplicate.on.inserts"] == merged
    assert options["hoodie.datasource.insert.dup.policy"] == "none"
    assert options["hoodie.datasource.write.insert.drop.duplicates"] == "false"


@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_an_operation_that_looks_keys_up_needs_no_other_look(operation: str) -> None:
    job = Job.from_json({**JOB, "operation": operation, "duplicates": "Fail"})
    assert not job.looks_up
    assert "hoodie.merge.allow.duplicate.on.inserts" not in write_options(
        job, inc="i1", progress={}, progress_base="0", schema_base="5"
    )


def test_a_change_of_the_schema_carries_no_progress() -> None:
    options = schema_options(Job.from_json(JOB), inc="i1", schema_base="5")
    assert options["hudioperator.inc"] == "i1"
    assert options["hoodie.write.lock.etcd.schema_base"] == "5"
    assert not {"hudioperator.progress", "hoodie.write.lock.etcd.progress_base"} & set(options)


def test_a_bulk_insert_goes_without_the_row_writer_when_a_timestamp_is_in_the_key() -> None:
    """F92: its keys would be other ones than those of an upsert."""
    inner = types.StructType([types.StructField("at", types.TimestampNTZType())])
    schema = types.StructType(
        [
            types.StructField("id", types.LongType()),
            types.StructField("seen", types.TimestampType()),
            types.StructField("k", inner),
        ]
    )
    off = {"hoodie.datasource.write.row.writer.enable": "false"}
    assert (key_options(schema, ["id", "seen"]), key_options(schema, ["k.at"])) == (off, off)
    assert (key_options(schema, ["id"]), key_options(schema, ["k", "gone", "k.gone"])) == ({}, {})
