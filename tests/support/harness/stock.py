"""Stock Hudi beside ours: ZooKeeper as Spark ships it, and writers that use Hudi's own ZooKeeper
lock provider.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyspark

from tests.support import CACHE, ROOT
from tests.support.harness.class_archive import BUNDLE, S3_JARS
from tests.support.harness.local import ACCESS_KEY, PLAIN_SPARK, SECRET_KEY, SHORT_LIVED, Process, Row, World, until
from tests.support.ports import free_port

SESSION_SECONDS = 4
"""ZooKeeper session of a stock writer; Hudi's default is 60, the same story takes longer then."""
PROVIDER = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"


class ZooKeeper:
    """One server on this machine, from the jars inside pyspark."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.address = f"127.0.0.1:{free_port()}"
        config = folder / "zoo.cfg"
        config.write_text(
            "tickTime=1000\n"
            f"dataDir={folder / 'data'}\n"
            f"clientPort={self.address.split(':')[1]}\n"
            "clientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\n"
            "maxClientCnxns=0\n"  # by default 60 for each address, and here all clients have one
        )
        jars = Path(pyspark.__file__).parent / "jars"
        command = [
            "java",
            "-Xmx128m",
            "-cp",
            f"{jars}/*",
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            str(config),
        ]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        until("ZooKeeper answers", self._answers, timeout=60)

    def _answers(self) -> bool:
        host, port = self.address.split(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class StockWriter(Process):
    """Upserts with stock Hudi in a separate process, one after another.

    `module`: another program that takes STOCK_JOB.
    """

    def __init__(
        self, name: str, folder: Path, job: dict[str, Any], *, module: str = "tests.support.harness.stock_writer"
    ) -> None:
        folder.mkdir(parents=True)
        self._result = folder / "result.json"
        keep = {key: value for key, value in os.environ.items() if key in {"PATH", "HOME", "LANG", "JAVA_HOME"}}
        env = {
            **keep,
            "TZ": "UTC",
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "STOCK_JOB": json.dumps({**job, "name": name, "result": str(self._result)}),
        }
        super().__init__(name, folder, module=module, env=env)

    def log(self) -> str:
        """The log, with what matters at its end."""
        text = super().log()
        causes = [line for line in text.splitlines() if line.startswith(("Caused by", "py4j", "java.", "org."))]
        return "\n".join([text, *causes[:12]])

    @property
    def acknowledged(self) -> bool:
        return self._result.exists() and bool(json.loads(self._result.read_text())["acknowledged"])


class Stock:
    """A table on the S3 server behind `endpoint`, written with stock Hudi under ZooKeeper."""

    def __init__(
        self,
        world: World,
        name: str,
        *,
        endpoint: str,
        zookeeper: ZooKeeper,
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`options`: of its writers, beyond those that every one has."""
        self.world, self.name, self.path, self._more = world, name, f"s3a://lake/{name}", options
        self._endpoint, self._zookeeper = endpoint, zookeeper
        self._count = 0

    def spark_settings(self, **more: str) -> dict[str, str]:
        jars = [str(CACHE / "jars" / jar) for jar in (BUNDLE, *S3_JARS)]
        return {
            **PLAIN_SPARK,
            "spark.driver.extraClassPath": ":".join(jars),
            "spark.driver.extraJavaOptions": SHORT_LIVED,
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.hadoop.fs.s3a.endpoint": self._endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            "spark.hadoop.fs.s3a.directory.marker.retention": "keep",
            # It leaves those open with which it reads log files of the metadata table.
            "spark.hadoop.fs.s3a.connection.maximum": "16384",
            "spark.hadoop.fs.s3a.aws.credentials.provider": "com.amazonaws.auth.EnvironmentVariableCredentialsProvider",
            **{f"spark.hadoop.{key}": value for key, value in more.items()},
        }

    def options(self, *, services: bool) -> dict[str, str]:
        return {
            "hoodie.table.name": self.name,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.table.ordering.fields": "ts",
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.upsert.shuffle.parallelism": "1",
            "hoodie.embed.timeline.server": "false",
            "hoodie.write.markers.type": "DIRECT",
            "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
            "hoodie.clean.failed.writes.policy": "LAZY",
            # By these a writer with table services calls another one dead, after 10 s; the others
            # keep Hudi's own (60 s, twice).
            **(
                {"hoodie.client.heartbeat.interval_in_ms": "1000", "hoodie.client.heartbeat.tolerable.misses": "10"}
                if services
                else {}
            ),
            "hoodie.table.services.enabled": str(services).lower(),
            "hoodie.write.lock.provider": PROVIDER,
            # Hudi ignores hoodie.write.lock.zookeeper.port for the connection: the address has it.
            "hoodie.write.lock.zookeeper.url": self._zookeeper.address,
            "hoodie.write.lock.zookeeper.port": self._zookeeper.address.split(":")[1],
            "hoodie.write.lock.zookeeper.base_path": "/hudi",
            "hoodie.write.lock.zookeeper.lock_key": self.name,
            "hoodie.write.lock.zookeeper.session_timeout_ms": str(SESSION_SECONDS * 1000),
            "hoodie.write.lock.zookeeper.connection_timeout_ms": str(SESSION_SECONDS * 1000),
            **self._more,
        }

    def writer(self, name: str, *writes: list[Row], services: bool = False, **hadoop: str) -> StockWriter:
        """Start a writer of these upserts, one after another.

        `services`: with Hudi's inline table services, which roll back what looks dead.
        """
        return self._start(name, "tests.support.harness.stock_writer", *writes, services=services, **hadoop)

    def program(self, name: str, rows: list[Row], *, how: str) -> StockWriter:
        """Start a program that is stopped in its upsert (`stopped_app`)."""
        process = self._start(name, "tests.support.harness.stopped_app", rows, services=False)
        (process.folder / "job.json").write_text(json.dumps({"rows": rows, "how": how}))
        return process

    def _start(self, name: str, module: str, *writes: list[Row], services: bool, **hadoop: str) -> StockWriter:
        self._count += 1
        job = {
            "path": self.path,
            "rows": writes[-1],
            "before": writes[:-1],
            "options": self.options(services=services),
            "spark": self.spark_settings(**hadoop),
        }
        return self.world.child(
            StockWriter(name, self.world.folder / "stock" / f"{self.name}-{name}-{self._count}", job, module=module)
        )
