"""Nobody but the operator makes what the operator is known by: pods of drivers and agents, keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tiers.component.crds.cluster import EVIDENCE, POD_UID, Cluster, JsonDict, create, pod, wait_until
from tests.tiers.component.crds.drivers import as_pod


@pytest.fixture(scope="module")
def lookalikes(light_cluster: Cluster) -> str:
    """A namespace in which `dev` may do whatever Kubernetes' own admin may, and write status."""
    name = "lookalikes"
    light_cluster.kubectl("create", "namespace", name)
    wait_until(lambda: light_cluster.run("get", "serviceaccount", "default", "-n", name).returncode == 0)
    light_cluster.kubectl("create", "rolebinding", "dev", "--clusterrole=admin", "--user=dev", "-n", name)
    light_cluster.kubectl("create", "role", "status", "--verb=patch,update", "--resource=pods/status", "-n", name)
    light_cluster.kubectl("create", "rolebinding", "status", "--role=status", "--user=dev", "-n", name)
    return name


def _secret(namespace: str, name: str) -> JsonDict:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": {}}


LABELS = {
    "role": "driver",
    "agent": "hudi-agent-00112233445566778899aabbccddeeff",
    "driver": "load-12345678-1",
    "table": "flights",
    "writer": "load",
    "attempt": "1",
    "more": "",
}
MESSAGE = ": pods get labels of hudioperator.io from the operator only, and executors from their driver; dev needs"


@pytest.mark.parametrize("role", ["driver", "agent"])
def test_pods_of_drivers_and_agents_are_the_operators(light_cluster: Cluster, lookalikes: str, role: str) -> None:
    labels = {"app.kubernetes.io/managed-by": "hudi-operator", "hudioperator.io/role": role}
    made = pod("load-12345678-1", lookalikes, labels)
    made["metadata"]["finalizers"] = [EVIDENCE]
    code, out = create(light_cluster, made, "dev")
    assert code != 0
    assert f"metadata.labels: hudioperator.io/role{MESSAGE}" in out
    plain = pod("load-12345678-1", lookalikes, {"app.kubernetes.io/managed-by": "somebody"})
    code, out = create(light_cluster, plain, "dev")
    assert code == 0, out


@pytest.mark.parametrize("label", LABELS)
def test_labels_of_the_operator_are_its_own(light_cluster: Cluster, lookalikes: str, label: str) -> None:
    """F206: whatever the label, when the pod is made and afterwards, also by way of its status."""
    key, value = f"hudioperator.io/{label}", LABELS[label]
    code, out = create(light_cluster, pod("labelled", lookalikes, {key: value}), "dev")
    assert code != 0
    assert f"metadata.labels: {key}{MESSAGE}" in out
    light_cluster.apply(pod("theirs", lookalikes), pod("ours", lookalikes, {key: value}))
    for name, patch in (("theirs", {key: value}), ("ours", {key: None}), ("ours", {key: "other"})):
        command = ["patch", "pod", name, "-n", lookalikes, "--type=merge", "-p"]
        command += [json.dumps({"metadata": {"labels": patch}}), "--dry-run=server", "--as=dev"]
        for more in ([], ["--subresource=status"]):
            done = light_cluster.run(*command, *more)
            assert done.returncode != 0, done.stdout
            assert f"metadata.labels: {key}{MESSAGE}" in done.stdout
    light_cluster.kubectl("label", "pod", "ours", "-n", lookalikes, "a=b", "--dry-run=server", "--as=dev")
    light_cluster.kubectl("delete", "pod", "ours", "-n", lookalikes, "--grace-period=0", "--force", "--as=dev")


def test_a_controller_gives_nobody_the_operators_labels(light_cluster: Cluster, lookalikes: str) -> None:
    """A ReplicaSet of a person, whose pods Kubernetes makes."""
    template = pod("x", lookalikes, {"app": "x", "hudioperator.io/role": "agent"}, restartPolicy="Always")
    replicas = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "lookalike", "namespace": lookalikes},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": template["metadata"]["labels"]}, "spec": template["spec"]},
        },
    }
    light_cluster.apply(replicas, user="dev")

    def said() -> bool:
        found = light_cluster.get("replicaset", "lookalike", "-n", lookalikes)
        return "from the operator only" in str(found.get("status", {}).get("conditions"))

    wait_until(said)
    assert light_cluster.get("pods", "-n", lookalikes, "-l", "app=x")["items"] == []
    light_cluster.kubectl("delete", "replicaset", "lookalike", "-n", lookalikes)


AGENT = "hudi-agent-00112233445566778899aabbccddeeff"


@pytest.mark.parametrize("kind", ["Pod", "ConfigMap"])
@pytest.mark.parametrize("name", [AGENT, f"{AGENT}-0", f"{AGENT}-17"])
def test_names_of_agents_are_the_operators(light_cluster: Cluster, lookalikes: str, kind: str, name: str) -> None:
    """F272: whoever sees a HudiTable can compute the names of its agent's next objects."""

    def named(name: str) -> JsonDict:
        made = pod(name, lookalikes)
        return made if kind == "Pod" else {"apiVersion": "v1", "kind": kind, "metadata": made["metadata"]}

    code, out = create(light_cluster, named(name), "dev")
    assert code != 0
    assert f"{name} is a name of an agent; {kind.lower()}s with such names are made by the operator only" in out
    for other in (f"{name}x", f"x{name}", "hudi-agent-1", f"{AGENT[:-1]}-0"):
        code, out = create(light_cluster, named(other), "dev")
        assert code == 0, out


