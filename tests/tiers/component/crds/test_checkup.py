"""The objects of `helm test`: an API server that enforces the Pod Security Standard *restricted*
takes them, NetworkPolicies let the pod in, and nothing of it is part of an installation.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from hudi_operator.checkup import main
from tests.support import quick_yaml
from tests.tiers.component.crds.cluster import CHART, IMAGES, Cluster, JsonDict, helm, render

TEST = "templates/tests/checkup.yaml"


def hooks(*values: str, namespace: str = "hudi-system") -> dict[str, JsonDict]:
    """The objects of the test, by kind and name."""
    done = helm("template", "hudi-operator", str(CHART), "-n", namespace, f"--show-only={TEST}", IMAGES, *values)
    assert done.returncode == 0, done.stderr
    return {f"{o['kind']}/{o['metadata']['name']}": o for o in quick_yaml.load_all(done.stdout) if o}


POD, SERVICE = "Pod/hudi-operator-test", "Service/hudi-operator-test"
LETS_IN, OWN = "NetworkPolicy/hudi-operator-tested", "NetworkPolicy/hudi-operator-test"


def test_all_of_it_is_there_for_the_test_alone() -> None:
    objects = hooks()
    assert set(objects) == {POD, SERVICE, LETS_IN, OWN}
    for name, found in objects.items():
        annotations = found["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "test"
        assert annotations["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
        assert annotations.get("helm.sh/hook-weight", "0") == ("0" if name == POD else "-1"), "before the pod"
    names = {f"{o['kind']}/{o['metadata']['name']}" for o in render()}
    assert not names & set(objects)


@pytest.mark.parametrize("values", [(), ("--set=userIds=Platform",), ("--set=networkPolicy.egress.enabled=true",)])
def test_a_restricted_namespace_takes_it(light_cluster: Cluster, namespace: str, values: tuple[str, ...]) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    light_cluster.kubectl("label", "namespace", namespace, "--overwrite", label)
    refused = light_cluster.run("run", "x", "--image=none", "-n", namespace, "--dry-run=server")
    assert "violates PodSecurity" in refused.stdout
    for found in hooks(*values, namespace=namespace).values():
        command = ["create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-"]
        stored = json.loads(light_cluster.kubectl(*command, stdin=quick_yaml.dump(found)))
        assert stored["metadata"]["namespace"] == namespace
    pod = hooks(*values)[POD]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["restartPolicy"] == "Never"


def labels(workload: JsonDict) -> dict[str, str]:
    return dict(workload["spec"]["template"]["metadata"]["labels"])


def selects(selector: JsonDict, pod: dict[str, str]) -> bool:
    """As Kubernetes reads a selector."""
    some = all(pod.get(one["key"]) in one["values"] for one in selector.get("matchExpressions", ()))
    return some and selector.get("matchLabels", {}).items() <= pod.items()


@pytest.mark.parametrize("ports", [8080, 8081])
def test_the_pod_reaches_what_it_asks(ports: int) -> None:
    """Each URL is of a Service of the release, and the policies open its port, both ways."""
    values = (f"--set=config.probePort={ports},networkPolicy.egress.enabled=true", "--set=gateway.replicas=3")
    objects, installed = hooks(*values), render(*values)
    pod = objects[POD]
    workloads = {
        o["metadata"]["name"]: o
        for o in installed
        if o["kind"] in ("Deployment", "StatefulSet")
        and o["metadata"]["name"] in ("hudi-operator", "hudi-operator-gateway")
    }
    services = {o["metadata"]["name"]: o for o in [*installed, objects[SERVICE]] if o["kind"] == "Service"}
    (container,) = pod["spec"]["containers"]
    urls = [urlsplit(one) for one in container["args"] if not one.startswith("--")]
    asked = []
    for url in urls:
        *pods, service, space, suffix = str(url.hostname).split(".")
        assert (space, suffix) == ("hudi-system", "svc")
        spec = services[service]["spec"]
        assert url.port in [port["port"] for port in spec["ports"]]
        (workload,) = [
            name
            for name, o in workloads.items()
            if spec["selector"].items() - {("statefulset.kubernetes.io/pod-name", service)} <= labels(o).items()
        ]
        assert not pods or workloads[workload]["spec"]["serviceName"] == service
        lets_in = objects[LETS_IN]["spec"]
        assert selects(lets_in["podSelector"], labels(workloads[workload]))
        (rule,) = lets_in["ingress"]
        assert url.port in [port["port"] for port in rule["ports"]]
        assert all(selects(peer["podSelector"], pod["metadata"]["labels"]) for peer in rule["from"])
        own = objects[OWN]["spec"]
        assert selects(own["podSelector"], pod["metadata"]["labels"])
        assert any(selects(peer["podSelector"], labels(workloads[workload])) for peer in own["egress"][1]["to"])
        asked.append((workload, url.scheme, ".".join([*pods, service])))
    gateways = [f"hudi-operator-gateway-{number}" for number in range(3)]
    assert asked == [
        ("hudi-operator", "http", "hudi-operator-test"),
        *(("hudi-operator-gateway", "http", f"{name}.hudi-operator-gateway") for name in gateways),
        *(("hudi-operator-gateway", "https", name) for name in gateways),
    ]
    known = quick_yaml.load(next(o for o in installed if o["kind"] == "ConfigMap")["data"]["config.yaml"])
    assert [f"https://{url.netloc}" for url in urls if url.scheme == "https"] == known["podEtcd"]["endpoints"]
    assert not [o for o in hooks(*values, "--set=networkPolicy.enabled=false") if o.startswith("NetworkPolicy")]


def test_its_command_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    """The module takes the arguments of the pod, and finds nobody here."""
    (container,) = hooks()[POD]["spec"]["containers"]
    assert container["command"] == ["python", "-m", "hudi_operator.checkup"]
    assert main([*container["args"], "--seconds=0"]) == 1
    assert capsys.readouterr().out.count("FAILED  ") == 5


def test_it_sees_of_the_gateways_certificate_what_pods_see() -> None:
    def mounted(spec: JsonDict, volume: str) -> Any:
        return next(one["secret"] for one in spec["volumes"] if one["name"] == volume)

    operator = next(o for o in render() if o["kind"] == "Deployment" and o["metadata"]["name"] == "hudi-operator")
    spec = hooks()[POD]["spec"]
    assert [volume["name"] for volume in spec["volumes"]] == ["pod-etcd"]
    assert mounted(spec, "pod-etcd") == mounted(operator["spec"]["template"]["spec"], "pod-etcd")
