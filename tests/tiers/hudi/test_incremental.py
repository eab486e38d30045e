"""Sources, and incremental reads of real tables: nothing is lost and nothing doubled, by whichever
order, archived and cleaned commits included (I9).
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import FilesSource, HudiSource, PythonSource, SqlSource, View
from hudi_runtime.process.errors import RuntimeFailure, UserCodeError, classify
from hudi_runtime.read import sources
from hudi_runtime.read.incremental import PositionLost, Pull, Reader, needed_files
from hudi_runtime.read.positions import ByCompletion, Fenced, OutOfOrder
from hudi_runtime.read.progress import Progress
from hudi_runtime.table.hudi import Table
from tests.support.harness.local import JAR, USER_CODE, Row, World, rows


def found(pull: Pull | None) -> list[Row]:
    assert pull is not None
    return found_rows(pull.frame)


def found_rows(frame: Any) -> list[Row]:
    return sorted((row.id, row.p, row.v, row.ts) for row in frame.select("id", "p", "v", "ts").collect())


OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.metadata.enable": "false",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.embed.timeline.server": "false",
}
SCHEMA = "id int, p string, v string, ts long"


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE"])
def test_archived_and_cleaned_sources(world: World, kind: str) -> None:
    """What was archived is told, or the table read as a whole.

    What was cleaned is read together with what replaced it.
    """
    spark, path = world.spark(), world.url(world.lake / f"source-{kind}")
    options = {**OPTIONS, "hoodie.table.name": "source", "hoodie.datasource.write.table.type": kind}

    def write(batch: list[Row]) -> None:
        spark.createDataFrame(batch, SCHEMA).write.format("hudi").options(**options).mode("append").save(path)

    write([(100, "z", "only once", 0)])
    for number in range(6):
        write([(number, "a", f"v{number}", number), (50, "a", f"h{number}", number)])
    reader = Reader(spark, path)
    completed = [i for i in reader.look().timeline.completed if i.action in ("commit", "deltacommit")]
    first = 6 - len(completed)
    assert 0 < first < 4, "the ones before are archived"
    look = reader.look()
    for order in (ByCompletion(), Fenced(), OutOfOrder()):
        with pytest.raises(PositionLost, match="were archived"):
            look.pull(order)
    # The files of some were cleaned when later ones replaced them: these come together, although
    # one at a time is wanted.
    position, newest = ByCompletion(max(i.completion for i in reader._table.archived_instants())), {}
    while pull := look.pull(position, limit=1):
        position = pull.position
        newest.update({row[0]: row for row in found(pull)})
    assert newest == {**{n: (n, "a", f"v{n}", n) for n in range(first, 6)}, 50: (50, "a", "h5", 5)}

    # A cleaner that comes between the look at the files and the read.
    read = look._frame

    def after_a_cleaner(taken: Any) -> Any:
        (name,) = needed_files(look._written[i.requested] for i in taken)
        (world.folder_of(path) / name).unlink()
        look._frame = read  # type: ignore[method-assign]
        return read(taken)

    look._frame = after_a_cleaner  # type: ignore[method-assign]
    assert {row[0] for row in found(look.pull(ByCompletion(completed[0].completion), limit=1))} == {
        first + 1,
        first + 2,
        50,
    }

    write([(6, "a", "v6", 6), (100, "z", "again", 6)])
    whole = look.snapshot(ByCompletion())
    everything = [*((n, "a", f"v{n}", n) for n in range(6)), (50, "a", "h5", 5)]
    assert found(whole) == everything, "as of the look: what a later commit wrote comes with that commit"
    assert whole is not None
    later = reader.look().pull(whole.position)
    assert found(later) == [(6, "a", "v6", 6), (100, "z", "again", 6)]

    source = HudiSource(path, "Earliest", "CompletionTime", None, "Fail")
    (first,) = sources._hudi_batches(spark, source, Progress())
    assert len(found_rows(first.frame)) == 9, "the first read of a table whose beginning is archived"
    stale = Progress(
        count=1, digest="d", hudi={"path": path, "order": "CompletionTime", "completion": "20200101000000000"}
    )
    with pytest.raises(PositionLost, match="ifPositionLost: Snapshot"):
        list(sources._hudi_batches(spark, source, stale))
    (again,) = sources._hudi_batches(spark, replace(source, if_lost="Snapshot"), stale)
    assert found_rows(again.frame) == found_rows(first.frame)
    (nothing,) = sources._hudi_batches(spark, replace(source, start_from="Latest"), Progress())
    assert (nothing.frame.count(), nothing.frame.columns) == (0, ["id", "p", "v", "ts"])
    assert nothing.digest == first.digest, "the same position, with rows or without"
    done = Progress(count=1, digest=nothing.digest, hudi=nothing.checkpoint["hudi"])
    assert list(sources._hudi_batches(spark, source, done)) == []
    for other in (replace(source, path=f"{path}-2"), replace(source, order="Fenced")):
        with pytest.raises(UserCodeError, match="another HudiWriter"):
            sources._stored_position(other, done)
    with pytest.raises(RuntimeFailure, match="does not exist"):
        Reader(spark, f"{path}-2")


def test_a_function_is_asked_anew_in_each_run(world: World) -> None:
    """Attempts of one run share what was committed.

    The next run of the same writer begins with its first batch.
    """
    arguments = {"batches": [{"rows": rows([1], "a", "one", 1)}, {"rows": rows([2], "a", "two", 1)}]}
    source, context = (
        PythonSource(str(USER_CODE), "batches", arguments),
        SimpleNamespace(arguments=arguments, base_of_batch=lambda: None),
    )

    def given(run: str, done: Progress) -> list[list[Row]]:
        job = SimpleNamespace(run=run, overwrites=False)
        return [found_rows(batch.frame) for batch in sources._python_batches(world.spark(), source, context, job, done)]

    everything = [rows([1], "a", "one", 1), rows([2], "a", "two", 1)]
    assert given(1, Progress()) == everything
    assert given("u/3", Progress(count=1, digest="d", run="u/3")) == everything[1:]
    assert given("u/4", Progress(count=2, digest="d", run="u/3")) == everything
    assert given("v/3", Progress(count=2, digest="d", run="u/3")) == everything, "another HudiWriter of that name (F97)"


def test_a_query_over_a_table_and_files_is_written_once_in_a_run(world: World) -> None:
    spark, path = world.spark(), world.url(world.lake / "queried")
    spark.sql(f"ADD JAR '{JAR}'")  # the query is judged by a class of ours; this session is a plain one
    names = world.lake / "names.csv"
    names.write_text("id,name\n1,one\n2,two\n")
    options = {**OPTIONS, "hoodie.table.name": "queried"}
    spark.createDataFrame(rows([1, 2, 3], "a", "v", 1), SCHEMA).write.format("hudi").options(**options).mode(
        "append"
    ).save(path)
    files = FilesSource("csv", (world.url(names),), {"header": "true"}, None)
    views = (View("events", path, None), View("names", "", files))
    source = SqlSource("SELECT events.id, p, name AS v, ts FROM events JOIN names ON events.id = names.id", views)
    mine = Table(spark, f"{path}-mine")
    (batch,) = sources._sql_batches(spark, source, mine, run="u/2", done=Progress(count=1, digest="d", run="u/1"))
    assert found_rows(batch.frame) == [(1, "a", "one", 1), (2, "a", "two", 1)]
    assert (
        list(
            sources._sql_batches(spark, source, mine, run="u/2", done=Progress(count=1, digest=batch.digest, run="u/2"))
        )
        == []
    )
    (everything,) = sources._sql_batches(
        spark, replace(source, query="SELECT * FROM events"), mine, run="u/1", done=Progress()
    )
    assert everything.frame.columns == ["id", "p", "v", "ts"]
    with pytest.raises(Exception, match="nowhere") as refused:
        list(
            sources._sql_batches(
                spark, replace(source, query="SELECT * FROM nowhere"), mine, run="u/1", done=Progress()
            )
        )
    assert classify(refused.value).kind is FailureClass.USER_ERROR
