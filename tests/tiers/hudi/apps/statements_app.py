"""A program that runs every statement, procedure and way to save, beside other writers.

Arguments: results, folder of gates, list of statements, path of another HudiTable, and of one
of type MergeOnRead with log files, compactions, statistics of columns and a rollback. The names of
what it runs are those of the list and of tests/campaigns/statements/rows.py.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

from pyspark.sql.functions import col

from hudi_runtime.api import current_context
from hudi_runtime.process.errors import describe_causes, java_causes

current = current_context()
spark = current.spark
results, gates, listed = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text())
path, elsewhere, logged = current.table_path, sys.argv[4], sys.argv[5]
found: dict[str, dict[str, object]] = {}
NEXT = "id, p, cast(cast(v AS int) + 1 AS string) AS v, ts + 1 AS ts"
OPTIONS = current.table_options()


def rows():
    return spark.read.format("hudi").load(path)


def save(frame, operation="upsert", mode="append", to=path, **more):
    options = {**OPTIONS, "hoodie.datasource.write.operation": operation, **more}
    frame.write.format("hudi").options(**options).mode(mode).save(to)


def outcome(name, action):
    try:
        result = action()
        found[name] = {"failed": False} | ({"rows": result} if isinstance(result, int) else {})
    except Exception as error:
        causes = java_causes(error)
        found[name] = {"failed": True, "message": describe_causes(causes)[:400] if causes else str(error)[:400]}
    print("ROW", name, json.dumps(found[name]), flush=True)


def wait(name):
    (gates / f"{name}.reached").touch()
    while not (gates / name).exists():
        time.sleep(0.1)


# Each of them has read the counter with its number before another writer adds one to it, and adds
# one itself afterwards.


def of_collected_rows(number, go):
    mine = [tuple(row) for row in rows().where(f"id = {number}").selectExpr(*NEXT.split(", ")).collect()]
    go()
    save(spark.createDataFrame(mine, "id int, p string, v string, ts long"))


def of_rows_handed_to_another_thread(number, go):
    mine = [tuple(row) for row in rows().where(f"id = {number}").selectExpr(*NEXT.split(", ")).collect()]
    go()
    errors = []

    def write():
        try:
            save(spark.createDataFrame(mine, "id int, p string, v string, ts long"))
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    for error in errors:
        raise error


def of_a_kept_frame(number, go):
    mine = rows().where(f"id = {number}").selectExpr(*NEXT.split(", ")).cache()
    mine.count()
    go()
    save(mine)


def of_read_table(number, go):
    mine = [tuple(row) for row in current.read_table().where(f"id = {number}").selectExpr(*NEXT.split(", ")).collect()]
    metadata = current.commit_metadata()
    go()
    save(spark.createDataFrame(mine, "id int, p string, v string, ts long"), **metadata)


def of_insert_select(number, go):
    rows().where(f"id = {number}").selectExpr(*NEXT.split(", ")).createOrReplaceTempView(f"old{number}")
    go()
    spark.sql(f"INSERT INTO counted SELECT id, v, ts, p FROM old{number}")


def of_merge(number, go):
    rows().where(f"id = {number}").selectExpr(*NEXT.split(", ")).createOrReplaceTempView(f"old{number}")
    go()
    spark.sql(
        f"MERGE INTO counted t USING old{number} s ON t.id = s.id AND t.p = s.p WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"
    )


def of_update(number, go):
    spark.sql(f"SELECT v FROM counted WHERE id = {number}").collect()
    go()
    spark.sql(f"UPDATE counted SET v = cast(cast(v AS int) + 1 AS string), ts = ts + 1 WHERE id = {number}")


def of_foreach_batch(number, go):
    (gates / f"in{number}").mkdir()
    (gates / f"in{number}" / "one.json").write_text('{"x": 1}\n')

    errors = []

    def batch(_frame, _number):
        mine = [tuple(row) for row in rows().where(f"id = {number}").selectExpr(*NEXT.split(", ")).collect()]
        go()
        try:
            save(spark.createDataFrame(mine, "id int, p string, v string, ts long"))
        except Exception as error:
            errors.append(error)
            raise

    stream = spark.readStream.schema("x int").json(str(gates / f"in{number}"))
    query = (
        stream.writeStream.foreachBatch(batch)
        .option("checkpointLocation", str(gates / f"checkpoint{number}"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    except Exception as error:
        raise errors[0] if errors else error from None  # the stream's own error says first where Python was


def of_delete(number, go):
    spark.sql(f"SELECT v FROM counted WHERE id = {number}").collect()
    go()
    spark.sql(f"DELETE FROM counted WHERE id = {number}")


def of_insert_overwrite(number, go):
    rows().where(f"id = {number}").selectExpr(*NEXT.split(", ")).createOrReplaceTempView(f"old{number}")
    go()
    spark.sql(f"INSERT OVERWRITE counted PARTITION (p = 'r') SELECT id, v, ts FROM old{number}")


def of_read_table_beside_a_newer_one(number, go):
    """Another thread reads the table after the other writer's commit, and writes something else."""
    mine = [tuple(row) for row in current.read_table().where(f"id = {number}").selectExpr(*NEXT.split(", ")).collect()]
    metadata = current.commit_metadata()
    go()
    errors = []

    def write():
        try:
            current.read_table().count()
            save(spark.createDataFrame([(61, "z", "new", 1)], "id int, p string, v string, ts long"))
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    if errors:
        raise RuntimeError(f"the other thread: {errors[0]}")
    save(spark.createDataFrame(mine, "id int, p string, v string, ts long"), **metadata)


