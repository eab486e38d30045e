"""One Kafka broker for tests: broker and controller in one process (KRaft), on this machine only,
from the jars of hack/jars/fetch-kafka.
"""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from tests.support import CACHE
from tests.support.harness.own_process import OwnProcess
from tests.support.harness.processes import until
from tests.support.ports import free_port

LIBRARY = CACHE / "kafka"
USER, PASSWORD = "reader", "a-password-of-the-test"
"""User of the second listener (SASL_PLAINTEXT, PLAIN)."""


class KafkaServer(OwnProcess):
    """Start with `start()`, stop with `stop()`; `address` needs no password, `guarded` does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        plain, guarded, controller = free_port(), free_port(), free_port()
        self.address, self.guarded, self._controller = (f"127.0.0.1:{port}" for port in (plain, guarded, controller))

    def start(self) -> None:
        """Make the store, start the broker, wait until it answers."""
        self._folder.mkdir(parents=True)
        config = self._folder / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in self._settings().items()))
        (self._folder / "log4j.properties").write_text(
            "log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.out.layout.ConversionPattern=%d %p %c: %m%n\n"
        )
        with (self._folder / "log").open("wb") as log:
            made = [*self._java("kafka.tools.StorageTool"), "format", "-t", "AAAAAAAAQACAAAAAAAAAAQ", "-c", str(config)]
            subprocess.run(made, stdout=log, stderr=log, cwd=self._folder, check=True, timeout=60)
            self._process = subprocess.Popen(
                [*self._java("kafka.Kafka"), str(config)], stdout=log, stderr=log, cwd=self._folder
            )
        until("Kafka answers", self._answers, timeout=90)

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise AssertionError(f"Kafka has ended\n{(self._folder / 'log').read_text()[-3000:]}")
        host, port = self.address.split(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    def _java(self, program: str) -> list[str]:
        options = [
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            f"-Dlog4j.configuration=file:{self._folder}/log4j.properties",
        ]
        return ["java", *options, "-cp", f"{LIBRARY}/*", program]

    def _settings(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{self._controller}",
            "listeners": f"PLAINTEXT://{self.address},GUARDED://{self.guarded},CONTROLLER://{self._controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address},GUARDED://{self.guarded}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,GUARDED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.name.guarded.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.guarded.plain.sasl.jaas.config": (
                f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
            ),
            "log.dirs": str(self._folder / "data"),
            "num.partitions": "1",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }
