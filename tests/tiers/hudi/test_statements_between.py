"""Deletes and updates of a program, in each way that SQL and a save have, while another writer
commits between what they read and what they write: what is left is what one of the two orders would
have left, or the program is told of a conflict and has changed nothing.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness.compactions import OFF
from tests.support.harness.local import AGENT, Process, Table, World, until
from tests.support.harness.told import Told

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
KEYS = "p = '{p}' AND id <= 3 AND pause('{p}', id)"
STATEMENTS = {
    "DELETE": f"DELETE FROM t WHERE {KEYS}",
    "with an alias": f"DELETE FROM t AS x WHERE {KEYS}",
    "of a view": f"DELETE FROM seen WHERE {KEYS}",
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
}
SAVES = {
    "save": ("SELECT CAST(id AS INT) AS id, '{p}' AS p FROM few WHERE pause('{p}', id)", "delete"),
    "save of doubled rows": ("SELECT 1 + id % 3 AS id, '{p}' AS p FROM range(9) WHERE pause('{p}', id)", "delete"),
    "save with other columns": (
        "SELECT CAST(id AS INT) AS id, '{p}' AS p, 'z' AS v, 7 AS more FROM few WHERE pause('{p}', id)",
        "delete",
    ),
    "save of its own rows": (f"SELECT id, p, v, ts FROM t WHERE {KEYS}", "delete"),
    "save of marked rows": (f"SELECT id, p, v, ts, true AS _hoodie_is_deleted FROM t WHERE {KEYS}", "upsert"),
}


def left(world: World, table: Table, p: str) -> list[tuple[Any, ...]]:
    rows = world.spark().read.format("hudi").load(table.path).where(f"p = '{p}'").select("id", "v", "ts").collect()
    return sorted(tuple(row) for row in rows)


def allowed(way: str, said: str, ts: int | None) -> list[list[tuple[Any, ...]]]:
    """What may be left. ``ts``: the ordering value of the other writer's rows; None: there is none.

    The other writer upserts 1, deletes 2, and adds 6.
    """
    own = {id: (id, "x", 5) for id in range(1, 6)}
    done = {id: (id, "u", 15) for id in (1, 2, 3)} if "UPDATE" in way else {}
    kept = {id: own[id] for id in (4, 5)}
    if ts is None:
        return [sorted((own if said else kept | done).values())]
    more = {6: (6, "o", ts)}
    first = {1: (1, "o", ts) if ts >= 5 else own[1]} | {3: own[3]} | kept | more
    if said:
        return [sorted(first.values())]
    after = kept | more | ({id: done[id] for id in (1, 3)} if done else {})
    if done:
        after[1] = (1, "u", max(ts, 5) + 10)
        return [sorted(after.values()), sorted((after | {1: done[1]}).values())]
    return [sorted(after.values()), sorted((kept | more | {1: (1, "o", ts)}).values())]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_one_order_or_a_conflict(world: World, agent: Process, kind: str) -> None:
    table = world.table(f"between-{kind}", **KINDS[kind], services=OFF)
    world.create(table, agent=AGENT, process=agent)
    program, other = Told(table, "program"), Told(table, "other")
    turns = [(way, ts) for way in (*STATEMENTS, *SAVES) for ts in (None, 9)]
    turns += [(way, ts) for way in ("DELETE", "UPDATE", "save") for ts in (5, 3)]
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
        met = None
        if ts is not None and program.reached(p, number):
            rows = f"SELECT 1 AS id, '{p}' AS p, 'o' AS v, {ts}L AS ts UNION ALL SELECT 6, '{p}', 'o', {ts}L"
            assert not other.run(f"save({rows!r})")
            gone = f"SELECT 2 AS id, '{p}' AS p"
            assert not other.run(f"save({gone!r}, 'delete')")
            program.open(p)
            met = ts
        said, _ = program.said(number)
        found = left(world, table, p)
        right = found in allowed(way, said, met)
        print(f"BETWEEN {kind} {way} ({ts}, {met}): {said[:200] or 'succeeded'}: {right} {found}", flush=True)
        if not right:
            wrong.append((way, ts, said[:300], found))
    assert not wrong, wrong
    for one in (program, other):
        one.end()
    until("what was refused is rolled back", lambda: not table.pending(), alive=agent)
    table.audited([], only=("unique", "origin", "files", "stray", "owners", "metadata", "late"))
