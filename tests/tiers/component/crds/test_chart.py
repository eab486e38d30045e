"""The chart: what it renders, which values it refuses, and its etcd's settings on a real etcd."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hudi_operator import __version__
from hudi_operator.etcd_certificates import plan as planning
from hudi_operator.model.config import OperatorConfig
from tests.support import ROOT, quick_yaml
from tests.support.ports import free_ports
from tests.tiers.component.crds.certificates import turn
from tests.tiers.component.crds.cluster import (
    BIN,
    CHART,
    IMAGES,
    WRITTEN_LAST,
    Cluster,
    JsonDict,
    helm,
    render,
    table,
    wait_until,
)

EXTERNAL = [
    "--set=etcd.enabled=false",
    "--set=externalEtcd.endpoints={https://a:2379,https://b:2379}",
    "--set=externalEtcd.operatorSecret=op",
    "--set=externalEtcd.gatewaySecret=gw",
]


def find(objects: list[JsonDict], kind: str, name: str) -> JsonDict:
    return next(o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name)


def test_the_chart_has_the_same_crds() -> None:
    ours = {path.name: path.read_bytes() for path in (ROOT / "crds").glob("*.yaml")}
    charts = {path.name: path.read_bytes() for path in (CHART / "files" / "crds").glob("*.yaml")}
    assert ours == charts, "run `make chart`"
    assert sorted(ours) == ["hudioperator.io_huditables.yaml", "hudioperator.io_hudiwriters.yaml"]
    # Helm does not upgrade what lies in a chart's crds/ folder.
    assert not (CHART / "crds").exists()


def test_the_crds_are_small_enough_for_kubectl_apply() -> None:
    """Client-side apply keeps the object, as compact JSON, in an annotation.

    All annotations of an object have 262,144 bytes; the rest is for those of others.
    """
    for path in (ROOT / "crds").glob("*.yaml"):
        assert len(json.dumps(quick_yaml.load(path.read_text()), separators=(",", ":"))) < 200_000, path.name


@pytest.mark.parametrize("where", ["--server-side=false", "--server-side"])
def test_the_crds_are_applied(bare_cluster: Cluster, where: str) -> None:
    """As the files are, and once more over what is there."""
    for _ in range(2):
        bare_cluster.kubectl("apply", where, "-f", str(ROOT / "crds"))
    bare_cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")


def test_lint() -> None:
    for values in (
        [],
        EXTERNAL,
        ["--set=config.watchNamespaces={a,b}", "--set=networkPolicy.enabled=true", "--set=etcd.members=3"],
    ):
        done = helm("lint", "--strict", str(CHART), IMAGES, *values)
        assert done.returncode == 0, done.stdout + done.stderr


def test_crds_are_kept_or_left_out() -> None:
    crds = [o for o in render() if o["kind"] == "CustomResourceDefinition"]
    assert [o["metadata"]["annotations"]["helm.sh/resource-policy"] for o in crds] == ["keep", "keep"]
    assert [o["spec"] for o in crds] == [
        quick_yaml.load(path.read_text())["spec"] for path in sorted((ROOT / "crds").glob("*.yaml"))
    ]
    assert not [
        o
        for o in render("--set=crds.keep=false")
        if "annotations" in o["metadata"] and o["kind"] == "CustomResourceDefinition"
    ]
    assert not [o for o in render("--set=crds.enabled=false") if o["kind"] == "CustomResourceDefinition"]


def test_the_configuration_is_what_the_operator_reads() -> None:
    config = quick_yaml.load(
        find(render("--set=config.pathPrefixes.a={s3a://x/}"), "ConfigMap", "hudi-operator")["data"]["config.yaml"]
    )
    endpoint = "https://hudi-operator-etcd-0.hudi-system.svc:2379"
    files = "/etc/hudi-operator/etcd"
    assert config == {
        "etcd": {
            "endpoints": [endpoint],
            "prefix": "/hudi",
            "caFile": f"{files}/ca.crt",
            "certFile": f"{files}/tls.crt",
            "keyFile": f"{files}/tls.key",
            "allowUnauthenticated": False,
        },
        "podEtcd": {
            "endpoints": [f"https://hudi-operator-gateway-{i}.hudi-system.svc:2379" for i in range(2)],
            "caFile": "/etc/hudi-operator/pod-etcd/ca.crt",
        },
        "sparkImage": f"registry.example.com/data/spark:{__version__}",
        "allowedImages": [],
        "imagePullPolicy": "IfNotPresent",
        "allowedSchemes": ["s3a", "hdfs", "gs"],
        "pathPrefixes": {"a": ["s3a://x/"], "*": []},
        "storeEndpoints": ["*"],
        "consent": {"secrets": "Required", "serviceAccounts": "Required"},
        "consentBinding": {
            "role": "hudi-operator-consent",
            "serviceAccount": "hudi-operator",
            "namespace": "hudi-system",
        },
        "options": {"allow": []},
        "agent": {
            "memory": "512Mi",
            "maxTables": 200,
            "javaOptions": ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
            "resources": {"requests": {"cpu": "100m", "memory": "768Mi"}, "limits": {"memory": "1536Mi"}},
        },
        "watchNamespaces": [],
        "driverRole": "hudi-operator-driver",
        "leaderElection": {
            "enabled": True,
            "leaseName": "hudi-operator-leader",
            "leaseDurationSeconds": 10,
            "renewDeadlineSeconds": 7,
            "retryPeriodSeconds": 2,
        },
        "metricsPort": 9090,
        "probePort": 8080,
        "metrics": {},
        "networkPolicies": {"enabled": True},
        "driverAnnotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
        "agentAnnotations": {},
        "tmpSizeLimit": "64Gi",
        "userIds": "Image",
        "mavenMirror": "",
    }
    from hudi_operator.model.config import OperatorConfig

    read = OperatorConfig.from_dict(config)
    assert read.etcd.endpoints == (endpoint,)
    assert read.agent == OperatorConfig().agent


@pytest.mark.parametrize(
    ("values", "others"),
    [
        ((), []),
        (("--set=config.watchNamespaces={a,b}",), None),
        (('--set-json=config.pathPrefixes={"*": ["*"]}',), ["*"]),
    ],
)
def test_paths_of_namespaces_that_are_not_listed(values: tuple[str, ...], others: list[str] | None) -> None:
    """Closed in a release for all namespaces, unless one line opens them."""
    config = quick_yaml.load(find(render(*values), "ConfigMap", "hudi-operator")["data"]["config.yaml"])
    assert config["pathPrefixes"].get("*") == others


def test_the_address_of_each_endpoint_stays_when_its_pod_is_replaced() -> None:
    """Each is a Service with an address of its own, for the pod of one name (F342)."""
    objects = render("--set=etcd.members=3,gateway.replicas=2")
    config = quick_yaml.load(find(objects, "ConfigMap", "hudi-operator")["data"]["config.yaml"])
    members, gateways = config["etcd"]["endpoints"], config["podEtcd"]["endpoints"]
    assert (len(members), len(gateways)) == (3, 2)
    for endpoint in (*members, *gateways):
        name, _, suffix = endpoint.removeprefix("https://").partition(".")
        assert suffix == "hudi-system.svc:2379"
        service = find(objects, "Service", name)["spec"]
        assert service.get("clusterIP") != "None"
        assert service["publishNotReadyAddresses"]
        assert service["selector"]["statefulset.kubernetes.io/pod-name"] == name
        stateful = find(objects, "StatefulSet", name.rpartition("-")[0])["spec"]
        assert service["selector"].items() - stateful["template"]["metadata"]["labels"].items() == {
            ("statefulset.kubernetes.io/pod-name", name)
        }
        assert int(name.rpartition("-")[2]) < stateful["replicas"]
    etcd = find(objects, "StatefulSet", "hudi-operator-etcd")["spec"]["template"]["spec"]["containers"][0]
    assert "--advertise-client-urls=https://$(POD_NAME).hudi-system.svc:2379" in etcd["args"]


def reads_secrets(objects: list[JsonDict]) -> set[str]:
    """ClusterRoles and Roles with the right to read any Secret."""
    return {
        role["metadata"]["name"]
        for role in objects
        if role["kind"] in ("ClusterRole", "Role")
        for rule in role["rules"]
        if "secrets" in rule["resources"]
        and {"get", "list", "watch"} & {*rule["verbs"]}
        and "resourceNames" not in rule
    }


@pytest.mark.parametrize(
    ("values", "role"),
    [
        ((), "hudi-operator-consent"),
        (("--set=config.consent.secrets=Optional",), "hudi-operator-consent"),
        (("--set=config.consent.secrets=Off",), ""),
        (("--set=config.consent.secrets=Off,config.watchNamespaces={a}",), ""),
        (("--set=config.watchNamespaces={a}",), "hudi-operator"),
    ],
)
def test_which_role_reads_secrets(values: tuple[str, ...], role: str) -> None:
    """F403: none that is bound beside the operator's own Secrets. In a release for all namespaces
    the chart binds that role to nobody, and no role of Kubernetes takes it in.
    """
    objects = render(*values)
    assert reads_secrets(objects) == ({role} if role else set())
    config = OperatorConfig.from_dict(
        quick_yaml.load(find(objects, "ConfigMap", "hudi-operator")["data"]["config.yaml"])
    )
    assert config.consent_binding.given == (role == "hudi-operator-consent")
    bound = [(o["kind"], o["metadata"].get("namespace")) for o in objects if o.get("roleRef", {}).get("name") == role]
    assert bound == ([("RoleBinding", "a")] if role == "hudi-operator" else [])
    if config.consent_binding.given:
        labels = find(objects, "ClusterRole", role)["metadata"]["labels"]
        assert not [name for name in labels if name.startswith("rbac.authorization.k8s.io/aggregate-")]
        rules = find(objects, "ClusterRole", "hudi-operator")["rules"]
        names = [name for rule in rules if "bind" in rule["verbs"] for name in rule["resourceNames"]]
        assert names == ["hudi-operator-driver", role]


@pytest.mark.parametrize("replicas", [1, 2, 9])
def test_a_gateway_knows_how_many_there_are(replicas: int) -> None:
    """Each counts for itself and grants its share of a table's limits (F204)."""
    made = find(render(f"--set=gateway.replicas={replicas}"), "StatefulSet", "hudi-operator-gateway")["spec"]
    assert made["replicas"] == replicas
    assert f"-replicas={replicas}" in made["template"]["spec"]["containers"][0]["args"]


