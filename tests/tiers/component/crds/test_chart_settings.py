"""Values that say where and how the pods of a release run, and which objects it has: each is found
where it belongs, and nowhere else. By `helm template`, without a cluster.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from hudi_operator.etcd_upkeep import snapshot
from tests.support import ROOT, quick_yaml
from tests.tiers.component.crds.cluster import CHART, IMAGES, JsonDict, helm, render

Key = tuple[str, str]
OPERATOR: Key = ("Deployment", "hudi-operator")
IDENTITY: Key = ("Deployment", "hudi-operator-etcd-identity")
GATEWAY: Key = ("StatefulSet", "hudi-operator-gateway")
ETCD: Key = ("StatefulSet", "hudi-operator-etcd")
ALL = (OPERATOR, IDENTITY, GATEWAY, ETCD)
OWN = {OPERATOR: "", GATEWAY: "gateway.", ETCD: "etcd."}
"""Where the values of a component are."""
POD = "spec.template.spec."
CONTAINER = POD + "containers.0."
TAINT = {"key": "a", "operator": "Exists"}
ENV = {"name": "HTTPS_PROXY", "value": "http://proxy:3128"}
ZONES = {"maxSkew": 2, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}


def by_key(*values: str) -> dict[Key, JsonDict]:
    objects = render(*values)
    found = {(o["kind"], o["metadata"]["name"]): o for o in objects}
    assert len(found) == len(objects)
    return found


def at(of: Any, path: str) -> Any:
    """What is at a path such as `spec.containers.0.args`; None: nothing."""
    for part in path.split("."):
        of = of[int(part)] if isinstance(of, list) else (of or {}).get(part)
    return of


def value(name: str, of: Any) -> str:
    return f"--set-json={name}={json.dumps(of)}"


OF_EACH: dict[str, tuple[Any, dict[str, Any]]] = {
    "nodeSelector": ({"pool": "a"}, {POD + "nodeSelector": {"pool": "a"}}),
    "tolerations": ([TAINT], {POD + "tolerations": [TAINT]}),
    "affinity": (
        {"nodeAffinity": {}},
        {POD + "affinity": {"nodeAffinity": {}}, POD + "topologySpreadConstraints": None},
    ),
    "podSecurityContext": (
        {"fsGroup": 7},
        {POD + "securityContext.fsGroup": 7, POD + "securityContext.runAsNonRoot": True},
    ),
    "containerSecurityContext": (
        {"readOnlyRootFilesystem": False, "runAsUser": 0},
        {
            CONTAINER + "securityContext.readOnlyRootFilesystem": False,
            CONTAINER + "securityContext.runAsUser": 0,
            CONTAINER + "securityContext.capabilities": {"drop": ["ALL"]},
        },
    ),
    "podLabels": (
        {"team": "a"},
        {"spec.template.metadata.labels.team": "a", "spec.selector.matchLabels.team": None},
    ),
    "podAnnotations": ({"note": "a"}, {"spec.template.metadata.annotations.note": "a"}),
    "resources": ({"requests": {"cpu": "1"}}, {CONTAINER + "resources.requests.cpu": "1"}),
}
"""Values that each component has, and what they are in the component's object."""


@pytest.mark.parametrize("component", OWN)
def test_values_of_a_component(component: Key) -> None:
    given = [value(OWN[component] + name, what) for name, (what, _) in OF_EACH.items()]
    before, after = by_key(), by_key(*given)
    for name, (_, expected) in OF_EACH.items():
        assert {path: at(after[component], path) for path in expected} == expected, name
    for other in {*ALL} - {component, *([IDENTITY] if component == OPERATOR else [])}:
        assert after[other] == before[other], other


OF_ALL: dict[str, tuple[Any, dict[str, Any]]] = {
    "commonLabels": (
        {"team": "a"},
        {
            "metadata.labels.team": "a",
            "spec.template.metadata.labels.team": "a",
            "spec.selector.matchLabels.team": None,
        },
    ),
    "commonAnnotations": ({"owner": "a"}, {"metadata.annotations.owner": "a"}),
    "priorityClassName": ("high", {POD + "priorityClassName": "high"}),
    "runtimeClassName": ("kata", {POD + "runtimeClassName": "kata"}),
    "imagePullSecrets": ([{"name": "pull"}], {POD + "imagePullSecrets": [{"name": "pull"}]}),
}
"""Values of all pods of the release."""


