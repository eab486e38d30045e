"""`make bench`: custom resources in, driver pods out: this operator beside kubeflow/spark-operator.

    python -m tests.campaigns.bench.side_by_side            what is missing of this commit

Each run has its own cluster (API server, controller-manager, etcd; no kubelet, no scheduler), and
the two operators take turns. Times are those of an independent observer (`launch_observer`),
requests those of the API server's audit log, processor time and memory those of all processes of
the operator's session. Runs on a machine that had other work are kept, and no part of the figures.

Raw results: docs/results/raw/bench/side-by-side.json. Its part of docs/results/performance.md is
made here (`section`), the page by `performance`.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tests.campaigns.bench import launch_observer
from tests.campaigns.bench.launch_sides import (
    ENDED,
    FAILED,
    NAMESPACE,
    NEW,
    OTHER,
    Kubeflow,
    Ours,
    Side,
    operator_account,
)
from tests.campaigns.bench.services import OUT, at, machine
from tests.support import ROOT
from tests.support.evidence import commit
from tests.support.harness.servers import Cluster, Etcd

JsonDict = dict[str, Any]

RAW = OUT / "side-by-side.json"
JOBS = 50
TURNS = 3
WARM_UP = 2
KILLED_AT = 0.3
"""Share of the drivers that exist when the operator is killed."""
SECONDS = 900.0
_TICKS = os.sysconf("SC_CLK_TCK")
_NOISE = 0.1
"""Processors that others used, of all, from which on a run is no result."""


class Sampler(threading.Thread):
    """Processor time and memory of all processes of a session, with children and orphans, five
    times a second.
    """

    def __init__(self, session: int) -> None:
        super().__init__(daemon=True)
        self._session, self._halt, self._lock = str(session), threading.Event(), threading.Lock()
        self.cpu = 0.0
        self.peak_mib = self.peak_anonymous_mib = self.peak_processes = 0.0
        self.sample()
        self.start()

    def sample(self) -> None:
        cpu = resident = anonymous = processes = 0.0
        with self._lock:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError, IndexError, ValueError):  # it may end meanwhile
                    fields = _stat(pid)
                    if fields[3] != self._session:
                        continue
                    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
                    processes += 1
                    cpu += sum(map(int, fields[11:15])) / _TICKS
                    resident += int(status.get("VmRSS", "0 k").split()[0]) / 1024
                    anonymous += int(status.get("RssAnon", "0 k").split()[0]) / 1024
            self.cpu = cpu
            self.peak_mib = max(self.peak_mib, resident)
            self.peak_anonymous_mib = max(self.peak_anonymous_mib, anonymous)
            self.peak_processes = max(self.peak_processes, processes)

    def forget_peaks(self) -> None:
        with self._lock:
            self.peak_mib = self.peak_anonymous_mib = self.peak_processes = 0.0
        self.sample()

    def run(self) -> None:
        while not self._halt.wait(0.2):
            self.sample()

    def stop(self) -> None:
        self._halt.set()
        self.join()


class Observed:
    """Events that the observer has written so far, by job."""

    def __init__(self, process: subprocess.Popen[bytes], path: Path, side: Side) -> None:
        self._process, self._side = process, side
        self._lines = path.open()
        self._part = ""
        self.ready = 0
        self.seen: dict[str, float] = {}
        """Time at which each resource came."""
        self.states: dict[str, list[tuple[float, str]]] = collections.defaultdict(list)
        self.drivers: dict[str, dict[str, JsonDict]] = collections.defaultdict(dict)
        """Events of a job by uid: name, at, gone."""

    def read(self) -> Observed:
        assert self._process.poll() is None, "the observer has lost its watch: this run is no result"
        *lines, self._part = (self._part + self._lines.read()).split("\n")
        for event in map(json.loads, lines):
            if event["kind"] == launch_observer.READY:
                self.ready += 1
                continue
            given, t = event["object"], event["t"]
            if event["kind"] == "pod":
                if job := self._side.job_of(given):
                    driver = self.drivers[job].setdefault(given["uid"], {"name": given["name"], "at": t, "gone": False})
                    driver["gone"] = event["type"] == "DELETED"
                continue
            name, state = given["name"], self._side.state(given)
            self.seen.setdefault(name, t)
            if not self.states[name] or self.states[name][-1][1] != state:
                self.states[name].append((t, state))
        return self

    def state(self, name: str) -> str:
        return self.states[name][-1][1] if self.states[name] else NEW

    def until(self, done: Callable[[], bool], *, seconds: float = SECONDS) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read()
            if done():
                return True
            time.sleep(0.05)
        return False


class Arena:
    """A cluster with one operator, the observer, and what they use."""

    def __init__(self, cluster: Cluster, folder: Path, side: Side, observed: Observed, cluster_pids: list[str]) -> None:
        self.cluster, self.folder, self.side, self.observed, self._pids = cluster, folder, side, observed, cluster_pids
        self.process = side.start()
        self.sampler = Sampler(self.process.pid)

    def again(self) -> None:
        """End the operator and its children at once, as a container's end does, and start it."""
        self.sampler.stop()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        time.sleep(1.0)
        self.process = self.side.start()
        self.sampler = Sampler(self.process.pid)

    def pod(self, name: str) -> JsonDict:
        found = self.cluster.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")
        assert found is not None
        return found

    def cluster_cpu(self) -> float:
        return _cpu(self._pids)

    def close(self) -> None:
        self.sampler.stop()
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@contextmanager
def arena(what: str, folder: Path) -> Iterator[Arena]:
    """A fresh one. `what`: ours, or kubeflow-THREADS."""
    policy, audit, directory = folder / "audit.yaml", folder / "audit.log", folder / "cluster"
    rules = [{"level": "Metadata", "users": ["system:serviceaccount:operators:operator"]}, {"level": "None"}]
    stages = ["RequestReceived", "ResponseStarted"]
    policy.write_text(
        json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": stages, "rules": rules})
    )
    flags = (
        f"--audit-policy-file={policy} --audit-log-path={audit} --audit-log-mode=batch --audit-log-batch-max-wait=1s"
    )
    light = ROOT / "hack/cluster/light-cluster"
    with ExitStack() as stack:
        stack.callback(subprocess.run, [light, "down", directory], check=False, timeout=60)
        subprocess.run([light, "up", directory], check=True, timeout=300, env={**os.environ, "API_FLAGS": flags})
        cluster = Cluster(directory / "kubeconfig")
        stack.callback(cluster.close)
        pids = [path.read_text().split()[0] for path in (directory / "pids").iterdir()]
        account = operator_account(cluster, directory / "kubeconfig", folder)
        side: Side
        if what == "ours":
            (folder / "etcd").mkdir()
            etcd = Etcd(folder / "etcd")
            stack.callback(etcd.stop)
            etcd.start()
            etcd.set_up_users()
            side = Ours(cluster, account, folder, etcd)
            pids.append(str(etcd.pid))
        else:
            side = Kubeflow(cluster, account, folder, threads=int(what.partition("-")[2]))
        side.install()
        events = folder / "events.jsonl"
        events.touch()
        command = [sys.executable, "-m", "tests.campaigns.bench.launch_observer", str(directory / "kubeconfig")]
        command += [str(events), NAMESPACE, side.group, side.version, side.plural]
        observer = subprocess.Popen(command, cwd=ROOT)
        stack.callback(observer.wait)
        stack.callback(observer.kill)
        observed = Observed(observer, events, side)
        assert observed.until(lambda: observed.ready == 2, seconds=60), "the observer watches"
        made = Arena(cluster, folder, side, observed, pids)
        stack.callback(made.close)
        yield made


