"""Random HudiTables and HudiWriters with hostile texts, and what must hold for those that launch.

A spec is drawn from a grammar: fields with ordinary values, of which a few are replaced by, or get
put into them, what means something to a properties file, a shell, the kubelet, the JVM, YAML or a
file system. `wrong` renders what passes the checks of launch, and reads each file back with a
reader of its own: whatever a field says may only be where that field belongs.
"""

from __future__ import annotations

import json
import posixpath
import random
import re
import shlex
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import yaml

from hudi_operator.api import kafka, options
from hudi_operator.api.spec import SpecError, TableSpec, WriterSpec
from hudi_operator.manifests import configmaps, pods
from hudi_operator.model.config import OperatorConfig
from hudi_operator.plan.core import launch
from hudi_operator.plan.gate.stalled import static_stall
from hudi_operator.plan.writers import event_log, schedules, source_tables

JsonDict = dict[str, Any]

NAMESPACE = "team"
BLANKS = "".join(map(chr, range(33)))
"""What Java's `trim` takes away."""
PREFIX = "s3a://lake/team"
ALLOWED_IMAGES = ("x:1", "registry.example.com/*", "registry/*")
"""Of the tests' clusters: the images of examples, of Generator, and of other tests."""
CONFIG = OperatorConfig(
    allowed_schemes=("s3a", "gs", "hdfs", "abfss"), path_prefixes={NAMESPACE: (PREFIX,)}, allowed_images=ALLOWED_IMAGES
)
TOKENS = (
    "\n", "\r", "\r\n", "=", ":", "#", "!", "\\", " ", "\t", "\f", "\x00", "\x85", "\u2028", "\u00a0", "$", "$$",
    "$(POD_IP)", "$(AWS_SECRET_ACCESS_KEY)", "${env:SECRET}", "${env.SECRET}", "`id`", "$(id)", "'", '"', "`", ";",
    "|", "&", "%", "%2e%2e", "..", "/../", "/./", "{a,..}", "{", "}", "*", "?", "[", "]", "@", ",", "- ", "---\n",
    "{{x}}", "&a", "*a", "!!python/object:os.system", "\nhoodie.write.lock.provider=x.Y", "\nspark.plugins=",
    "\nspark.driver.extraJavaOptions=-javaagent:/tmp/x.jar", "\n      hostPID: true", "include=/tmp/x",
    "file:///etc/hudi/etcd/tls.key", " -javaagent:/tmp/x.jar", "\u0130", "ſ", "K",
)  # fmt: skip
"""Pieces that mean something to one of the readers behind the operator."""
PATHS = (
    PREFIX + "/in", PREFIX + "/in/*.csv", PREFIX + "/{a,b}/x", "s3a://lake/other", "file:///etc/passwd",
    "s3a://lake/team/../other", "s3a://lake/team/{x,..}/t", "s3a://lake/teams/x", "s3://lake//team/x/",
    "gs://lake/team/x", "hdfs:///x", "/etc/passwd", "local:///x", "s3a://user:password@lake/team/x",
    r"s3a://lake/team/x\[1\].csv", r"s3a://lake/team/.\./other", "abfss://c@a.dfs.core.windows.net/team/../x",
    "S3A://lake/team/x", "jar:file:///x!/", "s3a://lake/team/%2e%2e/x",
)  # fmt: skip
VARIABLES = (
    "APP_MODE", "BASH_ENV", "LD_PRELOAD", "ld_preload", "JAVA_TOOL_OPTIONS", "PYTHONPATH", "PATH", "HOME", "ENV",
    "SHELLOPTS", "GCONV_PATH", "GLIBC_TUNABLES", "SPARK_CONF_DIR", "HUDI_OPERATOR_ROLE", "CLASSPATH", "PS4", "IFS",
    "OPENSSL_CONF", "TMPDIR", "AWS_CONFIG_FILE", "AWS_SECRET_ACCESS_KEY", "POD_IP", "BASH_FUNC_exec%%", "A B", "A=B",
    "é", "KUBECONFIG", "HADOOP_CONF_DIR", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "HTTPS_PROXY", "MODE2",
)  # fmt: skip
JAVA = (
    "-XX:+UseG1GC", "-Xss4m", "-XX:MaxGCPauseMillis=100", "-XX:VMOptionsFile=/tmp/x", "-XX:VMOptionsFile=1",
    "-XX:Flags=1", "-XX:OnError=1", "-XX:OnOutOfMemoryError=kill", "-javaagent:/tmp/x.jar", "-agentpath:/tmp/x.so",
    "-Dfs.s3a.impl=x", "-XX:+UnlockDiagnosticVMOptions", "@/tmp/x", "-cp", "-XX:HeapDumpPath=/tmp/x.hprof",
    "-XX:ErrorFile=/dev/termination-log", "-Xlog:gc*", "-Xlog:gc:file=/tmp/x", "-XX:SharedArchiveFile=x",
    "-Xbootclasspath/a:x", "-XX:CompileCommandFile=x",
)  # fmt: skip
SPARK = (
    "spark.sql.shuffle.partitions", "spark.sql.ansi.enabled", "spark.plugins", "Spark.Plugins",
    "spark.sql.extensions", "spark.jars", "spark.driver.extraClassPath", "spark.hadoop.fs.s3a.impl", "spark.master",
    "spark.executorEnv.X", "spark.eventLog.dir", "spark.redaction.regex", "spark.sql.runSQLOnFiles",
    "spark.kubernetes.driver.pod.name", "spark.sql.files.maxPartitionBytes",
)  # fmt: skip
HUDI = (
    "hoodie.parquet.max.file.size", "hoodie.upsert.shuffle.parallelism", "hoodie.write.lock.provider",
    "Hoodie.Write.Lock.Provider", "hoodie.table.name", "hoodie.write.record.merge.custom.implementation.classes",
    "hoodie.bloom.index.parallelism", "include",
)  # fmt: skip
STORAGE = (
    "fs.s3a.endpoint", "fs.s3a.path.style.access", "fs.s3a.impl", "fs.s3a.endpoint:x", "fs.defaultFS",
    "hudi.operator.guard.path", "fs.s3a.secret.key", "fs.azure.shellkeyprovider.script", "fs.s3a.custom.signers",
    "spark.hadoop.fs.s3a.impl", "FS.S3A.IMPL",
)  # fmt: skip
READER = (
    "header", "nullValue", "sep", "path", "paths", "avroSchemaUrl", "fs.s3a.impl", "fs.s3a.endpoint", "basePath",
    "__globPaths__",
)  # fmt: skip
PREFIXES = ("APP_", "TAILNUM_", "LD_", "L_", "BASH_", "P_", "HUDI_", "AWS_", "JAVA_", "", "APP", "A%%_", "S_")
TAKEN = (
    "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "IFS", "PATH",
    "HOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
    "JAVA_HOME", "CLASSPATH", "GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "TMPDIR", "OPENSSL_CONF", "SPARK_CONF_DIR",
    "SPARK_HOME", "SPARK_CLASSPATH", "SPARK_SUBMIT_OPTS", "HADOOP_CONF_DIR", "HUDI_CONF_DIR", "HUDI_OPERATOR_ROLE",
    "POD_IP", "TZ", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE",
    "AWS_PROFILE", "KUBECONFIG", "PYSPARK_PYTHON",
)  # fmt: skip
"""Variables by which somebody else's code, options or place would come into a process."""
_CODE = re.compile(
    r"(?i)agent|File=(?!/tmp/)|Flags|On[A-Z]\w*Error=|^-D|^@|classpath|CompileCommand|Attach|^-cp|:file="
)


