"""Parts of the tests of the operator process: cluster, etcd, operator processes, and the parts that
the tests play.

Without a kubelet the tests write the status of pods themselves; without a JVM they write its keys
to etcd, with the pods' identity.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any, Protocol

from hudi_contract import naming
from tests.support import quick_yaml
from tests.support.harness.kubelet_parts import Host
from tests.support.harness.servers import ENVIRONMENT, Cluster, Etcd, JsonDict, wait_for
from tests.support.ports import free_ports
from tests.support.trace.conform import assert_conform
from tests.support.trace.events import read_files

SUCCEEDED = json.dumps(
    {
        "outcome": "Succeeded",
        "class": None,
        "message": "",
        "commits": 1,
        "records": 10,
        "lastInstant": "20260101000000000",
        "lastCompletionTime": "20260101000001000",
        "conflicts": 0,
    }
)

EVIDENCE = naming.EVIDENCE_FINALIZER


class Operator:
    """One replica as a process."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, metrics: int, probes: int) -> None:
        self.process, self.log, self._metrics, self._probes = process, log, metrics, probes

    def get(self, path: str) -> tuple[int, str]:
        port = self._metrics if path == "/metrics" else self._probes
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=3) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def metric(self, name: str) -> float:
        """Sum over the labels of one metric."""
        lines = [
            line for line in self.get("/metrics")[1].splitlines() if line.partition("{")[0].partition(" ")[0] == name
        ]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def steps(self) -> list[str]:
        """The protocol log so far, as ``action`` or ``action/detail`` of steps that succeeded."""
        lines = [
            json.loads(line.removeprefix("PROTOCOL "))
            for line in self.log.read_text().splitlines()
            if line.startswith("PROTOCOL ")
        ]
        return [
            f"{line['action']}/{line['detail']}" if line["action"] == "settle-update" else line["action"]
            for line in lines
            if line["ok"]
        ]

    def kill_after(self, step: str, *, seconds: float = 60.0) -> None:
        """SIGKILL as soon as a step is in the protocol log."""
        deadline, read = time.monotonic() + seconds, -1
        while True:
            # Its size first: to read the log over and over takes a core from who writes it.
            if (size := self.log.stat().st_size) != read:
                read = size
                if step in self.steps():
                    break
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, f"{step} not seen in {self.steps()}"
            time.sleep(0.002)
        self.kill()

    @property
    def metrics_address(self) -> str:
        """Address at which it is scraped."""
        return f"127.0.0.1:{self._metrics}"

    @property
    def leading(self) -> bool:
        return self.metric("hudi_operator_leader") == 1.0

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.process.wait(timeout=20)


class Forks(Protocol):
    """Starter of operators without a new interpreter and new imports for each."""

    def start(self, environment: dict[str, str], log: Path, directory: Path) -> Any:
        """An operator with these variables more; it finds the file ``kubeconfig`` in its folder."""


