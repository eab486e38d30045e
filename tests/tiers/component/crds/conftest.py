"""Fixtures of this folder: one light cluster for all its tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kubernetes import client, config

from tests.support import ROOT
from tests.support.hostile.launch import ALLOWED_IMAGES
from tests.tiers.component.crds.cluster import Cluster, allow, install, module_folder, wait_until


@contextmanager
def _light_cluster(directory: Path, **more: str) -> Iterator[Cluster]:
    script = str(ROOT / "hack" / "cluster" / "light-cluster")
    # As on most clusters: what is privileged is refused by policies, not by the server.
    environment = {**os.environ, "API_FLAGS": "--allow-privileged=true", **more}
    subprocess.run([script, "up", str(directory)], check=True, timeout=180, env=environment)
    try:
        yield Cluster(directory / "kubeconfig")
    finally:
        subprocess.run([script, "down", str(directory)], check=True, timeout=60)


@pytest.fixture(scope="session")
def light_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """API server and controllers; CRDs, policies and roles of the chart are there."""
    with _light_cluster(tmp_path_factory.mktemp("light") / "cluster") as cluster:
        broker = "--set=credentialsBroker.url=https://broker:8443,credentialsBroker.storeEndpoint=http://s3:9000"
        install(cluster, f"--set=config.allowedImages={{{','.join(ALLOWED_IMAGES)}}}", broker)
        yield cluster


@pytest.fixture(scope="session")
def external_secrets(light_cluster: Cluster) -> Cluster:
    """The CRDs of ExternalSecrets and their stores are there, from their Go module, by the module's
    checksum. No controller acts on one.
    """
    module = module_folder(
        "github.com/external-secrets/external-secrets@v1.3.2", "h1:u2J8RjlHIeF0oZCqtl92adI/uZWUwOesJIDkfql6LqQ="
    )
    crds = module / "config" / "crds" / "bases"
    for name in ("external-secrets.io_externalsecrets", "external-secrets.io_clustersecretstores",
                 "external-secrets.io_secretstores", "generators.external-secrets.io_generatorstates"):  # fmt: skip
        light_cluster.kubectl("apply", "--server-side", "-f", str(crds / f"{name}.yaml"))
    light_cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    return light_cluster


@pytest.fixture
def bare_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """API server and controllers, and nothing of ours."""
    with _light_cluster(tmp_path / "cluster", TYPE_CHECKS="0") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def _core(light_cluster: Cluster) -> client.CoreV1Api:
    """One connection for what is no part of any test: hundreds of processes fewer."""
    return client.CoreV1Api(config.new_client_from_config(str(light_cluster.kubeconfig)))


@pytest.fixture
def namespace(_core: client.CoreV1Api, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    name = f"t{abs(hash(request.node.nodeid)) % 10**10}"
    _core.create_namespace({"metadata": {"name": name}})
    wait_until(lambda: bool(_core.list_namespaced_service_account(name).items), every=0.01)
    return name


@pytest.fixture
def author(light_cluster: Cluster, namespace: str) -> str:
    """A namespace where ann has the rights on tables and writers, and no others."""
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    tables = {"apiGroups": ["hudioperator.io"], "resources": ["huditables", "hudiwriters"], "verbs": verbs}
    allow(light_cluster, namespace, "author", tables)
    return namespace
