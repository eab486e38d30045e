"""A HudiWriter's Kafka source: the fields of ``spec.source.kafka``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hudi_contract import job as contract
from hudi_contract.allowed_options import KAFKA_OPTIONS as OPTIONS
from hudi_operator.api import http_address, patterns
from hudi_operator.api.fields import NAME, flag, number, record, text, text_map, texts

JsonDict = dict[str, Any]

WHERE = "spec.source.kafka"
SECRET_DIR = "/etc/hudi/kafka"  # noqa: S105 - a folder
REGISTRY_DIR = "/etc/hudi/registry"
_URL = "^https?://([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*/?$"
_START = (
    "^(Earliest|Latest|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2}))$"
)


@dataclass(frozen=True)
class Security:
    """Connection settings of the brokers, in Kafka's own terms.

    ``secret`` is empty when none is needed.
    """

    protocol: str = text(unset="PLAINTEXT", required=True, choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"))
    mechanism: str = text(choices=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))
    secret: str = text(at="secretRef.name", unset="", required=True, at_least=1, at_most=253, pattern=NAME)


@dataclass(frozen=True)
class Registry:
    """A registry that knows with which schema a value was written.

    ``secret`` is empty when none is needed.
    """

    url: str = text(required=True, at_least=10, at_most=1024, matches=_URL)
    secret: str = text(at="secretRef.name", unset="", required=True, at_least=1, at_most=253, pattern=NAME)


@dataclass(frozen=True)
class Value:
    """Conversion of the values of records into columns."""

    format: str = text(required=True, choices=("Json", "Avro", "String", "Binary"))
    schema: str = text(at_least=1, at_most=65536)
    metadata_columns: bool = flag(False)
    registry: Registry | None = record(Registry, optional=True)
    """None: values have no header of a registry."""


@dataclass(frozen=True)
class BadRecords:
    """What is done with records that cannot be written."""

    action: str = text(unset="Fail", required=True, choices=("Fail", "Drop", "SetAside"))
    max_per_commit: int = number(1000, at_least=1, at_most=10_000)


@dataclass(frozen=True)
class KafkaSource:
    """Topics by name or by pattern (exactly one is set).

    ``max_offsets_per_commit`` None: no bound.
    """

    bootstrap_servers: tuple[str, ...] = texts(
        required=True,
        at_least=1,
        at_most=16,
        length=(3, 253),
        matches="^([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:]+\\]):[0-9]{1,5}$",
    )
    value: Value = record(Value, required=True)
    topics: tuple[str, ...] = texts(at_least=1, at_most=64, length=(1, 249), matches="^[A-Za-z0-9._-]+$", distinct=True)
    topic_pattern: str = text(at_least=1, at_most=249)
    start_from: str = text("Earliest", at_most=32, matches=_START)
    """``Earliest``, ``Latest`` or a time (RFC 3339)."""
    max_offsets_per_commit: int | None = number(unset=None, at_least=1, at_most=1_000_000_000)
    if_position_lost: str = text("Fail", choices=("Fail", "Earliest"))
    on_bad_record: BadRecords = record(BadRecords)
    security: Security = record(Security)
    options: Mapping[str, str] = text_map(at_most=32, longest=256)


def problem(source: KafkaSource | None) -> str:
    """Why this source cannot be used (field, value and rule).

    Empty when it can, or when there is none.
    """
    if source is None:
        return ""
    unknown = sorted(set(source.options).difference(OPTIONS))
    if unknown:
        return f"{WHERE}.options[{unknown[0]!r}]: may not be set; allowed: {', '.join(OPTIONS)}"
    contradiction = _contradiction(source)
    if contradiction:
        return f"{WHERE}.{contradiction}"
    if found := patterns.problem(source.topic_pattern):
        return f"{WHERE}.topicPattern: {source.topic_pattern!r} is {found}"
    try:
        _start(source)
    except ValueError:
        return f"{WHERE}.startFrom: {source.start_from!r} is not a time such as 2026-01-31T23:59:59Z"
    return ""


def _contradiction(source: KafkaSource) -> str:
    """Two fields that do not go together (the field and the rule), as in the CRD; empty: none."""
    value, security = source.value, source.security
    described, sasl = value.format in ("Json", "Avro"), security.protocol.startswith("SASL_")
    rules = (
        (bool(source.topics) != bool(source.topic_pattern), "topics: either topics or topicPattern is set"),
        (
            bool(value.schema) == described,
            f"value.schema: format {value.format}: Json and Avro need a schema, String and Binary have none",
        ),
        (
            described or not value.metadata_columns,
            f"value.metadataColumns: format {value.format}: rows of String and Binary have these columns anyway",
        ),
        (
            described or value.registry is None,
            f"value.registry: format {value.format}: values of String and Binary are not decoded",
        ),
        (
            bool(security.mechanism) == sasl,
            f"security.mechanism: protocol {security.protocol}: those that begin with SASL_ need one, others have none",
        ),
        (bool(security.secret) or not sasl, f"security.secretRef: protocol {security.protocol} needs one"),
        (not security.secret or security.protocol != "PLAINTEXT", "security.secretRef: protocol PLAINTEXT uses none"),
    )
    return next((rule for holds, rule in rules if not holds), "") or _address(value.registry)


def _address(registry: Registry | None) -> str:
    """Why nothing is asked at the registry's URL, as in the CRD; empty: it is."""
    found = http_address.problem(registry.url) if registry is not None else ""
    return f"value.registry.url: {found}" if found else ""


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
        value=contract.KafkaValue(
            format=source.value.format,
            schema=source.value.schema,
            metadata=source.value.metadata_columns,
            registry=None
            if source.value.registry is None
            else contract.KafkaRegistry(
                url=source.value.registry.url, folder=REGISTRY_DIR if source.value.registry.secret else ""
            ),
        ),
        security=contract.KafkaSecurity(
            protocol=security.protocol, mechanism=security.mechanism, folder=SECRET_DIR if security.secret else ""
        ),
        options=dict(source.options),
        on_bad_record=None
        if source.on_bad_record.action == "Fail"
        else contract.KafkaBadRecords(
            action=source.on_bad_record.action, max_per_commit=source.on_bad_record.max_per_commit
        ),
    )


def _start(source: KafkaSource) -> str:
    """A time as milliseconds since 1970. Raises ValueError."""
    if source.start_from in ("Earliest", "Latest"):
        return source.start_from
    found = datetime.fromisoformat(source.start_from)
    if found.tzinfo is None:
        raise ValueError(source.start_from)
    return str(int(found.timestamp() * 1000))
