"""The source `kafka`: topics read in bounded batches, each record in exactly one commit.

This module chooses the offsets from the state of the brokers; Spark only reads the given ranges,
and the position after them is stored in the commit. Nothing is committed to Kafka, and no consumer
group is used. Records of aborted and open transactions are not read (`read_committed`).

Passwords and keys are in files, from which the clients read them (Kafka's DirectoryConfigProvider):
no option, plan or log contains their values.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import FAIL, SET_ASIDE, KafkaSource
from hudi_runtime.process.errors import PositionLost, RuntimeFailure, UserCodeError, java_causes
from hudi_runtime.read import kafka_positions as kp
from hudi_runtime.read import kafka_values
from hudi_runtime.read import progress as pg
from hudi_runtime.read.bad_records import BadRecords
from hudi_runtime.read.kafka_values import COLUMNS

API_TIMEOUT_MS = 30_000
"""Timeout of each request to the brokers."""
LOOKS, LOOK_SECONDS = 4, 10.0
"""How often is looked for a topic before it counts as gone, and the pause between two looks."""
_UNKNOWN = frozenset({"UnknownTopicOrPartitionException", "InvalidTopicException"})
OLDEST_MS = 2**31
"""About 25 days after the start of 1970: py4j would pass a smaller number as an Integer, which no
method for times accepts.
"""


@dataclass(frozen=True)
class Part:
    """The records of one commit, the position after them, and the number of offsets that remain."""

    frame: DataFrame
    position: kp.Position
    waiting: int
    offsets: int
    bad: BadRecords | None = None
    """Records that are not in `frame`; None: one that does not parse fails the job."""


# ---- one read of the topics


def parts(spark: SparkSession, source: KafkaSource, done: pg.Progress) -> Iterator[Part]:
    """The records in the topics that are not committed yet, one part for each commit.

    Raises PositionLost, UserCodeError, RuntimeFailure.
    """
    stored = _stored(done)
    with Brokers(spark, source) as brokers:
        look = _certain(brokers, stored)
        seen = look.seen
        position = _begin(brokers, source, seen, gone=look.gone, stored=stored)
    if stored is None and source.start_from != "Earliest":
        # A commit without rows stores the position: progress is kept only in the target's timeline.
        yield _part(spark, source, (), position, kp.waiting(position, seen))
    while True:
        ranges, position = kp.take(position, seen, source.max_offsets)
        if not ranges:
            return
        yield _part(spark, source, ranges, position, kp.waiting(position, seen))


def _part(
    spark: SparkSession, source: KafkaSource, ranges: Sequence[kp.Range], position: kp.Position, waiting: int
) -> Part:
    offsets = sum(r.end - r.begin for r in ranges)
    found = records(spark, source, ranges)
    values = kafka_values.Values(spark, source, found, empty=not ranges)
    if source.bad == FAIL or not ranges:
        return Part(values.rows(), position, waiting, offsets)
    good, unparsed = values.parted()
    bad = BadRecords(unparsed, found, limit=source.max_bad, keep=source.bad == SET_ASIDE)
    return Part(good, position, waiting, offsets, bad)


def _certain(brokers: Brokers, stored: kp.Position | None) -> Look:
    """What is in the brokers, looked at again while a topic seems to be gone, or another one.

    One broker answers, from what it knows of the cluster: one that has just started may know
    nothing yet. A position that was given up for that reads the whole topic again (F633). Raises
    UserCodeError for a topic that never existed.
    """
    for left in reversed(range(LOOKS)):
        look = brokers.look(stored)
        lost = stored is not None and kp.unsure(kp.extended(stored, look.seen), look.seen, gone=look.gone)
        if not left or not (lost or look.never):
            break
        time.sleep(LOOK_SECONDS)
    refused = sorted(look.refused.intersection(look.gone))
    if refused:
        raise RuntimeFailure(
            FailureClass.INFRASTRUCTURE,
            f"source.kafka: the brokers do not tell whether topic {refused[0]} exists: not authorized to describe it",
        )
    if look.never:
        raise UserCodeError(f"source.kafka.topics: topic {look.never[0]} does not exist, or may not be read")
    return look


def _begin(
    brokers: Brokers,
    source: KafkaSource,
    seen: Mapping[str, kp.Seen],
    *,
    gone: tuple[str, ...],
    stored: kp.Position | None,
) -> kp.Position:
    if stored is None:
        return kp.beginning(seen, brokers.start(seen))
    position = kp.extended(stored, seen)
    lost = kp.lost(position, seen, gone=gone)
    if not lost:
        return position
    told = "; ".join(lost[:3]) + (f" and {len(lost) - 3} more" if len(lost) > 3 else "")
    if source.if_lost != "Earliest":
        raise PositionLost(
            f"source.kafka: {told}; ifPositionLost: Earliest continues with the earliest available records"
        )
    print(
        f"source.kafka: position lost, continuing with the earliest available records: {told}",
        file=sys.stderr,
        flush=True,
    )
    return kp.reset(position, seen, gone=gone)


def _stored(done: pg.Progress) -> kp.Position | None:
    """The position of this writer's last commit; None before its first one."""
    if not done.digest:
        return None
    if done.kafka is None:
        raise UserCodeError(
            f"source.kafka: this writer's last commit {done.instant} came from a source of another kind; use another "
            "HudiWriter"
        )
    return kp.parse(done.kafka)


