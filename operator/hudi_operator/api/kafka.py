"""What a HudiWriter reads from Kafka: the fields of ``spec.source.kafka``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hudi_contract import job as contract
from hudi_operator.api.fields import get, string_map, strings

JsonDict = dict[str, Any]

WHERE = "spec.source.kafka"
SECRET_DIR = "/etc/hudi/kafka"  # noqa: S105 - a folder
OPTIONS = (
    "check.crcs",
    "client.dns.lookup",
    "client.id",
    "client.rack",
    "connections.max.idle.ms",
    "default.api.timeout.ms",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "max.partition.fetch.bytes",
    "max.poll.records",
    "metadata.max.age.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retry.backoff.ms",
    "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
)
"""Properties of Kafka's consumer that may be set: sizes, times and names. Those that name classes, files or credentials, and those that decide which
records are read, are not among them. The CRD has the same list."""


@dataclass(frozen=True)
class Security:
    """How the brokers are talked to, in Kafka's own words; ``secret`` is empty when none is needed."""

    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    secret: str = ""


@dataclass(frozen=True)
class KafkaSource:
    """Topics by name or by pattern (exactly one is set); ``max_offsets_per_commit`` None: no bound."""

    bootstrap_servers: tuple[str, ...]
    topics: tuple[str, ...] = ()
    topic_pattern: str = ""
    start_from: str = "Earliest"
    """``Earliest``, ``Latest`` or a time (RFC 3339)."""
    max_offsets_per_commit: int | None = None
    if_position_lost: str = "Fail"
    value_format: str = "Json"
    value_schema: str = ""
    metadata_columns: bool = False
    security: Security = Security()
    options: Mapping[str, str] = field(default_factory=dict)


def from_spec(source: JsonDict) -> KafkaSource | None:
    """``source.kafka``; None when there is none. Raises SpecError."""
    raw = source.get("kafka")
    if raw is None:
        return None
    default, value = KafkaSource(()), get(raw, "value", dict, {}, WHERE)
    security, where = get(raw, "security", dict, {}, WHERE), f"{WHERE}.security"
    return KafkaSource(
        bootstrap_servers=strings(raw, "bootstrapServers", WHERE),
        topics=strings(raw, "topics", WHERE),
        topic_pattern=get(raw, "topicPattern", str, "", WHERE),
        start_from=get(raw, "startFrom", str, default.start_from, WHERE),
        max_offsets_per_commit=get(raw, "maxOffsetsPerCommit", int, 0, WHERE) or None,
        if_position_lost=get(raw, "ifPositionLost", str, default.if_position_lost, WHERE),
        value_format=get(value, "format", str, default.value_format, f"{WHERE}.value"),
        value_schema=get(value, "schema", str, "", f"{WHERE}.value"),
        metadata_columns=get(value, "metadataColumns", bool, False, f"{WHERE}.value"),
        security=Security(
            protocol=get(security, "protocol", str, "PLAINTEXT", where),
            mechanism=get(security, "mechanism", str, "", where),
            secret=get(get(security, "secretRef", dict, {}, where), "name", str, "", f"{where}.secretRef"),
        ),
        options=string_map(raw, "options", WHERE),
    )


def problem(source: KafkaSource | None) -> str:
    """Why this source cannot be used (field, value and rule); empty when it can, or when there is none."""
    if source is None:
        return ""
    unknown = sorted(set(source.options).difference(OPTIONS))
    if unknown:
        return f"{WHERE}.options[{unknown[0]!r}]: may not be set; allowed: {', '.join(OPTIONS)}"
    try:
        re.compile(source.topic_pattern)
    except re.error as error:
        return f"{WHERE}.topicPattern: {source.topic_pattern!r} is no regular expression: {error}"
    try:
        _start(source)
    except ValueError:
        return f"{WHERE}.startFrom: {source.start_from!r} is no time such as 2026-01-31T23:59:59Z"
    return ""


def job(source: KafkaSource) -> contract.Kafka:
    """``source.kafka`` of job.json."""
    security = source.security
    return contract.Kafka(
        bootstrap_servers=tuple(source.bootstrap_servers),
        topics=tuple(source.topics),
        topic_pattern=source.topic_pattern,
        start_from=_start(source),
        max_offsets_per_commit=source.max_offsets_per_commit,
        if_position_lost=source.if_position_lost,
        value=contract.KafkaValue(format=source.value_format, schema=source.value_schema, metadata=source.metadata_columns),
        security=contract.KafkaSecurity(protocol=security.protocol, mechanism=security.mechanism, folder=SECRET_DIR if security.secret else ""),
        options=dict(source.options),
    )


def _start(source: KafkaSource) -> str:
    """A time as milliseconds since 1970. Raises ValueError."""
    if source.start_from in ("Earliest", "Latest"):
        return source.start_from
    found = datetime.fromisoformat(source.start_from)
    if found.tzinfo is None:
        raise ValueError(source.start_from)
    return str(int(found.timestamp() * 1000))
