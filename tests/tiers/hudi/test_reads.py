"""A program that keeps rows of its table over a refused write, has another thread read them, or
reads a part of them, overwrites nobody's change.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.harness.counting_writers import counting
from tests.support.harness.local import AGENT, Process, World, rows, until
from tests.support.harness.told import Told

APP = Path(__file__).with_name("apps") / "reads_app.py"


@pytest.mark.extra
def test_what_was_read_before_is_not_written_over_a_change(world: World, agent: Process) -> None:
    """F88: what a statement reads for itself does not make older rows new, nor does what the
    writing thread has read make those of others new.

    F89, F90, F105, F166: Hudi's sink for streams, reading base files alone, reading without
    merging, and leaving out files are refused.
    """
    table = world.table("kept-reads", type="MergeOnRead")
    world.create(table, agent=AGENT, process=agent)
    seed = table.writer("seed", python={"batches": [{"rows": rows([1, 2, 3], "a", "0", 1)}]})
    assert seed.wait() == 0, seed.log()[-4000:]
    code, results, gate = world.folder / "code-reads", world.folder / "reads.json", world.folder / "gate-reads"
    code.mkdir()
    shutil.copy(APP, code)
    program = table.writer(
        "program", application={"mainFile": str(code / APP.name), "arguments": [str(results), str(gate)]}
    )
    until("it has read", Path(f"{gate}.reached").exists, alive=program)
    other = counting(table, "other", "updates", [1, 2])
    assert other.wait() == 0, other.log()[-4000:]
    gate.touch()
    assert program.wait() == 0, program.log()[-8000:]
    found = json.loads(results.read_text())
    for name in ("UPDATE", "UPDATE, tried again", "rows of a pool", "rows of a pool, tried again"):
        assert "onflict" in found[name], found
    assert (found["UPDATE, read again"], found["UPDATE by itself"]) == ("done", "done"), found
    for name in (
        "read_optimized",
        "UPDATE with SET read_optimized",
        "skip_merge",
        "UPDATE with SET skip_merge",
        "UPDATE with SET ignoreCorruptFiles",
        "UPDATE with SET ignoreMissingFiles",
        "UPDATE with SET data.skipping",
        "writeStream",
    ):
        assert "[HUDIOP-STATEMENT]" in found[name], found
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited([(1, "a", "2", 3), (2, "a", "1", 2), (3, "a", "1", 2)])


@pytest.mark.extra
def test_settings_of_a_session_blind_nobody(world: World, agent: Process) -> None:
    """F105: Hudi adds what a function has set in the session to the options of each read, also of
    those that the runtime makes to look keys up and for an `Update`.
    """
    table = world.table("set-in-session", type="MergeOnRead")
    world.create(table, agent=AGENT, process=agent)
    seed = table.writer(
        "seed", python={"batches": [{"rows": rows([1, 2], "a", "0", 1)}, {"rows": rows([1, 2], "a", "1", 2)}]}
    )
    assert seed.wait() == 0, seed.log()[-4000:]
    later = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "29990101000000000",
    }
    known = {"settings": later, "batches": [{"rows": rows([1], "a", "again", 3)}]}
    insert = table.writer("insert", operation="insert", function="with_settings", python=known)
    assert insert.wait() == 10, insert.log()[-4000:]
    assert "the table has this key already" in insert.termination()["message"], insert.termination()
    counts = table.writer(
        "counts", function="counting_with_settings", python={"settings": {"hoodie.datasource.merge.type": "skip_merge"}}
    )
    assert counts.wait() == 0, counts.log()[-4000:]
    blind = table.writer("blind", function="counting_with_settings", python={"settings": later})
    assert blind.wait() == 0, blind.log()[-4000:]
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited([(1, "a", "3", 4), (2, "a", "3", 4)])


@pytest.mark.extra
def test_a_session_that_leaves_out_files_leaves_out_none_of_the_table(world: World, agent: Process) -> None:
    """F166: a function lets its session pass over files that cannot be read, for the sake of its
    own input. The look-up of keys passes over such files of the table, too, and a bulk insert,
    which reads no file itself, writes a key once more.
    """
    table = world.table("left-out")
    world.create(table, agent=AGENT, process=agent)
    seed = table.writer("seed", python={"batches": [{"rows": rows([1, 2], "a", "0", 1)}]})
    assert seed.wait() == 0, seed.log()[-4000:]
    (name,) = table.data_files()
    file = table.folder / name
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    content = file.read_bytes()
    settings = {"spark.sql.files.ignoreCorruptFiles": "true", "spark.sql.files.ignoreMissingFiles": "true"}
    known = {"settings": settings, "batches": [{"rows": rows([1], "a", "again", 3)}]}
    for way, damage in {"corrupt": lambda: file.write_bytes(b"x" * len(content)), "missing": file.unlink}.items():
        damage()
        insert = table.writer(way, operation="bulk_insert", function="with_settings", python=known)
        assert insert.wait() != 0, insert.log()[-4000:]
        assert insert.termination()["commits"] == 0
        file.write_bytes(content)
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited(rows([1, 2], "a", "0", 1))


@pytest.mark.extra
def test_rows_that_went_through_another_table(world: World, agent: Process) -> None:
    """F402: a program puts rows of its table into a Hudi table of its own, and from there back.

    On its pod's disk: on a store of tables it may write no other Hudi table. These tests keep
    tables on the disk, too, so that it is guarded here.
    """
    table = world.table("through-another")
    world.create(table, agent=AGENT, process=agent)
    program, other = Told(table, "program"), Told(table, "other")
    assert not program.run("save(\"SELECT CAST(id AS INT) AS id, 'a' AS p, 'x' AS v, 5L AS ts FROM range(1, 4)\")")
    assert not program.run(
        "hadoop = spark.sparkContext._jsc.hadoopConfiguration()\n"
        "hadoop.set('fs.file.impl', 'org.apache.hadoop.fs.LocalFileSystem')\n"
        "hadoop.set('fs.file.impl.disable.cache', 'true')\n"
        "spark.sql(f\"CREATE TABLE t USING hudi LOCATION '{path}'\")\n"
        "spark.sql('''CREATE TABLE mine (id INT, v STRING, ts BIGINT, p STRING) USING hudi\n"
        f"PARTITIONED BY (p) LOCATION '{(world.folder / 'mine').as_uri()}'\n"
        "TBLPROPERTIES (primaryKey='id', 'hoodie.write.concurrency.mode'='single_writer',\n"
        "'hoodie.write.lock.provider'='org.apache.hudi.client.transaction.lock.InProcessLockProvider')''')"
    )
    assert not program.sql("INSERT INTO mine SELECT id, concat(v, '+'), ts + 10, p FROM t")
    assert not other.run("save(\"SELECT 1 AS id, 'a' AS p, 'o' AS v, 9L AS ts\")")
    back = (
        "MERGE INTO t USING (SELECT id, p, v, ts FROM mine) s ON t.id = s.id AND t.p = s.p "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    number = program.begin(f"spark.sql({back!r})")
    assert program.kind(number) == "WriteConflict", program.said(number)
    # What it reads now has the other's change: the next round is no conflict.
    assert not program.sql("INSERT OVERWRITE mine SELECT id, concat(v, '+'), ts + 10, p FROM t")
    assert not program.sql(back)
    for one in (program, other):
        one.end()
    until("what was refused is rolled back", lambda: not table.pending(), alive=agent)
    table.audited([(1, "a", "o+", 19), (2, "a", "x+", 15), (3, "a", "x+", 15)])
