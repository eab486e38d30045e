"""The kubectl plugin, as it is installed, against a real API server: what it prints for objects in
a state, what it changes, and what it may not.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
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
from tests.tiers.component.crds.cluster import BIN, Cluster, table, writer

JsonDict = dict[str, Any]
BUILD = ROOT / "hack" / "build" / "kubectl-hudi" / "build"


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

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", "hudi", *arguments, "-n", self._namespace],
            env=self._environment | environment, capture_output=True, text=True, timeout=60,
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