class World:
    """One namespace, the operators that the test starts, and the parts that it plays."""

    ports = staticmethod(free_ports)
    """Ports at which an operator serves metrics and probes."""
    forks: Forks | None = None
    """None: each operator is a separate program, as in its pod; its exit code is known."""

    def __init__(self, cluster: Cluster, etcd: Etcd, directory: Path, namespace: str) -> None:
        self.cluster, self.etcd, self.directory, self.namespace = cluster, etcd, directory, namespace
        self.pod_endpoint = etcd.endpoint
        """Endpoint of etcd that pods are given."""
        self.operators: list[Operator] = []
        self.tables: set[str] = set()
        """Ids of the HudiTables that were made."""
        self._leases: dict[str, str] = {}
        self.operator_kubeconfig: Path | None = None
        """Other credentials for the operator; None: the administrator's."""
        self.operator_namespace = namespace
        self.settings: JsonDict = {}
        """More settings of operators that start from now on."""
        self.network_policies = False
        cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        wait_for(
            "ServiceAccount default",
            lambda: cluster.request("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default"),
        )

    # ---- operator

    def start_operator(
        self, *, wait: bool = True, leader_election: bool = True, endpoints: list[str] | None = None, **more: str
    ) -> Operator:
        """``more``: environment variables on top."""
        metrics, probes = self.ports(2)
        number = len(self.operators)
        config = {
            "etcd": {
                "endpoints": endpoints or [self.etcd.endpoint],
                "prefix": "/hudi",
                "caFile": str(self.etcd.pki / "ca.crt"),
                "certFile": str(self.etcd.pki / "operator.crt"),
                "keyFile": str(self.etcd.pki / "operator.key"),
            },
            "podEtcd": {"endpoints": [self.pod_endpoint], "caFile": str(self.etcd.pki / "ca.crt")},
            "watchNamespaces": [self.namespace],
            "leaderElection": {"enabled": leader_election},
            "networkPolicies": {"enabled": self.network_policies},
            "metricsPort": metrics,
            "probePort": probes,
            **self.settings,
        }
        path = self.directory / f"config-{number}.yaml"
        path.write_text(quick_yaml.dump(config))
        log = self.directory / f"operator-{number}.log"
        variables = {
            "HUDI_OPERATOR_CONFIG": str(path),
            "KUBECONFIG": str(self.operator_kubeconfig or self.cluster.kubeconfig),
            "POD_NAMESPACE": self.operator_namespace,
            "POD_NAME": f"operator-{number}",
            **more,
        }
        operator = Operator(self.spawn(variables, log), log, metrics, probes)
        self.operators.append(operator)
        if wait:
            wait_for("operator ready", lambda: operator.get("/readyz")[0] == 200 or self._gone(operator), seconds=60)
        return operator

    def spawn(self, variables: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        """The process of an operator with these variables."""
        if self.forks is not None:
            place = log.with_suffix("")
            place.mkdir()
            log.touch()  # a fork opens it when it has begun; tests read it at once
            (place / "kubeconfig").symlink_to(variables["KUBECONFIG"])
            return self.forks.start(variables, log, place)  # type: ignore[no-any-return]
        with log.open("wb") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "hudi_operator"],
                env={**ENVIRONMENT, **variables},
                cwd=self.directory,
                stdout=out,
                stderr=out,
            )

    @staticmethod
    def _gone(operator: Operator) -> None:
        assert operator.process.poll() is None, operator.log.read_text()[-3000:]

    def close(self) -> None:
        for operator in self.operators:
            if operator.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    operator.process.send_signal(signal.SIGCONT)
                    operator.process.kill()
            operator.process.wait(timeout=10)

    def conform(self) -> None:
        """Assert that the protocol allows the steps that the operators logged (the test has played
        the JVMs).
        """
        logs = [operator.log for operator in self.operators]
        named = {event.table for event in read_files(logs)}
        made = {key.split("/")[3] for key in self.etcd.read("/hudi/control/") if key.endswith("/gate")} & self.tables
        assert made <= named, f"a gate was made, and no log names the tables {sorted(made - named)}"
        if named:
            assert_conform(logs, missing={"jvms"})

    def logs(self) -> str:
        return "\n".join(f"---- {o.log.name}\n{o.log.read_text()[-8000:]}" for o in self.operators)

    # ---- objects

    def path(self, plural: str, name: str = "", group: str = f"/apis/{naming.API_VERSION}") -> str:
        return f"{group}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def table(self, name: str = "flights", **spec: Any) -> str:
        """Create a HudiTable; returns its table id."""
        body = {
            "path": f"s3a://lake/{self.namespace}/{name}",
            "recordKeyFields": ["id"],
            "orderingFields": ["ts"],
            "fencing": {"drainSeconds": 1},
            "storage": {"options": {"fs.s3a.endpoint": "http://s3"}},
            **spec,
        }
        self._create("huditables", naming.TABLE_KIND, name, body)
        self.tables.add(naming.table_id(body["path"]))
        return naming.table_id(body["path"])

    def writer(self, name: str = "load", *, table: str = "flights", **spec: Any) -> None:
        body = {
            "tableRef": {"name": table},
            "source": {"files": {"format": "csv", "paths": ["s3a://landing/x.csv"]}},
            "retryPolicy": {"backoffSeconds": 1},
            **spec,
        }
        self._create("hudiwriters", naming.WRITER_KIND, name, body)

    def _create(self, plural: str, kind: str, name: str, spec: JsonDict) -> None:
        self.cluster.request(
            "POST",
            self.path(plural),
            {"apiVersion": naming.API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec},
        )

    def get(self, plural: str, name: str) -> JsonDict | None:
        group = (
            "/api/v1"
            if plural in ("pods", "configmaps", "secrets", "serviceaccounts")
            else f"/apis/{naming.API_VERSION}"
        )
        return self.cluster.request("GET", self.path(plural, name, group))

    def condition(self, plural: str, name: str, kind: str) -> JsonDict | None:
        """One condition; None when it is not there."""
        conditions = ((self.get(plural, name) or {}).get("status") or {}).get("conditions") or []
        return next((c for c in conditions if c["type"] == kind), None)

    def pods(self, role: str, *, writer: str = "") -> list[JsonDict]:
        """Pods by role, oldest first."""
        selector = f"{naming.LABEL_ROLE}%3D{role}" + (f"%2C{naming.LABEL_WRITER}%3D{writer}" if writer else "")
        answer = self.cluster.request("GET", f"{self.path('pods', group='/api/v1')}?labelSelector={selector}")
        assert answer is not None
        return sorted(answer["items"], key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))

    def pod(self, role: str, *, number: int = 0, writer: str = "", seconds: float = 40.0) -> JsonDict:
        """The pod of a role with this attempt or generation number (0 = any); waits for it."""

        def find() -> JsonDict | None:
            return next(
                (
                    p
                    for p in self.pods(role, writer=writer)
                    if not number or p["metadata"]["labels"][naming.LABEL_ATTEMPT] == str(number)
                ),
                None,
            )

        return wait_for(f"{role} pod {number or ''}", find, seconds=seconds)

    # ---- the kubelet

    @property
    def _host(self) -> Host:
        return Host(self.cluster, self.namespace, "10.0.0.1", "10.0.0.9", "containerd")

    def run_pod(self, pod: JsonDict, *, node: str = "node1", bound: bool = False) -> None:
        """Schedule a pod, unless it is ``bound`` already, and let its container run."""
        if not bound:
            self._host.bind(pod, node)
        self._host.runs(pod, since="2026-01-01T00:00:00Z")

    def pod_waits(self, pod: JsonDict, reason: str, *, node: str = "node1") -> None:
        """Schedule a pod whose container does not run yet."""
        self._host.bind(pod, node)
        self._host.waits(pod, reason=reason, since="2026-01-01T00:00:00Z")

    def end_pod(self, pod: JsonDict, *, exit_code: int, message: str = "") -> None:
        """The container has ended."""
        self._host.has_ended(
            pod, exit_code=exit_code, message=message, since="2026-01-01T00:00:00Z", at="2026-01-01T00:01:00Z"
        )

    def kubelet_kills(self, pod: JsonDict) -> None:
        """Waits until somebody deletes the pod, then ends its container as SIGKILL would."""
        name = pod["metadata"]["name"]
        wait_for(
            f"deletion of {name}",
            lambda: ((self.get("pods", name) or {}).get("metadata") or {}).get("deletionTimestamp"),
        )
        self.end_pod(pod, exit_code=137)

    # ---- JVM and agent, with the pods' identity

    def key(self, table_id: str, rest: str) -> str:
        return f"/hudi/tables/{table_id}/{rest}"

    def lease(self, seconds: int = 300) -> str:
        done = self.etcd.ctl("gateway", "lease", "grant", str(seconds))
        return done.stdout.split()[1]

    def register(
        self, table_id: str, pod: JsonDict, *, role: str = "writer", lease_seconds: int = 300, clock_seconds: int = 0
    ) -> str:
        """Register a pod's JVM, as it does at its start; returns the incarnation.

        ``clock_seconds``: by how much its host's wall clock is ahead.
        """
        meta, inc = pod["metadata"], str(uuid.uuid4())
        value = {
            "inc": inc,
            "attempt": f"{self.namespace}.{meta['name']}",
            "role": role,
            "pod": meta["name"],
            "namespace": self.namespace,
            "podUID": meta["uid"],
            "node": "node1",
            "bootId": "boot-1",
            "appId": "local-1",
            "priority": 0,
            "protocolVersion": 1,
            "wallClockMs": int((time.time() + clock_seconds) * 1000),
        }
        self._leases[inc] = self.lease(lease_seconds)
        self.etcd.put(self.key(table_id, f"writer/{inc}"), value)
        self.etcd.put(self.key(table_id, f"alive/{inc}"), {"inc": inc, "n": 100}, lease=self._leases[inc])
        return inc

    def revoke(self, inc: str) -> None:
        """The JVM's heartbeat ends."""
        self.etcd.ctl("gateway", "lease", "revoke", self._leases[inc])

    def lock(self, table_id: str, inc: str, pod: JsonDict) -> None:
        value = {
            "inc": inc,
            "attempt": f"{self.namespace}.{pod['metadata']['name']}",
            "podUID": pod["metadata"]["uid"],
            "nonce": "n",
            "sinceMs": int(time.time() * 1000),
        }
        self.etcd.put(self.key(table_id, "lock"), value)

    def instant(self, table_id: str, inc: str, instant: str) -> None:
        self.etcd.put(
            self.key(table_id, f"instant/{instant}"),
            {"inc": inc, "action": "commit", "state": "Pending", "atMs": int(time.time() * 1000)},
        )

    def report_timeline(self, table_id: str, inc: str) -> None:
        """The agent found the table."""
        value = {
            "atMs": int(time.time() * 1000),
            "agentInc": inc,
            "exists": True,
            "lastInstant": "",
            "lastCompletionTime": "",
            "lowestPendingRequestedTime": "",
            "pending": [],
            "pendingCount": 0,
            "activeLength": 0,
            "foreign": [],
        }
        self.etcd.put(self.key(table_id, "report/timeline"), value)

    def settle(self, table_id: str, inc: str) -> JsonDict | None:
        """The settle record; None before there is one."""
        return self.etcd.read(self.key(table_id, f"settle/{inc}")).get(self.key(table_id, f"settle/{inc}"))

    def phase(self, table_id: str, inc: str, *phases: str, seconds: float = 60.0) -> JsonDict:
        """Waits until the settle record is in one of these phases."""
        return wait_for(
            f"settle {inc} in {phases}",
            lambda: ((r := self.settle(table_id, inc)) and r["phase"] in phases and r) or None,
            seconds=seconds,
        )

    def sweep(self, table_id: str, inc: str) -> None:
        """Do the agent's part of RollingBack: fill in outcomes, then Swept."""
        record = self.phase(table_id, inc, "RollingBack")
        prefix = self.key(table_id, "instant/")
        owned = {
            key.removeprefix(prefix): value for key, value in self.etcd.read(prefix).items() if value["inc"] == inc
        }
        record["instants"] = {
            instant: {"action": value["action"], "outcome": "RolledBack", "failures": 0}
            for instant, value in owned.items()
        }
        record["phase"] = "Swept"
        record["times"]["Swept"] = int(time.time() * 1000)
        self.etcd.put(self.key(table_id, f"settle/{inc}"), record)

    def running_table(self, **spec: Any) -> tuple[str, JsonDict, str]:
        """A HudiTable whose agent runs; returns table id, the agent's pod and its incarnation."""
        table_id = self.table(**spec)
        agent = self.pod("agent")
        self.run_pod(agent)
        inc = self.register(table_id, agent, role="agent")
        self.report_timeline(table_id, inc)
        return table_id, agent, inc

    def running_writer(self, table_id: str, name: str = "load", **spec: Any) -> tuple[JsonDict, str]:
        """A HudiWriter whose first attempt runs and is registered.

        Returns its pod and incarnation.
        """
        self.writer(name, **spec)
        pod = self.pod("driver", number=1, writer=name)
        self.run_pod(pod)
        return pod, self.register(table_id, pod)
