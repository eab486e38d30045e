"""This repository as it was at the last release (`hack/last-release`): its CRDs, its operator as a
process, its Java module. For tests of an upgrade.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import ROOT
from tests.support.harness.servers import Cluster

NAMED = ROOT / "hack" / "last-release"
PARTS = ("crds", "examples", "operator", "spark-images")
CRDS = ("crd/huditables.hudioperator.io", "crd/hudiwriters.hudioperator.io")


def commit() -> str:
    """The commit of the last release."""
    return NAMED.read_text().strip()


def files() -> Path:
    """A folder with the files of that commit; it is made once for each commit."""
    place = ROOT / "build" / "last-release" / commit()
    whole = place / "whole"
    if not whole.exists():
        place.mkdir(parents=True, exist_ok=True)
        made = subprocess.run(["git", "-C", str(ROOT), "archive", commit(), *PARTS], capture_output=True, timeout=60)
        said = made.stderr.decode()
        assert made.returncode == 0, (
            f"git does not have {commit()} of hack/last-release: fetch the whole history\n{said}"
        )
        subprocess.run(["tar", "-x", "-C", str(place)], input=made.stdout, check=True, timeout=60)
        whole.touch()
    return place


def environment() -> dict[str, str]:
    """Variables with which a process of the operator is that of the last release."""
    return {"PYTHONPATH": str(files() / "operator")}


def lock_module() -> Path:
    """Folder with the Java module and its test classes, as Maven makes them."""
    module = files() / "spark-images" / "etcd-lock"
    if not (module / "target" / "hudi-etcd-lock.jar").exists():
        command = ["mvn", "-q", "-B", "-o", "-f", str(module / "pom.xml"), "package", "-DskipTests"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return module / "target"


@contextmanager
def cluster(directory: Path, crds: Path) -> Iterator[Cluster]:
    """API server and controller-manager with these CRDs, and a node."""
    light = ROOT / "hack" / "cluster" / "light-cluster"
    try:
        subprocess.run([light, "up", directory], check=True, timeout=300)
        made = Cluster(directory / "kubeconfig")
        apply_crds(made, crds)
        made.kubectl("create", "clusterrole", "hudi-operator-driver", "--verb=get", "--resource=pods")
        made.node("node1")
        yield made
        made.close()
    finally:
        subprocess.run([light, "down", directory], check=False, timeout=60)


def apply_crds(made: Cluster, crds: Path) -> None:
    """As an administrator before an upgrade."""
    made.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(crds))
    made.kubectl("wait", "--for=condition=Established", *CRDS, "--timeout=60s")