READERS = {
    1: ("rows collected, then df.write", of_collected_rows),
    2: ("rows collected in one thread, df.write in another", of_rows_handed_to_another_thread),
    3: ("a cached frame, then df.write", of_a_kept_frame),
    4: ("read_table(), then df.write with commit_metadata()", of_read_table),
    5: ("INSERT INTO … SELECT from itself", of_insert_select),
    6: ("MERGE INTO, source from itself", of_merge),
    7: ("UPDATE after a SELECT", of_update),
    8: ("foreachBatch that reads and writes", of_foreach_batch),
    10: ("DELETE FROM after a SELECT", of_delete),
    11: ("INSERT OVERWRITE … PARTITION from itself", of_insert_overwrite),
    12: ("read_table(), another thread's read_table() and write, then df.write", of_read_table_beside_a_newer_one),
}


def races():
    """All have read, then another writer commits, then they write, one after another."""
    turns = {number: (threading.Event(), threading.Event()) for number in READERS}

    def one(number):
        ready, turn = turns[number]

        def go():
            ready.set()
            turn.wait()

        name, action = READERS[number]
        outcome(name, lambda: action(number, go))
        ready.set()

    threads = {number: threading.Thread(target=one, args=(number,)) for number in READERS}
    for number, thread in threads.items():
        thread.start()
        turns[number][0].wait()
    wait("raced")
    for number, thread in threads.items():
        turns[number][1].set()
        thread.join()


def one_more(number):
    return spark.sql(f"SELECT {NEXT} FROM counted WHERE id = {number}")


def deletes_the_first():
    first = spark.sql("SELECT min(id) FROM counted WHERE p = 'd'").collect()[0][0]
    spark.sql(f"DELETE FROM counted WHERE id = {first}")


def saves_one_more():
    mine = [tuple(row) for row in one_more(14).collect()]
    save(spark.createDataFrame(mine, "id int, p string, v string, ts long"))


