"""The chart's admission policies, with requests made in the name of others."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.support import quick_yaml
from tests.tiers.component.crds.cluster import (
    EVIDENCE,
    POD_UID,
    Cluster,
    JsonDict,
    applied_executor,
    compared,
    create,
    driver_account,
    executor,
    pod,
    table,
    wait_until,
)

NO_PARAMETERS = "no params found for policy binding with `Deny` parameterNotFoundAction"
LABELS = ": pods get labels of hudioperator.io from the operator only, and executors from their driver"
OPERATOR = "system:serviceaccount:hudi-system:hudi-operator"


def _without(path: str) -> Any:
    def change(obj: JsonDict) -> None:
        del obj["metadata"][path]

    return change


def _without_label(name: str) -> Any:
    def change(obj: JsonDict) -> None:
        del obj["metadata"]["labels"][name]

    return change


def _spec(**fields: Any) -> Any:
    def change(obj: JsonDict) -> None:
        obj["spec"].update(fields)

    return change


def _owner(**fields: Any) -> Any:
    def change(obj: JsonDict) -> None:
        obj["metadata"]["ownerReferences"][0].update(fields)

    return change


def _one_owner_more(obj: JsonDict) -> None:
    owners = obj["metadata"]["ownerReferences"]
    owners.append({**owners[0], "name": "v-12345678-1", "uid": POD_UID[:-1] + "2", "controller": False})


BAD_EXECUTORS = [
    (_without("finalizers"), "metadata.finalizers of an executor must contain hudioperator.io/evidence"),
    (
        _without_label("hudioperator.io/driver"),
        "metadata.labels of an executor must contain hudioperator.io/driver with the name of its driver pod",
    ),
    (_without_label("hudioperator.io/role"), "metadata.labels of an executor must be those of an executor"),
    (
        _without("ownerReferences"),
        "metadata.ownerReferences of an executor must name its driver, the Pod 'w-12345678-1'",
    ),
    (_owner(name="another"), "metadata.ownerReferences of an executor must name its driver, the Pod 'w-12345678-1'"),
    (_owner(kind="ConfigMap"), "metadata.ownerReferences of an executor must name its driver"),
    (_owner(controller=False), "the Pod 'w-12345678-1', as its controller, and nothing else"),
    (_one_owner_more, "the Pod 'w-12345678-1', as its controller, and nothing else"),
    (_spec(restartPolicy="Always"), "spec.restartPolicy of an executor must be Never, not Always"),
    (_spec(hostNetwork=True), "spec.hostNetwork, hostPID and hostIPC of an executor must be false"),
    (_spec(hostPID=True), "spec.hostNetwork, hostPID and hostIPC of an executor must be false"),
    (_spec(hostIPC=True), "spec.hostNetwork, hostPID and hostIPC of an executor must be false"),
    (
        lambda obj: obj["spec"]["volumes"].append({"name": "h", "hostPath": {"path": "/"}}),
        "spec.volumes of an executor must be emptyDir, configMap or secret (or downwardAPI, ephemeral, "
        "persistentVolumeClaim, projected without tokens), or belong to an injector of the chart's "
        "admission.injectors or an identity of admission.identities: h",
    ),
]


@pytest.mark.parametrize(("change", "message"), BAD_EXECUTORS, ids=range(len(BAD_EXECUTORS)))
def test_an_executor_without_evidence_is_refused(
    light_cluster: Cluster, namespace: str, change: Any, message: str
) -> None:
    """Whoever makes it; what its driver may do stands in test_drivers.py."""
    bad = copy.deepcopy(executor(namespace))
    change(bad)
    light_cluster.apply(compared(namespace))
    wait_until(lambda: NO_PARAMETERS not in create(light_cluster, bad, "")[1])
    code, out = create(light_cluster, bad, "")
    assert code != 0
    assert message in out


def test_where_nothing_is_compared_no_executor_starts(light_cluster: Cluster, namespace: str) -> None:
    """F200: who has no ConfigMap to be compared with is refused, not free."""
    code, out = create(light_cluster, executor(namespace), driver_account(light_cluster, namespace))
    assert code != 0
    assert NO_PARAMETERS in out or "makes and deletes its own executors only" in out
    code, out = create(light_cluster, executor(namespace), "")
    assert code != 0
    assert NO_PARAMETERS in out
    light_cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=quick_yaml.dump(pod("x", namespace)))


def test_executors_of_another_account_are_known_by_their_labels(light_cluster: Cluster, namespace: str) -> None:
    bad = executor(namespace)
    del bad["metadata"]["finalizers"]
    light_cluster.apply(compared(namespace))
    wait_until(lambda: NO_PARAMETERS not in create(light_cluster, bad, "")[1])
    assert "metadata.finalizers of an executor" in create(light_cluster, bad, "")[1]


def test_other_pods_are_not_concerned(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.kubectl(
        "create", "--dry-run=server", "-f", "-", stdin=quick_yaml.dump(pod("x", namespace, hostNetwork=True))
    )


def test_a_driver_may_do_nothing_else(light_cluster: Cluster, namespace: str) -> None:
    user = driver_account(light_cluster, namespace)
    for verb, resource in (
        ("patch", "pods"),
        ("get", "secrets"),
        ("create", "configmaps"),
        ("patch", "huditables"),
        ("release-evidence", "pods"),
    ):
        assert (
            light_cluster.run("auth", "can-i", verb, resource, "-n", namespace, f"--as={user}").stdout.splitlines()[-1]
            == "no"
        )


# ---- the finalizer


@pytest.fixture
def kept(light_cluster: Cluster, namespace: str) -> str:
    """A namespace with an executor pod that carries the finalizer, and a role that
    may change pods.
    """
    applied_executor(light_cluster, namespace)
    light_cluster.kubectl("create", "role", "podmaster", "--verb=*", "--resource=pods,pods/status", "-n", namespace)
    light_cluster.kubectl(
        "create",
        "role",
        "patcher",
        "--verb=get,list,patch,update,delete",
        "--resource=pods,pods/status",
        "-n",
        namespace,
    )
    light_cluster.kubectl(
        "create", "rolebinding", "patcher", "--role=patcher", "--user=dev", "--user=system:node:n1", "-n", namespace
    )
    return namespace


def take_off(cluster: Cluster, namespace: str, user: str, *more: str) -> tuple[int, str]:
    """Try to remove the finalizer (dry run)."""
    patch = json.dumps({"metadata": {"finalizers": None}})
    done = cluster.run(
        "patch",
        "pod",
        "w-12345678-1-exec-1",
        "-n",
        namespace,
        "--type=merge",
        "-p",
        patch,
        "--dry-run=server",
        f"--as={user}",
        *more,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("more", [(), ("--subresource=status",)], ids=["pod", "status"])
def test_the_finalizer_is_not_taken_off_by_others(light_cluster: Cluster, kept: str, more: tuple[str, ...]) -> None:
    code, out = take_off(light_cluster, kept, "dev", *more)
    assert code != 0
    assert (
        f"the finalizer hudioperator.io/evidence of pod {kept}/w-12345678-1-exec-1 is taken off by the operator" in out
    )
    assert "dev needs the verb release-evidence on pods" in out


def test_the_operator_takes_the_finalizer_off(light_cluster: Cluster, kept: str) -> None:
    assert take_off(light_cluster, kept, OPERATOR)[0] == 0


def test_an_administrator_takes_the_finalizer_off(light_cluster: Cluster, kept: str) -> None:
    assert take_off(light_cluster, kept, "root", "--as-group=system:masters")[0] == 0


def test_an_attestor_takes_the_finalizer_off(light_cluster: Cluster, kept: str) -> None:
    light_cluster.kubectl(
        "create", "rolebinding", "attestor", "--clusterrole=hudi-operator-attestor", "--user=dev", "-n", kept
    )
    assert take_off(light_cluster, kept, "dev")[0] == 0


def test_other_changes_of_such_a_pod_are_free(light_cluster: Cluster, kept: str) -> None:
    light_cluster.kubectl("label", "pod", "w-12345678-1-exec-1", "-n", kept, "a=b", "--as=dev")
    light_cluster.kubectl("annotate", "pod", "w-12345678-1-exec-1", "-n", kept, "hudioperator.io/a=b", "--as=dev")
    light_cluster.kubectl(
        "delete", "pod", "w-12345678-1-exec-1", "-n", kept, "--wait=false", "--force", "--grace-period=0", "--as=dev"
    )
    assert EVIDENCE in light_cluster.get("pod", "w-12345678-1-exec-1", "-n", kept)["metadata"]["finalizers"]


STRIPPED: dict[str, tuple[JsonDict, str]] = {
    "role": ({"metadata": {"labels": {"hudioperator.io/role": None}}}, " (hudioperator.io/role)"),
    "manager": ({"metadata": {"labels": {"app.kubernetes.io/managed-by": "me"}}}, " (app.kubernetes.io/managed-by"),
    "agent": ({"metadata": {"labels": {"hudioperator.io/agent": "hudi-agent-1"}}}, " (hudioperator.io/agent)"),
    "spark": ({"metadata": {"labels": {"spark-role": "driver"}}}, " (spark-role)"),
    "labels": ({"metadata": {"labels": None}}, "hudioperator.io/driver"),
    "owner": ({"metadata": {"ownerReferences": None}}, "its labels, ownerReferences and images stay"),
    "image": ({"spec": {"containers": [{"name": "executor", "image": "evil:1"}]}}, "and images stay as they are"),
}


@pytest.mark.parametrize("part", STRIPPED)
def test_evidence_is_not_stripped(light_cluster: Cluster, kept: str, part: str) -> None:
    """The operator finds a dead writer's executors by labels and owner: an editor leaves both."""
    patch, message = STRIPPED[part]
    command = ("patch", "pod", "w-12345678-1-exec-1", "-n", kept, "--type=strategic", "-p", json.dumps(patch))
    done = light_cluster.run(*command, "--dry-run=server", "--as=dev")
    assert done.returncode != 0, done.stdout
    evidence = (
        f"pod {kept}/w-12345678-1-exec-1 is evidence of a writer's life" in done.stdout and message in done.stdout
    )
    # Of several policies that refuse a request the API server names any one.
    assert evidence or LABELS in done.stdout
    assert "dev needs the verb release-evidence on pods" in done.stdout
    light_cluster.kubectl(*command, "--dry-run=server")
    if "spec" not in patch:
        on_status = light_cluster.run(*command, "--subresource=status", "--dry-run=server", "--as=dev")
        # Owners are not written with the status.
        assert (on_status.returncode == 0) is (part == "owner"), on_status.stdout


