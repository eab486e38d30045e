"""Shared parts of the end-to-end tests: objects, bounded waits, kills from outside of the pods."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from demo import cluster, world
from demo.cluster import kubectl
from demo.lake import Lake
from demo.protocol import Settling, Watch, attempts, settlings
from demo.readers import TableAnswers
from demo.world import table_id

from hudi_runtime.audit import TITLES
from tests.support import CACHE, oracle
from tests.support.cluster.node import NodeLogs
from tests.support.harness import class_archive, own_rows
from tests.support.trace.conform import assert_conform
from tests.support.trace.events import read_files

os.environ["PATH"] = os.pathsep.join([str(CACHE / "bin"), os.environ["PATH"]])
# Each audit is a separate Spark application.
os.environ["SPARK_READ_CLASS_PATH"] = ":".join(class_archive.CLASS_PATH)
os.environ["SPARK_READ_JAVA_OPTIONS"] = class_archive.java_options()
ENDPOINT = "http://s3.storage.svc:9000"

JsonDict = dict[str, Any]
Answer = TypeVar("Answer")
NAMESPACE = os.environ.get("E2E_NAMESPACE", "e2e")
OPERATOR_NAMESPACE = "hudi-operator"
OUT = Path(__file__).resolve().parents[3] / "build" / "e2e"
SMALL = {
    "memory": "768Mi",
    "javaOptions": ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
    "resources": {"requests": {"cpu": "50m", "memory": "768Mi"}, "limits": {"memory": "2Gi"}},
}

# A source whose batches take a while to write: each row costs `delay` seconds in the task that
# writes it.
SLOW_SOURCE = """
import time
from pyspark.sql.functions import col, lit, udf


def batches(spark, context):
    rows, delay = int(context.arguments["rows"]), float(context.arguments["delay"])
    first, add = int(context.arguments.get("first", "0")), int(context.arguments.get("add", "0"))

    @udf("long")
    def slow(number):
        time.sleep(delay)
        return number + add

    for batch in range(int(context.arguments["batches"])):
        print("ASKED FOR BATCH", batch, flush=True)  # so the runtime acknowledges those before it
        start = first + batch * rows
        yield spark.range(start, start + rows, 1, 1).select(
            col("id"), lit("p").alias("part"), slow("id").alias("value"), lit(batch + add).cast("long").alias("ts")
        )
"""


def wait_for(what: str, probe: Callable[[], Answer | None], *, seconds: float, every: float = 0.5) -> Answer:
    """The first answer of ``probe`` that is true: an empty one, or 0, does not count.

    AssertionError after ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = probe()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(every)


