"""`source.kafka` and `streaming` of a HudiWriter: read, checked again at launch, handed to the
attempt; passwords as files alone.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from hudi_operator.api import kafka, references
from hudi_operator.api.spec import SpecError, TableSpec, WriterSpec
from hudi_operator.manifests import configmaps, pods
from hudi_operator.model.config import OperatorConfig
from hudi_runtime.job.job import Job, KafkaRegistry, KafkaSource
from tests.support import ROOT

TABLE = TableSpec.from_object(
    {
        "metadata": {"namespace": "ns", "name": "t", "uid": "u"},
        "spec": {"path": "s3a://lake/t", "recordKeyFields": ["id"]},
    }
)
PLAIN: dict[str, Any] = {
    "bootstrapServers": ["broker:9092"],
    "topics": ["orders"],
    "value": {"format": "Json", "schema": "id INT"},
}
SECURE = {
    **PLAIN,
    "security": {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "secretRef": {"name": "kafka-reader"}},
}


def writer(source: dict[str, Any], **spec: Any) -> WriterSpec:
    metadata = {"namespace": "ns", "name": "w", "uid": "0123456789"}
    return WriterSpec.from_object(
        {"metadata": metadata, "spec": {"tableRef": {"name": "t"}, "source": {"kafka": source}, **spec}}
    )


def job(source: dict[str, Any], **spec: Any) -> Job:
    """As the runtime reads it."""
    return Job.from_json(json.loads(json.dumps(configmaps.job(TABLE, writer(source, **spec), 1, run=1).to_json())))


def test_the_runtime_reads_what_was_written() -> None:
    everything = {
        **SECURE,
        "startFrom": "2026-01-31T23:59:59Z",
        "maxOffsetsPerCommit": 1000,
        "ifPositionLost": "Earliest",
        "options": {"fetch.max.bytes": "1048576"},
        "onBadRecord": {"action": "SetAside", "maxPerCommit": 7},
        "value": {"format": "Avro", "schema": "{}", "metadataColumns": True},
    }
    source = job(everything, streaming={"intervalSeconds": 5}).source
    assert isinstance(source, KafkaSource)
    assert (source.servers, source.topics, source.pattern, source.start_from) == (
        ("broker:9092",),
        ("orders",),
        "",
        "1769903999000",
    )
    assert (source.max_offsets, source.if_lost, source.format, source.schema, source.metadata) == (
        1000,
        "Earliest",
        "Avro",
        "{}",
        True,
    )
    assert (source.security.protocol, source.security.mechanism, source.security.folder) == (
        "SASL_SSL",
        "SCRAM-SHA-512",
        "/etc/hudi/kafka",
    )
    assert source.options == {"fetch.max.bytes": "1048576"}
    assert (source.bad, source.max_bad) == ("SetAside", 7)
    dropped = job({**PLAIN, "onBadRecord": {"action": "Drop"}}).source
    assert isinstance(dropped, KafkaSource)
    assert (dropped.bad, dropped.max_bad) == ("Drop", 1000)
    plain = job(PLAIN).source
    assert isinstance(plain, KafkaSource)
    assert (plain.start_from, plain.max_offsets, plain.if_lost, plain.security.folder) == ("Earliest", None, "Fail", "")
    assert plain.bad == "Fail"


def test_streaming() -> None:
    assert job(PLAIN).interval is None
    assert job(PLAIN, streaming={}).interval == 10
    assert job(PLAIN, streaming={"intervalSeconds": 5}).interval == 5


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, ""),
        ({"startFrom": "2026-01-31T23:59:59+01:00"}, ""),
        ({"options": {"sasl.jaas.config": "x"}}, "spec.source.kafka.options['sasl.jaas.config']: may not be set"),
        (
            {"options": {"ssl.truststore.location": "/etc/passwd"}},
            "spec.source.kafka.options['ssl.truststore.location']",
        ),
        ({"topics": None, "topicPattern": "a("}, "spec.source.kafka.topicPattern: 'a(' is not a regular expression"),
        ({"startFrom": "2026-02-30T00:00:00Z"}, "spec.source.kafka.startFrom: '2026-02-30T00:00:00Z' is not a time"),
        ({"topicPattern": "a"}, "spec.source.kafka.topics: either topics or topicPattern is set"),
        ({"topics": None}, "spec.source.kafka.topics: either topics or topicPattern is set"),
        ({"value": {"format": "Json"}}, "spec.source.kafka.value.schema: format Json"),
        ({"value": {"format": "String", "schema": "id INT"}}, "spec.source.kafka.value.schema: format String"),
        (
            {"value": {"format": "Binary", "metadataColumns": True}},
            "spec.source.kafka.value.metadataColumns: format Binary",
        ),
        ({"value": {**PLAIN["value"], "registry": {"url": "http://registry.kafka.svc:8081/apis/ccompat/v7"}}}, ""),
        (
            {"value": {"format": "String", "registry": {"url": "https://registry.example.com"}}},
            "spec.source.kafka.value.registry: format String",
        ),
        (
            {"value": {**PLAIN["value"], "registry": {"url": "http://registry.example.com"}}},
            "spec.source.kafka.value.registry.url: http is for Services of the cluster",
        ),
        (
            {"value": {**PLAIN["value"], "registry": {"url": "https://127.0.0.1"}}},
            "spec.source.kafka.value.registry.url: nothing is sent to loopback",
        ),
        ({"security": {"protocol": "SASL_SSL"}}, "spec.source.kafka.security.mechanism: protocol SASL_SSL"),
        (
            {"security": {"protocol": "SSL", "mechanism": "PLAIN"}},
            "spec.source.kafka.security.mechanism: protocol SSL",
        ),
        (
            {"security": {"protocol": "SASL_SSL", "mechanism": "PLAIN"}},
            "spec.source.kafka.security.secretRef: protocol SASL_SSL needs one",
        ),
        (
            {"security": {"protocol": "PLAINTEXT", "secretRef": {"name": "k"}}},
            "spec.source.kafka.security.secretRef: protocol PLAINTEXT uses none",
        ),
    ],
)
def test_problems_name_field_value_and_rule(changed: dict[str, Any], told: str) -> None:
    source = {field: value for field, value in {**PLAIN, **changed}.items() if value is not None}
    found = kafka.problem(writer(source).kafka)
    assert found.startswith(told)
    assert bool(found) == bool(told)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(SpecError, match=r"spec\.source\.kafka\.startFrom: '2026-02-20T00:00:00' must match"):
        writer({**PLAIN, "startFrom": "2026-02-20T00:00:00"})


def test_secrets_are_files_of_driver_and_executors_and_nothing_else() -> None:
    config = OperatorConfig()
    secret = {"name": "kafka", "secret": {"secretName": "kafka-reader", "defaultMode": 0o440}}
    mount = {"name": "kafka", "mountPath": "/etc/hudi/kafka", "readOnly": True}
    driver = pods.driver_pod(TABLE, writer(SECURE), 1, config)
    executor = yaml.safe_load(pods.executor_template(TABLE, writer(SECURE), 1, config))
    for pod in (driver, executor):
        assert secret in pod["spec"]["volumes"]
        assert mount in pod["spec"]["containers"][0]["volumeMounts"]
    made = configmaps.attempt_config(TABLE, writer(SECURE), 1, config, run=1)["data"]
    # The executors' template names the volume, the job the folder.
    assert "kafka-reader" not in made["job.json"] + made["spark-defaults.conf"] + made["hudi-defaults.conf"]
    for source in (PLAIN, None):
        spec = (
            writer(source)
            if source
            else WriterSpec.from_object(
                {"metadata": {"name": "w", "uid": "0123456789"}, "spec": {"tableRef": {"name": "t"}}}
            )
        )
        assert "/etc/hudi/kafka" not in json.dumps(pods.driver_pod(TABLE, spec, 1, config)) + pods.executor_template(
            TABLE, spec, 1, config
        )


def test_the_crd_has_the_same_options() -> None:
    text = (ROOT / "crds" / "hudioperator.io_hudiwriters.yaml").read_text()
    (rule,) = re.findall(r"self\.all\(k, k in \[('check\.crcs'[^]]*)\]\)", text)
    (message,) = re.findall(r"options: only (check\.crcs.*) may be set", text)
    assert tuple(name.strip(" '") for name in rule.split(",")) == tuple(message.split(", ")) == kafka.OPTIONS


def test_the_secret_of_a_registry_is_named_and_mounted() -> None:
    value = {**PLAIN["value"], "registry": {"url": "https://registry.example.com", "secretRef": {"name": "reader"}}}
    mine = writer({**PLAIN, "value": value}, executors={"instances": 1})
    secret = {"name": "registry", "secret": {"secretName": "reader", "defaultMode": 0o440}}
    driver = pods.driver_pod(TABLE, mine, 1, OperatorConfig())
    assert secret in driver["spec"]["volumes"]
    folders = {"name": "HUDI_OPERATOR_SECRET_FOLDERS", "value": "/etc/hudi/registry"}
    assert folders in driver["spec"]["containers"][0]["env"], "its values are redacted"
    assert references.Reference(
        "spec.source.kafka.value.registry.secretRef", references.Named("Secret", "reader")
    ) in references.of_writer(mine)
    source = job({**PLAIN, "value": value}).source
    assert isinstance(source, KafkaSource)
    assert source.registry == KafkaRegistry("https://registry.example.com", "/etc/hudi/registry")
    source = job({**PLAIN, "value": {**value, "registry": {"url": "https://registry.example.com"}}}).source
    assert isinstance(source, KafkaSource)
    assert source.registry == KafkaRegistry("https://registry.example.com")