def warm_up(made: Arena, jobs: int) -> list[str]:
    """Prepare the jobs, and run a few jobs before them. Returns the names of the jobs."""
    names, first = [f"job-{n}" for n in range(jobs)], [f"warm-{n}" for n in range(WARM_UP)]
    made.side.prepare([*first, *names])
    for name in first:
        made.side.create(name)
    seen = made.observed
    assert seen.until(lambda: all(seen.drivers[n] and seen.state(n) != NEW for n in first), seconds=180), "warm-up"
    time.sleep(2.0)
    return names


def burst(made: Arena, jobs: int) -> JsonDict:
    """All jobs are created by one client, one after the other."""
    names, seen = warm_up(made, jobs), made.observed
    made.sampler.forget_peaks()
    own = [str(os.getpid())]
    wall, began = time.time(), time.monotonic()
    before = made.sampler.cpu, made.cluster_cpu(), _busy(), _cpu(own)
    for name in names:
        made.side.create(name)
    fed = time.monotonic() - began
    done = seen.until(lambda: all(seen.drivers[n] and seen.state(n) not in (NEW, OTHER) for n in names))
    made.sampler.sample()
    took, ended = time.monotonic() - began, time.time()
    spent, cluster = made.sampler.cpu - before[0], made.cluster_cpu() - before[1]
    busy, stolen = (now - then for now, then in zip(_busy(), before[2], strict=True))
    mine = _cpu(own) - before[3]
    time.sleep(2.5)  # the audit log is written in batches
    seen.read()
    first = {n: min(d["at"] for d in seen.drivers[n].values()) for n in names if seen.drivers[n]}
    whole = max(first.values()) - min(seen.seen[n] for n in names)
    return {
        "complete": done,
        "jobs": jobs,
        "wholeSeconds": round(whole, 2),
        "perMinute": round(60 * len(first) / whole, 1),
        "feedSeconds": round(fed, 2),
        "createToPodSeconds": quantiles([t - seen.seen[n] for n, t in first.items()]),
        "driversOfAJob": _numbers(len(seen.drivers[n]) for n in names),
        "cpuSecondsEach": round(spent / jobs, 3),
        "peakMiB": round(made.sampler.peak_mib),
        "peakAnonymousMiB": round(made.sampler.peak_anonymous_mib),
        "clusterCpuSeconds": round(cluster, 2),
        "requests": requests(made.folder / "audit.log", wall, ended, jobs),
        "windowSeconds": round(took, 1),
        # Usage of the observer counts as that of others, within the allowed part.
        "othersCpuSeconds": round(busy - mine - cluster - spent, 1),
        "stolenSeconds": round(stolen, 1),
    }


