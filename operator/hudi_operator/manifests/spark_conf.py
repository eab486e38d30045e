"""``spark-defaults.conf`` and ``log4j2.properties`` of drivers and agents.

Three layers: defaults that a user may change (``sparkConf``), the user's own settings, and settings
that the operator owns because the protocol or the pod depends on them. ``spark.driver.host`` is not
here: only the pod knows its address (``SPARK_LOCAL_HOSTNAME``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hudi_contract import environment, secret_names
from hudi_operator.api.pod_settings import ExecutorSettings, PodSettings
from hudi_operator.api.spec import StorageSpec, TableSpec, WriterSpec
from hudi_operator.manifests import quantity
from hudi_operator.model.config import OperatorConfig

GUARDED_CONTEXT = "io.hudioperator.GuardedAbstractFileSystem"
PLUGIN = "io.hudioperator.HudiOperatorPlugin"
S3_CREDENTIALS = "io.hudioperator.S3Credentials"
STATEMENTS = "io.hudioperator.StatementExtension"
API_SERVER = "k8s://https://kubernetes.default.svc"
DRIVER_SERVICE_ACCOUNT = "hudi-driver"
AGENT_SERVICE_ACCOUNT = "hudi-agent"
SPARK_CONF_DIR = "/etc/hudi/spark"
HUDI_CONF_DIR = "/etc/hudi/conf"
EXECUTOR_TEMPLATE = f"{SPARK_CONF_DIR}/executor-template.yaml"
EXECUTOR_CONTAINER = "executor"
DRIVER_PORT = 7078
BLOCK_MANAGER_PORT = 7079
SPARK_KEY_DIR = "/etc/hudi/spark-key"
SPARK_KEY = "key"
_SERVICE_ACCOUNT_CA = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"

_FILE_SYSTEMS = {
    "s3a": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "gs": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
    "abfs": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    "abfss": "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
    "hdfs": "org.apache.hadoop.hdfs.DistributedFileSystem",
}

WIRE = {
    # A driver listens on two ports of the pod's address even when all its tasks run inside it. In
    # local mode Spark makes a key that only this process knows, so nobody can connect.
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    # The default cipher, CTR, does not notice changed bytes.
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    # Version 2 derives the keys of a connection from the whole handshake.
    "spark.network.crypto.authEngineVersion": "2",
    # Otherwise a client may ask for SASL instead, which does not encrypt.
    "spark.network.crypto.saslFallback": "false",
    # Shuffle and spill files, with a key that executors get over such a connection.
    "spark.io.encryption.enabled": "true",
}

_TABLE_PATH = "spark.hadoop.hudi.operator.guard.path"
"""Executors have no session: this setting tells the storage wrapper the table of their files."""

LOG4J2 = """\
# Quiet: Spark and Hudi at WARN; the lock module and the runtime tell each step themselves.
status = error
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}{UTC} %p %c{1}: %m%n%ex
logger.module.name = io.hudioperator
logger.module.level = info
# Prints all of hoodie.properties at each change of a table's configuration.
logger.tableconfig.name = org.apache.hudi.common.table.HoodieTableConfig
logger.tableconfig.level = error
logger.metrics.name = org.apache.hadoop.metrics2
logger.metrics.level = error
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
# Warns of each log file that Hudi writes (it flushes, S3 cannot) and of each stream that was closed twice.
logger.s3astream.name = org.apache.hadoop.fs.s3a.S3ABlockOutputStream
logger.s3astream.level = error
logger.s3astatistics.name = org.apache.hadoop.fs.s3a.S3AInstrumentation
logger.s3astatistics.level = error
"""


# Without the last option a library in Hudi's bundle, which measures the size of objects, attaches a
# debugger JVM to each JVM and stops it for seconds.
_JAVA_OPTIONS = "-Duser.timezone=UTC -XX:+ExitOnOutOfMemoryError -Djol.skipHotspotSAAttach=true"
_DRIVER_JAVA_OPTIONS = f"{_JAVA_OPTIONS} -Dderby.system.home=/tmp/derby"


def _java_options(wanted: Sequence[str], owned: str) -> str:
    """A user's JVM options come before ours.

    When two options contradict each other, the JVM uses the later one.
    """
    return " ".join([*wanted, owned])


def spark_defaults(table: TableSpec, writer: WriterSpec, number: int, config: OperatorConfig) -> dict[str, str]:
    """Spark settings of one attempt's driver; its executors get them from the driver."""
    settings = _changeable(_slots(writer.driver, writer.executors))
    settings.update(_storage_defaults(table.storage))
    settings.update(writer.spark_conf)
    settings.update(_owned(table.storage, config))
    settings[_TABLE_PATH] = table.path
    settings["spark.plugins"] = PLUGIN
    settings["spark.app.name"] = f"{writer.ref.namespace}/{writer.ref.name}"
    settings["spark.driver.memory"] = quantity.spark_size(writer.driver.memory)
    settings["spark.driver.extraJavaOptions"] = _java_options(writer.driver.java_options, _DRIVER_JAVA_OPTIONS)
    if writer.executors.instances == 0:
        settings["spark.master"] = f"local[{writer.driver.cores}]"
    else:
        settings.update(_executors(table, writer.driver_pod(number), writer.executors, config))
    return settings


