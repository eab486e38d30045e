"""A running cluster with the chart installed, an S3 server in it, and a namespace for the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlparse

import pytest
from demo import cluster, world
from demo.cluster import kubectl
from demo.lake import Lake
from demo.protocol import Watch
from demo.screen import Screen

from tests.support.cluster.node import HOST, NodeLogs, Relay
from tests.support.cluster.space import NAMESPACE, OPERATOR_NAMESPACE, OUT, Space, make_space, run, suspend
from tests.support.harness.s3proxy import Proxy
from tests.support.trace import ended
from tests.support.trace.ended import pytest_runtest_makereport as pytest_runtest_makereport


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.full)


@pytest.fixture(scope="session")
def installed() -> None:
    """The cluster is up and the chart is installed: from these sources, unless E2E_INSTALLED says
    that it is there as it should be.
    """
    if not os.environ.get("E2E_INSTALLED"):
        run("demo/run", "install", seconds=1800)
    os.environ["KUBECONFIG"] = run("hack/cluster/cluster", "kubeconfig").strip()


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
    """What operator, drivers and agents say that they did with the tables of the shared namespace
    is what the protocol allows; with this test's, to its end.
    """
    shared = "space" in request.fixturenames
    before = request.getfixturevalue("space").tables if shared else set[str]()
    yield
    if shared:
        space = request.getfixturevalue("space")
        ending = space.tables - before if ended.complete(request.node) else ()
        space.conform(request.getfixturevalue("operator_logs"), ended=ending)


@pytest.fixture(scope="session")
def watch(installed: None) -> Iterator[Watch]:
    """Every change of the tables' keys in etcd."""
    found, way = world.etcd_watch(Screen(), way=Relay)
    found.start()
    yield found
    found.stop()
    way.stop()


@pytest.fixture(scope="session")
def space(lake: Lake, watch: Watch, operator_logs: NodeLogs) -> Iterator[Space]:
    """The namespace that most tests share, so that one agent serves them all.

    The wrong-credentials table is there from the start.
    """
    found = make_space(NAMESPACE, lake, watch)
    found.logs.start()
    yield found
    found.logs.stop()
    kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.fixture(autouse=True)
def _no_writer_goes_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test that failed has left running would take the processor from all that follow."""
    before = request.session.testsfailed
    yield
    if request.session.testsfailed > before and "space" in request.fixturenames:
        found = cluster.items("hudiwriters", "-n", NAMESPACE)
        for name in (one["metadata"]["name"] for one in found if not one["spec"].get("suspend")):
            suspend(name, NAMESPACE)


@pytest.fixture(scope="session")
def proxy(lake: Lake) -> Iterator[Proxy]:
    """A proxy before the S3 server, for tables whose requests a test wants to hold.

    One for all, so that one agent serves those tables.
    """
    server = urlparse(lake.endpoint)
    found = Proxy(HOST, (str(server.hostname), int(server.port or 80)))
    yield found
    found.stop()
