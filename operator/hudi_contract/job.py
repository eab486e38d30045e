"""``job.json``: one attempt of a HudiWriter as the operator describes it to the driver.

Of an agent, its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_contract.shape import LEFT_OUT, Count, Record
from hudi_contract.words import Deletes, Duplicates, MissingColumns, Operation


@dataclass(frozen=True, kw_only=True)
class AgentJob(Record):
    """`job.json` of an agent."""

    agent: str


@dataclass(frozen=True, kw_only=True)
class WriterName(Record):
    """The HudiWriter."""

    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, kw_only=True)
class AttemptName(Record):
    """The attempt."""

    id: str
    number: Count


@dataclass(frozen=True, kw_only=True)
class Merge(Record):
    """Rules that decide which of two versions of a record is kept."""

    mode: str = ""
    """A value of `MergeMode`; empty: EventTime with ordering columns, else CommitTime."""
    partial_updates: str | None = None
    """A value of `PartialUpdates`; null: every column of a batch replaces that of the table."""
    strategy_id: str | None = None
    """With `Custom`: the strategy id of the merger's class."""
    class_name: str | None = None
    """With `Custom`: the merger's class."""


@dataclass(frozen=True, kw_only=True)
class TableOfJob(Record):
    """The part of the table's description that a writer needs."""

    id: str
    table: str
    """namespace/name of the HudiTable."""
    name: str
    path: str
    type: str
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    hive_style_partitioning: bool = False
    merge: Merge | None = None
    missing_columns: str = MissingColumns.NULL


@dataclass(frozen=True, kw_only=True)
class Files(Record):
    """Files to read."""

    format: str
    paths: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of Spark's reader."""
    max_files_per_commit: Count | None = field(default=None, metadata=LEFT_OUT)
    """None: everything in one commit."""


@dataclass(frozen=True, kw_only=True)
class Hudi(Record):
    """Another Hudi table, read incrementally."""

    path: str
    merger: str = field(default="", metadata=LEFT_OUT)
    """The class that merges it, from its HudiTable; empty: unknown."""
    start_from: str
    """`Earliest`, `Latest` or a completion time."""
    order: str
    """`CompletionTime`, `Fenced` or `OutOfOrder`."""
    max_commits_per_batch: Count | None = None
    if_position_lost: str
    """`Fail` or `Snapshot`."""
    deletes: str = Deletes.IGNORE


@dataclass(frozen=True, kw_only=True)
class KafkaRegistry(Record):
    """A registry that knows with which schema a value was written."""

    url: str
    folder: str = ""
    """Directory with the Secret's keys as files; empty: there is no Secret."""


@dataclass(frozen=True, kw_only=True)
class KafkaValue(Record):
    """The format of a Kafka record's value."""

    format: str
    """`Json`, `Avro`, `String` or `Binary`."""
    schema: str = ""
    metadata: bool = False
    """Topic, partition, offset and so on as columns."""
    registry: KafkaRegistry | None = field(default=None, metadata=LEFT_OUT)
    """None: values have no header of a registry."""


@dataclass(frozen=True, kw_only=True)
class KafkaSecurity(Record):
    """Settings of the connections to the brokers."""

    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    folder: str = ""
    """Directory with the Secret's keys as files; empty: there is no Secret."""


@dataclass(frozen=True, kw_only=True)
class KafkaBadRecords(Record):
    """What is done with records that cannot be written."""

    action: str
    """`Fail`, `Drop` or `SetAside`."""
    max_per_commit: Count
    """More of them in one commit fail the attempt."""


@dataclass(frozen=True, kw_only=True)
class Kafka(Record):
    """Topics by name, or by pattern (exactly one is set)."""

    bootstrap_servers: tuple[str, ...]
    topics: tuple[str, ...] = ()
    topic_pattern: str = ""
    start_from: str
    """`Earliest`, `Latest` or milliseconds since 1970."""
    max_offsets_per_commit: Count | None = None
    if_position_lost: str
    """`Fail` or `Earliest`."""
    value: KafkaValue
    security: KafkaSecurity = field(default_factory=KafkaSecurity)
    options: Mapping[str, str] = field(default_factory=dict)
    on_bad_record: KafkaBadRecords | None = field(default=None, metadata=LEFT_OUT)
    """None: they fail the attempt."""


@dataclass(frozen=True, kw_only=True)
class JdbcIncremental(Record):
    """The column by which a run reads what is new."""

    column: str
    start_from: str
    """`Earliest`, `Latest` or a value of the column."""
    lag: Count = 0
    """Distance below the position at which a read begins: numbers, days of a date, seconds of a
    time.
    """
    max_rows_per_commit: Count | None = None


@dataclass(frozen=True, kw_only=True)
class JdbcPartitioning(Record):
    """Ranges of a column that tasks read side by side."""

    column: str
    partitions: Count


