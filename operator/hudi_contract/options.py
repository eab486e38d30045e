"""Options of Hudi that belong to the operator, and those that belong to the table.

A writer's options are checked three times: by the API server (CRD), by the operator before a
launch, and by the runtime before a commit, because `job.json` may come from an older operator.
Operator and runtime use these rules; a test compares the CRD with them.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

TTL_PATTERN: Final = "hudi.operator.ttl.partition.pattern"
"""Option of the runtime; Hudi does not have it. Only partitions whose whole path matches this
pattern expire.
"""


@dataclass(frozen=True)
class Rule:
    """A pattern of normalized names (``*`` matches anything), and why such options are refused."""

    pattern: str
    why: str


_LOCK = "the lock that keeps writers apart is owned by the operator"
_TABLE = "the table's identity comes from the HudiTable"
_SERVICE = "table services and rollbacks are run by the operator's agent"
_SCHEMA = "the runtime fits columns to the table; set in spec.schema of the HudiTable what may be missing"
_SAID = "set it in spec.services of the HudiTable"
_DUPLICATES = "set it in spec.duplicates of the HudiWriter"
_CLASS = "classes named by options could replace the guarded write path"
EXTERNAL: Final = "the option reaches systems that the operator does not guard"
_CATALOG = "writers do not synchronize catalogs, the table's agent does: set spec.catalog of the HudiTable"

_TWICE = "each key has one record: a key that occurs twice in a batch would become two records (F93)"
_STORED = "all writers of a table store and find its rows in one way (F93)"
_HOLES = (
    "commits after a savepoint would be archived before the savepoint's commit, and a writer would take its progress "
    "from the savepoint's commit"
)
_INTERNAL = "Hudi sets it itself"
_READERS = "incremental readers get rows twice or not at all after a log compaction"

OWNED: Final = (
    Rule("hoodie.write.concurrency.*", _LOCK),
    Rule("hoodie.write.lock.*", _LOCK),
    Rule("hoodie.lock.*", _LOCK),
    Rule("hoodie.*lock.provider*", _LOCK),
    Rule("hoodie.write.executor.*", _LOCK),
    Rule("hoodie.cleaner.policy.failed.writes", _LOCK),
    Rule("hoodie.clean.failed.writes.policy", _LOCK),
    Rule("hoodie.client.*", _LOCK),
    Rule("hoodie.heartbeat.*", _LOCK),
    Rule("hoodie.auto.adjust.lock.configs", _LOCK),
    Rule("hoodie.time.generator.*", _LOCK),
    Rule("hoodie.rollback.*", _SERVICE),
    Rule("hoodie.prewrite.*", _SERVICE),
    Rule("hoodie.embed.timeline.*", _LOCK),
    Rule("hoodie.filesystem.*", _LOCK),
    Rule("hoodie.fs.*", _LOCK),
    Rule("hoodie.table.services.*", _SERVICE),
    Rule("hoodie.partition.ttl.*", _SERVICE),
    Rule("hoodie.*inline*", _SERVICE),
    Rule("hoodie.*async*", _SERVICE),
    Rule("hoodie.*schedule*", _SERVICE),
    Rule("hoodie.*automatic", _SERVICE),
    Rule("hoodie.clean.policy", _SAID),
    Rule("hoodie.clean.*retained", _SAID),
    Rule("hoodie.clean.trigger.*", _SAID),
    Rule("hoodie.clean.max.commits", _SAID),
    Rule("hoodie.cleaner.policy", _SAID),
    Rule("hoodie.cleaner.*retained", _SAID),
    Rule("hoodie.keep.*", _SAID),
    Rule("hoodie.archive.beyond.*", _HOLES),
    Rule("hoodie.clustering.plan.strategy.sort.columns", _SAID),
    Rule("hoodie.clustering.plan.strategy.small.file.limit", _SAID),
    Rule("hoodie.clustering.plan.strategy.target.file.max.bytes", _SAID),
    Rule("hoodie.clustering.plan.strategy.*partition*", _SAID),
    Rule("hoodie.layout.optimize.strategy", _SAID),
    Rule("hoodie.clustering.updates.*", _LOCK),
    Rule("hoodie.clustering.rollback.*", _LOCK),
    Rule("hoodie.clustering.*expiration*", _SERVICE),
    Rule("hoodie.log.compaction.*", _READERS),
    Rule("hoodie.write.auto.upgrade", _TABLE),
    Rule("hoodie.write.table.version", _TABLE),
    Rule("hoodie.write.num.retries.on.conflict.failures", _LOCK),
    Rule("hoodie.table.*", _TABLE),
    Rule("hoodie.database.*", _TABLE),
    Rule("hoodie.base.path", _TABLE),
    Rule("hoodie.storage.*", _TABLE),
    Rule("hoodie.datasource.write.table.*", _TABLE),
    Rule("hoodie.datasource.write.storage.type", _TABLE),
    Rule("hoodie.datasource.write.recordkey.field*", _TABLE),
    Rule("hoodie.datasource.write.partitionpath.*", _TABLE),
    Rule("hoodie.datasource.write.precombine.field*", _TABLE),
    Rule("hoodie.datasource.write.hive_style_partitioning", _TABLE),
    Rule("hoodie.datasource.write.operation", "set it in spec.operation"),
    Rule("hoodie.datasource.insert.dup.policy", _DUPLICATES),
    Rule("hoodie.datasource.write.insert.drop.duplicates", _DUPLICATES),
    Rule("hoodie.merge.allow.duplicate.on.inserts", _DUPLICATES),
    Rule("hoodie.datasource.write.commitmeta.*", _LOCK),
    Rule("hoodie.datasource.write.streaming.*", _LOCK),
    Rule("hoodie.*schema*", _SCHEMA),
    Rule("hoodie.write.set.null.for.missing.columns", _SCHEMA),
    Rule("hoodie.datasource.write.drop.partition.columns", _SCHEMA),
    Rule("hoodie.combine.before.upsert", _TWICE),
    Rule("hoodie.hfile.writes.allow.duplicates", _TWICE),
    Rule("hoodie.*index.update.partition.path", _STORED),
    Rule("hoodie.bucket.index.hash.field", _STORED),
    Rule("hoodie.bloom.index.use.metadata", _STORED),
    Rule("hoodie.bloom.index.prune.by.ranges", _STORED),
    Rule("hoodie.logfile.data.block.format", _STORED),
    Rule("hoodie.parquet.outputtimestamptype", _STORED),
    Rule("hoodie.parquet.field_id.*", _STORED),
    Rule("hoodie.parquet.write*", _STORED),
    Rule("hoodie.metadata.auto.delete.partitions", _TABLE),
    Rule("hoodie.metadata.enable", _TABLE),
    Rule("hoodie.*class*", _CLASS),
    Rule("hoodie.*.impl", _CLASS),
    Rule("hoodie.*callback*", _CLASS),
    Rule("hoodie.*keygenerator*", _CLASS),
    Rule("hoodie.datasource.hive_sync.*", _CATALOG),
    Rule("hoodie.datasource.meta.sync.*", _CATALOG),
    Rule("hoodie.meta.sync.*", _CATALOG),
    Rule("hoodie.metrics.*", EXTERNAL),
    Rule("hoodie.internal.*", _INTERNAL),
)
"""Options of Hudi that neither a table nor a writer may set."""

FAMILIES_OF_THE_TABLE: Final = (
    "clean",
    "cleaner",
    "archive",
    "archivelog",
    "keep",
    "compact",
    "compaction",
    "logcompaction",
    "log.compaction",
    "clustering",
    "layout.optimize",
    "commits.archival",
    "index",
    "bucket",
    "simple.index",
    "bloom.index",
    "datasource.compaction",
    "datasource.clustering",
)
"""Options ``hoodie.<family>.*`` concern the whole table."""
OF_THE_TABLE: Final = tuple(
    Rule(f"hoodie.{family}.*", "it concerns the whole table: set it in hudiOptions of the HudiTable")
    for family in FAMILIES_OF_THE_TABLE
)
"""Options that a table may set and a single writer may not, unless a rule of `OWNED` applies."""


def normal(name: str) -> str:
    """Normalize an option's name.

    No blanks, lower case, ``_`` of environment style kept, ``spark.`` aliases of
    Hudi options resolved.
    """
    flat = "".join(name.split()).lower()
    for prefix in ("spark.hadoop.hoodie.", "spark.hoodie.", "hadoop.hoodie."):
        if flat.startswith(prefix):
            return "hoodie." + flat.removeprefix(prefix)
    return flat


def spellings(name: str) -> set[str]:
    """The normalized name, and the name in lower case without blanks."""
    return {normal(name), "".join(name.split()).lower()}


def rule_for(name: str, rules: Sequence[Rule]) -> Rule | None:
    """The first rule that one of the spellings of this name matches; None: there is none."""
    return next((r for r in rules for form in spellings(name) if fnmatch.fnmatchcase(form, r.pattern)), None)


def writer_rule(name: str) -> Rule | None:
    """Why a writer may not set this option; None: none of these rules forbids it."""
    return rule_for(name, (*OWNED, *OF_THE_TABLE))
