"""Settings of an S3 bucket that damage tables, read through S3's own API (docs/operate/stores.md).

They are reported; no decision depends on them.

A setting is unknown when the store does not implement it, or when the table's credentials may not
read it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from hudi_contract.environment import GUARD
from hudi_contract.reports import BucketSettings

S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
S3_EXCEPTION = "com.amazonaws.services.s3.model.AmazonS3Exception"
_NO_SUCH_SETTING = frozenset(
    {"NoSuchLifecycleConfiguration", "ObjectLockConfigurationNotFoundError", "ReplicationConfigurationNotFoundError"}
)
AGAIN_SECONDS = 3600.0
LIMIT = 200
"""Shown length of a rule's name, in characters."""
T = TypeVar("T")


@dataclass(frozen=True)
class Rule:
    """An enabled lifecycle rule.

    It removes or moves objects after `days`; 0: on a fixed date; None: it does neither.
    """

    name: str
    prefix: str
    days: int | None
    ends_uploads: bool = False
    """It removes multipart uploads that nobody finishes."""
    ends_versions: bool = False
    """It removes old versions of objects."""


@dataclass(frozen=True)
class Settings:
    """The answers of the API; None: unknown."""

    rules: tuple[Rule, ...] | None = None
    retention: str | None = None
    """Retention by Object Lock for every new object; empty: none."""
    replicas: tuple[str, ...] | None = None
    versioned: bool | None = None
    """Whether the bucket keeps every version of an object."""


def harmful(settings: Settings, prefix: str) -> list[str]:
    """One sentence for each setting that damages a table whose keys begin with `prefix`.

    It comes with the name of the rule.
    """
    found = []
    folder = f"{prefix.strip('/')}/"
    for rule in settings.rules or ():
        if rule.days is not None and (folder.startswith(rule.prefix) or rule.prefix.startswith(folder)):
            when = f"after {rule.days} days" if rule.days else "on a fixed date"
            found.append(
                f"lifecycle rule {rule.name[:LIMIT]!r} (prefix {rule.prefix[:LIMIT]!r}) removes or moves files {when}, "
                "including files that the table still references"
            )
    if settings.retention:
        found.append(
            f"Object Lock keeps every new object ({settings.retention}): rollback, cleaning and archival must be able "
            "to delete"
        )
    if settings.replicas:
        found.append(
            f"replication rule {', '.join(settings.replicas)[:LIMIT]} copies files in any order: do not write to the "
            "copy as a table"
        )
    return found


def costly(settings: Settings, prefix: str) -> list[str]:
    """One sentence for what stays in the bucket although nobody needs it; it damages nothing."""
    if settings.rules is None:
        return []
    folder = f"{prefix.strip('/')}/"
    over = [rule for rule in settings.rules if folder.startswith(rule.prefix)]
    found = []
    if not any(rule.ends_uploads for rule in over):
        found.append(
            "no lifecycle rule removes unfinished multipart uploads: those of killed writers are never removed"
        )
    if settings.versioned and not any(rule.ends_versions for rule in over):
        found.append(
            "the bucket is versioned, and no lifecycle rule removes old versions: deleted files are kept forever"
        )
    return found


def unknown(settings: Settings) -> list[str]:
    """Names of the settings that are unknown."""
    asked = {
        "lifecycle rules": settings.rules,
        "Object Lock": settings.retention,
        "replication": settings.replicas,
        "versioning": settings.versioned,
    }
    return [name for name, answer in asked.items() if answer is None]


