"""The embedded node from outside: logs from its disk, a way to pods past API server and kubelet,
frozen programs, cut networks.

The observer of a fault must not depend on parts that the fault takes away: `kubectl logs` and
`kubectl port-forward` end with the kubelet or the API server.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from demo import cluster
from demo.cluster import kubectl

from tests.support.harness.s3proxy import end_tasks

HOST = "10.245.0.1"
"""This machine, as pods see it."""
FROZEN_AT_MOST = 180
"""Seconds after which a frozen program goes on by itself, should the test that froze it be gone."""


def node(*command: str, seconds: float = 60) -> str:
    """Run hack/cluster/cluster; AssertionError with its output when it fails."""
    done = subprocess.run(
        [str(cluster.ROOT / "hack" / "cluster" / "cluster"), *command], capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, f"hack/cluster/cluster {' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


class NodeLogs:
    """Copies what the pods of a namespace log from the node's disk, from its first line on, into
    `<pod>.log` (a second container `<pod>.1.log`).
    """

    def __init__(self, namespace: str, directory: Path) -> None:
        self.namespace, self.directory = namespace, directory
        directory.mkdir(parents=True, exist_ok=True)
        for former in directory.glob("*.log"):
            former.unlink()
        self._files: dict[Path, tuple[BinaryIO, BinaryIO]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _run(self) -> None:
        place = Path(node("kubeconfig").strip()).parent / "disk" / "pod-logs"
        while not self._stop.wait(0.2):
            self._look(place)
        self._look(place)

    def _look(self, place: Path) -> None:
        for path in self._there(place):
            if path not in self._files:
                with suppress(FileNotFoundError):  # removed between the two calls
                    self._files[path] = (path.open("rb"), self._copy(path).open("wb"))
        for source, copy in self._files.values():
            copy.write(source.read())  # goes on after the kubelet has removed the file's name
            copy.flush()

    def _there(self, place: Path) -> list[Path]:
        """The pods' log files.

        When a folder goes while it is listed, the rest is found by the next look: the thread must
        not end, since nothing would be copied any more.
        """
        found: list[Path] = []
        with suppress(FileNotFoundError):
            found.extend(place.glob(f"{self.namespace}_*/*/*.log"))
        return found

    def _copy(self, path: Path) -> Path:
        _, pod, uid = path.parent.parent.name.split("_")
        found = self.directory / (f"{pod}.log" if path.stem == "0" else f"{pod}.{path.stem}.log")
        taken = {copy.name for _, copy in self._files.values()}
        return found if str(found) not in taken else found.with_name(f"{uid}-{found.name}")  # another pod of that name


class Relay:
    """Listens on this machine and connects to a pod's address.

    In the place of `demo.world.Forward`.
    """

    def __init__(self, namespace: str, target: str, ports: str) -> None:
        self._namespace, self._target = namespace, target
        local, remote = ports.split(":")
        self._local, self._remote = int(local), int(remote)
        self._address = self._lookup()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _lookup(self) -> str:
        return kubectl(
            "get", self._target, "-n", self._namespace, "-o", "jsonpath={.status.podIP}", "--request-timeout=5s"
        ).strip()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", self._local))
        self._loop.run_forever()
        end_tasks(self._loop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await self._dial()
        except (OSError, TimeoutError):
            with suppress(cluster.KubectlFailed, subprocess.TimeoutExpired):  # the pod was replaced
                self._address = await asyncio.to_thread(self._lookup)
            writer.close()
            return
        with suppress(asyncio.CancelledError):
            await asyncio.gather(_pump(reader, there[1]), _pump(there[0], writer))

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.wait_for(asyncio.open_connection(self._address, self._remote), timeout=2)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


@contextmanager
def frozen(program: str) -> Iterator[None]:
    """SIGSTOP a program of the node (kubelet, kube-apiserver …), and let it go on at the end."""
    pids = node("node-pid", program).split()
    assert pids, f"there is no {program}"
    # Should this process be killed, nobody else would wake it up.
    guard = subprocess.Popen(
        ["sh", "-c", f"sleep {FROZEN_AT_MOST}; kill -CONT {' '.join(pids)}"], start_new_session=True
    )
    try:
        for pid in pids:
            os.kill(int(pid), signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            os.kill(int(pid), signal.SIGCONT)
        os.killpg(guard.pid, signal.SIGKILL)
        guard.wait()


@contextmanager
def cut(pid: int, addresses: Iterable[str], *, reset: bool = False) -> Iterator[None]:
    """Cut the pod of a process (host's id) from addresses: packets vanish, or, with `reset`,
    connections are refused. Whole again at the end.
    """
    known = "{ " + ", ".join(addresses) + " }"
    answer = "meta l4proto tcp reject with tcp reset" if reset else "drop"
    rules = f"""
    table inet cut {{
      chain out {{ type filter hook output priority 0; oifname != "lo" ip daddr {known} {answer}; }}
      chain in {{ type filter hook input priority 0; iifname != "lo" ip saddr {known} drop; }}
    }}
    """
    inside = ["nsenter", "--target", str(pid), "--net", "nft"]
    # The network outlives the process, and may be gone before this ends; a separate descriptor
    # keeps it reachable.
    done = subprocess.run([*inside, "-f", "-"], input=rules, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    space = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        yield
    finally:
        subprocess.run(
            ["nsenter", f"--net=/proc/self/fd/{space}", "nft", "delete", "table", "inet", "cut"],
            pass_fds=[space],
            check=True,
        )
        os.close(space)
