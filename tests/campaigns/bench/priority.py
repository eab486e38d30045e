"""`make bench-priority`: how long small, important commits take, alone and beside a long backfill
(R23); writes docs/results/priority.md.

One writer, `live`, priority 10, commits ten rows again and again, in one process all the time.
Beside it comes a `backfill`, priority -10, whose writes are long because their tasks sleep (so the
processor is not measured): first in a separate partition, then on the file group of `live`. Counted
is the time from the moment when a batch of `live` is given until its commit is completed, lost
races and all. BENCH_COMMITS (40): commits of `live` in each phase. BENCH_SECONDS (15): how long a
task of the backfill sleeps.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

from tests.campaigns.bench.services import OUT, at, epoch, machine
from tests.support import ROOT
from tests.support.evidence import DIRECT, Evidence, commit, of_storage
from tests.support.evidence.versions import versions
from tests.support.harness.local import Process, Table, World, rows, until

JsonDict = dict[str, Any]

COMMITS = int(os.environ.get("BENCH_COMMITS", "40"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "15"))
WARM_UP = 10
"""Commits of `live` that do not count: its JVM is new."""
LIMIT = 1.3
"""Highest allowed ratio of p95 beside the backfill to p95 alone."""
PAGE = ROOT / "docs" / "results" / "priority.md"
PATIENCE = 3600.0


@dataclass(frozen=True)
class Phase:
    """Work that ran beside `live`, with begin and end (seconds since the epoch)."""

    name: str
    begun: float
    ended: float
    backfill: JsonDict
    """Its final word; empty: there was none."""


class Run:
    """One table, `live`, and one backfill after the other."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._table: Table = world.table("priority")
        self._agent = world.agent("agent-priority")
        world.create(self._table, agent="agent-priority", process=self._agent)
        both = [*rows(range(10), "a", "seed", 1), *rows(range(100, 110), "b", "seed", 1)]
        seed = self._table.writer("seed", python={"batches": [{"rows": both}]})
        assert seed.wait() == 0, seed.log()[-4000:]
        self._clock, self._end = world.folder / "clock", world.folder / "live-is-over"
        python = {
            "rows": rows(range(10), "a", "live", 100),
            "seconds": 0,
            "clock": str(self._clock),
            "until": str(self._end),
        }
        self._live = self._table.writer("live", priority=10, retries=20, function="paced", python=python)
        self._wait_for(WARM_UP)

    def _begun(self) -> list[float]:
        """Times at which the batches of `live` were given."""
        return [float(line) for line in self._clock.read_text().splitlines()] if self._clock.exists() else []

    def _wait_for(self, commits: int) -> None:
        """Wait until `live` has begun this number of further batches."""
        wanted = len(self._begun()) + commits
        until(
            f"{commits} commits of live",
            lambda: len(self._begun()) >= wanted,
            timeout=PATIENCE,
            alive=self._live,
            every=0.05,
        )

    def alone(self) -> Phase:
        """`live` alone."""
        begun = time.time()
        self._wait_for(COMMITS)
        return Phase("alone", begun, time.time(), {})

    def beside(self, name: str, ids: range, partition: str) -> Phase:
        """`live` beside a backfill of these rows."""
        end = self._world.folder / f"{name}-is-over"
        python = {"rows": rows(ids, partition, name, 10**6), "seconds": SECONDS, "until": str(end)}
        backfill = self._table.writer(name, priority=-10, retries=20, function="paced", python=python)
        until("the backfill writes", lambda: self._writes(backfill), timeout=PATIENCE, alive=backfill)
        begun = time.time()
        self._wait_for(COMMITS)
        ended = time.time()
        end.touch()
        backfill.terminate()
        backfill.wait(timeout=PATIENCE)
        return Phase(name, begun, ended, backfill.termination())

    def _writes(self, process: Process) -> bool:
        return any((key.value or {}).get("inc") == process.inc and process.inc for key in self._table.keys("instant/"))

    def measured(self, phases: list[Phase]) -> list[JsonDict]:
        """Seconds of each commit of `live`, by the phase in which it was begun."""
        self._end.touch()
        assert self._live.wait(timeout=PATIENCE) == 0, self._live.log()[-4000:]
        completions = {i.requested: i.completion for i in self._table.timeline().completed}
        published = [
            line["instant"] for line in self._live.protocol("publish") if line["ok"] and line["instant"] in completions
        ]
        begun = self._begun()
        assert len(begun) == len(published), (len(begun), len(published))
        taken = [(start, epoch(completions[instant]) - start) for start, instant in zip(begun, published, strict=True)]
        told = self._live.termination()
        common = {
            "commit": commit(),
            "versions": versions(),
            "machine": machine(),
            "at": at(),
            "liveConflicts": told["conflicts"],
        }
        return [
            {
                "phase": p.name,
                "seconds": [round(s, 3) for start, s in taken if p.begun <= start < p.ended],
                "backfill": p.backfill,
                **common,
            }
            for p in phases
        ]


