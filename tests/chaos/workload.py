"""What the writers write, and what must be in the table afterwards. Pure: no cluster, no clock.

Writer `n` writes batch after batch of upserts. The keys of a batch, old ones and new ones, are drawn from the seed, so that every attempt of a
writer, and whoever checks the table, draws the same. All writers draw from one range that grows with the batch: they update each
other's rows and insert the same new keys at the same time. `ts` grows with the batch and is different for every writer, so one row of each key is the
right one, whatever the order of the commits.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import pandas as pd

ROWS = 24
"""Rows of a batch; their keys are different."""
START = 60
"""Keys that may be drawn in the first batch."""
GROWTH = 4
"""Keys that come into reach with each batch."""
PARTITIONS = 3
THREADS = 2
"""Of the program that writes with several threads."""

CODE = f'''
import random
import sys
import threading
import time

ROWS, START, GROWTH, PARTITIONS, THREADS = {ROWS}, {START}, {GROWTH}, {PARTITIONS}, {THREADS}
SCHEMA = "id long, part string, value string, ts long"


def batch_rows(seed, writer, batch):
    chance = random.Random(f"{{seed}}/{{writer}}/{{batch}}")
    keys = chance.sample(range(START + GROWTH * batch), ROWS)
    return [(key, f"p{{key % PARTITIONS}}", f"{{writer}}.{{batch}}", 100 * batch + writer) for key in sorted(keys)]


def batches(spark, context):
    seed, writer = context.arguments["seed"], int(context.arguments["writer"])
    for batch in range(int(context.arguments["batches"])):
        yield spark.createDataFrame(batch_rows(seed, writer, batch), SCHEMA)
        time.sleep(float(context.arguments["pause"]))


def thread(current, seed, writer, batches, pause, failed):
    """Commits batch after batch; one that lost a race is written again. Writing a batch twice changes nothing: its rows are the same."""
    options = {{**current.table_options(), "hoodie.datasource.write.operation": "upsert"}}
    try:
        for batch in range(batches):
            while True:
                frame = current.spark.createDataFrame(batch_rows(seed, writer, batch), SCHEMA)
                marked = {{**options, **current.commit_metadata(), "hudioperator.batch": f"{{writer}}.{{batch}}"}}
                try:
                    frame.write.format("hudi").options(**marked).mode("append").save(current.table_path)
                    break
                except Exception as error:
                    if "WriteConflict" not in str(error):
                        raise
            time.sleep(pause)
    except BaseException as error:
        failed.append(error)


def program():
    """`main.py SEED FIRST_WRITER BATCHES PAUSE`: two threads of one program write to one table."""
    from hudi_runtime import context

    seed, first, batches, pause = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    failed = []
    threads = [threading.Thread(target=thread, args=(context.current(), seed, first + n, batches, pause, failed)) for n in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if failed:
        raise failed[0]


if __name__ == "__main__":
    program()
'''
"""Module of the writers: `batches` is their source, `program` the one with threads."""

_code: dict[str, object] = {"__name__": "writers"}
exec(CODE, _code)


def rows(seed: int, writer: int, batch: int) -> list[tuple[int, str, str, int]]:
    """(id, part, value, ts) of one batch, as the writers themselves make it."""
    made = _code["batch_rows"]
    assert callable(made)
    found: list[tuple[int, str, str, int]] = made(str(seed), writer, batch)
    return found


def expected(seed: int, committed: Iterable[tuple[int, int]]) -> pd.DataFrame:
    """The rows that the table must hold when exactly these (writer, batch) are committed: of each key the one with the largest ts."""
    written = [row for writer, batch in committed for row in rows(seed, writer, batch)]
    frame = pd.DataFrame(written, columns=["id", "part", "value", "ts"])
    return frame.sort_values("ts").drop_duplicates("id", keep="last").sort_values("id").reset_index(drop=True)


def gaps(committed: Iterable[tuple[int, int]]) -> list[str]:
    """Batches `writer.batch` that are not committed although a later one of their writer is: each writer begins a batch when the last one is acknowledged."""
    there = set(committed)
    last = {writer: max(batch for one, batch in there if one == writer) for writer, _ in there}
    return [f"{writer}.{batch}" for writer in sorted(last) for batch in range(last[writer]) if (writer, batch) not in there]


TARGETS = ("driver", "executor", "agent", "operator", "etcd", "s3")
"""What faults are put to."""


def schedule(seed: int, seconds: float, writers: int) -> list[tuple[float, str, str, int, float]]:
    """(second, kill or freeze, target, writer of a driver, seconds of a freeze), one every 10 to 30 s; drivers are drawn most often."""
    chance = random.Random(f"faults/{seed}")
    found, at = [], 0.0
    while (at := at + chance.uniform(10, 30)) < seconds:
        target = chance.choices(TARGETS, weights=(6, 1, 2, 1, 1, 1))[0]
        how = chance.choice(("kill", "freeze"))
        longest = 40 if target in ("driver", "executor", "agent") else 8  # an etcd or S3 that is away for long is a fault of its own
        found.append((round(at, 1), how, target, chance.randrange(writers), round(chance.uniform(1, longest), 1)))
    return found
