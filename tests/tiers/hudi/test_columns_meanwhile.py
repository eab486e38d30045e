"""A column comes into a table while a program writes: from another writer, after the program's
statement was compared with the table, or from the program itself, whose write is passed by a
shorter one. Nobody's values are hidden or lost, and what was refused succeeds when it is done again
(F365).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness.compactions import OFF
from tests.support.harness.local import AGENT, Process, World
from tests.support.harness.told import Told
from tests.support.oracle import not_seen

Own = dict[int, list[Any]]
"""Rows by id: v, and the columns that came later."""
KINDS: dict[str, dict[str, Any]] = {
    "cow": {"type": "CopyOnWrite"},
    "mor": {"type": "MergeOnRead"},
    "non-blocking": {
        "type": "MergeOnRead",
        "index": {"type": "Bucket", "buckets": 1},
        "concurrency": {"mode": "NonBlocking"},
    },
}
NAMED = "spark.sql('DROP TABLE IF EXISTS t')\nspark.sql(f\"CREATE TABLE t USING hudi LOCATION '{path}'\")"
ANALYSED = """
state = spark._jsparkSession.sessionState()
modes = spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode
statement = state.executePlan(state.sqlParser().parsePlan(TEXT), modes.ALL())
statement.assertAnalyzed()
pause(GATE)
statement.commandExecuted()
"""
"""What `spark.sql` does, with a pause between the checks of a statement and what it does."""
MERGED = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
TURNS = [
    *((way, "analysed") for way in ("MERGE", "UPDATE", "DELETE")),
    *((way, "writing") for way in ("MERGE", "UPDATE")),
    ("save", "passed"),
]
"""What the program does, and where it waits while the other writer commits: that writer brings a
column, but for the last turn, in which the program does.
"""
TOLD = ("", "WriteConflict", "SchemaMismatch")
"""Classes of errors that say it. Hudi compares the columns of all but `MERGE INTO` itself when it
begins to write.
"""


def piece(way: str, window: str, gate: str, ts: int, names: list[str]) -> str:
    """The program's part of a turn. ``names``: the table's columns beside id, p, v and ts."""
    values = "".join(f", 'm' AS {name}" for name in names)
    where = f"pause('{gate}', id)" if window == "writing" else "id > 0"
    if way == "save":
        own = f"IF(pause('{gate}', id), 'm', NULL) AS {gate.replace('gate', 'c')}"
        query = f"SELECT CAST(id AS INT) AS id, 'a' AS p, 'new' AS v, {ts}L AS ts{values}, {own} FROM range(1, 2)"
        return f"save({query!r})"
    one = f"(SELECT CAST(id AS INT) AS id, 'a' AS p, 'new' AS v, {ts}L AS ts{values} FROM range(1, 2) WHERE {where})"
    text = {
        "MERGE": f"MERGE INTO t USING {one} s ON t.id = s.id AND t.p = s.p {MERGED}",
        "UPDATE": f"UPDATE t SET v = 'new', ts = {ts}L WHERE p = 'a' AND id = 1 AND {where}",
        "DELETE": f"DELETE FROM t WHERE p = 'a' AND id = 2 AND {where}",
    }[way]
    return (
        ANALYSED.replace("TEXT", repr(text)).replace("GATE", repr(gate))
        if window == "analysed"
        else f"spark.sql({text!r})"
    )


def applied(way: str, own: Own, columns: int) -> Own:
    """The rows after that, of a program that has known so many columns."""
    done = {id: list(row) for id, row in own.items()}
    if way == "UPDATE":
        done[1][0] = "new"
    elif way == "DELETE":
        del done[2]
    else:
        done[1] = ["new", *["m"] * columns, *[None] * (len(own[1]) - 1 - columns)]
    return done


def wider(rows: Own) -> Own:
    """With null in one more column."""
    return {id: [*row, None] for id, row in rows.items()}


@pytest.mark.extra
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_no_value_of_it_is_lost(world: World, agent: Process, kind: str) -> None:
    table = world.table(f"meanwhile-{kind}", **KINDS[kind], services=OFF)
    world.create(table, agent=AGENT, process=agent)
    program, other = Told(table, "program"), Told(table, "other")
    columns: list[str] = []

    def save(p: str, v: str, ts: int, last: int) -> str:
        more = "".join(f", nullif('{v}', '') AS {name}" for name in columns)
        query = f"SELECT CAST(id AS INT) AS id, '{p}' AS p, '{v}' AS v, {ts}L AS ts{more} FROM range(1, {last + 1})"
        return f"save({query!r})"

    def found(p: str) -> Own:
        frame = world.spark().read.format("hudi").load(table.path).where(f"p = '{p}'")
        hidden = [name for name in columns if name not in frame.columns]
        if hidden:
            return {0: ["hidden", *hidden]}
        return {row[0]: list(row[1:]) for row in frame.select("id", "v", *columns).collect()}

    assert not program.run(save("a", "x", 1, 4))
    assert not other.run(save("b", "y", 1, 2))
    own: Own = {id: ["x"] for id in range(1, 5)}
    for number, (way, window) in enumerate(TURNS):
        gate, new, ts, known = f"gate{number}", f"c{number}", 10 * (number + 1), len(columns)
        assert not program.run(NAMED)
        begun = program.begin(piece(way, window, gate, ts, columns))
        assert program.reached(gate, begun), program.said(begun)
        if way != "save":
            columns.append(new)
            own = wider(own)
        assert not other.run(save("b", f"y{number}", ts, 2))
        of_others: Own = {id: [f"y{number}"] * (len(columns) + 1) for id in (1, 2)}
        program.open(gate)
        (said, _), error = program.said(begun), program.kind(begun)
        print(f"MEANWHILE {kind} {way} {window}: {error or 'succeeded'} {said[:400]}", flush=True)
        if said:
            assert error in TOLD, said
            assert (found("a"), found("b")) == (own, of_others), said
            assert not program.run(NAMED)
            assert not program.run(piece(way, window, gate, ts, columns))
            known = len(columns)
        if way == "save":
            columns.append(new)
            known, own, of_others = known + 1, wider(own), wider(of_others)
        own = applied(way, own, known)
        assert (found("a"), found("b")) == (own, of_others)
        if way == "DELETE":
            assert not other.run(save("a", "x", ts, 2))
            own |= {id: ["x"] * (len(columns) + 1) for id in (1, 2)}
    for one in (program, other):
        one.end()
    compared = {"rows": "its rows are compared after each turn"}
    table.audited(None, without=compared | not_seen("hudi-rs", "incremental", "overlap"))
