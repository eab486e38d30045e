"""One registry of schemas for tests: Apicurio, in memory, from the archive of
hack/jars/fetch-registry.

It lets everybody in, at each address of this machine: a driver never connects to its own loopback.
"""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from tests.support import CACHE
from tests.support.harness.own_process import OwnProcess
from tests.support.harness.processes import until
from tests.support.ports import free_port, own_address

LIBRARY = CACHE / "registry"


class RegistryServer(OwnProcess):
    """Start with `start()`, stop with `stop()`; `url` is what a HudiWriter names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self.url = f"http://{own_address()}:{self._port}/apis/ccompat/v7"

    def start(self) -> None:
        """Start it, wait until it answers."""
        self._folder.mkdir(parents=True)
        options = [
            "-Xmx384m",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Dquarkus.http.host=0.0.0.0",
            f"-Dquarkus.http.port={self._port}",
        ]
        (program,) = LIBRARY.glob("*-runner.jar")
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["java", *options, "-jar", str(program)], stdout=log, stderr=log, cwd=self._folder
            )
        until("the registry answers", self._answers, timeout=120)

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise AssertionError(f"the registry has ended\n{(self._folder / 'log').read_text()[-3000:]}")
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def register(self, subject: str, schema: str, kind: str = "AVRO") -> int:
        """Add a version of a subject; its id."""
        body = json.dumps({"schema": schema, "schemaType": kind}).encode()
        request = urllib.request.Request(
            f"{self.url}/subjects/{subject}/versions", body, {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return int(json.loads(answer.read())["id"])
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{subject}: {error.code} {error.read().decode()[:2000]}") from error
