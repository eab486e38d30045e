"""Builders of manifests: what the protocol and docs/design/contracts.md ask of every
pod and file.
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hudi_contract import naming
from hudi_operator.api import options, pod_settings
from hudi_operator.api.pod_settings import PodSettings
from hudi_operator.api.spec import SpecError, TableSpec, WriterSpec
from hudi_operator.manifests import configmaps, hudi_conf, namespace, pods, quantity, spark_conf
from hudi_operator.model.config import AgentConfig, CredentialsBrokerConfig, NetworkPolicyConfig, OperatorConfig
from hudi_runtime.job.job import Job
from tests.support.hostile.readers import properties

JsonDict = dict[str, Any]
CONFIG = OperatorConfig()


def table(**spec: Any) -> TableSpec:
    body = {
        "path": "s3://lake//flights/",
        "type": "MergeOnRead",
        "recordKeyFields": ["a", "b"],
        "partitionFields": ["month"],
        "orderingFields": ["ts"],
        "storage": {
            "secretRefs": [{"name": "creds", "as": "S3"}, {"name": "more", "as": "Env", "prefix": "MORE_"}],
            "options": {"fs.s3a.endpoint": "http://s3:9000"},
        },
        **spec,
    }
    return TableSpec.from_object(
        {"kind": "HudiTable", "metadata": {"namespace": "ns", "name": "flights", "uid": "t-uid"}, "spec": body}
    )


def writer(**spec: Any) -> WriterSpec:
    body = {"tableRef": {"name": "flights"}, "source": {"files": {"format": "csv", "paths": ["s3a://in/"]}}, **spec}
    return WriterSpec.from_object(
        {"kind": "HudiWriter", "metadata": {"namespace": "ns", "name": "load", "uid": "0123456789"}, "spec": body}
    )


EXECUTORS = {"executors": {"instances": 2, "cores": 2, "memory": "2Gi"}}


def executor_pod(**spec: Any) -> JsonDict:
    return dict(yaml.safe_load(pods.executor_template(table(), writer(**EXECUTORS, **spec), 3, CONFIG)))


def every_pod() -> list[JsonDict]:
    return [
        pods.driver_pod(table(), writer(), 3, CONFIG),
        executor_pod(),
        pods.agent_pod(table(), "hudi-agent-0123456789", 2, CONFIG),
    ]


@pytest.mark.parametrize("pod", every_pod(), ids=["driver", "executor", "agent"])
def test_every_pod_is_evidence_never_restarts_and_has_its_own_network(pod: JsonDict) -> None:
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    assert pod["metadata"]["finalizers"] == [naming.EVIDENCE_FINALIZER]
    assert spec["restartPolicy"] == "Never"
    assert "hostNetwork" not in spec
    assert "hostPID" not in spec
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"name": "tmp", "emptyDir": {"sizeLimit": "64Gi"}} in spec["volumes"]
    assert all(mount["readOnly"] for mount in container["volumeMounts"] if mount["name"] != "tmp")
    assert spec["automountServiceAccountToken"] is False
    env = {item["name"]: item for item in container["env"]}
    assert {
        "POD_NAME",
        "POD_NAMESPACE",
        "POD_UID",
        "NODE_NAME",
        "POD_IP",
        "HUDI_CONF_DIR",
        "SPARK_CONF_DIR",
    } <= env.keys()
    assert not [name for name in env if name.startswith("AWS_")]
    assert container["envFrom"] == [{"prefix": "MORE_", "secretRef": {"name": "more"}}]


@pytest.mark.parametrize("kind", ["driver", "executor", "agent"])
def test_credentials_that_change_are_files_that_follow(kind: str) -> None:
    """F151: an environment keeps the keys of its process's start, and so does a `subPath`."""
    refs = [
        {"name": "creds", "as": "S3"},
        {"name": "google", "as": "Files"},
        {"name": "more", "as": "Env", "prefix": "MORE_"},
    ]
    mine, load = table(storage={"secretRefs": refs}), writer(**EXECUTORS)
    pod = {
        "driver": lambda: pods.driver_pod(mine, load, 3, CONFIG),
        "executor": lambda: yaml.safe_load(pods.executor_template(mine, load, 3, CONFIG)),
        "agent": lambda: pods.agent_pod(mine, "hudi-agent-0123456789", 2, CONFIG),
    }[kind]()
    container = pod["spec"]["containers"][0]
    volumes = {volume["name"]: volume.get("secret") for volume in pod["spec"]["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    keys = [{"key": key, "path": key} for key in ("accessKeyId", "secretAccessKey", "sessionToken")]
    for path, expected in (
        ("/etc/hudi/s3", {"secretName": "creds", "items": keys, "optional": True, "defaultMode": 0o440}),
        ("/etc/hudi/secrets/google", {"secretName": "google", "optional": True, "defaultMode": 0o440}),
    ):
        assert volumes[mounts[path]["name"]] == expected
        assert "subPath" not in mounts[path]
    assert container["envFrom"] == [{"prefix": "MORE_", "secretRef": {"name": "more"}}]
    env = {item["name"]: item.get("value") for item in container["env"]}
    assert env["HUDI_OPERATOR_S3_CREDENTIALS"] == "/etc/hudi/s3"


def test_a_driver_carries_its_attempt_and_belongs_to_its_writer() -> None:
    pod = pods.driver_pod(table(), writer(priority=7), 3, CONFIG)
    assert pod["metadata"]["name"] == "load-01234567-3"
    assert pod["metadata"]["labels"] == {
        "app.kubernetes.io/name": "hudi",
        "app.kubernetes.io/managed-by": "hudi-operator",
        "app.kubernetes.io/component": "driver",
        "hudioperator.io/table": "flights",
        "hudioperator.io/writer": "load",
        "hudioperator.io/attempt": "3",
        "hudioperator.io/role": "driver",
        "hudioperator.io/driver": "load-01234567-3",
    }
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("HudiWriter", "0123456789", True)
    env = {item["name"]: item.get("value") for item in pod["spec"]["containers"][0]["env"]}
    assert env["HUDI_OPERATOR_TABLE_ID"] == naming.table_id("s3a://lake/flights")
    assert env["HUDI_OPERATOR_TABLE_PATH"] == "s3a://lake/flights"
    assert env["HUDI_OPERATOR_ATTEMPT"] == "ns.load-01234567-3"
    assert env["HUDI_OPERATOR_PRIORITY"] == "7"
    assert env["HUDI_OPERATOR_ETCD_TOKEN"] == "/etc/hudi/etcd/token"
    assert not [name for name in env if name.endswith(("_CERT", "_KEY")) and "ETCD" in name]
    (volume,) = [v for v in pod["spec"]["volumes"] if v["name"] == "etcd"]
    token, authority = volume["projected"]["sources"]
    assert token["serviceAccountToken"] == {
        "audience": "hudi-operator-etcd",
        "expirationSeconds": 3600,
        "path": "token",
    }
    assert authority["configMap"]["name"] == "hudi-operator-etcd"
    names = list(env)
    assert names.index("POD_IP") < names.index("SPARK_LOCAL_IP"), "Kubernetes expands only what stands before"


def test_no_setting_is_accepted_and_then_overwritten() -> None:
    """Whatever the operator writes after the user's sparkConf is refused in sparkConf."""
    spec = writer(**EXECUTORS)
    plain = spark_conf.spark_defaults(table(), spec, 1, CONFIG)
    mine = replace(spec, spark_conf=dict.fromkeys(plain, "mine"))
    overwritten = [
        name for name, value in spark_conf.spark_defaults(table(), mine, 1, CONFIG).items() if value != "mine"
    ]
    assert {"spark.sql.session.timeZone", "spark.executor.memoryOverhead", "spark.serializer"} <= set(overwritten)
    assert [name for name in overwritten if not options.spark_problem({name: "mine"})] == []


def test_the_kubelet_ends_an_attempt_at_its_deadline() -> None:
    assert "activeDeadlineSeconds" not in pods.driver_pod(table(), writer(), 1, CONFIG)["spec"]
    assert pods.driver_pod(table(), writer(activeDeadlineSeconds=90), 1, CONFIG)["spec"]["activeDeadlineSeconds"] == 90


def test_processes_know_where_their_secrets_are_mounted() -> None:
    """F192: what stands there is hidden in messages."""
    files = [{"name": "lake", "as": "Files"}, {"name": "keys", "as": "S3"}]
    mine = table(storage={"secretRefs": files}, commitCallback={"url": "https://x/", "secretRef": {"name": "hook"}})
    kafka = {
        "bootstrapServers": ["kafka:9093"],
        "topics": ["t"],
        "value": {"format": "Binary"},
        "security": {"protocol": "SSL", "secretRef": {"name": "tls"}},
    }
    driver = pods.driver_pod(mine, writer(source={"kafka": kafka}), 1, CONFIG)
    agent = pods.agent_pod(mine, "hudi-agent-0", 1, CONFIG)
    for pod, folders in (
        (driver, "/etc/hudi/kafka,/etc/hudi/secrets/lake"),
        (agent, "/etc/hudi/callback,/etc/hudi/secrets/lake"),
    ):
        (container,) = pod["spec"]["containers"]
        assert {"name": "HUDI_OPERATOR_SECRET_FOLDERS", "value": folders} in container["env"]
    (container,) = pods.driver_pod(table(), writer(), 1, CONFIG)["spec"]["containers"]
    assert "HUDI_OPERATOR_SECRET_FOLDERS" not in [each["name"] for each in container["env"]]


def test_only_drivers_with_executors_get_a_token() -> None:
    assert pods.driver_pod(table(), writer(**EXECUTORS), 1, CONFIG)["spec"]["automountServiceAccountToken"] is True


def test_executors_do_not_get_the_identity_for_etcd() -> None:
    pod = executor_pod()
    assert "etcd" not in [volume["name"] for volume in pod["spec"]["volumes"]]
    assert not [item for item in pod["spec"]["containers"][0]["env"] if "ETCD" in item["name"]]
    assert pod["metadata"]["labels"]["hudioperator.io/driver"] == "load-01234567-3"


def test_an_agent_has_no_owner_and_names_no_table() -> None:
    pod = pods.agent_pod(table(), "hudi-agent-0123456789", 2, CONFIG)
    assert "ownerReferences" not in pod["metadata"]
    assert naming.LABEL_TABLE not in pod["metadata"]["labels"]
    assert pod["metadata"]["name"] == "hudi-agent-0123456789-2"


@pytest.mark.parametrize(
    ("resources", "memory"),
    [({}, "1536Mi"), ({"requests": {"memory": "3Gi"}}, "3Gi"), ({"limits": {"memory": "4Gi"}}, "4Gi")],
)
def test_memory_follows_the_heap_unless_the_user_says_more(resources: JsonDict, memory: str) -> None:
    spec = writer(driver={"memory": "1Gi", "resources": resources})
    found = pods.driver_pod(table(), spec, 1, CONFIG)["spec"]["containers"][0]["resources"]
    assert found == {"requests": {"cpu": "100m", "memory": memory}, "limits": {"memory": memory}}


def test_a_users_code_is_mounted_read_only() -> None:
    spec = writer(source={"python": {"configMapKeyRef": {"name": "code", "key": "x.py"}, "function": "f"}})
    pod = pods.driver_pod(table(), spec, 1, CONFIG)
    assert {"name": "code", "mountPath": "/etc/hudi/code", "readOnly": True} in pod["spec"]["containers"][0][
        "volumeMounts"
    ]
    assert configmaps.job(table(), spec, 1, run=2).to_json()["source"] == {
        "python": {"file": "/etc/hudi/code/x.py", "function": "f", "arguments": {}}
    }


def test_an_attempts_files_are_those_that_its_pods_mount() -> None:
    config_map = configmaps.attempt_config(table(), writer(**EXECUTORS), 3, CONFIG, run=2)
    assert config_map["metadata"]["name"] == "load-01234567-3"
    for pod in (pods.driver_pod(table(), writer(**EXECUTORS), 3, CONFIG), executor_pod()):
        (volume,) = [v for v in pod["spec"]["volumes"] if "configMap" in v]
        assert {item["key"] for item in volume["configMap"]["items"]} <= config_map["data"].keys()
    agent = configmaps.agent_config(table(), "hudi-agent-0123456789", 1, CONFIG)
    (volume,) = [
        v for v in pods.agent_pod(table(), "hudi-agent-0123456789", 1, CONFIG)["spec"]["volumes"] if "configMap" in v
    ]
    assert {item["key"] for item in volume["configMap"]["items"]} <= agent["data"].keys()
    assert json.loads(agent["data"]["job.json"]) == {"agent": "hudi-agent-0123456789"}
    assert "table_id" not in agent["data"]["hudi-defaults.conf"], "an agent serves several tables"


@pytest.mark.parametrize(
    ("overwrite", "operation", "truncates"),
    [
        ({}, "insert_overwrite", False),
        ({"scope": "Table"}, "insert_overwrite_table", False),
        ({"scope": "Table", "ifEmpty": "Truncate"}, "insert_overwrite_table", True),
    ],
)
def test_an_overwrite_is_hudis_operation_for_its_scope(
    overwrite: dict[str, str], operation: str, truncates: bool
) -> None:
    job = configmaps.job(table(), writer(operation="InsertOverwrite", overwrite=overwrite), 1, run=1).to_json()
    assert (job["operation"], job["mayTruncate"]) == (operation, truncates)


@pytest.mark.parametrize(
    ("code", "duplicates", "once"),
    [
        ("application", "Fail", True),
        ("application", "Allow", False),
        ("python", "Drop", True),
        ("", "Fail", False),
    ],
)
def test_code_of_a_user_writes_no_key_twice(code: str, duplicates: str, once: bool) -> None:
    """F478: an overwrite of a program combines rows with one key."""
    sources: dict[str, dict[str, Any]] = {
        "application": {"source": None, "application": {"mainFile": "local:///a.py"}},
        "python": {"source": {"python": {"configMapKeyRef": {"name": "code", "key": "a.py"}, "function": "f"}}},
        "": {},
    }
    found = writer(**sources[code], duplicates=duplicates)
    config = configmaps.attempt_config(table(), found, 1, CONFIG, run=1)["data"]
    lines = config["hudi-defaults.conf"].splitlines()
    assert ("hoodie.combine.before.insert=true" in lines) is once
    assert json.loads(config["job.json"])["duplicates"] == duplicates


def test_the_removal_of_doubled_keys_has_no_source() -> None:
    spec = dataclasses.replace(writer(operation="RemoveDuplicates"), files=None)
    job = configmaps.job(table(), spec, 1, run=1).to_json()
    assert (job["operation"], job["source"], job["application"]) == ("remove_duplicates", None, None)


def test_a_deletion_of_partitions_has_no_source() -> None:
    spec = dataclasses.replace(writer(operation="DeletePartition", partitions=["day=2024-*"]), files=None)
    job = configmaps.job(table(partitionFields=["day"]), spec, 1, run=1).to_json()
    assert (job["operation"], job["source"], job["partitions"]) == ("delete_partition", None, ["2024-*"])


@pytest.mark.parametrize(
    ("mode", "request_seconds", "drain", "waits"),
    [
        ("PodTermination", 3600, 10, 900),
        ("PodTermination", 200, 600, 900),
        ("Credentials", 200, 10, 900),
        ("Credentials", 3600, 10, 3900),
    ],
)
def test_a_successor_waits_longer_than_the_longest_drain(
    mode: str, request_seconds: int, drain: int, waits: int
) -> None:
    """F438: and another operator begins it anew."""
    broker = CredentialsBrokerConfig(url="https://broker", request_seconds=request_seconds)
    config = OperatorConfig(credentials_broker=broker)
    of = table(fencing={"mode": mode, "drainSeconds": drain})
    made = configmaps.attempt_config(of, writer(), 1, config, run=1)
    assert Job.from_json(json.loads(made["data"]["job.json"])).predecessor_seconds == waits > max(drain, 0)


def test_the_job_is_what_the_contract_says() -> None:
    spec = writer(operation="BulkInsert", transform={"sql": "select 1"}, hudiOptions={"hoodie.x": "true"}, **EXECUTORS)
    job = configmaps.job(table(), spec, 3, run=2).to_json()
    assert job["attempt"] == {"id": "ns.load-01234567-3", "number": 3}
    assert job["duplicates"] == "Fail"
    assert (job["operation"], job["transform"], job["hudiOptions"], job["executors"]) == (
        "bulk_insert",
        {"sql": "select 1"},
        {"hoodie.x": "true"},
        2,
    )
    assert job["table"]["type"] == "MERGE_ON_READ"
    assert job["table"]["path"] == "s3a://lake/flights"
    application = writer(source=None, application={"mainFile": "local:///opt/main.py", "arguments": ["x"]})
    assert configmaps.job(table(), application, 1, run=2).to_json()["application"] == {
        "mainFile": "/opt/main.py",
        "arguments": ["x"],
    }
    assert configmaps.job(table(), application, 1, run=2).to_json()["source"] is None
    assert "deps" not in configmaps.job(table(), application, 1, run=2).to_json()


def test_a_main_class_and_what_it_brings_along() -> None:
    program = {"mainClass": "a.B", "file": "s3a://lake/b.jar", "arguments": ["x"]}
    deps = {"jars": ["local:///c.jar"], "packages": ["a:b:1"], "excludePackages": ["c:d"]}
    found = writer(source=None, application=program, deps=deps)
    config = dataclasses.replace(CONFIG, maven_mirror="https://nexus.example.com/")
    job = json.loads(configmaps.attempt_config(table(), found, 1, config, run=1)["data"]["job.json"])
    assert job["application"] == {"mainFile": "", "arguments": ["x"], "mainClass": "a.B", "jar": "s3a://lake/b.jar"}
    assert job["deps"] == {
        "jars": ["local:///c.jar"],
        "files": [],
        "pyFiles": [],
        "packages": ["a:b:1"],
        "excludePackages": ["c:d"],
        "mirror": "https://nexus.example.com/",
    }


def test_a_bulk_insert_into_buckets_is_an_insert() -> None:
    spec = writer(operation="BulkInsert")
    buckets = table(index={"type": "Bucket", "buckets": 4})
    assert configmaps.job(buckets, spec, 1, run=1).to_json()["operation"] == "insert"
    assert configmaps.job(table(), spec, 1, run=1).to_json()["operation"] == "bulk_insert"
    assert configmaps.job(buckets, writer(operation="Upsert"), 1, run=1).to_json()["operation"] == "upsert"


# ---- Hudi


OWNED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "io.hudioperator.EtcdLockProvider",
    "hoodie.write.lock.conflict.resolution.strategy": "io.hudioperator.FencedConflictResolutionStrategy",
    "hoodie.table.services.enabled": "false",
    "hoodie.client.heartbeat.interval_in_ms": "60000",
    "hoodie.client.heartbeat.tolerable.misses": "10",
    "hoodie.rollback.avoid.duplicate.plan": "true",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.metadata.auto.delete.partitions": "false",
    "hoodie.auto.adjust.lock.configs": "false",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.metadata.enable": "true",
}


def test_a_tables_own_options_cannot_replace_what_the_operator_owns() -> None:
    hostile = dict.fromkeys((*OWNED, "hoodie.write.lock.etcd.table_id", "hoodie.table.name"), "HOSTILE")
    options = hudi_conf.hudi_defaults(table(hudiOptions={**hostile, "hoodie.parquet.max.file.size": "1"}))
    assert OWNED.items() <= options.items()
    assert "HOSTILE" not in options.values()
    assert options["hoodie.write.lock.etcd.table_id"] == table().table_id
    assert options["hoodie.parquet.max.file.size"] == "1"


@pytest.mark.parametrize(
    ("keys", "partitions", "generator"),
    [
        (["a"], [], "Nonpartitioned"),
        (["a", "b"], [], "Nonpartitioned"),
        (["a"], ["p"], "Simple"),
        (["a", "b"], ["p"], "Complex"),
        (["a"], ["p", "q"], "Complex"),
    ],
)
def test_the_key_generator_fits_the_fields(keys: list[str], partitions: list[str], generator: str) -> None:
    options = hudi_conf.hudi_defaults(table(recordKeyFields=keys, partitionFields=partitions))
    assert options["hoodie.datasource.write.keygenerator.class"] == f"org.apache.hudi.keygen.{generator}KeyGenerator"
    assert options["hoodie.datasource.write.recordkey.field"] == ",".join(keys)
    assert options["hoodie.datasource.write.partitionpath.field"] == ",".join(partitions)


def test_non_blocking_comes_with_the_index_that_it_needs() -> None:
    options = hudi_conf.hudi_defaults(
        table(concurrency={"mode": "NonBlocking"}, index={"type": "Bucket", "buckets": 8})
    )
    assert options["hoodie.write.concurrency.mode"] == "NON_BLOCKING_CONCURRENCY_CONTROL"
    assert (options["hoodie.index.type"], options["hoodie.index.bucket.engine"]) == ("BUCKET", "SIMPLE")
    assert options["hoodie.bucket.index.num.buckets"] == "8"
    assert "hoodie.index.type" not in hudi_conf.hudi_defaults(table()), "Hudi's default"


@pytest.mark.parametrize(("schema", "word"), [({}, "Null"), ({"missingColumns": "Refuse"}, "Refuse")])
def test_what_a_missing_column_means_reaches_the_runtime_alone(schema: dict[str, str], word: str) -> None:
    """With Hudi's option for nulls an UPDATE in SQL fails."""
    spec = table(schema=schema)
    options = hudi_conf.hudi_defaults(spec)
    assert options["hoodie.write.set.null.for.missing.columns"] == "false"
    assert options["hoodie.datasource.write.schema.allow.auto.evolution.column.drop"] == "false"
    assert options["hoodie.write.concurrency.schema.conflict.resolution.enable"] == "true"
    assert configmaps.job(spec, writer(), 1, run=1).to_json()["table"]["missingColumns"] == word


def test_a_single_writer_takes_the_lock_too() -> None:
    options = hudi_conf.hudi_defaults(table(concurrency={"mode": "SingleWriter"}))
    assert options["hoodie.write.concurrency.mode"] == "OPTIMISTIC_CONCURRENCY_CONTROL"


ONE_LINE = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n\r"), max_size=40)


@given(st.dictionaries(st.from_regex(r"\Ahoodie[.][a-z.]{1,20}\Z"), ONE_LINE))
def test_the_properties_file_has_one_line_per_option(options: dict[str, str]) -> None:
    text = hudi_conf.properties(options)
    assert len(text.split("\n")) == len(options) + 1
    assert [line.partition("=")[0] for line in text.split("\n")[:-1]] == sorted(options)


@pytest.mark.parametrize(
    "options", [{"hoodie.a": "x\nhoodie.b=y"}, {"hoodie.a": "x\ry"}, {"hoodie.a=b": "x"}, {"include": "file"}]
)
def test_what_would_be_another_option_is_not_written(options: dict[str, str]) -> None:
    """F132: Hudi's files know no escapes, and `include=` reads another file."""
    with pytest.raises(ValueError, match="not one line"):
        hudi_conf.properties(options)


# ---- Spark


def test_a_user_cannot_replace_the_storage_wrapper_or_the_plugin() -> None:
    hostile = {
        "spark.plugins": "x",
        "spark.hadoop.fs.s3a.impl": "x",
        "spark.hadoop.fs.AbstractFileSystem.s3a.impl": "x",
        "spark.speculation": "true",
        "spark.kryo.registrator": "x",
        "spark.sql.shuffle.partitions": "9",
    }
    settings = spark_conf.spark_defaults(table(), writer(sparkConf=hostile), 1, CONFIG)
    assert settings["spark.plugins"] == "io.hudioperator.HudiOperatorPlugin"
    for scheme in CONFIG.allowed_schemes:
        assert settings[f"spark.hadoop.fs.{scheme}.impl"] == "io.hudioperator.GuardedFileSystem"
        guarded = settings[f"spark.hadoop.fs.AbstractFileSystem.{scheme}.impl"]
        assert guarded == "io.hudioperator.GuardedAbstractFileSystem"
        assert settings[f"spark.hadoop.hudi.operator.guard.{scheme}.delegate"]
    assert settings["spark.speculation"] == "false"
    assert settings["spark.task.reaper.enabled"] == "true"
    assert settings["spark.sql.shuffle.partitions"] == "9"


def test_storage_options_reach_hadoop_and_keys_come_from_files() -> None:
    settings = spark_conf.spark_defaults(table(), writer(), 1, CONFIG)
    assert settings["spark.hadoop.fs.s3a.endpoint"] == "http://s3:9000"
    assert settings["spark.hadoop.fs.s3a.aws.credentials.provider"] == "io.hudioperator.S3Credentials"
    assert settings["spark.hadoop.fs.s3a.directory.marker.retention"] == "keep"
    assert settings["spark.master"] == "local[1]"
    own = spark_conf.spark_defaults(table(storage={"serviceAccountName": "irsa"}), writer(), 1, CONFIG)
    assert "spark.hadoop.fs.s3a.aws.credentials.provider" not in own, "the pod's own identity"


def test_executors_run_under_a_client_mode_driver() -> None:
    settings = spark_conf.spark_defaults(table(), writer(**EXECUTORS), 3, CONFIG)
    assert settings["spark.master"] == "k8s://https://kubernetes.default.svc"
    assert settings["spark.executor.instances"] == "2"
    assert (
        settings["spark.kubernetes.driver.pod.name"]
        == settings["spark.kubernetes.executor.podNamePrefix"]
        == "load-01234567-3"
    )
    assert settings["spark.kubernetes.executor.podTemplateFile"] == "/etc/hudi/spark/executor-template.yaml"
    assert settings["spark.kubernetes.authenticate.executor.serviceAccountName"] == "hudi-agent"
    assert settings["spark.kubernetes.executor.disableConfigMap"] == "true"
    assert settings["spark.executor.memoryOverhead"] == "819m"
    limited = {"executors": {**EXECUTORS["executors"], "resources": {"limits": {"memory": "3Gi", "cpu": "2"}}}}
    settings = spark_conf.spark_defaults(table(), writer(**limited), 3, CONFIG)
    assert settings["spark.executor.memoryOverhead"] == "1024m"
    assert settings["spark.kubernetes.executor.limit.cores"] == "2"


def test_every_driver_authenticates_and_encrypts() -> None:
    """F150: also without executors, since a driver listens on its pod's address then, too."""
    wanted = {
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.cipher": "AES/GCM/NoPadding",
        "spark.network.crypto.authEngineVersion": "2",
        "spark.network.crypto.saslFallback": "false",
        "spark.io.encryption.enabled": "true",
    }
    own = table(agent={"executors": {"instances": 1}})
    for settings in (
        spark_conf.spark_defaults(table(), writer(), 1, CONFIG),
        spark_conf.spark_defaults(table(), writer(**EXECUTORS), 1, CONFIG),
        spark_conf.agent_defaults(table(), CONFIG),
        spark_conf.agent_defaults(own, CONFIG, agent_pod="hudi-agent-0123456789-2"),
    ):
        assert {name: settings.get(name) for name in wanted} == wanted
        distributed = settings["spark.master"].startswith("k8s:")
        assert settings.get("spark.authenticate.secret.file") == ("/etc/hudi/spark-key/key" if distributed else None)
        assert "spark.authenticate.secret" not in settings


def test_a_driver_and_its_executors_mount_one_key_as_a_file() -> None:
    own = table(agent={"executors": {"instances": 1}})
    agent, agent_pod = "hudi-agent-0123456789", "hudi-agent-0123456789-2"
    for name, *sharing in (
        ("load-01234567-3", pods.driver_pod(table(), writer(**EXECUTORS), 3, CONFIG), executor_pod()),
        (
            agent_pod,
            pods.agent_pod(own, agent, 2, CONFIG),
            yaml.safe_load(pods.agent_executor_template(own, agent, 2, CONFIG)),
        ),
    ):
        for pod in sharing:
            container = pod["spec"]["containers"][0]
            assert {
                "name": "spark-key",
                "secret": {"secretName": f"{name}-spark-key", "defaultMode": 0o440},
            } in pod["spec"]["volumes"]
            assert {"name": "spark-key", "mountPath": "/etc/hudi/spark-key", "readOnly": True} in container[
                "volumeMounts"
            ]
            assert "spark-key" not in json.dumps([container["env"], container.get("envFrom")])
    for pod in (pods.driver_pod(table(), writer(), 3, CONFIG), pods.agent_pod(table(), agent, 2, CONFIG)):
        assert "spark-key" not in [volume["name"] for volume in pod["spec"]["volumes"]], "nobody shares its key"


def test_executors_may_mount_what_they_do_mount() -> None:
    """Admission compares their Secrets with those that the ConfigMap of their driver names."""
    refs = [{"name": "a", "as": "S3"}, {"name": "b", "as": "Files"}, {"name": "c", "as": "Env", "prefix": "X_"}]
    own, agent = table(storage={"secretRefs": refs}, agent={"executors": {"instances": 1}}), "hudi-agent-0123456789"
    load = writer(**EXECUTORS)
    for template, config in (
        (pods.executor_template(own, load, 3, CONFIG), configmaps.attempt_config(own, load, 3, CONFIG, run=1)),
        (pods.agent_executor_template(own, agent, 2, CONFIG), configmaps.agent_config(own, agent, 2, CONFIG)),
    ):
        spec = yaml.safe_load(template)["spec"]
        mounted = [volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume]
        mounted += [item["secretRef"]["name"] for item in spec["containers"][0]["envFrom"]]
        assert config["data"]["executor-secrets"].split(",") == sorted(mounted)
        assert f"{config['metadata']['name']}-spark-key" in mounted
        labels = yaml.safe_load(template)["metadata"]["labels"]
        ours = [f"{key}={value}" for key, value in labels.items() if key.startswith("hudioperator.io/")]
        assert config["data"]["executor-labels"].split(",") == sorted(ours)


def test_a_writers_own_image_account_and_pull_secrets_are_those_of_driver_and_executors() -> None:
    shared = table(image="lake:1", imagePullSecrets=[{"name": "a"}], storage={"serviceAccountName": "ours"})
    for load, image, account, secrets in (
        (writer(**EXECUTORS), "lake:1", "ours", ["a"]),
        (
            writer(
                **EXECUTORS,
                image="own:1",
                serviceAccountName="mine",
                imagePullSecrets=[{"name": "b"}, {"name": "a"}],
            ),
            "own:1",
            "mine",
            ["a", "b"],
        ),
    ):
        seen = shared.as_run_by(load)
        for pod in (
            pods.driver_pod(seen, load, 3, CONFIG),
            yaml.safe_load(pods.executor_template(seen, load, 3, CONFIG)),
        ):
            assert pod["spec"]["containers"][0]["image"] == image
            assert pod["spec"]["imagePullSecrets"] == [{"name": name} for name in secrets]
        assert pods.driver_pod(seen, load, 3, CONFIG)["spec"]["serviceAccountName"] == account
        data = configmaps.attempt_config(seen, load, 3, CONFIG, run=1)["data"]
        assert (data["executor-image"], data["executor-account"]) == (image, account)
        assert f"spark.kubernetes.container.image={image}" in data["spark-defaults.conf"]
        assert f"executor.serviceAccountName={account}" in data["spark-defaults.conf"]
    agent = pods.agent_pod(shared, "hudi-agent-0", 1, CONFIG)
    assert agent["spec"]["imagePullSecrets"] == [{"name": "a"}]
    assert "imagePullSecrets" not in pods.agent_pod(table(), "hudi-agent-0", 1, CONFIG)["spec"]


def test_what_executors_are_compared_with_is_held() -> None:
    """F200: no cascade takes it from a pod that may start executors."""
    own, agent = table(agent={"executors": {"instances": 1}}), "hudi-agent-0123456789"
    for config, held in (
        (configmaps.attempt_config(own, writer(**EXECUTORS), 1, CONFIG, run=1), True),
        (configmaps.attempt_config(own, writer(), 1, CONFIG, run=1), False),
        (configmaps.agent_config(own, agent, 1, CONFIG), True),
        (configmaps.agent_config(table(), agent, 1, CONFIG), False),
    ):
        assert config["metadata"].get("finalizers", []) == ([naming.EVIDENCE_FINALIZER] if held else [])


def test_a_bloom_index_does_not_go_by_ranges() -> None:
    """F102: files name their least and greatest key by two orders."""
    name = "hoodie.bloom.index.prune.by.ranges"
    assert hudi_conf.hudi_defaults(table(index={"type": "Bloom"}))[name] == "false"
    assert name not in hudi_conf.hudi_defaults(table())


@pytest.mark.parametrize("spec", [{}, EXECUTORS], ids=["local", "executors"])
def test_what_a_writer_may_set_is_obeyed(spec: JsonDict) -> None:
    """F95: a setting that is accepted and then overwritten is one that the user believes in."""
    wanted = {
        name: "777"
        for name in spark_conf.spark_defaults(table(), writer(**spec), 1, CONFIG)
        if not options.spark_problem({name: "777"})
    }
    settings = spark_conf.spark_defaults(table(), writer(**spec, sparkConf=wanted), 1, CONFIG)
    assert wanted
    assert {name: settings[name] for name in wanted} == wanted


def test_java_options_reach_the_jvm_and_ours_come_last() -> None:
    wanted = ["-XX:+UseSerialGC", "-XX:-ExitOnOutOfMemoryError"]
    settings = spark_conf.spark_defaults(
        table(),
        writer(driver={"javaOptions": wanted}, executors={"instances": 1, "javaOptions": ["-Xss2m"]}),
        1,
        CONFIG,
    )
    options = settings["spark.driver.extraJavaOptions"].split()
    assert options[:2] == wanted
    assert options.index("-XX:+ExitOnOutOfMemoryError") > options.index("-XX:-ExitOnOutOfMemoryError")
    assert "-Djol.skipHotspotSAAttach=true" in options
    assert settings["spark.executor.extraJavaOptions"].split()[0] == "-Xss2m"
    agent = spark_conf.agent_defaults(
        table(), dataclasses.replace(CONFIG, agent=AgentConfig(java_options=("-XX:+UseSerialGC",)))
    )
    assert agent["spark.driver.extraJavaOptions"].split()[0] == "-XX:+UseSerialGC"


@pytest.mark.parametrize(
    "option",
    [
        "-Dfs.s3a.impl=x",
        "-javaagent:x.jar",
        "-Xbootclasspath/a:x.jar",
        "-XX:OnError=rm x",
        "-XX:+A -Dx=y",
        "@file",
        "-cp",
    ],
)
def test_java_options_that_are_none_are_refused_by_name(option: str) -> None:
    with pytest.raises(SpecError, match=r"spec\.driver\.javaOptions: .* is not a JVM option"):
        writer(driver={"javaOptions": [option]})


def test_an_agent_has_no_plugin() -> None:
    assert "spark.plugins" not in spark_conf.agent_defaults(table(), CONFIG)


@pytest.mark.parametrize(("size", "sparks"), [("512Mi", "512m"), ("2Gi", "2g")])
def test_sizes_of_spark(size: str, sparks: str) -> None:
    assert quantity.spark_size(size) == sparks


@pytest.mark.parametrize(
    ("size", "mib"), [("768Mi", 768), ("1.5Gi", 1536), ("1G", 953), ("1073741824", 1024), ("2e9", 1907), ("1Pi", 2**30)]
)
def test_quantities_of_kubernetes(size: str, mib: int) -> None:
    assert quantity.kubernetes_mib(size) == mib


@pytest.mark.parametrize("size", ["", "Gi", "1g", "-1Gi", "NaN", "Infinity"])
def test_what_is_no_quantity_of_memory_is_refused(size: str) -> None:
    with pytest.raises(ValueError, match="memory quantity"):
        quantity.kubernetes_mib(size)


@pytest.mark.parametrize("size", ["", "1", "Gi", "-1Gi", "512m", "1.5Gi"])
def test_a_size_that_spark_would_refuse_is_refused(size: str) -> None:
    with pytest.raises(ValueError, match="memory size"):
        quantity.spark_size(size)


# ---- namespace


def test_a_namespace_gets_identity_accounts_and_the_drivers_rights() -> None:
    objects = namespace.namespace_objects("ns", CONFIG, "authority", ["irsa", ""])
    names = [(o["kind"], o["metadata"]["name"]) for o in objects]
    assert names == [
        ("ConfigMap", "hudi-operator-etcd"), ("ServiceAccount", "hudi-driver"), ("ServiceAccount", "hudi-agent"),
        ("RoleBinding", "hudi-driver"), ("RoleBinding", "hudi-driver-irsa"),
    ]  # fmt: skip
    assert objects[0]["data"] == {"ca.crt": "authority"}
    assert all(o["automountServiceAccountToken"] is False for o in objects if o["kind"] == "ServiceAccount")
    assert objects[3]["roleRef"]["name"] == "hudi-operator-driver"
    assert objects[4]["subjects"] == [{"kind": "ServiceAccount", "name": "irsa", "namespace": "ns"}]
    assert "ConfigMap" not in [o["kind"] for o in namespace.namespace_objects("ns", CONFIG, "")]


def _policies(config: NetworkPolicyConfig) -> dict[str, Any]:
    made = namespace.namespace_objects("ns", replace(CONFIG, network_policies=config), "")
    return {o["metadata"]["name"]: o["spec"] for o in made if o["kind"] == "NetworkPolicy"}


def test_pods_of_tables_are_reached_by_their_executors_and_drivers_only() -> None:
    assert not _policies(NetworkPolicyConfig())
    policies = _policies(NetworkPolicyConfig(enabled=True))
    assert list(policies) == ["hudi-driver", "hudi-executor", "hudi-agent"]

    def roles(selector: dict[str, Any]) -> list[str]:
        assert selector["matchLabels"] == {"app.kubernetes.io/managed-by": "hudi-operator"}
        (expression,) = selector["matchExpressions"]
        assert (expression["key"], expression["operator"]) == ("app.kubernetes.io/component", "In")
        return list(expression["values"])

    reached = {}
    for name, spec in policies.items():
        assert spec["policyTypes"] == ["Ingress"]
        assert "egress" not in spec
        assert roles(spec["podSelector"]) == [name.removeprefix("hudi-")]
        # No namespaceSelector: of the same namespace.
        ((peer,),) = [rule["from"] for rule in spec["ingress"]]
        assert list(peer) == ["podSelector"]
        reached[name.removeprefix("hudi-")] = roles(peer["podSelector"])
    assert reached == {
        "driver": ["executor"], "executor": ["driver", "agent", "executor"], "agent": ["executor"],
    }  # fmt: skip


def test_the_labels_that_network_policies_select_are_on_every_pod() -> None:
    driver = pods.driver_pod(table(), writer(executors={"instances": 1}), 1, CONFIG)
    agent = pods.agent_pod(table(), "hudi-agent-1", 1, CONFIG)
    template = yaml.safe_load(pods.executor_template(table(), writer(executors={"instances": 1}), 1, CONFIG))
    for pod, role in ((driver, "driver"), (agent, "agent"), (template, "executor")):
        labels = pod["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "hudi-operator"
        assert labels["app.kubernetes.io/component"] == role
        assert {"name": "tmp", "emptyDir": {"sizeLimit": "64Gi"}} in pod["spec"]["volumes"]


def test_egress_is_limited_when_asked_for() -> None:
    store = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 9000}]}
    for spec in _policies(NetworkPolicyConfig(enabled=True, egress=(store,))).values():
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        among, *others = spec["egress"]
        assert among["to"][0]["podSelector"]["matchExpressions"][0]["values"] == ["driver", "executor", "agent"]
        assert others == [store]


