"""What the operator's account may write, and what somebody who holds its token may not.

RBAC says which kinds of objects it may write, the chart's policies which of them.
"""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.manifests import asked_executor, configmaps, namespace, pod_secrets, pods
from hudi_operator.model.config import ConsentBindingConfig, NetworkPolicyConfig, OperatorConfig
from hudi_operator.model.facts import PodName
from tests.support import quick_yaml
from tests.tiers.component.crds.cluster import EVIDENCE, Cluster, JsonDict, pod, table, wait_until, writer

OPERATOR = "system:serviceaccount:hudi-system:hudi-operator"
CONSENT = ConsentBindingConfig("hudi-operator-consent", "hudi-operator", "hudi-system")
CONFIG = OperatorConfig(consent_binding=CONSENT)
MANAGED = {"app.kubernetes.io/managed-by": "hudi-operator"}


@dataclass(frozen=True)
class Tenant:
    """A namespace with a table, and with objects that are none of the operator's."""

    cluster: Cluster
    namespace: str
    made: dict[str, JsonDict]
    """What the operator makes for an attempt, by kind and name."""

    def sends(self, *command: str, obj: JsonDict | None = None) -> tuple[int, str]:
        """One request in the operator's name (dry run)."""
        stdin = ("-f", "-") if obj is not None else ("-n", self.namespace)
        done = self.cluster.run(
            *command, *stdin, "--dry-run=server", f"--as={OPERATOR}", stdin=quick_yaml.dump(obj) if obj else ""
        )
        return done.returncode, done.stdout

    def patches(self, what: str, patch: JsonDict, *more: str) -> tuple[int, str]:
        return self.sends("patch", *what.split("/"), "--type=merge", "-p", json.dumps(patch), *more)


def _made(namespace_: str) -> dict[str, JsonDict]:
    def read(kind: type[Any], obj: JsonDict) -> Any:
        obj["metadata"].update(uid=str(uuid.uuid4()), generation=1)
        return kind.from_object(obj)

    storage = {"secretRefs": [{"name": "lake", "as": "S3"}], "serviceAccountName": "lake"}
    own: TableSpec = read(TableSpec, table(namespace_, storage=storage, agent={"executors": {"instances": 1}}))
    load: WriterSpec = read(WriterSpec, writer(namespace_, executors={"instances": 1}))
    agent = own.agent_name(CONFIG.spark_image)
    limited = replace(CONFIG, network_policies=NetworkPolicyConfig(enabled=True))
    objects = [
        *namespace.namespace_objects(namespace_, limited, "authority", ["lake"]),
        configmaps.attempt_config(own, load, 1, CONFIG, run=1),
        configmaps.agent_config(own, agent, 1, CONFIG),
        pods.driver_pod(own, load, 1, CONFIG),
        pods.agent_pod(own, agent, 1, CONFIG),
    ]
    for obj in objects:
        obj["metadata"].pop("ownerReferences", None)
    keys = (pod_secrets.spark_key(namespace_, _stored(obj)) for obj in objects if obj["kind"] == "Pod")
    objects += [{**key, "data": {"key": "a2V5"}} for key in keys]
    return {f"{o['kind']}/{o['metadata']['name']}": o for o in objects}


def _stored(made: JsonDict) -> PodName:
    return PodName(made["metadata"]["name"], str(uuid.uuid4()))


@pytest.fixture(scope="module")
def tenant(light_cluster: Cluster) -> Tenant:
    """Nobody changes it: each request is a dry run."""
    name = "operators-account"
    light_cluster.kubectl("create", "namespace", name)
    wait_until(lambda: light_cluster.run("get", "serviceaccount", "default", "-n", name).returncode == 0)
    for kind in ("secret generic", "configmap", "serviceaccount"):
        light_cluster.kubectl("create", *kind.split(), "of-a-person", "-n", name)
    light_cluster.kubectl("create", "rolebinding", "of-a-person", "--clusterrole=view", "--user=ann", "-n", name)
    light_cluster.apply(pod("of-a-person", name), table(name), writer(name))
    made = _made(name)
    light_cluster.kubectl("create", "serviceaccount", "lake", "-n", name)
    light_cluster.apply(*(o for o in made.values() if o["kind"] in ("ServiceAccount", "ConfigMap")))
    driver = made[_name(made, "Pod", "backfill")]
    evidence = pod("with-evidence", name, {"spark-role": "executor"})
    evidence["metadata"]["finalizers"] = [EVIDENCE]
    light_cluster.apply(driver, evidence, *(_bare(name, of) for of in (OTHERS_DRIVER, driver["metadata"]["name"])))
    found = Tenant(light_cluster, name, made)
    light_cluster.apply(*(o for o in made.values() if o["kind"] == "RoleBinding"))
    light_cluster.apply(*(_meta(of, name=named)(found) for named, of in KEPT_BINDINGS.items()))
    return found