def test_the_gateway_knows_its_node() -> None:
    """Its clock is no second witness against a pod there (F408)."""
    spec = find(render(), "StatefulSet", "hudi-operator-gateway")["spec"]["template"]["spec"]
    environment = {each["name"]: each for each in spec["containers"][0]["env"]}
    assert environment["NODE_NAME"]["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}


def test_external_etcd() -> None:
    objects = render(*EXTERNAL)
    assert {o["kind"] for o in objects}.isdisjoint({"Secret", "Job"})
    (gateway,) = [o for o in objects if o["kind"] == "StatefulSet"]
    (container,) = gateway["spec"]["template"]["spec"]["containers"]
    assert "-etcd-endpoints=https://a:2379,https://b:2379" in container["args"]
    assert gateway["spec"]["template"]["spec"]["volumes"][0]["secret"]["secretName"] == "gw"
    config = quick_yaml.load(find(objects, "ConfigMap", "hudi-operator")["data"]["config.yaml"])
    assert config["etcd"]["endpoints"] == ["https://a:2379", "https://b:2379"]
    assert all("hudi-operator-gateway-" in endpoint for endpoint in config["podEtcd"]["endpoints"])
    volumes = find(objects, "Deployment", "hudi-operator")["spec"]["template"]["spec"]["volumes"]
    assert [v["secret"]["secretName"] for v in volumes if "secret" in v] == ["op", "gw"]


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ("replica=2", "replica"),
        ("etcd.member=3", "member"),
        ("etcd.members=2", "etcd.members 2 without etcd.joins"),
        ("config.allowedSchemes={file}", "/config/allowedSchemes/0"),
        ("config.sparkimage=x", "sparkimage"),
        ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
        ("etcd.enabled=false", "/externalEtcd/endpoints"),
        ("externalEtcd.endpoints={http://a:2379}", "/externalEtcd/endpoints/0"),
        ("etcd.quotaBackendBytes=1", "/etcd/quotaBackendBytes"),
        ("config.agent.memory=512m", "/config/agent/memory"),
        ("images.registry=hudi-operator", "/images/registry"),
        ("image.repository=hudi-operator/operator", "/image/repository"),
        ("config.sparkImage=hudi-operator/spark:dev", "/config/sparkImage"),
        ("etcd.image.digest=sha256:12", "/etcd/image/digest"),
        ("images.registry=", "images.registry: required: no registry has images of this project"),
        ("config.tmpSizeLimit=64G", "/config/tmpSizeLimit"),
        ("config.driverAnnotations.hudioperator\\.io/x=y", "/config/driverAnnotations"),
        ("config.agentAnnotations.a=1", "/config/agentAnnotations/a"),
        ("userIds=OpenShift", "/userIds"),
        ("metrics.clientCertificates=true", "/metrics/tlsSecret"),
        ("networkPolicy.metricsFrom[0].pods=x", "/networkPolicy/metricsFrom/0"),
        ("networkPolicy.egress.apiServer.cidrs={any}", "/networkPolicy/egress/apiServer/cidrs/0"),
        ("etcd.tls.clientSeconds=60", "/etcd/tls/clientSeconds"),
        ("etcd.tls.certmanager.enabled=true", "certmanager"),
        ("etcd.tls.existingSecrets.server=a", "/etcd/tls/existingSecrets/root"),
        ("etcd.tls.existingSecrets.server=A", "/etcd/tls/existingSecrets/server"),
    ],
)
def test_values_that_are_refused(value: str, where: str) -> None:
    done = helm("template", "x", str(CHART), IMAGES, "--set", value)
    assert done.returncode != 0
    assert where in done.stderr


