"""A running cluster with the chart installed, an S3 server in it, and a namespace for the tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlparse

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = Path(os.environ.get("HUDI_OPERATOR_CACHE", Path.home() / ".cache" / "hudi-operator"))
for place in (ROOT / "hack", Path(__file__).parent):
    sys.path.insert(0, str(place))
os.environ["PATH"] = os.pathsep.join([str(CACHE / "bin"), os.environ["PATH"]])

from demo import cluster, world  # noqa: E402
from demo.cluster import kubectl  # noqa: E402
from demo.lake import Lake  # noqa: E402
from demo.protocol import Watch  # noqa: E402
from demo.screen import Screen  # noqa: E402
from node import HOST, NodeLogs, Relay  # noqa: E402
from support import NAMESPACE, OPERATOR_NAMESPACE, OUT, SLOW_SOURCE, Space, run, wait_for  # noqa: E402
from tests.faults.s3proxy import Proxy  # noqa: E402

ENDPOINT = "http://s3.storage.svc:9000"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.full)


@pytest.fixture(scope="session")
def installed() -> None:
    """The cluster is up and the chart is installed: from these sources, unless E2E_INSTALLED says that it is there as it should be."""
    if not os.environ.get("E2E_INSTALLED"):
        run("hack/run-demo", "install", seconds=1800)
    os.environ["KUBECONFIG"] = run("hack/cluster", "kubeconfig").strip()


@pytest.fixture(scope="session")
def lake(installed: None) -> Lake:
    """A client of the S3 server."""
    found = world.storage(Screen())
    found.make_folder("e2e")
    return found


@pytest.fixture(scope="session")
def operator_logs(installed: None) -> Iterator[NodeLogs]:
    """Logs of the operator's pods."""
    logs = NodeLogs(OPERATOR_NAMESPACE, OUT / "logs" / OPERATOR_NAMESPACE)
    logs.start()
    yield logs
    logs.stop()


@pytest.fixture(autouse=True)
def conform(request: pytest.FixtureRequest) -> Iterator[None]:
    """What operator, drivers and agents say that they did with the tables of the shared namespace is what the protocol allows."""
    yield
    if "space" in request.fixturenames:
        request.getfixturevalue("space").conform(request.getfixturevalue("operator_logs"))


@pytest.fixture(scope="session")
def watch(installed: None) -> Iterator[Watch]:
    """Every change of the tables' keys in etcd."""
    found, way = world.etcd_watch(Screen(), way=Relay)
    found.start()
    yield found
    found.stop()
    way.stop()


def make_space(name: str, lake: Lake, watch: Watch) -> Space:
    """A fresh namespace with the S3 credentials and the source code that the writers use."""
    if cluster.exists("namespace", name):
        kubectl("delete", "namespace", name, "--wait=false")
        wait_for(f"the end of namespace {name}", lambda: not cluster.exists("namespace", name), seconds=180)
    kubectl("create", "namespace", name)
    world.secret(name, "lake-credentials", {"accessKeyId": lake.access_key, "secretAccessKey": lake.secret_key})
    code = kubectl("create", "configmap", "slow", "-n", name, f"--from-literal=slow.py={SLOW_SOURCE}", "--dry-run=client", "-o", "yaml")
    cluster.apply(code)
    return Space(name, lake, watch, ENDPOINT)


@pytest.fixture(scope="session")
def space(lake: Lake, watch: Watch, operator_logs: NodeLogs) -> Iterator[Space]:
    """The namespace that most tests share, so that one agent serves them all. The wrong-credentials table is there from the start."""
    found = make_space(NAMESPACE, lake, watch)
    found.logs.start()
    yield found
    found.logs.stop()
    kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.fixture(scope="session")
def proxy(lake: Lake) -> Iterator[Proxy]:
    """A proxy before the S3 server, for tables whose requests a test wants to hold; one for all, so that one agent serves those tables."""
    server = urlparse(lake.endpoint)
    found = Proxy(HOST, (str(server.hostname), int(server.port or 80)))
    yield found
    found.stop()
