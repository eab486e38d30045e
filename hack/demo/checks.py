"""What must hold in the end. Each check has a name that says it, and a detail that shows what was found."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from demo import cluster, flights
from demo.executors import Executor, from_event_log
from demo.killing import Kill
from demo.lake import BASE_FILE, LOG_FILE, Instant, data_files, moment
from demo.readers import SparkAnswers, with_hudi_rs
from demo.world import EVENTS, NAMESPACE, OUT, TABLE, WRITERS, World

COMMITS = {"load": 1, "live": len(flights.LIVE_MONTHS), "backfill": len(flights.CORRECTIONS), "encrypt": 1}


@dataclass(frozen=True)
class Check:
    """One check and its outcome."""

    name: str
    good: bool
    detail: str


@dataclass
class Findings:
    """Everything that was read once and is used by several checks, the picture and the summary."""

    world: World
    kill: Kill | None
    spark: SparkAnswers
    timeline: list[Instant]
    files: dict[str, int]
    conflicts: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    """(writer, entry of status.recentConflicts)"""
    executors: list[Executor] = field(default_factory=list)

    def owner(self, instant: str) -> str:
        """Writer whose commit it is, by the commit's metadata."""
        for commit in self.spark.commits:
            if commit["instant"] == instant:
                return str(commit["extra"].get("hudioperator.writer", "")).removeprefix(f"{NAMESPACE}/")
        return ""


def collect(world: World, kill: Kill | None) -> Findings:
    """Read the table, its folders and the objects."""
    spark = SparkAnswers(world.lake, world.path, OUT / "read")
    findings = Findings(world, kill, spark, world.lake.timeline(world.path), world.lake.files(world.path))
    for name, writer in world.writers().items():
        findings.conflicts.extend((name, entry) for entry in writer.get("status", {}).get("recentConflicts", []))
    files = data_files(findings.files)
    for name in world.lake.files(EVENTS):
        if not name.endswith(".inprogress"):
            findings.executors.extend(from_event_log(world.lake.text(f"{EVENTS}/{name}"), files))
    findings.executors = [executor for executor in findings.executors if executor.pod.startswith("encrypt-") and executor.pod in world.logs.seen]
    return findings


def run(findings: Findings) -> list[Check]:
    """All checks, in order; an error inside of one makes it fail."""
    done = []
    for name, check in CHECKS:
        try:
            good, detail = check(findings)
        except Exception as error:
            good, detail = False, f"{type(error).__name__}: {error}"
        done.append(Check(name, good, detail))
    return done


def _wanted(findings: Findings) -> object:
    return flights.expected(flights.raw(), findings.world.tailnum_key)


def _equal(table: object, findings: Findings) -> tuple[bool, str]:
    wanted = _wanted(findings)
    problem = flights.difference(table, wanted)  # type: ignore[arg-type]
    return not problem, problem or f"{len(wanted):,} rows, {len(wanted.columns)} columns"  # type: ignore[arg-type, attr-defined]


def spark_rows(f: Findings) -> tuple[bool, str]:
    return _equal(f.spark.snapshot(), f)


def hudi_rs_rows(f: Findings) -> tuple[bool, str]:
    return _equal(with_hudi_rs(f.world.lake, f.world.path), f)


def incremental(f: Findings) -> tuple[bool, str]:
    return _equal(f.spark.incremental(), f)


def succeeded(f: Findings) -> tuple[bool, str]:
    wrong = [name for name, writer in f.world.writers().items() if not cluster.is_true(writer, "Succeeded")]
    counted = {name: sum(f.owner(i.requested) == name for i in f.timeline) for name in WRITERS}
    return not wrong and counted == COMMITS, f"commits: {', '.join(f'{n} {c}' for n, c in counted.items())}" + (f"; not succeeded: {wrong}" if wrong else "")


def conflict(f: Findings) -> tuple[bool, str]:
    completed = {i.requested for i in f.timeline if i.completed}
    real = [
        (name, entry)
        for name, entry in f.conflicts
        if entry.get("instant") and entry.get("retriedAs") in completed and entry.get("fileGroups") and entry["instant"] not in completed
    ]
    if not real:
        return False, f"{len(f.conflicts)} conflicts recorded, none with both instants and a file group: {f.conflicts[:2]}"
    name, entry = real[0]
    return True, f"{len(real)}; {name}'s {entry['instant']} against {entry.get('with')} on {entry['fileGroups'][0]}, repeated as {entry['retriedAs']}"  # type: ignore[index]


def killed(f: Findings) -> tuple[bool, str]:
    if f.kill is None:
        return False, "nothing was killed"
    instant = f.kill.instant
    left = [name for name in f.files if instant in name and "rollback" not in name]
    good = "rolled back" in f.kill.times and not any(i.requested == instant for i in f.timeline) and not left
    return good, f"{instant}: " + (f"files left: {left[:3]}" if left else f"gone with its {len(f.kill.files)}+ data files")