def test_early_detection_is_off_unless_asked_for() -> None:
    early = "hoodie.write.concurrency.early.conflict.detection"
    assert hudi_conf.hudi_defaults(table())[f"{early}.enable"] == "false"
    spec = table(concurrency={"mode": "Optimistic", "earlyConflictDetection": True, "serializeAfterConflicts": 0})
    options = hudi_conf.hudi_defaults(spec)
    assert (options[f"{early}.enable"], options[f"{early}.strategy"]) == (
        "true",
        "io.hudioperator.EarlyConflictDetection",
    )
    assert configmaps.job(spec, writer(), 1, run=1).to_json()["conflict"] == {
        "inProcess": 3,
        "serializeAfter": 0,
        "earlyDetection": True,
    }


def test_declared_partitions_reach_the_runtime_in_one_spelling() -> None:
    spec = table(partitionFields=["land", "day"])
    declared = writer(partitions=["land=de/day=2026-*", "fr/2026-*"])
    assert configmaps.job(spec, declared, 1, run=1).to_json()["partitions"] == ["de/2026-*", "fr/2026-*"]
    assert configmaps.job(spec, writer(), 1, run=1).to_json()["partitions"] == []


def test_what_the_crds_say_about_requests_is_what_pods_get() -> None:
    """F53: the text of every `resources` names what is filled in."""
    texts = []
    for path in sorted((Path(__file__).parents[4] / "crds").glob("*.yaml")):
        texts += re.findall(r"resources:[^\n]*\n\s+description: \|-\n\s+(Requests and limits[^\n]*)", path.read_text())
    assert len(texts) == 3, "drivers, executors, agents; an agent's executors share the agent's text"
    found = pods._resources(PodSettings(memory="1Gi"))
    cpu, memory = found["requests"]["cpu"], found["requests"]["memory"]
    assert (memory, found["limits"]) == (f"{1024 + quantity.overhead_mib(1024)}Mi", {"memory": memory})
    for text in texts:
        assert f"Unset: {cpu} CPU without a limit; the memory request and limit are heap plus overhead." in text
    for said in ({"requests": {"memory": "3Gi"}}, {"limits": {"memory": "3Gi"}}):
        one = pods._resources(PodSettings(memory="1Gi", resources=said))
        assert one["requests"]["memory"] == one["limits"]["memory"] == "3Gi"


