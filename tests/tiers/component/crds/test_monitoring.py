"""What the chart renders for Prometheus' operator, against that operator's own CRDs; and the
commands of the runbooks, against a real API server.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT, promtool, quick_yaml
from tests.tiers.component.crds.cluster import BIN, CHART, IMAGES, Cluster, JsonDict, helm, render, table, writer

PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
PROMETHEUS_OPERATOR_SUM = "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="
KINDS = ("podmonitors", "servicemonitors", "prometheusrules")
PODS = "--set=monitoring.scrape.kind=PodMonitor,monitoring.rules.enabled=true"
SERVICES = "--set=monitoring.scrape.kind=ServiceMonitor"
GUARDED = "--set=metrics.tokenSecret=token,metrics.tlsSecret=served,metrics.clientCertificates=true"
TRUSTED = "--set=monitoring.scrape.tlsSecret=trusted"
RUNBOOKS = sorted((ROOT / "docs" / "operate" / "runbooks").glob("Hudi*.md"))


def monitoring(*values: str) -> list[JsonDict]:
    """Objects for Prometheus' operator."""
    return [o for o in render(*values) if o["apiVersion"] == "monitoring.coreos.com/v1"]


def endpoints(monitor: JsonDict) -> list[JsonDict]:
    found: list[JsonDict] = monitor["spec"].get("podMetricsEndpoints") or monitor["spec"]["endpoints"]
    return found


def endpoint(monitor: JsonDict) -> JsonDict:
    (found,) = endpoints(monitor)
    return found


# ---- what is rendered


def test_nothing_by_default() -> None:
    assert monitoring() == []


@pytest.mark.parametrize("kind", ["PodMonitor", "ServiceMonitor"])
def test_monitors_find_every_process_that_serves_metrics(kind: str) -> None:
    values = f"--set=monitoring.scrape.kind={kind},monitoring.scrape.labels.release=prometheus"
    monitors = monitoring(values)
    assert {(o["kind"], o["metadata"]["name"]) for o in monitors} == {
        (kind, name) for name in ("hudi-operator", "hudi-operator-gateway", "hudi-operator-etcd")
    }
    objects = render(values)
    pods = [o["spec"]["template"] for o in objects if o["kind"] in ("Deployment", "StatefulSet")]
    services = [o for o in objects if o["kind"] == "Service"]
    for monitor in monitors:
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        (pod,) = [p for p in pods if wanted <= p["metadata"]["labels"].items()]
        there = {port["name"] for container in pod["spec"]["containers"] for port in container["ports"]}
        assert endpoint(monitor)["port" if kind == "PodMonitor" else "targetPort"] in there
        assert len([s for s in services if wanted <= s["metadata"]["labels"].items()]) == 1
        assert endpoint(monitor)["honorLabels"] is True, "the namespace of a table's series is the table's"
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert {o["metadata"]["name"] for o in monitoring(values, "--set=etcd.enabled=false", *EXTERNAL)} == {
        "hudi-operator",
        "hudi-operator-gateway",
    }


EXTERNAL = (
    "--set=externalEtcd.endpoints={https://a:2379}",
    "--set=externalEtcd.operatorSecret=op,externalEtcd.gatewaySecret=gw",
)


def test_tokens_and_certificates_are_taken_over() -> None:
    guarded = [endpoint(o) for o in monitoring(PODS, GUARDED, TRUSTED) if "Monitor" in o["kind"]]
    assert len(guarded) == 3
    for found in guarded:
        assert found["scheme"] == "https"
        assert found["authorization"]["credentials"] == {"name": "token", "key": "token"}
        assert found["tlsConfig"] == {
            "ca": {"secret": {"name": "trusted", "key": "ca.crt"}},
            "cert": {"secret": {"name": "trusted", "key": "tls.crt"}},
            "keySecret": {"name": "trusted", "key": "tls.key"},
            "serverName": "hudi-operator-metrics.hudi-system.svc",
        }


@pytest.mark.parametrize("kind", ["PodMonitor", "ServiceMonitor"])
def test_each_member_of_etcd_is_read_once_at_the_first_gateway(kind: str) -> None:
    """etcd's own port of metrics asks nobody who he is, so no NetworkPolicy opens it."""
    (found,) = [
        o
        for o in monitoring(f"--set=monitoring.scrape.kind={kind},etcd.members=3")
        if o["metadata"]["name"] == "hudi-operator-etcd"
    ]
    assert found["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"] == "gateway"
    told = [(e["path"], {r.get("targetLabel", r["action"]): r for r in e["relabelings"]}) for e in endpoints(found)]
    assert [path for path, _ in told] == [f"/etcd/{i}/metrics" for i in range(3)]
    for i, (_, labels) in enumerate(told):
        assert labels["job"]["replacement"] == "hudi-system/hudi-operator-etcd"
        assert labels["instance"]["replacement"] == labels["pod"]["replacement"] == f"hudi-operator-etcd-{i}"
        assert labels["keep"]["regex"] == "hudi-operator-gateway-0"
        assert labels["keep"]["sourceLabels"] == ["__meta_kubernetes_pod_name"]