def crash(made: Arena, jobs: int) -> JsonDict:
    """The operator is killed when a part of the drivers is there. Then all drivers run and end
    well: what does each resource say?
    """
    names, seen = warm_up(made, jobs), made.observed
    for name in names:
        made.side.create(name)
    assert seen.until(lambda: sum(bool(seen.drivers[n]) for n in names) >= jobs * KILLED_AT)
    killed = time.monotonic()
    there = [n for n in names if seen.drivers[n]]
    untold = sum(seen.state(n) == NEW for n in there)
    made.again()
    done = seen.until(lambda: all(seen.drivers[n] and seen.state(n) not in (NEW, OTHER) for n in names))
    first = [min(d["at"] for d in seen.drivers[n].values()) for n in names if seen.drivers[n]]

    def living(name: str) -> list[JsonDict]:
        return [d for d in seen.drivers[name].values() if not d["gone"]]

    for step in (made.side.run, made.side.end):
        for name in names:
            for driver in living(name):
                step(made.pod(driver["name"]))
        time.sleep(5.0)
    seen.until(lambda: all(seen.state(n) == ENDED for n in names), seconds=60)
    return {
        "jobs": jobs,
        "driversAtTheKill": len(there),
        "ofThemNotInStatus": untold,
        "complete": done,
        "recoverySeconds": round(max(first) - killed, 1),
        "driversOfAJob": _numbers(len(seen.drivers[n]) for n in names),
        "saysFailedThoughItsDriverEndedWell": sum(seen.state(n) == FAILED and bool(living(n)) for n in names),
        "states": dict(collections.Counter(seen.state(n) for n in names)),
    }


