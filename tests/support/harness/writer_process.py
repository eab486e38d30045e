"""Real sessions of the Java module in one JVM, without Spark: they heartbeat and commit instants
without data, for tests of the operator.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark

from tests.support import CACHE, ROOT
from tests.support.harness import class_archive
from tests.support.harness.servers import Etcd, wait_for

JsonDict = dict[str, Any]

MODULE = ROOT / "spark-images" / "etcd-lock" / "target"
JAR = Path(os.environ.get("HUDI_OPERATOR_LOCK_JAR", MODULE / "hudi-etcd-lock.jar"))
CLASSES = Path(os.environ.get("HUDI_OPERATOR_LOCK_TEST_CLASSES", MODULE / "test-classes"))
BUNDLE = CACHE / "jars" / class_archive.BUNDLE


class WriterProcess:
    """The JVM of several attempts.

    A fault that would halt one of them is reported instead, and only that one ends.
    """

    def __init__(
        self,
        etcd: Etcd,
        directory: Path,
        table_id: str,
        pods: Mapping[str, JsonDict],
        *,
        pause_millis: int = 50,
        way: Mapping[str, JsonDict] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """``pods``: the attempts' pods (of them: namespace, name, uid) by any name.

        ``way``: settings of each that replace those of a session that talks to etcd itself.

        ``environment``: variables of the JVM beside those of the test.

        ``directory``: for logs, and the table's timeline.
        """
        self.folder = directory / "table"
        number = len(list(directory.glob("writers-*.json")))
        job = directory / f"writers-{number}.json"
        self._out = directory / f"writers-{number}.log"
        settings = {
            name: _settings(etcd, table_id, pod["metadata"]) | ((way or {}).get(name) or {})
            for name, pod in pods.items()
        }
        job.write_text(json.dumps({"folder": str(self.folder), "pauseMillis": pause_millis, "writers": settings}))
        jars = Path(pyspark.__file__).parent / "jars"
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Duser.timezone=UTC"]
        command += ["-cp", f"{JAR}:{CLASSES}:{BUNDLE}:{jars}/*", "io.hudioperator.support.WriterProcess", str(job)]
        with self._out.open("wb") as out, self._out.with_suffix(".err").open("wb") as err:
            self._process = subprocess.Popen(command, stdout=out, stderr=err, env={**os.environ, **(environment or {})})
        wait_for("writers", lambda: self.writers() or self._gone(), seconds=60)

    def _gone(self) -> None:
        assert self._process.poll() is None, self._out.with_suffix(".err").read_text()[-3000:]

    def _last(self) -> JsonDict:
        lines = [line for line in self._out.read_text().splitlines() if line.startswith("{") and line.endswith("}")]
        return dict(json.loads(lines[-1])) if lines else {"writers": []}

    def writers(self) -> dict[str, JsonDict]:
        """State of each writer: ``inc``, ``state``, ``acquired``, ``commits``, ``error``.

        ``halted``: exit code; ``haltedFor``: why.
        """
        return {writer["name"]: writer for writer in self._last()["writers"]}

    @property
    def together(self) -> int:
        """Number of times that two writers were inside together."""
        return int(self._last()["together"])

    def committed(self) -> int:
        """Completed instants on the timeline."""
        return len(list((self.folder / ".hoodie" / "timeline").glob("*.commit")))

    def commit_on(self, more: int = 1, *, seconds: float = 60.0) -> None:
        """Wait until each writer has made this number of further commits."""
        before = {name: writer["commits"] for name, writer in self.writers().items()}
        wait_for(
            "everybody commits",
            lambda: all(w["commits"] >= before[name] + more for name, w in self.writers().items()),
            seconds=seconds,
        )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _settings(etcd: Etcd, table_id: str, meta: JsonDict) -> dict[str, str]:
    pki = etcd.pki
    return {
        "tableId": table_id,
        "attempt": f"{meta['namespace']}.{meta['name']}",
        "podUID": meta["uid"],
        "podName": meta["name"],
        "namespace": meta["namespace"],
        "node": "node1",
        "bootId": "boot-1",
        "endpoints": etcd.endpoint,
        "ca": str(pki / "ca.crt"),
        "cert": str(pki / "gateway.crt"),
        "key": str(pki / "gateway.key"),
    }