def test_an_annotation_of_the_chart_can_be_removed() -> None:
    """Helm merges maps: null takes a name out."""
    objects = render(r"--set=config.driverAnnotations.cluster-autoscaler\.kubernetes\.io/safe-to-evict=null")
    config = quick_yaml.load(find(objects, "ConfigMap", "hudi-operator")["data"]["config.yaml"])
    assert config["driverAnnotations"] == {}


def test_images_are_named_with_their_registry() -> None:
    """Nothing is filled in: a name without a host would be somebody else's image."""

    def images(*values: str) -> list[str]:
        objects = render(*values)
        pods = [o["spec"]["template"]["spec"] for o in objects if o["kind"] in ("Deployment", "StatefulSet", "Job")]
        found = [container["image"] for spec in pods for container in spec["containers"]]
        config = quick_yaml.load(find(objects, "ConfigMap", "hudi-operator")["data"]["config.yaml"])
        return sorted({*found, config["sparkImage"]})

    home = "registry.example.com/data"
    names = ("etcd", "gateway", "operator", "spark")
    assert images() == [f"{home}/{name}:{__version__}" for name in names]
    assert images("--set=images.tag=v2") == [f"{home}/{name}:v2" for name in names]
    digest = "sha256:" + "0" * 64
    own = (
        f"--set=image.digest={digest}",
        "--set=config.sparkImage=localhost:5000/spark:v3",
        "--set=etcd.image.repository=quay.example.com/etcd",
        "--set=etcd.image.tag=v4",
        "--set=gateway.image.repository=quay.example.com/gateway",
        "--set=gateway.image.tag=v5",
    )
    wanted = [
        "quay.example.com/gateway:v5",
        "localhost:5000/spark:v3",
        "quay.example.com/etcd:v4",
        f"{home}/operator@{digest}",
    ]
    assert images(*own) == sorted(wanted)
    assert images(*own, "--set=images.registry=,image.repository=registry.example.com/operator")
    done = helm("template", "x", str(CHART))
    assert "images.registry: required" in done.stderr
    assert done.returncode != 0


