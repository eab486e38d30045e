"""docs/results/kills.md from the rounds."""

from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from hudi_contract.settle import Phase
from tests.support.evidence import Evidence, as_said, at_most, counted, none_of, of_results

PHASES = tuple(phase.name for phase in Phase)
TITLES = {
    "writing": "While data files are written",
    "critical": "In the critical section: lock held, completed file on its way",
}
OF_THE_KIND = {
    "critical": "The completed file is held when the driver is killed. It never arrives (RolledBack), or 0.5 to 6 s "
    "after the kill, within the drain (Completed)."
}
ROWS = "Rows lost, doubled or phantom:"
NO_ROW = f"{ROWS} none."


def percentile(values: list[float], share: float) -> float:
    """The smallest value that is not below ``share`` of them."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * int(share * 100) // 100) - 1))]


def section(kind: str, rounds: list[dict[str, Any]], earlier: dict[str, Any] | None = None) -> str:
    """Section about one kind: every round that there is, with the commits that they were run with;
    then earlier rounds, of which only the text of the page was kept.
    """
    parts = [
        f"## {TITLES[kind]}",
        *([OF_THE_KIND[kind]] if kind in OF_THE_KIND else []),
        *([_rounds(rounds)] if rounds else []),
    ]
    if earlier is not None:
        parts += [*(["Rounds before these:"] if rounds else []), "\n".join(earlier["text"])]
        parts += [_bound(earlier["kills"])] if NO_ROW in "\n".join(earlier["text"]) else []
    return "\n\n".join(parts)


def _bound(kills: int) -> str:
    """Upper bound that this number of kills without a lost row leaves open."""
    return f"Kills after which rows were lost, doubled or phantom: {none_of(kills)}."


def _rounds(rounds: list[dict[str, Any]]) -> str:
    commits = " and ".join(dict.fromkeys(as_said(one["commit"]) for one in rounds))
    kills = [kill for one in rounds for kill in one["kills"]]
    looked = [one for one in rounds if not one.get("stuck")]
    outcomes = {
        name: sum(kill["outcome"] == name for kill in kills) for name in sorted({kill["outcome"] for kill in kills})
    }
    between = [int(kill["commitsOfOthers"]) for kill in kills]
    bad = [one for one in looked if one["rows"] != "ok"]
    seeds = ", ".join(str(one["seed"]) for one in rounds)
    instants = ", ".join(f"{n} {name}" for name, n in outcomes.items())
    rows = f"in {len(bad)} rounds. Audit: VIOLATED" if bad else "none. Audit: ok after each round"
    rows += " that came to its end" if len(looked) < len(rounds) else ""
    none = between.count(0)
    lines = [
        (
            f"{len(kills)} kills, rounds: {len(rounds)} (commit {commits}, {rounds[0]['at']} to {rounds[-1]['at']}, "
            f"seeds {seeds}), three other writers."
        ),
        f"Instants: {instants}. {ROWS} {rows}.",
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
    if between:
        said = f"median {statistics.median(between):.0f}, none in {none or none_of(len(between))}"
        said += f" of {len(between)}" if none else ""
        lines += ["", f"Commits of the other writers between kill and Settled: {said}."]
    lines += [] if bad or not looked else ["", _bound(sum(len(one["kills"]) for one in looked))]
    return "\n".join([*lines, *_hung(rounds)])


def _hung(rounds: list[dict[str, Any]]) -> list[str]:
    """Rounds that are stuck, of those that would have been kept."""
    kept = [one for one in rounds if "stuck" in one]
    stuck = [one for one in kept if one["stuck"]]
    lines = ["", f"Rounds that hung: {at_most(len(stuck), len(kept))}."] if kept else []
    return [*lines, *([""] if stuck else []), *(f"* **stuck**, seed {one['seed']}: {one['stuck']}" for one in stuck)]


def _since(rounds: list[dict[str, Any]]) -> str:
    """From which round on one that hangs has left a result: the first with the field."""
    kept = [one for one in rounds if "stuck" in one]
    if not kept:
        return "The harness of these rounds did not record rounds that hung; their number is unknown."
    first = min(kept, key=lambda one: str(one["at"]))
    return (
        f"Rounds that hang are kept since {as_said(first['commit'])} ({first['at'][:10]}); how many there were "
        "before is not known."
    )


def page(rounds: dict[str, list[dict[str, Any]]], earlier: dict[str, dict[str, Any]]) -> str:
    """The whole page: rounds of each kind, and what was kept of those before them."""
    where = "One node, 2 cores for everything: Kubernetes, etcd, S3 server, four Spark drivers, agent."
    head = f"# Kills on a real cluster\n\nWritten by `make kills` (`tests/campaigns/kills`). {where}\n"
    every = [one for found in rounds.values() for one in found]
    kills = sum(len(one["kills"]) for one in every) + sum(one["kills"] for one in earlier.values())
    made = len(every) + sum(one["rounds"] for one in earlier.values())
    days = {commit: day for one in earlier.values() for commit, day in one["commits"].items()}
    said = Evidence(
        {**of_results(every), **days},
        f"{kills} kills in {made} rounds",
        "each kill at another moment; the spread is in the tables",
        left_out="rounds that were cut off; how many was not kept",
        more=(_since(every),),
        counts=_counts(every, list(earlier.values())),
    )
    if earlier:
        of = ", ".join(sorted(set(days.values())))
        head += f"\nOf the rounds of {of} nothing was kept but what this page says of them.\n"
    kinds = [kind for kind in TITLES if rounds.get(kind) or kind in earlier]
    return "\n".join([head, f"{said}\n", *(section(k, rounds.get(k, []), earlier.get(k)) + "\n" for k in kinds)])


def _counts(every: list[dict[str, Any]], earlier: list[dict[str, Any]]) -> dict[str, int]:
    """Rounds of each commit; of earlier ones with several commits, each stands for one at least."""
    found = Counter(counted(every))
    for one in earlier:
        first, *others = one["commits"]
        found.update({first: one["rounds"] - len(others), **dict.fromkeys(others, 1)})
    return dict(found)


def write(path: Path, rounds: dict[str, list[dict[str, Any]]], earlier: dict[str, dict[str, Any]]) -> None:
    """Write the page; nothing when there is no round yet."""
    if any(rounds.values()) or earlier:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(rounds, earlier))
