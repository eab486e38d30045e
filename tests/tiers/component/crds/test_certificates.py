"""Where the certificates of the chart's etcd come from; that GitOps can live with them."""

from __future__ import annotations

import base64
import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hudi_operator.adapters import authority
from hudi_operator.adapters.authority import Request
from tests.support import quick_yaml
from tests.support.ports import free_ports
from tests.tiers.component.crds.certificates import Played, options
from tests.tiers.component.crds.cluster import (
    BIN,
    CHART,
    IMAGES,
    Cluster,
    JsonDict,
    helm,
    module_folder,
    render,
    table,
    wait_until,
    writer,
)

CERT_MANAGER = "github.com/cert-manager/cert-manager@v1.21.2"
CERT_MANAGER_SUM = "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68="
OWN_AUTHORITY = "--set=etcd.tls.certManager.enabled=true"
ISSUER, GIVEN = "etcd.tls.certManager.issuerRef", "etcd.tls.existingSecrets"
VALUES = {
    "default": [],
    "three members": ["--set=etcd.members=3,networkPolicy.enabled=true"],
    "cert-manager": [OWN_AUTHORITY],
    "an issuer": [OWN_AUTHORITY, f"--set={ISSUER}.name=lake,{ISSUER}.kind=ClusterIssuer"],
    "given": [f"--set={GIVEN}.server=a,{GIVEN}.operator=b,{GIVEN}.gateway=c,{GIVEN}.root=d"],
    "external": [
        "--set=etcd.enabled=false,externalEtcd.operatorSecret=op,externalEtcd.gatewaySecret=gw",
        "--set=externalEtcd.endpoints={https://a:2379}",
    ],
}
SYSTEM = "hudi-system"


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_what_is_rendered_twice_is_the_same(values: list[str]) -> None:
    """Byte by byte: each difference would be a change that a tool for GitOps applies."""
    first, second = (helm("template", "hudi-operator", str(CHART), "-n", SYSTEM, IMAGES, *values) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_no_key_is_rendered_and_nothing_looks_at_the_cluster(values: list[str]) -> None:
    assert not [o for o in render(*values) if o["kind"] == "Secret"]
    # Hooks run outside of what a tool for GitOps compares.
    assert not [o for o in render(*values) if "helm.sh/hook" in (o["metadata"].get("annotations") or {})]
    templates = "".join(path.read_text() for path in (CHART / "templates").rglob("*.*"))
    for function in ("lookup ", "genCA", "genSignedCert", "rand", "now ", "uuidv4"):
        assert f"{{{{ {function}" not in templates
        assert f":= {function}" not in templates


def test_given_secrets_are_mounted() -> None:
    objects = {o["metadata"]["name"]: o for o in render(*VALUES["given"]) if o["kind"] in ("Deployment", "StatefulSet")}

    def mounted(name: str) -> list[str]:
        volumes = objects[name]["spec"]["template"]["spec"]["volumes"]
        return [volume["secret"]["secretName"] for volume in volumes if "secret" in volume]

    assert mounted("hudi-operator-etcd") == ["a"]
    assert mounted("hudi-operator") == ["b", "c"]
    chosen = options(*VALUES["given"])
    assert (chosen.issues, chosen.root_secret) == (False, "d")
    role = next(
        o for o in render(*VALUES["given"]) if o["kind"] == "Role" and o["metadata"]["name"].endswith("identity")
    )
    assert role["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["d"], "verbs": ["get"]}]


def test_two_ways_at_once_are_refused() -> None:
    done = helm("template", "x", str(CHART), IMAGES, *VALUES["given"], OWN_AUTHORITY)
    assert done.returncode != 0
    assert "/etcd/tls" in done.stderr


# ---- cert-manager


@pytest.fixture(scope="module")
def cert_manager_crds() -> list[JsonDict]:
    """cert-manager's own CRDs, from its Go module, by the module's checksum."""
    module = module_folder(CERT_MANAGER, CERT_MANAGER_SUM)
    crds = [quick_yaml.load(path.read_text()) for path in (module / "deploy" / "crds").glob("*.yaml")]
    return [crd for crd in crds if crd["kind"] == "CustomResourceDefinition"]


@pytest.fixture(scope="module")
def cert_manager(light_cluster: Cluster, cert_manager_crds: list[JsonDict]) -> Cluster:
    # Their descriptions are too long for the annotation of a client-side apply.
    light_cluster.kubectl("apply", "--server-side", "-f", "-", stdin=quick_yaml.dump_all(cert_manager_crds))
    light_cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    return light_cluster


@pytest.mark.parametrize("values", ["cert-manager", "an issuer"])
def test_cert_managers_schema_accepts_what_is_rendered(cert_manager: Cluster, values: str) -> None:
    """Strictly: an unknown field is an error. And it stores what was sent: nothing drifts."""
    ours = [o for o in render(*VALUES[values]) if o["apiVersion"] == "cert-manager.io/v1"]
    expected = {"cert-manager": ["Certificate"] * 5 + ["Issuer"] * 2, "an issuer": ["Certificate"] * 4}
    assert sorted(o["kind"] for o in ours) == expected[values]
    wrong = {**ours[-1], "spec": {**ours[-1]["spec"], "durations": "1h0m0s"}}
    command = ["create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-"]
    assert "durations" in cert_manager.run(*command, stdin=quick_yaml.dump(wrong)).stdout
    for obj in ours:
        stored = json.loads(cert_manager.kubectl(*command, stdin=quick_yaml.dump(obj)))
        assert stored["spec"] == obj["spec"]
    usages = {o["metadata"]["name"]: o["spec"].get("usages") for o in ours if o["kind"] == "Certificate"}
    servers = {name for name, names in usages.items() if "server auth" in (names or ())}
    assert servers == {"hudi-operator-etcd-server", "hudi-operator-etcd-gateway"}


@pytest.mark.parametrize("way", ["cert-manager", "given"])
def test_certificates_of_a_played_issuer_serve_etcd(cert_manager: Cluster, tmp_path: Path, way: str) -> None:
    """cert-manager's controller is not here: the test issues what the Certificates ask for.

    What they ask for is then enough for etcd, its users and roles, in Secrets of the chart's names
    and in those that the values name.
    """
    objects = render(*VALUES[way])
    certificates = {
        o["metadata"]["name"].removeprefix("hudi-operator-etcd-"): o["spec"]
        for o in render(*VALUES["cert-manager"])
        if o["kind"] == "Certificate"
    }
    given = {"server": "a", "operator": "b", "gateway": "c", "root": "d"} if way == "given" else {}
    now = datetime.now(tz=UTC)
    ca = authority.make_authority(certificates.pop("ca")["commonName"], seconds=86400, now=now)
    for identity, spec in certificates.items():
        request = Request(
            spec["commonName"],
            int(spec["duration"].partition("h")[0]) * 3600,
            tuple(spec.get("dnsNames", ())),
            tuple(spec.get("ipAddresses", ())),
        )
        pair = authority.issue(ca, request, now=now)
        data = {"ca.crt": ca.certificate, "tls.crt": pair.certificate, "tls.key": pair.key}
        (tmp_path / identity).mkdir()
        for name, value in data.items():
            (tmp_path / identity / name).write_bytes(value)
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": given.get(identity, spec["secretName"]), "namespace": SYSTEM},
            "type": "kubernetes.io/tls",
            "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
        }
        cert_manager.apply(secret)
    account = [o for o in objects if o["kind"] in ("ServiceAccount", "Role", "RoleBinding")]
    cert_manager.apply(*account)
    client, peer = free_ports(2)
    endpoint = f"https://127.0.0.1:{client}"
    tls = tmp_path / "server"
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            [
                BIN / "etcd", f"--data-dir={tmp_path}/data", f"--listen-client-urls={endpoint}", "--unsafe-no-fsync",
                f"--advertise-client-urls={endpoint}", f"--listen-peer-urls=http://127.0.0.1:{peer}",
                "--client-cert-auth", f"--trusted-ca-file={tls}/ca.crt", f"--cert-file={tls}/tls.crt",
                f"--key-file={tls}/tls.key",
            ],
            stdout=log, stderr=log,
        ) as etcd,
    ):  # fmt: skip
        try:
            with Played(cert_manager, options(*VALUES[way], endpoint=endpoint)) as played:
                wait_until(lambda: played.turn() == "", 60)
            done = subprocess.run(
                [
                    BIN / "etcdctl", f"--endpoints={endpoint}", f"--cacert={tmp_path}/gateway/ca.crt",
                    f"--cert={tmp_path}/gateway/tls.crt", f"--key={tmp_path}/gateway/tls.key",
                    "put", "/hudi/control/x", "{}",
                ],
                capture_output=True, text=True, timeout=30,
            )  # fmt: skip
            assert "permission denied" in done.stderr, "the certificate is accepted, as the user hudi-gateway"
        finally:
            etcd.kill()


