"""Hudi tables that writers read from, and whether a writer may and can read them.

They are named by ``source.hudi`` and by the views of ``source.sql``.

A writer has only its own table's access to storage, so its sources must be reachable
with that access.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hudi_contract import naming
from hudi_contract.words import ApiTableType, Deletes, MergeMode, PartialUpdates
from hudi_operator.api import dependencies
from hudi_operator.api.sources import ViewFiles, base_path, options_problem
from hudi_operator.api.spec import SpecError, StorageSpec, TableSpec, WriterSpec
from hudi_operator.model import conditions
from hudi_operator.plan.core.view import View
from hudi_operator.plan.gate.stalled import path_problem
from hudi_operator.plan.requests import restores
from hudi_operator.plan.writers.block import Block


@dataclass(frozen=True)
class Reference:
    """One table that a writer reads.

    The field that names it, and a HudiTable of the namespace or a path (exactly one is set).
    """

    field: str
    table: str
    path: str
    itself: bool = False
    """Whether it may be the writer's own table."""


def references(writer: WriterSpec) -> list[Reference]:
    """Tables that the writer reads, in the order of its spec."""
    found = []
    if writer.hudi is not None:
        # It would read its own commits again in every following run.
        found.append(Reference("spec.source.hudi", writer.hudi.table, writer.hudi.path))
    for number, view in enumerate(writer.sql.views if writer.sql is not None else ()):
        if view.files is None:
            found.append(Reference(f"spec.source.sql.views[{number}].hudi", view.table, view.path, itself=True))
    return found


def problem(view: View, writer: WriterSpec) -> str:
    """Why this writer may not read one of its sources (field, value, rule).

    Empty when it may, or when that is still unknown.
    """
    return (
        _contradiction(writer)
        or next((found for reference in references(writer) if (found := _problem(view, reference))), "")
        or _files_problem(view, writer)
        or _deps_problem(view, writer)
        or _deletes_problem(view, writer)
    )


def _contradiction(writer: WriterSpec) -> str:
    """Two fields of `source.hudi` that do not go together, as in the CRD; empty: none."""
    source = writer.hudi
    if source is None:
        return ""
    if source.order != "CompletionTime" and source.start_from not in ("Earliest", "Latest"):
        return (
            f"spec.source.hudi.startFrom: {source.start_from!r} is a completion time and cannot be combined with "
            f"order {source.order}: use Earliest or Latest"
        )
    if source.deletes == Deletes.CARRY and source.if_position_lost == "Snapshot":
        return "spec.source.hudi.deletes: Carry cannot be combined with ifPositionLost Snapshot: use Fail"
    if source.deletes == Deletes.CARRY and writer.operation != "Upsert":
        return f"spec.operation: {writer.operation} cannot be combined with source.hudi.deletes Carry: use Upsert"
    return ""


def _files_problem(view: View, writer: WriterSpec) -> str:
    """Files are held to the rules for paths of tables: a pod's own files are no source (F130)."""
    sources: list[tuple[str, ViewFiles]] = [("spec.source.files", writer.files)] if writer.files is not None else []
    for number, each in enumerate(writer.sql.views if writer.sql is not None else ()):
        if each.files is not None:
            sources.append((f"spec.source.sql.views[{number}].files", each.files))
    named = [(f"{field}.paths[{at}]", path) for field, files in sources for at, path in enumerate(files.paths)]
    namespace = view.table.ref.namespace
    problems = (path_problem(path, namespace, view.config, field=field, pattern=True) for field, path in named)
    return next((found for found in problems if found), "") or next(
        (found for field, files in sources if (found := _reader_problem(view, field, files))), ""
    )


def _deps_problem(view: View, writer: WriterSpec) -> str:
    """Jars, Python packages and files of a store are held to the same rules."""
    if writer.deps is not None and writer.deps.packages and not view.config.maven_mirror:
        return "spec.deps.packages: the administrator has named no Maven repository (the chart's config.mavenMirror)"
    named = dependencies.stored(writer.application, writer.deps)
    problems = (path_problem(path, view.table.ref.namespace, view.config, field=field) for field, path in named)
    return next((found for found in problems if found), "")


def _reader_problem(view: View, field: str, files: ViewFiles) -> str:
    base = base_path(files.options)
    return options_problem(files.options, field) or (
        path_problem(base, view.table.ref.namespace, view.config, field=f"{field}.options['basePath']", pattern=True)
        if base is not None
        else ""
    )