@pytest.mark.parametrize(
    ("values", "where"),
    [
        (["--set=monitoring.scrape.kind=Probe"], "/monitoring/scrape/kind"),
        (["--set=monitoring.scrape.interval=30s"], "interval"),
        ([SERVICES, "--set=metrics.service.enabled=false"], "monitoring.scrape.kind: ServiceMonitor needs"),
        ([PODS, GUARDED], "monitoring.scrape.tlsSecret: required with metrics.tlsSecret (served)"),
        ([PODS, "--set=monitoring.rules.disabled={HudiTableStaled}"], 'disabled: "HudiTableStaled" is no alert'),
        ([PODS, "--set=monitoring.rules.runbookBaseURL=git.example.com"], "/monitoring/rules/runbookBaseURL"),
    ],
)
def test_values_that_are_refused(values: list[str], where: str) -> None:
    done = helm("template", "x", str(CHART), IMAGES, *values)
    assert done.returncode != 0
    assert where in done.stderr


def rules(*values: str) -> dict[str, JsonDict]:
    """Alerts of the rendered PrometheusRule, by name."""
    (found,) = [o for o in monitoring(*values) if o["kind"] == "PrometheusRule"]
    return {rule["alert"]: rule for group in found["spec"]["groups"] for rule in group["rules"]}


def test_alerts_ask_for_the_jobs_of_the_monitors(tmp_path: Path) -> None:
    promtool.need()
    jobs = {
        o["metadata"]["name"]: endpoint(o)["relabelings"][0]["replacement"]
        for o in monitoring(PODS)
        if o["kind"] == "PodMonitor"
    }
    assert jobs == {name: f"hudi-system/{name}" for name in jobs}
    alerts = rules(PODS)
    asked = {
        value
        for alert in alerts.values()
        for selector in promtool.selectors(alert["expr"])
        for label, _, value in selector.matchers
        if label == "job"
    }
    assert asked == {jobs["hudi-operator"], jobs["hudi-operator-gateway"]}
    file = tmp_path / "rules.yaml"
    (rendered,) = [o for o in monitoring(PODS) if o["kind"] == "PrometheusRule"]
    file.write_text(quick_yaml.dump(rendered["spec"]))
    done = promtool.run("check", "rules", "--lint-fatal", str(file))
    assert done.returncode == 0, done.stdout
    assert f"{len(alerts)} rules found" in done.stdout


def test_alerts_are_left_out_labelled_and_given_a_url() -> None:
    source = quick_yaml.load((CHART / "files" / "alerts.yaml").read_text())
    names = {rule["alert"] for group in source["groups"] for rule in group["rules"]}
    assert rules(PODS).keys() == names
    assert rules(PODS)["HudiTableStalled"]["annotations"]["runbook_url"].startswith("docs/operate/runbooks/")
    changed = rules(
        PODS,
        "--set=monitoring.rules.disabled={HudiServiceLate,HudiGatewayDown,HudiGatewayRefusing}",
        "--set=monitoring.rules.alertLabels.team=lake,monitoring.rules.alertLabels.severity=page",
        "--set=monitoring.rules.runbookBaseURL=https://git.example.com/x/",
    )
    assert names - changed.keys() == {"HudiServiceLate", "HudiGatewayDown", "HudiGatewayRefusing"}
    assert changed["HudiTableStalled"]["labels"] == {"severity": "critical", "team": "lake"}
    url = "https://git.example.com/x/docs/operate/runbooks/HudiTableStalled.md"
    assert changed["HudiTableStalled"]["annotations"]["runbook_url"] == url


# ---- against the CRDs of Prometheus' operator