def requests(audit: Path, began: float, ended: float, jobs: int) -> JsonDict:
    """Requests of the operator's account between two times, from the API server's audit log."""
    counted: collections.Counter[str] = collections.Counter()
    refused: collections.Counter[str] = collections.Counter()
    for line in audit.read_text().splitlines():
        event = json.loads(line)
        when = datetime.datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
        if not began <= when <= ended:
            continue
        about = event.get("objectRef") or {}
        kind = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
        counted[f"{event['verb']} {kind}"] += 1
        code = int((event.get("responseStatus") or {}).get("code", 0))
        if code >= 400:
            refused[f"{code} {event['verb']} {kind}"] += 1
    writes = {k: n for k, n in counted.items() if k.split()[0] in ("create", "update", "patch", "delete")}
    return {
        "writesEach": round(sum(writes.values()) / jobs, 2),
        "readsEach": round((sum(counted.values()) - sum(writes.values())) / jobs, 2),
        "writes": dict(sorted(writes.items())),
        "refused": dict(refused),
    }


def quantiles(values: list[float]) -> JsonDict:
    """Nearest rank."""
    ordered = sorted(values)
    return {
        name: round(ordered[min(len(ordered), max(1, -(-len(ordered) * percent // 100))) - 1], 2)
        for name, percent in (("p50", 50), ("p95", 95), ("max", 100))
    }


def _numbers(values: Iterator[int] | Any) -> dict[str, int]:
    return {str(number): count for number, count in sorted(collections.Counter(values).items())}


def _stat(pid: str) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _cpu(pids: list[str]) -> float:
    """Processor seconds of these processes and of the children that they have waited for."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += sum(map(int, _stat(pid)[11:15]))
    return total / _TICKS


def _busy() -> tuple[float, float]:
    """Processor seconds of this machine: used, and taken by its host."""
    user, nice, system, _, _, interrupts, soft, stolen = (
        int(word) for word in Path("/proc/stat").read_text().split()[1:9]
    )
    return (user + nice + system + interrupts + soft) / _TICKS, stolen / _TICKS


# ---- the plan, and what is kept


def plan(turns: int) -> list[tuple[str, str, int]]:
    """(scenario, side, turn), in order: the two take turns."""
    made = [("burst", side, turn) for turn in range(1, turns + 1) for side in ("kubeflow-2", "ours")]
    return [*made, ("burst", "kubeflow-10", 1), ("crash", "kubeflow-10", 1), ("crash", "ours", 1)]


def load() -> list[JsonDict]:
    return list(json.loads(RAW.read_text())) if RAW.exists() else []


def measure(turns: int, jobs: int) -> None:
    """Measure the runs that this commit lacks; each run is stored at once."""
    now = commit()
    kept = [run for run in load() if run["commit"] == now]
    for scenario, side, turn in plan(turns):
        if any((r["scenario"], r["side"], r["turn"]) == (scenario, side, turn) for r in kept):
            continue
        print(f"{time.strftime('%H:%M:%S')} {scenario} of {jobs}: {side}, turn {turn}", flush=True)
        run = {"commit": now, "at": at(), "machine": machine(), "scenario": scenario, "side": side, "turn": turn}
        with tempfile.TemporaryDirectory() as folder, arena(side, Path(folder)) as made:
            run |= {"burst": burst, "crash": crash}[scenario](made, jobs)
        kept.append(run)
        RAW.parent.mkdir(parents=True, exist_ok=True)
        RAW.write_text(json.dumps(kept, indent=1) + "\n")
        print("   ", {k: run[k] for k in ("perMinute", "cpuSecondsEach", "recoverySeconds") if k in run}, flush=True)


def noisy(run: JsonDict) -> bool:
    others = float(run.get("othersCpuSeconds", 0)) + float(run.get("stolenSeconds", 0))
    return others > _NOISE * (os.cpu_count() or 1) * float(run.get("windowSeconds", 1))


# ---- its part of the page

HEAD = f"""How fast, at what cost and how safely do two operators turn custom resources into Spark driver
pods? Each run has a cluster of its own on one machine (API server, controller-manager and etcd on a
disk that is not synced; no kubelet, no scheduler), the two take turns, and a job is one driver that
asks for one executor, with the same Spark options. Drivers are played, and nothing goes through the
gateway.

* **{Ours.NAME}**: {Ours.FACTS}.
* **{Kubeflow.NAME}**: {Kubeflow.FACTS}. With 2 threads, its best here, and with 10, its default."""
NAMES = {
    "ours": "hudi-operator",
    "kubeflow-2": "spark-operator, 2 threads",
    "kubeflow-10": "spark-operator, 10 threads",
}


def quiet(runs: list[JsonDict]) -> list[JsonDict]:
    """The bursts that count: the machine had no other work, and each job got a pod."""
    return [run for run in runs if run["scenario"] == "burst" and not noisy(run) and run["complete"]]


def left_out(runs: list[JsonDict]) -> int:
    """Number of bursts that do not count; they are in the raw results."""
    return sum(run["scenario"] == "burst" for run in runs) - len(quiet(runs))


def section(runs: list[JsonDict]) -> list[str]:
    """Lines of the page, from these results; there is at least one."""
    bursts = [r for r in runs if r["scenario"] == "burst"]
    of = {side: [r for r in quiet(runs) if r["side"] == side] for side in NAMES}
    lines = ["## Beside another operator", "", HEAD, ""]
    if of["ours"] and of["kubeflow-2"]:
        speed, cost = (
            median(r[k] for r in of["ours"]) / median(r[k] for r in of["kubeflow-2"])
            for k in ("perMinute", "cpuSecondsEach")
        )
        lines += [
            f"{Ours.NAME} made {speed:.1f} times as many drivers a minute as {Kubeflow.NAME} at its best, with "
            f"{cost:.3f} of its processor time for each.",
            "",
        ]
    lines += [
        f"### {bursts[0]['jobs'] if bursts else JOBS} jobs at once",
        "",
        "| operator | runs | drivers/min | create to pod p50 | p95 | longest | processor s each | memory MiB "
        "| API writes each | reads each |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for side, name in NAMES.items():
        if not of[side]:
            continue
        cells = [
            _spread(of[side], lambda r: r["perMinute"], ".0f"),
            *(_spread(of[side], lambda r, q=q: r["createToPodSeconds"][q], ".1f", " s") for q in ("p50", "p95", "max")),
            _spread(of[side], lambda r: r["cpuSecondsEach"], ".3f"),
            _spread(of[side], lambda r: r["peakMiB"], ".0f"),
            _spread(of[side], lambda r: r["requests"]["writesEach"], ".1f"),
            _spread(of[side], lambda r: r["requests"]["readsEach"], ".1f"),
        ]
        lines.append(f"| {name} | {len(of[side])} | {' | '.join(cells)} |")
    lines += [
        "",
        "One client creates the jobs, one after the other, in "
        + (_spread(quiet(runs), lambda r: r["feedSeconds"], ".1f", " s") if quiet(runs) else "a time that is not known")
        + ". Memory is the sum of all processes of the operator, pages that they share included.",
    ]
    crashes = [r for r in runs if r["scenario"] == "crash"]
    if crashes:
        lines += [
            "",
            f"### Killed at {KILLED_AT:.0%} of the drivers",
            "",
            "SIGKILL of the operator and its children, a pause of 1 s, the same command again. Then each driver",
            "that is there runs and ends well. One run each, so nothing is known of the spread.",
            "",
            "| operator | drivers at the kill | of them not yet in status | until the last driver "
            "| jobs by number of drivers | says failed, though its driver ended well | states at the end |",
            "|---|---:|---:|---:|---|---:|---|",
        ]
        for run in crashes:
            drivers = ", ".join(f"{n}: {count}" for n, count in run["driversOfAJob"].items())
            states = ", ".join(f"{state} {count}" for state, count in sorted(run["states"].items()))
            lines.append(
                f"| {NAMES[run['side']]} | {run['driversAtTheKill']} | {run['ofThemNotInStatus']} | "
                f"{run['recoverySeconds']} s | {drivers} | {run['saysFailedThoughItsDriverEndedWell']} | {states} |"
            )
    return lines


def _spread(runs: list[JsonDict], value: Callable[[JsonDict], float], how: str, unit: str = "") -> str:
    values = [value(run) for run in runs]
    if len(values) == 1:
        return f"{values[0]:{how}}{unit}"
    return f"{median(values):{how}}{unit} ({min(values):{how}}–{max(values):{how}})"


def main(arguments: list[str]) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.bench.side_by_side")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--jobs", type=int, default=JOBS)
    given = parser.parse_args(arguments)
    measure(given.turns, given.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
