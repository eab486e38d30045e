"""Measured services: etcd as the chart runs it, and ZooKeeper as Spark ships it, each one process
on this machine; the JVM with the writers.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyspark
import yaml

from tests.support import CACHE, ROOT
from tests.support.evidence import RAW
from tests.support.harness.class_archive import BUNDLE
from tests.support.harness.local import JAR
from tests.support.harness.processes import until
from tests.support.harness.stock import ZooKeeper
from tests.support.ports import free_port

JsonDict = dict[str, Any]

OUT = RAW / "bench"
CLASSES = Path(
    os.environ.get("HUDI_OPERATOR_LOCK_TEST_CLASSES", ROOT / "spark-images" / "etcd-lock" / "target" / "test-classes")
)
_TICKS = os.sysconf("SC_CLK_TCK")


def chart_values() -> JsonDict:
    """The chart's values for its etcd."""
    values: JsonDict = yaml.safe_load((ROOT / "charts" / "hudi-operator" / "values.yaml").read_text())["etcd"]
    return values


@dataclass(frozen=True)
class Usage:
    """Usage of a process so far: processor seconds, and its resident memory in bytes."""

    cpu: float
    memory: int

    @classmethod
    def of(cls, pid: int) -> Usage:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return cls((int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))


class Etcd:
    """One member that syncs to the disk, with the chart's quota and compaction; without TLS."""

    def __init__(self, folder: Path, *, quota: int = 0) -> None:
        """``quota`` in bytes; 0 = the chart's."""
        folder.mkdir(parents=True)
        values = chart_values()
        peer = f"http://127.0.0.1:{free_port()}"
        self.endpoint = f"http://127.0.0.1:{free_port()}"
        command = [str(CACHE / "bin" / "etcd"), "--name=bench", f"--data-dir={folder / 'data'}", "--log-level=error"]
        command += [f"--listen-client-urls={self.endpoint}", f"--advertise-client-urls={self.endpoint}"]
        command += [
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=bench={peer}",
        ]
        command += [f"--quota-backend-bytes={quota or values['quotaBackendBytes']}"]
        command += [
            "--auto-compaction-mode=periodic",
            f"--auto-compaction-retention={values['autoCompactionRetentionSeconds']}s",
        ]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until("etcd answers", self._answers, timeout=60)

    def call(self, method: str, **body: Any) -> JsonDict:
        """One request to its JSON gateway."""
        request = urllib.request.Request(f"{self.endpoint}/v3/{method}", data=json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return dict(json.load(answer))

    def _answers(self) -> bool:
        try:
            self.call("kv/range", key="AA==")
        except OSError:
            return False
        return True

    @property
    def usage(self) -> Usage:
        return Usage.of(self._process.pid)

    def database(self) -> JsonDict:
        """Bytes of the file, bytes of it in use, and the revision."""
        status = self.call("maintenance/status")
        return {
            "size": int(status["dbSize"]),
            "inUse": int(status["dbSizeInUse"]),
            "revision": int(status["header"]["revision"]),
        }

    def compact(self) -> None:
        """Forget all history, and give the room back."""
        self.call("kv/compaction", revision=self.database()["revision"], physical=True)
        self.call("maintenance/defragment")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class Keeper(ZooKeeper):
    """ZooKeeper, with what it has used."""

    @property
    def endpoint(self) -> str:
        return self.address

    @property
    def usage(self) -> Usage:
        return Usage.of(self._process.pid)


def java(
    main: str, job: Path, *, memory: str, log: Path, more: tuple[str, ...] = (), out: Path | None = None
) -> subprocess.Popen[str]:
    """Start a program of the lock module's tests.

    Its stderr goes to ``log``, its stdout to ``out`` (None: to the caller).
    """
    jars = Path(pyspark.__file__).parent / "jars"
    command = ["java", f"-Xmx{memory}", "-XX:+UseSerialGC", "-Duser.timezone=UTC", *more]
    command += [
        "-cp",
        f"{JAR}:{CLASSES}:{CACHE / 'jars' / BUNDLE}:{jars}/*",
        f"io.hudioperator.support.{main}",
        str(job),
    ]
    with log.open("wb") as err, out.open("wb") if out is not None else nullcontext(subprocess.PIPE) as said:
        return subprocess.Popen(command, stdout=said, stderr=err, text=True)


def machine() -> str:
    """Processors, memory and load of this machine, in one line."""
    memory = next(
        line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal")
    ).split()[1]
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "?",
    )
    return f"{os.cpu_count()} processors ({model}), {int(memory) // 2**20} GB"


def at() -> str:
    return time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())


def epoch(completion: str) -> float:
    """A time of the timeline as Unix seconds."""
    return datetime.strptime(completion, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC).timestamp()
