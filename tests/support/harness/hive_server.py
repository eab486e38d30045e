"""A Hive Metastore for tests, with its own database (Derby) and the S3 client of the image, from
the jars of hack/jars/fetch-hive.

It lets everybody in, at each address of this machine: an agent never connects to its own loopback.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import CACHE, ROOT
from tests.support.harness.class_archive import S3_JARS
from tests.support.harness.own_process import OwnProcess
from tests.support.harness.processes import until
from tests.support.ports import free_ports, own_address

LIBRARY = CACHE / "hive"


class HiveServer(OwnProcess):
    """Start with `start()`, again after `stop()`; its data stays in its folder."""

    def __init__(self, folder: Path, store: Mapping[str, str]) -> None:
        """``store``: Hadoop settings of the storage on which tables lie."""
        self._folder = folder
        self._store = dict(store)
        self.host = own_address()
        (self._port,) = free_ports(1, self.host)
        self.uri = f"thrift://{self.host}:{self._port}"

    def start(self) -> None:
        """Start it; returns when it answers."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write("metastore-site.xml", self._settings())
        self._write("core-site.xml", self._store)
        jars = [str(self._folder), f"{LIBRARY}/*", *(str(CACHE / "jars" / jar) for jar in S3_JARS)]
        options = ["-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", ":".join(jars)]
        with (self._folder / "log").open("ab") as log:
            command = ["java", *options, "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(self._port)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)
        until("the metastore answers", self._answers, timeout=120)

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise AssertionError(f"the metastore has ended\n{(self._folder / 'log').read_text()[-3000:]}")
        with socket.socket() as probe:
            return probe.connect_ex((self.host, self._port)) == 0

    def _write(self, name: str, settings: Mapping[str, str]) -> None:
        lines = [f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items()]
        (self._folder / name).write_text("\n".join(["<configuration>", *lines, "</configuration>"]))

    def _settings(self) -> dict[str, str]:
        return {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={self._folder / 'database'};create=true",
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
            "datanucleus.schema.autoCreateAll": "true",
            "metastore.schema.verification": "false",
            "metastore.warehouse.dir": str(self._folder / "warehouse"),
            "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
            "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
        }

    def query(self, folder: Path, *statements: str) -> list[list[list[Any]]]:
        """Rows of each statement, by a separate Spark that knows tables from this metastore."""
        settings = {"hive.metastore.uris": self.uri, **self._store}
        job = {"settings": settings, "statements": statements, "folder": str(folder)}
        found: list[list[list[Any]]] = _run("hive_reader", job)
        return found

    def sync(self, folder: Path, *steps: list[Any]) -> list[Any]:
        """Results of the steps of `hive_sync`, on tables in this folder."""
        return sync(folder, self.uri, *steps)

    def stranger(self, *steps: list[Any]) -> list[Any]:
        """Results of the steps of `hive_stranger`."""
        found: list[Any] = _run("hive_stranger", {"uri": self.uri, "steps": steps})
        return found


def sync(folder: Path, uri: str, *steps: list[Any]) -> list[Any]:
    """Results of the steps of `hive_sync`. ``uri``: of a metastore; empty: there is none."""
    found: list[Any] = _run("hive_sync", {"folder": str(folder), "uri": uri, "steps": steps})
    return found


def _run(module: str, job: Mapping[str, Any]) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", f"tests.support.harness.{module}"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])
