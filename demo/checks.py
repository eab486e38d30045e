"""Checks at the end of the demo: its own ones, and those of the audit, with the expected rows
computed by pandas.

Each check has a descriptive name, and a detail that shows what was found.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from demo import cluster, flights
from demo.executors import Executor, from_event_log
from demo.killing import Kill
from demo.lake import Instant, data_files, moment
from demo.readers import TableAnswers
from demo.world import EVENTS, NAMESPACE, OUT, TABLE, WRITERS, World
from hudi_contract.keys import PREFIX, Kind, kind_of, tables_prefix
from hudi_contract.table_keys import Registration

COMMITS = {"load": 1, "live": len(flights.LIVE_MONTHS), "backfill": len(flights.CORRECTIONS), "encrypt": 1}


@dataclass(frozen=True)
class Check:
    """One check and its outcome."""

    name: str
    good: bool
    detail: str


@dataclass
class Findings:
    """Data that is read once and used by several checks, the picture and the summary."""

    world: World
    kill: Kill | None
    spark: TableAnswers
    timeline: list[Instant]
    files: dict[str, int]
    conflicts: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    """(writer, entry of status.recentConflicts)"""
    executors: list[Executor] = field(default_factory=list)

    def owner(self, instant: str) -> str:
        """Writer of a commit, from the commit's metadata."""
        for commit in self.spark.commits:
            if commit["instant"] == instant:
                return str(commit["extra"].get("hudioperator.writer", "")).removeprefix(f"{NAMESPACE}/")
        return ""


def collect(world: World, kill: Kill | None) -> Findings:
    """Read the table, its folders and the objects."""
    expected = flights.expected(flights.raw(), world.tailnum_key)
    spark = TableAnswers(world.lake, world.path, OUT / "read", expected=expected, keys=world.watch.keys())
    findings = Findings(world, kill, spark, world.lake.timeline(world.path), world.lake.files(world.path))
    for name, writer in world.writers().items():
        findings.conflicts.extend((name, entry) for entry in writer.get("status", {}).get("recentConflicts", []))
    files = data_files(findings.files)
    for name in world.lake.files(EVENTS):
        if not name.endswith(".inprogress"):
            findings.executors.extend(from_event_log(world.lake.text(f"{EVENTS}/{name}"), files))
    findings.executors = [
        executor
        for executor in findings.executors
        if executor.pod.startswith("encrypt-") and executor.pod in world.logs.seen
    ]
    return findings


def run(findings: Findings) -> list[Check]:
    """Run all checks in order; an error inside a check makes it fail."""
    done = []
    for name, check in CHECKS:
        try:
            good, detail = check(findings)
        except Exception as error:
            good, detail = False, f"{type(error).__name__}: {error}"
        done.append(Check(name, good, detail))
    return done + [audited(check) for check in findings.spark.checks]


def audited(check: dict[str, Any]) -> Check:
    """One check of the audit. The audit had all of its inputs, so only ok is good."""
    words = "; ".join([check["sentence"], *check["findings"][:3]])
    return Check(
        f"audit {check['name']}: {check['title']}",
        check["outcome"] == "ok",
        words if check["outcome"] in words else f"{check['outcome']}: {words}",
    )


def succeeded(f: Findings) -> tuple[bool, str]:
    wrong = [name for name, writer in f.world.writers().items() if not cluster.is_true(writer, "Succeeded")]
    counted = {name: sum(f.owner(i.requested) == name for i in f.timeline) for name in WRITERS}
    return not wrong and counted == COMMITS, f"commits: {', '.join(f'{n} {c}' for n, c in counted.items())}" + (
        f"; not succeeded: {wrong}" if wrong else ""
    )


def conflict(f: Findings) -> tuple[bool, str]:
    completed = {i.requested for i in f.timeline if i.completed}
    real = [
        (name, entry)
        for name, entry in f.conflicts
        if entry.get("instant")
        and entry.get("retriedAs") in completed
        and entry.get("fileGroups")
        and entry["instant"] not in completed
    ]
    if not real:
        return (
            False,
            f"{len(f.conflicts)} conflicts recorded, none with both instants and a file group: {f.conflicts[:2]}",
        )
    name, entry = real[0]
    return (
        True,
        (
            f"{len(real)}; {name}'s {entry['instant']} against {entry.get('with')} on {entry['fileGroups'][0]}, "
            f"repeated as {entry['retriedAs']}"
        ),
    )  # type: ignore[index]


