"""What a HudiWriter reads: the fields of ``spec.source``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_operator.api.fields import get, string_map, strings

JsonDict = dict[str, Any]


@dataclass(frozen=True)
class FilesSource:
    """Files read as one DataFrame, in commits of at most ``max_files_per_commit`` files (None: all at once)."""

    format: str
    paths: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    max_files_per_commit: int | None = None


@dataclass(frozen=True)
class HudiSource:
    """Another Hudi table: a HudiTable of the namespace or a path (exactly one is set), read in batches of commits (None: all at once)."""

    table: str = ""
    path: str = ""
    start_from: str = "Earliest"
    order: str = "CompletionTime"
    max_commits_per_batch: int | None = None
    if_position_lost: str = "Fail"
    deletes: str = "Ignore"
    """``Carry``: what was deleted from the source is deleted from the table."""
    merger: str = ""
    """The class that merges the HudiTable; known when it was looked up."""


@dataclass(frozen=True)
class View:
    """What a query sees under ``name``: a HudiTable of the namespace, a Hudi table at a path, or files (exactly one is set)."""

    name: str
    table: str = ""
    path: str = ""
    files: FilesSource | None = None
    """None when it is a Hudi table."""
    merger: str = ""
    """The class that merges the HudiTable; known when it was looked up."""


@dataclass(frozen=True)
class SqlSource:
    """A SELECT over views, one commit per run."""

    query: str
    views: tuple[View, ...] = ()


@dataclass(frozen=True)
class ConfigMapKey:
    """One key of a ConfigMap in the writer's namespace."""

    name: str
    key: str


@dataclass(frozen=True)
class PythonSource:
    """A function ``(spark, context) -> DataFrame`` in a ConfigMap."""

    config_map: ConfigMapKey
    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def files(source: JsonDict) -> FilesSource | None:
    """``source.files``; None when there is none."""
    return _files(source.get("files"), "spec.source.files")


def _files(raw: JsonDict | None, where: str) -> FilesSource | None:
    if raw is None:
        return None
    limit = get(raw, "maxFilesPerCommit", int, 0, where)
    return FilesSource(
        format=get(raw, "format", str, "parquet", where),
        paths=strings(raw, "paths", where),
        options=string_map(raw, "options", where),
        max_files_per_commit=limit or None,
    )


def hudi(source: JsonDict) -> HudiSource | None:
    """``source.hudi``; None when there is none."""
    raw, where = source.get("hudi"), "spec.source.hudi"
    if raw is None:
        return None
    default = HudiSource()
    return HudiSource(
        table=get(get(raw, "tableRef", dict, {}, where), "name", str, "", f"{where}.tableRef"),
        path=get(raw, "path", str, "", where),
        start_from=get(raw, "startFrom", str, default.start_from, where),
        order=get(raw, "order", str, default.order, where),
        max_commits_per_batch=get(raw, "maxCommitsPerBatch", int, 0, where) or None,
        if_position_lost=get(raw, "ifPositionLost", str, default.if_position_lost, where),
        deletes=get(raw, "deletes", str, default.deletes, where),
    )


def sql(source: JsonDict) -> SqlSource | None:
    """``source.sql``; None when there is none."""
    raw, where = source.get("sql"), "spec.source.sql"
    if raw is None:
        return None
    views = [_view(view, f"{where}.views[{number}]") for number, view in enumerate(get(raw, "views", list, [], where))]
    return SqlSource(query=get(raw, "query", str, "", where), views=tuple(views))


def _view(raw: JsonDict, where: str) -> View:
    table = get(raw, "hudi", dict, {}, where)
    return View(
        name=get(raw, "name", str, "", where),
        table=get(get(table, "tableRef", dict, {}, f"{where}.hudi"), "name", str, "", f"{where}.hudi.tableRef"),
        path=get(table, "path", str, "", f"{where}.hudi"),
        files=_files(raw.get("files"), f"{where}.files"),
    )


def config_map_key(raw: JsonDict, where: str) -> ConfigMapKey:
    """``configMapRef`` of the object at ``where``."""
    ref = get(raw, "configMapRef", dict, {}, where)
    return ConfigMapKey(get(ref, "name", str, "", where), get(ref, "key", str, "", where))


def python(source: JsonDict) -> PythonSource | None:
    """``source.python``; None when there is none."""
    raw, where = source.get("python"), "spec.source.python"
    if raw is None:
        return None
    return PythonSource(
        config_map=config_map_key(raw, where),
        function=get(raw, "function", str, "", where),
        arguments=get(raw, "arguments", dict, {}, where),
    )
