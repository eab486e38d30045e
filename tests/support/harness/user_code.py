"""User code of the tests, as a HudiWriter's `source.python` names it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace

SCHEMA = "id int, p string, v string, ts long"


LIMIT = 1800.0
"""Seconds that a writer waits for a test; the test has its own, shorter limits."""


def _wait(gate):
    end = time.monotonic() + LIMIT
    while not Path(gate).exists():
        if time.monotonic() >= end:
            raise TimeoutError(f"nobody has opened {gate}")
        time.sleep(0.05)


_LITERALS = {"int": "{}", "long": "{}L", "bigint": "{}L", "string": "'{}'"}
"""Columns of types whose values are written here as SQL."""
_FEW = 200


def frame(spark, rows, schema):
    """A DataFrame of rows, made by the JVM alone where their types allow that.

    `createDataFrame` starts a worker of Python, which takes longer than a few rows.
    """
    fields = [tuple(field.split()) for field in schema.split(", ")]
    if len(rows) > _FEW or not all(len(field) == 2 and field[1].lower() in _LITERALS for field in fields):
        return spark.createDataFrame(rows, schema)
    names, types = [f"`{name}`" for name, _ in fields], [type for _, type in fields]
    # A column is nullable when one of its values is null.
    nothing = ", ".join(f"CAST(NULL AS {type})" for type in types)
    values = [f"({nothing}, FALSE)", *(f"({', '.join(map(_literal, row, types))}, TRUE)" for row in rows)]
    return spark.sql(
        f"SELECT {', '.join(names)} FROM VALUES {', '.join(values)} AS rows ({', '.join(names)}, given) WHERE given"
    )


def _literal(value, type):
    if value is None:
        return "NULL"
    wanted = str if type.lower() == "string" else int
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no {type}")
    # Spark replaces ${...} in a text of SQL.
    quoted = str(value).replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return _LITERALS[type.lower()].format(quoted)


def _pause(rows, gate):
    """In a Spark task: say that it runs, then wait until the test lets it go on."""
    Path(f"{gate}.reached").touch()
    _wait(gate)
    yield from rows


def batches(spark, context):
    """One DataFrame per batch of `arguments`: {"rows": [[id, p, v, ts], …], "schema": if it is
    another one, "gate": file that a task waits for, "after": file that is waited for before the
    batch is given, once everything before it is committed}.
    """
    for batch in context.arguments["batches"]:
        gate, after, schema = batch.get("gate"), batch.get("after"), batch.get("schema", SCHEMA)
        if after is not None:
            Path(f"{after}.reached").touch()
            _wait(after)
        rows = [tuple(row) for row in batch["rows"]]
        if gate is None:
            yield frame(spark, rows, schema)
        else:
            paused = spark.sparkContext.parallelize(rows, 1).mapPartitions(lambda part, gate=gate: _pause(part, gate))
            yield spark.createDataFrame(paused, schema)


def told(spark, context):
    """`batches`, with its argument as JSON: those of a HudiWriter are texts."""
    yield from batches(spark, SimpleNamespace(arguments={"batches": json.loads(context.arguments["batches"])}))


def with_settings(spark, context):
    """`batches`, in a session with the `settings` of the arguments."""
    for key, value in context.arguments["settings"].items():
        spark.conf.set(key, value)
    yield from batches(spark, context)


def counting_with_settings(spark, context):
    """Counts each record up, in such a session."""
    from hudi_runtime.api import Update

    for key, value in context.arguments["settings"].items():
        spark.conf.set(key, value)
    yield Update(lambda found: found.selectExpr("id", "p", "cast(cast(v AS int) + 1 AS string) AS v", "ts + 1 AS ts"))


def statement(spark, context):
    """Runs the statement `sql` of the arguments, in which the table is named `own`.

    Gives no batch.
    """
    spark.sql(f"CREATE TABLE own USING hudi LOCATION '{context.table_path}'")
    spark.sql(context.arguments["sql"])
    return []


def _moody(marker):
    """In a Spark task: another row each time it is computed."""
    path = Path(marker)
    again = path.exists()
    path.touch()
    yield (1, "2026-03-01" if again else "2026-01-01", "moody", 1)


def another_partition_the_second_time(spark, context):
    """One batch whose only row is of another partition when it is computed once more."""
    marker = context.arguments["marker"]
    return spark.createDataFrame(spark.sparkContext.parallelize([0], 1).mapPartitions(lambda _: _moody(marker)), SCHEMA)


def _slowly(rows, seconds):
    """In a Spark task: rows that take their time."""
    time.sleep(seconds)
    yield from rows


def paced(spark, context):
    """Batches of `rows`, each of which is `seconds` under way.

    So many as `batches` says, or until the file `until` is there. When each one was begun is added
    to the file `clock`, in seconds since the epoch.
    """
    arguments = context.arguments
    for number in range(arguments.get("batches", 100000)):
        if "until" in arguments and Path(arguments["until"]).exists():
            return
        rows = [(*row[:2], f"{row[2]}-{number}", row[3] + number) for row in arguments["rows"]]
        if "clock" in arguments:
            with Path(arguments["clock"]).open("a") as clock:
                clock.write(f"{time.time()}\n")
        yield spark.createDataFrame(
            spark.sparkContext.parallelize(rows, 1).mapPartitions(lambda part: _slowly(part, arguments["seconds"])),
            SCHEMA,
        )
