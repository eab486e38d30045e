"""Changes that a test makes to topics of Kafka: through the clients that the writers use, in the
test's own JVM.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from tests.support.harness.kafka_server import LIBRARY, KafkaServer
from tests.support.harness.local import Row, World

REMOVE = """\
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.TopicPartition;

class Remove {
  public static void main(String[] to) throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", to[0]))) {
      TopicPartition where = new TopicPartition(to[1], Integer.parseInt(to[2]));
      admin.deleteRecords(Map.of(where, RecordsToDelete.beforeOffset(Long.parseLong(to[3])))).all().get();
    }
  }
}
"""
SCHEMA = "id INT, p STRING, v STRING, ts BIGINT"


class Topics:
    """Makes and fills topics of one broker."""

    def __init__(self, world: World, server: KafkaServer) -> None:
        self._spark = world.spark()
        self._jvm: Any = self._spark.sparkContext._jvm
        self._clients = self._jvm.org.apache.kafka.clients
        self._server = server
        self._folder = world.folder
        settings = self._jvm.java.util.HashMap()
        settings.put("bootstrap.servers", server.address)
        self._admin = self._clients.admin.AdminClient.create(settings)

    def source(self, *topics: str, **changes: Any) -> dict[str, Any]:
        """`source.kafka` of a job."""
        return {
            "bootstrapServers": [self._server.address],
            "topics": list(topics),
            "value": {"format": "Json", "schema": SCHEMA},
            **changes,
        }

    def make(self, name: str, partitions: int) -> None:
        optional = self._jvm.java.util.Optional
        self._admin.createTopics(
            self._listed([self._clients.admin.NewTopic(name, optional.of(partitions), optional.empty())])
        ).all().get()

    def delete(self, name: str) -> None:
        self._admin.deleteTopics(self._listed([name])).all().get()

    def widen(self, name: str, partitions: int) -> None:
        """More partitions."""
        wanted = self._jvm.java.util.HashMap()
        wanted.put(name, self._clients.admin.NewPartitions.increaseTo(partitions))
        self._admin.createPartitions(wanted).all().get()

    def remove_before(self, name: str, partition: int, offset: int) -> None:
        """Do the work of retention: remove the records before this offset."""
        # A separate program: a small number of Python is an Integer to the JVM's gateway, and this
        # wants a Long.
        program = self._folder / "Remove.java"
        program.write_text(REMOVE)
        command = [
            "java",
            "-Xmx64m",
            "-cp",
            f"{LIBRARY}/*",
            str(program),
            self._server.address,
            name,
            str(partition),
            str(offset),
        ]
        subprocess.run(command, check=True, timeout=120, capture_output=True)

    def send(self, name: str, records: Sequence[Row], *, partition: int = 0) -> None:
        """Rows as JSON."""
        texts = [json.dumps(dict(zip(("id", "p", "v", "ts"), row, strict=True))) for row in records]
        self.send_texts(name, texts, partition=partition)

    def send_texts(self, name: str, texts: Sequence[str | None], *, partition: int = 0) -> None:
        """Values as they are."""
        rows = [(name, partition, f"key{number}", text) for number, text in enumerate(texts)]
        frame = self._spark.createDataFrame(rows, "topic string, partition int, key string, value string").coalesce(1)
        frame.write.format("kafka").option("kafka.bootstrap.servers", self._server.address).save()

    def send_bytes(self, name: str, values: Sequence[bytes | None]) -> None:
        """Values as they are, to partition 0."""
        rows = [(name, 0, f"key{number}", value) for number, value in enumerate(values)]
        frame = self._spark.createDataFrame(rows, "topic string, partition int, key string, value binary").coalesce(1)
        frame.write.format("kafka").option("kafka.bootstrap.servers", self._server.address).save()

    def _listed(self, items: Sequence[Any]) -> Any:
        found = self._jvm.java.util.ArrayList()
        for item in items:
            found.add(item)
        return found