KEPT = ["example.org/kept"]
OTHERS_DRIVER = "pi-0123456789abcdef-driver"
OTHERS = f"{OTHERS_DRIVER}-exec-1"
"""An executor of a Spark application that has nothing to do with the operator."""


def _bare(namespace: str, driver: str) -> JsonDict:
    """An executor with Spark's label only; a finalizer keeps it from the garbage collector."""
    made = pod(f"{driver}-exec-1", namespace, {"spark-role": "executor"})
    made["metadata"]["finalizers"] = KEPT
    made["metadata"]["ownerReferences"] = [{**_owner("Pod", driver), "controller": True}]
    return made


def _name(made: dict[str, JsonDict], kind: str, prefix: str) -> str:
    return next(name for name in made if name.startswith(f"{kind}/{prefix}"))


def test_what_it_makes_is_accepted(tenant: Tenant) -> None:
    for name, obj in tenant.made.items():
        # A key is made once and never changed: there is no right to patch Secrets.
        command = ("create",) if obj["kind"] == "Secret" else ("apply", "--server-side", "--force-conflicts")
        code, out = tenant.sends(*command, obj=obj)
        assert code == 0, f"{name}: {out}"


def test_what_it_changes_is_accepted(tenant: Tenant) -> None:
    driver = _name(tenant.made, "Pod", "backfill")
    for what, patch in (
        (driver, {"metadata": {"finalizers": None}}),
        (_name(tenant.made, "ConfigMap", "backfill"), {"metadata": {"finalizers": None}}),
        ("huditable/flights", {"metadata": {"finalizers": ["hudioperator.io/settle"]}}),
        ("hudiwriter/backfill", {"metadata": {"finalizers": ["hudioperator.io/settle"]}}),
    ):
        code, out = tenant.patches(what, patch)
        assert code == 0, f"{what}: {out}"
    # Executors without our labels: known by their owner, or by the finalizer.
    code, out = tenant.sends("delete", "pod", f"{driver.removeprefix('Pod/')}-exec-1")
    assert code == 0, out
    code, out = tenant.patches("pod/with-evidence", {"metadata": {"finalizers": None}})
    assert code == 0, out
    code, out = tenant.patches("huditable/flights", {"status": {"observedGeneration": 1}}, "--subresource=status")
    assert code == 0, out
    for what in (driver, _name(tenant.made, "ConfigMap", "backfill"), "RoleBinding/hudi-driver-lake"):
        code, out = tenant.sends("delete", *what.split("/"))
        assert code == 0, f"{what}: {out}"


def _of(kind: str, prefix: str = "", **changes: Any) -> Callable[[Tenant], JsonDict]:
    """One of the operator's own objects, with changes to its spec or to its whole."""

    def make(tenant: Tenant) -> JsonDict:
        obj = copy.deepcopy(tenant.made[_name(tenant.made, kind, prefix)])
        obj["metadata"]["name"] = "changed"
        (obj["spec"] if kind == "Pod" else obj).update(changes)
        return obj

    return make


def _container(**fields: Any) -> Callable[[Tenant], JsonDict]:
    def make(tenant: Tenant) -> JsonDict:
        obj = _of("Pod", "backfill")(tenant)
        obj["spec"]["containers"][0].update(fields)
        return obj

    return make


def _volume(volume: JsonDict) -> Callable[[Tenant], JsonDict]:
    def make(tenant: Tenant) -> JsonDict:
        obj = _of("Pod", "backfill")(tenant)
        obj["spec"]["volumes"].append(volume)
        return obj

    return make


def _meta(of: Callable[[Tenant], JsonDict], **fields: Any) -> Callable[[Tenant], JsonDict]:
    def make(tenant: Tenant) -> JsonDict:
        obj = of(tenant)
        obj["metadata"].update(fields)
        return obj

    return make


