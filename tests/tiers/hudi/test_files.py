"""Names of files, columns of those that one commit reads, and files without rows: no row is lost,
taken twice, or put into other columns.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.functions import lit

from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import FilesSource
from hudi_runtime.process.errors import RuntimeFailure, classify
from hudi_runtime.read import files, sources
from hudi_runtime.read.kafka_values import Values
from hudi_runtime.read.progress import Progress
from tests.support.harness.local import AGENT, JAR, Process, World, rows
from tests.support.world.fake_table import FakeStorage

COLUMNS = ("id", "p", "v", "ts")
A, B = (1, "a", "x", 1), (2, "b", "y", 2)
HEADER = {"header": "true", "inferSchema": "true"}


def line(row: tuple[Any, ...]) -> str:
    return json.dumps(dict(zip(COLUMNS, row, strict=True))) + "\n"


def landing(world: World, name: str, content: dict[str, str]) -> str:
    folder = world.lake / "landing" / name
    for path, text in content.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return world.url(folder)


def batches(
    world: World, source: FilesSource, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[set[tuple[Any, ...]], set[str]]]:
    """Rows of each commit, and names of the files that it has as done."""
    monkeypatch.setattr(sources.pg, "at_savepoints", lambda *_: ())
    job: Any = type("Job", (), {"writer": "ns/w", "interval": None})
    table: Any = SimpleNamespace(storage=FakeStorage())
    found = []
    for batch in sources._file_batches(world.spark(), job, source, table, Progress()):
        try:
            taken = {tuple(row) for row in batch.frame.select(*COLUMNS).collect()}  # type: ignore[union-attr]
        except Exception as error:
            raise batch.blame(error) or error from error
        found.append((taken, {Path(item.path).name for item in batch.done.files}))
    return found


@pytest.mark.parametrize("name", ["x[1].json", "x{1}.json", "x*.json", "x?.json", "x\\1.json", "x 1%31,#ü.json"])
def test_a_name_is_no_pattern(world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F85: Spark read `x1.json` in the place of `x[1].json`, so its rows twice and those of the
    other never.
    """
    path = landing(world, f"name-{abs(hash(name))}", {name: line(A), "x1.json": line(B)})
    assert [taken for taken, _ in batches(world, FilesSource("json", (path,), {}, 1), monkeypatch)] in (
        [{A}, {B}],
        [{B}, {A}],
    )
    assert [taken for taken, _ in batches(world, FilesSource("json", (path,), {}, None), monkeypatch)] == [{A, B}]


