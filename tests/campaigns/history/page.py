"""docs/results/history.md from the results that are there. A cell that was not run says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.campaigns.history.run import CELLS, Cell
from tests.support import ROOT
from tests.support.evidence import DIRECT, Evidence, none_of, of_storage, replaced

TARGET = ROOT / "docs" / "results" / "history.md"
Result = Mapping[str, Any]
HEAD = """\
# Histories of concurrent writers

Written by `make history` (`tests/campaigns/history`); do not edit. In a run three writers take the
same kinds of steps on the same records of one table, at once; one of them is killed while a write
of its own is pending (in runs without a number under *met*: while anybody's was), settled, and
followed by another attempt. Each step reads the table, decides and writes
(`tests/campaigns/history/transactions.py`); what every try has seen is noted. The order of versions
is that in which the table's commits completed. Of that, the checker
(`tests/campaigns/history/adya.py`) makes Adya's dependency graph of the list-append transactions
and looks for cycles.

| column | is |
|---|---|
| commits, conflicts | completed commits; tries that were refused and made again |
| met | committed transactions that have read between the read and the commit of another writer's; -: not \
counted. A run without any, and without a conflict, is *thin*, one of which the audit cannot tell *unknown* |
| G0, G1 | dirty writes; aborted, intermediate or circular reads. Snapshot isolation excludes them, as it does \
the next two |
| G-single, G-SI | read skew and lost updates; snapshots in opposite orders |
| lost | appended marks of completed commits that are not in the list in the end |
| totals | snapshots and states between commits in which transfers have made or lost money |
| G2 | write skew: two writers read what the other one writes, in another file group |
| overdrawn | pairs of accounts, in two file groups, of which each writer took its side: write skew that costs |
| twice (old, new) | keys that two writers have inserted, into a partition that has a file group, and into one \
that is new |

| promise | means |
|---|---|
| snapshot | none of G0 to totals, and no key twice (I13): the tables have the default \
`concurrency.insertConflicts: Key`; with `Ignore` keys could be there twice, as in RFC-22 (R4). Write skew is \
possible (R5) |
| serializable | none of all that |
| none | counted only: the writers read the table in a way that the runtime does not see \
([sources](../use/sources.md#read-modify-write)) |
"""


def page(load: Callable[[Cell], Result | None]) -> str:
    """The whole page."""
    results = {cell.name: result for cell in CELLS if (result := load(cell)) is not None}
    found = list(results.values())
    lines = [
        HEAD,
        str(
            Evidence.of(
                found,
                f"{len(found)} of {len(CELLS)}",
                left_out=f"{replaced.told(found)}; a run that was cut off leaves no result",
                more=(of_storage({name: str(result["commit"]) for name, result in results.items()}),),
                direct=DIRECT,
            )
        ),
        "",
        (
            "| run | promise | rounds | commits | conflicts | met | G0, G1 | G-single | G-SI | lost | totals | G2 | "
            "overdrawn | twice (old, new) | verdict | commit |"
        ),
        "|---|---|" + "---:|" * 12 + "---|---|",
    ]
    lines += [_row(cell, load(cell)) for cell in CELLS]
    return "\n".join([*lines, *_bounds(load), "", *_told(load)]) + "\n"


def _row(cell: Cell, result: Result | None) -> str:
    promise = cell.promise or "none"
    if result is None:
        return f"| {cell.name} | {promise} | not run |" + " |" * 13
    if "found" not in result:
        return (
            f"| {cell.name} | {promise} | {result['verdict']}: {result['told']} |"
            + " |" * 12
            + f" {result['commit']} |"
        )
    found = result["found"]
    kinds = found["anomalies"]
    early = sum(kinds.get(kind, 0) for kind in ("G0", "G1a", "G1b", "G1c"))
    numbers = [
        result["rounds"],
        found["commits"],
        result["conflicts"],
        found.get("met", "-"),
        early,
        kinds.get("G-single", 0),
        kinds.get("G-SI", 0),
        found["lost"],
        found["wrong_totals"],
        kinds.get("G2", 0),
        f"{found['overdrawn']} of {found['of_pairs']}",
        f"{found['twice_existing']}, {found['twice_new']} of {found['of_keys']}",
    ]
    return (
        f"| {cell.name} | {promise} | "
        + " | ".join(str(n) for n in numbers)
        + f" | {result['verdict']} | {result['commit']} |"
    )


def _bounds(load: Callable[[Cell], Result | None]) -> list[str]:
    """Upper bounds that the zeros of each run leave open."""
    lines = []
    for cell in CELLS:
        if found := (load(cell) or {}).get("found"):
            of = {"commits": found["commits"], "pairs": found["of_pairs"], "keys": found["of_keys"]}
            told = ", ".join(f"{name} {none_of(number)}" for name, number in of.items())
            lines.append(f"* {cell.name}: {told}")
    return ["", "What a zero above leaves open, by what was counted:", "", *lines] if lines else []


def _told(load: Callable[[Cell], Result | None]) -> list[str]:
    """The first cycle of each kind, so that a number can be looked at."""
    lines = []
    for cell in CELLS:
        result = load(cell) or {}
        seen: dict[str, str] = {}
        for told in result.get("found", {}).get("told", ()):
            seen.setdefault(told.partition(":")[0], told)
        lines += [f"* {cell.name}: `{told}`" for told in seen.values()]
    return ["The first of each kind:", "", *lines] if lines else []


def write(load: Callable[[Cell], Result | None]) -> Path:
    """Write the page; returns its path."""
    TARGET.write_text(page(load))
    return TARGET.relative_to(ROOT)
