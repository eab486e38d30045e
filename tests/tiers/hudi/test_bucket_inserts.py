"""Inserts and bulk inserts into buckets that have rows already: a bucket stays one file group, and
no row is hidden.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness.local import AGENT, Process, World, rows
from tests.support.oracle import not_seen

pytestmark = pytest.mark.extra


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("copy", {"index": {"type": "Bucket", "buckets": 1}}),
        ("merge", {"type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 1}}),
        (
            "free",
            {"type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 1}, "concurrency": {"mode": "NonBlocking"}},
        ),
    ],
)
def test_rows_are_inserted_into_the_bucket_that_is_there(
    world: World, agent: Process, name: str, spec: dict[str, Any]
) -> None:
    """F75: a bulk insert is refused and commits nothing.

    Inserts go to the bucket's one file group, and an upsert finds all of them.
    """
    table = world.table(f"bucket-{name}", **spec)
    world.create(table, agent=AGENT, process=agent)
    bulk = table.writer("bulk", operation="bulk_insert", python={"batches": [{"rows": rows(range(5), "a", "bulk", 1)}]})
    assert bulk.wait() == 10, bulk.log()[-4000:]
    told = bulk.termination()
    assert told["class"] == "OptionNotAllowed"
    assert "hoodie.datasource.write.operation = 'bulk_insert'" in told["message"], told
    for number in range(2):
        batch = rows(range(5 * number, 5 * number + 5), "a", "old", 1)
        writer = table.writer(f"insert-{number}", operation="insert", python={"batches": [{"rows": batch}]})
        assert writer.wait() == 0, writer.log()[-4000:]
    last = table.writer("last", python={"batches": [{"rows": rows(range(3, 8), "a", "new", 2)}]})
    assert last.wait() == 0, last.log()[-4000:]
    due = [*rows([0, 1, 2, 8, 9], "a", "old", 1), *rows(range(3, 8), "a", "new", 2)]
    table.audited(due, without=not_seen("origin", "hudi-rs", "stray", "incremental", "late", "overlap"))
