"""The operator as a process between a real API server (light cluster, no kubelet) and a real etcd
with TLS and authentication.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaigns.crashes.nursery import Nursery
from tests.support import CACHE, ROOT
from tests.support.harness.operator_world import World
from tests.support.harness.servers import Cluster, Etcd


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """API server and controller-manager with our CRDs."""
    directory = tmp_path_factory.mktemp("cluster") / "cluster"
    try:
        subprocess.run([ROOT / "hack/cluster/light-cluster", "up", directory], check=True, timeout=300)
        cluster = Cluster(directory / "kubeconfig")
        cluster.kubectl("apply", "-f", str(ROOT / "crds"))
        cluster.kubectl(
            "wait",
            "--for=condition=Established",
            "crd/huditables.hudioperator.io",
            "crd/hudiwriters.hudioperator.io",
            "--timeout=60s",
        )
        cluster.kubectl("create", "clusterrole", "hudi-operator-driver", "--verb=get", "--resource=pods")
        cluster.node("node1")
        yield cluster
        cluster.close()
    finally:
        subprocess.run([ROOT / "hack/cluster/light-cluster", "down", directory], check=False, timeout=60)


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    """One member with client certificates, users and roles."""
    assert (CACHE / "bin/etcd").exists(), "run hack/build/build-binaries etcd"
    server = Etcd(tmp_path_factory.mktemp("etcd"))
    server.start()
    try:
        server.set_up_users()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """A process that has imported the operator: of an operator's first 1.5 s of processor time its
    forks leave out 1.2 s.
    """
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def world(
    cluster: Cluster, etcd: Etcd, nursery: Nursery, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[World]:
    """A namespace of its own and no operator yet."""
    name = (
        "t-"
        + request.node.name.removeprefix("test_").replace("_", "-")[:40].split("[")[0].rstrip("-")
        + f"-{os.urandom(2).hex()}"
    )
    made = World(cluster, etcd, tmp_path, name)
    made.forks = nursery
    try:
        yield made
    finally:
        made.close()
        made.conform()
        # Shown by pytest when the test failed.
        print(made.logs())
