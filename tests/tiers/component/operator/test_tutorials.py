"""Every command of the tutorials (`examples/*/README.md`), by a shell, in the order of the page.

Real: kubectl, the plugin, API server, operator, etcd. Played: the pods (`played_pods`), so what a
command shows of data is not looked at here: `make demo` runs the flights whole, and tests of the
tiers hudi and e2e what the other pages say of rows. A command that cannot be run here is in
`NOT_HERE`, with the reason.

A page gets namespaces and paths of its own; what it says must exist is in `BEFORE`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaigns.crashes.nursery import Nursery
from tests.support import CACHE, ROOT
from tests.support.harness.operator_world import World
from tests.support.harness.played_pods import Played
from tests.support.harness.servers import Cluster, Etcd, wait_for

pytestmark = pytest.mark.timeout(600)

PAGES = sorted((ROOT / "examples").glob("*/README.md"))
VERBS = re.compile(r" {4,}((?:kubectl|helm|gcloud|python) .*)")
NAMESPACES = ("lake", "flights", "storage", "hudi-operator")
NO_ARGO, NO_FLUX = "Argo CD is not here: tests of its health are in unit/pages/test_argocd.py", "Flux is not here"
NOT_HERE = {
    ("callback", "kubectl -n lake exec"): "no kubelet: hudi/test_callback.py has a receiver",
    ("credentials", "helm upgrade"): "no release of the chart is installed here: test_chart.py upgrades one",
    ("gitops", "kubectl patch configmap argocd-cm"): NO_ARGO,
    ("gitops", "kubectl apply -n argocd"): NO_ARGO,
    ("gitops", "kubectl apply -f examples/gitops/flux"): NO_FLUX,
    ("identities", "gcloud iam"): "no cloud",
    ("identities", "gcloud storage"): "no cloud",
}
"""Page and the beginning of a command."""
FILES = {"--cert=": "server.crt", "--key=": "server.key", "--from-file=ca.crt=": "ca.crt"}
"""What a user has in the folder, where a page says …."""
LAKE = ("kubectl create namespace lake",)
KEYS = (
    "kubectl create secret generic lake-credentials -n lake --from-literal=accessKeyId=a "
    "--from-literal=secretAccessKey=b",
    "kubectl annotate secret lake-credentials -n lake hudioperator.io/allowed-tables='*'",
)
OTHER_KEYS = tuple(command.replace("lake-credentials", "lake-s3") for command in KEYS)
BEFORE: dict[str, tuple[str, ...]] = {
    "callback": (*LAKE, *OTHER_KEYS),
    "catalog": (*LAKE, *OTHER_KEYS),
    "credentials": ("kubectl create namespace hudi-operator", *LAKE, *KEYS),
    "defaults": LAKE,
    "isolation": (*LAKE, "kubectl create namespace storage"),
    "jdbc": (*LAKE, *KEYS),
    "kafka": (*LAKE, *KEYS),
    "kueue": (*LAKE, *KEYS),
    "pods": (
        *LAKE,
        "kubectl create secret generic company-registry -n lake --from-literal=a=b",
        "kubectl create secret generic nightly-settings -n lake --from-literal=a=b",
        "kubectl create serviceaccount nightly -n lake",
    ),
    "restore": (
        *LAKE,
        *KEYS,
        "kubectl apply -f ../savepoint/table.yaml",
        "kubectl wait huditable/orders -n lake --for=condition=Ready --timeout=60s",
    ),
    "savepoint": (*LAKE, *KEYS),
}
STALLED = {
    "credentials": {"CredentialsUnavailable"},
}
"""Reasons that tables and writers of a page have here at its end, because of what is not here."""


def commands(page: Path) -> list[str]:
    """Commands of a page, with what follows behind a backslash."""
    found: list[str] = []
    more = False
    for line in page.read_text().splitlines():
        start = VERBS.fullmatch(line)
        if more:
            found[-1] += "\n" + line.strip()
        elif start:
            found.append(start[1])
        more = bool((more or start) and line.endswith("\\"))
    return found


WITH_COMMANDS = [page for page in PAGES if commands(page)]


def name(page: Path) -> str:
    return page.parent.name


def why_not(page: Path, command: str) -> str:
    """Why a command is not run here; empty: it is."""
    return next((why for (one, start), why in NOT_HERE.items() if one == name(page) and command.startswith(start)), "")


RUN = [page for page in WITH_COMMANDS if not all(why_not(page, command) for command in commands(page))]


class Copy:
    """The examples, with namespaces and paths of one test."""

    def __init__(self, directory: Path, suffix: str) -> None:
        self.suffix, self.folder = suffix, directory / "examples"
        shutil.copytree(ROOT / "examples", self.folder)
        for file in self.folder.rglob("*.yaml"):
            text = re.sub(r"s3a://lake/", f"s3a://lake-{suffix}/", file.read_text())
            text = re.sub(rf"(namespace: )({'|'.join(NAMESPACES)})\b", self.renamed, text)
            text = re.sub(r"(kind: Namespace\nmetadata:\s+\{?name: )([a-z-]+)\b", self.renamed, text)
            file.write_text(text)

    def renamed(self, found: re.Match[str]) -> str:
        return f"{found[1]}{self.namespace(found[2])}"

    def namespace(self, one: str) -> str:
        return f"{one}-{self.suffix}"

    def command(self, text: str) -> str:
        """With this test's namespaces, and files where the page leaves them out."""
        text = re.sub(rf"(-n |create namespace )({'|'.join(NAMESPACES)})\b", self.renamed, text)
        return re.sub(rf"({'|'.join(FILES)})…", lambda m: m[1] + FILES[m[1]], text)


