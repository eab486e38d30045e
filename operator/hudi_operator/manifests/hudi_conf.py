"""``hudi-defaults.conf``.

The Hudi options that the operator owns, the same in every pod of a table.

Hudi reads the file through ``HUDI_CONF_DIR`` in every entry point (``spark.hoodie.*`` does not
reach DataFrame writes). For the purpose of each group see docs/design/protocol.md, "How Hudi is
configured so that it stays out of the way".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from hudi_contract import metadata
from hudi_contract.words import Concurrency
from hudi_operator.api.metadata_table import MetadataTable
from hudi_operator.api.spec import TableSpec

LOCK_PROVIDER = "io.hudioperator.EtcdLockProvider"
CONFLICT_STRATEGY = "io.hudioperator.FencedConflictResolutionStrategy"
EARLY_DETECTION = "io.hudioperator.EarlyConflictDetection"
WRITE_SUPPORT = "io.hudioperator.DatedWriteSupport"
ROW_WRITE_SUPPORT = "io.hudioperator.InsertedRowWriteSupport"
WRITE_STATUS = "io.hudioperator.FailFastWriteStatus"
UPDATES_BESIDE_CLUSTERING = "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
_PARALLELISM = "2"
_BLANKS = "".join(map(chr, range(33)))
"""Characters that Java trims; other blanks may be part of a column's name."""

_CONCURRENCY_MODES: Mapping[str, str] = {
    # A single writer takes the lock as well: the agent's rollbacks and services run beside it.
    Concurrency.SINGLE_WRITER: "OPTIMISTIC_CONCURRENCY_CONTROL",
    Concurrency.OPTIMISTIC: "OPTIMISTIC_CONCURRENCY_CONTROL",
    Concurrency.NON_BLOCKING: "NON_BLOCKING_CONCURRENCY_CONTROL",
}


def common_defaults() -> dict[str, str]:
    """Options that do not depend on the table. An agent's own file has only these."""
    return {
        "hoodie.write.lock.provider": LOCK_PROVIDER,
        "hoodie.write.lock.conflict.resolution.strategy": CONFLICT_STRATEGY,
        # Only the agent rolls back, after proof of death (I7): no client may roll back because of a
        # heartbeat file.
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.rollback.avoid.duplicate.plan": "true",
        "hoodie.client.heartbeat.interval_in_ms": "60000",
        "hoodie.client.heartbeat.tolerable.misses": "10",
        # Table services are the agent's.
        "hoodie.table.services.enabled": "false",
        # A writer may update a file group that is being clustered: the clustering then fails
        # at its commit.
        "hoodie.clustering.updates.strategy": UPDATES_BESIDE_CLUSTERING,
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "false",
        "hoodie.write.auto.upgrade": "false",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.auto.delete.partitions": "false",
        # A statement that changes rows must find all of them, also where the table has statistics
        # of columns (F104).
        "hoodie.enable.data.skipping": "false",
        # A query that lists its files only when it runs leaves out those file groups whose version
        # of its time was cleaned meanwhile; one that has listed them fails (F466).
        "hoodie.datasource.read.file.index.listing.mode": "eager",
        "hoodie.auto.adjust.lock.configs": "false",
        # The table's clock in etcd orders instants (I10); Hudi's own wait for clock skew would only
        # hold the lock longer.
        "hoodie.time.generator.max_expected_clock_skew_ms": "1",
        "hoodie.table.timeline.timezone": "UTC",
        # Saves one request per commit, and a port between driver and executors.
        "hoodie.embed.timeline.server": "false",
        # Direct markers need no timeline server.
        "hoodie.write.markers.type": "DIRECT",
        "hoodie.datasource.write.commitmeta.key.prefix": metadata.PREFIX,
        # Without it Spark refuses to read dates before 1582 and timestamps before 1900.
        "hoodie.avro.write.support.class": WRITE_SUPPORT,
        # A bulk insert stores no deletes, and no dates of another calendar (F108, F170).
        "hoodie.parquet.spark.row.write.support.class": ROW_WRITE_SUPPORT,
        # UPDATE and DELETE in SQL would succeed when a row was not written, without commit (F380).
        "hoodie.writestatus.class": WRITE_STATUS,
        # MERGE INTO writes whole rows: Hudi's incremental query cannot read a log file with some
        # columns of a row (F213).
        "hoodie.spark.sql.merge.into.partial.updates": "false",
    }


def hudi_defaults(table: TableSpec, *, keys_once: bool = False) -> dict[str, str]:
    """Every option of ``hudi-defaults.conf``.

    Parallelism, then the table's ``hudiOptions``, then options owned by the operator.

    ``keys_once``: for code of a user that may write no key twice (F478).
    """
    options = {
        f"hoodie.{kind}.shuffle.parallelism": _PARALLELISM for kind in ("upsert", "insert", "bulkinsert", "delete")
    }
    if keys_once:
        # Hudi's default for an overwrite keeps both rows of a key.
        options["hoodie.combine.before.insert"] = "true"
    options.update(table.hudi_options)
    options.update(common_defaults())
    options.update(_lock(table))
    options.update(_identity(table))
    options.update(_index(table))
    options.update(_concurrency(table))
    options.update(_schema())
    options.update((table.metadata_table or MetadataTable()).options)
    options.update(_merge(table))
    return options


