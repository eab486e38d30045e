"""Declared partitions are kept: what else a batch holds is refused before an instant
is begun (R42).
"""

from __future__ import annotations

import pytest

from tests.support.harness.local import AGENT, Process, World, rows

pytestmark = pytest.mark.extra


def test_rows_of_another_partition_are_refused(world: World, agent: Process) -> None:
    """The refused batch leaves nothing behind.

    A source that gives other rows when it is computed again is caught in the write.
    """
    table = world.table("declared")
    world.create(table, agent=AGENT, process=agent)
    good = rows(range(5), "2026-01-30", "good", 1)
    bad = [*rows(range(5, 9), "2026-01-31", "bad", 1), *rows([9], "2026-02-01", "bad", 1)]
    first = table.writer("january", partitions=["2026-01-*"], python={"batches": [{"rows": good}, {"rows": bad}]})
    assert first.wait() == 10, first.log()[-4000:]
    told = first.termination()
    assert told["class"] == "PartitionNotDeclared"
    assert told["message"] == (
        "partition 2026-02-01: the batch has rows in it, but spec.partitions of the HudiWriter declares only 2026-01-*"
    )
    assert told["commits"] == 1
    assert not table.pending()
    assert len(table.timeline().completed) == 1
    assert not first.protocol("abandon"), "no instant was begun for it"
    second = world.folder / "second-time"
    moody = table.writer(
        "moody", partitions=["2026-01-*"], function="another_partition_the_second_time", python={"marker": str(second)}
    )
    assert moody.wait() == 10, moody.log()[-4000:]
    assert moody.termination()["class"] == "PartitionNotDeclared"
    assert "partition 2026-03-01: the batch has rows in it" in moody.termination()["message"]
    assert len(moody.protocol("abandon")) == 1
    nulls = table.writer("nulls", partitions=["2026-01-*"], python={"batches": [{"rows": [(11, None, "null", 1)]}]})
    assert nulls.wait() == 10, nulls.log()[-4000:]
    assert "partition __HIVE_DEFAULT_PARTITION__: " in nulls.termination()["message"]
    table.audited(good)


def test_dates_are_paths_as_hudi_writes_them(world: World, agent: Process) -> None:
    """The check reads a row's partition as Hudi does, for each type that it takes."""
    for kind, value, path in (("date", "2026-01-31", "2026-01-31"), ("boolean", "true", "true"), ("int", "7", "7")):
        table = world.table(f"declared-{kind}")
        world.create(table, agent=AGENT, process=agent)
        batch = {"rows": [[1, value, "v", 1]], "schema": "id int, p string, v string, ts long"}
        writer = table.writer(
            "w",
            partitions=[path],
            transform=f"SELECT id, cast(p AS {kind}) AS p, v, ts FROM source",
            python={"batches": [batch]},
        )
        assert writer.wait() == 0, writer.log()[-4000:]
        assert {file.rpartition("/")[0] for file in table.data_files()} == {path}
