"""An S3 server with users, time limits before it, and the example broker of storage credentials."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from tests.support import CACHE, ROOT
from tests.support.harness.local import ACCESS_KEY, LAID, SECRET_KEY
from tests.support.harness.processes import until
from tests.support.ports import free_port

_SERVER = CACHE / "bin" / "versitygw"
_EXAMPLE = ROOT / "examples" / "credentials"
TOKEN = "token-of-the-operator"


class RevocableStore:
    """Two servers over one folder of files and one of users, as behind a load balancer."""

    def __init__(
        self, folder: Path, files: Path, *, cache_seconds: int, limit_seconds: float, host: str = "127.0.0.1"
    ) -> None:
        """`limit_seconds`: of `limits.py`, before the first server.

        `host`: where all of them listen.
        """
        self._host = host
        self.folder, self._users, self._files = folder, folder / "users", files
        self._users.mkdir(parents=True)
        self.cache_seconds, self.limit_seconds = cache_seconds, limit_seconds
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.bare, self.other = (self._server(name) for name in ("first", "other"))
        port = free_port()
        self.url = f"http://{host}:{port}"
        """The first server behind its time limits."""
        to = urlsplit(self.bare).netloc
        self._start(
            "limits",
            [_EXAMPLE / "limits.py", "--listen", f"{host}:{port}", "--to", to, "--seconds", str(limit_seconds)],
        )
        self._broker_port = free_port()
        self.broker = f"http://{host}:{self._broker_port}"
        self.token_file = folder / "token"
        self.token_file.write_text(TOKEN)
        self.start_broker()
        for url in (self.bare, self.other, self.url, self.broker):
            until(f"{url} answers", lambda url=url: _answers(url), timeout=60)  # type: ignore[misc]

    def _server(self, name: str) -> str:
        port = free_port()
        ttl = ["--iam-cache-ttl", str(self.cache_seconds)]
        command = [str(_SERVER), "--access", ACCESS_KEY, "--secret", SECRET_KEY, "--quiet", "--iam-dir", self._users]
        where = ["--port", f"{self._host}:{port}", "posix", "--default-etag", LAID, self._files]
        with (self.folder / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen([*command, *ttl, *where], stdout=log, stderr=log)
        return f"http://{self._host}:{port}"

    def _start(self, name: str, command: Iterable[object], **variables: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, *map(str, command)], stdout=log, stderr=log, env={**os.environ, **variables}
            )

    def start_broker(self) -> None:
        """Start the broker, on the state that an earlier one has left."""
        state, listen = self.folder / "state", f"{self._host}:{self._broker_port}"
        # It speaks with the other server, so the cache of the first one does not change.
        command = [_EXAMPLE / "broker.py", "--endpoint", self.other, "--state", state, "--listen", listen]
        keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
        self._start("broker", command, TOKEN=TOKEN, SECRET_KEY="s" * 32, **keys)

    def wait_for_broker(self) -> None:
        until("the broker answers", lambda: _answers(self.broker), timeout=60)

    def kill(self, name: str) -> None:
        """SIGKILL to `first`, `other`, `limits` or `broker`."""
        self._processes[name].kill()
        self._processes[name].wait()

    def signal(self, name: str, number: signal.Signals) -> None:
        self._processes[name].send_signal(number)

    def admin(self, *arguments: str) -> None:
        """A command of the other server's administrator."""
        who = ["--access", ACCESS_KEY, "--secret", SECRET_KEY, "--endpoint-url", self.other]
        done = subprocess.run(
            [str(_SERVER), "admin", *who, *arguments], capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == 0, done.stderr

    def stop(self) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def told(self, name: str) -> str:
        """The log of one process."""
        return (self.folder / f"{name}.log").read_text(errors="replace")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


class HalfSent:
    """A PUT of which only the first half of the body has been sent, as by a process that stands
    still.
    """

    def __init__(self, url: str, head: bytes, body: bytes) -> None:
        where = urlsplit(url)
        self._rest = body[len(body) // 2 :]
        self._socket = socket.create_connection((where.hostname or "", where.port or 80), timeout=20)
        self._socket.sendall(head + body[: len(body) // 2])
        time.sleep(0.5)

    def go_on(self) -> str:
        """Send the rest; the status line of the answer, empty when the connection has ended."""
        try:
            self._socket.sendall(self._rest)
            answer = self._socket.recv(200)
        except OSError:
            answer = b""
        self._socket.close()
        return answer.split(b"\r\n")[0].decode()