# ---- the brokers


def client_settings(source: KafkaSource) -> dict[str, str]:
    """Settings of every Kafka client of the source, with references to secrets in place of values.

    Raises UserCodeError for an unusable Secret.
    """
    security = source.security
    settings = {
        **source.options,
        "bootstrap.servers": ",".join(source.servers),
        "security.protocol": security.protocol,
        "isolation.level": "read_committed",
    }
    if not security.folder:
        return settings
    keys = {path.name for path in Path(security.folder).iterdir() if path.is_file()}
    settings |= {
        "config.providers": "dir",
        "config.providers.dir.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
    }

    def secret(key: str) -> str:
        if key not in keys:
            raise UserCodeError(
                f"source.kafka.security: protocol {security.protocol} needs key {key}, which the Secret does not have"
            )
        return f"${{dir:{security.folder}:{key}}}"

    if security.protocol.startswith("SASL_"):
        _check_quoted(security.folder, ("username", "password"), keys)
        settings["sasl.mechanism"] = security.mechanism
        settings["sasl.jaas.config"] = (
            f'{_module(security.mechanism)} required username="{secret("username")}" password="{secret("password")}";'
        )
    if security.protocol.endswith("SSL"):
        if "ca.crt" in keys:
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": secret("ca.crt")}
        if "tls.key" in keys or "tls.crt" in keys:
            settings |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": secret("tls.crt"),
                "ssl.keystore.key": secret("tls.key"),
            }
    return settings


def _module(mechanism: str) -> str:
    name = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return f"org.apache.kafka.common.security.{name}"


def _check_quoted(folder: str, names: Sequence[str], keys: set[str]) -> None:
    """Check values that are put between quotation marks in a line of configuration."""
    for name in names:
        text = (Path(folder) / name).read_text(encoding="utf-8") if name in keys else ""
        if any(ch in '"\\' or ord(ch) < 32 for ch in text):
            raise UserCodeError(
                f"source.kafka.security: key {name} of the Secret must be one line without quotation mark, backslash "
                "and line end"
            )


@dataclass(frozen=True)
class Look:
    """The topics of a source with their offsets.

    `gone`: topics that were read before and are not there; `never`: others that are not there;
    `refused`: of these, the ones of which the brokers may not tell.
    """

    seen: Mapping[str, kp.Seen]
    gone: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    refused: frozenset[str] = frozenset()


