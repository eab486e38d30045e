"""Operator, API server, etcd with TLS, users and roles, S3, and the real processes of every pod:
nothing of a table's life is played here.

Each half reads records of the other one: a field that is renamed on one side only shows here. Only
the kubelet is ours (`local_kubelet`).
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hudi_operator.api.services import ALWAYS
from tests.support.harness import local as harness
from tests.support.harness import user_code
from tests.support.harness.etcd_server import Key
from tests.support.harness.gateway import Gateway, api_server
from tests.support.harness.local import Row
from tests.support.harness.local_kubelet import Kubelet
from tests.support.harness.operator_world import World
from tests.support.harness.processes import Process
from tests.support.harness.servers import Cluster, Etcd, wait_for
from tests.support.trace.conform import assert_conform

JsonDict = dict[str, Any]
LONG = 300.0
"""Seconds for one step on a machine with much else to do; nothing is measured."""
SMALL = {"memory": "700Mi", "javaOptions": ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]}
QUICK = {"limit": 10, "backoffSeconds": 1, "maxBackoffSeconds": 2}


class _Keys:
    """The part of an etcd client that the audit needs, with root's certificate."""

    def __init__(self, etcd: Etcd) -> None:
        self._etcd = etcd

    def range(self, prefix: str) -> list[Key]:
        return [Key(key, value, 0) for key, value in self._etcd.read(prefix).items()]

    def stop(self) -> None:
        """It is the session's."""


