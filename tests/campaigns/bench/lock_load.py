"""`make bench-lock`: many writers that commit once a minute, on one etcd and on one ZooKeeper.

Writes docs/results/lock-load.md.

    python -m tests.campaigns.bench.lock_load                   every row that has no result for
                                                                this commit yet
    python -m tests.campaigns.bench.lock_load many-etcd         only this row, anew
    python -m tests.campaigns.bench.lock_load --page            only the page

A writer here is the session that a driver has (connection, heartbeat, lock cycles), without Spark
and without data; all of them are threads of one JVM on the same machine as the server.
BENCH_SECONDS (180): how long is measured after a warm-up.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.campaigns.bench.services import OUT, Etcd, Keeper, at, chart_values, java, machine
from tests.support import ROOT
from tests.support.evidence import NOTHING, Evidence, as_said, commit, none_of
from tests.support.evidence.versions import versions

JsonDict = dict[str, Any]

SECONDS = int(os.environ.get("BENCH_SECONDS", "180"))
WARM_UP_SECONDS = 60
PAGE = ROOT / "docs" / "results" / "lock-load.md"
MIB = 2**20


@dataclass(frozen=True)
class Load:
    """One row: writers spread evenly over tables, one commit per period each."""

    id: str
    service: str
    tables: int
    writers: int
    hold_millis: int
    period: int = 60
    seconds: int = SECONDS

    @property
    def told(self) -> str:
        spread = "one table" if self.tables == 1 else f"{self.tables} tables"
        return f"{self.writers:,} writers, {spread}"


DIRECT_HERE = (
    "Sessions reach etcd directly, without TLS and users; through the gateway, as pods do today, one table has fewer "
    "lock cycles ([lock-gateway](lock-gateway.md))."
)
LOADS = (
    Load("many-etcd", "etcd", tables=100, writers=1000, hold_millis=50),
    Load("each-etcd", "etcd", tables=1000, writers=1000, hold_millis=50),
    Load("one-etcd", "etcd", tables=1, writers=1000, hold_millis=5),
    Load("thirty-two-etcd", "etcd", tables=1, writers=32, hold_millis=200, period=20),
    Load("thirty-two-zookeeper", "zookeeper", tables=1, writers=32, hold_millis=200, period=20),
)


def measure(load: Load, folder: Path) -> JsonDict:
    """Run one row. Raises when the writers did not come to an end."""
    load_before = os.getloadavg()[0]
    server: Etcd | Keeper = Etcd(folder / "server") if load.service == "etcd" else Keeper(folder / "server")
    job = folder / "job.json"
    shape = {
        "tables": load.tables,
        "writers": load.writers,
        "periodSeconds": load.period,
        "holdMillis": load.hold_millis,
        "workMillis": 500,
    }
    times = {"warmUpSeconds": WARM_UP_SECONDS, "seconds": load.seconds}
    job.write_text(
        json.dumps(
            {"service": load.service, "endpoint": server.endpoint, "folder": str(folder / "tables"), **shape, **times}
        )
    )
    log, out = folder / "log", folder / "out"
    try:
        process = java("LockLoad", job, memory="1g", log=log, out=out)
        try:
            _until_said(log, "MEASURING", process.poll)
            before, opened = server.usage, os.getloadavg()[0]
            database = server.database() if isinstance(server, Etcd) else {}
            _until_said(log, "MEASURED", process.poll)
            after, closed = server.usage, os.getloadavg()[0]
            result: JsonDict = {
                "loadBefore": load_before,
                "cpu": after.cpu - before.cpu,
                "memory": after.memory,
                "loadAverage": [opened, closed],
            }
            if isinstance(server, Etcd):
                grown = server.database()
            process.wait(timeout=120)
        finally:
            process.kill()
            process.wait()
        # ZooKeeper's client logs errors to stdout, too.
        result.update(json.loads([line for line in out.read_text().splitlines() if line.startswith("{")][-1]))
        if isinstance(server, Etcd):
            server.compact()
            result["database"] = {"before": database, "after": grown, "compacted": server.database()}
    finally:
        server.stop()
    return {
        **result,
        "seconds": load.seconds,
        "retentionSeconds": chart_values()["autoCompactionRetentionSeconds"],
        "commit": commit(),
        "versions": versions(),
        "machine": machine(),
        "at": at(),
    }


def _until_said(log: Path, word: str, ended: Callable[[], int | None]) -> None:
    while word not in log.read_text(errors="replace"):
        assert ended() is None or word in log.read_text(errors="replace"), log.read_text(errors="replace")[-2000:]
        time.sleep(0.2)


def load_result(load: Load) -> JsonDict | None:
    path = OUT / f"lock-load-{load.id}.json"
    return dict(json.loads(path.read_text())) if path.exists() else None


def main(arguments: list[str]) -> int:
    OUT.mkdir(parents=True, exist_ok=True)
    unknown = [name for name in arguments if name != "--page" and name not in {load.id for load in LOADS}]
    if unknown:
        raise SystemExit(f"{unknown[0]}: no such row; choose from {', '.join(load.id for load in LOADS)}")
    for load in () if "--page" in arguments else LOADS:
        if arguments and load.id not in arguments:
            continue
        known = load_result(load)
        if not arguments and known is not None and known["commit"] == commit():
            continue
        folder = Path(tempfile.mkdtemp(prefix="bench-"))
        result = measure(load, folder)
        (OUT / f"lock-load-{load.id}.json").write_text(json.dumps(result, indent=1) + "\n")
        print(f"{load.id}: {json.dumps(result)}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
    PAGE.write_text(page())
    print(PAGE)
    return 0


def page() -> str:
    """The results page, from the results that are there."""
    found = [(load, result) for load in LOADS if (result := load_result(load)) is not None]
    values = chart_values()
    lines = [
        "# Lock load",
        "",
        (
            "Written by `make bench-lock` (`tests/campaigns/bench`); do not edit. Many writers that commit once in a "
            "while, without Spark and without data: what "
            "they"
        ),
        (
            "ask of the lock service, and how long they wait for it. Each writer is a real session (a connection, a "
            "heartbeat every 3 s, a lease of 10 s);"
        ),
        (
            "a commit is two lock cycles, as in Hudi: acquire, record the instant, release; half a second of work; "
            "acquire, publish, release. The lock is"
        ),
        (
            "held for the time in the table. Commits begin at random moments of the period. One server that syncs to "
            "disk; server and all writers (threads of"
        ),
        (
            "one JVM) share the machine, so the waits contain the load of 1,000 clients on the same processors. "
            "Hudi's own ZooKeeper provider is made anew,"
        ),
        (
            "with a connection, for each lock cycle, as Hudi does it; it keeps no heartbeat between them. ZooKeeper's "
            "limit of connections per address is"
        ),
        "lifted: here all have one address.",
        "",
        (
            "**ZooKeeper's waits here are upper bounds, and 1,000 of its writers are not shown:** a client that "
            "closes sleeps 100 ms"
        ),
        (
            "(`ClientCnxnSocketNIO.cleanup`) under a lock that all clients of a JVM share, so one JVM cannot do more "
            "than ten lock cycles a second. Writers in"
        ),
        "JVMs of their own would not meet that.",
        "",
        (
            "| writers | lock service | a commit each | held | commits/min (due) | wait for the lock p50 | p95 | p99 "
            "| max | server: processor | memory | errors (none: of commits) |"
        ),
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    if not found:
        return "\n".join([*lines[:-2], NOTHING]) + "\n"
    said = Evidence.of((result for _, result in found), f"{len(found)} of {len(LOADS)} rows", direct=DIRECT_HERE)
    lines[-2:-2] = [str(said), ""]
    for load, result in found:
        wait = result["waitMillis"]
        due = load.writers * 60 / load.period
        lines.append(
            f"| {load.told} | {load.service} | {load.period} s | {load.hold_millis} ms | "
            f"{result['commits'] * 60 / result['seconds']:.0f} ({due:.0f}) "
            f"| {wait['p50']:.1f} ms | {wait['p95']:.1f} ms | {wait['p99']:.0f} ms | {wait['p100']:.0f} ms "
            f"| {100 * result['cpu'] / result['seconds']:.0f} % of one | {result['memory'] / MIB:.0f} MB | "
            f"{sum(result['errors'].values()) + result['halts'] or none_of(result['commits'])} |"
        )
    if any(_busy(result) for _, result in found):
        lines += [
            "",
            (
                "**The machine was busy with other work in some of these runs (load averages below): their waits are "
                "upper bounds.**"
            ),
        ]
    lines += ["", "## etcd's database", ""]
    lines += [
        (
            "| writers | before | after | growth per 1,000 commits | per hour at this rate | after compaction and "
            "defragmentation |"
        ),
        "|---|---:|---:|---:|---:|---:|",
    ]
    for load, result in found:
        if "databaseLine" in result:
            lines.append(result["databaseLine"])  # of a run whose unrounded numbers were not kept
        if "database" not in result or not result["commits"]:
            continue
        base = result["database"]
        growth = base["after"]["inUse"] - base["before"]["inUse"]
        hour = growth * 3600 / result["seconds"]
        lines.append(
            f"| {load.told} | {base['before']['inUse'] / MIB:.1f} MB | {base['after']['inUse'] / MIB:.1f} MB "
            f"| {growth / result['commits'] * 1000 / MIB:.1f} MB | {hour / MIB:.0f} MB | "
            f"{base['compacted']['size'] / MIB:.1f} MB |"
        )
    retention = values["autoCompactionRetentionSeconds"]
    others: dict[int, list[str]] = {}
    for load, result in found:
        if result["retentionSeconds"] != retention:
            others.setdefault(result["retentionSeconds"], []).append(f"`{load.id}`")
    then = "".join(
        f"; with {', '.join(ids)} these were {seconds // 60} minutes" for seconds, ids in sorted(others.items())
    )
    lines += [
        "",
        (
            f"The chart gives etcd {values['quotaBackendBytes'] / MIB:.0f} MB and lets it compact history older than "
            f"{retention // 60} minutes{then}. What one table can add at most is in"
        ),
        "[identities](../design/identities.md#limits).",
        "",
        "Runs:",
        "",
    ]
    for load, result in found:
        said = " ".join(
            f"{name}={value}" for name, value in result["versions"].items() if name in ("etcd", "hudi", "zookeeper")
        )
        average = " to ".join(f"{x:.1f}" for x in result["loadAverage"])
        load_average = f"load average {average}, before it {result['loadBefore']:.1f}"
        lines.append(
            f"* `{load.id}`: {result['at']}, commit {as_said(result['commit'])}, {result['seconds']} s, {said}, "
            f"{result['machine']}, {load_average}"
        )
        lines += [f"  * {count} × {text}" for text, count in result["errors"].items()]
    return "\n".join(lines) + "\n"


def _busy(result: JsonDict) -> bool:
    return bool(result["loadBefore"] > 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