SPARKS = {"spark-role": "executor"}
NOT_MADE_BY_IT = "a pod with the label spark-role: executor belongs to a driver or an agent only if that pod makes it"


def _owned(namespace: str, owner: str, uid: str = POD_UID, **owned: object) -> JsonDict:
    """A pod as Spark labels its executors, with this controller."""
    made = pod("theirs-of-a-driver", namespace, SPARKS)
    reference = {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": uid, "controller": True}
    made["metadata"] |= {"ownerReferences": [{**reference, **owned}], "finalizers": ["example.org/kept"]}
    return made


@pytest.mark.parametrize("owner", ["load-12345678-1", "a.b-c-0123abcd-17", f"{AGENT}-1"])
def test_a_drivers_executors_are_made_by_it(light_cluster: Cluster, lookalikes: str, owner: str) -> None:
    """F356: the operator would delete such a pod, and keep the lock until its end is proven."""
    made = _owned(lookalikes, owner)
    beside = _owned(lookalikes, owner, controller=False)
    for obj in (made, beside):
        code, out = create(light_cluster, obj, "dev")
        assert code != 0
        assert f"metadata.ownerReferences: {owner}: {NOT_MADE_BY_IT}; dev needs the verb" in out
    # Nor is a pod made so afterwards.
    plain, owned = pod("plain", lookalikes, SPARKS), _owned(lookalikes, owner)
    owned["metadata"]["labels"] = {}
    light_cluster.apply(plain, owned)
    references = made["metadata"]["ownerReferences"]
    for name, patch, ways in (
        ("plain", {"ownerReferences": references}, [[]]),
        ("theirs-of-a-driver", {"labels": SPARKS}, [[], ["--subresource=status"]]),
    ):
        for more in ways:
            command = ["patch", "pod", name, "-n", lookalikes, "--type=merge", "-p", json.dumps({"metadata": patch})]
            done = light_cluster.run(*command, "--dry-run=server", "--as=dev", *more)
            assert done.returncode != 0, done.stdout
            assert NOT_MADE_BY_IT in done.stdout
    light_cluster.kubectl("label", "pod", "plain", "-n", lookalikes, "a=b", "--dry-run=server", "--as=dev")
    command = ["patch", "pod", "theirs-of-a-driver", "-n", lookalikes, "--type=merge", "-p"]
    light_cluster.kubectl(*command, json.dumps({"metadata": {"finalizers": None}}))
    names = ("plain", "theirs-of-a-driver", "--ignore-not-found")
    light_cluster.kubectl("delete", "pod", *names, "-n", lookalikes, "--grace-period=0", "--force")


def test_other_executors_are_not_concerned(light_cluster: Cluster, lookalikes: str) -> None:
    """Those of a Spark application that has nothing to do with the operator."""
    for owner in ("pi-0123456789abcdef-driver", "load-12345678-1-driver", "hudi-agent-1", "load-1"):
        code, out = create(light_cluster, _owned(lookalikes, owner), "dev")
        assert code == 0, out
    for other in (_owned(lookalikes, "load-12345678-1", kind="ConfigMap"), pod("free", lookalikes, SPARKS)):
        code, out = create(light_cluster, other, "dev")
        assert code == 0, out


def test_an_application_of_such_a_name_keeps_its_executors(
    light_cluster: Cluster, lookalikes: str, tmp_path: Path
) -> None:
    """Its pod's token says which pod makes them, by name and uid."""
    account = f"system:serviceaccount:{lookalikes}:default"
    light_cluster.kubectl("create", "rolebinding", "pods", "--clusterrole=edit", f"--user={account}", "-n", lookalikes)
    light_cluster.apply(pod("pi-12345678-1", lookalikes))
    stored = light_cluster.get("pod", "pi-12345678-1", "-n", lookalikes)
    driver = as_pod(light_cluster, stored, tmp_path)
    for uid, accepted in ((stored["metadata"]["uid"], True), (POD_UID, False)):
        body = json.dumps(_owned(lookalikes, "pi-12345678-1", uid))
        done = driver.run("create", "--dry-run=server", "-f", "-", stdin=body)
        assert (done.returncode == 0) is accepted, done.stdout
        assert accepted or NOT_MADE_BY_IT in done.stdout


def test_keys_of_connections_are_the_operators(light_cluster: Cluster, lookalikes: str) -> None:
    for name in ("load-12345678-1-spark-key", "load-12345678-1-storage-key"):
        code, out = create(light_cluster, _secret(lookalikes, name), "dev")
        assert code != 0
        assert "Secrets whose name ends with -spark-key or -storage-key are made by the operator only" in out
    code, out = create(light_cluster, _secret(lookalikes, "of-their-own"), "dev")
    assert code == 0, out
