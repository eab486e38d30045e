"""podTemplate before a real API server: what it keeps, what it refuses, and who may name what."""

from __future__ import annotations

import copy
import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support import quick_yaml
from tests.support.pod_templates import GOOD, changed
from tests.tiers.component.crds.cluster import Cluster, JsonDict, grant, table, writer
from tests.tiers.component.crds.drivers import CLAIM, CONFINED, as_pod, launched

PLACES = ("driver", "executors", "agent", "agent.executors")


def spec_of(place: str, template: JsonDict) -> JsonDict:
    """The fields of a spec with a template at a place."""
    way = place.split(".")
    made: JsonDict = {"podTemplate": template}
    for name in reversed(way):
        made = {name: made}
    return made


def obj(namespace: str, place: str, template: JsonDict) -> JsonDict:
    made = table if place.startswith("agent") else writer
    return made(namespace, **spec_of(place, template))


def stored(cluster: Cluster, namespace: str, place: str, made: JsonDict) -> Any:
    kind = "huditable" if place.startswith("agent") else "hudiwriter"
    found: Any = cluster.get(kind, made["metadata"]["name"], "-n", namespace)["spec"]
    for name in place.split("."):
        found = found[name]
    return found["podTemplate"]


ODD: JsonDict = {
    "metadata": {"labels": {"a": ""}, "annotations": {"b": "1"}},
    "spec": {
        "affinity": {"podAffinity": {"later": [{"deep": {"x": [1, 2.5, True, "", {}]}}]}},
        "tolerations": [{}],
        "dnsConfig": {},
        "securityContext": {"supplementalGroups": [], "later": {"a": "b"}},
        "volumes": [
            {"name": "a", "emptyDir": {}},
            {"name": "b", "ephemeral": {"volumeClaimTemplate": {"spec": {**CLAIM, "later": 1}}}},
            {
                "name": "c",
                "projected": {"sources": [{"secret": {"name": "x", "items": []}, "later": {"deep": 1}}], "z": 0},
            },
        ],
        "containers": [
            {
                "name": "beside",
                "image": "x:1",
                "later": {"a": [1]},
                "livenessProbe": {"exec": {"command": ["a"]}},
                "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
                "env": [{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
                "ports": [{"containerPort": 1, "later": "x"}],
                "volumeMounts": [{"name": "a", "mountPath": "/a", "readOnly": False, "later": {}}],
                "envFrom": [{"configMapRef": {"name": "x", "optional": True}, "later": 1}],
                "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "later": {}},
                "securityContext": {"readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"], "later": []}},
            }
        ],
        "initContainers": [{"name": "first", "image": "x:1", "restartPolicy": "Always", "later": [{"a": {}}]}],
        "laterField": {"some": [{"thing": 1}]},
    },
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("template", [GOOD, ODD], ids=["good", "odd"])
def test_a_template_is_kept_as_it_is(light_cluster: Cluster, namespace: str, place: str, template: JsonDict) -> None:
    """Nothing is pruned, nothing is filled in: also what this schema does not know."""
    if template is GOOD:
        container = {"driver": "driver", "agent": "agent"}.get(place, "executor")
        template = changed("spec.containers.0.name", container)
    made = obj(namespace, place, template)
    light_cluster.kubectl("create", "--validate=strict", "-f", "-", stdin=quick_yaml.dump(made))
    assert stored(light_cluster, namespace, place, made) == template
    # As a GitOps tool does it, and once more as it is stored.
    light_cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=quick_yaml.dump(made))
    assert stored(light_cluster, namespace, place, made) == template


