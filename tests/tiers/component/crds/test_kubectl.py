"""The kubectl plugin, as it is installed, against a real API server: what it prints for objects in
a state, what it changes, and what it may not.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support import ROOT
from tests.tiers.component.crds.cluster import BIN, Cluster, module_folder, table, wait_until, writer

JsonDict = dict[str, Any]
BUILD = ROOT / "hack" / "build" / "kubectl-hudi" / "build"
KREW = "h1:9lL9N7gbRpk/nG73b07IeNAGqsneD/mAiw0jmtjtnFs="
"""Sum of krew's module, by Go's checksum database."""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugin")
    subprocess.run([str(BUILD), str(folder)], check=True, capture_output=True, timeout=60)
    return folder


class Shell:
    """`kubectl hudi`, found by kubectl on the PATH."""

    def __init__(self, cluster: Cluster, plugin: Path, namespace: str) -> None:
        self._namespace = namespace
        self._environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NO_COLOR")}
        self._environment |= {"PATH": f"{plugin}:{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(cluster.kubeconfig)}

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", "hudi", *arguments, "-n", self._namespace],
            env=self._environment | environment, input=stdin, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    def said(self, *arguments: str, **environment: str) -> str:
        done = self.run(*arguments, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert (done.returncode, done.stdout) == (1, ""), (done.returncode, done.stdout)
        return done.stderr


def instant(ago: float) -> str:
    return time.strftime("%Y%m%d%H%M%S000", time.gmtime(time.time() - ago))


def at(ago: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))


def condition(kind: str, status: str, reason: str, message: str = "") -> JsonDict:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at(30)}


@pytest.fixture
def shell(light_cluster: Cluster, plugin: Path, namespace: str) -> Shell:
    """A table with a writer that runs and one that waits behind a dead one."""

    def tell(kind: str, name: str, **status: Any) -> None:
        told = json.dumps({"status": {"observedGeneration": 1, **status}})
        light_cluster.kubectl(
            "patch", kind, name, "-n", namespace, "--subresource=status", "--type=merge", "--patch", told
        )

    light_cluster.apply(table(namespace), writer(namespace, name="live", priority=3), writer(namespace, name="waiting"))
    tell(
        "ht", "flights", conditions=[condition("Ready", "True", "Ready", "writers may write")],
        timeline={"commits": [
            {"instant": instant(40), "completionTime": instant(30), "writer": f"{namespace}/live", "action": "commit"},
        ]},
        settling=[{
            "pod": "dead-1", "attempt": "a.dead-1", "incarnation": "i", "phase": "Terminating", "reason": "LeaseGone",
            "since": at(20), "waitingFor": "the kubelet of node-3",
        }],
    )  # fmt: skip
    tell(
        "hw", "live", state="Running", records=7, conflicts=2, lastCommit={"time": at(30), "instant": instant(40)},
        attempts=[{"number": 1, "startTime": at(60), "pod": "live-1", "class": ""}],
        recentConflicts=[{"instant": instant(55), "retriedAs": instant(40), "with": "a.other-1", "time": at(50),
                          "fileGroups": ["p/1"]}],
    )  # fmt: skip
    tell("hw", "waiting", state="Waiting", queue={"position": 1, "since": at(15), "blockedBy": "pod dead-1"})
    return Shell(light_cluster, plugin, namespace)


def test_what_is_there_and_why(shell: Shell, namespace: str) -> None:
    lines = shell.said("status").splitlines()
    assert [line.split()[0:2] for line in lines] == [
        ["NAME", "STATE"],
        ["flights", "Ready"],
        ["├─", "live"],
        ["└─", "waiting"],
    ]
    assert "pod dead-1 of attempt a.dead-1 is Terminating" in lines[1]
    assert "as number 1: pod dead-1" in lines[3]
    told = shell.said("why", "waiting").splitlines()
    assert told[0] == "HudiWriter waiting is Waiting"
    assert told[-1].strip() == "└─ the kubelet of node-3"
    assert json.loads(shell.said("why", "waiting", "-o", "json"))["causes"][0]["causes"][0]["causes"] == [
        {"fact": "the kubelet of node-3", "causes": []}
    ]
    (summary,) = json.loads(shell.said("status", "-o", "json"))
    assert [w["name"] for w in summary["writers"]] == ["live", "waiting"]
    queue = shell.said("queue", "flights").splitlines()[1].split()
    assert queue[:3] == ["1", "waiting", "0"]
    assert queue[4:] == ["pod", "dead-1"]
    conflicts = shell.said("conflicts", "live").splitlines()
    assert "a.other-1" in conflicts[1]
    assert conflicts[2] == "2 in all, of which the status has the last 1"
    assert "attempt 1 began in pod live-1" in shell.said("history", "flights")
    assert shell.refused("why", "nobody") == "error: there is neither a HudiWriter nor a HudiTable nobody here\n"
    assert shell.refused("status", "nobody") == "error: there is no HudiTable nobody here\n"
    assert "attempt 7 (it has 1)" in shell.refused("logs", "live", "--attempt", "7")
    assert namespace not in shell.said("status")


def test_pictures_colours_and_completion(shell: Shell, tmp_path: Path) -> None:
    drawn = shell.said("timeline", "flights", COLUMNS="80").splitlines()
    assert drawn[0].startswith("live")
    assert "█" in drawn[0]
    assert max(map(len, drawn[:-1])) <= 80
    shell.said("timeline", "flights", "--svg", str(tmp_path / "t.svg"))
    assert ElementTree.parse(tmp_path / "t.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert "\033[" not in shell.said("status")
    assert "\033[32mRunning" in shell.said("status", "--color", "always")
    assert "\033[" not in shell.said("status", "--color", "never")
    command = ["kubectl_complete-hudi", "why", "-n", shell._namespace, ""]
    done = subprocess.run(command, env=shell._environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["flights", "live", "waiting", ":4"]


def test_a_writer_is_suspended_resumed_and_restarted(shell: Shell, light_cluster: Cluster, namespace: str) -> None:
    assert "HudiWriter live is being suspended" in shell.said("suspend", "live")
    found = light_cluster.get("hw", "live", "-n", namespace, "--show-managed-fields")
    assert found["spec"]["suspend"] is True
    assert "kubectl-hudi" in {one["manager"] for one in found["metadata"]["managedFields"]}
    assert shell.said("suspend", "live") == "HudiWriter live: spec.suspend is true already\n"
    assert "spec.suspend is true, set by kubectl-hudi" in shell.said("why", "live")
    shell.said("resume", "hudiwriter/live")
    shell.said("suspend", "flights")
    assert light_cluster.get("ht", "flights", "-n", namespace)["spec"]["suspend"] is True
    assert light_cluster.get("hw", "live", "-n", namespace)["spec"]["suspend"] is False
    shell.said("restart", "live")
    assert light_cluster.get("hw", "live", "-n", namespace)["spec"]["restartNonce"] >= at(60)
    assert "writers are restarted" in shell.refused("restart", "flights")


def test_what_somebody_else_keeps_is_not_changed_half_way(shell: Shell, light_cluster: Cluster, namespace: str) -> None:
    """A GitOps controller that owns the field, and one that sets back what it finds changed."""
    kept = writer(namespace, name="kept", suspend=False)
    light_cluster.kubectl(
        "apply", "--server-side", "--field-manager=argocd-controller", "-f", "-", stdin=json.dumps(kept)
    )
    said = shell.refused("suspend", "kept")
    assert "spec.suspend of HudiWriter kept is kept by argocd-controller, which would set it back" in said
    assert light_cluster.get("hw", "kept", "-n", namespace)["spec"]["suspend"] is False
    with _set_back(light_cluster, namespace, "live"):
        said = shell.refused("suspend", "live")
    assert "spec.suspend of HudiWriter live was set back to False at once by self-heal" in said
    shell.said("suspend", "kept", "--force")
    assert light_cluster.get("hw", "kept", "-n", namespace)["spec"]["suspend"] is True


@contextmanager
def _set_back(cluster: Cluster, namespace: str, name: str) -> Iterator[None]:
    over = threading.Event()
    command = ["patch", "hw", name, "-n", namespace, "--type=merge", "--field-manager=self-heal"]

    def heal() -> None:
        while not over.is_set():
            if cluster.get("hw", name, "-n", namespace)["spec"]["suspend"]:
                cluster.kubectl(*command, "--patch", '{"spec":{"suspend":false}}')

    thread = threading.Thread(target=heal)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_viewer_sees_and_changes_nothing(shell: Shell, light_cluster: Cluster, namespace: str) -> None:
    light_cluster.kubectl("create", "rolebinding", "vera", "--clusterrole=view", "--user=vera", "-n", namespace)
    assert "live" in shell.said("status", "--as=vera")
    assert "the kubelet of node-3" in shell.said("why", "waiting", "--as", "vera")
    assert "forbidden" in shell.refused("suspend", "live", "--as=vera")
    assert "forbidden" in shell.refused("status", "--as=nobody")
    assert light_cluster.get("hw", "live", "-n", namespace)["spec"]["suspend"] is False


def test_a_report_has_what_support_asks_for(
    shell: Shell, light_cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    driver = {"env": [{"name": "API_TOKEN", "value": "not-for-everybody"}, {"name": "MODE", "value": "quick"}]}
    light_cluster.apply(writer(namespace, name="told", driver=driver))
    place = tmp_path / "report.tar.gz"
    assert "Secrets were not read" in shell.said("report", "flights", "--file", str(place))
    with tarfile.open(place) as tar:
        files = {name: (tar.extractfile(name) or io.BytesIO()).read().decode() for name in tar.getnames()}
    assert {"hudi-report/table.json", "hudi-report/why.txt", "hudi-report/writers/told.json"} <= files.keys()
    assert "the kubelet of node-3" in files["hudi-report/why.txt"]
    assert "not-for-everybody" not in "".join(files.values())
    assert '"quick"' in files["hudi-report/writers/told.json"]


def test_it_is_built_the_same_twice(plugin: Path, tmp_path: Path) -> None:
    subprocess.run([str(BUILD), str(tmp_path)], check=True, capture_output=True, timeout=60)
    for name in ("kubectl-hudi", "kubectl_complete-hudi"):
        assert (tmp_path / name).read_bytes() == (plugin / name).read_bytes()


def saved(light_cluster: Cluster, namespace: str, *names: str, **more: Any) -> None:
    """Savepoints that were taken, one after the other."""
    taken = [
        {"name": name, "outcome": "Completed", "instant": instant(900 - n), "boundaryCompletionTime": instant(600 - n)}
        for n, name in enumerate(names)
    ]
    light_cluster.kubectl(
        "patch", "ht", "flights", "-n", namespace, "--subresource=status", "--type=merge", "--patch",
        json.dumps({"status": {"savepoints": taken, **more}}),
    )  # fmt: skip


def spec_of(cluster: Cluster, namespace: str) -> JsonDict:
    found: JsonDict = cluster.get("ht", "flights", "-n", namespace)["spec"]
    return found


def test_a_table_is_asked_for_savepoints_services_and_a_restore(
    shell: Shell, light_cluster: Cluster, namespace: str
) -> None:
    assert "savepoint one is asked for" in shell.said("savepoint", "flights", "--name", "one")
    shell.said("savepoint", "huditable/flights", "--name=two")
    assert spec_of(light_cluster, namespace)["savepoints"] == [{"name": "one"}, {"name": "two"}]
    said = shell.refused("savepoint", "flights", "--name", "Not_A_Name")
    assert "spec.savepoints[2].name" in said
    assert "name 'Not_A_Name' is not the name of a savepoint: lower-case letters, digits and -" in said
    shell.said("service", "flights", "compact")
    assert spec_of(light_cluster, namespace)["services"]["compaction"]["runNonce"] >= at(60)
    assert "clustering is off by default" in shell.refused("service", "flights", "cluster")
    shell.said("metadata-table", "flights", "--indexes", "ColumnStats", "--rebuild")
    assert spec_of(light_cluster, namespace)["metadataTable"]["indexes"] == ["ColumnStats"]
    said = shell.refused("metadata-table", "flights", "--off")
    assert "indexes contradict enabled false" in said
    saved(light_cluster, namespace, "one", "two")
    assert "two is later than 'one'" in shell.refused("restore", "flights", "--savepoint", "one", "--yes")
    assert "If that is wanted, add --yes" in shell.refused("restore", "flights", "--savepoint", "two")
    shell.said("restore", "flights", "--savepoint", "one", "--remove-later", "--yes")
    found = spec_of(light_cluster, namespace)
    assert found["savepoints"] == [{"name": "one"}]
    assert found["restore"]["savepoint"] == "one"


@pytest.mark.parametrize("where", ["server", "client"])
def test_a_dry_run_is_judged_and_changes_nothing(
    shell: Shell, light_cluster: Cluster, namespace: str, where: str
) -> None:
    before = light_cluster.get("ht", "flights", "-n", namespace)["metadata"]["resourceVersion"]
    suffix = {"server": " (server dry run)\n", "client": " (dry run)\n"}[where]
    for command in (["savepoint", "flights"], ["service", "flights", "clean"], ["suspend", "huditable/flights"]):
        assert shell.said(*command, f"--dry-run={where}").endswith(suffix)
    told = json.loads(shell.said("savepoint", "flights", "--name=a", f"--dry-run={where}", "-o", "json"))
    assert told["spec"]["savepoints"] == [{"name": "a"}]
    assert "managedFields" not in told["metadata"]
    if where == "server":
        assert "is not the name of a savepoint" in shell.refused("savepoint", "flights", "--name=A", "--dry-run=server")
    assert light_cluster.get("ht", "flights", "-n", namespace)["metadata"]["resourceVersion"] == before


def test_a_wait_follows_the_status(shell: Shell, light_cluster: Cluster, namespace: str) -> None:
    """The operator is played: it takes the savepoint when the spec names it."""
    over = threading.Event()

    def take() -> None:
        while not over.wait(0.2):
            found = light_cluster.get("ht", "flights", "-n", namespace)
            if found["spec"].get("savepoints"):
                saved(light_cluster, namespace, "a", observedGeneration=found["metadata"]["generation"])
                return

    thread = threading.Thread(target=take)
    thread.start()
    try:
        said = shell.said("savepoint", "flights", "--name=a", "--wait", "--timeout=30s")
    finally:
        over.set()
        thread.join()
    assert said.splitlines()[-1].partition("s  ")[2].startswith("savepoint a: Completed, of commit")
    said = shell.run("savepoint", "flights", "--name=b", "--wait", "--timeout=1s")
    assert said.returncode == 1
    assert "error: not over within 1s, and still asked for: savepoint b: Pending" in said.stderr


def test_a_persons_word_needs_its_verb(shell: Shell, light_cluster: Cluster, namespace: str) -> None:
    """The rights are those of the roles that the chart has (tenants.md)."""
    uid, waits = "0d3c0b54-6c0e-4c8e-9a55-7f2b9d1f0c11", "is not proven dead (phase Running); to resolve it, …"
    settling = [{
        "pod": "dead-1", "incarnation": "i", "phase": "Terminating", "reason": "LeaseGone", "since": at(20),
        "waitingFor": f"a.dead-1: pod dead-1 (uid {uid}) on node node-3 {waits}",
    }]  # fmt: skip
    frozen = [condition("Stalled", "True", "Frozen", "set back; annotate with hudioperator.io/unfreeze=4711")]
    saved(light_cluster, namespace, settling=settling, conditions=frozen)
    light_cluster.kubectl("create", "rolebinding", "ed", "--clusterrole=edit", "--user=ed", "-n", namespace)
    light_cluster.kubectl(
        "create", "rolebinding", "zoe", "--clusterrole=hudi-operator-attestor", "--user=zoe", "-n", namespace
    )
    light_cluster.kubectl("create", "rolebinding", "zed", "--clusterrole=edit", "--user=zoe", "-n", namespace)
    attest = ["attest", "flights", "dead-1", "--statement=powered off at the rack", "--yes"]
    said = shell.refused(*attest, "--as=ed")
    assert "spec.fencing.attestations: user 'ed' needs the verb attest on huditables" in said
    assert "user 'ed' needs the verb unfreeze" in shell.refused("unfreeze", "flights", "--yes", "--as=ed")
    assert "is attested by zoe" in shell.said(*attest, "--as=zoe")
    (word,) = spec_of(light_cluster, namespace)["fencing"]["attestations"]
    assert (word["podUID"], word["node"], word["attestedBy"]) == (uid, "node-3", "zoe")
    shell.said("unfreeze", "flights", "--yes", "--as=zoe")
    found = light_cluster.get("ht", "flights", "-n", namespace)["metadata"]["annotations"]
    assert found["hudioperator.io/unfreeze"] == "4711"
    pending = [condition("Stalled", "True", "PendingInstants", "pending instants: 20260301120000000 (commit)")]
    saved(light_cluster, namespace, conditions=pending)
    assert "20260301120000000 (commit). Name each of them" in shell.refused("adopt", "flights")
    adopt = ["adopt", "flights", "--roll-back=20260301120000000", "--yes"]
    assert "user 'ed' needs the verb rollback-instants" in shell.refused(*adopt, "--as=ed")
    shell.said(*adopt)
    assert spec_of(light_cluster, namespace)["adoption"]["rollbackInstants"] == ["20260301120000000"]


def test_a_list_that_a_manifest_has_is_changed_there(shell: Shell, light_cluster: Cluster, namespace: str) -> None:
    kept = table(namespace, savepoints=[{"name": "theirs"}])
    light_cluster.kubectl(
        "apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller", "-f", "-",
        stdin=json.dumps(kept),
    )  # fmt: skip
    said = shell.refused("savepoint", "flights", "--name=mine")
    assert "spec.savepoints of HudiTable flights is kept by argocd-controller" in said
    shell.said("savepoint", "flights", "--name=mine", "--force")
    assert spec_of(light_cluster, namespace)["savepoints"] == [{"name": "theirs"}, {"name": "mine"}]


def test_a_plan_says_what_would_happen(shell: Shell, light_cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """Starts now, waits, refused, changes; by the API server's own word, and nothing is made."""
    file = tmp_path / "objects.json"
    changed = table(namespace, savepoints=[{"name": "a"}])
    objects = [
        writer(namespace, name="new"),
        writer(namespace, name="bad", source={}),
        writer(namespace, name="orphan", tableRef={"name": "nothing"}),
    ]
    file.write_text("\n".join(map(json.dumps, objects)))
    done = shell.run("plan", "-f", str(file))
    assert done.returncode == 1, done.stderr
    assert f"HudiWriter {namespace}/new: starts now\n    as attempt 1\n" in done.stdout
    assert "source is empty: set source.files" in done.stdout
    waits = f"HudiWriter {namespace}/orphan: waits\n    there is no HudiTable nothing in namespace {namespace}"
    assert waits in done.stdout
    assert "Not looked at, and able to change this:" in done.stdout
    done = shell.run("plan", "-f", "-", "-o", "json", stdin=json.dumps(changed))
    assert done.returncode == 0, done.stderr
    (told,) = json.loads(done.stdout)["objects"]
    assert (told["kind"], told["verdict"]) == ("HudiTable", "changes")
    assert told["facts"][0].startswith("spec.savepoints: the savepoint a: running attempts end")
    assert "savepoints" not in spec_of(light_cluster, namespace)
    assert "new" not in light_cluster.kubectl("get", "hw", "-n", namespace, "-o", "name")
    light_cluster.kubectl("create", "rolebinding", "vera", "--clusterrole=view", "--user=vera", "-n", namespace)
    done = shell.run("plan", "-f", str(file), "--as=vera")
    assert done.returncode == 1
    assert "forbidden" in done.stdout