@dataclass(frozen=True, kw_only=True)
class Jdbc(Record):
    """A table or a query of a relational database (exactly one is set)."""

    engine: str
    """`PostgreSQL` or `MariaDB`."""
    host: str
    port: Count
    database: str
    table: str = ""
    query: str = ""
    incremental: JdbcIncremental | None = None
    """None: each run reads everything."""
    partitioning: JdbcPartitioning | None = None
    """None: one task reads."""
    fetch_size: Count
    """Rows that the driver takes from the database at a time."""
    tls: str
    """`Verify` or `Off`."""
    folder: str
    """Directory with the Secret's keys as files."""


@dataclass(frozen=True, kw_only=True)
class ViewedTable(Record):
    """The newest state of a Hudi table."""

    path: str
    merger: str = field(default="", metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class View(Record):
    """A view that a query can read by name: a Hudi table, or files (exactly one is set)."""

    name: str
    hudi: ViewedTable | None = field(default=None, metadata=LEFT_OUT)
    files: Files | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class Sql(Record):
    """A SELECT over views."""

    query: str
    views: tuple[View, ...]


@dataclass(frozen=True, kw_only=True)
class Python(Record):
    """A user's function(spark, context)."""

    file: str
    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Source(Record):
    """Source of rows: exactly one is set."""

    files: Files | None = field(default=None, metadata=LEFT_OUT)
    hudi: Hudi | None = field(default=None, metadata=LEFT_OUT)
    kafka: Kafka | None = field(default=None, metadata=LEFT_OUT)
    jdbc: Jdbc | None = field(default=None, metadata=LEFT_OUT)
    sql: Sql | None = field(default=None, metadata=LEFT_OUT)
    python: Python | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class Transform(Record):
    """A SELECT over each batch."""

    sql: str = ""


@dataclass(frozen=True, kw_only=True)
class Validation(Record):
    """Condition on each batch: a query, a number of rows, or columns without null."""

    name: str
    sql: str = ""
    """A SELECT over the views `batch` and `table`; empty: there is none."""
    equals: str | None = None
    """The one value that the query returns, as text; null: it returns no row."""
    min_rows: Count | None = None
    max_rows: Count | None = None
    not_null: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Application(Record):
    """A user's program that does its own writes.

    A Python file, a Python module, or a main class of the JVM (exactly one is set).
    """

    main_file: str = ""
    arguments: tuple[str, ...] = ()
    module: str = field(default="", metadata=LEFT_OUT)
    main_class: str = field(default="", metadata=LEFT_OUT)
    jar: str = field(default="", metadata=LEFT_OUT)
    """With `main_class`: the jar that has it."""


@dataclass(frozen=True, kw_only=True)
class Dependencies(Record):
    """What user code brings along: files of the image (`local:///…`) or of a store."""

    jars: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    py_files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """`group:artifact:version` each."""
    exclude_packages: tuple[str, ...] = ()
    """`group:artifact` each: left out of what packages depend on."""
    mirror: str = ""
    """Maven repository that packages come from; empty: there is none."""


@dataclass(frozen=True, kw_only=True)
class ConflictPolicy(Record):
    """Handling of lost races by a writer."""

    in_process: Count = 3
    """Retries of a batch within the attempt."""
    serialize_after: Count = 0
    """Races that it loses to one other writer in a row before the two take turns; 0:
    they never do.
    """
    early_detection: bool = False
    """Whether a write stops when it finds a marker file of a pending write."""


@dataclass(frozen=True, kw_only=True)
class Streaming(Record):
    """A run without an end."""

    interval_seconds: Count
    """Seconds between two reads of the source."""


@dataclass(frozen=True, kw_only=True)
class JobRecord(Record):
    """One attempt of a HudiWriter."""

    writer: WriterName
    attempt: AttemptName
    run: Count = 1
    """Attempts of one run share its committed progress; another run starts over."""
    driver_pod: str = ""
    predecessor_seconds: Count = 900
    """Seconds for which it waits for the lock of an earlier attempt: longer than any drain of that
    lock.
    """
    table: TableOfJob
    source: Source | None = None
    """None: an application does its own writes, or nothing is read."""
    transform: Transform | None = None
    operation: str = Operation.UPSERT
    duplicates: str = Duplicates.FAIL
    """For an operation that does not look up keys."""
    may_truncate: bool = False
    """Whether a batch without rows may replace the rows of the table."""
    validations: tuple[Validation, ...] = ()
    application: Application | None = None
    deps: Dependencies | None = field(default=None, metadata=LEFT_OUT)
    conflict: ConflictPolicy = field(default_factory=ConflictPolicy)
    partitions: tuple[str, ...] = ()
    """Patterns of the partition paths that it may write, without field names; empty: any."""
    streaming: Streaming | None = None
    """None: the run ends when its source is exhausted."""
    hudi_options: Mapping[str, str] = field(default_factory=dict)
    executors: Count = 0