def made(kind: str, name: str, spec: JsonDict) -> JsonDict:
    """An object of the namespace."""
    return {"kind": kind, "metadata": {"namespace": NAMESPACE, "name": name, "uid": f"{name}-uid"}, "spec": spec}


class Generator:
    """One seed, one pair of objects."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def objects(self) -> tuple[JsonDict, JsonDict]:
        """A HudiTable and a HudiWriter of it."""
        draw = self._random
        table = made("HudiTable", "flights", self._table())
        writer = made("HudiWriter", "load", self._writer())
        for _ in range(draw.choice((0, 0, 1, 1, 1, 2, 3))):
            self._spoil(draw.choice((table, writer))["spec"])
        return table, writer

    def _some(self, names: tuple[str, ...], safe: int) -> str:
        """Mostly one of the first names, which may be set."""
        return self._random.choice(names[:safe] if self._random.random() < 0.93 else names)

    def _map(self, names: tuple[str, ...], safe: int) -> dict[str, str]:
        values = ("true", "128", "http://s3:9000", "a b", "NA", "$x", "x=y:z", "a\\nb", "ü")
        return {self._some(names, safe): self._random.choice(values) for _ in range(self._random.randrange(3))}

    def _path(self) -> str:
        return self._some(PATHS, 3)

    def _pods(self) -> JsonDict:
        names = {self._some(VARIABLES, 1) for _ in range(self._random.randrange(3))}
        return {
            "memory": self._random.choice(("512Mi", "1Gi")),
            "env": [{"name": name, "value": self._text("plain")} for name in sorted(names)],
            "javaOptions": [self._some(JAVA, 3) for _ in range(self._random.randrange(2))],
            "nodeSelector": self._random.choice(({}, {"disk": self._random.choice(("ssd", "a: b", "x\n"))})),
        }

    def _table(self) -> JsonDict:
        refs: list[JsonDict] = [{"name": "creds", "as": "S3"}]
        if self._random.random() < 0.3:
            refs.append({"name": "more", "as": "Env", "prefix": self._some(PREFIXES, 2)})
        storage = {"secretRefs": refs, "options": self._map(STORAGE, 2)}
        table: JsonDict = {
            "path": self._random.choice((f"{PREFIX}/flights", f"{PREFIX}/a=b/c", self._path())),
            "recordKeyFields": self._random.choice((["id"], ["a", "b"], ["Straße", "b.c"])),
            "partitionFields": self._random.choice(([], ["day"])),
            "storage": storage,
            "hudiOptions": self._map(HUDI, 2),
        }
        table |= self._random.choice(({}, {"tableName": "flights_1"}, {"image": "registry/spark:1@sha256:0"}))
        return table

    def _writer(self) -> JsonDict:
        files = {"format": "csv", "paths": [self._path()], "options": self._map(READER, 3)}
        view = {"name": "v", "files": {"format": "json", "paths": [self._path()]}}
        code = {"configMapKeyRef": {"name": "code", "key": "a.py"}, "function": "f"}
        source: JsonDict = self._random.choice((
            {"files": files},
            {"sql": {"query": self._text("SELECT * FROM v"), "views": [view]}},
            {"python": {**code, "arguments": {"x": self._text("y")}}},
            {"kafka": {"bootstrapServers": ["b:9092"], "topics": ["t"], "value": {"format": "String"}}},
        ))  # fmt: skip
        writer: JsonDict = {
            "tableRef": {"name": "flights"},
            "source": source,
            "driver": self._pods(),
            "executors": {**self._pods(), "instances": self._random.choice((0, 0, 0, 0, 2))},
            "sparkConf": self._map(SPARK, 2),
            "hudiOptions": self._map(HUDI, 2),
        }
        if self._random.random() < 0.3:
            writer["transform"] = {"sql": self._text("SELECT * FROM source")}
        return writer

    def _text(self, ordinary: str) -> str:
        """Free text: everything may be in it, and must come out as it is."""
        return ordinary if self._random.random() < 0.5 else ordinary + "".join(self._random.choices(TOKENS, k=3))

    def _spoil(self, spec: JsonDict) -> None:
        """Put a token somewhere into one text of the spec: a value, or the name of an entry."""
        holder, key = self._random.choice(list(_texts(spec)))
        if isinstance(holder, dict) and key not in _FIELDS and self._random.random() < 0.5:
            holder[self._into(key)] = holder.pop(key)
        else:
            holder[key] = self._into(holder[key])

    def _into(self, text: str) -> str:
        at, token = self._random.randrange(len(text) + 1), self._random.choice(TOKENS)
        return token if self._random.random() < 0.1 else text[:at] + token + text[at:]


_NAMES = (
    "path", "name", "as", "prefix", "value", "format", "query", "function", "key", "tableName", "image", "sql",
    "memory", "schema", "protocol",
)  # fmt: skip
_FIELDS = frozenset(_NAMES)


def _texts(node: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        if isinstance(value, str):
            yield node, key
        elif isinstance(value, (dict, list)):
            yield from _texts(value)


# ---- launch


def refusal(table: JsonDict, writer: JsonDict) -> str:
    """Why the operator starts no attempt of this writer; empty when it does.

    What the planner asks (plan/core/launch.py, plan/gate/stalled.py, plan/writers/admission.py),
    without a cluster.
    """
    try:
        target, spec = TableSpec.from_object(table), WriterSpec.from_object(writer)
    except SpecError as error:
        return str(error)
    stall = static_stall(target, CONFIG)
    if stall is not None:
        return stall.message
    view: Any = SimpleNamespace(
        table=target, config=CONFIG, observed=SimpleNamespace(source_specs={}, tables_at_event_logs={})
    )
    return (
        launch.image_problem(view)
        or schedules.problem(spec)
        or kafka.problem(spec.kafka)
        or options.writer_problem(spec, CONFIG.option_patterns)
        or event_log.problem(view, spec)
        or source_tables.problem(view, spec)
    )


# ---- readers of what was rendered


def properties(text: str) -> dict[str, str]:
    """A file as `java.util.Properties` reads it, written from its documentation."""
    found: dict[str, str] = {}
    for line in _logical(text):
        key, rest = "", ""
        at = 0
        while at < len(line):
            if line[at] == "\\":
                at += 2
            elif line[at] in "=: \t\f":
                break
            else:
                at += 1
        key, rest = line[:at], line[at:].lstrip(" \t\f")
        if rest[:1] in ("=", ":") and rest:
            rest = rest[1:].lstrip(" \t\f")
        found[_unescaped(key)] = _unescaped(rest)
    return found


def _logical(text: str) -> Iterator[str]:
    whole = ""
    for natural in re.split(r"\r\n|\n|\r", text):
        line = natural.lstrip(" \t\f")
        if not whole and (not line or line[0] in "#!"):
            continue
        whole += line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            whole = whole[:-1]
            continue
        yield whole
        whole = ""
    if whole:
        yield whole


def _unescaped(text: str) -> str:
    letters = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}
    return re.sub(
        r"\\(u[0-9A-Fa-f]{4}|.)",
        lambda found: chr(int(found[1][1:], 16)) if len(found[1]) == 5 else letters.get(found[1], found[1]),
        text,
        flags=re.DOTALL,
    )


def hudi_file(text: str) -> dict[str, str]:
    """A file as Hudi reads it: lines, split at the first `=`, no escapes."""
    found: dict[str, str] = {}
    for line in re.split(r"\r\n|\n|\r", text):
        if line.strip() and not line.startswith("#"):
            assert not line.startswith("include="), line
            key, equals, value = line.partition("=")
            assert equals, line
            assert key not in found, line
            found[key.strip(BLANKS)] = value.strip(BLANKS)
    return found


def expanded(value: str, known: Mapping[str, str]) -> str:
    """A variable's value after the kubelet has replaced references in it."""
    out, at = "", 0
    while at < len(value):
        if value.startswith("$$", at):
            out, at = out + "$", at + 2
        elif (found := re.compile(r"\$\(([^)]*)\)").match(value, at)) is not None:
            out, at = out + known.get(found[1], found[0]), found.end()
        else:
            out, at = out + value[at], at + 1
    return out