REFUSED: dict[str, tuple[str, Any, str]] = {
    "finalizers": ("metadata.finalizers", ["x/y"], "the operator sets finalizers and ownerReferences"),
    "owners": ("metadata.ownerReferences", [{}], "the operator sets finalizers and ownerReferences"),
    "our-label": ("metadata.labels", {"hudioperator.io/role": "agent"}, "podTemplate.metadata.labels: those of"),
    "sparks-label": ("metadata.labels", {"spark-role": "x"}, "podTemplate.metadata.labels: those of"),
    "managed-by": ("metadata.labels", {"app.kubernetes.io/managed-by": "x"}, "podTemplate.metadata.labels: those of"),
    "our-annotation": ("metadata.annotations", {"hudioperator.io/x": "x"}, "podTemplate.metadata.annotations: those"),
    "apparmor": (
        "metadata.annotations",
        {"container.apparmor.security.beta.kubernetes.io/x": "unconfined"},
        "podTemplate.metadata.annotations: those of",
    ),
    "restarts": ("spec.restartPolicy", "Always", "podTemplate.spec: [restartPolicy]: not for a podTemplate"),
    "network": ("spec.hostNetwork", False, "podTemplate.spec: [hostNetwork]: not for a podTemplate"),
    "processes": ("spec.hostPID", True, "podTemplate.spec: [hostPID]: not for a podTemplate"),
    "account": ("spec.serviceAccountName", "admin", "podTemplate.spec: [serviceAccountName]: not for a podTemplate"),
    "token": ("spec.automountServiceAccountToken", True, "[automountServiceAccountToken]: not for a podTemplate"),
    "node": ("spec.nodeName", "node-1", "podTemplate.spec: [nodeName]: not for a podTemplate"),
    "names": ("spec.hostAliases", [{}], "podTemplate.spec: [hostAliases]: not for a podTemplate"),
    "deadline": ("spec.activeDeadlineSeconds", 5, "podTemplate.spec: [activeDeadlineSeconds]: not for a podTemplate"),
    "system": ("spec.priorityClassName", "system-node-critical", "names that begin with system-"),
    "root": ("spec.securityContext", {"runAsUser": 0}, "securityContext: root is refused"),
    "sysctls": ("spec.securityContext", {"sysctls": [{}]}, "seLinuxOptions, windowsOptions, sysctls and an Unconfined"),
    "seccomp": (
        "spec.securityContext",
        {"seccompProfile": {"type": "Unconfined"}},
        "seLinuxOptions, windowsOptions, sysctls and an Unconfined",
    ),
    "files-of-the-node": ("spec.volumes.", {"name": "h", "hostPath": {"path": "/"}}, "volume h: must be one of"),
    "our-volume": ("spec.volumes.", {"name": "etcd", "emptyDir": {}}, "volume etcd: the operator has a volume"),
    "our-secret": ("spec.volumes.", {"name": "secret-12", "emptyDir": {}}, "volume secret-12: the operator has a"),
    "token-of-an-account": (
        "spec.volumes.",
        {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        "volume t: tokens and certificates of ServiceAccounts are refused",
    ),
    "our-image": ("spec.containers.0.image", "evil:1", "can be set, not [image]"),
    "our-command": ("spec.containers.0.command", ["sh"], "can be set, not [command]"),
    "our-rights": ("spec.containers.0.securityContext", {}, "can be set, not [securityContext]"),
    "our-variables": ("spec.containers.0.env", [], "can be set, not [env]"),
    "no-prefix": (
        "spec.containers.0.envFrom",
        [{"secretRef": {"name": "a"}}],
        "envFrom of the operator's container needs a prefix",
    ),
    "jars": (
        "spec.containers.0.volumeMounts.",
        {"name": "ca", "mountPath": "/opt/spark/jars"},
        "mountPath in the operator's container",
    ),
    "no-image": ("spec.containers.", {"name": "a"}, "container a needs an image"),
    "privileged": ("spec.containers.1.securityContext", {"privileged": True}, "securityContext: root, privileged"),
    "capabilities": (
        "spec.initContainers.0.securityContext",
        {"capabilities": {"add": ["NET_ADMIN"]}},
        "securityContext: root, privileged",
    ),
    "host-port": ("spec.containers.1.ports", [{"containerPort": 1, "hostPort": 1}], "hostPort are refused"),
    "devices": ("spec.initContainers.1.volumeDevices", [{}], "hostPort are refused"),
    "restart": ("spec.initContainers.0.restartPolicy", "OnFailure", "restartPolicy is Always (a sidecar) or unset"),
    "restart-of-a-container": (
        "spec.containers.1.restartPolicy",
        "Always",
        "restartPolicy can be set only in init containers",
    ),
    "ours-first": (
        "spec.initContainers.",
        {"name": "driver", "image": "x:1"},
        "a name that is reserved for the operator",
    ),
}


def bare(message: str) -> str:
    """Without the marks of lists and texts in it."""
    return re.sub(r'[\[\]"\\]', "", message)


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_the_operators_is_refused_at_apply(light_cluster: Cluster, namespace: str, case: str) -> None:
    path, value, message = REFUSED[case]
    assert bare(message) in bare(light_cluster.refused(obj(namespace, "driver", changed(path, value))))


@pytest.mark.parametrize("place", PLACES[1:])
def test_rules_hold_at_each_place(light_cluster: Cluster, namespace: str, place: str) -> None:
    message = light_cluster.refused(obj(namespace, place, {"spec": {"hostNetwork": True}}))
    assert "podTemplate.spec: hostNetwork: not for a podTemplate" in bare(message)


@pytest.mark.parametrize("field", ["metadata", "spec"])
def test_the_largest_template_is_judged(light_cluster: Cluster, namespace: str, field: str) -> None:
    """The cost of the rules was estimated for it."""
    mounts = [{"name": f"v{n}", "mountPath": f"/data/{n}"} for n in range(16)]
    variables = [{"prefix": "APP_", "configMapRef": {"name": f"c{n}"}} for n in range(8)]
    beside = [{"name": f"c{n}", "image": "x:1", "volumeMounts": mounts, "envFrom": variables} for n in range(3)]
    spec = {
        "volumes": [{"name": f"v{n}", "configMap": {"name": f"c{n}"}} for n in range(16)],
        "containers": [{"name": "driver", "volumeMounts": mounts, "envFrom": variables}, *beside],
        "initContainers": [{**each, "name": f"first-{each['name']}"} for each in beside],
    }
    words = {f"a.b/{n:02}{'x' * 40}": "y" * 60 for n in range(32)}
    template = {"metadata": {"labels": words, "annotations": words}} if field == "metadata" else {"spec": spec}
    light_cluster.apply(obj(namespace, "driver", template))


NAMED = {
    "a volume's Secret": ({"volumes": [{"name": "v", "secret": {"secretName": "named"}}]}, "secrets"),
    "a Secret in a folder": (
        {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "named"}}]}}]},
        "secrets",
    ),
    "our variables": (
        {"containers": [{"name": "driver", "envFrom": [{"prefix": "APP_", "secretRef": {"name": "named"}}]}]},
        "secrets",
    ),
    "a sidecar's variable": (
        {
            "initContainers": [
                {
                    "name": "a",
                    "image": "x:1",
                    "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "named", "key": "k"}}}],
                }
            ]
        },
        "secrets",
    ),
    "a ConfigMap": ({"volumes": [{"name": "v", "configMap": {"name": "named"}}]}, "configmaps"),
    "a container's ConfigMap": (
        {"containers": [{"name": "a", "image": "x:1", "envFrom": [{"configMapRef": {"name": "named"}}]}]},
        "configmaps",
    ),
    "a claim": (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "named"}}]},
        "persistentvolumeclaims",
    ),
}


