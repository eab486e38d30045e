"""The real agent of a run: a JVM that is warm already, the agent pods' kubelet, the table's files,
and what must be true of them at the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudi_contract import naming
from hudi_operator.model.config import OperatorConfig
from tests.campaigns.crashes.agent_proxy import AgentProxy
from tests.campaigns.crashes.prepared import NAME, SEED, Prepared
from tests.support import ROOT
from tests.support.harness.kubelet_parts import Looking
from tests.support.harness.local import World, tl

JsonDict = dict[str, Any]
START_SECONDS = 240.0
POLL_SECONDS = 0.1
BUCKET = "lake"


class Host:
    """The process that agents run in.

    Each worker has one; it is started again when it was killed.
    """

    def __init__(self, directory: Path, s3_url: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory, self._s3 = directory, s3_url
        self._starts = 0
        self._lock = threading.RLock()
        self._process: subprocess.Popen[str] | None = None
        self.logs: list[Path] = []

    def _start(self) -> None:
        self._starts += 1
        folder = self._directory / f"host-{self._starts}"
        world = World(self._directory, s3_url=self._s3)
        environment = world.agent_environment(
            folder, "host", world.table("any").spec, config=OperatorConfig(allowed_schemes=("s3a",))
        )
        environment |= {
            "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "spark-images", ROOT / "operator", ROOT))),
            "HUDI_OPERATOR_ETCD_ENDPOINTS": "http://127.0.0.1:1",
        }
        command = [str(Path(environment["PYSPARK_PYTHON"])), "-m", "tests.campaigns.crashes.agent_host"]
        self.logs.append(folder / "log")
        pipe = subprocess.PIPE
        with self.logs[-1].open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=pipe,
                stdout=pipe,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self._answer() == "ready", self.logs[-1].read_text()[-3000:]

    def _answer(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def _order(self, order: Mapping[str, Any]) -> str:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        except OSError:
            return ""
        return self._answer()

    @property
    def lives(self) -> bool:
        """False before the first pod, and when it was killed or has ended."""
        return self._process is not None and self._process.poll() is None

    def serve(self, order: Mapping[str, Any]) -> bool:
        """Run an agent pod; False when the process was killed meanwhile."""
        with self._lock:
            if not self.lives:
                self._start()
            return self._order({"do": "serve", **order}) == "serving"

    def leave(self) -> None:
        """End the agent pod in order, and the process with it when that does not work."""
        with self._lock:
            if self.lives and self._order({"do": "leave"}) != "left":
                self.kill()

    def kill(self) -> None:
        """SIGKILL to the JVM and to all that belongs to it; returns when it is gone."""
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@dataclass(frozen=True)
class Storage:
    """Parts that the runs of a worker share: the S3 server, its folder, the prepared table and the
    worker's agent process.
    """

    url: str
    folder: Path
    prepared: Prepared
    host: Host


class RealAgent(Looking):
    """The agent of one run, and the table that it works on."""

    def __init__(self, storage: Storage, world: Any, proxy: AgentProxy, pki: Path) -> None:
        """``world`` is the run's :class:`~tests.campaigns.crashes.run.WatchedWorld`."""
        self._storage, self._world, self._proxy, self._pki = storage, world, proxy, pki
        self.table = storage.folder / BUCKET / world.namespace / NAME
        storage.prepared.copy(self.table)
        self.dead: list[str] = []
        """Instants that dead or defeated writers have left on the table."""
        self.kills = 0
        self._logs_from = len(storage.host.logs)
        self._pods: dict[str, JsonDict] = {}
        self._running = ""
        """Uid of the pod that the agent process runs."""

    def start(self) -> None:
        """Be the kubelet of the agent pods from now on."""
        self.look_on("kubelet of agents", every=POLL_SECONDS)

    def kill(self) -> None:
        """SIGKILL the agent process.

        The kubelet reports it, and runs the next pod in a new process.
        """
        self.kills += 1
        self._storage.host.kill()

    def place(self, instant: str) -> None:
        """A writer has left its files under this instant."""
        self._storage.prepared.place(self.table, instant)
        self.dead.append(instant)

    def close(self) -> None:
        """End the agent and delete the table."""
        self.look_no_more(START_SECONDS)
        self._storage.host.leave()
        shutil.rmtree(self.table.parent, ignore_errors=True)

    # ---- kubelet

    def _look(self) -> None:
        if self._running and not self._storage.host.lives:
            pod, self._running = self._pods[self._running], ""
            self._world.end_pod(pod, exit_code=137)
        for pod in list(self._world.objects.latest.get("pods", {}).values()):
            meta = pod["metadata"]
            if (meta.get("labels") or {}).get(naming.LABEL_ROLE) != naming.ROLE_AGENT:
                continue
            if meta["uid"] not in self._pods and not meta.get("deletionTimestamp"):
                self._pods[meta["uid"]] = pod
                self._run(pod)
            elif meta["uid"] == self._running and meta.get("deletionTimestamp"):
                self._running = ""
                self._storage.host.leave()
                self._world.end_pod(pod, exit_code=0)

    def _run(self, pod: JsonDict) -> None:
        meta = pod["metadata"]
        self._world.run_pod(pod)
        etcd = {
            "endpoints": self._proxy.endpoint,
            "ca": f"{self._pki}/ca.crt",
            "cert": f"{self._pki}/gateway.crt",
            "key": f"{self._pki}/gateway.key",
        }
        who = {
            "agent": meta["labels"][naming.LABEL_AGENT],
            "namespace": self._world.namespace,
            "pod": meta["name"],
            "uid": meta["uid"],
        }
        self._running = meta["uid"]
        self._storage.host.serve({**who, "node": "node1", "bootId": "boot-1", "etcd": etcd})

    # ---- what was seen

    def log(self, target: Path, table_id: str) -> Path:
        """The agent's protocol log of this run, with what a killed agent did not come to write."""
        lines: list[str] = []
        for log in self._storage.host.logs[max(0, self._logs_from - 1) :]:
            lines += [
                line
                for line in log.read_text(errors="replace").splitlines()
                if "PROTOCOL {" in line and table_id in line
            ]
        target.write_text("".join(f"{line}\n" for line in [*lines, *(e.line() for e in self._proxy.lost_events)]))
        return target

    def wrong(self) -> list[str]:
        """Violations on the table of these rules: each dead instant is rolled back exactly once,
        nothing of it is left, the rows are as before.
        """
        found = [f"kubelet of agents: {self.failure}"] if self.failure else []
        found += not_rolled_back_once(self.table, self.dead)
        rows = self.rows()
        if rows != sorted(SEED):
            found.append(f"I8: the table has the rows {rows}")
        return found

    def rows(self) -> list[tuple[Any, ...]]:
        """The snapshot as hudi-rs reads it, which shares no code with the writers."""
        from hudi import HudiTableBuilder

        batches = HudiTableBuilder.from_base_uri(str(self.table)).build().read_stream()
        return sorted((row["id"], row["p"], row["v"], row["ts"]) for batch in batches for row in _python(batch))


def not_rolled_back_once(table: Path, dead: list[str]) -> list[str]:
    """Errors in the files of a table on which each of these instants should have been rolled back
    exactly once, and nothing else.
    """
    found = []
    folder = table / ".hoodie/timeline"
    names = sorted(file.name for file in folder.iterdir() if file.is_file())
    found += [f"I6: {i.requested} {i.action} is still pending on the timeline" for i in tl.parse(names).pending]
    rollbacks = [n for n in names if n.endswith(".rollback")]
    for instant in dead:
        of_it = [n for n in rollbacks if instant.encode() in (folder / n).read_bytes()]
        if len(of_it) != 1:
            found.append(f"I5: {instant} has {len(of_it)} completed rollbacks: {of_it}")
        left = sorted(str(f.relative_to(table)) for f in table.rglob(f"*{instant}*"))
        if left:
            found.append(f"I5: of {instant} is left: {left[:5]}")
    if len(rollbacks) != len(dead):
        found.append(f"I7: {len(rollbacks)} rollbacks of {len(dead)} instants")
    return found


def _python(batch: Any) -> list[JsonDict]:
    import pyarrow

    return list(pyarrow.record_batch(batch).to_pylist())
