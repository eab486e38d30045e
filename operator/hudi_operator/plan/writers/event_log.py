"""Where Spark's event log of a writer may be (F208).

The driver writes it with the table's credentials, so its folder is held to the rules for paths of
tables, and no table's files are there. The CRD has the rules that need nothing but the value.
"""

from __future__ import annotations

from hudi_contract import naming, options
from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.plan.core.view import View
from hudi_operator.plan.gate.stalled import path_problem

_FOLDER = "spark.eventlog.dir"


def problem(view: View, writer: WriterSpec) -> str:
    """Why the event log may not be where the writer wants it (field, value, rule).

    Empty when it may.
    """
    named = [(name, folder) for name, folder in writer.spark_conf.items() if options.normal(name) == _FOLDER]
    problems = (_problem(view, f"spec.sparkConf[{name!r}]", folder) for name, folder in named)
    return next((found for found in problems if found), "")


def _problem(view: View, field: str, folder: str) -> str:
    if folder != folder.strip():
        return f"{field}: {folder!r} must not begin or end with white space"
    if found := path_problem(folder, view.table.ref.namespace, view.config, field=field):
        return found
    table = next((t for t in _tables(view) if naming.overlaps(folder, t.path)), None)
    if table is None:
        return ""
    return (
        f"{field}: {folder} overlaps with the folder of HudiTable {table.ref.name}; it is for the table's files alone"
    )


def _tables(view: View) -> list[TableSpec]:
    """The writer's own table, and those that writers of this table read."""
    return [view.table, *(read.spec for read in view.observed.source_specs.values() if read.spec is not None)]
