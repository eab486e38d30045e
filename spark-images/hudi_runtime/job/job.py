"""The attempt as the operator describes it: `/etc/hudi/job/job.json` (contracts, section 6)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hudi_runtime.job.merging import LATER_COMMIT, Merge

DEFAULT_PATH = "/etc/hudi/job/job.json"
REMOVE_DUPLICATES = "remove_duplicates"
"""The operation that leaves one record of each key; Hudi has none of that name."""


@dataclass(frozen=True)
class TableSpec:
    """The table as far as a writer or an agent must know it."""

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
    """Which of two versions of a record stays."""
    missing_columns: str = "Null"
    """`Null` or `Refuse`, as in the HudiTable."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TableSpec:
        """From job.json's `table`, or from an agent's assignment (which calls the id `T`)."""
        return cls(
            id=data.get("id") or data["T"],
            table=data["table"],
            name=data["name"],
            path=data["path"].rstrip("/"),
            type=data["type"],
            record_keys=tuple(data["recordKeyFields"]),
            partitions=tuple(data.get("partitionFields") or ()),
            ordering=tuple(data.get("orderingFields") or ()),
            hive_style=bool(data.get("hiveStylePartitioning", False)),
            merge=Merge.from_json(data.get("merge"), tuple(data.get("orderingFields") or ())),
            missing_columns=data.get("missingColumns") or "Null",
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

    `start_from` is `Earliest`, `Latest` or a completion time; `order` and `if_lost` are spelled as in the HudiWriter. `deletes`: what was deleted
    there is deleted here.
    """

    path: str
    start_from: str
    order: str
    max_commits: int | None
    if_lost: str
    deletes: bool = False
    merger: str = ""
    """The class that merges it, as its HudiTable says; empty: that is not known."""


@dataclass(frozen=True)
class KafkaSecurity:
    """How the brokers are talked to; `folder` holds the Secret's keys as files (empty: there is no Secret)."""

    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    folder: str = ""


@dataclass(frozen=True)
class KafkaSource:
    """Topics by name, or by pattern (exactly one is set); fields are spelled as in the HudiWriter. `max_offsets` None: no bound."""

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

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> KafkaSource:
        """From job.json; raises KeyError for a missing required field."""
        security, value = data.get("security") or {}, data["value"]
        return cls(
            servers=tuple(data["bootstrapServers"]),
            topics=tuple(data.get("topics") or ()),
            pattern=data.get("topicPattern") or "",
            start_from=str(data["startFrom"]),
            max_offsets=data.get("maxOffsetsPerCommit"),
            if_lost=data["ifPositionLost"],
            format=value["format"],
            schema=value.get("schema") or "",
            metadata=bool(value.get("metadata")),
            security=KafkaSecurity(security.get("protocol") or "PLAINTEXT", security.get("mechanism") or "", security.get("folder") or ""),
            options=dict(data.get("options") or {}),
        )


@dataclass(frozen=True)
class PythonSource:
    """A user's function(spark, context)."""

    file: str
    function: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Application:
    """A user's program that writes by itself."""

    main_file: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """What a query sees under `name`: the Hudi table at `path`, or files (exactly one is set)."""

    name: str
    path: str
    files: FilesSource | None
    merger: str = ""
    """The class that merges the table, as its HudiTable says; empty: that is not known."""


@dataclass(frozen=True)
class SqlSource:
    """A SELECT over views."""

    query: str
    views: tuple[View, ...]


Source = FilesSource | HudiSource | PythonSource | SqlSource | KafkaSource


@dataclass(frozen=True)
class Job:
    """One attempt of a HudiWriter."""

    writer: str
    attempt: str
    number: int
    run: int
    """Attempts of one run share what was committed; another run begins anew."""
    table: TableSpec
    source: Source | None
    transform: str | None
    operation: str
    application: Application | None
    in_process_retries: int
    options: Mapping[str, str]
    partitions: tuple[str, ...] = ()
    """Patterns of partition paths without names of fields: the partitions that it may write; empty: any."""
    serialize_after: int = 0
    """Races in a row that it loses to one other writer before the two take turns; 0: never."""
    early_detection: bool = False
    """Whether a write stops when it meets the marker of a pending one."""
    duplicates: str = "Fail"
    """Of an operation that looks no key up: `Fail`, `Drop` or `Allow` a key that is there already."""
    interval: int | None = None
    """Seconds between two looks at the source of a run that does not end; None: the run ends when its source has nothing more."""

    @property
    def inserts(self) -> bool:
        """Whether Hudi looks no key up."""
        return self.operation in ("insert", "bulk_insert")

    @property
    def looks_up(self) -> bool:
        """Whether the runtime does it instead."""
        return self.inserts and self.duplicates != "Allow"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """Parse job.json; raises KeyError for a missing required field."""
        writer = data["writer"]
        application = data.get("application")
        return cls(
            writer=f"{writer['namespace']}/{writer['name']}",
            attempt=data["attempt"]["id"],
            number=int(data["attempt"]["number"]),
            run=int(data.get("run") or 1),
            table=TableSpec.from_json(data["table"]),
            source=_source(data.get("source")),
            transform=(data.get("transform") or {}).get("sql"),
            operation=data.get("operation") or "upsert",
            application=Application(application["mainFile"], tuple(application.get("arguments") or ())) if application else None,
            in_process_retries=int((data.get("conflict") or {}).get("inProcess", 3)),
            options={str(key): str(value) for key, value in (data.get("hudiOptions") or {}).items()},
            partitions=tuple(data.get("partitions") or ()),
            serialize_after=int((data.get("conflict") or {}).get("serializeAfter", 0)),
            early_detection=bool((data.get("conflict") or {}).get("earlyDetection", False)),
            duplicates=data.get("duplicates") or "Fail",
            interval=(data.get("streaming") or {}).get("intervalSeconds"),
        )


def _source(data: Mapping[str, Any] | None) -> Source | None:
    if not data:
        return None
    if files := data.get("files"):
        return _files(files)
    if hudi := data.get("hudi"):
        return HudiSource(
            hudi["path"].rstrip("/"),
            hudi["startFrom"],
            hudi["order"],
            hudi.get("maxCommitsPerBatch"),
            hudi["ifPositionLost"],
            deletes=hudi.get("deletes") == "Carry",
            merger=hudi.get("merger") or "",
        )
    if kafka := data.get("kafka"):
        return KafkaSource.from_json(kafka)
    if sql := data.get("sql"):
        return SqlSource(sql["query"], tuple(_view(view) for view in sql["views"]))
    python = data["python"]
    return PythonSource(python["file"], python["function"], dict(python.get("arguments") or {}))


def _view(data: Mapping[str, Any]) -> View:
    hudi = data.get("hudi") or {}
    return View(data["name"], hudi.get("path", ""), _files(data["files"]) if data.get("files") else None, merger=hudi.get("merger") or "")


def _files(data: Mapping[str, Any]) -> FilesSource:
    options = {str(key): str(value) for key, value in (data.get("options") or {}).items()}
    return FilesSource(data["format"], tuple(data["paths"]), options, data.get("maxFilesPerCommit"))


def load() -> Job:
    """Read the job; `HUDI_OPERATOR_JOB` names another file (tests)."""
    path = Path(os.environ.get("HUDI_OPERATOR_JOB", DEFAULT_PATH))
    return Job.from_json(json.loads(path.read_text(encoding="utf-8")))