class Brokers:
    """An admin client for one read of the topics. Use it as a context manager, which closes it."""

    def __init__(self, spark: SparkSession, source: KafkaSource) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        self._source = source
        self._admin: Any = None

    def __enter__(self) -> Brokers:
        settings = {
            **client_settings(self._source),
            "default.api.timeout.ms": str(API_TIMEOUT_MS),
            "request.timeout.ms": str(API_TIMEOUT_MS // 2),
        }
        known = set(self._jvm.org.apache.kafka.clients.admin.AdminClientConfig.configNames()) | {
            "config.providers",
            "config.providers.dir.class",
        }
        wanted = self._jvm.java.util.HashMap()
        for key, value in settings.items():
            if key in known:
                wanted.put(key, value)
        self._admin = self._asked(
            "clients", lambda: self._jvm.org.apache.kafka.clients.admin.AdminClient.create(wanted)
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._admin.close(self._jvm.java.time.Duration.ofSeconds(1))

    def look(self, stored: kp.Position | None) -> Look:
        """The topics of the source with their offsets, as the brokers tell them now."""
        there = {str(name) for name in self._asked("list of topics", lambda: self._admin.listTopics().names().get())}
        known = set(stored.topics) if stored is not None else set()
        pattern = self._source.pattern
        wanted = {name for name in there | known if _matches(pattern, name)} if pattern else set(self._source.topics)
        # A list leaves out, without a word, what its broker does not know or may not tell
        asked = {name: self._exists(name) for name in sorted(wanted - there)}
        missing = {name for name, exists in asked.items() if not exists}
        return Look(
            self._seen(sorted(wanted - missing)),
            gone=tuple(sorted(missing & known)),
            never=tuple(sorted(missing - known)),
            refused=frozenset(name for name, exists in asked.items() if exists is None),
        )

    def _exists(self, name: str) -> bool | None:
        """Whether a broker knows the topic of that name; None when it may not tell."""
        wanted = self._jvm.java.util.ArrayList()
        wanted.add(name)

        def ask() -> bool | None:
            try:
                self._admin.describeTopics(wanted).allTopicNames().get()
            except Exception as error:
                said = {cause.type.rsplit(".", 1)[-1] for cause in java_causes(error)}
                if said & _UNKNOWN:
                    return False
                if "TopicAuthorizationException" in said:
                    return None
                raise
            return True

        return self._asked("topics", ask)  # type: ignore[no-any-return]

    def start(self, seen: Mapping[str, kp.Seen]) -> dict[str, tuple[int, ...]]:
        """The offsets at which the first commit begins, according to `startFrom`."""
        start = self._source.start_from
        if start == "Earliest" or (start != "Latest" and int(start) < OLDEST_MS):
            return {name: topic.earliest for name, topic in seen.items()}
        if start == "Latest":
            return {name: topic.latest for name, topic in seen.items()}
        by_time = self._offsets(
            {name: len(topic.earliest) for name, topic in seen.items()}, self._spec().forTimestamp(int(start))
        )
        # -1: no record is as new as that.
        return {
            name: tuple(n if n >= 0 else end for n, end in zip(by_time[name], topic.latest, strict=True))
            for name, topic in seen.items()
        }

    def _seen(self, names: Sequence[str]) -> dict[str, kp.Seen]:
        if not names:
            return {}
        wanted = self._jvm.java.util.ArrayList()
        for name in names:
            wanted.add(name)
        described = self._asked("topics", lambda: self._admin.describeTopics(wanted).allTopicNames().get())
        counts, ids = {}, {}
        for name in names:
            topic = described.get(name)
            numbers = sorted(int(part.partition()) for part in topic.partitions())
            if numbers != list(range(len(numbers))):
                raise RuntimeFailure(
                    FailureClass.INFRASTRUCTURE, f"source.kafka: topic {name} shows partitions {numbers}"
                )
            counts[name] = len(numbers)
            uuid = topic.topicId()
            ids[name] = (
                ""
                if uuid is None or uuid.equals(self._jvm.org.apache.kafka.common.Uuid.ZERO_UUID)
                else str(uuid.toString())
            )
        # Read the end first: a partition that is emptied in between must not show a beginning after
        # its end.
        latest = self._offsets(counts, self._spec().latest())
        earliest = self._offsets(counts, self._spec().earliest())
        return {
            name: kp.Seen(
                ids[name], earliest[name], tuple(max(pair) for pair in zip(latest[name], earliest[name], strict=True))
            )
            for name in names
        }

    def _spec(self) -> Any:
        return self._jvm.org.apache.kafka.clients.admin.OffsetSpec

    def _offsets(self, counts: Mapping[str, int], spec: Any) -> dict[str, tuple[int, ...]]:
        kafka = self._jvm.org.apache.kafka
        wanted, parts = self._jvm.java.util.HashMap(), {}
        for name, count in counts.items():
            for number in range(count):
                parts[name, number] = kafka.common.TopicPartition(name, number)
                wanted.put(parts[name, number], spec)
        options = kafka.clients.admin.ListOffsetsOptions(kafka.common.IsolationLevel.READ_COMMITTED)
        found = self._asked("offsets", lambda: self._admin.listOffsets(wanted, options).all().get())
        return {
            name: tuple(int(found.get(parts[name, number]).offset()) for number in range(count))
            for name, count in counts.items()
        }

    def _asked(self, what: str, ask: Any) -> Any:
        """The answer.

        Errors of the client are treated as failures of the brokers or the network, which
        may be temporary.
        """
        try:
            return ask()
        except Exception as error:
            causes = java_causes(error)
            if not causes or causes[-1].type == "py4j":
                raise
            told = f"{causes[-1].type.rsplit('.', 1)[-1]}: {causes[-1].message}"
            if causes[-1].type.endswith("ConfigException"):
                raise UserCodeError(f"source.kafka: {told}") from error
            message = f"source.kafka: no answer about the {what} from {','.join(self._source.servers)}: {told}"
            raise RuntimeFailure(FailureClass.INFRASTRUCTURE, message) from error


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error as error:
        raise UserCodeError(f"source.kafka.topicPattern: {pattern!r} is not a regular expression: {error}") from error


# ---- records


def records(spark: SparkSession, source: KafkaSource, ranges: Sequence[kp.Range]) -> DataFrame:
    """Exactly the records of these ranges, with Kafka's own columns.

    A range that no longer exists is an error.
    """
    if not ranges:
        return spark.createDataFrame([], _PLAIN)
    begin: dict[str, dict[str, int]] = {}
    end: dict[str, dict[str, int]] = {}
    for r in ranges:
        begin.setdefault(r.topic, {})[str(r.partition)] = r.begin
        end.setdefault(r.topic, {})[str(r.partition)] = r.end
    options = {f"kafka.{key}": value for key, value in client_settings(source).items()}
    options |= {
        "assign": json.dumps({topic: sorted(int(part) for part in offsets) for topic, offsets in begin.items()}),
        "startingOffsets": json.dumps(begin),
        "endingOffsets": json.dumps(end),
        "failOnDataLoss": "true",
    }
    return spark.read.format("kafka").options(**options).load().select(*COLUMNS)


_PLAIN = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"
