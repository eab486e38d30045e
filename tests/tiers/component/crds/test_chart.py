"""The chart: what it renders, which values it refuses, and its etcd's settings on a real etcd."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import ROOT
from tests.support.harness.servers import free_ports
from tests.tiers.component.crds.cluster import BIN, CHART, Cluster, JsonDict, helm, render, table

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
    """Client-side apply keeps the object, as JSON, in an annotation.

    All annotations of an object have 262,144 bytes.
    """
    for path in (ROOT / "crds").glob("*.yaml"):
        assert len(json.dumps(yaml.safe_load(path.read_text()))) < 131_072


def test_lint() -> None:
    for values in (
        [],
        EXTERNAL,
        ["--set=config.watchNamespaces={a,b}", "--set=networkPolicy.enabled=true", "--set=etcd.members=3"],
    ):
        done = helm("lint", "--strict", str(CHART), *values)
        assert done.returncode == 0, done.stdout + done.stderr


def test_crds_are_kept_or_left_out() -> None:
    crds = [o for o in render() if o["kind"] == "CustomResourceDefinition"]
    assert [o["metadata"]["annotations"]["helm.sh/resource-policy"] for o in crds] == ["keep", "keep"]
    assert [o["spec"] for o in crds] == [
        yaml.safe_load(path.read_text())["spec"] for path in sorted((ROOT / "crds").glob("*.yaml"))
    ]
    assert not [
        o
        for o in render("--set=crds.keep=false")
        if "annotations" in o["metadata"] and o["kind"] == "CustomResourceDefinition"
    ]
    assert not [o for o in render("--set=crds.enabled=false") if o["kind"] == "CustomResourceDefinition"]


def test_the_configuration_is_what_the_operator_reads() -> None:
    config = yaml.safe_load(
        find(render("--set=config.pathPrefixes.a={s3a://x/}"), "ConfigMap", "hudi-operator")["data"]["config.yaml"]
    )
    endpoint = "https://hudi-operator-etcd-0.hudi-operator-etcd.hudi-system.svc:2379"
    files = "/etc/hudi-operator/etcd"
    assert config == {
        "etcd": {
            "endpoints": [endpoint],
            "prefix": "/hudi",
            "caFile": f"{files}/ca.crt",
            "certFile": f"{files}/tls.crt",
            "keyFile": f"{files}/tls.key",
        },
        "podEtcd": {
            "endpoints": [
                f"https://hudi-operator-gateway-{i}.hudi-operator-gateway.hudi-system.svc:2379" for i in range(2)
            ],
            "caFile": "/etc/hudi-operator/pod-etcd/ca.crt",
        },
        "sparkImage": "hudi-operator/spark:dev",
        "imagePullPolicy": "IfNotPresent",
        "allowedSchemes": ["s3a", "hdfs", "gs"],
        "pathPrefixes": {"a": ["s3a://x/"]},
        "options": {"allow": []},
        "agent": {
            "memory": "512Mi",
            "javaOptions": ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
            "resources": {"requests": {"cpu": "100m", "memory": "768Mi"}, "limits": {"memory": "1536Mi"}},
        },
        "watchNamespaces": [],
        "leaderElection": {
            "enabled": True,
            "leaseName": "hudi-operator-leader",
            "leaseDurationSeconds": 10,
            "renewDeadlineSeconds": 7,
            "retryPeriodSeconds": 2,
        },
        "metricsPort": 9090,
        "probePort": 8080,
    }
    from hudi_operator.model.config import OperatorConfig

    read = OperatorConfig.from_dict(config)
    assert read.etcd.endpoints == (endpoint,)
    assert read.agent == OperatorConfig().agent


def test_external_etcd() -> None:
    objects = render(*EXTERNAL)
    assert {o["kind"] for o in objects}.isdisjoint({"Secret", "Job"})
    (gateway,) = [o for o in objects if o["kind"] == "StatefulSet"]
    (container,) = gateway["spec"]["template"]["spec"]["containers"]
    assert "-etcd-endpoints=https://a:2379,https://b:2379" in container["args"]
    assert gateway["spec"]["template"]["spec"]["volumes"][0]["secret"]["secretName"] == "gw"
    config = yaml.safe_load(find(objects, "ConfigMap", "hudi-operator")["data"]["config.yaml"])
    assert config["etcd"]["endpoints"] == ["https://a:2379", "https://b:2379"]
    assert all("hudi-operator-gateway-" in endpoint for endpoint in config["podEtcd"]["endpoints"])
    volumes = find(objects, "Deployment", "hudi-operator")["spec"]["template"]["spec"]["volumes"]
    assert [v["secret"]["secretName"] for v in volumes if "secret" in v] == ["op", "gw"]


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ("replica=2", "replica"),
        ("etcd.member=3", "member"),
        ("etcd.members=2", "/etcd/members"),
        ("config.allowedSchemes={file}", "/config/allowedSchemes/0"),
        ("config.sparkimage=x", "sparkimage"),
        ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
        ("etcd.enabled=false", "/externalEtcd/endpoints"),
        ("externalEtcd.endpoints={http://a:2379}", "/externalEtcd/endpoints/0"),
        ("etcd.quotaBackendBytes=1", "/etcd/quotaBackendBytes"),
        ("config.agent.memory=512m", "/config/agent/memory"),
    ],
)
def test_values_that_are_refused(value: str, where: str) -> None:
    done = helm("template", "x", str(CHART), "--set", value)
    assert done.returncode != 0
    assert where in done.stderr


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


def test_what_must_outlive_the_release_is_kept() -> None:
    objects = render()
    secrets = [o for o in objects if o["kind"] == "Secret"]
    assert len(secrets) == 5
    assert all(o["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for o in secrets)
    etcd = find(objects, "StatefulSet", "hudi-operator-etcd")["spec"]
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


def test_policies_can_be_left_out() -> None:
    assert not [o for o in render("--set=admission.enabled=false") if o["kind"].startswith("ValidatingAdmissionPolicy")]
    names = [
        o["metadata"]["name"]
        for o in render("--set=admission.guardPodStatus=false")
        if o["kind"] == "ValidatingAdmissionPolicy"
    ]
    assert names == ["hudi-operator-executors", "hudi-operator-evidence", "hudi-operator-attestations"]


def test_the_policies_pass_the_servers_type_check(light_cluster: Cluster) -> None:
    policies = light_cluster.get("validatingadmissionpolicies")["items"]
    assert len(policies) == 4
    for policy in policies:
        assert not policy.get("status", {}).get("typeChecking", {}).get("expressionWarnings"), policy["metadata"][
            "name"
        ]


# ---- the real helm on a real API server


def test_install_upgrade_uninstall_and_again(bare_cluster: Cluster) -> None:
    """Certificates, CRDs and tables outlive upgrades and uninstalling.

    A new release takes them over.
    """

    def certificates() -> dict[str, Any]:
        secrets = bare_cluster.get("secret", "-n", "hudi-system", "-l", "app.kubernetes.io/component=etcd")["items"]
        return {o["metadata"]["name"].removeprefix("hudi-operator-etcd-"): o["data"] for o in secrets}

    def run(verb: str, *arguments: str) -> str:
        chart = [] if verb == "uninstall" else [str(CHART)]
        # There is no kubelet that could run the hook's Job.
        done = helm(
            verb,
            "hudi-operator",
            *chart,
            "--kubeconfig",
            str(bare_cluster.kubeconfig),
            "-n",
            "hudi-system",
            "--no-hooks",
            *arguments,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "kubectl get hudi -A" in run("install", "--create-namespace")
    first = certificates()
    assert sorted(first) == ["ca", "gateway", "operator", "root", "server"]
    bare_cluster.apply(table("default"))
    run("upgrade", "--set=replicas=2")
    assert bare_cluster.get("deployment", "hudi-operator", "-n", "hudi-system")["spec"]["replicas"] == 2
    assert certificates() == first

    # A lost identity is made again, by the same CA.
    bare_cluster.kubectl("delete", "secret", "hudi-operator-etcd-gateway", "-n", "hudi-system")
    run("upgrade")
    second = certificates()
    changed = [name for name in first if second[name] != first[name]]
    assert changed == ["gateway"]
    assert second["gateway"]["ca.crt"] == first["gateway"]["ca.crt"]

    run("uninstall")
    assert certificates() == second
    assert bare_cluster.get("ht", "flights")["spec"]["path"] == "s3a://lake/flights"
    run("install")
    assert certificates() == second
    assert bare_cluster.get("ht", "flights")["spec"]["path"] == "s3a://lake/flights"


# ---- its etcd


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """etcd with the arguments and certificates of the chart.

    Only addresses and directories are others. Yields client port and certificates.
    """
    objects, directory = render(), tmp_path_factory.mktemp("etcd")
    for secret in (o for o in objects if o["kind"] == "Secret"):
        folder = directory / secret["metadata"]["name"].removeprefix("hudi-operator-etcd-")
        folder.mkdir()
        for name, value in secret["data"].items():
            (folder / name).write_bytes(base64.b64decode(value))
    client, peer, metrics = free_ports(3)
    arguments = find(objects, "StatefulSet", "hudi-operator-etcd")["spec"]["template"]["spec"]["containers"][0]["args"]
    addresses = {
        "--data-dir": f"{directory}/data",
        "--listen-client-urls": f"https://127.0.0.1:{client}",
        "--advertise-client-urls": f"https://127.0.0.1:{client}",
        "--listen-peer-urls": f"https://127.0.0.1:{peer}",
        "--initial-advertise-peer-urls": f"https://127.0.0.1:{peer}",
        "--initial-cluster": f"e0=https://127.0.0.1:{peer}",
        "--listen-metrics-urls": f"http://127.0.0.1:{metrics}",
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


def _answers(port: int) -> bool:
    """The probes of the StatefulSet."""
    return all(
        subprocess.run(["curl", "-sf", f"http://127.0.0.1:{port}{path}"], capture_output=True).returncode == 0
        for path in ("/livez", "/readyz")
    )


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


def test_the_database_has_a_quota_and_history_is_compacted(etcd: tuple[int, Path]) -> None:
    _, directory = etcd
    port = (directory / "metrics-port").read_text()
    metrics = subprocess.run(
        ["curl", "-sf", f"http://127.0.0.1:{port}/metrics"], capture_output=True, text=True, check=True
    ).stdout
    assert "etcd_server_quota_backend_bytes 1.073741824e+09" in metrics.splitlines()
    for given, quota, retention in (
        ((), 1073741824, "3600s"),
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
            here = f"hudi-operator-{server}-0.hudi-operator-{server}.hudi-system.svc"
            assert (here in alternatives) == (identity == whose)
    assert names == {
        "server": "hudi-operator-etcd",
        "operator": "hudi-operator",
        "gateway": "hudi-gateway",
        "root": "root",
    }
