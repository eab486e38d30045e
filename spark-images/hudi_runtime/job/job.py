"""The description of an attempt by the operator.

`/etc/hudi/job/job.json` (contracts, section 6).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hudi_contract import job as contract
from hudi_contract.assignment import AssignmentRecord
from hudi_contract.environment import JOB, JOB_DIR, JOB_FILE
from hudi_contract.job import Validation
from hudi_contract.shape import ShapeError, fields_of
from hudi_contract.words import Deletes, Duplicates, MissingColumns, Operation
from hudi_runtime.job.merging import LATER_COMMIT, Merge

DEFAULT_PATH = f"{JOB_DIR}/{JOB_FILE}"
FAIL, SET_ASIDE = "Fail", "SetAside"
"""Values of `KafkaSource.bad`; the third one is `Drop`."""


@dataclass(frozen=True)
class TableSpec:
    """The fields of the table that a writer or an agent needs."""

    id: str
    table: str
    name: str
    path: str
    type: str
    record_keys: tuple[str, ...]
    partitions: tuple[str, ...]
    ordering: tuple[str, ...]
    hive_style: bool
    merge: Merge = LATER_COMMIT
    """Merging of two versions of a record."""
    missing_columns: str = MissingColumns.NULL
    """`Null` or `Refuse`, as in the HudiTable."""

    @classmethod
    def of(cls, told: contract.TableOfJob | AssignmentRecord) -> TableSpec:
        """The table of a job, or of an agent's assignment."""
        return cls(
            id=told.id,
            table=told.table,
            name=told.name,
            path=told.path.rstrip("/"),
            type=told.type,
            record_keys=told.record_key_fields,
            partitions=told.partition_fields,
            ordering=told.ordering_fields,
            hive_style=told.hive_style_partitioning,
            merge=Merge.of(told.merge, told.ordering_fields),
            missing_columns=told.missing_columns if isinstance(told, contract.TableOfJob) else MissingColumns.NULL,
        )


@dataclass(frozen=True)
class FilesSource:
    """Files to ingest; `max_files` None means everything in one commit."""

    format: str
    paths: tuple[str, ...]
    options: Mapping[str, str]
    max_files: int | None


@dataclass(frozen=True)
class HudiSource:
    """Another Hudi table, read incrementally; `max_commits` None means everything in one commit.

    `start_from` is `Earliest`, `Latest` or a completion time; `order` and `if_lost` have the values
    of the HudiWriter. `deletes`: rows that were deleted in that table are deleted here.
    """

    path: str
    start_from: str
    order: str
    max_commits: int | None
    if_lost: str
    deletes: bool = False
    merger: str = ""
    """The merger class of the source table, from its HudiTable; empty: unknown."""


@dataclass(frozen=True)
class KafkaSecurity:
    """Security settings for the brokers.

    `folder` holds the Secret's keys as files (empty: there is no Secret).
    """

    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    folder: str = ""


@dataclass(frozen=True)
class KafkaRegistry:
    """A registry that knows with which schema a value was written.

    `folder` holds the Secret's keys as files (empty: there is no Secret).
    """

    url: str
    folder: str = ""


@dataclass(frozen=True)
class KafkaSource:
    """Topics by name, or by pattern (exactly one is set); fields have the values of the HudiWriter.

    `max_offsets` None: no limit.
    """

    servers: tuple[str, ...]
    topics: tuple[str, ...]
    pattern: str
    start_from: str
    """`Earliest`, `Latest` or milliseconds since 1970."""
    max_offsets: int | None
    if_lost: str
    format: str
    schema: str
    metadata: bool
    security: KafkaSecurity = KafkaSecurity()
    options: Mapping[str, str] = field(default_factory=dict)
    registry: KafkaRegistry | None = None
    """None: values have no header of a registry."""
    bad: str = FAIL
    """What is done with records that cannot be written: `Fail`, `Drop` or `SetAside`."""
    max_bad: int = 0
    """More of them in one commit fail the attempt."""

    @classmethod
    def of(cls, told: contract.Kafka) -> KafkaSource:
        """The source of a job."""
        registry = told.value.registry
        return cls(
            servers=told.bootstrap_servers,
            topics=told.topics,
            pattern=told.topic_pattern,
            start_from=told.start_from,
            max_offsets=told.max_offsets_per_commit,
            if_lost=told.if_position_lost,
            format=told.value.format,
            schema=told.value.schema,
            metadata=told.value.metadata,
            security=KafkaSecurity(told.security.protocol, told.security.mechanism, told.security.folder),
            options=told.options,
            registry=KafkaRegistry(registry.url, registry.folder) if registry is not None else None,
            bad=told.on_bad_record.action if told.on_bad_record is not None else FAIL,
            max_bad=told.on_bad_record.max_per_commit if told.on_bad_record is not None else 0,
        )


