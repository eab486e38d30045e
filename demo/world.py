"""Names shared by all parts of the demo, and its preparation before the scenario starts: storage,
Secrets, watches.
"""

from __future__ import annotations

import base64
import os
import secrets
import socket
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from demo import cluster, flights
from demo.cluster import ROOT, JsonDict, kubectl
from demo.lake import Lake
from demo.protocol import Watch
from demo.screen import DemoFailed, Screen
from hudi_contract import naming
from hudi_contract.keys import PREFIX, TABLES, tables_prefix

NAMESPACE = "flights"
STORAGE_NAMESPACE = "storage"
OPERATOR_NAMESPACE = "hudi-operator"
ETCD = "hudi-operator-etcd"
TABLE = "flights"
WRITERS = ("load", "live", "backfill", "encrypt")
TOGETHER = ("live", "backfill", "encrypt")
EXAMPLES = ROOT / "examples" / "flights"
EVENTS = "spark-events/flights"
OUT = ROOT / "build" / "demo"
FOLDERS = ("lake", "landing", "spark-events", EVENTS)


class Forward:
    """`kubectl port-forward`, restarted whenever it ends (for example when the pod restarts)."""

    def __init__(self, namespace: str, target: str, ports: str) -> None:
        self._command = ["kubectl", "port-forward", "-n", namespace, target, ports]
        self._process: subprocess.Popen[bytes] | None = None
        self._stop = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        self._stop.set()
        if self._process is not None:
            self._process.terminate()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self._process.wait()
            self._stop.wait(0.5)


class Way(Protocol):
    """A connection from a port of this machine to a port of a pod."""

    def stop(self) -> None:
        """Close it."""


@dataclass
class World:
    """Everything that the scenario and the checks need."""

    screen: Screen
    lake: Lake
    path: str
    """Table's path in the store, ``bucket/prefix``."""
    tailnum_key: str
    logs: cluster.PodLogs
    watch: Watch
    forward: Way

    def writer(self, name: str) -> JsonDict:
        return cluster.get("hudiwriter", name, "-n", NAMESPACE)

    def writers(self) -> dict[str, JsonDict]:
        return {item["metadata"]["name"]: item for item in cluster.items("hudiwriters", "-n", NAMESPACE)}

    def apply(self, *names: str) -> None:
        """Apply example manifests; the table's path is replaced when an earlier run has used it."""
        for name in names:
            cluster.apply((EXAMPLES / f"{name}.yaml").read_text().replace("s3a://lake/flights", f"s3a://{self.path}"))

    def close(self) -> None:
        self.watch.stop()
        self.logs.stop()
        self.forward.stop()


def secret(namespace: str, name: str, values: dict[str, str]) -> None:
    text = kubectl(
        "create",
        "secret",
        "generic",
        name,
        "-n",
        namespace,
        "--dry-run=client",
        "-o",
        "yaml",
        *[f"--from-literal={k}={v}" for k, v in values.items()],
    )
    cluster.apply(text)
    # Whose tables may use it: any of this namespace.
    kubectl("annotate", "secret", name, "-n", namespace, "--overwrite", "hudioperator.io/allowed-tables=*")


def read_secret(namespace: str, name: str) -> dict[str, str]:
    """Decoded values; empty when there is no such Secret."""
    if not cluster.exists("secret", name, "-n", namespace):
        return {}
    return {
        key: base64.b64decode(value).decode()
        for key, value in cluster.get("secret", name, "-n", namespace).get("data", {}).items()
    }


def prepare(screen: Screen) -> World:
    """Prepare storage with the CSV files, the namespace with Secrets, and watches.

    Remains of an earlier run are deleted first.
    """
    remove_former_run(screen)
    lake = storage(screen)
    path = fresh_path(lake)
    upload(screen, lake)
    cluster.apply((EXAMPLES / "namespace.yaml").read_text())
    key = secrets.token_hex(16)
    secret(NAMESPACE, "lake-credentials", {"accessKeyId": lake.access_key, "secretAccessKey": lake.secret_key})
    secret(NAMESPACE, "tailnum-key", {"KEY": key})
    watch, forward = etcd_watch(screen, table=table_id(path))
    world = World(screen, lake, path, key, cluster.PodLogs(NAMESPACE, OUT / "logs"), watch, forward)
    world.watch.start()
    world.logs.start()
    return world