def agent_defaults(table: TableSpec, config: OperatorConfig, *, agent_pod: str = "") -> dict[str, str]:
    """Spark settings of the agent that serves ``table``: one warm local session for all its tables.

    Executors are possible for a table's own agent.

    In a driver the plugin opens the session of one table from the environment; an agent has no
    table there and opens its sessions itself.
    """
    own = table.agent
    settings = _changeable(1 if own is None else _slots(own.pod, own.executors))
    settings.update(_storage_defaults(table.storage))
    settings.update(_owned(table.storage, config))
    settings["spark.app.name"] = agent_pod.rpartition("-")[0] or table.agent_name(config.spark_image)
    settings["spark.driver.memory"] = quantity.spark_size(config.agent.memory if own is None else own.pod.memory)
    settings["spark.driver.extraJavaOptions"] = _java_options(
        config.agent.java_options if own is None else own.pod.java_options, _DRIVER_JAVA_OPTIONS
    )
    # One slot bounds the memory. With fair scheduling a rollback's job waits for the running task
    # of a compaction, not for all its tasks.
    settings["spark.master"] = "local[1]" if own is None else f"local[{own.pod.cores}]"
    settings["spark.scheduler.mode"] = "FAIR"
    if own is not None:
        settings[_TABLE_PATH] = table.path
    if own is not None and own.executors.instances > 0:
        settings["spark.plugins"] = PLUGIN
        settings.update(_executors(table, agent_pod, own.executors, config))
    return settings


def _slots(driver: PodSettings, executors: ExecutorSettings) -> int:
    """Number of tasks that run at once."""
    return max(1, driver.cores if executors.instances == 0 else executors.cores * executors.instances)


def _changeable(slots: int) -> dict[str, str]:
    return {
        "spark.sql.shuffle.partitions": str(max(2, slots)),
        "spark.default.parallelism": str(max(2, slots)),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.network.timeout": "120s",
        "spark.rpc.askTimeout": "60s",
    }


def _storage_defaults(storage: StorageSpec) -> dict[str, str]:
    """S3A's default time-outs are minutes, with tens of retries.

    A wrong key or endpoint would fail only after ten minutes.
    """
    settings = {
        "spark.hadoop.fs.s3a.attempts.maximum": "4",
        "spark.hadoop.fs.s3a.retry.limit": "4",
        "spark.hadoop.fs.s3a.retry.interval": "500ms",
        "spark.hadoop.fs.s3a.connection.establish.timeout": "5000",
        "spark.hadoop.fs.s3a.connection.timeout": "60000",
    }
    if any(ref.as_kind == "S3" for ref in storage.secret_refs):
        settings["spark.hadoop.fs.s3a.aws.credentials.provider"] = S3_CREDENTIALS
    settings.update({f"spark.hadoop.{key}": value for key, value in storage.options.items()})
    return settings


def _owned(storage: StorageSpec, config: OperatorConfig) -> dict[str, str]:
    settings = {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        **WIRE,
        "spark.sql.extensions": f"{STATEMENTS},org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.session.timeZone": "UTC",
        # No files as tables: `SELECT * FROM text.`file:///…`` (F133).
        "spark.sql.runSQLOnFiles": "false",
        # `${env:NAME}` in a statement would be that variable.
        "spark.sql.variable.substitute": "false",
        "spark.redaction.regex": secret_names.PATTERN,
        "spark.sql.warehouse.dir": "/tmp/warehouse",
        "spark.hadoop.hadoop.tmp.dir": "/tmp/hadoop",
        # The tasks of a failed write must have ended before its instant is abandoned (F4).
        "spark.task.reaper.enabled": "true",
        "spark.task.reaper.killTimeout": "60s",
        # A speculative copy of a task would be a second writer of the same file.
        "spark.speculation": "false",
        "spark.dynamicAllocation.enabled": "false",
        # Deleting directory markers after each PUT is slow everywhere and fails on some S3 servers.
        "spark.hadoop.fs.s3a.directory.marker.retention": "keep",
        # Otherwise an array in a base file cannot contain null. Files with arrays in the old format
        # are read as before.
        "spark.hadoop.parquet.avro.write-old-list-structure": "false",
        # Parquet's default calls the constructor of any class that a file names (F323).
        "spark.hadoop.parquet.avro.data.supplier": "org.apache.parquet.avro.GenericDataSupplier",
        # Very old dates are written unchanged: otherwise a bulk insert fails on them.
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    }
    for scheme in config.allowed_schemes:
        settings.update(_guard(scheme, storage))
    return settings


