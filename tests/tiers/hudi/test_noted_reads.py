"""Which of a program's reads its next write is compared from, whatever Spark makes of its queries.

One program and no other writer: what its Java session has noted is looked at itself.
"""

from __future__ import annotations

from tests.support.harness.local import AGENT, Process, World, until
from tests.support.harness.told import Told

LOOKS = """
from py4j.java_gateway import get_field
from pyspark.sql import Observation, functions as F
from hudi_runtime.process.session import Session
from hudi_runtime.table.hudi import Table

session = Session.current(spark)
reads = spark.sparkContext._jvm.io.hudioperator.Sessions.current().reads()
LATER = "99991231235959999"


def base():
    "Since when a write that begins now is compared. It counts as one."
    reads.statementBegins(True)
    reads.begun(LATER)
    found = get_field(reads.write(LATER), "base")
    reads.forget(LATER)
    return found and get_field(found, "completion")


def newest():
    return max(instant.completion for instant in Table(spark, path).timeline().completed)


def load():
    return spark.read.format("hudi").load(path).select("id", "p", "v", "ts")
"""
MINE = """
hadoop = spark.sparkContext._jsc.hadoopConfiguration()
hadoop.set('fs.file.impl', 'org.apache.hadoop.fs.LocalFileSystem')
hadoop.set('fs.file.impl.disable.cache', 'true')
spark.sql('''CREATE TABLE mine (id INT, v STRING, ts BIGINT, p STRING) USING hudi
PARTITIONED BY (p) LOCATION 'FOLDER'
TBLPROPERTIES (primaryKey='id', 'hoodie.write.concurrency.mode'='single_writer',
'hoodie.write.lock.provider'='org.apache.hudi.client.transaction.lock.InProcessLockProvider')''')
"""
SUBQUERY = "SELECT (SELECT max(a.ts) FROM t a JOIN t b ON a.id = b.id) AS newest"
"""Spark joins by a broadcast, and then plans the rest of the subquery again, in another thread."""


class Program(Told):
    """A program whose next write is asked what it is made from."""

    def base(self, piece: str = "") -> str:
        """Since when a write would be compared after that piece; it counts as one."""
        assert not self.run(piece)
        return str(self.ask("base()"))

    def saved(self, id: int, ts: int) -> str:
        """Completion time of a row that is saved now."""
        assert not self.run(f"save(\"SELECT {id} AS id, 'a' AS p, '{ts}' AS v, {ts}L AS ts\")")
        return str(self.ask("newest()"))


def test_what_a_write_is_made_from(world: World, agent: Process) -> None:
    table = world.table("noted")
    world.create(table, agent=AGENT, process=agent)
    program = Program(table, "program")
    assert not program.run(LOOKS)
    first = program.saved(1, 1)
    assert not program.run("spark.sql(f\"CREATE TABLE t USING hudi LOCATION '{path}'\")\nother = spark.newSession()")

    # F421: a frame that is made before a write, and executed after it and a later read.
    assert program.base("other.table('t').count()\nmade = load().where('id = 1')") == first
    second = program.saved(2, 2)
    assert program.base("spark.table('t').count()") == second
    assert program.base("made.collect()") == first
    # F441: rows are kept, and a look at the columns makes them no newer. F448: nor does a plan
    # that nobody runs.
    assert program.base("spark.table('t').columns") == first
    assert program.base("spark.table('t').where('id = 9').cache().unpersist()") == first
    assert program.base("spark.sql('EXPLAIN SELECT * FROM t')") == first
    # F440: nor does what a statement plans for itself.
    assert program.base("spark.sql(\"UPDATE t SET v = 'u', ts = 3 WHERE id = 1\")") == first
    third = program.ask("newest()")
    # F420: the name of a table in a session whose writes another one does.
    assert program.ask("other.table('t').where('id = 1').first().v") == "u"
    assert program.base() == third

    # F449: what a statement observes is in the program's hands, and makes other rows no newer.
    assert not program.run("old = load()\nold.createOrReplaceTempView('old')")
    fourth = program.saved(2, 4)
    assert program.base("spark.table('t').count()") == fourth
    observed = "save(old.where('id = 1').observe(Observation(), F.max('ts')))"
    assert program.base(observed) == third
    assert program.base("spark.table('t').count()") == program.ask("newest()"), "read again"
    assert program.base(observed.replace("old", "load()", 1)) != program.ask("newest()"), "rows are kept"

    # F402: a statement takes rows to another table, as if the program had read them.
    assert not program.run(MINE.replace("FOLDER", (world.folder / "mine-noted").as_uri()))
    insert = "INSERT INTO mine SELECT id, v, ts, p FROM"
    assert program.base(f"spark.sql('{insert} t')") == program.ask("newest()")
    # A statement that writes this table and another one is refused before it begins.
    several = "FROM t INSERT INTO mine SELECT id, v, ts, p INSERT INTO t (id, p, v, ts) SELECT 3, p, v, ts WHERE id = 1"
    assert "[HUDIOP-STATEMENT] writing files into the table's folder" in program.sql(several)

    # F450: a subquery that Spark plans in a thread of its own belongs to the look-up of its query.
    assert program.base("spark.table('t').count()") == program.ask("newest()")
    kept = program.ask("newest()")
    program.saved(2, 7)
    look = f"with session.looking_up():\n    spark.sql('{SUBQUERY}').collect()\n    inside = base()"
    assert program.base(look) == kept
    assert program.ask("inside") == kept

    # F597: Spark plans a view that is replaced or dropped once more, and nobody reads it.
    assert not program.run("load().createOrReplaceTempView('kept')")
    newer = program.saved(2, 8)
    assert program.base("spark.table('t').count()") == newer
    assert program.base("load().createOrReplaceTempView('kept')") == newer
    newest = program.saved(2, 9)
    assert program.base("spark.table('t').count()") == newest
    assert program.base("spark.catalog.dropTempView('kept')") == newest
    program.end()
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited([(1, "a", "u", 3), (2, "a", "9", 9)])
