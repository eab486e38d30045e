"""Number of writers that the operator starts in a minute, and the cost of each; the idle cost of
many running writers; the time until status shows an end.

    python -m tests.campaigns.bench.launches --writers 50 --tables 50 --rest 60 --ends 20

The operator is a process; API server, controller-manager and etcd are real. Kubelet, JVMs and the
agent are played: their times are in no result. Writers are created by one client, one after the
other. One JSON object is printed; with `--keep` it also replaces the run with as many writers and
tables in docs/results/raw/bench/launches.json, for docs/results/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudi_contract import naming
from hudi_contract.words import WriterState
from hudi_operator.manifests import asked_executor
from tests.campaigns.bench.services import OUT, at, machine
from tests.support import ROOT
from tests.support.evidence import commit
from tests.support.harness.operator_world import SUCCEEDED, Operator, World
from tests.support.harness.servers import Cluster, Etcd, wait_for

JsonDict = dict[str, Any]
RAW = OUT / "launches.json"
SECONDS = 900.0
"""No phase takes longer."""
_AT_ONCE = 4
_TICKS = os.sysconf("SC_CLK_TCK")


def install(cluster: Cluster) -> None:
    """Install what an operator without its chart needs: CRDs, the role of drivers, a node."""
    cluster.kubectl("apply", "-f", str(ROOT / "crds"))
    names = ("crd/huditables.hudioperator.io", "crd/hudiwriters.hudioperator.io")
    cluster.kubectl("wait", "--for=condition=Established", *names, "--timeout=60s")
    cluster.kubectl("create", "clusterrole", "hudi-operator-driver", "--verb=get", "--resource=pods")
    cluster.node("node1")


def serve(made: World, ids: Mapping[str, str], many: Executor) -> None:
    """Each agent that the operator starts is played: it has looked at the tables that it is given.

    ``ids``: id of each HudiTable, by name. The number of tables of an agent is limited, so there
    may be several; `status.agent` of a HudiTable says which one it is.
    """
    waiting = dict(ids)
    pods: dict[str, JsonDict] = {}

    def look(name: str) -> None:
        pod = pods[agents[name]]
        made.report_timeline(ids[name], made.register(ids[name], pod, role="agent", lease_seconds=7200))

    began = time.monotonic()
    while waiting:
        assert time.monotonic() - began < SECONDS, f"{len(waiting)} tables have no agent"
        agents = {
            item["metadata"]["name"]: str(item["status"]["agent"])
            for item in _items(made, "huditables")
            if item["metadata"]["name"] in waiting and (item.get("status") or {}).get("agent")
        }
        for pod in made.pods("agent"):
            if pods.setdefault(pod["metadata"]["labels"][naming.LABEL_AGENT], pod) is pod:
                made.run_pod(pod)
        known = [name for name, agent in agents.items() if agent in pods]
        list(many.map(look, known))
        waiting = {name: id_ for name, id_ in waiting.items() if name not in known}
        time.sleep(0.2)


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """A separate cluster and etcd."""
    directory = folder / "cluster"
    etcd_folder = folder / "etcd"
    etcd_folder.mkdir()
    etcd = Etcd(etcd_folder)
    try:
        subprocess.run([ROOT / "hack/cluster/light-cluster", "up", directory], check=True, timeout=300)
        cluster = Cluster(directory / "kubeconfig")
        install(cluster)
        etcd.start()
        etcd.set_up_users()
        made = World(cluster, etcd, folder, "bench")
        try:
            yield made
        finally:
            made.close()
            cluster.close()
    finally:
        etcd.stop()
        subprocess.run([ROOT / "hack/cluster/light-cluster", "down", directory], check=False, timeout=60)


class Costs:
    """Processor time of the operator, its memory, and its requests to the API server."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._began = self._now()

    def _now(self) -> tuple[float, float, dict[str, float]]:
        fields = Path(f"/proc/{self._operator.process.pid}/stat").read_text().rpartition(")")[2].split()
        requests: dict[str, float] = {}
        for line in self._operator.get("/metrics")[1].splitlines():
            if line.startswith("hudi_operator_api_requests_total{"):
                verb = line.partition('verb="')[2].partition('"')[0]
                requests[verb] = requests.get(verb, 0.0) + float(line.rpartition(" ")[2])
        return time.monotonic(), (int(fields[11]) + int(fields[12])) / _TICKS, requests

    def since(self) -> JsonDict:
        """Usage since this object was made."""
        at, cpu, requests = self._now()
        began, cpu_before, before = self._began
        spent = {verb: count - before.get(verb, 0.0) for verb, count in requests.items()}
        return {
            "seconds": round(at - began, 2),
            "cpuSeconds": round(cpu - cpu_before, 2),
            "reads": spent.pop("GET", 0.0),
            "writes": sum(spent.values()),
        }

    def memory_mib(self) -> int:
        """Resident."""
        status = Path(f"/proc/{self._operator.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) // 1024


def executor(made: World, driver: JsonDict) -> JsonDict:
    """An executor of a driver, as Spark makes it, which runs."""
    meta = driver["metadata"]
    files = made.get("configmaps", meta["name"])
    assert files is not None
    pod = asked_executor.executor_pod(files["data"], namespace=made.namespace, driver=meta["name"], uid=meta["uid"])
    stored = made.cluster.request("POST", made.path("pods", group="/api/v1"), pod)
    assert stored is not None
    made.run_pod(stored)
    return stored


@dataclass(frozen=True)
class Running:
    """What a driver that runs has in etcd, and its executor."""

    table: str
    inc: str
    executor: JsonDict

    def leaves(self, made: World) -> None:
        """The end of its JVM: the executor is deleted, and the registration."""
        made.end_pod(self.executor, exit_code=0)
        path = made.path("pods", self.executor["metadata"]["name"], group="/api/v1")
        made.cluster.request("DELETE", path, {"gracePeriodSeconds": 0})
        made.etcd.delete(made.key(self.table, f"writer/{self.inc}"))
        made.etcd.delete(made.key(self.table, f"alive/{self.inc}"))


def load() -> list[JsonDict]:
    """The runs that were kept."""
    return list(json.loads(RAW.read_text())) if RAW.exists() else []


def _state(made: World, name: str) -> str:
    return str(((made.get("hudiwriters", name) or {}).get("status") or {}).get("state") or "")


def _all(made: World, plural: str, ready: Any) -> int:
    return sum(bool(ready(item.get("status") or {})) for item in _items(made, plural))


def _items(made: World, plural: str) -> list[JsonDict]:
    return list((made.cluster.request("GET", made.path(plural)) or {})["items"])


def ready_tables(made: World) -> int:
    """Number of HudiTables that are Ready."""
    return _all(made, "huditables", _is_ready)


def _is_ready(status: JsonDict) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())