def _guard(scheme: str, storage: StorageSpec) -> dict[str, str]:
    """Put the storage wrapper before the file system of a scheme, for both of Hadoop's interfaces.

    ``fs.<scheme>.impl`` of the table's storage options is its delegate.
    """
    settings = {f"spark.hadoop.fs.AbstractFileSystem.{scheme}.impl": GUARDED_CONTEXT}
    if scheme == "file":
        return settings | {"spark.hadoop.fs.file.impl": "io.hudioperator.testing.GuardedLocalFileSystem"}
    delegate = storage.options.get(f"fs.{scheme}.impl", _FILE_SYSTEMS.get(scheme, ""))
    settings |= {f"spark.hadoop.fs.{scheme}.impl": environment.GUARD}
    if delegate:
        settings[f"spark.hadoop.hudi.operator.guard.{scheme}.delegate"] = delegate
    return settings


def _executors(table: TableSpec, pod: str, executors: ExecutorSettings, config: OperatorConfig) -> dict[str, str]:
    """Executors of the driver ``pod``."""
    heap = quantity.kubernetes_mib(executors.memory)
    return {
        "spark.master": API_SERVER,
        "spark.submit.deployMode": "client",
        "spark.driver.port": str(DRIVER_PORT),
        "spark.blockManager.port": str(BLOCK_MANAGER_PORT),
        # Not in the environment, where Spark puts its key otherwise.
        "spark.authenticate.secret.file": f"{SPARK_KEY_DIR}/{SPARK_KEY}",
        "spark.executor.instances": str(executors.instances),
        "spark.executor.cores": str(executors.cores),
        "spark.executor.memory": quantity.spark_size(executors.memory),
        "spark.executor.memoryOverhead": f"{_executor_overhead(executors.resources, heap)}m",
        # Spark sets SPARK_CONF_DIR of executors to its own directory, so the class path does not
        # lead to the file.
        "spark.executor.extraJavaOptions": _java_options(
            executors.java_options, f"{_JAVA_OPTIONS} -Dlog4j2.configurationFile={SPARK_CONF_DIR}/log4j2.properties"
        ),
        "spark.executorEnv.HUDI_CONF_DIR": HUDI_CONF_DIR,
        "spark.kubernetes.namespace": table.ref.namespace,
        "spark.kubernetes.container.image": table.image or config.spark_image,
        "spark.kubernetes.container.image.pullPolicy": config.image_pull_policy,
        # The owner of the executors, so that none outlives the driver's object.
        "spark.kubernetes.driver.pod.name": pod,
        "spark.kubernetes.executor.podNamePrefix": pod,
        "spark.kubernetes.executor.podTemplateFile": EXECUTOR_TEMPLATE,
        "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR_CONTAINER,
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.authenticate.caCertFile": _SERVICE_ACCOUNT_CA,
        "spark.kubernetes.authenticate.executor.serviceAccountName": executor_account(table),
        **_executor_cpu(executors.resources),
    }


def executor_account(table: TableSpec) -> str:
    """ServiceAccount of executors; they get no token of it."""
    return table.storage.service_account_name or AGENT_SERVICE_ACCOUNT


def _executor_overhead(resources: Mapping[str, object], heap: int) -> int:
    """Spark sets heap + overhead as request and limit.

    A size from the user determines the overhead.
    """
    for kind in ("limits", "requests"):
        wanted = _section(resources, kind).get("memory")
        if wanted is not None:
            return max(quantity.kubernetes_mib(wanted) - heap, 64)
    return quantity.overhead_mib(heap)


def _executor_cpu(resources: Mapping[str, object]) -> dict[str, str]:
    settings = {"spark.kubernetes.executor.request.cores": str(_section(resources, "requests").get("cpu", "100m"))}
    limit = _section(resources, "limits").get("cpu")
    if limit is not None:
        settings["spark.kubernetes.executor.limit.cores"] = str(limit)
    return settings


def _section(resources: Mapping[str, object], kind: str) -> dict[str, object]:
    section = resources.get(kind)
    return dict(section) if isinstance(section, Mapping) else {}


def properties(settings: Mapping[str, str]) -> str:
    """Render as Java properties, sorted, so that equal settings give equal files.

    Each setting is one line and is read back unchanged, whatever its name or value contains (F132).
    """
    return "".join(f"{_escaped(key, name=True)}={_escaped(value)}\n" for key, value in sorted(settings.items()))


_LETTERS = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def _escaped(text: str, *, name: bool = False) -> str:
    """Text as `java.util.Properties` reads it back; a name ends at ``=``, ``:`` or a blank."""
    written = "".join(_LETTERS.get(each) or (f"\\{each}" if name and each in " :=#!" else each) for each in text)
    return f"\\{written}" if written.startswith(" ") and not name else written
