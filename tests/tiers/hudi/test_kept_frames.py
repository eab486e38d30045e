"""A program reads its table in ways that hide how old its rows are: by a name that its session has
known for long, through a frame that it made earlier, or twice before one write. It overwrites
nobody's change.
"""

from __future__ import annotations

import json

import pytest

from tests.support.harness.local import AGENT, Process, World, until
from tests.support.harness.told import Told

COLUMNS = "'id int, p string, v string, ts long'"
FRAME = f"spark.createDataFrame([ROW], {COLUMNS})"
COUNTING = """
def batch(frame, number):
    now = spark.table("t").where("p = 'named'").selectExpr("id AS k", "cast(v AS int) AS c")
    save(frame.join(now, frame.x == now.k).selectExpr(
        "k AS id", "'named' AS p", "cast(c + 1 AS string) AS v", f"{{10 + number}}L AS ts"))

numbers = spark.readStream.schema("x int").option("maxFilesPerTrigger", 1).json("{folder}")
started = numbers.writeStream.foreachBatch(batch).option("checkpointLocation", "{folder}-position")
started.trigger(availableNow=True).start().awaitTermination()
"""
READ = "spark.read.format('hudi').load(path).where(\"p = '{p}'\").select('id', 'p', 'v', 'ts')"


@pytest.mark.extra
def test_rows_are_as_old_as_what_they_were_read_from(world: World, agent: Process) -> None:
    """F420: `spark.table` in a session whose writes another one does. F421: a frame that is made,
    and collected after a write of something else. F422: rows that were collected, and `read_table`
    before they are written with its `commit_metadata`. F441, F448: rows that were collected, and a
    look at the columns and a frame that is cached before each of them is written.
    """
    table = world.table("kept-frames")
    world.create(table, agent=AGENT, process=agent)
    program, other = Told(table, "program"), Told(table, "other")
    seed = (
        "SELECT 1 AS id, p, '0' AS v, 5L AS ts "
        "FROM VALUES ('named'), ('made'), ('twice'), ('aside'), ('one'), ('two') AS of(p)"
    )
    assert not program.run(f"save({seed!r})")
    assert not program.run("spark.sql(f\"CREATE TABLE t USING hudi LOCATION '{path}'\")")

    # The batches' own session writes; the program's session has read the table by its name before.
    numbers = world.folder / "numbers"
    numbers.mkdir()
    for name in ("1", "2", "3"):
        (numbers / f"{name}.json").write_text(json.dumps({"x": 1}))
    assert not program.run(COUNTING.format(folder=numbers.as_uri()))
    value = "spark.read.format('hudi').load(path).where(\"p = 'named'\").first().v"
    assert program.ask(value) == "3"

    def change(p: str) -> None:
        query = f"SELECT 1 AS id, '{p}' AS p, 'o' AS v, 9L AS ts"
        assert not other.run(f"save({query!r})")

    def refused(piece: str) -> None:
        number = program.begin(piece)
        assert program.kind(number) == "WriteConflict", (piece, program.said(number))

    assert not program.run(f"made = {READ.format(p='made')}")
    aside = "SELECT 1 AS id, 'aside' AS p, '{}' AS v, {}L AS ts"
    assert not program.run(f"save({aside.format('1', 6)!r})")
    change("made")
    look = READ.format(p="aside") + ".first()"
    assert not program.run(f"row = {look}\nsave({aside.format('2', 7)!r})")
    again = "row = made.collect()[0]\nsave(" + FRAME.replace("ROW", "(row.id, row.p, row.v + '+', 15)")
    refused(again + ")")

    assert not program.run(f"row = {READ.format(p='twice')}.first()")
    change("twice")
    twice = FRAME.replace("ROW", "(row.id, row.p, row.v + '+', 15)")
    refused(f"current.read_table().select('id').count()\nsave({twice}, **current.commit_metadata())")
    # What it reads anew it may write.
    assert not program.run(
        f"current.read_table()\nrow = {READ.format(p='twice')}.first()\nsave({twice}, **current.commit_metadata())"
    )

    for p in ("one", "two"):
        assert not program.run(f"{p} = {READ.format(p=p)}.first()")
    look = "spark.table('t').columns\nspark.table('t').where(\"p = 'none'\").cache()\n"
    write = look + "save(" + FRAME.replace("ROW", "({p}.id, {p}.p, {p}.v + '+', 15)") + ")"
    assert not program.run(write.format(p="one"))
    change("two")
    refused(write.format(p="two"))
    for one in (program, other):
        one.end()
    until("what was refused is rolled back", lambda: not table.pending(), alive=agent)
    table.audited(
        [
            *((1, "named", "3", 12), (1, "made", "o", 9), (1, "twice", "o+", 15)),
            *((1, "aside", "2", 7), (1, "one", "0+", 15), (1, "two", "o", 9)),
        ],
    )
