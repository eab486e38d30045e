"""HDFS for tests: a name node and a data node in one process, on this machine only, from the jars
of hack/jars/fetch-hdfs.

Everybody is who they say they are.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support import CACHE
from tests.support.harness.own_process import OwnProcess
from tests.support.harness.processes import until
from tests.support.ports import free_port

LIBRARY = CACHE / "hdfs"


class HdfsServer(OwnProcess):
    """Start with `start()`, stop with `stop()`; `url` has no slash at its end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self.url = f"hdfs://localhost:{self._port}"

    def start(self) -> None:
        """Format and start it; returns when files can be written."""
        self._folder.mkdir(parents=True)
        details = self._folder / "details.json"
        options = [
            "-Xmx384m",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            f"-Dtest.build.data={self._folder}",
            "-cp",
            f"{LIBRARY}/*",
        ]
        arguments = ["-format", "-nnport", str(self._port), "-datanodes", "1", "-writeDetails", str(details)]
        with (self._folder / "log").open("wb") as log:
            command = ["java", *options, "org.apache.hadoop.test.MiniDFSClusterManager", *arguments]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)
        until("HDFS is up", lambda: self._ended() or details.exists(), timeout=120)

    def _ended(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise AssertionError(f"HDFS has ended\n{(self._folder / 'log').read_text()[-3000:]}")
        return False