def alternatives(pattern: str) -> list[str]:
    """What a glob pattern stands for, with its braces resolved."""
    found = re.search(r"(?<!\\)\{([^{}]*)\}", pattern)
    if found is None:
        return [re.sub(r"\\(.)", r"\1", pattern)]
    parts = found[1].split(",")
    return [each for part in parts for each in alternatives(pattern[: found.start()] + part + pattern[found.end() :])]


# ---- what must hold


def wrong(table: JsonDict, writer: JsonDict) -> str:
    """What is where its field does not belong, for objects that launch; empty: nothing."""
    try:
        _check(table, writer)
    except (AssertionError, ValueError, KeyError) as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({at.line})"
    return ""


@dataclass(frozen=True)
class _Ordinary:
    """What the operator renders of a spec of the same shape with ordinary texts."""

    spark: dict[str, str]
    hudi: dict[str, str]
    log: str
    driver: JsonDict
    executor: JsonDict | None


def _ordinary(table: JsonDict, writer: JsonDict) -> _Ordinary:
    kinds = tuple(sorted({ref["as"] for ref in table["spec"].get("storage", {}).get("secretRefs", [])}))
    code = "python" in writer["spec"]["source"]
    instances = writer["spec"].get("executors", {}).get("instances", 0)
    return _rendered(kinds, code, instances, bool(table["spec"].get("partitionFields")))


