"""Writers that bring the same new keys at once: each key is one record (I13, F58)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.harness import own_pulls, own_rows
from tests.support.harness.local import AGENT, Process, Row, World, rows, until


@pytest.mark.parametrize("kind", [pytest.param("CopyOnWrite", marks=pytest.mark.extra), "MergeOnRead"])
def test_three_writers_bring_the_same_new_keys(world: World, agent: Process, kind: str) -> None:
    """None of them sees another's keys when it looks for its own: whoever is not the first to
    commit repeats its batch, and updates.
    """
    table = world.table(f"unique-{kind.lower()}", type=kind)
    world.create(table, agent=AGENT, process=agent)
    brought: dict[str, list[Row]] = {
        "first": [*rows(range(10), "a", "first", 1), *rows(range(10), "b", "first", 1)],
        "second": rows(range(5, 15), "a", "second", 2),
        "third": [*rows(range(8, 18), "a", "third", 3), *rows(range(9, 12), "b", "third", 3)],
        # Between the keys of the others, but none of theirs.
        "alone": rows(range(100, 110), "a", "alone", 1),
    }
    held = ("second", "third", "alone")
    gates = {name: world.folder / f"gate-{kind}-{name}" for name in held}
    late = {
        name: table.writer(name, python={"batches": [{"rows": brought[name], "gate": str(gates[name])}]})
        for name in held
    }
    for name, writer in late.items():
        until(f"{name} writes", Path(f"{gates[name]}.reached").exists, alive=writer)
    first = table.writer("first", python={"batches": [{"rows": brought["first"]}]})
    assert first.wait() == 0, first.log()[-4000:]
    for name, writer in late.items():
        gates[name].touch()
        assert writer.wait() == 0, writer.log()[-4000:]
    assert {name: writer.termination()["conflicts"] for name, writer in late.items()} == {
        "second": 1,
        "third": 1,
        "alone": 0,
    }
    newest = {row[:2]: row for batch in brought.values() for row in batch}  # in the order of their ordering values
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited(list(newest.values()))
    own_rows.same(table.folder, list(newest.values()))
    assert own_pulls.same(world.spark(), table.path, table.folder) == 7, "four commits"