def test_a_plan_knows_the_defaults_of_the_namespace(shell: Shell, light_cluster: Cluster, namespace: str) -> None:
    """kubectl reads the YAML, and the operator's planner judges the writer with them."""
    text = "# of the platform team\n---\ndriver:\n  nodeSelector: {pool: hudi}\n"
    text += "  tolerations:\n  - {key: a, operator: %s}\n"
    meta = {"namespace": namespace, "name": "hudi-operator-defaults"}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"defaults.yaml": text % "Exists"}}
    light_cluster.apply(made)
    new = json.dumps(writer(namespace, name="new"))
    done = shell.run("plan", "-f", "-", stdin=new)
    assert done.returncode == 0, done.stderr
    taken = "spec.driver.nodeSelector['pool'], spec.driver.tolerations\n"
    assert f"with the defaults of the namespace (ConfigMap hudi-operator-defaults): {taken}" in done.stdout
    bad = {**made, "data": {"defaults.yaml": text % "Sometimes"}}
    done = shell.run("plan", "-f", "-", stdin=f"{json.dumps(bad)}\n{new}")
    assert done.returncode == 1, done.stderr
    assert f"HudiWriter {namespace}/new: stalls\n" in done.stdout
    told = [line for line in done.stdout.splitlines() if "ConfigMap hudi-operator-defaults, defaults.yaml: " in line]
    assert len(told) == 2, done.stdout
    assert "driver.tolerations[0].operator" in told[0]
    assert "Sometimes" in told[0]
    bad = {**made, "data": {"defaults.yaml": "driver: {memory: 2Gi}"}}
    done = shell.run("plan", "-f", "-", stdin=f"{json.dumps(bad)}\n{new}")
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("driver.memory = '2Gi': cannot be a default of a namespace") == 2
    kept = light_cluster.get("configmap", "hudi-operator-defaults", "-n", namespace)["data"]
    assert kept == made["data"], "nothing was changed"


