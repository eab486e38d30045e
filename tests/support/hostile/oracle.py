"""Properties of the files, pods and records of objects that launch."""

from __future__ import annotations

import json
import re
import shlex
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from hudi_operator.api import references
from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.control import begun
from hudi_operator.manifests import configmaps, pods
from tests.support.hostile import oracle_pods, oracle_records
from tests.support.hostile.decode import undecodable
from tests.support.hostile.launch import CONFIG, launched, made
from tests.support.hostile.readers import BLANKS, hudi_file, properties
from tests.support.hostile.vocabulary import ENDPOINT, PREFIX

JsonDict = dict[str, Any]

_CODE = re.compile(
    r"(?i)agent|File=(?!/tmp/)|Flags|On[A-Z]\w*Error=|^-D|^@|classpath|CompileCommand|Attach|^-cp|:file="
)
_SIZE, _COUNT, _WORD = "[0-9]+[mg]", "[0-9]+", "[A-Za-z0-9_.$-]*"
_SPARK_VARIES = {
    r"spark\.(driver|executor)\.memory(Overhead)?": _SIZE,
    r"spark\.(driver|executor)\.extraJavaOptions": r"-[^\n\r]*",
    r"spark\.kubernetes\.container\.image": "[A-Za-z0-9][A-Za-z0-9._:/@-]*",
    r"spark\.kubernetes\.executor\.(request|limit)\.cores": "[0-9.]+m?",
    r"spark\.kubernetes\.authenticate\.executor\.serviceAccountName": "[a-z0-9][a-z0-9.-]*",
    r"spark\.(sql\.shuffle\.partitions|default\.parallelism|executor\.instances|executor\.cores)": _COUNT,
    r"spark\.master": rf"local\[{_COUNT}\]|k8s://https://kubernetes\.default\.svc",
    r"spark\.app\.name": "[a-z0-9/-]+",
    r"spark\.hadoop\.hudi\.operator\.guard\.path": ".*",
}
"""Settings that follow from the spec, and what they may be."""
_HUDI_VARIES = {
    r"hoodie\.(datasource\.write\.)?(table\.name|recordkey\.field|partitionpath\.field)": ".*",
    r"hoodie\.datasource\.write\.(keygenerator\.class|hive_style_partitioning)|hoodie\.table\.type": _WORD,
    r"hoodie\.(datasource\.write\.table\.type|index\.type|index\.bucket\.engine|write\.concurrency\.mode)": _WORD,
    r"hoodie\.(bloom\.index\.prune\.by\.ranges|metadata\.enable|metadata\.index\.(column|partition)\.stats\.enable)": (
        "true|false"
    ),
    r"hoodie\.write\.lock\.(etcd\.table_id|wait_time_ms)|hoodie\.bucket\.index\.num\.buckets": "[0-9a-z]+",
    r"hoodie\.write\.concurrency\.early\.conflict\.detection\.(enable|strategy)": _WORD,
    r"hoodie\.write\.record\.merge\.custom\.implementation\.classes": _WORD,
    r"hoodie\.(datasource\.write\.)?(table\.)?(precombine|ordering)\.fields?": ".*",
}


def wrong(table: JsonDict, writer: JsonDict) -> str:
    """Value that is not in its own field, for objects that launch; empty: none."""
    try:
        _check(table, writer)
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({at.line})"
    return ""


@dataclass(frozen=True)
class _Shape:
    """Properties of a spec that determine which files and volumes there are."""

    kinds: tuple[tuple[str, ...], ...]
    code: bool
    kafka: bool
    registry: bool
    jdbc: bool
    executors: bool
    partitioned: bool
    revocable: bool
    callback: bool
    agent: bool | None
    """Whether the table's own agent has executors; None: it has no separate agent."""


@dataclass(frozen=True)
class _Ordinary:
    """Output of the operator for a spec of the same shape with ordinary texts."""

    data: dict[str, str]
    spark: dict[str, str]
    hudi: dict[str, str]
    driver: JsonDict
    executor: JsonDict | None
    agent_data: dict[str, str]
    agent_spark: dict[str, str]
    agent: JsonDict
    agent_executor: JsonDict | None


def _template(text: str) -> JsonDict:
    (pod,) = yaml.load_all(text, Loader=yaml.CSafeLoader)
    found: JsonDict = pod
    return found


