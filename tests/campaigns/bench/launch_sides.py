"""The two operators of `make bench`: how each is started, what a job is, and how its states read.

Both are processes of this machine, each with its own API server and an account that may do
everything.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyspark
import yaml

from hudi_contract import naming
from hudi_contract.words import WriterState
from tests.campaigns.bench import launches
from tests.support import CACHE, ROOT
from tests.support.harness.operator_world import SUCCEEDED, World
from tests.support.harness.servers import ENVIRONMENT, Cluster, Etcd, wait_for
from tests.support.ports import free_ports

JsonDict = dict[str, Any]
NAMESPACE = "bench"
SPARK_CONF = {
    "spark.sql.shuffle.partitions": "8",
    "spark.default.parallelism": "8",
    "spark.network.timeout": "120s",
    "spark.executor.heartbeatInterval": "10s",
    "spark.task.maxFailures": "4",
}
"""Settings of each job, on both sides."""
NEW, SUBMITTED, RUNNING, ENDED, FAILED, OTHER = "new", "submitted", "running", "ended", "failed", "other"


class Side(Protocol):
    """One operator in one cluster."""

    group: str
    version: str
    plural: str
    container: str

    def install(self) -> None:
        """Make everything that must be there before the operator starts."""

    def start(self) -> subprocess.Popen[bytes]:
        """The operator, leader of its own session, when it is ready."""

    def prepare(self, names: list[str]) -> None:
        """Make everything that these jobs need, outside of the measured time."""

    def create(self, name: str) -> None:
        """One job."""

    def run(self, pod: JsonDict) -> None:
        """The kubelet, and what runs in the pod, say that it runs. `pod`: of the API server."""

    def end(self, pod: JsonDict) -> None:
        """They say that it has done its work."""

    def job_of(self, pod: JsonDict) -> str:
        """Job whose driver the pod is, as the observer saw it; empty: none."""

    def state(self, resource: JsonDict) -> str:
        """State of a resource: `NEW` and so on."""


class Kubeflow:
    """kubeflow/spark-operator, as its chart starts it, except for the differences in `FACTS`."""

    NAME: ClassVar = "kubeflow/spark-operator 2.5.2"
    FACTS: ClassVar = (
        "its webhook, the Service of Spark's UI and its leader election are off, which helps it (its chart has them "
        "on); "
        "metrics, probes and all controllers are on; log level, work queue and client limits are the chart's; "
        "it runs spark-submit of Spark 3.5.9 in a JVM for each job"
    )
    group, version, plural = "sparkoperator.k8s.io", "v1beta2", "sparkapplications"
    container = "spark-kubernetes-driver"
    _STATES: ClassVar = {
        "": NEW,
        "SUBMITTED": SUBMITTED,
        "RUNNING": RUNNING,
        "SUCCEEDING": RUNNING,
        "COMPLETED": ENDED,
        "FAILED": FAILED,
    }

    def __init__(self, cluster: Cluster, kubeconfig: Path, folder: Path, *, threads: int) -> None:
        self._cluster, self._kubeconfig, self._folder, self._threads = cluster, kubeconfig, folder, threads

    def install(self) -> None:
        self._cluster.kubectl("create", "namespace", NAMESPACE)
        crds = subprocess.run(
            [ROOT / "hack/build/spark-operator/build", "crds"], check=True, capture_output=True, text=True
        ).stdout.strip()
        self._cluster.kubectl("apply", "--server-side", "-f", crds)
        self._cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        self._cluster.kubectl("create", "serviceaccount", "spark", "-n", NAMESPACE)

    def start(self) -> subprocess.Popen[bytes]:
        metrics, health = free_ports(2)
        command = [
            str(CACHE / "bin/spark-operator"),
            "controller",
            "start",
            "--zap-log-level=info",
            "--zap-encoder=console",
            f"--namespaces={NAMESPACE}",
            f"--controller-threads={self._threads}",
            "--enable-ui-service=false",
            "--enable-metrics=true",
            f"--metrics-bind-address=127.0.0.1:{metrics}",
            "--metrics-endpoint=/metrics",
            "--metrics-labels=app_type",
            "--leader-election=false",
            f"--health-probe-bind-address=127.0.0.1:{health}",
            "--workqueue-ratelimiter-bucket-qps=50",
            "--workqueue-ratelimiter-bucket-size=500",
            "--workqueue-ratelimiter-max-delay=6h",
            "--driver-pod-creation-grace-period=10s",
            "--max-tracked-executor-per-app=1000",
            "--kube-api-qps=20",
            "--kube-api-burst=30",
        ]
        config = kubernetes_config(self._kubeconfig)
        host, _, port = config["clusters"][0]["cluster"]["server"].removeprefix("https://").rpartition(":")
        variables = {
            **os.environ,
            "KUBECONFIG": str(self._kubeconfig),
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "TMPDIR": str(self._folder),
            "SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={self._folder}",
        }
        with (self._folder / "operator.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                env=variables,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for("spark-operator", lambda: _answers(health, process), seconds=60)
        return process

    def prepare(self, names: list[str]) -> None:
        """An application needs nothing else."""

    def create(self, name: str) -> None:
        driver = {"cores": 1, "memory": "512m", "serviceAccount": "spark"}
        spec = {
            "type": "Scala",
            "mode": "cluster",
            "image": "spark:3.5.9",
            "imagePullPolicy": "IfNotPresent",
            "sparkVersion": "3.5.9",
            "mainClass": "org.apache.spark.examples.SparkPi",
            "mainApplicationFile": "local:///opt/spark/examples/jars/spark-examples.jar",
            "arguments": ["1000"],
            "sparkConf": SPARK_CONF,
            "restartPolicy": {"type": "Never"},
            "driver": driver,
            "executor": {"instances": 1, "cores": 1, "memory": "512m"},
        }
        api = f"{self.group}/{self.version}"
        body = {"apiVersion": api, "kind": "SparkApplication", "metadata": {"name": name}, "spec": spec}
        self._cluster.request("POST", f"/apis/{api}/namespaces/{NAMESPACE}/{self.plural}", body)

    def run(self, pod: JsonDict) -> None:
        self._tell(pod, "Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}})

    def end(self, pod: JsonDict) -> None:
        times = {"startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:01:00Z"}
        self._tell(pod, "Succeeded", {"terminated": {"exitCode": 0, "reason": "Completed", **times}})

    def _tell(self, pod: JsonDict, phase: str, state: JsonDict) -> None:
        runs = phase == "Running"
        container = {"name": self.container, "image": "x", "imageID": "x", "restartCount": 0, "state": state}
        status = {"phase": phase, "containerStatuses": [{**container, "ready": runs, "started": runs}]}
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}/status"
        self._cluster.request("PATCH", path, {"status": status}, "application/merge-patch+json")

    def job_of(self, pod: JsonDict) -> str:
        labels = pod["labels"]
        return str(labels.get("sparkoperator.k8s.io/app-name", "")) if labels.get("spark-role") == "driver" else ""

    def state(self, resource: JsonDict) -> str:
        word = (resource["status"].get("applicationState") or {}).get("state", "")
        return self._STATES.get(word, OTHER)


class _Session(World):
    """A world whose operators lead their own sessions, with their children."""

    def spawn(self, variables: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "hudi_operator"],
                env={**ENVIRONMENT, **variables},
                cwd=self.directory,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )


class Ours:
    """This operator, with its etcd."""

    NAME: ClassVar = "hudi-operator"
    FACTS: ClassVar = (
        "its etcd, in which it makes a gate, an admission and a clock for each writer, is on this machine and within "
        "the time; its agents are played, and tables are ready before the time begins; its gateway, admission "
        "policies and leader election are off"
    )
    group, version, plural = *naming.API_VERSION.split("/"), "hudiwriters"
    container = "driver"
    _STATES: ClassVar = {
        "": NEW,
        WriterState.WAITING: NEW,
        WriterState.STARTING: SUBMITTED,
        WriterState.RUNNING: RUNNING,
        WriterState.SUCCEEDED: ENDED,
        WriterState.FAILED: FAILED,
    }
    WRITERS_OF_A_TABLE: ClassVar = 4

    def __init__(self, cluster: Cluster, kubeconfig: Path, folder: Path, etcd: Etcd) -> None:
        self._cluster = cluster
        self.world = _Session(cluster, etcd, folder, NAMESPACE)
        self.world.operator_kubeconfig = kubeconfig
        self._ids: dict[str, str] = {}

    def install(self) -> None:
        launches.install(self._cluster)

    def start(self) -> subprocess.Popen[bytes]:
        return self.world.start_operator(leader_election=False).process

    def prepare(self, names: list[str]) -> None:
        """Their tables, each with an agent that has looked at it."""
        tables = sorted({self._table_of(name) for name in names})
        ids = {name: self.world.table(name) for name in tables}
        self._ids |= ids
        with ThreadPoolExecutor(4) as many:
            launches.serve(self.world, ids, many)
        wait_for("tables", lambda: launches.ready_tables(self.world) >= len(tables), seconds=600)

    def _table_of(self, name: str) -> str:
        stem, _, number = name.rpartition("-")
        return f"t-{stem}-{int(number) // self.WRITERS_OF_A_TABLE}"

    def create(self, name: str) -> None:
        self.world.writer(
            name,
            table=self._table_of(name),
            executors={"instances": 1, "memory": "512Mi"},
            driver={"memory": "512Mi"},
            sparkConf=SPARK_CONF,
            retryPolicy={"limit": 0},
        )

    def run(self, pod: JsonDict) -> None:
        self.world.run_pod(pod)
        writer = pod["metadata"]["labels"][naming.LABEL_WRITER]
        self.world.register(self._ids[self._table_of(writer)], pod, lease_seconds=7200)

    def end(self, pod: JsonDict) -> None:
        self.world.end_pod(pod, exit_code=0, message=SUCCEEDED)

    def job_of(self, pod: JsonDict) -> str:
        labels = pod["labels"]
        return str(labels.get(naming.LABEL_WRITER, "")) if labels.get(naming.LABEL_ROLE) == "driver" else ""

    def state(self, resource: JsonDict) -> str:
        return self._STATES.get(resource["status"].get("state", ""), OTHER)


def kubernetes_config(path: Path) -> JsonDict:
    """A kubeconfig; those here are JSON or YAML."""
    found: JsonDict = yaml.safe_load(path.read_text())
    return found


def operator_account(cluster: Cluster, admin: Path, folder: Path) -> Path:
    """A kubeconfig of an account that may do everything; its name marks its requests."""
    cluster.kubectl("create", "namespace", "operators")
    cluster.kubectl("create", "serviceaccount", "operator", "-n", "operators")
    cluster.kubectl(
        "create", "clusterrolebinding", "operator", "--clusterrole=cluster-admin", "--serviceaccount=operators:operator"
    )
    answer = cluster.request(
        "POST",
        "/api/v1/namespaces/operators/serviceaccounts/operator/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}},
    )
    assert answer is not None
    config = kubernetes_config(admin)
    config["users"][0]["user"] = {"token": answer["status"]["token"]}
    made = folder / "operator.kubeconfig"
    made.write_text(json.dumps(config))
    made.chmod(0o600)
    return made


def _answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "spark-operator has ended"
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
