"""The Job of `kubectl hudi audit`, and that nothing is left of it."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from hudi_kubectl import __main__ as plugin
from hudi_kubectl import auditing
from hudi_kubectl.auditing import Wanted
from hudi_kubectl.cluster import Failed
from hudi_kubectl.objects import Table
from hudi_kubectl.screen import Screen
from hudi_operator.api.spec import TableSpec
from hudi_operator.manifests import pods
from hudi_operator.model.config import OperatorConfig, PodEtcdConfig
from tests.support import ROOT
from tests.tiers.unit.kubectl.played import Played

JsonDict = dict[str, Any]
FLIGHTS = ROOT / "examples" / "flights"
IMAGE = "localhost/hudi-operator/spark:dev"


def example() -> JsonDict:
    found: JsonDict = yaml.safe_load((FLIGHTS / "table.yaml").read_text())
    found["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    found["status"] = {"agent": "hudi-agent-0"}
    return found


def agent(raw: JsonDict) -> JsonDict:
    """Its agent's pod, as the operator makes it."""
    endpoints = ("https://hudi-operator-gateway-0.hudi-operator.svc:2379",)
    config = OperatorConfig(spark_image=IMAGE, pod_etcd=PodEtcdConfig(endpoints=endpoints))
    made = pods.agent_pod(TableSpec.from_object(raw), "hudi-agent-0", 1, config)
    made["metadata"] |= {"creationTimestamp": "2026-03-01T12:00:00Z"}
    return made


def audited(raw: JsonDict, pod: JsonDict | None, **wanted: Any) -> JsonDict:
    return auditing.job(Table(raw), pod, Wanted(**wanted), "audit-flights-1")


def container(job: JsonDict) -> JsonDict:
    found: JsonDict = job["spec"]["template"]["spec"]["containers"][0]
    return found


def by_name(entries: list[JsonDict]) -> dict[str, JsonDict]:
    return {one["name"]: one for one in entries}


def test_the_job_is_that_of_the_example() -> None:
    """Which the demo runs."""
    job = audited(example(), agent(example()))
    known: JsonDict = yaml.safe_load((FLIGHTS / "audit.yaml").read_text())
    mine, theirs = container(job), container(known)
    assert mine["image"] == theirs["image"] == IMAGE
    assert sorted(mine["args"]) == sorted([*theirs["args"], "--conf=spark.driver.memory=1024m"])
    assert by_name(theirs["env"]).items() <= by_name(mine["env"]).items()
    assert set(by_name(mine["env"])) - set(by_name(theirs["env"])) == {"HOME", "AWS_SESSION_TOKEN"}
    assert mine["securityContext"] == theirs["securityContext"]
    assert by_name(theirs["volumeMounts"]) == by_name(mine["volumeMounts"])
    of, like = job["spec"]["template"], known["spec"]["template"]
    assert of["metadata"]["labels"] == like["metadata"]["labels"]
    sources = by_name(of["spec"]["volumes"])["etcd"]["projected"]["sources"]
    assert sources == by_name(like["spec"]["volumes"])["etcd"]["projected"]["sources"]
    for field in ("restartPolicy", "automountServiceAccountToken", "enableServiceLinks"):
        assert of["spec"][field] == like["spec"][field]
    assert job["spec"]["backoffLimit"] == known["spec"]["backoffLimit"] == 0