def _lock(table: TableSpec) -> dict[str, str]:
    # One tryLock waits longer than a merely slow holder needs, so that a waiter keeps its place in
    # the queue.
    wait = (table.lock.max_hold_seconds + 60) * 1000
    return {
        "hoodie.write.lock.etcd.table_id": table.table_id,
        "hoodie.write.lock.wait_time_ms": str(wait),
        "hoodie.write.lock.num_retries": "1",
        "hoodie.write.lock.client.num_retries": "1",
        "hoodie.write.lock.client.wait_time_ms_between_retry": "1000",
    }


def _identity(table: TableSpec) -> dict[str, str]:
    options = {
        "hoodie.table.name": table.table_name,
        "hoodie.datasource.write.table.name": table.table_name,
        "hoodie.table.type": table.hudi_type,
        "hoodie.datasource.write.table.type": table.hudi_type,
        "hoodie.datasource.write.keygenerator.class": key_generator(table),
        "hoodie.datasource.write.partitionpath.field": ",".join(table.partition_fields),
        "hoodie.datasource.write.hive_style_partitioning": str(table.hive_style_partitioning).lower(),
    }
    if table.record_key_fields:
        options["hoodie.datasource.write.recordkey.field"] = ",".join(table.record_key_fields)
        # Hudi's default, an insert, looks no key up: a record would exist twice (F321).
        options["hoodie.spark.sql.insert.into.operation"] = "upsert"
    if table.ordering_fields:
        options["hoodie.datasource.write.precombine.field"] = ",".join(table.ordering_fields)
    return options


def key_generator(table: TableSpec) -> str:
    """The key generator that fits the number of key and partition fields."""
    if not table.partition_fields:
        name = "NonpartitionedKeyGenerator"
    elif len(table.partition_fields) == 1 and len(table.record_key_fields) == 1:
        name = "SimpleKeyGenerator"
    else:
        name = "ComplexKeyGenerator"
    return f"org.apache.hudi.keygen.{name}"


def _concurrency(table: TableSpec) -> dict[str, str]:
    early = "hoodie.write.concurrency.early.conflict.detection"
    options = {
        "hoodie.write.concurrency.mode": _CONCURRENCY_MODES[table.concurrency_mode],
        f"{early}.enable": str(table.early_conflict_detection).lower(),
    }
    return {**options, f"{early}.strategy": EARLY_DETECTION} if table.early_conflict_detection else options


def _schema() -> dict[str, str]:
    """Options for the handling of other columns when an application does its own writes.

    The runtime fits the columns of its writes (docs/use/schema.md).

    Nulls for missing columns are left to the runtime: with Hudi's option for it an UPDATE in SQL
    fails (1.2.0: "cannot modify hudi meta col").
    """
    return {
        "hoodie.write.set.null.for.missing.columns": "false",
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "false",
        "hoodie.datasource.write.reconcile.schema": "false",
        "hoodie.schema.on.read.enable": "false",
        "hoodie.write.concurrency.schema.conflict.resolution.enable": "true",
    }


def _merge(table: TableSpec) -> dict[str, str]:
    """The class of a user's own merge. All other merge settings are in the table's properties."""
    return (
        {"hoodie.write.record.merge.custom.implementation.classes": table.merge.class_name}
        if table.merge.class_name
        else {}
    )


def _index(table: TableSpec) -> dict[str, str]:
    if not table.index_type:
        return {}
    options = {"hoodie.index.type": table.index_type.upper()}
    if table.index_type == "Bloom":
        # Files of bulk inserts and clusterings record their smallest and largest key in another
        # order than the index uses (F102).
        options["hoodie.bloom.index.prune.by.ranges"] = "false"
    if table.index_type == "Bucket":
        # Consistent hashing moves records between file groups with a table service that does not
        # support several writers.
        options["hoodie.index.bucket.engine"] = "SIMPLE"
        options["hoodie.bucket.index.num.buckets"] = str(table.buckets)
    return options


def properties(options: Mapping[str, str]) -> str:
    """Render the file, sorted, so that equal options give equal files.

    Hudi splits lines at the first ``=``, takes blanks at both ends away, and knows no escapes: what
    cannot be written like that raises ValueError (F132).
    """
    for key, value in options.items():
        if not re.fullmatch(r"hoodie\.[!-<>-~]+", key) or "\n" in value or "\r" in value:
            raise ValueError(f"{key!r}: not one line of a file of Hudi's options")
    return "".join(f"{key}={value.strip(_BLANKS)}\n" for key, value in sorted(options.items()))


def conf_hash(table: TableSpec) -> str:
    """Hash of the table's file.

    It is an annotation of each pod, so that a pod with older options is recognized.
    """
    return hashlib.sha256(properties(hudi_defaults(table)).encode()).hexdigest()[:16]
