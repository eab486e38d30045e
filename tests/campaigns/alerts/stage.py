"""The cluster of the campaign: an API server with the chart's objects, etcd, gateway, operator,
Prometheus and Alertmanager as processes.

There is no kubelet. Pods of the chart are bound and said to run, and the programs of operator,
gateway and etcd are processes of this machine, whose logs `kubectl logs` shows. Drivers and agents
are played: their pods have a status, their keys are put to etcd, and they have no log.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.campaigns.alerts import rules
from tests.campaigns.crashes.nursery import Nursery
from tests.campaigns.crashes.shared import CRDS
from tests.support import CACHE, ROOT, quick_yaml
from tests.support.harness.alertmanager_server import Alertmanager
from tests.support.harness.gateway import Gateway
from tests.support.harness.kubelet_logs import kubelet_logs
from tests.support.harness.kubelet_parts import Host, Looking
from tests.support.harness.operator_world import Operator, World
from tests.support.harness.prometheus_server import Prometheus
from tests.support.harness.servers import Cluster, Etcd, wait_for
from tests.support.harness.wire import Wire
from tests.support.ports import free_ports

JsonDict = dict[str, Any]
RELEASE = "hudi-operator"
"""Release of the chart and its namespace, as in the runbooks."""
NODE, LOST = "node1", "node2"
LONG_LEASE = {"leaderElection": {"enabled": True, "leaseDurationSeconds": 60.0, "renewDeadlineSeconds": 45.0}}
"""For faults of the way to the API server that must not cost the leadership."""
_LEFT_OUT = {
    "CustomResourceDefinition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "Job",
    "CronJob",
}


class Platform(Looking):
    """Binds the pods of the release, and says that they run."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._host = Host(cluster, RELEASE, "10.0.0.1", "10.0.0.9", "containerd")
        self._seen: set[str] = set()

    def _look(self) -> None:
        for pod in (self._cluster.request("GET", self._host.path()) or {"items": []})["items"]:
            uid = pod["metadata"]["uid"]
            if uid not in self._seen and not pod["spec"].get("nodeName"):
                self._host.bind(pod, NODE)
            if uid not in self._seen:
                self._host.runs(pod, since="2026-01-01T00:00:00Z")
                self._seen.add(uid)


class Stage:
    """What all faults share; made by `stage`."""

    def __init__(self, directory: Path, cluster: Cluster, etcd: Etcd, nursery: Nursery) -> None:
        self.directory, self.cluster, self.etcd, self.nursery = directory, cluster, etcd, nursery
        self.metrics, self.probes, self.small_etcd_metrics = free_ports(3)
        """Ports; the last one is 2381 of the pod of the small etcd (`of_the_operator`)."""
        self.gateway = Gateway(etcd, directory)
        self.prometheus: Prometheus
        self.alerts: Alertmanager
        self.world: World
        self.operator: Operator | None = None

    def enter(self, namespace: str, *, servers: Etcd | None = None, **settings: Any) -> World:
        """A new namespace of tables, and no operator yet.

        ``servers``: another etcd. ``settings``: of the operator's configuration.
        """
        self.leave()
        place = self.directory / namespace
        place.mkdir()
        self.world = World(self.cluster, servers or self.etcd, place, namespace)
        self.world.forks = self.nursery
        self.world.operator_namespace = RELEASE
        self.world.settings = settings
        self.world.ports = lambda count: [self.metrics, self.probes]  # type: ignore[method-assign]
        return self.world

    def start(self, *, settings: JsonDict | None = None, forks: bool = True, **more: str) -> Operator:
        """Start the operator, in the place of the one before; ``more``: its environment."""
        self.end_operator()
        self.world.forks = self.nursery if forks else None
        before = self.world.settings
        self.world.settings = {**before, **(settings or {})}
        try:
            self.operator = self.world.start_operator(wait=False, POD_NAME=self.pod_of("operator"), **more)
        finally:
            self.world.settings = before
        return self.operator

    def led(self) -> Operator:
        """The operator, as soon as it leads."""
        operator = self.operator
        assert operator is not None
        wait_for("the operator leads", lambda: operator.leading, seconds=60)
        return operator

    def end_operator(self) -> None:
        """SIGTERM: it releases its Lease."""
        if self.operator is not None and self.operator.process.poll() is None:
            self.operator.kill(15)
        self.operator = None

    def leave(self) -> None:
        """End the operator."""
        self.end_operator()
        if hasattr(self, "world"):
            self.world.close()

    def pod_of(self, component: str) -> str:
        """Name of a pod of the release."""
        path = f"/api/v1/namespaces/{RELEASE}/pods?labelSelector=app.kubernetes.io%2Fcomponent%3D{component}"

        def found() -> list[JsonDict]:
            return list((self.cluster.request("GET", path) or {"items": []})["items"])

        return str(wait_for(f"a pod of {component}", found)[0]["metadata"]["name"])

    def log(self, namespace: str, pod: str) -> Path | None:
        """The file with the log of a pod; None for pods without a program."""
        if namespace != RELEASE:
            return None
        if pod.startswith(f"{RELEASE}-gateway"):
            return self.directory / "gateway.log"
        if pod.startswith(f"{RELEASE}-etcd-identity"):
            return None
        if pod.startswith(f"{RELEASE}-etcd-"):
            return self.world.etcd.directory / "etcd.log"
        return self.world.operators[-1].log if self.world.operators else None

    @contextmanager
    def wire(self) -> Iterator[Wire]:
        """A way to the API server for operators that start from now on."""
        config = quick_yaml.load(self.cluster.kubeconfig.read_text())
        host, _, port = config["clusters"][0]["cluster"]["server"].removeprefix("https://").partition(":")
        with Wire(host, int(port)) as made:
            config["clusters"][0]["cluster"]["server"] = f"https://{host}:{made.port}"
            file = self.directory / f"kubeconfig-{made.port}"
            file.write_text(quick_yaml.dump(config))
            self.world.operator_kubeconfig = file
            try:
                yield made
            finally:
                made.mend()
                self.end_operator()
                self.world.operator_kubeconfig = None