def test_values_of_all_pods() -> None:
    objects = by_key(*(value(name, what) for name, (what, _) in OF_ALL.items()))
    for key in ALL:
        for name, (_, expected) in OF_ALL.items():
            assert {path: at(objects[key], path) for path in expected} == expected, (key, name)


def test_old_replica_sets_are_kept_in_deployments() -> None:
    """F544: a StatefulSet of an older API server refuses another number, and the upgrade fails."""
    objects = by_key("--set=revisionHistoryLimit=2")
    found = {key: at(objects[key], "spec.revisionHistoryLimit") for key in ALL}
    assert found == {(kind, name): 2 if kind == "Deployment" else None for kind, name in ALL}
    assert 2 in found.values()


def test_a_components_own_class_comes_first() -> None:
    objects = by_key("--set=priorityClassName=low,etcd.priorityClassName=high")
    assert [at(objects[key], POD + "priorityClassName") for key in (ETCD, GATEWAY)] == ["high", "low"]


EVERY_OBJECT = (
    "--set=monitoring.scrape.kind=PodMonitor,monitoring.rules.enabled=true,monitoring.dashboards.enabled=true",
    "--set=etcd.tls.certManager.enabled=true,etcd.members=3",
)


def test_common_labels_and_annotations_are_on_every_object() -> None:
    values = value("commonLabels", {"team": "a"}), value("commonAnnotations", {"owner": "b"})
    for (kind, name), found in by_key(*EVERY_OBJECT, *values).items():
        if kind != "CustomResourceDefinition":
            assert found["metadata"]["labels"]["team"] == "a", (kind, name)
            assert found["metadata"]["annotations"]["owner"] == "b", (kind, name)
    without = by_key(*EVERY_OBJECT)
    assert all("team" not in found["metadata"].get("labels", {}) for found in without.values())


def test_labels_and_annotations_of_an_object_come_before_the_common_ones() -> None:
    objects = by_key(
        *EVERY_OBJECT,
        value("commonLabels", {"team": "a"}),
        value("commonAnnotations", {"owner": "b"}),
        value("monitoring.rules.labels", {"team": "c"}),
        value("serviceAccount.annotations", {"owner": "d"}),
        value("metrics.service.annotations", {"more": "e"}),
    )
    assert objects["PrometheusRule", "hudi-operator"]["metadata"]["labels"]["team"] == "c"
    assert objects["ServiceAccount", "hudi-operator"]["metadata"]["annotations"] == {"owner": "d"}
    metrics = objects["Service", "hudi-operator-metrics"]["metadata"]["annotations"]
    assert metrics == {"owner": "b", "more": "e"}


@pytest.mark.parametrize("component", OWN)
def test_a_constraint_of_spread_means_the_components_pods(component: Key) -> None:
    name = OWN[component] + "topologySpreadConstraints"
    objects = by_key(value(name, [ZONES, {**ZONES, "labelSelector": {"matchLabels": {"a": "b"}}}]))
    own = objects[component]["spec"]["selector"]
    assert at(objects[component], POD + "topologySpreadConstraints") == [
        {**ZONES, "labelSelector": own},
        {**ZONES, "labelSelector": {"matchLabels": {"a": "b"}}},
    ]
    assert at(objects[component], POD + "affinity") is None


def test_pods_are_spread_by_default() -> None:
    objects = by_key()
    for key in (OPERATOR, GATEWAY):
        assert at(objects[key], POD + "topologySpreadConstraints") == [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": objects[key]["spec"]["selector"],
            }
        ]
    apart = at(objects[ETCD], POD + "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution")
    assert [term["podAffinityTerm"]["labelSelector"] for term in apart] == [objects[ETCD]["spec"]["selector"]]


@pytest.mark.parametrize("component", OWN)
def test_evictions_are_bounded(component: Key) -> None:
    """By a budget of each component, which knows its pods and no others."""
    key = ("PodDisruptionBudget", component[1])
    assert by_key()[key]["spec"] == {"maxUnavailable": 1, "selector": by_key()[component]["spec"]["selector"]}
    given = {other: 0 if other == component else 2 for other in OWN}
    one = by_key(*(f"--set={OWN[other]}podDisruptionBudget.maxUnavailable={most}" for other, most in given.items()))
    assert one[key]["spec"]["maxUnavailable"] == 0
    without = by_key(
        *(f"--set={OWN[other]}podDisruptionBudget.enabled={str(other != component).lower()}" for other in OWN)
    )
    assert {name for kind, name in without if kind == "PodDisruptionBudget"} == {o[1] for o in OWN} - {component[1]}