@pytest.mark.parametrize("case", NAMED)
@pytest.mark.parametrize("place", ["driver", "agent.executors"])
def test_what_a_template_names_needs_the_verb_use(light_cluster: Cluster, author: str, case: str, place: str) -> None:
    spec, resource = NAMED[case]
    grant(light_cluster, author, "use", "huditables")
    template = copy.deepcopy({"spec": spec})
    for container in template["spec"].get("containers", ()):
        container["name"] = "executor" if place != "driver" and container["name"] == "driver" else container["name"]
    made = obj(author, place, template)
    message = light_cluster.refused(made, user="ann")
    assert f"user 'ann' needs the verb use on {resource} 'named' in namespace {author}" in message
    grant(light_cluster, author, "use", resource, "named")
    light_cluster.apply(made, user="ann")


def test_images_of_containers_must_be_allowed(light_cluster: Cluster, namespace: str) -> None:
    for place in PLACES:
        for field in ("containers", "initContainers"):
            template = {"spec": {field: [{"name": "more", "image": "evil:1"}]}}
            message = light_cluster.refused(obj(namespace, place, template))
            assert "podTemplate: images 'evil:1' are not all among those that this cluster allows" in message


@pytest.mark.parametrize(
    "asks",
    [
        {"livenessProbe": {"httpGet": {"host": "169.254.169.254", "port": 80}}},
        {"readinessProbe": {"tcpSocket": {"host": "127.0.0.1", "port": 80}}},
        {"startupProbe": {"httpGet": {"host": "10.0.0.1", "port": 80}}},
        {"lifecycle": {"postStart": {"httpGet": {"host": "a.example", "port": 80}}}},
        {"lifecycle": {"preStop": {"tcpSocket": {"host": "127.0.0.1", "port": 80}}}},
    ],
    ids=lambda asks: next(iter(asks.get("lifecycle", asks))),
)
def test_the_kubelet_asks_no_other_host(light_cluster: Cluster, namespace: str, asks: JsonDict) -> None:
    image = "localhost/hudi-operator/spark:dev"
    for place, field in itertools.product(PLACES, ("containers", "initContainers")):
        more = {} if field == "containers" else {"restartPolicy": "Always"}
        template = {"spec": {field: [{"name": "asks", "image": image, **more, **asks}]}}
        message = light_cluster.refused(obj(namespace, place, template))
        assert "podTemplate: probes and lifecycle handlers may name no host" in message
        assert "containers asks" in message
    own = {"livenessProbe": {"httpGet": {"port": 80}}, "lifecycle": {"preStop": {"exec": {"command": ["true"]}}}}
    light_cluster.apply(obj(namespace, "driver", {"spec": {"containers": [{"name": "asks", "image": image, **own}]}}))


