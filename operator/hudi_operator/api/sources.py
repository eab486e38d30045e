"""Sources of a HudiWriter: the fields of ``spec.source``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_contract.allowed_options import READER_OPTIONS as READER_OPTIONS
from hudi_contract.words import Deletes
from hudi_operator.api.fields import NAME, number, record, records, text, text_map, texts

JsonDict = dict[str, Any]

_PATH = (1, 1024)

_KNOWN = frozenset(name.lower() for name in READER_OPTIONS)


def options_problem(options: Mapping[str, str], field: str) -> str:
    """Why one of a reader's options may not be set (field, name and rule); empty when all may."""
    unknown = next((name for name in sorted(options) if name.lower() not in _KNOWN), None)
    if unknown is not None:
        return f"{field}.options[{unknown!r}]: is not an option of Spark's readers that may be set"
    return ""


def base_path(options: Mapping[str, str]) -> str | None:
    """The folder from which names of folders are columns; None when it is not set."""
    return next((value for name, value in options.items() if name.lower() == "basepath"), None)


@dataclass(frozen=True)
class ViewFiles:
    """Files read as one DataFrame."""

    format: str = text(required=True, choices=("csv", "parquet", "json", "orc", "avro"))
    paths: tuple[str, ...] = texts(required=True, at_least=1, at_most=4, length=_PATH, distinct=True)
    options: Mapping[str, str] = text_map(at_most=32, longest=8192)


@dataclass(frozen=True)
class FilesSource(ViewFiles):
    """The same, in commits of at most ``max_files_per_commit`` files (None: all at once)."""

    paths: tuple[str, ...] = texts(required=True, at_least=1, at_most=64, length=_PATH, distinct=True)
    max_files_per_commit: int | None = number(unset=None, at_least=1, at_most=100_000)


@dataclass(frozen=True)
class HudiSource:
    """Another Hudi table: a HudiTable of the namespace or a path (exactly one is set).

    It is read in batches of commits (None: all at once).
    """

    table: str = text(at="tableRef.name", unset="", required=True, at_least=1, at_most=63, matches=NAME)
    path: str = text(at_least=_PATH[0], at_most=_PATH[1])
    start_from: str = text("Earliest", at_most=17, matches="^(Earliest|Latest|[0-9]{17})$")
    order: str = text("CompletionTime", choices=("CompletionTime", "Fenced", "OutOfOrder"))
    max_commits_per_batch: int | None = number(unset=None, at_least=1, at_most=10_000)
    if_position_lost: str = text("Fail", choices=("Fail", "Snapshot"))
    deletes: str = text(Deletes.IGNORE, choices=Deletes)
    """``Carry``: records that were deleted from the source are deleted from the table."""
    merger: str = ""
    """The class that merges the HudiTable; known when it was looked up."""


@dataclass(frozen=True)
class View:
    """A view that a query reads as ``name``.

    A HudiTable of the namespace, a Hudi table at a path, or files (exactly one is set).
    """

    name: str = text(required=True, at_least=1, at_most=63, matches="^[a-z_][a-z0-9_]*$")
    table: str = text(at="hudi.tableRef.name", unset="", required=True, at_least=1, at_most=63, matches=NAME)
    path: str = text(at="hudi.path", at_least=_PATH[0], at_most=_PATH[1])
    files: ViewFiles | None = record(ViewFiles, optional=True)
    """None when it is a Hudi table."""
    merger: str = ""
    """The class that merges the HudiTable; known when it was looked up."""


@dataclass(frozen=True)
class SqlSource:
    """A SELECT over views, one commit per run."""

    query: str = text(required=True, at_least=1, at_most=65536)
    views: tuple[View, ...] = records(View, at_most=16, by="name")


@dataclass(frozen=True)
class ConfigMapKey:
    """One key of a ConfigMap in the writer's namespace."""

    name: str = text(required=True, at_least=1, at_most=253, pattern=NAME)
    key: str = text(required=True, at_least=1, at_most=253, matches="^[A-Za-z0-9_][A-Za-z0-9_.-]*[.]py$")


@dataclass(frozen=True)
class PythonSource:
    """A function ``(spark, context) -> DataFrame`` in a ConfigMap."""

    config_map: ConfigMapKey = record(ConfigMapKey, at="configMapKeyRef", required=True)
    function: str = text(required=True, at_least=1, at_most=128, matches="^[A-Za-z_][A-Za-z0-9_]*$")
    arguments: Mapping[str, str] = text_map(at_most=32, longest=8192)
