"""Statements and writes of a program, drawn at random, leave the rows that SQL says, or are refused
and change nothing.

What was found one by one (F281-F313) are statements that succeed and do something else; here nobody
has to think of the statement. A seed that fails becomes a case of `test_values.py`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support import seeds
from tests.support.harness.compactions import EAGER, OFF
from tests.support.harness.local import AGENT, Process, Table, World, until
from tests.support.harness.refused_values import SCHEMA
from tests.support.harness.restore_requests import ask, ended, keep

STEPS = int(os.environ.get("RANDOM_STEPS", "40"))
TABLES: dict[str, dict[str, Any]] = {
    "cow": {"type": "CopyOnWrite"},
    "mor": {"type": "MergeOnRead"},
    "mor-bucket": {"type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 2}},
    "cow-bucket": {"type": "CopyOnWrite", "index": {"type": "Bucket", "buckets": 2}},
    "cow-bloom": {"type": "CopyOnWrite", "index": {"type": "Bloom"}},
    "mor-bloom": {"type": "MergeOnRead", "index": {"type": "Bloom"}},
}
OFTEN = OFF | {"clustering": {"afterCommits": 1, "sortColumns": ["id"]}}
"""Clustered after each commit; with `SMALL` new rows begin a file group, so that there is something
to cluster.
"""
SMALL = {"hoodie.parquet.small.file.limit": "0", "hoodie.parquet.compression.codec": "snappy"}


def how_it_merges(kind: str) -> dict[str, bool]:
    """As `Statements` takes it. With a bucket index no base file is rewritten by a write."""
    return {"on_read": kind.startswith("mor"), "packs": kind in ("mor", "mor-bloom")}


def arguments(results: Path, seed: int, **how: Any) -> dict[str, Any]:
    """The application of a writer; ``how`` as `Statements` takes it."""
    main = Path(__file__).with_name("apps") / "random_app.py"
    return {"mainFile": str(main), "arguments": [str(seed), str(STEPS), str(results), json.dumps(how)]}


def told_by(program: Process, results: Path, seed: int) -> dict[str, Any]:
    """What a program says, none of whose statements did something else than it says."""
    assert program.wait(timeout=1400) == 0, program.log()[-6000:]
    told: dict[str, Any] = json.loads(results.read_text())
    assert told["wrong"] is None, f"seed {seed}: {json.dumps(told['wrong'], indent=1)}"
    return told


@pytest.mark.extra
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("late", [False, True], ids=["in-order", "late"])
@pytest.mark.parametrize("kind", TABLES)
def test_a_statement_does_what_it_says_or_nothing(world: World, agent: Process, kind: str, late: bool) -> None:
    """``late``: half of the rows that are written have a smaller ordering value than the row."""
    seed = seeds.drawn()
    print(f"{seeds.VARIABLE}={seed}")
    name = f"random-{kind}-{late}".lower()
    table = world.table(name, **TABLES[kind])
    world.create(table, agent=AGENT, process=agent)
    results = world.folder / f"{name}.json"
    program = table.writer(
        "program", application=arguments(results, seed, late=late, **how_it_merges(kind)), duplicates="Allow"
    )
    told = told_by(program, results, seed)
    # Nothing is shown by a program whose statements are all refused.
    assert "merge" in told["succeeded"], told
    assert len(told["succeeded"]) >= 6, told
    until("what was refused is rolled back", lambda: not table.pending(), alive=agent)
    table.audited([tuple(row) for row in told["rows"]], schema=SCHEMA)


@pytest.mark.extra
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind", TABLES)
def test_so_it_is_beside_another_program(world: World, agent: Process, kind: str) -> None:
    """Each program has keys of its own in the same files, and the agent compacts them: what meets
    another commit is refused and changes nothing.
    """
    table = world.table(f"together-{kind}", **TABLES[kind], services=EAGER)
    world.create(table, agent=AGENT, process=agent)
    two_programs(world, agent, table, kind)


@pytest.mark.extra
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_so_it_is_beside_clustering(world: World, agent: Process, kind: str) -> None:
    """The agent replaces the file groups that both programs write into."""
    table = world.table(f"clustered-{kind}", **TABLES[kind], hudiOptions=SMALL, services=OFTEN)
    world.create(table, agent=AGENT, process=agent)
    two_programs(world, agent, table, kind)
    assert any(i.action == "replacecommit" for i in table.timeline().completed), "it was clustered"


def two_programs(world: World, agent: Process, table: Table, kind: str) -> None:
    """At once; the table is audited with the rows of both."""
    seed = seeds.drawn()
    print(f"{seeds.VARIABLE}={seed}")
    programs = []
    for number, prefix in enumerate(("x", "y")):
        results = world.folder / f"{table.spec.ref.name}-{prefix}.json"
        how = arguments(results, seed + number, prefix=prefix, alone=False, late=True, **how_it_merges(kind))
        programs.append(
            (table.writer(f"program-{prefix}", application=how, duplicates="Allow"), results, seed + number)
        )
    told = [told_by(*one) for one in programs]
    for one in told:
        assert {"update", "save upsert"} & set(one["succeeded"]), one
    until("what was refused is rolled back", lambda: not table.pending(), alive=agent)
    table.audited([tuple(row) for one in told for row in one["rows"]], schema=SCHEMA)


@pytest.mark.extra
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind", ["cow", "mor", "mor-bucket"])
def test_so_it_is_after_a_restore(world: World, agent: Process, kind: str) -> None:
    """Of three programs the second is undone; the third has other keys in the same files."""
    seed = seeds.drawn()
    print(f"{seeds.VARIABLE}={seed}")
    name = f"restored-{kind}"
    table = world.table(name, **TABLES[kind])
    world.create(table, agent=AGENT, process=agent)

    def told(number: int, prefix: str) -> dict[str, Any]:
        results = world.folder / f"{name}-{number}.json"
        how = arguments(results, seed + number, prefix=prefix, alone=False, late=True, **how_it_merges(kind))
        return told_by(table.writer(f"program-{number}", application=how, duplicates="Allow"), results, seed + number)

    first = told(0, "x")
    until("what was refused is rolled back", lambda: not table.pending(), alive=agent)
    keep(table, "good", agent)
    told(1, "y")
    until("what was refused is rolled back", lambda: not table.pending(), alive=agent)
    ask(table, "back", "good", names=("good",))
    assert ended(table, "back", agent)["result"] == "Completed"
    table.gate("open")
    third = told(2, "z")
    until("what was refused is rolled back", lambda: not table.pending(), alive=agent)
    table.audited([tuple(row) for one in (first, third) for row in one["rows"]], schema=SCHEMA)