def test_the_operators_own_secrets_are_nobodys(light_cluster: Cluster, namespace: str) -> None:
    template = {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "load-1-spark-key"}}]}}
    message = light_cluster.refused(obj(namespace, "executors", template))
    assert "Secret 'load-1-spark-key': names that begin with hudi-operator- or end with" in message


# ---- executors


def without_classes(template: JsonDict) -> JsonDict:
    """This cluster has none of its own."""
    for field in ("priorityClassName", "runtimeClassName", "preemptionPolicy"):
        template["spec"].pop(field)
    return template


@pytest.fixture
def templated(light_cluster: Cluster, namespace: str, tmp_path: Path) -> Any:
    template = without_classes(changed("spec.containers.0.name", "executor"))
    return launched(light_cluster, namespace, tmp_path, executors={"podTemplate": template})


def test_a_driver_starts_executors_with_the_template(templated: Any) -> None:
    assert templated.creates(templated.executor)[0] == 0, templated.creates(templated.executor)[1]


def _more(field: str, value: JsonDict) -> Any:
    return lambda made: made["spec"].setdefault(field, []).append(value)


OTHER = {
    "claim": (
        _more("volumes", {"name": "more", "persistentVolumeClaim": {"claimName": "of-others"}}),
        "may use the claims of volumes [data] only",
    ),
    "config-map": (_more("volumes", {"name": "more", "configMap": {"name": "of-others"}}), "and those of its podTempl"),
    "secret": (_more("volumes", {"name": "more", "secret": {"secretName": "of-others"}}), "not of-others"),
    "container": (
        _more("containers", {"name": "more", "image": "registry/shipper:1", **CONFINED}),
        "may have the containers [shipper=registry/shipper:1, proxy=registry/proxy:1, fetch=registry/fetch:1]",
    ),
    "image-of-a-sidecar": (
        lambda made: made["spec"]["initContainers"][0].update(image="registry/other:1"),
        "beside its own, not proxy",
    ),
    "rights-of-a-sidecar": (
        lambda made: made["spec"]["initContainers"][0]["securityContext"].update(allowPrivilegeEscalation=True),
        "must run as the operator sets it",
    ),
    "root-in-a-container": (
        lambda made: made["spec"]["containers"][1]["securityContext"].update(runAsUser=0),
        "must run as the operator sets it",
    ),
    "host-network": (lambda made: made["spec"].update(hostNetwork=True), "hostNetwork, hostPID and hostIPC"),
}


@pytest.mark.parametrize("case", OTHER)
def test_a_driver_with_a_template_starts_nothing_else(templated: Any, case: str) -> None:
    change, message = OTHER[case]
    code, out = templated.creates(templated.changed(change))
    assert code != 0, out
    # Of several policies that refuse a request the API server names any one.
    assert message in out or (case == "root-in-a-container" and "not [shipper/runAsUser=0]" in out), out


def test_profiles_and_groups_are_those_of_the_template(light_cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """F645: a stricter profile of the node is a wall, too; Kueue keeps the pods of its queues."""
    local = {"type": "Localhost", "localhostProfile": "strict.json"}
    template = without_classes(changed("spec.containers.0.name", "executor"))
    template["spec"]["securityContext"] |= {"seccompProfile": local, "appArmorProfile": {"type": "RuntimeDefault"}}
    template["spec"]["containers"][1]["securityContext"] = {"seccompProfile": {"type": "RuntimeDefault"}}
    made = launched(light_cluster, namespace, tmp_path, executors={"podTemplate": template})
    kueue = made.changed(lambda obj: obj["metadata"]["finalizers"].append("kueue.x-k8s.io/managed"))
    for good in (made.executor, kueue):
        assert made.creates(good)[0] == 0, made.creates(good)[1]
    for field, value, message in (
        ("seccompProfile", {"type": "RuntimeDefault"}, "must have the profiles ["),
        ("seccompProfile", {**local, "localhostProfile": "loose.json"}, "must have the profiles ["),
        ("appArmorProfile", None, "must have the profiles ["),
        ("fsGroup", 6, "not [fsGroup=6]"),
        ("supplementalGroups", [6, 7], "not [supplementalGroups=7]"),
    ):
        pod = copy.deepcopy(made.executor)
        pod["spec"]["securityContext"][field] = value
        code, out = made.creates(pod)
        assert code != 0, field
        assert message in out, out


def test_the_operator_makes_the_driver(light_cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """With its own token: its policy lets containers of allowed images pass, and no others."""
    made = launched(light_cluster, namespace, tmp_path, driver={"podTemplate": without_classes(copy.deepcopy(GOOD))})
    found = light_cluster.get("pod", made.name, "-n", namespace)
    assert [each["name"] for each in found["spec"]["initContainers"]] == ["proxy", "fetch"]
    assert as_pod(light_cluster, found, tmp_path) is not None