def test_no_budget_without_its_etcd() -> None:
    external = (
        "--set=etcd.enabled=false,externalEtcd.operatorSecret=op,externalEtcd.gatewaySecret=gw",
        "--set=externalEtcd.endpoints={https://a:2379}",
    )
    budgets = {name for kind, name in by_key(*external) if kind == "PodDisruptionBudget"}
    assert budgets == {"hudi-operator", "hudi-operator-gateway"}


@pytest.mark.parametrize("component", OWN)
def test_more_variables_volumes_and_arguments(component: Key) -> None:
    own = OWN[component]
    volume, mount = {"name": "more", "emptyDir": {"sizeLimit": "1Mi"}}, {"name": "more", "mountPath": "/more"}
    values = [value(own + "extraEnv", [ENV]), value(own + "extraVolumes", [volume])]
    values.append(value(own + "extraVolumeMounts", [mount]))
    if own:
        values.append(value(own + "extraArgs", ["--more=1"]))
    before, after = by_key(), by_key(*values)
    for path, last in (
        (CONTAINER + "env", ENV),
        (POD + "volumes", volume),
        (CONTAINER + "volumeMounts", mount),
        *(((CONTAINER + "args", "--more=1"),) if own else ()),
    ):
        assert at(after[component], path) == [*at(before[component], path), last]


def test_both_processes_of_the_operators_image_get_its_variables() -> None:
    objects = by_key(value("extraEnv", [ENV]), "--set=log.level=DEBUG,log.format=json")
    for key in (OPERATOR, IDENTITY):
        found = {one["name"]: one.get("value") for one in at(objects[key], CONTAINER + "env")}
        assert found["HTTPS_PROXY"] == ENV["value"]
        assert (found["HUDI_OPERATOR_LOG_LEVEL"], found["HUDI_OPERATOR_LOG_FORMAT"]) == ("DEBUG", "json")


def test_what_etcd_logs() -> None:
    assert "--log-level=warn" in at(by_key()[ETCD], CONTAINER + "args")
    assert "--log-level=error" in at(by_key("--set=etcd.logLevel=error")[ETCD], CONTAINER + "args")


def test_where_the_process_that_issues_certificates_runs() -> None:
    """Where the operator may, but not beside or away from the operator's pods."""
    objects = by_key(
        value("nodeSelector", {"pool": "a"}), value("tolerations", [TAINT]), value("affinity", {"podAffinity": {}})
    )
    assert at(objects[IDENTITY], POD + "nodeSelector") == {"pool": "a"}
    assert at(objects[IDENTITY], POD + "tolerations") == [TAINT]
    assert at(objects[IDENTITY], POD + "affinity") is None
    large = by_key(value("resources", {"limits": {"cpu": "4"}}))
    assert at(large[IDENTITY], CONTAINER + "resources") == at(by_key()[IDENTITY], CONTAINER + "resources")


