"""Which tables RemoveDuplicates leaves alone, and what it says of them (F68)."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_runtime.job.job import TableSpec
from hudi_runtime.job.merging import Merge
from hudi_runtime.read import remove_duplicates


@pytest.mark.parametrize(
    ("changes", "index", "said"),
    [
        ({}, "", ""),
        ({}, "BLOOM", ""),
        ({}, "BUCKET", "index.type BUCKET"),
        ({}, "GLOBAL_BLOOM", "index.type GLOBAL_BLOOM"),
        ({"merge": Merge("Custom", class_name="x.Y")}, "", "merge.mode Custom"),
        ({"merge": Merge("CommitTime", ignores_nulls=True)}, "", "merge.partialUpdates IgnoreNulls"),
        ({"record_keys": ()}, "", "no recordKeyFields"),
    ],
)
def test_a_table_that_it_cannot_be_done_with_is_named(changes: dict[str, Any], index: str, said: str) -> None:
    table = {"record_keys": ("id",), "partitions": ("p",), "ordering": ("ts",), "merge": Merge("EventTime")} | changes
    found = remove_duplicates.fault(
        TableSpec(
            id="id", table="ns/t", name="t", path="s3a://lake/t", type="MERGE_ON_READ", hive_style=False, **table
        ),
        index,
    )
    assert said in found
    assert bool(said) == bool(found)
