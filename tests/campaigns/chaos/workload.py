"""Batches of the writers, and the rows that must be in the table afterwards.

Pure: no cluster, no clock.

Writer `n` writes batch after batch of upserts. The keys of a batch, old ones and new ones, are
drawn from the seed, so that every attempt of a writer, and the check of the table, draws the same.
All writers draw from one range that grows with the batch: they update each other's rows and insert
the same new keys at the same time. `ts` grows with the batch and is different for every writer, so
one row of each key is the right one, whatever the order of the commits.

Each second batch of the first two writers is a list-append transaction instead: it reads two lists
of the table, appends its mark to one of them (an `Update`), and notes in the log of its pod what it
has read and written. A batch is the transaction of its last try: a try follows only where the one
before did not commit. From these notes come the rows that are due, and the history that the Adya
checker judges.

A batch is acknowledged when its writer's code goes on: the runtime asks a source for the next
batch, `save` returns to the program. That is noted in the log of the pod too, with the attempt: a
batch that was acknowledged to one must be in a commit of that attempt or an earlier one. A commit
of a later one has made up for a loss.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd

from tests.campaigns.history.adya import Broken, History, Transaction, anomalies

ROWS = 24
"""Rows of a batch; their keys are different."""
START = 60
"""Keys that may be drawn in the first batch."""
GROWTH = 4
"""Keys that come into reach with each batch."""
PARTITIONS = 3
THREADS = 2
"""Threads of the program that writes with several threads."""

LISTS = (1_000_001, 1_000_002, 1_000_003, 1_000_004)
"""Keys of the lists, in the partition `lists`."""
APPENDERS = 2
"""Writers that append to lists: the first ones."""
NOTE, ACK = "CHAOS-NOTE ", "CHAOS-ACK "
"""Prefixes of the lines of notes and of acknowledgements."""

TYPES = {"cow": "CopyOnWrite", "mor": "MergeOnRead"}
INDEXES: dict[str, dict[str, Any]] = {"default": {}, "bucket": {"type": "Bucket", "buckets": 4}}


def table(cell: str) -> dict[str, Any]:
    """Type, index and table services of a cell such as `mor-default`: every service that its index
    allows, often enough that each runs several times; partitions do not expire.
    """
    kind, index = cell.split("-")
    services: dict[str, Any] = {
        "clean": {"afterCommits": 5, "retainCommits": 5},
        "archive": {"afterCommits": 5, "minCommitsToKeep": 8, "maxCommitsToKeep": 12},
    }
    if kind == "mor":
        services["compaction"] = {"afterCommits": 5}
    if index == "default":
        # Sorted, since rewriting a single file gains nothing otherwise
        services["clustering"] = {"afterCommits": 7, "sortColumns": ["id"]}
    return {"type": TYPES[kind], "services": services} | ({"index": INDEXES[index]} if INDEXES[index] else {})


CODE = f'''
import json
import random
import sys
import threading
import time

ROWS, START, GROWTH, PARTITIONS, THREADS = {ROWS}, {START}, {GROWTH}, {PARTITIONS}, {THREADS}
LISTS, APPENDERS, NOTE, ACK = {LISTS}, {APPENDERS}, "{NOTE}", "{ACK}"
SCHEMA = "id long, part string, value string, ts long"


def batch_rows(seed, writer, batch):
    chance = random.Random(f"{{seed}}/{{writer}}/{{batch}}")
    keys = chance.sample(range(START + GROWTH * batch), ROWS)
    return [(key, f"p{{key % PARTITIONS}}", f"{{writer}}.{{batch}}", 100 * batch + writer) for key in sorted(keys)]


def appends(writer, batch):
    return writer < APPENDERS and batch % 2 == 1


def lists_of(seed, writer, batch):
    """The two lists that a batch reads; it appends to the first."""
    return random.Random(f"lists/{{seed}}/{{writer}}/{{batch}}").sample(LISTS, 2)


def append(spark, context, seed, writer, batch):
    from hudi_runtime.api import Update

    tries = 0

    def rows(table):
        nonlocal tries
        tries += 1
        read = lists_of(seed, writer, batch)
        seen = table.where(table.id.isin(read)).collect() if table.columns else []
        found = {{row.id: row.value.split() for row in seen}}
        mark = f"{{writer}}.{{batch}}.{{context.job.number}}.{{tries}}"
        made = [*found.get(read[0], []), mark]
        note = {{
            "writer": writer,
            "batch": batch,
            "attempt": context.job.number,
            "try": tries,
            "mark": mark,
            "read": {{k: found.get(k, []) for k in read}},
        }}
        print("\\n" + NOTE + json.dumps(note), flush=True)
        return spark.createDataFrame([(read[0], "lists", " ".join(made), len(made))], SCHEMA)

    return Update(rows)


def acknowledged(context, writer, batch):
    print("\\n" + ACK + json.dumps({{"writer": writer, "batch": batch, "attempt": context.job.number}}), flush=True)


def batches(spark, context):
    seed, writer = context.arguments["seed"], int(context.arguments["writer"])
    for batch in range(int(context.arguments["batches"])):
        if appends(writer, batch):
            yield append(spark, context, seed, writer, batch)
        else:
            yield spark.createDataFrame(batch_rows(seed, writer, batch), SCHEMA)
        acknowledged(context, writer, batch)
        time.sleep(float(context.arguments["pause"]))


def thread(current, seed, writer, batches, pause, failed):
    """Commits batch after batch; one that lost a race is written again.

    Writing a batch twice changes nothing: its rows are the same.
    """
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
            acknowledged(current, writer, batch)
            time.sleep(pause)
    except BaseException as error:
        failed.append(error)


def program():
    """`main.py SEED FIRST_WRITER BATCHES PAUSE`: two threads of one program write to one table."""
    from hudi_runtime.api import current_context

    seed, first, batches, pause = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    failed = []
    threads = [
        threading.Thread(target=thread, args=(current_context(), seed, first + n, batches, pause, failed))
        for n in range(THREADS)
    ]
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


def is_append(writer: int, batch: int) -> bool:
    """Whether a batch is a list-append transaction."""
    made = _code["appends"]
    assert callable(made)
    return bool(made(writer, batch))


def notes(logs: Iterable[str]) -> list[dict[str, Any]]:
    """Notes of the transactions in the logs of pods."""
    return [
        note | {"read": {int(key): tuple(value) for key, value in note["read"].items()}} for note in _lines(logs, NOTE)
    ]


def acknowledgements(logs: Iterable[str]) -> set[tuple[int, int, int]]:
    """(writer, batch, attempt) of what was acknowledged, by the logs of pods."""
    return {(one["writer"], one["batch"], one["attempt"]) for one in _lines(logs, ACK)}


def _lines(logs: Iterable[str], begin: str) -> Iterator[dict[str, Any]]:
    """A line that was cut off by a kill is left out: its batch was not written either, and nobody
    was told.
    """
    for log in logs:
        for line in log.splitlines():
            _, there, text = line.partition(begin)
            with suppress(json.JSONDecodeError):
                if there:
                    yield json.loads(text)


def lost(acknowledged: Iterable[tuple[int, int, int]], committed: Iterable[tuple[int, int, int]]) -> list[str]:
    """Batches `writer.batch (attempt n)` that were acknowledged to an attempt, and neither it nor
    an earlier one has a commit of it.
    """
    first: dict[tuple[int, int], int] = {}
    for writer, batch, attempt in committed:
        first[writer, batch] = min(attempt, first.get((writer, batch), attempt))
    return [
        f"{writer}.{batch} (attempt {attempt})"
        for writer, batch, attempt in sorted(set(acknowledged))
        if (writer, batch) not in first or first[writer, batch] > attempt
    ]


def last_tries(noted: Iterable[Mapping[str, Any]]) -> dict[tuple[int, int], Mapping[str, Any]]:
    """The note of the last try of each (writer, batch)."""
    found: dict[tuple[int, int], Mapping[str, Any]] = {}
    for note in sorted(noted, key=lambda one: (int(one["attempt"]), int(one["try"]))):
        found[int(note["writer"]), int(note["batch"])] = note
    return found


def _written(note: Mapping[str, Any]) -> tuple[int, tuple[str, ...]]:
    """Key and list that a try wrote."""
    key = next(iter(note["read"]))
    return key, (*note["read"][key], note["mark"])


def history(committed: Iterable[tuple[int, int]], noted: Sequence[Mapping[str, Any]]) -> list[str]:
    """Findings in the list-append transactions, as `kind: text`.

    Raises nothing: notes that cannot form a history are reported as `broken`.

    The versions of a list are in order of their length: two of one length are a lost update, and
    show as G-single.
    """
    done = {batch for batch in committed if is_append(*batch)}
    last = last_tries(noted)
    if unnoted := sorted(done - set(last)):
        return [f"broken: {writer}.{batch} is committed, and no pod has noted it" for writer, batch in unnoted]
    marks = {last[batch]["mark"] for batch in done}
    made: list[Transaction] = []
    order: dict[str, list[tuple[int, str]]] = {str(key): [] for key in LISTS}
    for note in noted:
        key, version = _written(note)
        made.append(
            Transaction(
                note["mark"],
                {str(k): v for k, v in note["read"].items()},
                {str(key): [version]},
                committed=note["mark"] in marks,
            )
        )
        if note["mark"] in marks:
            order[str(key)].append((len(version), note["mark"]))
    try:
        found = anomalies(
            History(made, {key: [mark for _, mark in sorted(versions)] for key, versions in order.items()})
        )
    except Broken as error:
        return [f"broken: {error}"]
    return [f"{anomaly.kind}: {anomaly.told}" for anomaly in found]


def expected(seed: int, committed: Iterable[tuple[int, int]], noted: Iterable[Mapping[str, Any]] = ()) -> pd.DataFrame:
    """The rows that the table must hold when exactly these (writer, batch) are committed: of each
    key the one with the largest ts.
    """
    batches, last = list(committed), last_tries(noted)
    written = [row for writer, batch in batches if not is_append(writer, batch) for row in rows(seed, writer, batch)]
    for key, version in (_written(last[batch]) for batch in set(batches) & set(last)):
        written.append((key, "lists", " ".join(version), len(version)))
    frame = pd.DataFrame(written, columns=["id", "part", "value", "ts"])
    return frame.sort_values("ts").drop_duplicates("id", keep="last").sort_values("id").reset_index(drop=True)


def gaps(committed: Iterable[tuple[int, int]]) -> list[str]:
    """Batches `writer.batch` that are not committed although a later one of their writer is: each
    writer begins a batch when the last one is acknowledged.
    """
    there = set(committed)
    last = {writer: max(batch for one, batch in there if one == writer) for writer, _ in there}
    return [
        f"{writer}.{batch}" for writer in sorted(last) for batch in range(last[writer]) if (writer, batch) not in there
    ]


TARGETS = ("driver", "executor", "agent", "operator", "etcd", "s3")
"""Targets of faults."""


def schedule(seed: int, seconds: float, writers: int) -> list[tuple[float, str, str, int, float]]:
    """(second, kill or freeze, target, writer of a driver, seconds of a freeze), one every 10 to 30
    s; drivers are drawn most often.
    """
    chance = random.Random(f"faults/{seed}")
    found, at = [], 0.0
    while (at := at + chance.uniform(10, 30)) < seconds:
        target = chance.choices(TARGETS, weights=(6, 1, 2, 1, 1, 1))[0]
        how = chance.choice(("kill", "freeze"))
        # An etcd or S3 that is away for long is a separate fault
        longest = 40 if target in ("driver", "executor", "agent") else 8
        found.append((round(at, 1), how, target, chance.randrange(writers), round(chance.uniform(1, longest), 1)))
    return found
