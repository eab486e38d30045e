"""One etcd member for tests as the chart sets it up: mutual TLS, users and roles.

The test itself is the operator; pods talk to etcd as the gateway does, with its certificate.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "operator")]
# etcd3's generated code is older than protobuf 4
os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")

from hudi_operator import etcd_auth  # noqa: E402
from hudi_operator.adapters import etcd_rpc as rpc  # noqa: E402
from hudi_operator.model.config import EtcdConfig  # noqa: E402
from tests.support.ports import free_port  # noqa: E402

CACHE = Path(os.environ.get("HUDI_OPERATOR_CACHE", Path.home() / ".cache" / "hudi-operator"))
TIMEOUT = 10.0
"""Seconds for one call of the test."""


@functools.cache
def pki() -> Path:
    """Certificates of hack/certificates/pki, made once for each process of tests."""
    folder = Path(tempfile.mkdtemp(prefix="hudi-operator-pki-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run(
        [str(ROOT / "hack" / "certificates" / "pki"), str(folder)],
        check=True,
        timeout=120,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return folder


@dataclass(frozen=True)
class Key:
    key: str
    value: dict[str, Any]
    mod_revision: int


class EtcdServer:
    """Start with `start()`, stop with `stop()`.

    Keys are written and read with the operator's certificate.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._operator: rpc.Connection | None = None
        self.url = ""

    def start(self) -> None:
        """Returns when etcd answers and knows its users."""
        client, peer = free_port(), free_port()
        self.url = f"https://127.0.0.1:{client}"
        peer_url = f"http://127.0.0.1:{peer}"
        command = [
            str(CACHE / "bin" / "etcd"),
            "--name=test",
            f"--data-dir={self._folder}",
            f"--listen-client-urls={self.url}",
        ]
        command += [
            f"--advertise-client-urls={self.url}",
            f"--listen-peer-urls={peer_url}",
            "--unsafe-no-fsync",
            "--log-level=error",
        ]
        command += [f"--initial-advertise-peer-urls={peer_url}", f"--initial-cluster=test={peer_url}"]
        command += [
            "--client-cert-auth",
            f"--trusted-ca-file={pki() / 'ca.crt'}",
            f"--cert-file={pki() / 'server.crt'}",
            f"--key-file={pki() / 'server.key'}",
        ]
        with (self._folder.parent / "etcd.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        problem = etcd_auth.run(self._config("root"), wait_seconds=60)
        assert not problem, problem
        self._operator = rpc.Connection(self._config("operator"), timeout=TIMEOUT)

    def stop(self) -> None:
        if self._operator is not None:
            self._operator.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _config(self, user: str) -> EtcdConfig:
        files = {
            f"{what}_file": str(pki() / name)
            for what, name in (("ca", "ca.crt"), ("cert", f"{user}.crt"), ("key", f"{user}.key"))
        }
        return EtcdConfig(endpoints=(self.url,), prefix="/hudi", **files)

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which a driver or an agent reaches it without a gateway in between."""
        files = {"CA": "ca.crt", "CERT": "gateway.crt", "KEY": "gateway.key"}
        return {
            "HUDI_OPERATOR_ETCD_ENDPOINTS": self.url,
            "HUDI_OPERATOR_ETCD_PREFIX": "/hudi",
            **{f"HUDI_OPERATOR_ETCD_{name}": str(pki() / file) for name, file in files.items()},
        }

    def _call(self, method: str, request: rpc.Message, *, writes: bool) -> rpc.Message:
        assert self._operator is not None, "etcd was not started"
        return self._operator.call_now(rpc.kv, method, request, writes=writes)

    def put(self, key: str, value: dict[str, Any]) -> None:
        self._call("Put", rpc.messages.PutRequest(key=key.encode(), value=json.dumps(value).encode()), writes=True)

    def delete(self, key: str) -> None:
        self._call("DeleteRange", rpc.messages.DeleteRangeRequest(key=key.encode()), writes=True)

    def range(self, prefix: str) -> list[Key]:
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        return self._keys(rpc.messages.RangeRequest(key=prefix.encode(), range_end=end.encode()))

    def get(self, key: str) -> Key | None:
        return next(iter(self._keys(rpc.messages.RangeRequest(key=key.encode()))), None)

    def _keys(self, request: rpc.Message) -> list[Key]:
        return [
            Key(kv.key.decode(), json.loads(kv.value.decode()), int(kv.mod_revision))
            for kv in self._call("Range", request, writes=False).kvs
        ]