def _deletes_problem(view: View, writer: WriterSpec) -> str:
    """Why deletes of the source cannot be carried over to this table.

    Empty when they can, or are not carried over, or when that is still unknown.
    """
    if writer.hudi is None or writer.hudi.deletes != Deletes.CARRY:
        return ""
    source = _table(view, writer.hudi.table) if writer.hudi.table else None
    merged = ApiTableType.MERGE_ON_READ
    if source is not None and source.type == merged and source.merge.mode == MergeMode.CUSTOM:
        return (
            f"spec.source.hudi.deletes: Carry: HudiTable {source.ref.name}, the source, is of type MergeOnRead with "
            "merge.mode Custom: its class decides at"
            " each read what is deleted, and its files do not show it; use deletes Ignore"
        )
    if view.table.type == merged and view.table.merge.partial_updates == PartialUpdates.IGNORE_NULLS:
        return (
            f"spec.source.hudi.deletes: Carry: HudiTable {view.table.ref.name} is of type MergeOnRead with "
            "merge.partialUpdates IgnoreNulls, from which no"
            " records can be deleted: a record that is inserted again would get its old values back; use a "
            "CopyOnWrite table, or deletes Ignore"
        )
    return ""


def _problem(view: View, reference: Reference) -> str:
    field, path = f"{reference.field}.path", reference.path
    if reference.table:
        field = f"{reference.field}.tableRef"
        try:
            source = _table(view, reference.table)
        except SpecError as error:
            return f"{field}: HudiTable {reference.table} is invalid: {error}"
        if source is None:
            return ""
        missing = _missing_access(source.storage, view.table.storage)
        if missing:
            own = f"HudiTable {view.table.ref.name} does not have: a writer uses its own table's access"
            return f"{field}: HudiTable {source.ref.name} needs {missing}, which {own}"
        path = source.path
    if naming.path_scheme(path) != naming.path_scheme(view.table.path):
        return f"{field}: {path} has another scheme than {view.table.path}: a writer uses its own table's storage"
    if not reference.itself and naming.table_id(path) == view.table.table_id:
        return f"{field}: {path} is the table that this writer writes to"
    return path_problem(path, view.table.ref.namespace, view.config, field=field)


def waits_for(view: View, writer: WriterSpec) -> Block | None:
    """Why the writer waits for a missing source; None when all sources exist."""
    for name in (reference.table for reference in references(writer) if reference.table):
        found = view.observed.source_tables.get(name)
        if found is None:
            return Block(
                "SourceNotFound", f"HudiTable {name}, the source, does not exist in this namespace", f"table {name}"
            )
        if not (found.get("status") or {}).get("timeline"):
            return Block("SourceNotReady", f"HudiTable {name}, the source, has not been created yet", f"table {name}")
        if conditions.find(found.get("status") or {}, "Bootstrapped").get("status") == "False":
            return Block("SourceNotReady", f"HudiTable {name}, the source, is not bootstrapped yet", f"table {name}")
        if conditions.find(found.get("status") or {}, "Ready").get("reason") == restores.REASON:
            return Block("SourceNotReady", f"HudiTable {name}, the source, is being restored", f"table {name}")
    return None


def resolved(view: View, writer: WriterSpec) -> WriterSpec | None:
    """The writer with the paths of its sources and their merger classes.

    None while a source is missing.
    """
    paths: dict[str, str] = {}
    mergers: dict[str, str] = {}
    for reference in references(writer):
        path = reference.path
        if reference.table:
            source = _table(view, reference.table)
            if source is None:
                return None
            path, mergers[reference.table] = source.path, source.merge.class_name
        paths[reference.table or reference.path] = naming.canonical_path(path)
    if writer.hudi is not None:
        hudi = writer.hudi
        writer = replace(
            writer, hudi=replace(hudi, path=paths[hudi.table or hudi.path], merger=mergers.get(hudi.table, ""))
        )
    if writer.sql is not None:
        views = tuple(
            v if v.files is not None else replace(v, path=paths[v.table or v.path], merger=mergers.get(v.table, ""))
            for v in writer.sql.views
        )
        writer = replace(writer, sql=replace(writer.sql, views=views))
    return writer


def _table(view: View, name: str) -> TableSpec | None:
    """The HudiTable of that name; None when it does not exist. Raises SpecError."""
    found = view.observed.source_specs.get(name)
    if found is not None and found.spec is None:
        raise SpecError(found.error)
    return None if found is None else found.spec


def _missing_access(source: StorageSpec, target: StorageSpec) -> str:
    """Access that the source's storage needs beyond the target's; empty when none."""
    if source.service_account_name != target.service_account_name:
        return f"serviceAccountName {source.service_account_name or '(default)'}"
    refs = [f"secretRef {ref.name} as {ref.as_kind}" for ref in source.secret_refs if ref not in target.secret_refs]
    options = [
        f"option {key} with its value"
        for key, value in sorted(source.options.items())
        if target.options.get(key) != value
    ]
    return next(iter([*refs, *options]), "")
