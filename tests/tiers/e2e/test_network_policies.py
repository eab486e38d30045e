"""The NetworkPolicies of the chart and of a namespace with tables, enforced by a network plugin."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pandas as pd
import pytest
from demo import cluster
from demo.cluster import kubectl

from tests.support import ROOT, quick_yaml
from tests.support.cluster.enforcer import enforced
from tests.support.cluster.scene import EXECUTOR, executors
from tests.support.cluster.space import OPERATOR_NAMESPACE, OUT, Space, installed_with, run, wait_for, written

pytestmark = [pytest.mark.extra, pytest.mark.timeout(1200)]
NEIGHBOUR = "neighbour"
STORAGE = "storage"
STORE = {"app.kubernetes.io/name": "s3"}
"""Labels of the object store's pod (examples/flights/s3.yaml)."""
TABLES_ONLY = ROOT / "examples" / "isolation" / "networkpolicy.yaml"
WEB = 8000
"""The port on which the neighbour listens."""
EGRESS = {
    "enabled": True,
    "spark": [{"to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": STORAGE}}}]}],
}
Port = tuple[str, int]
"""A pod, by namespace and name, and a port of its."""
CONNECT = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor

def answers(at):
    try:
        socket.create_connection(tuple(at), timeout=2).close()
        return True
    except OSError:
        return False

asked = json.load(sys.stdin)
with ThreadPoolExecutor(32) as many:
    json.dump(list(many.map(answers, asked)), sys.stdout)
