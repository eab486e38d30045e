"""What a table that others wrote must be like to be adopted: each thing that does not fit is named
with its values.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from hudi_runtime.agent import adoption, creation, facts
from hudi_runtime.job.job import TableSpec
from hudi_runtime.job.merging import Merge
from hudi_runtime.table import timeline as tl

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
SPEC = TableSpec(
    "T",
    "lake/flights",
    "flights",
    "s3a://lake/flights",
    "COPY_ON_WRITE",
    ("id",),
    ("p",),
    ("ts",),
    hive_style=False,
    merge=Merge("EventTime"),
)
#: As stock Hudi 1.2.0 writes it with plain settings, without the fields
# that `creation.mismatches` compares.
PLAIN = {
    "hoodie.archivelog.folder": "history",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.partition.metafile.use.base.format": "false",
    "hoodie.populate.meta.fields": "true",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.table.base.file.format": "PARQUET",
    "hoodie.table.cdc.enabled": "false",
    "hoodie.table.format": "native",
    "hoodie.table.metadata.partitions.inflight": "",
    "hoodie.table.metadata.partitions": "column_stats,files,partition_stats",
    "hoodie.table.checksum": "2622850774",
}
OPTIONS = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
BUCKETS = {**OPTIONS, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
GROUP, BUCKET = "6f1c0b1e-7f6d-4a53-9a01-5d2ad1c3b2aa-0", "00000003-7f6d-4a53-9a01-5d2ad1c3b2aa-0"
FITS = adoption.Found(
    PLAIN,
    "org.apache.hudi.keygen.SimpleKeyGenerator",
    tl.parse(["20260101110000000_20260101110001000.commit"]),
    (GROUP,),
)


def said(found: adoption.Found, options: dict[str, str] = OPTIONS, spec: TableSpec = SPEC, now: datetime = NOW) -> str:
    return "; ".join(adoption.problems(spec, options, found, now=now))


def test_a_plain_table_fits() -> None:
    assert said(FITS) == ""


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("hoodie.datasource.write.partitionpath.urlencode", "true", "needed 'false', table 'true'"),
        ("hoodie.populate.meta.fields", "false", "needed 'true', table 'false'"),
        ("hoodie.record.merge.mode", "CUSTOM", "needed 'EVENT_TIME_ORDERING', table 'CUSTOM'"),
        ("hoodie.table.base.file.format", "ORC", "needed 'PARQUET', table 'ORC'"),
        ("hoodie.table.cdc.enabled", "true", "needed 'false', table 'true'"),
        ("hoodie.partition.metafile.use.base.format", "true", "needed 'false', table 'true'"),
        ("hoodie.datasource.write.drop.partition.columns", "true", "needed 'false', table 'true'"),
        ("hoodie.table.partial.update.mode", "IGNORE_DEFAULTS", "table 'IGNORE_DEFAULTS'"),
        ("hoodie.table.metadata.partitions.inflight", "record_index", "table 'record_index': finish or drop"),
        (
            "hoodie.write.concurrency.mode",
            "SINGLE_WRITER",
            "the operator sets 'OPTIMISTIC_CONCURRENCY_CONTROL', table 'SINGLE_WRITER'",
        ),
        ("hoodie.clean.failed.writes.policy", "EAGER", "the operator sets 'LAZY', table 'EAGER'"),
        ("hoodie.cleaner.policy.failed.writes", "EAGER", "the operator sets 'nothing', table 'EAGER'"),
        ("hoodie.write.lock.provider", "x.Y", "the operator sets 'nothing', table 'x.Y'"),
        ("hoodie.metadata.enable", "false", "table 'false'"),
        ("hoodie.compact.inline", "true", "table 'true'"),
        ("hoodie.index.type", "GLOBAL_BLOOM", "table 'GLOBAL_BLOOM'"),
    ],
)
def test_a_property_that_does_not_fit(key: str, value: str, words: str) -> None:
    message = said(replace(FITS, properties={**PLAIN, key: value}))
    assert message.startswith(f"{key}: ")
    assert words in message


def test_a_hostile_property_that_says_what_the_operator_says_is_none() -> None:
    assert said(replace(FITS, properties={**PLAIN, **OPTIONS})) == ""


def test_a_table_merges_as_the_spec_says() -> None:
    by_commit = replace(FITS, properties={**PLAIN, "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"})
    assert "needed 'EVENT_TIME_ORDERING', table 'COMMIT_TIME_ORDERING': set spec.merge.mode" in said(by_commit)
    assert said(by_commit, spec=replace(SPEC, merge=Merge("CommitTime"))) == ""
    partial = replace(SPEC, merge=Merge("CommitTime", ignores_nulls=True))
    assert "needed 'IGNORE_DEFAULTS', table 'none': set spec.merge.partialUpdates" in said(by_commit, spec=partial)
    ignoring = replace(FITS, properties={**by_commit.properties, "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"})
    assert said(ignoring, spec=partial) == ""
    assert "needed 'none', table 'IGNORE_DEFAULTS'" in said(ignoring, spec=replace(SPEC, merge=Merge("CommitTime")))
    filling = replace(FITS, properties={**by_commit.properties, "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE"})
    assert "needed 'IGNORE_DEFAULTS', table 'FILL_UNAVAILABLE'" in said(filling, spec=partial)


@pytest.mark.parametrize(
    "generator",
    [
        "org.apache.hudi.keygen.ComplexKeyGenerator",
        "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "com.example.Own",
    ],
)
def test_another_key_generator(generator: str) -> None:
    message = said(replace(FITS, key_generator=generator))
    assert "needed 'SimpleKeyGenerator'" in message
    assert repr(generator.rpartition(".")[2]) in message


def test_the_index_is_told_by_the_names_of_file_groups() -> None:
    assert said(replace(FITS, file_groups=(BUCKET,)), BUCKETS) == ""
    assert said(replace(FITS, file_groups=()), BUCKETS) == "", (
        "an empty table has any index: its rows are looked at (test_stored_rows.py)"
    )
    assert f"file group {GROUP!r}" in said(replace(FITS, file_groups=(BUCKET, GROUP)), BUCKETS)
    assert "has 3 buckets, table has bucket 3" in said(
        replace(FITS, file_groups=(BUCKET,)), {**BUCKETS, "hoodie.bucket.index.num.buckets": "3"}
    )
    assert "has a bucket index" in said(replace(FITS, file_groups=(BUCKET,)))
    in_logs = replace(FITS, only_in_logs=(GROUP,))
    assert said(in_logs) == "", "a CopyOnWrite table has none"
    assert "rows in log files of file group" in said(in_logs, spec=replace(SPEC, type="MERGE_ON_READ"))


def test_a_timeline_that_is_ahead_is_waited_for() -> None:
    """I10: plain Hudi writes local time; east of UTC that lies in our future."""
    assert "is in the future (now in UTC: '20260101103005')" in said(FITS, now=NOW - timedelta(minutes=90))
    assert said(FITS, now=NOW.astimezone(timezone(timedelta(hours=-8)))) == "", "the machine's own zone does not matter"


def test_only_adoption_takes_a_table_in_local_time() -> None:
    found = {
        "tableName": "flights",
        "type": "COPY_ON_WRITE",
        "recordKeyFields": "id",
        "partitionFields": "p",
        "orderingFields": "ts",
        "hiveStylePartitioning": "false",
        "tableVersion": "9",
        "timelineTimezone": "LOCAL",
    }
    assert creation.mismatches(SPEC, found, adopting=True) == []
    assert creation.mismatches(SPEC, found) == ["timelineTimezone: spec 'UTC', table 'LOCAL'"]
    assert creation.mismatches(SPEC, {**found, "tableVersion": "8"}, adopting=True) == [
        "tableVersion: spec '9', table '8'"
    ]


def test_the_report_lists_the_instants_and_whose_writer_lives() -> None:
    timeline = tl.parse(["20260101000000000.commit.requested", "20260101000001000.clean.requested"])
    waiting = adoption.PendingInstants(timeline, timeline.pending, {"20260101000001000"})
    base = facts.report(timeline, inc="a", foreigners=timeline.pending, commits_since={})
    report = adoption.report(base, waiting).to_json()
    assert report["error"]["code"] == "PendingInstants"
    assert [item.get("beating", False) for item in report["foreign"]] == [False, True]


def test_a_merge_of_ones_own_is_known_by_its_strategy() -> None:
    own = replace(SPEC, merge=Merge("Custom", strategy_id="7d6a"))
    properties = {**PLAIN, "hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": "7d6a"}
    assert said(replace(FITS, properties=properties), spec=own) == ""
    other = replace(FITS, properties={**properties, "hoodie.record.merge.strategy.id": "1234"})
    assert "hoodie.record.merge.strategy.id: needed '7d6a', table '1234'" in said(other, spec=own)
