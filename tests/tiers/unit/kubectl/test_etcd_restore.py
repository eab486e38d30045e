"""`kubectl hudi etcd restore`: what it refuses before it has touched anything, and what it runs.

The commands themselves are run on real members in `component/operator/test_etcd_restored.py`.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from hudi_kubectl import restoring
from hudi_kubectl.changing import How
from hudi_kubectl.cluster import Failed
from hudi_kubectl.release import Etcd
from hudi_kubectl.restoring import BUMP, Wanted
from hudi_kubectl.screen import Screen
from tests.tiers.unit.kubectl.played import Played

JsonDict = dict[str, Any]
YES = How(yes=True)


def labels(component: str) -> JsonDict:
    return {"app.kubernetes.io/component": component, "app.kubernetes.io/instance": "hudi-operator"}


def etcd(members: int = 3) -> JsonDict:
    """As the chart renders it."""
    name, domain = "hudi-operator-etcd", "hudi-operator-etcd.ns.svc"
    cluster = ",".join(f"{name}-{n}=https://{name}-{n}.{domain}:2380" for n in range(members))
    args = [
        "--name=$(POD_NAME)",
        "--data-dir=/var/lib/etcd/data",
        f"--initial-advertise-peer-urls=https://$(POD_NAME).{domain}:2380",
        f"--initial-cluster={cluster}",
        f"--initial-cluster-token={name}.ns",
    ]
    container = {
        "name": "etcd",
        "image": "r/etcd:1",
        "args": args,
        "securityContext": {"readOnlyRootFilesystem": True},
        "volumeMounts": [{"name": "data", "mountPath": "/var/lib/etcd"}, {"name": "tls", "mountPath": "/tls"}],
    }
    spec = {"containers": [container], "securityContext": {"fsGroup": 65532}, "nodeSelector": {"pool": "a"}}
    return workload("StatefulSet", name, "etcd", volumeClaimTemplates=[{}], template={"spec": spec})


def workload(kind: str, name: str, component: str, **spec: Any) -> JsonDict:
    return {"kind": kind, "metadata": {"name": name, "labels": labels(component)}, "spec": {"replicas": 0, **spec}}


def identity() -> JsonDict:
    template = {"spec": {"containers": [{"name": "etcd-identity", "image": "r/operator:1"}]}}
    return workload("Deployment", "hudi-operator-etcd-identity", "etcd-identity", template=template)


class Release(Played):
    """Everything of it is scaled to 0; a pod that is made ends at once, as ``phase`` says."""

    def __init__(self, *more: JsonDict, members: int = 3, phase: str = "Succeeded") -> None:
        super().__init__()
        self.all = [
            etcd(members),
            identity(),
            workload("Deployment", "hudi-operator", "operator"),
            workload("StatefulSet", "hudi-operator-gateway", "gateway"),
            *more,
        ]
        self.phase, self.made, self.deleted = phase, list[JsonDict](), list[str]()

    def objects(self, kind: str, *, everywhere: bool = False, selector: str = "") -> list[JsonDict]:
        wanted = dict(one.split("=") for one in selector.split(","))
        kinds = {"statefulsets.apps": "StatefulSet", "deployments.apps": "Deployment", "pods": "Pod"}
        return [
            copy.deepcopy(one)
            for one in self.all
            if one["kind"] == kinds[kind] and wanted.items() <= one["metadata"]["labels"].items()
        ]

    def create(self, what: JsonDict, *, dry_run: str = "none") -> JsonDict:
        self.made.append(copy.deepcopy(what))
        return what

    def get(self, kind: str, name: str) -> JsonDict:
        assert name == self.made[-1]["metadata"]["name"]
        return {"status": {"phase": self.phase}}

    def logs(self, pod: str, *flags: str) -> str:
        return "restoring\nexpected sha256 a, got b\n"

    def delete(self, kind: str, name: str) -> None:
        self.deleted.append(name)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "_EVERY_SECONDS", 0.0)


def backup(count: int = 3) -> Wanted:
    """One of the cluster that begins with so many of the members."""
    cluster = Etcd(etcd(), {}).cluster_id(count)
    return Wanted("hudi-operator-etcd-backup", f"etcd-{cluster}-20260101T000000Z-r7.db")


def test_each_member_gets_its_files_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    release = Release()
    assert restoring.restore(release, Screen(), backup(), YES) == 0
    assert [one["metadata"]["name"] for one in release.made] == release.deleted
    assert release.deleted == [f"hudi-operator-etcd-{n}-restore" for n in range(3)]
    for number, pod in enumerate(release.made):
        spec, member = pod["spec"], f"hudi-operator-etcd-{number}"
        assert [one["name"] for one in (*spec["initContainers"], *spec["containers"])] == ["set-aside", "restore"]
        assert spec["initContainers"][0]["image"] == "r/operator:1"
        assert spec["initContainers"][0]["command"][-1] == "--folder=/var/lib/etcd/data"
        command = spec["containers"][0]["command"]
        assert command[:4] == ["/usr/local/bin/etcdutl", "snapshot", "restore", f"/backup/{backup().file}"]
        assert f"--name={member}" in command
        assert f"--initial-advertise-peer-urls=https://{member}.hudi-operator-etcd.ns.svc:2380" in command
        assert command[-2:] == [f"--bump-revision={BUMP}", "--mark-compacted"]
        assert (spec["volumes"][0]["persistentVolumeClaim"]["claimName"], spec["nodeSelector"]) == (
            f"data-{member}",
            {"pool": "a"},
        )
        assert spec["volumes"][1]["persistentVolumeClaim"] == {"claimName": backup().claim, "readOnly": True}
    said = capsys.readouterr().out
    for step in ("--replicas=3", "every HudiTable is Frozen", "the gateway", "kubectl hudi unfreeze TABLE"):
        assert step in said


def test_a_cluster_that_has_grown_begins_with_its_first_member(capsys: pytest.CaptureFixture[str]) -> None:
    """Its id is that of the members with which it was made. The others' old data stays aside."""
    release = Release()
    assert restoring.restore(release, Screen(), backup(1), YES) == 0
    steps = [
        [one["name"] for one in (*pod["spec"]["initContainers"], *pod["spec"]["containers"])] for pod in release.made
    ]
    assert steps == [["set-aside", "restore"], ["set-aside"], ["set-aside"]]
    command = release.made[0]["spec"]["containers"][0]["command"]
    assert (
        "--initial-cluster=hudi-operator-etcd-0=https://hudi-operator-etcd-0.hudi-operator-etcd.ns.svc:2380" in command
    )
    assert "--replicas=1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (workload("Deployment", "o", "operator") | {"spec": {"replicas": 2}}, "deployments o has 2 replicas"),
        (workload("Deployment", "o", "operator") | {"spec": {}}, "deployments o has 1 replicas"),
        (workload("StatefulSet", "g", "gateway") | {"spec": {"replicas": 1}}, "statefulsets g has 1 replicas"),
        (workload("Pod", "p", "gateway"), "pod p is still there"),
        (workload("Pod", "p", "etcd"), "pod p is still there"),
        (workload("Pod", "p", "etcd-identity"), "pod p is still there"),
    ],
)
def test_nothing_is_touched_while_anything_may_reach_etcd(more: JsonDict, why: str) -> None:
    release = Release(more)
    with pytest.raises(Failed, match=why):
        restoring.restore(release, Screen(), backup(), YES)
    assert not release.made


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (Wanted("c", "etcd-abc-20260101T000000Z-r7.db"), "it is of cluster abc, and these members would be [0-9a-f]+"),
        (Wanted("c", "mine.db"), "--another-cluster restores it nevertheless"),
        (Wanted("", "mine.db"), "--claim CLAIM and --from FILE"),
        (Wanted("c", "../mine.db"), "--claim CLAIM and --from FILE"),
    ],
)
def test_what_no_table_would_know_is_refused(wanted: Wanted, why: str) -> None:
    release = Release()
    with pytest.raises(Failed, match=why):
        restoring.restore(release, Screen(), wanted, YES)
    assert not release.made


def test_another_cluster_is_restored_on_request() -> None:
    release = Release()
    assert restoring.restore(release, Screen(as_json=True), Wanted("c", "mine.db", another=True), YES) == 0
    assert len(release.made) == 3


def test_nobody_is_taken_by_surprise() -> None:
    release = Release()
    with pytest.raises(Failed, match=r"Every table will be frozen .*--yes"):
        restoring.restore(release, Screen(), backup(), How())
    assert not release.made


def test_a_step_that_fails_says_why_and_stops() -> None:
    release = Release(phase="Failed")
    with pytest.raises(Failed, match="has failed, and is kept: expected sha256 a, got b"):
        restoring.restore(release, Screen(), backup(), YES)
    assert (len(release.made), release.deleted) == (1, [])


def test_a_dry_run_prints_the_pods(capsys: pytest.CaptureFixture[str]) -> None:
    release = Release()
    assert restoring.restore(release, Screen(), backup(), How("client")) == 0
    assert len(json.loads(capsys.readouterr().out)) == 3
    assert not release.made