"""


@pytest.fixture
def neighbour(installed: None) -> Iterator[str]:
    """A pod in a namespace of its own, with no right and no label of ours."""
    if cluster.exists("namespace", NEIGHBOUR):
        kubectl("delete", "namespace", NEIGHBOUR)
    kubectl("create", "namespace", NEIGHBOUR)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NEIGHBOUR, "namespace": NEIGHBOUR},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "python",
                    "image": "localhost/hudi-operator/operator:dev",
                    "imagePullPolicy": "Never",
                    "command": ["python3", "-m", "http.server", str(WEB)],
                }
            ],
        },
    }
    cluster.apply(json.dumps(pod))
    kubectl("wait", "--for=condition=Ready", f"pod/{NEIGHBOUR}", "-n", NEIGHBOUR, "--timeout=60s")
    yield NEIGHBOUR
    kubectl("delete", "namespace", NEIGHBOUR, "--wait=false")


def listening(namespace: str) -> dict[Port, tuple[str, int]]:
    """The ports on which the running pods of a namespace wait for others, with their addresses.

    Asked of the kernel in each pod's network, so that a port that nobody has listed is there, too.
    By its oldest process: that of a probe may be gone at once.
    """
    found: dict[Port, tuple[str, int]] = {}
    for pod in cluster.items("pods", "-n", namespace, "--field-selector=status.phase=Running"):
        name, address = pod["metadata"]["name"], pod["status"]["podIP"]
        pids = cluster.host_pids(namespace, name)
        if not pids:
            continue  # it has just ended
        asked = subprocess.run(
            ["nsenter", "--target", str(min(pids)), "--net", "ss", "--no-header", "-ltn"],
            capture_output=True,
            text=True,
        )
        for line in asked.stdout.splitlines():
            host, _, port = line.split()[3].rpartition(":")
            if host not in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"):
                found[f"{namespace}/{name}", int(port)] = (address, int(port))
    return found


def answered(ports: dict[Port, tuple[str, int]]) -> set[Port]:
    """Those to which the neighbour gets a connection."""
    names = list(ports)
    told = kubectl(
        *("exec", "-i", NEIGHBOUR, "-n", NEIGHBOUR, "--", "python3", "-c", CONNECT),
        stdin=json.dumps([ports[name] for name in names]),
    )
    return {name for name, open_ in zip(names, json.loads(told), strict=True) if open_}


@pytest.fixture
def egress(installed: None) -> Iterator[None]:
    installed_with(f"--set-json=networkPolicy.egress={json.dumps(EGRESS)}")
    yield
    installed_with()


def reaching(address: str, *namespaces: str) -> dict[str, str]:
    """The running pods of these namespaces that reach the neighbour, with their roles."""
    asked = json.dumps([[address, WEB]])
    found = {}
    for namespace in namespaces:
        for pod in cluster.items("pods", "-n", namespace, "--field-selector=status.phase=Running"):
            pids = cluster.host_pids(namespace, pod["metadata"]["name"])
            if not pids:
                continue  # it has just ended
            told = subprocess.run(
                ["nsenter", "--target", str(min(pids)), "--net", sys.executable, "-c", CONNECT],
                input=asked,
                capture_output=True,
                text=True,
                check=True,
            )
            if json.loads(told.stdout)[0]:
                found[pod["metadata"]["name"]] = pod["metadata"]["labels"].get("app.kubernetes.io/component", "")
    return found


@pytest.fixture
def tables_only(space: Space) -> Iterator[Callable[[], None]]:
    """Applies the NetworkPolicy of the example, with the names of this cluster in it."""
    policy = quick_yaml.load(TABLES_ONLY.read_text())
    (rule,) = policy["spec"]["ingress"]
    (peer,) = rule["from"]
    policy["metadata"]["namespace"] = STORAGE
    policy["spec"]["podSelector"] = {"matchLabels": STORE}
    peer["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": space.namespace}}
    yield lambda: cluster.apply(json.dumps(policy))
    kubectl("delete", "networkpolicy", policy["metadata"]["name"], "-n", STORAGE, "--ignore-not-found")


def roles(ports: set[Port]) -> set[str]:
    """What the pods of these ports are: operator, gateway, etcd; driver, executor, agent."""
    found = set()
    for pod in {name for name, _ in ports}:
        labels = cluster.get("pod", pod.split("/")[1], "-n", pod.split("/")[0])["metadata"]["labels"]
        found.add(labels.get("app.kubernetes.io/component", ""))
    return found


def test_a_neighbour_reaches_no_pod_of_ours_and_writers_work(
    space: Space, neighbour: str, tables_only: Callable[[], None]
) -> None:
    """Without a plugin that enforces policies a pod of anybody connects to each of our pods; with
    one to none, and with the policy of examples/isolation not to the store either, while writers
    with executors commit, one of them from its start to its end.
    """
    space.table("policies")
    space.writer("before", "policies", batches=2, rows=60, delay=0.5, executors={"instances": 1, **EXECUTOR})
    _, pod = space.wait_inflight("before", "policies")
    wait_for("an executor", lambda: bool(executors(space, pod)), seconds=60)
    ours = listening(space.namespace) | listening(OPERATOR_NAMESPACE)
    store = listening(STORAGE)
    open_before = answered(ours)
    assert roles(open_before) >= {"operator", "gateway", "etcd", "driver", "executor", "agent"}, open_before
    assert {port for (pod, port) in ours if pod.endswith("-etcd-0")} == {2379, 2380}, "each asks for a certificate"
    assert answered(store) == set(store) != set()

    with enforced(OUT / "logs" / "kube-router.log"):
        wait_for("the policies to hold", lambda: not answered(ours) & open_before, seconds=90, every=2)
        # What no policy of ours selects is reached as before: it is the policies that refuse.
        assert answered(store) == set(store)
        tables_only()
        wait_for("the example's policy to hold", lambda: not answered(store), seconds=90, every=2)
        run("helm", "test", "hudi-operator", "-n", OPERATOR_NAMESPACE, "--timeout", "3m")
        space.wait("hudiwriter/before", "Succeeded", seconds=240)
        space.writer(
            "during", "policies", batches=2, rows=60, first=1000, delay=0.2, executors={"instances": 1, **EXECUTOR}
        )
        driver = wait_for("a driver", lambda: space.drivers("during") or None, seconds=120)[0]["metadata"]["name"]
        wait_for("its executor", lambda: bool(executors(space, driver)), seconds=120)
        ours = listening(space.namespace) | listening(OPERATOR_NAMESPACE)
        assert not answered(ours | store), "reached although policies are enforced"
        space.wait("hudiwriter/during", "Succeeded", seconds=240)
    space.audited("policies", pd.concat([written(batches=2, rows=60), written(batches=2, rows=60, first=1000)]))


def test_pods_of_ours_reach_nobody_else_and_writers_work(space: Space, neighbour: str, egress: None) -> None:
    """With `networkPolicy.egress`: a server of somebody else is reached by none of our pods, and
    writers with executors commit.
    """
    address = cluster.get("pod", NEIGHBOUR, "-n", NEIGHBOUR)["status"]["podIP"]
    space.table("outgoing")
    space.writer("outgoing-before", "outgoing", batches=2, rows=60, delay=0.5, executors={"instances": 1, **EXECUTOR})
    _, pod = space.wait_inflight("outgoing-before", "outgoing")
    wait_for("an executor", lambda: bool(executors(space, pod)), seconds=60)
    where = (space.namespace, OPERATOR_NAMESPACE)
    assert set(reaching(address, *where).values()) >= {"operator", "gateway", "etcd", "driver", "executor", "agent"}

    with enforced(OUT / "logs" / "kube-router-egress.log"):
        wait_for("the policies to hold", lambda: not reaching(address, *where), seconds=90, every=2)
        run("helm", "test", "hudi-operator", "-n", OPERATOR_NAMESPACE, "--timeout", "3m")
        space.wait("hudiwriter/outgoing-before", "Succeeded", seconds=240)
        space.writer(
            "outgoing-during",
            "outgoing",
            batches=2,
            rows=60,
            first=1000,
            delay=0.2,
            executors={"instances": 1, **EXECUTOR},
        )
        driver = wait_for("a driver", lambda: space.drivers("outgoing-during") or None, seconds=120)[0]["metadata"][
            "name"
        ]
        wait_for("its executor", lambda: bool(executors(space, driver)), seconds=120)
        assert reaching(address, *where) == {}
        space.wait("hudiwriter/outgoing-during", "Succeeded", seconds=240)
    space.audited("outgoing", pd.concat([written(batches=2, rows=60), written(batches=2, rows=60, first=1000)]))
