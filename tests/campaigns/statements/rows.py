"""Rows of docs/use/what-user-code-may-do.md beside those of statements.json, by section.

`tests/tiers/hudi/apps/statements_app.py` runs each under this name. A row that a mode has not run
is on the page as well, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping

REFUSED: Mapping[str, str] = dict.fromkeys(
    (
        "SET TBLPROPERTIES",
        "SET LOCATION",
        "df.write.parquet below the table",
        "rdd.saveAsTextFile below the table",
        "spark.read.parquet of the table's files",
        "spark.read.parquet of a folder above the table",
        "a query of the table's metadata table",
        "spark.read.orc of the table's files, data source V2",
        "df.write.json below the table, data source V2",
        "df.write of another HudiTable",
        "INSERT INTO another HudiTable",
        "spark.readStream of the table",
        "df.writeStream of the table",
    ),
    "",
)
"""Statements that are refused although the list has no entry for them."""

_V1 = "not known to Spark for a Hudi table"
WAYS: Mapping[str, str] = {
    "df.write.insertInto": "as `INSERT INTO`",
    "df.write.insertInto with the option operation delete": (
        "adds the rows: Spark does not use the options of the writer here. To delete use `df.write.save`"
    ),
    "df.write.insertInto, mode overwrite": "as `INSERT OVERWRITE`: replaces the whole table",
    "df.write.saveAsTable, mode append": "as `CREATE TABLE … AS SELECT`",
    "df.write.saveAsTable, mode overwrite": "the name goes from this program's catalog, the table stays",
    "df.write.saveAsTable, mode ignore": "the table exists, so nothing is written",
    "df.write.saveAsTable, mode errorifexists": "the table exists, so it fails",
    "df.writeTo(…).append()": _V1,
    "df.writeTo(…).overwrite(…)": _V1,
    "df.writeTo(…).overwritePartitions()": _V1,
    "df.writeTo(…).overwritePartitions(), with schema evolution": _V1,
    "df.writeTo(…).using(hudi).create()": "as `CREATE TABLE … AS SELECT`",
    "df.writeTo(…).using(hudi).replace()": _V1,
    "df.writeTo(…).using(hudi).createOrReplace()": _V1,
}
"""Other methods of a DataFrame that write, with the notes of the page."""

RACES: Mapping[str, str] = dict.fromkeys(
    (
        "rows collected, then df.write",
        "rows collected in one thread, df.write in another",
        "a cached frame, then df.write",
        "read_table(), then df.write with commit_metadata()",
        "INSERT INTO … SELECT from itself",
        "MERGE INTO, source from itself",
        "UPDATE after a SELECT",
        "foreachBatch that reads and writes",
        "DELETE FROM after a SELECT",
        "INSERT OVERWRITE … PARTITION from itself",
        "read_table(), another thread's read_table() and write, then df.write",
    ),
    "",
)
"""Statements that read the table before another writer's commit, and write afterwards."""

THREADS = (
    "two threads, UPDATE",
    "two threads, DELETE FROM",
    "two threads, MERGE INTO",
    "two threads, INSERT INTO … SELECT",
    "two threads, df.write",
)
STREAMS = "two streaming queries with foreachBatch"
AT_ONCE: Mapping[str, str] = dict.fromkeys((*THREADS, STREAMS), "")
"""Statements that one program runs several times at once."""

SHOWN = (
    "CompactionShowHoodieTableCommand",
    "CompactionShowHoodiePathCommand",
    "CALL show_compaction",
    "CALL show_file_status",
    "CALL show_fs_path_detail",
    "CALL show_logfile_metadata",
)
"""Statements of the list that show something only if there is something: their rows show that they
have run.
"""
REACHED = (*SHOWN, "CALL show_rollback_detail")
"""Statements that need an argument, a type of table or an index: an error means that they have done
nothing yet.
"""

EVERY = (*REFUSED, *WAYS, *RACES, *AT_ONCE)
