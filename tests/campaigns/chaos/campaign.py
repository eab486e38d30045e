"""One run: a fresh table, writers of overlapping keys, faults by a schedule drawn from a seed, and
what is in the table in the end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any

from demo import cluster, world
from demo.cluster import kubectl
from demo.lake import Lake
from demo.protocol import Watch, settlings
from demo.screen import Screen

from tests.campaigns.chaos import workload
from tests.support.cluster.node import Relay
from tests.support.cluster.space import OPERATOR_NAMESPACE, SMALL, Space, make_space, run, wait_for
from tests.support.evidence import commit

SOURCES = 3
"""Writers with their own source; one program with two threads comes on top."""
WITH_EXECUTOR = 2
"""The number of the source writer that has an executor; the others write in their drivers."""
EXECUTOR = {
    "instances": 1,
    "memory": "512Mi",
    "javaOptions": ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
    "resources": {"requests": {"cpu": "50m"}},
}
BAD = ("broken", "stuck")
"""Verdicts of which the namespace stays, to be looked at."""
BATCHES = 100_000
"""More than a run can commit: writers are ended, they do not finish."""
PODS = {
    "operator": (OPERATOR_NAMESPACE, "app.kubernetes.io/component=operator"),
    "etcd": (OPERATOR_NAMESPACE, "app.kubernetes.io/component=etcd"),
    "s3": ("storage", "app.kubernetes.io/name=s3"),
}
"""Namespace and labels of the pods that a fault may be put to; agents and executors are in the
namespace of the table.
"""


class Chaos:
    """The cluster, and runs on it one after another."""

    def __init__(self) -> None:
        self.screen = Screen()
        self.commit = commit()
        if not os.environ.get("E2E_INSTALLED"):
            run("demo/run", "install", seconds=1800)
        os.environ["KUBECONFIG"] = run("hack/cluster/cluster", "kubeconfig").strip()
        self.lake: Lake = world.storage(self.screen)
        self.lake.make_folder("e2e")
        self.watch: Watch
        self.watch, self._way = world.etcd_watch(self.screen, way=Relay)
        self.watch.start()

    def __enter__(self) -> Chaos:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.watch.stop()
        self._way.stop()

    def run(self, cell: str, seed: int, seconds: float) -> dict[str, Any]:
        """A run of a cell such as `mor-default`.

        Its result has the verdict; the namespace of a run that is not ok stays. A run in which
        something did not happen in its time is `stuck`: `stuck` says what was waited for, and
        nothing was asked of its table.
        """
        space = make_space(f"chaos-{cell}", self.lake, self.watch)
        space.logs.start()
        begun = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())
        run_ = Run(space, self.screen, cell, seed, seconds)
        try:
            found = run_.run() | {"stuck": ""}
        except AssertionError as error:
            found = {"verdict": "stuck", "stuck": str(error)[:500], "faults": run_.faults}
        finally:
            space.logs.stop()
        found |= {"cell": cell, "seed": seed, "seconds": seconds, "commit": self.commit, "at": begun}
        if found["verdict"] not in BAD:
            kubectl("delete", "namespace", space.namespace, "--wait=false")
        return found


class Run:
    """A table `t`, writers `w0`… and `threads`."""

    def __init__(self, space: Space, screen: Screen, cell: str, seed: int, seconds: float) -> None:
        self.space, self.screen, self.seed, self.seconds = space, screen, seed, seconds
        self._table = workload.table(cell)
        self._names = [f"w{number}" for number in range(SOURCES)] + ["threads"]
        self.faults: list[dict[str, Any]] = []
        """Faults of the run so far."""

    def run(self) -> dict[str, Any]:
        """Write, break, end, look."""
        self._start()
        self._break()
        self._end()
        return self._look()

    def _start(self) -> None:
        space = self.space
        code = kubectl(
            "create",
            "configmap",
            "chaos",
            "-n",
            space.namespace,
            f"--from-literal=main.py={workload.CODE}",
            "--dry-run=client",
            "-o",
            "yaml",
        )
        cluster.apply(code)
        space.table("t", **self._table)
        space.wait("huditable/t", "Ready", seconds=300)
        retry = {"limit": 20, "backoffSeconds": 1, "maxBackoffSeconds": 2}
        ref = {"name": "chaos", "key": "main.py"}
        for number in range(SOURCES):
            arguments = {"seed": str(self.seed), "writer": str(number), "batches": str(BATCHES), "pause": "1"}
            source = {"python": {"configMapKeyRef": ref, "function": "batches", "arguments": arguments}}
            executors = {"executors": EXECUTOR} if number == WITH_EXECUTOR else {}
            self._writer(
                f"w{number}",
                {"source": source, "operation": "Upsert", "driver": SMALL, "retryPolicy": retry} | executors,
            )
        arguments_of_program = [str(self.seed), str(SOURCES), str(BATCHES), "2"]
        self._writer(
            "threads",
            {
                "application": {"configMapKeyRef": ref, "arguments": arguments_of_program},
                "driver": SMALL,
                "retryPolicy": retry,
            },
        )

    def _writer(self, name: str, spec: dict[str, Any]) -> None:
        meta = {"name": name, "namespace": self.space.namespace}
        cluster.apply(
            json.dumps(
                {
                    "apiVersion": "hudioperator.io/v1alpha1",
                    "kind": "HudiWriter",
                    "metadata": meta,
                    "spec": {"tableRef": {"name": "t"}} | spec,
                }
            )
        )

    # ---- faults

    def _break(self) -> None:
        wait_for(
            "a first commit",
            lambda: any(i.completed for i in self.space.lake.timeline(self.space.path("t"))),
            seconds=400,
            every=2,
        )
        begin = time.monotonic()
        for at, how, target, number, length in workload.schedule(self.seed, self.seconds, len(self._names)):
            time.sleep(max(0.0, begin + at - time.monotonic()))
            pids = self._pids(target, self._names[number])
            fault = {
                "at": at,
                "how": how,
                "target": self._names[number] if target == "driver" else target,
                "hit": bool(pids),
            }
            if how == "freeze":
                fault["seconds"] = length
                self._freeze(pids, length)
            else:
                _signal(pids, signal.SIGKILL)
            self.faults.append(fault)
            self.screen.fact(" ".join(f"{name}={value}" for name, value in fault.items()))
        time.sleep(max(0.0, begin + self.seconds - time.monotonic()))

    def _pids(self, target: str, writer: str) -> list[int]:
        """Processes of the newest pod that is meant.

        Empty when there is none at this moment, or when the API server does not say.
        """
        try:
            if target == "driver":
                pods = [
                    pod["metadata"]["name"]
                    for pod in self.space.drivers(writer)
                    if pod["status"].get("phase") == "Running"
                ]
                return cluster.host_pids(self.space.namespace, pods[-1]) if pods else []
            namespace, labels = PODS.get(target, (self.space.namespace, f"hudioperator.io/role={target}"))
            found = cluster.items("pods", "-n", namespace, "-l", labels, "--field-selector=status.phase=Running")
            names = [pod["metadata"]["name"] for pod in found]
            return cluster.host_pids(namespace, names[-1]) if names else []
        except (cluster.KubectlFailed, subprocess.TimeoutExpired):
            return []

    @staticmethod
    def _freeze(pids: list[int], seconds: float) -> None:
        _signal(pids, signal.SIGSTOP)
        threading.Timer(seconds, _signal, (pids, signal.SIGCONT)).start()

    # ---- the end

    def _end(self) -> None:
        for name in self._names:
            wait_for(f"{name} to take its suspension", lambda name=name: self._suspend(name), seconds=120, every=2)
        for name in self._names:
            wait_for(f"the end of {name}", lambda name=name: self._ended(name), seconds=300, every=2)
        path = self.space.path("t")
        wait_for(
            "nothing pending",
            lambda: all(i.completed for i in self.space.lake.timeline(path) if i.action != "rollback"),
            seconds=300,
            every=2,
        )

    def _suspend(self, name: str) -> bool:
        with suppress(cluster.KubectlFailed, subprocess.TimeoutExpired):
            kubectl(
                "patch",
                "hudiwriter",
                name,
                "-n",
                self.space.namespace,
                "--type=merge",
                "-p",
                '{"spec":{"suspend":true}}',
            )
            return True
        return False

    def _ended(self, name: str) -> bool:
        with suppress(cluster.KubectlFailed, subprocess.TimeoutExpired):
            ended = all(pod["status"].get("phase") in {"Succeeded", "Failed"} for pod in self.space.drivers(name))
            return ended and cluster.is_true(self.space.get("hudiwriter", name), "Suspended")
        return False

    def _look(self) -> dict[str, Any]:
        first = self.space.audit("t")
        # An archival that was cut off leaves commits in both timelines
        commits = list({one["instant"]: one for one in (*first.archived, *first.commits)}.values())
        committed = [batch for each in commits for batch in _batch_of(each)]
        logs = [path.read_text(errors="replace") for path in self.space.logs.directory.glob("*.log")]
        noted, acknowledged = workload.notes(logs), workload.acknowledgements(logs)
        lost = workload.lost(acknowledged, [(*batch, _attempt_of(one)) for one in commits for batch in _batch_of(one)])
        found = workload.history(committed, noted)
        forbidden = [one for one in found if not one.startswith("G2:")]
        rows = workload.expected(self.seed, committed, noted)
        answers = self.space.audit("t", rows)
        bad = {
            check["name"]: str(check["sentence"])[:500]
            for check in answers.checks
            if check["outcome"] not in ("ok", "not asked")
        }
        if answers.outcomes["rows"] != "ok":
            bad.setdefault("rows", f"their outcome is {answers.outcomes['rows']}")
        unnamed = [
            one["instant"]
            for one in commits
            if "hudioperator.writer" in one["extra"] and one["records"] and not _batch_of(one)
        ]
        gaps = workload.gaps(committed)
        ok = not any((bad, unnamed, gaps, lost, forbidden))
        batches = {
            name: sum(1 for writer, _ in set(committed) if writer == n)
            for n, name in enumerate([*self._names[:SOURCES], "thread-0", "thread-1"])
        }
        return {
            "verdict": ("ok" if all(batches.values()) else "thin") if ok else "broken",
            "bad": bad,
            "commits": len(commits),
            "archived": len(first.archived),
            "clusterings": sum(one["operation"] == "CLUSTER" for one in commits),
            "batches": batches,
            "keys": len(rows),
            "unnamed": unnamed,
            "gaps": gaps,
            "acknowledged": len({(writer, batch) for writer, batch, _ in acknowledged}),
            "lost": lost,
            "history": forbidden,
            "appends": {
                "tries": len(noted),
                "committed": sum(workload.is_append(*one) for one in set(committed)),
                "write skews": len(found) - len(forbidden),
            },
            "settled": len(
                [
                    s
                    for s in settlings(self.space.watch.changes("/settle/"))
                    if s.attempt.startswith(f"{self.space.namespace}.")
                ]
            ),
            "faults": self.faults,
        }


def _batch_of(one: dict[str, Any]) -> list[tuple[int, int]]:
    """(writer, batch) of a commit; empty when it is not one of the workload's."""
    extra = one["extra"]
    if "hudioperator.batch" in extra:
        writer, batch = extra["hudioperator.batch"].split(".")
        return [(int(writer), int(batch))]
    writer = str(extra.get("hudioperator.writer", "")).rpartition("/")[2]
    if "hudioperator.progress" not in extra or not writer.startswith("w"):
        return []
    return [(int(writer[1:]), int(json.loads(extra["hudioperator.progress"])["count"]) - 1)]


def _attempt_of(one: dict[str, Any]) -> int:
    """The number of the attempt whose commit this is."""
    return int(str(one["extra"]["hudioperator.attempt"]).rpartition("-")[2])


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
