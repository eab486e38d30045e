"""One cell, from nothing to its outcome: `run(cell, folder)`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.campaigns.matrix import eager, pulls, stock
from tests.campaigns.matrix.cells import Cell
from tests.campaigns.matrix.setup import Setup
from tests.campaigns.matrix.workload import CLEANED, COLUMN, COMPACTED, LOST, REST, REST_TWO, Work, work
from tests.support.harness.local import Process


def run(cell: Cell, folder: Path) -> dict[str, Any]:
    """Play a cell; returns its result. Any deviation raises AssertionError."""
    begin = time.monotonic()
    setup = Setup(cell, folder)
    try:
        setup.start()
        result = eager.refused(setup) if cell.refused else _written(setup)
    finally:
        setup.world.stop()
    return {"verdict": "ok", "seconds": round(time.monotonic() - begin), **result}


def _written(setup: Setup) -> dict[str, Any]:
    cell = setup.cell
    job = work(cell, setup.gates, killed=not cell.test.incremental)
    # In its own folder, so that its gates are its own.
    beside = stock.start(setup, work(cell, f"{setup.folder}/stock-gate-", killed=True)) if cell.beside_stock else None
    readers = pulls.Pulls(setup) if cell.test.incremental else None
    if not cell.test.async_clean:
        setup.open(COMPACTED, *([] if readers else [CLEANED]))
    look: Callable[[], None] = readers.look if readers else lambda: None
    told = _two(setup, job, look) if cell.several else _one(setup, job, look)
    if readers:
        readers.look()
        told["said"].append(readers.all_given(job.expected))
    setup.audited_before_services(job.expected)
    setup.serve()
    setup.tended()
    setup.audited(job.expected)
    if beside is not None:
        told["said"].append(beside.same(job.expected))
    return {"told": "; ".join(told.pop("said")), "counts": _counts(setup, job) | told}


def _counts(setup: Setup, job: Work) -> dict[str, int]:
    """Counts for the page."""
    kinds = {"compactions": "compaction", "clusterings": "clustering", "cleans": "clean"}
    return {
        "commits": job.commits,
        **{name: len(setup.ran(kind)) for name, kind in kinds.items()},
        "archived": setup.archived(),
    }


# -- one writer ------------------------------------------------------------------------------------


def _one(setup: Setup, job: Work, look: Callable[[], None]) -> dict[str, Any]:
    writer = setup.writer("w1", job.one)
    said = []
    if setup.cell.test.incremental:
        setup.reached(REST, writer)
        look()
        setup.open(REST)
    else:
        setup.reached(LOST, writer)
        writer = _killed(setup, "w1", writer, job.one)
        said.append("killed in a write, rolled back, continued exactly once")
    said += _serviced(setup, writer, look)
    commits = setup.ended(writer)["commits"]
    assert commits == job.commits - (0 if setup.cell.test.incremental else 3), (
        f"the last attempt made {commits} commits"
    )
    return {"said": said, "conflicts": 0}


def _killed(setup: Setup, name: str, writer: Process, batches: list[Any]) -> Process:
    """Kill a writer in its write, and let everybody else go on.

    Returns the next attempt, once the dead one's instant is rolled back.
    """
    dead = setup.writing()
    writer.kill()
    inc = setup.table.fence(writer)
    setup.open(LOST, REST)
    again = setup.writer(name, batches)
    outcomes = setup.until("the dead writer is settled", lambda: setup.table.outcomes(inc))
    assert outcomes == {dead: "RolledBack"}, outcomes
    setup.table.settled(inc)
    return again


def _serviced(setup: Setup, writer: Process, look: Callable[[], None]) -> list[str]:
    """Let table services run while writers wait for them: the last commits come after a compaction
    and a clean.
    """
    if setup.cell.test.incremental:
        setup.reached(CLEANED, writer)
        look()
        setup.open(CLEANED)
    if not setup.cell.test.async_clean:
        return []
    setup.reached(COMPACTED, writer)
    if setup.cell.kind == "mor":
        setup.until("a compaction has run beside the writers", lambda: setup.ran("compaction"))
    setup.open(COMPACTED)
    setup.reached(CLEANED, writer)
    setup.until("a clean has run beside the writers", lambda: setup.ran("clean"))
    setup.open(CLEANED)
    return ["services ran beside the writers"]


# -- two writers -----------------------------------------------------------------------------------


def _two(setup: Setup, job: Work, look: Callable[[], None]) -> dict[str, Any]:
    incremental = setup.cell.test.incremental
    one, two = setup.writer("w1", job.one), setup.writer("w2", job.two)
    said, conflicts = [], 0
    for race in job.races:
        setup.reached(race.slow, one)
        slow = setup.writing()
        setup.open(race.quick)
        setup.reached(race.next_quick, two)
        assert setup.writing() == slow, "the quick commit is made while the slow write is inflight"
        look()
        setup.open(race.slow)
        setup.reached(race.next_slow, one)
        conflicts += race.conflict
        said.append(_raced(setup, slow, one, conflict=race.conflict))
    setup.open(COLUMN)
    setup.reached(REST_TWO, two)
    setup.open(REST_TWO)
    if not incremental:
        setup.reached(LOST, two)
        two = _killed(setup, "w2", two, job.two)
        said.append("one killed in a write, rolled back, continued exactly once while the other went on")
    setup.open(REST)
    said += _serviced(setup, one, look)
    told = [setup.ended(one), setup.ended(two)]
    found = sum(each["conflicts"] for each in told)
    assert found >= conflicts, f"{found} conflicts, at least {conflicts} must be"
    if setup.cell.writers == "disjoint":
        assert not found, f"{found} conflicts although no file is shared"
    return {"said": said, "conflicts": found}


def _raced(setup: Setup, slow: str, writer: Process, *, conflict: bool) -> str:
    if conflict:
        report = setup.table.get(f"report/attempt/{writer.name}") or {}
        lost = [each for each in report["conflicts"] if each["instant"] == slow]
        assert len(lost) == 1, f"{slow} must have lost: {json.dumps(report)[:1000]}"
        assert lost[0]["retriedAs"] > slow
        setup.until(
            "the loser's instant is rolled back",
            lambda: slow not in setup.table.names("instant/") and slow not in setup.table.pending(),
        )
        return "the slow write lost the race, was rolled back and committed under a new instant"
    ended = setup.instant(slow)
    between = [i for i in setup.table.timeline().completed if i.requested > slow and i.completion < ended.completion]
    assert between, "it began first and must have ended after the quick one"
    return "a write that began first ended last"
