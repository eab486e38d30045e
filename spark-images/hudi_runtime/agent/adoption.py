"""Adoption of a table that existed before its HudiTable.

The checks before its gate opens for the first time (docs/use/migrate.md).

Each mismatch is reported with its value, and nothing is written. Pending instants of the former
writers are reported and never touched here: the operator assigns the instants that a person has
named to a fenced incarnation, and settling finishes them (I7).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession, functions

from hudi_contract.reports import ReportedError, TimelineReport
from hudi_contract.words import Adoption, AgentError, MergeMode, TableType
from hudi_runtime.agent import creation, stored_rows
from hudi_runtime.job import merging
from hudi_runtime.job.job import TableSpec
from hudi_runtime.process.errors import record_message
from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import SNAPSHOT
from hudi_runtime.table.storage import Missing
from hudi_runtime.table.values import named

SKEW = timedelta(seconds=5)
BEAT_SECONDS = 150.0
"""A younger heartbeat file indicates a living writer: Hudi renews it every 60 s by default."""
TIMEZONE = "hoodie.table.timeline.timezone"
#: Writer options that the table's own properties must not set: Hudi would let them override ours.
_HOSTILE = (
    "hoodie.write.",
    "hoodie.clean",
    "hoodie.client.",
    "hoodie.metadata.",
    "hoodie.rollback.",
    "hoodie.embed.",
    "hoodie.filesystem.",
    "hoodie.auto.adjust.",
    "hoodie.time.generator.",
    "hoodie.compact",
    "hoodie.clustering.",
    "hoodie.index.",
    "hoodie.bucket.",
)
_OF_TABLES = ("hoodie.compaction.payload.class", "hoodie.compaction.record.merger.strategy")


class NotAdopted(Exception):
    """The table cannot be used as its HudiTable specifies.

    `code` is the reason of a condition, `exists` whether there is a table at the path.
    """

    def __init__(self, code: str, message: str, *, exists: bool = True) -> None:
        super().__init__(message)
        self.code, self.exists = code, exists


class PendingInstants(Exception):
    """Instants without an owner block the adoption.

    `beating` are those whose writer is alive according to its heartbeat.
    """

    def __init__(self, timeline: tl.Timeline, instants: tuple[tl.Instant, ...], beating: Collection[str]) -> None:
        super().__init__(f"pending instants of writers without this lock: {', '.join(i.requested for i in instants)}")
        self.timeline, self.instants, self.beating = timeline, instants, beating


@dataclass(frozen=True)
class Found:
    """The state of the table.

    Its properties, the key generator that they imply, its timeline, the file groups of its last
    write that has any, and those with rows that are in log files only.
    """

    properties: Mapping[str, str]
    key_generator: str
    timeline: tl.Timeline
    file_groups: tuple[str, ...] = ()
    only_in_logs: tuple[str, ...] = ()


def refuse_existing(policy: str, table: AgentTable, *, mine: bool) -> None:
    """Raise NotAdopted when the policy does not allow an existing table at the path.

    `mine`: this HudiTable has begun to create it.

    A bootstrap accepts a table that never had a commit: it holds nothing.
    """
    if policy == Adoption.CREATE and not mine:
        raise NotAdopted(
            AgentError.TABLE_EXISTS,
            f"spec.adoption.policy is {Adoption.CREATE}, and there is a Hudi table at {table.path}",
        )
    if policy != Adoption.BOOTSTRAP or mine:
        return
    if table.has_archive() or any(i.action in tl.WRITE_ACTIONS for i in table.timeline().completed):
        raise NotAdopted(
            AgentError.TABLE_EXISTS,
            (
                f"spec.bootstrap is set, and there is a Hudi table with commits at {table.path}: leave spec.bootstrap "
                "out to adopt it"
            ),
        )


def look(table: AgentTable) -> Found:
    """Read the input of `problems`. Raises when anything cannot be read."""
    config = table.meta_client().getTableConfig()
    properties = {str(key): str(value) for key, value in dict(config.getProps()).items()}
    timeline = table.timeline()
    writes = [instant for instant in timeline.completed if instant.action in tl.WRITE_ACTIONS]
    written = list(table.written(tuple(writes)))
    groups = next(({group for (_, group), _ in info.files} for _, info in reversed(written) if info.files), set())
    return Found(
        properties,
        str(config.getKeyGeneratorClassName() or ""),
        timeline,
        tuple(sorted(groups)),
        stored_rows.only_in_logs(written),
    )


def problems(spec: TableSpec, options: Mapping[str, str], found: Found, *, now: datetime) -> list[str]:
    """One sentence for each mismatch, with names and values.

    `options` are the table's Hudi options, `now` has a time zone.
    """
    properties = found.properties
    wanted = {
        "hoodie.datasource.write.partitionpath.urlencode": "false",
        "hoodie.populate.meta.fields": "true",
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.table.format": "native",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.table.cdc.enabled": "false",
        "hoodie.partition.metafile.use.base.format": "false",  # `ttl` reads and writes the other form
    }
    said = [
        f"{key}: needed {value!r}, table {properties[key]!r}"
        for key, value in wanted.items()
        if properties.get(key, value).lower() != value.lower()
    ]
    generator = found.key_generator.rpartition(".")[2].replace("AvroKeyGenerator", "KeyGenerator")
    expected = creation.key_generator(spec).rpartition(".")[2]
    if generator and generator != expected:
        said.append(
            f"hoodie.table.keygenerator: needed {expected!r} for these key and partition fields, table {generator!r}"
        )
    said += merging.problems(spec.merge, properties)
    unfinished = properties.get("hoodie.table.metadata.partitions.inflight", "")
    if unfinished:
        said.append(
            f"hoodie.table.metadata.partitions.inflight: needed none, table {unfinished!r}: finish or drop these "
            "indexes with the Hudi that began them"
        )
    for key in sorted(properties):
        if key.startswith(_HOSTILE) and key not in _OF_TABLES and properties[key] != options.get(key):
            said.append(
                f"{key}: the operator sets {options.get(key, 'nothing')!r}, table {properties[key]!r}: remove it from "
                "hoodie.properties"
            )
    count = stored_rows.buckets(options)
    return [
        *said,
        *stored_rows.index_problems(count, found.file_groups),
        *stored_rows.log_problems(spec, count, found.only_in_logs),
        *_clock(found.timeline, now),
    ]


def unordered(spark: SparkSession, spec: TableSpec) -> list[str]:
    """One sentence for a row with null in an ordering column, where such a row becomes unreadable.

    Hudi compares the value of a log file's row with that of the stored one and cannot compare one
    with null: after an update of such a row nobody could read its file group (F331). Reads the
    ordering columns of the whole snapshot.
    """
    if spec.type != TableType.MERGE_ON_READ or spec.merge.mode != MergeMode.EVENT_TIME:
        return []
    rows = spark.read.format("hudi").options(**SNAPSHOT).load(spec.path)
    if not rows.columns:
        return []  # no write was ever completed: the table's first commit gives it its columns
    null = functions.lit(False)
    for name in spec.ordering:
        null = null | functions.col(name).isNull()
    found = rows.where(null).select(named(spec.record_keys)).limit(1).collect()
    return [
        f"orderingFields: the table has null in {' or '.join(spec.ordering)}, first found at the record {key}; "
        "delete these rows with the Hudi that wrote them, compact, and insert them with a value"
        for (key,) in found
    ]


def _clock(timeline: tl.Timeline, now: datetime) -> list[str]:
    """Times only grow (I10). By default Hudi writes the local time of the writer."""
    limit = (now.astimezone(UTC) + SKEW).strftime("%Y%m%d%H%M%S999")
    newest = timeline.maximum
    if newest[:14] <= limit[:14]:
        return []
    return [
        (
            f"timeline: the newest time {newest!r} is in the future (now in UTC: {limit[:14]!r}), for example because "
            "a writer used a time zone east of UTC; the table is adopted when that time is reached"
        )
    ]


def beating(table: AgentTable, instants: tuple[tl.Instant, ...], *, now_ms: int) -> frozenset[str]:
    """The instants whose heartbeat file is younger than BEAT_SECONDS.

    A writer with the EAGER policy has none.
    """
    found = set()
    for instant in instants:
        try:
            age = now_ms - table.storage.modified_ms(f".hoodie/.heartbeat/{instant.requested}")
        except Missing:
            continue
        if age < BEAT_SECONDS * 1000:
            found.add(instant.requested)
    return frozenset(found)


def report(base: TimelineReport, waiting: PendingInstants) -> TimelineReport:
    """`report/timeline` of a table that waits for its adoption.

    It is based on the report of its timeline.
    """
    foreign = tuple(item.but(beating=item.instant in waiting.beating) for item in base.foreign)
    return base.but(
        foreign=foreign, error=ReportedError(code=AgentError.PENDING_INSTANTS, message=record_message(str(waiting)))
    )


def take_over(table: AgentTable, name: str, options: Mapping[str, str]) -> None:
    """The only write of an adoption, under the table's lock (which leaves the marker).

    From now on every writer writes instants in UTC.
    """
    with table.locked(table.write_config(name, options)):
        if str(table.meta_client().getTableConfig().getTimelineTimezone().name()) != "UTC":
            table.set_property(TIMEZONE, "UTC")
