"""What a driver may start, asked with the token of its pod.

The driver's pod, its ConfigMap and the template of its executors are the operator's own; Spark's
part is added as Spark 3.5 does it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.manifests import configmaps, pods
from hudi_operator.manifests import namespace as manifests
from tests.support import quick_yaml
from tests.tiers.component.crds.cluster import Cluster, JsonDict, install, pod, table, wait_until, writer
from tests.tiers.component.crds.drivers import (
    CLAIM,
    CONFIG,
    CONFINED,
    OPERATOR,
    Driver,
    as_pod,
    as_spark_makes_it,
    launched,
    spec_of,
)


@pytest.fixture(scope="module", params=["", "lake"], ids=["hudi-driver", "account-of-the-table"])
def driver(light_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Driver:
    """Nobody changes it: each request is a dry run."""
    name = f"drivers-{request.param or 'default'}"
    light_cluster.kubectl("create", "namespace", name)
    light_cluster.apply(priority_class("urgent", 1000))
    wait_until(lambda: light_cluster.run("get", "serviceaccount", "default", "-n", name).returncode == 0)
    return launched(light_cluster, name, tmp_path_factory.mktemp("driver"), account=request.param)


def priority_class(name: str, value: int, *, default: bool = False) -> JsonDict:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "globalDefault": default,
    }


def test_a_driver_starts_its_executors(driver: Driver) -> None:
    assert driver.creates(driver.executor) == (0, f"pod/{driver.name}-exec-1 created (server dry run)\n")


def test_an_agent_starts_executors_of_its_own(light_cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """The same policy, the ConfigMap of the agent: not another image, and not without evidence."""
    own: TableSpec = spec_of(TableSpec, table(namespace, agent={"executors": {"instances": 1}}))
    name = own.agent_name(CONFIG.spark_image)
    light_cluster.apply(*manifests.namespace_objects(namespace, CONFIG, "", []))
    agent, config = pods.agent_pod(own, name, 1, CONFIG), configmaps.agent_config(own, name, 1, CONFIG)
    for made in (agent, config):
        made["metadata"].pop("ownerReferences", None)
    light_cluster.apply(config, agent)
    stored = light_cluster.get("pod", agent["metadata"]["name"], "-n", namespace)
    template = pods.agent_executor_template(own, name, 1, CONFIG)
    started = Driver(as_pod(light_cluster, stored, tmp_path), namespace, name, as_spark_makes_it(template, own, stored))
    assert started.creates(started.executor)[0] == 0, started.creates(started.executor)[1]
    code, said = started.creates(started.changed(lambda obj: obj["metadata"].pop("finalizers")))
    assert code != 0
    assert "metadata.finalizers of an executor must contain hudioperator.io/evidence" in said
    code, said = started.creates(started.changed(_container(image="another")))
    assert code != 0
    assert "must be 'localhost/hudi-operator/spark:dev'" in said


def _in_spec(**fields: Any) -> Callable[[JsonDict], None]:
    return lambda obj: obj["spec"].update(fields)


def _volume(**source: Any) -> Callable[[JsonDict], None]:
    return lambda obj: obj["spec"]["volumes"].append({"name": "more", **source})


def _container(**fields: Any) -> Callable[[JsonDict], None]:
    return lambda obj: obj["spec"]["containers"][0].update(fields)


def _security(**fields: Any) -> Callable[[JsonDict], None]:
    return lambda obj: obj["spec"]["containers"][0]["securityContext"].update(fields)


def _pod_security(**fields: Any) -> Callable[[JsonDict], None]:
    return lambda obj: obj["spec"]["securityContext"].update(fields)


def _label(name: str, value: str) -> Callable[[JsonDict], None]:
    return lambda obj: obj["metadata"]["labels"].update({name: value})


def _conf(obj: JsonDict) -> JsonDict:
    """The volume with the operator's files."""
    found: JsonDict = next(v for v in obj["spec"]["volumes"] if "configMap" in v)
    return found


def _owners(obj: JsonDict) -> list[JsonDict]:
    found: list[JsonDict] = obj["metadata"]["ownerReferences"]
    return found