# ---- GitOps


def test_applied_twice_by_another_manager_nothing_changes(bare_cluster: Cluster) -> None:
    """What Argo CD and Flux do: render, apply on the server's side, compare, prune.

    Meanwhile the certificates are made, and made again.
    """
    tool = ["--server-side", "--field-manager=gitops", "-f", "-"]
    rendered = helm("template", "hudi-operator", str(CHART), "-n", SYSTEM, IMAGES, "--skip-tests").stdout
    bare_cluster.kubectl("create", "namespace", SYSTEM)
    crds = [o for o in render() if o["kind"] == "CustomResourceDefinition"]
    bare_cluster.kubectl("apply", *tool, stdin=quick_yaml.dump_all(crds))
    bare_cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    bare_cluster.kubectl("apply", *tool, stdin=rendered)

    def states() -> dict[str, tuple[int | None, str]]:
        """Generation and uid of each object that was rendered."""
        found = bare_cluster.get("-f", "-", stdin=rendered)["items"]
        return {
            f"{o['kind']}/{o['metadata']['name']}": (o["metadata"].get("generation"), o["metadata"]["uid"])
            for o in found
        }

    with Played(bare_cluster, options()) as played:
        played.turn()
    before = states()
    pods = [o["metadata"]["uid"] for o in bare_cluster.get("pods", "-n", SYSTEM)["items"]]
    assert len(pods) >= 3, "etcd, the operator, the identities"
    # No --force-conflicts: nobody else owns what the chart says.
    bare_cluster.kubectl("apply", *tool, stdin=rendered)
    difference = bare_cluster.run("diff", *tool, stdin=rendered)
    assert (difference.returncode, difference.stdout) == (0, "")
    other = rendered.replace("replicas: 1\n", "replicas: 2\n")
    assert bare_cluster.run("diff", *tool, stdin=other).returncode == 1
    with Played(bare_cluster, options()) as played:
        played.turn(datetime.now(tz=UTC).replace(year=datetime.now(tz=UTC).year + 1))
    bare_cluster.kubectl("apply", *tool, stdin=rendered)
    assert states() == before
    assert [o["metadata"]["uid"] for o in bare_cluster.get("pods", "-n", SYSTEM)["items"]] == pods, "no restart"

    # What is pruned: what bears the release's label and was not rendered. Certificates do not.
    names = {(o["kind"], o["metadata"]["name"]) for o in render()}
    for kind in ("secrets", "configmaps", "serviceaccounts", "services", "deployments", "statefulsets"):
        for obj in bare_cluster.get(kind, "-n", SYSTEM, "-l", "app.kubernetes.io/instance=hudi-operator")["items"]:
            assert (obj["kind"], obj["metadata"]["name"]) in names
    assert len(bare_cluster.get("secrets", "-n", SYSTEM)["items"]) == 5
    # docs/operate/uninstall.md, Purge.
    bare_cluster.kubectl("delete", "secret", "-n", SYSTEM, "-l", "hudioperator.io/etcd")
    assert not bare_cluster.get("secrets", "-n", SYSTEM)["items"]


