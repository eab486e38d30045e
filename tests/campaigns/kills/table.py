"""docs/results/kills.md from the rounds."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from tests.support.evidence import Evidence, of_results

PHASES = ("Fenced", "Terminating", "Draining", "Unlocked", "RollingBack", "Swept", "Settled")
TITLES = {
    "writing": "While data files are written",
    "critical": "In the critical section: lock held, completed file on its way",
}


def percentile(values: list[float], share: float) -> float:
    """The smallest value that is not below ``share`` of them."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * int(share * 100) // 100) - 1))]


def section(kind: str, rounds: list[dict[str, Any]]) -> str:
    """Table of one kind: every round that there is, with the commits that they were run with."""
    commits = " and ".join(dict.fromkeys(one["commit"] for one in rounds))
    kills = [kill for one in rounds for kill in one["kills"]]
    lines = [f"## {TITLES[kind]}", ""]
    outcomes = {
        name: sum(kill["outcome"] == name for kill in kills) for name in sorted({kill["outcome"] for kill in kills})
    }
    bad = [one for one in rounds if one["rows"] != "ok"]
    seeds = ", ".join(str(one["seed"]) for one in rounds)
    instants = ", ".join(f"{n} {name}" for name, n in outcomes.items())
    rows = f"in {len(bad)} rounds. Audit: VIOLATED" if bad else "none. Audit: ok after each round"
    lines += [
        (
            f"{len(kills)} kills, rounds: {len(rounds)} (commit {commits}, {rounds[0]['at']} to {rounds[-1]['at']}, "
            f"seeds {seeds}), three other writers."
        ),
        f"Instants: {instants}. Rows lost, doubled or phantom: {rows}.",
    ]
    lines += [one["note"] for one in rounds if one.get("note")]
    loads = [load for one in rounds for load in one.get("load") or []]
    if loads:
        lines.append(f"Load average (1 min) when a kill was settled: {min(loads):.0f} to {max(loads):.0f}.")
    lines += ["", "| seconds after SIGKILL | p50 | p95 | max |", "|---|---:|---:|---:|"]
    for phase in PHASES:
        values = [float(kill[phase]) for kill in kills if phase in kill]
        if values:
            lines.append(
                f"| {phase} | {statistics.median(values):.1f} | {percentile(values, 0.95):.1f} | {max(values):.1f} |"
            )
    between = [int(kill["commitsOfOthers"]) for kill in kills]
    said = f"median {statistics.median(between):.0f}, none in {between.count(0)} of {len(between)}"
    lines += ["", f"Commits of the other writers between kill and Settled: {said}."]
    return "\n".join(lines)


def write(path: Path, rounds: dict[str, list[dict[str, Any]]]) -> None:
    """Write the page; nothing when there is no round yet."""
    if not any(rounds.values()):
        return
    where = "One node, 2 cores for everything: Kubernetes, etcd, S3 server, four Spark drivers, agent."
    head = f"# Kills on a real cluster\n\nWritten by `make kills` (`tests/campaigns/kills`). {where}\n"
    every = [one for found in rounds.values() for one in found]
    kills = sum(len(one["kills"]) for one in every)
    said = Evidence(
        of_results(every),
        f"{kills} kills in {len(every)} rounds",
        "each kill at another moment; the spread is in the tables",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "\n".join([head, f"{said}\n", *(section(kind, found) + "\n" for kind, found in rounds.items() if found)])
    )