ANOTHER = "0d3c0b54-6c0e-4c8e-9a55-7f2b9d1f0c11"
MORE = {"name": "more", "image": "evil:1"}
COPIED = {"kind": "PersistentVolumeClaim", "name": "of-others"}
NOT_COMPARED = "must mount the ConfigMap"
# Of several policies that refuse a request the API server names any one.
LABELS = "metadata.labels of an executor of"
CONTAINERS = "may have the containers [] beside its own, not "
NOT_MADE_BY_IT = "belongs to a driver or an agent only if that pod makes it"
UNCONFINED = "no profile of seccomp or AppArmor may be Unconfined"
PROFILES = "must have the profiles [seccompProfile=RuntimeDefault:] of seccomp and AppArmor"
NO_CLASS = "spec.priorityClassName of an executor must be that of its podTemplate, or the cluster's default, not "
OTHERS_WORDS: dict[str, tuple[str, ...]] = {
    "root": ("not [executor/runAsUser=0]",),
    "no-seccomp-in-a-container": (f"{PROFILES}, not",),
    "no-seccomp": (f"{PROFILES}, not",),
    "no-apparmor-in-a-container": (f"{PROFILES}, not",),
    "no-apparmor": (f"{PROFILES}, not",),
    "no-apparmor-by-its-annotation": (f"{PROFILES}, not",),
    "a-token": ("must be emptyDir, configMap or secret",),
    "privileged-init-container": (CONTAINERS,),
    "another-container": (CONTAINERS,),
    "an-agent": (LABELS,),
    "a-priority-class-with-the-label-of-one": (LABELS,),
    "no-executor": (LABELS, "makes and deletes its own executors only", "from the operator only"),
    "of-another-driver": ("metadata.name of an executor", NOT_COMPARED),
    "an-owner-beside": (NOT_MADE_BY_IT, "must have the uid of that pod"),
    "the-uid-of-another-driver": (NOT_MADE_BY_IT,),
}
ATTACKS: dict[str, tuple[Callable[[JsonDict], Any], str]] = {
    "privileged-init-container": (
        _in_spec(initContainers=[{**MORE, "securityContext": {"privileged": True}}]),
        "admission.injectors, and whose image config.allowedImages does not allow: more",
    ),
    "another-container": (
        lambda obj: obj["spec"]["containers"].append(MORE),
        "has containers that are neither its own nor those of an injector",
    ),
    "a-container-of-an-allowed-image": (
        lambda obj: obj["spec"]["containers"].append({**MORE, "image": "x:1", **CONFINED}),
        "may have the containers [] beside its own, not more",
    ),
    "a-sidecar-of-an-allowed-image": (
        _in_spec(initContainers=[{**MORE, "image": "x:1", **CONFINED, "restartPolicy": "Always"}]),
        "may have the containers [] beside its own, not more",
    ),
    "a-projected-secret": (
        _volume(projected={"sources": [{"secret": {"name": "of-others"}}]}),
        "-spark-key, kafka-tls, lake], not of-others",
    ),
    "a-projected-config-map": (
        _volume(projected={"sources": [{"configMap": {"name": "of-others"}}]}),
        "may use the ConfigMap",
    ),
    "a-copy-of-a-volume": (
        _volume(ephemeral={"volumeClaimTemplate": {"spec": {**CLAIM, "dataSource": COPIED}}}),
        "must be emptyDir, configMap or secret",
    ),
    "a-volume-by-its-name": (
        _volume(ephemeral={"volumeClaimTemplate": {"spec": {**CLAIM, "volumeName": "of-others"}}}),
        "must be emptyDir, configMap or secret",
    ),
    "a-volume-by-its-labels": (
        _volume(ephemeral={"volumeClaimTemplate": {"spec": {**CLAIM, "selector": {"matchLabels": {"of": "others"}}}}}),
        "must be emptyDir, configMap or secret",
    ),
    "a-volume-of-the-node": (_volume(csi={"driver": "x"}), "must be emptyDir, configMap or secret"),
    "sys-admin": (_security(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}), "capabilities of a container"),
    "privileged": (
        _security(privileged=True, allowPrivilegeEscalation=True),
        "securityContext.privileged of each container",
    ),
    "root": (_security(runAsUser=0), "no root user"),
    "escalation": (_security(allowPrivilegeEscalation=True), "must run as the operator sets it"),
    "host-network": (_in_spec(hostNetwork=True), "spec.hostNetwork, hostPID and hostIPC of an executor must be false"),
    "host-path": (_volume(hostPath={"path": "/"}), "must be emptyDir, configMap or secret"),
    "host-port": (_container(ports=[{"containerPort": 80, "hostPort": 80}]), "may have no hostPort"),
    "host-of-a-probe": (
        _container(livenessProbe={"httpGet": {"host": "169.254.169.254", "port": 80}}),
        "may name no host",
    ),
    "host-of-a-handler": (
        _container(lifecycle={"postStart": {"tcpSocket": {"host": "127.0.0.1", "port": 80}}}),
        "may name no host",
    ),
    "a-priority-class": (_in_spec(priorityClassName="urgent"), f"{NO_CLASS}'urgent'"),
    "a-priority-class-with-the-label-of-one": (
        lambda obj: (
            _in_spec(priorityClassName="urgent")(obj),
            _label("hudioperator.io/priority-class", "urgent")(obj),
        ),
        LABELS,
    ),
    "node": (_in_spec(nodeName="node1"), "spec.nodeName of an executor must be empty, not node1"),
    "a-claim": (
        _volume(persistentVolumeClaim={"claimName": "of-others"}),
        "may use the claims of volumes [] only",
    ),
    "a-projected-token": (
        _volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]}),
        "must be emptyDir, configMap or secret",
    ),
    "another-account": (_in_spec(serviceAccountName="default", serviceAccount="default"), "spec.serviceAccountName of"),
    "a-token": (_in_spec(automountServiceAccountToken=True), "automountServiceAccountToken false"),
    "another-image": (_container(image="evil:1"), "must be 'localhost/hudi-operator/spark:dev'"),
    "a-secret-as-volume": (
        _volume(secret={"secretName": "hudi-operator-etcd"}),
        "-spark-key, kafka-tls, lake], not hudi-operator-etcd",
    ),
    "a-secret-as-variables": (
        _container(envFrom=[{"secretRef": {"name": "of-others"}}]),
        "-spark-key, kafka-tls, lake], not of-others",
    ),
    "a-secret-as-variable": (
        _container(env=[{"name": "X", "valueFrom": {"secretKeyRef": {"name": "of-others", "key": "k"}}}]),
        "-spark-key, kafka-tls, lake], not of-others",
    ),
    "the-key-of-another-driver": (
        _volume(secret={"secretName": "other-01234567-1-spark-key"}),
        "-spark-key, kafka-tls, lake], not other-01234567-1-spark-key",
    ),
    "a-config-map": (_volume(configMap={"name": "of-others"}), "may use the ConfigMap"),
    "another-folder": (lambda obj: _conf(obj).update(emptyDir={}, configMap=None), NOT_COMPARED),
    "a-config-map-that-may-be-missing": (lambda obj: _conf(obj)["configMap"].update(optional=True), NOT_COMPARED),
    "a-config-map-that-is-not-mounted": (
        _container(volumeMounts=[{"name": "tmp", "mountPath": "/tmp"}]),
        NOT_COMPARED,
    ),
    "another-table": (_label("hudioperator.io/table", "other"), LABELS),
    "another-writer": (_label("hudioperator.io/writer", "other"), LABELS),
    "another-attempt": (_label("hudioperator.io/attempt", "2"), LABELS),
    "one-label-more": (_label("hudioperator.io/more", "1"), LABELS),
    "one-label-less": (lambda obj: obj["metadata"]["labels"].pop("hudioperator.io/writer"), LABELS),
    "another-name": (lambda obj: obj["metadata"].update(name="load-12345678-2"), "metadata.name of an executor of"),
    "a-name-of-no-number": (
        lambda obj: obj["metadata"].update(name=f"{obj['metadata']['name']}x"),
        "metadata.name of an executor of",
    ),
    "any-name": (
        lambda obj: obj["metadata"].update(generateName=f"{obj['metadata'].pop('name')}-"),
        "metadata.name of an executor of",
    ),
    "an-agent": (_label("hudioperator.io/agent", "hudi-agent-1"), "metadata.labels of an executor must be those of"),
    "no-executor": (_label("hudioperator.io/role", "agent"), "metadata.labels of an executor must be those of"),
    "no-seccomp-in-a-container": (_security(seccompProfile={"type": "Unconfined"}), UNCONFINED),
    "no-seccomp": (
        lambda obj: obj["spec"]["securityContext"].pop("seccompProfile"),
        "must have runAsNonRoot and a seccomp profile",
    ),
    "another-seccomp-profile": (
        _pod_security(seccompProfile={"type": "Localhost", "localhostProfile": "loose.json"}),
        f"{PROFILES}, not [seccompProfile=Localhost:loose.json]",
    ),
    "a-seccomp-profile-of-the-container": (
        _security(seccompProfile={"type": "Localhost", "localhostProfile": "loose.json"}),
        f"{PROFILES}, not [seccompProfile=RuntimeDefault:, executor/seccompProfile=Localhost:loose.json]",
    ),
    "another-selinux-type": (_security(seLinuxOptions={"type": "spc_t"}), UNCONFINED),
    "no-apparmor-in-a-container": (_security(appArmorProfile={"type": "Unconfined"}), UNCONFINED),
    "no-apparmor": (_pod_security(appArmorProfile={"type": "Unconfined"}), "nor an Unconfined profile"),
    "no-apparmor-by-its-annotation": (
        lambda obj: obj["metadata"]["annotations"].update(
            {"container.apparmor.security.beta.kubernetes.io/executor": "unconfined"}
        ),
        UNCONFINED,
    ),
    "another-apparmor-profile": (
        _security(appArmorProfile={"type": "Localhost", "localhostProfile": "loose"}),
        f"{PROFILES}, not",
    ),
    "more-groups": (_pod_security(supplementalGroups=[0, 999]), "not [supplementalGroups=0, supplementalGroups=999]"),
    "the-group-of-its-files": (_pod_security(fsGroup=0), "not [fsGroup=0]"),
    "another-user": (_security(runAsUser=1000), "not [executor/runAsUser=1000]"),
    "names-of-hosts": (_in_spec(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["x"]}]), "spec.hostAliases is not for"),
    "one-finalizer-more": (
        lambda obj: obj["metadata"]["finalizers"].append("x.io/stay"),
        "may be [hudioperator.io/evidence], not [hudioperator.io/evidence, x.io/stay]",
    ),
    "a-finalizer-of-kueue-without-its-queue": (
        lambda obj: (
            obj["metadata"]["finalizers"].append("kueue.x-k8s.io/managed"),
            _label("kueue.x-k8s.io/queue-name", "q")(obj),
        ),
        "may be [hudioperator.io/evidence], not",
    ),
    "without-evidence": (lambda obj: obj["metadata"].pop("finalizers"), "must contain hudioperator.io/evidence"),
    "an-owner-beside": (
        lambda obj: _owners(obj).append(
            {**_owners(obj)[0], "name": "load-12345678-1", "uid": ANOTHER, "controller": False}
        ),
        "as its controller, and nothing else",
    ),
    "the-uid-of-another-driver": (lambda obj: _owners(obj)[0].update(uid=ANOTHER), "must have the uid of that pod"),
    "no-controller": (lambda obj: _owners(obj)[0].pop("controller"), "as its controller, and nothing else"),
    "of-another-driver": (
        lambda obj: (
            _label("hudioperator.io/driver", "other-1")(obj),
            obj["metadata"]["ownerReferences"][0].update(name="other-1"),
        ),
        "makes and deletes its own executors only: this pod has the labels hudioperator.io/driver 'other-1'",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_driver_starts_nothing_else(driver: Driver, attack: str) -> None:
    change, message = ATTACKS[attack]
    code, out = driver.creates(driver.changed(change))
    assert code != 0, out
    assert any(words in out for words in (message, *OTHERS_WORDS.get(attack, ()))), out


def test_the_classes_of_a_template_are_those_of_its_executors(
    light_cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """A driver neither preempts other teams' pods nor leaves the runtime that was named for it."""
    light_cluster.apply(*(priority_class(name, value) for name, value in (("batch", 10), ("urgent", 1000))))
    for handler in ("sandbox", "plain"):
        light_cluster.apply(
            {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": handler},
                "handler": handler,
            }
        )
    template = {"spec": {"priorityClassName": "batch", "runtimeClassName": "sandbox"}}
    driver = launched(light_cluster, namespace, tmp_path, executors={"podTemplate": template})
    assert driver.creates(driver.executor)[0] == 0, driver.creates(driver.executor)[1]
    priority = f"spec.priorityClassName of an executor of {driver.name} must be 'batch'"
    runtime = f"spec.runtimeClassName of an executor of {driver.name} must be 'sandbox'"
    for change, message in (
        (_in_spec(priorityClassName="urgent"), priority),
        (lambda obj: obj["spec"].pop("priorityClassName"), priority),
        (_in_spec(runtimeClassName="plain"), runtime),
        (lambda obj: obj["spec"].pop("runtimeClassName"), runtime),
        (lambda obj: obj["metadata"]["labels"].pop("hudioperator.io/priority-class"), LABELS),
    ):
        code, out = driver.creates(driver.changed(change))
        assert code != 0
        assert message in out or (message == LABELS and NO_CLASS in out), out


def test_pull_secrets_are_those_of_the_table(light_cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """F645: the kubelet would fetch the image with the Secret of somebody else."""
    driver = launched(light_cluster, namespace, tmp_path, pull_secrets=("registry", "mirror"))
    assert driver.creates(driver.executor)[0] == 0, driver.creates(driver.executor)[1]
    code, out = driver.creates(driver.changed(_in_spec(imagePullSecrets=[{"name": "registry"}, {"name": "of-others"}])))
    assert code != 0
    assert "may be [registry, mirror], not [registry, of-others]" in out


def test_the_clusters_own_priority_class_is_everybodys(bare_cluster: Cluster, tmp_path: Path) -> None:
    """Kubernetes writes it into a pod that names none: an executor with it is accepted."""
    install(bare_cluster)
    bare_cluster.apply(priority_class("usual", 5, default=True), priority_class("urgent", 1000))
    bare_cluster.kubectl("create", "namespace", "lake")
    wait_until(lambda: bare_cluster.run("get", "serviceaccount", "default", "-n", "lake").returncode == 0)
    driver = launched(bare_cluster, "lake", tmp_path)
    manifest = quick_yaml.dump(driver.executor)

    def stored() -> Any:
        asked = ("create", "--dry-run=server", "-o", "jsonpath={.spec.priorityClassName}", "-f", "-")
        return driver.cluster.run(*asked, stdin=manifest).stdout

    wait_until(lambda: stored() == "usual")
    code, out = driver.creates(driver.changed(_in_spec(priorityClassName="urgent")))
    assert code != 0
    assert f"{NO_CLASS}'urgent'" in out


def test_a_pod_without_labels_is_not_overlooked(driver: Driver) -> None:
    """An account of a table's own was free to start any pod that has no label of an executor."""
    code, out = driver.creates(pod("free", driver.namespace, hostPID=True))
    assert code != 0
    assert "of an executor" in out or "makes and deletes its own executors only" in out


def test_a_driver_without_executors_has_none(light_cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """Its pod mounts no token; somebody who reads the account's token elsewhere gains nothing."""
    alone = launched(light_cluster, namespace, tmp_path, instances=0)
    code, out = alone.creates(alone.executor)
    assert code != 0
    assert f"the image of an executor of {alone.name} must be ''" in out


def test_a_token_that_is_no_pods_starts_nothing(driver: Driver, light_cluster: Cluster, tmp_path: Path) -> None:
    account = light_cluster.get("pod", driver.name, "-n", driver.namespace)["spec"]["serviceAccountName"]
    token = light_cluster.kubectl("create", "token", account, "-n", driver.namespace).strip()
    loose = light_cluster.with_token(token, tmp_path / "loose.kubeconfig")
    out = loose.run("create", "--dry-run=server", "-f", "-", stdin=quick_yaml.dump(driver.executor))
    assert out.returncode != 0
    # Of several policies that refuse a request the API server names any one.
    refusals = ("the pod '' makes and deletes its own executors only", "belongs to a driver or an agent only if")
    assert any(each in out.stdout for each in refusals), out.stdout


def test_a_driver_ends_its_own_executors_only(light_cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    one = launched(light_cluster, namespace, tmp_path, name="one")
    two = launched(light_cluster, namespace, tmp_path, name="two")
    for driver in (one, two):
        driver.cluster.kubectl("create", "-f", "-", stdin=quick_yaml.dump(driver.executor))
    light_cluster.apply(pod("bystander", namespace))
    victims = (f"{two.name}-exec-1", two.name, one.name, "bystander")
    for victim in victims:
        refused = one.cluster.run("delete", "pod", victim, "-n", namespace, "--wait=false")
        assert refused.returncode != 0
        assert f"the pod '{one.name}' makes and deletes its own executors only" in refused.stdout
    assert one.cluster.run("delete", "pods", "--all", "-n", namespace, "--wait=false").returncode != 0
    left = {p["metadata"]["name"]: p for p in light_cluster.get("pods", "-n", namespace)["items"]}
    assert not any("deletionTimestamp" in left[victim]["metadata"] for victim in victims)
    one.cluster.kubectl("delete", "pods", "-l", f"hudioperator.io/driver={one.name},spark-role=executor", "-n", namespace, "--wait=false")  # fmt: skip # noqa: E501
    assert "deletionTimestamp" in light_cluster.get("pod", f"{one.name}-exec-1", "-n", namespace)["metadata"]


def test_what_executors_are_compared_with_is_the_operators(driver: Driver, light_cluster: Cluster) -> None:
    """A tenant with rights on ConfigMaps cannot widen, remove or forge it."""
    where = ("-n", driver.namespace, "--as=tenant", "--dry-run=server")
    light_cluster.kubectl("create", "role", "files", "--verb=*", "--resource=configmaps", "-n", driver.namespace)
    light_cluster.kubectl("create", "rolebinding", "files", "--role=files", "--user=tenant", "-n", driver.namespace)
    light_cluster.kubectl("create", "configmap", "mine", *where)
    for attempt in (
        ("delete", "configmap", driver.name),
        ("label", "configmap", driver.name, "app.kubernetes.io/managed-by-"),
        ("annotate", "configmap", driver.name, "a=b"),
        ("patch", "configmap", driver.name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}'),
    ):
        done = light_cluster.run(*attempt, *where)
        assert done.returncode != 0
        assert "are made, changed and deleted by the operator; tenant needs the verb change" in done.stdout
    forged = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "forged",
            "namespace": driver.namespace,
            "labels": {"app.kubernetes.io/managed-by": "hudi-operator", "app.kubernetes.io/component": "driver"},
        },
    }
    done = light_cluster.run("create", "-f", "-", *where, stdin=quick_yaml.dump(forged))
    assert "are made, changed and deleted by the operator" in done.stdout


def test_it_outlives_its_writer(light_cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """F200: a writer that was deleted dependents first took the ConfigMap from its driver.

    A driver that ignores SIGTERM then started any pod until its grace period was over.
    """
    light_cluster.apply(table(namespace), writer(namespace, "cascade"))
    owner = light_cluster.get("hudiwriter", "cascade", "-n", namespace)
    driver = launched(light_cluster, namespace, tmp_path, name="cascade", owner=owner)
    light_cluster.kubectl("delete", "hudiwriter", "cascade", "-n", namespace, "--cascade=foreground", "--wait=false")

    def deleted(kind: str) -> bool:
        return "deletionTimestamp" in light_cluster.get(kind, driver.name, "-n", namespace)["metadata"]

    wait_until(lambda: deleted("configmap") and deleted("pod"))
    code, out = driver.creates(driver.changed(_container(image="evil:1")))
    assert code != 0
    assert "must be 'localhost/hudi-operator/spark:dev'" in out
    release = ("patch", "configmap", driver.name, "-n", namespace, "--type=json", "-p")
    release = (*release, '[{"op":"add","path":"/metadata/finalizers","value":[]}]')
    refused = light_cluster.run(*release, "--as=somebody")
    assert refused.returncode != 0
    light_cluster.kubectl(*release, f"--as={OPERATOR}")
    wait_until(lambda: light_cluster.run("get", "configmap", driver.name, "-n", namespace).returncode != 0)


def test_containers_of_an_injector(bare_cluster: Cluster, tmp_path: Path) -> None:
    """A cluster-wide list names them with image and capabilities."""
    mesh = "admission.injectors[0]"
    install(
        bare_cluster,
        f"--set={mesh}.name=mesh-init,{mesh}.image=mesh.example/init:*,{mesh}.capabilities={{NET_ADMIN}}",
        f"--set={mesh}.volumes={{mesh-token}}",
    )
    bare_cluster.kubectl("create", "namespace", "lake")
    wait_until(lambda: bare_cluster.run("get", "serviceaccount", "default", "-n", "lake").returncode == 0)
    driver = launched(bare_cluster, "lake", tmp_path)
    mesh_init = {
        "name": "mesh-init",
        "image": "mesh.example/init:7",
        "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}},
    }
    token = {"name": "mesh-token", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "audience": "m"}}]}}

    def injected(container: JsonDict, volume: JsonDict = token) -> Callable[[JsonDict], None]:
        def change(obj: JsonDict) -> None:
            obj["spec"]["initContainers"] = [container]
            obj["spec"]["volumes"].append(volume)

        return change

    assert driver.creates(driver.changed(injected(mesh_init)))[0] == 0
    container = ("neither its own nor those of an injector", CONTAINERS)
    for other, messages in (
        ({**mesh_init, "image": "evil:1"}, container),
        ({**mesh_init, "name": "mine"}, container),
        ({**mesh_init, "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}, ("capabilities of a container",)),
        ({**mesh_init, "securityContext": {"privileged": True}}, ("securityContext.privileged",)),
    ):
        code, out = driver.creates(driver.changed(injected(other)))
        assert code != 0
        assert any(message in out for message in messages), out
    stolen = {"name": "mesh-token", "projected": {"sources": [{"secret": {"name": "of-others"}}]}}
    assert "may use the Secrets" in driver.creates(driver.changed(injected(mesh_init, stolen)))[1]


def test_the_token_of_a_clouds_identity(bare_cluster: Cluster, tmp_path: Path) -> None:
    """What the webhook of EKS for IRSA adds to a pod; the webhook is played."""
    install(
        bare_cluster,
        "--set=admission.identities[0].volume=aws-iam-token,admission.identities[0].audience=sts.amazonaws.com",
    )
    bare_cluster.kubectl("create", "namespace", "lake")
    wait_until(lambda: bare_cluster.run("get", "serviceaccount", "default", "-n", "lake").returncode == 0)
    driver = launched(bare_cluster, "lake", tmp_path, account="lake")
    place = "/var/run/secrets/eks.amazonaws.com/serviceaccount"
    variables = {
        "AWS_STS_REGIONAL_ENDPOINTS": "regional",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_REGION": "eu-central-1",
        "AWS_ROLE_ARN": "arn:aws:iam::111122223333:role/flights-lake",
        "AWS_WEB_IDENTITY_TOKEN_FILE": f"{place}/token",
    }

    def add(obj: JsonDict, *sources: JsonDict, name: str = "aws-iam-token") -> None:
        (container,) = obj["spec"]["containers"]
        container["env"] = [*container["env"], *({"name": key, "value": value} for key, value in variables.items())]
        container["volumeMounts"] = [*container["volumeMounts"], {"name": name, "mountPath": place, "readOnly": True}]
        obj["spec"]["volumes"].append({"name": name, "projected": {"sources": list(sources)}})

    def mutated(*sources: JsonDict, name: str = "aws-iam-token") -> JsonDict:
        return driver.changed(lambda obj: add(obj, *sources, name=name))

    token = {"serviceAccountToken": {"audience": "sts.amazonaws.com", "expirationSeconds": 86400, "path": "token"}}
    code, out = driver.creates(mutated(token))
    assert code == 0, out
    volume = "or an identity of admission.identities"
    own: TableSpec = spec_of(TableSpec, table("lake", storage={"serviceAccountName": "lake"}))
    load: WriterSpec = spec_of(WriterSpec, writer("lake", "identity"))
    for made in (pods.driver_pod(own, load, 1, CONFIG), pods.agent_pod(own, own.agent_name("other"), 1, CONFIG)):
        made["metadata"].pop("ownerReferences", None)
        for name, accepted in (("aws-iam-token", True), ("another", False)):
            obj = copy.deepcopy(made)
            add(obj, token, name=name)
            command = ("create", "--dry-run=server", f"--as={OPERATOR}", "-f", "-")
            done = bare_cluster.run(*command, stdin=quick_yaml.dump(obj))
            assert (done.returncode == 0) is accepted, done.stdout
            assert accepted or volume in done.stdout, done.stdout
    for refused, messages in (
        (mutated({"serviceAccountToken": {"path": "token"}}), [volume]),  # for the API server
        (mutated({"serviceAccountToken": {"audience": "hudi-operator-etcd", "path": "token"}}), [volume]),
        # Of several policies that refuse a request the API server names any one.
        (mutated(token, {"secret": {"name": "of-others"}}), [volume, "may use the Secrets"]),
        (mutated(token, name="another"), [volume]),
    ):
        code, out = driver.creates(refused)
        assert code != 0
        assert any(message in out for message in messages), out