def _shape(target: TableSpec, spec: WriterSpec) -> _Shape:
    return _Shape(
        kinds=tuple((ref.as_kind,) for ref in target.storage.secret_refs),
        code=bool(spec.python or (spec.application and spec.application.config_map)),
        kafka=spec.kafka is not None and bool(spec.kafka.security.secret),
        registry=bool(pods.source_secrets(spec)["registry"]),
        jdbc=spec.jdbc is not None,
        executors=spec.executors.instances > 0,
        partitioned=bool(target.partition_fields),
        revocable=target.fencing.mode == "Credentials",
        callback=target.callback is not None and bool(target.callback.secret),
        agent=None if target.agent is None else target.agent.executors.instances > 0,
    )


@cache
def _rendered(shape: _Shape) -> _Ordinary:
    refs = [
        {"name": f"ref-{n}", "as": kind, **({"prefix": "X_"} if kind == "Env" else {})}
        for n, (kind,) in enumerate(shape.kinds)
    ]
    body: JsonDict = {"recordKeyFields": ["id"], "path": f"{PREFIX}/t", "storage": {"secretRefs": refs}}
    body |= {"partitionFields": ["p"]} if shape.partitioned else {}
    body |= {"fencing": {"mode": "Credentials"}} if shape.revocable else {}
    body |= {"commitCallback": {"url": "https://x.example/y", "secretRef": {"name": "c"}}} if shape.callback else {}
    body |= {"agent": {"executors": {"instances": int(shape.agent)}}} if shape.agent is not None else {}
    source: JsonDict = {"files": {"format": "csv", "paths": [f"{PREFIX}/x"]}}
    if shape.code:
        source = {"python": {"configMapKeyRef": {"name": "c", "key": "c.py"}, "function": "f"}}
    if shape.kafka or shape.registry:
        source = {"kafka": {"bootstrapServers": ["b:1"], "topics": ["t"], "value": {"format": "String"}}}
    if shape.kafka:
        source["kafka"]["security"] = {"protocol": "SSL", "secretRef": {"name": "k"}}
    if shape.registry:
        registry = {"url": "https://r.example.com", "secretRef": {"name": "k"}}
        source["kafka"]["value"] = {"format": "Json", "schema": "a INT", "registry": registry}
    if shape.jdbc:
        server = {"engine": "PostgreSQL", "host": "h", "database": "d", "secretRef": {"name": "k"}}
        source = {"jdbc": {**server, "table": "t"}}
    target = TableSpec.from_object(made("HudiTable", "flights", body))
    body = {"tableRef": {"name": "flights"}, "source": source, "executors": {"instances": int(shape.executors)}}
    spec = WriterSpec.from_object(made("HudiWriter", "load", body))
    data = configmaps.attempt_config(target, spec, 1, CONFIG, run=1)["data"]
    agent = configmaps.agent_config(target, _AGENT, 1, CONFIG)["data"]
    return _Ordinary(
        data=data,
        spark=properties(data["spark-defaults.conf"]),
        hudi=hudi_file(data["hudi-defaults.conf"]),
        driver=pods.driver_pod(target, spec, 1, CONFIG),
        executor=_template(data["executor-template.yaml"]) if shape.executors else None,
        agent_data=agent,
        agent_spark=properties(agent["spark-defaults.conf"]),
        agent=pods.agent_pod(target, _AGENT, 1, CONFIG),
        agent_executor=_template(agent["executor-template.yaml"]) if shape.agent else None,
    )


_AGENT = "agent-x"


def _check(table: JsonDict, writer: JsonDict) -> None:
    target, spec = launched(table, writer)
    plain = _rendered(_shape(target, spec))
    data = configmaps.attempt_config(target, spec, 1, CONFIG, run=1)["data"]
    assert data.keys() == plain.data.keys(), sorted(data)
    assert data["log4j2.properties"] == plain.data["log4j2.properties"]
    _spark(table, writer["spec"], properties(data["spark-defaults.conf"]), plain.spark)
    hudi = hudi_file(data["hudi-defaults.conf"])
    _hudi(table, writer["spec"], hudi, plain.hudi)
    oracle_records.job(table, writer, json.loads(data["job.json"]))
    driver = pods.driver_pod(target, spec, 1, CONFIG)
    asked = {each.object.name for each in (*references.of_table(target), *references.of_writer(spec))}
    secrets = _named(table["spec"], writer["spec"])
    own = {f"{driver['metadata']['name']}{suffix}" for suffix in ("-spark-key", "-storage-key")}
    pulled = _pulled(table["spec"], writer["spec"])
    _pod(driver, plain.driver, _of(writer["spec"], "driver"), "writer", secrets | own | pulled, asked | own)
    said = writer["spec"].get("serviceAccountName") or _of(table["spec"], "storage").get("serviceAccountName")
    assert driver["spec"]["serviceAccountName"] == (said or "hudi-driver")
    assert driver["spec"].get("activeDeadlineSeconds") == writer["spec"].get("activeDeadlineSeconds")
    if plain.executor is not None:
        executor = _template(data["executor-template.yaml"])
        settings = _of(writer["spec"], "executors")
        if _pod(executor, plain.executor, settings, "", secrets | own | pulled, asked | own):
            _executors(data, executor, target.image or CONFIG.spark_image)
    _agent(table, _pulled(table["spec"]))