@cache
def _rendered(kinds: tuple[str, ...], code: bool, instances: int, partitioned: bool) -> _Ordinary:
    refs = [{"name": kind.lower(), "as": kind, **({"prefix": "X_"} if kind == "Env" else {})} for kind in kinds]
    body: JsonDict = {"recordKeyFields": ["id"], "path": f"{PREFIX}/t", "storage": {"secretRefs": refs}}
    if partitioned:
        body["partitionFields"] = ["p"]
    python = {"python": {"configMapKeyRef": {"name": "c", "key": "c.py"}, "function": "f"}}
    source = python if code else {"files": {"format": "csv", "paths": [f"{PREFIX}/x"]}}
    target = TableSpec.from_object(made("HudiTable", "flights", body))
    body = {"tableRef": {"name": "flights"}, "source": source, "executors": {"instances": instances}}
    spec = WriterSpec.from_object(made("HudiWriter", "load", body))
    data = configmaps.attempt_config(target, spec, 1, CONFIG, run=1)["data"]
    return _Ordinary(
        properties(data["spark-defaults.conf"]),
        hudi_file(data["hudi-defaults.conf"]),
        data["log4j2.properties"],
        pods.driver_pod(target, spec, 1, CONFIG),
        yaml.load(data["executor-template.yaml"], Loader=yaml.CSafeLoader) if instances else None,
    )