@pytest.fixture(scope="module")
def with_crds(light_cluster: Cluster) -> Cluster:
    """The CRDs from the operator's Go module, by the module's checksum."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", PROMETHEUS_OPERATOR], cwd="/", capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    module = json.loads(done.stdout)
    assert module["Sum"] == PROMETHEUS_OPERATOR_SUM
    folder = Path(module["Dir"]) / "example" / "prometheus-operator-crd"
    crds = [(folder / f"monitoring.coreos.com_{kind}.yaml").read_text() for kind in KINDS]
    # Their descriptions are too long for the annotation of a client-side apply.
    light_cluster.kubectl("apply", "--server-side", "-f", "-", stdin="\n---\n".join(crds))
    names = [f"crd/{kind}.monitoring.coreos.com" for kind in KINDS]
    light_cluster.kubectl("wait", "--for=condition=Established", *names, "--timeout=60s")
    return light_cluster


@pytest.mark.parametrize("values", [(PODS,), (SERVICES,), (PODS, GUARDED, TRUSTED), (SERVICES, GUARDED, TRUSTED)])
def test_the_crds_accept_what_is_rendered(with_crds: Cluster, values: tuple[str, ...]) -> None:
    """Strictly: an unknown field is an error. And they store what was sent: nothing drifts."""
    ours = monitoring(*values)
    assert len(ours) == (4 if PODS in values else 3)
    command = ["create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-"]
    for obj in ours:
        stored = json.loads(with_crds.kubectl(*command, stdin=quick_yaml.dump(obj)))
        assert stored["spec"] == obj["spec"]
        wrong = {**obj, "spec": {**obj["spec"], "intervals": "30s"}}
        assert "intervals" in with_crds.run(*command, stdin=quick_yaml.dump(wrong)).stdout


# ---- runbooks


def commands(page: Path) -> list[str]:
    """Commands of a runbook, one a line."""
    return re.findall(r"^    (kubectl .*)$", page.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def installed(light_cluster: Cluster) -> Cluster:
    """The chart's workloads without kubelets, and a table with a writer: what commands ask for."""
    light_cluster.kubectl("create", "namespace", "hudi-operator")
    wanted = ("Deployment", "StatefulSet", "Service", "NetworkPolicy", "ServiceAccount")
    objects = [o for o in render(namespace="hudi-operator") if o["kind"] in wanted]
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "hudi-operator-leader", "namespace": "hudi-operator"},
    }
    secret: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "hudi-operator-etcd-server", "namespace": "hudi-operator"},
    }
    light_cluster.apply(*objects, lease, secret)
    light_cluster.kubectl("create", "namespace", "runbooks")
    light_cluster.apply(table("runbooks", "flights"), writer("runbooks", "backfill"))
    return light_cluster


NAMES = {
    "NAMESPACE": "runbooks",
    "TABLE": "flights",
    "WRITER": "backfill",
    "AGENT": "hudi-agent-x",
    "POD": "backfill-1",
}
ON_NODES = ("logs", "port-forward", "top")
"""Answered by kubelets, or by the metrics server, which are not here."""
NOT_HERE = re.compile(r"not found|[Nn]o resources found|Metrics API not available|timed out waiting|pod is not running")


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)
def test_commands_of_runbooks_work(installed: Cluster, page: Path) -> None:
    found = commands(page)
    assert found
    for command in found:
        text = re.sub(r"\b(?:NAMESPACE|TABLE|WRITER|AGENT|POD)\b", lambda m: NAMES[m[0]], command)
        assert not re.search(r"\b[A-Z]{4,}\b", re.sub(r"'.*'", "", text)), f"a word that nobody fills in: {text}"
        _, *arguments = shlex.split(text.partition(" | ")[0])
        verb = next(a for i, a in enumerate(arguments) if a != "-n" and (i == 0 or arguments[i - 1] != "-n"))
        shell = [str(BIN / "kubectl"), "--kubeconfig", str(installed.kubeconfig), "--request-timeout=20s", *arguments]
        if verb == "patch":
            shell.append("--dry-run=server")
        if verb in ON_NODES and verb != "top":
            shell.append("--pod-running-timeout=1s")
        done = subprocess.run(shell, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        if verb in ON_NODES:
            assert done.returncode == 0 or NOT_HERE.search(done.stdout), (command, done.stdout)
        else:
            assert done.returncode == 0, (command, done.stdout)


# ---- dashboards


def test_dashboards_are_handed_to_the_sidecar_as_they_are() -> None:
    def made(*values: str) -> dict[str, JsonDict]:
        maps = [o for o in render(*values) if o["kind"] == "ConfigMap" and "-dashboard-" in o["metadata"]["name"]]
        return {o["metadata"]["name"]: o for o in maps}

    assert made() == {}
    found = made(
        "--set=monitoring.dashboards.enabled=true,monitoring.dashboards.labels.own=x",
        "--set-string=monitoring.dashboards.annotations.grafana_folder=Lake",
    )
    folder = CHART / "files" / "dashboards"
    assert found.keys() == {f"hudi-operator-dashboard-{path.stem}" for path in folder.glob("*.json")}
    for name, obj in found.items():
        assert {"grafana_dashboard": "1", "own": "x"}.items() <= obj["metadata"]["labels"].items()
        assert obj["metadata"]["annotations"] == {"grafana_folder": "Lake"}
        page = name.removeprefix("hudi-operator-dashboard-")
        assert obj["data"] == {f"hudi-{page}.json": (folder / f"{page}.json").read_text().rstrip("\n")}