def patch_status(cluster: Cluster, namespace: str, status: JsonDict, user: str, *groups: str) -> tuple[int, str]:
    """Write to a pod's status (dry run)."""
    command = [
        "patch",
        "pod",
        "w-12345678-1-exec-1",
        "-n",
        namespace,
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps({"status": status}),
        "--dry-run=server",
    ]
    done = cluster.run(*command, f"--as={user}", *(f"--as-group={g}" for g in groups))
    return done.returncode, done.stdout


DEAD = {
    "phase": "Failed",
    "containerStatuses": [
        {
            "name": "executor",
            "image": "none",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": {"exitCode": 137}},
        }
    ],
}


def test_evidence_is_written_by_kubelets_only(light_cluster: Cluster, kept: str) -> None:
    for status in (DEAD, {"phase": "Failed"}, {"containerStatuses": DEAD["containerStatuses"]}):
        code, out = patch_status(light_cluster, kept, status, "dev")
        assert code != 0
        assert (
            "the states of its containers are proof of a writer's end and are written by the kubelet only; dev needs"
            in out
        )
    # NodeRestriction is off in this cluster, so that any member of system:nodes stands
    # for the kubelet.
    assert patch_status(light_cluster, kept, DEAD, "system:node:n1", "system:nodes")[0] == 0
    assert patch_status(light_cluster, kept, DEAD, "root", "system:masters")[0] == 0
    assert patch_status(light_cluster, kept, {"message": "not evidence"}, "dev")[0] == 0


