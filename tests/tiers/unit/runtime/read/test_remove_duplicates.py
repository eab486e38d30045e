"""Which tables RemoveDuplicates leaves alone, and what it says of them (F68)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_runtime.job.job import TableSpec
from hudi_runtime.job.merging import Merge
from hudi_runtime.read import progress as pg
from hudi_runtime.read import remove_duplicates, sources
from hudi_runtime.read.update import Update


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


def test_the_look_before_the_batch_is_the_runtimes(monkeypatch: pytest.MonkeyPatch) -> None:
    """F447: it counts for no try, and each try looks again."""
    open_scopes, looked = list[str](), list[list[str]]()

    @contextmanager
    def looking_up() -> Iterator[None]:
        open_scopes.append("look-up")
        yield
        open_scopes.clear()

    monkeypatch.setattr(remove_duplicates, "require", lambda *_: None)
    monkeypatch.setattr(remove_duplicates, "read", lambda *_: "rows")
    monkeypatch.setattr(remove_duplicates, "once", lambda *_: looked.append(list(open_scopes)) or "one of each")
    monkeypatch.setattr(remove_duplicates, "partitions_of", lambda _: looked.append(list(open_scopes)) or ["a"])
    job: Any = SimpleNamespace(run="r", table=SimpleNamespace(path="s3a://lake/t"))
    spark: Any = None
    (batch,) = sources._doubled(spark, job, pg.Progress(), looking_up)
    assert looked == [["look-up"]]
    assert isinstance(batch.frame, Update)
    rows: Any = None
    assert [batch.frame.rows(rows), batch.frame.rows(rows)] == ["one of each"] * 2
    assert looked == [["look-up"], [], []]
