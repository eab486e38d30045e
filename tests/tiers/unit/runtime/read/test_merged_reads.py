"""What of a table's merge reaches batches and pulls: no deletes where they would not last, and
reads that a compaction cannot hide rows from.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pyspark.sql import types

from hudi_contract import job as contract
from hudi_runtime.job.job import Job
from hudi_runtime.job.merging import Found, Merge, fault
from hudi_runtime.read.incremental import _runs, _span
from hudi_runtime.table import timeline as tl
from hudi_runtime.writer.schema import Rules, SchemaMismatch, fit
from tests.support.world.job_json import JOB

TABLE = types.StructType([types.StructField(name, types.StringType()) for name in ("id", "p", "ts", "v")])
DELETING = types.StructType([*TABLE.fields, types.StructField("_hoodie_is_deleted", types.BooleanType())])


def rules(operation: str = "upsert", *, type: str = "MERGE_ON_READ", partial: str | None = "IgnoreNulls") -> Rules:
    data: dict[str, Any] = copy.deepcopy(JOB)
    data["table"] |= {"type": type, "merge": {"mode": "CommitTime", "partialUpdates": partial}}
    return Rules.of(Job.from_json(data | {"operation": operation}))


def test_partial_updates_and_deletes_do_not_meet_in_log_files() -> None:
    """I8: a record that comes again after its deletion would have values that were deleted."""
    for batch, found in ((TABLE, rules("delete")), (DELETING, rules())):
        with pytest.raises(
            SchemaMismatch, match="no records can be deleted from this table: it is of type MergeOnRead"
        ):
            fit(batch, TABLE, found)
    fit(TABLE, TABLE, rules())
    for other in ({"type": "COPY_ON_WRITE"}, {"partial": None}):
        fit(TABLE, TABLE, rules("delete", **other))
        fit(DELETING, TABLE, rules(**other))


@pytest.mark.parametrize(
    ("said", "ordering", "merge"),
    [
        (None, (), Merge("CommitTime")),
        (None, ("ts",), Merge("EventTime")),
        ({"mode": "CommitTime", "partialUpdates": None}, ("ts",), Merge("CommitTime")),
        ({"mode": "CommitTime", "partialUpdates": "IgnoreNulls"}, (), Merge("CommitTime", ignores_nulls=True)),
        (
            {"mode": "Custom", "strategyId": "7d6a", "className": "x.Own"},
            (),
            Merge("Custom", strategy_id="7d6a", class_name="x.Own"),
        ),
    ],
)
def test_an_older_operator_does_not_send_it(
    said: dict[str, str | None] | None, ordering: tuple[str, ...], merge: Merge
) -> None:
    assert Merge.of(contract.Merge.from_json(said) if said else None, ordering) == merge


def test_commits_between_which_another_one_completed_are_read_apart() -> None:
    """A compaction holds one version of a row, perhaps that of a commit that is not asked for."""
    names = [
        f"2026010100000{begun}000_2026010100000{done}000.{action}"
        for begun, done, action in (
            (0, 1, "deltacommit"),
            (1, 2, "deltacommit"),
            (2, 3, "commit"),
            (1, 4, "clean"),
            (0, 5, "deltacommit"),
            (4, 6, "deltacommit"),
        )
    ]
    names = [name.replace("000_", f"{number:03d}_", 1) for number, name in enumerate(names)]
    timeline = tl.parse(names)
    writes = [i for i in timeline.completed if i.action == "deltacommit"]

    def pieces(*numbers: int) -> list[list[str]]:
        taken = [writes[number] for number in numbers]
        return [
            [i.completion[12:14] for i in piece]
            for piece in _runs(_span(timeline, taken), {i.requested for i in taken})
        ]

    assert pieces(0, 1, 2, 3) == [["01", "02"], ["05", "06"]]
    assert pieces(3, 0) == [["01"], ["06"]]
    assert pieces(1) == [["02"]]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            Found("there is no such class in this image"),
            "spec.merge.custom.className = 'x.Own': there is no such class in this image",
        ),
        (
            Found(strategy_id="9999", records="SPARK"),
            "spec.merge.custom.strategyId = '7d6a': class x.Own returns '9999' (getMergingStrategy)",
        ),
        (
            Found(strategy_id="7d6a", records="AVRO"),
            "spec.merge.custom.className = 'x.Own': it merges records of type AVRO, SPARK is needed",
        ),
        (Found(strategy_id="7d6a", records="SPARK"), ""),
    ],
)
def test_a_class_that_merges_is_what_the_table_needs(found: Found, words: str) -> None:
    """Hudi itself looks when the instant is begun."""
    said = fault(Merge("Custom", strategy_id="7d6a", class_name="x.Own"), found, where="spec.merge.custom")
    assert said.startswith(words) if words else said == ""
