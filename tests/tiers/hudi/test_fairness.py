"""Two writers that always change the same file groups: how much of their work is wasted, with and
without taking turns (R42).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness.local import AGENT, Process, Row, Table, World, rows, until

pytestmark = pytest.mark.extra


def race(world: World, agent: Process, name: str, *, after: int) -> tuple[Table, Process, Process]:
    """A quick writer commits one batch after the other until a slow one, which needs several times
    as long for each of its two, has ended.
    """
    table = world.table(name, concurrency={"mode": "Optimistic", "serializeAfterConflicts": after})
    world.create(table, agent=AGENT, process=agent)
    end = world.folder / f"{name}-is-over"
    quick = table.writer(
        "quick",
        retries=20,
        function="paced",
        python={"rows": rows(range(10), "a", "quick", 100), "seconds": 0, "until": str(end)},
    )
    until("the first commit", lambda: table.timeline().completed, alive=quick)
    slow = table.writer(
        "slow", function="paced", python={"rows": rows(range(5), "a", "slow", 1000), "seconds": 6, "batches": 2}
    )
    slow.wait()
    end.touch()
    assert quick.wait() == 0, quick.log()[-4000:]
    until("what was given up is rolled back", lambda: not table.pending(), alive=agent)
    for process in (quick, slow):
        told = process.termination()
        print(f"{name}: {process.name}: {told['commits']} commits, {told['conflicts']} writes for nothing")
    return table, quick, slow


def last_of(process: Process, ids: range, name: str, ts: int) -> list[Row]:
    """Rows of the last batch that a writer has committed."""
    last = process.termination()["commits"] - 1
    return rows(ids, "a", f"{name}-{last}", ts + last)


def count(process: Process) -> Any:
    return process.termination()["conflicts"]


def test_without_turns_the_slow_writer_never_commits(world: World, agent: Process) -> None:
    table, quick, slow = race(world, agent, "no-turns", after=0)
    assert slow.poll() == 13, slow.log()[-4000:]
    assert (slow.termination()["commits"], count(slow)) == (0, 4), "each of its tries was for nothing"
    assert quick.termination()["commits"] > 4
    table.audited(last_of(quick, range(10), "quick", 100))


def test_with_turns_wasted_work_is_bounded(world: World, agent: Process) -> None:
    """I9 as ever; the slow writer loses two races, and then commits both its batches, while the
    quick one waits for it.
    """
    table, quick, slow = race(world, agent, "turns", after=2)
    assert slow.poll() == 0, slow.log()[-4000:]
    assert (slow.termination()["commits"], count(slow)) == (2, 2)
    assert count(quick) <= 2, "only while it had not heard of the other one's wish"
    assert "waits before it writes: default.slow-" in quick.log()
    table.audited([*last_of(slow, range(5), "slow", 1000), *last_of(quick, range(5, 10), "quick", 100)])
