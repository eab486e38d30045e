"""`make bench-starvation`: healthy writers without processor time, per lease time.

Writes docs/results/starvation.md (`--page`: only that).

Each writer is a JVM with a real session and four threads that always compute, in a separate control
group that gives it a few per cent of one processor. Counted is what an operator would see: leases
that ran out, heartbeats that were missing for suspectSeconds (the writer would be fenced although
it is healthy), JVMs that halted. BENCH_SECONDS (120): how long each row is watched. Needs root and
control groups.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

from tests.campaigns.bench.services import OUT, Etcd, at, java, machine
from tests.support import ROOT
from tests.support.evidence import NOTHING, Evidence, as_said, commit
from tests.support.evidence.versions import versions

JsonDict = dict[str, Any]

SECONDS = float(os.environ.get("BENCH_SECONDS", "120"))
PAGE = ROOT / "docs" / "results" / "starvation.md"
START_SECONDS = 3.0
"""From the last session's start to the first limit: the last JVM starts its threads and compiles
what renews its lease. Measured is a writer that runs, not how one starts.
"""
SUSPECT_SECONDS = 5.0
WRITERS = 3
DIRECT_HERE = (
    "Sessions reach etcd directly: what the gateway, through which pods reach it today, adds to a heartbeat of a "
    "writer without processor time is not known."
)
SHARES = (50, 20, 10, 5, 2)
"""Per cent of one processor that a writer has."""
PERIOD_MICROSECONDS = 100_000
LEASES = {5: (1, 2), 10: (3, 3), 30: (9, 10)}
"""Lease in seconds: keep-alive, rpc budget (keep-alive + 2 × budget ≤ lease)."""


class Group:
    """A control group that limits processor time."""

    def __init__(self, name: str) -> None:
        one = Path("/sys/fs/cgroup/cpu")
        self._old = (one / "cpu.cfs_quota_us").exists() or (one / "cpu.shares").exists()
        self._path = (one if self._old else Path("/sys/fs/cgroup")) / name
        try:
            self._path.mkdir()
        except OSError as error:
            raise SystemExit(
                f"{self._path}: cannot make a control group ({error}): this needs root and control groups of the "
                "processor"
            ) from error

    def limit(self, pid: int, percent: int) -> None:
        quota = PERIOD_MICROSECONDS * percent // 100
        (self._path / "cgroup.procs").write_text(str(pid))
        if self._old:
            (self._path / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
            (self._path / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (self._path / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}")

    def remove(self) -> None:
        deadline = time.monotonic() + 10
        while self._path.exists() and time.monotonic() < deadline:
            with suppress(OSError):
                self._path.rmdir()
            time.sleep(0.1)


@dataclass
class Watched:
    """One writer, and what has been seen of it."""

    lease: int
    inc: str
    process: Popen[str]
    group: Group
    missing_since: float = 0.0
    counted: bool = False
    lost: int = 0
    suspected: int = 0
    halted: int = 0
    longest: float = 0.0

    def look(self, alive: bool, now: float) -> None:
        """Whether the heartbeat was there in a linearizable read."""
        if self.halted or self.process.poll() is not None:
            self.halted = 1
        elif alive:
            self.missing_since = 0.0
        elif not self.missing_since:
            self.missing_since, self.counted = now, False
            self.lost += 1
        else:
            missing = now - self.missing_since
            self.longest = max(self.longest, missing)
            if missing >= SUSPECT_SECONDS and not self.counted:
                self.suspected, self.counted = self.suspected + 1, True


def key(table: str, rest: str, part: str = "tables") -> str:
    return f"/hudi/{part}/{table}/{rest}"


def encode(text: str) -> str:
    import base64

    return base64.b64encode(text.encode()).decode()


def put(etcd: Etcd, name: str, value: JsonDict) -> None:
    etcd.call("kv/put", key=encode(name), value=encode(json.dumps(value)))


def alive(etcd: Etcd) -> set[str]:
    """Incarnations whose heartbeat is there."""
    import base64

    found = etcd.call("kv/range", key=encode("/hudi/tables/"), range_end=encode("/hudi/tables0"), keys_only=True)
    names = [base64.b64decode(kv["key"]).decode() for kv in found.get("kvs", [])]
    return {name.rsplit("/", 1)[1] for name in names if "/alive/" in name}


def start(etcd: Etcd, folder: Path, lease: int, number: int) -> Watched:
    keep_alive, budget = LEASES[lease]
    table, attempt = f"{lease:015x}{number:x}", f"bench.s{lease}-{number}"
    put(
        etcd,
        key(table, "gate", "control"),
        {"state": "open", "mode": "PodTermination", "admitted": [], "protocolVersion": 1},
    )
    put(etcd, key(table, f"admit/{attempt}", "control"), {"role": "writer"})
    settings = {"tableId": table, "basePath": str(folder / table), "attempt": attempt, "endpoints": etcd.endpoint}
    settings |= {"leaseSeconds": str(lease), "keepAliveSeconds": str(keep_alive), "rpcTimeoutSeconds": str(budget)}
    job = folder / f"{lease}-{number}.json"
    job.write_text(json.dumps({"settings": settings, "threads": 4}))
    process = java("StarvedWriter", job, memory="96m", log=folder / f"{lease}-{number}.log")
    assert process.stdout is not None
    inc = ""
    for line in process.stdout:
        if len(line.strip()) == 36:
            inc = line.strip()
            break
    return Watched(lease, inc, process, Group(f"hudi-starved-{os.getpid()}-{lease}-{number}"))


def measure(percent: int) -> list[JsonDict]:
    """One share of a processor, all leases side by side."""
    folder = Path(tempfile.mkdtemp(prefix="starved-"))
    etcd = Etcd(folder / "server")
    watched: list[Watched] = []
    try:
        for lease in LEASES:
            watched += [start(etcd, folder, lease, number) for number in range(WRITERS)]
        time.sleep(START_SECONDS)
        for writer in watched:
            writer.group.limit(writer.process.pid, percent)
        begun, load = time.monotonic(), os.getloadavg()[0]
        while (now := time.monotonic()) < begun + SECONDS:
            there = alive(etcd)
            for writer in watched:
                writer.look(writer.inc in there, now)
            time.sleep(0.2)
        rows = []
        for lease in LEASES:
            mine = [w for w in watched if w.lease == lease]
            sums = {name: sum(getattr(w, name) for w in mine) for name in ("lost", "suspected", "halted")}
            hours = len(mine) * SECONDS / 3600
            common = {
                "commit": commit(),
                "versions": versions(),
                "machine": machine(),
                "at": at(),
                "loadAverage": [load, os.getloadavg()[0]],
            }
            rows.append(
                {
                    "percent": percent,
                    "lease": lease,
                    "writerHours": hours,
                    "longest": max(w.longest for w in mine),
                    **sums,
                    **common,
                }
            )
        return rows
    finally:
        for writer in watched:
            writer.process.kill()
            writer.process.wait()
            writer.group.remove()
        etcd.stop()


def main(arguments: list[str]) -> int:
    OUT.mkdir(parents=True, exist_ok=True)
    if unknown := [word for word in arguments if word != "--page"]:
        raise SystemExit(f"{unknown[0]}: no such option; --page writes the page only")
    for percent in () if arguments else SHARES:
        file = OUT / f"starvation-{percent}.json"
        if file.exists() and json.loads(file.read_text())[0]["commit"] == commit():
            continue
        rows = measure(percent)
        file.write_text(json.dumps(rows, indent=1) + "\n")
        print(
            f"{percent} %: "
            + "; ".join(
                f"lease {r['lease']}: lost {r['lost']}, suspected {r['suspected']}, halted {r['halted']}" for r in rows
            ),
            flush=True,
        )
    PAGE.write_text(page())
    print(PAGE)
    return 0


def page() -> str:
    files = [OUT / f"starvation-{percent}.json" for percent in SHARES]
    rows = [row for file in files if file.exists() for row in json.loads(file.read_text())]
    lines = [
        "# False positives under starvation",
        "",
        (
            "Written by `make bench-starvation` (`tests/campaigns/bench`); do not edit. Healthy writers that get too "
            "little processor time: how often would one be"
        ),
        (
            f"fenced, that is, how often was its heartbeat missing for {SUSPECT_SECONDS:.0f} s "
            "(`lock.suspectSeconds`)? Each writer is a JVM with a session and"
        ),
        (
            "four threads that always compute, in a control group with a hard limit (a share of one processor, "
            "enforced every 100 ms). A fenced writer loses"
        ),
        "its attempt, never data: this is the price of a short lease (`lock.leaseSeconds`).",
        (
            "Where none was seen, the rate is the upper end of the 95 % interval; else the interval stands behind the "
            "rate, for events that come one by one."
        ),
        "",
        (
            "| share of one processor | lease | writer-minutes | leases lost | would be fenced | per writer-hour | "
            "longest without heartbeat | JVMs halted |"
        ),
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        (
            f"| {r['percent']} % | {r['lease']} s | {60 * r['writerHours']:.0f} | {r['lost']} | {r['suspected']} | "
            f"{_rate(r)} "
            f"| {r['longest']:.1f} s | {r['halted']} |"
        )
        for r in rows
    ]
    if not rows:
        return "\n".join([*lines[:-2], NOTHING]) + "\n"
    head = next(n for n, line in enumerate(lines) if line.startswith("| share"))
    said = Evidence.of(rows, f"{len(rows)} of {len(SHARES) * len(LEASES)} rows", direct=DIRECT_HERE)
    lines[head:head] = [str(said), ""]
    runs = sorted({_run(row) for row in rows})
    return "\n".join([*lines, "", "Runs:", "", *(f"* {run}" for run in runs)]) + "\n"


def _rate(row: JsonDict) -> str:
    """Events per writer-hour, and the 95 % interval that so little time allows.

    If there was none, the upper bound (3 divided by the time).
    """
    events, hours = row["suspected"], row["writerHours"]
    if not events:
        return f"< {3 / hours:.0f}"
    lower, upper = (end / hours for end in interval(events))
    return f"{events / hours:.0f} ({lower:.0f} to {upper:.0f})"


def interval(events: int) -> tuple[float, float]:
    """The exact 95 % interval of a Poisson mean for this number of events (more than 0)."""

    def at_most(number: int, mean: float) -> float:
        return sum(math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(number + 1))

    def mean_with(number: int, wanted: float) -> float:
        """The mean for which `at_most` is what is wanted: it falls as the mean grows."""
        low, high = 0.0, 10.0 * (number + 5)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if at_most(number, middle) > wanted else (low, middle)
        return low

    return mean_with(events - 1, 0.975), mean_with(events, 0.025)


def _run(row: JsonDict) -> str:
    return (
        f"{row['at']}, commit {as_said(row['commit'])}, etcd {row['versions']['etcd']}, {row['machine']}, load average "
        f"{row['loadAverage'][0]:.1f}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