def written(*, batches: int, rows: int, first: int = 0, add: int = 0) -> pd.DataFrame:
    """Rows that `Space.writer` writes with these arguments."""
    ids = pd.RangeIndex(first, first + batches * rows)
    numbers = [(number - first) // rows + add for number in ids]
    return pd.DataFrame({"id": ids, "part": "p", "value": ids + add, "ts": numbers})


@dataclass
class Space:
    """A namespace with credentials, the S3 server, and the watch on etcd."""

    namespace: str
    lake: Lake
    watch: Watch
    endpoint: str
    """The S3 server's address as pods see it."""
    _paths: dict[str, str] = field(default_factory=dict)
    _modes: dict[str, str] = field(default_factory=dict)
    """Fencing mode by table id."""

    def __post_init__(self) -> None:
        self.logs = NodeLogs(self.namespace, OUT / "logs" / self.namespace)

    @property
    def tables(self) -> set[str]:
        """Ids of the tables made here."""
        return set(self._modes)

    def conform(self, operator: NodeLogs, *, ended: Collection[str] = ()) -> None:
        """The protocol log of operator, drivers and agents conforms, for the tables made here.

        Those in `ended` are left in order: no lock, no record, nobody unsettled, and of writers
        nobody registered. Not checked for `LeaseOnly`: there a lock ends with its lease, which
        nobody logs.

        Logs come a little late and not in step: a writer's step may be missing when the operator's
        answer to it is there. So a rejection counts when it is still there after some seconds;
        settling and compactions have a minute to finish.
        """
        ended = {table for table in ended if self._modes[table] != "LeaseOnly"}
        deadline = time.monotonic() + (60 if ended else 15)
        while True:
            paths = [*operator.directory.glob("*.log"), *self.logs.directory.glob("*.log")]
            seen = {event.table for event in read_files(paths)}
            recorded = {table for table in self._modes for change in self.watch.changes(f"/{table}/instant/")}
            try:
                assert recorded <= seen, (
                    f"instants were recorded in etcd, and no log names their tables: {sorted(recorded - seen)}"
                )
                for mode in set(self._modes.values()):
                    tables = {table for table, its in self._modes.items() if its == mode} & seen
                    if tables:
                        assert_conform(paths, lease_only=mode == "LeaseOnly", tables=tables)
                if ended & seen:
                    assert_conform(paths, complete=True, tables=ended & seen)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(2)
            else:
                return

    def table(self, name: str, *, apply: bool = True, **changes: Any) -> JsonDict:
        """A HudiTable at ``s3a://e2e/<namespace>-<name>-<time>``."""
        spec = {
            "path": f"s3a://e2e/{self.namespace}-{name}-{time.time_ns() // 1_000_000}",
            "type": "MergeOnRead",
            "recordKeyFields": ["id"],
            "partitionFields": ["part"],
            "orderingFields": ["ts"],
            "storage": {
                "secretRefs": [{"name": "lake-credentials", "as": "S3"}],
                "options": {
                    "fs.s3a.endpoint": self.endpoint,
                    "fs.s3a.endpoint.region": "us-east-1",
                    "fs.s3a.path.style.access": "true",
                    "fs.s3a.connection.ssl.enabled": "false",
                },
            },
        } | changes
        found = {
            "apiVersion": "hudioperator.io/v1alpha1",
            "kind": "HudiTable",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec,
        }
        if apply:
            cluster.apply(json.dumps(found))
            self._modes[table_id(str(spec["path"]).removeprefix("s3a://"))] = str(
                changes.get("fencing", {}).get("mode", "PodTermination")
            )
        return found

    def writer(
        self,
        name: str,
        table: str,
        *,
        batches: int = 1,
        rows: int = 50,
        delay: float = 0.0,
        first: int = 0,
        add: int = 0,
        **changes: Any,
    ) -> None:
        """A HudiWriter that writes ``batches`` × ``rows`` rows, ``delay`` seconds for each row.

        With ``add`` it writes other values, and greater ordering values, under the same keys.

        The timeline shows the instant as inflight meanwhile.
        """
        arguments = {
            "batches": str(batches),
            "rows": str(rows),
            "delay": str(delay),
            "first": str(first),
            "add": str(add),
        }
        spec = {
            "tableRef": {"name": table},
            "source": {
                "python": {
                    "configMapKeyRef": {"name": "slow", "key": "slow.py"},
                    "function": "batches",
                    "arguments": arguments,
                }
            },
            "operation": "BulkInsert",  # its rows are made while its data files are written
            "driver": SMALL,
            "retryPolicy": {"limit": 10, "backoffSeconds": 1, "maxBackoffSeconds": 2},
        } | changes
        if spec["operation"] == "BulkInsert":
            spec = {"duplicates": "Allow", **spec}  # a look at keys would make the rows before the files
        cluster.apply(
            json.dumps(
                {
                    "apiVersion": "hudioperator.io/v1alpha1",
                    "kind": "HudiWriter",
                    "metadata": {"name": name, "namespace": self.namespace},
                    "spec": spec,
                }
            )
        )

    def get(self, kind: str, name: str) -> JsonDict:
        return cluster.get(kind, name, "-n", self.namespace)

    def condition(self, kind: str, name: str, condition: str) -> JsonDict:
        return cluster.condition(self.get(kind, name), condition)

    def wait(self, resource: str, condition: str, *, seconds: float) -> None:
        """``kubectl wait``, as a user would do it. AssertionError after ``seconds``."""
        try:
            cluster.kubectl(
                "wait",
                f"--for=condition={condition}",
                resource,
                "-n",
                self.namespace,
                f"--timeout={seconds:.0f}s",
                timeout=seconds + 10,
            )
        except cluster.KubectlFailed as error:
            if "timed out waiting" in str(error):
                raise AssertionError(f"waited {seconds:.0f} s for {resource} to be {condition}") from error
            raise

    def path(self, table: str) -> str:
        """Location of the table, ``bucket/folder``."""
        if table not in self._paths:
            self._paths[table] = str(self.get("huditable", table)["spec"]["path"]).removeprefix("s3a://")
        return self._paths[table]

    def keys(self, table: str) -> dict[str, JsonDict]:
        """The table's keys in etcd now, without prefix; also of one whose objects are gone."""
        id, found = table_id(self.path(table)), {}
        for pair in json.loads(self.watch.keys())["kvs"]:
            _, here, name = base64.b64decode(pair["key"]).decode().partition(f"/{id}/")
            if here:
                found[name] = json.loads(base64.b64decode(pair["value"]))
        return found

    def audit(self, table: str, expected: pd.DataFrame | None = None) -> TableAnswers:
        """The audit of a table, with its keys in etcd."""
        output = OUT / "audit" / f"{self.namespace}-{table}"
        keys = self.watch.keys()
        return TableAnswers(self.lake, self.path(table), output, expected=expected, keys=keys)

    def audited(self, table: str, expected: pd.DataFrame | None = None, **others: str) -> None:
        """The oracle after a run: every check of the audit is ok, those in `others` (`-` as `_`)
        have that outcome.
        """
        wanted = dict.fromkeys(TITLES, "ok") | ({} if expected is not None else {"rows": "not asked"})
        wanted |= {name.replace("_", "-"): outcome for name, outcome in others.items()}
        oracle.settled(lambda: self.audit(table, expected), lambda answers: answers.checks, wanted)

    def read_by_own_rows(self, table: str, expected: pd.DataFrame) -> None:
        """AssertionError when the table's files, read by nothing of Hudi's, hold other rows, or
        when there is no log file among them.

        For tables as `own_rows` can read them: the audit's reader of log files is Hudi alone.
        """
        path = self.path(table)
        with tempfile.TemporaryDirectory(prefix="own-rows-") as folder:
            for name in self.lake.files(path):
                if name.startswith(".hoodie/timeline/") or not name.startswith(".hoodie/"):
                    copy = Path(folder, name)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.write_bytes(self.lake.content(f"{path}/{name}"))
            assert list(Path(folder).rglob(".*.log.*")), (
                f"{table} has no log file: nothing is read here that other readers do not read"
            )
            own_rows.same(
                Path(folder), [tuple(row) for row in expected.itertuples(index=False)], columns=list(expected.columns)
            )

    def drivers(self, writer: str) -> list[JsonDict]:
        """Driver pods of a writer, the newest last."""
        pods = cluster.items(
            "pods", "-n", self.namespace, "-l", f"hudioperator.io/writer={writer},hudioperator.io/role=driver"
        )
        return sorted(pods, key=lambda pod: int(pod["metadata"]["labels"]["hudioperator.io/attempt"]))

    def instants(self, writer: str) -> dict[str, str]:
        """Instants that etcd has ever recorded for the writer, in order, with the driver pod."""
        changes = self.watch.changes()
        who = attempts(changes)
        found = {}
        for change in changes:
            attempt = who.get((change.value or {}).get("inc", ""), "")
            if "/instant/" in change.key and attempt.startswith(f"{self.namespace}.{writer}-"):
                found[change.key.rsplit("/", 1)[1]] = attempt.split(".", 1)[1]
        return dict(sorted(found.items()))

    def inflight(self, writer: str, table: str) -> tuple[str, str] | None:
        """(instant, driver pod) of the writer's newest instant if the timeline has
        it as inflight.
        """
        states = {i.requested: i for i in self.lake.timeline(self.path(table))}
        found = None
        for requested, pod in self.instants(writer).items():
            instant = states.get(requested)
            if instant and not instant.completed and "inflight" in instant.states:
                found = (requested, pod)
        return found

    def settling(self, pod: str) -> Settling | None:
        """Settle record of the incarnation of a pod."""
        return next(
            (s for s in settlings(self.watch.changes("/settle/")) if s.attempt == f"{self.namespace}.{pod}"), None
        )

    def wait_inflight(self, writer: str, table: str, *, seconds: float = 120, not_pod: str = "") -> tuple[str, str]:
        def probe() -> tuple[str, str] | None:
            found = self.inflight(writer, table)
            return found if found and found[1] != not_pod else None

        return wait_for(f"{writer} to have an instant inflight", probe, seconds=seconds, every=0.2)

    def wait_settled(self, pod: str, *, seconds: float = 120) -> Settling:
        def probe() -> Settling | None:
            record = self.settling(pod)
            return record if record and "Settled" in record.phases else None

        return wait_for(f"{pod} to be settled", probe, seconds=seconds, every=0.3)

    def signal(self, pod: str, number: signal.Signals) -> None:
        """Send a signal to the JVM of a pod, from outside."""
        pid = wait_for(f"JVM of {pod}", lambda: cluster.jvm_pid(self.namespace, pod), seconds=30)
        os.kill(pid, number)

    def signal_all(self, pod: str, number: signal.Signals) -> None:
        """Send a signal to every process of a pod."""
        for pid in cluster.host_pids(self.namespace, pod):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue


def run(*command: str, seconds: float = 600) -> str:
    """Run a program of the repository; AssertionError with its output when it fails."""
    done = subprocess.run(command, cwd=cluster.ROOT, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def helm(release: str, namespace: str, *more: str) -> None:
    """Install or upgrade a release from these sources, with these values beside the demo's."""
    command = ("helm", "upgrade", "--install", release, "charts/hudi-operator", "--values=demo/values.yaml")
    run(*command, "-n", namespace, "--wait", "--timeout", "5m", *more)


def installed_with(*more: str) -> None:
    """The release of all tests, with these values."""
    helm("hudi-operator", OPERATOR_NAMESPACE, *more)


def suspend(writer: str, namespace: str) -> None:
    """As a person ends a run that does not end by itself."""
    kubectl("patch", "hudiwriter", writer, "-n", namespace, "--type=merge", "-p", '{"spec":{"suspend":true}}')


def fresh_namespace(name: str, labels: dict[str, str]) -> None:
    """The namespace is there with these labels, and nothing of an earlier one in it."""
    if cluster.exists("namespace", name):
        kubectl("delete", "namespace", name, "--wait=false")
        wait_for(f"the end of namespace {name}", lambda: not cluster.exists("namespace", name), seconds=180)
    kubectl("create", "namespace", name)
    if labels:
        kubectl("label", "namespace", name, *(f"{key}={value}" for key, value in labels.items()))


def make_space(name: str, lake: Lake, watch: Watch, *, labels: dict[str, str] | None = None) -> Space:
    """A fresh namespace with the S3 credentials and the source code that the writers use.

    It has these labels before anything is in it.
    """
    fresh_namespace(name, labels or {})
    world.secret(name, "lake-credentials", {"accessKeyId": lake.access_key, "secretAccessKey": lake.secret_key})
    code = kubectl(
        "create",
        "configmap",
        "slow",
        "-n",
        name,
        f"--from-literal=slow.py={SLOW_SOURCE}",
        "--dry-run=client",
        "-o",
        "yaml",
    )
    cluster.apply(code)
    return Space(name, lake, watch, ENDPOINT)
