"""Shared parts of all runs: one light cluster, one etcd, and for real agents one S3 server with
copies of a prepared table.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.campaigns.crashes.agents import Host, Storage
from tests.campaigns.crashes.api_proxy import LoopThread
from tests.campaigns.crashes.nursery import Nursery
from tests.campaigns.crashes.prepared import Prepared
from tests.campaigns.crashes.run import Parts
from tests.support import ROOT
from tests.support.harness.local import World
from tests.support.harness.servers import Cluster, Etcd

CRDS = ("crd/huditables.hudioperator.io", "crd/hudiwriters.hudioperator.io")


@contextmanager
def servers(directory: Path) -> Iterator[tuple[Path, Etcd]]:
    """API server with our kinds and a node, and etcd with users.

    Yields the cluster's directory and etcd.
    """
    place, etcd = directory / "cluster", Etcd(_made(directory / "etcd"))
    subprocess.run([ROOT / "hack/cluster/light-cluster", "up", place], check=True, timeout=150)
    try:
        etcd.start()
        _note(place / "pids/our-etcd", etcd)
        etcd.set_up_users()
        prepare(place)
        yield place, etcd
    finally:
        etcd.stop()
        subprocess.run([ROOT / "hack/cluster/light-cluster", "down", place], check=False, timeout=60)


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True)
    return directory


def _note(file: Path, etcd: Etcd) -> None:
    """The process id where those of the cluster's servers are."""
    assert etcd._process is not None
    started = Path(f"/proc/{etcd._process.pid}/stat").read_text().rpartition(") ")[2].split()[19]
    file.write_text(f"{etcd._process.pid} {started}\n")


def prepare(place: Path) -> None:
    """Our kinds, the drivers' role and a node."""
    cluster = Cluster(place / "kubeconfig")
    try:
        cluster.kubectl("apply", "-f", str(ROOT / "crds"))
        cluster.kubectl("wait", "--for=condition=Established", *CRDS, "--timeout=60s")
        cluster.kubectl("create", "clusterrole", "hudi-operator-driver", "--verb=get", "--resource=pods")
        cluster.node("node1")
    finally:
        cluster.close()


@contextmanager
def s3(directory: Path) -> Iterator[tuple[str, Path]]:
    """The S3 server: its URL and its folder."""
    world = World(_made(directory))
    try:
        yield world.start_s3(), world.s3_folder
    finally:
        world.stop()


@contextmanager
def joined(
    place: Path, etcd: Etcd, *, s3_server: tuple[str, Path], prepared: Prepared, scratch: Path
) -> Iterator[Parts]:
    """This process's own connections to servers that run already, and its own agent process."""
    host = Host(scratch, s3_server[0])
    parts = Parts(
        Cluster(place / "kubeconfig"), place, etcd, LoopThread(), Nursery(), Storage(*s3_server, prepared, host)
    )
    try:
        yield parts
    finally:
        host.kill()
        parts.nursery.close()
        parts.cluster.close()
        parts.loop.close()