def merges_one_more():
    one_more(13).createOrReplaceTempView(f"more{threading.get_ident()}")
    spark.sql(
        f"MERGE INTO counted t USING more{threading.get_ident()} s ON t.id = s.id AND t.p = s.p "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def updates_one_more():
    spark.sql("UPDATE counted SET v = cast(cast(v AS int) + 1 AS string), ts = ts + 1 WHERE id = 9")


def inserts_one_more():
    spark.sql(
        "INSERT INTO counted SELECT 100 + cast(count(*) AS int) AS id, 'more', 1L, 'q' FROM counted WHERE p = 'q'"
    )


BY_TWO = {
    "two threads, UPDATE": updates_one_more,
    "two threads, DELETE FROM": deletes_the_first,
    "two threads, MERGE INTO": merges_one_more,
    "two threads, INSERT INTO … SELECT": inserts_one_more,
    "two threads, df.write": saves_one_more,
}
"""Each depends on what it has read: of two that have read the same, one may succeed."""
TRIES = 3


def two_threads(name, change):
    """Each of them does the same three times."""
    added = []

    def changes():
        for _ in range(TRIES):
            try:
                # What this program has read before is compared, too, as long as nothing is read
                # after the last write
                rows().count()
                change()
                added.append(1)
            except Exception as error:
                print("TWO", name, str(error)[:300], flush=True)

    threads = [threading.Thread(target=changes) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found[name] = {"added": len(added), "tried": 2 * TRIES}
    print("ROW", name, json.dumps(found[name]), flush=True)


def two_streams():
    """Two queries at once, each writes a row of its own in each of two batches."""
    errors = []

    def batch(number):
        def write(_frame, turn):
            new = spark.createDataFrame([(number, "s", f"batch {turn}", turn)], "id int, p string, v string, ts long")
            try:
                save(new)
            except Exception as error:
                errors.append(str(error))
                raise

        return write

    queries = []
    for number in (80, 81):
        folder = gates / f"in{number}"
        folder.mkdir()
        for turn in range(2):
            (folder / f"{turn}.json").write_text('{"x": 1}\n')
        stream = spark.readStream.schema("x int").option("maxFilesPerTrigger", 1).json(str(folder))
        writer = stream.writeStream.foreachBatch(batch(number))
        writer = writer.option("checkpointLocation", str(gates / f"checkpoint{number}")).trigger(availableNow=True)
        queries.append(writer.start())
    outcome("two streaming queries with foreachBatch", lambda: [query.awaitTermination() for query in queries])
    print("STREAMS", errors, flush=True)


def works():
    """Statements that work, one after another: what they leave is known."""
    new = lambda number: spark.createDataFrame([(number, "w", "new", 1)], "id int, p string, v string, ts long")  # noqa: E731
    outcome("InsertIntoHoodieTableCommand", lambda: spark.sql("INSERT INTO counted VALUES (20, 'sql', 1, 'w')"))
    outcome("append/", lambda: new(21).write.format("hudi").options(**OPTIONS).mode("append").save(path))
    outcome("append/upsert", lambda: save(new(22)))
    outcome("append/insert", lambda: save(new(23), "insert"))
    outcome("append/bulk_insert", lambda: save(new(24), "bulk_insert"))
    outcome(
        "UpdateHoodieTableCommand", lambda: spark.sql("UPDATE counted SET v = 'updated', ts = ts + 1 WHERE id = 22")
    )
    merge = (
        "MERGE INTO counted t USING (SELECT 23 AS id, 'w' AS p, 'merged' AS v, 2L AS ts) s ON t.id = s.id AND "
        "t.p = s.p WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    outcome("MergeIntoHoodieTableCommand", lambda: spark.sql(merge))
    outcome("DeleteHoodieTableCommand", lambda: spark.sql("DELETE FROM counted WHERE id = 20"))
    outcome("append/delete", lambda: save(new(21), "delete"))
    save(spark.createDataFrame([(30, "x", "new", 1)], new(0).schema))
    outcome(
        "append/insert_overwrite",
        lambda: save(spark.createDataFrame([(31, "x", "new", 1)], new(0).schema), "insert_overwrite"),
    )
    outcome(
        "INSERT OVERWRITE … PARTITION",
        lambda: spark.sql("INSERT OVERWRITE counted PARTITION (p = 'x') SELECT 33, 'over', 1L"),
    )
    outcome(
        "overwrite/insert_overwrite",
        lambda: save(spark.createDataFrame([(32, "x", "new", 1)], new(0).schema), "insert_overwrite", "overwrite"),
    )
    outcome("errorifexists/", lambda: save(new(40), mode="errorifexists"))
    outcome("ignore/", lambda: save(new(41), mode="ignore"))
    outcome(
        "append/delete_partition",
        lambda: save(new(0), "delete_partition", **{"hoodie.datasource.write.partitions.to.delete": "y"}),
    )
    # Streams of this program have committed since its last read outside of a write, and what
    # replaces the whole table conflicts with each of their commits.
    rows().count()
    for mode in ("append", "overwrite"):
        outcome(
            f"{mode}/insert_overwrite_table",
            lambda mode=mode: save(rows().select("id", "p", "v", "ts"), "insert_overwrite_table", mode),
        )
    outcome(
        "INSERT OVERWRITE TABLE", lambda: spark.sql("INSERT OVERWRITE TABLE counted SELECT id, v, ts, p FROM counted")
    )
    ways(new)


def ways(new):
    """Other methods of a DataFrame that write into a table by its name."""
    deletes = {**OPTIONS, "hoodie.datasource.write.operation": "delete"}
    columns = ("id", "v", "ts", "p")
    outcome("df.write.insertInto", lambda: new(25).select(*columns).write.insertInto("counted"))
    outcome(
        "df.write.insertInto with the option operation delete",
        lambda: new(26).select(*columns).write.options(**deletes).insertInto("counted"),
    )
    outcome(
        "df.write.insertInto, mode overwrite",
        lambda: spark.table("counted").select(*columns).write.mode("overwrite").insertInto("counted"),
    )
    for mode in ("append", "overwrite", "ignore", "errorifexists"):
        outcome(
            f"df.write.saveAsTable, mode {mode}",
            lambda mode=mode: new(42).select(*columns).write.format("hudi").mode(mode).saveAsTable("counted"),
        )
        named()
    matches = col("id") == 43
    outcome("df.writeTo(…).append()", lambda: new(43).writeTo("counted").append())
    outcome("df.writeTo(…).overwrite(…)", lambda: new(43).writeTo("counted").overwrite(matches))
    outcome("df.writeTo(…).overwritePartitions()", lambda: new(43).writeTo("counted").overwritePartitions())
    for way in ("create", "replace", "createOrReplace"):
        outcome(
            f"df.writeTo(…).using(hudi).{way}()",
            lambda way=way: getattr(
                new(43).writeTo("made" if way == "create" else "counted").using("hudi").tableProperty("location", path),
                way,
            )(),
        )
    # With it Hudi's catalog has the table as one of data source API V2
    spark.conf.set("hoodie.schema.on.read.enable", "true")
    outcome("AppendData", lambda: new(44).writeTo("counted").append())
    outcome("OverwriteByExpression", lambda: new(44).writeTo("counted").overwrite(matches))
    outcome(
        "df.writeTo(…).overwritePartitions(), with schema evolution",
        lambda: new(44).writeTo("counted").overwritePartitions(),
    )
    spark.conf.unset("hoodie.schema.on.read.enable")


REFUSED = {
    "TruncateHoodieTableCommand": "TRUNCATE TABLE counted",
    "DropHoodieTableCommand+delete": "DROP TABLE counted PURGE",
    "AlterHoodieTableDropPartitionCommand": "ALTER TABLE counted DROP PARTITION (p = 'a')",
    "AlterHoodieTableAddPartitionCommand": "ALTER TABLE counted ADD PARTITION (p = 'z')",
    "AlterHoodieTableAddColumnsCommand": "ALTER TABLE counted ADD COLUMNS (more int)",
    "AlterHoodieTableChangeColumnCommand": "ALTER TABLE counted CHANGE COLUMN id id bigint",
    "AlterHoodieTableRenameCommand": "ALTER TABLE counted RENAME TO recounted",
    "RepairHoodieTableCommand": "MSCK REPAIR TABLE counted",
    "CreateHoodieTableAsSelectCommand": (
        f"CREATE TABLE again USING hudi LOCATION '{path}' AS SELECT 1 AS id, 'a' AS p, 'x' AS v, 1L AS ts"
    ),
    "CreateHoodieTableLikeCommand": "CREATE TABLE alike LIKE counted USING hudi",
    "CreateIndexCommand": "CREATE INDEX later ON counted USING column_stats(v)",
    "DropIndexCommand": "DROP INDEX later ON counted",
    "RefreshIndexCommand": "REFRESH INDEX later ON counted",
    "CompactionHoodieTableCommand": "RUN COMPACTION ON counted",
    "CompactionHoodiePathCommand": f"RUN COMPACTION ON '{path}'",
    "CreateHoodieTableCommand": f"CREATE TABLE another USING hudi LOCATION '{path}'",
    "ShowHoodieCreateTableCommand": "SHOW CREATE TABLE counted",
    "ShowHoodieTablePartitionsCommand": "SHOW PARTITIONS counted",
    "ShowIndexesCommand": "SHOW INDEXES FROM counted",
    "CompactionShowHoodieTableCommand": "SHOW COMPACTION ON logged",
    "CompactionShowHoodiePathCommand": f"SHOW COMPACTION ON '{logged}'",
    "RefreshTableCommand": "REFRESH TABLE counted",
    "AnalyzeTableCommand": "ANALYZE TABLE counted COMPUTE STATISTICS NOSCAN",
    "CreateViewCommand": "CREATE TEMPORARY VIEW seen AS SELECT * FROM counted",
    "ShowColumnsCommand": "SHOW COLUMNS IN counted",
    "DescribeTableCommand": "DESCRIBE TABLE EXTENDED counted",
    "SET TBLPROPERTIES": "ALTER TABLE counted SET TBLPROPERTIES ('x' = 'y')",
    "SET LOCATION": "ALTER TABLE counted SET LOCATION '/tmp/elsewhere'",
    "DropHoodieTableCommand": "DROP TABLE another",
    "DropNamespace": "DROP DATABASE beside CASCADE",
    "DropNamespace+delete": "DROP DATABASE above",
}
"""Those that the list refuses, and those that change nothing."""
LOOKS = (
    "DESCRIBE TABLE counted",
    "DESCRIBE TABLE counted v",
    "SHOW TBLPROPERTIES counted",
    "SHOW TABLES",
    "CACHE TABLE counted",
    "UNCACHE TABLE counted",
    "CACHE TABLE kept AS SELECT * FROM counted",
    "REFRESH TABLE counted",
    "EXPLAIN SELECT * FROM counted",
    "ANALYZE TABLE counted COMPUTE STATISTICS FOR COLUMNS v",
)
"""Spark has two classes for most of them: which one it is shows when it has run."""


def named():
    """Whatever a statement has done to this program's catalog."""
    spark.sql(f"CREATE TABLE IF NOT EXISTS counted USING hudi LOCATION '{path}'")


def look(sql):
    frame = spark.sql(sql)
    frame.collect()
    plan = frame._jdf.logicalPlan()
    if plan.getClass().getSimpleName() == "CommandResult":
        plan = plan.commandLogicalPlan()
    found.setdefault(plan.getClass().getSimpleName(), {"failed": False})


def lists():
    spark.sql(f"CREATE TABLE logged USING hudi LOCATION '{logged}'")
    spark.sql("CREATE DATABASE beside")
    spark.sql(f"CREATE TABLE beside.counted USING hudi LOCATION '{path}'")
    spark.sql(f"CREATE DATABASE above LOCATION '{path}/within'")
    for name, sql in REFUSED.items():
        named()
        outcome(name, lambda sql=sql: shown(sql))
    named()
    # With it Hudi has one class of its own for all of ALTER TABLE
    spark.conf.set("hoodie.schema.on.read.enable", "true")
    outcome("AlterTableCommand", lambda: spark.sql("ALTER TABLE counted ADD COLUMNS (evolved int)").collect())
    outcome(
        "AlterTableCommand, another column",
        lambda: spark.sql("ALTER TABLE counted ALTER COLUMN v COMMENT 'evolved'").collect(),
    )
    spark.conf.unset("hoodie.schema.on.read.enable")
    for sql in LOOKS:
        named()
        try:
            look(sql)
        except Exception as error:
            print("LOOK", sql, str(error)[:300], flush=True)
    named()
    latest = current.read_table().selectExpr("max(_hoodie_commit_time)").collect()[0][0]
    file = spark.sql("SELECT _hoodie_file_name FROM counted WHERE p = 'a'").collect()[0][0]
    rolled = spark.sql("CALL show_rollbacks(table => 'logged')").collect()[0][0]
    in_logs = f"table => 'logged', log_file_path_pattern => '{logged}/a/.*.log.*'"
    of_columns = "table => 'logged', targetColumns => 'id,v'"
    arguments = {
        "help": "",
        "copy_to_temp_view": "table => 'counted', view_name => 'copied'",
        "commits_compare": f"table => 'counted', path => '{path}'",
        "show_compaction": "table => 'logged'",
        "show_logfile_metadata": in_logs,
        "show_logfile_records": in_logs,
        "show_metadata_column_stats_overlap": of_columns,
        "show_metadata_table_column_stats": of_columns,
        "show_rollback_detail": f"table => 'logged', instant_time => '{rolled}'",
        "show_file_status": f"table => 'counted', partition => 'a', file => '{file}'",
        "show_fs_path_detail": f"path => '{path}/*'",
    }
    for name in listed["procedures"]:
        given = arguments.get(name, "table => 'counted'")
        outcome(f"CALL {name}", lambda name=name, given=given: call(name, given, latest))
    outcome(
        "overwrite/",
        lambda: save(
            spark.createDataFrame([(50, "a", "all", 1)], "id int, p string, v string, ts long"), mode="overwrite"
        ),
    )
    outcome("df.write.parquet below the table", lambda: spark.range(1).write.parquet(f"{path}/a/more"))
    outcome(
        "rdd.saveAsTextFile below the table",
        lambda: spark.sparkContext.parallelize(["x"], 1).saveAsTextFile(f"{path}/a/lines"),
    )
    outcome("spark.read.parquet of the table's files", lambda: spark.read.parquet(f"{path}/a").count())
    deep, above = spark.read.schema("id int").option("recursiveFileLookup", "true"), path.rsplit("/", 1)[0] + "/"
    outcome("spark.read.parquet of a folder above the table", lambda: deep.parquet(above).count())
    outcome(
        "a query of the table's metadata table",
        lambda: spark.read.format("hudi").load(f"{path}/.hoodie/metadata").count(),
    )
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    outcome(
        "spark.read.orc of the table's files, data source V2",
        lambda: spark.read.schema("id int").orc(f"{path}/a").count(),
    )
    outcome(
        "df.write.json below the table, data source V2", lambda: spark.range(1).write.mode("append").json(f"{path}/a")
    )
    spark.conf.unset("spark.sql.sources.useV1SourceList")
    new = spark.createDataFrame([(1, "a", "not mine", 9)], "id int, p string, v string, ts long")
    name = elsewhere.rsplit("/", 1)[1]
    outcome("df.write of another HudiTable", lambda: save(new, to=elsewhere, **{"hoodie.table.name": name}))
    spark.sql(f"CREATE TABLE elsewhere USING hudi LOCATION '{elsewhere}'")
    outcome("INSERT INTO another HudiTable", lambda: spark.sql("INSERT INTO elsewhere SELECT 1, 'not mine', 9L, 'a'"))
    outcome("spark.readStream of the table", lambda: spark.readStream.format("hudi").load(path))
    stream = (
        spark.readStream.schema("id int")
        .json(str(gates / "in8"))
        .writeStream.format("hudi")
        .option("checkpointLocation", str(gates / "sink"))
    )
    outcome("df.writeStream of the table", lambda: stream.start(path))


def shown(sql):
    """How many rows it shows."""
    return len(spark.sql(sql).collect())


def call(name, given, latest):
    try:
        return shown(f"CALL {name}({given})" if given else f"CALL {name}")
    except Exception as error:
        if "required" not in str(error):
            raise
        return shown(f"CALL {name}(table => 'counted', instant_time => '{latest}', limit => 5)")


spark.sql(f"CREATE TABLE counted USING hudi LOCATION '{path}'")
races()
for told, change in BY_TWO.items():
    two_threads(told, change)
two_streams()
works()
lists()
results.write_text(json.dumps(found))