def killed(f: Findings) -> tuple[bool, str]:
    if f.kill is None:
        return False, "nothing was killed"
    instant = f.kill.instant
    left = [name for name in f.files if instant in name and "rollback" not in name]
    good = "rolled back" in f.kill.times and not any(i.requested == instant for i in f.timeline) and not left
    return good, f"{instant}: " + (
        f"files left: {left[:3]}" if left else f"gone with its {len(f.kill.files)}+ data files"
    )


def others_went_on(f: Findings) -> tuple[bool, str]:
    if f.kill is None or "settled" not in f.kill.times:
        return False, "nothing was settled"
    begin, end = f.kill.at, f.kill.at + f.kill.times["settled"]
    between = [
        i
        for i in f.timeline
        if i.completed
        and begin < moment(i.completed).timestamp() < end
        and f.owner(i.requested) not in {"", "backfill"}
    ]
    return (
        bool(between),
        (
            f"{len(between)} commit(s) of other writers in these {end - begin:.1f} s; longest gap between commits "
            f"{longest_gap(f):.1f} s"
        ),
    )


def longest_gap(f: Findings) -> float:
    """Longest time between two commits of the writers that ran together, in seconds."""
    moments = sorted(
        moment(i.completed).timestamp() for i in f.timeline if i.completed and f.owner(i.requested) not in {"", "load"}
    )
    return max((later - earlier for earlier, later in itertools.pairwise(moments)), default=0.0)


def both_executors(f: Findings) -> tuple[bool, str]:
    working = [e for e in f.executors if e.tasks and e.files]
    return len(working) >= 2, "; ".join(
        f"{e.pod}: {len(e.tasks)} tasks, {len(e.files)} files" for e in f.executors
    ) or "no event log found"


def no_pod(f: Findings) -> tuple[bool, str]:
    left = []
    for pod in cluster.items("pods", "-n", NAMESPACE):
        if pod["metadata"]["labels"].get("hudioperator.io/role") == "agent":
            continue
        if pod["metadata"].get("finalizers") or pod["status"].get("phase") not in {"Succeeded", "Failed"}:
            left.append(
                f"{pod['metadata']['name']} {pod['status'].get('phase')} {pod['metadata'].get('finalizers', '')}"
            )
    return not left, ", ".join(left) or "writers' pods have ended and carry no finalizer"


def no_key(f: Findings) -> tuple[bool, str]:
    table = cluster.get("huditable", TABLE, "-n", NAMESPACE).get("status", {}).get("tableId", "")
    left = []
    prefix = tables_prefix(PREFIX, table)
    for key in f.world.watch.latest(prefix):
        part = key.removeprefix(prefix)
        kind, name = kind_of(part)
        if kind in (Kind.LOCK, Kind.INSTANT, Kind.QUEUE) or (
            kind in (Kind.WRITER, Kind.ALIVE) and not _is_agent(f, name)
        ):
            left.append(part)
    return bool(table) and not left, ", ".join(left) or "no lock, instant, ticket or registration of a writer"


def _is_agent(f: Findings, inc: str) -> bool:
    """Whether an incarnation was registered as an agent."""
    known = (change for change in f.world.watch.changes() if change.of == (Kind.WRITER, inc))
    return any(change.read(Registration).is_agent for change in known)


CHECKS: list[tuple[str, Callable[[Findings], tuple[bool, str]]]] = [
    ("all writers succeeded, each batch committed once", succeeded),
    ("a real conflict was refused, repeated and committed", conflict),
    ("the killed writer's instant was rolled back", killed),
    ("others committed between kill and Settled", others_went_on),
    ("both executor pods of encrypt did work and wrote data", both_executors),
    ("no leftover pod or finalizer", no_pod),
    ("no leftover key in etcd", no_key),
]