# ---- attestations


def attested(namespace: str, by: str, uid: str = POD_UID) -> JsonDict:
    entry = {
        "podUID": uid,
        "node": "n1",
        "statement": "powered off at the rack",
        "attestedBy": by,
        "at": "2026-01-01T00:00:00Z",
    }
    return table(namespace, fencing={"attestations": [entry]})


@pytest.fixture
def editors(light_cluster: Cluster, namespace: str) -> str:
    """A namespace where ann and bob may edit tables, and ann may attest."""
    light_cluster.kubectl(
        "create", "rolebinding", "edit", "--clusterrole=hudi-operator-edit", "--user=ann", "--user=bob", "-n", namespace
    )
    light_cluster.kubectl(
        "create", "rolebinding", "view", "--clusterrole=hudi-operator-view", "--user=ann", "--user=bob", "-n", namespace
    )
    light_cluster.kubectl(
        "create", "rolebinding", "attest", "--clusterrole=hudi-operator-attestor", "--user=ann", "-n", namespace
    )
    light_cluster.apply(table(namespace), user="bob")
    return namespace


def test_an_attestation_in_ones_own_name(light_cluster: Cluster, editors: str) -> None:
    light_cluster.apply(attested(editors, "ann"), user="ann")
    # It stands; others may edit the rest.
    changed = attested(editors, "ann")
    changed["spec"]["suspend"] = True
    light_cluster.apply(changed, user="bob")


