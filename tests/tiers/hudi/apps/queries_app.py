"""Put to Spark by test_queries.py: queries, attacks, and what the settings alone refuse."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from hudi_operator.api.spec import StorageSpec
from hudi_operator.manifests import spark_conf
from hudi_operator.model.config import OperatorConfig
from hudi_runtime.process.errors import UserCodeError
from hudi_runtime.read.sources import query

told_file, class_path, java_options = sys.argv[1:]
told = json.loads(Path(told_file).read_text())
folder = Path(told["folder"])
MEANT = {
    "spark.a": "plain",
    "spark.b:c": "a=b:c # ! \\ x",
    "spark.d e": "\tleading and trailing",
    "spark.f=g": "line\nspark.h=i\r\nx",
    "#spark.j": "",
    "!spark.k": "\\u0041 \u2028 ü $(x) ${y}",
    " spark.l": " x",
    "spark.m\nspark.n": "\f",
}


def session() -> SparkSession:
    settings = {
        **spark_conf._owned(StorageSpec(), OperatorConfig()),
        "spark.driver.extraClassPath": class_path,
        "spark.driver.extraJavaOptions": java_options,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "tmp"),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "600m",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def attempt(run: Any) -> str:
    try:
        return str(run())
    except UserCodeError as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]


def main() -> None:
    spark = session()
    spark.createDataFrame([(1, "a"), (2, "b")], "id int, name string").createOrReplaceTempView("source")
    spark.createDataFrame([(1, "a"), (7, "c")], "id int, name string").createOrReplaceTempView("v")

    def ran(sql: str) -> str:
        query(spark, sql, "transform.sql").collect()
        return "ran"

    secret = (folder / "secret.txt").as_uri()  # not read: each of these is refused
    seen = {
        "queries": {sql: attempt(lambda sql=sql: ran(sql)) for sql in told["queries"]},
        "attacks": {name: attempt(lambda sql=sql: ran(sql)) for name, sql in told["attacks"].items()},
        "broken": {sql: attempt(lambda sql=sql: ran(sql)) for sql in told["broken"]},
        "alone": {
            "file": attempt(lambda: spark.sql(f"SELECT * FROM text.`{secret}`").collect() and "ran"),
            "variable": attempt(lambda: spark.sql("SELECT '${env:SECRET}' AS x").first()[0]),
            "reflect": attempt(lambda: spark.sql(told["attacks"]["reflect"]).first()["x"]),
            "script": attempt(lambda: spark.sql(told["attacks"]["a script"]).first()["x"]),
        },
        "xml": attempt(
            lambda: spark.sql(
                f"""SELECT xpath_string('<!DOCTYPE a [<!ENTITY x SYSTEM "{secret}">]><a>&x;</a>', 'a') AS x"""
            ).first()[0]
        ),
    }
    jvm: Any = spark.sparkContext._jvm
    properties = jvm.java.util.Properties()
    properties.load(jvm.java.io.StringReader(spark_conf.properties(MEANT)))
    seen["properties"] = {name: properties.getProperty(name) for name in properties.stringPropertyNames()}
    seen["meant"] = MEANT
    (folder / "seen.json").write_text(json.dumps(seen))


main()
