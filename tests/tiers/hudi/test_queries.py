"""The SQL of a HudiWriter is one query over its views, by Spark's own parser (F133).

In a real session, with the settings and extensions of a driver. Each refused text is also run
without the rule, so that each of them is known to be an attack and not a mistake of the test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.harness.local import CLASS_PATH, SHORT_LIVED

APP = Path(__file__).with_name("apps") / "queries_app.py"

QUERIES = [
    "SELECT id, name FROM source",
    "select s.id, v.name from SOURCE s join v on s.id = v.id where v.name like 'a%' order by 1 limit 3;",
    "WITH a AS (SELECT id FROM source), b AS (SELECT * FROM a) SELECT max(id) AS id FROM b GROUP BY id HAVING id > 0",
    "SELECT id FROM source UNION ALL SELECT id FROM v EXCEPT SELECT 7",
    "SELECT *, row_number() OVER (PARTITION BY name ORDER BY id) AS n FROM source",
    "SELECT id, x FROM source LATERAL VIEW explode(array(1, 2)) t AS x",
    "SELECT id, (SELECT max(id) FROM v) AS m, id IN (SELECT id FROM v) AS i FROM source WHERE EXISTS (SELECT 1 FROM v)",
    "SELECT col FROM explode(array(1, 2))",
    "SELECT id FROM range(3)",
    "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(id, name)",
    "SELECT * FROM (SELECT id, name FROM source) PIVOT (count(*) FOR name IN ('a', 'b'))",
    "FROM source SELECT id",
    "TABLE v",
    "SELECT /*+ BROADCAST(v) */ source.id FROM source, v",
    "SELECT transform(array(id), x -> x + 1) AS t, '${env:HOME}' AS text FROM source",
]
ATTACKS = {
    "java_method": "SELECT java_method('java.lang.System', 'getProperty', 'user.dir') AS x",
    "reflect": "SELECT id, ReFlect('java.lang.System', 'getenv', 'SECRET') AS x FROM source",
    "reflect in a subquery": "SELECT id FROM source WHERE id IN (SELECT reflect('java.util.UUID', 'randomUUID'))",
    "reflect in a CTE": "WITH a AS (SELECT `java_method`('java.lang.System', 'getenv', 'SECRET') AS x) SELECT * FROM a",
    "reflect, qualified": "SELECT system.builtin.reflect('java.lang.System', 'getenv', 'SECRET') AS x",
    "a file as a table": "SELECT * FROM text.`file://{file}`",
    "a file in a CTE": "WITH a AS (SELECT * FROM csv.`file://{file}`) SELECT * FROM a",
    "a file in a subquery": "SELECT (SELECT max(value) FROM text.`file://{file}`) AS x",
    "a file in a join": "SELECT id FROM source JOIN text.`file://{file}` t ON true",
    "TABLE of a file": "TABLE text.`file://{file}`",
    "IDENTIFIER": "SELECT * FROM IDENTIFIER('text.`file://{file}`')",
    "a table of the catalog": "SELECT * FROM default.kept",
    "a table without a database": "SELECT * FROM kept",
    "a script": "SELECT TRANSFORM(id) USING 'cat {file}' AS x FROM source",
    "MAP": "FROM source MAP id USING 'cat {file}' AS x",
    "CREATE FUNCTION": "CREATE TEMPORARY FUNCTION f AS 'java.lang.Object'",
    "ADD JAR": "ADD JAR {file}",
    "ADD FILE": "ADD FILE {file}",
    "SET": "SET spark.sql.runSQLOnFiles=true",
    "RESET": "RESET",
    "CREATE VIEW": "CREATE OR REPLACE TEMPORARY VIEW source AS SELECT 1",
    "CREATE TABLE AS": "CREATE TABLE made USING parquet AS SELECT 1 AS id",
    "INSERT": "INSERT INTO kept SELECT 1",
    "INSERT from": "FROM source INSERT INTO kept SELECT 1",
    "INSERT DIRECTORY": "INSERT OVERWRITE DIRECTORY '{folder}/out' USING csv SELECT 1",
    "DELETE": "DELETE FROM kept",
    "DROP": "DROP TABLE kept",
    "SHOW": "SHOW TABLES",
    "DESCRIBE": "DESCRIBE source",
    "EXPLAIN": "EXPLAIN SELECT 1",
    "USE": "USE default",
    "CACHE": "CACHE TABLE source",
    "CALL": "CALL show_commits(path => '{folder}')",
    "a timeline of Hudi": "SELECT * FROM hudi_query_timeline('{folder}', 'true')",
    "changes of a Hudi table": "SELECT * FROM hudi_table_changes('{folder}', 'latest_state', 'earliest')",
}
NO_STATEMENT = ["SELECT 1; SELECT 2", "SELECT 1; DROP TABLE kept", "", "nonsense", "SELECT 1 -- x\n; DROP TABLE kept"]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("queries")
    secret = folder / "secret.txt"
    secret.write_text("s3cr3t\n")
    attacks = {name: sql.format(file=secret, folder=folder) for name, sql in ATTACKS.items()}
    told = {"queries": QUERIES, "attacks": attacks, "broken": NO_STATEMENT, "folder": str(folder)}
    (folder / "told.json").write_text(json.dumps(told))
    path = ":".join(str(ROOT / part) for part in ("spark-images", "operator", "."))
    environ = {**os.environ, "PYTHONPATH": path, "SECRET": "s3cr3t", "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, str(APP), str(folder / "told.json"), CLASS_PATH, SHORT_LIVED]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "seen.json").read_text())


@pytest.mark.parametrize("sql", QUERIES)
def test_a_query_runs(seen: Any, sql: str) -> None:
    assert seen["queries"][sql] == "ran"


@pytest.mark.parametrize("name", ATTACKS)
def test_what_is_no_query_is_refused_before_it_is_analyzed(seen: Any, name: str) -> None:
    assert seen["attacks"][name].startswith("transform.sql: "), seen["attacks"][name]


@pytest.mark.parametrize("sql", NO_STATEMENT)
def test_more_or_less_than_one_statement_is_an_error_of_the_parser(seen: Any, sql: str) -> None:
    assert "ParseException" in seen["broken"][sql]


def test_the_settings_alone_keep_files_and_variables_out(seen: Any) -> None:
    """Without the rule: the second lock of the same door."""
    assert seen["alone"]["file"] != "ran"
    assert seen["alone"]["variable"] == "${env:SECRET}"
    assert seen["alone"]["reflect"] == "s3cr3t", "without the rule this attack works"
    assert seen["alone"]["script"] == "s3cr3t", "without the rule this attack works"


def test_java_reads_properties_as_they_were_meant(seen: Any) -> None:
    """F132: Spark's file, read by `java.util.Properties`, has the names and values that it had."""
    assert seen["properties"] == seen["meant"]


def test_a_document_cannot_name_a_file(seen: Any) -> None:
    """Spark's XPath functions resolve no external entity."""
    assert "s3cr3t" not in seen["xml"]