@dataclass(frozen=True)
class JdbcSource:
    """A table or a query of a database (exactly one is set); fields have the values of the job.

    `column` empty: each run reads everything. `partitions` 1: one task reads.
    """

    engine: str
    host: str
    port: int
    database: str
    table: str
    query: str
    fetch_size: int
    tls: str
    folder: str
    column: str = ""
    start_from: str = "Earliest"
    lag: int = 0
    max_rows: int | None = None
    partition_column: str = ""
    partitions: int = 1

    @classmethod
    def of(cls, told: contract.Jdbc) -> JdbcSource:
        """The source of a job."""
        new, parts = told.incremental, told.partitioning
        return cls(
            engine=told.engine,
            host=told.host,
            port=told.port,
            database=told.database,
            table=told.table,
            query=told.query,
            fetch_size=told.fetch_size,
            tls=told.tls,
            folder=told.folder,
            column=new.column if new is not None else "",
            start_from=new.start_from if new is not None else "Earliest",
            lag=new.lag if new is not None else 0,
            max_rows=new.max_rows_per_commit if new is not None else None,
            partition_column=parts.column if parts is not None else "",
            partitions=parts.partitions if parts is not None else 1,
        )


@dataclass(frozen=True)
class PythonSource:
    """A user's function(spark, context)."""

    file: str
    function: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Application:
    """A user's program that does its own writes."""

    main_file: str
    arguments: tuple[str, ...]
    module: str = ""
    main_class: str = ""
    jar: str = ""
    """With `main_class`: the jar that has it."""

    @property
    def name(self) -> str:
        """The program in messages."""
        return self.main_class or self.module or self.main_file.rpartition("/")[2]


@dataclass(frozen=True)
class View:
    """The input of a query under `name`.

    The Hudi table at `path`, or files (exactly one is set).
    """

    name: str
    path: str
    files: FilesSource | None
    merger: str = ""
    """The merger class of the table, from its HudiTable; empty: unknown."""


@dataclass(frozen=True)
class SqlSource:
    """A SELECT over views."""

    query: str
    views: tuple[View, ...]


Source = FilesSource | HudiSource | PythonSource | SqlSource | KafkaSource | JdbcSource


