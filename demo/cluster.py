"""kubectl, as a user calls it, and the logs of all pods of the demo, kept in build/demo/logs."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

JsonDict = dict[str, Any]
ROOT = Path(__file__).resolve().parents[1]


class KubectlFailed(Exception):
    """kubectl returned an error."""


def kubectl(*arguments: str, stdin: str | None = None, timeout: float = 120) -> str:
    """Run kubectl and return what it prints."""
    done = subprocess.run(["kubectl", *arguments], input=stdin, capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        raise KubectlFailed(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def get(*arguments: str) -> JsonDict:
    """``kubectl get ... -o json``."""
    return json.loads(kubectl("get", *arguments, "-o", "json"))


def items(*arguments: str) -> list[JsonDict]:
    return get(*arguments)["items"]


def exists(*arguments: str) -> bool:
    return bool(kubectl("get", *arguments, "--ignore-not-found", "-o", "name").strip())


def apply(manifest: str) -> None:
    kubectl("apply", "-f", "-", stdin=manifest)


def condition(resource: JsonDict, kind: str) -> JsonDict:
    """One condition of an object's status; empty when it is absent."""
    found = [c for c in resource.get("status", {}).get("conditions", []) if c["type"] == kind]
    return found[0] if found else {}


def is_true(resource: JsonDict, kind: str) -> bool:
    return condition(resource, kind).get("status") == "True"


def host_pids(namespace: str, pod: str) -> list[int]:
    """Process ids of a pod's containers on this machine."""
    done = subprocess.run(
        [str(ROOT / "hack" / "cluster" / "cluster"), "host-pid", namespace, pod], capture_output=True, text=True
    )
    return [int(line) for line in done.stdout.split()]


def jvm_pid(namespace: str, pod: str) -> int | None:
    """Process id of the driver's JVM among them; None when there is none yet."""
    for pid in host_pids(namespace, pod):
        try:
            if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "java":
                return pid
        except OSError:
            continue
    return None


class PodLogs:
    """Follows the log of every pod of a namespace, from its first line on."""

    def __init__(self, namespace: str, directory: Path) -> None:
        self.namespace, self.directory = namespace, directory
        directory.mkdir(parents=True, exist_ok=True)
        self._followed: dict[str, subprocess.Popen[bytes]] = {}
        self._stop = threading.Event()
        self.seen: dict[str, tuple[str, datetime]] = {}
        self._watch: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._follow_all, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        for process in [self._watch, *self._followed.values()]:
            if process is not None and process.poll() is None:
                process.terminate()

    def first_seen(self, pod: str) -> datetime | None:
        """Time at which this program first saw the pod."""
        return self.seen[pod][1] if pod in self.seen else None

    def text(self, pod: str) -> str:
        path = self.directory / f"{pod}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _follow_all(self) -> None:
        columns = "custom-columns=N:.metadata.name,P:.status.phase"
        while not self._stop.is_set():
            self._watch = subprocess.Popen(
                ["kubectl", "get", "pods", "-n", self.namespace, "--watch", "--no-headers", "-o", columns],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            assert self._watch.stdout is not None
            for line in self._watch.stdout:
                name, phase = line.split()[:2]
                self.seen.setdefault(name, (phase, datetime.now().astimezone()))
                if phase in {"Running", "Succeeded", "Failed"} and name not in self._followed:
                    self._follow(name)
            self._stop.wait(1)

    def _follow(self, name: str) -> None:
        with (self.directory / f"{name}.log").open("wb") as out:
            self._followed[name] = subprocess.Popen(
                ["kubectl", "logs", "-n", self.namespace, "-f", name], stdout=out, stderr=subprocess.DEVNULL
            )
