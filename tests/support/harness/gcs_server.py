"""fake-gcs-server for tests: the JSON API of Google Cloud Storage in memory, from
hack/build/build-binaries. It asks nobody who they are.
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
from tests.support.ports import free_port


class GcsServer(OwnProcess):
    """Start with `start()`, stop with `stop()`; `options` are what a client sets."""

    bucket = "lake"

    def __init__(self, folder: Path, *, external_url: str = "") -> None:
        """`external_url`: by which clients reach it, when there is something before it."""
        self._folder, self._external_url = folder, external_url
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.options = {
            "fs.gs.storage.root.url": self.url,
            "fs.gs.auth.service.account.enable": "false",
            "fs.gs.auth.null.enable": "true",
            "fs.gs.project.id": "test",
        }

    def start(self) -> None:
        """Start it and make the bucket."""
        self._folder.mkdir(parents=True)
        where = [
            "-scheme",
            "http",
            "-host",
            "127.0.0.1",
            "-port",
            str(self._port),
            "-external-url",
            self._external_url or self.url,
        ]
        # In memory: over a directory it forgets the empty objects that represent folders.
        command = [str(CACHE / "bin" / "fake-gcs-server"), *where, "-backend", "memory", "-log-level", "warn"]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until("the bucket is made", self._makes_the_bucket, timeout=30)

    def _makes_the_bucket(self) -> bool:
        body = json.dumps({"name": self.bucket}).encode()
        request = urllib.request.Request(
            f"{self.url}/storage/v1/b", data=body, headers={"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return bool(answer.status == 200)
        except urllib.error.URLError:
            return False