_VARIES = re.compile(
    r"spark\.(driver|executor)\.(memory|memoryOverhead|extraJavaOptions)|spark\.kubernetes\.container\.image"
    r"|spark\.hadoop\.hudi\.operator\.guard\.path"
)
_HUDI_VARIES = re.compile(
    r"hoodie\.(datasource\.write\.)?(table\.name|recordkey\.field|partitionpath\.field|keygenerator\.class)"
    r"|hoodie\.write\.lock\.etcd\.table_id"
)


def _check(table: JsonDict, writer: JsonDict) -> None:
    target, spec = TableSpec.from_object(table), WriterSpec.from_object(writer)
    plain = _ordinary(table, writer)
    data = configmaps.attempt_config(target, spec, 1, CONFIG, run=1)["data"]
    assert len(data) == (12 if spec.executors.instances else 5), sorted(data)
    if spec.executors.instances:
        assert data["executor-image"] == (target.image or CONFIG.spark_image)
        assert "hudi-operator-etcd" not in data["executor-secrets"].split(",")
    assert data["log4j2.properties"] == plain.log
    _spark(table, writer, properties(data["spark-defaults.conf"]), plain.spark)
    _hudi(table, hudi_file(data["hudi-defaults.conf"]), plain.hudi)
    _job(writer, json.loads(data["job.json"]))
    _pod(pods.driver_pod(target, spec, 1, CONFIG), plain.driver, writer["spec"]["driver"], "writer")
    if plain.executor is not None:
        (executor,) = yaml.load_all(data["executor-template.yaml"], Loader=yaml.CSafeLoader)
        _pod(executor, plain.executor, writer["spec"]["executors"], "")


def _spark(table: JsonDict, writer: JsonDict, found: dict[str, str], plain: dict[str, str]) -> None:
    given = {f"spark.hadoop.{k}": v for k, v in table["spec"]["storage"].get("options", {}).items()}
    given |= writer["spec"].get("sparkConf", {})
    for key, value in found.items():
        if key in given:
            assert value.strip(BLANKS) == given[key].strip(BLANKS), (key, value)
            assert "${" not in value, (key, value)
        elif not _VARIES.fullmatch(key):
            assert value == plain.get(key), (key, value)
    assert plain.keys() - found.keys() == set(), "a setting of the operator is gone"
    assert found.get("spark.eventLog.dir", f"{PREFIX}/log").startswith((f"{PREFIX}/", "s3://lake/team/")), found
    assert found["spark.hadoop.hudi.operator.guard.path"] == table["spec"]["path"]
    for kind, section in (("driver", "driver"), ("executor", "executors")):
        key = f"spark.{kind}.extraJavaOptions"
        if key in found:
            wanted = writer["spec"][section].get("javaOptions", [])
            assert shlex.split(found[key])[: len(wanted)] == wanted, found[key]
            assert shlex.split(found[key])[len(wanted) :] == shlex.split(plain[key])
            assert not [option for option in wanted if _CODE.search(option)], wanted


