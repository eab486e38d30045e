"""The console in the chart: off by default, and without any right. By `helm template`."""

from __future__ import annotations

import pytest

from hudi_console import __main__, server
from tests.tiers.component.crds.cluster import CHART, IMAGES, JsonDict, helm, render

ON = "--set=console.enabled=true"
NAME = "hudi-operator-console"


def of_the_console(*values: str) -> dict[str, JsonDict]:
    """What the console adds to a release, by kind."""
    added = [one for one in render(ON, *values) if one not in render(*values)]
    found = {one["kind"]: one for one in added}
    assert len(found) == len(added)
    assert {one["metadata"]["name"] for one in added} == {NAME}
    return found


def pod(*values: str) -> JsonDict:
    found: JsonDict = of_the_console(*values)["Deployment"]["spec"]["template"]["spec"]
    return found


def test_it_has_no_rights_and_no_token() -> None:
    assert not [one for one in render() if NAME in one["metadata"]["name"]], "off by default"
    assert set(of_the_console()) == {"Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget"}, "no role"
    spec = pod()
    assert spec["automountServiceAccountToken"] is False
    assert [volume for volume in spec["volumes"] if "configMap" not in volume] == [], "no Secret, no projected token"
    assert spec["volumes"][0]["configMap"]["name"] == "kube-root-ca.crt"


def test_its_pod_is_restricted() -> None:
    spec = pod()
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    security = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert container["securityContext"] == security
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert container["image"].startswith("registry.example.com/data/console:")
    assert pod("--set=userIds=Platform")["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_its_arguments_are_those_of_the_program() -> None:
    arguments = pod("--set=config.watchNamespaces={a,b},console.tlsSecret=page")["containers"][0]["args"]
    given = __main__.parser().parse_args([*arguments, "--api-server=https://x"])
    assert (given.namespaces, given.max_streams, given.port) == ("a,b", server.MOST_STREAMS, 8080)
    assert (given.tls_cert, given.tls_key) == ("/etc/hudi-console/tls/tls.crt", "/etc/hudi-console/tls/tls.key")
    assert __main__.parser().parse_args(pod()["containers"][0]["args"]).namespaces == ""


@pytest.mark.parametrize(("secret", "scheme", "port"), [("", "http", 80), ("page", "https", 443)])
def test_its_service_and_probes(secret: str, scheme: str, port: int) -> None:
    found = of_the_console(f"--set=console.tlsSecret={secret}")
    (service,) = found["Service"]["spec"]["ports"]
    assert service == {"name": scheme, "port": port, "targetPort": "page"}
    spec = found["Deployment"]["spec"]["template"]
    assert found["Service"]["spec"]["selector"].items() <= spec["metadata"]["labels"].items()
    for probe in ("livenessProbe", "readinessProbe"):
        asked = spec["spec"]["containers"][0][probe]["httpGet"]
        assert (asked["port"], asked.get("scheme", "HTTP")) == ("page", scheme.upper())


def test_who_reaches_it_and_whom_it_reaches() -> None:
    policy = of_the_console()["NetworkPolicy"]["spec"]
    assert (policy["policyTypes"], "ingress" in policy) == (["Ingress"], False), "nobody who is not named"
    values = ("--set=networkPolicy.egress.enabled=true", '--set-json=networkPolicy.consoleFrom=[{"podSelector": {}}]')
    policy = of_the_console(*values)["NetworkPolicy"]["spec"]
    assert policy["ingress"] == [{"ports": [{"port": 8080, "protocol": "TCP"}], "from": [{"podSelector": {}}]}]
    assert [sorted({one["port"] for one in rule["ports"]}) for rule in policy["egress"]] == [[53], [443, 6443]]
    assert "NetworkPolicy" not in of_the_console("--set=networkPolicy.enabled=false")


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ("console.maxStreams=0", "/console/maxStreams"),
        ("console.token=x", "/console"),
        ("console.extraArgs={port}", "/console/extraArgs/0"),
        ("console.image.repository=hudi-operator/console", "/console/image/repository"),
        ("networkPolicy.consoleFrom[0].pods=x", "/networkPolicy/consoleFrom/0"),
    ],
)
def test_values_that_are_refused(value: str, where: str) -> None:
    done = helm("template", "x", str(CHART), IMAGES, ON, "--set", value)
    assert done.returncode != 0
    assert where in done.stderr
