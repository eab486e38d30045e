"""One etcd member for tests, and a client over its JSON gateway (no library: a few keys, plain HTTP, this machine only)."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CACHE = Path(os.environ.get("HUDI_OPERATOR_CACHE", Path.home() / ".cache" / "hudi-operator"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decode(text: str) -> str:
    return base64.b64decode(text).decode()


@dataclass(frozen=True)
class Key:
    key: str
    value: dict[str, Any]
    mod_revision: int


class EtcdServer:
    """Start with `start()`, stop with `stop()`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> None:
        client, peer = free_port(), free_port()
        self.url = f"http://127.0.0.1:{client}"
        peer_url = f"http://127.0.0.1:{peer}"
        command = [str(CACHE / "bin" / "etcd"), "--name=test", f"--data-dir={self._folder}", f"--listen-client-urls={self.url}"]
        command += [f"--advertise-client-urls={self.url}", f"--listen-peer-urls={peer_url}", "--unsafe-no-fsync", "--log-level=error"]
        command += [f"--initial-advertise-peer-urls={peer_url}", f"--initial-cluster=test={peer_url}"]
        with (self._folder.parent / "etcd.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(f"{self.url}/v3/{path}", data=json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return dict(json.load(answer))

    def ready(self) -> bool:
        try:
            self._call("kv/range", {"key": _encode("x")})
        except OSError:
            return False
        return True

    def put(self, key: str, value: dict[str, Any]) -> None:
        self._call("kv/put", {"key": _encode(key), "value": _encode(json.dumps(value))})

    def delete(self, key: str) -> None:
        self._call("kv/deleterange", {"key": _encode(key)})

    def range(self, prefix: str) -> list[Key]:
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        return self._keys({"key": _encode(prefix), "range_end": _encode(end)})

    def get(self, key: str) -> Key | None:
        return next(iter(self._keys({"key": _encode(key)})), None)

    def _keys(self, body: dict[str, Any]) -> list[Key]:
        answer = self._call("kv/range", body)
        return [Key(_decode(kv["key"]), json.loads(_decode(kv["value"])), int(kv["mod_revision"])) for kv in answer.get("kvs", [])]
