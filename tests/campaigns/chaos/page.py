"""docs/results/chaos.md, from the raw results."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.support import ROOT
from tests.support.evidence import ONE_EACH, RAW, Evidence, none_of, of_results

RESULTS = RAW / "chaos"
PAGE = ROOT / "docs" / "results" / "chaos.md"
HEAD = """\
# Chaos

Written by `make chaos` (`tests/campaigns/chaos`) from the raw results in `docs/results/raw/chaos`;
do not edit. A real cluster on one machine: three writers and a program with two threads upsert keys
of one range, old and new ones, into one table, while every 10 to 30 s a driver, an executor, an
agent, the operator, etcd or the S3 server is killed, or frozen for a while. Afterwards the audit
compares the table with the rows of the committed batches: what Spark reads, what hudi-rs reads, and
what pandas computes from the batches.

* **ok**: no row of a completed commit is lost, doubled or wrong, none is phantom, every check holds,
  no batch is missing whose writer went on to a later one, and none that was acknowledged. **thin**:
  the same, but not every writer has committed something.
* **Acknowledged**: batches of which a pod's log says that the writer's code went on; each must be in
  a commit of the attempt that was told, or of an earlier one, in the active or the archived timeline.
  -: a run in which that was not asked: what is due was read from the table's commits alone, so the
  last batch of a writer could be acknowledged and its commit gone without being seen.
* Each second batch of two writers is a list-append transaction (an `Update` that reads two lists and
  appends to one); each fourth one where nothing is said of what was acknowledged. A run is broken
  when their history shows something that snapshot isolation forbids (G0, G1, G-single, G-SI).
  **Appends**: transactions committed of tries; -: a run of before there were any.
* Cleaning, compaction, archival and, with the default index, clustering run beside the writers.
  **Archived**: commits in the archived timeline in the end; **clusterings**: completed ones; -: a run
  without both services. Not part of it: log compaction and expiry.
"""


def results() -> list[dict[str, Any]]:
    """All raw results, the oldest first."""
    return sorted((json.loads(path.read_text()) for path in RESULTS.glob("*.json")), key=lambda one: str(one["at"]))


def _broken(one: dict[str, Any]) -> list[str]:
    found = [f"{name}: {said}" for name, said in one["bad"].items()]
    found += [f"{what}: {', '.join(one[what])}" for what in ("unnamed", "gaps", "lost", "history") if one.get(what)]
    return found


def _appends(one: dict[str, Any]) -> str:
    there = one.get("appends")
    return f"{there['committed']} of {there['tries']}" if there else "-"


def page(found: list[dict[str, Any]]) -> str:
    """The page; without a result it says so."""
    if not found:
        return f"{HEAD}\n{Evidence({}, '')}\n"
    left = "runs that could not be brought to an end by the harness leave no result; the others are all here"
    lines = [
        str(Evidence(of_results(found), f"{len(found)}, with the seeds below", ONE_EACH, left)),
        "",
        (
            "| cell | minutes | seed | commit | begun | faults (hit) | batches committed | acknowledged | appends | "
            "archived | clusterings | settled | keys | verdict |"
        ),
        "|---|---:|---:|---|---|---|---|---:|---|---:|---:|---:|---:|---|",
    ]
    for one in found:
        hits = Counter(
            f"{fault['how']} {'driver' if fault['target'].startswith(('w', 'threads')) else fault['target']}"
            for fault in one["faults"]
            if fault["hit"]
        )
        faults = ", ".join(f"{number} {name}" for name, number in sorted(hits.items())) or "none"
        told = "**broken**: " + "; ".join(_broken(one)) if one["verdict"] == "broken" else one["verdict"]
        batches = ", ".join(f"{name} {number}" for name, number in one["batches"].items())
        lines.append(
            f"| {one['cell']} | {one['seconds'] / 60:.0f} | {one['seed']} | {one['commit']} | {one['at']} | {faults} "
            f"| {batches} | {one.get('acknowledged', '-')} | {_appends(one)} | {one.get('archived', '-')} | "
            f"{one.get('clusterings', '-')} | {one['settled']} | {one['keys']} | {told} |"
        )
    good = sum(one["verdict"] == "ok" for one in found)
    total = sum(one["seconds"] for one in found) / 3600
    bound = "" if any(one["verdict"] == "broken" for one in found) else f" Broken: {none_of(len(found))} of such runs."
    return "\n".join([HEAD, *lines, "", f"{good} of {len(found)} runs ok, {total:.1f} hours of faults.{bound}", ""])
