"""Allowed folders for Spark's event log of a writer (F208).

The driver writes it with the table's credentials, so its folder is held to the rules for paths of
tables, and no table's files are there. The CRD has the rules that need nothing but the value.
"""

from __future__ import annotations

from hudi_contract import naming, options
from hudi_operator.api.defaults import WHERE
from hudi_operator.api.spec import WriterSpec
from hudi_operator.plan.core.view import View
from hudi_operator.plan.gate.stalled import path_problem

_FOLDER = "spark.eventlog.dir"


def problem(view: View, writer: WriterSpec) -> str:
    """Why the event log may not be where the writer wants it (field, value, rule).

    Empty when it may.
    """
    for name, folder in folders(writer):
        field = f"spec.sparkConf[{name!r}]"
        if found := _problem(view, field, folder):
            return f"{found} ({WHERE})" if field in writer.from_defaults else found
    return ""


def folders(writer: WriterSpec) -> list[tuple[str, str]]:
    """Each folder of an event log that the writer names, with the setting as it is spelled."""
    return [(name, folder) for name, folder in writer.spark_conf.items() if options.normal(name) == _FOLDER]


def _problem(view: View, field: str, folder: str) -> str:
    if folder != folder.strip():
        return f"{field}: {folder!r} must not begin or end with white space"
    if found := path_problem(folder, view.table.ref.namespace, view.config, field=field):
        return found
    if not (tables := _tables_at(view, folder)):
        return ""
    # A user who can create a HudiWriter must not learn about other namespaces.
    mine = [
        name for namespace, _, name in (key.partition("/") for key in tables) if namespace == view.table.ref.namespace
    ]
    whose = f"HudiTable {mine[0]}" if mine else "another HudiTable"
    return f"{field}: {folder} overlaps with the folder of {whose}; it is for the table's files alone"


def _tables_at(view: View, folder: str) -> list[str]:
    """HudiTables (``ns/name``) in whose folder it would be.

    Of the writer's own table and those that are read the look knows whatever the index says.
    """
    read = (table.spec for table in view.observed.source_specs.values() if table.spec is not None)
    known = [t.ref.key for t in (view.table, *read) if naming.overlaps(folder, t.path)]
    return [*known, *view.observed.tables_at_event_logs.get(folder, ())]