def test_a_pattern_finds_nothing_that_is_hidden(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """F85: what another job is writing (`_temporary`) was read, and once more when it was renamed
    into place.
    """
    hidden = {
        "_temporary/0/part-0.json": line(B),
        ".x/part-0.json": line(B),
        "_x.json": line(B),
        "y.json._COPYING_": line(B),
    }
    path = landing(world, "hidden", {"x.json": line(A), **hidden})
    assert batches(world, FilesSource("json", (f"{path}/*",), {}, None), monkeypatch) == [({A}, {"x.json"})]
    assert batches(world, FilesSource("json", (f"{path}/_temporary",), {}, None), monkeypatch) == [
        ({B}, {"part-0.json"})
    ], "named by the user"
    with pytest.raises(RuntimeFailure, match=r"_x\.json: a file whose name begins with _"):
        batches(world, FilesSource("json", (f"{path}/_x.json",), {}, None), monkeypatch)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        pytest.param("id,p,v,ts\n", "id,v,p,ts\n2,y,b,2\n", "CSV header does not conform", id="order"),
        pytest.param("id,p,v,ts\n", "id,p,v,ts,more\n2,b,y,2,m\n", "not equal to number of fields", id="more"),
        pytest.param("id,p,,v\n", "id,p,v,\n2,b,y,2\n", "has the columns id, p, v, _c3", id="unnamed"),
    ],
)
def test_csv_of_one_commit_has_one_header(
    world: World, first: str, second: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F86: the values of the second file went into the columns of the first one's header."""
    path = landing(world, f"header-{abs(hash(second))}", {"1.csv": f"{first}1,a,1,1\n", "2.csv": second})
    with pytest.raises(RuntimeFailure, match="maxFilesPerCommit: 1") as refused:
        batches(world, FilesSource("csv", (path,), HEADER, None), monkeypatch)
    assert classify(refused.value).kind is FailureClass.SCHEMA_MISMATCH
    assert said in str(refused.value)
    assert ".csv" in str(refused.value)


def test_csv_with_names_that_spark_makes_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comma too many at the end of each line, and no column name above it.

    One file has nothing but its header.
    """
    header = "id,p,v,ts,\n"
    path = landing(
        world, "unnamed", {"0.csv": "", "1.csv": f"{header}1,a,x,1,\n", "2.csv": f"{header}2,b,y,2,\n", "3.csv": header}
    )
    assert [taken for taken, _ in batches(world, FilesSource("csv", (path,), HEADER, None), monkeypatch)] == [{A, B}]


@pytest.mark.parametrize("format", ["parquet", "orc", "avro"])
def test_files_of_one_commit_have_the_columns_of_all(world: World, format: str) -> None:
    """F86: a column that Spark had not seen in the first file was left out, and whole numbers in
    ORC became null.
    """
    spark = world.spark()
    folder = world.url(world.lake / "landing" / f"columns-{format}")

    def write(name: str, query: str) -> str:
        spark.sql(query).coalesce(1).write.format(format).save(f"{folder}/{name}")
        return f"{folder}/{name}"

    one = write("1", "SELECT 1 AS id, 'x' AS v")
    other = write("2", "SELECT 2 AS id, 'more' AS extra, 'y' AS v")
    wider = write("3", "SELECT 3000000000L AS id, 'z' AS v")

    def read(*folders: str) -> list[tuple[Any, ...]]:
        source = FilesSource(format, folders, {}, None)
        paths = [item.path for item in files.listed(spark, folders)]
        try:
            return sorted(tuple(row) for row in files.read(spark, source, paths).select("id", "v", "extra").collect())
        except Exception as error:
            raise files.blamed(spark, source, paths, error) or error from error

    assert read(one, other) == [(1, "x", None), (2, "y", "more")]
    assert read(other, one) == [(1, "x", None), (2, "y", "more")]
    with pytest.raises(RuntimeFailure, match="maxFilesPerCommit: 1") as refused:
        read(one, other, wider)
    assert classify(refused.value).kind is FailureClass.SCHEMA_MISMATCH


@pytest.mark.parametrize(("format", "nothing"), [("json", ""), ("json", "\n"), ("csv", ""), ("csv", "id,p,v,ts\n")])
def test_an_empty_file_is_in_nobodys_way(
    world: World, format: str, nothing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F87: its columns, none or text, fitted no table, and the writer came no further."""
    good = {"json": line(A), "csv": "id,p,v,ts\n1,a,x,1\n"}[format]
    path = landing(world, f"nothing-{format}-{len(nothing)}", {f"1.{format}": nothing, f"2.{format}": good})
    source = FilesSource(format, (path,), HEADER if format == "csv" else {}, 1)
    assert batches(world, source, monkeypatch) == [({A}, {f"1.{format}", f"2.{format}"})]


MORE = {
    "no line end": line(A).strip() + line(B),
    "commas": line(A).strip() + "," + line(B),
    "text": line(A).strip() + " and more\n",
    "nested": '{"id": 1, "p": "a", "v": {"w": [1]}, "ts": 1} {"id": 2}\n',
}


@pytest.mark.parametrize("how", MORE)
@pytest.mark.parametrize("whole", ["false", "true"])
def test_what_follows_a_value_is_not_left_out(
    world: World, how: str, whole: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F94: Spark reads the first value of a line, with multiLine of a file, and leaves
    out the others.
    """
    path = landing(world, f"more-{whole}-{how}", {"1.json": line(A), "2.json": MORE[how]})
    with pytest.raises(RuntimeFailure, match=r"^file s3a:.*/2\.json: a line .* holds one JSON value") as refused:
        batches(world, FilesSource("json", (path,), {"multiLine": whole}, None), monkeypatch)
    assert classify(refused.value).kind is FailureClass.BAD_DATA


ALONE = {
    "braces in text": '{"id": 1, "p": "a", "v": "} x {", "ts": 1}',
    "nested": '{"id": 1, "more": {"a": [{"b": 1}, {"c": NaN}], "d": {}}, "p": "a", "v": "x", "ts": 1} ',
    "an array": '[{"id": 1, "p": "a", "v": "x", "ts": 1}, {"id": 2, "p": "b", "v": "y", "ts": 2}]',
    "quotes": "{'id': 1, 'l': [1, 2], 'p': 'a', 'v': 'x', 'ts': 1}",
    "blank lines": f"\n  \n{line(A)}\n",
}


@pytest.mark.parametrize("how", ALONE)
@pytest.mark.parametrize("whole", ["false", "true"])
def test_what_is_one_value_is_read(world: World, how: str, whole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = landing(world, f"alone-{whole}-{how}", {"1.json": ALONE[how]})
    ((found, _),) = batches(world, FilesSource("json", (path,), {"multiLine": whole}, None), monkeypatch)
    assert {row[0] for row in found} == ({1, 2} if how == "an array" else {1})


def test_what_follows_the_value_of_a_record_is_not_left_out(world: World) -> None:
    """F94: the same in a topic."""
    spark = world.spark()
    source: Any = SimpleNamespace(format="Json", schema="id INT, v STRING", metadata=False, registry=None)
    for text, good in (
        ('{"id": 1, "v": "x"}', True),
        ('{"id": 1, "v": "x"}{"id": 2}', False),
        ('{"id": 1, "v": "}"} ', True),
    ):
        frame = spark.sql(
            "SELECT cast(null AS binary) AS key, cast('t' AS string) AS topic, 0 AS partition, 5L AS offset, now() AS "
            "timestamp"
        )
        frame = Values(spark, source, frame.withColumn("value", lit(text).cast("binary"))).rows()
        if good:
            assert [row.id for row in frame.collect()] == [1]
        else:
            with pytest.raises(Exception, match="topic t, partition 0, offset 5"):
                frame.collect()


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_a_folder_that_names_a_column(world: World, format: str) -> None:
    """F109: files are read by their names, so Spark took no column from their folders, and rows
    came without it.
    """
    spark, path = world.spark(), world.url(world.lake / "landing" / f"folders-{format}")
    spark.createDataFrame([A], "id int, p string, v string, ts long").write.format(format).options(**HEADER).save(
        f"{path}/day=2024-01-01"
    )

    def read(options: dict[str, str], *paths: str) -> Any:
        source = FilesSource(format, paths or (path,), {**(HEADER if format == "csv" else {}), **options}, None)
        return files.read(spark, source, [item.path for item in files.listed(spark, source.paths)])

    with pytest.raises(
        RuntimeFailure, match=r"its folder day=2024-01-01 names a column that the file does not have; .*basePath"
    ) as refused:
        read({})
    assert classify(refused.value).kind is FailureClass.SCHEMA_MISMATCH
    (row,) = read({"basePath": path}).selectExpr("id", "p", "cast(day AS string) AS day").collect()
    assert tuple(row) == (1, "a", "2024-01-01")
    for other in (read({"recursiveFileLookup": "true"}), read({}, f"{path}/day=*"), read({}, f"{path}/day=2024-01-01")):
        assert sorted(other.columns) == ["id", "p", "ts", "v"]
        assert other.count() == 1
    if format == "json":
        (world.lake / "landing" / "folders-json" / "day=2024-01-01" / "joined.json").write_text(
            f"{line(A).strip()}{line(B)}"
        )
        with pytest.raises(Exception, match="holds one JSON value"):
            read({"basePath": path}).count()


def test_a_frame_of_another_session_is_transformed_itself(world: World) -> None:
    """F96: the view of the batch before was transformed once more, in the place of the rows of a
    session that the program had made.
    """
    spark = world.spark()
    spark.sql(f"ADD JAR '{JAR}'")  # the query is judged by a class of ours; this session is a plain one
    sql = "SELECT id, upper(v) AS v FROM source"
    first = sources.transform(spark.createDataFrame([(1, "one")], "id int, v string"), sql)
    assert [tuple(row) for row in first.collect()] == [(1, "ONE")]
    second = sources.transform(spark.newSession().createDataFrame([(2, "two")], "id int, v string"), sql)
    assert [tuple(row) for row in second.collect()] == [(2, "TWO")]


def test_a_view_of_the_program_stays_what_it_is(world: World) -> None:
    """F167: a program's own view `source` was that of the batch before from the second batch on, so
    its other rows were never written.
    """
    spark = world.spark()
    spark.sql(f"ADD JAR '{JAR}'")  # the query is judged by a class of ours; this session is a plain one
    spark.createDataFrame([(1, "one"), (2, "two")], "id int, v string").createOrReplaceTempView("source")
    for wanted in ((1, "ONE"), (2, "TWO")):
        batch = spark.sql(f"SELECT * FROM source WHERE id = {wanted[0]}")
        found = sources.transform(batch, "SELECT id, upper(v) AS v FROM source")
        assert [tuple(row) for row in found.collect()] == [wanted]
    spark.catalog.dropTempView("source")
    assert sources.transform(spark.range(1), "SELECT id FROM source").count() == 1
    assert not spark.catalog.tableExists("source")


def test_rows_that_the_program_has_cached_stay_cached(world: World) -> None:
    """F167: the next batch took them out of the cache, and later batches computed them anew."""
    spark = world.spark()
    spark.sql(f"ADD JAR '{JAR}'")  # the query is judged by a class of ours; this session is a plain one
    cached = spark.range(3).cache()
    assert cached.count() == 3
    for batch in (cached, cached.where("id = 1")):
        sources.transform(batch, "SELECT id FROM source").collect()
        assert cached.storageLevel.useMemory
    cached.unpersist()


@pytest.mark.extra
def test_odd_files_are_each_committed_once(world: World, agent: Process) -> None:
    """F85, F87, with a real writer that commits file by file."""
    table = world.table("odd-files")
    world.create(table, agent=AGENT, process=agent)
    content = {"x[1].json": line(A), "x1.json": line(B), "0.json": "", "x{1,2}.json": line((3, "a", "z", 3))}
    source = {
        "format": "json",
        "paths": [f"{landing(world, 'odd', content)}/*.json"],
        "options": {},
        "maxFilesPerCommit": 1,
    }
    writer = table.writer("odd", files=source, transform="SELECT int(id) AS id, p, v, ts FROM source")
    assert writer.wait() == 0, writer.log()[-4000:]
    table.audited([A, B, *rows([3], "a", "z", 3)])
    again = table.writer("odd", files=source, transform="SELECT int(id) AS id, p, v, ts FROM source", run=2)
    assert again.wait() == 0, again.log()[-4000:]
    assert again.termination()["commits"] == 0