@pytest.fixture
def copy(tmp_path: Path, etcd: Etcd) -> Copy:
    made = Copy(tmp_path, os.urandom(2).hex())
    for folder in made.folder.iterdir():
        if folder.is_dir():
            for file in ("server.crt", "server.key", "ca.crt"):
                shutil.copy(etcd.pki / file, folder / file)
    return made


@pytest.fixture
def page(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture
def world(page: Path, cluster: Cluster, etcd: Etcd, nursery: Nursery, tmp_path: Path, copy: Copy) -> Iterator[World]:
    """An operator for the namespace that the page makes, and its pods, played."""
    tables = (copy.folder / name(page)).glob("*.yaml")
    main = "flights" if any(f"namespace: flights-{copy.suffix}" in file.read_text() for file in tables) else "lake"
    made = World(cluster, etcd, tmp_path, copy.namespace(main), make=False)
    made.forks = nursery
    played = Played(made)
    try:
        made.start_operator()
        played.look_on("played pods", every=0.3)
        yield made
    finally:
        played.look_no_more(20)
        made.close()
        print(played.failure, made.logs())


class Shell:
    """A user's shell in the folder of a page."""

    def __init__(self, world: World, folder: Path) -> None:
        self.folder = folder
        own = world.directory / "bin"
        own.mkdir()
        plugin = own / "kubectl-hudi"
        plugin.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT / "operator"} exec {sys.executable} -m hudi_kubectl "$@"\n')
        plugin.chmod(0o755)
        config = world.directory / "kubeconfig"
        shutil.copy(world.cluster.kubeconfig, config)
        path = f"{own}:{CACHE / 'bin'}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "KUBECONFIG": str(config)}
        self.run(f"kubectl config set-context --current --namespace={world.namespace}")

    def run(self, command: str) -> str:
        """Its output; fails when it fails. One that watches is ended after three seconds."""
        watches = command.endswith("--watch")
        text = f"timeout 3 {command} || [ $? = 124 ]" if watches else command
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=150,
        )
        print(f"$ {command}\n{done.stdout}")
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        assert done.stdout.strip() or not watches, command
        return done.stdout


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name(page), marks=[] if name(page) in ("flights", "savepoint") else pytest.mark.extra)
        for page in RUN
    ],
    indirect=True,
)
def test_the_commands_of_a_page_do_what_it_says(world: World, copy: Copy, page: Path) -> None:
    shell = Shell(world, copy.folder / name(page))
    for command in BEFORE.get(name(page), ()):
        shell.run(copy.command(command))
    for command in commands(page):
        if not why_not(page, command):
            shell.run(copy.command(command))
    told = dict.fromkeys(STALLED.get(name(page), set()))
    wait_for("the operator has seen what was applied", lambda: seen(world), seconds=60)
    time.sleep(2)
    for plural in ("huditables", "hudiwriters"):
        for obj in (world.cluster.request("GET", world.path(plural)) or {"items": []})["items"]:
            conditions = {c["type"]: c for c in obj["status"]["conditions"]}
            stalled = conditions["Stalled"]
            assert stalled["status"] == "False" or stalled["reason"] in told, (obj["metadata"]["name"], stalled)


def seen(world: World) -> bool:
    """The operator has written a status of everything that is there."""
    objects = [
        obj
        for plural in ("huditables", "hudiwriters")
        for obj in (world.cluster.request("GET", world.path(plural)) or {"items": []})["items"]
    ]
    return all((obj.get("status") or {}).get("conditions") for obj in objects)


def test_what_is_not_run_is_there_once() -> None:
    """A command that was changed is run again, or gets a reason again."""
    for one, start in NOT_HERE:
        page = ROOT / "examples" / one / "README.md"
        assert len([command for command in commands(page) if command.startswith(start)]) == 1, (one, start)
    assert len(RUN) >= 20
    assert all(
        command.startswith("kubectl") for page in RUN for command in commands(page) if not why_not(page, command)
    )