def _pod(pod: JsonDict, plain: JsonDict, settings: JsonDict, role: str, secrets: set[str], asked: set[str]) -> bool:
    """Whether the API server decodes the settings' podTemplate: there is no such pod otherwise.

    ``asked``: names of the Secrets whose owners are asked; the others as ``oracle_pods.check`` has
    them.
    """
    if undecodable(settings.get("podTemplate"), "V1PodTemplateSpec"):
        return False
    assert not (told := undecodable(pod, "V1Pod")), told
    oracle_pods.check(pod, plain, settings, role, secrets)
    assert oracle_pods.used(pod) <= asked, "nobody asked its owner"
    assert all(begun.files_of_pod(pod))
    return True


def _agent(table: JsonDict, pulled: set[str]) -> None:
    """The pod that serves the table, and the record that tells it how."""
    target = TableSpec.from_object(table)
    plain = _rendered(_shape(target, _NO_WRITER))
    settings = _of(table["spec"], "agent")
    data = configmaps.agent_config(target, _AGENT, 1, CONFIG)["data"]
    assert data.keys() == plain.agent_data.keys(), sorted(data)
    for name in ("log4j2.properties", "job.json", "hudi-defaults.conf"):
        assert data[name] == plain.agent_data[name], name
    found = properties(data["spark-defaults.conf"])
    _spark(table, {"driver": settings, "executors": _of(settings, "executors")}, found, plain.agent_spark)
    secrets = _named(table["spec"], {})
    secrets |= _names([_of(_of(table["spec"], "commitCallback"), "secretRef")])
    agent = pods.agent_pod(target, _AGENT, 1, CONFIG)
    own = {f"{agent['metadata']['name']}-spark-key"}
    asked = {each.object.name for each in references.of_table(target)}
    _pod(agent, plain.agent, settings, "agent", secrets | own | pulled, asked | own)
    if plain.agent_executor is not None:
        executor = _template(data["executor-template.yaml"])
        wanted = _of(settings, "executors")
        if _pod(executor, plain.agent_executor, wanted, "", secrets | own | pulled, asked | own):
            _executors(data, executor, target.image or CONFIG.spark_image)
    record = oracle_records.assignment(table, target)
    _hudi(table, {}, record["hudiProps"], plain.hudi)


_NO_WRITER = WriterSpec.from_object(
    made(
        "HudiWriter",
        "load",
        {"tableRef": {"name": "x"}, "source": {"files": {"format": "csv", "paths": ["s3a://x/y"]}}},
    )
)


def _of(spec: JsonDict, name: str) -> JsonDict:
    return spec.get(name) or {}


def _names(refs: Iterable[JsonDict] | None) -> set[str]:
    return {ref["name"] for ref in refs or () if ref}


def _pulled(*specs: JsonDict) -> set[str]:
    return {name for spec in specs for name in _names(spec.get("imagePullSecrets"))}


def _named(table: JsonDict, writer: JsonDict) -> set[str]:
    """Secrets of the storage and of the source."""
    kafka, jdbc = (_of(_of(writer, "source"), kind) for kind in ("kafka", "jdbc"))
    registry = _of(_of(kafka, "value"), "registry")
    of_source = _names([_of(_of(kafka, "security"), "secretRef"), _of(registry, "secretRef"), _of(jdbc, "secretRef")])
    return _names(_of(table, "storage").get("secretRefs")) | of_source


