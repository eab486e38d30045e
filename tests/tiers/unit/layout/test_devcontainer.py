"""A container for development gets the packages of `hack/setup/deps`; it has no list of its own."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support import ROOT

DEPS = (ROOT / "hack/setup/deps").read_text()
WANTED = set(re.findall(r"^ *want (\S+) ", DEPS, re.MULTILINE))
GIVEN = {"ca-certificates", "git", "make"}
"""What a clone and `make` need on any machine, and images of Debian do not have."""


def container() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    return found


def test_packages_come_from_one_list() -> None:
    command = container()["onCreateCommand"]
    first, rest = command.split(" && hack/setup/deps ")
    assert rest == "all", "also what only the long tests need"
    assert f'[ "$tier" = {rest} ]' in DEPS
    assert len(WANTED) >= 15
    installed = set(first.partition(" install ")[2].split()) - {"-y", "--no-install-recommends"}
    assert installed == GIVEN
    assert not installed & WANTED
    text = json.dumps(container())
    assert not [name for name in WANTED if re.search(rf"install[^\"]* {re.escape(name)}\b", text)]
    assert "features" not in container(), "they would install another list"


def test_it_is_the_system_on_which_the_scripts_are_tried() -> None:
    release = container()["image"].replace(":", " ")
    assert f"[ \"$release\" = '{release}' ]" in (ROOT / "hack/setup/preflight").read_text()
    assert container()["remoteUser"] == "root", "deps installs, and the node needs it"
    assert container()["privileged"] is True, "namespaces and mounts of the node"


def test_what_is_built_is_where_scripts_look_for_it() -> None:
    env = container()["remoteEnv"]
    assert "HUDI_OPERATOR_CACHE:=${HOME:-/root}/.cache/hudi-operator" in (ROOT / "hack/env.sh").read_text()
    cache = env["HUDI_OPERATOR_CACHE"]
    assert cache == "/root/.cache/hudi-operator"
    assert env["PATH"].startswith(f"{cache}/venv/bin:{cache}/bin:")
    assert any("target=/root/.cache," in mount for mount in container()["mounts"])
    folders = [folder.removeprefix("${containerWorkspaceFolder}") for folder in env["PYTHONPATH"].split(":")]
    assert folders == ["/operator", "/spark-images", ""]
    assert all((ROOT / folder.lstrip("/")).is_dir() for folder in folders)
    used = re.findall(r"hack/\S+", " ".join((container()["onCreateCommand"], container()["postCreateCommand"])))
    assert set(used) == {"hack/setup/deps", "hack/setup/venv", "hack/setup/preflight"}