@pytest.mark.parametrize("section", ["driver", "executors"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("LD_PRELOAD", "set by the operator"),
        ("java_tool_options", "set by the operator"),
        ("AWS_SESSION_TOKEN", "set by the operator"),
        ("BASH_ENV", "set by the operator"),
        ("bashopts", "set by the operator"),
        ("ENV", "set by the operator"),
        ("SHELLOPTS", "set by the operator"),
        ("PS4", "set by the operator"),
        ("IFS", "set by the operator"),
        ("HOME", "set by the operator"),
        ("GCONV_PATH", "set by the operator"),
        ("GLIBC_TUNABLES", "set by the operator"),
        ("JAVA_TOOL_OPTIONS", "set by the operator"),
        ("JDK_JAVA_OPTIONS", "set by the operator"),
        ("CLASSPATH", "set by the operator"),
        ("OPENSSL_CONF", "set by the operator"),
        ("AWS_CONFIG_FILE", "set by the operator"),
        ("AWS_PROFILE", "set by the operator"),
        ("AWS_SHARED_CREDENTIALS_FILE", "set by the operator"),
        ("TMPDIR", "set by the operator"),
        ("A B", "not the name"),
    ],
)
def test_names_of_variables_are_looked_at_again(section: str, name: str, said: str) -> None:
    """F56: whatever the CRD in the cluster has let pass."""
    with pytest.raises(SpecError, match=rf"spec\.{section}\.env: '{name}' is {said}"):
        writer(**{section: {"env": [{"name": name, "value": "x"}]}})
    with pytest.raises(SpecError, match="more than a name and a plain value"):
        writer(
            **{
                section: {
                    "env": [{"name": "A", "value": "x", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
                }
            }
        )


@pytest.mark.parametrize(
    "option",
    [
        "-XX:VMOptionsFile=/tmp/x",
        "-XX:Flags=/tmp/x",
        "-XX:OnError=/tmp/x",
        "-XX:OnOutOfMemoryError=/tmp/x",
        "-XX:CompileCommandFile=x",
        "-XX:SharedArchiveFile=x",
        "-XX:Flags=1",
        "-XX:VMOptionsFile=1",
        "-XX:OnError=1",
        "-XX:+EnableDynamicAgentLoading",
        "-XX:+StartAttachListener",
        "-XX:+ReadVMOptionsFile",
        "-XX:-UnlockDiagnosticVMOptions",
        "-XX:HeapDumpPath=/dev/termination-log",
        "-XX:HeapDumpPath=/tmp/../dev/termination-log",
    ],
)
def test_jvm_options_that_lead_elsewhere_are_refused(option: str) -> None:
    """F56, F131: files with more options, code, commands."""
    with pytest.raises(SpecError, match="is not a JVM option"):
        writer(driver={"javaOptions": [option]})


def test_the_crds_and_the_code_allow_the_same() -> None:
    for path in sorted((Path(__file__).parents[4] / "crds").glob("*.yaml")):
        text = path.read_text()
        for rule, number in (
            (f"'^{pod_settings.JAVA_OPTION}$'", text.count("is not a JVM option")),
            (f"'^{pod_settings.OWNED_ENV}$'", text.count("upperAscii().matches")),
        ):
            assert text.count(rule) == number > 0, rule
    ordinary = [
        "-XX:+UseG1GC",
        "-XX:-UseGCOverheadLimit",
        "-XX:MaxGCPauseMillis=200",
        "-XX:MaxRAMPercentage=70.5",
        "-XX:ReservedCodeCacheSize=64m",
    ]
    more = ["-XX:HeapDumpPath=/tmp/a.hprof", "-XX:NativeMemoryTracking=summary", "-Xss2m", "-Xlog:gc*=info", "-Xint"]
    assert writer(
        driver={"javaOptions": [*ordinary, *more], "env": [{"name": "MINE", "value": "x"}]}
    ).driver.java_options == (*ordinary, *more)


def test_the_config_map_of_an_attempt_is_immutable() -> None:
    assert configmaps.attempt_config(table(), writer(), 1, CONFIG, run=1)["immutable"] is True


@pytest.mark.parametrize("value", ["$(AWS_SECRET_ACCESS_KEY)", "$$(POD_IP)", "$", "a$b", "${HOME}", "$(id)"])
def test_a_value_of_a_variable_is_what_the_user_wrote(value: str) -> None:
    """F131: the kubelet replaces `$(NAME)`; by its rule `$$` is one `$`, and nothing else is
    replaced in the result.
    """
    env = {"env": [{"name": "A", "value": value}]}
    spec = writer(driver=env, executors={"instances": 1, **env})
    driver = pods.driver_pod(table(), spec, 1, CONFIG)["spec"]["containers"][0]["env"]
    executor = yaml.safe_load(pods.executor_template(table(), spec, 1, CONFIG))["spec"]["containers"][0]["env"]
    for found in (driver, executor):
        (written,) = [each["value"] for each in found if each["name"] == "A"]
        assert not re.search(r"(?<![$])([$]{2})*[$](?![$])", written), "a single $ may begin a reference"
        assert written.replace("$$", "$") == value


@pytest.mark.parametrize("prefix", ["L_", "LD_", "BASH_", "P_", "HUDI_OPERATOR_", "AWS_", "A_WS_", "JAVA_TOOL_", "S_"])
def test_a_prefix_keeps_a_secret_from_setting_the_operators_variables(prefix: str) -> None:
    """F131: whatever the keys of the Secret are."""
    refs = [{"name": "more", "as": "Env", "prefix": prefix}]
    for key in ("D_PRELOAD", "PRELOAD", "ENV", "ETCD_KEY", "OPTIONS", "PROFILE"):
        if re.fullmatch(pod_settings.OWNED_ENV, (prefix + key).upper()):
            with pytest.raises(SpecError, match=r"spec.storage.secretRefs\[0\].prefix: "):
                table(storage={"secretRefs": refs})
            return
    assert table(storage={"secretRefs": refs}).storage.secret_refs[0].prefix == prefix


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ({"as": "Env"}, "as: Env needs prefix"),
        ({"as": "S3", "prefix": "APP_"}, "prefix: only with as: Env"),
        ({"as": "Env", "prefix": "APP"}, "prefix: 'APP' must match"),
        ({"as": "Env", "prefix": "_"}, "prefix: has 1 characters"),
        ({"as": "Env", "prefix": "BASH_FUNC_x%%_"}, "prefix: "),
    ],
)
def test_a_secret_as_variables_needs_a_prefix(ref: JsonDict, said: str) -> None:
    with pytest.raises(SpecError, match=rf"spec.storage.secretRefs\[0\]\.{said}"):
        table(storage={"secretRefs": [{"name": "more", **ref}]})