def test_every_pod_is_restricted() -> None:
    for obj in (o for o in render() if o["kind"] in ("Deployment", "StatefulSet", "Job")):
        spec = obj["spec"]["template"]["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 65532
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            security = container["securityContext"]
            assert security == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert set(container["resources"]["requests"]) == {"cpu", "memory"}


def test_pods_name_no_users_where_the_platform_gives_them() -> None:
    rendered = render("--set=userIds=Platform")
    pods = [o["spec"]["template"]["spec"] for o in rendered if o["kind"] in ("Deployment", "StatefulSet", "Job")]
    assert len(pods) >= 4
    for spec in pods:
        assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        assert not any("runAsUser" in container["securityContext"] for container in spec["containers"])
    assert quick_yaml.load(find(rendered, "ConfigMap", "hudi-operator")["data"]["config.yaml"])["userIds"] == "Platform"
    for policy in ("executors", "own-pods"):
        checks = find(rendered, "ValidatingAdmissionPolicy", f"hudi-operator-{policy}")["spec"]["validations"]
        of_pod, of_containers = [each for each in checks if "seLinuxOptions" in each["expression"]]
        for check, context in ((of_pod, "object.spec.securityContext"), (of_containers, "c.securityContext")):
            assert f"has({context}.seLinuxOptions.type)" in check["expression"]
            assert f"!has({context}.seLinuxOptions) &&" not in check["expression"]
            assert "seLinuxOptions except level" in check["message"]


def test_what_must_outlive_the_release_is_kept() -> None:
    etcd = find(render(), "StatefulSet", "hudi-operator-etcd")["spec"]
    assert etcd["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert etcd["volumeClaimTemplates"][0]["metadata"]["name"] == "data"


def test_rights_end_at_the_watched_namespaces() -> None:
    objects = render("--set=config.watchNamespaces={a,b}")
    assert [
        o["metadata"]["namespace"]
        for o in objects
        if o["kind"] == "RoleBinding" and o["metadata"]["name"] == "hudi-operator"
    ] == ["a", "b"]
    assert [o["metadata"]["name"] for o in objects if o["kind"] == "ClusterRoleBinding"] == ["hudi-operator-cluster"]


def test_no_right_has_a_wildcard() -> None:
    for role in (o for o in render() if o["kind"] in ("ClusterRole", "Role")):
        for rule in role["rules"]:
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"], role["metadata"]["name"]


PROMETHEUS = "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.a=b"
STORE = "networkPolicy.egress.spark[0].ports[0].port=9000"


def test_network_policies_of_every_pod_of_the_release(light_cluster: Cluster) -> None:
    """Nothing of the release is without one; the API server takes them as they are."""
    objects = render(f"--set={PROMETHEUS},networkPolicy.egress.enabled=true,{STORE}")
    policies = [o for o in objects if o["kind"] == "NetworkPolicy"]
    for policy in policies:
        command = ["create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-"]
        stored = json.loads(light_cluster.kubectl(*command, stdin=quick_yaml.dump(policy)))
        assert stored["spec"]["podSelector"] == policy["spec"]["podSelector"]
        assert stored["spec"]["policyTypes"] == ["Ingress", "Egress"]
    selected = [o["spec"]["podSelector"]["matchLabels"] for o in policies]
    for workload in (o for o in objects if o["kind"] in ("Deployment", "StatefulSet")):
        labels = workload["spec"]["template"]["metadata"]["labels"]
        assert [s for s in selected if s.items() <= labels.items()], workload["metadata"]["name"]
    ports = {
        o["metadata"]["name"]: [p["port"] for rule in o["spec"].get("ingress", ()) for p in rule["ports"]]
        for o in policies
    }
    # No port of a probe: the kubelet of the pod's own node is always let in.
    assert ports == {
        "hudi-operator": [9090], "hudi-operator-etcd": [2379, 2380], "hudi-operator-etcd-identity": [],
        "hudi-operator-gateway": [2379, 9090],
    }  # fmt: skip
    rules = quick_yaml.load(find(objects, "ConfigMap", "hudi-operator")["data"]["config.yaml"])["networkPolicies"]
    spark = {"podSelector": {}, "policyTypes": ["Egress"], "egress": rules["egress"]}
    made = {**policies[0], "metadata": {"name": "spark", "namespace": "hudi-system"}, "spec": spark}
    command = ["create", "--dry-run=server", "--validate=strict", "-f", "-"]
    assert "created" in light_cluster.kubectl(*command, stdin=quick_yaml.dump(made))
    assert {"port": 9000} in rules["egress"][-1]["ports"]

    by_default = {o["metadata"]["name"]: o["spec"] for o in render() if o["kind"] == "NetworkPolicy"}
    assert [spec["policyTypes"] for spec in by_default.values()] == [["Ingress"]] * 4
    assert "ingress" not in by_default["hudi-operator"], "nobody reads metrics who is not named"
    assert not [o for o in render("--set=networkPolicy.enabled=false") if o["kind"] == "NetworkPolicy"]


def test_metrics_behind_a_token_and_certificates() -> None:
    values = "--set=metrics.tokenSecret=t,metrics.tlsSecret=m,metrics.clientCertificates=true"
    deployment = find(render(values), "Deployment", "hudi-operator")["spec"]["template"]["spec"]
    mounts = {m["name"]: m["mountPath"] for m in deployment["containers"][0]["volumeMounts"]}
    config = quick_yaml.load(find(render(values), "ConfigMap", "hudi-operator")["data"]["config.yaml"])["metrics"]
    assert {Path(path).parent for path in config.values()} == {
        Path(mounts["metrics-token"]),
        Path(mounts["metrics-tls"]),
    }
    assert sorted(config) == ["certFile", "clientCaFile", "keyFile", "tokenFile"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("", {}),
        ("metrics.tokenSecret=t", {"metrics-token-file": ("t", "token")}),
        ("metrics.tlsSecret=m", {"metrics-cert": ("m", "tls.crt"), "metrics-key": ("m", "tls.key")}),
        (
            "metrics.tokenSecret=t,metrics.tlsSecret=m,metrics.clientCertificates=true",
            {
                "metrics-token-file": ("t", "token"),
                "metrics-cert": ("m", "tls.crt"),
                "metrics-key": ("m", "tls.key"),
                "metrics-client-ca": ("m", "ca.crt"),
            },
        ),
    ],
)
def test_the_gateways_metrics_are_behind_the_same(values: str, expected: dict[str, tuple[str, str]]) -> None:
    """Each file that it is told is one of a mounted Secret; probes have another port."""
    spec = find(render(*([f"--set={values}"] if values else [])), "StatefulSet", "hudi-operator-gateway")
    pod = spec["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    arguments = dict(argument.removeprefix("-").split("=", 1) for argument in container["args"])
    secrets = {volume["name"]: volume["secret"]["secretName"] for volume in pod["volumes"]}
    mounts = {Path(mount["mountPath"]): secrets[mount["name"]] for mount in container["volumeMounts"]}
    files = {name: Path(value) for name, value in arguments.items() if name.startswith("metrics-")}
    assert {name: (mounts[file.parent], file.name) for name, file in files.items()} == expected
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert (arguments["probe"], arguments["metrics"]) == (f":{ports['probes']}", f":{ports['metrics']}")
    assert ports["probes"] != ports["metrics"]
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == "probes"


def test_a_credentials_broker_is_told_to_the_operator_alone() -> None:
    """Token and authorities are files of its pod; without a broker nothing changes."""
    values = (
        "--set=credentialsBroker.url=https://broker:8443,credentialsBroker.storeEndpoint=https://s3:9000,"
        "credentialsBroker.tokenSecret=t,credentialsBroker.caSecret=c,credentialsBroker.storeCaSecret=s",
        "--set=config.consent.secrets=Off",
    )
    objects = render(*values)
    spec = find(objects, "Deployment", "hudi-operator")["spec"]["template"]["spec"]
    mounts = {m["name"]: m["mountPath"] for m in spec["containers"][0]["volumeMounts"]}
    secrets = {v["name"]: v["secret"] for v in spec["volumes"] if "secret" in v}
    text = quick_yaml.load(find(objects, "ConfigMap", "hudi-operator")["data"]["config.yaml"])
    config = OperatorConfig.from_dict(text).credentials_broker
    for volume, secret, file in (
        ("broker-token", "t", config.token_file),
        ("broker-ca", "c", config.ca_file),
        ("store-ca", "s", config.store_ca_file),
    ):
        (item,) = secrets[volume]["items"]
        assert (secrets[volume]["secretName"], f"{mounts[volume]}/{item['path']}") == (secret, file)
    assert (config.url, config.identity_cache_seconds, config.request_seconds) == ("https://broker:8443", 120, 200)

    egress = "networkPolicy.egress.enabled=true,networkPolicy.egress.operator[0].ports[0].port=8443"
    rules = find(render(f"--set={egress}"), "NetworkPolicy", "hudi-operator")["spec"]["egress"]
    assert rules[-1] == {"ports": [{"port": 8443}]}
    assert reads_secrets(objects) == {"hudi-operator-consent"}
    assert not reads_secrets(render(values[1]))
    assert "credentialsBroker" not in find(render(), "ConfigMap", "hudi-operator")["data"]["config.yaml"]


def test_no_scratch_space_is_without_a_limit() -> None:
    for obj in (o for o in render() if o["kind"] in ("Deployment", "StatefulSet")):
        for volume in obj["spec"]["template"]["spec"].get("volumes", ()):
            assert "emptyDir" not in volume or volume["emptyDir"]["sizeLimit"], obj["metadata"]["name"]


def test_policies_can_be_left_out() -> None:
    assert not [o for o in render("--set=admission.enabled=false") if o["kind"].startswith("ValidatingAdmissionPolicy")]
    names = [
        o["metadata"]["name"]
        for o in render("--set=admission.guardPodStatus=false")
        if o["kind"] == "ValidatingAdmissionPolicy"
    ]
    assert "hudi-operator-pod-status" not in names
    assert "hudi-operator-evidence" in names


def test_the_policies_pass_the_servers_type_check(light_cluster: Cluster) -> None:
    def policies() -> list[JsonDict]:
        found = light_cluster.get("validatingadmissionpolicies")["items"]
        return [policy for policy in found if policy["metadata"]["name"] != WRITTEN_LAST]

    wait_until(lambda: all("observedGeneration" in policy.get("status", {}) for policy in policies()))
    assert len(policies()) == len([o for o in render() if o["kind"] == "ValidatingAdmissionPolicy"])
    for policy in policies():
        assert not policy["status"].get("typeChecking", {}).get("expressionWarnings"), policy["metadata"]["name"]


# ---- the real helm on a real API server


def test_install_upgrade_uninstall_and_again(bare_cluster: Cluster) -> None:
    """Certificates, CRDs and tables outlive upgrades and uninstalling.

    A new release takes them over.
    """

    def run(verb: str, *arguments: str) -> str:
        chart = [] if verb == "uninstall" else [str(CHART), IMAGES]
        kubeconfig = ["--kubeconfig", str(bare_cluster.kubeconfig)]
        done = helm(verb, "hudi-operator", *chart, *kubeconfig, "-n", "hudi-system", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def certificates() -> dict[str, Any]:
        """After one turn of the process that makes them."""
        turn(bare_cluster)
        secrets = bare_cluster.get("secret", "-n", "hudi-system", "-l", "hudioperator.io/etcd=hudi-operator-etcd")
        return {o["metadata"]["name"].removeprefix("hudi-operator-etcd-"): o["data"] for o in secrets["items"]}

    assert "kubectl get hudi -A" in run("install", "--create-namespace")
    first = certificates()
    assert sorted(first) == ["ca", "gateway", "operator", "root", "server"]
    bare_cluster.apply(table("default"))
    run("upgrade", "--set=replicas=2")
    assert bare_cluster.get("deployment", "hudi-operator", "-n", "hudi-system")["spec"]["replicas"] == 2
    assert certificates() == first

    # A lost identity is made again, by the same CA.
    bare_cluster.kubectl("delete", "secret", "hudi-operator-etcd-gateway", "-n", "hudi-system")
    second = certificates()
    changed = [name for name in first if second[name] != first[name]]
    assert changed == ["gateway"]
    assert second["gateway"]["ca.crt"] == first["gateway"]["ca.crt"]

    run("uninstall")
    left = bare_cluster.get("secret", "-n", "hudi-system")["items"]
    assert {o["metadata"]["name"].removeprefix("hudi-operator-etcd-"): o["data"] for o in left} == second
    assert bare_cluster.get("ht", "flights")["spec"]["path"] == "s3a://lake/flights"
    run("install")
    assert certificates() == second
    assert bare_cluster.get("ht", "flights")["spec"]["path"] == "s3a://lake/flights"


def _cluster_wide(release: str, *arguments: str) -> set[tuple[str, str]]:
    """Kind and name of the objects without a namespace, apart from the CRDs."""
    done = helm("template", release, str(CHART), "--namespace", f"{release}-system", IMAGES, *arguments)
    assert done.returncode == 0, done.stderr
    objects = [o for o in quick_yaml.load_all(done.stdout) if o and "namespace" not in o["metadata"]]
    return {(o["kind"], o["metadata"]["name"]) for o in objects if o["kind"] != "CustomResourceDefinition"}


def test_two_releases_share_no_name() -> None:
    one, two = _cluster_wide("one"), _cluster_wide("two", "--set=crds.enabled=false")
    assert {kind for kind, _ in one} == {
        "ClusterRole",
        "ClusterRoleBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
    assert len(one) == len(two)
    assert one.isdisjoint(two)


def test_two_releases_live_in_one_cluster(bare_cluster: Cluster) -> None:
    """Each watches its own namespaces; its policies judge only these."""
    for number, (release, namespace) in enumerate((("red", "reds"), ("blue", "blues"))):
        bare_cluster.kubectl("create", "namespace", namespace)
        done = helm(
            "install",
            release,
            str(CHART),
            "--kubeconfig",
            str(bare_cluster.kubeconfig),
            "-n",
            f"{release}-system",
            "--create-namespace",
            "--no-hooks",
            IMAGES,
            f"--set=config.watchNamespaces={{{namespace}}}",
            f"--set=crds.enabled={str(number == 0).lower()}",
        )
        assert done.returncode == 0, done.stderr
    for release, namespace, other in (("red", "reds", "blues"), ("blue", "blues", "reds")):
        user = f"--as=system:serviceaccount:{release}-system:{release}-hudi-operator"
        for where, answer in ((namespace, "yes"), (other, "no")):
            found = bare_cluster.run("auth", "can-i", "create", "pods", "-n", where, user).stdout
            assert found.splitlines()[-1] == answer, (release, where)
        binding = bare_cluster.get("validatingadmissionpolicybinding", f"{release}-hudi-operator-evidence")
        (term,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert term["values"] == [namespace]
    _ends_with_its_tables(bare_cluster, "reds", "red-hudi-operator")


def _ends_with_its_tables(cluster: Cluster, namespace: str, release: str) -> None:
    """A watched namespace that is deleted takes the operator's rights in it last (F341)."""
    for kind, name, spec in (
        ("HudiTable", "t", {"path": "s3a://lake/t", "recordKeyFields": ["id"]}),
        ("HudiWriter", "w", {"tableRef": {"name": "t"}, "source": {"files": {"format": "csv", "paths": ["s3a://a/"]}}}),
    ):
        meta = {"name": name, "namespace": namespace, "finalizers": ["hudioperator.io/settle"]}
        cluster.apply({"apiVersion": "hudioperator.io/v1alpha1", "kind": kind, "metadata": meta, "spec": spec})
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")

    def said(part: str) -> bool:
        conditions = cluster.get("namespace", namespace)["status"].get("conditions", [])
        return any(part in condition["message"] for condition in conditions)

    operator = f"--as=system:serviceaccount:red-system:{release}"
    for kind, name, left in (("huditables", "t", ""), ("hudiwriters", "w", "HudiWriter w")):
        wait_until(lambda left=left: said(f"the operator needs this RoleBinding until the {left}"), seconds=60)
        patch = '{"metadata": {"finalizers": null}}'
        cluster.kubectl("patch", kind, name, "-n", namespace, "--type=merge", "-p", patch, operator)
    wait_until(lambda: cluster.run("get", "namespace", namespace).returncode != 0, seconds=60)


# ---- its etcd


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """etcd with the arguments of the chart, and certificates as its process makes them.

    Only ports, names and directories are others. Yields client port and certificates.
    """
    objects, directory = render(), tmp_path_factory.mktemp("etcd")
    made = planning.plan(planning.Settings("hudi-operator-etcd", "hudi-system"), {}, datetime.now(tz=UTC))
    for identity, stored in made.secrets.items():
        (directory / identity).mkdir()
        for name, value in stored.data.items():
            (directory / identity / name).write_bytes(value)
    client, peer, metrics = free_ports(3)
    arguments = etcds(objects)["args"]
    (told,) = [one.partition("=")[2] for one in arguments if one.startswith("--listen-metrics-urls=")]
    addresses = {
        "--data-dir": f"{directory}/data",
        "--listen-client-urls": f"https://127.0.0.1:{client}",
        "--advertise-client-urls": f"https://127.0.0.1:{client}",
        "--listen-peer-urls": f"https://127.0.0.1:{peer}",
        "--initial-advertise-peer-urls": f"https://127.0.0.1:{peer}",
        "--initial-cluster": f"e0=https://127.0.0.1:{peer}",
        "--listen-metrics-urls": told.replace(":2381", f":{metrics}"),
    }
    command = [str(BIN / "etcd")]
    for argument in arguments:
        flag, _, value = argument.partition("=")
        value = addresses.get(flag, value).replace("$(POD_NAME)", "e0").replace("/etc/etcd/tls", f"{directory}/server")
        command.append(f"{flag}={value}" if value else flag)
    with (directory / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            deadline = time.monotonic() + 30
            while not _answers(metrics):
                assert process.poll() is None, (directory / "log").read_text()
                assert time.monotonic() < deadline, (directory / "log").read_text()
                time.sleep(0.05)
            (directory / "metrics-port").write_text(str(metrics))
            yield client, directory
        finally:
            process.kill()


def etcds(objects: list[JsonDict]) -> JsonDict:
    """The container of etcd."""
    (found,) = find(objects, "StatefulSet", "hudi-operator-etcd")["spec"]["template"]["spec"]["containers"]
    return dict(found)


def _answers(port: int) -> bool:
    """The probes of the StatefulSet, as the kubelet runs them in etcd's container."""
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        program, url = etcds(render())[name]["exec"]["command"]
        assert program == "/usr/local/bin/etcd-probe"
        if probe(url.replace(":2381/", f":{port}/")).returncode != 0:
            return False
    return True


def probe(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(BIN / "etcd-probe"), *arguments], capture_output=True, text=True, timeout=20)


def etcdctl(port: int, identity: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        str(BIN / "etcdctl"),
        f"--endpoints=https://127.0.0.1:{port}",
        "--command-timeout=3s",
        "--dial-timeout=3s",
    ]
    if identity:
        command += [f"--cacert={identity}/ca.crt", f"--cert={identity}/tls.crt", f"--key={identity}/tls.key"]
    else:
        command += ["--insecure-skip-tls-verify"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=30)


def test_etcd_talks_to_those_with_a_certificate_only(etcd: tuple[int, Path]) -> None:
    port, directory = etcd
    assert etcdctl(port, None, "get", "x").returncode != 0
    for identity in ("operator", "gateway", "root"):
        done = etcdctl(port, directory / identity, "put", "x", identity)
        assert done.returncode == 0, done.stderr


def curl(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["curl", "-sSf", *arguments], capture_output=True, text=True, timeout=20)


def test_nobody_reads_etcds_metrics_without_a_certificate(etcd: tuple[int, Path]) -> None:
    """What needs none is on the loopback, which no other pod reaches (F361).

    127.0.0.2 stands for the pod's address: who listens on all addresses answers there, too.
    """
    port, directory = etcd
    told = (directory / "metrics-port").read_text()
    assert "etcd_server_has_leader 1" in curl(f"http://127.0.0.1:{told}/metrics").stdout
    assert curl(f"http://127.0.0.2:{told}/metrics").returncode == 7, "a connection"
    metrics = f"https://127.0.0.1:{port}/metrics"
    trusting = ("--cacert", str(directory / "gateway" / "ca.crt"))
    without = curl(*trusting, metrics)  # the server ends the connection
    assert (without.returncode != 0, without.stdout) == (True, ""), without.stderr
    pair = ("--cert", str(directory / "gateway" / "tls.crt"), "--key", str(directory / "gateway" / "tls.key"))
    assert "etcd_server_has_leader 1" in curl(*trusting, *pair, metrics).stdout
    addresses = [urlsplit(one) for one in re.findall(r"^--listen-\S+?=(\S+)", "\n".join(etcds(render())["args"]), re.M)]
    assert sorted((one.scheme, one.hostname, one.port) for one in addresses) == [
        ("http", "127.0.0.1", 2381), ("https", "0.0.0.0", 2379), ("https", "0.0.0.0", 2380),
    ]  # fmt: skip
    assert {one["containerPort"] for one in etcds(render())["ports"]} == {2379, 2380}


class Unready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response({"/ok": 200, "/moved": 302}.get(self.path, 503))
        self.send_header("Location", "/ok")
        self.end_headers()
        self.wfile.write(b"[-]linearizable_read failed: no leader\n")

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


def test_a_probe_says_why_etcd_is_not_ready() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Unready) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        assert probe(f"{url}/ok").returncode == 0
        done = probe(f"{url}/readyz")
        assert done.returncode == 1
        assert done.stderr == "503 Service Unavailable: [-]linearizable_read failed: no leader\n"
        assert probe(f"{url}/moved").returncode == 1
        server.shutdown()
    gone = probe(f"{url}/readyz")
    assert (gone.returncode, "connection refused" in gone.stderr) == (1, True), gone.stderr
    assert probe().returncode == 1


def test_the_database_has_a_quota_and_history_is_compacted(etcd: tuple[int, Path]) -> None:
    _, directory = etcd
    port = (directory / "metrics-port").read_text()
    metrics = subprocess.run(
        ["curl", "-sf", f"http://127.0.0.1:{port}/metrics"], capture_output=True, text=True, check=True
    ).stdout
    assert "etcd_server_quota_backend_bytes 1.073741824e+09" in metrics.splitlines()
    for given, quota, retention in (
        ((), 1073741824, "600s"),
        (
            ("--set=etcd.quotaBackendBytes=134217728", "--set=etcd.autoCompactionRetentionSeconds=1800"),
            134217728,
            "1800s",
        ),
    ):
        arguments = find(render(*given), "StatefulSet", "hudi-operator-etcd")["spec"]["template"]["spec"]["containers"][
            0
        ]["args"]
        wanted = {
            f"--quota-backend-bytes={quota}",
            "--auto-compaction-mode=periodic",
            f"--auto-compaction-retention={retention}",
        }
        assert wanted <= set(arguments)


def test_the_name_in_the_certificate_is_the_user(etcd: tuple[int, Path]) -> None:
    port, directory = etcd
    root = directory / "root"
    for command in (
        ["role", "add", "control-reader"],
        ["role", "grant-permission", "control-reader", "--prefix=true", "read", "/hudi/control/"],
        ["user", "add", "root", "--no-password"],
        ["user", "grant-role", "root", "root"],
        ["user", "add", "hudi-gateway", "--no-password"],
        ["user", "grant-role", "hudi-gateway", "control-reader"],
        ["auth", "enable"],
    ):
        done = etcdctl(port, root, *command)
        assert done.returncode == 0, done.stderr
    assert etcdctl(port, root, "put", "/hudi/control/t/gate", "{}").returncode == 0
    assert etcdctl(port, directory / "gateway", "get", "/hudi/control/t/gate").stdout.splitlines() == [
        "/hudi/control/t/gate",
        "{}",
    ]
    assert "permission denied" in etcdctl(port, directory / "gateway", "put", "/hudi/control/t/gate", "x").stderr


def test_certificates_name_what_they_are_for(etcd: tuple[int, Path]) -> None:
    _, directory = etcd
    names = {}
    for identity in ("server", "operator", "gateway", "root"):
        # The standard library's only parser of certificate files.
        decoded: dict[str, Any] = ssl._ssl._test_decode_cert(str(directory / identity / "tls.crt"))  # type: ignore[attr-defined]
        names[identity] = dict(pair[0] for pair in decoded["subject"])["commonName"]
        alternatives = [value for _, value in decoded.get("subjectAltName", ())]
        for server, whose in (("etcd", "server"), ("gateway", "gateway")):
            here = f"hudi-operator-{server}-0.hudi-system.svc"
            assert (here in alternatives) == (identity == whose)
    assert names == {
        "server": "hudi-operator-etcd",
        "operator": "hudi-operator",
        "gateway": "hudi-gateway",
        "root": "root",
    }


@pytest.mark.parametrize(
    ("url", "seconds", "warns"), [("https://b", 59, True), ("https://b", 60, False), ("", 5, False)]
)
def test_a_store_that_ends_requests_at_once_is_doubted(url: str, seconds: int, warns: bool) -> None:
    """Too small a value loses rows, and no test of the operator's can see it."""
    given = f"credentialsBroker.url={url},credentialsBroker.storeEndpoint=https://s,credentialsBroker.requestSeconds"
    command = ("install", "hudi-operator", str(CHART), "--dry-run=client", IMAGES, f"--set={given}={seconds}")
    done = helm(*command)
    assert done.returncode == 0, done.stderr
    assert (f"WARNING: credentialsBroker.requestSeconds is {seconds}." in done.stdout) == warns