def jobs(cluster: Cluster, namespace: str) -> list[JsonDict]:
    found: list[JsonDict] = cluster.get("jobs", "-n", namespace)["items"]
    return found


@contextmanager
def _audit(shell: Shell, cluster: Cluster, namespace: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """An audit with its pod, which no kubelet starts."""
    command = ["kubectl", "hudi", "audit", "flights", "--image=none", "-n", namespace]
    running = subprocess.Popen(
        command,
        env=shell._environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        pods: list[JsonDict] = []

        def there() -> bool:
            pods[:] = cluster.get("pods", "-n", namespace, "-l", "app.kubernetes.io/component=audit")["items"]
            return bool(pods)

        wait_until(there)
        yield running, pods[0]["metadata"]["name"]
    finally:
        running.kill()
        running.wait()


def test_an_audit_leaves_nothing_after_ctrl_c(shell: Shell, light_cluster: Cluster, namespace: str) -> None:
    with _audit(shell, light_cluster, namespace) as (running, _):
        (job,) = jobs(light_cluster, namespace)
        assert job["spec"]["template"]["spec"]["containers"][0]["args"][:2] == ["audit", "s3a://lake/flights"]
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=30)
    assert running.returncode == 130, (out, err)
    assert f"job {job['metadata']['name']} is deleted" in out
    wait_until(lambda: not jobs(light_cluster, namespace))


def test_an_audit_ends_with_the_code_of_its_container(shell: Shell, light_cluster: Cluster, namespace: str) -> None:
    ended = {"name": "audit", "image": "none", "imageID": "", "ready": False, "restartCount": 0}
    ended["state"] = {"terminated": {"exitCode": 1, "reason": "Error"}}
    status = {"status": {"phase": "Failed", "containerStatuses": [ended]}}
    with _audit(shell, light_cluster, namespace) as (running, pod):
        light_cluster.kubectl(
            "patch", "pod", pod, "-n", namespace, "--subresource=status", "--type=merge", "--patch", json.dumps(status)
        )
        out, err = running.communicate(timeout=30)
    assert running.returncode == 1, (out, err)
    wait_until(lambda: not jobs(light_cluster, namespace))


def test_an_audit_is_made_by_who_may_make_jobs(shell: Shell, light_cluster: Cluster, namespace: str) -> None:
    light_cluster.kubectl("create", "rolebinding", "vera", "--clusterrole=view", "--user=vera", "-n", namespace)
    said = shell.run("audit", "flights", "--image=none", "--as=vera")
    assert said.returncode == 2
    assert 'cannot create resource "jobs"' in said.stderr
    assert not jobs(light_cluster, namespace)


@pytest.mark.extra
@pytest.mark.timeout(900)
def test_krew_installs_it(plugin: Path, tmp_path: Path) -> None:
    """krew itself judges the manifest, compares the sum, and installs the archive."""
    source = module_folder("sigs.k8s.io/krew@v0.4.4", KREW)
    subprocess.run(["go", "build", "-o", str(tmp_path / "krew"), "./cmd/krew"], cwd=source, check=True, timeout=800)
    made = tmp_path / "made"
    command = [sys.executable, "-m", "hack.release.krew", str(made), "https://example.com/releases"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (archive,) = made.glob("*.tar.gz")
    environment = {
        **os.environ,
        "KREW_NO_UPGRADE_CHECK": "1",
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }

    def install(root: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(tmp_path / "krew"), "install", f"--manifest={made / 'hudi.yaml'}", f"--archive={archive}"],
            env=environment | {"KREW_ROOT": str(root)}, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    root = tmp_path / "root"
    done = install(root)
    assert done.returncode == 0, done.stderr
    assert (root / "bin" / "kubectl-hudi").resolve().read_bytes() == (plugin / "kubectl-hudi").read_bytes()
    done = subprocess.run([str(root / "bin" / "kubectl-hudi"), "--help"], capture_output=True, text=True, timeout=60)
    assert "usage: kubectl hudi" in done.stdout
    archive.write_bytes(archive.read_bytes() + b"\0")
    done = install(tmp_path / "another")
    assert done.returncode != 0
    assert "checksum does not match" in done.stderr
