"""Comparison of Hudi's incremental query with the files: the audit's check `incremental` pulls by
that query, and has no other witness.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hudi_runtime.audit import rows
from tests.support.harness import own_rows

COLUMNS = (own_rows.KEY, own_rows.PARTITION, own_rows.COMMIT_TIME, "id", "p", "v", "ts")


def same(spark: Any, path: str, folder: Path) -> int:
    """Number of pulls that returned exactly the rows that the commits of their range have written:
    one pull of each commit, and one of each two or more that end with the last.

    For tables as `own_rows` can read them. AssertionError with what differs; also when there are no
    two commits.
    """
    ends = [commit.completed for commit in own_rows.commits(folder)]
    assert len(ends) > 1, f"{folder}: {len(ends)} commits have written rows"
    starts = [rows.BEGINNING, *ends[:-1]]
    ranges = [*zip(starts, ends, strict=True), *((start, ends[-1]) for start in starts[:-1])]
    for start, end in ranges:
        with rows.row_reader(spark):
            given = sorted(tuple(row) for row in rows.pull(spark, path, start, end, COLUMNS).select(*COLUMNS).collect())
        due = sorted(tuple(row[column] for column in COLUMNS) for row in own_rows.pulled(folder, start, end))
        assert given == due, f"the pull of ({start}, {end}] gives {given}, the files hold {due}"
    return len(ranges)
