"""A program that plays rounds of insert, upsert and delete on records of its own: python dag_app.py
'{"p", "first", "rounds", "tries", "meet"}'.

`meet`: a folder and how many programs come there before each round but the first; all of them go on
at once, so that they race. A commit that loses a race is made again by the program itself, `tries`
times at most.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

from hudi_contract.outcomes import FailureClass
from hudi_runtime.api import current_context
from hudi_runtime.process.errors import classify_causes, java_causes

SCHEMA = "id int, p string, v string, ts long"
INSERTED, UPDATED, DELETED = 20, 10, 4
"""Records that a round inserts, the first of them that it updates, and the first of those
that it deletes.
"""


def batches(p: str, first: int, rounds: int):
    """Operation and rows of each commit, in order."""
    for r in range(rounds):
        ids = range(first + r * INSERTED, first + (r + 1) * INSERTED)
        yield "insert", [(number, p, f"inserted {r}", 1) for number in ids]
        yield "upsert", [(number, p, f"updated {r}", 2) for number in ids[:UPDATED]]
        yield "delete", [(number, p, "", 3) for number in ids[:DELETED]]


def expected(p: str, first: int, rounds: int):
    """The rows in the end."""
    rows = {}
    for operation, batch in batches(p, first, rounds):
        rows.update({row[0]: row for row in batch})
        for row in batch if operation == "delete" else ():
            del rows[row[0]]
    return sorted(rows.values())


def write(current, operation, rows, tries):
    options = {**current.table_options(), **current.commit_metadata(), "hoodie.datasource.write.operation": operation}
    for left in range(tries, 0, -1):
        try:
            frame = current.spark.createDataFrame(rows, SCHEMA)
            frame.write.format("hudi").options(**options).mode("append").save(current.table_path)
            return
        except Exception as error:
            if left == 1 or classify_causes(java_causes(error)) is not FailureClass.WRITE_CONFLICT:
                raise
            print(f"{operation} lost a race", flush=True)
            time.sleep(random.uniform(0.1, 3))


def meet(folder: Path, count: int, number: int, name: str) -> None:
    """Wait until so many programs have come to this place."""
    (folder / f"{count}-{name}").touch()
    end = time.monotonic() + 300
    while len(list(folder.glob(f"{count}-*"))) < number:
        if time.monotonic() > end:
            raise TimeoutError(f"only {[found.name for found in folder.iterdir()]} came")
        time.sleep(0.02)


def main(job) -> None:
    current = current_context()
    folder, number = job["meet"]
    for count, (operation, rows) in enumerate(batches(job["p"], job["first"], job["rounds"])):
        if operation == "insert" and count:
            meet(Path(folder), count, number, str(job["first"]))
        write(current, operation, rows, job["tries"])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
