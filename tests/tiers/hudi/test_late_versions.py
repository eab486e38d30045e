"""A version that comes after the deletion of its record, with a smaller ordering value than the
deleted row, brings nothing back (F326).

Hudi's own deletion in a log file has no ordering value. A late version replaced it, lost against
the row of the base file, and that row was there again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_runtime.table.timeline import State
from tests.support.harness.compactions import EAGER, OFF, compaction
from tests.support.harness.in_its_write import done
from tests.support.harness.local import AGENT, Process, World, rows, until

APP = Path(__file__).parent / "apps" / "deletes_app.py"
FIRST = [*rows([0, 1, 2, 4], "a", "first", 5), *rows([3], "a", "third", 5), *rows([1], "b", "first", 5)]
STAYS = [*rows([0], "a", "first", 5), *rows([1], "b", "first", 5)]


CODE = """
def rows(spark, context):
    fields = (
        "'a' AS id, CAST({} AS BIGINT) AS n, DATE'2026-01-02' AS day, TIMESTAMP'2026-01-02 03:04:05' AS at, "
        "CAST({} AS INT) AS seq, CAST(1.5 AS DECIMAL(9,2)) AS d, named_struct('x', 1) AS s, CAST({} AS DOUBLE) AS w"
    )
    yield spark.sql(" UNION ALL ".join("SELECT " + fields.format(*row) for row in context.arguments["rows"]))
"""


@pytest.mark.extra
@pytest.mark.parametrize("index", ["Simple", "Bucket"])
def test_a_late_version_brings_no_deleted_row_back(world: World, index: str) -> None:
    """Whoever has deleted it, and whatever ordering value the deletion itself has."""
    spec: dict[str, Any] = {"index": {"type": index, **({"buckets": 2} if index == "Bucket" else {})}}
    name, agent = f"late-{index.lower()}", f"agent-late-{index.lower()}"
    process = world.agent(agent, pod=f"{agent}-1")
    table = world.table(name, type="MergeOnRead", services=OFF, **spec)
    world.create(table, agent=agent, process=process, pod=f"{agent}-1")
    done(table.writer("first", python={"batches": [{"rows": FIRST}]}))
    done(table.writer("delete", operation="delete", python={"batches": [{"rows": rows([1, 9], "a", "", 1)}]}))
    program = table.writer("program", application={"mainFile": str(APP), "arguments": []})
    assert program.wait() == 0, program.log()[-4000:]
    table.audited(STAYS)

    late = rows([1, 2, 3, 4], "a", "late", 3)
    done(table.writer("late", python={"batches": [{"rows": late}]}))
    table.audited(STAYS)
    newer = rows([1, 2], "a", "newer", 7)
    done(table.writer("newer", python={"batches": [{"rows": newer}]}))
    table.audited([*STAYS, *newer])

    eager = world.table(name, type="MergeOnRead", services=EAGER, **spec)
    eager.assign(agent)
    done(eager.writer("last", python={"batches": [{"rows": rows([8], "a", "last", 1)}]}))
    until("it is compacted", lambda: compaction(eager, State.COMPLETED), alive=process)
    until("nothing is pending", lambda: not eager.pending(), alive=process)
    eager.audited([*STAYS, *newer, *rows([8], "a", "last", 1)])


@pytest.mark.extra
@pytest.mark.parametrize("partitioned", [True, False])
def test_whatever_the_columns_are(world: World, agent: Process, partitioned: bool) -> None:
    """Two key columns, no text column, and one that holds a struct; two ordering columns where no
    statement is needed: Hudi's SQL does not find several.
    """
    name = f"late-columns-{partitioned}".lower()
    table = world.table(
        name,
        type="MergeOnRead",
        services=OFF,
        recordKeyFields=["id", "n"],
        partitionFields=["day"] if partitioned else [],
        hiveStylePartitioning=partitioned,
        orderingFields=["at", "seq"] if partitioned else ["seq"],
    )
    world.create(table, agent=AGENT, process=agent)
    code = world.folder / f"{name}.py"
    code.write_text(CODE)

    def write(writer: str, operation: str, batch: list[tuple[int, int, float]]) -> None:
        done(table.writer(writer, operation=operation, file=code, function="rows", python={"rows": batch}))

    def found() -> set[tuple[Any, ...]]:
        rows = world.spark().read.format("hudi").load(table.path).select("id", "n", "seq", "w").collect()
        return {tuple(row) for row in rows}

    write("first", "upsert", [(n, 5, 0.0) for n in range(4)])
    if partitioned:
        write("delete", "delete", [(0, 1, 9.0), (1, 6, 0.0), (7, 1, 9.0)])
    else:
        statements = ["DELETE FROM t WHERE n IN (SELECT 1L)", "DELETE FROM t WHERE s.x = 1 AND n = 0"]
        program = table.writer("program", application={"mainFile": str(APP), "arguments": statements})
        assert program.wait() == 0, program.log()[-4000:]
    stays = {("a", 2, 5, 0.0), ("a", 3, 5, 0.0)}
    assert found() == stays
    write("late", "upsert", [(0, 3, 1.0), (1, 4, 1.0)])
    assert found() == stays
    write("equal", "upsert", [(0, 5, 1.0), (1, 6, 1.0)])
    assert found() == {*stays, ("a", 0, 5, 1.0), ("a", 1, 6, 1.0)}
