"""docs/results/chaos.md, from the raw results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support import ROOT
from tests.support.evidence import RAW, Evidence, as_said, at_most

RESULTS = RAW / "chaos"
PAGE = ROOT / "docs" / "results" / "chaos.md"
VERDICTS = ("ok", "thin", "broken", "stuck")
BROKEN = ("bad", "unnamed", "gaps", "history", "lost")
"""Fields that say what is wrong with a table."""
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
  the same, but not every writer has committed something. **stuck**: something did not happen in its
  time (a table ready, a writer ended, a write completed or rolled back), so nothing was asked.
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


def keep(found: dict[str, Any]) -> Path:
    """Write a result down; one of the same cell and seed stays beside it. Returns where it is."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    name = f"{found['cell']}-{found['seed']}"
    again = len(list(RESULTS.glob(f"{name}*.json")))
    path = RESULTS / (f"{name}-again-{again}.json" if again else f"{name}.json")
    path.write_text(json.dumps(found, indent=1) + "\n")
    return path


def _broken(one: dict[str, Any]) -> list[str]:
    found = [f"{name}: {said}" for name, said in one.get("bad", {}).items()]
    found += [f"{what}: {', '.join(one[what])}" for what in BROKEN[1:] if one.get(what)]
    return found


def _appends(one: dict[str, Any]) -> str:
    there = one.get("appends")
    return f"{there['committed']} of {there['tries']}" if there else "-"


QUESTIONS: dict[str, tuple[Callable[[dict[str, Any]], bool], tuple[str, ...]]] = {
    "Rows lost, doubled, wrong or phantom, batches missing, or a check of the audit": (
        lambda one: "bad" in one,
        ("bad", "unnamed", "gaps"),
    ),
    "Histories that snapshot isolation forbids": (lambda one: "history" in one, ("history",)),
    "Acknowledged batches without a commit": (lambda one: "acknowledged" in one, ("lost",)),
    "Any of these, in a run with archival": (lambda one: bool(one.get("archived")), BROKEN),
    "Any of these, in a run with completed clusterings": (lambda one: bool(one.get("clusterings")), BROKEN),
}
"""Questions about runs: a selection of the runs, and the fields that say what was found."""
HANGS = "Runs that hung"


def _answers(found: list[dict[str, Any]]) -> list[str]:
    """Each question with the runs in which it was asked, and what their number allows."""
    lines = ["| asked | runs in which it was asked | with such a finding |", "|---|---:|---|"]
    for what, (asked, fields) in QUESTIONS.items():
        those = [one for one in found if asked(one)]
        bad = sum(any(one.get(field) for field in fields) for one in those)
        lines.append(f"| {what} | {len(those)} | {at_most(bad, len(those))} |")
    kept = [one for one in found if "stuck" in one]
    lines.append(f"| {HANGS} | {len(kept)} | {at_most(sum(bool(one['stuck']) for one in kept), len(kept))} |")
    return lines


def _since(found: list[dict[str, Any]]) -> str:
    """From which run on one that hangs has left a result: the first with the field."""
    kept = [one for one in found if "stuck" in one]
    if not kept:
        return "The harness of these runs did not record runs that hung; their number is unknown."
    first = kept[0]
    return (
        f"Runs that hang are kept since {as_said(first['commit'])} ({first['at'][:10]}); how many there were before "
        "is not known."
    )


def page(found: list[dict[str, Any]]) -> str:
    """The page; without a result it says so."""
    if not found:
        return f"{HEAD}\n{Evidence({}, '')}\n"
    left = "runs that an error of the harness or a person has ended leave no result"
    evidence = Evidence.of(found, f"{len(found)}, with the seeds below", left_out=left, more=(_since(found),))
    lines = [
        str(evidence),
        "",
        (
            "| cell | minutes | seed | commit | begun | faults (hit) | batches committed | acknowledged | appends | "
            "archived | clusterings | settled | keys | verdict |"
        ),
        "|---|---:|---:|---|---|---|---|---:|---|---:|---:|---:|---:|---|",
    ]
    lines += [_row(one) for one in found]
    verdicts = Counter(one["verdict"] for one in found)
    said = ", ".join(f"{verdicts[word]} {word}" for word in VERDICTS if verdicts[word])
    total = sum(one["seconds"] for one in found if one["verdict"] != "stuck") / 3600
    return "\n".join(
        [HEAD, *lines, "", f"{len(found)} runs: {said}; {total:.1f} hours of faults.", "", *_answers(found), ""]
    )


def _row(one: dict[str, Any]) -> str:
    hits = Counter(
        f"{fault['how']} {'driver' if fault['target'].startswith(('w', 'threads')) else fault['target']}"
        for fault in one["faults"]
        if fault["hit"]
    )
    faults = ", ".join(f"{number} {name}" for name, number in sorted(hits.items())) or "none"
    told = f"**{one['verdict']}**: " if one["verdict"] in ("broken", "stuck") else one["verdict"]
    told += one["stuck"] if one["verdict"] == "stuck" else "; ".join(_broken(one))
    batches = ", ".join(f"{name} {number}" for name, number in one.get("batches", {}).items()) or "-"
    return (
        f"| {one['cell']} | {one['seconds'] / 60:.0f} | {one['seed']} | {one['commit']} | {one['at']} | {faults} "
        f"| {batches} | {one.get('acknowledged', '-')} | {_appends(one)} | {one.get('archived', '-')} | "
        f"{one.get('clusterings', '-')} | {one.get('settled', '-')} | {one.get('keys', '-')} | {told} |"
    )