def _executors(data: dict[str, str], executor: JsonDict, image: str) -> None:
    """Assert that admission compares executors with exactly what their template says."""

    def listed(name: str) -> set[str]:
        return set(data[name].split(",")) - {""}

    assert data["executor-image"] == image
    mounted = {"spec": {**executor["spec"], "imagePullSecrets": []}}
    assert listed("executor-secrets") == oracle_pods.used(mounted)
    assert "hudi-operator-etcd" not in listed("executor-secrets")
    spec = executor["spec"]
    others = [*spec["containers"][1:], *spec.get("initContainers", ())]
    assert listed("executor-containers") == {f"{one['name']}={one['image']}" for one in others}
    claims = {(v.get("persistentVolumeClaim") or {}).get("claimName") for v in spec["volumes"]}
    assert listed("executor-claims") == claims - {None}
    for field in ("priorityClassName", "runtimeClassName"):
        assert data[f"executor-{field.removesuffix('ClassName')}-class"] == spec.get(field, "")
    labels = dict(each.split("=") for each in data["executor-labels"].split(","))
    assert labels == {k: v for k, v in executor["metadata"]["labels"].items() if k.startswith("hudioperator.io/")}


def _allowed(varies: dict[str, str], key: str, value: str) -> bool | None:
    """Whether a value is one that may follow from the spec; None: it may not vary."""
    return next((bool(re.fullmatch(values, value)) for keys, values in varies.items() if re.fullmatch(keys, key)), None)


def _spark(table: JsonDict, writer: JsonDict, found: dict[str, str], plain: dict[str, str]) -> None:
    given = {f"spark.hadoop.{k}": v for k, v in (_of(table["spec"], "storage").get("options") or {}).items()}
    given |= writer.get("sparkConf") or {}
    for key, value in found.items():
        if key in given:
            assert value.strip(BLANKS) == given[key].strip(BLANKS), (key, value)
            assert "${" not in value, (key, value)
        elif (fine := _allowed(_SPARK_VARIES, key, value)) is not None:
            assert fine, (key, value)
        else:
            assert value == plain.get(key), (key, value)
    limits = {"spark.kubernetes.executor.limit.cores"}
    assert plain.keys() - found.keys() - limits == set(), "a setting of the operator is gone"
    assert found.get("spark.eventLog.dir", f"{PREFIX}/log").startswith((f"{PREFIX}/", "s3://lake/team/")), found
    guarded = "spark.hadoop.hudi.operator.guard.path"
    assert found.get(guarded, table["spec"]["path"]) == table["spec"]["path"]
    for kind, section in (("driver", "driver"), ("executor", "executors")):
        key = f"spark.{kind}.extraJavaOptions"
        if key in found:
            wanted = _of(writer, section).get("javaOptions") or []
            assert shlex.split(found[key])[: len(wanted)] == wanted, found[key]
            assert shlex.split(found[key])[len(wanted) :] == shlex.split(plain[key])
            assert not [option for option in wanted if _CODE.search(option)], wanted
    if _of(table["spec"], "fencing").get("mode") == "Credentials":
        assert found["spark.hadoop.fs.s3a.endpoint"].rstrip("/") == ENDPOINT


_COMBINES = "hoodie.combine.before.insert"


def _hudi(table: JsonDict, writer: JsonDict, found: dict[str, str], plain: dict[str, str]) -> None:
    given = table["spec"].get("hudiOptions") or {}
    if _COMBINES not in given:
        code = writer.get("application") or (writer.get("source") or {}).get("python")
        once = bool(code) and writer.get("duplicates") != "Allow" and bool(table["spec"].get("recordKeyFields"))
        found = dict(found)
        assert found.pop(_COMBINES, None) == ("true" if once else None)
    plain = {key: value for key, value in plain.items() if key != _COMBINES}
    for key, value in found.items():
        if key in given:
            assert value.strip(BLANKS) == given[key].strip(BLANKS), (key, value)
        elif (fine := _allowed(_HUDI_VARIES, key, value)) is not None:
            assert fine, (key, value)
        else:
            assert value == plain.get(key), (key, value)
    assert plain.keys() - found.keys() == set(), "an option of the operator is gone"
    assert found["hoodie.datasource.write.recordkey.field"].split(",") == table["spec"]["recordKeyFields"]
    partitions = found["hoodie.datasource.write.partitionpath.field"]
    assert (partitions.split(",") if partitions else []) == (table["spec"].get("partitionFields") or [])
    assert found["hoodie.table.name"] == (table["spec"].get("tableName") or table["metadata"]["name"])
