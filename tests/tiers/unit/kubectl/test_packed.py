"""The plugin as one file: what `plan` needs of the operator is in it, and runs where nothing is
installed but Python.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hudi_kubectl import __main__ as plugin
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.screen import Screen
from tests.support import ROOT

BUILD = ROOT / "hack" / "build" / "kubectl-hudi" / "build"
ASKS = """
import sys
from hudi_kubectl import outlook
from hudi_kubectl.objects import Table, Writer
meta = {"namespace": "team", "uid": "u", "generation": 1}
ready = {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]}
table = Table({"kind": "HudiTable", "metadata": {**meta, "name": "t"}, "status": ready,
               "spec": {"path": "s3a://lake/t", "recordKeyFields": ["a"]}})
def writer(name, **spec):
    source = {"files": {"format": "csv", "paths": ["s3a://in/"]}}
    spec = {"tableRef": {"name": "t"}, "source": source, **spec}
    return Writer({"kind": "HudiWriter", "metadata": {**meta, "name": name}, "spec": spec})
made = [writer("a"), writer("b", schedule={"cron": "61 * * * *"}), writer("c", schedule={"cron": "0 3 * * MON"})]
space = outlook.Namespace({"t": table}, {}, {"t": table}, {one.name: one for one in made})
print(outlook.of_table(space, "t").verdict)
for one in outlook.of_writers(space, ["a", "b", "c"]):
    print(one.verdict)
meta = {"name": "hudi-operator-defaults"}
for text in ('{"startDeadlineSeconds": 60}', '{"image": "x"}'):
    given = outlook.defaults_of({"metadata": meta, "data": {"defaults.yaml": text}}, __import__("json").loads)
    space = outlook.Namespace({"t": table}, {}, {"t": table}, {"a": made[0]}, given)
    print(outlook.of_writers(space, ["a"])[0].facts[-1][:52])
assert "cronsim" not in sys.modules and "yaml" not in sys.modules
"""


DEFAULTS = (
    "with the defaults of the namespace (ConfigMap hudi-o",
    "ConfigMap hudi-operator-defaults, defaults.yaml: ima",
)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugin")
    subprocess.run([str(BUILD), str(folder)], check=True, capture_output=True, timeout=60)
    return folder / "kubectl-hudi"


def test_a_plan_needs_nothing_but_python(packed: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-c", ASKS],
        env={"PYTHONPATH": str(packed)}, cwd=packed.parent, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["is unchanged", "starts now", "stalls", "does not start", *DEFAULTS], (
        done.stderr
    )


def test_the_same_sources_give_the_same_bytes(packed: Path, tmp_path: Path) -> None:
    subprocess.run([str(BUILD), str(tmp_path)], check=True, capture_output=True, timeout=60)
    assert (tmp_path / "kubectl-hudi").read_bytes() == packed.read_bytes()


def test_an_older_python_hands_the_plan_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the newest of the PATH that works."""
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> SimpleNamespace:
        ran.append(command)
        return SimpleNamespace(returncode=1 if command[0].endswith("python3.14") else 0)

    has = {"python3.14", "python3.12", "python3.11"}
    monkeypatch.setattr(plugin.shutil, "which", lambda name: f"/usr/bin/{name}" if name in has else None)
    monkeypatch.setattr(plugin.subprocess, "run", run)
    monkeypatch.setattr(
        plugin, "sys", SimpleNamespace(version_info=(3, 9, 2), argv=["/bin/kubectl-hudi", "plan", "-f", "x"])
    )
    assert plugin._plan(Kubectl(), Screen(), ["x"]) == 0
    assert ran[-1] == ["/usr/bin/python3.12", "/bin/kubectl-hudi", "plan", "-f", "x"]
    has.clear()
    with pytest.raises(
        Failed, match=r"needs Python 3\.11: this is 3\.9, and there is no newer python3\.N on the PATH$"
    ):
        plugin._plan(Kubectl(), Screen(), ["x"])
