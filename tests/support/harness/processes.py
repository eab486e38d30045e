"""Processes of a test, and waits with a bound."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

TIMEOUT = 240.0
T = TypeVar("T")


def until(
    what: str,
    probe: Callable[[], T | None],
    *,
    timeout: float = TIMEOUT,
    alive: Process | None = None,
    every: float = 0.1,
) -> T:
    """Wait for a condition.

    Fails with its name, or when the process that should bring it about has ended.
    """
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        found = probe()
        if found:
            return found
        if alive is not None and alive.poll() is not None:
            raise AssertionError(f"{what}: {alive.name} has ended with {alive.poll()}\n{alive.log()[-4000:]}")
        time.sleep(every)
    raise AssertionError(f"{what}: not within {timeout:.0f} s" + (f"\n{alive.log()[-4000:]}" if alive else ""))


class Process:
    """A Python process with a JVM below it."""

    def __init__(self, name: str, folder: Path, *, module: str, env: Mapping[str, str]) -> None:
        self.name = name
        self.folder = folder
        self._log = folder / "log"
        self.started = time.monotonic()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                env=dict(env),
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id of the Python process."""
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, timeout: float = TIMEOUT) -> int:
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} has not ended within {timeout:.0f} s\n{self.log()[-4000:]}") from None

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def protocol(self, action: str = "") -> list[dict[str, Any]]:
        """The PROTOCOL lines so far, of one action if named."""
        lines = [json.loads(line) for line in re.findall(r"^PROTOCOL (\{.*\})$", self.log(), re.M)]
        return [line for line in lines if not action or line["action"] == action]

    @property
    def inc(self) -> str:
        """The incarnation, from the registration's line."""
        found = self.protocol("register")
        return str(found[0]["actor"]) if found else ""

    def termination(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "termination").read_text()))

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def signal(self, number: signal.Signals) -> None:
        """A signal to the JVM, its Python workers and its parent."""
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """SIGKILL to the JVM, its Python workers and its parent: the whole group is ours."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(20)

    def end_rest(self) -> None:
        """End the rest of its process group, as in a container whose first process has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