def _hudi(table: JsonDict, found: dict[str, str], plain: dict[str, str]) -> None:
    given = table["spec"].get("hudiOptions", {})
    for key, value in found.items():
        if key in given:
            assert value == given[key].strip(BLANKS), (key, value)
        elif not _HUDI_VARIES.fullmatch(key):
            assert value == plain.get(key), (key, value)
    assert plain.keys() - found.keys() == set(), "an option of the operator is gone"
    assert found["hoodie.datasource.write.recordkey.field"].split(",") == table["spec"]["recordKeyFields"]
    partitions = found["hoodie.datasource.write.partitionpath.field"]
    assert (partitions.split(",") if partitions else []) == table["spec"].get("partitionFields", [])
    assert found["hoodie.table.name"] == table["spec"].get("tableName", table["metadata"]["name"])


def _job(writer: JsonDict, job: JsonDict) -> None:
    source, told = writer["spec"]["source"], job["source"]
    if "sql" in source:
        assert told["sql"]["query"] == source["sql"]["query"]
    if "transform" in writer["spec"]:
        assert job["transform"]["sql"] == writer["spec"]["transform"]["sql"]
    if "python" in source:
        assert re.fullmatch(r"/etc/hudi/code/[^/]+[.]py", told["python"]["file"])
        assert told["python"]["arguments"] == source["python"].get("arguments", {})
        assert told["python"]["function"].isidentifier()
    files = [told["files"]] if "files" in source else []
    files += [view["files"] for view in told["sql"]["views"]] if "sql" in source else []
    for each in files:
        for path in each["paths"]:
            for one in alternatives(path):
                scheme, slashes, rest = one.partition("://")
                assert slashes, path
                assert scheme.lower() in ("s3", "s3a"), path
                assert posixpath.normpath(rest).startswith("lake/team/"), path
                assert "@" not in rest.partition("/")[0], path
        assert not [
            name for name in each["options"] if "." in name or name.lower() in ("path", "paths", "avroschemaurl")
        ]


def _pod(pod: JsonDict, plain: JsonDict, settings: JsonDict, role: str) -> None:
    spec, ordinary = pod["spec"], plain["spec"]
    assert spec.keys() - {"nodeSelector", "tolerations"} == ordinary.keys() - {"nodeSelector", "tolerations"}
    for key in ("restartPolicy", "securityContext", "enableServiceLinks", "automountServiceAccountToken"):
        assert spec[key] == ordinary[key]
    assert spec.get("nodeSelector", {}) == settings.get("nodeSelector", {})
    (container,), (theirs,) = spec["containers"], ordinary["containers"]
    assert container.keys() == theirs.keys()
    assert container.get("args") == theirs.get("args") == ([role] if role else None)
    for key in ("securityContext", "volumeMounts", "name"):
        assert container[key] == theirs[key], key
    assert [volume["name"] for volume in spec["volumes"]] == [volume["name"] for volume in ordinary["volumes"]]
    _environment(container, theirs, settings)


def _environment(container: JsonDict, theirs: JsonDict, settings: JsonDict) -> None:
    names = [each["name"] for each in container["env"]]
    owned = {each["name"] for each in theirs["env"]}
    assert len(names) == len(set(names)), names
    wanted = {each["name"]: each["value"] for each in settings.get("env", [])}
    assert set(names) == owned | wanted.keys(), names
    assert not {name.upper() for name in wanted} & {*TAKEN, *(name.upper() for name in owned)}, wanted
    known = dict.fromkeys(names, "REPLACED")
    for each in container["env"]:
        if each["name"] in wanted:
            assert expanded(each["value"], known) == wanted[each["name"]], each
    for each in container["envFrom"]:
        assert each["prefix"], each
        assert not [name for name in TAKEN if name.startswith(each["prefix"].upper())], each