def test_accounts_and_roles_can_be_those_of_somebody_else() -> None:
    rights = {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    everything = by_key()
    accounts = {key for key in everything if key[0] == "ServiceAccount"}
    assert len(accounts) == 3
    without = by_key("--set=serviceAccount.create=false,serviceAccount.name=theirs")
    assert {*everything} - {*without} == accounts
    assert at(without[OPERATOR], POD + "serviceAccountName") == "theirs"
    without = by_key("--set=rbac.create=false")
    assert {*everything} - {*without} == {key for key in everything if key[0] in rights}
    watched = by_key("--set=rbac.create=false,config.watchNamespaces={a}")
    assert not [key for key in watched if key[0] in rights]


def test_roles_for_people_can_be_left_out_of_kubernetes_own() -> None:
    def aggregated(*values: str) -> set[str]:
        found = {name: o for (kind, name), o in by_key(*values).items() if kind == "ClusterRole"}
        return {name for name, o in found.items() if any("aggregate-to" in label for label in o["metadata"]["labels"])}

    assert aggregated() == {f"hudi-operator-{role}" for role in ("view", "edit", "use", "admin")}
    assert aggregated("--set=rbac.aggregate=false") == set()


def test_more_objects_are_templates() -> None:
    more = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "{{ include `hudi-operator.fullname` . }}-more"},
        "data": {"where": "{{ .Release.Namespace }}"},
    }
    found = by_key(value("extraObjects", [more]))["ConfigMap", "hudi-operator-more"]
    assert found["data"] == {"where": "hudi-system"}


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ('commonLabels={"app.kubernetes.io/name": "a"}', "/commonLabels"),
        ('podLabels={"app.kubernetes.io/managed-by": "hudi-operator"}', "/podLabels"),
        ('gateway.podLabels={"hudioperator.io/table": "a"}', "/gateway/podLabels"),
        ('commonLabels={"rbac.authorization.k8s.io/aggregate-to-view": "true"}', "/commonLabels"),
        ('extraEnv=[{"name": "HUDI_OPERATOR_CONFIG", "value": "/x"}]', "/extraEnv/0/name"),
        ('gateway.extraEnv=[{"name": "NODE_NAME", "value": "x"}]', "/gateway/extraEnv/0/name"),
        ('etcd.extraVolumes=[{"name": "data", "emptyDir": {}}]', "/etcd/extraVolumes/0/name"),
        ('extraVolumeMounts=[{"name": "a", "mountPath": "b"}]', "/extraVolumeMounts/0/mountPath"),
        ('etcd.extraArgs=["log-level=debug"]', "/etcd/extraArgs/0"),
        ('topologySpreadConstraints=[{"topologyKey": "a"}]', "/topologySpreadConstraints/0"),
        ('extraObjects=[{"kind": "ConfigMap"}]', "/extraObjects/0"),
        ('extraObjects=["a"]', "/extraObjects/0"),
        ('podDisruptionBudget={"minAvailable": 1}', "/podDisruptionBudget"),
        ('log={"level": "info"}', "/log/level"),
        ('etcd.logLevel="WARN"', "/etcd/logLevel"),
        ("revisionHistoryLimit=-1", "/revisionHistoryLimit"),
        ("etcd.images={}", "/etcd"),
    ],
)
def test_values_that_are_refused(given: str, where: str) -> None:
    done = helm("template", "x", str(CHART), IMAGES, f"--set-json={given}")
    assert done.returncode != 0
    assert where in done.stderr


@pytest.mark.parametrize("section", ["rbac", "log", "podDisruptionBudget", "etcd.podDisruptionBudget", "gateway.image"])
def test_values_of_an_older_chart_are_refused_with_what_to_do(section: str) -> None:
    """As `helm upgrade --reuse-values` gives them: templates read a field of nothing."""
    done = helm("template", "x", str(CHART), IMAGES, f"--set={section}=null")
    assert done.returncode != 0
    assert f"the values have no {section}: with --reuse-values they are those of an older chart" in done.stderr
    assert "--reset-then-reuse-values" in done.stderr
    assert "nil pointer" not in done.stderr


def test_the_chart_brings_its_icon() -> None:
    """No server is known to have it."""
    icon = quick_yaml.load((CHART / "Chart.yaml").read_text())["icon"]
    kind, _, content = icon.partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(content) == (ROOT / "charts/icon.svg").read_bytes().rstrip(b"\n")


BACKUP = "--set=etcd.backup.enabled=true"
JOB = "spec.jobTemplate.spec.template.spec."


def test_backups_are_off_until_they_are_asked_for() -> None:
    assert not [key for key in by_key() if "backup" in key[1]]
    more = by_key(BACKUP).keys() - by_key().keys()
    name = "hudi-operator-etcd-backup"
    assert more == {("PersistentVolumeClaim", name), ("CronJob", name), ("NetworkPolicy", name)}


