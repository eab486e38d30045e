"""The chart's history server, with the chart's settings, over the event log that a real writer has
left on S3.
"""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import CACHE, ROOT, quick_yaml
from tests.support.harness.local import ACCESS_KEY, AGENT, CLASS_PATH, SECRET_KEY, World, mount_keys, rows
from tests.support.harness.processes import Process, until
from tests.support.ports import free_port

FOLDER = "/etc/hudi/history"
"""Where the pod has its settings."""


def rendered(world: World, logs: str) -> tuple[dict[str, str], list[str]]:
    """Files of the chart's ConfigMap, and the arguments of its container."""
    options = {
        "fs.s3a.endpoint": world.start_s3(),
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
    }
    told = [
        f"--set-string=historyServer.storage.options.{name.replace('.', chr(92) + '.')}={value}"
        for name, value in options.items()
    ]
    done = subprocess.run(
        [
            CACHE / "bin/helm",
            "template",
            "hudi-operator",
            ROOT / "charts/hudi-operator",
            "--set=images.registry=localhost/hudi-operator,historyServer.enabled=true",
            f"--set=historyServer.logDirectory={logs},historyServer.storage.secret=lake",
            "--set=historyServer.updateSeconds=1,historyServer.heapMiB=400",
            *told,
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    made = {
        one["kind"]: one
        for one in quick_yaml.load_all(done.stdout)
        if one and one["metadata"]["name"] == "hudi-operator-history"
    }
    return made["ConfigMap"]["data"], made["Deployment"]["spec"]["template"]["spec"]["containers"][0]["args"]


class HistoryServer:
    """The program of the chart's pod."""

    def __init__(self, world: World, logs: str, folder: Path) -> None:
        files, arguments = rendered(world, logs)
        folder.mkdir()
        port = free_port()
        files["spark-defaults.conf"] = files["spark-defaults.conf"].replace("port=18080", f"port={port}")
        for name, text in files.items():
            (folder / name).write_text(text)
        assert arguments[0] == "/opt/java/bin/java"
        path = arguments[arguments.index("-cp") + 1]
        assert path == f"{FOLDER}:/usr/local/lib/python3.11/site-packages/pyspark/jars/*", "as in the image"
        here = [part.replace(path, f"{folder}:{CLASS_PATH}").replace(FOLDER, str(folder)) for part in arguments[1:]]
        keys = mount_keys(folder / "keys", ACCESS_KEY, SECRET_KEY)
        self.url, self.log = f"http://127.0.0.1:{port}", folder / "log"
        environment = {**os.environ, "HUDI_OPERATOR_S3_CREDENTIALS": str(keys), "no_proxy": "127.0.0.1"}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                ["java", *here], env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def get(self, path: str) -> str:
        """An answer; empty while there is none."""
        assert self._process.poll() is None, self.log.read_text()[-4000:]
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=20) as answer:
                return str(answer.read().decode())
        except (urllib.error.HTTPError, OSError):
            return ""

    def asked(self, path: str) -> Any:
        """An answer of the REST API."""
        return json.loads(self.get(f"/api/v1/{path}") or "null")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def logs(world: World) -> str:
    """A folder for event logs; on S3 one is there when it has something in it."""
    folder = world.lake / "spark-events"
    folder.mkdir(exist_ok=True)
    (folder / ".keep").write_text("")
    return world.url(folder)


@pytest.fixture
def server(world: World, logs: str, tmp_path: Path) -> Iterator[HistoryServer]:
    made = HistoryServer(world, logs, tmp_path / "history")
    try:
        yield made
    finally:
        print(made.log.read_text()[-3000:])
        made.stop()


def test_it_shows_the_attempts_of_a_writer(world: World, agent: Process, logs: str, server: HistoryServer) -> None:
    table = world.table("logged")
    world.create(table, agent=AGENT, process=agent)
    event_log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": logs}
    written = rows(range(5), "a", "one", 1)
    writer = table.writer("load", python={"batches": [{"rows": written}]}, spark=event_log)
    assert writer.wait() == 0, writer.log()[-3000:]

    def found() -> dict[str, Any] | None:
        listed = server.asked("applications?status=completed") or []
        return next((one for one in listed if one["name"] == "default/load 1"), None)

    application = until("the history server lists the attempt", found, timeout=120)
    name = application["id"]
    jobs = server.asked(f"applications/{name}/jobs")
    assert jobs
    assert {job["status"] for job in jobs} == {"SUCCEEDED"}
    assert server.asked(f"applications/{name}/stages")
    for page in ("jobs", "stages", "SQL", "environment"):
        html = server.get(f"/history/{name}/{page}/")
        assert "default/load" in html, page
        assert "(kill)" not in html, "whoever looks only looks"
    for told in (server.get(f"/history/{name}/environment/"), server.log.read_text()):
        assert SECRET_KEY not in told
        assert ACCESS_KEY not in told
    table.audited(written)