class Together:
    """One namespace; its tables share an agent, as they do in a cluster."""

    def __init__(self, cluster: Cluster, etcd: Etcd, directory: Path, namespace: str) -> None:
        (directory / "world").mkdir()
        self.world = World(cluster, etcd, directory / "world", namespace)
        self.cluster, self.etcd, self.namespace, self.directory = cluster, etcd, namespace, directory
        self.gateway = Gateway(etcd, directory / "world", *api_server(cluster, directory / "world"), issuer=False)
        self.world.pod_endpoint = self.gateway.endpoint
        self.lake = harness.World(directory)
        self.lake.etcd = _Keys(etcd)  # type: ignore[assignment]
        self.endpoint = self.lake.start_s3()
        self.kubelet = Kubelet(cluster, namespace, directory / "pods", node=f"node-of-{namespace}")
        self.ids: dict[str, str] = {}

    def start(self) -> None:
        data = {"accessKeyId": harness.ACCESS_KEY, "secretAccessKey": harness.SECRET_KEY}
        self._make("secrets", {"metadata": {"name": "lake"}, "stringData": data})
        self._make(
            "configmaps", {"metadata": {"name": "code"}, "data": {"user_code.py": Path(user_code.__file__).read_text()}}
        )
        self.gateway.start()
        self.kubelet.start()
        self.world.start_operator()

    def close(self) -> None:
        self.kubelet.close()
        self.world.close()
        self.gateway.stop()
        self.lake.stop()

    def _make(self, plural: str, body: JsonDict) -> None:
        self.cluster.request("POST", f"/api/v1/namespaces/{self.namespace}/{plural}", body)

    # ---- objects

    def path(self, table: str) -> str:
        return f"s3a://lake/{self.namespace}/{table}"

    def table(self, name: str, *, endpoint: str = "", **spec: Any) -> str:
        """A HudiTable with record key `id`, partition `p`, ordering `ts`.

        No services unless `services` says so. Returns its table id.
        """
        options = {
            "fs.s3a.endpoint": endpoint or self.endpoint,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
        }
        options["fs.s3a.endpoint.region"] = "us-east-1"
        body = {
            "path": self.path(name),
            "partitionFields": ["p"],
            # Longer than the default: these processes share two cores with everything else.
            "lock": {"leaseSeconds": 20},
            "hudiOptions": {"hoodie.parquet.compression.codec": "snappy"},
            "storage": {"secretRefs": [{"name": "lake", "as": "S3"}], "options": options},
            "services": {kind: {"enabled": False} for kind in ALWAYS},
            **spec,
        }
        self.ids[name] = self.world.table(name, **body)
        return self.ids[name]

    def ready(self, name: str) -> None:
        wait_for(f"{name} is ready", lambda: self.true("huditables", name, "Ready"), seconds=LONG)

    def true(self, plural: str, name: str, kind: str) -> bool:
        return (self.world.condition(plural, name, kind) or {}).get("status") == "True"

    def patch(self, table: str, **spec: Any) -> None:
        self.cluster.request(
            "PATCH", self.world.path("huditables", table), {"spec": spec}, "application/merge-patch+json"
        )

    def delete(self, plural: str, name: str) -> None:
        """Delete an object, and wait for its end."""
        self.cluster.request("DELETE", self.world.path(plural, name))
        wait_for(f"{name} is gone", lambda: self.world.get(plural, name) is None, seconds=LONG)

    def writer(self, name: str, table: str, *batches: JsonDict, **spec: Any) -> None:
        """A HudiWriter of these batches (`user_code.batches`)."""
        source = {
            "python": {
                "configMapKeyRef": {"name": "code", "key": "user_code.py"},
                "function": "told",
                "arguments": {"batches": json.dumps(batches)},
            }
        }
        self.world.writer(name, table=table, **{"source": source, "driver": SMALL, "retryPolicy": QUICK, **spec})

    def program(self, name: str, table: str, code: str, *arguments: str, **spec: Any) -> None:
        """A HudiWriter that runs this program, from a ConfigMap of its name."""
        self._make("configmaps", {"metadata": {"name": name}, "data": {"main.py": code}})
        application = {"configMapKeyRef": {"name": name, "key": "main.py"}, "arguments": list(arguments)}
        self.world.writer(
            name,
            table=table,
            **{"source": None, "application": application, "driver": SMALL, "retryPolicy": QUICK, **spec},
        )

    def finished(self, name: str) -> JsonDict:
        """Wait for a writer's end, which must be a good one; returns its status."""
        wait_for(f"{name} has finished", lambda: self.true("hudiwriters", name, "Finished"), seconds=LONG)
        status = self.status("hudiwriters", name)
        assert self.true("hudiwriters", name, "Succeeded"), json.dumps(status, indent=1)
        return status

    def wrote(self, name: str, table: str, *batches: Sequence[Row], **spec: Any) -> JsonDict:
        """A writer of these rows, one commit each, from its beginning to its end."""
        self.writer(name, table, *({"rows": rows} for rows in batches), **spec)
        return self.finished(name)

    def status(self, plural: str, name: str) -> JsonDict:
        return dict((self.world.get(plural, name) or {}).get("status") or {})

    def outcome(self, table: str, field: str, *wanted: str) -> JsonDict:
        """`status.<field>` as soon as its outcome is one of those wanted.

        The last entry of a list.
        """

        def found() -> JsonDict | None:
            value = self.status("huditables", table).get(field)
            last = value[-1] if isinstance(value, list) and value else value
            return last if last and last.get("outcome") in wanted else None

        return wait_for(f"status.{field} of {table} is {' or '.join(wanted)}", found, seconds=LONG)

    # ---- pods and etcd

    def pod(self, role: str, *, writer: str = "", number: int = 0) -> JsonDict:
        return self.world.pod(role, writer=writer, number=number, seconds=LONG)

    def process(self, pod: JsonDict) -> Process:
        """The process of a pod, as soon as it runs."""
        name = pod["metadata"]["name"]

        def found() -> Process | None:
            try:
                return self.kubelet.process(name)
            except KeyError:
                return None

        return wait_for(f"{name} runs", found, seconds=LONG)

    def kill(self, pod: JsonDict) -> None:
        """SIGKILL to everything in the pod."""
        self.process(pod).signal(signal.SIGKILL)

    def keys(self, table: str, below: str) -> dict[str, JsonDict]:
        """Keys of a table, relative."""
        prefix = (
            f"/hudi/{'control' if below.startswith(('gate', 'request/', 'admit/', 'fence/')) else 'tables'}/"
            f"{self.ids[table]}/"
        )
        return {key.removeprefix(prefix): value for key, value in self.etcd.read(prefix + below).items()}

    # ---- what must be true

    def files(self, table: str) -> harness.Table:
        """The table as the tests of the hudi tier see it."""
        return self.lake.table(table, path=self.path(table))

    def audited(
        self, table: str, rows: Sequence[Row], *, without: Mapping[str, str] = harness.NOTHING, **others: str
    ) -> None:
        """The oracle: every check is ok, those in `others` have that outcome, those in `without` do
        not hold for the reason that is given.
        """
        self.files(table).audited(rows, without=without, **others)

    def conform(self, *tables: str) -> None:
        """The protocol logs of operator, drivers and agents are whole and conform.

        Nothing is left of writers: no lock, no record, nobody unsettled.

        Settling in progress has a minute to finish.
        """
        ids = {self.ids[table] for table in tables}
        deadline = time.monotonic() + 60
        while True:
            try:
                assert_conform(
                    [*(operator.log for operator in self.world.operators), *self.kubelet.logs],
                    complete=True,
                    tables=ids,
                )
                break
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)
        assert not self.kubelet.failure, self.kubelet.failure

    def told(self) -> str:
        """For a test that failed."""
        pods = "\n".join(f"---- {one.name}\n{one.process.log()[-3000:]}" for one in self.kubelet.running.values())
        return f"{self.world.logs()}\n{pods}\nkubelet: {self.kubelet.failure}"