def remove_former_run(screen: Screen) -> None:
    if not cluster.exists("namespace", NAMESPACE):
        return
    screen.fact("an earlier run is there: deleting its namespace")
    kubectl("delete", "namespace", NAMESPACE, "--wait=false")

    def gone() -> tuple[bool | None, str]:
        if not cluster.exists("namespace", NAMESPACE):
            return True, ""
        return None, ", ".join(
            kubectl("get", "hudi,pods", "-n", NAMESPACE, "-o", "name").split()
        ) or "namespace terminating"

    screen.wait(f"the end of namespace {NAMESPACE}", gone, seconds=180)


def storage(screen: Screen) -> Lake:
    """The S3 server in the cluster, and a client for it."""
    kubectl("create", "namespace", STORAGE_NAMESPACE) if not cluster.exists("namespace", STORAGE_NAMESPACE) else None
    credentials = read_secret(STORAGE_NAMESPACE, "lake-credentials")
    if not credentials:
        credentials = {"accessKeyId": "AK" + secrets.token_hex(8).upper(), "secretAccessKey": secrets.token_hex(20)}
        secret(STORAGE_NAMESPACE, "lake-credentials", credentials)
    cluster.apply((EXAMPLES / "s3.yaml").read_text())

    def available() -> tuple[bool | None, str]:
        status = cluster.get("deployment", "s3", "-n", STORAGE_NAMESPACE).get("status", {})
        if status.get("availableReplicas"):
            return True, ""
        return None, kubectl("get", "pods", "-n", STORAGE_NAMESPACE, "--no-headers").strip() or "no pod yet"

    screen.wait("the S3 server", available, seconds=120)
    address = cluster.get("service", "s3", "-n", STORAGE_NAMESPACE)["spec"]["clusterIP"]
    lake = Lake(f"http://{address}:9000", credentials["accessKeyId"], credentials["secretAccessKey"])
    for folder in FOLDERS:
        lake.make_folder(folder)
    screen.fact(f"S3 server ready at {lake.endpoint}")
    return lake


def fresh_path(lake: Lake) -> str:
    """``lake/flights``, with a number appended when earlier runs have left data there."""
    used = [name.removeprefix("flights").lstrip("-") or "1" for name in lake.names("lake")]
    number = max((int(suffix) for suffix in used if suffix.isdigit()), default=0) + 1
    return "lake/flights" if number == 1 else f"lake/flights-{number}"


def table_id(path: str) -> str:
    """The table's name in etcd (docs/design/contracts.md, section 1)."""
    return naming.table_id(f"s3a://{path}")


def upload(screen: Screen, lake: Lake) -> None:
    files = flights.landing(flights.raw())
    for name, rows in files.items():
        if not lake.exists(f"landing/{name}"):
            lake.upload_csv(f"landing/{name}", rows)
    screen.fact(
        f"{len(files)} CSV files in s3a://landing, "
        f"{sum(len(rows) for name, rows in files.items() if name.startswith('flights/'))} flights"
    )


def etcd_identity(namespace: str = OPERATOR_NAMESPACE, etcd: str = ETCD) -> Path:
    """Folder with the gateway's current certificate, which may have been renewed."""
    identity = read_secret(namespace, f"{etcd}-gateway")
    if not identity:
        raise DemoFailed(
            f"there is no Secret {etcd}-gateway in the namespace {namespace}: is the chart installed with its own etcd?"
        )
    directory = OUT / "etcd" / namespace
    directory.mkdir(parents=True, exist_ok=True)
    for name, value in identity.items():
        with open(directory / name, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
            out.write(value)
    return directory


def etcd_watch(
    screen: Screen,
    *,
    table: str = "",
    way: Callable[[str, str, str], Way] = Forward,
    namespace: str = OPERATOR_NAMESPACE,
    etcd: str = ETCD,
) -> tuple[Watch, Way]:
    """Watch a release's lock service with the gateway's certificate: one table's keys, or all."""
    directory = etcd_identity(namespace, etcd)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    forward = way(namespace, f"pod/{etcd}-0", f"{port}:2379")
    command = [
        etcdctl(),
        f"--endpoints=https://127.0.0.1:{port}",
        *[
            f"--{flag}={directory / name}"
            for flag, name in (("cacert", "ca.crt"), ("cert", "tls.crt"), ("key", "tls.key"))
        ],
    ]
    watch = Watch(command, tables_prefix(PREFIX, table) if table else f"{PREFIX}/{TABLES}/")

    def answers() -> tuple[bool | None, str]:
        return (True, "") if watch.begin() else (None, "no answer yet")

    screen.wait("etcd", answers, seconds=30)
    return watch, forward


def etcdctl() -> str:
    cache = Path(os.environ.get("HUDI_OPERATOR_CACHE", Path.home() / ".cache" / "hudi-operator"))
    return str(cache / "bin" / "etcdctl")