class Bucket:
    """The bucket of one table; `look` asks at most once in AGAIN_SECONDS."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path
        self._asked = -AGAIN_SECONDS
        self._found: BucketSettings | None = None

    def look(self) -> BucketSettings | None:
        """The settings for the report; None when the store is not an S3 bucket."""
        if time.monotonic() - self._asked >= AGAIN_SECONDS:
            settings = ask(self._spark, self._path)
            self._asked = time.monotonic()
            prefix = self._path.partition("://")[2].partition("/")[2]
            self._found = None
            if settings is not None:
                self._found = BucketSettings(
                    harmful=tuple(harmful(settings, prefix)),
                    costly=tuple(costly(settings, prefix)),
                    unknown=tuple(unknown(settings)),
                )
        return self._found


def ask(spark: SparkSession, path: str) -> Settings | None:
    """Ask the store of `path` with the table's own client; None when it is not an S3 bucket."""
    context: Any = spark.sparkContext
    fs = context._jvm.org.apache.hadoop.fs.Path(path).getFileSystem(context._jsc.hadoopConfiguration())
    if str(fs.getClass().getName()) == GUARD:
        fs = fs.getRawFileSystem()
    if str(fs.getClass().getName()) != S3A:
        return None
    client, bucket = fs.getAmazonS3ClientForTesting("settings of the bucket"), str(fs.getBucket())
    request = context._jvm.com.amazonaws.services.s3.model.GetObjectLockConfigurationRequest().withBucketName(bucket)
    no_rules: tuple[Rule, ...] = ()
    no_replicas: tuple[str, ...] = ()
    return Settings(
        rules=_answer(lambda: rules(client.getBucketLifecycleConfiguration(bucket)), no_rules),
        retention=_answer(
            lambda: retention(client.getObjectLockConfiguration(request).getObjectLockConfiguration()), ""
        ),
        replicas=_answer(lambda: replicas(client.getBucketReplicationConfiguration(bucket)), no_replicas),
        versioned=_answer(lambda: str(client.getBucketVersioningConfiguration(bucket).getStatus()) == "Enabled", False),
    )


def _answer(question: Callable[[], T], none: T) -> T | None:
    """The answer; `none` when the store answers that the setting does not exist.

    None when the answer is unknown.
    """
    try:
        return question()
    except Py4JJavaError as error:
        refused: Any = error.java_exception
        if str(refused.getClass().getName()) == S3_EXCEPTION and str(refused.getErrorCode()) in _NO_SUCH_SETTING:
            return none
        return None


def rules(configuration: Any) -> tuple[Rule, ...]:
    """Rules of a bucket that are enabled and may match files without tags.

    They come from the SDK's BucketLifecycleConfiguration (None: there is none).
    """
    if configuration is None:
        return ()
    found = []
    for rule in configuration.getRules() or ():
        parts = _predicates(rule.getFilter().getPredicate()) if rule.getFilter() is not None else []
        kinds = {str(part.getClass().getSimpleName()): part for part in parts}
        if str(rule.getStatus()) == "Enabled" and "LifecycleTagPredicate" not in kinds:
            named = kinds.get("LifecyclePrefixPredicate")
            prefix = named.getPrefix() if named is not None else rule.getPrefix()
            old = rule.getNoncurrentVersionExpirationInDays() > 0 or rule.getNoncurrentVersionExpiration() is not None
            uploads = rule.getAbortIncompleteMultipartUpload() is not None
            found.append(Rule(str(rule.getId() or ""), str(prefix or ""), _days(rule), uploads, old))
    return tuple(found)


def _predicates(predicate: Any) -> list[Any]:
    if predicate is None:
        return []
    if str(predicate.getClass().getSimpleName()) != "LifecycleAndOperator":
        return [predicate]
    return [inner for operand in predicate.getOperands() for inner in _predicates(operand)]


def _days(rule: Any) -> int | None:
    """Days until the current version expires or moves to another storage class.

    Objects of that class may not be readable at once. Old versions may go.
    """
    moves = list(rule.getTransitions() or ())
    days = [int(rule.getExpirationInDays()), *(int(move.getDays()) for move in moves)]
    if rule.getExpirationDate() is not None or any(move.getDate() is not None for move in moves):
        return 0
    return min((number for number in days if number > 0), default=None)


def retention(configuration: Any) -> str:
    """Mode and duration of the SDK's ObjectLockConfiguration for every new object; empty: none."""
    rule = configuration.getRule() if configuration is not None else None
    default = rule.getDefaultRetention() if rule is not None else None
    if default is None:
        return ""
    return (
        f"{default.getMode()}, {default.getDays()} days"
        if default.getDays() is not None
        else f"{default.getMode()}, {default.getYears()} years"
    )


def replicas(configuration: Any) -> tuple[str, ...]:
    """Names of the enabled rules of the SDK's BucketReplicationConfiguration."""
    return tuple(
        sorted(
            str(name)
            for name, rule in dict(configuration.getRules() or {}).items()
            if str(rule.getStatus()) == "Enabled"
        )
    )
