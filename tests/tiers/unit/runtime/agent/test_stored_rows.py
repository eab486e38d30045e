"""Whether writers of a spec would find the rows that a table has (F631)."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from hudi_runtime.agent import stored_rows
from hudi_runtime.agent.stored_rows import StoredRow
from hudi_runtime.job.job import TableSpec
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import WriteInfo, write_info

SIMPLE = TableSpec(
    "T", "lake/flights", "flights", "s3a://lake/flights", "MERGE_ON_READ", ("id",), ("p",), ("ts",), hive_style=False
)
NONE = replace(SIMPLE, partitions=())
ONE_OF_TWO = replace(SIMPLE, partitions=("p", "q"))
TWO = replace(SIMPLE, record_keys=("id", "k"))
GROUP = "6f1c0b1e-7f6d-4a53-9a01-5d2ad1c3b2aa-0"


def bucket(number: int) -> str:
    return f"{number:08d}-7f6d-4a53-9a01-5d2ad1c3b2aa-0"


@pytest.mark.parametrize(
    ("spec", "key", "values"),
    [
        (SIMPLE, "7", (7,)),
        (SIMPLE, "a:b,c", ("a:b,c",)),
        (SIMPLE, "id:7", ("id:7",)),
        (SIMPLE, "true", (True,)),
        (SIMPLE, "20089", (date(2025, 1, 1),)),
        (NONE, "x\ny", ("x\ny",)),
        (ONE_OF_TWO, "id:7", (7,)),
        (TWO, "id:a,k:1", ("a", 1)),
        (TWO, "id:__empty__,k:20089", ("", date(2025, 1, 1))),
        (TWO, "id:__null__,k:b", (None, "b")),
    ],
)
def test_keys_as_the_writers_of_the_spec_make_them(spec: TableSpec, key: str, values: tuple[object, ...]) -> None:
    assert stored_rows.key_problems(spec, [StoredRow(key, GROUP, values)]) == []


@pytest.mark.parametrize(
    ("spec", "key", "values", "form"),
    [
        (ONE_OF_TWO, "7", (7,), "id:7"),
        (ONE_OF_TWO, "20089", (date(2025, 1, 1),), "id:…"),
        (SIMPLE, "id:7", (7,), "7"),
        (SIMPLE, "id:20089", (date(2025, 1, 1),), "id"),
        (TWO, "k:1,id:a", ("a", 1), "id:a,k:1"),
        (TWO, "a", ("a", 1), "id:a,k:1"),
    ],
)
def test_keys_of_another_form(spec: TableSpec, key: str, values: tuple[object, ...], form: str) -> None:
    (said,) = stored_rows.key_problems(spec, [StoredRow(key, GROUP, values)])
    assert said.startswith("recordKeyFields: ")
    assert f"of the form {form!r}" in said
    assert repr(key) in said


def test_a_row_lies_where_its_key_is_looked_for() -> None:
    """A table of 8 buckets whose HudiTable says 16: none of its buckets is too great."""
    groups = [bucket(number) for number in range(8)]
    rows = [StoredRow(f"k{number}", bucket(number), bucket=number) for number in range(8)]
    assert stored_rows.index_problems(16, groups, rows) == []
    rows[5] = replace(rows[5], bucket=13)
    (said,) = stored_rows.index_problems(16, groups, rows)
    assert said.startswith("index: spec has 16 buckets, of which the row with the key 'k5' belongs to bucket 13, ")
    assert "table has it in bucket 5" in said


def test_the_rows_tell_the_index_when_the_last_write_has_no_files() -> None:
    rows = [StoredRow("k", bucket(3), bucket=None)]
    (said,) = stored_rows.index_problems(0, (), rows)
    assert "table has a bucket index" in said
    (said,) = stored_rows.index_problems(4, (), [StoredRow("k", GROUP, bucket=1)])
    assert "which is not one of a bucket index" in said
    assert stored_rows.index_problems(0, (), [*rows, StoredRow("k", GROUP)]) == [], "a random name may look like one"
    assert stored_rows.index_problems(4, (), ()) == [], "a table without rows has any index"


def test_a_key_is_cut_in_a_message() -> None:
    (said,) = stored_rows.key_problems(ONE_OF_TWO, [StoredRow("x" * 5000, GROUP, ("x" * 5000,))])
    assert len(said) < 500


LOG = ".6f1c0b1e-7f6d-4a53-9a01-5d2ad1c3b2aa-0_20260101000000001.log.1_0-1-1"


def write(requested: str, completion: str, path: str, *, inserts: int = 0) -> tuple[tl.Instant, WriteInfo]:
    stat = {"partitionPath": "a", "fileId": GROUP, "path": f"a/{path}", "numInserts": inserts}
    info = write_info({"partitionToWriteStats": {"a": [stat]}, "operationType": "UPSERT"})
    return tl.Instant(requested, "deltacommit", tl.State.COMPLETED, completion), info


def test_rows_that_are_in_log_files_only() -> None:
    t1, t2, t3, t4 = (f"2026010100000000{number}" for number in range(1, 5))
    inserted = write(t1, t2, LOG, inserts=3)
    assert stored_rows.only_in_logs([write(t1, t2, LOG)]) == (), "updates of rows in a base file"
    assert stored_rows.only_in_logs([inserted]) == (GROUP,)
    assert stored_rows.only_in_logs([inserted, write(t3, t4, "x.parquet")]) == (), "compacted"
    assert stored_rows.only_in_logs([write(t2, t3, LOG, inserts=1), write(t1, t4, "x.parquet")]) == (GROUP,), (
        "the compaction was planned before"
    )
    gone = replace(inserted[1], replaced=frozenset({("a", GROUP)}), inserted_in_logs=frozenset())
    assert stored_rows.only_in_logs([inserted, (inserted[0], gone)]) == ()
    (said,) = stored_rows.log_problems(SIMPLE, 0, (GROUP,))
    assert GROUP in said
    assert "compact it" in said
    assert stored_rows.log_problems(SIMPLE, 4, (GROUP,)) == [], "a bucket index looks into log files"
    assert stored_rows.log_problems(SIMPLE, 0, ()) == []
