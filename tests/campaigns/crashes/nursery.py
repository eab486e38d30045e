"""Operators as forks of a process that has only imported them: half of the CPU of a short run would
be spent on the same imports again.

A fork shares nothing with its siblings: it gets its own environment, log and folder, and is killed
and judged like any other process.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.support import ROOT
from tests.support.harness.servers import ENVIRONMENT


class Forked:
    """A process that is no child of this one, with what tests use of ``subprocess.Popen``."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._handle = os.pidfd_open(pid)
        self._lock = threading.Lock()
        self.returncode: int | None = None
        """0 when it has ended: how, only its parent knows."""

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None and select.select([self._handle], [], [], 0)[0]:
                self.returncode = 0
                os.close(self._handle)
            return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is not None:
            raise ProcessLookupError(self.pid)
        signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("operator", timeout or 0)
            time.sleep(0.005)
        return 0


class Nursery:
    """The process that forks."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.campaigns.crashes.nursery"]
        environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join((str(ROOT / "operator"), str(ROOT)))}
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._lock = threading.Lock()

    def start(self, environment: dict[str, str], log: Path, directory: Path) -> Forked:
        """Fork an operator with these variables beside the nursery's own."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps([environment, str(log), str(directory)]) + "\n")
            self._process.stdin.flush()
            return Forked(int(self._process.stdout.readline()))

    def close(self) -> None:
        """Forks that still run are the callers' to end."""
        self._process.kill()
        self._process.wait()


def serve() -> None:
    """Fork for each line of standard input."""
    # The Kubernetes client reads this once, when it is imported: each fork finds the file in its
    # own folder.
    os.environ["KUBECONFIG"] = "kubeconfig"
    import hudi_operator.main  # noqa: F401

    assert len(os.listdir("/proc/self/task")) == 1, "a thread would be lost in the forks"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            become(*json.loads(line))
        print(pid, flush=True)


def become(environment: dict[str, str], log: str, directory: str) -> None:
    """Be an operator; never returns."""
    from hudi_operator.main import main

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.environ.update(environment)
    os.chdir(directory)
    code = 1
    try:
        code = main()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
