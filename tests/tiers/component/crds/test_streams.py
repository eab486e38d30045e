"""HudiWriter: Kafka as source and runs that do not end, as `kubectl apply` takes
or refuses them.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiers.component.crds.cluster import Cluster, writer

JSON = {"format": "Json", "schema": "id BIGINT, name STRING"}
KAFKA = {"bootstrapServers": ["broker-1.kafka:9092", "[2001:db8::1]:9092"], "topics": ["orders"], "value": JSON}
SASL = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "secretRef": {"name": "kafka-reader"}}
CRON = {"cron": "0 * * * *"}


def kafka(**changes: Any) -> dict[str, Any]:
    return {"source": {"kafka": {**KAFKA, **changes}}}


def registry(url: str, **more: Any) -> dict[str, Any]:
    return kafka(value={**JSON, "registry": {"url": url, **more}})


REFUSED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    (
        "no-brokers",
        {"source": {"kafka": {"topics": ["a"], "value": JSON}}},
        ("spec.source.kafka.bootstrapServers", "Required value"),
    ),
    (
        "broker",
        kafka(bootstrapServers=["kafka://broker"]),
        ("spec.source.kafka.bootstrapServers[0]", "'kafka://broker' must be host:port"),
    ),
    (
        "credentials",
        kafka(bootstrapServers=["user:word@broker:9092"]),
        ("spec.source.kafka.bootstrapServers[0]", "must be host:port"),
    ),
    (
        "no-topic",
        {"source": {"kafka": {"bootstrapServers": ["b:1"], "value": JSON}}},
        ("spec.source.kafka", "source.kafka has no topic"),
    ),
    (
        "two-ways",
        kafka(topicPattern="o.*"),
        ("spec.source.kafka", "source.kafka.topics and source.kafka.topicPattern are both set"),
    ),
    ("topic", kafka(topics=["a b"]), ("spec.source.kafka.topics[0]", "'a b' is not the name of a topic")),
    (
        "start",
        kafka(startFrom="yesterday"),
        ("spec.source.kafka.startFrom", "'yesterday' must be Earliest, Latest or a time"),
    ),
    ("lost", kafka(ifPositionLost="Skip"), ("spec.source.kafka.ifPositionLost", '"Skip"', '"Fail", "Earliest"')),
    (
        "limit",
        kafka(maxOffsetsPerCommit=0),
        ("spec.source.kafka.maxOffsetsPerCommit", "0", "greater than or equal to 1"),
    ),
    (
        "bad-records",
        kafka(onBadRecord={"action": "Skip"}),
        ("spec.source.kafka.onBadRecord.action", '"Skip"', '"Fail", "Drop", "SetAside"'),
    ),
    (
        "bad-records-by-themselves",
        kafka(onBadRecord={"maxPerCommit": 5}),
        ("spec.source.kafka.onBadRecord.action", "Required value"),
    ),
    (
        "no-bad-records",
        kafka(onBadRecord={"action": "Drop", "maxPerCommit": 0}),
        ("spec.source.kafka.onBadRecord.maxPerCommit", "greater than or equal to 1"),
    ),
    (
        "many-bad-records",
        kafka(onBadRecord={"action": "Drop", "maxPerCommit": 10001}),
        ("spec.source.kafka.onBadRecord.maxPerCommit", "less than or equal to 10000"),
    ),
    (
        "no-value",
        {"source": {"kafka": {"bootstrapServers": ["b:1"], "topics": ["a"]}}},
        ("spec.source.kafka.value", "Required value"),
    ),
    (
        "no-schema",
        kafka(value={"format": "Json"}),
        ("spec.source.kafka.value.schema", "format Json: Json and Avro need a schema"),
    ),
    (
        "a-schema",
        kafka(value={"format": "String", "schema": "x INT"}),
        ("spec.source.kafka.value.schema", "String and Binary have none"),
    ),
    (
        "metadata",
        kafka(value={"format": "Binary", "metadataColumns": True}),
        ("spec.source.kafka.value.metadataColumns", "format Binary", "anyway"),
    ),
    (
        "registry-of-text",
        kafka(value={"format": "String", "registry": {"url": "https://registry.example.com"}}),
        ("spec.source.kafka.value.registry", "values of String and Binary are not decoded"),
    ),
    (
        "protobuf",
        kafka(value={"format": "Protobuf", "registry": {"url": "https://registry.example.com"}}),
        ("spec.source.kafka.value.format", '"Protobuf"', '"Json", "Avro", "String", "Binary"'),
    ),
    (
        "registry-with-a-query",
        registry("https://registry.example.com/?x=1"),
        ("spec.source.kafka.value.registry.url", "without credentials, query, fragment and white space"),
    ),
    (
        "registry-with-a-word",
        registry("https://user:word@registry.example.com"),
        ("spec.source.kafka.value.registry.url", "contains @ or white space"),
    ),
    (
        "registry-in-the-open",
        registry("http://registry.example.com"),
        ("spec.source.kafka.value.registry.url", "http is for Services of the cluster"),
    ),
    (
        "registry-of-the-pod",
        registry("https://127.0.0.1:8081"),
        ("spec.source.kafka.value.registry.url", "nothing is sent to loopback, link-local and metadata addresses"),
    ),
    (
        "registry-of-metadata",
        registry("https://169.254.169.254"),
        ("spec.source.kafka.value.registry.url", "nothing is sent to loopback, link-local and metadata addresses"),
    ),
    (
        "registry-port",
        registry("https://registry.example.com:70000"),
        ("spec.source.kafka.value.registry.url", "its port must be between 1 and 65535"),
    ),
    (
        "registry-secret",
        registry("https://registry.example.com", secretRef={"name": "A"}),
        ("spec.source.kafka.value.registry.secretRef.name",),
    ),
    (
        "no-mechanism",
        kafka(security={**SASL, "mechanism": None}),
        ("spec.source.kafka.security.mechanism", "protocol SASL_SSL", "need a mechanism"),
    ),
    (
        "mechanism",
        kafka(security={"protocol": "SSL", "mechanism": "PLAIN"}),
        ("spec.source.kafka.security.mechanism", "the others have none"),
    ),
    (
        "no-secret",
        kafka(security={**SASL, "secretRef": None}),
        ("spec.source.kafka.security.secretRef", "SASL_SSL needs a secretRef"),
    ),
    (
        "a-secret",
        kafka(security={"protocol": "PLAINTEXT", "secretRef": {"name": "x"}}),
        ("spec.source.kafka.security.secretRef", "protocol PLAINTEXT uses no secret"),
    ),
    (
        "password",
        kafka(options={"sasl.jaas.config": "x"}),
        ("spec.source.kafka.options", "only check.crcs", "may be set"),
    ),
    ("classes", kafka(options={"interceptor.classes": "x"}), ("spec.source.kafka.options", "may be set")),
    ("group", kafka(options={"group.id": "x"}), ("spec.source.kafka.options", "may be set")),
    (
        "two-sources",
        {"source": {"kafka": KAFKA, "files": {"format": "csv", "paths": ["s3a://x/y"]}}},
        ("spec.source", "source has several fields, use one of: files kafka"),
    ),
    (
        "schedule",
        {**kafka(), "streaming": {}, "schedule": CRON},
        ("spec.streaming", "streaming and schedule are both set"),
    ),
    (
        "a-query",
        {"source": {"sql": {"query": "SELECT 1"}}, "streaming": {"intervalSeconds": 5}},
        ("spec.streaming", "streaming needs source.files, source.hudi, source.kafka or source.jdbc.incremental"),
    ),
    (
        "a-program-with-a-deadline-to-commit",
        {"source": None, "application": {"mainFile": "local:///a.py"}, "commitDeadlineSeconds": 3600},
        ("spec.commitDeadlineSeconds", "cannot be combined with application"),
    ),
    (
        "a-program",
        {"source": None, "application": {"mainFile": "local:///a.py"}, "streaming": {}},
        ("spec.streaming", "streaming needs"),
    ),
    (
        "interval",
        {**kafka(), "streaming": {"intervalSeconds": 0}},
        ("spec.streaming.intervalSeconds", "0", "greater than or equal to 1"),
    ),
]


@pytest.mark.parametrize(("spec", "told"), [pytest.param(spec, told, id=name) for name, spec, told in REFUSED])
def test_refused(light_cluster: Cluster, namespace: str, spec: dict[str, Any], told: tuple[str, ...]) -> None:
    message = light_cluster.refused(writer(namespace, **spec))
    assert [part for part in told if part not in message] == [], message


def test_accepted(light_cluster: Cluster, namespace: str) -> None:
    value = {"format": "Avro", "schema": "{}", "metadataColumns": True}
    options = {"fetch.max.bytes": "1048576", "client.id": "lake"}
    light_cluster.apply(
        writer(
            namespace,
            "all",
            **kafka(
                security=SASL,
                startFrom="2026-01-31T23:59:59.5+01:00",
                maxOffsetsPerCommit=9,
                onBadRecord={"action": "SetAside", "maxPerCommit": 10000},
                value=value,
                options=options,
            ),
        ),
        writer(
            namespace,
            "tls",
            **kafka(
                security={"protocol": "SSL"}, startFrom="Latest", ifPositionLost="Earliest", value={"format": "Binary"}
            ),
        ),
        writer(namespace, "clock", **kafka(), schedule=CRON),
        writer(namespace, "stream", **kafka(), streaming={}, commitDeadlineSeconds=3600),
        writer(
            namespace,
            "files",
            source={"files": {"format": "csv", "paths": ["s3a://x/y"]}},
            streaming={"intervalSeconds": 60},
        ),
        writer(namespace, "chain", source={"hudi": {"path": "s3a://lake/x"}}, streaming={"intervalSeconds": 1}),
    )
    assert light_cluster.get("hw", "stream", "-n", namespace)["spec"]["streaming"] == {"intervalSeconds": 10}
    light_cluster.apply(
        writer(namespace, "r1", **registry("http://apicurio.kafka.svc:8080/apis/ccompat/v7", secretRef={"name": "r"})),
        writer(namespace, "r2", **registry("https://[2001:db8::1]:8081/")),
    )
    light_cluster.apply(writer(namespace, "bad", **kafka(onBadRecord={"action": "Drop"})))
    stored = light_cluster.get("hw", "bad", "-n", namespace)["spec"]["source"]["kafka"]["onBadRecord"]
    assert stored == {"action": "Drop", "maxPerCommit": 1000}
    # Topics come and go: the position is one of each topic.
    changed = {**KAFKA, "topics": ["orders", "returns"]}
    light_cluster.apply(writer(namespace, "stream", source={"kafka": changed}, streaming={"intervalSeconds": 5}))
