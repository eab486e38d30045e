"""Real etcd, Spark, Hudi and the Java module in local processes.

The test plays the operator (gate, admit, fence, settle).

The played operator has no proof of any death, does not drain before it unlocks and does not watch
pods; processes share the machine's network and files, agents are one process with one slot,
executors local processes at best. With the real one:
tests/tiers/component/operator/test_together.py.

world = World(folder); world.start() table = world.table("t1"); agent = world.agent("agent-1");
world.create(table, agent="agent-1") writer = table.writer("w1", python={"batches": [...]}); assert
writer.wait() == 0; table.audited([…])
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "operator"), str(ROOT / "spark-images")]

from hudi_contract import settle  # noqa: E402
from hudi_operator.api.services import ALWAYS  # noqa: E402
from hudi_operator.api.spec import TableSpec, WriterSpec  # noqa: E402
from hudi_operator.manifests import configmaps, hudi_conf, spark_conf  # noqa: E402
from hudi_operator.model.config import OperatorConfig  # noqa: E402
from hudi_operator.plan.agent import agents  # noqa: E402
from hudi_operator.plan.gate import gate  # noqa: E402
from hudi_runtime.audit import TITLES, Keys, Report, audit  # noqa: E402
from hudi_runtime.audit.keys import of_table  # noqa: E402
from hudi_runtime.table import timeline as tl  # noqa: E402
from hudi_runtime.table.hudi import Table as HudiTable  # noqa: E402
from tests.support import CACHE, oracle  # noqa: E402
from tests.support.harness import class_archive, merger, own_look  # noqa: E402
from tests.support.harness.etcd_server import EtcdServer, Key  # noqa: E402
from tests.support.harness.processes import Process, until  # noqa: E402
from tests.support.oracle import Unasked  # noqa: E402
from tests.support.ports import free_port  # noqa: E402
from tests.support.trace.conform import assert_conform  # noqa: E402
from tests.support.trace.events import read_files  # noqa: E402

RUNTIME_PATH = ("spark-images", "operator")
"""Folders of the repository whose packages the Spark image has below /opt/hudi: hudi_runtime and
hudi_contract.
"""
JAR = Path(
    os.environ.get("HUDI_OPERATOR_LOCK_JAR", ROOT / "spark-images" / "etcd-lock" / "target" / "hudi-etcd-lock.jar")
)
CLASS_PATH = ":".join([*class_archive.CLASS_PATH, str(JAR)])
"""Class path of an image."""
SHORT_LIVED = "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djol.skipHotspotSAAttach=true"
"""Options of JVMs that live for a moment."""
JAVA_OPTIONS = f"{SHORT_LIVED} {class_archive.java_options()}".rstrip()
"""Options of processes with `CLASS_PATH`."""
PLAIN_SPARK = {
    "spark.driver.memory": "700m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
}
"""Settings of a writer that knows nothing of this project."""
USER_CODE = Path(__file__).with_name("user_code.py")
AGENT = "agent-shared"
ACCESS_KEY, SECRET_KEY = "testaccess", "testsecretkey"
S3, FILE = "s3a://", "file://"
BUCKET = "lake"
LAID = f"{'0' * 32}-1"
"""ETag of files that a test has laid into the S3 server's folder by itself: S3A reads no object
without one.
"""
P = TypeVar("P", bound=Process)
Row = tuple[int, str, str, int]
ROW_SCHEMA = "id int, p string, v string, ts long"
NOTHING: Mapping[str, str] = MappingProxyType({})
LOGS_ALONE = {"hudi-rs": "hudi-rs reads no file group that has log files alone"}
"""`without` of a bucket in a MergeOnRead table before its compaction."""
SIDE_BY_SIDE = LOGS_ALONE | {
    "overlap": "commits of a NonBlocking table stand side by side on a file group",
}
"""`without` of a table of mode NonBlocking before its compaction."""
REFUSED_WRITES = {"stray": Unasked("Hudi writes the heartbeat of an instant before the instant, which was refused")}
"""`without` of a table where a write was refused after Hudi had begun it."""
OTHER_CLIENT = {"hudi-rs": Unasked("hudi-rs asks Google's storage, not the server of the tests")}
"""`without` of a table on `gs://`."""


@dataclass
class Table:
    """One table, as the operator would hold it, and what the test sees of it."""

    world: World
    spec: TableSpec
    attempts: dict[str, int] = field(default_factory=dict)
    mode: str = "PodTermination"
    drain: int = 2
    """D, in seconds."""
    below: dict[str, str] = field(default_factory=dict)
    """Hudi options laid over those that the operator renders: what no HudiTable can say."""

    # -- the operator's part -----------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self.spec.table_id

    @property
    def path(self) -> str:
        return self.spec.path

    @property
    def folder(self) -> Path:
        """The table's files on this machine (behind the S3 server too)."""
        return self.world.folder_of(self.path)

    def control(self, name: str) -> str:
        return f"/hudi/control/{self.id}/{name}"

    def key(self, name: str) -> str:
        return f"/hudi/tables/{self.id}/{name}"

    def get(self, name: str) -> dict[str, Any] | None:
        found = self.world.etcd.get(self.key(name))
        return found.value if found else None

    def keys(self, prefix: str) -> list[Key]:
        return self.world.etcd.range(self.key(prefix))

    def names(self, prefix: str) -> set[str]:
        return {key.key.rsplit("/", 1)[-1] for key in self.keys(prefix)}

    def gate(self, state: str, *, admitted: Sequence[str] = (), **more: object) -> None:
        said = gate.parameters(self.spec).to_json()
        value = {
            **said,
            "state": state,
            "admitted": list(admitted),
            "mode": self.mode,
            "lock": said["lock"] | {"drainSeconds": self.drain},
            "authority": self.world.authority,
            "table": self.spec.ref.key,
            "tableUID": self.spec.ref.uid,
            **more,
        }
        self.world.etcd.put(self.control("gate"), value)

    def admit(self, attempt: str, role: str) -> None:
        self.world.etcd.put(self.control(f"admit/{attempt}"), {"attempt": attempt, "role": role, "atMs": 0})

    def ask(self, request: Mapping[str, Any]) -> None:
        """Ask the agent for something, in the operator's words (`reconcile.savepoints.request` and
        its like).
        """
        self.world.etcd.put(self.control(f"request/{request['id']}"), dict(request))

    def assign(self, agent: str) -> None:
        made = agents.assignment(self.spec, int(time.time() * 1000))
        value = made | {
            "path": self.path,
            "hudiProps": made["hudiProps"] | self.below,
            "lock": {"leaseSeconds": 10, "drainSeconds": self.drain},
        }
        self.world.etcd.put(f"/hudi/control/agents/{agent}/{self.id}", value)

    def fence(self, process: Process, *, phase: str = "RollingBack", inc: str = "") -> str:
        """Settle a process that is proven dead, up to RollingBack (the test has killed it and
        waited for it).
        """
        inc = inc or process.inc
        role = (self.get(f"writer/{inc}") or {}).get("role", "writer")
        who = {
            "inc": inc,
            "attempt": process.name,
            "role": role,
            "namespace": "default",
            "pod": process.name.partition(".")[2],
        }
        record = settle.SettleRecord.of(**who, reason=settle.Reason.LEASE_GONE, now_ms=int(time.time() * 1000))
        record = record.moved(settle.Phase[phase], now_ms=int(time.time() * 1000))
        etcd = self.world.etcd
        etcd.put(self.control(f"fence/{inc}"), {"inc": inc, "reason": "LeaseGone", "atMs": 0})
        etcd.delete(self.key(f"alive/{inc}"))
        etcd.delete(self.control(f"admit/{process.name}"))
        lock = self.get("lock")
        if lock is not None and lock["inc"] == inc:
            etcd.delete(self.key("lock"))
        etcd.put(self.key(f"settle/{inc}"), record.to_json())
        return inc

    def settled(self, inc: str) -> None:
        """The operator's last step: records of a settled incarnation go."""
        for key in self.keys("instant/"):
            if key.value["inc"] == inc:
                self.world.etcd.delete(key.key)
        self.world.etcd.delete(self.key(f"writer/{inc}"))

    def outcomes(self, inc: str) -> dict[str, str] | None:
        """Outcome per instant once the agent has swept; None before."""
        record = self.get(f"settle/{inc}")
        if record is None or record["phase"] != "Swept":
            return None
        return {instant: item["outcome"] for instant, item in record["instants"].items()}

    def report(self) -> dict[str, Any]:
        return self.get("report/timeline") or {}

    # -- processes ---------------------------------------------------------------------------------

    def writer(self, name: str, **job: Any) -> Process:
        """Start the next attempt of a writer; see `World.writer_job` for the arguments."""
        self.attempts[name] = self.attempts.get(name, 0) + 1
        return self.world.start_writer(self, name, self.attempts[name], job)

    # -- what is on the storage --------------------------------------------------------------------

    def timeline(self) -> tl.Timeline:
        """The active timeline: two parsers, of which one is not the product's, must
        say the same.
        """
        names = os.listdir(self.folder / ".hoodie" / "timeline")
        found = tl.parse(names)
        own_look.same(names, found)
        return found

    def pending(self) -> set[str]:
        return {instant.requested for instant in self.timeline().pending}

    def archived(self) -> list[str]:
        """Files of the archived timeline."""
        history = self.folder / ".hoodie" / "timeline" / "history"
        return [name for name in os.listdir(history) if name.endswith(".parquet")] if history.is_dir() else []

    def data_files(self, instant: str = "") -> list[str]:
        """Data and log files outside of .hoodie, relative.

        Those that bear an instant when one is named.
        """
        found = []
        for root, folders, names in os.walk(self.folder):  # passes over what is deleted meanwhile
            folders[:] = [name for name in folders if name != ".hoodie"]
            for name in names:
                hidden = name.endswith(".crc") or name.startswith(".hoodie_partition")
                if not hidden and f"_{instant}" in name:
                    found.append(os.path.relpath(os.path.join(root, name), self.folder))
        return sorted(found)

    def heartbeats(self) -> set[str]:
        folder = self.folder / ".hoodie" / ".heartbeat"
        return {path.name for path in folder.iterdir() if not path.name.startswith(".")} if folder.is_dir() else set()

    # -- the oracle --------------------------------------------------------------------------------

    def audit(self, expected: Sequence[tuple[Any, ...]] | None = None, *, schema: str = ROW_SCHEMA) -> Report:
        """The audit with this table's keys and, if given, the rows that it must have."""
        return self._audit(expected, schema, tuple(TITLES))

    def _audit(self, expected: Sequence[tuple[Any, ...]] | None, schema: str, names: Sequence[str]) -> Report:
        spark = self.world.spark()
        s3 = self.path.startswith(S3)
        for key, value in ({} if s3 else self.spec.storage.options).items():
            spark.sparkContext._jsc.hadoopConfiguration().set(key, value)

        def wanted(session: Any, _: Any) -> Any:
            return session.createDataFrame(list(expected or ()), schema)

        def keys(table_id: str) -> Keys:
            entries = [
                (key.key, key.value)
                for part in ("tables", "control")
                for key in self.world.etcd.range(f"/hudi/{part}/{table_id}/")
            ]
            return of_table(table_id, entries)

        if self.path.startswith((S3, FILE)):
            own_look.same_files(self.folder, HudiTable(spark, self.path).storage.walk)
            self.timeline()
        options = self.world.s3_reader_options() if s3 else {}
        return audit(
            spark,
            self.path,
            expected=None if expected is None else wanted,
            keys=keys,
            hudi_rs_options=options,
            only=names,
        )

    def audited(
        self,
        expected: Sequence[tuple[Any, ...]] | None,
        *,
        without: Mapping[str, str] = NOTHING,
        schema: str = ROW_SCHEMA,
        **others: str,
    ) -> Report:
        """The oracle after a run: every check is ok, but those in `others` (`-` as `_`) have that
        outcome, and those in `without` do not hold here, for the reason that it gives of each.

        A check in `without` that is ok fails, too: it need not be left out. One whose reason is an
        `Unasked` is not run.
        """
        named = {name.replace("_", "-"): outcome for name, outcome in others.items()}
        names = [name for name in TITLES if not isinstance(without.get(name), Unasked)]
        return oracle.settled(
            lambda: self._audit(expected, schema, names),
            lambda report: (check.to_dict() for check in report.checks),
            {name: "ok" for name in TITLES if name not in without} | named,
            without=without,
        )