@dataclass(frozen=True)
class Job:
    """One attempt of a HudiWriter."""

    writer: str
    attempt: str
    number: int
    run: str
    """Uid of the HudiWriter and number of the run. Attempts of one run share its commits; another
    run starts over, also when the HudiWriter was deleted and applied again (F97).
    """
    table: TableSpec
    source: Source | None
    transform: str | None
    operation: str
    application: Application | None
    in_process_retries: int
    options: Mapping[str, str]
    partitions: tuple[str, ...] = ()
    """The partitions that the writer may write, as patterns of partition paths without field names;
    empty: all.
    """
    serialize_after: int = 0
    """Number of consecutive races lost to one other writer before the two take turns; 0: never."""
    early_detection: bool = False
    """Whether a write stops when it meets the marker of a pending one."""
    duplicates: str = Duplicates.FAIL
    """For an operation without key lookup: `Fail`, `Drop` or `Allow` a key that already exists."""
    may_truncate: bool = False
    """Whether a batch without rows may replace the rows of the table."""
    validations: tuple[Validation, ...] = ()
    """Conditions that each batch must meet before it is written."""
    interval: int | None = None
    """Seconds between two reads of the source in a streaming run; None: the run ends when its
    source has no more data.
    """
    predecessor_seconds: int = 900
    """Seconds for which it waits for the lock of an earlier attempt."""
    deps: contract.Dependencies | None = None
    """What user code brings along; None: nothing."""

    @property
    def runs_user_code(self) -> bool:
        """Whether code of the user runs in this driver: it may write rows itself."""
        return self.application is not None or isinstance(self.source, PythonSource)

    @property
    def inserts(self) -> bool:
        """Whether the operation has no key lookup in Hudi."""
        return self.operation in (Operation.INSERT, Operation.BULK_INSERT)

    @property
    def overwrites(self) -> bool:
        """Whether its batch replaces the rows of whole partitions: its keys are in no other row."""
        return self.operation in (Operation.INSERT_OVERWRITE, Operation.INSERT_OVERWRITE_TABLE)

    @property
    def adds(self) -> bool:
        """Whether each row of the batch becomes a separate record, and none deletes one."""
        return self.inserts or self.overwrites

    @property
    def looks_up(self) -> bool:
        """Whether the runtime looks keys up instead of Hudi."""
        return self.inserts and self.duplicates != Duplicates.ALLOW

    @classmethod
    def from_json(cls, data: object) -> Job:
        """Parse job.json. Raises ShapeError with field and rule."""
        return cls.of(contract.JobRecord.from_json(data))

    @classmethod
    def of(cls, told: contract.JobRecord) -> Job:
        """The attempt of a parsed job.json."""
        return cls(
            writer=f"{told.writer.namespace}/{told.writer.name}",
            attempt=told.attempt.id,
            number=told.attempt.number,
            run=f"{told.writer.uid}/{told.run}",
            table=TableSpec.of(told.table),
            source=_source(told.source),
            transform=told.transform.sql if told.transform is not None else None,
            operation=told.operation,
            application=_application(told.application) if told.application is not None else None,
            deps=told.deps,
            in_process_retries=told.conflict.in_process,
            options=told.hudi_options,
            partitions=told.partitions,
            serialize_after=told.conflict.serialize_after,
            early_detection=told.conflict.early_detection,
            duplicates=told.duplicates,
            may_truncate=told.may_truncate,
            validations=told.validations,
            interval=told.streaming.interval_seconds if told.streaming is not None else None,
            predecessor_seconds=told.predecessor_seconds,
        )


def _application(told: contract.Application) -> Application:
    return Application(told.main_file, told.arguments, told.module, told.main_class, told.jar)


def _source(told: contract.Source | None) -> Source | None:
    """Raises ShapeError when this version does not know the source."""
    if told is None:
        return None
    if told.files is not None:
        return _files(told.files)
    if (hudi := told.hudi) is not None:
        carries = hudi.deletes == Deletes.CARRY
        lost, most = hudi.if_position_lost, hudi.max_commits_per_batch
        return HudiSource(
            hudi.path.rstrip("/"), hudi.start_from, hudi.order, most, lost, deletes=carries, merger=hudi.merger
        )
    if told.kafka is not None:
        return KafkaSource.of(told.kafka)
    if told.jdbc is not None:
        return JdbcSource.of(told.jdbc)
    if told.sql is not None:
        return SqlSource(told.sql.query, tuple(_view(view) for view in told.sql.views))
    if told.python is not None:
        return PythonSource(told.python.file, told.python.function, told.python.arguments)
    raise ShapeError(
        f"JobRecord.source: one of {', '.join(one.name for one in fields_of(contract.Source))} is needed, found "
        f"{', '.join(told.more) or 'none'}"
    )


def _view(told: contract.View) -> View:
    path, merger = (told.hudi.path, told.hudi.merger) if told.hudi is not None else ("", "")
    return View(told.name, path, _files(told.files) if told.files is not None else None, merger=merger)


def _files(told: contract.Files) -> FilesSource:
    return FilesSource(told.format, told.paths, told.options, told.max_files_per_commit)


def load() -> Job:
    """Read the job; `HUDI_OPERATOR_JOB` names another file (tests)."""
    path = Path(os.environ.get(JOB, DEFAULT_PATH))
    return Job.from_json(json.loads(path.read_text(encoding="utf-8")))