def _plain(kind: str, name: str = "changed", labels: Any = MANAGED, **fields: Any) -> Callable[[Tenant], JsonDict]:
    def make(tenant: Tenant) -> JsonDict:
        meta = {"name": name, "namespace": tenant.namespace, "labels": labels}
        return {"apiVersion": "v1", "kind": kind, "metadata": meta, **fields}

    return make


def _owner(kind: str, name: str) -> JsonDict:
    return {"apiVersion": "v1", "kind": kind, "name": name, "uid": str(uuid.uuid4())}


def _binding(role: JsonDict, *subjects: JsonDict) -> Callable[[Tenant], JsonDict]:
    def make(tenant: Tenant) -> JsonDict:
        group = "rbac.authorization.k8s.io"
        return {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "changed", "namespace": tenant.namespace, "labels": MANAGED},
            "roleRef": {"apiGroup": group, **role},
            "subjects": [
                {"namespace": tenant.namespace, **s} if s["kind"] == "ServiceAccount" else s for s in subjects
            ],
        }

    return make


DRIVERS = {"kind": "ClusterRole", "name": "hudi-operator-driver"}
ITSELF = {"kind": "ServiceAccount", "name": CONSENT.service_account, "namespace": CONSENT.namespace}


def _reads_secrets(*subjects: JsonDict) -> Callable[[Tenant], JsonDict]:
    """The binding of the role that reads Secrets, under its name."""
    return _meta(_binding({"kind": "ClusterRole", "name": CONSENT.role}, *subjects), name=CONSENT.role)