class World:
    """One etcd, any number of tables, writers and agents."""

    def __init__(self, folder: Path, *, s3_url: str = "") -> None:
        """``s3_url``: an S3 server that runs already; empty: one is started when it is needed."""
        self.folder = folder
        self.authority = "test-authority"
        self.etcd = EtcdServer(folder / "etcd")
        self.s3_folder = folder / "s3"
        self._merger = merger.class_path(JAR.parent / "test-classes", folder)
        self._s3_url = s3_url
        self._children: list[Process | subprocess.Popen[bytes]] = []
        self._spark: Any = None
        self.tables: set[str] = set()
        self._made_by: dict[str, str] = {}
        """File of tests by path of a table that it has made."""
        self.written: dict[str, Path] = {}
        """Tables for which a writer was started, and their folders."""
        self._config = OperatorConfig(allowed_schemes=("s3a", "file", "hdfs", "gs"))

    def start(self) -> None:
        self.etcd.start()

    def stop(self) -> None:
        for child in self._children:
            if child.poll() is None:
                child.kill()
        self._stop_spark()
        self.etcd.stop()

    def _stop_spark(self) -> None:
        """End the JVM of `spark()`, too.

        It keeps the clients of this world's S3 server: the next world of this process would read
        its own tables through them, and wait for a server that is gone.
        """
        if self._spark is None:
            return
        from pyspark import SparkContext

        gateway: Any = SparkContext._gateway
        self._spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # spark-submit ends with it
        gateway.proc.wait(timeout=60)
        SparkContext._gateway = SparkContext._jvm = None
        self._spark = None

    # -- storage -----------------------------------------------------------------------------------

    def start_s3(self) -> str:
        """Start the S3 server once; returns its URL."""
        if not self._s3_url:
            (self.s3_folder / BUCKET).mkdir(parents=True)
            port = free_port()
            command = [
                str(CACHE / "bin" / "versitygw"),
                "--access",
                ACCESS_KEY,
                "--secret",
                SECRET_KEY,
                "--quiet",
                "--port",
                f"127.0.0.1:{port}",
            ]
            with (self.folder / "s3.log").open("wb") as log:
                self._children.append(
                    subprocess.Popen(
                        [*command, "posix", "--default-etag", LAID, str(self.s3_folder)], stdout=log, stderr=log
                    )
                )
            self._s3_url = f"http://127.0.0.1:{port}"
        return self._s3_url

    def s3_settings(self) -> dict[str, str]:
        """Hadoop settings of this process's own readers, and of stock Hudi."""
        return {
            "fs.s3a.endpoint": self.start_s3(),
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.access.key": ACCESS_KEY,
            "fs.s3a.secret.key": SECRET_KEY,
            # As in our own pods: this server refuses to delete the markers of directories that are
            # not empty.
            "fs.s3a.directory.marker.retention": "keep",
            # Stock Hudi gives none back that it has read a log file of the metadata table with
            # (ours: ClosingInLineFileSystem); one process reads for all tests of a lane.
            "fs.s3a.connection.maximum": "16384",
        }

    def s3_reader_options(self) -> dict[str, str]:
        return {
            "aws_access_key_id": ACCESS_KEY,
            "aws_secret_access_key": SECRET_KEY,
            "aws_endpoint": self.start_s3(),
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }

    @property
    def lake(self) -> Path:
        """The bucket on this machine: a file that a test puts below it is an object for everybody
        else.
        """
        self.start_s3()
        return self.s3_folder / BUCKET

    def url(self, folder: Path) -> str:
        """The address of a file or folder below `lake`. ValueError when it is elsewhere."""
        return f"{S3}{folder.relative_to(self.s3_folder)}"

    def folder_of(self, path: str) -> Path:
        """Folder on this machine with the objects of a path on S3, or with the files of a local
        path.
        """
        return self.s3_folder / path.removeprefix(S3) if path.startswith(S3) else Path(path.removeprefix(FILE))

    def table(
        self,
        name: str,
        *,
        type: str = "CopyOnWrite",
        endpoint: str = "",
        path: str = "",
        s3_options: Mapping[str, str] | None = None,
        local_files: str = "",
        **changes: Any,
    ) -> Table:
        """A HudiTable with record key `id`, partition `p`, ordering `ts`, and what else
        of its spec.

        On the S3 server (or on `endpoint`), with more storage options; `local_files`: on local
        files instead, and why (docs/design/testing.md lists who does that). `path` may be of
        another scheme. No table services unless `services` says so: most tests count instants.
        """
        path = path or (f"{FILE}{self.folder}/tables/{name}" if local_files else self.url(self.lake / name))
        storage: dict[str, Any] = {}
        if path.startswith(S3):
            options = {
                "fs.s3a.endpoint": endpoint or self.start_s3(),
                "fs.s3a.path.style.access": "true",
                "fs.s3a.connection.ssl.enabled": "false",
                "fs.s3a.endpoint.region": "us-east-1",
                # Few, so that streams that are left open on S3 show.
                "fs.s3a.connection.maximum": "16",
                **(s3_options or {}),
            }
            storage = {"secretRefs": [{"name": "lake", "as": "S3"}], "options": options}
        spec = {
            "path": path,
            "type": type,
            "recordKeyFields": ["id"],
            "partitionFields": ["p"],
            "orderingFields": ["ts"],
            "storage": storage,
            "hudiOptions": {"hoodie.parquet.compression.codec": "snappy"},
            "services": {kind: {"enabled": False} for kind in ALWAYS},
            **changes,
        }
        metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}", "generation": 1, "resourceVersion": "1"}
        made = Table(self, TableSpec.from_object({"kind": "HudiTable", "metadata": metadata, "spec": spec}))
        self.tables.add(made.id)
        return made

    # -- processes ---------------------------------------------------------------------------------

    def _environment(
        self, folder: Path, *, name: str, spark: dict[str, str], hudi: dict[str, str], job: dict[str, Any], image: str
    ) -> dict[str, str]:
        folder.mkdir(parents=True)
        jars = [CLASS_PATH, *([self._merger] if image == merger.IMAGE else [])]
        spark = {
            **spark,
            "spark.driver.extraClassPath": ":".join(jars),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(folder / "tmp"),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} -Djava.io.tmpdir={folder}",
        }
        (folder / "spark-defaults.conf").write_text(spark_conf.properties(spark))
        (folder / "log4j2.properties").write_text(spark_conf.LOG4J2)
        (folder / "hudi-defaults.conf").write_text(hudi_conf.properties(hudi))
        (folder / "job.json").write_text(json.dumps(job))
        keep = {key: value for key, value in os.environ.items() if key in {"PATH", "HOME", "LANG", "JAVA_HOME"}}
        keys = spark.get("spark.hadoop.fs.s3a.aws.credentials.provider") == spark_conf.S3_CREDENTIALS
        mounted = {"HUDI_OPERATOR_S3_CREDENTIALS": str(folder / "s3")}
        if keys:
            mount_keys(folder / "s3", ACCESS_KEY, SECRET_KEY)
        return {
            **keep,
            **(mounted if keys else {}),
            "TZ": "UTC",
            "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in RUNTIME_PATH),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(folder),
            "HUDI_CONF_DIR": str(folder),
            "HUDI_OPERATOR_JOB": str(folder / "job.json"),
            "HUDI_OPERATOR_TERMINATION_LOG": str(folder / "termination"),
            **self.etcd.environment,
            "HUDI_OPERATOR_STOP_GRACE_SECONDS": "20",
            "POD_NAME": name,
            "POD_NAMESPACE": "default",
            "POD_UID": f"uid-{name}",
            "NODE_NAME": "node",
            "POD_IP": "127.0.0.1",
        }

    def start_writer(self, table: Table, name: str, number: int, job: dict[str, Any]) -> Process:
        """`job`: python (arguments of `function` in `file`, else of user_code), files, sql, hudi,
        kafka, jdbc, application, deps; operation, duplicates, may_truncate, validations, transform,
        retries, options, run, priority, streaming (seconds), spark (settings that no HudiWriter may
        have), environment (variables that a webhook adds to the pod), applied (another word:
        applied again).
        """
        self.written[table.id] = table.folder
        uid = hashlib.sha256(f"{table.id}/{name}{job.get('applied', '')}".encode()).hexdigest()
        metadata = {"namespace": "default", "name": name, "uid": uid, "generation": 1, "resourceVersion": "1"}
        writer = WriterSpec.from_object(
            {"kind": "HudiWriter", "metadata": metadata, "spec": {"tableRef": {"name": table.spec.ref.name}}}
        )
        attempt, pod = writer.attempt_id(number), writer.driver_pod(number)
        source: dict[str, Any] | None = None
        if "python" in job:
            source = {
                "python": {
                    "file": str(job.get("file", USER_CODE)),
                    "function": job.get("function", "batches"),
                    "arguments": job["python"],
                }
            }
        elif "files" in job:
            source = {"files": job["files"]}
        elif "sql" in job:
            source = {"sql": job["sql"]}
        elif "hudi" in job:
            source = {
                "hudi": {
                    "startFrom": "Earliest",
                    "order": "CompletionTime",
                    "maxCommitsPerBatch": None,
                    "ifPositionLost": "Fail",
                    **job["hudi"],
                }
            }
        elif "kafka" in job:
            source = {
                "kafka": {
                    "startFrom": "Earliest",
                    "maxOffsetsPerCommit": None,
                    "ifPositionLost": "Fail",
                    **job["kafka"],
                }
            }
        elif "jdbc" in job:
            source = {"jdbc": job["jdbc"]}
        spec = table.spec
        data = {
            "writer": {"namespace": "default", "name": name, "uid": writer.ref.uid},
            "attempt": {"id": attempt, "number": number},
            "run": job.get("run", 1),
            "driverPod": pod,
            "table": configmaps.job(spec, writer, number, run=1).to_json()["table"] | {"path": table.path},
            "source": source,
            "transform": {"sql": job["transform"]} if "transform" in job else None,
            "operation": job.get("operation", "upsert"),
            "duplicates": job.get("duplicates"),
            "mayTruncate": job.get("may_truncate", False),
            "validations": job.get("validations", []),
            "application": job.get("application"),
            **({"deps": job["deps"]} if "deps" in job else {}),
            "conflict": {
                "inProcess": job.get("retries", 3),
                "serializeAfter": spec.serialize_after_conflicts,
                "earlyDetection": spec.early_conflict_detection,
            },
            "partitions": job.get("partitions", []),
            "streaming": {"intervalSeconds": job["streaming"]} if "streaming" in job else None,
            "hudiOptions": job.get("options", {}),
            "executors": 0,
        }
        spark = spark_conf.spark_defaults(spec, writer, number, self._config) | {
            "spark.driver.memory": "700m",
            **job.get("spark", {}),
        }
        folder = self.folder / "pods" / pod
        code = data["application"] is not None or "python" in (source or {})
        keys_once = code and data["duplicates"] != "Allow" and bool(spec.record_key_fields)
        env = self._environment(
            folder,
            name=pod,
            spark=spark,
            hudi=hudi_conf.hudi_defaults(spec, keys_once=keys_once) | table.below,
            job=data,
            image=spec.image,
        )
        env |= {
            "HUDI_OPERATOR_TABLE_ID": table.id,
            "HUDI_OPERATOR_TABLE_PATH": table.path,
            "HUDI_OPERATOR_ATTEMPT": attempt,
            "HUDI_OPERATOR_ROLE": "writer",
            "HUDI_OPERATOR_PRIORITY": str(job.get("priority", 0)),
            **job.get("environment", {}),
        }
        table.admit(attempt, "writer")
        return self._run(attempt, folder, module="hudi_runtime.writer", env=env)

    def agent(
        self,
        name: str,
        *tables: Table,
        pod: str = "",
        storage: Table | None = None,
        executor: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start an agent pod.

        Tables are admitted and assigned now or later (`create`). With `executor`, Spark's tasks run
        in a separate process. `environment`: variables that a webhook adds to the pod.
        """
        pod = pod or f"{name}-1"
        folder = self.folder / "pods" / pod
        env = self.agent_environment(folder, name, (storage or self.table("any")).spec, pod=pod, executor=executor)
        env |= environment or {}
        for table in tables:
            self.admit_agent(table, name, pod=pod)
        return self._run(f"default.{pod}", folder, module="hudi_runtime.agent", env=env)

    def agent_environment(
        self,
        folder: Path,
        name: str,
        storage: TableSpec,
        *,
        pod: str = "",
        executor: bool = False,
        config: OperatorConfig | None = None,
    ) -> dict[str, str]:
        """Environment of an agent's process, whose files lie in `folder` then.

        ``storage``: a table on the storage that it is to reach.
        """
        spark = spark_conf.agent_defaults(storage, config or self._config)
        if executor:
            more = {
                "master": "local-cluster[1,1,512]",
                "authenticate.secret": "of-tests",
                "plugins": spark_conf.PLUGIN,
                "executor.memory": "512m",
                "executor.extraJavaOptions": JAVA_OPTIONS,
            }
            spark |= {f"spark.{key}": value for key, value in more.items()} | {
                "spark.executor.extraClassPath": CLASS_PATH
            }
        hudi = hudi_conf.common_defaults()
        return self._environment(
            folder, name=pod or name, spark=spark, hudi=hudi, job={"agent": name}, image=storage.image
        )

    def admit_agent(self, table: Table, name: str, *, pod: str = "") -> None:
        table.admit(f"default.{pod or f'{name}-1'}", "agent")
        table.assign(name)

    def create(self, table: Table, *, agent: str, process: Process, pod: str = "") -> None:
        """Have the agent create the table behind a closed gate, then open the gate."""
        by = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
        other = self._made_by.setdefault(table.path, by)
        assert other == by, f"{table.path} is a table of {other} already: this world is shared, take another name"
        table.gate("closed")
        self.admit_agent(table, agent, pod=pod)
        until(f"table {table.spec.ref.name} exists", lambda: table.report().get("exists"), alive=process)
        table.gate("open")

    def _run(self, name: str, folder: Path, *, module: str, env: dict[str, str]) -> Process:
        return self.child(Process(name, folder, module=module, env=env))

    def child(self, process: P) -> P:
        """A process that ends with this world."""
        self._children.append(process)
        return process

    def processes(self) -> set[Process]:
        """Processes of writers and agents that were started so far."""
        return {child for child in self._children if isinstance(child, Process)}

    def leave(self, tables: Collection[str], processes: Collection[Process]) -> None:
        """Tables and processes that were made since `tables` and `processes` were noted are not
        needed any more: agents leave these tables, and these processes end.

        An agent checks each of its tables every second, which costs processor time.
        """
        gone = self.tables.difference(tables)
        for key in self.etcd.range("/hudi/control/agents/"):
            if key.key.rpartition("/")[2] in gone:
                self.etcd.delete(key.key)
        for process in self.processes().difference(processes):
            if process.poll() is None:
                process.kill()

    def conform(self, before: Collection[str] = (), *, complete: bool = True) -> None:
        """The protocol log of all processes conforms, for the tables made since `before`.

        `complete`: to its end. Nothing is left of writers: no lock, no record, nobody registered or
        unsettled; work in progress has half a minute to finish.
        """
        deadline = time.monotonic() + 30
        while True:
            try:
                self._conform(self.tables.difference(before), complete)
                return
            except AssertionError:
                if not complete or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def _conform(self, tables: Collection[str], complete: bool) -> None:
        logs = sorted(self.folder.glob("pods/*/log"))
        named = {event.table for event in read_files(logs)}
        silent = {table for table, folder in self.written.items() if table in set(tables) - named and committed(folder)}
        assert not silent, (
            f"writers were started and something was committed, and no log names the tables {sorted(silent)}"
        )
        if named.intersection(tables):
            assert_conform(logs, complete=complete, missing={"operator"}, tables=tables)

    # -- readers -----------------------------------------------------------------------------------

    def spark(self) -> Any:
        """A plain Spark session in this process, for reading."""
        if self._spark is None:
            from pyspark.sql import SparkSession

            jars = ":".join([*class_archive.CLASS_PATH, self._merger])
            builder = (
                SparkSession.builder.master("local[1]")
                .config("spark.driver.extraClassPath", jars)
                .config("spark.ui.enabled", "false")
            )
            builder = builder.config("spark.driver.extraJavaOptions", JAVA_OPTIONS)
            builder = builder.config("spark.sql.shuffle.partitions", "1").config(
                "spark.ui.showConsoleProgress", "false"
            )
            builder = builder.config("spark.driver.memory", "600m").config("spark.sql.session.timeZone", "UTC")
            builder = builder.config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
            builder = builder.config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
            builder = builder.config("spark.driver.host", "127.0.0.1").config(
                "spark.local.dir", str(self.folder / "tmp")
            )
            for key, value in self.s3_settings().items():
                builder = builder.config(f"spark.hadoop.{key}", value)
            self._spark = builder.getOrCreate()
            self._spark.sparkContext.setLogLevel("ERROR")
        return self._spark


def mount_keys(folder: Path, access_key: str, secret_key: str) -> Path:
    """S3 keys in files, as a kubelet mounts a Secret and replaces it; returns the folder."""
    return mount_files(folder, {"accessKeyId": access_key, "secretAccessKey": secret_key})


def mount_files(folder: Path, files: Mapping[str, str]) -> Path:
    """A volume's files by name, all replaced at once as by a kubelet; returns the folder."""
    version = folder / f"..{time.monotonic_ns()}"
    version.mkdir(parents=True)
    for name, text in files.items():
        (version / name).write_text(text)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    new = folder / "..data_tmp"
    new.symlink_to(version.name)
    new.rename(folder / "..data")
    for old in folder.glob("..[0-9]*"):
        if old != version:
            shutil.rmtree(old)
    return folder


def committed(folder: Path) -> bool:
    """Whether the active timeline of the table in that folder has a completed instant."""
    timeline = folder / ".hoodie" / "timeline"
    return timeline.is_dir() and bool(tl.parse(os.listdir(timeline)).completed)


def rows(ids: Sequence[int], p: str, v: str, ts: int) -> list[Row]:
    """Test rows."""
    return [(number, p, v, ts) for number in ids]
