"""Nobody but the operator makes what the operator is known by: pods of drivers and agents, keys."""

from __future__ import annotations

import pytest

from tests.tiers.component.crds.cluster import EVIDENCE, Cluster, JsonDict, create, pod, wait_until


@pytest.fixture(scope="module")
def lookalikes(light_cluster: Cluster) -> str:
    """A namespace in which `dev` may do whatever Kubernetes' own admin may."""
    name = "lookalikes"
    light_cluster.kubectl("create", "namespace", name)
    wait_until(lambda: light_cluster.run("get", "serviceaccount", "default", "-n", name).returncode == 0)
    light_cluster.kubectl("create", "rolebinding", "dev", "--clusterrole=admin", "--user=dev", "-n", name)
    return name


def _secret(namespace: str, name: str) -> JsonDict:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": {}}


@pytest.mark.parametrize("role", ["driver", "agent"])
def test_pods_of_drivers_and_agents_are_the_operators(light_cluster: Cluster, lookalikes: str, role: str) -> None:
    labels = {"app.kubernetes.io/managed-by": "hudi-operator", "hudioperator.io/role": role}
    made = pod("load-12345678-1", lookalikes, labels)
    made["metadata"]["finalizers"] = [EVIDENCE]
    code, out = create(light_cluster, made, "dev")
    assert code != 0
    assert "pods with hudioperator.io/role driver or agent are made by the operator only" in out
    plain = pod("load-12345678-1", lookalikes, {"app.kubernetes.io/managed-by": "somebody"})
    code, out = create(light_cluster, plain, "dev")
    assert code == 0, out


def test_keys_of_connections_are_the_operators(light_cluster: Cluster, lookalikes: str) -> None:
    code, out = create(light_cluster, _secret(lookalikes, "load-12345678-1-spark-key"), "dev")
    assert code != 0
    assert "Secrets whose name ends with -spark-key are made by the operator only" in out
    code, out = create(light_cluster, _secret(lookalikes, "of-their-own"), "dev")
    assert code == 0, out