LAKE = {"kind": "ServiceAccount", "name": "lake"}
KEPT_BINDINGS = {
    "hudi-driver-other": _binding(DRIVERS, LAKE),
    "hudi-driver-ann": _binding(DRIVERS, {"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}),
    "hudi-driver-both": _binding(DRIVERS, {**LAKE, "name": "both"}, LAKE),
    "hudi-driver-elsewhere": _binding(DRIVERS, {**LAKE, "name": "elsewhere", "namespace": "kube-system"}),
    "hudi-driver-viewer": _binding({"kind": "ClusterRole", "name": "view"}, {**LAKE, "name": "viewer"}),
    "hudi-driver-release": _binding({"kind": "ClusterRole", "name": "release-driver"}, {**LAKE, "name": "release"}),
    CONSENT.role: _reads_secrets(ITSELF),
}
"""They have the operator's label, and each differs in one way from those that it deletes."""

DRIVER = _of("Pod", "backfill")
ELSEWHERE = _of("Pod", "backfill", serviceAccountName="default", automountServiceAccountToken=False)
CREATES: dict[str, tuple[Callable[[Tenant], JsonDict], str]] = {
    "a-pod-of-its-own-making": (_plain("Pod", spec=pod("x")["spec"]), "makes pods of drivers and agents only"),
    "a-pod-without-evidence": (_meta(DRIVER, finalizers=[]), "makes pods of drivers and agents only"),
    "a-pod-in-kube-system": (_meta(ELSEWHERE, namespace="kube-system"), "makes no pods in namespace kube-system"),
    "a-pod-beside-itself": (_meta(ELSEWHERE, namespace="hudi-system"), "makes no pods in namespace hudi-system"),
    "a-pod-of-another-image": (_container(image="evil:1"), "starts no image but those that the chart allows"),
    "a-privileged-pod": (_container(securityContext={"privileged": True}), "securityContext.privileged"),
    "a-pod-as-root": (_container(securityContext={"runAsUser": 0}), "no root user"),
    "a-pod-on-the-hosts-network": (_of("Pod", "backfill", hostNetwork=True), "hostNetwork, hostPID and hostIPC"),
    "a-pod-on-a-node": (_of("Pod", "backfill", nodeName="n1"), "spec.nodeName of a pod of the operator must be empty"),
    "a-pod-with-the-hosts-files": (
        _volume({"name": "h", "hostPath": {"path": "/"}}),
        "must be emptyDir, configMap or secret",
    ),
    "a-pod-with-another-container": (
        _of("Pod", "backfill", initContainers=[{"name": "more", "image": "evil:1"}]),
        "has containers that are neither its own",
    ),
    "a-pod-with-a-container-that-is-not-confined": (
        _of("Pod", "backfill", initContainers=[{"name": "more", "image": "localhost/hudi-operator/spark:dev"}]),
        "must run as the operator sets it",
    ),
    "a-config-map-of-a-person": (_plain("ConfigMap", labels={}), "is none that the operator has made"),
    "a-config-map-in-kube-system": (
        _meta(_plain("ConfigMap"), namespace="kube-system"),
        "writes nothing in namespace kube-system",
    ),
    "an-account": (_plain("ServiceAccount"), "makes the ServiceAccounts hudi-driver and hudi-agent only"),
    "a-secret-of-another-name": (_plain("Secret"), "makes Secrets of type Opaque with its label only"),
    "a-key-of-no-pod": (
        _plain("Secret", "load-1-spark-key"),
        "each for a pod that owns it, as <pod>-spark-key or <pod>-storage-key",
    ),
    "a-key-of-another-pod": (
        _meta(_plain("Secret", "load-1-spark-key"), ownerReferences=[_owner("Pod", "load-2")]),
        "makes Secrets of type Opaque",
    ),
    "a-key-of-another-kind": (
        _meta(_plain("Secret", "load-1-spark-key"), ownerReferences=[_owner("ConfigMap", "load-1")]),
        "makes Secrets of type Opaque",
    ),
    "a-key-without-its-label": (
        _meta(_plain("Secret", "load-1-spark-key", {}), ownerReferences=[_owner("Pod", "load-1")]),
        "makes Secrets of type Opaque",
    ),
    "a-key-that-is-a-token": (
        _meta(
            _plain("Secret", "load-1-spark-key", type="kubernetes.io/service-account-token"),
            annotations={"kubernetes.io/service-account.name": "of-a-person"},
            ownerReferences=[_owner("Pod", "load-1")],
        ),
        "makes Secrets of type Opaque",
    ),
    "a-token-of-an-account": (
        _meta(
            _plain("Secret", "hudi-operator-x", type="kubernetes.io/service-account-token"),
            annotations={"kubernetes.io/service-account.name": "of-a-person"},
        ),
        "makes Secrets of type Opaque",
    ),
    "a-secret-beside-itself": (
        _meta(_plain("Secret", "hudi-operator-x"), namespace="hudi-system"),
        "writes no Secret in namespace hudi-system",
    ),
    "a-binding-of-cluster-admin": (
        _binding({"kind": "ClusterRole", "name": "cluster-admin"}, {"kind": "ServiceAccount", "name": "hudi-driver"}),
        "forbidden",
    ),
    "a-binding-of-a-person": (
        _binding(DRIVERS, {"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}),
        "binds ServiceAccounts of a table's namespace to the role hudi-operator-driver, itself to the role "
        "hudi-operator-consent, and nothing else",
    ),
    "a-binding-of-an-account-elsewhere": (
        _binding(DRIVERS, {"kind": "ServiceAccount", "name": "default", "namespace": "kube-system"}),
        "binds ServiceAccounts of a table's namespace",
    ),
    "the-right-to-read-secrets-beside-itself": (
        _meta(_reads_secrets(ITSELF), namespace="hudi-system"),
        "binds no role in namespace hudi-system",
    ),
    "the-right-to-read-secrets-in-kube-system": (
        _meta(_reads_secrets(ITSELF), namespace="kube-system"),
        "binds no role in namespace kube-system",
    ),
    "the-right-to-read-secrets-for-others": (
        _reads_secrets(ITSELF, {"kind": "ServiceAccount", "name": "hudi-driver"}),
        "itself to the role hudi-operator-consent",
    ),
    "the-right-to-read-secrets-for-another-account-beside-itself": (
        _reads_secrets({**ITSELF, "name": "default"}),
        "itself to the role hudi-operator-consent",
    ),
    "the-right-to-read-secrets-for-a-person": (
        _reads_secrets({"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}),
        "itself to the role hudi-operator-consent",
    ),
    "the-right-to-read-secrets-under-another-name": (
        _meta(_reads_secrets(ITSELF), name="hudi-driver"),
        "itself to the role hudi-operator-consent",
    ),
    "the-right-to-read-secrets-everywhere": (
        lambda tenant: {
            **_reads_secrets(ITSELF)(tenant),
            "kind": "ClusterRoleBinding",
            "metadata": {"name": CONSENT.role},
        },
        "forbidden",
    ),
    "a-cluster-role-binding": (
        lambda tenant: {
            **_binding(DRIVERS, {"kind": "ServiceAccount", "name": "hudi-driver"})(tenant),
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "changed"},
        },
        "forbidden",
    ),
    "a-network-policy-of-another-name": (
        _of("NetworkPolicy", "hudi-driver"),
        "makes the NetworkPolicies hudi-driver, hudi-executor and hudi-agent only",
    ),
    "a-network-policy-for-pods-of-others": (
        _meta(_of("NetworkPolicy", "hudi-driver", spec={"podSelector": {}, "ingress": [{}]}), name="hudi-driver"),
        "for its own pods",
    ),
    "a-network-policy-in-kube-system": (
        _meta(_of("NetworkPolicy", "hudi-driver"), name="hudi-driver", namespace="kube-system"),
        "writes nothing in namespace kube-system",
    ),
    "a-table": (lambda tenant: table(tenant.namespace, "another"), "forbidden"),
    "a-namespace": (lambda _: {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "more"}}, "forbidden"),
}


@pytest.mark.parametrize("case", CREATES)
def test_it_may_not_create(tenant: Tenant, case: str) -> None:
    make, message = CREATES[case]
    code, out = tenant.sends("create", obj=make(tenant))
    assert code != 0, out
    assert message in out


def _executor(tenant: Tenant, **container: Any) -> JsonDict:
    """The executor of its driver that the operator asks about (F301)."""
    driver = tenant.made[_name(tenant.made, "Pod", "backfill")]["metadata"]["name"]
    files = tenant.made[_name(tenant.made, "ConfigMap", "backfill")]["data"]
    made = asked_executor.executor_pod(files, namespace=tenant.namespace, driver=driver, uid=str(uuid.uuid4()))
    made["spec"]["containers"][0].update(container)
    return made


def _nobodys(tenant: Tenant) -> JsonDict:
    """With an account that each namespace has."""
    made = _executor(tenant)
    made["spec"] |= {"serviceAccountName": "default", "serviceAccount": "default"}
    return made


def test_it_asks_about_executors(tenant: Tenant) -> None:
    """F301: a dry run stores nothing; and it is judged as if the driver had sent it."""
    asked = _executor(tenant)
    code, out = tenant.sends("create", obj=asked)
    assert code == 0, out
    name = asked["metadata"]["name"]
    assert tenant.cluster.run("get", "pod", name, "-n", tenant.namespace, "--ignore-not-found").stdout == ""


# Of several policies that refuse a request the API server names any one.
NO_DRIVERS = "no params found for policy binding"
ASKS: dict[str, tuple[Callable[[Tenant], JsonDict], tuple[str, ...]]] = {
    "another-image": (
        lambda tenant: _executor(tenant, image="localhost/hudi-operator/spark:other"),
        ("must be 'localhost",),
    ),
    "another-secret": (
        lambda tenant: _executor(tenant, envFrom=[{"secretRef": {"name": "of-a-person"}}]),
        ("may use the Secrets",),
    ),
    "a-privileged-one": (
        lambda tenant: _executor(tenant, securityContext={"privileged": True}),
        ("securityContext.privileged", "must run as the operator sets it"),
    ),
    "in-kube-system": (
        _meta(_nobodys, namespace="kube-system"),
        ("makes no pods in namespace kube-system", NO_DRIVERS),
    ),
    "beside-itself": (
        _meta(_nobodys, namespace="hudi-system"),
        ("makes no pods in namespace hudi-system", NO_DRIVERS),
    ),
    "without-the-rules-of-executors": (
        _meta(_executor, labels={**MANAGED, "hudioperator.io/role": "executor"}),
        ("makes pods of drivers and agents only",),
    ),
    "no-executor": (
        _meta(_executor, labels={**MANAGED, "hudioperator.io/role": "anything"}),
        ("makes pods of drivers and agents only",),
    ),
}


@pytest.mark.parametrize("case", ASKS)
def test_it_is_not_answered_about_others(tenant: Tenant, case: str) -> None:
    make, messages = ASKS[case]
    code, out = tenant.sends("create", obj=make(tenant))
    assert code != 0, out
    assert any(message in out for message in messages), out


def test_it_makes_no_executor(tenant: Tenant) -> None:
    """The same request, and no dry run."""
    obj = quick_yaml.dump(_executor(tenant))
    done = tenant.cluster.run("create", "-f", "-", f"--as={OPERATOR}", stdin=obj)
    assert done.returncode != 0
    assert "makes pods of drivers and agents only" in done.stdout


def _patch_driver(patch: JsonDict, *more: str) -> Callable[[Tenant], tuple[int, str]]:
    return lambda tenant: tenant.patches(_name(tenant.made, "Pod", "backfill"), patch, *more)


def _patch(what: str, patch: JsonDict, *more: str) -> Callable[[Tenant], tuple[int, str]]:
    return lambda tenant: tenant.patches(what, patch, *more)


def _delete(what: str) -> Callable[[Tenant], tuple[int, str]]:
    return lambda tenant: tenant.sends("delete", *what.split("/"))


def _token(tenant: Tenant) -> tuple[int, str]:
    """No dry run is needed: it is refused."""
    done = tenant.cluster.run("create", "token", "hudi-driver", "-n", tenant.namespace, f"--as={OPERATOR}")
    return done.returncode, done.stdout


LABELLED = {"metadata": {"labels": MANAGED}}
CHANGES: dict[str, tuple[Callable[[Tenant], tuple[int, str]], str]] = {
    "a-persons-pod": (_patch("pod/of-a-person", LABELLED), "is none that the operator or one of its drivers has made"),
    "a-persons-pod-deleted": (_delete("pod/of-a-person"), "is none that the operator or one of its drivers has made"),
    "another-sparks-executor": (_patch(f"pod/{OTHERS}", LABELLED), "is none that the operator or one of its drivers"),
    "another-sparks-executor-deleted": (_delete(f"pod/{OTHERS}"), "is none that the operator or one of its drivers"),
    "the-image-of-a-pod": (
        _patch_driver({"spec": {"activeDeadlineSeconds": 1}}),
        "changes nothing of a pod but the finalizer hudioperator.io/evidence",
    ),
    "the-labels-of-a-pod": (_patch_driver(LABELLED | {"metadata": {"labels": {"a": "b"}}}), "but the finalizer"),
    "an-annotation-of-a-pod": (_patch_driver({"metadata": {"annotations": {"a": "b"}}}), "but the finalizer"),
    "a-finalizer-of-others-of-a-pod": (
        _patch_driver({"metadata": {"finalizers": [EVIDENCE, "example.org/other"]}}),
        "but the finalizer",
    ),
    "the-status-of-a-pod": (_patch_driver({"status": {"phase": "Failed"}}, "--subresource=status"), "forbidden"),
    "a-persons-config-map": (_patch("configmap/of-a-person", LABELLED), "is none that the operator has made"),
    "a-persons-config-map-deleted": (_delete("configmap/of-a-person"), "is none that the operator has made"),
    "a-persons-account": (_patch("serviceaccount/of-a-person", LABELLED), "forbidden"),
    "a-persons-secret": (_patch("secret/of-a-person", LABELLED), "forbidden"),
    "a-persons-secret-deleted": (_delete("secret/of-a-person"), "forbidden"),
    "a-persons-binding": (_patch("rolebinding/of-a-person", LABELLED), "forbidden"),
    "a-persons-binding-deleted": (_delete("rolebinding/of-a-person"), "is none that the operator has made"),
    "the-drivers-own-binding-deleted": (
        _delete("rolebinding/hudi-driver"),
        "of an account that it has bound to the role",
    ),
    **{
        f"the-binding-{named}-deleted": (_delete(f"rolebinding/{named}"), "of an account that it has bound to the role")
        for named in KEPT_BINDINGS
    },
    "the-spec-of-a-table": (_patch("huditable/flights", {"spec": {"suspend": True}}), "changes nothing of huditables"),
    "an-annotation-of-a-table": (
        _patch("huditable/flights", {"metadata": {"annotations": {"a": "b"}}}),
        "changes nothing of huditables but their status and the finalizer",
    ),
    "a-finalizer-of-others": (
        _patch("huditable/flights", {"metadata": {"finalizers": ["example.org/other"]}}),
        "changes nothing of huditables",
    ),
    "the-spec-of-a-writer": (_patch("hudiwriter/backfill", {"spec": {"suspend": True}}), "nothing of hudiwriters"),
    "a-table-deleted": (_delete("huditable/flights"), "forbidden"),
    "a-token": (_token, "forbidden"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_it_may_not_change(tenant: Tenant, case: str) -> None:
    send, message = CHANGES[case]
    code, out = send(tenant)
    assert code != 0, out
    assert message in out
