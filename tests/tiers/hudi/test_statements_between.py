"""Deletes, updates and merges of a program, in each way that SQL and a save have, while another
writer commits between what they read and what they write: what is left is what one of the two
orders would have left, or the program is told of a conflict, by its class, and has changed nothing.
Any other error fails the test, but for the ways that are always refused (`REFUSED`).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness.compactions import OFF
from tests.support.harness.local import AGENT, Process, Table, World, until
from tests.support.harness.told import Told
from tests.support.oracle import not_seen

pytestmark = pytest.mark.extra
KINDS: dict[str, dict[str, Any]] = {
    "cow": {"type": "CopyOnWrite"},
    "mor": {"type": "MergeOnRead"},
    "cow-bucket": {"type": "CopyOnWrite", "index": {"type": "Bucket", "buckets": 1}},
    "mor-bucket": {"type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 1}},
    "non-blocking": {
        "type": "MergeOnRead",
        "index": {"type": "Bucket", "buckets": 1},
        "concurrency": {"mode": "NonBlocking"},
    },
}
CONFLICT = "WriteConflict"
Rows = list[tuple[Any, ...]]
KEYS = "p = '{p}' AND id <= 3 AND pause('{p}', id)"
NAMED = "(SELECT CAST(id AS INT) AS id, '{p}' AS p, 'u' AS v, 15L AS ts FROM few WHERE pause('{p}', id)) s"
STATEMENTS = {
    "DELETE": f"DELETE FROM t WHERE {KEYS}",
    "with an alias": f"DELETE FROM t AS x WHERE {KEYS}",
    "of a view": f"DELETE FROM seen WHERE {KEYS}",
    "of a view by a query": "DELETE FROM seen WHERE p = '{p}' AND id IN (SELECT id FROM few WHERE pause('{p}', id))",
    "by chance": f"DELETE FROM t WHERE {KEYS} AND rand() < 2",
    "by a query on itself": f"DELETE FROM t WHERE p = '{{p}}' AND id IN (SELECT id FROM t WHERE {KEYS} AND v = 'x')",
    "by its greatest key": f"DELETE FROM t WHERE {KEYS} AND id < (SELECT max(id) FROM t WHERE p = '{{p}}')",
    "where it exists": (
        "DELETE FROM t WHERE p = '{p}' AND EXISTS (SELECT 1 FROM few s WHERE s.id = t.id AND pause('{p}', s.id))"
    ),
    "where it exists in itself": (
        f"DELETE FROM t WHERE p = '{{p}}' AND EXISTS (SELECT 1 FROM t u WHERE u.id = t.id AND u.{KEYS})"
    ),
    "UPDATE": f"UPDATE t SET v = 'u', ts = ts + 10 WHERE {KEYS}",
    "UPDATE by a query on itself": (
        f"UPDATE t SET v = 'u', ts = ts + 10 WHERE p = '{{p}}' AND id IN (SELECT id FROM t WHERE {KEYS})"
    ),
    "MERGE": (
        f"MERGE INTO t USING {NAMED} ON t.id = s.id AND t.p = s.p "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ),
    "MERGE of itself, an UPDATE": (
        f"MERGE INTO t USING (SELECT id, p, 'u' AS v, ts + 10 AS ts FROM t WHERE {KEYS}) s "
        "ON t.id = s.id AND t.p = s.p WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ),
    "MERGE that deletes": f"MERGE INTO t USING {NAMED} ON t.id = s.id AND t.p = s.p WHEN MATCHED THEN DELETE",
}
MARKED = "save of marked rows"
SAVES = {
    "save": ("SELECT CAST(id AS INT) AS id, '{p}' AS p FROM few WHERE pause('{p}', id)", "delete"),
    "save of doubled rows": ("SELECT 1 + id % 3 AS id, '{p}' AS p FROM range(9) WHERE pause('{p}', id)", "delete"),
    "save with other columns": (
        "SELECT CAST(id AS INT) AS id, '{p}' AS p, 'z' AS v, 7 AS more FROM few WHERE pause('{p}', id)",
        "delete",
    ),
    "save of its own rows": (f"SELECT id, p, v, ts FROM t WHERE {KEYS}", "delete"),
    MARKED: (f"SELECT id, p, v, ts, id > 0 AS _hoodie_is_deleted FROM t WHERE {KEYS}", "upsert"),
}
REFUSED = {
    "of a view": "Unexpected table relation: BatchEvalPython",
    "of a view by a query": "UNSUPPORTED_FEATURE.TABLE_OPERATION",
}
"""Ways that Spark never carries out, with a part of its message."""
ALONE = ("with an alias", "by its greatest key", "where it exists in itself", "save of doubled rows")
"""Twins of others in what they read and write: they are not disturbed."""


def left(world: World, table: Table, p: str) -> Rows:
    rows = world.spark().read.format("hudi").load(table.path).where(f"p = '{p}'").select("id", "v", "ts").collect()
    return sorted(tuple(row) for row in rows)


def allowed(way: str, said: str, ts: int | None) -> list[Rows]:
    """What may be left. ``ts``: the ordering value of the other writer's rows; None: there is none.

    The other writer upserts 1, deletes 2, and adds 6.
    """
    own = {id: (id, "x", 5) for id in range(1, 6)}
    updates = "UPDATE" in way or way == "MERGE"
    done = {id: (id, "u", 15) for id in (1, 2, 3)} if updates else {}
    kept = {id: own[id] for id in (4, 5)}
    if ts is None:
        return [sorted((own if said else kept | done).values())]
    more = {6: (6, "o", ts)}
    first = {1: (1, "o", ts) if ts >= 5 else own[1]} | {3: own[3]} | kept | more
    if said:
        return [sorted(first.values())]
    if way == "MERGE":  # it inserts what it does not find
        found = [kept | more | done, kept | more | {id: done[id] for id in (1, 3)}]
    elif updates:
        after = kept | more | {3: done[3]}
        found = [after | {1: (1, "u", max(ts, 5) + 10)}, after | {1: done[1]}]
    else:
        found = [kept | more, kept | more | {1: (1, "o", ts)}]
    return [sorted(one.values()) for one in found]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind_of_table", KINDS)
def test_one_order_or_a_conflict(world: World, agent: Process, kind_of_table: str) -> None:
    table = world.table(f"between-{kind_of_table}", **KINDS[kind_of_table], services=OFF)
    world.create(table, agent=AGENT, process=agent)
    program, other = Told(table, "program"), Told(table, "other")
    ways = [way for way in (*STATEMENTS, *SAVES) if way != MARKED]
    turns: list[tuple[str, int | None]] = [(way, None) for way in ways]
    turns += [(way, 9) for way in ways if way not in (*REFUSED, *ALONE)]
    turns += [("DELETE", 3), ("UPDATE", 5), ("save", 3)]
    # Last, for the table has the mark's column from then on.
    turns += [(MARKED, None), (MARKED, 9)]
    parts = {turn: f"p{number}" for number, turn in enumerate(turns)}
    query = (
        "SELECT CAST(i.id AS INT) AS id, concat('p', q.id) AS p, 'x' AS v, 5L AS ts "
        f"FROM range(1, 6) i CROSS JOIN range({len(turns)}) q"
    )
    assert not program.run(f"save({query!r})")
    assert not program.run(
        "spark.sql(f\"CREATE TABLE t USING hudi LOCATION '{path}'\")\n"
        "spark.sql('CREATE TEMPORARY VIEW seen AS SELECT * FROM t')\n"
        "spark.range(1, 4).createOrReplaceTempView('few')"
    )
    wrong = []
    for (way, ts), p in parts.items():
        if ts is None:
            program.open(p)
        text = (STATEMENTS[way] if way in STATEMENTS else SAVES[way][0]).replace("{p}", p)
        number = program.begin(f"spark.sql({text!r})" if way in STATEMENTS else f"save({text!r}, {SAVES[way][1]!r})")
        disturbed = ts is not None and program.reached(p, number)
        if disturbed:
            # Hudi refuses rows without a column that the table has.
            mark = ", CAST(NULL AS BOOLEAN) AS _hoodie_is_deleted" if way == MARKED else ""
            rows = f"SELECT id, '{p}' AS p, 'o' AS v, {ts}L AS ts{mark} FROM VALUES (1), (6) AS of(id)"
            assert not other.run(f"save({rows!r})")
            gone = f"SELECT 2 AS id, '{p}' AS p"
            assert not other.run(f"save({gone!r}, 'delete')")
            program.open(p)
        (said, _), kind = program.said(number), program.kind(number)
        found = left(world, table, p)
        right = disturbed == (ts is not None) and found in allowed(way, said, ts)
        if way in REFUSED:
            right = right and REFUSED[way] in said
        else:
            right = right and kind in ("", CONFLICT if disturbed else "")
        print(f"BETWEEN {kind_of_table} {way} ({ts}): {kind or 'succeeded'}: {right} {found} {said[:200]}", flush=True)
        if not right:
            wrong.append((way, ts, kind, said[:300], found))
        if kind == CONFLICT:
            # What the program read before the conflict counts until it reads again (F88).
            assert not program.run("spark.sql('SELECT id FROM t').collect()")
    assert not wrong, wrong
    for one in (program, other):
        one.end()
    until("what was refused is rolled back", lambda: not table.pending(), alive=agent)
    compared = {"rows": "the rows of each statement are compared above"}
    table.audited(None, without=compared | not_seen("hudi-rs", "incremental", "overlap"))
