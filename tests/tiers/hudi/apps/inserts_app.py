"""A program that inserts rows that are deletes, and old dates in a session that it has set so.

One way after the other, each with a key of its own. Argument: the file for what came of each.
"""

from __future__ import annotations

import json
import sys
from datetime import date

from hudi_runtime.api import current_context
from hudi_runtime.process.errors import classify_causes, describe_causes, java_causes

OPERATION = "hoodie.datasource.write.operation"
ROW_WRITER = "hoodie.datasource.write.row.writer.enable"
ZONE, CALENDAR = "spark.sql.session.timeZone", "spark.sql.parquet.datetimeRebaseModeInWrite"
BULK, INSERT = {OPERATION: "bulk_insert"}, {OPERATION: "insert"}
WAYS = {
    "deleted-as-rows": (BULK, {}, True),
    "deleted-as-records": ({**BULK, ROW_WRITER: "false"}, {}, True),
    "deleted-by-insert": (INSERT, {}, True),
    "another-calendar": (BULK, {CALENDAR: "LEGACY"}, False),
    "another-zone": (BULK, {ZONE: "America/New_York"}, False),
    "good-by-bulk-insert": (BULK, {}, False),
    "good-by-insert": (INSERT, {}, False),
}
"""Options of the write, settings of the session, and whether the second of two rows is a delete."""
SCHEMA = "id string, p string, v date, ts long, _hoodie_is_deleted boolean"
OLD = date(1500, 1, 1)


def main(results: str) -> None:
    current = current_context()
    spark = current.spark
    found = {}
    for way, (options, settings, deletes) in WAYS.items():
        frame = spark.createDataFrame(
            [(f"{way}-1", "a", OLD, 1, False), (f"{way}-2", "a", OLD, 1, deletes)], SCHEMA
        ).coalesce(1)
        for name, value in settings.items():
            spark.conf.set(name, value)
        try:
            frame.write.format("hudi").options(**current.table_options(), **options).mode("append").save(
                current.table_path
            )
            found[way] = ""
        except Exception as error:
            causes = java_causes(error)
            found[way] = f"{classify_causes(causes).value}: {describe_causes(causes)}" if causes else str(error)
        for name in settings:
            spark.conf.unset(name)
        print(f"WAY {way}: {found[way][:1500]}", flush=True)
    with open(results, "w", encoding="utf-8") as file:
        json.dump(found, file)


main(*sys.argv[1:])
