"""The history server in the chart: off by default, without any right, with a route if there is one.

By `helm template`, and against the API server and the CRD of the Gateway API.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support import quick_yaml
from tests.tiers.component.crds.cluster import CHART, IMAGES, Cluster, JsonDict, helm, module_folder, render

GATEWAY_API = "sigs.k8s.io/gateway-api@v1.3.0"
GATEWAY_API_SUM = "h1:q6okN+/UKDATola4JY7zXzx40WO4VISk7i9DIfOvr9M="
ON = "--set=historyServer.enabled=true,historyServer.logDirectory=s3a://spark-events/logs"
INGRESS = "--set=historyServer.ingress.enabled=true,historyServer.ingress.host=history.example.com"
TLS = "--set=historyServer.ingress.tlsSecret=page,historyServer.ingress.className=nginx"
ROUTE = "--set=historyServer.httpRoute.enabled=true,historyServer.httpRoute.parentRefs[0].name=public"
HOST = "--set=historyServer.httpRoute.hostnames={history.example.com}"
NAME = "hudi-operator-history"


def of_history(*values: str) -> dict[str, JsonDict]:
    """What the history server adds to a release, by kind."""
    added = [one for one in render(ON, *values) if one not in render(*values)]
    found = {one["kind"]: one for one in added}
    assert len(found) == len(added)
    assert {one["metadata"]["name"] for one in added} == {NAME}
    return found


def settings(*values: str) -> dict[str, str]:
    """Its Spark settings."""
    text: str = of_history(*values)["ConfigMap"]["data"]["spark-defaults.conf"]
    pairs = [line.partition("=") for line in text.splitlines()]
    return {name: value for name, _, value in pairs}


def test_it_has_no_rights_and_no_token() -> None:
    assert not [one for one in render() if "history" in one["metadata"]["name"]], "off by default"
    assert set(of_history()) == {"ConfigMap", "Deployment", "Service", "NetworkPolicy"}, "no role"
    spec = of_history()["Deployment"]["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert [volume["name"] for volume in spec["volumes"]] == ["config", "tmp"], "no Secret without a name"
    assert spec["securityContext"]["runAsNonRoot"] is True
    security = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert spec["containers"][0]["securityContext"] == security
    policy = of_history()["NetworkPolicy"]["spec"]
    assert "ingress" not in policy, "nobody until historyFrom names them"


def test_keys_are_files_and_never_settings() -> None:
    keyed = of_history("--set=historyServer.storage.secret=lake")
    spec = keyed["Deployment"]["spec"]["template"]["spec"]
    assert {"name": "keys", "mountPath": "/etc/hudi/s3", "readOnly": True} in spec["containers"][0]["volumeMounts"]
    assert "env" not in spec["containers"][0]
    provider = "spark.hadoop.fs.s3a.aws.credentials.provider"
    assert settings("--set=historyServer.storage.secret=lake")[provider] == "io.hudioperator.S3Credentials"
    assert provider not in settings()


def test_values_become_settings_and_a_change_a_new_pod() -> None:
    options = "--set-string=historyServer.storage.options.fs\\.s3a\\.endpoint=https://s3.example.com"
    made = settings(options, "--set=historyServer.retentionDays=30,historyServer.updateSeconds=5")
    assert made["spark.hadoop.fs.s3a.endpoint"] == "https://s3.example.com"
    assert made["spark.history.fs.logDirectory"] == "s3a://spark-events/logs"
    assert (made["spark.history.fs.cleaner.enabled"], made["spark.history.fs.cleaner.maxAge"]) == ("true", "30d")
    assert settings()["spark.history.fs.cleaner.enabled"] == "false"

    def checksum(*values: str) -> str:
        found: str = of_history(*values)["Deployment"]["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        return found

    assert checksum() != checksum(options)


@pytest.mark.parametrize(
    ("values", "where"),
    [
        (["--set=historyServer.enabled=true"], "historyServer.logDirectory: required"),
        ([ON, "--set=historyServer.logDirectory=file:///tmp"], "/historyServer/logDirectory"),
        ([ON, "--set=historyServer.ingress.enabled=true"], "historyServer.ingress.host: required"),
        ([ON, "--set=historyServer.httpRoute.enabled=true"], "historyServer.httpRoute.parentRefs: required"),
        (
            [ON, r"--set-string=historyServer.storage.options.fs\.s3a\.secret\.key=x"],
            "options: fs.s3a.secret.key: keys",
        ),
        (
            [ON, r"--set-string=historyServer.storage.options.fs\.s3a\.access\.key=x"],
            "options: fs.s3a.access.key: keys",
        ),
        ([ON, r"--set-string=historyServer.storage.options.spark\.x=1"], "invalid propertyName 'spark.x'"),
        ([ON, "--set-string=historyServer.storage.options.fs\\.x=a\nspark.y=1"], "/historyServer/storage/options"),
    ],
)
def test_values_that_are_refused(values: list[str], where: str) -> None:
    done = helm("template", "x", str(CHART), IMAGES, *values)
    assert done.returncode != 0
    assert where in done.stderr


@pytest.fixture(scope="module")
def with_routes(light_cluster: Cluster) -> Iterator[Cluster]:
    """The CRD of HTTPRoutes, from the Gateway API's Go module, by its checksum."""
    folder = module_folder(GATEWAY_API, GATEWAY_API_SUM) / "config" / "crd" / "standard"
    crd = (folder / "gateway.networking.k8s.io_httproutes.yaml").read_text()
    light_cluster.kubectl("apply", "--server-side", "-f", "-", stdin=crd)
    name = "crd/httproutes.gateway.networking.k8s.io"
    light_cluster.kubectl("wait", "--for=condition=Established", name, "--timeout=60s")
    yield light_cluster
    light_cluster.kubectl("delete", name)


@pytest.mark.parametrize("values", [(), (INGRESS,), (INGRESS, TLS), (ROUTE,), (ROUTE, HOST)])
def test_the_api_server_accepts_what_is_rendered(with_routes: Cluster, values: tuple[str, ...]) -> None:
    """Strictly: an unknown field is an error."""
    made = of_history(*values)
    assert ("Ingress" in made, "HTTPRoute" in made) == (INGRESS in values, ROUTE in values)
    for obj in made.values():
        meta = {key: value for key, value in obj["metadata"].items() if key != "namespace"}
        command = ["-n", "default", "create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-"]
        stored = json.loads(with_routes.kubectl(*command, stdin=quick_yaml.dump({**obj, "metadata": meta})))
        if obj["kind"] == "Ingress":
            (rule,) = stored["spec"]["rules"]
            assert rule["host"] == "history.example.com"
            backend = rule["http"]["paths"][0]["backend"]["service"]
            assert backend == {"name": NAME, "port": {"name": made["Service"]["spec"]["ports"][0]["name"]}}
            assert ("tls" in stored["spec"]) == (TLS in values)
        if obj["kind"] == "HTTPRoute":
            (to,) = stored["spec"]["rules"][0]["backendRefs"]
            assert (to["name"], to["port"]) == (NAME, made["Service"]["spec"]["ports"][0]["port"])