def measure(made: World, *, writers: int, tables: int, rest: float, ends: int) -> JsonDict:
    """All phases, one after the other."""
    operator = made.start_operator(leader_election=False)
    ids = {f"t-{number}": made.table(f"t-{number}") for number in range(tables)}
    with ThreadPoolExecutor(_AT_ONCE) as many:
        serve(made, ids, many)
        wait_for("tables", lambda: ready_tables(made) == tables, seconds=SECONDS)
        time.sleep(3.0)
        found: JsonDict = {"commit": commit(), "at": at(), "machine": machine(), "loadBefore": os.getloadavg()[0]}
        found |= {"writers": writers, "tables": tables}
        costs = Costs(operator)
        for number in range(writers):
            made.writer(f"w-{number}", table=f"t-{number % tables}", executors={"instances": 1})
        wait_for("pods", lambda: len(made.pods("driver")) >= writers, seconds=SECONDS)
        launched = costs.since()
        found["launch"] = {**launched, "perMinute": round(60 * writers / launched["seconds"])}

        pods = {pod["metadata"]["labels"][naming.LABEL_WRITER]: pod for pod in made.pods("driver")}
        assert len(pods) == writers, "one pod for each writer"

        def runs(name: str) -> Running:
            made.run_pod(pods[name])
            table = ids[f"t-{int(name[2:]) % tables}"]
            inc = made.register(table, pods[name], lease_seconds=7200)
            return Running(table, inc, executor(made, pods[name]))

        running = dict(zip(pods, many.map(runs, pods), strict=True))
    wait_for(
        "running",
        lambda: _all(made, "hudiwriters", lambda s: s.get("state") == WriterState.RUNNING) == writers,
        seconds=SECONDS,
    )
    whole = costs.since()
    found["toRunning"] = {
        "cpuSecondsEach": round(whole["cpuSeconds"] / writers, 3),
        "writesEach": round(whole["writes"] / writers, 2),
        "readsEach": round(whole["reads"] / writers, 2),
    }
    time.sleep(min(rest, 60.0))
    costs = Costs(operator)
    time.sleep(rest)
    found["rest"] = {**costs.since(), "memoryMiB": costs.memory_mib()}
    latencies = []
    for name in list(pods)[:ends]:
        pod = made.get("pods", pods[name]["metadata"]["name"])
        assert pod is not None
        running[name].leaves(made)
        made.end_pod(pod, exit_code=0, message=SUCCEEDED)
        began = time.monotonic()
        while _state(made, name) != WriterState.SUCCEEDED:
            assert time.monotonic() - began < SECONDS
            time.sleep(0.02)
        latencies.append(time.monotonic() - began)
    if latencies:
        found["endToStatusSeconds"] = {"p50": round(statistics.median(latencies), 3), "max": round(max(latencies), 3)}
    return found


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.bench.launches",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--writers", type=int, default=50)
    parser.add_argument("--tables", type=int, default=50)
    parser.add_argument("--rest", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--ends", type=int, default=20, help="pods that end one after the other")
    parser.add_argument("--keep", action="store_true", help="keep the raw result")
    given = parser.parse_args()
    size = given.writers, given.tables
    if given.keep and any((run["writers"], run["tables"], run["commit"]) == (*size, commit()) for run in load()):
        print(f"{given.writers} writers of {given.tables} tables: kept, of this commit")
        return 0
    with tempfile.TemporaryDirectory() as folder, world(Path(folder)) as made:
        found = measure(made, writers=given.writers, tables=given.tables, rest=given.rest, ends=given.ends)
    print(json.dumps(found, indent=1))
    if given.keep:
        others = [run for run in load() if (run["writers"], run["tables"]) != size]
        runs = sorted([*others, found], key=lambda run: (run["writers"], run["tables"]))
        RAW.parent.mkdir(parents=True, exist_ok=True)
        RAW.write_text(json.dumps(runs, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