def test_tables_and_writers_applied_twice_are_the_same(bare_cluster: Cluster) -> None:
    """Defaults of the CRDs and the operator's finalizer are no drift."""
    tool = ["--server-side", "--field-manager=gitops", "-f", "-"]
    crds = [o for o in render() if o["kind"] == "CustomResourceDefinition"]
    bare_cluster.kubectl("apply", *tool, stdin=quick_yaml.dump_all(crds))
    bare_cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    wanted = quick_yaml.dump_all([table("default"), writer("default")])
    bare_cluster.kubectl("apply", *tool, stdin=wanted)
    # As the operator does it (KubernetesStore.patch_finalizers, replace_status).
    for kind in ("huditable/flights", "hudiwriter/backfill"):
        patch = [{"op": "add", "path": "/metadata/finalizers", "value": ["hudioperator.io/settle"]}]
        name = "--field-manager=hudi-operator"
        bare_cluster.kubectl("patch", kind, "--type=json", name, "-p", json.dumps(patch))
        status = {"status": {"conditions": []}}
        bare_cluster.kubectl("patch", kind, "--type=merge", "--subresource=status", name, "-p", json.dumps(status))
    bare_cluster.kubectl("apply", *tool, stdin=wanted)
    difference = bare_cluster.run("diff", *tool, stdin=wanted)
    assert (difference.returncode, difference.stdout) == (0, "")
    assert bare_cluster.get("huditable", "flights")["metadata"]["finalizers"] == ["hudioperator.io/settle"]