class Again:
    """A thread that does something again and again until it is left."""

    def __init__(self, what: Callable[[], None], *, every: float) -> None:
        self._what, self._every, self._over = what, every, threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self.problem: Exception | None = None

    def __enter__(self) -> Again:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(60)

    def _loop(self) -> None:
        while not self._over.is_set():
            try:
                self._what()
            except Exception as error:
                self.problem = error
            self._over.wait(self._every)


def chart(cluster: Cluster) -> None:
    """Install the chart, but for kinds that the cluster has already, its admission policies, and
    Jobs.
    """
    made = subprocess.run(
        [
            CACHE / "bin/helm",
            "template",
            RELEASE,
            ROOT / "charts/hudi-operator",
            f"--namespace={RELEASE}",
            "--set=crds.enabled=false,images.registry=localhost/hudi-operator,images.tag=dev",
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    wanted = [
        one
        for one in quick_yaml.load_all(made)
        if one and one["kind"] not in _LEFT_OUT and "helm.sh/hook" not in (one["metadata"].get("annotations") or {})
    ]
    cluster.kubectl("create", "namespace", RELEASE)
    cluster.kubectl("apply", "-f", "-", stdin=quick_yaml.dump_all(wanted))


@contextmanager
def stage(directory: Path) -> Iterator[Stage]:
    """Everything but an operator; ``directory`` must be new."""
    with ExitStack() as open_:
        place = directory / "cluster"
        open_.callback(subprocess.run, [ROOT / "hack/cluster/light-cluster", "down", place], check=False, timeout=60)
        subprocess.run([ROOT / "hack/cluster/light-cluster", "up", place], check=True, timeout=150)
        cluster = Cluster(place / "kubeconfig")
        open_.callback(cluster.close)
        cluster.kubectl("apply", "-f", str(ROOT / "crds"))
        cluster.kubectl("wait", "--for=condition=Established", *CRDS, "--timeout=60s")
        for node in (NODE, LOST):
            cluster.node(node)
        (directory / "etcd").mkdir()
        etcd = Etcd(directory / "etcd")
        open_.callback(etcd.stop)
        etcd.start()
        etcd.set_up_users()
        chart(cluster)
        pki = etcd.pki
        cluster.kubectl(
            "-n",
            RELEASE,
            "create",
            "secret",
            "generic",
            f"{RELEASE}-etcd-server",
            f"--from-file=tls.crt={pki / 'server.crt'}",
        )
        platform = Platform(cluster)
        open_.callback(platform.look_no_more, 10)
        platform.look_on("platform", every=0.5)
        nursery = Nursery()
        open_.callback(nursery.close)
        made = Stage(directory, cluster, etcd, nursery)
        open_.callback(made.leave)
        open_.callback(made.gateway.stop)
        made.gateway.start()
        server = {"certificate": pki / "server.crt", "key": pki / "server.key"}
        open_.enter_context(kubelet_logs(cluster, NODE, find=made.log, **server))
        made.alerts = open_.enter_context(Alertmanager(directory / "alertmanager"))
        rules.write(directory / "alerts.yaml")
        made.prometheus = open_.enter_context(
            Prometheus(
                directory / "prometheus",
                {
                    "hudi-operator": [f"127.0.0.1:{made.metrics}"],
                    "hudi-operator-gateway": [made.gateway.metrics_address],
                },
                rules=directory / "alerts.yaml",
                alertmanager=made.alerts.address,
                # As the discovery of a cluster labels them.
                settings={
                    job: {"relabel_configs": [{"target_label": "pod", "replacement": f"{job}-0"}]}
                    for job in ("hudi-operator", "hudi-operator-gateway")
                },
            )
        )
        yield made


def now_ms(seconds_ago: float = 0) -> int:
    """Unix time in milliseconds."""
    return int((time.time() - seconds_ago) * 1000)


def instant(seconds_ago: float) -> str:
    """Time of an instant."""
    now = time.time() - seconds_ago
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(now)) + f"{int(now * 1000) % 1000:03d}"
