"""Statements and writes of a program, drawn at random, leave the rows that SQL says, or are refused
and change nothing.

What was found one by one (F281-F313) are statements that succeed and do something else; here nobody
has to think of the statement. A seed that fails becomes a case of `test_values.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import seeds
from tests.support.harness.local import AGENT, Process, World, until
from tests.support.harness.refused_values import SCHEMA

STEPS = 60
TABLES: dict[str, dict[str, Any]] = {
    "cow": {"type": "CopyOnWrite"},
    "mor": {"type": "MergeOnRead"},
    "mor-bucket": {"type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 2}},
    "cow-bucket": {"type": "CopyOnWrite", "index": {"type": "Bucket", "buckets": 2}},
}


@pytest.mark.extra
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind", TABLES)
def test_a_statement_does_what_it_says_or_nothing(world: World, agent: Process, kind: str) -> None:
    seed = seeds.drawn()
    print(f"{seeds.VARIABLE}={seed}")
    table = world.table(f"random-{kind}", **TABLES[kind])
    world.create(table, agent=AGENT, process=agent)
    results = world.folder / f"random-{kind}.json"
    main = Path(__file__).with_name("apps") / "random_app.py"
    arguments = [str(seed), str(STEPS), str(results)]
    program = table.writer("program", application={"mainFile": str(main), "arguments": arguments})
    assert program.wait() == 0, program.log()[-6000:]
    told = json.loads(results.read_text())
    assert told["wrong"] is None, f"seed {seed}: {json.dumps(told['wrong'], indent=1)}"
    # Nothing is shown by a program whose statements are all refused.
    assert set(told["succeeded"]) >= {"merge", "update", "delete", "insert", "save upsert"}, told
    until("what was refused is rolled back", lambda: not table.pending(), alive=agent)
    table.audited([tuple(row) for row in told["rows"]], schema=SCHEMA)