def test_it_has_the_access_of_the_table() -> None:
    raw = example()
    raw["spec"]["storage"] |= {"serviceAccountName": "lake", "options": {"b": "2", "a": "1"}}
    raw["spec"]["storage"]["secretRefs"] += [{"name": "ca", "as": "Files"}]
    raw["spec"] |= {"image": "registry.example.com/mine:1", "imagePullSecrets": [{"name": "pull"}]}
    job = audited(raw, agent(example()), memory="6Gi", timeout=60, arguments=("--only", "rows"))
    spec = job["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == "lake"
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert container(job)["image"] == "registry.example.com/mine:1"
    assert container(job)["args"] == [
        "audit", "s3a://lake/flights", "--option=a=1", "--option=b=2", "--conf=spark.driver.memory=3072m",
        "--only", "rows",
    ]  # fmt: skip
    assert container(job)["envFrom"] == [{"prefix": "TAILNUM_", "secretRef": {"name": "tailnum-key"}}]
    assert by_name(container(job)["volumeMounts"])["secret-2"]["mountPath"] == "/etc/hudi/secrets/ca"
    assert container(job)["resources"]["limits"] == {"memory": "6Gi"}
    assert job["spec"]["activeDeadlineSeconds"] == 60
    assert job["spec"]["ttlSecondsAfterFinished"] == auditing.KEPT_SECONDS


def test_without_a_pod_of_the_operator_it_needs_an_image_and_asks_no_etcd() -> None:
    with pytest.raises(Failed, match="add --image, the image of drivers and agents"):
        audited(example(), None)
    job = audited(example(), None, image=IMAGE)
    assert not [one for one in container(job)["env"] if "ETCD" in one["name"]]
    assert set(by_name(job["spec"]["template"]["spec"]["volumes"])) == {"tmp"}
    assert job["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"] is True


@pytest.mark.parametrize("memory", ["2G", "512Mi", "1.5Gi", "", "Gi", "lots"])
def test_an_amount_of_memory_that_is_none_is_named(memory: str) -> None:
    with pytest.raises(Failed, match="it must be a whole number of Mi or Gi, and 1Gi at least"):
        audited(example(), agent(example()), memory=memory)


class Cluster(Played):
    """It makes a Job's pod, which ends with a code; logs end as ``logging`` says."""

    def __init__(self, *, code: int = 0, logging: Callable[[], None] = lambda: None, **refusals: str) -> None:
        super().__init__(example(), agent(example()))
        self.code, self.logging, self.refusals = code, logging, refusals
        self.made: list[str] = []
        self.log = "a line of the JVM\n"
        self.status: JsonDict = {}

    def create(self, what: JsonDict, *, dry_run: str = "none") -> JsonDict:
        if "create" in self.refusals:
            raise Failed(self.refusals["create"])
        if dry_run == "none":
            name = what["metadata"]["name"]
            self.made.append(name)
            self.there["jobs.batch", name] = {"metadata": what["metadata"], **self.status}
        return what

    def objects(self, kind: str, *, everywhere: bool = False, selector: str = "") -> list[JsonDict]:
        if not selector.startswith("batch.kubernetes.io/job-name="):
            return super().objects(kind, everywhere=everywhere, selector=selector)
        ended = {"name": "audit", "state": {"terminated": {"exitCode": self.code, "reason": "Error"}}}
        return [{"metadata": {"name": "audit-pod"}, "status": {"phase": "Running", "containerStatuses": [ended]}}]

    def show_logs(self, pod: str, *flags: str) -> int:
        self.logging()
        return 0

    def logs(self, pod: str, *flags: str) -> str:
        return self.log

    def delete(self, kind: str, name: str) -> None:
        if "delete" in self.refusals:
            raise Failed(self.refusals["delete"])
        self.there.pop((kind, name), None)

    def left(self) -> list[str]:
        return [name for kind, name in self.there if kind == "jobs.batch"]


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    assert before == {one: signal.getsignal(one) for one in before}


@pytest.mark.parametrize("code", [0, 1, 2])
def test_its_exit_code_is_that_of_the_audit_and_the_job_is_gone(code: int) -> None:
    cluster = Cluster(code=code)
    assert auditing.audit(cluster, Screen(), "flights", Wanted()) == code
    assert cluster.made
    assert not cluster.left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_job_is_gone_after_a_signal(number: signal.Signals) -> None:
    cluster = Cluster(logging=lambda: signal.raise_signal(number))
    assert auditing.audit(cluster, Screen(), "flights", Wanted()) == auditing.INTERRUPTED
    assert cluster.made
    assert not cluster.left()


def test_the_job_is_gone_after_an_error() -> None:
    cluster = Cluster()
    cluster.status = {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]}}
    cluster.objects = lambda *_, **__: []  # type: ignore[method-assign]
    with pytest.raises(Failed, match=r"job audit-flights-.*: DeadlineExceeded"):
        auditing.audit(cluster, Screen(), "flights", Wanted(image=IMAGE))
    assert cluster.made
    assert not cluster.left()


def test_the_job_is_gone_when_nobody_reads_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def unread() -> None:
        raise BrokenPipeError

    cluster = Cluster(logging=unread)
    monkeypatch.setattr(plugin, "Kubectl", lambda *_, **__: cluster)
    assert plugin.main(["audit", "flights"]) == plugin.UNREAD
    assert cluster.made
    assert not cluster.left()


def test_what_may_not_be_made_or_deleted_is_said() -> None:
    with pytest.raises(Failed, match=r"^no right to create jobs$"):
        auditing.audit(Cluster(create="no right to create jobs"), Screen(), "flights", Wanted())
    with pytest.raises(Failed, match=r"is not deleted: no right; it goes 600 s after its end$"):
        auditing.audit(Cluster(delete="no right"), Screen(), "flights", Wanted())


def test_what_was_not_looked_at_is_not_called_violated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plugin, "Kubectl", lambda *_, **__: Cluster(create="no right to create jobs"))
    assert plugin.main(["audit", "flights", "--", "--only", "rows"]) == auditing.UNKNOWN
    assert capsys.readouterr().err == "error: no right to create jobs\n"


def test_for_programs_it_is_the_audits_own_report(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster()
    cluster.log = 'WARN {not json\n{ nor this\n{\n "checks": []\n}\nmore of the JVM\n'
    assert auditing.audit(cluster, Screen(as_json=True), "flights", Wanted()) == 0
    out = capsys.readouterr()
    assert json.loads(out.out) == {"checks": []}
    assert "is deleted" in out.err
    cluster.log = "java.lang.OutOfMemoryError\n"
    with pytest.raises(Failed, match=r"has printed no report: java\.lang\.OutOfMemoryError"):
        auditing.audit(cluster, Screen(as_json=True), "flights", Wanted())
    assert not cluster.left()


def test_a_dry_run_makes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster()
    assert auditing.audit(cluster, Screen(), "flights", Wanted(dry_run="client")) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "Job"
    assert not cluster.made
