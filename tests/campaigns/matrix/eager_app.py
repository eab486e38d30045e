"""An application that writes as a single writer that cleans eagerly: what came of it goes
to a file.
"""

from __future__ import annotations

import json
import sys

from hudi_runtime.api import current_context
from hudi_runtime.process.errors import describe_causes, java_causes


def main(result: str, options: str, rows: str) -> None:
    current = current_context()
    frame = current.spark.createDataFrame(
        [tuple(row) for row in json.loads(rows)], "id int, p string, v string, ts long"
    )
    given = {**current.table_options(), "hoodie.datasource.write.operation": "upsert", **json.loads(options)}
    try:
        frame.write.format("hudi").options(**given).mode("append").save(current.table_path)
        found = {"failed": False, "message": ""}
    except Exception as error:
        found = {
            "failed": True,
            "message": (describe_causes(java_causes(error)) if java_causes(error) else str(error))[:300],
        }
    with open(result, "w", encoding="utf-8") as file:
        json.dump(found, file)


main(*sys.argv[1:])
