"""A program that runs random statements on its table, and compares the rows after each of them with
those that the statement must leave.

Arguments: the seed, the number of steps, the file for what came of them, and what `Statements`
takes, as JSON. The file has JSON with the steps that succeeded by kind, those that were refused
with the beginning of the message, and, if the rows were other ones, the step (`wrong`), with which
the program ends.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hudi_runtime.api import current_context
from hudi_runtime.process.errors import describe_causes, java_causes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tests.support.random_statements import Row, Rows, Step

# The runtime's processes do not find the tests' packages.
_FILE = Path(__file__).resolve().parents[3] / "support" / "random_statements.py"
_spec = importlib.util.spec_from_file_location("random_statements", _FILE)
assert _spec is not None
assert _spec.loader is not None
random_statements = sys.modules["random_statements"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(random_statements)

SCHEMA = "id string, p string, v string, ts long"

current = current_context()
spark = current.spark


kept: list[DataFrame] = []
"""The frame of the last step that read."""


def carry_out(step: Step) -> None:
    """Run the statement, read or write the rows."""
    if step.sql:
        spark.sql(step.sql)
        return
    if step.read:
        spark.read.format("hudi").load(current.table_path).createOrReplaceTempView("r")
        frame = spark.sql(step.read)
        if step.cached:
            frame.cache().count()
        kept[:] = [frame]
        return
    operation, rows = ("upsert", ()) if step.saves_read else step.save
    frame = kept.pop() if step.saves_read else spark.createDataFrame(list(rows), SCHEMA).coalesce(1)
    options = {**current.table_options(), "hoodie.datasource.write.operation": operation}
    frame.write.format("hudi").options(**options).mode("append").save(current.table_path)


def found(prefix: str) -> list[Row]:
    """The table's rows with such keys; a record that is there twice is in it twice."""
    rows = spark.sql(f"SELECT id, p, v, ts FROM t WHERE id LIKE '{prefix}%'").collect()
    return sorted(
        ((row.id, row.p, row.v, row.ts) for row in rows),
        key=lambda row: (row[1], row[0], row[3]),
    )


def main(seed: str, steps: str, results: str, options: str) -> None:
    how = json.loads(options)
    statements = random_statements.Statements(int(seed), **how)
    told: dict[str, Any] = {"succeeded": {}, "refused": [], "wrong": None, "rows": []}
    begin = statements.first()
    carry_out(begin)
    # Not before: a table without rows has no columns.
    spark.sql(f"CREATE TABLE IF NOT EXISTS t USING hudi LOCATION '{current.table_path}'")
    rows: Rows = begin.after
    for number in range(int(steps)):
        step = statements.step(rows)
        at, said = time.monotonic(), ""
        try:
            carry_out(step)
        except Exception as error:
            causes = java_causes(error)
            said = describe_causes(causes) if causes else str(error)
        is_there = found(how.get("prefix", "k"))
        left = rows if said else step.leaves({(row[1], row[0]) for row in is_there})
        wanted = sorted(left.values(), key=lambda row: (row[1], row[0], row[3]))
        what = step.sql or step.read or f"{step.kind} {step.save[1]}"
        print(f"STEP {number} ({time.monotonic() - at:.1f} s) {what}: {said[:300] or 'succeeded'}", flush=True)
        if is_there != wanted:
            told["wrong"] = {"step": what, "said": said[:2000], "before": sorted(rows.values()), "is": is_there}
            told["wrong"]["must"] = wanted
            break
        if said:
            told["refused"].append([step.kind, what, said[:500]])
        else:
            told["succeeded"][step.kind] = told["succeeded"].get(step.kind, 0) + 1
            rows = left
    told["rows"] = sorted(rows.values())
    with open(results, "w", encoding="utf-8") as file:
        json.dump(told, file)


main(*sys.argv[1:])