def others_went_on(f: Findings) -> tuple[bool, str]:
    if f.kill is None or "settled" not in f.kill.times:
        return False, "nothing was settled"
    begin, end = f.kill.at, f.kill.at + f.kill.times["settled"]
    between = [i for i in f.timeline if i.completed and begin < moment(i.completed).timestamp() < end and f.owner(i.requested) not in {"", "backfill"}]
    return bool(between), f"{len(between)} commit(s) of other writers in these {end - begin:.1f} s; longest gap between commits {longest_gap(f):.1f} s"


def longest_gap(f: Findings) -> float:
    """Longest time between two commits of the writers that ran together, in seconds."""
    moments = sorted(moment(i.completed).timestamp() for i in f.timeline if i.completed and f.owner(i.requested) not in {"", "load"})
    return max((later - earlier for earlier, later in itertools.pairwise(moments)), default=0.0)


def both_executors(f: Findings) -> tuple[bool, str]:
    working = [e for e in f.executors if e.tasks and e.files]
    return len(working) >= 2, "; ".join(f"{e.pod}: {len(e.tasks)} tasks, {len(e.files)} files" for e in f.executors) or "no event log found"


def nothing_pending(f: Findings) -> tuple[bool, str]:
    metadata = f.world.lake.timeline(f"{f.world.path}/.hoodie/metadata")
    pending = [f"{i.requested} {i.action}" for i in [*f.timeline, *metadata] if not i.completed]
    return not pending, ", ".join(pending) or f"{len(f.timeline)} instants, all completed; metadata table {len(metadata)}"


def no_stray_file(f: Findings) -> tuple[bool, str]:
    completed = {i.requested for i in f.timeline if i.completed}
    metadata = {i.requested for i in f.world.lake.timeline(f"{f.world.path}/.hoodie/metadata") if i.completed}
    stray = [file.path for file in data_files(f.files) if file.instant not in completed]
    for path in f.files:
        folder, _, name = path.rpartition("/")
        match = BASE_FILE.match(name) or LOG_FILE.match(name)
        if match is not None and folder.startswith(".hoodie/metadata/") and match["instant"] not in metadata:
            stray.append(path)
        if folder.startswith((".hoodie/.temp", ".hoodie/metadata/.hoodie/.temp", ".hoodie/.heartbeat")) and name:
            stray.append(path)
    return not stray, ", ".join(stray[:3]) or f"{len(data_files(f.files))} data files, no marker or heartbeat file left"


def no_pod(f: Findings) -> tuple[bool, str]:
    left = []
    for pod in cluster.items("pods", "-n", NAMESPACE):
        if pod["metadata"]["labels"].get("hudioperator.io/role") == "agent":
            continue
        if pod["metadata"].get("finalizers") or pod["status"].get("phase") not in {"Succeeded", "Failed"}:
            left.append(f"{pod['metadata']['name']} {pod['status'].get('phase')} {pod['metadata'].get('finalizers', '')}")
    return not left, ", ".join(left) or "writers' pods have ended and carry no finalizer"


def no_key(f: Findings) -> tuple[bool, str]:
    table = cluster.get("huditable", TABLE, "-n", NAMESPACE).get("status", {}).get("tableId", "")
    left = []
    for key, value in f.world.watch.latest(f"/tables/{table}/").items():
        part = key.split(f"/tables/{table}/", 1)[1]
        if part == "lock" or part.startswith(("instant/", "queue/")) or (part.startswith(("writer/", "alive/")) and not _of_agent(f, part, value)):
            left.append(part)
    return bool(table) and not left, ", ".join(left) or "no lock, instant, ticket or registration of a writer"


def _of_agent(f: Findings, part: str, value: dict[str, object]) -> bool:
    if value.get("role") == "agent":
        return True
    inc = part.split("/", 1)[1]
    return any(change.value is not None and change.value.get("role") == "agent" for change in f.world.watch.changes(f"/writer/{inc}"))


CHECKS: list[tuple[str, Callable[[Findings], tuple[bool, str]]]] = [
    ("all writers succeeded, each batch committed once", succeeded),
    ("the table read by Spark is what pandas computes", spark_rows),
    ("the table read by hudi-rs is what pandas computes", hudi_rs_rows),
    ("incremental pull from the beginning gives every final row", incremental),
    ("a real conflict was refused, repeated and committed", conflict),
    ("the killed writer's instant was rolled back", killed),
    ("others committed between kill and Settled", others_went_on),
    ("both executor pods of encrypt did work and wrote data", both_executors),
    ("no pending instant", nothing_pending),
    ("no file without an instant", no_stray_file),
    ("no leftover pod or finalizer", no_pod),
    ("no leftover key in etcd", no_key),
]
