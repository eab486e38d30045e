"""The servers that the operator talks to, as a test needs them: an API server that runs already,
and a separate etcd.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

# etcd3's generated code is older than protobuf 4
os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")

from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.ports import OutcomeUnknown, Retryable
from tests.support import CACHE, ROOT
from tests.support.ports import free_ports

JsonDict = dict[str, Any]
T = TypeVar("T")

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT / "operator"),
    "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python",
}


def wait_for(what: str, check: Callable[[], T | None], *, seconds: float = 40.0) -> T:
    """Ask until the answer is true; fails after ``seconds``. Empty answers and 0 do not count."""
    deadline = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not seen within {seconds:.0f} s: {what}")
        time.sleep(0.1)


def stopped(thread: Path) -> bool:
    """Whether a thread, a folder in /proc, does not run (any more)."""
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0] in "TtZX"
    except FileNotFoundError:
        return True


class Cluster:
    """The API server, as its administrator."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        # kubectl takes 0.1 s per call; a proxy reduces that to a request of 2 ms.
        self._port = free_ports(1)[0]
        self._proxy = subprocess.Popen(
            [CACHE / "bin/kubectl", "--kubeconfig", kubeconfig, "proxy", f"--port={self._port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for("kubectl proxy", self._answers)

    @property
    def address(self) -> str:
        """Address of the API server, for clients that do not authenticate."""
        return f"http://127.0.0.1:{self._port}"

    def _answers(self) -> bool:
        try:
            self.request("GET", "/version")
        except OSError:
            return False
        return True

    def close(self) -> None:
        self._proxy.kill()
        self._proxy.wait()

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            [CACHE / "bin/kubectl", "--kubeconfig", self.kubeconfig, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=90,
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def request(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> JsonDict | None:
        """JSON in, JSON out; None for 404."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}", data=data, method=method, headers={"Content-Type": content_type}
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return dict(json.loads(response.read()))
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise AssertionError(f"{method} {path}: {error.read().decode()}") from error

    def node(self, name: str, *, boot_id: str = "boot-1") -> None:
        """A node that is ready."""
        self.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        }
        info = dict.fromkeys(
            (
                "machineID",
                "systemUUID",
                "kernelVersion",
                "osImage",
                "containerRuntimeVersion",
                "kubeletVersion",
                "kubeProxyVersion",
                "operatingSystem",
                "architecture",
            ),
            "x",
        )
        status = {"status": {"conditions": [ready], "nodeInfo": {**info, "bootID": boot_id}}}
        self.request("PATCH", f"/api/v1/nodes/{name}/status", status, "application/merge-patch+json")
        # The API server taints a new node; the node lifecycle controller, which is not here, would
        # take that away.
        self.request("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, "application/merge-patch+json")


class Etcd:
    """One etcd with mutual TLS; also etcdctl for each identity."""

    def __init__(self, directory: Path, *more: str) -> None:
        """``more``: further arguments of the server; they count before those here."""
        self.directory, self.more = directory, list(more)
        self.pki = directory / "pki"
        subprocess.run([ROOT / "hack/certificates/pki", self.pki], check=True, timeout=60)
        self.port, self._peer = free_ports(2)
        self.endpoint = f"https://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._connections: dict[str, rpc.Connection] = {}

    @property
    def peer(self) -> str:
        """Its address for other members."""
        return f"http://127.0.0.1:{self._peer}"

    def start(self) -> None:
        peer = self.peer
        with (self.directory / "etcd.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    CACHE / "bin/etcd",
                    "--name=e",
                    f"--data-dir={self.directory / 'data'}",
                    "--unsafe-no-fsync",
                    "--log-level=warn",
                    f"--listen-client-urls={self.endpoint}",
                    f"--advertise-client-urls={self.endpoint}",
                    f"--listen-peer-urls={peer}",
                    f"--initial-advertise-peer-urls={peer}",
                    f"--initial-cluster=e={peer}",
                    "--client-cert-auth",
                    f"--trusted-ca-file={self.pki / 'ca.crt'}",
                    f"--cert-file={self.pki / 'server.crt'}",
                    f"--key-file={self.pki / 'server.key'}",
                    *self.more,
                ],
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        """Process id of the running process."""
        assert self._process is not None
        return self._process.pid

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        threads = Path(f"/proc/{self._process.pid}/task")
        # A signal is an order: on a busy machine a thread answers one more request before it obeys.
        wait_for("etcd stands still", lambda: all(stopped(thread) for thread in threads.iterdir()))

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def set_up_users(self) -> subprocess.CompletedProcess[str]:
        files = ["--cacert", self.pki / "ca.crt", "--cert", self.pki / "root.crt", "--key", self.pki / "root.key"]
        done = subprocess.run(
            [sys.executable, "-m", "hudi_operator.etcd_auth", "--endpoints", self.endpoint, *files],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=130,
        )
        assert done.returncode == 0, done.stderr
        return done

    def ctl(self, identity: str, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """etcdctl as ``operator``, ``gateway``, ``root`` or, with an empty identity, without a
        certificate.
        """
        certificate = [f"--cert={self.pki / identity}.crt", f"--key={self.pki / identity}.key"] if identity else []
        command = [
            CACHE / "bin/etcdctl",
            f"--endpoints={self.endpoint}",
            f"--cacert={self.pki / 'ca.crt'}",
            *certificate,
            "--command-timeout=3s",
            "--dial-timeout=3s",
        ]
        return subprocess.run(
            [*command, *arguments], input=stdin, capture_output=True, text=True, timeout=20, check=False
        )

    def read(self, prefix: str) -> dict[str, JsonDict]:
        """All keys with a prefix."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        request = rpc.messages.RangeRequest(key=prefix.encode(), range_end=end.encode())
        found = self._call("root", "Range", request, writes=False).kvs
        return {pair.key.decode(): json.loads(pair.value) for pair in found}

    def revision(self) -> int:
        """Revision of the whole store."""
        request = rpc.messages.RangeRequest(key=b"/", count_only=True)
        return int(self._call("root", "Range", request, writes=False).header.revision)

    def put(self, key: str, value: JsonDict, *, lease: str = "", identity: str = "gateway") -> None:
        """As a pod would, or as the operator."""
        request = rpc.messages.PutRequest(
            key=key.encode(), value=json.dumps(value).encode(), lease=int(lease or "0", 16)
        )
        self._call(identity, "Put", request, writes=True)

    def delete(self, key: str) -> None:
        self._call("gateway", "DeleteRange", rpc.messages.DeleteRangeRequest(key=key.encode()), writes=True)

    def _call(self, identity: str, method: str, request: rpc.Message, *, writes: bool) -> rpc.Message:
        """One call with a certificate, in this process: tests look ten times in a second, and each
        etcdctl would load, connect and authenticate again.
        """
        if identity not in self._connections:
            files = {
                f"{what}_file": str(self.pki / name)
                for what, name in (("ca", "ca.crt"), ("cert", f"{identity}.crt"), ("key", f"{identity}.key"))
            }
            self._connections[identity] = rpc.Connection(
                EtcdConfig(endpoints=(self.endpoint,), prefix="/hudi", **files)
            )
        connection = self._connections[identity]
        try:
            return connection.call_now(rpc.kv, method, request, writes=writes)
        except (Retryable, OutcomeUnknown):  # a connection of before etcd stood still; twice is as good as once
            return connection.call_now(rpc.kv, method, request, writes=writes)