def measure() -> list[JsonDict]:
    """Four phases, one process of `live`."""
    world = World(Path(tempfile.mkdtemp(prefix="priority-")))
    world.start()
    try:
        run = Run(world)
        phases = [
            run.alone(),
            run.beside("disjoint", range(100, 110), "b"),
            run.beside("overlapping", range(10), "a"),
            run.alone(),
        ]
        return run.measured(phases)
    finally:
        world.stop()


def p(per_cent: int, seconds: list[float]) -> float:
    """A percentile."""
    return quantiles(seconds, n=100, method="inclusive")[per_cent - 1]


def page(found: list[JsonDict]) -> str:
    """docs/results/priority.md."""
    alone = [s for r in found if r["phase"] == "alone" for s in r["seconds"]]
    same = [p(95, r["seconds"]) for r in found if r["phase"] == "alone"]
    noise = max(same) / min(same)
    lines = [
        "# An important writer beside a backfill",
        "",
        (
            "Written by `make bench-priority` (`tests/campaigns/bench/priority.py`); do not edit. `live` (priority "
            "10) commits ten rows again and again, in one"
        ),
        (
            f"process; beside it a `backfill` (priority -10), whose tasks sleep {SECONDS:.0f} s in each write: first "
            "in a partition of its own, then on the"
        ),
        (
            "file group of `live`. Seconds from the moment when a batch of `live` is given until its commit is "
            "completed, lost races included. The ratio is"
        ),
        "that to `live` alone, before and after together.",
        "",
        (
            "| beside `live` | commits of `live` | p50 | p95 | p50 : alone | p95 : alone | backfill: commits | "
            "backfill: writes for nothing |"
        ),
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines[-3:-3] = [
        "",
        str(
            Evidence.of(
                found[:1],
                "1 of four phases",
                repeats="the phase without a backfill twice; the others once",
                more=(of_storage({"priority": str(found[0]["commit"])}),),
                direct=DIRECT,
            )
        ),
    ]
    verdicts = []
    for r in found:
        mine = r["seconds"]
        ratio = [p(n, mine) / p(n, alone) for n in (50, 95)]
        told = r["backfill"]
        ends = f"| {told['commits']} | {told['conflicts']} |" if told else "| | |"
        name = {
            "alone": "nothing",
            "disjoint": "a backfill elsewhere",
            "overlapping": "a backfill of the same file group",
        }[r["phase"]]
        lines.append(
            f"| {name} | {len(mine)} | {p(50, mine):.2f} s | {p(95, mine):.2f} s | {ratio[0]:.2f} | {ratio[1]:.2f} "
            f"{ends}"
        )
        if told:
            verdict = (
                "within"
                if ratio[1] * noise <= LIMIT
                else "**not shown** to be within"
                if ratio[1] <= LIMIT * noise
                else "a **loss** against"
            )
            verdicts.append(
                f"* Beside {name} p95 of `live` is {ratio[1]:.2f} times that alone: {verdict} the wanted {LIMIT}."
            )
    verdicts.append(
        f"* The two phases without a backfill, which are the same, differ by {noise:.2f} in p95. One run, without a "
        "repeat."
    )
    first = found[0]
    run = (
        f"{first['at']}, commit {first['commit']}, Hudi {first['versions']['hudi']}, {first['machine']}; races "
        f"lost by `live`: {first['liveConflicts']}"
    )
    run += ". Everything is on one machine: what the backfill's own JVM takes of the processors is in these numbers."
    return "\n".join([*lines, "", *verdicts, "", f"Run: {run}"]) + "\n"


def main() -> int:
    OUT.mkdir(parents=True, exist_ok=True)
    found = measure()
    (OUT / "priority.json").write_text(json.dumps(found, indent=1))
    PAGE.write_text(page(found))
    print(PAGE.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