def test_a_backup_is_looked_into_before_an_older_one_is_deleted() -> None:
    """And uninstalling keeps them all."""
    objects = by_key(BACKUP, "--set=etcd.backup.keep=5", value("priorityClassName", "high"))
    job = objects["CronJob", "hudi-operator-etcd-backup"]
    pod = at(job, JOB.rstrip("."))
    steps = [*pod["initContainers"], *pod["containers"]]
    assert [one["name"] for one in steps] == ["backup", "verify", "prune"]
    assert steps[0]["command"][-2:] == ["backup", "--folder=/backup"]
    assert steps[1]["command"][1:4] == ["snapshot", "status", f"/backup/{snapshot.NEWEST}"]
    assert steps[2]["command"][-3:] == ["prune", "--folder=/backup", "--keep=5"]
    assert [at(one, "image").rpartition("/")[2].partition(":")[0] for one in steps] == ["operator", "etcd", "operator"]
    mounted = {one["name"]: [mount["name"] for mount in one["volumeMounts"]] for one in steps}
    assert mounted == {"backup": ["backup", "root"], "verify": ["backup"], "prune": ["backup"]}
    assert at(pod, "volumes.1.secret.secretName") == "hudi-operator-etcd-root"
    assert (pod["automountServiceAccountToken"], pod["priorityClassName"]) == (False, "high")
    assert at(job, "spec.concurrencyPolicy") == "Forbid"
    claim = objects["PersistentVolumeClaim", "hudi-operator-etcd-backup"]
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    own = by_key(BACKUP, "--set=etcd.backup.existingClaim=mine")
    assert ("PersistentVolumeClaim", "hudi-operator-etcd-backup") not in own
    assert at(own["CronJob", "hudi-operator-etcd-backup"], JOB + "volumes.0.persistentVolumeClaim.claimName") == "mine"


def test_the_pod_of_a_backup_reaches_etcd_and_nothing_else() -> None:
    objects = by_key(BACKUP, "--set=networkPolicy.egress.enabled=true")
    labels = at(objects["CronJob", "hudi-operator-etcd-backup"], "spec.jobTemplate.spec.template.metadata.labels")
    own = objects["NetworkPolicy", "hudi-operator-etcd-backup"]["spec"]
    assert own["podSelector"]["matchLabels"].items() <= labels.items()
    assert (own["policyTypes"], own.get("ingress")) == (["Ingress", "Egress"], None)
    assert [[port["port"] for port in rule["ports"]] for rule in own["egress"]] == [[53, 53], [2379]]
    let_in = objects["NetworkPolicy", "hudi-operator-etcd"]["spec"]["ingress"][0]["from"]
    assert {"podSelector": own["podSelector"]} in let_in


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ((BACKUP, "--set=etcd.backup.keep=1"), "/etcd/backup/keep"),
        ((BACKUP, "--set=etcd.backup.size=1"), "/etcd/backup/size"),
        (
            (
                BACKUP,
                "--set=etcd.enabled=false,externalEtcd.operatorSecret=a,externalEtcd.gatewaySecret=b",
                "--set=externalEtcd.endpoints={https://a:2379}",
            ),
            "etcd.backup.enabled needs etcd.enabled",
        ),
    ],
)
def test_a_backup_that_cannot_be_made_is_refused(values: tuple[str, ...], why: str) -> None:
    done = helm("template", "hudi-operator", str(CHART), IMAGES, *values)
    assert done.returncode != 0
    assert why in done.stderr


def test_a_member_that_joins_begins_no_cluster_and_has_no_clients_yet() -> None:
    def seen(*values: str) -> tuple[list[str], int, int]:
        objects = by_key(*values)
        pod = at(objects[IDENTITY], "spec.template.spec.containers.0.env")
        endpoints = next(one["value"] for one in pod if one["name"] == "HUDI_OPERATOR_ETCD_ENDPOINTS").split(",")
        args = at(objects[ETCD], CONTAINER + "args")
        state = [one for one in args if one.startswith("--initial-cluster-state=")]
        cluster = next(one for one in args if one.startswith("--initial-cluster="))
        return state, len(endpoints), cluster.count("https://")

    assert seen() == (["--initial-cluster-state=new"], 1, 1)
    assert seen("--set=etcd.members=2,etcd.joins=true") == (["--initial-cluster-state=existing"], 1, 2)
    assert seen("--set=etcd.members=3,etcd.joins=true") == (["--initial-cluster-state=existing"], 2, 3)
    assert seen("--set=etcd.members=3") == (["--initial-cluster-state=new"], 3, 3)
    for values, why in (("members=2", "etcd.members 2 without"), ("members=1,etcd.joins=true", "nothing joins")):
        done = helm("template", "hudi-operator", str(CHART), IMAGES, f"--set=etcd.{values}")
        assert done.returncode != 0
        assert why in done.stderr
