"""docs/results/performance.md: what was measured beside each goal, and the measurements.

    python -m tests.campaigns.bench.performance

Reads what the benchmarks have kept in docs/results/raw/bench: `side_by_side`, `launches`,
`looks`, `commits`. A goal for which nothing was measured says so; a goal that is missed says by how
much.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tests.campaigns.bench import commits, launches, looks, side_by_side
from tests.support import ROOT
from tests.support.evidence import NOTHING, Evidence

JsonDict = dict[str, Any]

PAGE = ROOT / "docs" / "results" / "performance.md"
HEAD = """# Performance

Written by `make bench` (`tests/campaigns/bench/performance.py`); do not edit. Ratios are of one run
on one machine; seconds and megabytes hold for that machine alone. The goals are those that the
project has set itself; a goal that is missed is shown as missed.
"""
MET, MISSED = "met", "**missed**"
NOT_MEASURED = "not measured"
SMALLER = "measured with less than the goal is of"
MANY = 300
"""Writers from which on a run of `launches` says something about cost at rest."""


SPENDERS = ("python", "jvm", *(f"jvm {of}" for of in ("compiler", "collector", "tasks", "driver", "s3", "etcd")))
"""Parties whose processor time of a commit is shown."""


@dataclass(frozen=True)
class Results:
    """Raw results; empty where a benchmark was not run."""

    bursts: list[JsonDict]
    launches: list[JsonDict]
    commits: JsonDict
    looks: JsonDict = field(default_factory=dict)

    @classmethod
    def load(cls) -> Results:
        found = commits.FILE
        kept = json.loads(found.read_text()) if found.exists() else {}
        return cls(side_by_side.load(), launches.load(), kept, looks.load())

    @property
    def all(self) -> list[JsonDict]:
        return [*self.bursts, *self.launches, *(one for one in (self.looks, self.commits) if one)]


Found = tuple[str, bool | None]
"""Description of a result, and whether it meets the goal; None: the run was smaller than the
goal's, so it says nothing about the goal.
"""
VERDICTS = {True: MET, False: MISSED, None: SMALLER}


@dataclass(frozen=True)
class Goal:
    """A row of the table."""

    number: str
    quantity: str
    goal: str
    found: Callable[[Results], Found | None]
    """None: nothing was measured."""

    def row(self, results: Results) -> str:
        """Its line of the table."""
        found = self.found(results)
        said, verdict = ("–", NOT_MEASURED) if found is None else (found[0], VERDICTS[found[1]])
        return f"| {self.number} | {self.quantity} | {self.goal} | {said} | {verdict} |"


def _of_side(results: Results, key: Callable[[JsonDict], float]) -> float | None:
    runs = [run for run in side_by_side.quiet(results.bursts) if run["side"] == "ours"]
    return median(key(run) for run in runs) if runs else None


def _speed(results: Results) -> Found | None:
    found = _of_side(results, lambda run: run["perMinute"])
    return None if found is None else (f"{found:.0f}", found >= 1000)


def _processor(results: Results) -> Found | None:
    found = _of_side(results, lambda run: run["cpuSecondsEach"])
    return None if found is None else (f"{found:.3f} s", found <= 0.03)


def _writes(results: Results) -> Found | None:
    found = _of_side(results, lambda run: run["requests"]["writesEach"])
    return None if found is None else (f"{found:.1f}, until its pod is in status", found <= 5)


def _flat(results: Results) -> Found | None:
    speeds = {run["writers"]: run["launch"]["perMinute"] for run in results.launches}
    if len(speeds) < 2:
        return None
    largest, fastest = speeds[max(speeds)], max(speeds.values())
    said = ", ".join(f"{writers}: {speed}" for writers, speed in sorted(speeds.items()))
    return f"{largest / fastest:.2f} ({said} a minute)", largest >= 0.8 * fastest


def _crash(results: Results) -> Found | None:
    runs = [run for run in results.bursts if run["scenario"] == "crash" and run["side"] == "ours"]
    if not runs:
        return None
    doubled = sum(count for run in runs for n, count in run["driversOfAJob"].items() if int(n) > 1)
    wrong = sum(run["saysFailedThoughItsDriverEndedWell"] for run in runs)
    lacking = sum(run["driversOfAJob"].get("0", 0) for run in runs)
    jobs = sum(run["jobs"] for run in runs)
    return f"of {jobs}: {wrong} wrong, {doubled} doubled, {lacking} without a driver", not (wrong or doubled or lacking)


def _largest(results: Results) -> JsonDict | None:
    runs = [run for run in results.launches if run["writers"] >= MANY]
    return max(runs, key=lambda run: int(run["writers"])) if runs else None


def _at_rest(results: Results) -> Found | None:
    run = _largest(results)
    if run is None:
        return None
    rest = run["rest"]
    share = rest["cpuSeconds"] / rest["seconds"]
    said = f"{run['writers']} writers: {rest['memoryMiB']} MiB, {100 * share:.1f} % of a core"
    small = rest["memoryMiB"] * 1.048576 <= 200 and share <= 0.02
    return said, small if run["writers"] >= 1000 or not small else None


def _end(results: Results) -> Found | None:
    run = _largest(results)
    found = (run or {}).get("endToStatusSeconds")
    if run is None or not found:
        return None
    said = f"{run['writers']} writers, one end after the other: longest {found['max']:.2f} s"
    return said, False if found["max"] > 1.0 else None


def _look(results: Results) -> Found | None:
    runs = results.looks.get("runs") or []
    if len(runs) < 2:
        return None
    most = runs[-1]["writers"] / runs[0]["writers"] >= 1000
    spread = {what: max(run[what] for run in runs) / min(run[what] for run in runs) for what in ("cpuMillis", "millis")}
    said = ", ".join(f"{run['writers']}: {run['cpuMillis']:.1f} of {run['millis']:.1f} ms" for run in runs)
    flat = max(spread.values()) <= 1.2
    return f"{spread['cpuMillis']:.2f} × its processor time, {spread['millis']:.2f} × its time ({said})", (
        flat if most or not flat else None
    )


def _turns(results: Results) -> dict[str, tuple[float, float]]:
    """For each side: median seconds between two commits, and processor seconds of one."""
    found = {}
    for name in ("ours", "stock"):
        turns = [turn for turn in results.commits.get("turns", ()) if turn["side"] == name]
        if turns:
            used = median(turn["processorSeconds"]["python"] + turn["processorSeconds"]["jvm"] for turn in turns)
            found[name] = median(each for turn in turns for each in turn["seconds"]), used
    return found


def _commit_seconds(results: Results) -> Found | None:
    found = _turns(results).get("ours")
    return None if found is None else (f"{found[0]:.2f} s", found[0] <= 1.0)


def _commit_ratio(results: Results) -> Found | None:
    found = _turns(results)
    if len(found) < 2:
        return None
    faster, cheaper = (found["stock"][n] / found["ours"][n] for n in (0, 1))
    return f"{faster:.2f} × as fast, {1 / cheaper:.2f} × its processor time", faster >= 1.1


def _nothing(_: Results) -> None:
    return None


GOALS = (
    Goal("P1", "launches a minute, 50 writers at once", "≥ 1,000", _speed),
    Goal("P1", "the same with more writers, the largest number against the fastest", "≥ 0.8", _flat),
    Goal("P1", "processor time of the operator for a launch", "≤ 0.03 s", _processor),
    Goal("P1", "API writes for a launch", "≤ 5", _writes),
    Goal("P1", "operator killed when 30 % of the drivers are there", "0 wrong, 0 doubled", _crash),
    Goal(
        "P2",
        "SIGKILL of a driver that writes: fenced, successor's pod, ready to commit, rolled back",
        "≤ 0.7 s, ≤ 1 s, ≤ 12 s, ≤ drain + 3 s; on a quiet machine ([kills](kills.md) were on a busy one)",
        _nothing,
    ),
    Goal(
        "P3",
        "lock cycles at 2, 8 and 32 contenders, beside raw etcd and Hudi's ZooKeeper provider",
        "p50 ≤ 1.5 ms, ≥ 5 × and 3 × as many; beside another way of ours: [lock with the gateway](lock-gateway.md)",
        _nothing,
    ),
    Goal("P4", "a commit of ten rows, one writer, on S3: median", "≤ 1 s", _commit_seconds),
    Goal("P4", "the same, beside stock Hudi with our options and ZooKeeper", "≥ 1.1 × as fast", _commit_ratio),
    Goal("P4", "commits a second of one table with 1, 4 and 8 writers, beside stock Hudi", "≥ 2 ×", _nothing),
    Goal("P5", "operator with 1,000 running writers, at rest", "≤ 200 MB, ≤ 2 % of a core", _at_rest),
    Goal("P5", "end of a pod until status says so", "p99 ≤ 1 s in a burst of 500", _end),
    Goal("P6", "cost of one look, 10 to 10,000 writers in the namespace", "± 20 %", _look),
    Goal("P7", "executor-seconds wasted by conflicts, against stock Hudi with retries", "≤ 1/5", _nothing),
    Goal("P8", "a whole job against plain spark-submit", "≤ 1.05 ×", _nothing),
    Goal(
        "P9",
        "one agent: 200 tables at rest; 20 with services due",
        "≤ 5 % of a core, ≤ 700 MB; nobody fenced",
        _nothing,
    ),
    Goal("P10", "slopes over 10,000 commits and 48 simulated hours", "flat, or the bound", _nothing),
)


def page(results: Results) -> str:
    """The results page, from the results that are there."""
    if not results.all:
        return f"{HEAD}\n{NOTHING}\n"
    left = side_by_side.left_out(results.bursts)
    evidence = Evidence.of(
        results.all,
        f"{len(results.all)}: {len(results.bursts)} beside another operator, {len(results.launches)} of launches, "
        f"{'one of looks, ' if results.looks else ''}{'one' if results.commits else 'none'} of commits",
        repeats="in turns where two are compared; a cell has the middle one, in brackets the lowest and the highest",
        left_out=f"{left} (the machine had other work, or not all jobs had a pod); they are in the raw results"
        if left
        else "nothing",
        direct="No request of these runs went through the gateway.",
    )
    lines = [HEAD, str(evidence), "", "## Goals", "", "| # | quantity | goal | result | |", "|---|---|---|---|---|"]
    lines += [*(goal.row(results) for goal in GOALS), ""]
    if results.bursts:
        lines += [*side_by_side.section(results.bursts), ""]
    if results.launches:
        lines += [*_launches(results.launches), ""]
    if results.looks:
        lines += [*_looks(results.looks), ""]
    if results.commits:
        lines += [*_commits(results), ""]
    lines.append(f"Machine: {'; '.join(dict.fromkeys(str(run['machine']) for run in results.all))}.")
    return "\n".join(lines) + "\n"


def _launches(runs: list[JsonDict]) -> list[str]:
    """Launches, rest and ends."""
    lines = [
        "## Many writers",
        "",
        "The operator is a process; API server, controller-manager and etcd are real; kubelet, drivers, executors and",
        "agents are played. All writers are in one namespace and are created by one client. *At rest* each of them",
        "runs with its executor, and nothing happens. *End to status*: one writer after the other ends: its executor,",
        "its registration, its pod. One run each, so nothing is known of the spread.",
        "",
        "| writers | tables | launches/min | processor s each | API writes each, to Running | reads each "
        "| at rest: % of a core | MiB | reads/s | end to status p50 | longest | load before |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for run in runs:
        whole, rest, ends = run["toRunning"], run["rest"], run.get("endToStatusSeconds") or {}
        cells = [
            str(run["writers"]),
            str(run["tables"]),
            str(run["launch"]["perMinute"]),
            f"{whole['cpuSecondsEach']:.3f}",
            f"{whole['writesEach']:.1f}",
            f"{whole['readsEach']:.1f}",
            f"{100 * rest['cpuSeconds'] / rest['seconds']:.1f}",
            str(rest["memoryMiB"]),
            f"{rest['reads'] / rest['seconds']:.1f}",
            *(f"{ends[which]:.2f} s" if which in ends else "–" for which in ("p50", "max")),
            f"{run['loadBefore']:.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _looks(found: JsonDict) -> list[str]:
    """One look beside many writers of other tables."""
    lines = [
        "## One look",
        "",
        "One live look at a table with one running writer, and its plan, beside writers of other tables in the same",
        f"namespace; medians of {found['looks']} looks, one after the other. API server and etcd are real, and answer",
        "within the time.",
        "",
        "| writers in the namespace | processor ms of the operator | ms | requests to the API server |",
        "|---:|---:|---:|---:|",
    ]
    return lines + [
        f"| {run['writers']} | {run['cpuMillis']:.1f} | {run['millis']:.1f} | {run['requests']:g} |"
        for run in found["runs"]
    ]


def _commits(results: Results) -> list[str]:
    """Section on the cost of a small commit."""
    found = results.commits
    lines = [
        "## A commit of ten rows",
        "",
        "One writer upserts ten rows again and again into a MergeOnRead table with its metadata table on S3:",
        "ours, and stock Hudi with the same options and ZooKeeper. Nobody else writes, no services run.",
        "Seconds are those between two completion times; the first "
        f"{found['warmUp']} commits of a writer are left out.",
        "",
        "| | turns | seconds p50 | p95 | processor s: Python | JVM | of it: compiler | collector | tasks | driver "
        "| S3 | etcd | load before |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, said in (("ours", "hudi-operator"), ("stock", "stock Hudi")):
        turns = [turn for turn in found["turns"] if turn["side"] == name]
        seconds = sorted(each for turn in turns for each in turn["seconds"])
        middle = [median(turn["seconds"]) for turn in turns]
        used = [f"{median(turn['processorSeconds'].get(who, 0.0) for turn in turns):.2f}" for who in SPENDERS]
        cells = [
            str(len(turns)),
            f"{median(seconds):.2f} ({min(middle):.2f}–{max(middle):.2f})",
            f"{statistics.quantiles(seconds, n=20)[-1]:.2f}",
            *used,
            f"{min(t['loadBefore'] for t in turns):.1f}–{max(t['loadBefore'] for t in turns):.1f}",
        ]
        lines.append(f"| {said} | {' | '.join(cells)} |")
    lines += [
        "",
        "Counted of one commit, in a run of its own through a proxy:",
        "",
        "| what | hudi-operator | stock Hudi |",
    ]
    lines.append("|---|---:|---:|")
    for group, title in (("store", "requests to the store"), ("etcd", "messages to etcd"), ("spark", "Spark")):
        ours, stock = (found["counted"][name][group] for name in ("ours", "stock"))
        lines += [
            f"| {title}: {what} | {_number(ours, what)} | {_number(stock, what)} |" for what in sorted({*ours, *stock})
        ]
    return lines


def _number(numbers: Mapping[str, float], what: str) -> str:
    return f"{numbers.get(what, 0):g}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(Results.load()))
    print(PAGE)


if __name__ == "__main__":
    main()
