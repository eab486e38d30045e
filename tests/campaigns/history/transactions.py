"""User code of a writer in a history: each step reads the table, decides, writes, and notes what it
saw (source.python, function `transactions`).

    append     reads two lists, appends its mark to one of them
    transfer   reads all accounts, moves an amount from one to another
    withdraw   reads a pair of accounts, takes from one of them when both together have enough
    insert     looks for a key, inserts it when it is not there

A row's `v` is what it holds (a list, a balance, nothing) and, as its last word, the mark of the try
that wrote it. Notes are one JSON object a line: the note of a read does not go away when the try
fails. `at` is the second before the read.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from pyspark.sql.functions import col

from hudi_runtime.api import Update

SCHEMA = "id int, p string, v string, ts long"
META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
LIMIT = 900.0


def _wait(path):
    end = time.monotonic() + LIMIT
    while not path.exists():
        if time.monotonic() >= end:
            raise TimeoutError(f"nobody has made {path}")
        time.sleep(0.05)


def _decide(step, found, mark):
    """The rows to write, from what was read: id -> row."""
    kind = step["kind"]
    if kind == "append":
        row = found[step["write"]]
        return [(row.id, row.p, f"{row.v} {mark}", row.ts + 1)]
    if kind == "insert":
        return [] if found else [(step["read"][0], step["p"], mark, 1)]
    balance = {number: int(row.v.split()[0]) for number, row in found.items()}
    if kind == "withdraw" and sum(balance.values()) < step["amount"]:
        return []
    changes = {step["take"]: -step["amount"]} | ({step["give"]: step["amount"]} if kind == "transfer" else {})
    return [
        (number, found[number].p, f"{balance[number] + change} {mark}", found[number].ts + 1)
        for number, change in changes.items()
    ]


def transactions(spark, context):
    """`arguments`: {"steps": […], "how": "update", "serializable", "frame" or "unseen", "notes":
    file, "ready": file, "go": file}.
    """
    arguments = context.arguments
    notes, tries = Path(arguments["notes"]), 0

    def play(step, rows):
        nonlocal tries
        tries += 1
        mark = f"{step['name']}.{context.job.number}.{tries}"
        begun = time.time()
        found = {row.id: row for row in rows.where(col("id").isin(step["read"])).collect()} if rows.columns else {}
        made = _decide(step, found, mark)
        note = {
            "mark": mark,
            "at": begun,
            "step": step["name"],
            "read": {number: row.v for number, row in found.items()},
            "write": {row[0]: row[2] for row in made},
        }
        with notes.open("a") as file:
            file.write(json.dumps(note) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return spark.createDataFrame(made, SCHEMA)

    Path(arguments["ready"]).touch()
    _wait(Path(arguments["go"]))
    for step in arguments["steps"]:
        if arguments["how"] in ("update", "serializable"):
            yield Update(lambda rows, step=step: play(step, rows), serializable=arguments["how"] == "serializable")
        elif arguments["how"] == "frame":
            yield play(step, context.read_table().drop(*META))
        else:
            yield play(step, spark.read.format("hudi").load(context.table_path).drop(*META))