def test_an_attestation_in_another_name_is_refused(light_cluster: Cluster, editors: str) -> None:
    message = light_cluster.refused(attested(editors, "carl"), user="ann")
    assert "spec.fencing.attestations[].attestedBy must be the requesting user 'ann', not 'carl'" in message


def test_an_attestation_needs_its_verb(light_cluster: Cluster, editors: str) -> None:
    message = light_cluster.refused(attested(editors, "bob"), user="bob")
    assert (
        f"spec.fencing.attestations: user 'bob' needs the verb attest on huditables in namespace {editors}" in message
    )


def test_an_attestation_is_not_changed_by_others(light_cluster: Cluster, editors: str) -> None:
    light_cluster.apply(attested(editors, "ann"), user="ann")
    changed = attested(editors, "ann")
    changed["spec"]["fencing"]["attestations"][0]["node"] = "n2"
    assert "attestedBy must be the requesting user 'bob', not 'ann'" in light_cluster.refused(changed, user="bob")


def test_an_attestation_at_creation_is_checked_too(light_cluster: Cluster, editors: str) -> None:
    light_cluster.kubectl("delete", "ht", "flights", "-n", editors)
    assert "needs the verb attest" in light_cluster.refused(attested(editors, "bob"), user="bob")


# ---- the operator's rights


@pytest.mark.parametrize(
    ("verb", "resource", "answer"),
    [
        ("patch", "huditables", "yes"),
        ("patch", "hudiwriters/status", "yes"),
        ("create", "pods", "yes"),
        ("patch", "pods", "yes"),
        ("watch", "nodes", "yes"),
        # Which tables a Secret allows stands in its metadata: it binds a role to itself for that.
        ("get", "secrets/other", "no"),
        # The keys of Spark's connections.
        ("create", "secrets", "yes"),
        ("patch", "secrets/hudi-operator-etcd", "no"),
        ("watch", "secrets", "no"),
        ("delete", "secrets", "no"),
        ("list", "secrets", "no"),
        ("patch", "nodes", "no"),
        ("patch", "pods/status", "no"),
        ("create", "clusterrolebindings", "no"),
        ("attest", "huditables", "no"),
        ("delete", "huditables", "no"),
        ("impersonate", "users", "no"),
        ("bind", "clusterroles/cluster-admin", "no"),
        ("bind", "clusterroles/hudi-operator-driver", "yes"),
        ("bind", "clusterroles/hudi-operator-consent", "yes"),
        # The policy own-rolebindings says which.
        ("delete", "rolebindings.rbac.authorization.k8s.io", "yes"),
        ("deletecollection", "rolebindings.rbac.authorization.k8s.io", "no"),
        ("watch", "rolebindings.rbac.authorization.k8s.io", "no"),
    ],
)
def test_the_operators_rights(light_cluster: Cluster, verb: str, resource: str, answer: str) -> None:
    name, _, sub = resource.partition("/")
    what = [name, f"--subresource={sub}"] if sub == "status" else [resource]
    assert (
        light_cluster.run("auth", "can-i", verb, *what, "-n", "default", f"--as={OPERATOR}").stdout.splitlines()[-1]
        == answer
    )


def test_the_operator_can_bind_the_drivers_role_and_no_other(light_cluster: Cluster, namespace: str) -> None:
    binding: JsonDict = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {
            "name": "hudi-driver",
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "hudi-operator"},
        },
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "hudi-operator-driver"},
        "subjects": [{"kind": "ServiceAccount", "name": "hudi-driver", "namespace": namespace}],
    }
    assert create(light_cluster, binding, OPERATOR)[0] == 0
    binding["roleRef"]["name"] = "cluster-admin"
    code, out = create(light_cluster, binding, OPERATOR)
    assert code != 0
    assert "forbidden" in out
