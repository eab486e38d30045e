"""A program that is stopped in its write: an application of ours (argument: a folder), or with
stock Hudi (STOCK_JOB, as of `stock_writer`).

`<folder>/job.json` has the rows and how it is stopped when `<folder>/stop` is there: `query` ends a
stream (`query.stop()` interrupts the thread that writes), `jobs` cancels Spark's jobs.
`<folder>/result.json` has the answer that the program got for its write.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession

SCHEMA = "id int, p string, v string, ts long"


def _told(error: Exception) -> str:
    """Messages of the error and its causes: the first line of Spark's error only names the call."""
    lines = str(error).strip().splitlines()
    return "; ".join([lines[0], *(line for line in lines[1:] if not line.startswith("\tat "))])[:2000]


def main() -> None:
    if "STOCK_JOB" in os.environ:
        stock = json.loads(os.environ["STOCK_JOB"])
        builder = SparkSession.builder.master("local[2]").appName(stock["name"])
        for key, value in stock["spark"].items():
            builder = builder.config(key, value)
        spark, path, options = builder.getOrCreate(), stock["path"], stock["options"]
        folder = Path(stock["result"]).parent
        spark.sparkContext.setLogLevel("WARN")
    else:
        from hudi_runtime.api import current_context

        current = current_context()
        spark, path, options = (
            current.spark,
            current.table_path,
            {**current.table_options(), "hoodie.datasource.write.operation": "upsert"},
        )
        folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text())

    def write(*_: object) -> None:
        frame = spark.createDataFrame([tuple(row) for row in job["rows"]], SCHEMA)
        try:
            frame.write.format("hudi").options(**options).mode("append").save(path)
        except Exception as error:
            (folder / "result.json").write_text(json.dumps({"acknowledged": False, "error": _told(error)}))
            raise
        (folder / "result.json").write_text(json.dumps({"acknowledged": True}))

    query = None
    if job["how"] == "query":
        (folder / "in").mkdir()
        (folder / "in" / "one.json").write_text('{"x": 1}\n')
        # local files: the input of a stream and its checkpoint; the table is on S3
        stream = spark.readStream.schema("x int").json(f"file://{folder}/in").writeStream.foreachBatch(write)
        query = stream.option("checkpointLocation", f"file://{folder}/checkpoint").start()
    else:
        thread = threading.Thread(target=write)
        thread.start()
    while not (folder / "stop").exists():
        time.sleep(0.05)
    if query is not None:
        query.stop()
    else:
        spark.sparkContext.cancelAllJobs()
        thread.join()
    print("the program was stopped", flush=True)


if __name__ == "__main__":
    main()