def test_every_class_of_names_is_closed_to_prefixes() -> None:
    """What begins a class of OWNED_ENV is in the list that prefixes are compared with."""
    for name in ("LD_PRELOAD", "BASH_ENV", "PYTHONPATH", "JAVA_TOOL_OPTIONS", "SSL_CERT_FILE", "AWS_PROFILE",
                 "HADOOP_CONF_DIR", "SHELLOPTS", "GRPC_VERBOSITY", "KUBECONFIG", "POD_IP",
                 "LOG4J_CONFIGURATION_FILE"):  # fmt: skip
        assert re.fullmatch(pod_settings.OWNED_ENV, name), name
        for cut in range(1, len(name)):
            prefix = name[:cut] + "_"
            if name.startswith(prefix):
                assert pod_settings.prefix_problem(prefix), prefix


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("fs.s3a.endpoint:x", "y", "not an option name"),
        ("fs.s3a.endpoint\nx", "y", "not an option name"),
        ("fs.s3a.impl", "x.Y", "is set by the operator"),
        ("fs.AbstractFileSystem.s3a.impl", "x.Y", "is set by the operator"),
        ("fs.s3a.bucket.lake.impl", "x.Y", "is set by the operator"),
        ("fs.defaultFS", "file:///", "is set by the operator"),
        ("fs.s3a.secret.key", "y", "names a credential"),
        ("fs.azure.account.keyprovider.x", "a.ShellDecryptionKeyProvider", "is set by|names a credential"),
        ("fs.azure.shellkeyprovider.script", "/bin/id", "is set by the operator"),
        ("fs.s3a.custom.signers", "x:y.Z", "is set by the operator"),
        ("hadoop.security.credential.provider.path", "x", "must begin with fs."),
        ("fs.s3a.endpoint", "http://evil/${env.AWS_SECRET_ACCESS_KEY}", "the value contains"),
    ],
)
def test_storage_options_are_asked_again_at_launch(name: str, value: str, said: str) -> None:
    """F132: whatever the CRD in the cluster has let pass."""
    with pytest.raises(SpecError, match=rf"spec\.storage\.options\[.*({said})") as refused:
        table(storage={"options": {name: value}})
    assert value not in str(refused.value) or len(value) < 4


@given(st.dictionaries(st.text(min_size=1, max_size=20), st.text(max_size=40), max_size=5))
def test_java_reads_back_what_was_written(settings: dict[str, str]) -> None:
    """F132: whatever is in a name or a value. The reader is compared with Java's own in
    tests/tiers/hudi/test_queries.py.
    """
    assert properties(spark_conf.properties(settings)) == settings
