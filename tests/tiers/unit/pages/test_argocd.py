"""What Argo CD, kstatus and Flux say of objects that the operator has written."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.campaigns.pages import argocd
from tests.support import CACHE, ROOT, crds

PROGRAM = CACHE / "bin/gitops-check"
KINDS = {"HudiTable": "huditables", "HudiWriter": "hudiwriters"}
COMMAND = "python -m tests.campaigns.pages.argocd"


@pytest.fixture
def checked() -> None:
    """The program is there."""
    assert PROGRAM.exists(), "run hack/build/build-binaries gitops-check"


EXAMPLE = ROOT / "examples/gitops/flux/lake.yaml"


def run(folder: Path, example: Path = EXAMPLE) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, folder, example], capture_output=True, text=True, timeout=60)


def expected_of(kind: str, name: str) -> dict[str, Any]:
    """Objects that a file of tests names, with what is expected of each."""
    found = yaml.safe_load((argocd.GROUP / kind / name).read_text())["tests"]
    return {one["inputPath"]: one for one in found}


def test_objects_are_what_the_operator_writes() -> None:
    made = argocd.files()
    there = {*argocd.FOLDER.rglob("testdata/*.yaml"), argocd.CONFIG_MAP}
    assert there == set(made), COMMAND
    assert [str(path) for path, text in made.items() if path.read_text() != text] == [], COMMAND


def test_the_config_map_has_the_scripts_as_they_stand() -> None:
    data = yaml.safe_load(argocd.CONFIG_MAP.read_text())["data"]
    assert len(data) == 2 * len(KINDS)
    for kind in KINDS:
        folder = argocd.GROUP / kind
        key = f"hudioperator.io_{kind}"
        assert data[f"resource.customizations.health.{key}"] == (folder / "health.lua").read_text()
        actions = yaml.safe_load(data[f"resource.customizations.actions.{key}"])
        assert actions["discovery.lua"] == (folder / "actions/discovery.lua").read_text()
        scripts = {path.parent.name: path.read_text() for path in folder.glob("actions/*/action.lua")}
        assert {one["name"]: one["action.lua"] for one in actions["definitions"]} == scripts


@pytest.mark.parametrize("kind", KINDS)
def test_a_script_names_conditions_of_its_kind(kind: str) -> None:
    page = (ROOT / "docs/operate/conditions.md").read_text()
    section = page.partition(f"## Conditions of a {kind}")[2].partition("\n## ")[0]
    known = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    text = (argocd.GROUP / kind / "health.lua").read_text()
    named = set(re.findall(r"is\(\"(\w+)\"", text)) | set(
        re.findall(r"^  (\w+) = \"(?:True|False)\"", text, re.MULTILINE)
    )
    assert {"Stalled", "Suspended", "Ready"} < named <= known


@pytest.mark.parametrize("kind", KINDS)
def test_each_moment_has_a_health_and_kstatus_agrees(kind: str) -> None:
    """What kstatus calls current is not in progress or degraded for Argo CD, and the reverse.

    Differences are listed: kstatus knows neither that somebody has suspended an object, nor what a
    condition of ours says, and calls an object without a status current.
    """
    health, kstatus = expected_of(kind, "health_test.yaml"), expected_of(kind, "kstatus_test.yaml")
    assert set(health) == set(kstatus) == {f"testdata/{path.name}" for path in (argocd.GROUP / kind).glob("testdata/*")}
    same = {
        "Healthy": {"Current"},
        "Suspended": {"Current"},
        "Progressing": {"InProgress", "Terminating"},
        "Degraded": {"Failed"},
    }
    differ = {
        Path(path).stem
        for path, one in health.items()
        if kstatus[path]["status"] not in same[one["healthStatus"]["status"]]
    }
    assert differ == ({"new", "unreadable"} if kind == "HudiTable" else {"new"})
    assert {one["healthStatus"]["status"] for one in health.values()} == set(same)


@pytest.mark.parametrize("kind", KINDS)
def test_fields_of_the_objects_are_those_of_the_crd(kind: str) -> None:
    """Of their statuses each field, and what is set by an action."""
    schema = crds.schema(KINDS[kind], "status")["properties"]
    spec = crds.schema(KINDS[kind], "spec")["properties"]
    for path in (argocd.GROUP / kind).rglob("testdata/*.yaml"):
        obj = yaml.safe_load(path.read_text())
        assert set(obj.get("status", {})) <= set(schema), path
        assert set(obj["spec"]) <= set(spec), path
        nonce = obj["spec"].get("restartNonce", "")
        assert re.fullmatch(r"[A-Za-z0-9._:-]{0,64}", nonce), path


@pytest.mark.usefixtures("checked")
def test_scripts_do_what_their_tests_say() -> None:
    """In a Lua with what Argo CD gives to scripts of its ConfigMap."""
    done = run(argocd.FOLDER)
    assert done.returncode == 0, done.stdout + done.stderr
    moments = len(argocd.TABLES) + len(argocd.WRITERS)
    for what in ("health", "kstatus", "flux", "healthCheckExprs"):
        assert len(re.findall(rf"^ok {what} ", done.stdout, re.MULTILINE)) == moments
    assert len(re.findall(r"^ok action ", done.stdout, re.MULTILINE)) == len(argocd.ACTIONS)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(argocd.FOLDER, tmp_path / "argocd"))


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize(
    ("file", "before", "after", "told"),
    [
        (
            "HudiTable/health.lua",
            '"Stalled", "True"',
            '"Stalled", "False"',
            r"FAILED health \S+/HudiTable/testdata/stalled",
        ),
        ("HudiWriter/health.lua", "local function is", "string.rep('x', 2)\nlocal function is", "attempt to index"),
        ("HudiWriter/health.lua", "local function is", "io.open('/etc/passwd')\nlocal function is", "attempt to index"),
        ("HudiWriter/health.lua", "local function is", "while true do end\nlocal function is", "context deadline"),
        ("HudiWriter/health.lua", '"Healthy"', '"Fine"', "no health of Argo CD"),
        ("HudiWriter/kstatus_test.yaml", "status: Failed", "status: Current", r"FAILED flux \S+/failed.yaml"),
        ("HudiTable/actions/suspend/action.lua", "true", "false", "FAILED action suspend"),
        ("HudiTable/actions/discovery.lua", "not suspended", "suspended", "FAILED discovery"),
    ],
)
def test_the_program_sees_what_is_wrong(copied: Path, file: str, before: str, after: str, told: str) -> None:
    path = copied / "hudioperator.io" / file
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    done = run(copied)
    assert done.returncode == 1
    assert re.search(told, done.stdout + done.stderr), done.stdout + done.stderr


@pytest.mark.usefixtures("checked")
def test_an_object_without_a_test_is_told(copied: Path) -> None:
    ready = copied / "hudioperator.io/HudiTable/testdata/ready.yaml"
    shutil.copy(ready, ready.with_name("another.yaml"))
    done = run(copied)
    assert done.returncode == 1
    assert "another.yaml: no test uses it" in done.stdout
