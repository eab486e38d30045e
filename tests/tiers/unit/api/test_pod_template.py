"""What a podTemplate may say: the CRD refuses what is known to be ours, launch everything else."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.api import pod_template, references
from hudi_operator.api.spec import SpecError, TableSpec, WriterSpec
from hudi_operator.manifests import pod_template as merged
from tests.support import crds
from tests.support.pod_templates import CLAIM, GOOD, changed

JsonDict = dict[str, Any]


def writer(template: JsonDict, of: str = "driver") -> WriterSpec:
    source = {"files": {"format": "csv", "paths": ["s3a://in/"]}}
    spec = {"tableRef": {"name": "flights"}, "source": source, of: {"podTemplate": template}}
    return WriterSpec.from_object({"metadata": {"namespace": "lake", "name": "load", "uid": "u"}, "spec": spec})


def test_a_template_is_kept_as_it_is() -> None:
    assert writer(GOOD).driver.pod_template == GOOD
    assert writer({}).driver.pod_template == {}
    assert pod_template.problem({}, "driver") == ""


REFUSED: dict[str, tuple[str, Any, str]] = {
    "a field of its own": ("status", {}, "status: not for a podTemplate"),
    "finalizers": ("metadata.finalizers", [], "metadata.finalizers: not for a podTemplate"),
    "a name": ("metadata.name", "x", "metadata.name: not for a podTemplate"),
    "our label": ("metadata.labels.hudioperator", None, "metadata.labels: hudioperator is set by the operator"),
    "Spark's label": ("metadata.labels.spark-role", "executor", "metadata.labels: spark-role is set"),
    "an unconfined AppArmor": (
        "metadata.annotations",
        {"container.apparmor.security.beta.kubernetes.io/driver": "unconfined"},
        "metadata.annotations: container.apparmor",
    ),
    "the node's network": ("spec.hostNetwork", True, "spec.hostNetwork: not for a podTemplate"),
    "restarts": ("spec.restartPolicy", "Always", "spec.restartPolicy: not for a podTemplate"),
    "an account": ("spec.serviceAccountName", "admin", "spec.serviceAccountName: not for a podTemplate"),
    "a node": ("spec.nodeName", "n", "spec.nodeName: not for a podTemplate"),
    "a field of a later Kubernetes": ("spec.hostEverything", True, "spec.hostEverything: not for a podTemplate"),
    "a class of the system": ("spec.priorityClassName", "system-node-critical", "spec.priorityClassName: system-node"),
    "no list": ("spec.tolerations", {}, "spec.tolerations: expected a list of objects"),
    "no text": ("spec.schedulerName", 3, "spec.schedulerName: expected a text"),
    "no object": ("spec.affinity", [], "spec.affinity: expected an object"),
    "root": ("spec.securityContext.runAsUser", 0, "spec.securityContext: runs as root"),
    "perhaps root": ("spec.securityContext.runAsNonRoot", False, "spec.securityContext: runs as root"),
    "sysctls": ("spec.securityContext.sysctls", [], "spec.securityContext.sysctls: not for a podTemplate"),
    "no seccomp": (
        "spec.securityContext.seccompProfile",
        {"type": "Unconfined"},
        "spec.securityContext.seccompProfile: must be RuntimeDefault or Localhost",
    ),
    "the node's files": ("spec.volumes.", {"name": "h", "hostPath": {"path": "/"}}, "spec.volumes[h]: needs one of"),
    "a driver of volumes": ("spec.volumes.", {"name": "h", "csi": {}}, "spec.volumes[h]: needs one of"),
    "two sources": ("spec.volumes.", {"name": "h", "emptyDir": {}, "secret": {}}, "spec.volumes[h]: needs one of"),
    "a text for a source": (
        "spec.volumes.",
        {"name": "h", "configMap": "x"},
        "spec.volumes[h].configMap: expected an obj",
    ),
    "a text for a projected source": (
        "spec.volumes.",
        {"name": "h", "projected": {"sources": [{"configMap": "settings"}]}},
        "spec.volumes[h].projected.configMap: expected an object, found 'settings'",
    ),
    "no limits": (
        "spec.containers.0.resources",
        {"limits": None},
        "spec.containers[driver].resources.limits: expected an object, found None",
    ),
    "a text for requests": (
        "spec.containers.0.resources",
        {"requests": "1"},
        "spec.containers[driver].resources.requests: expected an object, found '1'",
    ),
    "our volume": ("spec.volumes.", {"name": "etcd", "emptyDir": {}}, "spec.volumes[etcd]: a volume of the operator"),
    "our Secret": ("spec.volumes.", {"name": "secret-0", "emptyDir": {}}, "spec.volumes[secret-0]: a volume of the"),
    "a volume twice": ("spec.volumes.", {"name": "ca", "emptyDir": {}}, "spec.volumes: 'ca' is not a valid name"),
    "a token": (
        "spec.volumes.",
        {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        "spec.volumes[t].projected: only configMap, downwardAPI, secret",
    ),
    "a copy of a volume": (
        "spec.volumes.",
        {
            "name": "c",
            "ephemeral": {"volumeClaimTemplate": {"spec": {**CLAIM, "dataSource": {"kind": "PersistentVolumeClaim"}}}},
        },
        "spec.volumes[c].ephemeral: dataSource would copy",
    ),
    "a volume by its name": (
        "spec.volumes.",
        {"name": "c", "ephemeral": {"volumeClaimTemplate": {"spec": {**CLAIM, "volumeName": "of-others"}}}},
        "spec.volumes[c].ephemeral: volumeName would bind",
    ),
    "a volume by its labels": (
        "spec.volumes.",
        {"name": "c", "ephemeral": {"volumeClaimTemplate": {"spec": {**CLAIM, "selector": {}}}}},
        "spec.volumes[c].ephemeral: selector would bind",
    ),
    "a volume without a claim": (
        "spec.volumes.",
        {"name": "c", "ephemeral": {"volumeClaimTemplate": {"spec": None}}},
        "spec.volumes[c].ephemeral: needs volumeClaimTemplate.spec",
    ),
    "two names in one": (
        "spec.volumes.",
        {"name": "s", "secret": {"secretName": "mine,of-others", "optional": True}},
        "spec.volumes[s]: 'mine,of-others' is not the name of a Secret",
    ),
    "our image": ("spec.containers.0.image", "evil:1", "spec.containers[driver].image: not for a podTemplate"),
    "our command": ("spec.containers.0.command", ["sh"], "spec.containers[driver].command: not for a podTemplate"),
    "our arguments": ("spec.containers.0.args", ["sh"], "spec.containers[driver].args: not for a podTemplate"),
    "our variables": ("spec.containers.0.env", [], "spec.containers[driver].env: not for a podTemplate"),
    "our rights": ("spec.containers.0.securityContext", {}, "spec.containers[driver].securityContext: not for a pod"),
    "our hooks": ("spec.containers.0.lifecycle", {}, "spec.containers[driver].lifecycle: not for a podTemplate"),
    "our memory": (
        "spec.containers.0.resources.limits.memory",
        "1Gi",
        "spec.containers[driver].resources.limits: memory is set by",
    ),
    "no prefix": (
        "spec.containers.0.envFrom",
        [{"secretRef": {"name": "a"}}],
        "spec.containers[driver].envFrom: needs a prefix of letters",
    ),
    "a prefix of ours": (
        "spec.containers.0.envFrom",
        [{"prefix": "SPARK_", "secretRef": {"name": "a"}}],
        "spec.containers[driver].envFrom: prefix 'SPARK_': variables that begin with SPARK_ are the operator's",
    ),
    "a folder of the image": (
        "spec.containers.0.volumeMounts.",
        {"name": "ca", "mountPath": "/opt/spark/jars"},
        "spec.containers[driver].volumeMounts: '/opt/spark/jars' is none of the folders",
    ),
    "a folder by way of another": (
        "spec.containers.0.volumeMounts.",
        {"name": "ca", "mountPath": "/data/../etc/hudi"},
        "'/data/../etc/hudi' is none of the folders",
    ),
    "the root": ("spec.containers.0.volumeMounts.", {"name": "ca", "mountPath": "/"}, "'/' is none of the folders"),
    "a variable in a path": (
        "spec.containers.0.volumeMounts.",
        {"name": "ca", "mountPath": "/a", "subPathExpr": "$(KEY)"},
        "volumeMounts.subPathExpr: not for a podTemplate",
    ),
    "our token": (
        "spec.containers.1.volumeMounts.",
        {"name": "etcd", "mountPath": "/a"},
        "spec.containers[shipper].volumeMounts: {'name': 'etcd', 'mountPath': '/a'} names no volume of the podTemplate",
    ),
    "another one of ours": (
        "spec.containers.",
        {"name": "executor", "image": "x:1"},
        "spec.containers[executor]: the operator's own container is driver",
    ),
    "ours as an init container": (
        "spec.initContainers.",
        {"name": "driver", "image": "x:1"},
        "spec.initContainers[driver]: the operator's own container is driver",
    ),
    "no image": ("spec.containers.", {"name": "a"}, "spec.containers[a].image: '' is not an image reference"),
    "two images": (
        "spec.containers.",
        {"name": "a", "image": "x:1,driver=evil:1"},
        "spec.containers[a].image: 'x:1,driver=evil:1' is not an image reference",
    ),
    "privileged": (
        "spec.containers.1.securityContext",
        {"privileged": True},
        "spec.containers[shipper].securityContext.privileged: not for a podTemplate",
    ),
    "more rights": (
        "spec.initContainers.0.securityContext",
        {"capabilities": {"add": ["NET_ADMIN"]}},
        "spec.initContainers[proxy].securityContext: allowPrivilegeEscalation is false",
    ),
    "a port of the node": (
        "spec.initContainers.0.ports",
        [{"containerPort": 1, "hostPort": 1}],
        "spec.initContainers[proxy].ports: hostPort",
    ),
    "a probe of another host": (
        "spec.containers.1.readinessProbe",
        {"httpGet": {"host": "169.254.169.254", "port": 80}},
        "spec.containers[shipper].readinessProbe.httpGet.host: '169.254.169.254'",
    ),
    "a handler of another host": (
        "spec.initContainers.0.lifecycle",
        {"preStop": {"tcpSocket": {"host": "127.0.0.1", "port": 80}}},
        "spec.initContainers[proxy].lifecycle.preStop.tcpSocket.host: '127.0.0.1'",
    ),
    "a device": ("spec.containers.1.volumeDevices", [], "spec.containers[shipper].volumeDevices: not for a podTempl"),
    "a restart": ("spec.initContainers.0.restartPolicy", "OnFailure", "initContainers[proxy].restartPolicy: Always"),
    "a restart of a container": (
        "spec.containers.1.restartPolicy",
        "Always",
        "spec.containers[shipper].restartPolicy: not for a podTemplate",
    ),
    "no objects": ("spec.volumes", ["a"], "spec.volumes: expected a list of objects"),
    "many": (
        "spec.initContainers",
        [{"name": f"c{n}", "image": "x:1"} for n in range(5)],
        "spec.initContainers: has 5 items, must have at most 4",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_the_users_is_refused_at_launch(case: str) -> None:
    path, value, message = REFUSED[case]
    with pytest.raises(SpecError) as refused:
        writer(changed(path, value))
    assert str(refused.value).startswith("spec.driver.podTemplate.")
    assert message in str(refused.value)


@pytest.mark.parametrize("value", [None, [], "x", 3, {"a": 1}, [1], [[]], [None], {"name": []}])
def test_nothing_that_is_stored_is_a_defect(value: Any) -> None:
    """The answer is a message, or a pod."""
    for path in (
        "metadata", "spec", "metadata.labels", "spec.volumes", "spec.containers", "spec.initContainers",
        "spec.securityContext", "spec.containers.0.envFrom", "spec.containers.0.volumeMounts", "spec.volumes.",
        "spec.containers.0.resources", "spec.containers.1.env", "spec.containers.1.ports", "spec.containers.",
        "spec.containers.1.securityContext", "spec.containers.1.image", "spec.nodeSelector", "spec.volumes.0.ephemeral",
        "spec.volumes.3.projected.sources", "spec.volumes.2.secret.secretName", "spec.containers.0.resources.limits",
        "spec.containers.0.volumeMounts.0.name", "spec.containers.0.volumeMounts.0.mountPath",
    ):  # fmt: skip
        template = changed(path, value)
        try:
            if pod_template.problem(template, "driver") == "":
                made: JsonDict = {"metadata": {}, "spec": {"securityContext": {}, "containers": [{"name": "driver"}]}}
                made["spec"]["containers"][0] |= {"env": [], "volumeMounts": []}
                merged.apply(template, made, "driver")
                pod_template.uses(template)
        except Exception as error:  # any defect is what is asked for
            pytest.fail(f"{path}: {error!r}")


def test_what_a_template_names_is_asked_for() -> None:
    load = writer(GOOD)
    named = {(each.field, each.object.name, each.optional) for each in references.of_writer(load)}
    at = "spec.driver.podTemplate.spec."
    assert named == {
        (f"{at}volumes[keys]", "keys", True),
        (f"{at}volumes[both]", "more", False),
        (f"{at}containers[driver].envFrom", "app", False),
        (f"{at}containers[shipper].env", "shipper", False),
    }
    assert pod_template.names(GOOD, "ConfigMap") == ("company-ca", "mode", "modes", "settings")
    assert pod_template.names(GOOD, "PersistentVolumeClaim") == ("data",)
    assert pod_template.images(GOOD) == {
        "shipper": "registry/shipper:1",
        "proxy": "registry/proxy:1",
        "fetch": "registry/fetch:1",
    }


def test_images_of_containers_are_asked_for() -> None:
    for of in ("driver", "executors"):
        load = writer({"spec": {"initContainers": [{"name": "more", "image": "evil:1"}]}}, of)
        found = references.template_image_problem(load, "own:1", ("registry/*",))
        assert found.startswith(f"spec.{of}.podTemplate.spec.containers[more]: evil:1 is none of the allowed images")
    assert references.template_image_problem(writer(GOOD), "own:1", ("registry/*",)) == ""
    agent = {"podTemplate": {"spec": {"containers": [{"name": "more", "image": "evil:1"}]}}}
    table = TableSpec.from_object(
        {"metadata": {"name": "t"}, "spec": {"path": "s3a://lake/t", "recordKeyFields": ["id"], "agent": agent}}
    )
    assert "spec.agent.podTemplate" in references.template_image_problem(table, "own:1", ())
    assert not references.template_image_problem(table, "own:1", ("*",))


@pytest.mark.parametrize("plural", ["huditables", "hudiwriters"])
def test_what_the_crd_refuses_by_name_launch_refuses_too(plural: str) -> None:
    schema = crds.schema(plural, "spec")["properties"]["agent" if plural == "huditables" else "driver"]
    properties = schema["properties"]["podTemplate"]["properties"]["spec"]["properties"]
    refused = {name for name, field in properties.items() if field["description"].startswith("Refused")}
    assert len(refused) > 20
    assert not refused & pod_template.SPEC
    assert properties.keys() - refused <= pod_template.SPEC
    said = schema["properties"]["podTemplate"]["properties"]["spec"]["description"]
    assert all(name in said for name in pod_template.SPEC)


@pytest.mark.parametrize("plural", ["huditables", "hudiwriters"])
def test_the_api_server_keeps_what_is_not_named(plural: str) -> None:
    """Pruning leaves only what a schema names, at each object that does not say otherwise."""
    top = crds.schema(plural, "spec")["properties"]["agent" if plural == "huditables" else "driver"]
    spec = top["properties"]["podTemplate"]["properties"]["spec"]
    lost = [
        path
        for path, field in [("spec", spec), *crds.fields(spec, "spec")]
        if field.get("type") == "object"
        and not field.get("x-kubernetes-preserve-unknown-fields")
        and not field["description" if "description" in field else "type"].startswith(("Refused", "object"))
    ]
    assert lost == []
